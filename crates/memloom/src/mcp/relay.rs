//! Between an editor and whoever has the store open, be it this process or another one. When the other one goes, the editor
//! notices nothing: the session is begun anew elsewhere, what only reads is asked again, and what may have changed something
//! is answered with an error that says so.

use super::door;
use super::lines::{Line, Lines};
use super::owner::Owner;
use crate::config::{Config, Database};
use anyhow::{Context, bail};
use memloom_server::mcp::{Local, only_reads};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The most bytes of one message.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// So many messages may wait for whoever has the store.
const WAITING: usize = 16;
/// How long is waited for a folder that somebody has who lets nobody in: it may just be starting, or just be ending.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
/// How long answers may take once the editor has no more to say.
const FAREWELL: Duration = Duration::from_secs(10);
/// JSON-RPC: something went wrong on this side.
const SERVER_ERROR: i32 = -32000;
/// JSON-RPC: the request is not one.
const INVALID_REQUEST: i32 = -32600;

/// What is looked at in a message.
#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    /// The tool that is called.
    name: Option<Value>,
    /// The request that is called off.
    #[serde(rename = "requestId")]
    request_id: Option<Value>,
}

/// A request that was not answered yet.
struct Pending {
    id: Value,
    line: Vec<u8>,
    /// Whether it can be asked again without changing anything.
    reads: bool,
}

/// One editor's session.
pub(super) struct Relay<R, W> {
    config: Config,
    local: Local,
    editor: Lines<R>,
    output: W,
    owner: Option<Owner>,
    /// The editor's `initialize`, and what it said once that was answered.
    begun: Option<(Value, Vec<u8>)>,
    initialized: Option<Vec<u8>>,
    pending: Vec<Pending>,
}

/// The other side.
struct Upstream {
    hears: mpsc::Sender<Vec<u8>>,
    says: Lines<Box<dyn AsyncRead + Send + Unpin>>,
}

impl Upstream {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (read, mut write) = tokio::io::split(stream);
        let (hears, mut lines) = mpsc::channel::<Vec<u8>>(WAITING);
        // Apart from the reading: two that both only speak would wait for each other for ever.
        tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push(b'\n');
                if write.write_all(&line).await.is_err() {
                    return;
                }
            }
            let _ = write.shutdown().await;
        });
        Self { hears, says: Lines::new(Box::new(read), MAX_LINE) }
    }
}

/// Why a session with one upstream ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// The editor went, or the process is to stop.
    Editor,
    /// Whoever had the store went.
    Upstream,
}

