//! The format itself, and the way of every table through it.

use super::format::{Batch, Reader, Writer};
use super::tables::{By, ColumnKind, Owner, TABLES, Table};
use super::*;
use crate::AllTenants;
use crate::postgres::{PostgresConfig, PostgresEngine};
use crate::{FeedEntry, Store, StoreError, Tx, Value};
use memtrove_core::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// A generator of numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.roll() as u8).collect()
    }
}

const TENANTS: [&str; 3] = ["acme", "globex", "ünï"];
const GROUPS: u128 = 12;
const NUMBERS: u64 = 16;

fn about() -> About {
    About { id: Uuid::from_u128(7), version: "1.2.3".into(), at: Timestamp::from_micros(1_000_000) }
}

/// Something for a column: references mostly lead somewhere, and some values are null.
fn value(
    dice: &mut Dice,
    table: &Table,
    name: &str,
    kind: ColumnKind,
    may_be_null: bool,
    at: u64,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text: String;
    let blob: Vec<u8>;
    let is_own_number = table.key == 1 && table.columns[0].name == name && kind == ColumnKind::Int;
    let value = match kind {
        _ if may_be_null && dice.below(3) == 0 => Value::Null,
        ColumnKind::Int if is_own_number && name == "place" => {
            Value::Int(((at % NUMBERS + 1) << 36 | at) as i64)
        }
        ColumnKind::Int if is_own_number => Value::Int(at as i64 + 1),
        ColumnKind::Int => Value::Int(dice.below(NUMBERS) as i64 + 1),
        ColumnKind::Real => Value::Real(f64::from_bits(dice.roll() >> 2)),
        ColumnKind::Text if name == "tenant" => Value::Text(TENANTS[dice.below(3) as usize]),
        ColumnKind::Text => {
            text = format!("{} ß東京 {}", dice.roll(), dice.below(9));
            Value::Text(&text)
        }
        ColumnKind::Bytes => {
            blob = dice.bytes(200);
            Value::Bytes(&blob)
        }
        ColumnKind::Uuid if name == "group_id" => {
            Value::Uuid(Uuid::from_u128(u128::from(dice.below(GROUPS as u64))))
        }
        ColumnKind::Uuid if table.name == "groups" && name == "id" => {
            Value::Uuid(Uuid::from_u128(u128::from(at)))
        }
        ColumnKind::Uuid => {
            Value::Uuid(Uuid::from_u128(u128::from(dice.roll()) << 64 | u128::from(dice.roll())))
        }
    };
    rows::append(&mut bytes, value).unwrap();
    bytes
}

/// Columns that hold null now and then, which each engine's schema allows.
const NULLABLE: [&str; 16] = [
    "deleted_at",
    "parent_id",
    "title",
    "preview",
    "memory_of",
    "epoch",
    "chain_digest",
    "uniform_type",
    "image",
    "previous_id",
    "expires_at",
    "occurred_at",
    "author_user",
    "model",
    "due",
    "resource",
];

/// Rows in every table.
async fn fill(store: &Store, seed: u64) {
    let write = move |tx: &mut dyn Tx| {
        let mut dice = Dice(seed);
        // A store with data keys cannot be opened without the key that wraps them.
        for table in TABLES.iter().filter(|table| table.name != "data_keys") {
            let rows = if table.name == "groups" { GROUPS as u64 } else { 40 };
            for at in 0..rows {
                let mut bytes = Vec::new();
                for column in table.columns {
                    let null = NULLABLE.contains(&column.name);
                    bytes.extend(value(&mut dice, table, column.name, column.kind, null, at));
                }
                let mut rest = bytes.as_slice();
                let mut row = rows::take_row(&mut rest, table.columns).unwrap();
                match table.by {
                    By::Replacing => row[0] = Value::Text("digest_key"),
                    By::Indexing => {
                        let [
                            Value::Uuid(id),
                            Value::Uuid(group),
                            Value::Uuid(conversation),
                            Value::Text(text),
                            _,
                        ] = row[..]
                        else {
                            panic!("texts have other columns: {row:?}")
                        };
                        let document = crate::TextDocument {
                            is_new: false,
                            id,
                            tenant: "acme".into(),
                            group,
                            conversation,
                            text: text.to_owned(),
                            by_agent: [None, Some(true), Some(false)][at as usize % 3],
                            terms: text.to_owned(),
                        };
                        tx.index_text(document)?;
                        continue;
                    }
                    By::Inserting | By::Adding => {}
                }
                let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
                let places: Vec<String> = (1..=row.len()).map(|at| format!("${at}")).collect();
                let sql = format!(
                    "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING",
                    table.name,
                    names.join(", "),
                    places.join(", ")
                );
                tx.execute(&sql, &row)?;
            }
        }
        // As if the last ones given were gone.
        for table in ["scopes", "forgotten_users", "memory_scopes", "memories"] {
            tx.number_past(table, 100)?;
        }
        Ok::<_, StoreError>(())
    };
    store.write(AllTenants, "fill", write).await.unwrap();
}

