//! Taking texts in, in the background: first what can be said of them at once, then the vectors of the model that they
//! should have in the end.

use super::embeddings::{Described, at_once};
use crate::{Context, tasks};
use memtrove_core::{Error, GroupId, Result};
use memtrove_recall::embed::{EmbedError, Embedded};
use memtrove_store::conversations::embeddings::{self, EmbeddedText, Text, Waiting};
use memtrove_store::{AllTenants, Tx};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Texts that are read together, and how many bytes of them.
const READ_TEXTS: usize = 1024;
const READ_BYTES: usize = 2 << 20;
/// Texts that are written down together: each batch is a unit of work, and others want to write too.
const BATCH_TEXTS: usize = 128;
/// With so many texts waiting no time is left to others any more: they wait for the writer, not for us.
const BEHIND: i64 = 10_000;
/// So many texts are counted at most.
const MOST_COUNTED: i64 = 10_000_000;
/// Gauge: texts that searches by meaning have to take in by themselves still.
const WAITING: &str = "memory_conversation_texts_waiting";
/// Of texts that a model is given together.
const UPGRADE_BYTES: usize = 256 * 1024;
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

/// Takes in everything there is. If it is `polite`, it leaves others as much time as it takes, or less where much is waiting.
pub(crate) async fn work_off(cx: &Arc<Context>, polite: bool) -> Result<()> {
    loop {
        let started = Instant::now();
        if !take_in(cx).await? && !upgrade_patiently(cx).await? {
            return Ok(());
        }
        if polite {
            tokio::time::sleep(pause(started.elapsed(), count_waiting(cx, BEHIND).await?)).await;
        }
    }
}

/// How long to leave to others after so much work, with so many texts waiting.
fn pause(work: Duration, waiting: i64) -> Duration {
    work.mul_f64((1.0 - waiting as f64 / BEHIND as f64).clamp(0.0, 1.0))
}

async fn count_waiting(cx: &Context, most: i64) -> Result<i64> {
    let count = move |tx: &mut dyn Tx| Ok::<_, Error>(tx.count_untaken_texts(most)?);
    cx.store.read(AllTenants, "count_texts_waiting", count).await
}

/// Describes the metrics of this module.
pub(crate) fn announce_metrics() {
    metrics::describe_gauge!(
        WAITING,
        "Texts of conversations that were not taken in yet by what makes them searchable by meaning."
    );
}

/// Sets the metrics of texts, before they are read.
pub(crate) async fn sample_metrics(cx: &Context) {
    match count_waiting(cx, MOST_COUNTED).await {
        Ok(waiting) => metrics::gauge!(WAITING).set(waiting as f64),
        Err(error) => tracing::warn!(%error, "texts that wait to be taken in could not be counted"),
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
        Ok::<_, Error>(embeddings::waiting(tx, READ_TEXTS, READ_BYTES)?)
    });
    let Some(Waiting { texts, numbers }) = waiting.await? else { return Ok(false) };
    let mut described = None;
    for batch in texts.chunks(BATCH_TEXTS) {
        // One batch is described while the one before is written down.
        let next = describe(cx, batch.to_vec());
        described = Some(match described.take() {
            Some(before) => tokio::try_join!(write(cx, before), next)?.1,
            None => next.await?,
        });
    }
    if let Some(last) = described {
        write(cx, last).await?;
    }
    cx.store
        .write(AllTenants, "take_in_texts", move |tx| Ok::<_, Error>(tx.take_in_texts(&numbers)?))
        .await?;
    Ok(true)
}

async fn describe(cx: &Arc<Context>, texts: Vec<Text>) -> Result<ByTree> {
    let inner = cx.clone();
    let described = tokio::task::spawn_blocking(move || {
        by_tree(texts.iter().map(|text| (at_once(&inner, text), text.group)))
    });
    described.await.map_err(|error| Error::internal(error.to_string()))
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
        Ok::<_, Error>(embeddings::outdated(tx, &model, UPGRADE_TEXTS, UPGRADE_BYTES)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_waiting_the_less_is_left_to_others() {
        let work = Duration::from_millis(100);
        let pauses = [0, BEHIND / 4, BEHIND, 10 * BEHIND].map(|waiting| pause(work, waiting).as_millis());
        assert_eq!(pauses, [100, 75, 0, 0]);
    }
}
