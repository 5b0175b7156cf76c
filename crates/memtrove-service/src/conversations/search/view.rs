//! What a search looks through.

use super::question::Question;
use super::turn::Wanted;
use crate::Context;
use crate::conversations::trees::{Known, Turn};
use memtrove_core::Result;
use memtrove_recall::index::Partition;
use memtrove_store::Tx;
use memtrove_store::conversations::embeddings::{self, Tree};

/// The trees of a scope, as a unit of work sees them.
pub(super) struct View {
    trees: Vec<Tree>,
    has_tail: bool,
    wanted: Wanted,
}

impl View {
    pub fn of(tx: &mut dyn Tx, question: &Question) -> Result<Self> {
        let trees = embeddings::trees(tx, &question.tenant, &question.scope)?;
        Ok(Self { trees, has_tail: tx.has_untaken_texts()?, wanted: question.wanted.clone() })
    }

    /// Reads the index of each, and gives each a number. Ends early if nobody waits for the answer any more.
    pub fn each(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        mut read: impl FnMut(u64, &Tree, &Known, &Partition<Turn>),
    ) -> Result<()> {
        for (number, tree) in (0..).zip(&self.trees) {
            self.wanted.check()?;
            cx.trees.with(tx, cx, tree, self.has_tail, |known, partition| {
                read(number, tree, known, partition);
            })?;
        }
        Ok(())
    }
}