async fn archive_of(store: &Store, tenant: Option<&'static str>) -> (Vec<u8>, Summary) {
    let shared = store.is_shared();
    let export =
        move |tx: &mut dyn Tx| export(tx, &about(), &Selection { tenant, shared }, false, Vec::new(), |_| {});
    let Exported { sink, summary, .. } =
        store.read(AllTenants, "export", export).await.unwrap().finish(None).unwrap();
    (sink, summary)
}

async fn checksum_of(store: &Store, tenant: Option<&'static str>) -> Summary {
    let shared = store.is_shared();
    store
        .read(AllTenants, "checksum", move |tx| checksum(tx, &Selection { tenant, shared }, |_| {}))
        .await
        .unwrap()
}

fn terms() -> Terms {
    Arc::new(str::to_owned)
}

fn batches(bytes: &[u8]) -> Result<(Header, Vec<Batch>, Summary), ArchiveError> {
    let mut reader = Reader::new(bytes)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        batches.push(batch);
    }
    Ok((reader.header().clone(), batches, reader.summary()))
}

async fn begin(store: &Store, bytes: &[u8]) -> Result<(Import, Vec<Batch>, Summary), ArchiveError> {
    let (header, batches, summary) = batches(bytes)?;
    let mut tenants = BTreeSet::new();
    batches.iter().for_each(|batch| batch.note_tenants(&mut tenants));
    let now = Timestamp::from_micros(0);
    let import = Import::begin(store.clone(), header, Some(tenants), terms(), now).await?;
    Ok((import, batches, summary))
}

async fn take_in(store: &Store, bytes: &[u8]) -> Result<ImportOutcome, ArchiveError> {
    let (mut import, batches, summary) = begin(store, bytes).await?;
    for batch in batches {
        import.write(batch).await?;
    }
    import.finish(&summary, |_| {}).await
}

/// Bytes for every key that does not end with an eight: as many pieces as the key has bytes.
#[derive(Default)]
struct Bytes(String);

impl ByteSource for Bytes {
    fn find(&mut self, key: &str) -> Result<bool, ArchiveError> {
        key.clone_into(&mut self.0);
        Ok(!key.ends_with('8'))
    }

    fn read(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>) -> Result<(), ArchiveError> {
        self.0.bytes().try_for_each(|byte| each(&[byte; 100]))
    }
}

