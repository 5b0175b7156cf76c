//! The door of a data folder: a socket beside the database, for the user's own processes only. Whoever has the folder open
//! listens there; whoever finds it taken comes in.
//!
//! A visitor says in one line what it wants: to work with the memory ([`Hello::Join`]), or to know who is there
//! ([`Hello::Who`]). The owner answers in one line who it is, or why not. After a join both sides speak MCP. An owner that goes
//! takes no more lines, answers those it has taken, and says last how many they were ([`Farewell`]): what a visitor sent after
//! them it may send to the next owner, whatever it is.

use super::lines::{Line, Lines, MAX_MESSAGE};
use super::owner::PIPE;
use super::told;
use memtrove_server::mcp::{Bound, Local, McpServer};
use memtrove_service::Services;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::io::{BufRead, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader, Join, copy, duplex, split};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The address of a socket has room for so many bytes, on every system.
const MAX_ADDRESS: usize = 100;
const MAX_HELLO: usize = 16 * 1024;
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long visitors may wait for their answers once the owner goes: as long as a session waits for what it does, which is five
/// seconds, and then for what is said last.
const FAREWELL: Duration = Duration::from_secs(7);

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

/// What an owner says last when it goes. It has answered everything it has taken, unless that took too long.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Farewell {
    /// So many lines of the visitor, all that have a message counted from the first one after its hello.
    taken: u64,
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
    /// The door is of another user, of whom nothing is known but the number.
    Foreign(u32),
}

/// What kind of process has the folder open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// `memtrove mcp`.
    Mcp,
    /// `memtrove serve`.
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
    let (holder, lines, write) = knock(database, &Hello::Join(local.clone())).await?;
    Ok((holder.kind, tokio::io::join(lines.into_inner(), write)))
}

/// Whether somebody is at the door who answers.
pub(super) async fn is_answered(database: &Path) -> bool {
    matches!(knock(database, &Hello::Who).await, Ok(_) | Err(Shut::Refused(_)))
}

/// How many lines an owner had taken when it went, if this is what one says last.
pub(super) fn farewell(line: &[u8]) -> Option<u64> {
    // No message of the protocol is taken for one: each has a member of another name.
    serde_json::from_slice(line).ok().map(|Farewell { taken }| taken)
}

async fn knock(
    database: &Path,
    hello: &Hello,
) -> Result<(Holder, Lines<OwnedReadHalf>, OwnedWriteHalf), Shut> {
    let near = Near::of(&socket(database));
    let stream = UnixStream::connect(&near.path).await.map_err(|_| Shut::Closed)?;
    // Whoever may write to a folder can put a door there. What people told their agents is not for strangers.
    match stranger(&stream) {
        Ok(None) => {}
        Ok(Some(user)) => return Err(Shut::Foreign(user)),
        Err(_) => return Err(Shut::Silent),
    }
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_HELLO);
    let greeting = async {
        say(&mut write, hello).await.ok()?;
        match lines.next().await {
            Line::Whole(answer) => serde_json::from_slice(&answer).ok(),
            Line::TooLong(_) | Line::Rest(_) | Line::End => None,
        }
    };
    match tokio::time::timeout(HELLO_TIMEOUT, greeting).await {
        Ok(Some(Answer::Here(holder))) => Ok((holder, lines, write)),
        Ok(Some(Answer::Refused(why))) => Err(Shut::Refused(why)),
        Ok(None) | Err(_) => Err(Shut::Silent),
    }
}

/// The user whose process is at the other end, unless it is our own.
fn stranger(stream: &UnixStream) -> io::Result<Option<u32>> {
    // At both ends of a pair is whoever made it.
    let ours = UnixStream::pair()?.0.peer_cred()?.uid();
    Ok(Some(stream.peer_cred()?.uid()).filter(|user| *user != ours))
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

async fn visit(stream: UnixStream, kind: Kind, services: Services, mut stopped: watch::Receiver<bool>) {
    let stranger = stranger(&stream);
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_HELLO);
    let hello = tokio::select! {
        hello = tokio::time::timeout(HELLO_TIMEOUT, lines.next()) => hello,
        () = told(&mut stopped) => return,
    };
    let hello = match hello {
        Ok(Line::Whole(hello)) => hello,
        Ok(Line::TooLong(_) | Line::Rest(_) | Line::End) | Err(_) => return,
    };
    let bound = match (stranger, serde_json::from_slice(&hello)) {
        // Nobody else can reach the socket, unless somebody changed its mode.
        (Ok(Some(user)), _) => Err(format!("you are another user ({user})")),
        (Err(error), _) => Err(format!("it is not known whose process you are: {error}")),
        (Ok(None), Ok(Hello::Join(local))) => {
            Bound::local(local).map(Some).map_err(|error| error.to_string())
        }
        (Ok(None), Ok(Hello::Who)) => Ok(None),
        (Ok(None), Err(error)) => Err(format!("this is not understood, is it of another version? {error}")),
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
    attend(lines.allow(MAX_MESSAGE), write, McpServer::new(services, bound), stopped).await;
}

/// Lets a visitor and its session speak with each other, until one of them ends it or the owner stops.
async fn attend(
    mut visitor: Lines<OwnedReadHalf>,
    mut write: OwnedWriteHalf,
    server: McpServer,
    mut stopped: watch::Receiver<bool>,
) {
    let (ours, theirs) = duplex(PIPE);
    let (heard, says) = split(theirs);
    let (mut answers, mut hears) = split(ours);
    let mut taken = 0;
    // Whether the owner stops. Lines are taken whole: half of a message can neither be answered nor be sent to somebody else.
    let hearing = async {
        let stops = loop {
            let line = tokio::select! {
                biased;
                () = told(&mut stopped) => break true,
                line = visitor.next() => line,
            };
            match line {
                Line::Whole(mut line) => {
                    line.push(b'\n');
                    taken += 1;
                    if hears.write_all(&line).await.is_err() {
                        break false;
                    }
                }
                Line::TooLong(_) => taken += 1,
                Line::Rest(_) | Line::End => break false,
            }
        };
        // The session answers what it has heard, and ends.
        let _ = hears.shutdown().await;
        stops
    };
    let serving = async {
        server.serve(heard, says).await;
        Ok(())
    };
    // A visitor that does not listen any more ends it.
    let session = async { tokio::try_join!(serving, copy(&mut answers, &mut write)) };
    let stops = {
        let mut session = std::pin::pin!(session);
        tokio::select! {
            biased;
            stops = hearing => session.await.is_ok() && stops,
            _ = &mut session => false,
        }
    };
    if stops {
        // Whoever went meanwhile has nothing to send again.
        let _ = say(&mut write, &Farewell { taken }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn our_own_processes_are_no_strangers() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(stranger(&ours).unwrap(), None);
    }

    #[test]
    fn what_is_said_last_is_no_message_of_the_protocol() {
        assert_eq!(farewell(br#"{"taken":3}"#), Some(3));
        for message in
            [r#"{"jsonrpc":"2.0","id":1,"result":{"taken":3}}"#, r#"{"jsonrpc":"2.0","taken":3}"#, "3", "{}"]
        {
            assert_eq!(farewell(message.as_bytes()), None, "{message}");
        }
    }
}
