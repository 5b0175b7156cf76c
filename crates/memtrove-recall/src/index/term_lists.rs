//! Which terms a piece has: what its postings are found by when it goes, and what its lexical score is made of.
//!
//! A list is the number of its terms, then for each the distance from the term before and, in the lowest bit, whether a
//! frequency other than 1 follows; all as varints. Frequent terms have low numbers, so that this comes to some two
//! bytes a term.

use std::mem::size_of;

/// A term's number and how often it occurs.
pub(super) type Occurrence = (u32, u32);

/// No list.
pub(super) const NONE: u32 = u32::MAX;
/// Less than this is not worth being tidied up.
const MUCH: usize = 4096;

/// The lists of the pieces of one chunk, behind each other.
#[derive(Clone, Default)]
pub(super) struct TermLists {
    pub(super) bytes: Vec<u8>,
    pub(super) starts: Vec<u32>,
    pub(super) unused: usize,
}

impl TermLists {
    /// The list of a slot, by ascending number.
    pub(super) fn get(&self, slot: usize) -> impl Iterator<Item = Occurrence> {
        let start = self.starts.get(slot).copied().unwrap_or(NONE);
        let mut bytes = if start == NONE { &[][..] } else { &self.bytes[start as usize..] };
        let count = if start == NONE { 0 } else { read(&mut bytes) };
        let mut term = 0;
        (0..count).map(move |_| {
            let code = read(&mut bytes);
            term += code >> 1;
            let frequency = if code & 1 == 1 { read(&mut bytes) } else { 1 };
            (term, frequency)
        })
    }

    /// Sets the list of a slot, which has to be in ascending order.
    pub(super) fn set(&mut self, slot: usize, terms: &[Occurrence]) {
        if slot >= self.starts.len() {
            self.starts.resize(slot + 1, NONE);
        }
        self.unused += self.encoded(slot).len();
        self.starts[slot] = NONE;
        if self.unused > MUCH && self.unused > self.bytes.len() / 4 {
            self.tidy();
        }
        if terms.is_empty() {
            return;
        }
        let mut list = Vec::with_capacity(4 * terms.len() + 5);
        write(&mut list, terms.len() as u32);
        let mut before = 0;
        for &(term, frequency) in terms {
            write(&mut list, (term - before) << 1 | u32::from(frequency != 1));
            if frequency != 1 {
                write(&mut list, frequency);
            }
            before = term;
        }
        if self.bytes.capacity() - self.bytes.len() < list.len() {
            self.bytes.reserve_exact(list.len().max(self.bytes.len() / 8));
        }
        self.starts[slot] = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&list);
    }

    /// How many bytes they take on the heap.
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity() + self.starts.capacity() * size_of::<u32>()
    }

    fn encoded(&self, slot: usize) -> &[u8] {
        if self.starts[slot] == NONE {
            return &[];
        }
        let all = &self.bytes[self.starts[slot] as usize..];
        let mut rest = all;
        for _ in 0..read(&mut rest) {
            if read(&mut rest) & 1 == 1 {
                read(&mut rest);
            }
        }
        &all[..all.len() - rest.len()]
    }

    /// Drops what is not in use any more.
    pub(super) fn tidy(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.unused);
        for slot in 0..self.starts.len() {
            if self.starts[slot] != NONE {
                let start = bytes.len() as u32;
                bytes.extend_from_slice(self.encoded(slot));
                self.starts[slot] = start;
            }
        }
        self.bytes = bytes;
        self.unused = 0;
    }
}

fn write(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read(bytes: &mut &[u8]) -> u32 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    value
}
