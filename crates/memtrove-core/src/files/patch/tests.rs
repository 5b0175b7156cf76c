use super::equality::equal;
use super::*;
use crate::files::body;
use crate::files::envelope::{self, MAX_CHARS, MAX_DEPTH, WORKING_CHARS};
use crate::files::testing::{code, detail};
use proptest::prelude::*;
use serde_json::json;

/// Reads JSON text as a request body is read.
fn value(text: &str) -> Value {
    body::parse(text.as_bytes()).unwrap()
}

fn patched(document: &str, ops: &str) -> Result<String> {
    let Value::Object(mut document) = value(document) else { panic!("a document is an object") };
    Patch::read(Some(&value(ops)), None)?.apply(&mut document)?;
    Ok(serde_json::to_string(&document).unwrap())
}

fn check(document: &str, ops: &str, expected: &str) {
    assert_eq!(patched(document, ops).as_deref(), Ok(expected), "{ops}");
}

fn check_refused(document: &str, ops: &str, expected: &str) {
    assert_eq!(code(patched(document, ops)), expected, "{ops}");
}

/// The same operation with the same outcome for each of these paths.
fn check_paths_refused(document: &str, op: &str, paths: &[&str], expected: &str) {
    for path in paths {
        check_refused(document, &op.replace("PATH", path), expected);
    }
}

