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
    let (wide_segment, wide) = ("é".repeat(128), ["é"; 400].join("/"));
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
        &wide_segment,
        &wide,
    ];
    for path in wrong {
        assert_eq!(code(FilePath::parse(path)), "INVALID_PATH", "{path:?}");
    }
}

#[test]
fn malformed_encodings_are_refused() {
    let malformed = ["%", "a%", "a%2", "%zz", "a%2Gb", "%%41", "a%-1", "%+1", "%u0041", "a/%/b"];
    let no_utf_8 = [
        "%FF",
        "a%80",
        "%C3",
        "%C3%28",
        "%C0%AF",
        "%C0%AE%C0%AE/a",
        "%E0%80%AF",
        "%ED%A0%80",
        "%ED%A0%BD%ED%B8%80",
        "%F4%90%80%80",
        "%FE%FF",
    ];
    let two_dots = [
        "..",
        "../a",
        "a/..",
        "a/../b",
        "a..b",
        "..a",
        "a..",
        "...",
        "a/...b",
        "%2e%2e",
        "%2E%2E/a",
        ".%2e/a",
        "%2e./a",
        "a/%2e%2e/b",
        "a%2F..%2Fb",
        "a%5C..%5Cb",
        "..%5Ca",
    ];
    let no_segment = [
        "",
        "/",
        "/a",
        "//a",
        "%2F",
        "%2Fetc/passwd",
        "%5Cetc",
        "%5c%5chost%5cshare",
        "a/",
        "a%2F",
        "a%5C",
        "a//",
        "a//b",
        "a///b",
        "a%2F%2Fb",
        "a/%2Fb",
        "a%5C%5Cb",
        "a/%5Cb",
        ".",
        "./a",
        "a/.",
        "a/./b",
        "%2e",
        "%2e/a",
        "a/%2E/b",
        "a%5C.%5Cb",
        ".%5Ca",
    ];
    let white = [
        "%20",
        "%20%20",
        "%09",
        "%E3%80%80",
        "%C2%A0",
        "%20/a",
        "a/%20",
        "a/%20/b",
        "a/%09/b",
        "a/%E2%80%83/b",
        "a/%C2%A0%20/b",
        "a%5C%20%5Cb",
    ];
    let control =
        (0x00..=0x1f).chain([0x7f]).flat_map(|code| [format!("a%{code:02x}b"), format!("%{code:02X}")]);
    let twice = ["2e", "2E", "2f", "2F", "5c", "5C", "00"]
        .map(|code| [format!("a%25{code}b"), format!("%25{code}"), format!("a/%25{code}/b")]);
    let others = ["a/b%00.md", "a.md%00", "a%0D%0AX-Evil:%201", "%252e%252e", "a%25%32%65b", "a%25%35%63b"];
    let plain = [&malformed[..], &no_utf_8, &two_dots, &no_segment, &white, &others].concat();
    let wrong = plain.into_iter().map(str::to_owned).chain(control).chain(twice.into_iter().flatten());
    for raw in wrong {
        assert_eq!(code(FilePath::from_encoded(&raw)), "INVALID_PATH", "{raw:?}");
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
