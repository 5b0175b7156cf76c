//! What a search looks through.

use super::turn::Budget;
use crate::Context;
use crate::conversations::trees::{Known, TreeSet, Turn};
use memtrove_core::Result;
use memtrove_core::identity::Tenant;
use memtrove_recall::index::Partition;
use memtrove_store::Tx;
use memtrove_store::conversations::embeddings;
use memtrove_store::conversations::search::Scope;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For so long a list of trees is as good as new. After that others may have brought indexes further than it knows, and reading by it
/// would take newer trees out again.
const FRESH: Duration = Duration::from_millis(50);

/// Whose trees are searched.
#[derive(Clone, PartialEq)]
pub(in crate::conversations) struct SearchedScope {
    pub tenant: Tenant,
    pub scope: Scope,
}

/// The trees of a scope, as a unit of work sees them.
#[derive(Clone)]
pub(super) struct View {
    of: SearchedScope,
    sets: Arc<[TreeSet]>,
    has_tail: bool,
    budget: Budget,
    begun: Instant,
}

impl View {
    pub fn of(tx: &mut dyn Tx, cx: &Context, of: SearchedScope, budget: Budget) -> Result<Self> {
        let begun = Instant::now();
        let trees = embeddings::trees(tx, &of.tenant, &of.scope)?;
        let sets = cx.trees.sets(&of.tenant, trees).into();
        Ok(Self { of, sets, has_tail: tx.has_untaken_texts()?, budget, begun })
    }

    /// Whether another unit of work may go by it.
    pub fn is_fresh(&self) -> bool {
        self.begun.elapsed() < FRESH
    }

    /// How long it may be read.
    pub fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Whose trees these are.
    pub fn searched(&self) -> SearchedScope {
        self.of.clone()
    }

    /// Reads the index of each set of trees, and gives each a number. Answers whether all of it could be read: what is not in
    /// memory is read as far as the budget goes. Ends with an error if nobody waits for the answer any more.
    pub fn each(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        mut read: impl FnMut(u64, &Known, &Partition<Turn>),
    ) -> Result<bool> {
        let mut is_complete = true;
        for (number, set) in (0..).zip(&*self.sets) {
            self.budget.check()?;
            let ((), is_whole) =
                cx.trees.with(tx, cx, set, self.has_tail, &self.budget, |known, partition| {
                    read(number, known, partition);
                })?;
            is_complete &= is_whole;
        }
        self.budget.check()?;
        Ok(is_complete)
    }
}
