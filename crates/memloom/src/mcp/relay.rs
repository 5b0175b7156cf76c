//! Between an editor and whoever has the store open, be it this process or another one. When the other one goes, the editor
//! notices nothing: the session is begun anew elsewhere, what only reads is asked again, and what may have changed something
//! is answered with an error that says so.
//!
//! A server's folder is never opened in its place: it would run with an editor's settings, and the server could not come back.
//! Its editors wait for it, and answer with an error once it has been gone for long.

use super::door::{self, Kind, Shut};
use super::lines::{Line, Lines};
use super::owner::Owner;
use crate::config::{Config, Database};
use anyhow::{Context, bail};
use memloom_server::mcp::{Local, only_reads};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The most bytes of one message.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// So many messages may wait for whoever has the store.
const WAITING: usize = 16;
/// How long is waited for a folder that somebody has who lets nobody in: it may just be starting, or just be ending. So long
/// requests wait for a server that went, too.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
/// How often a server is looked for that has been gone for long, if nobody asks for anything.
const LONG_PAUSE: Duration = Duration::from_secs(5);
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
    /// Whether the folder is a server's. That it is gone now changes nothing.
    is_servers: bool,
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
        Self {
            config,
            local,
            editor,
            output,
            owner: None,
            is_servers: false,
            begun,
            initialized,
            pending: Vec::new(),
        }
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
        while let Some(mut upstream) = self.connect().await? {
            if self.resume(&mut upstream).await? == Ended::Editor {
                if self.pump(upstream).await? == Ended::Editor {
                    return Ok(());
                }
                self.tell_of_writes().await?;
            }
            tracing::debug!("whoever had the store went");
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Finds whoever has the store, or opens it. `None` if the editor went meanwhile.
    async fn connect(&mut self) -> anyhow::Result<Option<Upstream>> {
        if let Some(owner) = &self.owner {
            return Ok(Some(Upstream::new(owner.session(self.local.clone())?)));
        }
        let database: Option<PathBuf> = match self.config.database()? {
            Database::Sqlite(path) => Some(path),
            Database::Postgres(_) => None,
        };
        if let (true, Some(database)) = (self.is_servers, &database) {
            return self.wait_for_server(database).await;
        }
        let given_up = Instant::now() + PATIENCE;
        loop {
            let mut shut = Shut::Closed;
            if let Some(database) = &database {
                match self.join(database).await {
                    Ok(upstream) => return Ok(Some(upstream)),
                    Err(why) => shut = why,
                }
            }
            if let Some(owner) = Owner::open(&self.config).await? {
                let session = owner.session(self.local.clone());
                self.owner = Some(owner);
                return Ok(Some(Upstream::new(session?)));
            }
            let folder = self.config.server.data_dir.display();
            match shut {
                Shut::Refused(why) => bail!("the process that uses the data folder {folder} refuses: {why}"),
                Shut::Closed if Instant::now() > given_up => bail!(
                    "another memloom process uses the data folder {folder} and lets nobody in, as a server does that asks for \
                     credentials: stop it, give this editor its address (http://…/mcp), or choose another folder with \
                     --data-dir"
                ),
                Shut::Silent if Instant::now() > given_up => bail!(
                    "another memloom process uses the data folder {folder} and does not answer: it is of another version, or \
                     does not run any more. Stop it, or choose another folder with --data-dir"
                ),
                Shut::Closed | Shut::Silent => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Goes to whoever has the store open.
    async fn join(&mut self, database: &Path) -> Result<Upstream, Shut> {
        let (kind, stream) = door::join(database, &self.local).await?;
        self.is_servers |= kind == Kind::Serve;
        Ok(Upstream::new(stream))
    }

    /// Waits until the server is back whose folder it is. What the editor asks meanwhile waits too, and once the server has been
    /// gone for long it is answered with an error. `None` if the editor goes.
    async fn wait_for_server(&mut self, database: &Path) -> anyhow::Result<Option<Upstream>> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            if let Ok(upstream) = self.join(database).await {
                return Ok(Some(upstream));
            }
            let patient = Instant::now() < given_up;
            if !patient {
                self.tell_of_server().await?;
            }
            tokio::select! {
                line = self.editor.next(), if self.pending.len() < WAITING => match line {
                    Line::Whole(line) | Line::Rest(line) => self.note(&line),
                    Line::TooLong(beginning) => self.refuse_long(&beginning).await?,
                    Line::End => {
                        self.tell_of_server().await?;
                        return Ok(None);
                    }
                },
                () = tokio::time::sleep(if patient { PAUSE } else { LONG_PAUSE }) => {}
            }
        }
    }

    /// Answers everything that waits for a server that is gone.
    async fn tell_of_server(&mut self) -> anyhow::Result<()> {
        let message = format!(
            "the memory cannot be reached: the Memloom server that has the data folder {} does not run. Nothing was done. Start it \
             with `memloom serve` and ask again; or have the editor start `memloom mcp` anew, which then works without a server",
            self.config.server.data_dir.display()
        );
        for request in std::mem::take(&mut self.pending) {
            // A session that was not let begin has not begun.
            self.begun.take_if(|(id, _)| *id == request.id);
            self.refuse(&request.id, SERVER_ERROR, &message).await?;
        }
        Ok(())
    }

    /// Answers what may have changed something when whoever had the store went.
    async fn tell_of_writes(&mut self) -> anyhow::Result<()> {
        let (reads, writes): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|request| request.reads);
        self.pending = reads;
        let message = "the process that had the store ended while it worked on this, so it may or may not have been carried \
                       out: look first, and repeat it only if it was not";
        for request in writes {
            self.refuse(&request.id, SERVER_ERROR, message).await?;
        }
        Ok(())
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
                // One that says nothing now has stopped since it let us in.
                match tokio::time::timeout(PATIENCE, upstream.says.next()).await.unwrap_or(Line::End) {
                    Line::Whole(line) if answered(&line).as_ref() == Some(&id) => break,
                    Line::Whole(line) => self.print(&line).await?,
                    Line::TooLong(_) => {}
                    Line::Rest(_) | Line::End => return Ok(Ended::Upstream),
                }
            }
            if let Some(line) = self.initialized.clone() {
                let _ = upstream.hears.send(line).await;
            }
        }
        for request in &self.pending {
            let _ = upstream.hears.send(request.line.clone()).await;
        }
        Ok(Ended::Editor)
    }

    async fn pump(&mut self, upstream: Upstream) -> anyhow::Result<Ended> {
        let Upstream { hears, mut says } = upstream;
        loop {
            let room = hears.capacity() > 0;
            tokio::select! {
                // First, so that nothing is sent to somebody who went.
                biased;
                line = says.next() => match line {
                    Line::Whole(line) => self.pass_on(&line).await?,
                    Line::TooLong(beginning) => self.replace_long(&beginning).await?,
                    Line::Rest(_) | Line::End => return Ok(Ended::Upstream),
                },
                line = self.editor.next(), if room => match line {
                    Line::Whole(line) | Line::Rest(line) => {
                        self.note(&line);
                        if hears.try_send(line).is_err() {
                            return Ok(Ended::Upstream);
                        }
                    }
                    Line::TooLong(beginning) => self.refuse_long(&beginning).await?,
                    Line::End => break,
                },
                room = hears.reserve(), if !room => {
                    if room.is_err() {
                        return Ok(Ended::Upstream);
                    }
                }
            }
        }
        // The editor has no more to say; what it asked is answered still.
        drop(hears);
        let answers = async {
            loop {
                match says.next().await {
                    Line::Whole(line) => self.pass_on(&line).await?,
                    Line::TooLong(beginning) => self.replace_long(&beginning).await?,
                    Line::Rest(_) | Line::End => return anyhow::Ok(()),
                }
            }
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

    /// Answers a message of the editor that is too long to be read.
    async fn refuse_long(&mut self, beginning: &[u8]) -> anyhow::Result<()> {
        let message = format!("a message may have at most {MAX_LINE} bytes");
        self.refuse(&id_in(beginning).unwrap_or_default(), INVALID_REQUEST, &message).await
    }

    /// Answers in place of an answer that is too long to be passed on.
    async fn replace_long(&mut self, beginning: &[u8]) -> anyhow::Result<()> {
        let Some(id) = id_in(beginning) else { return Ok(()) };
        self.pending.retain(|request| request.id != id);
        let message = format!("the answer has more than {MAX_LINE} bytes: ask for less at once");
        self.refuse(&id, SERVER_ERROR, &message).await
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

/// The id of a message of which there is only the beginning, if it stands there.
fn id_in(beginning: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(beginning);
    let (before, after) = text.split_once("\"id\":")?;
    // In a second brace it is the id of something else.
    let is_own = before.matches('{').count() == 1;
    is_own.then(|| serde_json::Deserializer::from_str(after).into_iter().next()?.ok()).flatten()
}

/// The request that a message answers.
fn answered(line: &[u8]) -> Option<Value> {
    let message: Message = serde_json::from_slice(line).ok()?;
    if message.method.is_some() { None } else { message.id.filter(|id| !id.is_null()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memloom_core::{Clock, SystemClock};

    fn relay(editor: &[u8]) -> Relay<&[u8], Vec<u8>> {
        let (user, tenant, session) = ("alice".to_owned(), "default".to_owned(), SystemClock.new_id());
        let local = Local { user, tenant, project: None, agent: None, session };
        Relay::new(Config::default(), local, editor, Vec::new())
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_answered_in_its_place() {
        let (ours, theirs) = tokio::io::duplex(MAX_LINE);
        let mut relay = relay(br#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#);
        let upstream = async {
            let (read, mut write) = tokio::io::split(theirs);
            // The editor's last line is one though it was not ended.
            assert!(
                matches!(Lines::new(read, MAX_LINE).next().await, Line::Whole(line) if line.ends_with(b"}"))
            );
            let long = format!(r#"{{"jsonrpc":"2.0","id":"a","result":"{}"}}"#, "x".repeat(MAX_LINE));
            write.write_all(long.as_bytes()).await.unwrap();
            write.write_all(b"\n{\"half\":").await.unwrap();
            write.shutdown().await.unwrap();
        };
        let (ended, ()) = tokio::join!(relay.pump(Upstream::new(ours)), upstream);
        assert!(ended.unwrap() == Ended::Editor && relay.pending.is_empty());
        let said: Value = serde_json::from_slice(&relay.output).unwrap();
        assert_eq!((&said["id"], &said["error"]["code"]), (&json!("a"), &json!(SERVER_ERROR)), "{said}");
    }

    #[test]
    fn the_id_of_a_message_is_its_own() {
        assert_eq!(id_in(br#"{"jsonrpc":"2.0","id": 7,"result":{"id":8"#), Some(json!(7)));
        assert_eq!(id_in(br#"{"id":"seven","jsonrpc":"2.0"#), Some(json!("seven")));
        assert_eq!(id_in(br#"{"params":{"id":7,"#), None);
        assert_eq!(id_in(br#"{"id":"cut o"#), None);
    }
}
