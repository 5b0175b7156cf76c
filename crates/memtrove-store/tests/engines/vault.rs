//! Encryption at rest: what is sealed, what is refused, and how keys are exchanged.

use memtrove_core::conversations::forks::View;
use memtrove_core::conversations::{Channel, Conversation, Entry};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, EntryId, GroupId, Json, Timestamp, UserId};
use memtrove_store::conversations::entries::{self, End, EntryFilter, Range};
use memtrove_store::conversations::rows::{self, NewConversation};
use memtrove_store::conversations::{groups, search};
use memtrove_store::sqlite::{self, SqliteConfig, SqliteEngine};
use memtrove_store::vault::rotation::{self, Rotation};
use memtrove_store::vault::{self, Keys, Vault, WrappingKey, seal_contexts};
use memtrove_store::{AllTenants, Store, StoreError, TextDocument, TextQuery, Traces, Tx, TxExt, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use uuid::Uuid;

/// The secret that must never be on disk.
const SECRET: &str = "the eagle lands at midnight";

fn key(number: u8) -> WrappingKey {
    WrappingKey::new(&[number; 32]).unwrap()
}

fn keys(current: u8, former: &[u8]) -> Keys {
    Keys::new(key(current), former.iter().map(|number| key(*number)).collect())
}

fn sealing(current: u8, former: &[u8]) -> Vault {
    Vault::sealing(keys(current, former))
}

fn tenant(name: &str) -> Tenant {
    Tenant::listed(name.into())
}

fn database(folder: &Path) -> PathBuf {
    folder.join("memtrove.db")
}

fn try_open(folder: &Path, vault: Vault) -> Result<Store, StoreError> {
    let config = SqliteConfig {
        path: database(folder),
        vault: Arc::new(vault),
        readers: 1,
        ..SqliteConfig::default()
    };
    SqliteEngine::open(config).map(|engine| Store::new(Arc::new(engine)))
}

fn open(folder: &Path, vault: Vault) -> Store {
    try_open(folder, vault).unwrap()
}

#[track_caller]
fn refusal(folder: &Path, vault: Vault) -> String {
    match try_open(folder, vault) {
        Ok(store) => panic!("{} should not have opened", store.describe()),
        Err(error) => error.to_string(),
    }
}

/// Runs work that writes, as the use cases do.
async fn write<T: Send + 'static>(
    store: &Store,
    work: impl Fn(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    store.write(AllTenants, "test", work).await
}

/// Everything in the folder's files, whatever they are.
fn on_disk(folder: &Path) -> Vec<u8> {
    std::fs::read_dir(folder).unwrap().flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

#[track_caller]
fn assert_on_disk(folder: &Path, text: &str, expected: bool) {
    let found = on_disk(folder).windows(text.len()).any(|window| window == text.as_bytes());
    assert_eq!(found, expected, "{text:?} on disk");
}

/// A conversation with a title, a preview and one entry, each holding [`SECRET`].
fn say(tx: &mut dyn Tx, of: &Tenant, number: u128) -> Result<(), StoreError> {
    let (id, group) = (ConversationId(Uuid::from_u128(number)), GroupId(own_id(of, number)));
    let (owner, now) = (UserId("alice".into()), Timestamp::from_micros(1));
    let (title, preview) = (format!("title: {SECRET}"), format!("preview: {SECRET}"));
    groups::insert(tx, of, group, id, &owner, now)?;
    let metadata = Json::stored("{}".into());
    let new = NewConversation {
        id,
        group,
        owner: &owner,
        title: Some(&title),
        metadata: &metadata,
        lineage: None,
        now,
    };
    rows::insert_if_absent(tx, of, &new)?;
    let entry = Entry {
        id: EntryId(own_id(of, number)),
        conversation_id: id,
        ord: 1,
        user_id: Some(owner),
        client_id: None,
        channel: Channel::History,
        epoch: None,
        content_type: "history".into(),
        content: Json::stored(content(number)),
        created_at: now,
    };
    entries::insert(tx, of, group, &entry, None)?;
    rows::set_latest_message(tx, of, id, now, Some(&preview), None)
}

fn content(number: u128) -> String {
    format!(r#"[{{"text":"{SECRET} {number}"}}]"#)
}

/// An id that is unique among all tenants, as those of groups and entries are.
fn own_id(of: &Tenant, number: u128) -> Uuid {
    let tenant = of.as_str().bytes().fold(0u128, |sum, byte| sum * 257 + u128::from(byte));
    Uuid::from_u128(tenant << 64 | number)
}

async fn conversation(store: &Store, of: &Tenant, number: u128) -> Result<Conversation, StoreError> {
    let (of, id) = (of.clone(), ConversationId(Uuid::from_u128(number)));
    store.read(AllTenants, "test", move |tx| Ok(rows::get_any(tx, &of, id)?.unwrap())).await
}

async fn entry(store: &Store, of: &Tenant, number: u128) -> Result<Entry, StoreError> {
    let id = own_id(of, number);
    store.read(AllTenants, "test", move |tx| Ok(entries::get(tx, GroupId(id), EntryId(id))?.unwrap())).await
}

/// Requires everything that [`say`] said.
async fn heard(store: &Store, of: &Tenant, number: u128) {
    let conversation = conversation(store, of, number).await.unwrap();
    let entry = entry(store, of, number).await.unwrap();
    assert_eq!(conversation.title.unwrap(), format!("title: {SECRET}"));
    assert_eq!(conversation.last_message_preview.unwrap(), format!("preview: {SECRET}"));
    assert_eq!(entry.content.get(), content(number));
}

async fn fill(store: &Store, of: &Tenant, numbers: std::ops::Range<u128>) {
    let of = of.clone();
    write(store, move |tx| numbers.clone().try_for_each(|number| say(tx, &of, number))).await.unwrap();
}

async fn all_heard(store: &Store, of: &Tenant, numbers: std::ops::Range<u128>) {
    for number in numbers {
        heard(store, of, number).await;
    }
}

/// Rotates to the end, as `memtrove rotate-keys` does; answers how many rows.
async fn rotate(folder: &Path, vault: Vault) -> u64 {
    let (store, rotation) = (open(folder, vault.rotating()), Rotation { keep_derived_texts: false });
    let progress = write(&store, move |tx| rotation.begin(tx)).await.unwrap();
    let mut rows = progress.rows;
    while let Some(visited) = write(&store, move |tx| rotation.step(tx)).await.unwrap() {
        rows = visited;
    }
    write(&store, move |tx| rotation.finish(tx)).await.unwrap();
    store.scrub(Traces::Texts).await.unwrap();
    store.close();
    if progress.leaves_traces {
        sqlite::rewrite(&database(folder)).unwrap();
    }
    rows
}

async fn number(store: &Store, sql: &'static str) -> i64 {
    store.read(AllTenants, "test", move |tx| tx.first(sql, &[], |row| row.int(0))).await.unwrap().unwrap()
}

fn noise(length: usize) -> Vec<u8> {
    // The first byte of an envelope is the one that content may not begin with.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8 & 0x7F
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test]
async fn what_is_sealed_comes_back() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    let contents = [
        vec![],
        b"x".to_vec(),
        SECRET.as_bytes().to_vec(),
        SECRET.repeat(1000).into_bytes(),
        noise(1023),
        noise(1024),
        noise(100_000),
    ];
    for content in contents {
        write(&store, move |tx| {
            let place = seal_contexts::file(1, "a.md");
            let sealed = vault::seal(tx, &tenant("acme"), &place, &content)?.into_owned();
            assert_ne!(sealed, content);
            assert!(sealed.len() <= content.len() + 64, "{} became {}", content.len(), sealed.len());
            assert!(std::str::from_utf8(&sealed).is_err(), "never to be taken for text");
            assert_eq!(vault::plain_length(&sealed[..vault::HEAD_LENGTH], sealed.len()), content.len());
            let again = vault::seal(tx, &tenant("acme"), &place, &content)?.into_owned();
            assert_ne!(sealed, again, "a nonce is used once");
            assert_eq!(vault::open(tx, &place, sealed)?, content);
            Ok(())
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn long_content_is_compressed() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    write(&store, |tx| {
        let (place, content) = (seal_contexts::file(1, "a.md"), SECRET.repeat(1000));
        let sealed = vault::seal(tx, &tenant("acme"), &place, content.as_bytes())?;
        assert!(sealed.len() < content.len() / 10, "{}", sealed.len());
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn without_encryption_content_is_stored_as_it_is() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), Vault::plain());
    write(&store, |tx| {
        let place = seal_contexts::file(1, "a.md");
        let sealed = vault::seal(tx, &tenant("acme"), &place, SECRET.as_bytes())?;
        assert!(matches!(sealed, std::borrow::Cow::Borrowed(_)), "not even copied");
        assert_eq!(&*sealed, SECRET.as_bytes());
        assert!(vault::seal(tx, &tenant("acme"), &place, &[0xF5, 1]).is_err(), "begins like an envelope");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(number(&store, "SELECT COUNT(*) FROM data_keys").await, 0);
}

#[tokio::test]
async fn every_byte_of_an_envelope_counts() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    write(&store, |tx| {
        let place = seal_contexts::file(1, "a.md");
        for content in [SECRET.to_owned(), SECRET.repeat(100)] {
            let sealed = vault::seal(tx, &tenant("acme"), &place, content.as_bytes())?.into_owned();
            for at in 0..sealed.len() {
                for bit in 0..8 {
                    let mut damaged = sealed.clone();
                    damaged[at] ^= 1 << bit;
                    assert!(vault::open(tx, &place, damaged).is_err(), "byte {at}, bit {bit}");
                }
            }
            for length in 0..sealed.len() {
                assert!(vault::open(tx, &place, sealed[..length].to_vec()).is_err(), "cut to {length}");
            }
            let longer = [sealed.as_slice(), &[0]].concat();
            assert!(vault::open(tx, &place, longer).is_err(), "one byte more");
            assert_eq!(vault::open(tx, &place, sealed)?, content.as_bytes());
        }
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn content_opens_only_where_it_was_sealed() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    write(&store, |tx| {
        let (acme, other, id) = (tenant("acme"), tenant("other"), ConversationId(Uuid::from_u128(1)));
        let place = seal_contexts::conversation_title(&acme, id);
        let sealed = vault::seal(tx, &acme, &place, SECRET.as_bytes())?.into_owned();
        let elsewhere = [
            seal_contexts::conversation_preview(&acme, id),
            seal_contexts::conversation_title(&other, id),
            seal_contexts::conversation_title(&acme, ConversationId(Uuid::from_u128(2))),
            seal_contexts::entry_content(EntryId(id.0)),
        ];
        for place in elsewhere {
            let refused = vault::open(tx, &place, sealed.clone()).unwrap_err().to_string();
            assert!(refused.contains("bad_tag") && refused.contains(place.purpose()), "{refused}");
            assert!(!refused.contains(SECRET), "{refused}");
        }
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn rows_cannot_be_swapped_in_the_database() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    let (acme, other) = (tenant("acme"), tenant("other"));
    fill(&store, &acme, 1..4).await;
    fill(&store, &other, 3..4).await;
    let (first, second) = (own_id(&acme, 1), own_id(&acme, 2));
    write(&store, move |tx| {
        tx.execute(
            "UPDATE entries SET content = (SELECT content FROM entries WHERE id = $1) WHERE id = $2",
            &[first.into(), second.into()],
        )?;
        // The same conversation id, in another tenant.
        tx.execute(
            "UPDATE conversations SET title = (SELECT title FROM conversations WHERE tenant = 'acme' AND id = $1) \
             WHERE tenant = 'other' AND id = $1",
            &[Uuid::from_u128(3).into()],
        )
    })
    .await
    .unwrap();
    let swapped = entry(&store, &acme, 2).await.unwrap_err().to_string();
    assert!(swapped.contains("entry.content") && swapped.contains("bad_tag"), "{swapped}");
    let swapped = conversation(&store, &other, 3).await.unwrap_err().to_string();
    assert!(swapped.contains("conversation.title") && swapped.contains("bad_tag"), "{swapped}");
    heard(&store, &acme, 1).await;
    heard(&store, &acme, 3).await;
}

#[tokio::test]
async fn a_data_key_cannot_be_given_to_another_tenant() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    let acme = tenant("acme");
    fill(&store, &acme, 1..2).await;
    write(&store, |tx| tx.execute("UPDATE data_keys SET tenant = 'other'", &[])).await.unwrap();
    store.close();
    let store = open(folder.path(), sealing(1, &[]));
    let refused = entry(&store, &acme, 1).await.unwrap_err().to_string();
    assert!(refused.contains("bad_tag"), "{refused}");
    let refused = write(&store, |tx| say(tx, &tenant("other"), 9)).await.unwrap_err().to_string();
    assert!(refused.contains("bad_tag"), "{refused}");
}

#[tokio::test]
async fn nothing_that_was_said_is_on_disk() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    fill(&store, &tenant("acme"), 1..50).await;
    assert_on_disk(folder.path(), SECRET, false);
    store.close();
    assert_on_disk(folder.path(), SECRET, false);
    all_heard(&open(folder.path(), sealing(1, &[])), &tenant("acme"), 1..50).await;
}

#[tokio::test]
async fn every_tenant_has_a_key_of_its_own() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    fill(&store, &tenant("acme"), 1..5).await;
    fill(&store, &tenant("other"), 1..5).await;
    assert_eq!(number(&store, "SELECT COUNT(*) FROM data_keys").await, 2);
}

#[tokio::test]
async fn a_key_that_was_undone_is_not_used_again() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    let acme = tenant("acme");
    let undone = write(&store, |tx| {
        say(tx, &tenant("acme"), 1)?;
        Err::<(), _>(StoreError::Overloaded)
    });
    undone.await.unwrap_err();
    assert_eq!(number(&store, "SELECT COUNT(*) FROM data_keys").await, 0);
    fill(&store, &acme, 1..2).await;
    store.close();
    heard(&open(folder.path(), sealing(1, &[])), &acme, 1).await;
}

#[tokio::test]
async fn a_key_that_is_not_configured_is_named_at_the_start() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    fill(&store, &tenant("acme"), 1..2).await;
    store.close();
    let refused = refusal(folder.path(), sealing(2, &[]));
    assert!(refused.contains(key(1).id()) && refused.contains(key(2).id()), "{refused}");
    assert!(refused.contains("encryption.dek.decryption_keys"), "{refused}");
    let refused = refusal(folder.path(), Vault::plain());
    assert!(refused.contains("encrypted") && refused.contains("encryption.dek.key"), "{refused}");
    heard(&open(folder.path(), sealing(2, &[1])), &tenant("acme"), 1).await;
}

#[tokio::test]
async fn plain_content_must_be_sealed_or_read_on_purpose() {
    let folder = TempDir::new().unwrap();
    let acme = tenant("acme");
    open(folder.path(), Vault::plain()).close();
    // A store without content has nothing to seal.
    open(folder.path(), sealing(1, &[])).close();
    let store = open(folder.path(), Vault::plain());
    fill(&store, &acme, 1..2).await;
    store.close();
    let refused = refusal(folder.path(), sealing(1, &[]));
    assert!(refused.contains("memtrove rotate-keys") && refused.contains("\"plain\""), "{refused}");

    let store = open(folder.path(), sealing(1, &[]).reading_plain());
    fill(&store, &acme, 2..3).await;
    all_heard(&store, &acme, 1..3).await;
    store.close();
    assert_on_disk(folder.path(), &content(1), true);
    assert_on_disk(folder.path(), &content(2), false);
    let store = open(folder.path(), Vault::plain().reading_sealed(keys(1, &[])));
    fill(&store, &acme, 3..4).await;
    all_heard(&store, &acme, 1..4).await;
    assert_on_disk(folder.path(), &content(3), true);
}

#[tokio::test]
async fn a_plain_row_is_not_believed_where_everything_is_sealed() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    let acme = tenant("acme");
    fill(&store, &acme, 1..3).await;
    let id = own_id(&acme, 1);
    write(&store, move |tx| {
        tx.execute(
            "UPDATE entries SET content = $2 WHERE id = $1",
            &[id.into(), Value::Bytes(b"[\"forged\"]")],
        )
    })
    .await
    .unwrap();
    let refused = entry(&store, &acme, 1).await.unwrap_err().to_string();
    assert!(refused.contains("plain_row"), "{refused}");
    heard(&store, &acme, 2).await;
}

#[tokio::test]
async fn encryption_is_turned_on_renewed_and_turned_off() {
    let folder = TempDir::new().unwrap();
    let (path, acme, other) = (folder.path(), tenant("acme"), tenant("other"));
    let store = open(path, Vault::plain());
    fill(&store, &acme, 1..600).await;
    fill(&store, &other, 1..3).await;
    store.close();
    assert_on_disk(path, SECRET, true);

    assert_eq!(rotate(path, sealing(1, &[])).await, 2 * 601);
    assert_on_disk(path, SECRET, false);
    let store = open(path, sealing(1, &[]));
    all_heard(&store, &acme, 1..600).await;
    all_heard(&store, &other, 1..3).await;
    store.close();

    let before = on_disk(path);
    assert_eq!(rotate(path, sealing(2, &[1])).await, 2 * 601);
    assert_ne!(before, on_disk(path));
    refusal(path, sealing(1, &[]));
    let store = open(path, sealing(2, &[]));
    assert_eq!(number(&store, "SELECT COUNT(*) FROM data_keys").await, 2, "old keys are gone");
    all_heard(&store, &acme, 1..600).await;
    store.close();

    rotate(path, Vault::plain().reading_sealed(keys(2, &[]))).await;
    let store = open(path, Vault::plain());
    assert_eq!(number(&store, "SELECT COUNT(*) FROM data_keys").await, 0);
    all_heard(&store, &acme, 1..600).await;
    all_heard(&store, &other, 1..3).await;
    store.close();
    let refused = refusal(path, sealing(2, &[]));
    assert!(refused.contains("not encrypted"), "{refused}");
}

#[tokio::test]
async fn only_wrapping_leaves_content_alone() {
    let folder = TempDir::new().unwrap();
    let acme = tenant("acme");
    let store = open(folder.path(), sealing(1, &[]));
    fill(&store, &acme, 1..2).await;
    let content =
        |tx: &mut dyn Tx| tx.first("SELECT content FROM entries", &[], |row| Ok(row.bytes(0)?.to_vec()));
    let before = store.read(AllTenants, "test", content).await.unwrap();
    store.close();

    let store = open(folder.path(), sealing(2, &[1]).rotating());
    assert_eq!(write(&store, rotation::rewrap).await.unwrap(), 1);
    assert_eq!(write(&store, rotation::rewrap).await.unwrap(), 0);
    assert_eq!(store.read(AllTenants, "test", content).await.unwrap(), before);
    store.close();
    heard(&open(folder.path(), sealing(2, &[])), &acme, 1).await;
}

#[tokio::test]
async fn an_interrupted_rotation_goes_on_where_it_was() {
    let folder = TempDir::new().unwrap();
    let (path, acme, rotation) = (folder.path(), tenant("acme"), Rotation { keep_derived_texts: false });
    let store = open(path, Vault::plain());
    fill(&store, &acme, 1..1000).await;
    store.close();

    let store = open(path, sealing(1, &[]).rotating());
    let begun = write(&store, move |tx| rotation.begin(tx)).await.unwrap();
    assert_eq!((begun.rows, begun.total), (0, 2 * 999));
    let mut rows = 0;
    while rows < 1300 {
        rows = write(&store, move |tx| rotation.step(tx)).await.unwrap().unwrap();
    }
    // Neither before nor after the end may the keys go.
    write(&store, move |tx| rotation.finish(tx)).await.unwrap_err();
    store.close();
    let refused = refusal(path, sealing(1, &[]));
    assert!(refused.contains("rotate-keys"), "{refused}");

    let store = open(path, sealing(1, &[]).rotating());
    all_heard(&store, &acme, 1..1000).await;
    let begun = write(&store, move |tx| rotation.begin(tx)).await.unwrap();
    assert_eq!(begun.rows, rows);
    store.close();
    assert_eq!(rotate(path, sealing(1, &[])).await, 2 * 999);
    assert_on_disk(path, SECRET, false);
    all_heard(&open(path, sealing(1, &[])), &acme, 1..1000).await;
}

#[tokio::test]
async fn a_rotation_starts_over_when_somebody_wrote_meanwhile_or_it_changed_its_mind() {
    let folder = TempDir::new().unwrap();
    let (path, acme, rotation) = (folder.path(), tenant("acme"), Rotation { keep_derived_texts: false });
    let store = open(path, sealing(1, &[]));
    fill(&store, &acme, 100..1000).await;
    store.close();

    // Turning off, interrupted…
    let off = || Vault::plain().reading_sealed(keys(1, &[]));
    let store = open(path, off().rotating());
    write(&store, move |tx| rotation.begin(tx)).await.unwrap();
    for _ in 0..6 {
        write(&store, move |tx| rotation.step(tx)).await.unwrap();
    }
    store.close();
    // …while a server seals something where the rotation has been already.
    let store = open(path, sealing(1, &[]).reading_plain());
    fill(&store, &acme, 1..100).await;
    store.close();
    rotate(path, off()).await;
    let store = open(path, Vault::plain());
    all_heard(&store, &acme, 1..1000).await;
    store.close();

    // Turning on, interrupted, and then with another key.
    let store = open(path, sealing(1, &[]).rotating());
    write(&store, move |tx| rotation.begin(tx)).await.unwrap();
    for _ in 0..6 {
        write(&store, move |tx| rotation.step(tx)).await.unwrap();
    }
    store.close();
    rotate(path, sealing(2, &[1])).await;
    assert_on_disk(path, SECRET, false);
    all_heard(&open(path, sealing(2, &[])), &acme, 1..1000).await;
}

#[tokio::test]
async fn a_row_that_cannot_be_opened_stops_a_rotation_and_is_named() {
    let folder = TempDir::new().unwrap();
    let (acme, rotation) = (tenant("acme"), Rotation { keep_derived_texts: false });
    let store = open(folder.path(), sealing(1, &[]));
    fill(&store, &acme, 1..3).await;
    let id = own_id(&acme, 1);
    write(&store, move |tx| tx.execute("UPDATE entries SET content = X'F500' WHERE id = $1", &[id.into()]))
        .await
        .unwrap();
    store.close();
    let store = open(folder.path(), sealing(2, &[1]).rotating());
    write(&store, move |tx| rotation.begin(tx)).await.unwrap();
    let refused = loop {
        match write(&store, move |tx| rotation.step(tx)).await {
            Ok(visited) => assert!(visited.is_some(), "it should have stopped"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("malformed_envelope"), "{refused}");
    assert!(refused.contains(&format!("table entries, row id = {id}")), "{refused}");
    store.close();
    heard(&open(folder.path(), sealing(2, &[1])), &acme, 2).await;
}

/// One row in every sealed table of files, of a scope that is there and of one that was forgotten.
fn keep_files(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let acme = tenant("acme");
    tx.execute(
        "INSERT INTO scopes (id, tenant, user_id, next_sequence, file_count, event_count, open_block) \
         VALUES (1, 'acme', 'alice', 1, 0, 0, 0)",
        &[],
    )?;
    for scope in [1i64, 2] {
        let change = Uuid::from_u128(scope as u128);
        let mut seal = |place: &vault::SealContext<'_>| {
            vault::seal(tx, &acme, place, SECRET.as_bytes()).map(std::borrow::Cow::into_owned)
        };
        let document = seal(&seal_contexts::file(scope, "a.md"))?;
        let (record, image) =
            (seal(&seal_contexts::audit_record(change))?, seal(&seal_contexts::audit_image(change))?);
        let (event, block) =
            (seal(&seal_contexts::event(scope, "e"))?, seal(&seal_contexts::event_block(scope, 0))?);
        let answer = seal(&seal_contexts::file_idempotency(scope, "p", "k"))?;
        let (scope, change) = (Value::Int(scope), Value::Uuid(change));
        tx.execute(
            "INSERT INTO files (scope_id, path, folded_path, revision, change_id, updated_at, chars, document) \
             VALUES ($1, 'a.md', 'a.md', 1, $2, 1, 1, $3)",
            &[scope, change, document.as_slice().into()],
        )?;
        tx.execute(
            "INSERT INTO audit (scope_id, sequence, change_id, at, path, revision, record, image) \
             VALUES ($1, 1, $2, 1, 'a.md', 1, $3, $4)",
            &[scope, change, record.as_slice().into(), image.as_slice().into()],
        )?;
        tx.execute(
            "INSERT INTO events (scope_id, block, event_id, timestamp, event) VALUES ($1, 0, 'e', 1, $2)",
            &[scope, event.as_slice().into()],
        )?;
        tx.execute(
            "INSERT INTO event_blocks (scope_id, block, body) VALUES ($1, 0, $2)",
            &[scope, block.as_slice().into()],
        )?;
        tx.execute(
            "INSERT INTO file_idempotency (scope_id, principal, key, fingerprint, created_at, answer) \
             VALUES ($1, 'p', 'k', X'00', 1, $2)",
            &[scope, answer.as_slice().into()],
        )?;
    }
    Ok(())
}

#[tokio::test]
async fn files_are_sealed_anew_too_and_what_is_forgotten_is_passed_over() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    write(&store, keep_files).await.unwrap();
    store.close();
    assert_eq!(rotate(folder.path(), sealing(2, &[1])).await, 5);
    let store = open(folder.path(), sealing(2, &[]));
    write(&store, |tx| {
        let change = Uuid::from_u128(1);
        let columns = [
            ("SELECT document FROM files WHERE scope_id = $1", seal_contexts::file(1, "a.md")),
            ("SELECT record FROM audit WHERE scope_id = $1", seal_contexts::audit_record(change)),
            ("SELECT image FROM audit WHERE scope_id = $1", seal_contexts::audit_image(change)),
            ("SELECT event FROM events WHERE scope_id = $1", seal_contexts::event(1, "e")),
            ("SELECT body FROM event_blocks WHERE scope_id = $1", seal_contexts::event_block(1, 0)),
            (
                "SELECT answer FROM file_idempotency WHERE scope_id = $1",
                seal_contexts::file_idempotency(1, "p", "k"),
            ),
        ];
        for (sql, place) in columns {
            let stored = tx.first(sql, &[Value::Int(1)], |row| Ok(row.bytes(0)?.to_vec()))?.unwrap();
            assert_eq!(vault::open(tx, &place, stored)?, SECRET.as_bytes(), "{sql}");
            let forgotten = tx.first(sql, &[Value::Int(2)], |row| Ok(row.bytes(0)?.to_vec()))?.unwrap();
            let gone = vault::open(tx, &place, forgotten).unwrap_err().to_string();
            assert!(gone.contains("unknown_key"), "{gone}");
        }
        Ok(())
    })
    .await
    .unwrap();
}

/// A text in the index, derived (on the indexers' work list) or given.
fn index(tx: &mut dyn Tx, number: u128, word: &str, derived: bool) -> Result<(), StoreError> {
    let id = own_id(&tenant("acme"), number);
    if derived {
        tx.execute(
            "INSERT INTO unindexed (tenant, created_at, entry_id, group_id) VALUES ('acme', 1, $1, $1)",
            &[id.into()],
        )?;
    }
    tx.index_text(TextDocument {
        is_new: false,
        id,
        tenant: "acme".into(),
        group: id,
        conversation: Uuid::from_u128(number),
        text: word.into(),
        by_agent: None,
        terms: word.into(),
    })
}

async fn found(store: &Store, word: &str) -> usize {
    let query = TextQuery { tenant: "acme".into(), words: vec![vec![word.into()]], groups: None };
    let count = store.read(AllTenants, "test", move |tx| {
        let mut hits = 0;
        tx.search_text(&query, &mut |_| {
            hits += 1;
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok::<_, StoreError>(hits)
    });
    count.await.unwrap()
}

#[tokio::test]
async fn derived_texts_go_when_content_is_sealed_unless_they_are_wanted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let store = open(path, Vault::plain());
    fill(&store, &tenant("acme"), 1..3).await;
    write(&store, |tx| {
        index(tx, 1, "zanzibar", true)?;
        index(tx, 2, "timbuktu", false)
    })
    .await
    .unwrap();
    store.close();

    rotate(path, sealing(1, &[])).await;
    let store = open(path, sealing(1, &[]));
    assert_eq!((found(&store, "zanzibar").await, found(&store, "timbuktu").await), (0, 1));
    store.close();
    assert_on_disk(path, "zanzibar", false);
    assert_on_disk(path, "timbuktu", true);
}

#[test]
fn a_database_of_the_first_schema_is_brought_along() {
    let folder = TempDir::new().unwrap();
    let old = rusqlite::Connection::open(database(folder.path())).unwrap();
    let schema = include_str!("../../src/sqlite/migrations/0001_conversations.sql");
    old.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; BEGIN; {schema} PRAGMA user_version = 1; COMMIT;"
    ))
    .unwrap();
    let (id, group) = (Uuid::from_u128(1), own_id(&tenant("acme"), 1));
    old.execute(
        "INSERT INTO groups VALUES (?1, 'acme', 'alice', 1, NULL, 2, 1, 5, ?2)",
        (group.as_bytes(), id.as_bytes()),
    )
    .unwrap();
    old.execute(
        "INSERT INTO conversations VALUES ('acme', ?1, ?2, 'alice', NULL, NULL, 1, 1, 5, NULL, ?3, ?4, '{}')",
        (id.as_bytes(), group.as_bytes(), format!("title: {SECRET}"), format!("preview: {SECRET}")),
    )
    .unwrap();
    old.execute(
        "INSERT INTO conversations VALUES ('acme', ?1, ?2, 'alice', ?3, NULL, 0, 1, 4, NULL, NULL, NULL, '{}')",
        (Uuid::from_u128(2).as_bytes(), group.as_bytes(), id.as_bytes()),
    )
    .unwrap();
    old.execute(
        "INSERT INTO entries (group_id, conversation_id, channel, ord, id, content_type, created_at, content) \
         VALUES (?1, ?2, 1, 1, ?1, 'history', 1, ?3)",
        (group.as_bytes(), id.as_bytes(), content(1).as_bytes()),
    )
    .unwrap();
    // What was deleted then was only marked as free.
    old.execute_batch("CREATE TABLE gone (text TEXT); INSERT INTO gone VALUES ('the walrus and the carpenter'); DROP TABLE gone;")
        .unwrap();
    drop(old);
    assert_on_disk(folder.path(), "the walrus", true);
    let before = on_disk(folder.path());
    let found = sqlite::inspect(&database(folder.path()), sealing(1, &[])).unwrap();
    assert!(found.schema == 1 && found.readable.is_none(), "{found:?}");
    assert!(on_disk(folder.path()) == before, "looking changes nothing");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (path, acme) = (folder.path(), tenant("acme"));
        let refused = refusal(path, sealing(1, &[]));
        assert!(refused.contains("not encrypted"), "{refused}");
        let store = open(path, Vault::plain());
        heard(&store, &acme, 1).await;
        assert_eq!(conversation(&store, &acme, 2).await.unwrap().title, None);
        let indexes = "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'conversations' AND sql IS NOT NULL";
        assert_eq!(number(&store, indexes).await, 2);
        store.close();
        rotate(path, sealing(1, &[])).await;
        assert_on_disk(path, SECRET, false);
        assert_on_disk(path, "the walrus", false);
        heard(&open(path, sealing(1, &[])), &acme, 1).await;
    });
}

#[tokio::test]
async fn a_page_is_bounded_by_what_it_holds_and_not_by_what_that_takes_on_disk() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path(), sealing(1, &[]));
    let page = write(&store, |tx| {
        let (acme, group) = (tenant("acme"), GroupId(Uuid::from_u128(1)));
        let conversation = ConversationId(Uuid::from_u128(2));
        let mut ids = Vec::new();
        for ord in 1..=3 {
            let id = Uuid::from_u128(10 + ord as u128);
            let entry = Entry {
                id: EntryId(id),
                conversation_id: conversation,
                ord,
                user_id: None,
                client_id: None,
                channel: Channel::History,
                epoch: None,
                content_type: "history".into(),
                content: Json::stored(format!("[\"{}\"]", "x".repeat(12 << 20))),
                created_at: Timestamp::from_micros(1),
            };
            entries::insert(tx, &acme, group, &entry, None)?;
            ids.push(id);
        }
        for (_, bytes) in search::content_bytes(tx, &ids)? {
            assert_eq!(bytes, (12 << 20) + 4);
        }
        let filter = EntryFilter { history: true, memory: None };
        let range = Range { after: 0, before: i64::MAX, end: End::Oldest, limit: 10 };
        entries::page(tx, group, &View::new(conversation, Vec::new()), &filter, range)
    });
    let page = page.await.unwrap();
    assert_eq!((page.entries.len(), page.cut), (2, Some(3)));
    let size = std::fs::metadata(database(folder.path()).with_extension("db-wal")).unwrap().len();
    assert!(size < 1 << 20, "{size}");
}
