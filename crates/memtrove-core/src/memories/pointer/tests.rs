use super::*;
use crate::memories::testing::members;

fn pointer(more: Value) -> Map<String, Value> {
    let mut pointer = members(json!({
        "sourceType": "adr", "sourceId": "file:docs/adr/7", "contentHash": "sha256:ab12",
        "syncedAt": "2026-01-31T12:00:00Z", "keeper": "anna"
    }));
    pointer.extend(members(more));
    members(json!({"title": "ADR 7", "knowledgePointer": pointer}))
}

/// The flags after a document changed, or `None` if nothing is to be written.
fn marked(before: Value, document: Option<&str>) -> Option<(bool, bool)> {
    let hashes = document.map(|hash| vec!["00".to_owned(), hash.to_owned()]);
    let patch = mark(&pointer(before), hashes.as_deref())?;
    let now = Pointer::among(&patch).unwrap();
    Some((now.is_stale, now.is_orphaned))
}

#[test]
fn a_pointer_is_read_from_metadata() {
    let read = Pointer::among(&pointer(json!({"sourceLayer": "team", "isStale": true}))).unwrap();
    assert_eq!(
        read,
        Pointer {
            source_type: SourceType::Adr,
            source_id: "file:docs/adr/7".to_owned(),
            content_hash: "sha256:ab12".to_owned(),
            synced_at: Timestamp::parse("2026-01-31T12:00:00Z").unwrap(),
            source_layer: Some(Layer::Team),
            is_orphaned: false,
            is_stale: true,
        }
    );
    assert_eq!(Pointer::among(&members(json!({"title": "no pointer"}))), None);
}

#[test]
fn a_source_of_the_form_file_and_path_is_a_document() {
    for (id, path) in [
        ("file:docs/adr/7", Some("docs/adr/7")),
        ("file:docs\\adr\\7", Some("docs/adr/7")),
        ("file:", None),
        ("file:../up", None),
        ("docs/adr/7", None),
        ("FILE:docs", None),
        ("https://x/file:y", None),
    ] {
        let read = Pointer::among(&pointer(json!({"sourceId": id}))).unwrap();
        assert_eq!(read.file().as_ref().map(FilePath::as_str), path, "{id}");
    }
    let read = Pointer::among(&pointer(json!({"sourceId": source_id("a/b")}))).unwrap();
    assert_eq!(read.file().unwrap().as_str(), "a/b");
}

#[test]
fn a_document_that_changes_makes_pointers_stale_and_one_that_goes_orphans() {
    for (before, document, after) in [
        (json!({}), Some("ab12"), None),
        (json!({}), Some("AB12"), None),
        (json!({}), Some("ff"), Some((true, false))),
        (json!({"isStale": true}), Some("ff"), None),
        (json!({"isStale": true}), Some("ab12"), Some((false, false))),
        (json!({}), None, Some((false, true))),
        (json!({"isStale": true}), None, Some((true, true))),
        (json!({"isOrphaned": true}), None, None),
        (json!({"isOrphaned": true}), Some("ab12"), Some((false, false))),
        (json!({"isOrphaned": true}), Some("ff"), Some((true, false))),
    ] {
        assert_eq!(marked(before.clone(), document), after, "{before} and {document:?}");
    }
    assert_eq!(mark(&members(json!({"title": "no pointer"})), None), None);
}

#[test]
fn a_mark_keeps_everything_else_of_the_pointer() {
    let patch = mark(&pointer(json!({})), Some(&["ff".to_owned()])).unwrap();
    let expected = pointer(json!({"isStale": true}));
    assert_eq!(patch, Map::from_iter([(KEY.to_owned(), expected[KEY].clone())]));
}

#[test]
fn a_document_goes_by_the_hash_of_its_envelope_its_content_and_its_text() {
    let document = r#"{"doc_id":"d","content":{"text":"hello","tags":[]}}"#;
    assert_eq!(
        hashes(document),
        [
            canonical_sha256(&json!({"tags": [], "text": "hello"})),
            sha256_hex(b"hello"),
            canonical_sha256(&json!({"content": {"tags": [], "text": "hello"}, "doc_id": "d"})),
        ]
    );
    assert_eq!(hashes(r#"{"content":{"text":7}}"#).len(), 2);
    assert_eq!(hashes("damaged"), Vec::<String>::new());
}
