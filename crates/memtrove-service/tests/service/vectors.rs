//! Another model takes over: by itself after a start, and watched by whoever asks for it.

use crate::world::{World, caller, identifiers, principal};
use memtrove_core::conversations::Channel;
use memtrove_core::memories::{
    AddMemory, Assertion, Change, Embedding, Identifier, Layer, MemoryCaller, MemoryId, Mode, SearchMemories,
    State,
};
use memtrove_core::{Code, Error, Json};
use memtrove_recall::embed::{EmbeddingConfig, OpenAiConfig, Provider, RetryConfig};
use memtrove_service::conversations::{AppendRequest, CreateConversation};
use memtrove_service::{Services, Settings};
use memtrove_store::files::jobs::{self, Job, Status};
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{entries, index, upgrades};
use memtrove_store::{AllTenants, StoreError, Tx, TxExt};
use memtrove_testkit::embedder::{DIMENSIONS, Embedder};
use serde_json::json;
use std::collections::BTreeMap;
use uuid::Uuid;

const STATIC: &str = "static-256";
const WORDS: &str = "openai:words:64";

fn settings(provider: Provider) -> Settings {
    let retry = RetryConfig { max_attempts: 1, ..RetryConfig::default() };
    Settings {
        embedding: EmbeddingConfig { provider, retry, ..EmbeddingConfig::default() },
        ..Settings::default()
    }
}

fn words(embedder: &Embedder) -> Provider {
    let usual = OpenAiConfig::new(&embedder.base_url, "words");
    Provider::OpenAi(OpenAiConfig { dimensions: Some(DIMENSIONS), ..usual })
}

impl World {
    /// The same store after a start with another provider.
    async fn restarted(&self, provider: Provider) -> Services {
        Services::new(self.store.clone(), self.clock.clone(), settings(provider)).await.unwrap()
    }

    /// How many memories have a vector of which model.
    async fn models(&self) -> BTreeMap<String, i64> {
        let sql = "SELECT COALESCE(model, 'none'), COUNT(*) FROM memory_index GROUP BY model";
        let read = |tx: &mut dyn Tx| tx.rows(sql, &[], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)));
        self.store.read(AllTenants, "test", read).await.unwrap().into_iter().collect()
    }

    async fn job(&self, id: Uuid) -> Job {
        self.store.read(AllTenants, "test", move |tx| jobs::get(tx, id)).await.unwrap().unwrap()
    }
}

fn alice(services: &Services) -> MemoryCaller {
    services.memories.caller(&principal("alice", None), "request".into())
}

/// Alice remembers a text, with a vector or without; the memory's id.
async fn remember(services: &Services, content: &str, embed: bool) -> MemoryId {
    let caller = alice(services);
    let scope = identifiers(&[(Identifier::User, "alice")]);
    let add = AddMemory::new(Layer::User, scope, content.to_owned());
    services.memories.create(&caller, add, embed).await.unwrap().id
}

async fn state(services: &Services, id: MemoryId) -> State {
    services.memories.get(&alice(services), id, &Assertion::default()).await.unwrap().state
}

/// What Alice finds, best first.
async fn found(services: &Services, query: &str) -> Vec<MemoryId> {
    let caller = alice(services);
    let search = SearchMemories {
        mode: Mode::Semantic,
        threshold: Some(0.5),
        ..SearchMemories::new(identifiers(&[(Identifier::User, "alice")]), query.to_owned())
    };
    let answer = services.memories.search(&caller, search).await.unwrap();
    answer.hits.into_iter().map(|hit| hit.memory.id).collect()
}

async fn say(services: &Services, text: &str) {
    let alice = caller("alice", None);
    let id = services.conversations.create(&alice, CreateConversation::default()).await.unwrap().id;
    let request = AppendRequest {
        channel: Some(Channel::History),
        content_type: Some("history".into()),
        content: Some(Json::of(&json!([{"role": "USER", "text": text}])).unwrap()),
        ..AppendRequest::default()
    };
    services.conversations.append(&alice, id, request, None).await.unwrap();
}

fn counts<const N: usize>(models: [(&str, i64); N]) -> BTreeMap<String, i64> {
    models.into_iter().map(|(model, count)| (model.to_owned(), count)).collect()
}

#[tokio::test]
async fn a_start_with_another_model_is_enough_and_the_old_vectors_serve_until_then() {
    let world = World::new(settings(Provider::Static)).await;
    let vet = remember(&world.services, "Our puppy needs to see the vet", true).await;
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.models().await, counts([(STATIC, 1)]));

    let embedder = Embedder::start();
    let services = world.restarted(words(&embedder)).await;
    let by_meaning = "When does the puppy go to the vet?";
    assert_eq!(found(&services, by_meaning).await, [vet], "by the vector of before");
    assert_eq!(state(&services, vet).await, State::Active);
    services.run_due_tasks().await.unwrap();

    assert_eq!(world.models().await, counts([(WORDS, 1)]));
    assert_eq!(found(&services, "our puppy needs to see the vet").await, [vet]);
    let made = embedder.texts();
    services.run_due_tasks().await.unwrap();
    assert_eq!(embedder.texts(), made, "once is enough");
    let back = world.restarted(Provider::Static).await;
    back.run_due_tasks().await.unwrap();
    assert_eq!(world.models().await, counts([(STATIC, 1)]));
}

