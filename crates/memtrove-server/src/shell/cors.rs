//! Which web pages may call this server.

use http::{HeaderName, HeaderValue, Method, request};
use regex::bytes::Regex;
use std::sync::Arc;
use std::time::Duration;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use super::request_id::X_REQUEST_ID;

/// Who may call from a browser, and what they may send and see, as configured.
#[derive(Debug, Clone)]
pub struct CorsOptions {
    /// Origins as `https://app.example.com`, or `/regex/` that must match the whole origin, or `*`.
    pub origins: Vec<String>,
    /// Methods they may use; empty means whatever the preflight asks for.
    pub methods: Vec<String>,
    /// Headers they may send; empty means whatever the preflight asks for.
    pub headers: Vec<String>,
    /// Response headers they may read.
    pub exposed_headers: Vec<String>,
    /// Whether cookies and HTTP authentication may be sent along.
    pub allow_credentials: bool,
    /// How long a browser may remember a preflight.
    pub max_age: Option<Duration>,
}

impl Default for CorsOptions {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            methods: Vec::new(),
            headers: Vec::new(),
            exposed_headers: vec![
                X_REQUEST_ID.to_string(),
                "etag".into(),
                "location".into(),
                "retry-after".into(),
            ],
            allow_credentials: false,
            max_age: Some(Duration::from_secs(600)),
        }
    }
}

/// [`CorsOptions`] that have been checked: `CorsConfig::try_from(options)`.
#[derive(Debug, Clone)]
pub struct CorsConfig {
    pub(super) layer: CorsLayer,
    pub(super) origins: AllowedOrigins,
}

/// The web pages that may call, on every request where some may: for protocols that refuse the others themselves.
#[derive(Debug, Clone)]
pub(crate) struct AllowedOrigins(Arc<[Origin]>);

impl AllowedOrigins {
    /// Whether pages of this origin may call.
    pub(crate) fn allows(&self, origin: &HeaderValue) -> bool {
        self.0.iter().any(|allowed| allowed.allows(origin))
    }
}

/// What is wrong with [`CorsOptions`]: a sentence to stop the start with.
#[derive(Debug, thiserror::Error)]
pub enum CorsError {
    /// `*` would hand every page on the web the user's credentials.
    #[error("cors.origins = \"*\" cannot be combined with cors.allow_credentials: name the origins")]
    AnyOriginWithCredentials,
    /// No origin, so no page could call.
    #[error("cors is enabled but cors.origins is empty: name at least one origin, or disable cors")]
    NoOrigins,
    /// A `/…/` origin is not a regular expression.
    #[error("cors.origins: {pattern} is not a regular expression: {reason}")]
    Pattern {
        /// The origin as configured.
        pattern: String,
        /// What the parser says.
        reason: String,
    },
    /// A value is not what its list holds.
    #[error("cors.{list}: '{value}' is not a valid entry")]
    Entry {
        /// The configuration key.
        list: &'static str,
        /// The offending value.
        value: String,
    },
}

#[derive(Debug)]
enum Origin {
    Any,
    Exact(HeaderValue),
    Matching(Regex),
}

impl Origin {
    fn parse(text: &str) -> Result<Self, CorsError> {
        if text == "*" {
            return Ok(Origin::Any);
        }
        if let Some(pattern) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            // Anchored, because an unanchored `example\.com` would let `https://example.com.evil.net` in.
            return Regex::new(&format!("^(?:{pattern})$"))
                .map(Origin::Matching)
                .map_err(|error| CorsError::Pattern { pattern: text.to_owned(), reason: error.to_string() });
        }
        HeaderValue::from_str(text)
            .map(Origin::Exact)
            .map_err(|_| CorsError::Entry { list: "origins", value: text.to_owned() })
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        match self {
            Origin::Any => true,
            Origin::Exact(exact) => exact == origin,
            Origin::Matching(pattern) => pattern.is_match(origin.as_bytes()),
        }
    }
}

impl TryFrom<CorsOptions> for CorsConfig {
    type Error = CorsError;

    fn try_from(options: CorsOptions) -> Result<Self, CorsError> {
        let origins =
            options.origins.iter().map(|text| Origin::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let any = origins.iter().any(|origin| matches!(origin, Origin::Any));
        if origins.is_empty() {
            return Err(CorsError::NoOrigins);
        }
        if any && options.allow_credentials {
            return Err(CorsError::AnyOriginWithCredentials);
        }
        let origins = AllowedOrigins(origins.into());
        let allow_origin = if any {
            AllowOrigin::any()
        } else {
            let allowed = origins.clone();
            AllowOrigin::predicate(move |origin: &HeaderValue, _: &request::Parts| allowed.allows(origin))
        };
        let methods: Vec<Method> = entries("methods", &options.methods)?;
        let headers: Vec<HeaderName> = entries("headers", &options.headers)?;
        let exposed: Vec<HeaderName> = entries("exposed_headers", &options.exposed_headers)?;

        let mut layer = CorsLayer::new()
            .allow_origin(allow_origin)
            .allow_methods(if methods.is_empty() {
                AllowMethods::mirror_request()
            } else {
                AllowMethods::list(methods)
            })
            .allow_headers(if headers.is_empty() {
                AllowHeaders::mirror_request()
            } else {
                AllowHeaders::list(headers)
            })
            .expose_headers(exposed)
            .allow_credentials(options.allow_credentials);
        if let Some(max_age) = options.max_age {
            layer = layer.max_age(max_age);
        }
        Ok(Self { layer, origins })
    }
}

fn entries<T: std::str::FromStr>(list: &'static str, values: &[String]) -> Result<Vec<T>, CorsError> {
    values
        .iter()
        .map(|value| value.parse().map_err(|_| CorsError::Entry { list, value: value.clone() }))
        .collect()
}
