//! Every operation is called at least once, each with something to say about its answer.

use crate::support::*;
use crate::{admin, attachments, conversations, files, memories, openspec};
use memloom_client::operations;

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_can_be_called() {
    let world = World::new();
    service(&world).await;
    files::chapter(&world).await;
    conversations::chapter(&world).await;
    attachments::chapter(&world).await;
    memories::chapter(&world).await;
    openspec::chapter(&world).await;
    admin::chapter(&world).await;
    let called = world.called();
    let missing: Vec<&str> =
        operations::ALL.iter().map(|operation| operation.id).filter(|id| !called.contains(id)).collect();
    assert!(missing.is_empty(), "nobody called {missing:?}");
}

async fn service(world: &World) {
    let client = world.agent("alice");
    assert_eq!(client.status().await.unwrap().service, "memloom");
    for health in [client.health().await, client.live().await, client.ready().await] {
        assert_eq!(health.unwrap().status, "ok");
    }
}
