use super::*;
use crate::files::testing::code;
use proptest::prelude::*;

#[test]
fn paths_are_kept_byte_for_byte() {
    let long = format!("{}/{}", "é".repeat(127), "b".repeat(255));
    let longest =
        ["a".repeat(255), "b".repeat(255), "c".repeat(255), "d".repeat(254), "e".to_owned()].join("/");
    assert_eq!(longest.len(), 1024);
    let plain = [
        "profile.md",
        "a/b.md",
        "x",
        " a / b ",
        "Profile.MD",
        "e\u{301}",
        "\u{e9}",
        "files:list",
        "100%",
        "a.b",
        "a+b",
    ];
    for path in plain.into_iter().chain([long.as_str(), &longest]) {
        assert_eq!(FilePath::parse(path).unwrap().as_str(), path);
    }
}

#[test]
fn backslashes_and_escaped_slashes_name_the_same_file() {
    for raw in ["a/b.md", "a%2Fb.md", "a%2fb.md", "a%5Cb.md", "a\\b.md", "%61/b.md"] {
        assert_eq!(FilePath::from_encoded(raw).unwrap().as_str(), "a/b.md", "{raw}");
    }
    assert_eq!(FilePath::from_encoded("a%20b+c").unwrap().as_str(), "a b+c", "a plus is a plus");
    assert_eq!(FilePath::from_encoded("%E4%BD%A0.md").unwrap().as_str(), "你.md");
    assert_eq!(FilePath::from_encoded("50%25").unwrap().as_str(), "50%");
}

#[test]
fn malformed_paths_are_refused() {
    let segment = "s".repeat(256);
    let long = ["a".repeat(255), "b".repeat(255), "c".repeat(255), "d".repeat(255), "e".to_owned()].join("/");
    let wrong = [
        "",
        " ",
        "\u{3000}",
        "..",
        "a..b",
        "a/../b",
        "/a",
        "\\a",
        "a/",
        "a\\",
        "a//b",
        "a\\/b",
        ".",
        "./a",
        "a/.",
        "a/./b",
        "a/ /b",
        "a/\u{2003}",
        "a\0b",
        "a\u{1f}",
        "a\u{7f}",
        "a\n",
        "%2e",
        "%2E%2e/a",
        "a%2Fb",
        "a%5cb",
        "a%5Cb",
        "a%00",
        &segment,
        &long,
    ];
    for path in wrong {
        assert_eq!(code(FilePath::parse(path)), "INVALID_PATH", "{path:?}");
    }
}

#[test]
fn malformed_encodings_are_refused() {
    let wrong = [
        "",
        "%",
        "a%2",
        "a%zz",
        "%+1",
        "%FF",
        "%C3",
        "%ED%A0%80",
        "%C0%AF",
        "%2Fetc/passwd",
        "%5Cetc",
        "a%2F%2Fb",
        "%2e%2e%2fa",
        "%252e%252e",
        "a%252fb",
        "%00",
        "%0a",
        "%20",
    ];
    for raw in wrong {
        assert_eq!(code(FilePath::from_encoded(raw)), "INVALID_PATH", "{raw:?}");
    }
}

#[test]
fn a_prefix_is_a_plain_prefix_whatever_its_case() {
    let prefix = |raw| list_prefix(raw).unwrap();
    for none in ["", "  ", "/", "//", " / ", "\\"] {
        assert_eq!(prefix(none), None, "{none:?}");
    }
    assert_eq!(prefix(" /Projects\\Ä ").as_deref(), Some("projects/ä"));
    assert_eq!(prefix("proj").as_deref(), Some("proj"));
    assert_eq!(code(list_prefix("a/..")), "INVALID_PATH_PREFIX");
    assert_eq!(code(list_prefix("a..b")), "INVALID_PATH_PREFIX");
}

#[test]
fn folding_looks_at_each_char_by_itself() {
    assert_eq!(fold("ΟΔΟΣ"), "οδοσ", "no final sigma");
    assert_eq!(fold("İ"), "i\u{307}");
    assert_eq!(FilePath::parse("A/Ö.md").unwrap().folded(), "a/ö.md");
}

#[test]
fn scope_ids_are_one_segment_each() {
    let long = "é".repeat(128);
    let fine = [
        ("alice", "alice"),
        ("a%20b", "a b"),
        ("A", "A"),
        ("a..b", "a..b"),
        ("%25", "%"),
        ("%252F", "%2F"),
        (&long, &long),
    ];
    for (raw, id) in fine {
        assert_eq!(scope_id(raw).unwrap(), id);
    }
    let longer = format!("{long}x");
    for raw in [
        "", "%20", ".", "..", "%2e%2E", "a%2Fb", "a%5Cb", "a/b", "a\\b", "%00", "a%0Ab", "%7F", "%C2%80",
        "%", "%zz", "%FF", &longer,
    ] {
        assert_eq!(code(scope_id(raw)), "INVALID_PATH_SEGMENT", "{raw:?}");
    }
}

proptest! {
    #[test]
    fn a_path_that_was_encoded_whole_is_read_back(text in "\\PC{0,40}|[a-c./%2e ]{1,12}") {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        prop_assert_eq!(FilePath::from_encoded(&encoded), FilePath::parse(&text));
    }

    #[test]
    fn an_accepted_path_has_no_segment_that_a_file_system_could_misread(raw in "[ab./%25cef \\\\]{1,16}") {
        if let Ok(path) = FilePath::from_encoded(&raw) {
            prop_assert!(!path.as_str().contains("..") && !path.as_str().contains('\\'));
            prop_assert!(path.as_str().split('/').all(|segment| !segment.trim().is_empty() && segment != "."));
            prop_assert_eq!(FilePath::parse(path.as_str()).unwrap(), path);
        }
    }

    #[test]
    fn the_fold_of_a_prefix_is_a_prefix_of_the_fold(text in "\\PC{0,20}", cut in 0usize..20) {
        let prefix: String = text.chars().take(cut).collect();
        prop_assert!(fold(&text).starts_with(&fold(&prefix)));
    }
}
