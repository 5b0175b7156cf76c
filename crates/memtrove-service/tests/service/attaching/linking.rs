//! Entries that name attachments.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{DAY, Engine, HOUR, Setting, caller, forking, naming, outcome, referred};
use memtrove_core::conversations::sync::Digest;
use memtrove_core::conversations::{AccessLevel, Channel};
use memtrove_core::{AttachmentId, Clock, Code, ConversationId, Json};
use memtrove_service::attachments::NewAttachment;
use memtrove_service::conversations::{AppendRequest, Idempotency, ListEntries};
use memtrove_store::AllTenants;
use serde_json::json;

on_both_engines!(
    an_entry_refers_to_what_it_named,
    what_the_caller_said_of_an_attachment_stays,
    a_linked_attachment_does_not_expire,
    everybody_who_reads_the_tree_reads_its_attachments,
    what_cannot_be_linked_fails_the_whole_append,
    an_attachment_of_the_tree_is_shared_by_forks,
    an_attachment_of_another_tree_is_not,
    an_attachment_named_twice_is_linked_once,
    a_repeated_append_links_nothing_more,
    a_linked_attachment_is_not_deleted_by_its_uploader,
    attachments_are_linked_whatever_the_content_type_of_history,
    memory_entries_link_nothing,
    an_append_that_names_no_attachment_asks_for_none,
);

async fn an_entry_refers_to_what_it_named(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    let conversation = ConversationId(setting.clock.new_id());
    let entry = setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    let href = format!("/v1/attachments/{}", uploaded.id);
    let expected = json!([{"role": "USER", "text": "look",
        "attachments": [{"href": href, "contentType": "image/png", "name": "cat.png"}]}]);
    assert_eq!(entry.content.value().unwrap(), expected);
    let (alice, all) = (caller("alice"), ListEntries::default());
    let listed = setting.services.conversations.list_entries(&alice, conversation, all);
    assert_eq!(listed.await.unwrap().data[0].content.value().unwrap(), expected);
    let linked = setting.services.attachments.get(&caller("alice"), uploaded.id).await.unwrap();
    assert_eq!((linked.entry_id, linked.expires_at), (Some(entry.id), None));
}

async fn what_the_caller_said_of_an_attachment_stays(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload_as("alice", NewAttachment::default(), b"x").await.unwrap();
    let content = json!([{"role": "USER", "attachments": [
        {"attachmentId": uploaded.id, "contentType": "text/x-mine", "name": "mine", "alt": 1.50},
        {"href": "https://example.org/x", "contentType": "image/png"}]}]);
    let request = AppendRequest { content: Some(Json::of(&content).unwrap()), ..naming(&[]) };
    let (alice, conversation) = (caller("alice"), ConversationId(setting.clock.new_id()));
    let entry = setting.services.conversations.append(&alice, conversation, request, None).await.unwrap();
    let attachments = &entry.content.value().unwrap()[0]["attachments"];
    let href = format!("/v1/attachments/{}", uploaded.id);
    assert_eq!(
        *attachments,
        json!([{"contentType": "text/x-mine", "name": "mine", "alt": 1.50, "href": href},
               {"href": "https://example.org/x", "contentType": "image/png"}])
    );
}

async fn a_linked_attachment_does_not_expire(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    let conversation = setting.start("alice").await;
    setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    setting.clock.advance_micros(2 * DAY);
    setting.clean_up().await;
    assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), b"x");
}

