//! What the documents say, held against what there is.
use axum::response::IntoResponse;
use memtrove_core::Error;
use memtrove_core::files::Code;
use memtrove_server::rest::error::ApiError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_guide_has_every_error_code_of_the_files_surface_with_its_status() {
    let guide = read(&root().join("docs/files.md"));
    // | `CODE` | 400 | …
    let catalogue: BTreeMap<&str, u16> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .filter_map(|(code, rest)| Some((code, rest.split(' ').next()?.parse().ok()?)))
        .collect();
    for code in Code::ALL.iter().filter(|code| code.is_of_files()) {
        let status = ApiError(Error::new(*code, "")).into_response().status().as_u16();
        assert_eq!(catalogue.get(code.as_str()), Some(&status), "{}", code.as_str());
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = root();
    let guides = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"];
    let mut broken = Vec::new();
    for document in guides.chain(names.map(|name| root.join(name))) {
        for link in links(&read(&document)) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap().join(path),
            };
            let leads = target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !leads {
                broken.push(format!("{}: {link}", document.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "these lead nowhere:\n{}", broken.join("\n"));
}

/// The targets of a document's links within the repository.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = prose(text).collect();
    let prose = prose.join("\n");
    let targets = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// What headings can be linked as: lower case, spaces as hyphens, no punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text)
        .filter_map(|line| Some(line.trim_start_matches('#')).filter(|rest| rest.len() < line.len()));
    headings
        .map(|heading| {
            let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
        })
        .collect()
}

/// The lines that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}
