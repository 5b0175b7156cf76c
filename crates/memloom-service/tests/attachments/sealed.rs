//! Where content is sealed, so are the bytes and what is said of them.

use crate::on_both_engines;
use crate::setting::{Engine, Setting, caller, outcome, referred};
use bytes::Bytes;
use futures_util::TryStreamExt;
use memloom_core::Error;
use memloom_service::attachments::NewAttachment;
use memloom_store::TxExt;
use memloom_store::vault::rotation::Rotation;
use memloom_store::vault::{Key, Keys, Vault};

on_both_engines!(
    nothing_of_an_attachment_lies_open,
    shared_bytes_open_for_every_record,
    bytes_that_were_changed_are_not_handed_out,
    readers_are_never_sent_to_sealed_bytes,
    keys_are_exchanged_without_touching_the_bytes,
);

fn sealing() -> Vault {
    Vault::sealing(Keys::new(Key::new(&[1; 32]).unwrap(), Vec::new()))
}

const SECRET: &[u8] = b"the eagle lands at midnight";

impl Setting {
    async fn details(&self) -> Vec<u8> {
        let details = |tx: &mut dyn memloom_store::Tx| {
            let rows = tx.rows("SELECT details FROM attachments", &[], |row| Ok(row.bytes(0)?.to_vec()))?;
            Ok::<_, Error>(rows.concat())
        };
        self.store.read("test", details).await.unwrap()
    }
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

async fn nothing_of_an_attachment_lies_open(engine: Engine) {
    let setting = Setting::with(engine, sealing(), |_| {}).await;
    let new = NewAttachment { filename: Some("eagle.txt".into()), ..NewAttachment::default() };
    let uploaded = setting.upload_as("alice", new, SECRET).await.unwrap();
    assert_eq!(uploaded.filename.as_deref(), Some("eagle.txt"));
    assert_eq!(uploaded.size, Some(SECRET.len() as u64));
    assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), SECRET);
    let part = setting.services.attachments.read(&uploaded, Some(4..9)).await.unwrap();
    assert_eq!(part.try_collect::<Vec<Bytes>>().await.unwrap().concat(), b"eagle");
    let stored = std::fs::read(&setting.files()[0]).unwrap();
    let details = setting.details().await;
    assert!(!holds(&stored, b"eagle") && !holds(&details, b"eagle"));
    assert!(!holds(&details, uploaded.sha256.unwrap().as_bytes()), "a digest confirms a guess");
}

async fn shared_bytes_open_for_every_record(engine: Engine) {
    let setting = Setting::with(engine, sealing(), |_| {}).await;
    let conversation = setting.start("alice").await;
    let uploaded = setting.upload("alice", SECRET).await;
    setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    let entry = setting.say("alice", conversation, &[uploaded.id]).await.unwrap();
    let copy = setting.services.attachments.get(&caller("alice"), referred(&entry)[0]).await.unwrap();
    assert_ne!(copy.id, uploaded.id);
    assert_eq!(setting.bytes_of(&copy).await.unwrap(), SECRET);
}

async fn bytes_that_were_changed_are_not_handed_out(engine: Engine) {
    let setting = Setting::with(engine, sealing(), |_| {}).await;
    let uploaded = setting.upload("alice", SECRET).await;
    let path = &setting.files()[0];
    let mut stored = std::fs::read(path).unwrap();
    *stored.last_mut().unwrap() ^= 1;
    std::fs::write(path, stored).unwrap();
    let refused = setting.bytes_of(&uploaded).await;
    assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");
}

async fn readers_are_never_sent_to_sealed_bytes(engine: Engine) {
    let setting = Setting::with(engine, sealing(), |settings| settings.direct_download = true).await;
    let uploaded = setting.upload("alice", SECRET).await;
    let link = setting.services.attachments.download_url(&caller("alice"), uploaded.id).await.unwrap();
    assert!(link.url.starts_with("/v1/attachments/download/"), "{}", link.url);
}

async fn keys_are_exchanged_without_touching_the_bytes(engine: Engine) {
    let setting = Setting::with(engine, sealing(), |_| {}).await;
    let uploaded = setting.upload("alice", SECRET).await;
    let (stored, details) = (std::fs::read(&setting.files()[0]).unwrap(), setting.details().await);
    let rotate = |tx: &mut dyn memloom_store::Tx| {
        let rotation = Rotation { keep_derived_texts: true };
        rotation.begin(tx)?;
        while rotation.step(tx)?.is_some() {}
        rotation.finish(tx)?;
        Ok::<_, Error>(())
    };
    setting.store.write("test", rotate).await.unwrap();
    assert_ne!(setting.details().await, details);
    assert_eq!(std::fs::read(&setting.files()[0]).unwrap(), stored);
    assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), SECRET);
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), uploaded.id).await), "ok");
}
