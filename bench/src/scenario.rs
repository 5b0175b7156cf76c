//! What is measured: for each operation the data it needs, its requests, and what is asked of the result.
//!
//! One more operation is one more variant of [`Operation`], a function of [`World`] that seeds it, and a row in
//! [`Operation::goals`].

use crate::load::{Connection, Side};
use crate::world::{NEIGHBOURS, World};
use anyhow::{Result, ensure};
use serde_json::Value;

/// An operation that is measured against the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Append of a history entry of about 300 bytes to one of 5,000 conversations.
    Append,
    /// The newest 50 entries of one of 200 conversations.
    Page,
    /// Sync of an unchanged memory of 500 messages.
    Sync,
    /// The first 20 conversations of one of 50 users with 100 each.
    List,
    /// Fork of one of 200 conversations at an entry in its newer half.
    Fork,
    /// Full-text search for two words in 5,000 entries.
    Search,
    /// One of 1,000 files of 20 kB.
    FileGet,
    /// Replacement of a file of 20 kB by another.
    FilePut,
    /// Two edits of a file of 20 kB: a line is replaced, a line is added or taken away.
    FilePatch,
    /// A context of 8 files of 4 kB.
    Assemble,
    /// Write of a new event of one of 200 users.
    EventWrite,
    /// Search for two words in the 10,000 events of a user.
    EventSearch,
    /// The same where 999 other users have 1,000 events each.
    CrowdedEventSearch,
    /// Add of a new memory to one of 200 projects.
    MemoryAdd,
    /// Add of a new working memory to one of 200 sessions.
    WorkingAdd,
    /// One of 1,000 memories by its id.
    MemoryGet,
    /// Search of a project of 1,000 memories.
    MemorySearch,
}

/// A bound on a result.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// At least this share of the floor's throughput.
    OfFloor(f64),
    /// At least this many requests per second, on a machine with two cores.
    PerSecond(f64),
    /// Half of the requests take at most this many milliseconds.
    Median(f64),
    /// The slowest of a hundred takes at most this many times the median.
    TailToMedian(f64),
}

