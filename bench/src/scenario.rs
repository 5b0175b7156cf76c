//! What is measured: for each operation the data it needs, its requests, and what is asked of the result.
//!
//! One more operation is one more variant of [`Operation`], a function that seeds it, and a row in [`Operation::goals`].

use crate::dataset::{self, Ids, Random, Writer};
use crate::load::{self, Connection, Requests};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;

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
}

/// A bound on a result.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// At least this share of the floor's throughput.
    OfFloor(f64),
    /// The slowest of a hundred takes at most so many times the median.
    TailToMedian(f64),
}

impl Operation {
    /// All of them; forks come last because they change what the others would list.
    pub const ALL: [Self; 6] = [Self::Append, Self::Page, Self::Sync, Self::List, Self::Search, Self::Fork];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Page => "page",
            Self::Sync => "sync",
            Self::List => "list",
            Self::Fork => "fork",
            Self::Search => "search",
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
        }
    }

    /// Whether each request ends in a durable commit.
    pub fn commits(self) -> bool {
        matches!(self, Self::Append | Self::Fork)
    }

    /// What is asked of it with so many connections.
    pub fn goals(self, connections: usize) -> Vec<Goal> {
        match self {
            Self::Append if connections >= 256 => vec![Goal::OfFloor(0.15), Goal::TailToMedian(5.0)],
            Self::Append => vec![Goal::TailToMedian(5.0)],
            Self::Page => vec![Goal::OfFloor(0.25)],
            Self::Sync => vec![Goal::OfFloor(0.30)],
            Self::List | Self::Fork | Self::Search => vec![],
        }
    }
}

/// Requests that are ready to be sent, and what the server answers to one of them.
pub struct Workload {
    /// The requests.
    pub requests: Requests,
    /// The status of the answers.
    pub status: u16,
    /// An answer of median size.
    pub body: Vec<u8>,
}

/// Fills the server and remembers what is there for more than one operation.
pub struct World {
    address: SocketAddr,
    ids: Ids,
    writer: Writer,
    chats: Option<Vec<Chat>>,
}

/// A conversation with entries, and the user it belongs to.
#[derive(Clone)]
pub struct Chat {
    /// Its owner.
    pub user: String,
    /// Its id.
    pub id: String,
}

/// Bytes of one entry's text.
const TEXT: usize = 300;

