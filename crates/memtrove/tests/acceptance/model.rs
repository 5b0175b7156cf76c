//! Random histories against a model: forks, epochs, sync and paging, checked after every step.
//!
//! The model is the contract's definition written down as plainly as possible: a conversation's view is a list, a fork
//! copies a prefix of it. The server does it with bounds and digests; both must always say the same.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const CLIENTS: [&str; 2] = ["agent-a", "agent-b"];

#[derive(Debug, Clone)]
struct Entry {
    id: String,
    stored_in: String,
    /// The client and epoch of a memory entry; none for history.
    memory: Option<(usize, u64)>,
    content_type: String,
    content: Vec<Value>,
}

#[derive(Debug)]
struct Conversation {
    id: String,
    view: Vec<Entry>,
}

impl Conversation {
    fn latest_epoch(&self, client: usize) -> Option<u64> {
        self.view.iter().filter_map(|e| e.memory).filter(|(c, _)| *c == client).map(|(_, epoch)| epoch).max()
    }

    fn memory(&self, client: usize) -> Vec<&Entry> {
        let latest = self.latest_epoch(client);
        self.view
            .iter()
            .filter(|e| e.memory.is_some_and(|(c, epoch)| c == client && Some(epoch) == latest))
            .collect()
    }

    fn visible(&self, client: usize) -> Vec<&Entry> {
        self.view.iter().filter(|e| e.memory.is_none_or(|(c, _)| c == client)).collect()
    }
}

