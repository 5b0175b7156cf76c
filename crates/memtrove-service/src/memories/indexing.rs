//! Large scopes are given to the database to be searched, where it can; those that became small are taken back.

use super::Memories;
use memtrove_core::{Error, Result};
use memtrove_store::AllTenants;
use memtrove_store::Tx;
use memtrove_store::memories::scopes::{ScopeRow, Searched};
use memtrove_store::memories::{ScopeNo, searched};
use std::convert::Infallible;

/// Entries that a step gives to the database or takes from it: other writes to the scope wait meanwhile.
const STEP: i64 = 200;
/// Scopes that a round begins with.
const SCOPES: i64 = 100;
/// A scope is taken back when it has less than this part of what it was given for.
const SHRUNK: i64 = 4;
/// Words are counted anew when a scope has grown or shrunk by this part.
const CHANGED: i64 = 4;

impl Memories {
    /// Tends the indexes of large scopes, for as long as it is polled. Beside the chores and not among them: the index of a million
    /// entries takes minutes.
    pub(crate) async fn run_indexing(&self) -> Infallible {
        loop {
            if let Err(error) = self.tend_indexes().await {
                tracing::warn!(%error, "large scopes of memories could not be looked after; trying again later");
            }
            tokio::time::sleep(self.cx.settings.memories.sweep_interval).await;
        }
    }

    /// Gives large scopes to the database, takes those back that became small, and sees to it that it has the indexes it needs.
    pub async fn tend_indexes(&self) -> Result<()> {
        let store = &self.cx.store;
        let above = self.cx.settings.database_index_above as i64;
        let able = store.read(AllTenants, "find_large_scopes", |tx| Ok::<_, Error>(tx.vectors().is_some()));
        if !able.await? {
            return Ok(());
        }
        if above > 0 {
            let large = store.read(AllTenants, "find_large_scopes", move |tx| {
                Ok::<_, Error>(searched::large(tx, above, SCOPES)?)
            });
            for row in large.await? {
                tracing::info!(
                    scope = row.no.0,
                    entries = row.entries,
                    "a scope is given to the database to be searched"
                );
                self.set_searched(row, Searched::Filling).await?;
            }
        }
        for row in self.known().await? {
            let shrunk = above == 0 || row.entries < above / SHRUNK;
            match row.searched {
                Searched::Filling | Searched::ByDatabase if shrunk => {
                    tracing::info!(
                        scope = row.no.0,
                        entries = row.entries,
                        "a scope is taken back from the database"
                    );
                    self.set_searched(row, Searched::Clearing).await?;
                    self.clear_searched(row.no).await?;
                }
                Searched::Filling => self.fill_searched(row.no).await?,
                Searched::Clearing => self.clear_searched(row.no).await?,
                Searched::ByDatabase | Searched::ByNodes => {}
            }
        }
        if self.keep_indexes().await? {
            self.begin_searching().await?;
        }
        Ok(())
    }

    async fn known(&self) -> Result<Vec<ScopeRow>> {
        self.cx.store.read(AllTenants, "list_large_scopes", |tx| Ok::<_, Error>(searched::known(tx)?)).await
    }

    async fn set_searched(&self, row: ScopeRow, by: Searched) -> Result<()> {
        let set = move |tx: &mut dyn Tx| Ok::<_, Error>(searched::set(tx, &row, by, 0)?);
        self.cx.store.write(AllTenants, "set_searched", set).await.map(drop)
    }

    async fn fill_searched(&self, scope: ScopeNo) -> Result<()> {
        let fill = || {
            self.cx
                .store
                .write(AllTenants, "fill_index", move |tx| Ok::<_, Error>(searched::fill(tx, scope, STEP)?))
        };
        while fill().await? {}
        Ok(())
    }

    async fn clear_searched(&self, scope: ScopeNo) -> Result<()> {
        let clear = || {
            self.cx.store.write(AllTenants, "clear_index", move |tx| {
                Ok::<_, Error>(searched::take_back(tx, scope, STEP)?)
            })
        };
        while clear().await? {}
        Ok(())
    }

    /// Sees to it that the database has the indexes it needs and no others; says whether it has.
    async fn keep_indexes(&self) -> Result<bool> {
        let wanted = self.cx.store.read(AllTenants, "list_large_scopes", |tx| {
            let mut wanted = Vec::new();
            for row in searched::known(tx)? {
                if matches!(row.searched, Searched::Filling | Searched::ByDatabase) {
                    let lengths = searched::dimensions(tx, row.no)?;
                    wanted.extend(lengths.into_iter().map(|length| (row.no.0, length)));
                }
            }
            let there = match tx.vectors() {
                Some(vectors) => vectors.has_indexes(&wanted)?,
                None => true,
            };
            Ok::<_, Error>((!there).then_some(wanted))
        });
        match wanted.await? {
            Some(wanted) => Ok(self.cx.store.keep_vector_indexes(wanted).await?),
            None => Ok(true),
        }
    }

    /// Lets the database search what it has everything of, and counts words where there are others than when they were counted.
    async fn begin_searching(&self) -> Result<()> {
        for row in self.known().await? {
            let changed = (row.entries - row.searched_to).abs() > row.searched_to / CHANGED;
            let store = &self.cx.store;
            if row.searched == Searched::Filling {
                let begin = move |tx: &mut dyn Tx| Ok::<_, Error>(searched::begin(tx, &row, STEP)?);
                if store.write(AllTenants, "begin_searching", begin).await? {
                    tracing::info!(
                        scope = row.no.0,
                        entries = row.entries,
                        "a scope is searched by the database"
                    );
                }
            } else if row.searched == Searched::ByDatabase {
                let counted = move |tx: &mut dyn Tx| Ok::<_, Error>(searched::has_counts(tx, &row)?);
                if changed || !store.read(AllTenants, "has_counts", counted).await? {
                    let count = move |tx: &mut dyn Tx| Ok::<_, Error>(searched::count_terms(tx, &row)?);
                    store.write(AllTenants, "count_terms", count).await?;
                }
            }
        }
        Ok(())
    }
}
