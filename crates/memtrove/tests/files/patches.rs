//! JSON Patch: RFC 6902 over RFC 6901 pointers, with the whole envelope as its root.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A file with this content, patched in one request; the answer, and the content afterwards.
#[track_caller]
fn patch(content: Value, ops: Value) -> (Answer, Value) {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", content);
    let answer = scope.patch("a.md", &before.etag, json!({"ops": ops}));
    let after = scope.read("a.md");
    match answer.status {
        200 => assert_eq!(answer.clone().stored(), after),
        _ => assert_eq!(after, before, "a refused patch changed the file: {}", answer.describe()),
    }
    (answer, after.content())
}

/// Requires this content after the operations.
#[track_caller]
fn becomes(content: Value, ops: Value, expected: Value) {
    let (answer, after) = patch(content, ops);
    answer.stored();
    assert_eq!(after, expected);
}

/// Requires a refusal that names the operation and the pointer at fault.
#[track_caller]
fn refused(content: Value, ops: Value, code: &str, index: usize) {
    let op = ops[index].clone();
    assert_names(&patch(content, ops).0.refused(422, code), &op, index);
}

#[track_caller]
fn assert_names(answer: &Answer, op: &Value, index: usize) {
    assert_eq!(answer.detail("op_index"), Some(index.to_string().as_str()), "{}", answer.describe());
    let path = answer.detail("path").unwrap_or_else(|| panic!("no path: {}", answer.describe()));
    assert!(op["path"] == path || op["from"] == path, "{}", answer.describe());
}

fn add(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

fn replace(path: &str, value: Value) -> Value {
    json!({"op": "replace", "path": path, "value": value})
}

fn test(path: &str, value: Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

fn relocate(from: &str, path: &str) -> Value {
    json!({"op": "move", "from": from, "path": path})
}

fn copy(from: &str, path: &str) -> Value {
    json!({"op": "copy", "from": from, "path": path})
}

/// Every operation, aimed at this pointer.
fn all_at(pointer: &str) -> Vec<Value> {
    vec![
        add(pointer, json!(1)),
        replace(pointer, json!(1)),
        test(pointer, json!(1)),
        remove(pointer),
        relocate("/content/source", pointer),
        copy("/content/source", pointer),
    ]
}

/// Every operation that reads what is at this pointer.
fn readers_of(pointer: &str) -> Vec<Value> {
    vec![
        replace(pointer, json!(1)),
        test(pointer, json!(1)),
        remove(pointer),
        relocate(pointer, "/content/target"),
        copy(pointer, "/content/target"),
    ]
}

/// Requires `INVALID_PATCH_PATH` of each of these operations.
#[track_caller]
fn lead_nowhere(content: Value, ops: Vec<Value>) {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", content);
    for op in ops {
        let answer = scope.patch("a.md", &before.etag, json!({"ops": [op]}));
        assert!(answer.status == 422, "{op} leads somewhere: {}", answer.describe());
        assert_names(&answer.refused(422, "INVALID_PATCH_PATH"), &op, 0);
    }
    assert_eq!(scope.read("a.md"), before);
}

// ---- RFC 6902, appendix A

#[test]
fn rfc_6902_a_1_adding_an_object_member() {
    becomes(
        json!({"foo": "bar"}),
        json!([add("/content/baz", json!("qux"))]),
        json!({"baz": "qux", "foo": "bar"}),
    );
}

#[test]
fn rfc_6902_a_2_adding_an_array_element() {
    becomes(
        json!({"foo": ["bar", "baz"]}),
        json!([add("/content/foo/1", json!("qux"))]),
        json!({"foo": ["bar", "qux", "baz"]}),
    );
}

#[test]
fn rfc_6902_a_3_removing_an_object_member() {
    becomes(json!({"baz": "qux", "foo": "bar"}), json!([remove("/content/baz")]), json!({"foo": "bar"}));
}

#[test]
fn rfc_6902_a_4_removing_an_array_element() {
    becomes(
        json!({"foo": ["bar", "qux", "baz"]}),
        json!([remove("/content/foo/1")]),
        json!({"foo": ["bar", "baz"]}),
    );
}

#[test]
fn rfc_6902_a_5_replacing_a_value() {
    becomes(
        json!({"baz": "qux", "foo": "bar"}),
        json!([replace("/content/baz", json!("boo"))]),
        json!({"baz": "boo", "foo": "bar"}),
    );
}

#[test]
fn rfc_6902_a_6_moving_a_value() {
    becomes(
        json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
        json!([relocate("/content/foo/waldo", "/content/qux/thud")]),
        json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
    );
}

#[test]
fn rfc_6902_a_7_moving_an_array_element() {
    becomes(
        json!({"foo": ["all", "grass", "cows", "eat"]}),
        json!([relocate("/content/foo/1", "/content/foo/3")]),
        json!({"foo": ["all", "cows", "eat", "grass"]}),
    );
}

#[test]
fn rfc_6902_a_8_testing_a_value_success() {
    let content = json!({"baz": "qux", "foo": ["a", 2, "c"]});
    becomes(
        content.clone(),
        json!([test("/content/baz", json!("qux")), test("/content/foo/1", json!(2))]),
        content,
    );
}

#[test]
fn rfc_6902_a_9_testing_a_value_error() {
    refused(json!({"baz": "qux"}), json!([test("/content/baz", json!("bar"))]), "PATCH_TEST_FAILED", 0);
}

#[test]
fn rfc_6902_a_10_adding_a_nested_member_object() {
    becomes(
        json!({"foo": "bar"}),
        json!([add("/content/child", json!({"grandchild": {}}))]),
        json!({"foo": "bar", "child": {"grandchild": {}}}),
    );
}

#[test]
fn rfc_6902_a_11_ignoring_unrecognized_elements() {
    becomes(
        json!({"foo": "bar"}),
        json!([{"op": "add", "path": "/content/baz", "value": "qux", "xyz": 123, "from": 7, "occurrence": 1}]),
        json!({"foo": "bar", "baz": "qux"}),
    );
}

#[test]
fn rfc_6902_a_12_adding_to_a_nonexistent_target() {
    refused(json!({"foo": "bar"}), json!([add("/content/baz/bat", json!("qux"))]), "INVALID_PATCH_PATH", 0);
}

#[test]
fn rfc_6902_a_13_of_a_member_that_is_given_twice_the_last_counts() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"foo": "bar"}));
    let body = r#"{"ops":[{"op":"add","path":"/content/baz","value":"qux","op":"remove"}]}"#;

    scope.patch_body("a.md", &before.etag, Body::json_text(body)).refused(422, "INVALID_PATCH_PATH");

    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn rfc_6902_a_14_tilde_escape_ordering() {
    becomes(json!({"/": 9, "~1": 10}), json!([test("/content/~01", json!(10))]), json!({"/": 9, "~1": 10}));
}

