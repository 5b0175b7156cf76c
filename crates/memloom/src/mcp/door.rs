//! The door of a data folder: a socket beside the database, for the user's own processes only. Whoever has the folder open
//! listens there; whoever finds it taken comes in.
//!
//! A visitor says in one line what it wants: to work with the memory ([`Hello::Join`]), or to know who is there
//! ([`Hello::Who`]). The owner answers in one line who it is, or why not. After a join both sides speak MCP.

use super::lines::{Line, Lines};
use super::owner::PIPE;
use memloom_server::mcp::{Bound, Local, McpServer};
use memloom_service::Services;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::io::{BufRead, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader, Join, copy, duplex};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The address of a socket has room for so many bytes, on every system.
const MAX_ADDRESS: usize = 100;
const MAX_HELLO: usize = 16 * 1024;
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long visitors may wait for their answers once the owner goes.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a visitor wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Hello {
    /// To work with the memory of a user.
    Join(Local),
    /// To know who has the folder open.
    Who,
}

/// What the owner answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// Who it is; whoever wanted to join is in.
    Here(Holder),
    /// Why it lets this visitor not in.
    Refused(String),
}

/// Why somebody was not let in.
#[derive(Debug)]
pub(super) enum Shut {
    /// No door is open.
    Closed,
    /// Somebody opened, and did not say in time what is expected.
    Silent,
    /// It was said why.
    Refused(String),
}

/// What kind of process has the folder open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// `memloom mcp`.
    Mcp,
    /// `memloom serve`.
    Serve,
}

/// Who has the folder open.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// What it is.
    pub kind: Kind,
    /// Its process.
    pub pid: u32,
}

/// A door that is open.
pub(crate) struct Door {
    socket: PathBuf,
    stop: watch::Sender<bool>,
    visits: JoinHandle<()>,
}

impl Door {
    /// Opens the door of a database that this process alone has open. Without one the folder can be used all the same, just
    /// by nobody else.
    pub fn open(database: &Path, kind: Kind, services: Services) -> Option<Self> {
        let socket = socket(database);
        let listener = match listen(&socket) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, socket = %socket.display(), "no other process can share this folder");
                return None;
            }
        };
        let (stop, stopped) = watch::channel(false);
        let visits = tokio::spawn(receive(listener, kind, services, stopped));
        Some(Self { socket, stop, visits })
    }

    /// Closes it: nobody comes in any more, and whoever is in gets the answers to what it has asked.
    pub async fn close(mut self) {
        // Before the folder is given up: whoever has it next opens a door here.
        let _ = std::fs::remove_file(&self.socket);
        let _ = self.stop.send(true);
        if tokio::time::timeout(FAREWELL, &mut self.visits).await.is_err() {
            self.visits.abort();
        }
    }
}

/// What is said to an owner, and what it says.
type Visit = Join<BufReader<OwnedReadHalf>, OwnedWriteHalf>;

/// Comes in, to work with the memory of a user; says to whom.
pub(super) async fn join(database: &Path, local: &Local) -> Result<(Kind, Visit), Shut> {
    let near = Near::of(&socket(database));
    let stream = UnixStream::connect(&near.path).await.map_err(|_| Shut::Closed)?;
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_HELLO);
    let greeting = async {
        say(&mut write, &Hello::Join(local.clone())).await.ok()?;
        match lines.next().await {
            Line::Whole(answer) => serde_json::from_slice(&answer).ok(),
            Line::TooLong(_) | Line::Rest(_) | Line::End => None,
        }
    };
    match tokio::time::timeout(HELLO_TIMEOUT, greeting).await {
        Ok(Some(Answer::Here(holder))) => Ok((holder.kind, tokio::io::join(lines.into_inner(), write))),
        Ok(Some(Answer::Refused(why))) => Err(Shut::Refused(why)),
        Ok(None) | Err(_) => Err(Shut::Silent),
    }
}

/// Says one line.
async fn say(write: &mut OwnedWriteHalf, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    write.write_all(&line).await
}

/// Asks who has a folder open. `None` where nobody answers.
pub(crate) fn holder(database: &Path) -> Option<Holder> {
    let near = Near::of(&socket(database));
    let mut stream = std::os::unix::net::UnixStream::connect(&near.path).ok()?;
    stream.set_read_timeout(Some(HELLO_TIMEOUT)).ok()?;
    let mut hello = serde_json::to_vec(&Hello::Who).ok()?;
    hello.push(b'\n');
    stream.write_all(&hello).ok()?;
    let mut answer = String::new();
    io::BufReader::new(stream).read_line(&mut answer).ok()?;
    match serde_json::from_str(&answer).ok()? {
        Answer::Here(holder) => Some(holder),
        Answer::Refused(_) => None,
    }
}

