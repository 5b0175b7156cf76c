use super::*;
use memtrove_core::identity::Tenant;
use memtrove_core::{Code, ConversationId};
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_testkit::clock::TestClock;

/// A node whose Redis does not answer.
fn node(folder: &tempfile::TempDir) -> Arc<Node> {
    let path = folder.path().join("memtrove.db");
    let engine = SqliteEngine::open(SqliteConfig { path, ..SqliteConfig::default() }).unwrap();
    let (id, store) = (Uuid::from_u128(1), Store::new(Arc::new(engine)));
    let locators = Locators::in_redis("redis://127.0.0.1:1", id).unwrap();
    let settings = RecorderSettings::default();
    Arc::new(Node::new(id, store, Arc::new(TestClock::new()), settings, Some(locators), Handle::current()))
}

async fn begin(node: &Arc<Node>) -> Result<Recording> {
    let (tenant, id, group) =
        (Tenant::listed("tenant".into()), ConversationId(Uuid::nil()), GroupId(Uuid::nil()));
    let access = Access::granted(tenant, id, group);
    node.begin(&access, Address { host: "node".into(), port: 80 }).await
}

#[tokio::test]
async fn a_recording_that_nobody_can_be_told_of_for_too_long_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    // Somebody works who never comes to an end.
    node.orders().is_worked_on = true;
    let refused = begin(&node).await.err();
    assert!(matches!(refused, Some(Error { code: Code::StorageUnavailable, .. })), "{refused:?}");
}

#[tokio::test]
async fn what_waits_is_told_by_another_when_the_one_who_told_died() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    node.orders().is_worked_on = true;
    let dies = async {
        let worker = Worker(Arc::clone(&node));
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _worker = worker;
            panic!("over an order");
        }));
        assert!(died.is_err());
    };
    let (refused, ()) = tokio::join!(begin(&node), dies);
    let Some(Error { code: Code::StorageUnavailable, cause: Some(reason), .. }) = refused.err() else {
        panic!("it was not told")
    };
    assert!(reason.contains("redis"), "{reason}");
    node.all_told().await;
    assert!(!node.orders().is_worked_on);
}

#[tokio::test]
async fn a_node_that_stops_tells_nobody_of_what_would_begin() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    node.close();
    let Some(Error { code: Code::StorageUnavailable, cause: Some(reason), .. }) = begin(&node).await.err()
    else {
        panic!("it began")
    };
    assert!(reason.contains("stops"), "{reason}");
}
