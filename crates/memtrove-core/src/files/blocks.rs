//! The derived index of events: what a search looks at.
//!
//! A *block* is a byte string with the searchable side of some dozen events, so that a search reads a few large rows
//! instead of thousands of small ones. A scope has a sequence of them; an event is appended to the newest until it
//! [is full](is_full). The empty byte string is the block without events. Numbers are little-endian:
//!
//! ```text
//! u32 format, u32 count of events, u32 bytes of all fields
//! count × header: i64 timestamp, u32 length of each of the four fields and two texts
//! count × fields: id, service, source, projects (each a u32 length and its name)
//! count × texts:  digest "\n", and keyword "\n" for every keyword
//! ```
//!
//! All text stands together, so that a token is looked for once per block and not once per event. A token has no white
//! space in it, so it cannot be found across the end of a digest or a keyword.

use super::{EventQuery, Searchable};
use crate::Timestamp;
use memchr::memmem::Finder;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A block is full once it has this many bytes.
const TARGET_BYTES: usize = 8 * 1024;
/// A block is full once it has this many events.
const TARGET_EVENTS: usize = 64;

/// Changes with the layout, so that blocks of another one are rebuilt and not misread.
const FORMAT: usize = 1;
const HEADER_BYTES: usize = 8 + 6 * 4;

/// A byte string that is no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block of the event index is malformed and has to be rebuilt")]
pub struct Malformed;

/// The block of these events.
pub fn build(events: impl IntoIterator<Item = Searchable>) -> Vec<u8> {
    let mut draft = BlockDraft::default();
    events.into_iter().for_each(|event| draft.push(&event));
    draft.finish()
}

/// The block with one more event at its end.
pub fn append(block: &[u8], event: &Searchable) -> Result<Vec<u8>, Malformed> {
    let mut draft = BlockDraft::default();
    for entry in ParsedBlock::read(block)?.entries {
        draft.push_entry(&entry);
    }
    draft.push(event);
    Ok(draft.finish())
}

/// The block without the events whose ids are to go.
pub fn remove(block: &[u8], gone: impl Fn(&str) -> bool) -> Result<Vec<u8>, Malformed> {
    let mut draft = BlockDraft::default();
    for entry in ParsedBlock::read(block)?.entries {
        if !gone(entry.id()?) {
            draft.push_entry(&entry);
        }
    }
    Ok(draft.finish())
}

/// Whether the next event belongs into another block. A malformed one takes none.
pub fn is_full(block: &[u8]) -> bool {
    block.len() >= TARGET_BYTES
        || ParsedBlock::read(block).map_or(true, |block| block.entries.len() >= TARGET_EVENTS)
}

/// A query made ready for running over many blocks.
#[derive(Debug, Clone)]
pub struct PreparedQuery<'q> {
    query: &'q EventQuery,
    tokens: Vec<Finder<'q>>,
}

impl<'q> PreparedQuery<'q> {
    /// Prepares a query.
    pub fn new(query: &'q EventQuery) -> Self {
        Self { query, tokens: query.tokens.iter().map(Finder::new).collect() }
    }

    fn admits(&self, entry: &BlockEvent<'_>) -> Result<bool, Malformed> {
        let EventQuery { from, to, service, source, project, .. } = self.query;
        let equals = |wanted: &Option<String>, field: &[u8]| {
            wanted.as_ref().is_none_or(|wanted| wanted.as_bytes() == field)
        };
        let admitted = from.is_none_or(|from| from <= entry.timestamp)
            && to.is_none_or(|to| entry.timestamp <= to)
            && equals(service, entry.service)
            && equals(source, entry.source);
        match project {
            Some(project) if admitted => entry.belongs_to(project.as_bytes()),
            _ => Ok(admitted),
        }
    }
}

/// The best events found so far.
#[derive(Debug, Clone)]
pub struct Hits {
    top_k: usize,
    /// The worst on top, to be the next to go.
    heap: BinaryHeap<Hit>,
}

/// A found event; the lesser is the better.
type Hit = ((Reverse<u32>, Reverse<Timestamp>), String);

impl Hits {
    /// Room for the best `top_k`.
    pub fn new(top_k: usize) -> Self {
        Self { top_k, heap: BinaryHeap::with_capacity(top_k) }
    }

    /// Their ids, the best first.
    pub fn into_ids(self) -> Vec<String> {
        self.heap.into_sorted_vec().into_iter().map(|(_, id)| id).collect()
    }

    fn offer(&mut self, score: u32, entry: &BlockEvent<'_>) -> Result<(), Malformed> {
        let rank = (Reverse(score), Reverse(entry.timestamp));
        if self.heap.len() < self.top_k {
            self.heap.push((rank, entry.id()?.to_owned()));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && (rank, entry.id) < (worst.0, worst.1.as_bytes())
        {
            worst.0 = rank;
            entry.id()?.clone_into(&mut worst.1);
        }
        Ok(())
    }
}

/// Offers the events of a block that answer a query. What is found in the end does not depend on the order of the
/// blocks, but with the newest first less is found only to be dropped again.
pub fn search(block: &[u8], query: &PreparedQuery<'_>, hits: &mut Hits) -> Result<(), Malformed> {
    let block = ParsedBlock::read(block)?;
    let mut candidates = Vec::with_capacity(block.entries.len());
    for (index, entry) in block.entries.iter().enumerate() {
        if query.admits(entry)? {
            candidates.push(index);
        }
    }
    if candidates.is_empty() {
        return Ok(());
    }
    let scores = block.scores(&query.tokens);
    for index in candidates.into_iter().rev() {
        let (entry, score) = (&block.entries[index], scores[index]);
        if score > 0 || !query.query.has_query {
            hits.offer(score, entry)?;
        }
    }
    Ok(())
}

/// A block taken apart: its events, and the text of all of them.
struct ParsedBlock<'a> {
    entries: Vec<BlockEvent<'a>>,
    text: &'a [u8],
}

