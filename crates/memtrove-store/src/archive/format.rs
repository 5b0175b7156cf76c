//! The archive as a whole: a header, the tables, and an end that names all of it.

use super::frame::{FrameReader, FrameWriter, NoFrame, Tag};
use super::numbers::Numbers;
use super::tables::{Column, TABLES, Table};
use super::{ArchiveDigest, ArchiveError, rows};
use crate::Value;
use memtrove_core::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::Arc;
use uuid::Uuid;

/// The layout of frames and their content. Tables and columns may come without it changing: an archive names its own.
const FORMAT: u32 = 1;

/// What an archive says of itself before its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    format: u32,
    /// Names this archive: an import that was broken off goes on with no other.
    pub id: Uuid,
    /// The version of memtrove that made it.
    pub version: String,
    /// When, as microseconds since 1970.
    created_at: i64,
    /// The one tenant whose rows it has; `None` is a whole store.
    pub tenant: Option<String>,
    /// Whether some of its content may be readable as it is.
    pub plain: bool,
    /// The names of the configured keys that wrap its data keys.
    pub keys: Vec<String>,
    /// The last numbers that were given to rows, whether these are still there or not.
    pub(super) numbers: Numbers,
}

impl Header {
    pub(super) fn new(id: Uuid, version: &str, at: Timestamp, tenant: Option<&str>) -> Self {
        Self {
            format: FORMAT,
            id,
            version: version.to_owned(),
            created_at: at.as_micros(),
            tenant: tenant.map(str::to_owned),
            plain: false,
            keys: Vec::new(),
            numbers: Numbers::default(),
        }
    }

    /// When it was made.
    pub fn created_at(&self) -> Timestamp {
        Timestamp::from_micros(self.created_at)
    }
}

/// What an archive, or a store, holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Rows of all tables.
    pub rows: u64,
    /// Tables that have rows, and how many.
    pub tables: Vec<(&'static str, u64)>,
    /// Names all of it.
    pub digest: ArchiveDigest,
    /// Attachments whose bytes are with it. They are no part of the digest: they are not in the store.
    pub blobs: u64,
}

