//! Passes lines between an editor and the owner of the store, be it this process or another one.
//!
//! When the owner ends, requests that it did not answer get an error, another owner is found or made, and the editor's session
//! begins there anew. A line is sent once its newline is written: before that no owner acts on it, and it goes to the next one;
//! afterwards it is never sent again.
//!
//! The folder of a server is left to it: it would run with an editor's settings, and the server could not come back.

use super::is_set;
use super::lines::{Line, Lines};
use super::owner::{ConnectError, Hello, Owner, OwnerKind, OwnerProcess};
use super::socket;
use crate::config::{Config, Database};
use anyhow::{Context, bail};
use memtrove_server::mcp::Local;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Chain};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The most bytes of a message with its newline, as the SDK counts them.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The most bytes that are read of a message. One that is too long, but not by so much, is refused by its id.
const MAX_LINE: usize = 4 * MAX_MESSAGE;
/// How long an owner may be silent or refuse connections, and requests wait for a server.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
/// How often a server is looked for that has been away for long.
const LONG_PAUSE: Duration = Duration::from_secs(5);
/// How long answers may take once the editor has ended, or the process is to stop.
const GRACE: Duration = Duration::from_secs(10);
/// JSON-RPC: the server failed.
const SERVER_ERROR: i32 = -32000;
/// JSON-RPC: the request is not one.
const INVALID_REQUEST: i32 = -32600;
/// What an editor says once `initialize` is answered.
const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// What is looked at in a message.
#[derive(Deserialize)]
struct RpcMessage {
    jsonrpc: String,
    id: Option<Value>,
    method: Option<String>,
    params: Option<Params>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    request_id: Option<Value>,
}

impl RpcMessage {
    /// `None` for what the SDK refuses without an id, so that no answer would name it.
    fn read(line: &[u8]) -> Option<Self> {
        let message: Self = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
        let has_id = message.id.as_ref().is_none_or(|id| id.is_string() || id.is_i64());
        Some(message).filter(|message| has_id && message.jsonrpc == "2.0")
    }
}

/// A session with an owner.
struct Peer {
    rx: Lines<Box<dyn AsyncRead + Send + Unpin>>,
    tx: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Peer {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self { rx: Lines::new(Box::new(read), MAX_LINE), tx: Box::new(write) }
    }
}

pub(super) struct Relay<R, W> {
    config: Config,
    local: Local,
    editor: Lines<Chain<R, &'static [u8]>>,
    output: W,
    /// Set once the editor has ended, or the process is to stop.
    leaving: watch::Sender<bool>,
    owner: Option<Owner>,
    is_servers: bool,
    /// The editor's `initialize`, with its id.
    initialize: Option<(Value, Vec<u8>)>,
    /// A line of the editor that was not sent whole.
    unsent: Option<Vec<u8>>,
    /// The requests that the owner was sent and has not answered.
    unanswered: Vec<Value>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Relay<R, W> {
    pub fn new(config: Config, local: Local, input: R, output: W) -> Self {
        Self {
            config,
            local,
            // The last line of an editor may lack its newline.
            editor: Lines::new(input.chain(b"\n"), MAX_LINE),
            output,
            leaving: watch::Sender::new(false),
            owner: None,
            is_servers: false,
            initialize: None,
            unsent: None,
            unanswered: Vec::new(),
        }
    }

    /// Relays until the editor ends or `stop` resolves, and what was sent until then is answered.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let (leaving, mut left) = (self.leaving.clone(), self.leaving.subscribe());
        let over = async {
            tokio::select! {
                () = stop => drop(leaving.send_replace(true)),
                () = is_set(&mut left) => {}
            }
            sleep(GRACE).await;
        };
        let relayed = tokio::select! {
            biased;
            relayed = self.relay() => relayed,
            () = over => Ok(()),
        };
        let why = relayed.as_ref().err().map_or("this process was stopped".to_owned(), ToString::to_string);
        let last_answers = async {
            self.fail_unanswered().await?;
            self.refuse_unsent(&why).await
        };
        // An editor that does not read them keeps nothing open.
        let _ = timeout(Duration::from_secs(1), last_answers).await;
        if let Some(owner) = self.owner.take() {
            owner.close().await;
        }
        relayed
    }

    async fn relay(&mut self) -> anyhow::Result<()> {
        let mut leaving = self.leaving.subscribe();
        loop {
            let peer = tokio::select! {
                biased;
                () = is_set(&mut leaving) => return Ok(()),
                peer = self.find() => peer?,
            };
            if self.pump(peer).await? {
                return Ok(());
            }
            self.fail_unanswered().await?;
            sleep(PAUSE).await;
        }
    }

