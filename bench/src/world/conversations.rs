//! Conversations, their entries and forks.

use super::{World, seed, users};
use crate::dataset::conversations as requests;
use crate::dataset::{Random, two_words};
use crate::load::{self, Side};
use anyhow::{Context as _, Result};
use serde_json::Value;

/// A conversation with entries, and the user it belongs to.
#[derive(Clone)]
pub struct Chat {
    /// Its owner.
    pub user: String,
    pub id: String,
}

/// Bytes of one entry's text.
const TEXT: usize = 300;

impl World {
    /// Creates this many conversations of each user, each with this many entries.
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

    /// Creates this many conversations without entries.
    pub async fn seed_empty(&mut self, user: &str, count: usize) -> Result<()> {
        let creations = (0..count).map(|_| requests::create(user, &self.writer.text(40))).collect();
        load::send_all(self.server.address, creations).await?;
        Ok(())
    }

    /// Appends this many entries to each conversation, and creates those that do not exist.
    pub async fn append_to_each(&mut self, chats: &[Chat], entries: usize) -> Result<()> {
        // Round by round, so that requests under way at the same time go to different conversations.
        let rounds = (0..entries).flat_map(|_| chats);
        let appends = rounds.map(|chat| requests::append(&chat.user, &chat.id, &self.writer.text(TEXT)));
        seed(self.progress, &self.server, appends).await
    }

    /// Creates this many forks of a conversation at its newest entry.
    pub async fn seed_forks(&self, root: &Chat, count: usize) -> Result<Vec<Chat>> {
        let entry = self.entry_ids(std::slice::from_ref(root), 1).await?.remove(0).remove(0);
        let forks = (0..count).map(|_| requests::fork(&root.user, &root.id, &entry)).collect();
        let answers = load::send_all(self.server.address, forks).await?;
        answers.iter().map(|body| Ok(Chat { user: root.user.clone(), id: member(body, "id")? })).collect()
    }

    /// The ids of the newest entries of each conversation, oldest first.
    pub async fn entry_ids(&self, chats: &[Chat], limit: usize) -> Result<Vec<Vec<String>>> {
        let pages = chats.iter().map(|chat| requests::newest_page(&chat.user, &chat.id, limit)).collect();
        let answers = load::send_all(self.server.address, pages).await?;
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

    /// Appends to one of 5,000 conversations.
    pub async fn appends(&mut self) -> Result<Side> {
        let appends = self.append_requests().await?;
        Ok(self.side(appends))
    }

    /// An append to each of 5,000 conversations.
    pub async fn append_requests(&mut self) -> Result<Vec<Vec<u8>>> {
        let chats = self.seed_chats(&users("author", 2_500), 2, 1).await?;
        let append = |chat: &Chat| requests::append(&chat.user, &chat.id, &self.writer.text(TEXT));
        Ok(chats.iter().map(append).collect())
    }

    /// Reads of the newest page of one of 200 conversations.
    pub async fn pages(&mut self) -> Result<Side> {
        let pages = self.page_requests().await?;
        Ok(self.side(pages))
    }

    /// A read of the newest page of each of 200 conversations.
    pub async fn page_requests(&mut self) -> Result<Vec<Vec<u8>>> {
        let chats = self.chats().await?;
        Ok(chats.iter().map(|chat| requests::newest_page(&chat.user, &chat.id, 50)).collect())
    }

    /// A sync of each of 64 new memories of 500 messages.
    pub fn sync_requests(&mut self) -> Vec<Vec<u8>> {
        users("syncer", 64)
            .iter()
            .map(|user| requests::sync(user, &self.ids.next().to_string(), 500, &mut self.writer))
            .collect()
    }

    /// Syncs of a memory that grows by a message each time, up to 50, for this many users; their conversation is `gap`.
    pub fn growing_requests(&mut self, gap: &str, count: usize) -> Vec<Vec<Vec<u8>>> {
        let users = users("grower", count);
        users.iter().map(|user| requests::growing_syncs(user, gap, 50, &mut self.writer)).collect()
    }

    /// Syncs of one of 64 memories that are there already.
    pub async fn syncs(&mut self) -> Result<Side> {
        let syncs = self.sync_requests();
        // The first of each writes the memory; from then on it is the same memory again.
        load::send_all(self.server.address, syncs.clone()).await?;
        Ok(self.side(syncs))
    }

    /// Lists of one of 50 users with 100 conversations each.
    pub async fn lists(&mut self) -> Result<Side> {
        let users = users("lister", 50);
        self.seed_chats(&users, 100, 1).await?;
        Ok(self.side(users.iter().map(|user| requests::list(user)).collect()))
    }

    /// Forks of one of 200 conversations at one of its newest 30 entries.
    pub async fn forks(&mut self) -> Result<Side> {
        let chats = self.chats().await?;
        let entries = self.entry_ids(&chats, 30).await?;
        let mut random = Random::new(3);
        let fork = |(chat, ids): (&Chat, &Vec<String>)| {
            requests::fork(&chat.user, &chat.id, &ids[random.below(ids.len())])
        };
        Ok(self.side(chats.iter().zip(&entries).map(fork).collect()))
    }

    /// Searches in the 5,000 entries of one user.
    pub async fn searches(&mut self) -> Result<Side> {
        let mut random = Random::new(5);
        let (mut appends, mut searches) = (Vec::new(), Vec::new());
        for user in users("searcher", 1) {
            for _ in 0..250 {
                let conversation = self.ids.next().to_string();
                for _ in 0..20 {
                    let text = self.writer.text(TEXT);
                    appends.push(requests::append(&user, &conversation, &text));
                    searches.push(requests::search(&user, &two_words(&text, &mut random)));
                }
            }
        }
        load::send_all(self.server.address, appends).await?;
        searches.truncate(500);
        Ok(self.side(searches))
    }
}

fn member(body: &[u8], name: &str) -> Result<String> {
    let value: Value = serde_json::from_slice(body)?;
    Ok(value[name].as_str().with_context(|| format!("no {name} in {value}"))?.to_owned())
}
