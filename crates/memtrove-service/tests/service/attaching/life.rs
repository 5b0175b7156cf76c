//! From an upload to its end.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{DAY, Engine, HOUR, MINUTE, SECOND, Setting, caller, outcome};
use bytes::Bytes;
use futures_util::TryStreamExt;
use memtrove_core::{Clock, Code};
use memtrove_service::attachments::{Content, NewAttachment, Status};
use memtrove_store::vault::Vault;
use std::time::Duration;

on_both_engines!(
    an_upload_becomes_an_attachment,
    an_upload_that_is_dropped_leaves_nothing,
    a_file_that_is_too_large_is_refused_while_it_comes_and_leaves_nothing,
    what_is_said_of_a_file_is_checked_before_anything_is_stored,
    only_who_uploaded_an_attachment_sees_it_until_it_is_linked,
    an_attachment_nobody_links_is_gone_when_its_time_is_over,
    what_is_being_uploaded_cannot_be_read_yet,
    an_upload_outlives_its_first_minute_as_long_as_it_is_alive,
    an_upload_that_was_given_up_does_not_come_back,
    an_attachment_is_deleted_with_its_bytes,
    without_an_object_store_there_are_no_attachments,
);

async fn an_upload_becomes_an_attachment(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"0123456789").await;
    assert_eq!(uploaded.status, Status::Ready);
    assert_eq!(uploaded.size, Some(10));
    assert_eq!(
        uploaded.sha256.as_deref(),
        Some("84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882")
    );
    assert_eq!(uploaded.expires_at, Some(setting.clock.now().saturating_add_micros(HOUR)));
    let (opened, content) = setting.services.attachments.open(&caller("alice"), uploaded.id).await.unwrap();
    assert_eq!((&opened, content), (&uploaded, Content::Bytes));
    assert_eq!(setting.bytes_of(&opened).await.unwrap(), b"0123456789");
    let part = setting.services.attachments.read(&opened, Some(3..6)).await.unwrap();
    assert_eq!(part.try_collect::<Vec<Bytes>>().await.unwrap().concat(), b"345");

    let empty = setting.upload("alice", b"").await;
    assert_eq!((empty.size, setting.bytes_of(&empty).await.unwrap()), (Some(0), Vec::new()));
}

async fn an_upload_that_is_dropped_leaves_nothing(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let mut upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    upload.write(Bytes::from(vec![7; 3 << 20])).await.unwrap();
    let id = upload.id();
    drop(upload);
    setting.until("SELECT COUNT(*) FROM attachments", 0).await;
    assert_eq!(setting.files(), [] as [std::path::PathBuf; 0]);
    assert_eq!(outcome(attachments.get(&caller("alice"), id).await), "not found");
}

async fn a_file_that_is_too_large_is_refused_while_it_comes_and_leaves_nothing(engine: Engine) {
    let setting = Setting::with(engine, Vault::plain(), |settings| settings.max_bytes = 10).await;
    setting.upload("alice", b"0123456789").await;
    let attachments = &setting.services.attachments;
    let mut upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    upload.write(Bytes::from_static(b"012345")).await.unwrap();
    let refused = upload.write(Bytes::from_static(b"6789a")).await;
    assert_eq!(refused, Err(memtrove_core::Error::file_too_large(10, 11)));
    drop(upload);
    setting.until("SELECT COUNT(*) FROM attachments", 1).await;
    assert_eq!(setting.files().len(), 1);
}

async fn what_is_said_of_a_file_is_checked_before_anything_is_stored(engine: Engine) {
    let setting = Setting::new(engine).await;
    let new = |filename: &str, content_type: &str, expires_in: &str| NewAttachment {
        filename: Some(filename.into()),
        content_type: Some(content_type.into()),
        expires_in: Some(expires_in.into()),
    };
    let long = "x".repeat(256);
    let long_type = format!("text/{long}");
    for (wrong, expected) in [
        (new(&long, "text/plain", "PT1H"), "invalid"),
        (new("a\0b", "text/plain", "PT1H"), "invalid"),
        (new("a", &long_type, "PT1H"), "invalid"),
        (new("a", "text/\0plain", "PT1H"), "invalid"),
        (new("a", "text/plain", "PT25H"), "bad request"),
        (new("a", "text/plain", "soon"), "bad request"),
    ] {
        let shown = format!("{wrong:?}");
        assert_eq!(outcome(setting.upload_as("alice", wrong, b"x").await), expected, "{shown}");
    }
    assert_eq!(setting.records().await, 0);
    let longest = new(&"ä".repeat(255), "text/plain", "PT24H");
    let kept = setting.upload_as("alice", longest, b"x").await.unwrap();
    assert_eq!(kept.expires_at, Some(setting.clock.now().saturating_add_micros(DAY)));
    let unsaid = setting.upload_as("alice", NewAttachment::default(), b"x").await.unwrap();
    assert_eq!((unsaid.filename, unsaid.content_type.as_str()), (None, "application/octet-stream"));
}

