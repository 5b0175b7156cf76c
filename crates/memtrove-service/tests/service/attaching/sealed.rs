//! Where content is sealed, so are the bytes and what is said of them.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{Engine, Setting, caller, outcome, referred};
use bytes::Bytes;
use futures_util::TryStreamExt;
use memtrove_core::{Code, Error};
use memtrove_service::attachments::NewAttachment;
use memtrove_store::AllTenants;
use memtrove_store::TxExt;
use memtrove_store::vault::rotation::Rotation;
use memtrove_store::vault::{Keys, Vault, WrappingKey};

on_both_engines!(
    nothing_of_an_attachment_lies_open,
    shared_bytes_open_for_every_record,
    bytes_that_were_changed_are_not_handed_out,
    readers_are_never_sent_to_sealed_bytes,
    keys_are_exchanged_without_touching_the_bytes,
    bytes_that_are_older_than_encryption_stay_as_they_are,
    links_are_signed_with_what_a_copy_of_the_store_does_not_have,
    bytes_that_are_sealed_can_be_read_when_encryption_is_turned_off,
);

fn sealing() -> Vault {
    Vault::sealing(Keys::new(WrappingKey::new(&[1; 32]).unwrap(), Vec::new()))
}

const SECRET: &[u8] = b"the eagle lands at midnight";

impl Setting {
    async fn details(&self) -> Vec<u8> {
        let details = |tx: &mut dyn memtrove_store::Tx| {
            let rows = tx.rows("SELECT details FROM attachments", &[], |row| Ok(row.bytes(0)?.to_vec()))?;
            Ok::<_, Error>(rows.concat())
        };
        self.store.read(AllTenants, "test", details).await.unwrap()
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
    assert!(matches!(refused, Err(Error { code: Code::Internal, .. })), "{refused:?}");
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
    rotate(&setting).await;
    assert_ne!(setting.details().await, details);
    assert_eq!(std::fs::read(&setting.files()[0]).unwrap(), stored);
    assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), SECRET);
    assert_eq!(outcome(setting.services.attachments.get(&caller("alice"), uploaded.id).await), "ok");
}

/// What `memtrove rotate-keys` does, on a store that is opened to go from one way of writing to another.
async fn rotate(setting: &Setting) {
    let rotate = |tx: &mut dyn memtrove_store::Tx| {
        let rotation = Rotation { keep_derived_texts: true };
        rotation.begin(tx)?;
        while rotation.step(tx)?.is_some() {}
        rotation.finish(tx)?;
        Ok::<_, Error>(())
    };
    setting.store.write(AllTenants, "test", rotate).await.unwrap();
}

async fn bytes_that_are_older_than_encryption_stay_as_they_are(engine: Engine) {
    let setting = Setting::new(engine).await;
    let uploaded = setting.upload("alice", SECRET).await;
    let setting = setting.reopened(sealing().rotating()).await;
    rotate(&setting).await;
    let setting = setting.reopened(sealing()).await;
    let files = setting.files();
    setting.clean_up().await;
    assert_eq!(setting.files(), files);
    assert_eq!(std::fs::read(&files[0]).unwrap(), SECRET);
    assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), SECRET);
}

async fn links_are_signed_with_what_a_copy_of_the_store_does_not_have(engine: Engine) {
    let token = async |key: u8| {
        let vault = Vault::sealing(Keys::new(WrappingKey::new(&[key; 32]).unwrap(), Vec::new()));
        let setting = Setting::with(engine, vault, |_| {}).await;
        // All that these stores differ in is the key that is configured: clocks and ids are the same.
        let id = setting.upload("alice", SECRET).await.id;
        let url = setting.services.attachments.download_url(&caller("alice"), id).await.unwrap().url;
        let token = url.split('/').nth(4).unwrap().to_owned();
        assert_eq!(outcome(setting.services.attachments.open_signed(&token).await), "ok");
        (token, setting)
    };
    let ((one, setting), (same, _), (other, _)) = (token(1).await, token(1).await, token(2).await);
    assert_eq!(one, same, "nodes with one key make the same links");
    assert_ne!(one, other);
    assert_eq!(outcome(setting.services.attachments.open_signed(&other).await), "forbidden");
}

async fn bytes_that_are_sealed_can_be_read_when_encryption_is_turned_off(engine: Engine) {
    let setting = Setting::with(engine, sealing(), |_| {}).await;
    let uploaded = setting.upload("alice", SECRET).await;
    let keys = Keys::new(WrappingKey::new(&[1; 32]).unwrap(), Vec::new());
    let setting = setting.reopened(Vault::plain().reading_sealed(keys).rotating()).await;
    rotate(&setting).await;
    let setting = setting.reopened(Vault::plain()).await;
    setting.clean_up().await;
    assert_eq!(setting.bytes_of(&uploaded).await.unwrap(), SECRET);
}
