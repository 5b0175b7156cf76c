//! The paths of the memory tool: `/memories` and what is below it, and nothing else.

use super::Refusal;
use memtrove_client::FilePath;
use std::fmt;

/// The folder of everything.
const ROOT: &str = "/memories";

/// A place under `/memories`: a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemoryPath {
    /// As it is shown.
    shown: String,
    /// The file that would be there; none at `/memories` itself.
    file: Option<FilePath>,
}

impl MemoryPath {
    /// Reads a path. What would lead out of `/memories`, in whatever spelling, is refused.
    pub(super) fn read(path: &str) -> Result<Self, Refusal> {
        let outside = || Refusal(format!("Error: Path must start with /memories, got: {path}"));
        let below = path.strip_prefix(ROOT).ok_or_else(outside)?;
        if !below.is_empty() && !below.starts_with('/') {
            return Err(outside());
        }
        let below = below.trim_matches('/');
        if below.is_empty() {
            return Ok(Self { shown: ROOT.to_owned(), file: None });
        }
        if escapes(below) {
            return Err(Refusal(format!("Error: Path {path} would escape /memories directory")));
        }
        let shown = format!("{ROOT}/{below}");
        match FilePath::new(&shown) {
            Ok(file) => Ok(Self { shown: format!("/{file}"), file: Some(file) }),
            Err(error) => Err(Refusal(format!("Error: The path {path} is not valid: {error}"))),
        }
    }

    /// The file that would be there; none at `/memories` itself.
    pub(super) fn file(&self) -> Option<&FilePath> {
        self.file.as_ref()
    }

    /// The folders that it is in, below `/memories`: a file at one of them would be in the way.
    pub(super) fn above(&self) -> Vec<FilePath> {
        let path = self.file.as_ref().map_or("", FilePath::as_str);
        let ends = path.match_indices('/').skip(1).map(|(end, _)| &path[..end]);
        ends.filter_map(|folder| FilePath::new(folder).ok()).collect()
    }

    /// Whether another place is somewhere in the folder that is, or would be, here.
    pub(super) fn contains(&self, other: &Self) -> bool {
        self != other && other.prefix().starts_with(&self.prefix())
    }

    /// What the paths of all files in this folder begin with.
    pub(super) fn prefix(&self) -> String {
        format!("{}/", self.shown.trim_start_matches('/'))
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Whether a path has something in it by which it could be meant to lead elsewhere.
fn escapes(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    path.contains("..") || ["%2e", "%2f", "%5c", "%00"].iter().any(|escape| lower.contains(escape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_place_is_a_file_of_the_folder_memories() {
        let place = MemoryPath::read("/memories/projects/plan.md").unwrap();
        assert_eq!(place.file().unwrap().as_str(), "memories/projects/plan.md");
        assert_eq!(place.prefix(), "memories/projects/plan.md/");
        assert_eq!(place.to_string(), "/memories/projects/plan.md");
        for root in ["/memories", "/memories/", "/memories//"] {
            let place = MemoryPath::read(root).unwrap();
            assert_eq!((place.file(), place.to_string().as_str()), (None, "/memories"));
            assert_eq!(place.prefix(), "memories/");
        }
        assert_eq!(MemoryPath::read("/memories/dir/").unwrap().to_string(), "/memories/dir");
    }

    #[test]
    fn a_place_knows_the_folders_that_it_is_in() {
        let above = |path: &str| {
            let above = MemoryPath::read(path).unwrap().above();
            above.into_iter().map(|path| path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(above("/memories/a/b/c.md"), ["memories/a", "memories/a/b"]);
        assert!(above("/memories/a").is_empty() && above("/memories").is_empty());
        let contains = |folder: &str, path: &str| {
            MemoryPath::read(folder).unwrap().contains(&MemoryPath::read(path).unwrap())
        };
        assert!(contains("/memories/a", "/memories/a/b") && contains("/memories", "/memories/a"));
        assert!(!contains("/memories/a", "/memories/a") && !contains("/memories/a", "/memories/ab"));
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for path in ["/etc/passwd", "memories/a", "/memoriesx/a", "/memory", "", "/", "/memories\\..\\a"] {
            let refusal = MemoryPath::read(path).unwrap_err().0;
            assert_eq!(refusal, format!("Error: Path must start with /memories, got: {path}"));
        }
        for path in [
            "/memories/../etc/passwd",
            "/memories/a/../../b",
            "/memories/..\\b",
            "/memories/%2e%2e/b",
            "/memories/%2E%2E%2Fb",
            "/memories/a%5c..%5cb",
        ] {
            let refusal = MemoryPath::read(path).unwrap_err().0;
            assert_eq!(refusal, format!("Error: Path {path} would escape /memories directory"));
        }
        for path in ["/memories/a//b", "/memories/./a", "/memories/a\nb", "/memories/ /a"] {
            assert!(MemoryPath::read(path).unwrap_err().0.contains("is not valid"), "{path}");
        }
    }

    proptest! {
        #[test]
        fn what_is_plainly_under_memories_is_there(below in "(/[a-z]{1,4}(\\.md)?){0,4}/?") {
            let place = MemoryPath::read(&format!("/memories{below}"));
            prop_assert!(place.is_ok(), "{:?}", place);
        }

        #[test]
        fn whatever_a_model_names_is_under_memories_or_refused(
            path in "(/memories/?|/?)(/?([a-z]{1,3}|\\.|\\.\\.|%2e|%2E%2e|%2F|%5c| |\\\\)){0,6}/?"
        ) {
            if let Ok(place) = MemoryPath::read(&path) {
                prop_assert!(place.prefix().starts_with("memories/"));
                if let Some(file) = place.file() {
                    prop_assert!(file.as_str().starts_with("memories/"));
                    prop_assert!(!file.as_str().contains("..") && !file.as_str().contains('\\'));
                    prop_assert!(path.starts_with("/memories/"), "{}", path);
                }
            }
        }
    }
}
