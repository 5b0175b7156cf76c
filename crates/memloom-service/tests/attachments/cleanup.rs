//! What was interrupted comes to its end, and what nobody knows goes.

use crate::on_both_engines;
use crate::setting::{DAY, Engine, HOUR, MINUTE, Setting, caller, outcome};
use bytes::Bytes;
use memloom_core::{Clock, Error};
use memloom_service::attachments::{Attachment, NewAttachment};
use memloom_store::attachments;
use std::fs::File;
use std::time::{Duration, SystemTime};

on_both_engines!(
    an_upload_whose_process_died_is_over_within_a_minute,
    a_deletion_that_was_interrupted_before_its_bytes_were_gone_is_finished,
    a_deletion_that_was_interrupted_after_its_bytes_were_gone_is_finished,
    an_object_store_that_fails_is_tried_again,
    old_bytes_that_no_record_knows_are_removed,
    bytes_of_others_in_the_same_object_store_stay,
    an_attachment_of_a_tree_that_is_gone_goes_too,
);

impl Setting {
    /// What a deletion has committed before it touches the bytes.
    async fn mark(&self, attachment: &Attachment) {
        let (id, now) = (attachment.id, self.clock.now());
        let mark =
            move |tx: &mut dyn memloom_store::Tx| Ok::<_, Error>(attachments::mark_deleted(tx, id, now)?);
        self.store.write("test", mark).await.unwrap();
    }

    /// Bytes under a key, written so long ago.
    async fn put(&self, key: &str, age_micros: i64) {
        let mut upload = self.blobs.put(key, None).await.unwrap();
        upload.write(Bytes::from_static(b"lost")).await.unwrap();
        upload.finish().await.unwrap();
        let micros = (self.clock.now().as_micros() - age_micros) as u64;
        let then = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let path = self.folder.path().join("blobs").join(key);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }
}

async fn an_upload_whose_process_died_is_over_within_a_minute(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    let record = attachments.get(&caller("alice"), upload.id()).await.unwrap();
    // It got as far as to finish the bytes.
    setting.put(&record.storage_key, 0).await;
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

async fn old_bytes_that_no_record_knows_are_removed(engine: Engine) {
    let setting = Setting::new(engine).await;
    let known = setting.upload("alice", b"x").await;
    let place = known.storage_key.split('/').next().unwrap().to_owned();
    let conversation = setting.start("alice").await;
    setting.say("alice", conversation, &[known.id]).await.unwrap();
    let (old, young) = (format!("{place}/aa/old"), format!("{place}/aa/young"));
    setting.put(&old, DAY + MINUTE).await;
    setting.put(&young, DAY - MINUTE).await;
    setting.clean_up().await;
    let blobs = setting.folder.path().join("blobs");
    assert!(!blobs.join(&old).exists());
    assert!(blobs.join(&young).exists(), "its record may be on its way");
    setting.clock.advance_micros(365 * DAY);
    setting.clean_up().await;
    assert!(!blobs.join(&young).exists());
    assert_eq!(setting.bytes_of(&known).await.unwrap(), b"x");
}

async fn bytes_of_others_in_the_same_object_store_stay(engine: Engine) {
    let setting = Setting::new(engine).await;
    let foreign = "00000000000000000000000000000000/aa/11111111111111111111111111111111";
    setting.put(foreign, 365 * DAY).await;
    setting.clean_up().await;
    assert!(setting.folder.path().join("blobs").join(foreign).exists());
}

async fn an_attachment_of_a_tree_that_is_gone_goes_too(engine: Engine) {
    let setting = Setting::new(engine).await;
    let (conversation, uploaded) = (setting.start("alice").await, setting.upload("alice", b"x").await);
    setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    // As a version does that knows nothing of attachments.
    for sql in ["DELETE FROM conversations", "DELETE FROM groups"] {
        let delete = move |tx: &mut dyn memloom_store::Tx| Ok::<_, Error>(tx.execute(sql, &[])?);
        setting.store.write("test", delete).await.unwrap();
    }
    setting.clock.advance_micros(HOUR);
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}
