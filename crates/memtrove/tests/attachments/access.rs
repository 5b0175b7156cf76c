//! Who may do what with a file: until an entry refers to it, and from then on.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// What reading a file and asking for its address answer.
#[track_caller]
fn read_by(who: &Client, id: &str) -> [u16; 2] {
    [who.get(&at(id)).status, who.get(&format!("{}/download-url", at(id))).status]
}

#[test]
fn a_file_that_no_entry_refers_to_is_its_uploaders_alone() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = upload(&alice, "a.txt", "text/plain", b"a");

    assert_eq!(read_by(&alice, &id), [200, 200]);
    assert_eq!(read_by(&alice.with_key("agent"), &id), [200, 200], "through an agent");
    assert_eq!(read_by(&bob, &id), [403, 403]);
    bob.get(&at(&id)).expect_forbidden();
    bob.delete(&at(&id)).expect_forbidden();
    assert_eq!(read_by(&alice, &id), [200, 200], "and still there");
}

#[test]
fn nobody_gets_anything_without_credentials() {
    let alice = SERVER.someone("alice");
    let id = upload(&alice, "a.txt", "text/plain", b"a");
    let nobody = SERVER.anonymous();
    assert_eq!(read_by(&nobody, &id), [401, 401]);
    nobody.delete(&at(&id)).expect_error(401, "unauthorized");
    try_upload(&nobody, "a.txt", "text/plain", b"a").expect_error(401, "unauthorized");
    nobody.post(ATTACHMENTS, json!({"sourceUrl": "https://example.org/"})).expect_error(401, "unauthorized");
    let keyed = nobody.with_key("agent");
    assert_eq!(try_upload(&keyed, "a.txt", "text/plain", b"a").status, 401, "an agent without a user");
}

#[test]
fn what_is_not_there_is_not_found() {
    let alice = SERVER.someone("alice");
    let unknown = fresh_id();
    for id in [unknown.as_str(), "not-a-uuid", "1", "..."] {
        alice.get(&at(id)).expect_not_found("attachment", id);
        alice.get(&format!("{}/download-url", at(id))).expect_not_found("attachment", id);
        alice.delete(&at(id)).expect_not_found("attachment", id);
    }
}

#[test]
fn every_reader_of_the_tree_reads_what_an_entry_refers_to() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let id = link(&alice, &conversation, &upload(&alice, "a.txt", "text/plain", b"a"));

    for level in ["reader", "writer", "manager"] {
        let member = SERVER.someone(level);
        assert_eq!(read_by(&member, &id), [403, 403], "before it is a member");
        share(&alice, &conversation, &member, level);
        assert_eq!(read_by(&member, &id), [200, 200], "{level}");
        member.delete(&at(&id)).expect_forbidden();
        alice.delete(&format!("/v1/conversations/{conversation}/memberships/{}", member.user())).expect(204);
        assert_eq!(read_by(&member, &id), [403, 403], "after it was one");
    }
    assert_eq!(read_by(&alice, &id), [200, 200]);
}

#[test]
fn whoever_uploaded_it_reads_it_as_long_as_it_may_read_the_entry() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let conversation = start(&alice, "Plans");
    share(&alice, &conversation, &bob, "writer");
    let id = link(&bob, &conversation, &upload(&bob, "b.txt", "text/plain", b"b"));
    assert_eq!(read_by(&bob, &id), [200, 200]);

    bob.delete(&format!("/v1/conversations/{conversation}/memberships/{}", bob.user())).expect(204);

    assert_eq!(read_by(&bob, &id), [403, 403], "it left, and the file stays with the conversation");
    assert_eq!(read_by(&alice, &id), [200, 200]);
}

#[test]
fn a_deleted_conversation_takes_its_files_with_it_until_it_is_restored() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let id = link(&alice, &conversation, &upload(&alice, "a.txt", "text/plain", b"a"));
    let signed = alice.get(&format!("{}/download-url", at(&id))).expect(200).text_of("url");

    alice.delete(&format!("/v1/conversations/{conversation}")).expect(204);
    assert_eq!(read_by(&alice, &id), [404, 404]);
    assert_eq!(SERVER.anonymous().get(&signed).status, 403, "also for who has a link");

    SERVER
        .as_user("admin")
        .post_nothing(&format!("/v1/admin/conversations/{conversation}/restore"))
        .expect(200);
    assert_eq!(read_by(&alice, &id), [200, 200]);
}

#[test]
fn nothing_crosses_a_tenant() {
    let (here, there) = (fresh_name("here"), fresh_name("there"));
    let name = fresh_name("alice");
    let alice = SERVER.as_user(name.as_str()).with_key("gateway").in_tenant(&here);
    let other = SERVER.as_user(name.as_str()).with_key("gateway").in_tenant(&there);
    let id = upload(&alice, "a.txt", "text/plain", b"a");

    assert_eq!(read_by(&alice, &id), [200, 200]);
    assert_eq!(read_by(&other, &id), [404, 404], "the same user in another tenant");
    other.delete(&at(&id)).expect_not_found("attachment", &id);
    let conversation = start(&other, "Elsewhere");
    try_say(&other, &conversation, json!([{"attachmentId": id}])).expect_not_found("attachment", &id);
    admin_in(&SERVER, &there).get(&format!("/v1/admin/attachments/{id}")).expect_not_found("attachment", &id);
    assert_eq!(read_by(&alice, &id), [200, 200]);
}

#[test]
fn a_trusted_agent_uploads_for_the_user_it_names() {
    let alice = SERVER.someone("alice");
    let agent = SERVER.anonymous().with_key("agent").with_header("x-user-id", alice.user());
    let id = upload(&agent, "a.txt", "text/plain", b"a");
    assert_eq!(read_by(&alice, &id), [200, 200]);
    assert_eq!(read_by(&SERVER.someone("bob"), &id), [403, 403]);
}