#[test]
fn rfc_6902_a_15_comparing_strings_and_numbers() {
    refused(json!({"/": 9, "~1": 10}), json!([test("/content/~01", json!("10"))]), "PATCH_TEST_FAILED", 0);
}

#[test]
fn rfc_6902_a_16_adding_an_array_value() {
    becomes(
        json!({"foo": ["bar"]}),
        json!([add("/content/foo/-", json!(["abc", "def"]))]),
        json!({"foo": ["bar", ["abc", "def"]]}),
    );
}

// ---- the six operations

#[test]
fn add_replaces_a_member_that_is_there() {
    becomes(json!({"a": 1}), json!([add("/content/a", json!({"b": null}))]), json!({"a": {"b": null}}));
}

#[test]
fn add_inserts_at_every_place_of_an_array_and_behind_its_end() {
    for (token, expected) in [
        ("0", json!(["x", "a", "b"])),
        ("1", json!(["a", "x", "b"])),
        ("2", json!(["a", "b", "x"])),
        ("-", json!(["a", "b", "x"])),
    ] {
        let ops = json!([add(&format!("/content/list/{token}"), json!("x"))]);
        becomes(json!({"list": ["a", "b"]}), ops, json!({"list": expected}));
    }
    becomes(json!({"list": []}), json!([add("/content/list/0", json!("x"))]), json!({"list": ["x"]}));
}

#[test]
fn replace_and_remove_reach_into_arrays() {
    let content = json!({"list": [{"n": 1}, {"n": 2}, {"n": 3}]});
    becomes(
        content,
        json!([replace("/content/list/2/n", json!(30)), remove("/content/list/0")]),
        json!({"list": [{"n": 2}, {"n": 30}]}),
    );
}

#[test]
fn copy_leaves_the_source_where_it_is() {
    becomes(
        json!({"a": {"n": 1.10}, "list": [0]}),
        json!([copy("/content/a", "/content/b"), copy("/content/a/n", "/content/list/0")]),
        json!({"a": {"n": 1.10}, "b": {"n": 1.10}, "list": [1.10, 0]}),
    );
}

