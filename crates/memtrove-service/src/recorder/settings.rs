//! What a deployment decides about recordings.

use super::Address;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How nodes find out which of them holds a recording.
#[derive(Clone, PartialEq, Eq)]
pub enum RecorderBackend {
    /// Nothing is recorded.
    Off,
    /// Not at all: there is one node.
    Local,
    /// By a table of the store, where the store is shared; one that is not has one node.
    Store,
    /// By a Redis server at this URL.
    Redis(String),
}

impl fmt::Debug for RecorderBackend {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecorderBackend::Off => "Off",
            RecorderBackend::Local => "Local",
            RecorderBackend::Store => "Store",
            RecorderBackend::Redis(_) => "Redis",
        })
    }
}

/// Decisions about recordings. The defaults are those of the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderSettings {
    /// See [`RecorderBackend`].
    pub backend: RecorderBackend,
    /// How long a finished recording can be replayed.
    pub finished_retention: Duration,
    /// The largest recording, in bytes.
    pub max_bytes: u64,
    /// How many bytes all recordings of this node may take on its disk.
    pub disk: u64,
    /// Where on it; the system's directory for temporary files unless said otherwise.
    pub temp_dir: Option<PathBuf>,
    /// The address that other nodes and clients find this node at, if it is not the one that calls come in at.
    pub advertised_address: Option<Address>,
    /// The port this node listens on, for recordings whose call came in at an unknown address.
    pub port: u16,
    /// How long a node that does not answer any more counts as the holder of its recordings. They are confirmed twice in that
    /// time.
    pub locator_ttl: Duration,
}

impl Default for RecorderSettings {
    fn default() -> Self {
        Self {
            backend: RecorderBackend::Local,
            finished_retention: Duration::from_secs(60),
            max_bytes: 64 << 20,
            disk: 4 << 30,
            temp_dir: None,
            advertised_address: None,
            port: 8080,
            locator_ttl: Duration::from_secs(10),
        }
    }
}
