//! `memloom evict`: removes for good what was deleted long ago, through a running server or in the data folder itself.

use crate::cli::StoreArgs;
use crate::{serve, terminal};
use anyhow::{Context, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use memloom_core::{SystemClock, period};
use memloom_server::telemetry::{self, TelemetryConfig};
use memloom_service::Services;
use reqwest::header::{ACCEPT, AUTHORIZATION};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memloom evict --older-than P90D
  memloom evict --older-than P90D --url http://127.0.0.1:7077 --token admin
  memloom evict --older-than PT24H --url https://memory.example \\
    --token \"$TOKEN\" --justification 'request 12'

Without --url the data folder is opened directly, which needs that no server
runs on it, and every tenant is cleaned up. A server cleans up the tenant of the
token.";

/// Arguments of `memloom evict`.
#[derive(Debug, Args)]
pub struct EvictArgs {
    /// Remove what was deleted longer ago than this, as ISO 8601: P90D, PT24H, P1Y
    #[arg(long, value_name = "PERIOD")]
    pub older_than: String,
    /// The server to ask; without one the data folder is opened directly
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// With --url: bearer token of an admin; in local mode the user's name
    #[arg(long, env = "MEMLOOM_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// With --url: API key of a client with the admin role
    #[arg(long, env = "MEMLOOM_API_KEY", hide_env_values = true)]
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

/// Evicts, showing progress on a terminal.
pub async fn run(args: &EvictArgs) -> anyhow::Result<ExitCode> {
    let Some(micros) = period::parse(&args.older_than) else {
        bail!("--older-than '{}' is not a positive ISO 8601 duration such as P90D or PT24H", args.older_than);
    };
    match &args.url {
        Some(url) => through_server(args, url).await?,
        None => in_folder(args, micros).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("evicting {bar:40} {pos:>3}% {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(100).with_style(style)
}

async fn in_folder(args: &EvictArgs, micros: i64) -> anyhow::Result<()> {
    let config = args.settings.load()?.config;
    // Only for the audit log, which has to say that somebody evicted.
    let _telemetry =
        telemetry::init(&TelemetryConfig { filter: "warn".into(), ..TelemetryConfig::default() })?;
    let database = config.database()?;
    ensure!(database.exists(), "there is no database at {}: check --data-dir", database.display());
    let store = serve::open_store(&config)
        .context("the data folder cannot be opened (if a server runs on it, use --url)")?;
    let services = Services::new(store.clone(), Arc::new(SystemClock), serve::settings(&config)).await?;
    let conversations = &services.conversations;
    let mut tenants = conversations.tenants().await?;
    if let Some(only) = &args.tenant {
        tenants.retain(|tenant| tenant.as_str() == only);
        ensure!(!tenants.is_empty(), "there is no tenant '{only}' in this data folder");
    }
    let mut evicted = 0;
    for tenant in tenants {
        let bar = progress_bar().with_prefix(tenant.as_str().to_owned());
        let eviction = conversations.eviction(tenant, micros);
        let (sender, mut percents) = mpsc::channel::<u8>(16);
        let show = async {
            while let Some(percent) = percents.recv().await {
                bar.set_position(percent.into());
            }
        };
        let (removed, ()) = tokio::join!(conversations.evict(&eviction, sender), show);
        bar.finish_and_clear();
        evicted += removed?;
    }
    tokio::task::spawn_blocking(move || store.close()).await?;
    terminal::line(format_args!(
        "Removed {evicted} conversation {}.",
        if evicted == 1 { "tree" } else { "trees" }
    ));
    Ok(())
}

async fn through_server(args: &EvictArgs, url: &str) -> anyhow::Result<()> {
    let endpoint = format!("{}/v1/admin/evict", url.trim_end_matches('/'));
    ensure!(
        args.token.is_some() || args.api_key.is_some(),
        "the server wants to know who evicts: add --token (in local mode: --token admin) or --api-key"
    );
    let mut body = json!({ "retentionPeriod": args.older_than, "resourceTypes": ["conversations"] });
    if let Some(justification) = &args.justification {
        body["justification"] = json!(justification);
    }
    let mut request = reqwest::Client::new().post(&endpoint).header(ACCEPT, "text/event-stream").json(&body);
    if let Some(token) = &args.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    if let Some(key) = &args.api_key {
        request = request.header("x-api-key", key);
    }
    if let Some(tenant) = &args.tenant {
        request = request.header("x-tenant-id", tenant);
    }
    let mut response = request.send().await.with_context(|| format!("{url} cannot be reached"))?;
    if !response.status().is_success() {
        let status = response.status();
        bail!("{url} refused with {status}: {}", complaint(&response.text().await.unwrap_or_default()));
    }
    let bar = progress_bar();
    let mut events = Events::default();
    while let Some(chunk) = response.chunk().await.context("the server hung up before it was done")? {
        for event in events.read(&chunk) {
            match event {
                Event::Progress(percent) => bar.set_position(percent),
                Event::Failed(message) => bail!("the eviction failed: {message}"),
            }
            if bar.position() == 100 {
                bar.finish_and_clear();
                terminal::line("Done.");
                return Ok(());
            }
        }
    }
    bail!("the server hung up before it was done; run the command again to continue")
}

/// The sentence in an error response, or the response itself.
fn complaint(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let message = json.pointer("/details/message").or_else(|| json.get("error")).and_then(Value::as_str);
    message.unwrap_or(body).to_owned()
}

#[derive(Debug, PartialEq)]
enum Event {
    Progress(u64),
    Failed(String),
}

/// Puts server-sent events together from the pieces they arrive in.
#[derive(Default)]
struct Events {
    pending: Vec<u8>,
}

impl Events {
    fn read(&mut self, chunk: &[u8]) -> Vec<Event> {
        self.pending.extend(chunk.iter().filter(|byte| **byte != b'\r'));
        let mut events = Vec::new();
        while let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.pending.drain(..end + 2).collect();
            events.extend(event(&String::from_utf8_lossy(&block)));
        }
        events
    }
}

fn event(block: &str) -> Option<Event> {
    let field = |name: &str| block.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
    let data: Value = serde_json::from_str(field("data:")?).ok()?;
    if field("event:") == Some("error") {
        let message = data["error"].as_str().unwrap_or("the server did not say why");
        return Some(Event::Failed(message.to_owned()));
    }
    data["progress"].as_u64().map(Event::Progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_whatever_the_pieces() {
        let stream = b"data: {\"progress\": 0}\n\n: keep-alive\n\ndata: {\"progress\":42}\r\n\r\nevent: error\ndata: {\"error\":\"disk \\\"full\\\"\"}\n\n";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let read: Vec<Event> = stream.chunks(size).flat_map(|chunk| events.read(chunk)).collect();
            let expected = [Event::Progress(0), Event::Progress(42), Event::Failed("disk \"full\"".into())];
            assert_eq!(read, expected, "in pieces of {size}");
        }
    }
}
