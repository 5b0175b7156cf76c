//! A folder as the memory tool shows it: what is in it, two levels deep, with sizes. Pure.

use super::path::MemoryPath;
use std::collections::BTreeMap;

/// So deep a folder is looked into.
const DEPTH: usize = 2;

/// Whether a file below a folder is shown there at all.
pub(super) fn is_shown(place: &MemoryPath, path: &str) -> bool {
    let below = path.strip_prefix(&place.prefix());
    below.is_some_and(|below| below.split('/').all(|name| !name.starts_with('.') && name != "node_modules"))
}

/// Shows a folder, given the sizes of files below it and how many more there are.
pub(super) fn render(place: &MemoryPath, sizes: &[(String, u64)], more: usize) -> String {
    let prefix = place.prefix();
    let mut total = 0;
    // By names along the path, so that a folder comes right before what is in it.
    let mut entries: BTreeMap<Vec<&str>, Entry> = BTreeMap::new();
    for (path, size) in sizes {
        let Some(below) = path.strip_prefix(&prefix).filter(|_| is_shown(place, path)) else { continue };
        let names: Vec<&str> = below.split('/').collect();
        total += size;
        for depth in 1..=names.len().min(DEPTH) {
            let entry = entries.entry(names[..depth].to_vec()).or_default();
            match depth == names.len() {
                true => entry.file = Some(*size),
                false => entry.folder = Some(entry.folder.unwrap_or(0) + size),
            }
        }
    }
    let mut lines = vec![
        format!(
            "Here're the files and directories up to 2 levels deep in {place}, excluding hidden items and node_modules:"
        ),
        format!("{}\t{place}", human(total)),
    ];
    for (names, entry) in entries {
        let path = format!("{place}/{}", names.join("/"));
        lines.extend(entry.file.map(|size| format!("{}\t{path}", human(size))));
        lines.extend(entry.folder.map(|size| format!("{}\t{path}/", human(size))));
    }
    if more > 0 {
        lines.push(format!("({more} more files are neither shown nor counted. View a folder further down.)"));
    }
    lines.join("\n")
}

/// What has a name. Paths are flat, so it may be a file and a folder.
#[derive(Default)]
struct Entry {
    file: Option<u64>,
    folder: Option<u64>,
}

/// A size for people: `37B`, `5.5K`, `1.2M`.
fn human(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "K", "M"] {
        if size < 1024.0 {
            return if size.fract() == 0.0 { format!("{size:.0}{unit}") } else { format!("{size:.1}{unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1}G")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_shows_two_levels_with_sizes() {
        let sizes = [
            ("memories/.hidden", 5),
            ("memories/b.txt", 1536),
            ("memories/a/x.md", 10),
            ("memories/a/deep/er/y.md", 20),
            ("memories/a/.git/z", 7),
            ("memories/node_modules/m.js", 9),
            ("elsewhere/c.md", 3),
        ];
        let sizes = sizes.map(|(path, size)| (path.to_owned(), size));
        assert_eq!(
            render(&MemoryPath::read("/memories").unwrap(), &sizes, 0),
            "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n\
             1.5K\t/memories\n\
             30B\t/memories/a/\n\
             20B\t/memories/a/deep/\n\
             10B\t/memories/a/x.md\n\
             1.5K\t/memories/b.txt"
        );
        assert_eq!(
            render(&MemoryPath::read("/memories/a").unwrap(), &sizes, 0),
            "Here're the files and directories up to 2 levels deep in /memories/a, excluding hidden items and node_modules:\n\
             30B\t/memories/a\n\
             20B\t/memories/a/deep/\n\
             20B\t/memories/a/deep/er/\n\
             10B\t/memories/a/x.md"
        );
    }

    #[test]
    fn an_empty_memory_is_an_empty_folder() {
        assert!(render(&MemoryPath::read("/memories").unwrap(), &[], 0).ends_with(":\n0B\t/memories"));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let sizes = [("memories/a.md".to_owned(), 3)];
        let shown = render(&MemoryPath::read("/memories").unwrap(), &sizes, 7);
        assert!(shown.ends_with("3B\t/memories/a.md\n(7 more files are neither shown nor counted. View a folder further down.)"), "{shown}");
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, shown) in [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1024, "1K"),
            (5632, "5.5K"),
            (1_258_291, "1.2M"),
            (3 << 30, "3.0G"),
        ] {
            assert_eq!(human(bytes), shown);
        }
    }
}
