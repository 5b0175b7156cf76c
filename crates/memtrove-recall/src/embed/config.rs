//! Which model makes the vectors, and how patient to be with it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use zeroize::Zeroizing;

/// How texts are embedded. The default needs no set-up and no network.
#[derive(Clone, Debug)]
pub struct EmbeddingConfig {
    /// Who makes the vectors.
    pub provider: Provider,
    /// Whether similarities become scores by what was measured for the model. Otherwise a score is the cosine.
    pub calibration: bool,
    /// What is remembered of texts that were embedded before.
    pub cache: CacheConfig,
    /// What happens when the provider fails.
    pub retry: RetryConfig,
}

impl Default for EmbeddingConfig {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            calibration: true,
            cache: CacheConfig::default(),
            retry: RetryConfig::default(),
        }
    }
}

/// Who makes the vectors.
#[derive(Clone, Debug, Default)]
pub enum Provider {
    /// The model that is part of the program.
    #[default]
    Static,
    /// A transformer. Where it shares the space of the static model, writes are embedded by that at once, and documents
    /// are upgraded in the background.
    Local {
        /// Where its weights and its tokenizer lie.
        directory: PathBuf,
        /// Which of the two embeds queries.
        query: QueryModel,
    },
    /// A server that speaks OpenAI's protocol.
    OpenAi(OpenAiConfig),
    /// No vectors: words alone are searched.
    None,
}

impl Provider {
    /// What it is called in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Local { .. } => "local",
            Self::OpenAi(_) => "openai",
            Self::None => "none",
        }
    }
}

/// Which model embeds queries where there are two in one space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryModel {
    /// The transformer: finds more, takes milliseconds.
    #[default]
    Local,
    /// The static model: takes microseconds.
    Static,
}

/// A server that speaks OpenAI's protocol.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// What `/embeddings` is appended to, e.g. `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, for servers that want one.
    pub api_key: Option<ApiKey>,
    /// The model's name.
    pub model: String,
    /// How long vectors are. May be left out for OpenAI's own models.
    pub dimensions: Option<usize>,
    /// Whether the server is asked for vectors of just these `dimensions`. Some servers refuse that, even for the
    /// dimensions their model has.
    pub send_dimensions: bool,
    /// How long one request may take.
    pub timeout: Duration,
    /// How many texts go into one request.
    pub batch: usize,
    /// How many characters of a text go into one of its vectors; longer texts are embedded in parts. To be set below what
    /// the model reads: what a server cuts off is not found again.
    pub max_input_chars: usize,
}

impl OpenAiConfig {
    /// A model on a server, with everything else as usual.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            model: model.into(),
            dimensions: None,
            send_dimensions: true,
            timeout: Duration::from_secs(10),
            batch: 64,
            // OpenAI's models read 8,191 tokens, and there are scripts that need two for a character.
            max_input_chars: 4_000,
        }
    }
}

/// A key that is never printed, and wiped from memory when it is dropped.
#[derive(Clone)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    /// The key itself, for the one request header it belongs into.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// How many vectors are remembered, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// How many, all tenants together. Zero: none.
    pub size: usize,
    /// How long after it was made.
    pub ttl: Duration,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { size: 10_000, ttl: Duration::from_secs(24 * 3600) }
    }
}

/// How often and when a provider that failed for the moment is asked again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryConfig {
    /// In total, the first included.
    pub max_attempts: u32,
    /// Before the second attempt.
    pub initial_delay: Duration,
    /// However many attempts there were.
    pub max_delay: Duration,
    /// From one delay to the next.
    pub backoff_multiplier: f64,
    /// For all attempts and the delays between them.
    pub deadline: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay: Duration::from_millis(1000),
            max_delay: Duration::from_secs(30),
            backoff_multiplier: 2.0,
            deadline: Duration::from_secs(30),
        }
    }
}
