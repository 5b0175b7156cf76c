//! Files stay as they are.

use super::*;

#[test]
fn the_text_is_kept_and_its_date_is_found() {
    let text = "---\ntitle: x\ndate: 2024-05-01\n---\n# Hi\n";
    let Record::File(found) = read("a/b.md", text.into()).unwrap() else { panic!("no file") };
    assert_eq!(found.text, text);
    assert_eq!(found.created_at.unwrap().to_string(), "2024-05-01T00:00:00.000000Z");
    let Record::File(plain) = read("a.md", "date: 2024-05-01".into()).unwrap() else { panic!("no file") };
    assert_eq!(plain.created_at, None);
}

#[test]
fn what_is_no_text_is_refused() {
    assert!(read("a.md", vec![0xff]).unwrap_err().contains("UTF-8"));
    assert!(read("a.md", vec![0]).unwrap_err().contains("NUL"));
    assert!(read("a.md", vec![b'x'; MAX_BYTES as usize + 1]).unwrap_err().contains("longer"));
}

#[test]
fn a_name_that_no_path_can_have_is_told() {
    assert!(read("a/Wait...md", "x".into()).unwrap_err().contains("rename it"));
    assert!(read("a/../b.md", "x".into()).is_ok(), "where it leads is judged by the rules of paths");
}

#[test]
fn names_tell() {
    assert!(is_named_so("a/B.MD") && is_named_so("x.markdown"));
    assert!(!is_named_so(".md") && !is_named_so("a/.md") && !is_named_so("a.mdx"));
}
