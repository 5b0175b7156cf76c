//! Other vectors for entries, in the background: of a better model than the one at hand when they were written, or of the
//! model that is configured by now. The old ones serve until then.

use super::Memories;
use super::pieces::CutTexts;
use super::writing::terms_of;
use memtrove_core::memories::Embedding;
use memtrove_core::recall::passages::is_long;
use memtrove_core::{Error, Result};
use memtrove_recall::embed::EmbedError;
use memtrove_store::AllTenants;
use memtrove_store::memories::entries::Stored;
use memtrove_store::memories::upgrades;
use memtrove_store::memories::writing::Writing;
use std::sync::Arc;
use std::time::Duration;

/// Entries that a step looks at, to find those of other models.
const STEP: i64 = 1000;
/// Texts that a model is given at once.
const BATCH: i64 = 32;
/// How long after a commit of another node work begins, so that it is worth while.
const PAUSE: Duration = Duration::from_secs(1);

impl Memories {
    /// Wakes the task that makes better vectors.
    pub(crate) fn wake_upgrades(&self) {
        self.parts.upgrades.notify_one();
    }

    /// Resolves when somebody wants better vectors to be made; on another node, when it has written something.
    pub(crate) async fn upgrades_wanted(&self) {
        let wanted = self.parts.upgrades.notified();
        if !self.cx.store.is_shared() {
            return wanted.await;
        }
        let mut commits = self.cx.store.commits();
        let listed = async {
            loop {
                // The store announces commits for as long as it is there.
                let _ = commits.changed().await;
                tokio::time::sleep(PAUSE).await;
                let next = self.cx.store.read(AllTenants, "list_upgrades", |tx| upgrades::next(tx, 1)).await;
                if next.is_ok_and(|next| !next.is_empty()) {
                    return;
                }
            }
        };
        tokio::select! {
            () = wanted => {}
            () = listed => {}
        }
    }

    /// Puts every entry on the list whose vector another model made than the one there should be, if the model is another than
    /// the last time this was done.
    pub(crate) async fn list_outdated_after_a_change(&self) -> Result<()> {
        let listed = self
            .cx
            .store
            .read(AllTenants, "listed_model", |tx| Ok::<_, Error>(upgrades::listed_for(tx)?))
            .await?;
        let preferred = self.cx.embeddings.preferred_model_id();
        if preferred.is_none() || listed.as_deref() == preferred {
            return Ok(());
        }
        if let Some(before) = listed {
            tracing::info!(
                from = before,
                to = preferred,
                "another model makes vectors now: all are made anew"
            );
        }
        self.list_outdated().await
    }

    /// Puts every entry on the list whose vector another model made than the one there should be.
    pub(crate) async fn list_outdated(&self) -> Result<()> {
        let Some(model) = self.cx.embeddings.preferred_model_id() else { return Ok(()) };
        let model: Arc<str> = model.into();
        let mut after = Some(0);
        while let Some(place) = after {
            let model = model.clone();
            let step = self.cx.store.write(AllTenants, "list_outdated_vectors", move |tx| {
                let last = upgrades::add_others(tx, &model, place, STEP)?;
                if last.is_none() {
                    upgrades::set_listed_for(tx, &model)?;
                }
                Ok::<_, Error>(last)
            });
            after = step.await?;
        }
        Ok(())
    }

    /// Makes the next vectors of the list; says how many. The inner error is the embedder's.
    pub(crate) async fn upgrade_some(&self) -> Result<Result<usize, EmbedError>> {
        if self.cx.embeddings.space().is_none() {
            return Ok(Ok(0));
        }
        // Two at a time would make the same vectors.
        let _turn = self.cx.upgrading.lock().await;
        let next = || {
            self.cx.store.read(AllTenants, "list_upgrades", |tx| Ok::<_, Error>(upgrades::next(tx, BATCH)?))
        };
        let mut batch = next().await?;
        while batch.is_empty() {
            // Those that went since are on the list still, and may hide others.
            let drop = self
                .cx
                .store
                .write(AllTenants, "drop_upgrades", |tx| Ok::<_, Error>(upgrades::drop_missing(tx, STEP)?));
            if drop.await? == 0 {
                return Ok(Ok(0));
            }
            batch = next().await?;
        }
        let vectors = match self.vectors(&batch).await {
            Ok(vectors) => vectors,
            Err(error) => return Ok(Err(error)),
        };
        let count = batch.len();
        // Of a long one the words of its pieces go with their vectors.
        let terms: Vec<_> = batch
            .iter()
            .map(|stored| is_long(&stored.memory.content).then(|| terms_of(&self.cx, &stored.memory)))
            .collect();
        let work = Arc::new((batch, vectors, terms));
        self.cx
            .store
            .write(AllTenants, "upgrade_vectors", move |tx| {
                let mut writing = Writing::default();
                for ((stored, made), terms) in work.0.iter().zip(&work.1).zip(&work.2) {
                    match made {
                        Some(made) => {
                            upgrades::put(tx, stored, made, terms.as_ref(), &mut writing)?;
                        }
                        None => upgrades::remove(tx, stored.no)?,
                    }
                }
                writing.finish(tx)?;
                Ok::<_, Error>(())
            })
            .await?;
        Ok(Ok(count))
    }

    /// A vector for each entry but those whose text is refused: they keep what they have.
    async fn vectors(&self, batch: &[Stored]) -> Result<Vec<Option<Embedding>>, EmbedError> {
        let embeddings = &self.cx.embeddings;
        let texts: Vec<&str> = batch.iter().map(|stored| stored.memory.content.as_str()).collect();
        let cut = CutTexts::of(&texts);
        let refusal = match embeddings.upgrade(cut.all()).await {
            Ok(made) => return Ok(cut.embeddings(made).into_iter().map(Some).collect()),
            Err(refusal @ EmbedError::Permanent(_)) => refusal,
            Err(error) => return Err(error),
        };
        // Is it the texts? Who refuses this one refuses everything.
        embeddings.upgrade(&["text"]).await?;
        tracing::warn!(error = %refusal, "some memories are refused and keep the vectors they have");
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let cut = CutTexts::of(&[text]);
            match embeddings.upgrade(cut.all()).await {
                Ok(made) => vectors.push(cut.embeddings(made).pop()),
                Err(EmbedError::Permanent(_)) => vectors.push(None),
                Err(error) => return Err(error),
            }
        }
        Ok(vectors)
    }
}
