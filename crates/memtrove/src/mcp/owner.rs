//! The process that has the store open: it serves its own editor, and those of others through its socket.

use super::socket::SocketServer;
use crate::config::{Config, Database};
use crate::serve;
use memtrove_core::SystemClock;
use memtrove_server::mcp::{Bound, Local, McpServer};
use memtrove_service::Services;
use memtrove_store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Room for what one side has sent and the other has not read yet.
const PIPE: usize = 64 * 1024;

/// Which command owns a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OwnerKind {
    Mcp,
    Serve,
}

/// Which process owns a folder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OwnerProcess {
    pub kind: OwnerKind,
    pub pid: u32,
}

/// What a process says first to the owner of a folder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hello {
    /// It begins a session with the memory of a user.
    Join(Local),
    /// It asks which process this is.
    Who,
}

/// Why another process that has the folder cannot be used: the process …
#[cfg_attr(not(unix), allow(dead_code, reason = "without sockets there is one reason"))]
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(
        "does not share its folder, like every server that asks for credentials: stop it, give this editor its address \
         (http://…/mcp), or choose another folder with --data-dir"
    )]
    NoSocket,
    #[error(
        "does not answer: it is of another version, or does not run any more. Stop it, or choose another folder with --data-dir"
    )]
    NoReply(#[from] std::io::Error),
    #[error("refuses: {0}")]
    Refused(String),
    #[error("is of another user ({0}), who is told nothing: choose another folder with --data-dir")]
    OtherUser(u32),
}

/// The store, open, with everything that works on it.
pub(super) struct Owner {
    services: Services,
    store: Store,
    socket: Option<SocketServer>,
    stop_tasks: oneshot::Sender<()>,
    tasks: JoinHandle<()>,
}

impl Owner {
    /// Opens the store. `None` where another process has it.
    pub async fn open(config: &Config) -> anyhow::Result<Option<Self>> {
        let store = match serve::try_open_store(config, config.encryption.vault()?) {
            Ok(store) => store,
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::InUse(_))) => return Ok(None),
            Err(error) => return Err(error),
        };
        let services = Services::new(store.clone(), Arc::new(SystemClock), serve::settings(config)).await?;
        let socket = match config.database()? {
            Database::Sqlite(path) => SocketServer::open(&path, OwnerKind::Mcp, services.clone()),
            Database::Postgres(_) => None,
        };
        let (stop_tasks, stopped) = oneshot::channel::<()>();
        let (working, is_shared) = (services.clone(), store.is_shared());
        let tasks = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            // A database on a server has servers for the upkeep, and an editor's settings are not theirs.
            if is_shared {
                working.run_beside_others(stopped).await
            } else {
                working.run_tasks(stopped).await
            }
        });
        Ok(Some(Self { services, store, socket, stop_tasks, tasks }))
    }

    /// A session of this process's own.
    pub fn session(&self, local: Local) -> anyhow::Result<DuplexStream> {
        let (ours, theirs) = duplex(PIPE);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(McpServer::new(self.services.clone(), Bound::local(local)?).serve(read, write));
        Ok(ours)
    }

    pub async fn close(self) {
        // First, because the next owner of the folder makes its socket at the same place.
        if let Some(socket) = self.socket {
            socket.close().await;
        }
        drop(self.stop_tasks);
        if self.tasks.await.is_err() {
            tracing::error!("the task worker panicked");
        }
        if tokio::task::spawn_blocking(move || self.store.close()).await.is_err() {
            tracing::error!("the store could not be closed");
        }
    }
}