impl World {
    /// A world on the server at this address.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, ids: Ids::default(), writer: Writer::new(7), chats: None }
    }

    /// Seeds what the operation needs and asks the server once, to see that it does what is to be measured.
    pub async fn prepare(&mut self, operation: Operation) -> Result<Workload> {
        let requests = match operation {
            Operation::Append => self.appends().await?,
            Operation::Page => self.pages().await?,
            Operation::Sync => self.syncs().await?,
            Operation::List => self.lists().await?,
            Operation::Fork => self.forks().await?,
            Operation::Search => self.searches().await?,
        };
        let workload = self.probe(requests).await?;
        let body: Value = serde_json::from_slice(&workload.body)?;
        let items = body["data"].as_array().map_or(0, Vec::len);
        let (right, wanted) = match operation {
            Operation::Append => (workload.status == 201 && body["id"].is_string(), "a new entry"),
            Operation::Page => (items == 50, "50 entries"),
            Operation::Sync => (body["noOp"] == true, "a no-op"),
            Operation::List => (items == 20, "20 conversations"),
            Operation::Fork => {
                (workload.status == 201 && body["forkedAtConversationId"].is_string(), "a fork")
            }
            Operation::Search => (items > 0, "hits"),
        };
        ensure!(right, "{operation:?} should answer {wanted} but answers {} {body}", workload.status);
        Ok(workload)
    }

    /// Sends a few of the requests and keeps the answer of median size: the floor sends the same.
    pub async fn probe(&self, requests: Vec<Vec<u8>>) -> Result<Workload> {
        let mut connection = Connection::open(self.address).await?;
        let mut answers = Vec::new();
        for request in requests.iter().take(15) {
            let answer = connection.exchange(request).await?;
            let shown = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]);
            ensure!((200..300).contains(&answer.status), "the server answers {} {shown}", answer.status);
            answers.push((answer.status, answer.body.to_vec()));
        }
        answers.sort_by_key(|(_, body)| body.len());
        let (status, body) = answers.swap_remove(answers.len() / 2);
        Ok(Workload { requests: Arc::new(requests), status, body })
    }

    /// Creates so many conversations of each user, each with so many entries.
    pub async fn seed_chats(
        &mut self,
        users: &[String],
        conversations: usize,
        entries: usize,
    ) -> Result<Vec<Chat>> {
        let mut chats = Vec::with_capacity(users.len() * conversations);
        for user in users {
            for _ in 0..conversations {
                chats.push(Chat { user: user.clone(), id: self.ids.next().to_string() });
            }
        }
        self.append_to_each(&chats, entries).await?;
        Ok(chats)
    }

    /// Creates so many conversations without entries.
    pub async fn seed_empty(&mut self, user: &str, count: usize) -> Result<()> {
        let creations = (0..count).map(|_| dataset::create(user, &self.writer.text(40))).collect();
        load::send_all(self.address, creations).await?;
        Ok(())
    }

    /// Appends so many entries to each conversation, and creates those that do not exist.
    pub async fn append_to_each(&mut self, chats: &[Chat], entries: usize) -> Result<()> {
        // Round by round, so that requests under way at the same time go to different conversations. In pieces, so
        // that the prebuilt requests of a large data set need not all be in memory.
        const PIECE: usize = 20_000;
        let mut piece = Vec::with_capacity(PIECE.min(chats.len() * entries));
        for _ in 0..entries {
            for chat in chats {
                piece.push(dataset::append(&chat.user, &chat.id, &self.writer.text(TEXT)));
                if piece.len() == PIECE {
                    load::send_all(self.address, std::mem::take(&mut piece)).await?;
                }
            }
        }
        load::send_all(self.address, piece).await?;
        Ok(())
    }

    /// Creates so many forks of a conversation at its newest entry.
    pub async fn seed_forks(&self, root: &Chat, count: usize) -> Result<Vec<Chat>> {
        let entry = self.entry_ids(std::slice::from_ref(root), 1).await?.remove(0).remove(0);
        let forks = (0..count).map(|_| dataset::fork(&root.user, &root.id, &entry)).collect();
        let answers = load::send_all(self.address, forks).await?;
        answers.iter().map(|body| Ok(Chat { user: root.user.clone(), id: member(body, "id")? })).collect()
    }

    /// The ids of the newest entries of each conversation, oldest first.
    pub async fn entry_ids(&self, chats: &[Chat], limit: usize) -> Result<Vec<Vec<String>>> {
        let pages = chats.iter().map(|chat| dataset::newest_page(&chat.user, &chat.id, limit)).collect();
        let answers = load::send_all(self.address, pages).await?;
        answers
            .iter()
            .map(|body| {
                let page: Value = serde_json::from_slice(body)?;
                let entries = page["data"].as_array().context("a page without data")?;
                entries
                    .iter()
                    .map(|entry| Ok(entry["id"].as_str().context("an entry without id")?.into()))
                    .collect()
            })
            .collect()
    }

    /// 200 conversations of 200 users with 60 entries each.
    async fn chats(&mut self) -> Result<Vec<Chat>> {
        if self.chats.is_none() {
            self.chats = Some(self.seed_chats(&users("chatter", 200), 1, 60).await?);
        }
        self.chats.clone().context("chats were just seeded")
    }

    async fn appends(&mut self) -> Result<Vec<Vec<u8>>> {
        let chats = self.seed_chats(&users("author", 2_500), 2, 1).await?;
        Ok(chats.iter().map(|chat| dataset::append(&chat.user, &chat.id, &self.writer.text(TEXT))).collect())
    }

    async fn pages(&mut self) -> Result<Vec<Vec<u8>>> {
        let chats = self.chats().await?;
        Ok(chats.iter().map(|chat| dataset::newest_page(&chat.user, &chat.id, 50)).collect())
    }

    async fn syncs(&mut self) -> Result<Vec<Vec<u8>>> {
        let requests: Vec<_> = users("syncer", 64)
            .iter()
            .map(|user| dataset::sync(user, &self.ids.next().to_string(), 500, &mut self.writer))
            .collect();
        // The first of each writes the memory; from then on it is the same memory again.
        load::send_all(self.address, requests.clone()).await?;
        Ok(requests)
    }

    async fn lists(&mut self) -> Result<Vec<Vec<u8>>> {
        let users = users("lister", 50);
        self.seed_chats(&users, 100, 1).await?;
        Ok(users.iter().map(|user| dataset::list(user)).collect())
    }

    async fn forks(&mut self) -> Result<Vec<Vec<u8>>> {
        let chats = self.chats().await?;
        let entries = self.entry_ids(&chats, 30).await?;
        let mut random = Random::new(3);
        Ok(chats
            .iter()
            .zip(&entries)
            .map(|(chat, ids)| dataset::fork(&chat.user, &chat.id, &ids[random.below(ids.len())]))
            .collect())
    }

    async fn searches(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut random = Random::new(5);
        let (mut appends, mut searches) = (Vec::new(), Vec::new());
        for user in users("searcher", 1) {
            for _ in 0..250 {
                let conversation = self.ids.next().to_string();
                for _ in 0..20 {
                    let text = self.writer.text(TEXT);
                    appends.push(dataset::append(&user, &conversation, &text));
                    searches.push(dataset::search(&user, &dataset::two_words(&text, &mut random)));
                }
            }
        }
        load::send_all(self.address, appends).await?;
        searches.truncate(500);
        Ok(searches)
    }
}

/// User names with a common beginning, all of one length.
pub fn users(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}-{number:05}")).collect()
}

fn member(body: &[u8], name: &str) -> Result<String> {
    let value: Value = serde_json::from_slice(body)?;
    Ok(value[name].as_str().with_context(|| format!("no {name} in {value}"))?.to_owned())
}
