//! Many that change one file at once.

use crate::support::*;
use memtrove_client::{Envelope, FileUpdate, PatchOp, PatchRequest, Precondition, UpdateOptions};

const WRITERS: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn no_update_is_lost_when_many_change_one_file() {
    let world = World::new();
    let (client, scope, counter) = (world.agent("alice"), world.scope("alice"), path("counter.json"));
    let document = Envelope::new(
        "counter",
        "counter",
        "1",
        serde_json::Map::from_iter([("count".to_owned(), json!(0)), ("writers".to_owned(), json!([]))]),
    );
    client.write_file(&scope, &counter, document, Precondition::CreateNew).await.unwrap();

    let writers = (0..WRITERS).map(|writer| {
        let (client, scope, counter) = (client.clone(), scope.clone(), counter.clone());
        tokio::spawn(async move {
            let options = UpdateOptions { max_conflict_retries: 10_000, ..UpdateOptions::default() };
            let update = |file: memtrove_client::StoredFile| async move {
                let count = file.document.content["count"].as_i64().unwrap();
                let ops = [
                    PatchOp::replace("/content/count", count + 1),
                    PatchOp::add("/content/writers/-", writer),
                ];
                Ok(FileUpdate::Patch(PatchRequest::ops(ops)))
            };
            client.update_with_retry(&scope, &counter, options, update).await
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }

    let content = client.get_file(&scope, &counter).await.unwrap().document.content;
    assert_eq!(content["count"], json!(WRITERS));
    let mut seen: Vec<u64> =
        content["writers"].as_array().unwrap().iter().map(|w| w.as_u64().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..WRITERS as u64).collect::<Vec<_>>());
}
