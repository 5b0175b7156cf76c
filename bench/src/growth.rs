//! What must not become slower as data grows: the same request on little and on much, in turns.

use crate::dataset;
use crate::load::Requests;
use crate::scenario::{Chat, World, users};
use anyhow::{Context as _, Result};
use std::sync::Arc;

/// A comparison of the same operation on little and on much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The newest page in a tree of 1,000 forks with 100 entries each, next to that of lone conversations.
    Tree,
    /// The list of a user with 100,000 conversations, next to that of one with 100.
    Conversations,
    /// A fork of a conversation of 5,000 entries, next to one of 10.
    ForkLength,
}

/// The two sides of a comparison.
pub struct Sides {
    /// Requests on little.
    pub little: Requests,
    /// Requests on much.
    pub much: Requests,
}

impl Growth {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ForkLength, Self::Tree, Self::Conversations];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "growth-tree",
            Self::Conversations => "growth-conversations",
            Self::ForkLength => "growth-fork",
        }
    }

    /// What the result table calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tree => "newest page: tree of 1,000 forks × 100 entries vs. lone conversation",
            Self::Conversations => "list: user with 100,000 conversations vs. 100",
            Self::ForkLength => "fork: conversation of 5,000 entries vs. 10",
        }
    }

    /// How many times as long a request may take on much.
    pub fn goal(self) -> f64 {
        match self {
            Self::Tree => 1.3,
            Self::Conversations => 1.5,
            Self::ForkLength => 1.2,
        }
    }

    /// Seeds both sides.
    pub async fn prepare(self, world: &mut World) -> Result<Sides> {
        let (little, much) = match self {
            Self::Tree => {
                let lone = world.seed_chats(&users("loner", 100), 1, 100).await?;
                let root = world.seed_chats(&users("brancher", 1), 1, 100).await?.remove(0);
                let forks = world.seed_forks(&root, 1_000).await?;
                world.append_to_each(&forks, 100).await?;
                (pages(&lone), pages(&forks[..100]))
            }
            Self::Conversations => {
                world.seed_empty("few-", 100).await?;
                world.seed_empty("many", 100_000).await?;
                (vec![dataset::list("few-")], vec![dataset::list("many")])
            }
            Self::ForkLength => {
                let short = world.seed_chats(&users("short", 4), 1, 10).await?;
                let long = world.seed_chats(&users("long", 4), 1, 5_000).await?;
                (forks(world, &short).await?, forks(world, &long).await?)
            }
        };
        Ok(Sides { little: Arc::new(little), much: Arc::new(much) })
    }
}

fn pages(chats: &[Chat]) -> Vec<Vec<u8>> {
    chats.iter().map(|chat| dataset::newest_page(&chat.user, &chat.id, 50)).collect()
}

/// Forks at the newest entry: everything before it is inherited.
async fn forks(world: &World, chats: &[Chat]) -> Result<Vec<Vec<u8>>> {
    let newest = world.entry_ids(chats, 1).await?;
    chats
        .iter()
        .zip(&newest)
        .map(|(chat, ids)| {
            let entry = ids.first().context("a seeded conversation has entries")?;
            Ok(dataset::fork(&chat.user, &chat.id, entry))
        })
        .collect()
}
