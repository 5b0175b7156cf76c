//! Between an editor and whoever has the store open, be it this process or another one. When the other one goes, the editor
//! notices nothing: the session is begun anew elsewhere, and what only reads or was not looked at yet is asked again. What may have
//! changed something, because the other one was killed or hangs, is answered with an error that says so.
//!
//! A server's folder is never opened in its place: it would run with an editor's settings, and the server could not come back.
//! Its editors wait for it, and answer with an error once it has been gone for long.

use super::door::{self, Kind, Shut};
use super::lines::{Ends, Line, Lines, MAX_MESSAGE};
use super::owner::Owner;
use super::told;
use crate::config::{Config, Database};
use anyhow::{Context, bail};
use memtrove_server::mcp::{Local, only_reads};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// So many messages may wait for whoever has the store.
const WAITING: usize = 16;
/// So many bytes of requests that were not answered yet are kept, to be asked again.
const MAX_KEPT: usize = 4 * MAX_MESSAGE;
/// How long is waited for a folder that somebody has who lets nobody in: it may just be starting, or just be ending. So long
/// requests wait for a server that went, too, and for somebody who says nothing.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
/// How often a server is looked for that has been gone for long, if nobody asks for anything.
const LONG_PAUSE: Duration = Duration::from_secs(5);
/// How long answers may take once the editor has no more to say, or the process is to stop.
const FAREWELL: Duration = Duration::from_secs(10);
/// JSON-RPC: something went wrong on this side.
const SERVER_ERROR: i32 = -32000;
/// JSON-RPC: the request is not one.
const INVALID_REQUEST: i32 = -32600;

/// A line of the editor, with its end.
type Text = Arc<Vec<u8>>;

/// What is looked at in a message.
#[derive(Deserialize)]
struct Message {
    jsonrpc: Option<String>,
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
    /// Nothing if too much is kept already.
    line: Option<Text>,
    /// Whether it can be asked again without changing anything.
    reads: bool,
    /// Which of the lines it is that the upstream was sent. Nothing if it was not sent yet.
    number: Option<u64>,
}

/// One editor's session.
pub(super) struct Relay<R, W> {
    config: Config,
    local: Local,
    editor: Lines<R>,
    output: W,
    stop: Arc<watch::Sender<bool>>,
    owner: Option<Owner>,
    /// Whether the folder is a server's. That it is gone now changes nothing.
    is_servers: bool,
    /// The editor's `initialize`, and what it said once that was answered.
    begun: Option<(Value, Text)>,
    initialized: Option<Text>,
    pending: Vec<Pending>,
    /// Until when answers are waited for, once the editor has no more to say or the process is to stop.
    leaving: Option<Instant>,
}

/// The other side.
struct Upstream {
    hears: Hears,
    says: Lines<Box<dyn AsyncRead + Send + Unpin>>,
    /// The database at whose door it is found. Nothing if it is in this process.
    door: Option<PathBuf>,
}

/// What the other side is told.
struct Hears {
    /// Nothing once there is no more to say, or nobody hears it.
    lines: Option<mpsc::Sender<Text>>,
    /// How many it was sent.
    sent: u64,
}

impl Upstream {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static, door: Option<PathBuf>) -> Self {
        let (read, mut write) = tokio::io::split(stream);
        let (hears, mut lines) = mpsc::channel::<Text>(WAITING);
        // Apart from the reading: two that both only speak would wait for each other for ever.
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if write.write_all(&line).await.is_err() {
                    return;
                }
            }
            let _ = write.shutdown().await;
        });
        let hears = Hears { lines: Some(hears), sent: 0 };
        Self { hears, says: Lines::new(Box::new(read), MAX_MESSAGE), door }
    }
}

impl Hears {
    fn is_open(&self) -> bool {
        self.lines.is_some()
    }

    fn has_room(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.capacity() > 0)
    }

    /// Waits until there is room, or nobody who listens.
    async fn room(&mut self) {
        if let Some(lines) = &self.lines
            && lines.reserve().await.is_err()
        {
            self.close();
        }
    }

    /// Sends a line, for which there is room. Says which one it is, if somebody listens.
    fn tell(&mut self, line: Text) -> Option<u64> {
        if self.lines.as_ref()?.try_send(line).is_err() {
            self.close();
            return None;
        }
        self.sent += 1;
        Some(self.sent)
    }

    fn close(&mut self) {
        self.lines = None;
    }
}

