//! What admins and auditors may do.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{Engine, HOUR, MINUTE, Setting, caller, outcome, principal};
use memtrove_core::{AttachmentId, Clock};
use memtrove_service::attachments::{AdminAttachments, AttachmentFilter, Content};

on_both_engines!(
    roles_decide_who_may_what,
    an_admin_lists_by_user_entry_and_status_newest_first,
    pages_of_a_list_hold_every_attachment_once,
    a_list_does_not_go_on_after_one_of_another_list,
    an_admin_deletes_what_is_linked,
);

async fn roles_decide_who_may_what(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let id = setting.upload("alice", b"x").await.id;
    for (user, reads, deletes) in [
        ("alice", "forbidden", "forbidden"),
        ("auditor", "ok", "forbidden"),
        ("auditor@other", "not found", "forbidden"),
        ("admin@other", "not found", "not found"),
        ("admin", "ok", "ok"),
    ] {
        let user_is = principal(user);
        assert_eq!(outcome(attachments.admin_get(&user_is, id, None).await), reads, "{user}");
        assert_eq!(outcome(attachments.admin_download_url(&user_is, id, None).await), reads, "{user}");
        let opened = attachments.admin_open(&user_is, id, None).await;
        assert!(opened.as_ref().map_or(true, |(_, content)| *content == Content::Bytes));
        assert_eq!(outcome(opened), reads, "{user}");
        assert_eq!(outcome(attachments.admin_delete(&user_is, id, None).await), deletes, "{user}");
    }
    setting.clean_up().await;
    assert_eq!(setting.records().await, 0);
}

impl Setting {
    async fn listed(&self, request: AdminAttachments) -> Vec<AttachmentId> {
        let page = self.services.attachments.admin_list(&principal("auditor"), request, None).await.unwrap();
        page.data.into_iter().map(|attachment| attachment.id).collect()
    }
}

async fn an_admin_lists_by_user_entry_and_status_newest_first(engine: Engine) {
    let setting = Setting::new(engine).await;
    let expired = setting.upload("alice", b"x").await.id;
    setting.clock.advance_micros(HOUR);
    let conversation = setting.start("alice").await;
    let linked = setting.upload("alice", b"x").await.id;
    let entry = setting.say("alice", conversation, &[linked]).await.unwrap().id;
    setting.clock.advance_micros(MINUTE);
    let of_bob = setting.upload("bob", b"x").await.id;
    setting.upload("bob@other", b"x").await;

    let by = |status| AdminAttachments { status, ..AdminAttachments::default() };
    assert_eq!(setting.listed(by(AttachmentFilter::All)).await, [of_bob, linked, expired]);
    assert_eq!(setting.listed(by(AttachmentFilter::Linked)).await, [linked]);
    assert_eq!(setting.listed(by(AttachmentFilter::Unlinked)).await, [of_bob]);
    assert_eq!(setting.listed(by(AttachmentFilter::Expired)).await, [expired]);
    let of = |user: &str| AdminAttachments { user_id: Some(user.into()), ..AdminAttachments::default() };
    assert_eq!(setting.listed(of("bob")).await, [of_bob]);
    assert_eq!(setting.listed(of("nobody")).await, []);
    let of_entry = AdminAttachments { entry_id: Some(entry), ..of("alice") };
    assert_eq!(setting.listed(of_entry).await, [linked]);
}

async fn pages_of_a_list_hold_every_attachment_once(engine: Engine) {
    let setting = Setting::new(engine).await;
    let mut uploaded = Vec::new();
    for _ in 0..5 {
        uploaded.push(setting.upload("alice", b"x").await.id);
    }
    uploaded.reverse();
    let (mut walked, mut after) = (Vec::new(), None);
    loop {
        let request = AdminAttachments { after, limit: Some(2), ..AdminAttachments::default() };
        let page = setting.services.attachments.admin_list(&principal("admin"), request, None).await.unwrap();
        walked.extend(page.data.iter().map(|attachment| attachment.id));
        let Some(cursor) = page.after else { break };
        after = Some(AttachmentId(memtrove_core::parse_uuid(&cursor).unwrap()));
    }
    assert_eq!(walked, uploaded);
    for wrong in [
        AdminAttachments { after: Some(AttachmentId(setting.clock.new_id())), ..AdminAttachments::default() },
        AdminAttachments { limit: Some(0), ..AdminAttachments::default() },
        AdminAttachments { limit: Some(1001), ..AdminAttachments::default() },
        AdminAttachments { user_id: Some("a\0".into()), ..AdminAttachments::default() },
    ] {
        let refused = setting.services.attachments.admin_list(&principal("admin"), wrong, None).await;
        assert_eq!(outcome(refused), "invalid");
    }
}

async fn a_list_does_not_go_on_after_one_of_another_list(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (of_alice, of_bob) = (setting.upload("alice", b"x").await.id, setting.upload("bob", b"x").await.id);
    let admin = principal("admin");
    for (after, status, expected) in [
        (of_alice, AttachmentFilter::All, "ok"),
        (of_alice, AttachmentFilter::Unlinked, "ok"),
        (of_alice, AttachmentFilter::Linked, "invalid"),
        (of_alice, AttachmentFilter::Expired, "invalid"),
        (of_bob, AttachmentFilter::All, "invalid"),
    ] {
        let (user_id, after) = (Some("alice".into()), Some(after));
        let request = AdminAttachments { user_id, after, status, ..AdminAttachments::default() };
        assert_eq!(outcome(setting.services.attachments.admin_list(&admin, request, None).await), expected);
    }
}

async fn an_admin_deletes_what_is_linked(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, id) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    setting.say("alice", conversation, &[id]).await.unwrap();
    setting.services.attachments.admin_delete(&principal("admin"), id, None).await.unwrap();
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), id).await), "not found");
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}
