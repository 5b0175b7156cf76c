//! Entries that have every word of a query.

use super::page::{Explanation, Ranked};
use super::question::Question;
use super::turn::Budget;
use crate::Context;
use memtrove_core::Result;
use memtrove_store::conversations::search;
use memtrove_store::{TextQuery, Tx};
use std::ops::ControlFlow;
use uuid::Uuid;

/// Up to this many trees, a search is confined to them inside the index; beyond, its hits are filtered.
const CONFINED_GROUPS: usize = 256;

/// So many matches are taken between two looks at the clock.
const HITS_UNASKED: usize = 64;

/// Every match that the scope may see, and whether that is all of them: the budget may be spent before.
pub(super) fn rank(tx: &mut dyn Tx, cx: &Context, question: &Question) -> Result<(Vec<Ranked>, bool)> {
    let Question { tenant, scope, words, .. } = question;
    if words.is_empty() {
        return Ok((Vec::new(), true));
    }
    let budget = Budget::begin(&question.wanted, cx.settings.search.budget);
    let mut is_complete = true;
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
            is_complete = hits.len() % HITS_UNASKED != 0 || !budget.is_spent();
            Ok(if is_complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    budget.check()?;
    if !confined {
        let mut candidates: Vec<Uuid> = hits.iter().map(|hit| hit.group).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let visible = search::visible(tx, tenant, scope, &candidates)?;
        hits.retain(|hit| visible.contains(&hit.group));
    }
    Ok((hits, is_complete))
}
