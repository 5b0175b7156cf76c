//! The background worker: work that must happen some time, at least once, and one failure at a time.

use crate::conversations::{IDEMPOTENCY_MICROS, ingest};
use crate::files::work_on_job;
use crate::idempotency::oldest_answer;
use crate::{Context, Files, changes, files_metrics, jobs, node};
use memtrove_core::{Error, GroupId, Result, Timestamp};
use memtrove_store::conversations::{embeddings, idempotency};
use memtrove_store::idempotency::{self as answers, AnswerTable};
use memtrove_store::tasks::{self, Task};
use memtrove_store::{AllTenants, StoreError, Tx};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

const VECTOR_DELETE: &str = "vector_store_delete";
const VECTOR_INDEX_RETRY: &str = "vector_store_index_retry";
const MAX_RETRY_DELAY: Duration = Duration::from_secs(6 * 3600);
/// Keys that one unit of work forgets at most: other writes wait meanwhile.
const PURGED_AT_ONCE: i64 = 500;

/// Notes that the vectors of an evicted tree must go too.
pub(crate) fn enqueue_vector_delete(tx: &mut dyn Tx, cx: &Context, group: GroupId) -> Result<(), StoreError> {
    let body = format!("{{\"conversationGroupId\":\"{group}\"}}");
    tasks::enqueue(tx, cx.clock.new_id(), None, VECTOR_DELETE, &body, cx.clock.now())
}

/// Notes that texts are still to be embedded.
pub(crate) fn enqueue_index_retry(tx: &mut dyn Tx, cx: &Context) -> Result<(), StoreError> {
    let name = Some(VECTOR_INDEX_RETRY);
    tasks::enqueue(tx, cx.clock.new_id(), name, VECTOR_INDEX_RETRY, "{}", cx.clock.now())
}

/// Works until `shutdown` resolves; woken when something is queued, and from time to time.
pub(crate) async fn run(cx: &Arc<Context>, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    loop {
        // Whatever a round has not come to is still in the queue: claims of a process that is gone become stale.
        tokio::select! {
            () = &mut shutdown => return,
            result = round(cx) => if let Err(error) = result {
                tracing::warn!(%error, "the task queue could not be worked on; trying again later");
            },
        }
        tokio::select! {
            () = &mut shutdown => return,
            () = cx.tasks.notified() => {}
            () = tokio::time::sleep(cx.settings.task_interval) => {}
        }
    }
}

/// Does the chores at once and then every interval, for as long as it is polled.
pub(crate) async fn run_chores(cx: &Arc<Context>, files: &Files) -> Infallible {
    loop {
        chores(cx, files).await;
        tokio::time::sleep(cx.settings.task_interval).await;
    }
}

/// What has to be done again and again. A chore that fails is one that waits for the next round.
pub(crate) async fn chores(cx: &Arc<Context>, files: &Files) {
    let chores = [
        ("purging idempotency keys", purge_idempotency_keys(cx).await),
        ("trimming the change feed", changes::trim(cx).await),
        ("purging jobs", jobs::purge(cx).await),
        ("finishing what forgetting began", files.finish_forgetting().await),
        ("removing what other nodes have left", node::bury(cx).await),
        ("removing buckets that are full", cx.quotas.clean_up().await),
    ];
    for (chore, result) in chores {
        if let Err(error) = result {
            tracing::warn!(chore, %error, "a chore failed; trying again later");
        }
    }
}

/// Works on every task that is due. All nodes do: a task belongs to the node that claims it.
pub(crate) async fn round(cx: &Arc<Context>) -> Result<()> {
    loop {
        let claimed = claim(cx).await?;
        let full = claimed.len() == cx.settings.task_batch_size;
        if !claimed.is_empty() {
            settle(cx, claimed).await?;
        }
        let (depth, oldest) =
            cx.store.read(AllTenants, "task_backlog", |tx| Ok::<_, Error>(tasks::backlog(tx)?)).await?;
        let age = oldest.map_or(0, |oldest| cx.clock.now().as_micros() - oldest.as_micros());
        metrics::gauge!("memory_task_queue_depth").set(depth as f64);
        metrics::gauge!("memory_task_queue_oldest_seconds").set(age as f64 / 1e6);
        if !full {
            return Ok(());
        }
    }
}

/// Works on jobs whenever there are some, for as long as it is polled. Beside the queue and not in it: a job may take hours.
pub(crate) async fn run_jobs(cx: &Context, files: &Files) -> Infallible {
    loop {
        if let Err(error) = work_off_jobs(files).await {
            tracing::warn!(%error, "a job could not be worked on; trying again later");
        }
        tokio::select! {
            () = cx.jobs.notified() => {}
            () = tokio::time::sleep(cx.settings.task_interval) => {}
        }
    }
}

/// Works on every job that waits.
pub(crate) async fn work_off_jobs(files: &Files) -> Result<()> {
    while work_on_job(files).await? {}
    Ok(())
}

