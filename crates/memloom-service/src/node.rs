//! This process among those that share a store.

use crate::Context;
use memloom_core::{Error, Result};
use memloom_store::nodes::{self, Node};
use memloom_store::{StoreError, Tx, leases};
use std::convert::Infallible;

/// Nodes that work on the store.
const NODES: &str = "memloom_nodes";
/// A node says so often that it is there, in the time after which it counts as gone.
const BEATS: u32 = 3;
/// What a node that died has left is removed after so long, in microseconds.
const FORGOTTEN_MICROS: i64 = 3600 * 1_000_000;

/// Describes the numbers of this module to the recorder.
pub fn announce_metrics() {
    metrics::describe_gauge!(NODES, "Nodes that work on the store.");
    metrics::gauge!(NODES).set(1.0);
}

/// Says that this node is there, for as long as it is polled. Nobody asks where it is the only one.
pub(crate) async fn run(cx: &Context) -> Infallible {
    if !cx.store.is_shared() {
        return std::future::pending().await;
    }
    loop {
        if let Err(error) = beat(cx).await {
            tracing::debug!(%error, "this node could not say that it is there; trying again soon");
        }
        tokio::time::sleep(cx.settings.lease / BEATS).await;
    }
}

async fn beat(cx: &Context) -> Result<()> {
    let now = cx.clock.now();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let node = Node { id: cx.node, version, started_at: cx.started_at, seen_at: now };
    cx.store.write("beat", move |tx| Ok::<_, Error>(nodes::beat(tx, &node)?)).await
}

/// Removes what nodes have left that are gone.
pub(crate) async fn bury(cx: &Context) -> Result<()> {
    if !cx.store.is_shared() {
        return Ok(());
    }
    let before = cx.clock.now().saturating_add_micros(-FORGOTTEN_MICROS);
    cx.store
        .write("bury_nodes", move |tx| {
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
    let left: Result<(), StoreError> = cx.store.write("leave", leave).await;
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
    match cx.store.read("count_nodes", move |tx| nodes::seen_since(tx, since)).await {
        Ok(seen) => metrics::gauge!(NODES).set(seen.len() as f64),
        Err(error) => tracing::debug!(%error, "nodes could not be counted"),
    }
}
