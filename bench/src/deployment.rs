//! What is under test: the engine, and how many nodes share it.

use crate::postgres::Postgres;
use crate::server::Server;
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;

/// How the product is run.
#[derive(Clone)]
pub enum Deployment {
    /// One process with its database in its folder.
    Embedded,
    /// This many processes on one database.
    Postgres(Arc<Postgres>, usize),
}

impl Deployment {
    /// What the result table calls it.
    pub fn title(&self) -> String {
        match self {
            Self::Embedded => "embedded".into(),
            Self::Postgres(_, 1) => "PostgreSQL, 1 node".into(),
            Self::Postgres(_, nodes) => format!("PostgreSQL, {nodes} nodes"),
        }
    }

    /// Starts it on an empty store.
    pub async fn start(&self, binary: &Path) -> Result<Vec<Arc<Server>>> {
        let Self::Postgres(postgres, count) = self else {
            return Ok(vec![Arc::new(Server::product(binary).await?)]);
        };
        let database = postgres.new_database()?;
        let mut nodes = Vec::new();
        for _ in 0..*count {
            nodes.push(Arc::new(Server::node(binary, &database).await?));
        }
        Ok(nodes)
    }

    /// The database server, if it is a process of its own.
    pub fn database(&self) -> Option<Arc<Postgres>> {
        match self {
            Self::Embedded => None,
            Self::Postgres(postgres, _) => Some(Arc::clone(postgres)),
        }
    }
}
