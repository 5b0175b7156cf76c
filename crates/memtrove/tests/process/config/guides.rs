//! The configurations that the guides show can be pasted.

use super::given;
use std::path::{Path, PathBuf};

/// What a reader fills in, filled in.
fn filled(toml: &str) -> String {
    toml.replace("key = \"\"", "key = \"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlYzE=\"")
        .replace("[\"\"]", "[\"Wm9vIGFuZCBzb21lIG1vcmUgcmFuZG9tIGJ5dGVz\"]")
        .replace("\"…\"", "\"c2VjcmV0\"")
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guides = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_guide = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    guides.filter(is_guide).chain([root.join("README.md")]).collect()
}

#[test]
fn every_configuration_of_the_guides_is_read_and_has_no_problem() {
    let mut read = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        // Dependencies of a Rust program are no settings of ours.
        for block in blocks.filter(|block| !block.starts_with("[dependencies]")) {
            let mut problems = given(&filled(block)).problems();
            // Of certificates, say, which only the reader has.
            problems.retain(|problem| !problem.contains("No such file"));
            assert!(problems.is_empty(), "{} shows\n{block}\n{problems:#?}", document.display());
            read += 1;
        }
    }
    assert!(read > 10, "the guides were read: {read} configurations");
}
