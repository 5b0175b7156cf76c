//! Events: of many users who write them, and of one who searches, alone and among others.

use super::{World, seed, users};
use crate::dataset::Random;
use crate::dataset::events as requests;
use crate::load::Side;
use crate::sender::Sender;
use crate::server::Server;
use anyhow::Result;
use std::sync::Arc;

/// Who searches, and how many events it has.
const SEARCHER: &str = "recaller-00000";
const EVENTS: usize = 10_000;

/// The others, when there are others, and how many events each has: about a million together.
pub const NEIGHBOURS: usize = 999;
const NEIGHBOUR_EVENTS: usize = 1_000;

impl World {
    /// Writes of new events of one of 200 users.
    pub async fn event_writes(&mut self) -> Result<Side> {
        // Everybody has some already, so that writing is what it is in the long run.
        const BEFORE: usize = 100;
        let users = users("reporter", 200);
        seed(self.progress, &self.server, bursts(&users, 0, BEFORE)).await?;
        let templates =
            users.iter().enumerate().map(|(number, user)| requests::fresh(user, BEFORE + number)).collect();
        let senders = Sender::fresh(templates, self.connections);
        Ok(self.side_of(senders))
    }

    /// Searches of a user with 10,000 events, on a server with this many other users and nothing else.
    pub async fn event_searches(&mut self, neighbours: usize) -> Result<Side> {
        let nodes = self.searched_nodes(neighbours).await?;
        let mut random = Random::new(5);
        let searches = (0..500).map(|number| requests::search(SEARCHER, number * 20, &mut random)).collect();
        let senders = Sender::random(searches, self.connections);
        Ok(Side { nodes, database: self.deployment.database(), senders, wire: None })
    }

    async fn searched_nodes(&mut self, neighbours: usize) -> Result<Vec<Arc<Server>>> {
        if let Some(nodes) = self.searched.get(&neighbours) {
            return Ok(nodes.clone());
        }
        // Everybody writes now and then, a few events each time: no user's events lie together in the store.
        const ROUNDS: usize = 100;
        let searcher = [SEARCHER.to_owned()];
        let others = users("neighbour", neighbours);
        let rounds = (0..ROUNDS).flat_map(|round| {
            let own = bursts(&searcher, round, EVENTS / ROUNDS);
            own.chain(bursts(&others, round, NEIGHBOUR_EVENTS / ROUNDS))
        });
        let nodes = self.deployment.start(&self.binary).await?;
        seed(self.progress, &nodes[0], rounds).await?;
        self.searched.insert(neighbours, nodes.clone());
        Ok(nodes)
    }
}

/// The events that each user writes in a round, `size` of them.
fn bursts(users: &[String], round: usize, size: usize) -> impl Iterator<Item = Vec<u8>> {
    let numbers = round * size..(round + 1) * size;
    users.iter().flat_map(move |user| numbers.clone().map(move |number| requests::write(user, number)))
}
