//! Where there are no sockets in folders, a folder is used by one process at a time.

use memtrove_server::mcp::Local;
use memtrove_service::Services;
use std::path::Path;
use tokio::io::DuplexStream;

/// What kind of process has the folder open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `memtrove mcp`.
    Mcp,
    /// `memtrove serve`.
    Serve,
}

/// Who has the folder open.
#[derive(Debug)]
pub(crate) struct Holder {
    /// What it is.
    pub kind: Kind,
    /// Its process.
    pub pid: u32,
}

/// A door that is never open.
pub(crate) enum Door {}

impl Door {
    /// There is none.
    pub fn open(_: &Path, _: Kind, _: Services) -> Option<Self> {
        None
    }

    /// There is none.
    pub async fn close(self) {
        match self {}
    }
}

/// Why somebody was not let in.
#[allow(dead_code, reason = "what is never open is closed, and nothing else")]
#[derive(Debug)]
pub(super) enum Shut {
    /// No door is open.
    Closed,
    /// Somebody opened, and did not say what is expected.
    Silent,
    /// It was said why.
    Refused(String),
    /// The door is of another user.
    Foreign(u32),
}

/// Nobody can be let in.
pub(super) async fn join(_: &Path, _: &Local) -> Result<(Kind, DuplexStream), Shut> {
    Err(Shut::Closed)
}

/// Nobody is.
pub(super) async fn is_answered(_: &Path) -> bool {
    false
}

/// Nobody goes.
pub(super) fn farewell(_: &[u8]) -> Option<u64> {
    None
}

/// Nobody answers.
pub(crate) fn holder(_: &Path) -> Option<Holder> {
    None
}