async fn everybody_who_reads_the_tree_reads_its_attachments(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (attachments, conversations) = (&setting.services.attachments, &setting.services.conversations);
    let conversation = setting.start("alice").await;
    setting.invite("alice", conversation, "bob", AccessLevel::Reader).await;
    setting.invite("alice", conversation, "carol", AccessLevel::Writer).await;
    let id = setting.upload("carol", b"x").await.id;
    setting.say("carol", conversation, &[id]).await.unwrap();
    for (user, expected) in [
        ("alice", "ok"),
        ("bob", "ok"),
        ("carol", "ok"),
        ("mallory", "forbidden"),
        ("bob@other", "not found"),
    ] {
        assert_eq!(outcome(attachments.open(&caller(user), id).await), expected, "{user}");
        assert_eq!(outcome(attachments.download_url(&caller(user), id).await), expected, "{user}");
    }
    conversations.delete_membership(&caller("alice"), conversation, "carol".into()).await.unwrap();
    assert_eq!(outcome(attachments.get(&caller("carol"), id).await), "forbidden", "who uploaded it, too");
    conversations.delete(&caller("alice"), conversation).await.unwrap();
    assert_eq!(outcome(attachments.get(&caller("alice"), id).await), "not found");
}

async fn what_cannot_be_linked_fails_the_whole_append(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("alice").await;
    let entries = setting.count("SELECT COUNT(*) FROM entries").await;
    let good = setting.upload("alice", b"x").await.id;
    let of_bob = setting.upload("bob", b"x").await.id;
    let elsewhere = setting.upload("alice@other", b"x").await.id;
    let deleted = setting.upload("alice", b"x").await.id;
    setting.services.attachments.delete(&caller("alice"), deleted).await.unwrap();
    let unknown = AttachmentId(setting.clock.new_id());
    let alice = caller("alice");
    let uploading = setting.services.attachments.begin(&alice, NewAttachment::default()).await.unwrap();
    for (wrong, expected) in [
        (unknown, "not found"),
        (deleted, "not found"),
        (elsewhere, "not found"),
        (of_bob, "forbidden"),
        (uploading.id(), "in progress"),
    ] {
        let refused = setting.say("alice", conversation, &[good, wrong]).await;
        assert_eq!(outcome(refused), expected, "{wrong}");
    }
    let malformed = json!([{"role": "USER", "attachments": [{"attachmentId": "x"}]}]);
    let malformed = AppendRequest { content: Some(Json::of(&malformed).unwrap()), ..naming(&[]) };
    let malformed = setting.services.conversations.append(&alice, conversation, malformed, None);
    assert_eq!(outcome(malformed.await), "not found");

    let new = ConversationId(setting.clock.new_id());
    assert_eq!(outcome(setting.say("alice", new, &[unknown]).await), "not found");
    let made = setting.services.conversations.get(&caller("alice"), new).await;
    assert_eq!(outcome(made), "not found", "nor is its conversation made");
    assert_eq!(setting.count("SELECT COUNT(*) FROM entries").await, entries);
    let untouched = setting.services.attachments.get(&caller("alice"), good).await.unwrap();
    assert_eq!(untouched.entry_id, None);

    setting.clock.advance_micros(HOUR);
    assert_eq!(outcome(setting.say("alice", conversation, &[good]).await), "not found", "it has expired");
}

async fn an_attachment_of_the_tree_is_shared_by_forks(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("alice").await;
    setting.invite("alice", conversation, "bob", AccessLevel::Writer).await;
    let uploaded = setting.upload("alice", b"x").await;
    let entry = setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    let (bob, conversations) = (caller("bob"), &setting.services.conversations);

    let again = setting.say("bob", conversation, &[uploaded.id]).await.unwrap();
    let fork = conversations.fork(&bob, conversation, entry.id, None).await.unwrap().id;
    let on_fork = setting.say("bob", fork, &[uploaded.id]).await.unwrap();
    let request = forking(conversation, entry.id, &[uploaded.id]);
    let forked = ConversationId(setting.clock.new_id());
    let while_forking = conversations.append(&bob, forked, request, None).await.unwrap();

    let mut ids = vec![uploaded.id];
    for sharing in [again, on_fork, while_forking] {
        let [id] = referred(&sharing)[..] else { panic!("{sharing:?}") };
        let shared = setting.services.attachments.get(&caller("alice"), id).await.unwrap();
        assert_eq!(shared.entry_id, Some(sharing.id));
        assert_eq!(shared.storage_key, uploaded.storage_key);
        assert_eq!(
            (shared.sha256.clone(), shared.filename.clone()),
            (uploaded.sha256.clone(), uploaded.filename.clone())
        );
        assert_eq!(setting.bytes_of(&shared).await.unwrap(), b"x");
        ids.push(id);
    }
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), setting.files().len()), (4, 1));
}

