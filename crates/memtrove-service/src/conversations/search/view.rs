//! What a search looks through.

use super::question::Question;
use super::turn::Budget;
use crate::Context;
use crate::conversations::trees::{Known, TreeSet, Turn};
use memtrove_core::Result;
use memtrove_core::identity::Tenant;
use memtrove_recall::index::Partition;
use memtrove_store::Tx;
use memtrove_store::conversations::embeddings;
use std::sync::Arc;

/// The trees of a scope, as a unit of work sees them.
#[derive(Clone)]
pub(super) struct View {
    pub tenant: Tenant,
    sets: Arc<[TreeSet]>,
    has_tail: bool,
    budget: Budget,
}

impl View {
    pub fn of(tx: &mut dyn Tx, cx: &Context, question: &Question) -> Result<Self> {
        let budget = Budget::begin(&question.wanted, cx.settings.search.budget);
        let trees = embeddings::trees(tx, &question.tenant, &question.scope)?;
        let sets = cx.trees.sets(&question.tenant, trees).into();
        Ok(Self { tenant: question.tenant.clone(), sets, has_tail: tx.has_untaken_texts()?, budget })
    }

    /// The same trees, to be read with another budget.
    pub fn within(&self, budget: Budget) -> Self {
        Self { budget, ..self.clone() }
    }

    /// Whether it is of the same scope.
    pub fn is_of_the_same(&self, other: &Self) -> bool {
        self.sets.iter().map(TreeSet::key).eq(other.sets.iter().map(TreeSet::key))
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