struct World {
    seed: u64,
    dice: Dice,
    agents: Vec<Client>,
    tree: Vec<Conversation>,
    serial: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let alice = SERVER.someone("alice");
        let id = start(&alice, "Root");
        Self {
            seed,
            dice: Dice(seed),
            agents: CLIENTS.iter().map(|key| alice.with_key(key)).collect(),
            tree: vec![Conversation { id, view: Vec::new() }],
            serial: 0,
        }
    }

    fn item(&mut self) -> Value {
        self.serial += 1;
        match self.dice.roll(3) {
            0 => json!(self.serial),
            1 => json!(format!("item {}", self.serial)),
            _ => json!({"n": self.serial, "list": [1, null, {"deep": true}]}),
        }
    }

    fn step(&mut self) {
        let at = self.dice.roll(self.tree.len());
        match self.dice.roll(10) {
            0..=2 => self.say(at),
            3 => self.remember(at),
            4..=6 => self.sync(at),
            _ if self.tree.len() < 12 => self.fork(at),
            _ => self.say(at),
        }
        let look = self.dice.roll(self.tree.len());
        self.check(look);
    }

    fn say(&mut self, at: usize) {
        self.serial += 1;
        let body = history(&format!("said {}", self.serial));
        let path = format!("/v1/conversations/{}/entries", self.tree[at].id);
        let stored = self.agents[0].post(&path, body.clone()).expect(201);
        let content = body["content"].as_array().unwrap().clone();
        self.keep(at, &stored.json, None, "history", content);
    }

    fn remember(&mut self, at: usize) {
        let client = self.dice.roll(2);
        let content: Vec<Value> = (0..self.dice.roll(3)).map(|_| self.item()).collect();
        let path = format!("/v1/conversations/{}/entries", self.tree[at].id);
        let stored = self.agents[client].post(&path, memory(json!(content))).expect(201);
        let epoch = self.tree[at].latest_epoch(client).unwrap_or(1);
        assert_eq!(stored.json["epoch"], epoch, "seed {}: {}", self.seed, stored.describe());
        self.keep(at, &stored.json, Some((client, epoch)), "LC4J", content);
    }

    fn sync(&mut self, at: usize) {
        let client = self.dice.roll(2);
        let existing: Vec<Value> =
            self.tree[at].memory(client).iter().flat_map(|e| e.content.clone()).collect();
        let mut wanted = existing.clone();
        match self.dice.roll(8) {
            0 => wanted.clear(),
            1 => wanted.truncate(wanted.len() / 2),
            2 if !wanted.is_empty() => {
                let n = self.dice.roll(wanted.len());
                wanted[n] = self.item();
            }
            3 => {}
            _ => wanted.extend((0..=self.dice.roll(3)).map(|_| self.item()).collect::<Vec<_>>()),
        }
        let content_type = if self.dice.roll(6) == 0 { "other" } else { "LC4J" };

        // The decision of the contract's §7.2.
        let latest = self.tree[at].latest_epoch(client);
        let mixed = self.tree[at].memory(client).iter().any(|e| e.content_type != content_type);
        let (no_op, epoch, incremented, delta) = if mixed {
            (false, latest.map(|e| e + 1), true, wanted.clone())
        } else if wanted == existing {
            (true, latest, false, Vec::new())
        } else if wanted.starts_with(&existing) {
            (false, Some(latest.unwrap_or(1)), false, wanted[existing.len()..].to_vec())
        } else {
            (false, Some(latest.unwrap_or(0) + 1), true, wanted.clone())
        };

        let path = format!("/v1/conversations/{}/entries/sync", self.tree[at].id);
        let body = json!({"channel": "memory", "contentType": content_type, "content": wanted});
        let answer = self.agents[client].post(&path, body).expect(200);
        let context = format!("seed {}: {}", self.seed, answer.describe());
        assert_eq!(answer.json["noOp"], no_op, "{context}");
        assert_eq!(answer.json["epoch"], json!(epoch), "{context}");
        assert_eq!(answer.json["epochIncremented"], incremented, "{context}");
        if no_op {
            assert_eq!(answer.json["entry"], Value::Null, "{context}");
        } else {
            assert_eq!(answer.json["entry"]["content"], json!(delta), "{context}");
            let stored = answer.json["entry"].clone();
            self.keep(at, &stored, epoch.map(|epoch| (client, epoch)), content_type, delta);
        }
    }

    fn fork(&mut self, at: usize) {
        let client = self.dice.roll(2);
        let parent = self.tree[at].id.clone();
        let choices: Vec<String> = self.tree[at].visible(client).iter().map(|e| e.id.clone()).collect();
        let chosen = (!choices.is_empty()).then(|| choices[self.dice.roll(choices.len())].clone());
        match (self.dice.roll(4), chosen) {
            (0, _) | (_, None) => {
                // A blank slate, or an empty parent: only the first append can make it.
                self.fork_by_append(at, client, None);
            }
            (1, Some(entry)) => self.fork_by_append(at, client, Some(entry)),
            (_, Some(entry)) => {
                let id = fork(&self.agents[client], &parent, &entry);
                let view = self.prefix(at, &entry);
                self.check_lineage(&id, &parent, &view);
                self.tree.push(Conversation { id, view });
            }
        }
    }

    fn fork_by_append(&mut self, at: usize, client: usize, entry: Option<String>) {
        let (parent, id) = (self.tree[at].id.clone(), fresh_id());
        self.serial += 1;
        let mut body = history(&format!("first words {}", self.serial));
        body["forkedAtConversationId"] = json!(parent);
        if let Some(entry) = &entry {
            body["forkedAtEntryId"] = json!(entry);
        }
        let content = body["content"].as_array().unwrap().clone();
        let stored = self.agents[client].post(&format!("/v1/conversations/{id}/entries"), body).expect(201);
        let view = entry.map(|entry| self.prefix(at, &entry)).unwrap_or_default();
        self.check_lineage(&id, &parent, &view);
        self.tree.push(Conversation { id, view });
        let last = self.tree.len() - 1;
        self.keep(last, &stored.json, None, "history", content);
    }

    fn prefix(&self, at: usize, entry: &str) -> Vec<Entry> {
        self.tree[at].view.iter().take_while(|e| e.id != entry).cloned().collect()
    }

    fn check_lineage(&self, id: &str, parent: &str, inherited: &[Entry]) {
        let read = self.agents[0].get(&format!("/v1/conversations/{id}")).expect(200);
        assert_eq!(read.json["forkedAtConversationId"], parent, "seed {}", self.seed);
        let expected = inherited.last().map(|e| e.id.as_str());
        assert_eq!(read.json["forkedAtEntryId"].as_str(), expected, "seed {}", self.seed);
    }

    fn keep(
        &mut self,
        at: usize,
        stored: &Value,
        memory: Option<(usize, u64)>,
        content_type: &str,
        content: Vec<Value>,
    ) {
        let id = stored["id"].as_str().unwrap().to_owned();
        let stored_in = self.tree[at].id.clone();
        let content_type = content_type.to_owned();
        self.tree[at].view.push(Entry { id, stored_in, memory, content_type, content });
    }

    /// Reads a conversation in a randomly chosen way and compares it with the model.
    fn check(&mut self, at: usize) {
        let client = self.dice.roll(2);
        let limit = 1 + self.dice.roll(4);
        let agent = self.agents[client].clone();
        let conversation = &self.tree[at];
        let path = format!("/v1/conversations/{}/entries", conversation.id);
        let context = format!("seed {} on {}", self.seed, conversation.id);
        let ids = |entries: &[&Entry]| entries.iter().map(|e| e.id.clone()).collect::<Vec<_>>();
        let visible = conversation.visible(client);
        let spoken: Vec<&Entry> = conversation.view.iter().filter(|e| e.memory.is_none()).collect();
        let walked = |query: &str| -> Vec<String> {
            let all = walk(&agent, &format!("{path}?{query}"));
            all.iter().map(|e| e["id"].as_str().unwrap().to_owned()).collect()
        };

        let whole = agent.get(&format!("{path}?channel=all&limit=200")).expect_page();
        assert_eq!(whole.ids(), ids(&visible), "{context}: all");
        for (read, entry) in whole.data.iter().zip(&visible) {
            assert_eq!(read["content"], json!(entry.content), "{context}");
            assert_eq!(read["conversationId"], entry.stored_in, "{context}");
            assert_eq!(read["epoch"].as_u64(), entry.memory.map(|(_, epoch)| epoch), "{context}");
        }
        assert_eq!(
            walked(&format!("limit={limit}")),
            ids(&spoken),
            "{context}: transcript, {limit} at a time"
        );
        assert_eq!(
            walked(&format!("channel=memory&limit={limit}")),
            ids(&conversation.memory(client)),
            "{context}: latest memory of {}",
            CLIENTS[client]
        );
        if visible.is_empty() {
            return;
        }
        let n = self.dice.roll(visible.len());
        let pivot = &visible[n].id;
        let page = agent.get(&format!("{path}?channel=all&after={pivot}&limit={limit}")).expect_page();
        let end = visible.len().min(n + 1 + limit);
        assert_eq!(page.ids(), ids(&visible[n + 1..end]), "{context}: after");
        assert_eq!(page.after.is_some(), end < visible.len(), "{context}: after");
        let page =
            agent.get(&format!("{path}?channel=all&before={pivot}&limit={limit}")).expect_backward_page();
        let begin = n.saturating_sub(limit);
        assert_eq!(page.ids(), ids(&visible[begin..n]), "{context}: before");
        assert_eq!(page.before.is_some(), begin > 0, "{context}: before");
        let page = agent.get(&format!("{path}?channel=all&tail=true&limit={limit}")).expect_backward_page();
        assert_eq!(page.ids(), ids(&visible[visible.len().saturating_sub(limit)..]), "{context}: tail");
        let page = agent.get(&format!("{path}?channel=all&upToEntryId={pivot}&limit=200")).expect_page();
        assert_eq!(page.ids(), ids(&visible[..=n]), "{context}: up to");
    }
}

#[test]
fn random_trees_look_like_the_model_after_every_step() {
    for seed in [7_u64, 4_711, 0xDEAD_BEEF, 20_251_115] {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.step();
        }
        for at in 0..world.tree.len() {
            world.check(at);
        }
    }
}