impl Operation {
    /// All of them; forks come after the other conversations because they change what those would list.
    pub const ALL: [Self; 17] = [
        Self::Append,
        Self::Page,
        Self::Sync,
        Self::List,
        Self::Search,
        Self::Fork,
        Self::FileGet,
        Self::FilePut,
        Self::FilePatch,
        Self::Assemble,
        Self::EventWrite,
        Self::EventSearch,
        Self::CrowdedEventSearch,
        Self::MemoryAdd,
        Self::WorkingAdd,
        Self::MemoryGet,
        Self::MemorySearch,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Page => "page",
            Self::Sync => "sync",
            Self::List => "list",
            Self::Fork => "fork",
            Self::Search => "search",
            Self::FileGet => "file-get",
            Self::FilePut => "file-put",
            Self::FilePatch => "file-patch",
            Self::Assemble => "assemble",
            Self::EventWrite => "event-write",
            Self::EventSearch => "event-search",
            Self::CrowdedEventSearch => "event-search-crowded",
            Self::MemoryAdd => "memory-add",
            Self::WorkingAdd => "working-add",
            Self::MemoryGet => "memory-get",
            Self::MemorySearch => "memory-search",
        }
    }

    /// What the result table calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Append => "append, 300 bytes",
            Self::Page => "newest 50 entries",
            Self::Sync => "no-op sync, 500 messages",
            Self::List => "list 20 conversations",
            Self::Fork => "fork",
            Self::Search => "full-text search, two words",
            Self::FileGet => "GET file, 20 kB",
            Self::FilePut => "PUT file, 20 kB",
            Self::FilePatch => "PATCH file, two edits in 20 kB",
            Self::Assemble => "assemble 8 files of 4 kB",
            Self::EventWrite => "write event",
            Self::EventSearch => "search 10,000 events of a user",
            Self::CrowdedEventSearch => "the same user's among 1,000,000 events of 1,000 users",
            Self::MemoryAdd => "add a memory",
            Self::WorkingAdd => "add a working memory",
            Self::MemoryGet => "GET a memory",
            Self::MemorySearch => "search 1,000 memories of a project",
        }
    }

    /// Whether each request ends in a durable commit.
    pub fn commits(self) -> bool {
        matches!(
            self,
            Self::Append | Self::Fork | Self::FilePut | Self::FilePatch | Self::EventWrite | Self::MemoryAdd
        )
    }

    /// Whether it is measured with a single connection too: latency without a queue.
    pub fn unqueued(self) -> bool {
        matches!(self, Self::EventSearch | Self::CrowdedEventSearch)
    }

    /// What is asked of it with this many connections.
    pub fn goals(self, connections: usize) -> Vec<Goal> {
        match self {
            Self::Append if connections >= 256 => vec![Goal::OfFloor(0.15), Goal::TailToMedian(5.0)],
            Self::Append => vec![Goal::TailToMedian(5.0)],
            Self::Page => vec![Goal::OfFloor(0.25)],
            Self::Sync => vec![Goal::OfFloor(0.30)],
            // The numbers per second are ten times those of the service that the contract was taken from.
            Self::FileGet if connections >= 256 => vec![Goal::OfFloor(0.40), Goal::PerSecond(11_000.0)],
            Self::FileGet => vec![Goal::OfFloor(0.40)],
            Self::FilePut if connections >= 256 => vec![Goal::PerSecond(14_000.0)],
            Self::FilePatch if connections >= 256 => vec![Goal::OfFloor(0.10)],
            // With more connections than cores a search mostly waits for the others.
            Self::EventSearch if connections == 1 => vec![Goal::Median(3.0)],
            Self::List
            | Self::Fork
            | Self::Search
            | Self::FilePut
            | Self::FilePatch
            | Self::Assemble
            | Self::EventWrite
            | Self::EventSearch
            | Self::CrowdedEventSearch
            | Self::MemoryAdd
            | Self::WorkingAdd
            | Self::MemoryGet
            | Self::MemorySearch => vec![],
        }
    }

    /// Seeds what it needs and asks the server a few times, to see that it does what is to be measured.
    pub async fn prepare(self, world: &mut World) -> Result<Workload> {
        let side = match self {
            Self::Append => world.appends().await?,
            Self::Page => world.pages().await?,
            Self::Sync => world.syncs().await?,
            Self::List => world.lists().await?,
            Self::Fork => world.forks().await?,
            Self::Search => world.searches().await?,
            Self::FileGet => world.file_gets().await?,
            Self::FilePut => world.file_puts().await?,
            Self::FilePatch => world.file_patches().await?,
            Self::Assemble => world.assemblies().await?,
            Self::EventWrite => world.event_writes().await?,
            Self::EventSearch => world.event_searches(0).await?,
            Self::CrowdedEventSearch => world.event_searches(NEIGHBOURS).await?,
            Self::MemoryAdd => world.memory_adds(),
            Self::WorkingAdd => world.working_adds(),
            Self::MemoryGet => world.memory_gets().await?,
            Self::MemorySearch => world.memory_searches().await?,
        };
        let workload = Workload::probe(side).await?;
        let status = workload.status;
        let body: Value =
            if workload.body.is_empty() { Value::Null } else { serde_json::from_slice(&workload.body)? };
        let count = |name: &str| body[name].as_array().map_or(0, Vec::len);
        let (right, wanted) = match self {
            Self::Append => (status == 201 && body["id"].is_string(), "a new entry"),
            Self::Page => (count("data") == 50, "50 entries"),
            Self::Sync => (body["noOp"] == true, "a no-op"),
            Self::List => (count("data") == 20, "20 conversations"),
            Self::Fork => (status == 201 && body["forkedAtConversationId"].is_string(), "a fork"),
            Self::Search => (count("data") > 0, "hits"),
            Self::FileGet | Self::FilePut | Self::FilePatch => (
                body["document"]["content"]["text"].as_str().is_some_and(|text| text.len() > 19_000),
                "a file",
            ),
            Self::Assemble => (count("files") == 8, "8 files"),
            Self::EventWrite => (status == 202, "that it is taken"),
            Self::EventSearch | Self::CrowdedEventSearch => (count("results") == 10, "10 events"),
            Self::MemoryAdd | Self::WorkingAdd => (status == 201, "a new memory"),
            Self::MemoryGet => (body["memory"]["content"].is_string(), "a memory"),
            Self::MemorySearch => (count("results") > 0, "memories"),
        };
        ensure!(right, "{self:?} should answer {wanted} but answers {status} {body}");
        Ok(workload)
    }
}

/// Requests that are ready to be sent, and what the server answers to one of them.
pub struct Workload {
    /// The servers and the requests.
    pub side: Side,
    /// The status of the answers.
    pub status: u16,
    /// An answer of median size.
    pub body: Vec<u8>,
}

impl Workload {
    /// Sends a few of the requests and keeps the answer of median size: the floor sends the same.
    async fn probe(mut side: Side) -> Result<Self> {
        let mut connection = Connection::open(side.nodes[0].address).await?;
        let mut answers = Vec::new();
        let senders = side.senders.len();
        for number in 0..15 {
            let sender = &mut side.senders[number % senders];
            let answer = connection.exchange(sender.request()).await?;
            ensure!(answer.is_success(), "the server answers {}", answer.describe());
            sender.answered(answer.body)?;
            answers.push((answer.status, answer.body.to_vec()));
        }
        answers.sort_by_key(|(_, body)| body.len());
        let (status, body) = answers.swap_remove(answers.len() / 2);
        Ok(Self { side, status, body })
    }
}
