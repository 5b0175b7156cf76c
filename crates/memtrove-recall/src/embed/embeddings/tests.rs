#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::embed::{CacheConfig, Embedder, LOCAL_MODEL, Provider, QueryModel, SHARED_SPACE};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Mutex;
use std::time::Duration;

/// The calls of a model, and the texts of each.
type Asked = Arc<Mutex<Vec<Vec<String>>>>;

/// A model whose vectors say how long a text is and what it begins with; it counts what it is asked.
struct Fake {
    space: Space,
    calibration: Calibration,
    asked: Asked,
    answer: fn(&str) -> Vector,
}

impl Embedder for Fake {
    fn model_id(&self) -> &str {
        &self.space.name
    }
    fn space(&self) -> &Space {
        &self.space
    }
    fn max_input_chars(&self) -> usize {
        10
    }
    fn max_batch(&self) -> usize {
        2
    }
    fn calibration(&self) -> &Calibration {
        &self.calibration
    }
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vector>, EmbedError>> {
        self.asked.lock().unwrap().push(texts.iter().map(|&text| text.to_owned()).collect());
        async { Ok(texts.iter().map(|text| (self.answer)(text)).collect()) }.boxed()
    }
}

fn plain(text: &str) -> Vector {
    vec![text.len() as f32, f32::from(text.as_bytes()[0])]
}

fn model(space: Space, answer: fn(&str) -> Vector) -> (Model, Asked) {
    let asked = Asked::default();
    let calibration = Calibration::identity();
    (Model::new(Fake { space, calibration, asked: asked.clone(), answer }), asked)
}

fn fake(answer: fn(&str) -> Vector, cache: CacheConfig) -> (Embeddings, Asked) {
    let (model, asked) = model(Space { name: "openai:fake:2".into(), dimensions: 2 }, answer);
    let inner = Inner {
        provider: "openai",
        models: Some(Models::one(model)),
        is_calibrated: true,
        cache: VectorCache::new(cache),
        retry: RetryConfig::default(),
        is_failing: AtomicBool::new(false),
    };
    (Embeddings(Arc::new(inner)), asked)
}

fn of(provider: Provider) -> Embeddings {
    Embeddings::new(EmbeddingConfig { provider, ..EmbeddingConfig::default() }).unwrap()
}

fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|value| value * value).sum::<f32>().sqrt()
}

#[tokio::test]
async fn the_default_embeds_without_anybody() {
    let embeddings = of(Provider::Static);
    assert_eq!(embeddings.space(), Some(&Space::shared()));
    assert_eq!(embeddings.model_id(), Some(STATIC_MODEL));
    assert_eq!(embeddings.preferred_model_id(), Some(STATIC_MODEL));
    let document = embeddings.document("acme", "Deploys happen on Tuesdays").await.unwrap();
    assert_eq!(Some(&document), embeddings.now("Deploys happen on Tuesdays").as_ref());
    assert_eq!(embeddings.upgrade(&["Deploys happen on Tuesdays"]).await.unwrap()[0], document);
    let query = embeddings.query("acme", "Deploys happen on Tuesdays").await.unwrap();
    let [query] = &*query else { panic!("{query:?}") };
    assert_eq!((&query.space, &query.vector), (&Space::shared(), &document.vector));
    assert_eq!(query.calibration, Calibration::shared());
}