async fn only_who_uploaded_an_attachment_sees_it_until_it_is_linked(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let id = setting.upload("alice", b"x").await.id;
    assert_eq!(outcome(attachments.get(&caller("alice"), id).await), "ok");
    assert_eq!(outcome(attachments.get(&caller("bob"), id).await), "forbidden");
    assert_eq!(outcome(attachments.get(&caller("alice@other"), id).await), "not found");
    assert_eq!(outcome(attachments.delete(&caller("bob"), id).await), "forbidden");
    assert_eq!(outcome(attachments.delete(&caller("alice@other"), id).await), "not found");
    assert_eq!(outcome(attachments.download_url(&caller("bob"), id).await), "forbidden");
}

async fn an_attachment_nobody_links_is_gone_when_its_time_is_over(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    setting.clock.advance_micros(HOUR - 1);
    setting.clean_up().await;
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), uploaded.id).await), "ok");
    setting.clock.advance_micros(1);
    let gone = setting.services.attachments.get(&caller("alice"), uploaded.id).await;
    assert_eq!(outcome(gone), "not found", "also before anybody cleans up");
    assert!(setting.has_bytes(&uploaded));
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}

async fn what_is_being_uploaded_cannot_be_read_yet(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    let id = upload.id();
    assert_eq!(attachments.get(&caller("alice"), id).await.unwrap().status, Status::Uploading);
    assert_eq!(outcome(attachments.open(&caller("alice"), id).await), "in progress");
    assert_eq!(outcome(attachments.download_url(&caller("alice"), id).await), "in progress");
    assert_eq!(outcome(attachments.delete(&caller("alice"), id).await), "in progress");
    upload.finish().await.unwrap();
    assert_eq!(outcome(attachments.open(&caller("alice"), id).await), "ok");
}

async fn an_upload_outlives_its_first_minute_as_long_as_it_is_alive(engine: Engine) {
    let refresh = Duration::from_millis(10);
    let setting = Setting::with(engine, Vault::plain(), |settings| settings.upload_refresh = refresh).await;
    let attachments = &setting.services.attachments;
    let mut upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    upload.write(Bytes::from_static(b"slow")).await.unwrap();
    let first = attachments.get(&caller("alice"), upload.id()).await.unwrap().expires_at;
    setting.clock.advance_micros(50 * SECOND);
    let mut commits = setting.store.commits();
    while attachments.get(&caller("alice"), upload.id()).await.unwrap().expires_at == first {
        commits.changed().await.unwrap();
    }
    setting.clock.advance_micros(50 * SECOND);
    setting.clean_up().await;
    assert_eq!(setting.bytes_of(&upload.finish().await.unwrap()).await.unwrap(), b"slow");
}

async fn an_upload_that_was_given_up_does_not_come_back(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let mut upload = attachments.begin(&caller("alice"), NewAttachment::default()).await.unwrap();
    upload.write(Bytes::from_static(b"x")).await.unwrap();
    setting.clock.advance_micros(MINUTE);
    setting.clean_up().await;
    assert_eq!(setting.records().await, 0);
    let late = upload.finish().await;
    assert!(matches!(late, Err(memtrove_core::Error { code: Code::StorageUnavailable, .. })), "{late:?}");
    // The bytes were there for a moment; whoever noticed takes them away.
    let gone = async {
        while !setting.files().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the bytes to go");
}

async fn an_attachment_is_deleted_with_its_bytes(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", b"x").await;
    setting.services.attachments.delete(&caller("alice"), uploaded.id).await.unwrap();
    let again = setting.services.attachments.delete(&caller("alice"), uploaded.id).await;
    assert_eq!(outcome(again), "not found");
    assert_eq!(outcome(setting.bytes_of(&uploaded).await), "not found");
    setting.clean_up().await;
    assert_eq!((setting.records().await, setting.files().len()), (0, 0));
}

async fn without_an_object_store_there_are_no_attachments(engine: Engine) {
    let setting = Setting::with(engine, Vault::plain(), |settings| settings.blobs = None).await;
    assert_eq!(outcome(setting.upload_as("alice", NewAttachment::default(), b"x").await), "conflict");
    assert_eq!(setting.records().await, 0);
    setting.clean_up().await;
}
