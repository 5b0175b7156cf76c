//! Texts to vectors.
//!
//! [`Embeddings`] is what everybody else uses. Behind it stand models, each an [`Embedder`]: the [static](static_model)
//! one that is part of the program, a transformer read from a directory (`local`, a cargo feature) and any server that
//! speaks [OpenAI's protocol](openai). To add one more, implement [`Embedder`] in a file of its own, give it a variant
//! in [`Provider`] and an arm in `Models::open`.

mod breaker;
mod cache;
mod calibration;
mod config;
mod embeddings;
#[cfg(feature = "local")]
pub mod local;
mod models;
pub mod openai;
mod retry;
pub mod static_model;
mod vector;
mod vocabulary;
mod windows;
pub mod wordpiece;

pub use calibration::Calibration;
pub use config::{ApiKey, CacheConfig, EmbeddingConfig, OpenAiConfig, Provider, QueryModel, RetryConfig};
pub use embeddings::{Embedded, Embeddings, QueryVector, announce_metrics};

use futures_util::future::BoxFuture;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What a text means, as a point: of unit length, or all zero for a text without a word the model knows.
pub type Vector = Vec<f32>;

/// The model that is part of the program, as it is stored with each of its vectors.
pub const STATIC_MODEL: &str = "static-256";
/// The transformer whose output is projected into the space of the static model.
pub const LOCAL_MODEL: &str = "all-minilm-l6-v2-256";
/// The name of the space those two share.
pub const SHARED_SPACE: &str = "minilm-256";
/// How many dimensions it has.
pub const SHARED_DIMENSIONS: usize = 256;

/// How the ids of models begin whose space is theirs alone.
const OWN_SPACES: [&str; 2] = ["openai:", "local:"];

/// A vector space: vectors of one space may be compared, whichever model made them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Space {
    /// What tells it from others.
    pub name: Arc<str>,
    /// How long its vectors are.
    pub dimensions: usize,
}

impl Space {
    /// The space of the static model and of the transformer it was made from.
    pub fn shared() -> Self {
        Self { name: SHARED_SPACE.into(), dimensions: SHARED_DIMENSIONS }
    }

    /// Whether the static model can make vectors for it.
    pub fn is_shared(&self) -> bool {
        &*self.name == SHARED_SPACE
    }

    /// The space a stored vector belongs to, by the model that made it. `None`: no model here can make a query for it.
    pub fn of(model_id: &str) -> Option<Self> {
        match model_id {
            STATIC_MODEL | LOCAL_MODEL => Some(Self::shared()),
            // Every other model has a space of its own, and ends in its dimensions.
            other => {
                let (model, dimensions) = other.rsplit_once(':')?;
                let is_known = OWN_SPACES.iter().any(|prefix| model.starts_with(prefix));
                let dimensions = dimensions.parse().ok().filter(|_| is_known)?;
                Some(Self { name: other.into(), dimensions })
            }
        }
    }
}

/// A model that makes vectors of texts.
///
/// What it answers is not trusted: [`Embeddings`] looks at every vector, splits what is too long, tries again what failed
/// for the moment, and remembers. An embedder does one attempt.
pub trait Embedder: Send + Sync {
    /// The model, as it is stored with each vector.
    fn model_id(&self) -> &str;

    /// The space of its vectors.
    fn space(&self) -> &Space;

    /// How many characters of one text it takes in whole. Longer ones are given to it in parts. A model that knows its own
    /// tokens splits better than by characters: it takes texts of any length (`usize::MAX`) and splits them itself.
    fn max_input_chars(&self) -> usize;

    /// How many texts one call takes at most.
    fn max_batch(&self) -> usize {
        usize::MAX
    }

    /// What its similarities are worth.
    fn calibration(&self) -> &Calibration;

    /// The texts' vectors in the texts' order, each of unit length or all zero. An embedder that computes for long does it on a
    /// thread made for that.
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vector>, EmbedError>>;
}

/// Why there is no vector. Never holds a text or a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The provider is `none`.
    #[error("there is no embedding provider: embedding.provider is none")]
    Disabled,
    /// The provider cannot be what it is configured to be.
    #[error("the embedding provider cannot be used: {0}")]
    Configuration(String),
    /// The provider failed for the moment. Worth another attempt.
    #[error("the embedding provider failed: {reason}")]
    Transient {
        /// What went wrong.
        reason: Cow<'static, str>,
        /// When the provider wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The provider has been asked too often. Worth another attempt.
    #[error("the embedding provider is asked too often")]
    RateLimited {
        /// When the provider wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The provider failed so often that it is left alone for a while.
    #[error("the embedding provider failed repeatedly and is left alone for a while")]
    Unavailable {
        /// When it will be asked again.
        retry_after: Duration,
    },
    /// The provider refused, and would again.
    #[error("the embedding provider refused: {0}")]
    Permanent(Cow<'static, str>),
    /// The provider answered, but with something that is no vector of its space.
    #[error("the embedding provider's answer is unusable: {0}")]
    Unusable(Cow<'static, str>),
}

impl EmbedError {
    /// A failure of the moment about which the provider says no more.
    pub(crate) fn transient(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Transient { reason: reason.into(), retry_after: None }
    }

    /// Whether another attempt in a moment may succeed.
    pub fn is_worth_retrying(&self) -> bool {
        matches!(self, Self::Transient { .. } | Self::RateLimited { .. })
    }

    /// When it is said to be better.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transient { retry_after, .. } | Self::RateLimited { retry_after } => *retry_after,
            Self::Unavailable { retry_after } => Some(*retry_after),
            Self::Disabled | Self::Configuration(_) | Self::Permanent(_) | Self::Unusable(_) => None,
        }
    }
}
