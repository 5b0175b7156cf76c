//! Memories and facts.

use crate::support::*;
use memtrove_client::CallOptions;
use memtrove_client::memories::*;

pub async fn chapter(world: &World) {
    let agent = world.agent("dana");
    one(&agent).await;
    finding(&agent).await;
    many(&agent).await;
    life(world, &agent).await;
    facts(&agent).await;
    let capabilities = agent.memory_capabilities().await.unwrap();
    assert_eq!(capabilities.layers[0].name, MemoryLayer::Agent);
    assert_eq!(agent.memory_health().await.unwrap().status, "healthy");
}

fn dana() -> MemoryIdentifiers {
    MemoryIdentifiers::user("dana")
}

fn memory(text: &str) -> AddMemoryRequest {
    AddMemoryRequest::new(MemoryLayer::User, dana(), text)
}

async fn one(agent: &Client) {
    let keyed = agent.with_options(CallOptions::idempotent("seat"));
    let added = keyed.add_memory(memory("Dana prefers window seats")).await.unwrap();
    assert!(added.embedding_generated);
    assert_eq!(
        keyed.add_memory(memory("Dana prefers window seats")).await.unwrap().memory.id,
        added.memory.id
    );
    let id = added.memory.id;
    let expect = Expect { layer: Some(MemoryLayer::User), identifiers: dana(), version: None };
    assert_eq!(agent.get_memory(id, expect).await.unwrap().content, "Dana prefers window seats");
    let elsewhere = Expect { identifiers: MemoryIdentifiers::user("bob"), ..Expect::nothing() };
    assert!(agent.get_memory(id, elsewhere).await.is_err());
    assert!(agent.get_memory_with_embedding(id, Expect::nothing()).await.unwrap().embedding.is_some());

    let change =
        || UpdateMemoryRequest { content: Some("Dana prefers aisle seats".into()), ..Default::default() };
    let updated = agent.update_memory(id, change(), Expect::version(1)).await.unwrap();
    assert!(updated.memory.version == 2 && updated.embedding_regenerated);
    let since = async |version| agent.get_memory_if_changed(id, version, Expect::nothing()).await.unwrap();
    assert!(since(2).await.is_none());
    assert_eq!(since(1).await.unwrap().content, "Dana prefers aisle seats");
    let stale = agent.update_memory(id, change(), Expect::version(1)).await.unwrap_err();
    assert_eq!(stale.api().unwrap().status.as_u16(), 412);

    let other = agent.add_memory(memory("Dana once lived in Oslo")).await.unwrap().memory.id;
    assert!(agent.delete_memory(other, Expect::nothing()).await.unwrap().deleted);
    let gone = agent.get_memory(other, Expect::nothing()).await.unwrap_err();
    assert!(gone.is_not_found() && gone.api().unwrap().code == "MEMORY_NOT_FOUND", "{gone}");
}

async fn finding(agent: &Client) {
    let mut tagged = memory("Dana is allergic to peanuts");
    tagged.metadata = Some(MemoryMetadata {
        tags: Some(vec!["health".into()]),
        custom: serde_json::Map::from_iter([("severity".to_owned(), json!(3))]),
        ..MemoryMetadata::default()
    });
    agent.add_memory(tagged).await.unwrap();
    let search =
        SearchMemoriesRequest { threshold: Some(0.3), ..SearchMemoriesRequest::new(dana(), "which seats?") };
    let found = agent.search_memories(search).await.unwrap();
    assert_eq!(found.results[0].memory.content, "Dana prefers aisle seats");

    let all = || ListMemoriesRequest::new(MemoryLayer::User, dana());
    let with = |filter| ListMemoriesRequest { filter: Some(filter), ..all() };
    assert_eq!(agent.list_memories(all()).await.unwrap().total_count, 2);
    let tagged = || MemoryFilter { tags: Some(vec!["health".into()]), ..MemoryFilter::default() };
    assert_eq!(agent.list_memories(with(tagged())).await.unwrap().total_count, 1);
    let severe = serde_json::Map::from_iter([("severity".to_owned(), json!({"$gte": 3}))]);
    let severe = || MemoryFilter { custom: Some(severe.clone()), ..MemoryFilter::default() };
    assert_eq!(agent.filter_memories(with(severe())).await.unwrap().total_count, 1);
    let refused = agent.list_memories(with(severe())).await.unwrap_err();
    assert!(matches!(refused, Error::InvalidInput(_)), "{refused}");
    let request = ListMemoriesRequest { limit: Some(1), ..all() };
    let one_by_one: Vec<Memory> = agent.list_memories_all(request).try_collect().await.unwrap();
    assert_eq!(one_by_one.len(), 2);
}