#[test]
fn a_copy_is_a_value_of_its_own() {
    becomes(
        json!({"a": {"n": 1}}),
        json!([copy("/content/a", "/content/b"), replace("/content/b/n", json!(2))]),
        json!({"a": {"n": 1}, "b": {"n": 2}}),
    );
}

#[test]
fn copy_and_move_replace_what_is_at_their_target() {
    becomes(json!({"a": 1, "b": 2}), json!([copy("/content/a", "/content/b")]), json!({"a": 1, "b": 1}));
    becomes(json!({"a": 1, "b": 2}), json!([relocate("/content/a", "/content/b")]), json!({"b": 1}));
}

#[test]
fn copy_and_move_may_append_to_an_array() {
    becomes(
        json!({"a": 1, "list": []}),
        json!([copy("/content/a", "/content/list/-"), relocate("/content/a", "/content/list/-")]),
        json!({"list": [1, 1]}),
    );
}

#[test]
fn a_move_finds_its_target_after_the_source_is_gone() {
    becomes(
        json!({"list": [1, 2, 3]}),
        json!([relocate("/content/list/0", "/content/list/2")]),
        json!({"list": [2, 3, 1]}),
    );
    refused(
        json!({"list": [1, 2, 3]}),
        json!([relocate("/content/list/0", "/content/list/3")]),
        "INVALID_PATCH_PATH",
        0,
    );
}

#[test]
fn a_move_to_where_it_came_from_changes_nothing() {
    becomes(json!({"a": 1}), json!([relocate("/content/a", "/content/a")]), json!({"a": 1}));
    becomes(
        json!({"list": [1, 2]}),
        json!([relocate("/content/list/1", "/content/list/1")]),
        json!({"list": [1, 2]}),
    );
}

#[test]
fn a_move_into_its_own_descendant_is_refused_but_not_a_copy() {
    let content = json!({"a": {"b": {}}, "list": [[1]]});
    for target in ["/content/a/b", "/content/a/c", "/content/a/b/c"] {
        refused(content.clone(), json!([relocate("/content/a", target)]), "INVALID_PATCH_PATH", 0);
    }
    refused(
        content.clone(),
        json!([relocate("/content/list/0", "/content/list/0/0")]),
        "INVALID_PATCH_PATH",
        0,
    );
    refused(content.clone(), json!([relocate("/content", "/content/a/b")]), "INVALID_PATCH_PATH", 0);
    becomes(
        json!({"a": {"b": 1}}),
        json!([copy("/content/a", "/content/a/c")]),
        json!({"a": {"b": 1, "c": {"b": 1}}}),
    );
}

#[test]
fn a_sibling_whose_name_begins_alike_is_no_descendant() {
    becomes(
        json!({"a": 1, "ab": {}}),
        json!([relocate("/content/a", "/content/ab/c")]),
        json!({"ab": {"c": 1}}),
    );
}

#[test]
fn operations_apply_in_order_each_to_the_result_of_the_one_before() {
    becomes(
        json!({}),
        json!([
            add("/content/a", json!({})),
            add("/content/a/list", json!([])),
            add("/content/a/list/-", json!(1)),
            add("/content/a/list/0", json!(0)),
            test("/content/a/list", json!([0, 1])),
            relocate("/content/a/list", "/content/b"),
            copy("/content/b/1", "/content/a/one"),
            remove("/content/b/0"),
        ]),
        json!({"a": {"one": 1}, "b": [1]}),
    );
}

#[test]
fn one_failing_operation_fails_them_all() {
    refused(
        json!({"a": 1}),
        json!([replace("/content/a", json!(2)), test("/content/a", json!(1)), add("/content/b", json!(3))]),
        "PATCH_TEST_FAILED",
        1,
    );
    refused(
        json!({"a": 1}),
        json!([remove("/content/a"), add("/content/b", json!(3)), remove("/content/a")]),
        "INVALID_PATCH_PATH",
        2,
    );
}

#[test]
fn the_root_is_the_whole_envelope() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"a": 1}));
    let ops = json!([
        replace("/doc_id", json!("doc-2")),
        replace("/schema_version", json!("2.0.0")),
        replace("/content", json!({"b": 2})),
        add("/tags", json!(["x"])),
        replace("/created_at", json!("2020-02-29T12:00:00+01:00")),
    ]);

    let after = scope.patch("a.md", &before.etag, json!({"ops": ops})).stored().document();

    assert_eq!(after["doc_id"], "doc-2");
    assert_eq!(after["schema_id"], "notes");
    assert_eq!(after["schema_version"], "2.0.0");
    assert_eq!(after["content"], json!({"b": 2}));
    assert_eq!(after["tags"], json!(["x"]));
    assert_eq!(after["created_at"], "2020-02-29T12:00:00+01:00");
}

