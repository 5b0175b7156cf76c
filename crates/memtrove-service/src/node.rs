//! This process among those that share a store.

use crate::{Context, Memories};
use memtrove_core::{Error, Result};
use memtrove_store::files::forget;
use memtrove_store::nodes::{self, Node, NodePlace};
use memtrove_store::{AllTenants, StoreError, Tx, leases};
use std::convert::Infallible;

/// Nodes that work on the store.
const NODES: &str = "memtrove_nodes";
/// A node says so often that it is there, in the time after which it counts as gone.
const BEATS: u32 = 3;
/// What a node that died has left is removed after so long, in microseconds.
const FORGOTTEN_MICROS: i64 = 3600 * 1_000_000;

/// Describes the numbers of this module to the recorder.
pub fn announce_metrics() {
    metrics::describe_gauge!(NODES, "Nodes that work on the store.");
    metrics::gauge!(NODES).set(1.0);
}

/// Says that this node is there, and looks whether somebody was forgotten on another, for as long as it is polled. The only
/// node of a store has nothing to say.
pub(crate) async fn run(cx: &Context, memories: &Memories) -> Infallible {
    if !cx.store.is_shared() {
        return std::future::pending().await;
    }
    let place = place(cx);
    let mut known = None;
    loop {
        match beat(cx, &place).await {
            Ok(begun) => {
                if known.is_none() {
                    join(cx, &place).await;
                }
                if known.replace(begun).is_some_and(|known| known != begun) {
                    memories.drop_everything_kept();
                }
            }
            Err(error) => {
                tracing::debug!(%error, "this node could not say that it is there; trying again soon")
            }
        }
        tokio::time::sleep(cx.settings.lease / BEATS).await;
    }
}

/// Says that this node is there; answers how many forgets have begun.
async fn beat(cx: &Context, place: &NodePlace) -> Result<i64> {
    let now = cx.clock.now();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let node = Node { id: cx.node, version, started_at: cx.started_at, seen_at: now };
    let place = place.clone();
    let beat = move |tx: &mut dyn Tx| {
        nodes::beat(tx, &node)?;
        nodes::introduce(tx, node.id, &place)?;
        Ok::<_, Error>(forget::begun(tx)?)
    };
    cx.store.write(AllTenants, "beat", beat).await
}

/// Where this node runs, and what others must have set alike: a text is found by the words and vectors that its writer made.
fn place(cx: &Context) -> NodePlace {
    let settings = format!(
        "embedding model {}, search.language {}",
        cx.embeddings.preferred_model_id().unwrap_or("none"),
        cx.settings.language
    );
    NodePlace { host: host(), process: std::process::id().into(), settings }
}

/// The name of this machine, as far as it says.
pub(crate) fn host() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let set = || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    told.or_else(set).unwrap_or_default().trim().to_owned()
}

/// Says in the log who this node is, and whom it does not agree with.
async fn join(cx: &Context, place: &NodePlace) {
    tracing::info!(node = %cx.node, host = place.host, process = place.process, "this node works on the store");
    let since = cx.clock.now().saturating_add_micros(-(cx.settings.lease.as_micros() as i64));
    let others = match cx.store.read(AllTenants, "list_nodes", move |tx| nodes::places(tx, since)).await {
        Ok(others) => others,
        Err(error) => return tracing::debug!(%error, "other nodes could not be looked at"),
    };
    for (node, other) in others.into_iter().filter(|(_, other)| other.settings != place.settings) {
        tracing::warn!(
            %node, other = %other, here = place.settings, there = other.settings,
            "another node has other settings: what one writes the other may not find"
        );
    }
}

/// Removes what nodes have left that are gone.
pub(crate) async fn bury(cx: &Context) -> Result<()> {
    if !cx.store.is_shared() {
        return Ok(());
    }
    let before = cx.clock.now().saturating_add_micros(-FORGOTTEN_MICROS);
    cx.store
        .write(AllTenants, "bury_nodes", move |tx| {
            nodes::purge(tx, before)?;
            leases::purge(tx, before)?;
            Ok(())
        })
        .await
}

/// Says that this node stops, so that others take over at once what it did for them.
pub(crate) async fn leave(cx: &Context) {
    if !cx.store.is_shared() {
        return;
    }
    let node = cx.node;
    let leave = move |tx: &mut dyn Tx| {
        leases::release_all(tx, node)?;
        nodes::remove(tx, node)
    };
    let left: Result<(), StoreError> = cx.store.write(AllTenants, "leave", leave).await;
    if let Err(error) = left {
        tracing::warn!(%error, "this node could not say that it stops; others notice by themselves");
    }
}

/// Sets the metrics that nothing keeps up to date.
pub(crate) async fn sample_metrics(cx: &Context) {
    if !cx.store.is_shared() {
        return;
    }
    let since = cx.clock.now().saturating_add_micros(-(cx.settings.lease.as_micros() as i64));
    match cx.store.read(AllTenants, "count_nodes", move |tx| nodes::seen_since(tx, since)).await {
        Ok(seen) => metrics::gauge!(NODES).set(seen.len() as f64),
        Err(error) => tracing::debug!(%error, "nodes could not be counted"),
    }
}
