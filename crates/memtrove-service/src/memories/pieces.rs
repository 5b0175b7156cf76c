//! Long entries, and the pieces that they are found by.

use super::Memories;
use super::writing::terms_of;
use memtrove_core::memories::Embedding;
use memtrove_core::recall::passages::{self, LONG_BYTES, MEMORY_PIECES};
use memtrove_core::{Error, Result};
use memtrove_recall::embed::Embedded;
use memtrove_store::AllTenants;
use memtrove_store::memories::entries::Stored;
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{index, upgrades};
use std::sync::Arc;

/// Entries that a step looks at.
const STEP: i64 = 200;

/// The pieces of a text; none of one that is a single piece.
fn pieces(text: &str) -> Vec<&str> {
    if !passages::is_long(text) {
        return Vec::new();
    }
    passages::cut(text, MEMORY_PIECES).into_iter().map(|piece| text[piece].trim()).collect()
}

/// Texts with the pieces of those that are long, to be embedded together.
pub(super) struct CutTexts<'a> {
    all: Vec<&'a str>,
    /// How many pieces each text has.
    counts: Vec<usize>,
}

impl<'a> CutTexts<'a> {
    pub(super) fn of(texts: &[&'a str]) -> Self {
        let cut: Vec<Vec<&str>> = texts.iter().map(|text| pieces(text)).collect();
        let counts = cut.iter().map(Vec::len).collect();
        Self { all: texts.iter().copied().chain(cut.into_iter().flatten()).collect(), counts }
    }

    /// What is to be embedded.
    pub(super) fn all(&self) -> &[&'a str] {
        &self.all
    }

    /// Of the vectors of all these, what each text means.
    pub(super) fn embeddings(&self, mut made: Vec<Embedded>) -> Vec<Embedding> {
        let pieces = made.split_off(self.counts.len().min(made.len()));
        let mut pieces = pieces.into_iter().map(|piece| piece.vector);
        let embedding = |(whole, count): (Embedded, &usize)| Embedding {
            model: whole.model,
            vector: whole.vector,
            pieces: pieces.by_ref().take(*count).collect(),
        };
        made.into_iter().zip(&self.counts).map(embedding).collect()
    }
}

impl Memories {
    /// Drops the remembered vectors of a text that is gone.
    pub(super) fn forget_vectors(&self, tenant: &str, text: &str) {
        self.cx.embeddings.forget(tenant, text);
        pieces(text).into_iter().for_each(|piece| self.cx.embeddings.forget(tenant, piece));
    }

    /// Sees to it that long entries are found by their pieces that an older version wrote, or that came from an archive of one:
    /// puts them on the list of those that wait for vectors or, where none are made, gives them the words.
    pub(crate) async fn make_missing_pieces(&self) -> Result<()> {
        let store = &self.cx.store;
        let made = store
            .read(AllTenants, "are_pieces_made", |tx| Ok::<_, Error>(upgrades::are_pieces_made(tx)?))
            .await?;
        if made {
            return Ok(());
        }
        let mut after = Some(0);
        while let Some(place) = after {
            let (long, last) = store
                .read(AllTenants, "list_long_memories", move |tx| {
                    let (mut found, last) = upgrades::long_after(tx, place, LONG_BYTES as i64, STEP)?;
                    let mut long = Vec::new();
                    found.retain(|stored| passages::is_long(&stored.memory.content));
                    for stored in found {
                        if index::terms(tx, stored.scope_no, stored.seq)?.pieces.is_empty() {
                            long.push(stored);
                        }
                    }
                    Ok::<_, Error>((long, last))
                })
                .await?;
            if !long.is_empty() {
                tracing::info!(count = long.len(), "long memories get pieces that they are found by");
                self.make_pieces(long).await?;
            }
            after = last;
        }
        store.write(AllTenants, "note_pieces", |tx| Ok::<_, Error>(upgrades::set_pieces_made(tx)?)).await
    }

    async fn make_pieces(&self, long: Vec<Stored>) -> Result<()> {
        let embeds = self.cx.embeddings.space().is_some();
        let (cx, long) = (self.cx.clone(), Arc::new(long));
        let work = move |tx: &mut dyn memtrove_store::Tx| {
            let mut writing = Writing::default();
            for stored in long.iter() {
                if embeds {
                    upgrades::add(tx, stored.no)?;
                } else {
                    let embedding = index::embedding(tx, stored.scope_no, stored.seq)?;
                    upgrades::put_terms(tx, stored, embedding, &terms_of(&cx, &stored.memory), &mut writing)?;
                }
            }
            writing.finish(tx)?;
            Ok::<_, Error>(())
        };
        self.cx.store.write(AllTenants, "make_pieces", work).await
    }
}
