//! Taking texts in, in the background: first what can be said of them at once, then the vectors of the model that they
//! should have in the end.

use super::embeddings::{Described, at_once};
use crate::{Context, tasks};
use memtrove_core::{Error, GroupId, Result};
use memtrove_recall::embed::{EmbedError, Embedded};
use memtrove_store::AllTenants;
use memtrove_store::conversations::embeddings::{self, EmbeddedText, Waiting};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Texts that are taken in together: each batch is a unit of work, and others want to write too.
const BATCH_TEXTS: usize = 128;
const BATCH_BYTES: usize = 256 * 1024;
/// Trees that are written down together.
const TREES_AT_ONCE: usize = 32;
/// Texts that a model is given together. A transformer takes milliseconds for each.
const UPGRADE_TEXTS: usize = 32;
/// How long after a commit work begins, so that it is worth while. Searches do not depend on it.
const PAUSE: Duration = Duration::from_secs(1);

/// Until when the embedder is left alone, because it failed.
#[derive(Default)]
pub(crate) struct Patience(AtomicI64);

impl Patience {
    fn is_asked_for(&self, cx: &Context) -> bool {
        cx.clock.now().as_micros() < self.0.load(Ordering::Relaxed)
    }

    fn ask_for(&self, cx: &Context) {
        let until = cx.clock.now().as_micros() + cx.settings.task_retry_delay.as_micros() as i64;
        self.0.store(until, Ordering::Relaxed);
    }
}