#[tokio::test]
async fn bytes_of_attachments_follow_the_rows_they_belong_to() {
    let store = Store::in_memory().unwrap();
    fill(&store, 3).await;
    let ready = |tx: &mut dyn Tx| tx.execute("UPDATE attachments SET status = 3, deleted_at = NULL", &[]);
    store.write(AllTenants, "ready", ready).await.unwrap();
    let export = |tx: &mut dyn Tx| {
        let of = Selection { tenant: Some("acme"), shared: false };
        let keys = crate::attachments::keys_of_bytes(tx, of.tenant)?;
        export(tx, &about(), &of, true, Vec::new(), |_| {}).map(|rows| (keys, rows))
    };
    let (keys, rows) = store.read(AllTenants, "export", export).await.unwrap();
    let Exported { sink: archive, summary, missing } = rows.finish(Some(&mut Bytes::default())).unwrap();
    let expected: Vec<&String> = keys.iter().filter(|key| !key.ends_with('8')).collect();
    assert_eq!(missing as usize, keys.len() - expected.len());
    assert!(!expected.is_empty() && expected.len() < keys.len(), "{keys:?}");

    let mut reader = Reader::new(archive.as_slice()).unwrap();
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    while let Some(part) = reader.next_part().unwrap() {
        match part {
            ArchivePart::Rows(_) => assert!(found.is_empty(), "rows come first"),
            ArchivePart::Blob(key) => found.push((key, Vec::new())),
            ArchivePart::Bytes(bytes) => found.last_mut().unwrap().1.extend(bytes),
            ArchivePart::BlobEnd => {}
        }
    }
    assert_eq!(found.iter().map(|(key, _)| key).collect::<Vec<_>>(), expected);
    for (key, bytes) in &found {
        assert_eq!(*bytes, key.bytes().flat_map(|byte| [byte; 100]).collect::<Vec<_>>());
    }
    assert_eq!((summary.blobs, reader.summary()), (expected.len() as u64, summary.clone()));
    let without = archive_of(&store, Some("acme")).await.1;
    assert_eq!(summary.digest, without.digest, "they are not in the store");
    for end in (0..archive.len()).step_by(97) {
        assert!(batches(&archive[..end]).is_err(), "cut off after {end} bytes");
    }
}