async fn many(agent: &Client) {
    let texts = ["Dana rows on Sundays", "Dana plays the cello", " "];
    let request = BulkAddRequest { memories: texts.map(memory).to_vec(), atomic: None };
    let added = agent.bulk_add(request).await.unwrap();
    assert_eq!((added.added, added.failed), (2, 1));
    let ids = added.results.iter().filter_map(|result| Some(result.memory.as_ref()?.id));
    let deleted = agent.bulk_delete(ids.chain([uuid::Uuid::nil()])).await.unwrap();
    assert_eq!((deleted.deleted, deleted.failed.len()), (2, 1));

    let mut scratch = memory("step two of five");
    (scratch.kind, scratch.layer) = (Some(MemoryKind::Working), Some(MemoryLayer::Session));
    scratch.identifiers = Some(MemoryIdentifiers::session("dana", "s1"));
    agent.add_memory(scratch).await.unwrap();
    let request = ClearMemoriesRequest {
        layer: Some(MemoryLayer::Session),
        identifiers: Some(MemoryIdentifiers::session("dana", "s1")),
        kinds: None,
    };
    assert_eq!(agent.clear_memories(request).await.unwrap().cleared, 1);
}

async fn life(world: &World, agent: &Client) {
    let id = agent.add_memory(memory("The kitchen is painted green")).await.unwrap().memory.id;
    assert_eq!(agent.archive_memory(id, Some(1)).await.unwrap().state, MemoryState::Archived);
    assert!(agent.restore_memory(id, Some(1)).await.is_err(), "another version by now");
    assert_eq!(agent.restore_memory(id, None).await.unwrap().state, MemoryState::Active);
    let request = PromoteRequest {
        target_layer: Some(MemoryLayer::Project),
        identifiers: Some(MemoryIdentifiers::project("house")),
    };
    let promoted = agent.promote_memory(id, request, None).await.unwrap();
    assert_eq!((promoted.memory.layer, promoted.deduplicated), (MemoryLayer::Project, false));

    let request = DecayRequest { identifiers: Some(dana()), dry_run: Some(true), ..DecayRequest::default() };
    let decayed = agent.decay_memories(request).await.unwrap();
    assert!(decayed.dry_run && decayed.processed > 0);
    let request = ConsolidateRequest {
        layer: Some(MemoryLayer::User),
        identifiers: Some(dana()),
        dry_run: Some(true),
        ..ConsolidateRequest::default()
    };
    assert!(world.admin().consolidate_memories(request).await.unwrap().examined > 0);

    let session = MemoryIdentifiers::session("dana", "s2");
    agent
        .add_memory(AddMemoryRequest::new(MemoryLayer::Session, session.clone(), "Dana asked for a map"))
        .await
        .unwrap();
    let request = EndSessionRequest { identifiers: Some(session), ..EndSessionRequest::default() };
    let ended = agent.end_session(request).await.unwrap();
    assert_eq!((ended.session_id.as_str(), ended.evaluated), ("s2", 1));
}

async fn facts(agent: &Client) {
    let tea = || FactStatement::new("preference", "dana", "drinks", "tea");
    let request = || AddFactRequest::new(MemoryLayer::User, dana(), tea());
    let added = agent.add_fact(request()).await.unwrap();
    assert!(added.created && !agent.add_fact(request()).await.unwrap().created);
    let id = added.fact.id;
    let fact = agent.get_fact(id, Expect::nothing()).await.unwrap();
    let version = fact.version;
    assert_eq!(fact.object, "tea");
    assert!(agent.get_fact_if_changed(id, version, Expect::nothing()).await.unwrap().is_none());
    assert!(agent.get_fact_if_changed(id, version - 1, Expect::nothing()).await.unwrap().is_some());
    let change = UpdateFactRequest { confidence: Some(0.5), ..UpdateFactRequest::default() };
    assert_eq!(agent.update_fact(id, change, Expect::nothing()).await.unwrap().confidence, 0.5);

    let list = |min_confidence| ListFacts {
        layer: Some(MemoryLayer::User),
        identifiers: dana(),
        subject: Some("dana".into()),
        min_confidence,
        ..ListFacts::default()
    };
    assert_eq!(agent.list_facts(list(None)).await.unwrap().total_count, 1);
    assert_eq!(agent.list_facts(list(Some(0.9))).await.unwrap().total_count, 0);
    let query = QueryFactsRequest { predicate: Some("drinks".into()), ..QueryFactsRequest::new(dana()) };
    assert_eq!(agent.query_facts(query).await.unwrap().facts[0].id, id);
    assert!(agent.delete_fact(id, Expect::nothing()).await.unwrap().deleted);
    assert!(!agent.delete_fact(id, Expect::nothing()).await.unwrap().deleted);
}
