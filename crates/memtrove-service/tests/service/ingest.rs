//! Taking texts in, in the background: what happens when whoever makes vectors fails, and when another one takes over.

use crate::world::{World, caller};
use memtrove_core::conversations::Channel;
use memtrove_core::identity::Caller;
use memtrove_core::{Code, ConversationId, EntryId, Error, Json, Result};
use memtrove_recall::embed::{EmbeddingConfig, OpenAiConfig, Provider, RetryConfig};
use memtrove_service::conversations::{AppendRequest, CreateConversation, SearchRequest, SearchType};
use memtrove_service::{Services, Settings};
use memtrove_store::AllTenants;
use memtrove_store::TxExt;
use memtrove_testkit::embedder::{DIMENSIONS, Embedder};
use serde_json::json;
use std::time::Duration;

const MINUTE: i64 = 60_000_000;

fn settings(provider: Provider) -> Settings {
    let retry = RetryConfig { max_attempts: 1, ..RetryConfig::default() };
    let embedding = EmbeddingConfig { provider, retry, ..EmbeddingConfig::default() };
    Settings { embedding, task_retry_delay: Duration::from_secs(600), ..Settings::default() }
}

fn words(embedder: &Embedder) -> Provider {
    Provider::OpenAi(OpenAiConfig {
        dimensions: Some(DIMENSIONS),
        ..OpenAiConfig::new(&embedder.base_url, "words")
    })
}

/// Alice, and a conversation of hers.
struct Chat {
    world: World,
    alice: Caller,
    id: ConversationId,
}

impl Chat {
    async fn new(settings: Settings) -> Self {
        let (world, alice) = (World::new(settings).await, caller("alice", None));
        let id = world.services.conversations.create(&alice, CreateConversation::default()).await.unwrap().id;
        Self { world, alice, id }
    }

    async fn say(&self, text: &str) -> EntryId {
        let request = AppendRequest {
            channel: Some(Channel::History),
            content_type: Some("history".into()),
            content: Some(Json::of(&json!([{"role": "USER", "text": text}])).unwrap()),
            ..AppendRequest::default()
        };
        self.world.services.conversations.append(&self.alice, self.id, request, None).await.unwrap().id
    }

    async fn found_by(&self, services: &Services, kind: SearchType, query: &str) -> Result<Vec<EntryId>> {
        let request =
            SearchRequest { query: Some(query.into()), search_type: kind, ..SearchRequest::default() };
        let page = services.conversations.search(&self.alice, request).await?;
        Ok(page.data.into_iter().map(|hit| hit.entry_id).collect())
    }

    async fn found(&self, kind: SearchType, query: &str) -> Result<Vec<EntryId>> {
        self.found_by(&self.world.services, kind, query).await
    }

    /// Everything of these models that is written down, by model.
    async fn models(&self) -> Vec<(Option<String>, i64)> {
        let read = self.world.store.read(AllTenants, "test", |tx| {
            Ok::<_, Error>(tx.rows(
                "SELECT model, COUNT(*) FROM meanings GROUP BY model ORDER BY model",
                &[],
                |row| Ok((row.opt_text(0)?.map(str::to_owned), row.int(1)?)),
            )?)
        });
        read.await.unwrap()
    }

    async fn tasks(&self) -> Vec<String> {
        let read = self.world.store.read(AllTenants, "test", |tx| {
            Ok::<_, Error>(tx.rows("SELECT type FROM tasks", &[], |row| Ok(row.text(0)?.to_owned()))?)
        });
        read.await.unwrap()
    }
}

fn model(name: &str, count: i64) -> (Option<String>, i64) {
    (Some(name.to_owned()), count)
}