fn small_archive() -> Vec<u8> {
    let header = Header::new(Uuid::from_u128(1), "1.2.3", Timestamp::from_micros(5), Some("acme"));
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut dice = Dice(1);
    for table in [&TABLES[0], &TABLES[2]] {
        writer.begin(table).unwrap();
        for _ in 0..3 {
            let mut row = Vec::new();
            for column in table.columns {
                row.extend(value(&mut dice, table, column.name, column.kind, true, 0));
            }
            writer.rows(1, &row).unwrap();
        }
        writer.end(table).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn an_archive_that_was_cut_anywhere_is_refused_and_called_so() {
    let whole = small_archive();
    assert_eq!(batches(&whole).unwrap().2.rows, 6);
    for length in 1..whole.len() {
        let error = batches(&whole[..length]).err();
        let error = error.unwrap_or_else(|| panic!("{length} of {} bytes were enough", whole.len()));
        assert!(matches!(error, ArchiveError::CutOff { .. }), "{length}: {error}");
        assert!(error.to_string().contains("the file ends before the archive does"), "{error}");
    }
    assert!(matches!(batches(&[]), Err(ArchiveError::Empty)));
    for foreign in [&b"P"[..], b"PK\x03\x04 something else", &zstd::encode_all(&b"memtrove"[..], 1).unwrap()]
    {
        assert!(matches!(batches(foreign), Err(ArchiveError::Foreign)));
    }
    let followed = [whole.as_slice(), b"more"].concat();
    assert!(batches(&followed).is_err());
    let twice = [whole.as_slice(), &whole].concat();
    assert!(batches(&twice).is_err());
}

#[test]
fn an_archive_with_a_flipped_bit_is_refused_or_the_same() {
    let whole = small_archive();
    let content = |bytes: &[u8]| {
        batches(bytes).map(|(_, batches, summary)| {
            (batches.iter().flat_map(|batch| batch.bytes.to_vec()).collect::<Vec<u8>>(), summary)
        })
    };
    let (expected, mut unnoticed) = (content(&whole).unwrap(), 0);
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(found) = content(&changed) {
            // There are bits in a zstd stream that say nothing about its content.
            assert_eq!(found, expected, "bit {bit}");
            unnoticed += 1;
        }
    }
    assert!(unnoticed * 100 < whole.len() * 8, "{unnoticed} flipped bits were not noticed");
}

/// The same inside the compressed stream: whoever changes an archive with the right tools is noticed too.
#[test]
fn a_changed_frame_is_refused_where_it_is() {
    let plain = zstd::decode_all(small_archive().as_slice()).unwrap();
    for at in 0..plain.len() {
        let mut changed = plain.clone();
        changed[at] ^= 0x01;
        let bytes = zstd::encode_all(changed.as_slice(), 1).unwrap();
        assert!(batches(&bytes).is_err(), "byte {at} of {}", plain.len());
        let cut = zstd::encode_all(&plain[..at], 1).unwrap();
        assert!(batches(&cut).is_err(), "cut at {at} of {}", plain.len());
    }
}

#[test]
fn a_refusal_says_where_the_archive_is_damaged() {
    let plain = zstd::decode_all(small_archive().as_slice()).unwrap();
    let refusal = |bytes: &[u8]| batches(&zstd::encode_all(bytes, 1).unwrap()).unwrap_err().to_string();
    let table = plain.windows(8).position(|window| window == b"\"groups\"").unwrap();
    let mut changed = plain.clone();
    changed[table + 2] = b'R';
    assert_eq!(
        refusal(&changed),
        "the archive is damaged after table data_keys: its content is not what was written; use another copy of it"
    );
    assert!(refusal(&plain[..plain.len() - 20]).contains("is cut off after table groups: the file ends"));
    assert_eq!(refusal(b"something else entirely"), ArchiveError::Foreign.to_string());
}

#[test]
fn an_archive_of_a_later_format_says_so() {
    let mut frames = frame::FrameWriter::new(Vec::new()).unwrap();
    let header = br#"{"format":2,"version":"9.0.0","surprise":true}"#;
    frames.frame(frame::Tag::Header, header).unwrap();
    let error = batches(&frames.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("made by memtrove 9.0.0 and has format 2"), "{error}");
}

#[tokio::test]
async fn every_table_comes_back_as_it_was() {
    let (source, target) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    fill(&source, 1).await;
    let (bytes, exported) = archive_of(&source, None).await;
    assert_eq!(exported.tables.len(), TABLES.len() - 1, "{:?}", exported.tables);
    assert_eq!(take_in(&target, &bytes).await.unwrap(), ImportOutcome { compared: true });
    assert_eq!(checksum_of(&target, None).await, exported);
    let given = target.read(AllTenants, "numbers", |tx| tx.last_number("scopes")).await.unwrap();
    assert_eq!(given, 100, "numbers that were given are not given again");
    assert_eq!(archive_of(&target, None).await.0, bytes, "the archive is the same, byte by byte");
}

#[tokio::test]
async fn content_that_differs_in_one_value_has_another_digest() {
    let store = Store::in_memory().unwrap();
    fill(&store, 1).await;
    let before = checksum_of(&store, None).await;
    let change = |tx: &mut dyn Tx| tx.execute("UPDATE memory_index SET relevance = relevance + 1e-300", &[]);
    store.write(AllTenants, "change", change).await.unwrap();
    assert_ne!(checksum_of(&store, None).await.digest, before.digest);
}

#[tokio::test]
async fn one_tenant_takes_its_own_rows_and_nobody_elses() {
    let store = Store::in_memory().unwrap();
    fill(&store, 2).await;
    let (_, _, all) = batches(&archive_of(&store, None).await.0).unwrap();
    let mut rows = BTreeMap::new();
    for tenant in TENANTS {
        let (bytes, _) = archive_of(&store, Some(tenant)).await;
        let (header, found, summary) = batches(&bytes).unwrap();
        assert_eq!(header.tenant.as_deref(), Some(tenant));
        let mut tenants = BTreeSet::new();
        found.iter().for_each(|batch| batch.note_tenants(&mut tenants));
        assert_eq!(tenants, BTreeSet::from([tenant.to_owned()]));
        assert!(!summary.tables.iter().any(|(table, _)| ["meta", "tasks"].contains(table)));
        for (table, count) in summary.tables {
            *rows.entry(table).or_default() += count;
        }
    }
    // Each row that leads to a tenant is in one of the archives.
    for table in TABLES.iter().filter(|table| table.owner != Owner::Store) {
        let of_all = all.tables.iter().find(|(name, _)| *name == table.name).map_or(0, |(_, rows)| *rows);
        let found: u64 = rows.get(table.name).copied().unwrap_or_default();
        match table.owner {
            Owner::Tenant => assert_eq!(found, of_all, "{}", table.name),
            _ => assert!(found > 0 && found <= of_all, "{}: {found} of {of_all}", table.name),
        }
    }
}

#[tokio::test]
async fn a_tenant_moves_into_a_store_that_has_others() {
    let (source, target) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    fill(&source, 3).await;
    let (globex, _) = archive_of(&source, Some("globex")).await;
    let (acme, exported) = archive_of(&source, Some("acme")).await;
    take_in(&target, &globex).await.unwrap();
    let before = checksum_of(&target, Some("globex")).await;
    assert_eq!(take_in(&target, &acme).await.unwrap(), ImportOutcome { compared: true });
    assert_eq!(checksum_of(&target, Some("globex")).await, before);
    let moved = checksum_of(&target, Some("acme")).await;
    assert_eq!(moved.tables, exported.tables);
    let least = "SELECT MIN(id) FROM scopes WHERE tenant = 'acme'";
    let least = target
        .read(AllTenants, "least", move |tx| crate::TxExt::first(tx, least, &[], |row| row.int(0)))
        .await;
    assert!(least.unwrap() > Some(100), "numbers are moved past those that the store gave");
    let refused = take_in(&target, &acme).await.unwrap_err().to_string();
    assert!(refused.contains("the store has data of tenant 'acme' already"), "{refused}");
    let refused = take_in(&target, &archive_of(&source, None).await.0).await.unwrap_err().to_string();
    assert!(refused.contains("already"), "{refused}");
}

#[tokio::test]
async fn an_import_that_was_broken_off_goes_on_and_no_server_starts_before() {
    let (source, target) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    fill(&source, 4).await;
    let (bytes, exported) = archive_of(&source, None).await;
    let (mut import, batches, _) = begin(&target, &bytes).await.unwrap();
    for batch in batches.iter().take(batches.len() / 2) {
        import.write(batch.clone()).await.unwrap();
    }
    drop(import);
    let refused = target.read(AllTenants, "start", |tx| refuse_unfinished(tx)).await.unwrap_err().to_string();
    assert!(refused.contains("run `memtrove import` with the same archive again"), "{refused}");
    let (other, _) = archive_of(&source, Some("acme")).await;
    let other = {
        let reader = Reader::new(other.as_slice()).unwrap();
        let mut header = reader.header().clone();
        header.id = Uuid::from_u128(99);
        Import::begin(target.clone(), header, None, terms(), Timestamp::from_micros(0)).await
    };
    assert!(other.err().unwrap().to_string().contains("an import of another archive"));
    let (import, _, _) = begin(&target, &bytes).await.unwrap();
    assert!(import.rows_before() > 0);
    take_in(&target, &bytes).await.unwrap();
    target.read(AllTenants, "start", |tx| refuse_unfinished(tx)).await.unwrap();
    assert_eq!(checksum_of(&target, None).await, exported);
}

#[tokio::test]
async fn a_column_that_came_later_takes_its_default() {
    let header = Header::new(Uuid::from_u128(1), "0.9.0", Timestamp::from_micros(5), None);
    let mut frames = frame::FrameWriter::new(Vec::new()).unwrap();
    frames.frame(frame::Tag::Header, &serde_json::to_vec(&header).unwrap()).unwrap();
    let columns =
        r#"[["id","int"],["tenant","text"],["next_change","int"],["last_change","int"],["texts","int"]]"#;
    let begin = format!(r#"{{"table":"forgotten_users","columns":{columns}}}"#);
    frames.frame(frame::Tag::Table, begin.as_bytes()).unwrap();
    let mut row = Vec::new();
    for value in [Value::Int(3), Value::Text("acme"), Value::Int(1), Value::Int(2), Value::Int(0)] {
        rows::append(&mut row, value).unwrap();
    }
    frames.frame(frame::Tag::Rows, &row).unwrap();
    let digest = blake3::hash(&row);
    let end = format!(r#"{{"rows":1,"digest":"{}"}}"#, digest.to_hex());
    frames.frame(frame::Tag::TableEnd, end.as_bytes()).unwrap();
    let mut all = blake3::Hasher::new();
    all.update(b"forgotten_users(id,tenant,next_change,last_change,texts) 1 ").update(digest.as_bytes());
    let end = format!(r#"{{"rows":1,"digest":"{}"}}"#, all.finalize().to_hex());
    frames.frame(frame::Tag::End, end.as_bytes()).unwrap();
    let bytes = frames.finish().unwrap();
    let store = Store::in_memory().unwrap();
    assert_eq!(take_in(&store, &bytes).await.unwrap(), ImportOutcome { compared: false });
    let last = "SELECT last_memory FROM forgotten_users WHERE id = 3";
    let last =
        store.read(AllTenants, "last", move |tx| crate::TxExt::first(tx, last, &[], |row| row.int(0))).await;
    assert_eq!(last.unwrap(), Some(0));
}

/// A store of its own on the server that all tests share.
async fn on_postgres() -> (Arc<memtrove_testkit::postgres::Database>, Store) {
    let open = || {
        let database = memtrove_testkit::postgres::Database::fresh();
        let config =
            PostgresConfig { url: database.url().to_owned(), connections: 2, ..PostgresConfig::default() };
        (database, Store::new(Arc::new(PostgresEngine::open(config).unwrap())))
    };
    tokio::task::spawn_blocking(open).await.unwrap()
}

#[tokio::test]
async fn every_table_goes_to_postgres_and_comes_back_as_it_was() {
    let (embedded, back) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let (_database, postgres) = on_postgres().await;
    fill(&embedded, 5).await;
    let (bytes, _) = archive_of(&embedded, None).await;
    take_in(&postgres, &bytes).await.unwrap();
    let (from_postgres, _) = archive_of(&postgres, None).await;
    assert!(from_postgres == bytes, "an archive from the other engine is another");
    take_in(&back, &from_postgres).await.unwrap();
    assert!(archive_of(&back, None).await.0 == bytes, "an archive that went both ways is another");
}

#[tokio::test]
async fn a_tenant_moves_into_a_postgres_that_has_others() {
    let embedded = Store::in_memory().unwrap();
    let (_database, postgres) = on_postgres().await;
    fill(&embedded, 6).await;
    for tenant in TENANTS {
        let (bytes, exported) = archive_of(&embedded, Some(tenant)).await;
        assert_eq!(take_in(&postgres, &bytes).await.unwrap(), ImportOutcome { compared: true });
        assert_eq!(checksum_of(&postgres, Some(tenant)).await.tables, exported.tables);
    }
}

#[tokio::test]
async fn changes_that_wait_for_their_number_are_archived_with_it() {
    let (_database, postgres) = on_postgres().await;
    let record = |tx: &mut dyn Tx| {
        tx.execute(
            "INSERT INTO changes (tenant, sequence, at, kind) VALUES ('acme', 41, 1, 'forgotten')",
            &[],
        )?;
        for tenant in ["acme", "globex", "acme"] {
            let (at, kind, user, version) = (7, "file.created", Some("alice"), None);
            tx.record_change(&FeedEntry { tenant, at, kind, user, resource: "a.md", version })?;
        }
        let of = Selection { tenant: None, shared: true };
        let waiting = checksum(tx, &of, |_| {});
        waiting.map_err(|error| StoreError::Broken(error.to_string()))
    };
    let waiting = postgres.write(AllTenants, "record", record).await.unwrap();
    assert_eq!(waiting.rows, 4);
    postgres.settle().await.unwrap();
    assert_eq!(checksum_of(&postgres, None).await, waiting);
}

#[tokio::test]
async fn an_import_waits_until_no_server_runs() {
    let (_database, postgres) = on_postgres().await;
    let at = Timestamp::from_micros(60_000_000);
    let node =
        crate::nodes::Node { id: Uuid::from_u128(5), version: "1".into(), started_at: at, seen_at: at };
    let place = crate::nodes::NodePlace { host: "db1".into(), process: 4711, settings: String::new() };
    let beat = move |tx: &mut dyn Tx| {
        crate::nodes::beat(tx, &node)?;
        crate::nodes::introduce(tx, node.id, &place)
    };
    postgres.write(AllTenants, "beat", beat).await.unwrap();
    let header = Header::new(Uuid::from_u128(1), "1.2.3", at, None);
    let begin =
        |now| Import::begin(postgres.clone(), header.clone(), None, terms(), Timestamp::from_micros(now));
    let refused = begin(70_000_000).await.err().unwrap().to_string();
    let said = "a server runs on this store (process 4711 on db1, last seen 10 s ago): stop it, then import. One that was \
                killed could not say so, and counts for 30 s after it was last seen";
    assert_eq!(refused, said);
    begin(120_000_000).await.unwrap();
}

/// Every table and column with its type, as an engine tells.
type SchemaColumns = BTreeMap<String, BTreeMap<String, String>>;

async fn schema_of(store: &Store, query: &'static str) -> SchemaColumns {
    let columns = move |tx: &mut dyn Tx| {
        crate::TxExt::rows(tx, query, &[], |row| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.text(2)?.to_lowercase()))
        })
    };
    let mut found = SchemaColumns::new();
    for (table, column, kind) in store.read(AllTenants, "schema", columns).await.unwrap() {
        found.entry(table).or_default().insert(column, kind);
    }
    found
}

/// Nothing is forgotten, and nothing is archived that is not there.
#[track_caller]
fn compare_with(found: &SchemaColumns, fits: impl Fn(&str, &str) -> bool) {
    let archived = schema();
    let is_left_out = |name: &str| LEFT_OUT.iter().any(|(left_out, _)| *left_out == name);
    for (table, columns) in found {
        let Some(known) = archived.get(table.as_str()) else {
            assert!(is_left_out(table), "the table {table} is neither archived nor left out with a reason");
            continue;
        };
        for (column, kind) in columns {
            match known.get(column.as_str()) {
                Some(archived) => assert!(fits(archived, kind), "{table}.{column}: {kind} is no {archived}"),
                // Where rows of content say whose they are, they were told by their parent.
                None if column == "tenant" => {}
                None => assert!(
                    is_left_out(&format!("{table}.{column}")),
                    "the column {table}.{column} is neither archived nor left out with a reason"
                ),
            }
        }
    }
    for (table, columns) in archived {
        for column in columns.keys() {
            assert!(
                found.get(table).is_some_and(|found| found.contains_key(*column)),
                "there is no {table}.{column}"
            );
        }
    }
}

#[tokio::test]
async fn the_list_of_tables_is_that_of_sqlite() {
    let store = Store::in_memory().unwrap();
    let found = schema_of(
        &store,
        "SELECT t.name, c.name, c.type FROM sqlite_master t JOIN pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND t.name NOT LIKE 'text_index_%'",
    );
    compare_with(&found.await, |archived, kind| {
        matches!(
            (archived, kind),
            ("int", "integer") | ("real", "real") | ("text", "text") | ("bytes" | "uuid", "blob")
        )
    });
}

#[tokio::test]
async fn the_list_of_tables_is_that_of_postgres() {
    let (_database, store) = on_postgres().await;
    let found = schema_of(
        &store,
        "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns \
         WHERE table_schema = current_schema()",
    );
    compare_with(&found.await, |archived, kind| {
        matches!(
            (archived, kind),
            // Text of people is kept as bytes there, because it may hold U+0000.
            ("int", "bigint")
                | ("real", "double precision")
                | ("text", "text" | "bytea")
                | ("bytes", "bytea")
                | ("uuid", "uuid")
        )
    });
}