#[test]
fn writes_to_what_the_server_keeps_are_accepted_and_overwritten() {
    for ops in [
        json!([
            replace("/updated_at", json!("2001-01-01T00:00:00Z")),
            replace("/updated_by", json!("mallory"))
        ]),
        json!([add("/updated_at", json!(7)), add("/updated_by", json!({"any": "thing"}))]),
        json!([remove("/updated_at"), remove("/updated_by")]),
        json!([copy("/doc_id", "/updated_at"), copy("/content", "/updated_by")]),
    ] {
        let scope = Scope::fresh(&SERVER);
        let before = scope.create("a.md", json!({}));

        let after = scope.patch("a.md", &before.etag, json!({"ops": ops})).stored().document();

        assert_timestamp(&after["updated_at"]);
        assert!(after["updated_at"].as_str() >= before.document()["updated_at"].as_str(), "{after}");
        assert_eq!(after["updated_by"], AGENT);
    }
}

// ---- row 1: elements, op, path

#[test]
fn an_element_that_is_no_operation_is_a_bad_request() {
    for element in [
        json!("add"),
        json!(1),
        json!(null),
        json!([]),
        json!(["add", "/content/a", 1]),
        json!({}),
        json!({"path": "/content/a", "value": 1}),
        json!({"op": null, "path": "/content/a", "value": 1}),
        json!({"op": 1, "path": "/content/a", "value": 1}),
        json!({"op": ["add"], "path": "/content/a", "value": 1}),
        json!({"op": "add", "value": 1}),
        json!({"op": "add", "path": null, "value": 1}),
        json!({"op": "add", "path": 1, "value": 1}),
        json!({"op": "add", "path": ["content", "a"], "value": 1}),
        json!({"Op": "add", "Path": "/content/a", "Value": 1}),
    ] {
        let (answer, _) = patch(json!({}), json!([element]));
        answer.refused(400, "INVALID_REQUEST");
    }
}

#[test]
fn elements_are_judged_before_the_file_is_looked_at() {
    let scope = Scope::fresh(&SERVER);
    let body = json!({"ops": [add("/content/a", json!(1)), {"op": "add"}]});

    scope.patch("missing.md", "*", body.clone()).refused(400, "INVALID_REQUEST");
    scope.create("a.md", json!({}));
    scope.patch("a.md", "\"other\"", body).refused(400, "INVALID_REQUEST");
}

#[test]
fn operations_that_are_no_list_are_a_bad_request() {
    for ops in [json!({}), json!("add"), json!(1), json!(true), add("/content/a", json!(1))] {
        patch(json!({}), ops).0.refused(400, "INVALID_REQUEST");
    }
}

// ---- row 2: operations that are none

#[test]
fn an_unknown_operation_is_refused() {
    for op in ["", "set", "delete", "increment", "add ops", "adds", "merge"] {
        let op = json!({"op": op, "path": "/content/a", "value": 1, "from": "/content/a"});
        refused(json!({"a": 1}), json!([op]), "INVALID_PATCH_OP", 0);
    }
}

#[test]
fn an_operation_is_trimmed_and_its_letter_case_does_not_count() {
    for op in ["ADD", "Add", " add ", "\tadd\n", " aDD"] {
        becomes(json!({}), json!([{"op": op, "path": "/content/a", "value": 1}]), json!({"a": 1}));
    }
    becomes(
        json!({"a": 1}),
        json!([{"op": " MOVE", "from": "/content/a", "path": "/content/b"}, {"op": "Remove ", "path": "/content/b"}]),
        json!({}),
    );
}

#[test]
fn a_value_is_required_where_one_is_used_and_null_is_one() {
    for op in ["add", "replace", "test"] {
        refused(json!({"a": null}), json!([{"op": op, "path": "/content/a"}]), "INVALID_PATCH_OP", 0);
        becomes(
            json!({"a": null}),
            json!([{"op": op, "path": "/content/a", "value": null}]),
            json!({"a": null}),
        );
    }
    refused(json!({"a": 1}), json!([test("/content/a", json!(null))]), "PATCH_TEST_FAILED", 0);
}

