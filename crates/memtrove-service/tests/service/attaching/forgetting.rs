//! Trees that go, and users who are forgotten, take their attachments along.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{DAY, Engine, Setting, caller, outcome, principal};
use memtrove_core::conversations::AccessLevel;
use memtrove_core::files::ScopedCaller;
use memtrove_core::{Clock, ConversationId, Error};
use memtrove_service::attachments::Attachment;
use memtrove_store::AllTenants;
use tokio::sync::mpsc;

on_both_engines!(
    an_evicted_tree_takes_its_attachments_along,
    a_deleted_tree_keeps_its_attachments_until_it_is_evicted,
    a_forgotten_user_takes_its_attachments_along,
    what_a_forgotten_user_said_to_others_stays_without_its_name,
    what_a_forgotten_user_uploads_later_stays,
);

impl Setting {
    async fn linked(&self, user: &str, to: ConversationId) -> Attachment {
        let uploaded = self.upload(user, b"secret").await;
        self.say(user, to, &[uploaded.id]).await.unwrap();
        uploaded
    }

    async fn evict(&self) -> usize {
        let tenant = caller("alice").tenant().clone();
        let (progress, mut heard) = mpsc::channel(1000);
        let eviction = self.services.conversations.eviction(tenant, DAY);
        let evicted = self.services.conversations.evict(&eviction, progress).await.unwrap();
        while heard.recv().await.is_some() {}
        evicted
    }

    pub async fn forget(&self, user: &str) {
        let who = ScopedCaller::enter(&principal(user), user.to_owned(), None, "request".to_owned()).unwrap();
        let files = &self.services.files;
        files.forget(&files.admit(who).await.unwrap()).await.unwrap();
    }
}

async fn an_evicted_tree_takes_its_attachments_along(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (gone, stays) = (setting.start("alice").await, setting.start("alice").await);
    let of_gone = setting.linked("alice", gone).await;
    setting.say("alice", gone, &[of_gone.id]).await.unwrap();
    let of_stays = setting.linked("alice", stays).await;
    setting.services.conversations.delete(&caller("alice"), gone).await.unwrap();
    setting.clock.advance_micros(2 * DAY);
    assert_eq!(setting.evict().await, 1);
    setting.clean_up().await;
    assert!(!setting.has_bytes(&of_gone));
    assert_eq!(setting.records().await, 1);
    assert_eq!(setting.bytes_of(&of_stays).await.unwrap(), b"secret");
}

async fn a_deleted_tree_keeps_its_attachments_until_it_is_evicted(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("alice").await;
    let linked = setting.linked("alice", conversation).await;
    setting.services.conversations.delete(&caller("alice"), conversation).await.unwrap();
    setting.clean_up().await;
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), linked.id).await), "not found");
    setting.services.conversations.admin_restore(&principal("admin"), conversation, None).await.unwrap();
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), linked.id).await), "ok");
    assert_eq!(setting.bytes_of(&linked).await.unwrap(), b"secret");
}

async fn a_forgotten_user_takes_its_attachments_along(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("alice").await;
    setting.invite("alice", conversation, "bob", AccessLevel::Writer).await;
    setting.upload("alice", b"unlinked").await;
    setting.linked("alice", conversation).await;
    setting.linked("bob", conversation).await;
    let of_bob = setting.upload("bob", b"kept").await;
    setting.forget("alice").await;
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (1, 1));
    assert_eq!(setting.bytes_of(&of_bob).await.unwrap(), b"kept");
}

async fn what_a_forgotten_user_said_to_others_stays_without_its_name(engine: Engine) {
    let setting = Setting::new(engine).await;
    let conversation = setting.start("bob").await;
    setting.invite("bob", conversation, "alice", AccessLevel::Writer).await;
    let linked = setting.linked("alice", conversation).await;
    setting.forget("alice").await;
    let kept = setting.services.attachments.get(&caller("bob"), linked.id).await.unwrap();
    assert_eq!(kept.user_id, None);
    assert_eq!(setting.bytes_of(&kept).await.unwrap(), b"secret");
    assert_eq!(setting.count("SELECT COUNT(*) FROM attachments WHERE user_id = 'alice'").await, 0);
}

async fn what_a_forgotten_user_uploads_later_stays(engine: Engine) {
    let setting = Setting::new(engine).await;
    setting.upload("alice", b"before").await;
    let now = setting.clock.now();
    let scope =
        ScopedCaller::enter(&principal("alice"), "alice".into(), None, "request".into()).unwrap().scope;
    // A forget that was stopped right after it began.
    let detach = move |tx: &mut dyn memtrove_store::Tx| {
        memtrove_store::files::forget::detach(tx, &scope, now)?;
        Ok::<_, Error>(())
    };
    setting.store.write(AllTenants, "test", detach).await.unwrap();
    let after = setting.upload("alice", b"after").await;
    setting.clean_up().await;
    assert_eq!(setting.records().await, 1);
    assert_eq!(setting.bytes_of(&after).await.unwrap(), b"after");
    assert_eq!(after.user_id, Some("alice".into()));
}