#[tokio::test]
async fn texts_that_could_not_be_embedded_are_tried_again_and_found_by_words_meanwhile() {
    let embedder = Embedder::start();
    let chat = Chat::new(settings(words(&embedder))).await;
    let walrus = chat.say("the walrus and the carpenter").await;
    embedder.refuse(Some(503));

    chat.world.services.run_due_tasks().await.unwrap();

    assert_eq!(chat.models().await, [(None, 1)]);
    assert_eq!(chat.tasks().await, ["vector_store_index_retry"]);
    assert_eq!(chat.found(SearchType::Auto, "the carpenter").await.unwrap(), [walrus]);
    let failed = chat.found(SearchType::Semantic, "the carpenter").await;
    assert!(matches!(failed, Err(Error { code: Code::SemanticUnavailable, .. })), "{failed:?}");

    chat.world.services.run_due_tasks().await.unwrap();
    assert_eq!(chat.tasks().await, ["vector_store_index_retry"], "one task, however often it fails");
    embedder.refuse(None);
    chat.world.services.run_due_tasks().await.unwrap();
    assert_eq!(chat.models().await, [(None, 1)], "it is not asked again before its time");
    chat.world.clock.advance_micros(30 * MINUTE);
    chat.world.services.run_due_tasks().await.unwrap();

    assert_eq!(chat.models().await, [model("openai:words:64", 1)]);
    assert!(chat.tasks().await.is_empty());
    assert_eq!(chat.found(SearchType::Semantic, "a carpenter").await.unwrap(), [walrus]);
}

#[tokio::test]
async fn a_text_that_is_refused_holds_up_no_other() {
    let embedder = Embedder::start();
    let chat = Chat::new(settings(words(&embedder))).await;
    let walrus = chat.say("the walrus and the carpenter").await;
    let poison = chat.say("poison for the walrus").await;

    chat.world.services.run_due_tasks().await.unwrap();

    assert_eq!(chat.models().await, [model("openai:words:64", 2)], "it is not tried for ever");
    assert!(chat.tasks().await.is_empty());
    let found = chat.found(SearchType::Semantic, "carpenter").await.unwrap();
    assert_eq!(found.first(), Some(&walrus));
    assert!(chat.found(SearchType::Auto, "poison").await.unwrap().contains(&poison), "its words are there");
}

#[tokio::test]
async fn a_key_that_is_not_accepted_costs_no_text_its_vector() {
    let embedder = Embedder::start();
    let chat = Chat::new(settings(words(&embedder))).await;
    chat.say("the walrus").await;
    chat.say("the carpenter").await;
    embedder.refuse(Some(401));

    chat.world.services.run_due_tasks().await.unwrap();

    assert_eq!(chat.models().await, [(None, 2)]);
    assert_eq!(chat.tasks().await, ["vector_store_index_retry"]);
}

#[tokio::test]
async fn what_an_older_model_made_serves_until_the_new_one_has_made_its_own() {
    let chat = Chat::new(settings(Provider::Static)).await;
    let dog = chat.say("our puppy needs to see the vet").await;
    chat.world.services.run_due_tasks().await.unwrap();
    assert_eq!(chat.models().await, [model("static-256", 1)]);

    let embedder = Embedder::start();
    let (store, clock) = (chat.world.store.clone(), chat.world.clock.clone());
    let services = Services::new(store, clock, settings(words(&embedder))).await.unwrap();
    let query = "a sick dog at the animal doctor";
    assert_eq!(chat.found_by(&services, SearchType::Auto, query).await.unwrap(), [dog]);
    assert_eq!(embedder.texts(), 1, "only the query");

    services.run_due_tasks().await.unwrap();

    assert_eq!(chat.models().await, [model("openai:words:64", 1)]);
    let (by_old, by_new) = ("an animal doctor", "our puppy");
    assert!(chat.found_by(&services, SearchType::Auto, by_old).await.unwrap().is_empty());
    assert_eq!(chat.found_by(&services, SearchType::Semantic, by_new).await.unwrap(), [dog]);
}

#[tokio::test]
async fn without_a_model_words_are_taken_in() {
    let chat = Chat::new(settings(Provider::None)).await;
    let walrus = chat.say("the walrus and the carpenter").await;
    assert_eq!(chat.found(SearchType::Auto, "which carpenter").await.unwrap(), [walrus]);

    chat.world.services.run_due_tasks().await.unwrap();

    assert_eq!(chat.models().await, [(None, 1)]);
    assert!(chat.tasks().await.is_empty());
    assert_eq!(chat.found(SearchType::Auto, "which carpenter").await.unwrap(), [walrus]);
    let failed = chat.found(SearchType::Semantic, "which carpenter").await;
    assert!(matches!(failed, Err(Error { code: Code::SearchTypeUnavailable, .. })), "{failed:?}");
}
