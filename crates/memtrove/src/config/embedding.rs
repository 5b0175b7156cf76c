//! `[embedding]`: what makes vectors of texts, for everything that is found by meaning.

use super::{Memories, Span};
use memtrove_recall::embed::{self, ApiKey, EmbeddingConfig, OpenAiConfig, openai};
use memtrove_server::auth::config::{ConfigProblem, Secret};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[embedding]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Embedding {
    /// Who makes the vectors.
    pub provider: EmbeddingProvider,
    /// What a similarity is worth: what was measured for the `model`, or the cosine itself (`none`).
    pub calibration: Calibration,
    /// With the provider `local`: which model embeds queries. `local` unless set.
    pub query: Option<QueryModel>,
    /// The provider `local`.
    pub local: LocalModel,
    /// The provider `openai`.
    pub openai: OpenAi,
}

/// Who makes the vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingProvider {
    /// The model that is part of the program.
    #[default]
    Static,
    /// A transformer read from a directory.
    Local,
    /// A server that speaks OpenAI's protocol.
    OpenAi,
    /// No vectors: words alone are searched.
    None,
}

/// What a similarity is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Calibration {
    /// What was measured for the model.
    #[default]
    Model,
    /// The cosine itself.
    None,
}

/// Which model embeds queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryModel {
    /// The transformer: finds more, takes milliseconds.
    Local,
    /// The model that is part of the program: takes microseconds.
    Static,
}

/// `[embedding.local]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalModel {
    /// The folder of a sentence encoder, as sentence-transformers lays it out.
    pub directory: Option<PathBuf>,
}

/// `[embedding.openai]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenAi {
    /// What `/embeddings` is appended to, e.g. `https://api.openai.com/v1`.
    pub base_url: Option<String>,
    /// The key, for servers that want one.
    pub api_key: Option<Secret>,
    /// The model's name.
    pub model: Option<String>,
    /// How long its vectors are; known of OpenAI's own models.
    pub dimensions: Option<usize>,
    /// Whether the server is asked for vectors of just these dimensions. Some servers refuse that.
    pub send_dimensions: bool,
    /// How long one request may take.
    pub timeout: Span,
    /// How many texts go into one request.
    pub batch_size: usize,
    /// How many characters of a text go into one vector; longer texts are embedded in parts.
    pub max_input_chars: usize,
}

impl Default for OpenAi {
    fn default() -> Self {
        let usual = OpenAiConfig::new("", "");
        Self {
            base_url: None,
            api_key: None,
            model: None,
            dimensions: usual.dimensions,
            send_dimensions: usual.send_dimensions,
            timeout: Span(usual.timeout),
            batch_size: usual.batch,
            max_input_chars: usual.max_input_chars,
        }
    }
}

impl Embedding {
    /// What cannot stand, each with what to do about it.
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        match self.provider {
            EmbeddingProvider::Static | EmbeddingProvider::None => Vec::new(),
            EmbeddingProvider::Local => self.local.problems(),
            EmbeddingProvider::OpenAi => self.openai.problems(),
        }
    }

    /// What a server may start with but somebody should know about.
    pub(super) fn warnings(&self) -> Vec<String> {
        let unused = [
            ("[embedding.local]", EmbeddingProvider::Local, self.local != LocalModel::default()),
            ("embedding.query", EmbeddingProvider::Local, self.query.is_some()),
            ("[embedding.openai]", EmbeddingProvider::OpenAi, self.openai != OpenAi::default()),
        ];
        let unused = unused.into_iter().filter(|(_, user, is_set)| *is_set && *user != self.provider);
        let mut warnings: Vec<String> = unused
            .map(|(what, user, _)| {
                format!("{what} is set and not used: that takes embedding.provider = \"{}\"", user.as_str())
            })
            .collect();
        if self.provider == EmbeddingProvider::OpenAi {
            warnings.extend(self.openai.warning());
        }
        warnings
    }

    /// The same, as the embedder takes it.
    pub fn settings(&self, memories: &Memories) -> EmbeddingConfig {
        let provider = match self.provider {
            EmbeddingProvider::Static => embed::Provider::Static,
            EmbeddingProvider::Local => embed::Provider::Local {
                directory: self.local.directory.clone().unwrap_or_default(),
                query: match self.query {
                    None | Some(QueryModel::Local) => embed::QueryModel::Local,
                    Some(QueryModel::Static) => embed::QueryModel::Static,
                },
            },
            EmbeddingProvider::OpenAi => embed::Provider::OpenAi(self.openai.settings()),
            EmbeddingProvider::None => embed::Provider::None,
        };
        EmbeddingConfig {
            provider,
            calibration: self.calibration == Calibration::Model,
            cache: memories.cache.embeddings.settings(),
            retry: memories.retry.settings(),
        }
    }
}

