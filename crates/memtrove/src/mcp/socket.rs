//! The socket beside a database, through which the owner of a data folder serves other processes of the same user.
//!
//! A client sends one line ([`Hello`]), the owner replies with one ([`Reply`]), and after [`Hello::Join`] both speak MCP. An owner
//! that ends shuts the reading half: what the client had sent by then is answered, and a later write of the client fails.

use super::is_set;
use super::lines::{Line, Lines};
use super::owner::{ConnectError, Hello, OwnerKind, OwnerProcess};
use memtrove_server::mcp::{Bound, McpServer};
use memtrove_service::Services;
use serde::{Deserialize, Serialize};
use std::fs::{File, Permissions};
use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// What fits into the address of a socket, on every system.
const MAX_ADDRESS: usize = 100;
const MAX_HELLO: usize = 16 * 1024;
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sessions may go on when the owner ends. The SDK gives requests under way five seconds.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(7);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Here(OwnerProcess),
    Refused(String),
}

pub(crate) struct SocketServer {
    path: PathBuf,
    stop: watch::Sender<bool>,
}

impl SocketServer {
    /// Listens beside a database that this process has open. Without a socket the folder works, but is not shared.
    pub fn open(database: &Path, kind: OwnerKind, services: Services) -> Option<Self> {
        let path = socket_path(database);
        let listener = listen(&path).inspect_err(|error| {
            tracing::warn!(%error, socket = %path.display(), "no other process can share this folder");
        });
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(accept(listener.ok()?, kind, services, stopped));
        Some(Self { path, stop })
    }

    /// Accepts no more, and waits until requests under way are answered.
    pub async fn close(self) {
        let _ = std::fs::remove_file(&self.path);
        self.stop.send_replace(true);
        // Every session holds a receiver.
        let _ = timeout(CLOSE_TIMEOUT, self.stop.closed()).await;
    }
}

/// Greets the owner of a folder.
pub(crate) async fn connect(
    database: &Path,
    hello: &Hello,
) -> Result<(OwnerProcess, impl AsyncRead + AsyncWrite + Send + 'static), ConnectError> {
    let (path, _folder) = short_path(&socket_path(database));
    let stream = UnixStream::connect(path).await.map_err(|_| ConnectError::NoSocket)?;
    // Another user who may write to the folder can put a socket there.
    if let Some(user) = foreign_user(&stream)? {
        return Err(ConnectError::OtherUser(user));
    }
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_HELLO);
    let greeting = async {
        send(&mut write, hello).await?;
        match lines.next().await {
            Line::Whole(line) => Ok(serde_json::from_slice(&line)?),
            Line::TooLong | Line::End => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    };
    match timeout(HELLO_TIMEOUT, greeting).await.map_err(io::Error::from)?? {
        Reply::Here(process) => Ok((process, tokio::io::join(lines.into_inner(), write))),
        Reply::Refused(why) => Err(ConnectError::Refused(why)),
    }
}

async fn send(write: &mut OwnedWriteHalf, message: &impl Serialize) -> io::Result<()> {
    write.write_all(&[serde_json::to_vec(message)?.as_slice(), b"\n"].concat()).await
}

/// The user of the process at the other end, if it is not our own.
fn foreign_user(stream: &UnixStream) -> io::Result<Option<u32>> {
    let ours = rustix::process::geteuid().as_raw();
    Ok(Some(stream.peer_cred()?.uid()).filter(|user| *user != ours))
}

fn socket_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".mcp");
    std::path::absolute(&name).unwrap_or_else(|_| name.into())
}

/// A path that fits into the address of a socket, and what must stay open meanwhile.
fn short_path(path: &Path) -> (PathBuf, Option<File>) {
    if cfg!(target_os = "linux")
        && path.as_os_str().len() > MAX_ADDRESS
        && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && let Ok(folder) = File::open(folder)
    {
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        return (short, Some(folder));
    }
    (path.to_owned(), None)
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // A process that was killed leaves its socket behind.
    let _ = std::fs::remove_file(path);
    let (short, _folder) = short_path(path);
    let listener = UnixListener::bind(short)?;
    // A user who connects before this is refused by number.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn accept(listener: UnixListener, kind: OwnerKind, services: Services, stopped: watch::Receiver<bool>) {
    let mut stop = stopped.clone();
    loop {
        let accepted = tokio::select! {
            () = is_set(&mut stop) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, kind, services.clone(), stopped.clone()))),
            Err(error) => {
                // Too many open files, for example: that passes.
                tracing::warn!(%error, "a process could not connect");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(
    stream: UnixStream,
    kind: OwnerKind,
    services: Services,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let foreign = foreign_user(&stream)?;
    let stream = stream.into_std()?;
    let reading = stream.try_clone()?;
    let (read, mut write) = UnixStream::from_std(stream)?.into_split();
    let mut lines = Lines::new(read, MAX_HELLO);
    let hello = tokio::select! {
        hello = timeout(HELLO_TIMEOUT, lines.next()) => hello,
        () = is_set(&mut stopped) => return Ok(()),
    };
    let Ok(Line::Whole(hello)) = hello else { return Ok(()) };
    let bound = match (foreign, serde_json::from_slice(&hello)) {
        (Some(user), _) => Err(format!("you are another user ({user})")),
        (None, Ok(Hello::Join(local))) => Bound::local(local).map(Some).map_err(|error| error.to_string()),
        (None, Ok(Hello::Who)) => Ok(None),
        (None, Err(error)) => Err(format!("this is not understood, is it of another version? {error}")),
    };
    let reply = match &bound {
        Ok(_) => Reply::Here(OwnerProcess { kind, pid: std::process::id() }),
        Err(why) => {
            tracing::warn!(why, "a process was refused");
            Reply::Refused(why.clone())
        }
    };
    send(&mut write, &reply).await?;
    let Ok(Some(bound)) = bound else { return Ok(()) };
    let mut session = pin!(McpServer::new(services, bound).serve(lines.into_inner(), write));
    tokio::select! {
        () = &mut session => {}
        () = is_set(&mut stopped) => {
            reading.shutdown(Shutdown::Read)?;
            session.await;
        }
    }
    Ok(())
}
