//! The process that has the store open: it serves itself and whoever comes through its door.

use super::door::{Door, Kind};
use crate::config::{Config, Database};
use crate::serve;
use memtrove_core::SystemClock;
use memtrove_server::mcp::{Bound, Local, McpServer};
use memtrove_service::Services;
use memtrove_store::{Store, StoreError};
use std::sync::Arc;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Room for what one side has said and the other has not heard yet.
pub(super) const PIPE: usize = 64 * 1024;

/// The store, open, with everything that works on it.
pub(super) struct Owner {
    services: Services,
    store: Store,
    door: Option<Door>,
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
        let clock = Arc::new(SystemClock);
        let services = Services::new(store.clone(), clock, serve::settings(config)).await?;
        let door = match config.database()? {
            Database::Sqlite(path) => Door::open(&path, Kind::Mcp, services.clone()),
            Database::Postgres(_) => None,
        };
        let (stop_tasks, stopped) = oneshot::channel::<()>();
        let working = services.clone();
        // The sender says nothing; being told or being dropped both mean stop.
        let stopped = async { drop(stopped.await) };
        // What is done for everybody is done by whoever has a folder to itself. A database on a server has servers for that, and
        // an editor's settings are not theirs.
        let alone = !store.is_shared();
        let tasks = tokio::spawn(async move {
            if alone { working.run_tasks(stopped).await } else { working.run_beside_others(stopped).await }
        });
        Ok(Some(Self { services, store, door, stop_tasks, tasks }))
    }

    /// A session of this process's own.
    pub fn session(&self, local: Local) -> anyhow::Result<DuplexStream> {
        let bound = Bound::local(local)?;
        let (ours, theirs) = duplex(PIPE);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(McpServer::new(self.services.clone(), bound).serve(read, write));
        Ok(ours)
    }

    /// Closes the store, as soon as whoever came through the door has been answered.
    pub async fn close(self) {
        // First the door: whoever takes the folder next opens one at the same place.
        if let Some(door) = self.door {
            door.close().await;
        }
        drop(self.stop_tasks);
        if self.tasks.await.is_err() {
            tracing::error!("the task worker panicked");
        }
        let store = self.store;
        if tokio::task::spawn_blocking(move || store.close()).await.is_err() {
            tracing::error!("the store could not be closed");
        }
    }
}
