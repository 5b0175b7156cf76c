//! What a connection sends: its next request, given the answer to its last.

use crate::dataset::{Ids, Random};
use anyhow::{Context as _, Result};
use std::sync::Arc;
use uuid::Uuid;

/// The sending half of a connection. It outlives the connection: another one goes on where that ended.
#[derive(Debug, Clone)]
pub struct Sender {
    source: Source,
    /// The request that was put together last.
    buffer: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Source {
    /// Any of these.
    Random { requests: Arc<Vec<Vec<u8>>>, random: Random },
    /// Any of these, each time with another id.
    Fresh { templates: Arc<Vec<Template>>, random: Random, number: usize, sent: usize },
    /// These in turn, of one conversation after the other.
    Growing { templates: Vec<Template>, position: usize, ids: Ids, id: Uuid, encoding: IdEncoding },
    /// These in turn, each with the ETag that the last answer told.
    Chain { templates: Vec<Template>, position: usize, etag: Vec<u8> },
}

/// How an id stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdEncoding {
    /// As 36 characters.
    Text,
    /// As 16 bytes.
    Bytes,
}

/// As long as an id that [`Sender::fresh`] makes up.
pub const FRESH_ID: &str = "00000-00000000";

impl Sender {
    /// This many senders, each of random ones of these requests: the exact bytes that go over the wire.
    pub fn random(requests: Vec<Vec<u8>>, count: usize) -> Vec<Self> {
        let requests = Arc::new(requests);
        let source = |number| Source::Random { requests: Arc::clone(&requests), random: random_of(number) };
        (0..count).map(|number| source(number).into()).collect()
    }

    /// This many senders, each of random ones of these requests, whose gap takes an id that no request had before.
    pub fn fresh(templates: Vec<Template>, count: usize) -> Vec<Self> {
        let templates = Arc::new(templates);
        let source = |number| Source::Fresh {
            templates: Arc::clone(&templates),
            random: random_of(number),
            number,
            sent: 0,
        };
        (0..count).map(|number| source(number).into()).collect()
    }

    /// A sender of these requests, whose gap takes an id that is another one after the last of them.
    pub fn growing(templates: Vec<Template>, mut ids: Ids, encoding: IdEncoding) -> Self {
        let id = ids.next();
        Source::Growing { templates, position: 0, ids, id, encoding }.into()
    }

    /// A sender of these requests, round and round. Each changes one resource, which belongs to this sender alone and
    /// is now in the state that `answer` told, and leaves it as the next expects it.
    pub fn chain(templates: Vec<Template>, answer: &[u8]) -> Result<Self> {
        let etag = etag(answer).context("no etag in the answer")?.to_vec();
        Ok(Source::Chain { templates, position: 0, etag }.into())
    }

    /// The next request. Asked again before it was answered, it may be another of the same kind.
    pub fn request(&mut self) -> &[u8] {
        match &mut self.source {
            Source::Random { requests, random } => return &requests[random.below(requests.len())],
            Source::Fresh { templates, random, number, sent } => {
                *sent += 1;
                let id = format!("{number:05}-{sent:08}");
                templates[random.below(templates.len())].fill(id.as_bytes(), &mut self.buffer);
            }
            Source::Growing { templates, position, id, encoding: IdEncoding::Text, .. } => {
                templates[*position].fill(id.to_string().as_bytes(), &mut self.buffer);
            }
            Source::Growing { templates, position, id, encoding: IdEncoding::Bytes, .. } => {
                templates[*position].fill(id.as_bytes(), &mut self.buffer);
            }
            Source::Chain { templates, position, etag } => templates[*position].fill(etag, &mut self.buffer),
        }
        &self.buffer
    }

    /// Takes note of the answer, which was good.
    pub fn answered(&mut self, body: &[u8]) -> Result<()> {
        match &mut self.source {
            Source::Random { .. } | Source::Fresh { .. } => {}
            Source::Growing { templates, position, ids, id, .. } => {
                *position = (*position + 1) % templates.len();
                if *position == 0 {
                    *id = ids.next();
                }
            }
            Source::Chain { templates, position, etag: current } => {
                let etag = etag(body).context("no etag in the answer")?;
                current.clear();
                current.extend_from_slice(etag);
                *position = (*position + 1) % templates.len();
            }
        }
        Ok(())
    }
}

impl From<Source> for Sender {
    fn from(source: Source) -> Self {
        Self { source, buffer: Vec::new() }
    }
}

fn random_of(number: usize) -> Random {
    Random::new(0xB0A7 + number as u64)
}

/// A request with a gap that is filled when it is sent.
#[derive(Debug, Clone)]
pub struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// The gap is where the request has the text `gap` for the first time. One in the body must be as long as what
    /// will fill it, or the `Content-Length` is wrong.
    pub fn new(request: &[u8], gap: impl AsRef<[u8]>) -> Self {
        let gap = gap.as_ref();
        let Some(start) = position(request, gap) else { panic!("a template needs a gap") };
        Self { before: request[..start].to_vec(), after: request[start + gap.len()..].to_vec() }
    }

    fn fill(&self, filling: &[u8], buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&self.before);
        buffer.extend_from_slice(filling);
        buffer.extend_from_slice(&self.after);
    }
}

/// The ETag in the body of an answer, without its quotes.
fn etag(body: &[u8]) -> Option<&[u8]> {
    const BEFORE: &[u8] = br#""etag":"\""#;
    let rest = &body[position(body, BEFORE)? + BEFORE.len()..];
    rest.split(|&byte| byte == b'\\').next()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_goes_round_with_the_etag_of_the_last_answer() {
        let templates = ["one GAP!", "two GAP!"].map(|text| Template::new(text.as_bytes(), "GAP"));
        let mut sender = Sender::chain(templates.to_vec(), br#"{"etag":"\"1-a\"","document":{}}"#).unwrap();
        assert_eq!(sender.request(), b"one 1-a!");
        sender.answered(br#"{"etag":"\"2-bc\""}"#).unwrap();
        assert_eq!(sender.request(), b"two 2-bc!");
        sender.answered(br#"{"etag":"\"3-d\""}"#).unwrap();
        assert_eq!(sender.request(), b"one 3-d!");
        assert!(sender.answered(b"{}").is_err());
    }

    #[test]
    fn a_growing_sender_takes_another_id_when_it_begins_anew() {
        let templates = ["one GAP!", "two GAP!"].map(|text| Template::new(text.as_bytes(), "GAP"));
        let mut sender = Sender::growing(templates.to_vec(), Ids::default(), IdEncoding::Text);
        let mut sent = Vec::new();
        for _ in 0..3 {
            sent.push(String::from_utf8(sender.request().to_vec()).unwrap());
            sender.answered(b"").unwrap();
        }
        let ids: Vec<&str> = sent.iter().map(|text| &text[4..text.len() - 1]).collect();
        assert!(sent[0].starts_with("one") && sent[1].starts_with("two") && sent[2].starts_with("one"));
        assert_eq!(ids[0], ids[1]);
        assert_ne!(ids[0], ids[2]);
    }

    #[test]
    fn a_fresh_id_is_never_sent_twice_and_always_as_long() {
        let template = Template::new(FRESH_ID.as_bytes(), FRESH_ID);
        let mut senders = Sender::fresh(vec![template], 2);
        let mut ids: Vec<Vec<u8>> = Vec::new();
        for sender in &mut senders {
            ids.extend([sender.request().to_vec(), sender.request().to_vec()]);
        }
        assert!(ids.iter().all(|id| id.len() == FRESH_ID.len()));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }
}