    /// Finds the owner of the store, or becomes it.
    async fn find(&mut self) -> anyhow::Result<Peer> {
        let given_up = Instant::now() + PATIENCE;
        let folder = self.config.server.data_dir.display().to_string();
        loop {
            if let Some(owner) = &self.owner {
                return Ok(Peer::new(owner.session(self.local.clone())?));
            }
            let error = match self.connect(&Hello::Join(self.local.clone())).await {
                Ok((process, peer)) => {
                    self.is_servers |= process.kind == OwnerKind::Serve;
                    return Ok(peer);
                }
                Err(error) => error,
            };
            if !self.is_servers {
                self.owner = Owner::open(&self.config).await?;
            }
            let is_final = matches!(error, ConnectError::Refused(_) | ConnectError::OtherUser(_));
            match (&self.owner, Instant::now() < given_up) {
                (Some(_), _) => {}
                (None, true) if self.is_servers || !is_final => sleep(PAUSE).await,
                (None, false) if self.is_servers => {
                    self.stand_in(&folder).await?;
                    // The editor may have ended, which ends this where it waits.
                    tokio::task::yield_now().await;
                }
                (None, _) => bail!("another memtrove process uses the data folder {folder} and {error}"),
            }
        }
    }

    async fn connect(&self, hello: &Hello) -> Result<(OwnerProcess, Peer), ConnectError> {
        let Ok(Database::Sqlite(database)) = self.config.database() else {
            return Err(ConnectError::NoSocket);
        };
        socket::connect(&database, hello).await.map(|(process, stream)| (process, Peer::new(stream)))
    }

    /// Takes a request in place of a server that has been away for long. It is refused if the server is still not found.
    async fn stand_in(&mut self, folder: &str) -> anyhow::Result<()> {
        if self.unsent.is_none() {
            return match timeout(LONG_PAUSE, self.editor.next()).await {
                Ok(line) => self.take(line).await,
                Err(_) => Ok(()),
            };
        }
        let why = format!(
            "the Memtrove server that has the data folder {folder} does not run. Start it with `memtrove serve` and ask again; \
             or have the editor start `memtrove mcp` anew, which then works without a server"
        );
        self.refuse_unsent(&why).await
    }

    /// Takes what the editor says.
    async fn take(&mut self, line: Line) -> anyhow::Result<()> {
        let id = match line {
            Line::Whole(line) if line.len() > MAX_MESSAGE => {
                RpcMessage::read(&line).and_then(|message| message.id)
            }
            Line::Whole(line) => {
                self.unsent = Some(line);
                return Ok(());
            }
            Line::TooLong => None,
            Line::End => {
                self.leaving.send_replace(true);
                return Ok(());
            }
        };
        let message = format!("a message may have at most {} bytes", MAX_MESSAGE - 1);
        self.refuse(id, json!({"code": INVALID_REQUEST, "message": message})).await
    }

    /// An owner reads a last line without its newline too: whether one that lacks nothing else was carried out is unknown.
    fn doubt_unsent(&mut self, sent: usize) {
        if let Some(line) = self.unsent.take_if(|line| line[sent..].trim_ascii().is_empty()) {
            self.note(line);
        }
    }

    /// Passes lines on in both directions. Whether it was the editor that ended, and not the peer.
    async fn pump(&mut self, mut peer: Peer) -> anyhow::Result<bool> {
        let mut leaving = self.leaving.subscribe();
        let mut silence = pin!(sleep(PATIENCE));
        // The editor has had this answer.
        let mut swallowed = self.initialize.as_ref().map(|(id, _)| id.clone());
        let mut is_read = self.resume(&mut peer).await;
        let mut sent = 0;
        loop {
            let leaves = *self.leaving.borrow();
            let rest = self.unsent.as_ref().map_or(&[][..], |line| &line[sent..]);
            let (has_rest, waits) = (!rest.is_empty(), !rest.is_empty() || !self.unanswered.is_empty());
            if leaves && !waits {
                return Ok(true);
            }
            tokio::select! {
                // First, so that nothing is sent to an owner that is known to have ended.
                biased;
                line = peer.rx.next() => {
                    silence.as_mut().reset(Instant::now() + PATIENCE);
                    match line {
                        Line::Whole(line) => self.pass_on(&line, &mut swallowed).await?,
                        Line::TooLong | Line::End => {
                            self.doubt_unsent(sent);
                            return Ok(false);
                        }
                    }
                }
                written = peer.tx.write(rest), if is_read && has_rest => {
                    let length = written.unwrap_or(0);
                    // An owner that reads no more is ending. It answers what it has read.
                    is_read = length > 0;
                    sent += length;
                    if let Some(line) = self.unsent.take_if(|line| line.len() == sent) {
                        sent = 0;
                        self.note(line);
                    }
                }
                line = self.editor.next(), if is_read && !has_rest && !leaves => self.take(line).await?,
                () = is_set(&mut leaving), if !leaves => {}
                () = &mut silence => {
                    if !is_read || waits && self.is_stuck().await {
                        tracing::warn!("the process that has the store does not answer any more");
                        self.doubt_unsent(sent);
                        return Ok(false);
                    }
                    silence.as_mut().reset(Instant::now() + PATIENCE);
                }
            }
        }
    }