#[tokio::test]
async fn what_was_written_without_a_provider_gets_its_vectors_and_what_should_have_none_does_not() {
    let world = World::new(settings(Provider::None)).await;
    let written = remember(&world.services, "written while nobody made vectors", true).await;
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(state(&world.services, written).await, State::Created);

    let services = world.restarted(Provider::Static).await;
    let without = remember(&services, "wanted without a vector", false).await;
    services.run_due_tasks().await.unwrap();
    let again = world.restarted(words(&Embedder::start())).await;
    again.run_due_tasks().await.unwrap();

    assert_eq!(world.models().await, counts([(WORDS, 1), ("none", 1)]));
    assert_eq!(state(&again, written).await, State::Active);
    assert_eq!(state(&again, without).await, State::Created);
}

/// A store with forty memories and three texts of a conversation, all with vectors of the bundled model.
async fn filled() -> World {
    let world = World::new(settings(Provider::Static)).await;
    for number in 0..40 {
        remember(&world.services, &format!("Memory number {number}"), true).await;
    }
    for number in 0..3 {
        say(&world.services, &format!("Text number {number}")).await;
    }
    world.services.run_due_tasks().await.unwrap();
    world
}

#[tokio::test]
async fn whoever_has_the_store_to_himself_sees_how_far_it_is() {
    let world = filled().await;
    let services = world.restarted(words(&Embedder::start())).await;
    let mut seen = Vec::new();
    let made = services.vectors.reindex_now(|done, total| seen.push((done, total))).await.unwrap();
    assert_eq!(made, 43, "memories and texts");
    assert_eq!(seen, [(0, 43), (32, 43), (40, 43), (43, 43)]);
    assert_eq!(world.models().await, counts([(WORDS, 40)]));
    assert_eq!(services.vectors.reindex_now(|_, _| {}).await.unwrap(), 0);

    let none = world.restarted(Provider::None).await;
    let refused = none.vectors.reindex_now(|_, _| {}).await.unwrap_err().to_string();
    assert_eq!(refused, "no vectors are made here: embedding.provider is none");
}

#[tokio::test]
async fn an_admin_watches_a_job_that_fails_and_one_that_succeeds() {
    let world = filled().await;
    let embedder = Embedder::start();
    let services = world.restarted(words(&embedder)).await;
    let (admin, bob) = (principal("admin", None), principal("bob", None));
    let refused = services.vectors.reindex(&bob, None).await.unwrap_err();
    assert!(matches!(refused, Error { code: Code::Forbidden, .. }), "{refused:?}");

    embedder.refuse(Some(503));
    let id = services.vectors.reindex(&admin, Some("another model")).await.unwrap();
    assert_eq!(services.vectors.reindex(&admin, None).await.unwrap(), id, "the same work is one job");
    assert_eq!(world.job(id).await.status, Status::Queued);
    services.run_due_tasks().await.unwrap_err();
    let failed = world.job(id).await;
    assert_eq!(
        (failed.kind.as_str(), failed.status, failed.processed),
        ("embeddings_reindex", Status::Failed, 0)
    );
    assert!(failed.errors.contains("the embedding provider failed"), "{}", failed.errors);

    embedder.refuse(None);
    let again = services.vectors.reindex(&admin, None).await.unwrap();
    assert_ne!(again, id);
    services.run_due_tasks().await.unwrap();
    let done = world.job(again).await;
    // Whoever takes in texts of conversations was first with those.
    assert_eq!((done.status, done.processed, done.total), (Status::Succeeded, 40, 40));
    assert_eq!(services.files.job(&admin, &again.to_string()).await.unwrap().id, again);
    assert_eq!(world.models().await, counts([(WORDS, 40)]));
}

#[tokio::test]
async fn a_memory_that_is_refused_keeps_its_vector_and_holds_up_no_other() {
    let world = World::new(settings(Provider::Static)).await;
    for content in ["a walrus", "poison", "a carpenter"] {
        remember(&world.services, content, true).await;
    }
    world.services.run_due_tasks().await.unwrap();
    let embedder = Embedder::start();
    let services = world.restarted(words(&embedder)).await;

    embedder.refuse(Some(401));
    services.run_due_tasks().await.unwrap_err();
    assert_eq!(world.models().await, counts([(STATIC, 3)]), "that was not the texts' fault");
    embedder.refuse(None);
    services.run_due_tasks().await.unwrap();

    assert_eq!(world.models().await, counts([(WORDS, 2), (STATIC, 1)]));
    let made = embedder.texts();
    services.run_due_tasks().await.unwrap();
    assert_eq!(embedder.texts(), made, "it is not tried for ever");
}