/// That no operation reads, takes or puts anything at these paths. The document has a member `s`.
fn check_nowhere(document: &str, paths: &[&str]) {
    for op in ["add", "replace", "remove", "test"] {
        let at = format!(r#"[{{"op":"{op}","path":"PATH","value":1}}]"#);
        check_paths_refused(document, &at, paths, "INVALID_PATCH_PATH");
    }
    for op in ["move", "copy"] {
        let from = format!(r#"[{{"op":"{op}","from":"PATH","path":"/x"}}]"#);
        check_paths_refused(document, &from, paths, "INVALID_PATCH_PATH");
        let to = format!(r#"[{{"op":"{op}","from":"/s","path":"PATH"}}]"#);
        check_paths_refused(document, &to, paths, "INVALID_PATCH_PATH");
    }
}

mod rfc_6902_appendix_a {
    use super::{check, check_refused};

    #[test]
    fn a1_adding_an_object_member() {
        check(
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz","value":"qux"}]"#,
            r#"{"foo":"bar","baz":"qux"}"#,
        );
    }

    #[test]
    fn a2_adding_an_array_element() {
        check(
            r#"{"foo":["bar","baz"]}"#,
            r#"[{"op":"add","path":"/foo/1","value":"qux"}]"#,
            r#"{"foo":["bar","qux","baz"]}"#,
        );
    }

    #[test]
    fn a3_removing_an_object_member() {
        check(r#"{"baz":"qux","foo":"bar"}"#, r#"[{"op":"remove","path":"/baz"}]"#, r#"{"foo":"bar"}"#);
    }

    #[test]
    fn a4_removing_an_array_element() {
        check(
            r#"{"foo":["bar","qux","baz"]}"#,
            r#"[{"op":"remove","path":"/foo/1"}]"#,
            r#"{"foo":["bar","baz"]}"#,
        );
    }

    #[test]
    fn a5_replacing_a_value() {
        check(
            r#"{"baz":"qux","foo":"bar"}"#,
            r#"[{"op":"replace","path":"/baz","value":"boo"}]"#,
            r#"{"baz":"boo","foo":"bar"}"#,
        );
    }

    #[test]
    fn a6_moving_a_value() {
        check(
            r#"{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}"#,
            r#"[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]"#,
            r#"{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}"#,
        );
    }

    #[test]
    fn a7_moving_an_array_element() {
        check(
            r#"{"foo":["all","grass","cows","eat"]}"#,
            r#"[{"op":"move","from":"/foo/1","path":"/foo/3"}]"#,
            r#"{"foo":["all","cows","eat","grass"]}"#,
        );
    }

    #[test]
    fn a8_testing_a_value_success() {
        let document = r#"{"baz":"qux","foo":["a",2,"c"]}"#;
        let ops = r#"[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]"#;
        check(document, ops, document);
    }

    #[test]
    fn a9_testing_a_value_error() {
        check_refused(
            r#"{"baz":"qux"}"#,
            r#"[{"op":"test","path":"/baz","value":"bar"}]"#,
            "PATCH_TEST_FAILED",
        );
    }

    #[test]
    fn a10_adding_a_nested_member_object() {
        check(
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/child","value":{"grandchild":{}}}]"#,
            r#"{"foo":"bar","child":{"grandchild":{}}}"#,
        );
    }

    #[test]
    fn a11_ignoring_unrecognized_elements() {
        let ops = r#"[{"op":"add","path":"/baz","value":"qux","xyz":123,"from":7,"occurrence":1}]"#;
        check(r#"{"foo":"bar"}"#, ops, r#"{"foo":"bar","baz":"qux"}"#);
    }

    #[test]
    fn a12_adding_to_a_nonexistent_target() {
        check_refused(
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz/bat","value":"qux"}]"#,
            "INVALID_PATCH_PATH",
        );
    }

    #[test]
    fn a13_invalid_json_patch_document() {
        let ops = r#"[{"op":"add","path":"/baz","value":"qux","op":"remove"}]"#;
        check_refused(r#"{"foo":"bar"}"#, ops, "INVALID_PATCH_PATH");
    }

    #[test]
    fn a14_escape_ordering() {
        let document = r#"{"/":9,"~1":10}"#;
        check(document, r#"[{"op":"test","path":"/~01","value":10}]"#, document);
    }

    #[test]
    fn a15_comparing_strings_and_numbers() {
        check_refused(
            r#"{"/":9,"~1":10}"#,
            r#"[{"op":"test","path":"/~01","value":"10"}]"#,
            "PATCH_TEST_FAILED",
        );
    }

    #[test]
    fn a16_adding_an_array_value() {
        check(
            r#"{"foo":["bar"]}"#,
            r#"[{"op":"add","path":"/foo/-","value":["abc","def"]}]"#,
            r#"{"foo":["bar",["abc","def"]]}"#,
        );
    }
}

#[test]
fn ops_are_objects_with_an_op_and_a_path() {
    let wrong = [
        "[1]",
        "[null]",
        r#"["add"]"#,
        "[[]]",
        "[{}]",
        r#"[{"op":"add"}]"#,
        r#"[{"op":"add","value":1}]"#,
        r#"[{"Op":"add","Path":"/a","Value":1}]"#,
        r#"[{"path":"/a"}]"#,
        r#"[{"op":null,"path":"/a"}]"#,
        r#"[{"op":"remove","path":null}]"#,
        r#"[{"op":1,"path":"/a"}]"#,
        r#"[{"op":["add"],"path":"/a"}]"#,
        r#"[{"op":"remove","path":["a"]}]"#,
        r#"[{"op":"remove","path":1}]"#,
        "{}",
        r#"{"op":"remove","path":"/a"}"#,
        "1",
        r#""""#,
        "true",
    ];
    for ops in wrong {
        check_refused("{}", ops, "INVALID_REQUEST");
    }
    let edits = json!({"old_text": "a"});
    for no_list in [edits.clone(), json!({}), json!("a"), json!(1)] {
        assert_eq!(code(Patch::read(None, Some(&no_list))), "INVALID_REQUEST");
    }
    assert_eq!(code(Patch::read(None, Some(&json!([edits])))), "INVALID_TEXT_PATCH");
}

#[test]
fn a_patch_has_one_to_a_hundred_changes() {
    let (op, edit) =
        (json!({"op": "test", "path": "/a", "value": 1}), json!({"old_text": "a", "new_text": "a"}));
    let read = |ops: usize, edits: usize| {
        Patch::read(Some(&json!(vec![&op; ops])), Some(&json!(vec![&edit; edits])))
    };
    assert_eq!(code(read(0, 0)), "INVALID_PATCH");
    for nothing in [None, Some(&Value::Null)] {
        assert_eq!(code(Patch::read(nothing, nothing)), "INVALID_PATCH");
        assert_eq!(code(Patch::read(Some(&json!([])), nothing)), "INVALID_PATCH");
    }
    for (ops, edits) in [(1, 0), (0, 1), (100, 0), (0, 100), (50, 50)] {
        let patch = read(ops, edits).unwrap();
        assert_eq!((patch.ops_json().len(), patch.edits_json().len()), (ops, edits));
    }
    for (ops, edits) in [(101, 0), (0, 101), (50, 51)] {
        assert_eq!(code(read(ops, edits)), "PATCH_TOO_LARGE");
    }
}

#[test]
fn an_op_is_one_of_six_with_what_it_needs() {
    for ops in [
        r#"[{"op":"merge","path":"/a","value":1,"from":"/a"}]"#,
        r#"[{"op":"delete","path":"/a"}]"#,
        r#"[{"op":"increment","path":"/a","value":1}]"#,
        r#"[{"op":"set","path":"/a","value":1}]"#,
        r#"[{"op":"adds","path":"/a","value":1}]"#,
        r#"[{"op":"add ops","path":"/a","value":1}]"#,
        r#"[{"op":"","path":"/a","value":1,"from":"/a"}]"#,
        r#"[{"op":"add","path":"/b"}]"#,
        r#"[{"op":"add","path":"/b","from":"/a"}]"#,
        r#"[{"op":"replace","path":"/a"}]"#,
        r#"[{"op":"test","path":"/a"}]"#,
        r#"[{"op":"move","path":"/b"}]"#,
        r#"[{"op":"move","path":"/b","value":1}]"#,
        r#"[{"op":"copy","path":"/b"}]"#,
        r#"[{"op":"copy","path":"/b","from":null}]"#,
        r#"[{"op":"copy","path":"/b","from":1}]"#,
    ] {
        check_refused(r#"{"a":1}"#, ops, "INVALID_PATCH_OP");
    }
    check(
        r#"{"a":1}"#,
        r#"[{"op":" ADD\t","path":"/b","value":null},{"op":"Remove","path":"/a"},{"op":"\tmOVE\n","from":"/b","path":"/c"}]"#,
        r#"{"c":null}"#,
    );
    for op in ["replace", "test"] {
        let null = format!(r#"[{{"op":"{op}","path":"/a","value":null}}]"#);
        check(r#"{"a":null}"#, &null, r#"{"a":null}"#);
    }
    check_refused(r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":null}]"#, "PATCH_TEST_FAILED");
}

#[test]
fn a_pointer_begins_with_a_slash_and_escapes_tildes() {
    let wrong = ["", "a", "a/b", "#/a", " /a", "~1a", "/~", "/~2", "/a~", "/a/~b", "/~~0", "/~/a", "/~0~"];
    check_nowhere(r#"{"a":{"~":1,"~b":1},"~":{"a":1},"a~":1,"~2":1,"~~":1,"s":1}"#, &wrong);
    let document = r#"{"a/b":1,"m~n":2,"":{"":3,"b":4},"~1":5,"~01":6,"/~/":7,"c%d":8," ":9,"é":10,"%2F":11,"k\"l":12,"i\\j":13,"😀":14}"#;
    for (path, found) in [
        ("/a~1b", 1),
        ("/m~0n", 2),
        ("//", 3),
        ("//b", 4),
        ("/~01", 5),
        ("/~001", 6),
        ("/~1~0~1", 7),
        ("/c%d", 8),
        ("/ ", 9),
        ("/é", 10),
        ("/%2F", 11),
        (r#"/k\"l"#, 12),
        (r"/i\\j", 13),
        ("/😀", 14),
    ] {
        check(document, &format!(r#"[{{"op":"test","path":"{path}","value":{found}}}]"#), document);
    }
    check(r#"{"content":{}}"#, r#"[{"op":"add","path":"/content/","value":1}]"#, r#"{"content":{"":1}}"#);
    check(r#"{"":{"b":1}}"#, r#"[{"op":"replace","path":"//b","value":2}]"#, r#"{"":{"b":2}}"#);
    check(r#"{"":{"":1}}"#, r#"[{"op":"remove","path":"//"}]"#, r#"{"":{}}"#);
    check("{}", r#"[{"op":"add","path":"/~1~0","value":1}]"#, r#"{"/~":1}"#);
    check(r#"{" ":{"a":1}}"#, r#"[{"op":"replace","path":"/ /a","value":2}]"#, r#"{" ":{"a":2}}"#);
}

#[test]
fn a_pointer_leads_somewhere() {
    let document =
        r#"{"object":{"a":1},"null":null,"text":"abc","s":1,"true":true,"list":[1,2],"none left":[],"é":1}"#;
    let no_parent = [
        "/none/a",
        "/none/0",
        "/true/a",
        "/null/a",
        "/text/0",
        "/s/a",
        "//s",
        "/list/2/a",
        "/list/a/b",
        "/object/a/b",
        "/list/-/a",
    ];
    check_nowhere(document, &no_parent);
    check_nowhere(document, &[&"/none".repeat(200)]);
    let no_target = [
        "/none",
        "/object/b",
        "/object/A",
        "/list/2",
        "/list/-",
        "/list/a",
        "/none left/0",
        "/",
        "//",
        "/e\u{301}",
    ];
    for op in ["replace", "remove", "test"] {
        let op = format!(r#"[{{"op":"{op}","path":"PATH","value":1}}]"#);
        check_paths_refused(document, &op, &no_target, "INVALID_PATCH_PATH");
    }
    for op in ["move", "copy"] {
        let from = format!(r#"[{{"op":"{op}","from":"PATH","path":"/x"}}]"#);
        check_paths_refused(document, &from, &no_target, "INVALID_PATCH_PATH");
    }
}

#[test]
fn an_index_is_digits_without_a_leading_zero_and_in_range() {
    let document = r#"{"l":[1,2]}"#;
    let wrong = [
        "/l/00",
        "/l/01",
        "/l/+1",
        "/l/-1",
        "/l/1e0",
        "/l/1.0",
        "/l/ 1",
        "/l/",
        "/l/x",
        "/l/3",
        "/l/4294967296",
        "/l/18446744073709551615",
        "/l/18446744073709551616",
        "/l/99999999999999999999",
        "/l/١",
        "/l/1 ",
        "/l/0x1",
        "/l/length",
        "/l/--",
        "/l/~0",
        "/l/1~1",
    ];
    check_nowhere(r#"{"l":[1,1],"s":1}"#, &wrong);
    for (nested, inner) in [(r#"{"l":[{"a":1},{"a":1}],"s":1}"#, "/a"), (r#"{"l":[[1],[1]],"s":1}"#, "/0")] {
        let inside: Vec<String> =
            wrong.iter().chain(&["/l/-"]).map(|path| format!("{path}{inner}")).collect();
        check_nowhere(nested, &inside.iter().map(String::as_str).collect::<Vec<_>>());
    }
    check(document, r#"[{"op":"add","path":"/l/2","value":3}]"#, r#"{"l":[1,2,3]}"#);
    check(document, r#"[{"op":"add","path":"/l/0","value":0}]"#, r#"{"l":[0,1,2]}"#);
    check(document, r#"[{"op":"add","path":"/l/-","value":3}]"#, r#"{"l":[1,2,3]}"#);
    check(r#"{"l":[]}"#, r#"[{"op":"add","path":"/l/0","value":3}]"#, r#"{"l":[3]}"#);
    check(document, r#"[{"op":"copy","from":"/l/0","path":"/l/-"}]"#, r#"{"l":[1,2,1]}"#);
    check(document, r#"[{"op":"move","from":"/l/0","path":"/l/-"}]"#, r#"{"l":[2,1]}"#);
    check_refused(document, r#"[{"op":"move","from":"/l/0","path":"/l/2"}]"#, "INVALID_PATCH_PATH");
    check(r#"{"o":{"-":1,"01":2}}"#, r#"[{"op":"remove","path":"/o/-"}]"#, r#"{"o":{"01":2}}"#);
    check(
        r#"{"o":{"0":1,"01":2}}"#,
        r#"[{"op":"test","path":"/o/0","value":1},{"op":"replace","path":"/o/01","value":3},{"op":"add","path":"/o/-1","value":4}]"#,
        r#"{"o":{"0":1,"01":3,"-1":4}}"#,
    );
}

#[test]
fn an_operation_changes_what_it_points_at_and_nothing_else() {
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/a","value":{"b":null}}]"#, r#"{"a":{"b":null}}"#);
    check(
        r#"{"l":[{"n":1},{"n":2},{"n":3}]}"#,
        r#"[{"op":"replace","path":"/l/2/n","value":30},{"op":"remove","path":"/l/0"}]"#,
        r#"{"l":[{"n":2},{"n":30}]}"#,
    );
    check(
        r#"{"a":{"n":1.10},"l":[0]}"#,
        r#"[{"op":"copy","from":"/a","path":"/b"},{"op":"copy","from":"/a/n","path":"/l/0"}]"#,
        r#"{"a":{"n":1.10},"l":[1.10,0],"b":{"n":1.10}}"#,
    );
    check(
        r#"{"a":{"n":1}}"#,
        r#"[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/n","value":2}]"#,
        r#"{"a":{"n":1},"b":{"n":2}}"#,
    );
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"copy","from":"/a","path":"/b"}]"#, r#"{"a":1,"b":1}"#);
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, r#"{"b":1}"#);
    check(r#"{"l":[1,2,3]}"#, r#"[{"op":"move","from":"/l/0","path":"/l/2"}]"#, r#"{"l":[2,3,1]}"#);
    check_refused(r#"{"l":[1,2,3]}"#, r#"[{"op":"move","from":"/l/0","path":"/l/3"}]"#, "INVALID_PATCH_PATH");
    check(r#"{"a":1,"ab":{}}"#, r#"[{"op":"move","from":"/a","path":"/ab/c"}]"#, r#"{"ab":{"c":1}}"#);
}

#[test]
fn a_value_is_not_moved_into_itself() {
    let document = r#"{"a":{"b":{}},"ab":1}"#;
    for path in ["/a/b", "/a/x", "/a/b/c"] {
        check_refused(
            document,
            &format!(r#"[{{"op":"move","from":"/a","path":"{path}"}}]"#),
            "INVALID_PATCH_PATH",
        );
    }
    check(document, r#"[{"op":"copy","from":"/a","path":"/a/b/c"}]"#, r#"{"a":{"b":{"c":{"b":{}}}},"ab":1}"#);
    check(document, r#"[{"op":"move","from":"/a","path":"/ab"}]"#, r#"{"ab":{"b":{}}}"#);
    check(document, r#"[{"op":"move","from":"/a","path":"/a"}]"#, r#"{"ab":1,"a":{"b":{}}}"#);
    check(r#"{"l":[1,2]}"#, r#"[{"op":"move","from":"/l/1","path":"/l/1"}]"#, r#"{"l":[1,2]}"#);
    // What comes after it would have moved to its place.
    check_refused(
        r#"{"l":[[1],[2]]}"#,
        r#"[{"op":"move","from":"/l/0","path":"/l/0/0"}]"#,
        "INVALID_PATCH_PATH",
    );
    check_refused(
        r#"{"l":[[[1]],[[2]]]}"#,
        r#"[{"op":"move","from":"/l/0","path":"/l/0/0/0"}]"#,
        "INVALID_PATCH_PATH",
    );
}

#[test]
fn order_and_literals_survive_operations() {
    let document = r#"{"a":1.10,"b":2,"c":1E400,"d":{"x":1,"y":2,"z":3}}"#;
    check(document, r#"[{"op":"remove","path":"/d/x"}]"#, r#"{"a":1.10,"b":2,"c":1E400,"d":{"y":2,"z":3}}"#);
    check(
        document,
        r#"[{"op":"add","path":"/a","value":2E5},{"op":"replace","path":"/d/y","value":0.50},{"op":"remove","path":"/b"}]"#,
        r#"{"a":2E5,"c":1E400,"d":{"x":1,"y":0.50,"z":3}}"#,
    );
}

#[test]
fn values_are_equal_when_they_say_the_same() {
    let same = [
        ("1", "1.0"),
        ("1", "1e0"),
        ("10", "1E1"),
        ("0.1", "1e-1"),
        ("100", "0.1e3"),
        ("-0", "0"),
        ("0e9", "-0.0"),
        ("1e+2", "1E02"),
        ("123456789012345678901234567890", "123456789012345678901234567890.0"),
        ("1e400", "10E399"),
        ("1.50", "1.5"),
        ("-1.50", "-15e-1"),
        ("100", "1e+2"),
        ("0", "0.000"),
        ("0.1", "0.10000000000000000000000000000"),
        ("1e99999999999999999999", "10e99999999999999999998"),
        ("0.001", "1e-3"),
        ("1200", "12e2"),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#),
        (r#"{"a":{"b":[{"c":1}]}}"#, r#"{"a":{"b":[{"c":1.00}]}}"#),
        (r#""\u0061""#, r#""a""#),
        ("[]", "[]"),
        ("null", "null"),
    ];
    for (left, right) in same {
        assert!(equal(&value(left), &value(right)) && equal(&value(right), &value(left)), "{left} {right}");
    }
    let exponent = "9".repeat(60);
    let huge = (format!("1e{exponent}"), format!("2e{exponent}"));
    let less_huge = format!("1e{}", "8".repeat(60));
    assert!(equal(&value(&huge.0), &value(&huge.0)));
    let different = [
        ("1", "2"),
        ("1", "-1"),
        ("1", "10"),
        ("1", "1.0000000000000000000000001"),
        ("1E400", "2E400"),
        ("1E-400", "0"),
        ("1e999999999999", "1e999999999998"),
        ("0.1", "0.01"),
        ("9007199254740992", "9007199254740993"),
        ("1e400", "1e401"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("1", r#""1""#),
        ("0", "false"),
        ("true", "1"),
        ("true", r#""true""#),
        ("false", "null"),
        ("null", "0"),
        ("null", "[]"),
        ("null", r#""""#),
        ("[]", "{}"),
        ("[1,2]", "[2,1]"),
        ("[1]", "[1,1]"),
        (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
        (r#"{"a":1}"#, r#"{"b":1}"#),
        (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
        (r#""a""#, r#""A""#),
        (r#""\u00e9""#, r#""e\u0301""#),
        (r#"{"a":null}"#, r#"{"b":null}"#),
        (&huge.0, &huge.1),
        (&huge.0, &less_huge),
    ];
    for (left, right) in different {
        assert!(!equal(&value(left), &value(right)) && !equal(&value(right), &value(left)), "{left} {right}");
    }
    let document = r#"{"a":{"b":1.50,"c":[]}}"#;
    check(document, r#"[{"op":"test","path":"/a","value":{"c":[],"b":15e-1}}]"#, document);
}

#[test]
fn a_refusal_names_the_operation() {
    let refused =
        patched(r#"{"a":1}"#, r#"[{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}]"#)
            .unwrap_err();
    assert_eq!(detail(&refused, "op_index").as_deref(), Some("1"));
    assert_eq!(detail(&refused, "path").as_deref(), Some("/a"));
}

#[test]
fn edits_come_after_operations() {
    let apply = |document: Value, ops: Value, edits: Value| {
        let Value::Object(mut document) = document else { panic!("a document is an object") };
        Patch::read(Some(&ops), Some(&edits))?.apply(&mut document)?;
        Ok::<_, Error>(Value::Object(document))
    };
    let edits = json!([{"old_text": "b", "new_text": "c"}]);
    let document = json!({"content": {"text": "a", "n": 1}});
    let ops = json!([{"op": "replace", "path": "/content/text", "value": "ab"}]);
    assert_eq!(apply(document.clone(), ops, edits.clone()), Ok(json!({"content": {"text": "ac", "n": 1}})));
    assert_eq!(
        apply(json!({"content": {"text": "b"}}), json!(null), edits.clone()),
        Ok(json!({"content": {"text": "c"}}))
    );
    assert_eq!(code(apply(document, json!(null), edits.clone())), "PATCH_MATCH_NOT_FOUND");
    for without in [
        json!({}),
        json!({"content": null}),
        json!({"content": ["b"]}),
        json!({"content": {}}),
        json!({"content": {"text": 1}}),
    ] {
        assert_eq!(code(apply(without, json!(null), edits.clone())), "PATCH_TEXT_NOT_FOUND");
    }
}

#[test]
fn copies_cannot_grow_a_document_without_end() {
    let doubling = json!(vec![json!({"op": "copy", "from": "/content", "path": "/content/a/-"}); 100]);
    let document = json!({"content": {"a": ["x".repeat(1000)]}});
    let refused = patched(&document.to_string(), &doubling.to_string()).unwrap_err();
    assert_eq!(detail(&refused, "limit").as_deref(), Some("256000"));
    assert!(detail(&refused, "actual").unwrap().parse::<usize>().unwrap() > WORKING_CHARS);
    assert_eq!(code::<()>(Err(refused)), "DOCUMENT_SIZE_EXCEEDED");

    let large = json!({"content": {"a": "é".repeat(MAX_CHARS)}}).to_string();
    let moved =
        r#"[{"op":"copy","from":"/content/a","path":"/content/b"},{"op":"remove","path":"/content/a"}]"#;
    assert!(patched(&large, moved).is_ok(), "only the outcome has to fit");
}

#[test]
fn operations_cannot_nest_a_document_without_end() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let document = format!(r#"{{"a":{},"b":[],"c":{{}}}}"#, nested(MAX_DEPTH - 1));
    let add = |levels: usize| format!(r#"[{{"op":"add","path":"/b/-","value":{}}}]"#, nested(levels));
    let replace = |levels: usize| format!(r#"[{{"op":"replace","path":"/a/0","value":{}}}]"#, nested(levels));
    assert!(patched(&document, &add(MAX_DEPTH - 2)).is_ok());
    assert!(patched(&document, &replace(MAX_DEPTH - 2)).is_ok());
    for ops in [
        add(MAX_DEPTH - 1),
        replace(MAX_DEPTH - 1),
        r#"[{"op":"move","from":"/a","path":"/b/0"}]"#.to_owned(),
        r#"[{"op":"copy","from":"/a","path":"/c/x"}]"#.to_owned(),
    ] {
        check_refused(&document, &ops, "INVALID_DOCUMENT");
    }
    let doubling = |level: usize| json!({"op": "copy", "from": "/c", "path": "/c".to_owned() + &"/x".repeat(1 << level)});
    let ops = |levels: usize| json!((0..levels).map(doubling).collect::<Vec<_>>()).to_string();
    assert!(patched(r#"{"c":{}}"#, &ops(6)).is_ok());
    check_refused(r#"{"c":{}}"#, &ops(7), "INVALID_DOCUMENT");
}

fn values() -> impl Strategy<Value = Value> {
    let number = "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,2})?([eE][+-]?[0-9]{1,2})?";
    let leaf = prop_oneof![
        Just(Value::Null),
        number.prop_map(|number| value(&number)),
        "[ab~/\"é]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[ab]?", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn operations() -> impl Strategy<Value = Value> {
    let path = "(/content)?(/(a|b|0|1|-|)){0,4}";
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (op, path, path, values())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
}

/// RFC 6902 said again on whole documents that are rebuilt for every step.
mod model {
    use super::equal;
    use serde_json::{Map, Value};

    fn tokens(pointer: &str) -> Option<Vec<String>> {
        let tokens = pointer.strip_prefix('/')?.split('/');
        Some(tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
    }

    fn get(document: &Value, tokens: &[String]) -> Option<Value> {
        let [first, rest @ ..] = tokens else { return Some(document.clone()) };
        let child = match document {
            Value::Object(members) => members.get(first)?,
            Value::Array(items) => items.iter().enumerate().find(|(index, _)| index.to_string() == *first)?.1,
            _ => return None,
        };
        get(child, rest)
    }

    /// The document with the value at the place changed by `change`, which is given the parent.
    fn at(
        document: &Value,
        tokens: &[String],
        change: &dyn Fn(&Value, &str) -> Option<Value>,
    ) -> Option<Value> {
        match tokens {
            [] => None,
            [last] => change(document, last),
            [first, rest @ ..] => {
                let child = at(&get(document, std::slice::from_ref(first))?, rest, change)?;
                Some(match document {
                    Value::Object(members) => members
                        .iter()
                        .map(|(name, value)| {
                            (name.clone(), if name == first { child.clone() } else { value.clone() })
                        })
                        .collect::<Map<_, _>>()
                        .into(),
                    Value::Array(items) => items
                        .iter()
                        .enumerate()
                        .map(
                            |(index, value)| {
                                if index.to_string() == *first { child.clone() } else { value.clone() }
                            },
                        )
                        .collect(),
                    _ => return None,
                })
            }
        }
    }

    fn add(parent: &Value, token: &str, value: &Value) -> Option<Value> {
        match parent {
            Value::Object(members) => {
                let mut members = members.clone();
                members.insert(token.to_owned(), value.clone());
                Some(members.into())
            }
            Value::Array(items) => {
                let place = (0..=items.len()).find(|index| index.to_string() == token);
                let place = if token == "-" { Some(items.len()) } else { place }?;
                Some(items[..place].iter().chain([value]).chain(&items[place..]).cloned().collect())
            }
            _ => None,
        }
    }

    fn remove(parent: &Value, token: &str) -> Option<Value> {
        get(parent, &[token.to_owned()])?;
        Some(match parent {
            Value::Object(members) => {
                members.clone().into_iter().filter(|(name, _)| name != token).collect::<Map<_, _>>().into()
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .filter(|(index, _)| index.to_string() != token)
                .map(|(_, item)| item.clone())
                .collect(),
            _ => return None,
        })
    }

    pub(super) fn apply(document: &Value, op: &Value) -> Option<Value> {
        let pointer = |name: &str| tokens(op[name].as_str()?);
        let path = pointer("path")?;
        let added =
            |document: &Value, value: &Value| at(document, &path, &|parent, token| add(parent, token, value));
        match op["op"].as_str()? {
            "add" => added(document, &op["value"]),
            "remove" => at(document, &path, &remove),
            "replace" => {
                get(document, &path)?;
                at(document, &path, &|parent, token| match parent {
                    Value::Array(_) => add(&remove(parent, token)?, token, &op["value"]),
                    _ => add(parent, token, &op["value"]),
                })
            }
            "move" => {
                let from = pointer("from")?;
                let inside = path.len() > from.len() && path.starts_with(&from);
                let value = get(document, &from).filter(|_| !inside)?;
                added(&at(document, &from, &remove)?, &value)
            }
            "copy" => added(document, &get(document, &pointer("from")?)?),
            "test" => equal(&get(document, &path)?, &op["value"]).then(|| document.clone()),
            _ => None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn one_operation_does_what_the_rfc_says(content in values(), op in operations()) {
        let Value::Object(mut document) = json!({"content": content, "a": [1, {"b": 2}]}) else { unreachable!() };
        let expected = model::apply(&Value::Object(document.clone()), &op);
        let result = Patch::read(Some(&json!([op])), None).unwrap().apply(&mut document);
        let outcome = result.is_ok().then(|| Value::Object(document).to_string());
        prop_assert_eq!(outcome, expected.map(|value| value.to_string()));
    }
}

proptest! {
    #[test]
    fn a_patched_document_is_read_back_as_the_same_text(content in values(), ops in prop::collection::vec(operations(), 1..8)) {
        let Value::Object(mut document) = json!({"content": content}) else { unreachable!() };
        if Patch::read(Some(&json!(ops)), None).unwrap().apply(&mut document).is_ok() {
            let text = serde_json::to_string(&document).unwrap();
            prop_assert_eq!(envelope::stored(&text).map(|reread| serde_json::to_string(&reread).unwrap()), Ok(text));
        }
    }

    #[test]
    fn numbers_are_equal_however_their_point_is_shifted(digits in "[1-9][0-9]{0,30}", places in 0usize..20, negative in any::<bool>()) {
        let sign = if negative { "-" } else { "" };
        let shifted = format!("{sign}{digits}{}e-{places}", "0".repeat(places));
        let padded = format!("{sign}{digits}.{}", "0".repeat(places + 1));
        prop_assert!(equal(&value(&shifted), &value(&padded)));
        let more = format!("{padded}1");
        prop_assert!(!equal(&value(&shifted), &value(&more)));
    }

    #[test]
    fn random_pointers_never_panic(path in "[/~01a-]{0,8}", op in operations()) {
        let mut document = json!({"content": {"a": [1]}}).as_object().unwrap().clone();
        let ops = json!([{"op": op["op"], "path": path, "from": op["from"], "value": 1}]);
        let _ = Patch::read(Some(&ops), None).unwrap().apply(&mut document);
    }
}