#[test]
fn a_source_is_required_where_one_is_used() {
    for op in ["move", "copy"] {
        refused(json!({"a": 1}), json!([{"op": op, "path": "/content/a"}]), "INVALID_PATCH_OP", 0);
        refused(
            json!({"a": 1}),
            json!([{"op": op, "path": "/content/a", "value": 1}]),
            "INVALID_PATCH_OP",
            0,
        );
    }
}

// ---- row 3: pointers that are none

#[test]
fn an_empty_pointer_is_refused() {
    lead_nowhere(json!({"source": 1}), all_at(""));
    lead_nowhere(json!({}), vec![relocate("", "/content/a"), copy("", "/content/a")]);
}

#[test]
fn a_pointer_that_does_not_begin_with_a_slash_is_refused() {
    for pointer in ["content", "content/a", "#/content/a", " /content/a", "~1content", "a"] {
        lead_nowhere(json!({"a": 1, "source": 1}), all_at(pointer));
        lead_nowhere(json!({"a": 1}), vec![relocate(pointer, "/content/b"), copy(pointer, "/content/b")]);
    }
}

#[test]
fn a_tilde_that_escapes_nothing_is_refused() {
    for pointer in
        ["/content/~", "/content/a~", "/content/~2", "/content/~a", "/content/~~0", "/~/a", "/content/~0~"]
    {
        lead_nowhere(json!({"~": 1, "a~": 1, "~2": 1, "source": 1}), all_at(pointer));
        lead_nowhere(json!({"~": 1}), vec![relocate(pointer, "/content/b"), copy(pointer, "/content/b")]);
    }
}

#[test]
fn escapes_address_names_with_slashes_and_tildes() {
    let content = json!({"a/b": 1, "m~n": 2, "~1": 3, "~01": 4, "/~/": 5});
    for (pointer, value) in [("a~1b", 1), ("m~0n", 2), ("~01", 3), ("~001", 4), ("~1~0~1", 5)] {
        let ops = json!([test(&format!("/content/{pointer}"), json!(value))]);
        becomes(content.clone(), ops, content.clone());
    }
    becomes(json!({}), json!([add("/content/~1~0", json!(1))]), json!({"/~": 1}));
}

#[test]
fn percent_signs_mean_nothing_in_a_pointer() {
    becomes(
        json!({"c%d": 1, " ": 2, "k\"l": 3, "i\\j": 4, "é": 5, "😀": 6}),
        json!([
            test("/content/c%d", json!(1)),
            test("/content/ ", json!(2)),
            test("/content/k\"l", json!(3)),
            test("/content/i\\j", json!(4)),
            test("/content/é", json!(5)),
            test("/content/😀", json!(6)),
            add("/content/%2F", json!(7)),
        ]),
        json!({"c%d": 1, " ": 2, "k\"l": 3, "i\\j": 4, "é": 5, "😀": 6, "%2F": 7}),
    );
}

#[test]
fn empty_tokens_are_names_of_members() {
    becomes(json!({}), json!([add("/content/", json!(1))]), json!({"": 1}));
    becomes(json!({"": {"b": 1}}), json!([replace("/content//b", json!(2))]), json!({"": {"b": 2}}));
    becomes(json!({"": {"": 1}}), json!([remove("/content//")]), json!({"": {}}));
    refused(json!({"b": 1}), json!([replace("/content//b", json!(2))]), "INVALID_PATCH_PATH", 0);
    refused(json!({"a": 1}), json!([remove("/content/")]), "INVALID_PATCH_PATH", 0);
}

// ---- row 4: pointers that lead nowhere

#[test]
fn a_missing_parent_is_refused_and_never_made() {
    lead_nowhere(json!({"source": 1}), all_at("/content/none/a"));
    lead_nowhere(json!({"source": 1}), all_at("/content/none/0"));
    lead_nowhere(json!({"source": 1}), all_at("/nowhere/a"));
    lead_nowhere(json!({"source": 1, "list": []}), all_at("/content/list/0/a"));
}

#[test]
fn a_parent_that_holds_nothing_is_refused() {
    for parent in [json!(null), json!("text"), json!(7), json!(true)] {
        let content = json!({"parent": parent, "source": 1});
        lead_nowhere(content.clone(), all_at("/content/parent/a"));
        lead_nowhere(content.clone(), all_at("/content/parent/0"));
        lead_nowhere(content, all_at("/content/parent/a/b"));
    }
}

