//! Files that go: because somebody deletes them, because their time is over, or with what they belong to.

use crate::support::*;

#[test]
fn a_deleted_file_is_gone_with_its_bytes() {
    let server = local_server();
    let alice = server.as_user("alice");
    let id = upload(&alice, "a.txt", "text/plain", b"a");
    assert_eq!(files_in(&server).len(), 1);

    alice.delete(&at(&id)).expect(204);

    alice.get(&at(&id)).expect_not_found("attachment", &id);
    alice.delete(&at(&id)).expect_not_found("attachment", &id);
    until("nothing is left", || records(&server.stored()) == 0 && files_in(&server).is_empty());
}

#[test]
fn what_nobody_linked_in_time_is_cleaned_up() {
    let server = server_with("[attachments]\ncleanup_interval = \"1s\"");
    let alice = server.as_user("alice");
    let conversation = start(&alice, "Plans");
    let brief = |text: &[u8]| {
        let form = Form::default().file("a.txt", "text/plain", text);
        alice.send("POST", &format!("{ATTACHMENTS}?expiresIn=PT2S"), form.body()).expect(201).id()
    };
    let kept = link(&alice, &conversation, &brief(b"kept"));
    let lost = brief(b"lost");

    until("the other one goes", || records(&server.stored()) == 1 && files_in(&server).len() == 1);

    alice.get(&at(&lost)).expect_not_found("attachment", &lost);
    assert_eq!(alice.get(&at(&kept)).expect(200).text, "kept");
}

#[test]
fn an_evicted_tree_takes_its_files_with_it() {
    let server = server_with("[attachments]\ncleanup_interval = \"1s\"");
    let alice = server.as_user("alice");
    let (going, staying) = (start(&alice, "Going"), start(&alice, "Staying"));
    let gone = link(&alice, &going, &upload(&alice, "a.txt", "text/plain", b"a"));
    link(&alice, &going, &gone);
    let left = link(&alice, &staying, &upload(&alice, "b.txt", "text/plain", b"b"));
    alice.delete(&format!("/v1/conversations/{going}")).expect(204);
    assert_eq!(files_in(&server).len(), 2, "a deleted tree can be restored");

    let admin = server.as_user("admin");
    until("it is evicted", || {
        let body = json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]});
        admin.post("/v1/admin/evict", body).expect(204);
        admin.get(&format!("/v1/admin/conversations/{going}")).status == 404
    });

    until("its files go", || records(&server.stored()) == 1 && files_in(&server).len() == 1);
    assert_eq!(alice.get(&at(&left)).expect(200).text, "b");
}

#[test]
fn forgetting_a_user_takes_its_files_away() {
    let server = server_with("[attachments]\ncleanup_interval = \"1s\"");
    let (alice, bob) = (server.as_user("alice"), server.as_user("bob"));
    let conversation = start(&alice, "Plans");
    link(&alice, &conversation, &upload(&alice, "a.txt", "text/plain", b"a"));
    upload(&alice, "loose.txt", "text/plain", b"loose");
    let bobs = upload(&bob, "b.txt", "text/plain", b"b");

    let admin = server.as_user("admin").with_key("gateway");
    let answer = admin.send("DELETE", "/v1/tenants/default/users/alice/memory", Body::None);
    assert_eq!(answer.status / 100, 2, "{}", answer.describe());

    until("only the other user's is left", || records(&server.stored()) == 1 && files_in(&server).len() == 1);
    assert_eq!(bob.get(&at(&bobs)).expect(200).text, "b");
    assert!(server.stored().holding("loose.txt").is_empty());
}