impl EmbeddingProvider {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Local => "local",
            Self::OpenAi => "openai",
            Self::None => "none",
        }
    }
}

impl LocalModel {
    fn problems(&self) -> Vec<ConfigProblem> {
        const KEY: &str = "embedding.local.directory";
        const FIX: &str = "name the folder of a sentence encoder such as all-MiniLM-L6-v2, or set embedding.provider = \"static\"";
        let problem = match &self.directory {
            None => "is missing, and embedding.provider is \"local\"".to_owned(),
            Some(directory) if !directory.is_dir() => format!("{} is not a folder", directory.display()),
            Some(_) => return Vec::new(),
        };
        vec![ConfigProblem::new(KEY, problem, FIX)]
    }
}

const BASE_URL: &str = "embedding.openai.base_url";
const MODEL: &str = "embedding.openai.model";
const DIMENSIONS: &str = "embedding.openai.dimensions";

impl OpenAi {
    fn problems(&self) -> Vec<ConfigProblem> {
        let missing =
            |key, fix| ConfigProblem::new(key, "is missing, and embedding.provider is \"openai\"", fix);
        let mut found = Vec::new();
        match self.base_url.as_deref() {
            None => found.push(missing(BASE_URL, "name the server, e.g. \"https://api.openai.com/v1\"")),
            Some(url) if address(url).is_none() => {
                // Not shown: it may hold a password.
                let fix = "use e.g. \"https://api.openai.com/v1\"";
                found.push(ConfigProblem::new(BASE_URL, "is not an http(s) address", fix));
            }
            Some(_) => {}
        }
        match self.model.as_deref().map(str::trim) {
            None | Some("") => found.push(missing(MODEL, "name one, e.g. \"text-embedding-3-small\"")),
            Some(model) => found.extend(self.dimensions_problem(model)),
        }
        if self.api_key.as_ref().is_some_and(|key| HeaderValue::from_str(key.expose()).is_err()) {
            let problem = "has characters that no header can carry";
            found.push(ConfigProblem::new(
                "embedding.openai.api_key",
                problem,
                "write the key and nothing else",
            ));
        }
        found.extend(super::positive([
            (DIMENSIONS, self.dimensions != Some(0)),
            ("embedding.openai.timeout", !self.timeout.0.is_zero()),
            ("embedding.openai.batch_size", self.batch_size > 0),
            ("embedding.openai.max_input_chars", self.max_input_chars > 0),
        ]));
        found
    }

    fn dimensions_problem(&self, model: &str) -> Option<ConfigProblem> {
        let (problem, fix) = match (self.dimensions, openai::dimensions_of(model)) {
            (None, None) => {
                let problem =
                    format!("is missing, and how long the vectors of {model} are is not known here");
                (problem, "set what the model's makers say, e.g. 768".to_owned())
            }
            (Some(wanted), Some(own)) if wanted > own => {
                (format!("is {wanted}, and the vectors of {model} have {own}"), format!("use at most {own}"))
            }
            (Some(wanted), Some(own)) if wanted != own && !self.send_dimensions => {
                let problem =
                    format!("is {wanted}, and the vectors of {model} have {own} unless asked otherwise");
                (problem, format!("use {own}, or set embedding.openai.send_dimensions = true"))
            }
            _ => return None,
        };
        Some(ConfigProblem::new(DIMENSIONS, problem, fix))
    }

    /// Texts are what people wrote.
    fn warning(&self) -> Option<String> {
        let url = address(self.base_url.as_deref()?)?;
        let host = url.host_str()?;
        let stays_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        (url.scheme() == "http" && !stays_here).then(|| {
            format!("{BASE_URL} is not https: texts, and the key if there is one, go to {host} readable")
        })
    }

    fn settings(&self) -> OpenAiConfig {
        let (base_url, model) = (self.base_url.clone(), self.model.as_deref().map(str::trim));
        OpenAiConfig {
            api_key: self.api_key.as_ref().map(|key| ApiKey::new(key.expose())),
            dimensions: self.dimensions,
            send_dimensions: self.send_dimensions,
            timeout: self.timeout.0,
            batch: self.batch_size,
            max_input_chars: self.max_input_chars,
            ..OpenAiConfig::new(base_url.unwrap_or_default(), model.unwrap_or_default())
        }
    }
}

fn address(url: &str) -> Option<Url> {
    let url = Url::parse(url.trim()).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}
