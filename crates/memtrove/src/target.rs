//! What an operator's command works on: a running server, or the store itself.

use crate::cli::StoreArgs;
use crate::config::{Config, Database};
use crate::serve;
use anyhow::{Context, bail, ensure};
use clap::Args;
use memtrove_core::SystemClock;
use memtrove_server::telemetry::{self, Guard, TelemetryConfig};
use memtrove_service::Services;
use memtrove_store::Store;
use memtrove_store::postgres::inspection;
use reqwest::header::AUTHORIZATION;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;

/// Which server to ask and as whom, or which store to open.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// The server to ask; without one the store is opened directly
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// With --url: bearer token of an admin, or what `memtrove token` prints; in local mode the user's name
    #[arg(long, env = "MEMTROVE_TOKEN", hide_env_values = true, value_parser = bare_token)]
    pub token: Option<String>,
    /// With --url: API key of a client with the admin role
    #[arg(long, env = "MEMTROVE_API_KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// Only this tenant
    #[arg(long)]
    pub tenant: Option<String>,
    /// With --url: why, for the audit log
    #[arg(long, requires = "url")]
    pub justification: Option<String>,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub settings: StoreArgs,
}

/// The token in a header, which is what `memtrove token` prints; anything else is a token already.
fn bare_token(given: &str) -> Result<String, Infallible> {
    let mut token = given.trim();
    for prefix in ["Authorization:", "Bearer "] {
        if token.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
            token = token[prefix.len()..].trim_start();
        }
    }
    Ok(token.to_owned())
}

impl TargetArgs {
    /// The server that was named, if one was.
    pub(crate) fn server(&self) -> anyhow::Result<Option<RunningServer<'_>>> {
        let Some(url) = &self.url else { return Ok(None) };
        ensure!(
            self.token.is_some() || self.api_key.is_some(),
            "the server wants to know who asks: add --token (in local mode: --token admin) or --api-key"
        );
        Ok(Some(RunningServer {
            url: url.trim_end_matches('/'),
            caller: self,
            client: reqwest::Client::new(),
        }))
    }

    /// Opens the store itself. No other process may use a data folder; a PostgreSQL database may be in use.
    pub(crate) async fn folder(&self) -> anyhow::Result<Folder> {
        let config = self.settings.load()?.config;
        // The audit log has to say what was done, and the log why something could not be.
        let telemetry =
            telemetry::init(&TelemetryConfig { filter: "warn".into(), ..TelemetryConfig::default() })?;
        let store = open_existing(&config)?;
        let services = Services::new(store.clone(), Arc::new(SystemClock), serve::settings(&config)).await?;
        Ok(Folder { services, store, _telemetry: telemetry })
    }
}

/// Opens the store that a configuration names, unless there is nothing in it: a mistyped name must not make a new one.
fn open_existing(config: &Config) -> anyhow::Result<Store> {
    let database = config.database()?;
    ensure_exists(config, &database)?;
    serve::open_store(config).with_context(|| match database {
        Database::Sqlite(_) => {
            "the data folder cannot be opened (if a server runs on it, use --url)".to_owned()
        }
        Database::Postgres(address) => format!("the store at {address} cannot be opened"),
    })
}

/// Refuses where nothing of ours is.
pub(crate) fn ensure_exists(config: &Config, database: &Database) -> anyhow::Result<()> {
    match database {
        Database::Sqlite(file) => {
            ensure!(file.exists(), "there is no database at {}: check --data-dir", file.display());
        }
        Database::Postgres(address) => {
            let found =
                inspection::inspect(&config.store.postgres(config.encryption.vault()?), &SystemClock)?;
            ensure!(found.schema.is_some(), "there is nothing of memtrove at {address}: check --store");
        }
    }
    Ok(())
}

/// A store that was opened for one command.
pub(crate) struct Folder {
    pub services: Services,
    store: Store,
    _telemetry: Guard,
}

impl Folder {
    /// Leaves it in order for the next process.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        Ok(tokio::task::spawn_blocking(move || self.store.close()).await?)
    }
}

/// A running server, asked by somebody.
pub(crate) struct RunningServer<'a> {
    url: &'a str,
    caller: &'a TargetArgs,
    client: reqwest::Client,
}

impl RunningServer<'_> {
    /// A request with the caller's credentials on it.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let TargetArgs { token, api_key, tenant, .. } = self.caller;
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(key) = api_key {
            request = request.header("x-api-key", key);
        }
        if let Some(tenant) = tenant {
            request = request.header("x-tenant-id", tenant);
        }
        request
    }

    /// The answer, unless it is a refusal.
    pub(crate) async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let url = self.url;
        let response = request.send().await.with_context(|| format!("{url} cannot be reached"))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        bail!("{url} refused with {status}: {}", complaint(&response.text().await.unwrap_or_default()))
    }
}

/// The sentence in an error response, whichever surface it is of, or the response itself.
fn complaint(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let places = ["/error/message", "/details/message", "/error"];
    let message = places.iter().find_map(|place| json.pointer(place)?.as_str());
    message.unwrap_or(body).to_owned()
}