#[test]
fn a_missing_target_cannot_be_read() {
    lead_nowhere(json!({"a": 1}), readers_of("/content/none"));
    lead_nowhere(json!({"a": 1}), readers_of("/content/A"));
    lead_nowhere(json!({"é": 1}), readers_of("/content/e\u{301}"));
}

// ---- row 5: places of arrays

#[test]
fn a_token_that_is_no_index_is_refused() {
    for token in
        ["00", "01", "+1", "-1", " 1", "1 ", "1.0", "1e0", "0x1", "a", "", "١", "length", "--", "~0", "1~1"]
    {
        let pointer = format!("/content/list/{token}");
        lead_nowhere(json!({"list": [1, 2, 3], "source": 1}), all_at(&pointer));
        lead_nowhere(
            json!({"list": [1, 2, 3]}),
            vec![relocate(&pointer, "/content/b"), copy(&pointer, "/content/b")],
        );
        lead_nowhere(json!({"list": [{}, {}], "source": 1}), all_at(&format!("{pointer}/a")));
    }
}

#[test]
fn an_index_out_of_range_is_refused() {
    for token in
        ["3", "4", "4294967296", "18446744073709551615", "18446744073709551616", "99999999999999999999999"]
    {
        lead_nowhere(json!({"list": [1, 2, 3]}), readers_of(&format!("/content/list/{token}")));
        if token != "3" {
            lead_nowhere(json!({"list": [1, 2, 3], "source": 1}), all_at(&format!("/content/list/{token}")));
        }
    }
    lead_nowhere(json!({"list": []}), readers_of("/content/list/0"));
}

#[test]
fn a_dash_is_only_good_for_appending() {
    lead_nowhere(json!({"list": [1, 2]}), readers_of("/content/list/-"));
    lead_nowhere(json!({"list": [[1]], "source": 1}), all_at("/content/list/-/0"));
    lead_nowhere(json!({"list": [{}], "source": 1}), all_at("/content/list/-/a"));
}

#[test]
fn in_an_object_digits_and_dashes_are_names() {
    becomes(
        json!({"0": "a", "-": "b", "01": "c"}),
        json!([
            test("/content/0", json!("a")),
            replace("/content/-", json!("B")),
            remove("/content/01"),
            add("/content/-1", json!("d")),
        ]),
        json!({"0": "a", "-": "B", "-1": "d"}),
    );
}

// ---- row 7: test

