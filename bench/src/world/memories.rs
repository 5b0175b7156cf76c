//! Memories: of many projects that are added to, and of one that is read and searched.

use super::World;
use crate::dataset::memories as requests;
use crate::load::{self, Side};
use crate::sender::Sender;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Projects and sessions that are added to.
const SCOPES: u64 = 200;
/// Memories of the project that is searched.
const SEARCHED: u64 = 1_000;

impl World {
    /// Adds of new memories to one of 200 projects.
    pub fn memory_adds(&self) -> Side {
        self.memory_additions("project", "semantic", |number| json!({"projectId": format!("adds-{number}")}))
    }

    /// Adds of new working memories to one of 200 sessions.
    pub fn working_adds(&self) -> Side {
        self.memory_additions(
            "session",
            "working",
            |number| json!({"userId": "bench", "sessionId": format!("adds-{number}")}),
        )
    }

    fn memory_additions(&self, layer: &str, kind: &str, identifiers: impl Fn(u64) -> Value) -> Side {
        let template = |number| requests::fresh(layer, kind, &identifiers(number), number);
        self.side_of(Sender::fresh((0..SCOPES).map(template).collect(), self.connections))
    }

    /// Reads of one of 1,000 memories.
    pub async fn memory_gets(&mut self) -> Result<Side> {
        let added = self.seed_memories("read").await?;
        let ids = added.iter().map(|answer| {
            let answer: Value = serde_json::from_slice(answer)?;
            Ok(requests::get(answer["memory"]["id"].as_str().context("an added memory has an id")?))
        });
        Ok(self.side(ids.collect::<Result<_>>()?))
    }

    /// Searches of a project of 1,000 memories.
    pub async fn memory_searches(&mut self) -> Result<Side> {
        self.seed_memories("searched").await?;
        let identifiers = json!({"projectId": "searched"});
        Ok(self.side(
            (0..500).map(|number| requests::search(&["project"], &identifiers, number, false)).collect(),
        ))
    }

    async fn seed_memories(&self, project: &str) -> Result<Vec<Vec<u8>>> {
        let identifiers = json!({"projectId": project});
        let adds = (0..SEARCHED).map(|number| requests::add("project", &identifiers, number)).collect();
        load::send_all(self.server.address, adds).await
    }
}