#[tokio::test]
async fn a_memory_that_changed_while_its_vector_was_made_gets_another() {
    let world = World::new(settings(Provider::None)).await;
    let id = remember(&world.services, "before", true).await;
    let read = world.store.read(AllTenants, "test", |tx| upgrades::next(tx, 1)).await.unwrap();
    let change = Change { content: Some("after".to_owned()), ..Change::default() };
    let (memories, any) = (&world.services.memories, Assertion::default());
    memories.update(&alice(&world.services), id, &any, change).await.unwrap();

    let late = Embedding::of_whole(STATIC.into(), vec![1.0; 256]);
    let put = move |tx: &mut dyn Tx| {
        let mut writing = Writing::default();
        let written = upgrades::put(tx, &read[0], &late, None, &mut writing)?;
        writing.finish(tx)?;
        Ok::<_, StoreError>((written, upgrades::count(tx)?))
    };
    assert_eq!(world.store.write(AllTenants, "test", put).await.unwrap(), (false, 1), "it waits still");

    world.restarted(Provider::Static).await.run_due_tasks().await.unwrap();
    assert_eq!(world.models().await, counts([(STATIC, 1)]));
}

/// How many pieces a memory is found by, and how many of these have vectors.
async fn pieces(world: &World, id: MemoryId) -> (usize, usize) {
    let read = move |tx: &mut dyn Tx| {
        let stored = entries::get(tx, principal("alice", None).tenant(), id)?.unwrap();
        let vectors = stored.memory.embedding.map_or(0, |embedding| embedding.pieces.len());
        Ok::<_, StoreError>((index::terms(tx, stored.scope_no, stored.seq)?.pieces.len(), vectors))
    };
    world.store.read(AllTenants, "test", read).await.unwrap()
}

/// Makes a memory what an older version would have written.
async fn without_pieces(world: &World, id: MemoryId) {
    let write = move |tx: &mut dyn Tx| {
        let mut stored = entries::get(tx, principal("alice", None).tenant(), id)?.unwrap();
        let mut terms = index::terms(tx, stored.scope_no, stored.seq)?;
        terms.pieces.clear();
        stored.memory.embedding.iter_mut().for_each(|embedding| embedding.pieces.clear());
        let mut writing = Writing::default();
        writing.replace(tx, &stored.memory, &terms, stored.memory.version)?;
        writing.finish(tx)?;
        tx.post("DELETE FROM meta WHERE key = 'memory_pieces_made'", &[])
    };
    world.store.write(AllTenants, "test", write).await.unwrap();
}

#[tokio::test]
async fn long_memories_of_an_older_version_come_to_be_found_by_their_pieces() {
    let long = format!("{0}The ferry leaves at nine. {0}", "Nothing is said here that matters. ".repeat(40));
    for (provider, with_vectors) in [(Provider::Static, true), (Provider::None, false)] {
        let world = World::new(settings(provider)).await;
        let id = remember(&world.services, &long, true).await;
        let short = remember(&world.services, "A short one.", true).await;
        world.services.run_due_tasks().await.unwrap();
        let cut = pieces(&world, id).await;
        assert!(cut.0 > 4 && cut.1 == if with_vectors { cut.0 } else { 0 }, "{cut:?}");
        without_pieces(&world, id).await;
        assert_eq!(pieces(&world, id).await, (0, 0));

        world.services.run_due_tasks().await.unwrap();

        assert_eq!((pieces(&world, id).await, pieces(&world, short).await), (cut, (0, 0)));
        let memory =
            world.services.memories.get(&alice(&world.services), id, &Assertion::default()).await.unwrap();
        assert_eq!((memory.version, memory.content), (1, long.clone()), "it says the same as before");
        without_pieces(&world, id).await;
        let note = |tx: &mut dyn Tx| upgrades::set_pieces_made(tx);
        world.store.write(AllTenants, "test", note).await.unwrap();
        world.services.run_due_tasks().await.unwrap();
        assert_eq!(pieces(&world, id).await, (0, 0), "looked for once");
    }
}

#[tokio::test]
async fn a_model_that_comes_later_makes_the_vectors_of_pieces_too() {
    let embedder = Embedder::start();
    let world = World::new(settings(Provider::Static)).await;
    let long = format!("{0}The ferry leaves at nine. {0}", "Nothing is said here that matters. ".repeat(40));
    let id = remember(&world.services, &long, true).await;
    let (count, _) = pieces(&world, id).await;
    let services = world.restarted(words(&embedder)).await;
    services.run_due_tasks().await.unwrap();
    assert_eq!(world.models().await, counts([(WORDS, 1)]));
    assert_eq!(pieces(&world, id).await, (count, count));
    assert!(embedder.texts() > count, "{} texts", embedder.texts());
}