/// One event of a block, each part as the block has it.
struct BlockEvent<'a> {
    timestamp: Timestamp,
    id: &'a [u8],
    service: &'a [u8],
    source: &'a [u8],
    projects: &'a [u8],
    digest: &'a [u8],
    keywords: &'a [u8],
}

impl<'a> ParsedBlock<'a> {
    /// Afterwards it is certain that the entries' digests and keywords make up the whole text.
    fn read(block: &'a [u8]) -> Result<Self, Malformed> {
        if block.is_empty() {
            return Ok(Self { entries: Vec::new(), text: &[] });
        }
        let mut rest = block;
        if take_number(&mut rest)? != FORMAT {
            return Err(Malformed);
        }
        let count = take_number(&mut rest)?;
        let fields_bytes = take_number(&mut rest)?;
        let headers = take(&mut rest, count.checked_mul(HEADER_BYTES).ok_or(Malformed)?)?;
        let mut fields = take(&mut rest, fields_bytes)?;
        let text = rest;

        let mut entries = Vec::with_capacity(count);
        for mut header in headers.chunks_exact(HEADER_BYTES) {
            let timestamp = Timestamp::from_micros(i64::from_le_bytes(take_array(&mut header)?));
            let mut part = |from: &mut &'a [u8]| {
                let length = take_number(&mut header)?;
                take(from, length)
            };
            entries.push(BlockEvent {
                timestamp,
                id: part(&mut fields)?,
                service: part(&mut fields)?,
                source: part(&mut fields)?,
                projects: part(&mut fields)?,
                digest: part(&mut rest)?,
                keywords: part(&mut rest)?,
            });
        }
        if fields.is_empty() && rest.is_empty() { Ok(Self { entries, text }) } else { Err(Malformed) }
    }

    /// The score of each event: 2 for each token its digest contains, 1 for each that one of its keywords contains.
    fn scores(&self, tokens: &[Finder<'_>]) -> Vec<u32> {
        let mut end = 0;
        let mut ends = Vec::with_capacity(2 * self.entries.len());
        for part in self.entries.iter().flat_map(|entry| [entry.digest, entry.keywords]) {
            end += part.len();
            ends.push(end);
        }
        let mut scores = vec![0; self.entries.len()];
        for token in tokens {
            let (mut at, mut part) = (0, 0);
            while let Some(found) = token.find(&self.text[at..])
                && let Some(ahead) = ends[part..].iter().position(|end| *end > at + found)
            {
                part += ahead;
                scores[part / 2] += if part % 2 == 0 { 2 } else { 1 };
                // Once found, the token's further matches in this text change nothing.
                at = ends[part];
            }
        }
        scores
    }
}

impl<'a> BlockEvent<'a> {
    fn id(&self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.id).map_err(|_| Malformed)
    }

    fn belongs_to(&self, project: &[u8]) -> Result<bool, Malformed> {
        let mut rest = self.projects;
        while !rest.is_empty() {
            let length = take_number(&mut rest)?;
            if take(&mut rest, length)? == project {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn take<'a>(from: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = from.split_at_checked(bytes).ok_or(Malformed)?;
    *from = rest;
    Ok(taken)
}

fn take_array<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (taken, rest) = from.split_first_chunk().ok_or(Malformed)?;
    *from = rest;
    Ok(*taken)
}

fn take_number(from: &mut &[u8]) -> Result<usize, Malformed> {
    usize::try_from(u32::from_le_bytes(take_array(from)?)).map_err(|_| Malformed)
}

/// A block in the making.
#[derive(Default)]
struct BlockDraft {
    headers: Vec<u8>,
    fields: Vec<u8>,
    text: Vec<u8>,
}

impl BlockDraft {
    fn push(&mut self, event: &Searchable) {
        let projects = event.projects.iter().map(String::as_bytes);
        let line = |text: &String| [text.as_bytes(), b"\n"].concat();
        self.push_entry(&BlockEvent {
            timestamp: event.timestamp,
            id: event.id.as_bytes(),
            service: event.service.as_bytes(),
            source: event.source.as_bytes(),
            projects: &projects
                .flat_map(|project| [&number(project.len()), project].concat())
                .collect::<Vec<_>>(),
            digest: &line(&event.digest),
            keywords: &event.keywords.iter().flat_map(line).collect::<Vec<_>>(),
        });
    }

    fn push_entry(&mut self, entry: &BlockEvent<'_>) {
        self.headers.extend(entry.timestamp.as_micros().to_le_bytes());
        for part in [entry.id, entry.service, entry.source, entry.projects] {
            self.headers.extend(number(part.len()));
            self.fields.extend(part);
        }
        for part in [entry.digest, entry.keywords] {
            self.headers.extend(number(part.len()));
            self.text.extend(part);
        }
    }

    fn finish(self) -> Vec<u8> {
        if self.headers.is_empty() {
            return Vec::new();
        }
        let count = self.headers.len() / HEADER_BYTES;
        let preamble = [FORMAT, count, self.fields.len()].map(number).concat();
        [preamble, self.headers, self.fields, self.text].concat()
    }
}

/// Request bodies are limited, so no number here comes near the end of the range; a block with one that did would be
/// malformed.
fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests;
