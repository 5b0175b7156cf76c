//! The terms of a partition and where they occur.

use super::postings::{MAX_FREQUENCY, Posting, Postings};
use super::term_lists::Occurrence;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::mem::size_of;
use std::sync::Arc;

/// Terms have numbers, which are shorter than their hashes; the number of a term that no piece has any more goes to
/// another.
#[derive(Default)]
pub(super) struct Words {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    terms: Vec<Term>,
    free: Vec<u32>,
    postings_bytes: isize,
    /// What postings take that were written down, also of terms that have their own by now.
    restored_bytes: usize,
}

/// Some terms as they were written down.
pub(super) struct RestoredTerms {
    pub(super) hashes: Vec<u64>,
    /// How many postings each has; together as many as there are.
    pub(super) lengths: Vec<u32>,
    pub(super) postings: Vec<Posting>,
}

struct Term {
    hash: u64,
    postings: Postings,
}

impl Words {
    /// What the terms are hashes of, by number; those of free numbers mean nothing.
    pub(super) fn hashes(&self) -> Vec<u64> {
        self.terms.iter().map(|term| term.hash).collect()
    }

    /// Words that were written down: hashes and numbers of postings of some terms at a time, with all their postings.
    pub(super) fn restored(groups: Vec<RestoredTerms>) -> Self {
        let mut words = Self::default();
        let count = groups.iter().map(|group| group.hashes.len()).sum();
        words.terms.reserve_exact(count);
        words.numbers.reserve(count, |_| 0);
        for RestoredTerms { hashes, lengths, postings } in groups {
            words.restored_bytes += postings.capacity() * size_of::<Posting>();
            let (postings, mut start) = (Arc::new(postings), 0);
            for (hash, length) in hashes.into_iter().zip(lengths) {
                let number = words.terms.len() as u32;
                words
                    .terms
                    .push(Term { hash, postings: Postings::restored(&postings, start, length as usize) });
                start += length;
                if length == 0 {
                    words.free.push(number);
                    continue;
                }
                let Self { numbers, hasher, terms, .. } = &mut words;
                numbers.insert_unique(hasher.hash_one(hash), number, |&number| {
                    hasher.hash_one(terms[number as usize].hash)
                });
            }
        }
        words
    }

    /// The number of a term, if any piece has it.
    pub(super) fn number(&self, hash: u64) -> Option<u32> {
        self.numbers.find(self.hasher.hash_one(hash), |&number| self.term(number).hash == hash).copied()
    }

    /// Where a term occurs.
    pub(super) fn postings(&self, number: u32) -> &Postings {
        &self.term(number).postings
    }

    /// The terms of a piece by number, in ascending order, each once. All of them have to be posted next.
    pub(super) fn numbered(&mut self, terms: &[(u64, u32)]) -> Vec<Occurrence> {
        let occurring = terms.iter().filter(|(_, frequency)| *frequency > 0);
        let mut list: Vec<Occurrence> =
            occurring.map(|&(hash, frequency)| (self.intern(hash), frequency)).collect();
        list.sort_unstable();
        list.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 = if same { kept.1.saturating_add(next.1) } else { kept.1 };
            same
        });
        list.iter_mut().for_each(|(_, frequency)| *frequency = MAX_FREQUENCY.min(*frequency));
        list
    }

    /// Posts what has changed in the terms of a piece; both lists are in ascending order.
    pub(super) fn post(&mut self, piece: u32, old: &[Occurrence], new: &[Occurrence]) {
        let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some(old), Some(new)) => old.0.cmp(&new.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let gone = if order.is_le() { old.next() } else { None };
            let come = if order.is_ge() { new.next() } else { None };
            match (gone, come) {
                (Some(gone), Some(come)) if gone == come => {}
                (_, Some(&(number, frequency))) => {
                    let postings = &mut self.terms[number as usize].postings;
                    self.postings_bytes += postings.insert(Posting::new(piece, frequency));
                }
                (Some(&(number, _)), None) => self.withdraw(piece, number),
                (None, None) => {}
            }
        }
    }

    /// How many bytes it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.numbers.allocation_size()
            + self.terms.capacity() * size_of::<Term>()
            + self.free.capacity() * size_of::<u32>()
            + self.postings_bytes.unsigned_abs()
            + self.restored_bytes
    }

    fn term(&self, number: u32) -> &Term {
        &self.terms[number as usize]
    }

    fn intern(&mut self, hash: u64) -> u32 {
        if let Some(number) = self.number(hash) {
            return number;
        }
        let term = Term { hash, postings: Postings::default() };
        let number = if let Some(number) = self.free.pop() {
            self.terms[number as usize] = term;
            number
        } else {
            self.terms.push(term);
            (self.terms.len() - 1) as u32
        };
        let Self { numbers, hasher, terms, .. } = self;
        numbers.insert_unique(hasher.hash_one(hash), number, |&number| {
            hasher.hash_one(terms[number as usize].hash)
        });
        number
    }

    fn withdraw(&mut self, piece: u32, number: u32) {
        let term = &mut self.terms[number as usize];
        self.postings_bytes += term.postings.remove(piece);
        if term.postings.len() > 0 {
            return;
        }
        self.postings_bytes -= term.postings.bytes();
        term.postings = Postings::default();
        if let Ok(entry) = self.numbers.find_entry(self.hasher.hash_one(term.hash), |&other| other == number)
        {
            entry.remove();
        }
        self.free.push(number);
    }
}
