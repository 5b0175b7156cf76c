//! What was interrupted comes to its end.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{DAY, Engine, HOUR, MINUTE, Setting, caller, outcome};
use bytes::Bytes;
use memtrove_core::{Clock, Error};
use memtrove_service::attachments::{Attachment, NewAttachment};
use memtrove_store::AllTenants;
use memtrove_store::attachments;

on_both_engines!(
    an_upload_whose_process_died_is_over_within_a_minute,
    a_deletion_that_was_interrupted_before_its_bytes_were_gone_is_finished,
    a_deletion_that_was_interrupted_after_its_bytes_were_gone_is_finished,
    an_object_store_that_fails_is_tried_again,
    bytes_that_no_record_knows_stay,
    bytes_that_cannot_be_removed_hold_up_no_others,
    what_is_deleted_goes_soon_without_anybody_waiting_for_it,
    an_attachment_of_a_tree_that_is_gone_goes_too,
);

impl Setting {
    /// What a deletion has committed before it touches the bytes.
    async fn mark(&self, attachment: &Attachment) {
        let (id, now) = (attachment.id, self.clock.now());
        let mark =
            move |tx: &mut dyn memtrove_store::Tx| Ok::<_, Error>(attachments::mark_deleted(tx, id, now)?);
        self.store.write(AllTenants, "test", mark).await.unwrap();
    }

    /// Bytes under a key.
    async fn put(&self, key: &str) {
        let mut upload = self.blobs.put(key, None).await.unwrap();
        upload.write(Bytes::from_static(b"lost")).await.unwrap();
        upload.finish().await.unwrap();
    }
}

async fn an_upload_whose_process_died_is_over_within_a_minute(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    let record = attachments.get(&caller("alice"), upload.id()).await.unwrap();
    // It got as far as to finish the bytes.
    setting.put(&record.storage_key).await;
    std::mem::forget(upload);
    setting.clock.advance_micros(MINUTE);
    setting.clean_up().await;
    assert_eq!(setting.records().await, 0);
    assert!(!setting.has_bytes(&record));
}

async fn a_deletion_that_was_interrupted_before_its_bytes_were_gone_is_finished(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    setting.mark(&uploaded).await;
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), uploaded.id).await), "not found");
    assert_eq!(outcome(setting.bytes_of(&uploaded).await), "not found");
    assert!(setting.has_bytes(&uploaded));
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}

async fn a_deletion_that_was_interrupted_after_its_bytes_were_gone_is_finished(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    setting.mark(&uploaded).await;
    setting.blobs.delete(&uploaded.storage_key).await.unwrap();
    setting.clean_up().await;
    assert_eq!(setting.records().await, 0);
}

async fn an_object_store_that_fails_is_tried_again(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    let blobs = setting.folder.path().join("blobs");
    let place = blobs.join(uploaded.storage_key.split('/').next().unwrap());
    let aside = setting.folder.path().join("aside");
    std::fs::rename(&place, &aside).unwrap();
    // A link that leads to itself: no file below it can be found, and nobody can say that there is none.
    std::os::unix::fs::symlink(&place, &place).unwrap();
    setting.services.attachments.delete(&caller("alice"), uploaded.id).await.unwrap();
    let gone = setting.services.attachments.get(&caller("alice"), uploaded.id).await;
    assert_eq!(outcome(gone), "not found", "for its uploader it is deleted");
    let marked = "SELECT COUNT(*) FROM attachments WHERE deleted_at IS NOT NULL";
    assert_eq!(setting.count(marked).await, 1);
    assert!(setting.services.run_due_tasks().await.is_err());
    assert_eq!(setting.count(marked).await, 1, "it stays until its bytes are gone");

    std::fs::remove_file(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    assert!(setting.has_bytes(&uploaded));
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}

async fn bytes_that_no_record_knows_stay(engine: Engine) {
    let setting = Setting::new(engine).await;
    let known = setting.upload("alice", b"x").await;
    let place = known.storage_key.split('/').next().unwrap().to_owned();
    // As a copy of this store's database made them, which is at work elsewhere.
    let unknown = format!("{place}/aa/11111111111111111111111111111111");
    setting.put(&unknown).await;
    setting.clock.advance_micros(365 * DAY);
    setting.clean_up().await;
    assert!(!setting.has_bytes(&known));
    assert!(setting.folder.path().join("blobs").join(&unknown).exists());
}

async fn bytes_that_cannot_be_removed_hold_up_no_others(engine: Engine) {
    let setting = Setting::new(engine).await;
    let blobs = setting.folder.path().join("blobs");
    let mut stuck = Vec::new();
    // More than are tried in a row.
    for _ in 0..10 {
        let uploaded = setting.upload("alice", b"x").await;
        // A link that leads to itself: nobody can say that there is no file below it.
        let folder = blobs.join(&uploaded.storage_key).parent().unwrap().to_owned();
        std::fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &folder).unwrap();
        stuck.push(folder);
        setting.mark(&uploaded).await;
    }
    let free = setting.upload("alice", b"x").await;
    setting.mark(&free).await;
    assert!(setting.services.run_due_tasks().await.is_err());
    assert!(setting.services.run_due_tasks().await.is_err(), "it goes on where it stopped");
    assert!(!setting.has_bytes(&free));
    assert_eq!(setting.records().await, 10);

    for folder in stuck {
        std::fs::remove_file(folder).unwrap();
    }
    setting.clean_up().await;
    assert_eq!(setting.records().await, 0);
}

async fn what_is_deleted_goes_soon_without_anybody_waiting_for_it(engine: Engine) {
    // No clean-up comes by meanwhile but the first.
    let setting = Setting::new(engine).await;
    let services = setting.services.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(async move { services.run_tasks(async { drop(stopped.await) }).await });
    for _ in 0..3 {
        let uploaded = setting.upload("alice", b"x").await;
        setting.services.attachments.delete(&caller("alice"), uploaded.id).await.unwrap();
        setting.until("SELECT COUNT(*) FROM attachments", 0).await;
        assert!(!setting.has_bytes(&uploaded));
    }
    drop(stop);
    worker.await.unwrap();
}

async fn an_attachment_of_a_tree_that_is_gone_goes_too(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, uploaded) = (setting.start("alice").await, setting.upload("alice", b"x").await);
    setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    // As a version does that knows nothing of attachments.
    for sql in ["DELETE FROM conversations", "DELETE FROM groups"] {
        let delete = move |tx: &mut dyn memtrove_store::Tx| Ok::<_, Error>(tx.execute(sql, &[])?);
        setting.store.write(AllTenants, "test", delete).await.unwrap();
    }
    setting.clock.advance_micros(HOUR);
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}