/// Takes in what is written, for as long as it is polled.
pub(crate) async fn run(cx: &Arc<Context>) -> Infallible {
    let mut commits = cx.store.commits();
    loop {
        commits.borrow_and_update();
        if let Err(error) = work_off(cx, true).await {
            tracing::warn!(%error, "texts could not be taken in; trying again later");
        }
        // The store announces commits for as long as it is there; without it there is nothing to do either.
        let _ = tokio::time::timeout(cx.settings.task_interval, commits.changed()).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes in everything there is. If it is `polite`, it leaves others as much time as it takes.
pub(crate) async fn work_off(cx: &Arc<Context>, polite: bool) -> Result<()> {
    loop {
        let started = Instant::now();
        if !take_in(cx).await? && !upgrade_patiently(cx).await? {
            return Ok(());
        }
        if polite {
            tokio::time::sleep(started.elapsed()).await;
        }
    }
}

/// Asks the embedder once more after it failed.
pub(crate) async fn try_again(cx: &Arc<Context>) -> Result<(), String> {
    match upgrade(cx).await {
        Ok(Ok(_)) => {
            cx.patience.0.store(0, Ordering::Relaxed);
            Ok(())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Takes in the next texts; whether there were some.
async fn take_in(cx: &Arc<Context>) -> Result<bool> {
    let waiting = cx.store.read(AllTenants, "texts_waiting", |tx| {
        Ok::<_, Error>(embeddings::waiting(tx, BATCH_TEXTS, BATCH_BYTES)?)
    });
    let Some(Waiting { texts, numbers }) = waiting.await? else { return Ok(false) };
    let inner = cx.clone();
    let described = tokio::task::spawn_blocking(move || {
        let described = |text| (at_once(&inner, text), text.group);
        by_tree(texts.iter().map(described))
    });
    let described = described.await.map_err(|error| Error::internal(error.to_string()))?;
    write(cx, described).await?;
    cx.store
        .write(AllTenants, "take_in_texts", move |tx| Ok::<_, Error>(tx.take_in_texts(&numbers)?))
        .await?;
    Ok(true)
}

/// Gives the next texts the vectors they should have, unless that failed a moment ago; whether there were some.
async fn upgrade_patiently(cx: &Arc<Context>) -> Result<bool> {
    if cx.patience.is_asked_for(cx) {
        return Ok(false);
    }
    match upgrade(cx).await? {
        Ok(texts) => Ok(texts > 0),
        Err(error) => {
            tracing::warn!(%error, "texts could not be embedded; they are found by their words, and tried again later");
            cx.patience.ask_for(cx);
            let inner = cx.clone();
            cx.store
                .write(AllTenants, "retry_index", move |tx| {
                    Ok::<_, Error>(tasks::enqueue_index_retry(tx, &inner)?)
                })
                .await?;
            Ok(false)
        }
    }
}

/// Gives the next texts the vectors they should have; how many there were. The inner error is the embedder's.
pub(crate) async fn upgrade(cx: &Arc<Context>) -> Result<Result<usize, EmbedError>> {
    let model = cx.embeddings.preferred_model_id().filter(|_| cx.settings.search.semantic);
    let Some(model) = model.map(str::to_owned) else { return Ok(Ok(0)) };
    // Two at a time would make the same vectors.
    let _turn = cx.upgrading.lock().await;
    let outdated = cx.store.read(AllTenants, "texts_outdated", move |tx| {
        Ok::<_, Error>(embeddings::outdated(tx, &model, UPGRADE_TEXTS, BATCH_BYTES)?)
    });
    let texts = outdated.await?;
    if texts.is_empty() {
        return Ok(Ok(0));
    }
    let described: Vec<_> = texts.iter().map(Described::of).collect();
    let vectors = match vectors(cx, &described).await {
        Ok(vectors) => vectors,
        Err(error) => return Ok(Err(error)),
    };
    let embedded = described
        .into_iter()
        .zip(&vectors)
        .zip(&texts)
        .map(|((described, vectors), text)| (described.with(&cx.analyzer, Some(vectors)), text.group));
    write(cx, by_tree(embedded)).await?;
    Ok(Ok(texts.len()))
}

/// The vectors of every text's pieces.
async fn vectors(cx: &Context, described: &[Described<'_>]) -> Result<Vec<Vec<Embedded>>, EmbedError> {
    let pieces: Vec<&str> = described.iter().flat_map(|text| text.pieces.iter().copied()).collect();
    match cx.embeddings.upgrade(&pieces).await {
        Ok(vectors) => {
            let mut vectors = vectors.into_iter();
            Ok(described.iter().map(|text| vectors.by_ref().take(text.pieces.len()).collect()).collect())
        }
        Err(EmbedError::Permanent(_)) if described.len() > 1 => vectors_one_by_one(cx, described).await,
        Err(error) => Err(error),
    }
}

/// Finds out which text is refused. It stays without vectors, if others are not refused: then it is the text.
async fn vectors_one_by_one(
    cx: &Context,
    described: &[Described<'_>],
) -> Result<Vec<Vec<Embedded>>, EmbedError> {
    let (mut made, mut refused) = (Vec::new(), None);
    for text in described {
        match cx.embeddings.upgrade(&text.pieces).await {
            Ok(vectors) => made.push(vectors),
            Err(EmbedError::Permanent(why)) => {
                made.push(Vec::new());
                refused = Some(EmbedError::Permanent(why));
            }
            Err(error) => return Err(error),
        }
    }
    let model = made.iter().flatten().next().map(|embedded| embedded.model.clone());
    let (Some(model), Some(error)) = (model, &refused) else { return refused.map_or(Ok(made), Err) };
    tracing::warn!(%error, "some texts were refused and are found by their words only");
    for vectors in made.iter_mut().filter(|vectors| vectors.is_empty()) {
        vectors.push(Embedded { model: model.clone(), vector: Vec::new() });
    }
    Ok(made)
}

type ByTree = BTreeMap<GroupId, Vec<EmbeddedText>>;

fn by_tree(embedded: impl Iterator<Item = (EmbeddedText, GroupId)>) -> ByTree {
    let mut trees = ByTree::new();
    for (text, group) in embedded {
        trees.entry(group).or_default().push(text);
    }
    trees
}

/// Writes down what texts are found by: some trees at a time, so that an append to one of them does not wait for long.
async fn write(cx: &Context, trees: ByTree) -> Result<()> {
    let trees: Vec<(GroupId, Vec<EmbeddedText>)> = trees.into_iter().collect();
    for some in trees.chunks(TREES_AT_ONCE) {
        let some = some.to_vec();
        let put = cx.store.write(AllTenants, "put_meanings", move |tx| {
            // In one order, so that two who hold some do not wait for each other.
            let firsts = some.iter().filter_map(|(_, embedded)| embedded.first());
            let keys: BTreeSet<Uuid> = firsts.map(|first| first.conversation.0).collect();
            for key in &keys {
                tx.lock(key.as_bytes())?;
            }
            for (group, embedded) in &some {
                embeddings::put(tx, *group, embedded)?;
            }
            Ok::<_, Error>(())
        });
        put.await?;
    }
    Ok(())
}
