//! Where folders hold no sockets, one process at a time uses a data folder.

use super::owner::{ConnectError, Hello, OwnerKind, OwnerProcess};
use memtrove_service::Services;
use std::path::Path;
use tokio::io::DuplexStream;

pub(crate) enum SocketServer {}

impl SocketServer {
    pub fn open(_: &Path, _: OwnerKind, _: Services) -> Option<Self> {
        None
    }

    pub async fn close(self) {
        match self {}
    }
}

pub(crate) async fn connect(_: &Path, _: &Hello) -> Result<(OwnerProcess, DuplexStream), ConnectError> {
    Err(ConnectError::NoSocket)
}
