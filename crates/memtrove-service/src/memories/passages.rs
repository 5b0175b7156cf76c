//! Which passage of a long memory a hit shows.

use super::{Hit, Memories};
use memtrove_core::recall::passages::{self, MEMORY_PIECES, PassageQuery};
use memtrove_core::text::Analyzer;
use memtrove_core::{Error, Result};
use memtrove_recall::embed::QueryVector;
use memtrove_recall::embed::static_model::StaticModel;
use memtrove_recall::index::rescore;
use std::ops::Range;

impl Memories {
    /// Gives hits whose content is long the passage that answers. Pieces are compared by the bundled model, whichever made the
    /// vectors that the hits were found by: it takes no more than reading their words.
    pub(super) async fn with_passages(
        &self,
        mut hits: Vec<Hit>,
        query: Option<PassageQuery>,
        meaning: Option<QueryVector>,
    ) -> Result<Vec<Hit>> {
        let Some(query) = query.filter(|_| hits.iter().any(|hit| passages::is_long(&hit.memory.content)))
        else {
            return Ok(hits);
        };
        let cx = self.cx.clone();
        // A hundred contents of a hundred thousand characters take longer than others should wait for.
        let shown = tokio::task::spawn_blocking(move || {
            for hit in &mut hits {
                hit.passage = passage(&cx.analyzer, &hit.memory.content, &query, meaning.as_ref());
            }
            hits
        });
        shown.await.map_err(|error| Error::internal(error.to_string()))
    }
}

/// The passage of a text that answers best; none where the text is short.
fn passage(
    analyzer: &Analyzer,
    text: &str,
    query: &PassageQuery,
    meaning: Option<&QueryVector>,
) -> Option<Range<usize>> {
    if !passages::is_long(text) {
        return None;
    }
    let cosine = |piece: &str| {
        meaning.map_or(0.0, |query| f64::from(rescore(&query.vector, &StaticModel::vector(piece))))
    };
    let best = query.best_piece(analyzer, text, &passages::cut(text, MEMORY_PIECES), cosine)?;
    Some(query.passage(analyzer, text, &best))
}