impl<R, W> Relay<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub fn new(config: Config, local: Local, input: R, output: W) -> Self {
        let editor = Lines::new(input, MAX_LINE);
        let (begun, initialized) = (None, None);
        Self { config, local, editor, output, owner: None, begun, initialized, pending: Vec::new() }
    }

    /// Relays until the editor goes or `stop` resolves.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let relayed = {
            let mut stop = std::pin::pin!(stop);
            tokio::select! {
                relayed = self.relay() => relayed,
                () = &mut stop => Ok(()),
            }
        };
        if let Some(owner) = self.owner.take() {
            owner.close().await;
        }
        relayed
    }

    async fn relay(&mut self) -> anyhow::Result<()> {
        loop {
            let mut upstream = self.connect().await?;
            if self.resume(&mut upstream).await? == Ended::Upstream {
                continue;
            }
            if self.pump(upstream).await? == Ended::Editor {
                return Ok(());
            }
            tracing::debug!("whoever had the store went");
        }
    }

    /// Finds whoever has the store, or opens it.
    async fn connect(&mut self) -> anyhow::Result<Upstream> {
        let database: Option<PathBuf> = match self.config.database()? {
            Database::Sqlite(path) => Some(path),
            Database::Postgres(_) => None,
        };
        let given_up = Instant::now() + PATIENCE;
        loop {
            if let Some(database) = &database
                && let Some(stream) = door::join(database, &self.local).await
            {
                return Ok(Upstream::new(stream));
            }
            if let Some(owner) = Owner::open(&self.config).await? {
                let session = owner.session(self.local.clone());
                self.owner = Some(owner);
                return Ok(Upstream::new(session?));
            }
            if Instant::now() > given_up {
                bail!(
                    "another memloom process uses the data folder {} and lets nobody in, as a server does that asks for \
                     credentials: stop it, give this editor its address (http://…/mcp), or choose another folder with \
                     --data-dir",
                    self.config.server.data_dir.display()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Begins the session anew where it has begun already, and sees to the requests that were under way.
    async fn resume(&mut self, upstream: &mut Upstream) -> anyhow::Result<Ended> {
        let is_pending = |id: &Value, pending: &[Pending]| pending.iter().any(|request| request.id == *id);
        if let Some((id, line)) = self.begun.clone()
            && !is_pending(&id, &self.pending)
        {
            let _ = upstream.hears.send(line).await;
            // The editor has had this answer.
            loop {
                match upstream.says.next().await {
                    Line::Whole(line) if answered(&line).as_ref() == Some(&id) => break,
                    Line::Whole(line) => self.print(&line).await?,
                    Line::TooLong => {}
                    Line::End => return Ok(Ended::Upstream),
                }
            }
            if let Some(line) = self.initialized.clone() {
                let _ = upstream.hears.send(line).await;
            }
        }
        for request in std::mem::take(&mut self.pending) {
            if request.reads {
                let _ = upstream.hears.send(request.line.clone()).await;
                self.pending.push(request);
            } else {
                let message = "the process that had the store ended while it worked on this, so it may or may not have \
                               been carried out: look first, and repeat it only if it was not";
                self.refuse(&request.id, SERVER_ERROR, message).await?;
            }
        }
        Ok(Ended::Editor)
    }

    async fn pump(&mut self, upstream: Upstream) -> anyhow::Result<Ended> {
        let Upstream { hears, mut says } = upstream;
        loop {
            let room = hears.capacity() > 0;
            tokio::select! {
                line = self.editor.next(), if room => match line {
                    Line::Whole(line) => {
                        self.note(&line);
                        if hears.try_send(line).is_err() {
                            return Ok(Ended::Upstream);
                        }
                    }
                    Line::TooLong => {
                        let message = format!("a message may have at most {MAX_LINE} bytes");
                        self.refuse(&Value::Null, INVALID_REQUEST, &message).await?;
                    }
                    Line::End => break,
                },
                room = hears.reserve(), if !room => {
                    if room.is_err() {
                        return Ok(Ended::Upstream);
                    }
                }
                line = says.next() => match line {
                    Line::Whole(line) => self.pass_on(&line).await?,
                    Line::TooLong => {}
                    Line::End => return Ok(Ended::Upstream),
                },
            }
        }
        // The editor has no more to say; what it asked is answered still.
        drop(hears);
        let answers = async {
            while let Line::Whole(line) = says.next().await {
                self.pass_on(&line).await?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(FAREWELL, answers).await.unwrap_or(Ok(()))?;
        Ok(Ended::Editor)
    }

    /// Notes what a message of the editor would need if the upstream went now.
    fn note(&mut self, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Message>(line) else { return };
        match (message.id, message.method.as_deref()) {
            (Some(id), Some(method)) => {
                if method == "initialize" {
                    self.begun = Some((id.clone(), line.to_vec()));
                }
                let tool = message.params.and_then(|params| params.name);
                let reads =
                    method != "tools/call" || tool.is_some_and(|name| name.as_str().is_some_and(only_reads));
                self.pending.push(Pending { id, line: line.to_vec(), reads });
            }
            (None, Some("notifications/initialized")) => self.initialized = Some(line.to_vec()),
            (None, Some("notifications/cancelled")) => {
                // It may never be answered, and nobody waits for it.
                let off = message.params.and_then(|params| params.request_id);
                self.pending.retain(|request| Some(&request.id) != off.as_ref());
            }
            _ => {}
        }
    }

    /// Passes an answer on to the editor.
    async fn pass_on(&mut self, line: &[u8]) -> anyhow::Result<()> {
        if let Some(id) = answered(line) {
            self.pending.retain(|request| request.id != id);
        }
        self.print(line).await
    }

    async fn refuse(&mut self, id: &Value, code: i32, message: &str) -> anyhow::Result<()> {
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
        self.print(error.to_string().as_bytes()).await
    }

    async fn print(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let written = async {
            self.output.write_all(line).await?;
            self.output.write_all(b"\n").await?;
            self.output.flush().await
        };
        written.await.context("the editor does not listen any more")
    }
}

/// The request that a message answers.
fn answered(line: &[u8]) -> Option<Value> {
    let message: Message = serde_json::from_slice(line).ok()?;
    if message.method.is_some() { None } else { message.id.filter(|id| !id.is_null()) }
}
