//! Which passage of a long memory a hit shows.

use super::{Hit, Memories};
use memtrove_core::memories::Memory;
use memtrove_core::recall::passages::{self, MEMORY_PIECES, PassageQuery};
use memtrove_core::text::Analyzer;
use memtrove_core::{Error, Result};
use memtrove_recall::embed::static_model::StaticModel;
use memtrove_recall::embed::{QueryVector, Space};
use memtrove_recall::index::rescore;
use std::ops::Range;

impl Memories {
    /// Gives hits whose content is long the passage that answers. Pieces are compared by their own vectors or, where they have
    /// none that any of the query's can be compared with, by the bundled model, which takes no more than reading their words.
    pub(super) async fn with_passages(
        &self,
        mut hits: Vec<Hit>,
        query: Option<PassageQuery>,
        meanings: Vec<QueryVector>,
    ) -> Result<Vec<Hit>> {
        let Some(query) = query.filter(|_| hits.iter().any(|hit| passages::is_long(&hit.memory.content)))
        else {
            return Ok(hits);
        };
        let cx = self.cx.clone();
        // A hundred contents of a hundred thousand characters take longer than others should wait for.
        let shown = tokio::task::spawn_blocking(move || {
            for hit in &mut hits {
                hit.passage = passage(&cx.analyzer, &hit.memory, &query, &meanings);
            }
            hits
        });
        shown.await.map_err(|error| Error::internal(error.to_string()))
    }
}

/// The passage of an entry that answers best; none where it is short.
fn passage(
    analyzer: &Analyzer,
    memory: &Memory,
    query: &PassageQuery,
    meanings: &[QueryVector],
) -> Option<Range<usize>> {
    let text = memory.content.as_str();
    if !passages::is_long(text) {
        return None;
    }
    let pieces = passages::cut(text, MEMORY_PIECES);
    let in_space = |space: &Space| meanings.iter().find(|meaning| meaning.space == *space);
    let stored = memory.embedding.as_ref().filter(|made| made.pieces.len() == pieces.len());
    let stored = stored.and_then(|made| Some((in_space(&Space::of(&made.model)?)?, &made.pieces)));
    let shared = in_space(&Space::shared());
    let cosine = |number: usize, piece: &str| match (stored, shared) {
        (Some((query, vectors)), _) => f64::from(rescore(&query.vector, &vectors[number])),
        (None, Some(query)) => f64::from(rescore(&query.vector, &StaticModel::vector(piece))),
        (None, None) => 0.0,
    };
    let best = query.best_piece(analyzer, text, &pieces, cosine)?;
    Some(query.passage(analyzer, text, &best))
}