async fn an_attachment_of_another_tree_is_not(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (one, other) = (setting.start("alice").await, setting.start("alice").await);
    let id = setting.upload("alice", b"x").await.id;
    setting.say("alice", one, &[id]).await.unwrap();
    assert_eq!(outcome(setting.say("alice", other, &[id]).await), "forbidden");
    let new = ConversationId(setting.clock.new_id());
    assert_eq!(outcome(setting.say("alice", new, &[id]).await), "forbidden");
    assert_eq!(setting.records().await, 1);
}

async fn an_attachment_named_twice_is_linked_once(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    let entry = setting.say("alice", conversation, &[id, id]).await.unwrap();
    assert_eq!(referred(&entry), [id, id]);
    let shared = setting.say("alice", conversation, &[id, id]).await.unwrap();
    let [one, other] = referred(&shared)[..] else { panic!("{shared:?}") };
    assert!(one == other && one != id);
    assert_eq!(setting.records().await, 2);
}

async fn a_repeated_append_links_nothing_more(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    let body: Digest = [7; 32];
    let alice = caller("alice");
    let append = || {
        let idempotency = Some(Idempotency { key: "once".into(), body });
        setting.services.conversations.append(&alice, conversation, naming(&[id]), idempotency)
    };
    let (first, second) = (append().await.unwrap(), append().await.unwrap());
    assert_eq!(first, second);
    assert_eq!((referred(&second), setting.records().await), (vec![id], 1));
}

async fn a_linked_attachment_is_not_deleted_by_its_uploader(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    setting.say("alice", conversation, &[id]).await.unwrap();
    assert_eq!(outcome(setting.services.attachments.delete(&caller("alice"), id).await), "linked");
    assert_eq!(outcome(setting.services.attachments.delete(&caller("bob"), id).await), "forbidden");
    setting.services.conversations.delete(&caller("alice"), conversation).await.unwrap();
    for user in ["alice", "bob"] {
        let gone = setting.services.attachments.delete(&caller(user), id).await;
        assert_eq!(outcome(gone), "not found", "nothing of a deleted tree is there");
    }
}

async fn attachments_are_linked_whatever_the_content_type_of_history(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    let request = AppendRequest { channel: None, content_type: Some("message".into()), ..naming(&[id]) };
    let alice = caller("alice");
    let append = setting.services.conversations.append(&alice, conversation, request, None);
    assert_eq!(referred(&append.await.unwrap()), [id]);
}

async fn memory_entries_link_nothing(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    let request = AppendRequest { channel: Some(Channel::Memory), ..naming(&[id]) };
    let content = request.content.clone().unwrap();
    let agent = crate::attaching::setting::agent("alice");
    let entry = setting.services.conversations.append(&agent, conversation, request, None).await.unwrap();
    assert_eq!(entry.content, content);
    let untouched = setting.services.attachments.get(&caller("alice"), id).await.unwrap();
    assert_eq!(untouched.entry_id, None);
}

async fn an_append_that_names_no_attachment_asks_for_none(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    let away = |tx: &mut dyn memtrove_store::Tx| {
        Ok::<_, memtrove_core::Error>(tx.execute("ALTER TABLE attachments RENAME TO elsewhere", &[])?)
    };
    setting.store.write(AllTenants, "test", away).await.unwrap();
    // Whoever asked would find no table.
    setting.say("alice", conversation, &[]).await.unwrap();
    let asking = setting.say("alice", conversation, &[id]).await;
    assert!(matches!(asking, Err(memtrove_core::Error { code: Code::Internal, .. })), "{asking:?}");
}