/// Requires that a stored value passes, or fails, a test against another spelling; both are JSON as text.
#[track_caller]
fn compared(stored: &str, tested: &str, equal: bool) {
    let scope = Scope::fresh(&SERVER);
    let document = format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"v":{stored}}}}}}}"#
    );
    let before = scope.put_body("a.md", "*", Body::json_text(document)).stored();
    let body = format!(r#"{{"ops":[{{"op":"test","path":"/content/v","value":{tested}}}]}}"#);
    let answer = scope.patch_body("a.md", &before.etag, Body::json_text(body));
    if equal {
        assert!(answer.status == 200, "{stored} = {tested}, but {}", answer.describe());
        assert!(answer.stored().text.contains(&format!(r#""v":{stored}"#)), "a test changed {stored}");
    } else {
        assert!(answer.status == 422, "{stored} is not {tested}, but {}", answer.describe());
        answer.refused(422, "PATCH_TEST_FAILED");
    }
}

#[test]
fn numbers_are_compared_by_value() {
    for (stored, tested) in [
        ("1", "1.0"),
        ("1.0", "1"),
        ("1.10", "1.1"),
        ("100", "1E2"),
        ("100", "1e+2"),
        ("1e2", "10e1"),
        ("0.001", "1e-3"),
        ("0", "-0"),
        ("0", "0.000"),
        ("0", "0e99"),
        ("-0.0", "0"),
        ("-1.50", "-15e-1"),
        ("1E400", "10E399"),
        ("123456789012345678901234567890", "123456789012345678901234567890.0"),
        ("0.1", "0.10000000000000000000000000000"),
    ] {
        compared(stored, tested, true);
    }
}

#[test]
fn numbers_that_differ_in_any_digit_differ() {
    for (stored, tested) in [
        ("1", "2"),
        ("1", "-1"),
        ("1", "1.0000000000000000000000001"),
        ("9007199254740992", "9007199254740993"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("1E400", "1E401"),
        ("1E400", "2E400"),
        ("1E-400", "0"),
        ("1e999999999999", "1e999999999998"),
    ] {
        compared(stored, tested, false);
    }
}

#[test]
fn values_are_compared_as_json() {
    for (stored, tested, equal) in [
        (r#"{"a":1,"b":[true,null]}"#, r#"{"b":[true,null],"a":1.0}"#, true),
        (r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false),
        (r#"{"a":1,"b":null}"#, r#"{"a":1}"#, false),
        ("[1,2]", "[1.0,2e0]", true),
        ("[1,2]", "[2,1]", false),
        ("[1,2]", "[1,2,3]", false),
        ("[]", "{}", false),
        ("[]", "null", false),
        (r#""a""#, r#""\u0061""#, true),
        (r#""é""#, r#""e\u0301""#, false),
        (r#""a""#, r#""A""#, false),
        (r#""1""#, "1", false),
        ("true", r#""true""#, false),
        ("true", "1", false),
        ("false", "null", false),
        ("0", "null", false),
        (r#""""#, "null", false),
        ("null", "null", true),
        (r#"{"a":{"b":[{"c":1}]}}"#, r#"{"a":{"b":[{"c":1.00}]}}"#, true),
    ] {
        compared(stored, tested, equal);
    }
}

// ---- row 8: what is left must be an envelope

#[test]
fn a_patch_cannot_break_the_envelope() {
    for (op, field) in [
        (remove("/content"), "content"),
        (replace("/content", json!([])), "content"),
        (replace("/content", json!(null)), "content"),
        (replace("/content", json!("text")), "content"),
        (add("/content", json!(7)), "content"),
        (relocate("/content", "/moved"), "content"),
        (copy("/doc_id", "/content"), "content"),
        (remove("/doc_id"), "doc_id"),
        (replace("/doc_id", json!("")), "doc_id"),
        (replace("/doc_id", json!(" \t")), "doc_id"),
        (replace("/doc_id", json!(7)), "doc_id"),
        (remove("/schema_id"), "schema_id"),
        (replace("/schema_id", json!("  ")), "schema_id"),
        (replace("/schema_id", json!(null)), "schema_id"),
        (remove("/schema_version"), "schema_version"),
        (replace("/schema_version", json!("")), "schema_version"),
        (replace("/schema_version", json!(1.0)), "schema_version"),
        (replace("/created_at", json!("yesterday")), "created_at"),
        (replace("/created_at", json!("2026-02-30T00:00:00Z")), "created_at"),
        (replace("/created_at", json!(0)), "created_at"),
    ] {
        let answer = patch(json!({"a": 1}), json!([op])).0.refused(422, "INVALID_DOCUMENT");
        assert_eq!(answer.detail("field"), Some(field), "{}", answer.describe());
    }
}

#[test]
fn only_the_end_of_a_patch_must_be_an_envelope() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"a": 1}));
    let ops = json!([
        relocate("/content", "/aside"),
        add("/content", json!({})),
        relocate("/aside/a", "/content/b"),
        remove("/aside"),
        remove("/doc_id"),
        add("/doc_id", json!("doc-2")),
    ]);

    let after = scope.patch("a.md", &before.etag, json!({"ops": ops})).stored().document();

    assert_eq!(after["content"], json!({"b": 1}));
    assert_eq!(after["doc_id"], "doc-2");
    assert_eq!(after.get("aside"), None);
}

#[test]
fn a_patch_cannot_grow_a_document_beyond_its_limit() {
    let content = json!({"a": "x".repeat(100_000)});
    let grow = json!([copy("/content/a", "/content/b"), copy("/content/a", "/content/c")]);

    let answer = patch(content, grow).0.refused(422, "DOCUMENT_SIZE_EXCEEDED");

    assert_eq!(answer.detail("limit"), Some("256000"));
    assert!(answer.detail("actual").unwrap().parse::<usize>().unwrap() > 300_000, "{}", answer.describe());
}

// ---- nothing to do, too much to do

#[test]
fn a_patch_with_nothing_to_do_is_refused() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    for body in [
        json!({}),
        json!({"reason": "none"}),
        json!({"ops": null}),
        json!({"ops": []}),
        json!({"edits": null}),
        json!({"edits": []}),
        json!({"ops": null, "edits": null}),
        json!({"ops": [], "edits": []}),
        json!({"ops": [], "edits": null}),
        json!({"operations": [add("/content/a", json!(1))]}),
    ] {
        scope.patch("a.md", &before.etag, body.clone()).refused(400, "INVALID_PATCH");
        scope.patch("missing.md", "*", body).refused(400, "INVALID_PATCH");
    }
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn operations_alone_are_enough_whatever_the_other_list_is() {
    for edits in [None, Some(json!(null)), Some(json!([]))] {
        let scope = Scope::fresh(&SERVER);
        let before = scope.create("a.md", json!({}));
        let mut body = json!({"ops": [add("/content/a", json!(1))]});
        if let Some(edits) = edits {
            body["edits"] = edits;
        }

        assert_eq!(scope.patch("a.md", &before.etag, body).stored().content(), json!({"a": 1}));
    }
}

#[test]
fn a_hundred_operations_are_accepted_and_one_more_is_not() {
    let ops = |count: usize| (0..count).map(|n| add(&format!("/content/m{n}"), json!(n))).collect::<Vec<_>>();

    let (answer, content) = patch(json!({}), json!(ops(100)));
    answer.stored();
    assert_eq!(content.as_object().unwrap().len(), 100);
    patch(json!({}), json!(ops(101))).0.refused(422, "PATCH_TOO_LARGE");
}

// ---- fidelity

#[test]
fn values_arrive_with_their_numbers_and_their_order() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"first": 1}));
    let value =
        r#"{"z":123456789012345678901234567890,"a":1.10,"m":[1E400,-0,1e-7,1.0e+2],"b":{"y":0.0,"x":null}}"#;
    let body = format!(r#"{{"ops":[{{"op":"add","path":"/content/v","value":{value}}}]}}"#);

    let after = scope.patch_body("a.md", &before.etag, Body::json_text(body)).stored();

    assert!(after.text.contains(&format!(r#""v":{value}"#)), "{}", after.text);
    assert_eq!(scope.read("a.md"), after);
    let copied = json!({"ops": [copy("/content/v/m", "/content/w"), relocate("/content/v/a", "/content/x")]});
    let copied = scope.patch("a.md", &after.etag, copied).stored();
    assert!(copied.text.contains(r#""w":[1E400,-0,1e-7,1.0e+2]"#), "{}", copied.text);
    assert!(copied.text.contains(r#""x":1.10"#), "{}", copied.text);
}

#[test]
fn the_members_that_stay_keep_their_order() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"f": 1, "b": 2, "e": 3, "a": 4, "d": 5, "c": 6}));
    let order = |stored: &Stored| stored.content().as_object().unwrap().keys().cloned().collect::<String>();
    assert_eq!(order(&before), "fbeadc");

    let after = scope.patch("a.md", &before.etag, json!({"ops": [remove("/content/b")]})).stored();
    assert_eq!(order(&after), "feadc");
    let ops = json!([relocate("/content/f", "/content/g"), replace("/content/a", json!({"any": 1}))]);
    let after = scope.patch("a.md", &after.etag, json!({"ops": ops})).stored();
    assert_eq!(order(&after), "eadcg");
}

#[test]
fn a_document_that_a_patch_makes_very_deep_stays_a_document() {
    let nested = |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let scope = Scope::fresh(&SERVER);
    let document = format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"v":{}}}}}}}"#,
        nested(100, "0")
    );
    let before = scope.put_body("a.md", "*", Body::json_text(document)).stored();
    let pointer = format!("/content/v{}", "/0".repeat(100));
    let body = format!(r#"{{"ops":[{{"op":"replace","path":"{pointer}","value":{}}}]}}"#, nested(100, "1"));

    let answer = scope.patch_body("a.md", &before.etag, Body::json_text(body));

    let now = scope.get("a.md").stored();
    if answer.status == 200 {
        assert!(now.text.contains(&nested(200, "1")), "{}", now.text);
        let more = json!({"ops": [add("/content/more", json!(true))]});
        scope.patch("a.md", &now.etag, more).stored();
        for record in scope.audit() {
            scope.reconstruct("a.md", record["change_id"].as_str().unwrap()).expect(200);
        }
    } else {
        assert!((400..500).contains(&answer.status), "{}", answer.describe());
        assert_eq!(now, before);
    }
}

#[test]
fn a_refused_patch_leaves_no_record() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"a": 1}));
    for ops in [
        json!([test("/content/a", json!(2))]),
        json!([remove("/content/b")]),
        json!([remove("/content")]),
        json!([{"op": "nonsense", "path": "/content/a"}]),
    ] {
        scope.patch("a.md", &before.etag, json!({"ops": ops})).expect(422);
    }
    scope.patch("a.md", "\"stale\"", json!({"ops": [remove("/content/a")]})).expect(412);

    assert_eq!(scope.read("a.md"), before);
    assert_eq!(scope.audit().len(), 1, "the create's");
}
