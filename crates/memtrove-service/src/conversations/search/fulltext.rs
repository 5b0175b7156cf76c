//! Entries that have every word of a query.

use super::page::{Explanation, Ranked};
use super::question::Question;
use crate::Context;
use memtrove_core::Result;
use memtrove_store::conversations::search;
use memtrove_store::{TextQuery, Tx};
use uuid::Uuid;

/// Up to this many trees, a search is confined to them inside the index; beyond, its hits are filtered.
const CONFINED_GROUPS: usize = 256;

/// Every match that the scope may see.
pub(super) fn rank(tx: &mut dyn Tx, cx: &Context, question: &Question) -> Result<Vec<Ranked>> {
    let Question { tenant, scope, words, .. } = question;
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let groups = search::groups(tx, tenant, scope, CONFINED_GROUPS)?;
    let confined = groups.is_some();
    let scorer = cx.analyzer.scorer(words);
    let mut hits = Vec::new();
    tx.search_text(
        &TextQuery { tenant: tenant.as_str().to_owned(), words: words.clone(), groups },
        &mut |hit| {
            hits.push(Ranked {
                id: hit.id,
                group: hit.group,
                conversation: hit.conversation,
                score: scorer.score(hit.text),
                has_words: true,
                explanation: Explanation::FullText,
            });
            Ok(())
        },
    )?;
    if !confined {
        let mut candidates: Vec<Uuid> = hits.iter().map(|hit| hit.group).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let visible = search::visible(tx, tenant, scope, &candidates)?;
        hits.retain(|hit| visible.contains(&hit.group));
    }
    Ok(hits)
}