#[tokio::test]
async fn nobody_embeds_where_words_alone_are_searched() {
    let embeddings = of(Provider::None);
    assert_eq!(embeddings.space(), None);
    assert_eq!(embeddings.model_id(), None);
    assert_eq!(embeddings.now("text"), None);
    assert_eq!(embeddings.document("acme", "text").await, Err(EmbedError::Disabled));
    assert_eq!(embeddings.upgrade(&["text"]).await, Err(EmbedError::Disabled));
    assert_eq!(embeddings.query("acme", "text").await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_query_in_another_space_is_one_in_the_bundled_models_too() {
    let (embeddings, _) = fake(plain, CacheConfig::default());
    let queries = embeddings.query("acme", "when?").await.unwrap();
    let spaces: Vec<_> = queries.iter().map(|query| &*query.space.name).collect();
    assert_eq!(spaces, ["openai:fake:2", SHARED_SPACE]);
    assert_eq!(queries[0].calibration, Calibration::identity());
    assert_eq!(queries[1].vector, StaticModel::vector("when?"));
    assert_eq!(queries[1].calibration, Calibration::shared());
    assert_eq!(embeddings.now("when?"), None, "what is written belongs into the current space");
}

#[tokio::test]
async fn scores_are_cosines_where_calibration_is_off() {
    let config = EmbeddingConfig { calibration: false, ..EmbeddingConfig::default() };
    let queries = Embeddings::new(config).unwrap().query("acme", "when?").await.unwrap();
    assert_eq!(queries[0].calibration, Calibration::identity());
}

#[test]
fn a_transformer_in_the_bundled_models_space_upgrades_what_that_has_made() {
    let ids = |space: Space, query| {
        let Models { write, preferred, query } = Models::two(model(space, plain).0, query)?;
        Ok::<_, EmbedError>([write.id, preferred.id, query.id].map(|id| id.to_string()))
    };
    let (bundled, shared, own) = (STATIC_MODEL, SHARED_SPACE, "local:abc:2");
    assert_eq!(ids(Space::shared(), QueryModel::Local).unwrap(), [bundled, shared, shared]);
    assert_eq!(ids(Space::shared(), QueryModel::Static).unwrap(), [bundled, shared, bundled]);
    assert_eq!(ids(Space::of(own).unwrap(), QueryModel::Local).unwrap(), [own; 3]);
    assert!(matches!(ids(Space::of(own).unwrap(), QueryModel::Static), Err(EmbedError::Configuration(_))));
}

#[test]
fn a_stored_model_tells_its_space() {
    assert_eq!(Space::of(STATIC_MODEL), Some(Space::shared()));
    assert_eq!(Space::of(LOCAL_MODEL), Some(Space::shared()));
    assert_eq!(Space::of("openai:a:b:768").map(|space| space.dimensions), Some(768));
    assert_eq!(Space::of("local:abc:384").map(|space| space.dimensions), Some(384));
    for unknown in ["", "openai:", "openai:model", "openai:model:many", "another:256"] {
        assert_eq!(Space::of(unknown), None, "{unknown}");
    }
}

#[tokio::test]
async fn texts_go_out_in_batches_and_come_back_in_order() {
    let (embeddings, asked) = fake(plain, CacheConfig::default());
    let documents = embeddings.documents("acme", &["a", "bb", "ccc"]).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), [vec!["a", "bb"], vec!["ccc"]]);
    for (document, text) in documents.iter().zip(["a", "bb", "ccc"]) {
        let [length, first] = plain(text)[..] else { panic!() };
        assert_eq!(&*document.model, "openai:fake:2");
        assert!((norm(&document.vector) - 1.0).abs() < 1e-6);
        assert!((document.vector[0] / document.vector[1] - length / first).abs() < 1e-6);
    }
}

#[tokio::test]
async fn a_long_text_is_embedded_to_its_end() {
    let (embeddings, asked) = fake(plain, CacheConfig::default());
    let document = embeddings.document("acme", "a tale as old as time").await.unwrap();
    assert_eq!(asked.lock().unwrap().concat(), ["a tale as", "old as", "time"]);
    assert!((norm(&document.vector) - 1.0).abs() < 1e-6);
}

