//! The servers under test and what they are filled with. Each surface seeds what its operations need.

mod conversations;
mod events;
mod files;
mod memories;

pub use conversations::Chat;
pub use events::NEIGHBOURS;

use crate::dataset::{Ids, Writer};
use crate::deployment::Deployment;
use crate::load::{self, Side};
use crate::progress::Progress;
use crate::report::thousands;
use crate::sender::Sender;
use crate::server::Server;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Starts and fills servers, and remembers what is there for more than one operation.
pub struct World {
    binary: PathBuf,
    deployment: Deployment,
    /// The most connections there will be to one server.
    connections: usize,
    progress: Progress,
    /// Holds everything but the events that are searched.
    server: Arc<Server>,
    /// It, and those that share its database.
    nodes: Vec<Arc<Server>>,
    ids: Ids,
    writer: Writer,
    chats: Option<Vec<Chat>>,
    /// Servers with the user whose events are searched, by how many others there are.
    searched: BTreeMap<usize, Vec<Arc<Server>>>,
}

impl World {
    /// A world with an empty store.
    pub async fn new(
        binary: &Path,
        deployment: Deployment,
        connections: usize,
        progress: Progress,
    ) -> Result<Self> {
        let nodes = deployment.start(binary).await?;
        Ok(Self {
            binary: binary.to_owned(),
            deployment,
            connections,
            progress,
            server: Arc::clone(&nodes[0]),
            nodes,
            ids: Ids::default(),
            writer: Writer::new(7),
            chats: None,
            searched: BTreeMap::new(),
        })
    }

    /// Connections to the server that send random ones of these requests.
    pub fn side(&self, requests: Vec<Vec<u8>>) -> Side {
        self.side_of(Sender::random(requests, self.connections))
    }

    /// Connections to the server that send what these have to send.
    fn side_of(&self, senders: Vec<Sender>) -> Side {
        Side { nodes: self.nodes.clone(), database: self.deployment.database(), senders, wire: None }
    }

    /// The server that holds everything but the events that are searched.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Each server that is running, with its name.
    pub fn servers(&self) -> impl Iterator<Item = (String, &Server)> {
        let searched = self.searched.iter().map(|(neighbours, nodes)| {
            (format!("the server whose events are searched, with {neighbours} other users"), &*nodes[0])
        });
        std::iter::once(("the server".to_owned(), &*self.server)).chain(searched)
    }
}

/// Sends each request once. It takes them as it goes: those of a large data set need not all be in memory.
async fn seed(
    progress: Progress,
    server: &Server,
    requests: impl IntoIterator<Item = Vec<u8>>,
) -> Result<()> {
    const PIECE: usize = 20_000;
    const TOLD: usize = 5 * PIECE;
    let mut requests = requests.into_iter();
    let mut sent = 0;
    loop {
        let piece: Vec<_> = requests.by_ref().take(PIECE).collect();
        if piece.is_empty() {
            return Ok(());
        }
        sent += piece.len();
        load::send_all(server.address, piece).await?;
        if sent % TOLD == 0 {
            progress.say(&format!("  {} so far", thousands(sent as f64)));
        }
    }
}

/// User names with a common beginning, all of one length.
pub fn users(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}-{number:05}")).collect()
}