/// Why a session with one upstream ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The editor went, or the process is to stop.
    Editor,
    /// Whoever had the store went. If it said so, it had taken so many lines.
    Upstream(Option<u64>),
}

impl<R, W> Relay<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub fn new(config: Config, local: Local, input: R, output: W) -> Self {
        Self {
            config,
            local,
            editor: Lines::new(input, MAX_MESSAGE),
            output,
            stop: Arc::new(watch::Sender::new(false)),
            owner: None,
            is_servers: false,
            begun: None,
            initialized: None,
            pending: Vec::new(),
            leaving: None,
        }
    }

    /// Relays until the editor goes or `stop` resolves, and what was asked until then is answered.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let told = self.stop.clone();
        let relayed = {
            let mut relaying = pin!(self.relay());
            tokio::select! {
                relayed = &mut relaying => relayed,
                () = stop => {
                    told.send_replace(true);
                    relaying.await
                }
            }
        };
        if let Some(owner) = self.owner.take() {
            owner.close().await;
        }
        relayed
    }

    async fn relay(&mut self) -> anyhow::Result<()> {
        loop {
            let mut upstream = match self.connect().await {
                Ok(Some(upstream)) => upstream,
                Ok(None) => break,
                Err(error) => {
                    self.refuse_pending(&error.to_string()).await?;
                    return Err(error);
                }
            };
            if self.resume(&mut upstream).await? {
                match self.pump(upstream).await? {
                    Ended::Editor => break,
                    Ended::Upstream(taken) => self.tell_of_writes(taken).await?,
                }
            }
            if self.leaving.is_some() && self.pending.is_empty() {
                break;
            }
            tracing::debug!("whoever had the store went");
            tokio::time::sleep(PAUSE).await;
        }
        self.refuse_pending(
            "this process ended before there was an answer, so it may or may not have been carried out: look first, and repeat \
             it only if it was not",
        )
        .await
    }

    /// Finds whoever has the store, or opens it. `None` if the editor went meanwhile, or the process is to stop and nothing
    /// waits for an answer.
    async fn connect(&mut self) -> anyhow::Result<Option<Upstream>> {
        if let Some(owner) = &self.owner {
            return Ok(Some(Upstream::new(owner.session(self.local.clone())?, None)));
        }
        let database: Option<PathBuf> = match self.config.database()? {
            Database::Sqlite(path) => Some(path),
            Database::Postgres(_) => None,
        };
        if let (true, Some(database)) = (self.is_servers, &database) {
            return self.wait_for_server(database).await;
        }
        let (mut stopped, leaving, waits) = (self.stop.subscribe(), self.leaving, !self.pending.is_empty());
        let left = async {
            let Some(until) = leaving else {
                told(&mut stopped).await;
                return tokio::time::sleep(if waits { FAREWELL } else { Duration::ZERO }).await;
            };
            tokio::time::sleep_until(until).await;
        };
        tokio::select! {
            found = self.find(database) => found.map(Some),
            () = left => Ok(None),
        }
    }

    /// Finds whoever has the store, or opens it.
    async fn find(&mut self, database: Option<PathBuf>) -> anyhow::Result<Upstream> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let mut shut = Shut::Closed;
            if let Some(database) = &database {
                match self.join(database).await {
                    Ok(upstream) => return Ok(upstream),
                    Err(why) => shut = why,
                }
            }
            if let Some(owner) = Owner::open(&self.config).await? {
                let session = owner.session(self.local.clone());
                self.owner = Some(owner);
                return Ok(Upstream::new(session?, None));
            }
            let folder = self.config.server.data_dir.display();
            match shut {
                Shut::Refused(why) => bail!("the process that uses the data folder {folder} refuses: {why}"),
                Shut::Foreign(user) => bail!(
                    "the data folder {folder} is used by a process of another user ({user}), who is told nothing: choose another \
                     folder with --data-dir"
                ),
                Shut::Closed if Instant::now() > given_up => bail!(
                    "another memtrove process uses the data folder {folder} and lets nobody in, as a server does that asks for \
                     credentials: stop it, give this editor its address (http://…/mcp), or choose another folder with \
                     --data-dir"
                ),
                Shut::Silent if Instant::now() > given_up => bail!(
                    "another memtrove process uses the data folder {folder} and does not answer: it is of another version, or \
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
        Ok(Upstream::new(stream, Some(database.to_owned())))
    }

    /// Waits until the server is back whose folder it is. What the editor asks meanwhile waits too, and once the server has been
    /// gone for long it is answered with an error. `None` if the editor goes or the process is to stop.
    async fn wait_for_server(&mut self, database: &Path) -> anyhow::Result<Option<Upstream>> {
        let mut stopped = self.stop.subscribe();
        let given_up = Instant::now() + PATIENCE;
        loop {
            let joined = tokio::select! {
                biased;
                joined = self.join(database) => joined,
                () = told(&mut stopped) => Err(Shut::Closed),
            };
            if let Ok(upstream) = joined {
                return Ok(Some(upstream));
            }
            let patient = Instant::now() < given_up;
            if !patient {
                self.tell_of_server().await?;
            }
            let has_room = self.pending.len() < WAITING && self.kept() < MAX_KEPT;
            let line = tokio::select! {
                biased;
                () = told(&mut stopped) => Line::End,
                line = self.editor.next(), if has_room => line,
                () = tokio::time::sleep(if patient { PAUSE } else { LONG_PAUSE }) => continue,
            };
            match line {
                Line::Whole(line) | Line::Rest(line) => self.note(&text(line), None),
                Line::TooLong(ends) => self.refuse_long(&ends).await?,
                Line::End => {
                    self.tell_of_server().await?;
                    return Ok(None);
                }
            }
        }
    }

    /// Answers everything that waits for a server that is gone.
    async fn tell_of_server(&mut self) -> anyhow::Result<()> {
        let message = format!(
            "the memory cannot be reached: the Memtrove server that has the data folder {} does not run. Nothing was done. Start it \
             with `memtrove serve` and ask again; or have the editor start `memtrove mcp` anew, which then works without a server",
            self.config.server.data_dir.display()
        );
        self.refuse_pending(&message).await
    }

    /// Answers what may have changed something when whoever had the store went, and had perhaps said how many lines it had taken.
    /// The rest can be sent to the next.
    async fn tell_of_writes(&mut self, taken: Option<u64>) -> anyhow::Result<()> {
        for mut request in std::mem::take(&mut self.pending) {
            let number = request.number.take();
            let was_taken = number.is_some_and(|number| taken.is_none_or(|taken| number <= taken));
            let message = if was_taken && !request.reads {
                "the process that had the store ended while it worked on this, so it may or may not have been carried out: look \
                 first, and repeat it only if it was not"
            } else if request.line.is_none() {
                "the process that had the store ended before it answered, and this was too long to be kept: ask again"
            } else {
                self.pending.push(request);
                continue;
            };
            self.refuse(&request.id, SERVER_ERROR, message).await?;
        }
        Ok(())
    }

    /// Begins the session anew where it has begun already. Whether that could be done.
    async fn resume(&mut self, upstream: &mut Upstream) -> anyhow::Result<bool> {
        let Some((id, line)) = self.begun.clone() else { return Ok(true) };
        if self.pending.iter().any(|request| request.id == id) {
            return Ok(true);
        }
        upstream.hears.tell(line);
        // The editor has had this answer.
        loop {
            // One that says nothing now has stopped since it let us in.
            match tokio::time::timeout(PATIENCE, upstream.says.next()).await.unwrap_or(Line::End) {
                Line::Whole(line) if answered(&line).as_ref() == Some(&id) => break,
                Line::Whole(line) if door::farewell(&line).is_some() => return Ok(false),
                Line::Whole(line) => self.print(&line).await?,
                Line::TooLong(_) => {}
                Line::Rest(_) | Line::End => return Ok(false),
            }
        }
        if let Some(line) = self.initialized.clone() {
            upstream.hears.tell(line);
        }
        Ok(true)
    }

    async fn pump(&mut self, upstream: Upstream) -> anyhow::Result<Ended> {
        let Upstream { mut hears, mut says, door } = upstream;
        let mut stopped = self.stop.subscribe();
        let mut silence = pin!(forsaken(door.clone()));
        // Until when it is waited for what somebody has to say who does not listen.
        let mut deaf = None;
        let mut taken = None;
        loop {
            let is_waiting = self.send_waiting(&mut hears);
            if self.leaving.is_some() && !is_waiting && self.pending.is_empty() {
                // Only now, because a session that has nothing more to hear soon gives up what it works on.
                hears.close();
            } else if !hears.is_open() && deaf.is_none() {
                deaf = Some(Instant::now() + FAREWELL);
            }
            let until = self.leaving.or(deaf);
            let (is_open, has_room) = (hears.is_open(), hears.has_room());
            let takes_more = self.leaving.is_none() && !is_waiting && has_room;
            tokio::select! {
                // First, so that nothing is sent to somebody who went.
                biased;
                line = says.next() => {
                    silence.set(forsaken(door.clone()));
                    match line {
                        Line::Whole(line) => match door::farewell(&line) {
                            Some(lines) => taken = Some(lines),
                            None => self.pass_on(&line).await?,
                        },
                        Line::TooLong(ends) => self.replace_long(&ends).await?,
                        Line::Rest(_) | Line::End => break,
                    }
                }
                () = &mut silence, if !self.pending.is_empty() => {
                    tracing::warn!("whoever has the store does not answer any more");
                    break;
                }
                () = tokio::time::sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break,
                () = told(&mut stopped), if self.leaving.is_none() => self.leave(),
                line = self.editor.next(), if takes_more => match line {
                    Line::Whole(line) | Line::Rest(line) => {
                        if self.pending.is_empty() {
                            silence.set(forsaken(door.clone()));
                        }
                        let line = text(line);
                        let number = hears.tell(line.clone());
                        self.note(&line, number);
                    }
                    Line::TooLong(ends) => self.refuse_long(&ends).await?,
                    Line::End => self.leave(),
                },
                () = hears.room(), if is_open && !has_room => {}
            }
        }
        let is_over = self.leaving.is_some_and(|until| self.pending.is_empty() || Instant::now() >= until);
        Ok(if is_over { Ended::Editor } else { Ended::Upstream(taken) })
    }

    /// Takes no more from the editor. What it has asked is answered still.
    fn leave(&mut self) {
        self.leaving = Some(Instant::now() + FAREWELL);
    }

    /// Sends what an earlier upstream did not answer, as far as there is room. Whether some of it still waits.
    fn send_waiting(&mut self, hears: &mut Hears) -> bool {
        let mut is_waiting = false;
        for request in &mut self.pending {
            if let (None, Some(line)) = (request.number, &request.line) {
                request.number = if hears.has_room() { hears.tell(line.clone()) } else { None };
                is_waiting |= request.number.is_none();
            }
        }
        is_waiting
    }

    /// Notes what a message of the editor would need if the upstream went now, and which of the lines it is that the upstream was
    /// sent.
    fn note(&mut self, line: &Text, number: Option<u64>) {
        // What is not well-formed is refused without its id, so nothing would ever strike it off.
        let Ok(Ok(message)) = std::str::from_utf8(line).map(serde_json::from_str::<Message>) else { return };
        if message.jsonrpc.as_deref() != Some("2.0") {
            return;
        }
        match (message.id, message.method.as_deref()) {
            (Some(id), Some(method)) if is_id(&id) => {
                if method == "initialize" {
                    self.begun = Some((id.clone(), line.clone()));
                }
                let tool = message.params.and_then(|params| params.name);
                let reads =
                    method != "tools/call" || tool.is_some_and(|name| name.as_str().is_some_and(only_reads));
                // What was not sent yet has to be kept.
                let is_kept = number.is_none() || self.kept() + line.len() <= MAX_KEPT;
                self.pending.push(Pending { id, line: is_kept.then(|| line.clone()), reads, number });
            }
            (None, Some("notifications/initialized")) => self.initialized = Some(line.clone()),
            (None, Some("notifications/cancelled")) => {
                // It may never be answered, and nobody waits for it.
                let off = message.params.and_then(|params| params.request_id);
                self.pending.retain(|request| Some(&request.id) != off.as_ref());
            }
            _ => {}
        }
    }

    /// How many bytes are kept of requests that were not answered.
    fn kept(&self) -> usize {
        self.pending.iter().filter_map(|request| request.line.as_ref()).map(|line| line.len()).sum()
    }

    /// Passes an answer on to the editor.
    async fn pass_on(&mut self, line: &[u8]) -> anyhow::Result<()> {
        if let Some(id) = answered(line) {
            self.pending.retain(|request| request.id != id);
        }
        self.print(line).await
    }

    /// Answers a message of the editor that is too long to be read.
    async fn refuse_long(&mut self, ends: &Ends) -> anyhow::Result<()> {
        let message = format!("a message may have at most {MAX_MESSAGE} bytes");
        self.refuse(&id_in(ends).unwrap_or_default(), INVALID_REQUEST, &message).await
    }

    /// Answers in place of an answer that is too long to be passed on.
    async fn replace_long(&mut self, ends: &Ends) -> anyhow::Result<()> {
        let Some(id) = id_in(ends) else { return Ok(()) };
        self.pending.retain(|request| request.id != id);
        let message = format!("the answer has more than {MAX_MESSAGE} bytes: ask for less at once");
        self.refuse(&id, SERVER_ERROR, &message).await
    }

    /// Answers everything that waits with an error.
    async fn refuse_pending(&mut self, message: &str) -> anyhow::Result<()> {
        for request in std::mem::take(&mut self.pending) {
            // A session that was not let begin has not begun.
            self.begun.take_if(|(id, _)| *id == request.id);
            self.refuse(&request.id, SERVER_ERROR, message).await?;
        }
        Ok(())
    }

    async fn refuse(&mut self, id: &Value, code: i32, message: &str) -> anyhow::Result<()> {
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
        self.print(error.to_string().as_bytes()).await
    }

    async fn print(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let (leaving, mut stopped) = (self.leaving, self.stop.subscribe());
        let written = async {
            self.output.write_all(line).await?;
            self.output.write_all(b"\n").await?;
            self.output.flush().await
        };
        // An editor that waits for the end of this process and does not read would wait for ever.
        let left = async {
            let Some(until) = leaving else {
                told(&mut stopped).await;
                return tokio::time::sleep(FAREWELL).await;
            };
            tokio::time::sleep_until(until).await;
        };
        tokio::select! {
            biased;
            written = written => written.context("the editor does not listen any more"),
            () = left => bail!("the editor does not read its answers"),
        }
    }
}