#[tokio::test]
async fn nobody_is_asked_about_nothing() {
    let (embeddings, asked) = fake(plain, CacheConfig::default());
    let documents = embeddings.documents("acme", &["", " \n "]).await.unwrap();
    assert!(documents.iter().all(|document| document.vector == [0.0, 0.0]));
    assert_eq!(embeddings.documents("acme", &[]).await.unwrap(), []);
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_vector_of_the_space_is_refused() {
    let refused = async |answer| {
        let (embeddings, _) = fake(answer, CacheConfig::default());
        let error = embeddings.document("acme", "text").await.unwrap_err();
        assert!(embeddings.is_failing());
        assert!(matches!(error, EmbedError::Unusable(_)), "{error}");
    };
    refused(|_| vec![1.0]).await;
    refused(|_| vec![1.0, f32::NAN]).await;
    refused(|_| vec![f32::INFINITY, 0.0]).await;
    let (embeddings, _) = fake(|_| vec![0.0, 0.0], CacheConfig::default());
    assert_eq!(embeddings.document("acme", "text").await.unwrap().vector, [0.0, 0.0]);
    let (embeddings, _) = fake(|_| vec![3e38, 3e38], CacheConfig::default());
    assert!((norm(&embeddings.document("acme", "text").await.unwrap().vector) - 1.0).abs() < 1e-6);
}

async fn calls(embeddings: &Embeddings, asked: &Asked, tenant: &str, text: &str) -> usize {
    let before = asked.lock().unwrap().len();
    embeddings.document(tenant, text).await.unwrap();
    asked.lock().unwrap().len() - before
}

#[tokio::test]
async fn the_same_text_of_the_same_tenant_is_asked_for_once_as_long_as_it_is_kept() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    assert_eq!(CacheConfig::default().ttl, DAY);
    // The cache has a clock of its own, which no test winds.
    let ttl = Duration::from_secs(1);
    let (embeddings, asked) = fake(plain, CacheConfig { ttl, ..CacheConfig::default() });
    let calls = async |tenant, text| calls(&embeddings, &asked, tenant, text).await;
    assert_eq!(calls("acme", "text").await, 1);
    assert_eq!(calls("acme", "text").await, 0);
    assert_eq!(calls("acme", "Text").await, 1, "a similar text is another text");
    assert_eq!(calls("rival", "text").await, 1, "a cache that answers is a way to ask what others wrote");
    tokio::time::sleep(ttl).await;
    assert_eq!(calls("acme", "text").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_text_is_not_remembered() {
    let (embeddings, asked) = fake(plain, CacheConfig::default());
    let calls = async |tenant, text| calls(&embeddings, &asked, tenant, text).await;
    calls("acme", "text").await;
    calls("acme", "other").await;
    embeddings.forget("rival", "text");
    assert_eq!(calls("acme", "text").await, 0);
    embeddings.forget("acme", "text");
    assert_eq!(calls("acme", "text").await, 1);
    assert_eq!(calls("acme", "other").await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_used_least_lately_makes_room() {
    let (embeddings, asked) = fake(plain, CacheConfig { size: 2, ..CacheConfig::default() });
    let calls = async |text| calls(&embeddings, &asked, "acme", text).await;
    calls("a").await;
    calls("b").await;
    calls("a").await;
    calls("c").await;
    assert_eq!(calls("a").await, 0);
    assert_eq!(calls("c").await, 0);
    assert_eq!(calls("b").await, 1);
    let (embeddings, asked) = fake(plain, CacheConfig { size: 0, ..CacheConfig::default() });
    assert_eq!(self::calls(&embeddings, &asked, "acme", "a").await, 1);
    assert_eq!(self::calls(&embeddings, &asked, "acme", "a").await, 1);
}

#[tokio::test]
async fn only_what_is_missing_is_asked_for() {
    let (embeddings, asked) = fake(plain, CacheConfig::default());
    let first = embeddings.document("acme", "bb").await.unwrap();
    let all = embeddings.documents("acme", &["a", "bb", "ccc"]).await.unwrap();
    assert_eq!(asked.lock().unwrap().last().unwrap(), &["a", "ccc"]);
    assert_eq!(all[1], first);
}

#[cfg(not(feature = "local"))]
#[test]
fn a_program_without_the_local_provider_says_how_to_get_it() {
    let provider = Provider::Local { directory: "model".into(), query: QueryModel::Local };
    let config = EmbeddingConfig { provider, ..EmbeddingConfig::default() };
    let Err(EmbedError::Configuration(problem)) = Embeddings::new(config) else { panic!() };
    assert!(problem.contains("--features local"), "{problem}");
}

#[test]
fn whoever_waits_may_move_to_another_thread() {
    fn is_send(_: impl Send) {}
    let embeddings = of(Provider::Static);
    is_send(embeddings.documents("acme", &["text"]));
    is_send(embeddings.query("acme", "text"));
    is_send(embeddings.upgrade(&["text"]));
}