/// Where the socket of a database lies.
fn socket(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".mcp");
    // A process may be started in any folder, and what is relative means another one there.
    std::path::absolute(PathBuf::from(&name)).unwrap_or_else(|_| name.into())
}

/// Listens at a path that only this user can reach. The socket gets its name when it is ready, in place of one that a process
/// left behind that was killed.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    // A socket is there before its mode can be set, so it begins where nobody else can look.
    let mut folder = socket.as_os_str().to_owned();
    folder.push(format!(".{}", std::process::id()));
    let folder = PathBuf::from(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let listening = listen_by(&folder.join("s"), socket);
    let _ = std::fs::remove_dir_all(&folder);
    listening
}

fn listen_by(draft: &Path, socket: &Path) -> io::Result<UnixListener> {
    let listener = StdListener::bind(&Near::of(draft).path)?;
    std::fs::set_permissions(draft, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(draft, socket)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// A path that fits into the address of a socket.
struct Near {
    path: PathBuf,
    /// Keeps the short way open.
    _folder: Option<File>,
}

impl Near {
    fn of(path: &Path) -> Self {
        if path.as_os_str().len() > MAX_ADDRESS
            && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && let Some(near) = Self::through(folder, name)
        {
            return near;
        }
        Self { path: path.to_owned(), _folder: None }
    }

    /// By the number of the folder instead of its name.
    #[cfg(target_os = "linux")]
    fn through(folder: &Path, name: &std::ffi::OsStr) -> Option<Self> {
        use std::os::fd::AsRawFd;
        let folder = File::open(folder).ok()?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Some(Self { path, _folder: Some(folder) })
    }

    #[cfg(not(target_os = "linux"))]
    fn through(_: &Path, _: &std::ffi::OsStr) -> Option<Self> {
        None
    }
}

/// Lets visitors in until told to stop, then waits for those who are in.
async fn receive(listener: UnixListener, kind: Kind, services: Services, mut stopped: watch::Receiver<bool>) {
    let mut visits = JoinSet::new();
    let later = stopped.clone();
    loop {
        tokio::select! {
            () = told(&mut stopped) => break,
            Some(_) = visits.join_next() => {}
            visitor = listener.accept() => match visitor {
                Ok((stream, _)) => {
                    visits.spawn(visit(stream, kind, services.clone(), later.clone()));
                }
                Err(error) => {
                    // Too many open files, for example: that passes.
                    tracing::warn!(%error, "a process could not be let in");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    while visits.join_next().await.is_some() {}
}

/// Resolves when the owner stops.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // An error means that the owner is gone, which is as good.
    drop(stopped.wait_for(|stopped| *stopped).await);
}

async fn visit(stream: UnixStream, kind: Kind, services: Services, mut stopped: watch::Receiver<bool>) {
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_HELLO);
    let hello = match tokio::time::timeout(HELLO_TIMEOUT, lines.next()).await {
        Ok(Line::Whole(hello)) => hello,
        Ok(Line::TooLong(_) | Line::Rest(_) | Line::End) | Err(_) => return,
    };
    let bound = match serde_json::from_slice(&hello) {
        Ok(Hello::Join(local)) => Bound::local(local).map(Some).map_err(|error| error.to_string()),
        Ok(Hello::Who) => Ok(None),
        Err(error) => Err(format!("this is not understood, is it of another version? {error}")),
    };
    let answer = match &bound {
        Ok(_) => Answer::Here(Holder { kind, pid: std::process::id() }),
        Err(why) => {
            tracing::warn!(why, "a process was not let in");
            Answer::Refused(why.clone())
        }
    };
    // Whoever asked and went does not want to know any more.
    let said = say(&mut write, &answer).await;
    let (Ok(Some(bound)), Ok(())) = (bound, said) else { return };
    // The session sees the end of what the visitor says when the owner stops, and then answers what it has heard.
    let (mut hears, heard) = duplex(PIPE);
    let (heard, _) = tokio::io::split(heard);
    let mut says = lines.into_inner();
    let hearing = async {
        tokio::select! {
            _ = copy(&mut says, &mut hears) => {}
            () = told(&mut stopped) => {}
        }
        drop(hears);
    };
    tokio::join!(hearing, McpServer::new(services, bound).serve(heard, write));
}