/// Resolves when somebody has been silent for long and is not at the door either. Whoever is slow still answers there.
async fn forsaken(door: Option<PathBuf>) {
    let Some(database) = door else { return std::future::pending().await };
    loop {
        tokio::time::sleep(PATIENCE).await;
        if !door::is_answered(&database).await {
            return;
        }
    }
}

fn text(mut line: Vec<u8>) -> Text {
    line.push(b'\n');
    Arc::new(line)
}

/// Whether this can be the id of a request.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

/// The id of a message of which there are only the ends, if it is certain.
fn id_in(ends: &Ends) -> Option<Value> {
    match (id_at_first(&ends.first), id_at_last(&ends.last)) {
        (Some(first), Some(last)) if first != last => None,
        (first, last) => first.or(last),
    }
}

/// The id of a message of which there is only the beginning, if it stands there.
fn id_at_first(beginning: &[u8]) -> Option<Value> {
    struct Members<'a>(&'a mut Option<Value>);
    impl<'de> Visitor<'de> for Members<'_> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a message")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
            while let Some(name) = members.next_key::<String>()? {
                if name == "id" {
                    *self.0 = Some(members.next_value()?);
                } else {
                    members.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }
    // A number that was cut off would be another one.
    let whole = beginning.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    let mut id = None;
    // It fails where the beginning ends; what was read by then is what it seems.
    let _ = serde_json::Deserializer::from_slice(&beginning[..whole]).deserialize_map(Members(&mut id));
    id.filter(is_id)
}

/// The id of a message of which there is only the end, if it stands last. The last brace of a message is its own, so a member
/// right before it is too, unless that has braces itself.
fn id_at_last(end: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(end);
    let (before, member) = text.trim_end().strip_suffix('}')?.rsplit_once("\"id\"")?;
    // After a comma a name begins; after anything else this would be the end of one, or of a text.
    let value = member.trim_start().strip_prefix(':').filter(|_| before.trim_end().ends_with(','))?;
    serde_json::from_str(value).ok().filter(is_id)
}

/// The request that a message answers.
fn answered(line: &[u8]) -> Option<Value> {
    let message: Message = serde_json::from_slice(line).ok()?;
    if message.method.is_some() { None } else { message.id.filter(|id| !id.is_null()) }
}

#[cfg(test)]
mod tests;