    /// Begins the editor's session with a peer that does not know it. Whether the peer reads.
    async fn resume(&mut self, peer: &mut Peer) -> bool {
        let Some((_, initialize)) = &self.initialize else { return true };
        let lines = [initialize, INITIALIZED].concat();
        matches!(timeout(PATIENCE, peer.tx.write_all(&lines)).await, Ok(Ok(())))
    }

    /// Whether an owner that has been silent for long does not reply at its socket either. One that is slow does.
    async fn is_stuck(&self) -> bool {
        self.owner.is_none()
            && !matches!(self.connect(&Hello::Who).await, Ok(_) | Err(ConnectError::Refused(_)))
    }

    /// Notes what the owner was sent.
    fn note(&mut self, line: Vec<u8>) {
        let Some(RpcMessage { id, method: Some(method), params, .. }) = RpcMessage::read(&line) else {
            return;
        };
        if let Some(id) = id {
            self.unanswered.push(id.clone());
            if method == "initialize" {
                self.initialize = Some((id, line));
            }
        } else if method == "notifications/cancelled" {
            // It may never be answered.
            let cancelled = params.and_then(|params| params.request_id);
            self.unanswered.retain(|id| Some(id) != cancelled.as_ref());
        }
    }

    /// Passes a message of the owner on.
    async fn pass_on(&mut self, line: &[u8], swallowed: &mut Option<Value>) -> anyhow::Result<()> {
        if let Some(RpcMessage { id: Some(id), method: None, error, .. }) = RpcMessage::read(line) {
            // A session that was refused is not begun anew elsewhere.
            self.initialize.take_if(|(initialize, _)| error.is_some() && *initialize == id);
            if swallowed.take_if(|swallowed| *swallowed == id).is_some() {
                return Ok(());
            }
            self.unanswered.retain(|unanswered| *unanswered != id);
        }
        self.print(line).await
    }

    /// Answers what the owner was sent before it ended.
    async fn fail_unanswered(&mut self) -> anyhow::Result<()> {
        for id in std::mem::take(&mut self.unanswered) {
            self.initialize.take_if(|(initialize, _)| *initialize == id);
            let message = "the process that has the store ended before it answered, so this may or may not have been carried out";
            let hint = "It may have been carried out: look first, then repeat it if it was not.";
            let data = json!({"code": "OWNER_ENDED", "retryable": true, "hint": hint});
            self.refuse(Some(id), json!({"code": SERVER_ERROR, "message": message, "data": data})).await?;
        }
        Ok(())
    }

    /// Answers what no owner was sent.
    async fn refuse_unsent(&mut self, why: &str) -> anyhow::Result<()> {
        let message = self.unsent.take().and_then(|line| RpcMessage::read(&line));
        let Some(RpcMessage { id: Some(id), method: Some(_), .. }) = message else { return Ok(()) };
        let message = format!("the memory cannot be reached, and nothing was done: {why}");
        let data = json!({"code": "DEPENDENCY_UNAVAILABLE", "retryable": true, "hint": "Repeat it later."});
        self.refuse(Some(id), json!({"code": SERVER_ERROR, "message": message, "data": data})).await
    }

    async fn refuse(&mut self, id: Option<Value>, error: Value) -> anyhow::Result<()> {
        self.print(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error})).as_bytes()).await
    }

    async fn print(&mut self, line: &[u8]) -> anyhow::Result<()> {
        self.output.write_all(line).await.context("the editor does not listen any more")?;
        self.output.flush().await.context("the editor does not listen any more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test]
    async fn a_line_that_lacks_only_its_newline_is_not_sent_again() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{}}\n";
        for (missing, unsent, unanswered) in [(1, None, vec![json!(7)]), (2, Some(line.to_vec()), vec![])] {
            let local = Local {
                user: "alice".to_owned(),
                tenant: "default".to_owned(),
                project: None,
                agent: None,
                session: Uuid::nil(),
            };
            let mut relay = Relay::new(Config::default(), local, tokio::io::empty(), Vec::new());
            relay.unsent = Some(line.to_vec());
            // An owner that ends when it has all but so many bytes.
            let (stream, owner) = tokio::io::duplex(line.len() - missing);
            {
                let mut pump = pin!(relay.pump(Peer::new(stream)));
                assert!(timeout(Duration::ZERO, pump.as_mut()).await.is_err(), "it waits for room");
                drop(owner);
                assert!(!pump.await.unwrap(), "the owner has ended");
            }
            assert_eq!((&relay.unsent, &relay.unanswered), (&unsent, &unanswered), "without {missing} bytes");

            relay.fail_unanswered().await.unwrap();
            let answered = String::from_utf8(relay.output).unwrap();
            assert_eq!(answered.contains("may or may not have been carried out"), missing == 1, "{answered}");
        }
    }
}
