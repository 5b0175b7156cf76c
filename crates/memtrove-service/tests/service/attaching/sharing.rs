//! Bytes that several records share, and several who decide about one record at once.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{Engine, Setting, caller, outcome, principal, referred};
use memtrove_core::{AttachmentId, ConversationId};
use memtrove_service::attachments::Attachment;

on_both_engines!(
    bytes_go_with_the_last_record_that_shares_them,
    records_that_share_bytes_can_all_be_deleted_at_once,
    of_two_appends_one_links_and_the_other_shares,
    of_two_appends_to_different_trees_one_is_refused,
    of_a_deletion_and_an_append_one_wins,
    of_a_deletion_and_a_sharing_append_neither_loses_bytes,
);

/// An attachment and another that shares its bytes.
async fn shared(setting: &Setting) -> (ConversationId, Attachment, AttachmentId) {
    let conversation = setting.start("alice").await;
    let uploaded = setting.upload("alice", b"x").await;
    setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    let other = setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    (conversation, uploaded, referred(&other)[0])
}

async fn bytes_go_with_the_last_record_that_shares_them(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (attachments, admin) = (&setting.services.attachments, principal("admin"));
    for original_first in [true, false] {
        let (_, uploaded, copy) = shared(&setting).await;
        let (first, last) = if original_first { (uploaded.id, copy) } else { (copy, uploaded.id) };
        assert_eq!(attachments.admin_get(&admin, last, None).await.unwrap().1, 2);
        attachments.admin_delete(&admin, first, None).await.unwrap();
        assert_eq!(outcome(attachments.get(&caller("alice"), first).await), "not found");
        let (left, count) = attachments.admin_get(&admin, last, None).await.unwrap();
        assert_eq!((count, setting.bytes_of(&left).await.unwrap()), (1, b"x".to_vec()));
        attachments.admin_delete(&admin, last, None).await.unwrap();
        setting.clean_up().await;
        assert_eq!((setting.records().await, setting.files().len()), (0, 0));
    }
}

async fn records_that_share_bytes_can_all_be_deleted_at_once(engine: Engine) {
    let setting = Setting::new(engine).await;
    for _ in 0..5 {
        let (conversation, uploaded, copy) = shared(&setting).await;
        let third = referred(&setting.say("alice", conversation, &[copy]).await.unwrap())[0];
        let admin = principal("admin");
        let delete = |id| setting.services.attachments.admin_delete(&admin, id, None);
        let (one, two, three) = tokio::join!(delete(uploaded.id), delete(copy), delete(third));
        assert_eq!([outcome(one), outcome(two), outcome(three)], ["ok"; 3]);
        setting.clean_up().await;
        assert_eq!((setting.records().await, setting.files().len()), (0, 0));
    }
}

async fn of_two_appends_one_links_and_the_other_shares(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("alice").await;
    let (alice, conversations) = (caller("alice"), &setting.services.conversations);
    let entry = setting.say("alice", conversation, &[]).await.unwrap();
    let fork = conversations.fork(&alice, conversation, entry.id, None).await.unwrap().id;
    for _ in 0..5 {
        let id = setting.upload("alice", b"x").await.id;
        let named = [id];
        let (one, other) =
            tokio::join!(setting.say("alice", conversation, &named), setting.say("alice", fork, &named));
        let (one, other) = (referred(&one.unwrap())[0], referred(&other.unwrap())[0]);
        assert!((one == id) != (other == id), "{one} {other}");
        let (_, count) =
            setting.services.attachments.admin_get(&principal("admin"), one, None).await.unwrap();
        assert_eq!(count, 2);
    }
}

async fn of_two_appends_to_different_trees_one_is_refused(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (one, other) = (setting.start("alice").await, setting.start("alice").await);
    for _ in 0..5 {
        let named = [setting.upload("alice", b"x").await.id];
        let (first, second) =
            tokio::join!(setting.say("alice", one, &named), setting.say("alice", other, &named));
        let mut outcomes = [outcome(first), outcome(second)];
        outcomes.sort_unstable();
        assert_eq!(outcomes, ["forbidden", "ok"]);
    }
}

async fn of_a_deletion_and_an_append_one_wins(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("alice").await;
    for _ in 0..10 {
        let uploaded = setting.upload("alice", b"x").await;
        let (named, alice) = ([uploaded.id], caller("alice"));
        let delete = setting.services.attachments.delete(&alice, uploaded.id);
        let (appended, deleted) = tokio::join!(setting.say("alice", conversation, &named), delete);
        match (outcome(appended), outcome(deleted)) {
            ("ok", "linked") => assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), b"x"),
            ("not found", "ok") => {
                setting.clean_up().await;
                assert!(!setting.has_bytes(&uploaded));
            }
            both => panic!("{both:?}"),
        }
    }
}

async fn of_a_deletion_and_a_sharing_append_neither_loses_bytes(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, admin) = (setting.start("alice").await, principal("admin"));
    for _ in 0..10 {
        let uploaded = setting.upload("alice", b"x").await;
        let named = [uploaded.id];
        setting.say("alice", conversation, &named).await.unwrap();
        let delete = setting.services.attachments.admin_delete(&admin, uploaded.id, None);
        let (shared, deleted) = tokio::join!(setting.say("alice", conversation, &named), delete);
        assert_eq!(outcome(deleted), "ok");
        setting.clean_up().await;
        match shared {
            Ok(entry) => {
                let id = referred(&entry)[0];
                let copy = setting.services.attachments.get(&caller("alice"), id).await.unwrap();
                assert_eq!(setting.bytes_of(&copy).await.unwrap(), b"x");
            }
            refused => {
                assert_eq!(outcome(refused), "not found");
                assert!(!setting.has_bytes(&uploaded));
            }
        }
    }
}