/// The end of the bytes of an attachment: how many there are.
#[derive(Serialize, Deserialize)]
struct BlobEnd {
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Begin {
    table: String,
    /// Names and kinds, in the order of a row's values.
    columns: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct ArchiveEnd {
    rows: u64,
    digest: String,
}

impl ArchiveEnd {
    fn of(rows: u64, digest: blake3::Hash) -> Self {
        Self { rows, digest: digest.to_hex().to_string() }
    }
}

/// Adds up what passes by, table by table. Tables without rows leave no trace, so that one that is new changes nothing.
#[derive(Default)]
pub(super) struct Tally {
    rows: u64,
    tables: Vec<(&'static str, u64)>,
    all: blake3::Hasher,
    of_table: blake3::Hasher,
    rows_of_table: u64,
    blobs: u64,
}

impl Tally {
    pub(super) fn rows(&mut self, count: u64, bytes: &[u8]) {
        self.of_table.update(bytes);
        self.rows_of_table += count;
    }

    fn end_table(
        &mut self,
        table: &'static str,
        columns: impl IntoIterator<Item = &'static Column>,
    ) -> ArchiveEnd {
        let digest = self.of_table.finalize();
        let rows = std::mem::take(&mut self.rows_of_table);
        self.of_table.reset();
        if rows > 0 {
            let names: Vec<&str> = columns.into_iter().map(|column| column.name).collect();
            self.all.update(format!("{table}({}) {rows} ", names.join(",")).as_bytes());
            self.all.update(digest.as_bytes());
            self.tables.push((table, rows));
            self.rows += rows;
        }
        ArchiveEnd::of(rows, digest)
    }

    /// The table is complete.
    pub(super) fn end(&mut self, table: &'static Table) {
        self.end_table(table.name, table.columns);
    }

    pub(super) fn summary(&self) -> Summary {
        let digest = ArchiveDigest(self.all.finalize());
        Summary { rows: self.rows, tables: self.tables.clone(), digest, blobs: self.blobs }
    }
}

/// Writes an archive.
pub(super) struct Writer<W: Write> {
    frames: FrameWriter<W>,
    tally: Tally,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(sink: W, header: &Header) -> Result<Self, ArchiveError> {
        let mut frames = FrameWriter::new(sink)?;
        frames.frame(Tag::Header, &json(header)?)?;
        Ok(Self { frames, tally: Tally::default() })
    }

    pub(super) fn begin(&mut self, table: &'static Table) -> Result<(), ArchiveError> {
        let named = |column: &Column| (column.name.to_owned(), column.kind.name().to_owned());
        let columns = table.columns.iter().map(named).collect();
        self.frames.frame(Tag::Table, &json(&Begin { table: table.name.to_owned(), columns })?)
    }

    pub(super) fn rows(&mut self, count: u64, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.tally.rows(count, bytes);
        self.frames.frame(Tag::Rows, bytes)
    }

    pub(super) fn end(&mut self, table: &'static Table) -> Result<(), ArchiveError> {
        let end = self.tally.end_table(table.name, table.columns);
        self.frames.frame(Tag::TableEnd, &json(&end)?)
    }

    /// Writes the bytes of an attachment, as `read` hands them over. What is begun has to be ended, so that they are known to
    /// be there first.
    pub(super) fn blob(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        self.frames.frame(Tag::Blob, key.as_bytes())?;
        let mut bytes = 0;
        read(&mut |piece| {
            bytes += piece.len() as u64;
            self.frames.frame(Tag::Bytes, piece)
        })?;
        self.tally.blobs += 1;
        self.frames.frame(Tag::BlobEnd, &json(&BlobEnd { bytes })?)
    }

    pub(super) fn finish(mut self) -> Result<(W, Summary), ArchiveError> {
        let summary = self.tally.summary();
        self.frames.frame(Tag::End, &json(&ArchiveEnd::of(summary.rows, summary.digest.0))?)?;
        Ok((self.frames.finish()?, summary))
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, ArchiveError> {
    serde_json::to_vec(value).map_err(|error| ArchiveError::writing(error.into()))
}

/// Some rows of one table, as they were archived.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(super) table: &'static Table,
    pub(super) columns: Arc<[&'static Column]>,
    pub(super) rows: u64,
    pub(super) bytes: Arc<[u8]>,
}

impl Batch {
    pub fn table(&self) -> &'static str {
        self.table.name
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the tenants that the rows name.
    pub fn note_tenants(&self, tenants: &mut BTreeSet<String>) {
        let Some(at) = self.columns.iter().position(|column| column.name == "tenant") else { return };
        let mut rest = &*self.bytes;
        while let Some(row) = rows::take_row(&mut rest, self.columns.iter().copied()) {
            if let Value::Text(tenant) = row[at]
                && !tenants.contains(tenant)
            {
                tenants.insert(tenant.to_owned());
            }
        }
    }
}

#[derive(Debug, Clone)]
pub enum ArchivePart {
    /// Some rows of one table.
    Rows(Batch),
    /// The bytes of attachments begin, under this storage key.
    Blob(String),
    /// Some of them.
    Bytes(Vec<u8>),
    /// They end: all were there.
    BlobEnd,
}

/// Reads an archive, and believes nothing that it does not prove.
pub struct Reader<R: Read> {
    frames: FrameReader<R>,
    header: Header,
    /// The table that is being read, and the columns the archive has of it.
    open: Option<(&'static Table, Arc<[&'static Column]>)>,
    /// The storage key whose bytes are being read, and how many came.
    blob: Option<(String, u64)>,
    /// How many of the known tables have begun.
    begun: usize,
    tally: Tally,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(source: R) -> Result<Self, ArchiveError> {
        let mut frames = FrameReader::new(source)?;
        let header = match frames.frame() {
            Ok((Tag::Header, content)) => content,
            Ok(_) => return Err(ArchiveError::damaged("at its beginning", "it does not say what it is")),
            Err(why) => return Err(because("in its header", why)),
        };
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
            version: String,
        }
        let versioned: Versioned = parse("in its header", &header)?;
        if versioned.format != FORMAT {
            return Err(ArchiveError::Newer(format!(
                "this archive was made by memtrove {} and has format {}, and this version reads format {FORMAT}",
                versioned.version, versioned.format
            )));
        }
        let header = parse("in its header", &header)?;
        let tally = Tally::default();
        Ok(Self { frames, header, open: None, blob: None, begun: 0, tally, ended: false })
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next rows; `None` when all was read and the end proved that nothing is missing.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ArchiveError> {
        loop {
            match self.next_part()? {
                Some(ArchivePart::Rows(batch)) => return Ok(Some(batch)),
                Some(ArchivePart::Blob(_) | ArchivePart::Bytes(_) | ArchivePart::BlobEnd) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next part; `None` when all was read and the end proved that nothing is missing.
    pub fn next_part(&mut self) -> Result<Option<ArchivePart>, ArchiveError> {
        while !self.ended {
            let (tag, content) = self.frames.frame().map_err(|why| because(&self.place(), why))?;
            if matches!(tag, Tag::Blob | Tag::Bytes | Tag::BlobEnd) || self.blob.is_some() {
                return self.blob_part(tag, content).map(Some);
            }
            match (tag, self.open.clone()) {
                (Tag::Table, None) => self.begin(&content)?,
                (Tag::Rows, Some((table, columns))) => {
                    return self.batch(table, columns, content).map(|batch| Some(ArchivePart::Rows(batch)));
                }
                (Tag::TableEnd, Some((table, columns))) => {
                    let found = self.tally.end_table(table.name, columns.iter().copied());
                    self.compare(&content, &found)?;
                    self.open = None;
                }
                (Tag::End, None) => {
                    let all = self.tally.summary();
                    self.compare(&content, &ArchiveEnd::of(all.rows, all.digest.0))?;
                    self.frames.end().map_err(|why| because(&self.place(), why))?;
                    self.ended = true;
                }
                _ => return Err(ArchiveError::damaged(&self.place(), "its parts are not in order")),
            }
        }
        Ok(None)
    }

    /// What was read so far; the whole archive once [`Reader::next_batch`] answered `None`.
    pub fn summary(&self) -> Summary {
        self.tally.summary()
    }

    /// Bytes of attachments come after all tables.
    fn blob_part(&mut self, tag: Tag, content: Vec<u8>) -> Result<ArchivePart, ArchiveError> {
        let place = self.place();
        let out_of_order = || ArchiveError::damaged(&place, "its parts are not in order");
        match (tag, self.open.is_some(), self.blob.take()) {
            (Tag::Blob, false, None) => {
                let key = String::from_utf8(content).map_err(|_| out_of_order())?;
                self.blob = Some((key.clone(), 0));
                Ok(ArchivePart::Blob(key))
            }
            (Tag::Bytes, false, Some((key, so_far))) => {
                self.blob = Some((key, so_far + content.len() as u64));
                Ok(ArchivePart::Bytes(content))
            }
            (Tag::BlobEnd, false, Some((_, found))) => {
                let BlobEnd { bytes } = parse(&place, &content)?;
                if bytes != found {
                    let why = format!("there are {found} bytes where {bytes} were written");
                    return Err(ArchiveError::damaged(&place, why));
                }
                self.tally.blobs += 1;
                Ok(ArchivePart::BlobEnd)
            }
            _ => Err(out_of_order()),
        }
    }

    fn begin(&mut self, content: &[u8]) -> Result<(), ArchiveError> {
        let Begin { table, columns } = parse(&self.place(), content)?;
        let newer = |what: String| {
            let version = &self.header.version;
            Err(ArchiveError::Newer(format!(
                "this archive was made by memtrove {version} and has {what}, which this version does not know"
            )))
        };
        let Some(at) = TABLES.iter().position(|known| known.name == table) else {
            return newer(format!("a table {table}"));
        };
        if at < self.begun {
            return Err(ArchiveError::damaged(&self.place(), "its tables are not in order"));
        }
        let mut known = Vec::with_capacity(columns.len());
        for (name, kind) in columns {
            let found = TABLES[at].columns.iter().find(|column| column.name == name);
            match found.filter(|column| column.kind.name() == kind) {
                Some(column) => known.push(column),
                None => return newer(format!("a column {table}.{name} of kind {kind}")),
            }
        }
        (self.begun, self.open) = (at + 1, Some((&TABLES[at], known.into())));
        Ok(())
    }

    fn batch(
        &mut self,
        table: &'static Table,
        columns: Arc<[&'static Column]>,
        content: Vec<u8>,
    ) -> Result<Batch, ArchiveError> {
        let (mut rest, mut count) = (content.as_slice(), 0);
        while !rest.is_empty() {
            if rows::take_row(&mut rest, columns.iter().copied()).is_none() {
                return Err(ArchiveError::damaged(&self.place(), "there is a row that is none"));
            }
            count += 1;
        }
        self.tally.rows(count, &content);
        Ok(Batch { table, columns, rows: count, bytes: content.into() })
    }

    fn compare(&self, content: &[u8], found: &ArchiveEnd) -> Result<(), ArchiveError> {
        let ArchiveEnd { rows, digest } = parse(&self.place(), content)?;
        if rows != found.rows {
            let why = format!("there are {} rows where {rows} were written", found.rows);
            return Err(ArchiveError::damaged(&self.place(), why));
        }
        if digest != found.digest {
            return Err(ArchiveError::damaged(&self.place(), "its digest is another"));
        }
        Ok(())
    }

    /// How far it was read.
    fn place(&self) -> String {
        if let Some((key, bytes)) = &self.blob {
            return format!("in the bytes of attachment {key} after {bytes} of them");
        }
        match (&self.open, self.begun) {
            (Some((table, _)), _) => {
                format!("in table {} after {} of its rows", table.name, self.tally.rows_of_table)
            }
            (None, 0) => "after its header".to_owned(),
            (None, begun) => format!("after table {}", TABLES[begun - 1].name),
        }
    }
}

fn because(place: &str, why: NoFrame) -> ArchiveError {
    match why {
        NoFrame::Io(why) => ArchiveError::reading(why),
        NoFrame::Truncated => ArchiveError::CutOff { place: place.to_owned() },
        NoFrame::Changed(why) => ArchiveError::damaged(place, why),
    }
}

fn parse<T: DeserializeOwned>(place: &str, content: &[u8]) -> Result<T, ArchiveError> {
    serde_json::from_slice(content)
        .map_err(|_| ArchiveError::damaged(place, "what should describe it cannot be read"))
}
