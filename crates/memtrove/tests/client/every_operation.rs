//! Every operation is called at least once, each with something to say about its answer.

use crate::support::*;
use crate::{admin, attachments, conversations, files, memories, openspec};
use memtrove_client::operations;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_can_be_called() {
    let world = Arc::new(World::new());
    // Each by itself, so that one that fails does not hide what is wrong with the others.
    let mut failed = Vec::new();
    for chapter in ["service", "files", "conversations", "attachments", "memories", "openspec", "admin"] {
        if tokio::spawn(read(chapter, world.clone())).await.is_err() {
            failed.push(chapter);
        }
    }
    assert!(failed.is_empty(), "these chapters failed: {failed:?}");
    let called = world.called();
    let missing: Vec<&str> =
        operations::ALL.iter().map(|operation| operation.id).filter(|id| !called.contains(id)).collect();
    assert!(missing.is_empty(), "nobody called {missing:?}");
}

async fn read(chapter: &str, world: Arc<World>) {
    match chapter {
        "service" => service(&world).await,
        "files" => files::chapter(&world).await,
        "conversations" => conversations::chapter(&world).await,
        "attachments" => attachments::chapter(&world).await,
        "memories" => memories::chapter(&world).await,
        "openspec" => openspec::chapter(&world).await,
        "admin" => admin::chapter(&world).await,
        other => panic!("there is no chapter {other}"),
    }
}

async fn service(world: &World) {
    let client = world.agent("alice");
    assert_eq!(client.status().await.unwrap().service, "memtrove");
    for health in [client.health().await, client.live().await, client.ready().await] {
        assert_eq!(health.unwrap().status, "ok");
    }
}