/// Applies the deployment's retention, at once and then every interval, for as long as it is polled. Beside the queue and not
/// in it: a walk through everybody's events must not hold up tasks.
pub(crate) async fn run_retention(cx: &Context, files: &Files) -> Infallible {
    loop {
        let pause = match files.sweep().await {
            Ok((events, audit)) => {
                if events + audit > 0 {
                    tracing::info!(target: "files.operator", events, audit, "the configured retention was applied");
                }
                cx.settings.retention.interval
            }
            Err(error) => {
                tracing::warn!(%error, "retention could not be applied everywhere; trying again later");
                cx.settings.retention.interval.min(cx.settings.task_retry_delay)
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Forgets the keys of requests that are too old to count as repeated.
async fn purge_idempotency_keys(cx: &Context) -> Result<()> {
    let conversations = cx.clock.now().saturating_add_micros(-IDEMPOTENCY_MICROS);
    let files = oldest_answer(cx);
    cx.store
        .write(AllTenants, "purge_idempotency_keys", move |tx| {
            Ok::<_, Error>(idempotency::purge(tx, conversations)?)
        })
        .await?;
    loop {
        let purged = cx.store.write(AllTenants, "purge_file_idempotency_keys", move |tx| {
            Ok::<_, Error>(answers::purge(tx, AnswerTable::Files, files, PURGED_AT_ONCE)?)
        });
        let purged = purged.await?;
        files_metrics::deleted("idempotency", "expiry", purged);
        if purged == 0 {
            return Ok(());
        }
    }
}

async fn claim(cx: &Arc<Context>) -> Result<Vec<Task>> {
    let now = cx.clock.now();
    let stale = now.saturating_add_micros(-(cx.settings.task_stale_claim.as_micros() as i64));
    let limit = cx.settings.task_batch_size as i64;
    cx.store.write(AllTenants, "claim_tasks", move |tx| Ok(tasks::claim(tx, now, stale, limit)?)).await
}

/// Runs each task by itself, so that a poison task fails alone, and writes down what became of them at once.
async fn settle(cx: &Arc<Context>, claimed: Vec<Task>) -> Result<()> {
    let mut done = Vec::new();
    let mut failed = Vec::new();
    for task in claimed {
        match execute(cx, &task).await {
            Ok(()) => done.push(task),
            Err(error) => {
                metrics::counter!("memory_task_failures_total", "type" => known_type(&task.kind))
                    .increment(1);
                tracing::warn!(task = %task.id, kind = task.kind, error, "a task failed and will be tried again");
                let retry_at = retry_at(cx, &task);
                failed.push((task, error, retry_at));
            }
        }
    }
    cx.store
        .write(AllTenants, "settle_tasks", move |tx| {
            for task in &done {
                tasks::complete(tx, task)?;
            }
            for (task, error, retry_at) in &failed {
                tasks::fail(tx, task, error, *retry_at)?;
            }
            Ok(())
        })
        .await
}

/// Does what a task says.
async fn execute(cx: &Arc<Context>, task: &Task) -> Result<(), String> {
    match task.kind.as_str() {
        VECTOR_DELETE => delete_vectors(cx, &task.body).await,
        VECTOR_INDEX_RETRY => ingest::try_again(cx).await,
        unknown => Err(format!("this version does not know tasks of type '{unknown}'")),
    }
}

/// Removes all that was derived from the texts of a tree, which are gone.
async fn delete_vectors(cx: &Arc<Context>, body: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DeletedTree {
        conversation_group_id: GroupId,
    }
    let DeletedTree { conversation_group_id: group } =
        serde_json::from_str(body).map_err(|e| e.to_string())?;
    let removed = cx.store.write(AllTenants, "delete_vectors", move |tx| embeddings::remove_tree(tx, group));
    removed.await.map_err(|error: StoreError| error.to_string())?;
    let inner = cx.clone();
    // It waits for those who search what is about to go.
    let forget = tokio::task::spawn_blocking(move || inner.trees.forget(group));
    forget.await.map_err(|error| error.to_string())
}

/// A label from a bounded set, whatever the table holds.
fn known_type(kind: &str) -> &'static str {
    match kind {
        VECTOR_DELETE => VECTOR_DELETE,
        VECTOR_INDEX_RETRY => VECTOR_INDEX_RETRY,
        _ => "unknown",
    }
}

/// Twice as long after every failure, spread by up to a quarter so that failures do not march in step.
fn retry_at(cx: &Context, task: &Task) -> Timestamp {
    let unknown = known_type(&task.kind) == "unknown";
    let doubled = cx.settings.task_retry_delay.saturating_mul(1 << task.retry_count.clamp(0, 20));
    let delay = if unknown { MAX_RETRY_DELAY } else { doubled.min(MAX_RETRY_DELAY) };
    let spread = u64::from(cx.clock.new_id().as_bytes()[15]) * delay.as_micros() as u64 / 1024;
    cx.clock.now().saturating_add_micros(delay.as_micros() as i64 + spread as i64)
}
