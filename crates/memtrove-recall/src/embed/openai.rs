//! Any server that speaks OpenAI's protocol: `POST {base}/embeddings`.
//!
//! Neither the key nor a text nor anything the server says in its own words comes into an error or a log: servers quote
//! what they were asked.

use super::breaker::Breaker;
use super::{Calibration, EmbedError, Embedder, OpenAiConfig, Space, Vector};
use futures_util::future::{BoxFuture, FutureExt};
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// After this many failures in a row the server is left alone …
const FAILURES_UNTIL_PAUSE: u32 = 5;
/// … for so long.
const PAUSE: Duration = Duration::from_secs(10);
/// Of an answer, for each value of a vector: a number with all its digits, and the spaces some servers put before it.
const MAX_BYTES_PER_VALUE: usize = 64;
/// Of an answer, for what is not a vector.
const MAX_BYTES_BESIDES: usize = 64 * 1024;

/// A model behind a server.
pub struct OpenAi {
    client: Client,
    url: Url,
    config: OpenAiConfig,
    /// Also the id of the model: one server's model makes one space, of the dimensions it is asked for.
    space: Space,
    calibration: Calibration,
    breaker: Breaker,
}

impl OpenAi {
    /// Prepares for requests; makes none.
    pub fn new(config: OpenAiConfig) -> Result<Self, EmbedError> {
        let problem = |what: &str| EmbedError::Configuration(what.to_owned());
        let dimensions = config.dimensions.or_else(|| dimensions_of(&config.model)).ok_or_else(|| {
            problem("embedding.openai.dimensions must say how long the vectors of this model are")
        })?;
        if dimensions == 0 || config.batch == 0 || config.max_input_chars == 0 {
            return Err(problem("embedding.openai.dimensions, batch_size and max_input_chars must not be 0"));
        }
        if config.api_key.as_ref().is_some_and(|key| HeaderValue::from_str(key.expose()).is_err()) {
            return Err(problem("embedding.openai.api_key has characters that no header can carry"));
        }
        let url = endpoint(&config.base_url).ok_or_else(|| {
            problem("embedding.openai.base_url must be an address such as https://api.openai.com/v1")
        })?;
        let client = Client::builder()
            .user_agent(concat!("memtrove/", env!("CARGO_PKG_VERSION")))
            .timeout(config.timeout)
            // Texts are not to follow wherever an answer points.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|_| problem("no HTTP client could be made"))?;
        let space = Space { name: format!("openai:{}:{dimensions}", config.model).into(), dimensions };
        let calibration = Calibration::identity();
        let breaker = Breaker::new(FAILURES_UNTIL_PAUSE, PAUSE);
        Ok(Self { client, url, config, space, calibration, breaker })
    }

    async fn attempt(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let pass = self.breaker.enter()?;
        let answer = self.request(texts).await;
        match &answer {
            Err(EmbedError::Transient { .. }) => pass.failed(),
            // Whatever else it says, the server is there.
            _ => pass.succeeded(),
        }
        in_order(answer?, texts.len())
    }

    async fn request(&self, texts: &[&str]) -> Result<EmbeddingsResponse, EmbedError> {
        let dimensions = self.config.dimensions.filter(|_| self.config.send_dimensions);
        let body = Request { model: &self.config.model, input: texts, dimensions };
        let mut request = self.client.post(self.url.clone()).json(&body);
        if let Some(key) = &self.config.api_key {
            request = request.bearer_auth(key.expose());
        }
        let response = request.send().await.map_err(|error| transport(&error))?;
        if let Some(error) = refusal(response.status(), response.headers()) {
            return Err(error);
        }
        let limit = texts.len() * self.space.dimensions * MAX_BYTES_PER_VALUE + MAX_BYTES_BESIDES;
        let body = read(response, limit).await?;
        serde_json::from_slice(&body)
            .map_err(|_| EmbedError::Unusable("it is not what the protocol says".into()))
    }
}

