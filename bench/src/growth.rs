//! What must not become slower as data grows: the same request on little and on much, in turns.

use crate::dataset::conversations as requests;
use crate::load::Side;
use crate::world::{Chat, NEIGHBOURS, World, users};
use anyhow::{Context as _, Result};

/// A comparison of the same operation on little and on much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The newest page in a tree of 1,000 forks with 100 entries each, next to that of lone conversations.
    Tree,
    /// The list of a user with 100,000 conversations, next to that of one with 100.
    Conversations,
    /// A fork of a conversation of 5,000 entries, next to one of 10.
    ForkLength,
    /// A search of a user with 10,000 events among 999 others with 1,000 each, next to the same without the others.
    Neighbours,
}

/// The two sides of a comparison.
pub struct Sides {
    /// Requests on little.
    pub little: Side,
    /// Requests on much.
    pub much: Side,
}

impl Growth {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ForkLength, Self::Tree, Self::Conversations, Self::Neighbours];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "growth-tree",
            Self::Conversations => "growth-conversations",
            Self::ForkLength => "growth-fork",
            Self::Neighbours => "growth-neighbours",
        }
    }

    /// What the result table calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tree => "newest page: tree of 1,000 forks × 100 entries vs. lone conversation",
            Self::Conversations => "list: user with 100,000 conversations vs. 100",
            Self::ForkLength => "fork: conversation of 5,000 entries vs. 10",
            Self::Neighbours => "search 10,000 events of a user: 999 other users with 1,000 each vs. none",
        }
    }

    /// How many times as long a request may take on much.
    pub fn goal(self) -> f64 {
        match self {
            Self::Tree => 1.3,
            Self::Conversations | Self::Neighbours => 1.5,
            Self::ForkLength => 1.2,
        }
    }

    /// Whether it is measured with a single connection too: latency without a queue.
    pub fn unqueued(self) -> bool {
        self == Self::Neighbours
    }

    /// Seeds both sides.
    pub async fn prepare(self, world: &mut World) -> Result<Sides> {
        let (little, much) = match self {
            Self::Tree => {
                let lone = world.seed_chats(&users("loner", 100), 1, 100).await?;
                let root = world.seed_chats(&users("brancher", 1), 1, 100).await?.remove(0);
                let forks = world.seed_forks(&root, 1_000).await?;
                world.append_to_each(&forks, 100).await?;
                (world.side(pages(&lone)), world.side(pages(&forks[..100])))
            }
            Self::Conversations => {
                world.seed_empty("few-", 100).await?;
                world.seed_empty("many", 100_000).await?;
                (world.side(vec![requests::list("few-")]), world.side(vec![requests::list("many")]))
            }
            Self::ForkLength => {
                let short = world.seed_chats(&users("short", 4), 1, 10).await?;
                let long = world.seed_chats(&users("long", 4), 1, 5_000).await?;
                (world.side(forks(world, &short).await?), world.side(forks(world, &long).await?))
            }
            Self::Neighbours => (world.event_searches(0).await?, world.event_searches(NEIGHBOURS).await?),
        };
        Ok(Sides { little, much })
    }
}

fn pages(chats: &[Chat]) -> Vec<Vec<u8>> {
    chats.iter().map(|chat| requests::newest_page(&chat.user, &chat.id, 50)).collect()
}

/// Forks at the newest entry: everything before it is inherited.
async fn forks(world: &World, chats: &[Chat]) -> Result<Vec<Vec<u8>>> {
    let newest = world.entry_ids(chats, 1).await?;
    chats
        .iter()
        .zip(&newest)
        .map(|(chat, ids)| {
            let entry = ids.first().context("a seeded conversation has entries")?;
            Ok(requests::fork(&chat.user, &chat.id, entry))
        })
        .collect()
}
