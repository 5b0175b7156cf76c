//! `memtrove evict`: removes for good what was deleted long ago, through a running server or in the store itself.

use crate::target::{RunningServer, TargetArgs};
use crate::terminal;
use anyhow::{Context, bail, ensure};
use clap::Args;
use memtrove_core::period;
use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::str::FromStr;
use tokio::sync::mpsc;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove evict --older-than 90d
  memtrove evict --older-than 90d --url http://127.0.0.1:7077 --token admin
  memtrove evict --older-than 24h --url https://memory.example \\
    --token \"$TOKEN\" --justification 'request 12'

Without --url the store is opened directly, and every tenant is cleaned up. That
needs a data folder that no server runs on; on PostgreSQL servers may go on. A
server cleans up the tenant of the token.";

/// Arguments of `memtrove evict`.
#[derive(Debug, Args)]
pub struct EvictArgs {
    /// Remove what was deleted longer ago than this: 90d, 24h, or as ISO 8601 P90D, PT24H, P1Y
    #[arg(long, value_name = "PERIOD")]
    pub older_than: Period,
    /// Where.
    #[command(flatten)]
    pub target: TargetArgs,
}

/// A length of time, as servers take it and in microseconds.
#[derive(Debug, Clone)]
pub struct Period {
    iso: String,
    micros: i64,
}

impl FromStr for Period {
    type Err = String;

    /// A number needs its unit: without one a user may mean days, where the configuration would take seconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let iso = match text.trim().to_ascii_uppercase() {
            iso if iso.starts_with('P') => iso,
            days if days.ends_with('D') => format!("P{days}"),
            time => format!("PT{time}"),
        };
        match period::parse(&iso) {
            Some(micros) => Ok(Self { iso, micros }),
            None => Err("it is not a length of time such as 90d, 24h or P90D".into()),
        }
    }
}

/// Evicts, showing progress on a terminal.
pub async fn run(args: &EvictArgs) -> anyhow::Result<ExitCode> {
    match args.target.server()? {
        Some(server) => through_server(args, &server).await?,
        None => in_folder(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

const BAR: &str = "evicting {bar:40} {pos:>3}% {elapsed}";

async fn in_folder(args: &EvictArgs) -> anyhow::Result<()> {
    let folder = args.target.folder().await?;
    let conversations = &folder.services.conversations;
    let mut tenants = conversations.tenants().await?;
    if let Some(only) = &args.target.tenant {
        tenants.retain(|tenant| tenant.as_str() == only);
        ensure!(!tenants.is_empty(), "there is no tenant '{only}' in this store");
    }
    let mut evicted = 0;
    for tenant in tenants {
        let bar = terminal::progress_bar(BAR, 100);
        let eviction = conversations.eviction(tenant, args.older_than.micros);
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
    folder.close().await?;
    terminal::line(format_args!(
        "Removed {evicted} conversation {}.",
        if evicted == 1 { "tree" } else { "trees" }
    ));
    Ok(())
}

async fn through_server(args: &EvictArgs, server: &RunningServer<'_>) -> anyhow::Result<()> {
    let mut body = json!({ "retentionPeriod": args.older_than.iso, "resourceTypes": ["conversations"] });
    if let Some(justification) = &args.target.justification {
        body["justification"] = json!(justification);
    }
    let request = server.request(Method::POST, "/v1/admin/evict").header(ACCEPT, "text/event-stream");
    let mut response = server.send(request.json(&body)).await?;
    let bar = terminal::progress_bar(BAR, 100);
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