impl Embedder for OpenAi {
    fn model_id(&self) -> &str {
        &self.space.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn max_input_chars(&self) -> usize {
        self.config.max_input_chars
    }

    fn max_batch(&self) -> usize {
        self.config.batch
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vector>, EmbedError>> {
        self.attempt(texts).boxed()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vector,
}

/// How long the vectors of OpenAI's own models are, unless they are asked to be shorter.
pub fn dimensions_of(model: &str) -> Option<usize> {
    match model {
        "text-embedding-3-small" | "text-embedding-ada-002" => Some(1536),
        "text-embedding-3-large" => Some(3072),
        _ => None,
    }
}

/// `/embeddings` below the base; a query stays behind it.
fn endpoint(base: &str) -> Option<Url> {
    let mut url = Url::parse(base.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.path_segments_mut().ok()?.pop_if_empty().push("embeddings");
    Some(url)
}

/// Servers may answer in any order; every text has exactly one vector.
fn in_order(answer: EmbeddingsResponse, count: usize) -> Result<Vec<Vector>, EmbedError> {
    let found = answer.data.len();
    if found != count {
        return Err(EmbedError::Unusable(format!("it has {found} vectors for {count} texts").into()));
    }
    let mut vectors = vec![None; count];
    for Item { index, embedding } in answer.data {
        if let Some(slot) = vectors.get_mut(index) {
            *slot = Some(embedding);
        }
    }
    let missing = || EmbedError::Unusable("it has no vector for one of the texts".into());
    vectors.into_iter().collect::<Option<_>>().ok_or_else(missing)
}

/// What goes wrong on the way. In our own words: those of the client name the address, which may hold a password.
fn transport(error: &reqwest::Error) -> EmbedError {
    EmbedError::transient(if error.is_timeout() {
        "it took too long to answer"
    } else if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection broke off"
    })
}

fn refusal(status: StatusCode, headers: &HeaderMap) -> Option<EmbedError> {
    let retry_after = retry_after(headers);
    match status {
        _ if status.is_success() => None,
        StatusCode::TOO_MANY_REQUESTS => Some(EmbedError::RateLimited { retry_after }),
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            Some(EmbedError::Transient {
                reason: format!("it answered {}", status.as_u16()).into(),
                retry_after,
            })
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Some(EmbedError::Permanent("it does not accept embedding.openai.api_key".into()))
        }
        _ => Some(EmbedError::Permanent(format!("it answered {}", status.as_u16()).into())),
    }
}

/// `Retry-After`, in seconds or as a date. A date is measured from the answer's own, so our clock need not be right.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let value = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = rfc2822::parse(value).ok()?.timestamp();
    let now = rfc2822::parse(text(DATE)?).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// The body, unless it is longer than any answer could be.
async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, EmbedError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| transport(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(EmbedError::Unusable("it is longer than it could be".into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_address_keeps_what_stands_behind_it() {
        let check = |base, expected: Option<&str>| {
            assert_eq!(endpoint(base).as_ref().map(Url::as_str), expected, "{base}");
        };
        check("https://api.openai.com/v1", Some("https://api.openai.com/v1/embeddings"));
        check("http://localhost:11434/v1/", Some("http://localhost:11434/v1/embeddings"));
        check("https://x.example/a?api-version=1", Some("https://x.example/a/embeddings?api-version=1"));
        check("localhost:8080", None);
        check("ftp://x.example", None);
        check("", None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let check = |value: &str, date: Option<&str>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{value}");
        };
        let noon = Some("Wed, 21 Oct 2026 12:00:00 GMT");
        check("7", None, Some(7));
        check("Wed, 21 Oct 2026 12:00:20 GMT", noon, Some(20));
        check("Wed, 21 Oct 2026 11:59:00 GMT", noon, Some(0));
        check("Wed, 21 Oct 2026 12:00:20 GMT", None, None);
        check("soon", noon, None);
    }

    #[test]
    fn what_cannot_work_is_refused_before_the_first_request() {
        let refused = |config: OpenAiConfig| match OpenAi::new(config) {
            Err(EmbedError::Configuration(problem)) => problem,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted"),
        };
        let config = || OpenAiConfig::new("https://x.example/v1", "text-embedding-3-small");
        assert!(refused(OpenAiConfig { model: "other".into(), ..config() }).contains("dimensions"));
        assert!(refused(OpenAiConfig { base_url: "x.example".into(), ..config() }).contains("base_url"));
        assert!(refused(OpenAiConfig { batch: 0, ..config() }).contains("batch"));
        let key = Some(crate::embed::ApiKey::new("line\nbreak"));
        let problem = refused(OpenAiConfig { api_key: key, ..config() });
        assert!(problem.contains("api_key") && !problem.contains("line"), "{problem}");
    }

    #[test]
    fn the_space_is_named_after_model_and_dimensions() {
        let config = OpenAiConfig::new("https://x.example/v1", "nomic-embed-text:latest");
        let model = OpenAi::new(OpenAiConfig { dimensions: Some(768), ..config }).unwrap();
        assert_eq!(model.model_id(), "openai:nomic-embed-text:latest:768");
        assert_eq!(Space::of(model.model_id()).as_ref(), Some(model.space()));
    }
}
