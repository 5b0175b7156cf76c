//! The whole service on a real store, against the contract's definitions written down as plainly as possible:
//! random trees, random appends, random syncs, two agents, and a clock that sometimes runs backwards.

use crate::world::caller;
use memtrove_core::conversations::{Channel, Entry};
use memtrove_core::identity::Caller;
use memtrove_core::{Clock, ConversationId, EntryId, Json};
use memtrove_service::conversations::{
    AppendRequest, ChannelFilter, CreateConversation, EpochFilter, ListEntries,
};
use memtrove_service::{Services, Settings};
use memtrove_testkit::clock::TestClock;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};
use std::sync::Arc;

const AGENTS: [&str; 2] = ["agent-a", "agent-b"];

#[derive(Debug, Clone)]
enum Step {
    History { conversation: usize },
    Memory { conversation: usize, agent: usize, items: Vec<u8> },
    Sync { conversation: usize, agent: usize, keep: usize, more: Vec<u8>, other_type: bool },
    Fork { parent: usize, at: usize, agent: usize },
    Blank { parent: usize },
    Time { micros: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let items = || prop::collection::vec(0u8..3, 0..3);
    let n = any::<usize>;
    let step = prop_oneof![
        3 => n().prop_map(|conversation| Step::History { conversation }),
        2 => (n(), 0..2usize, items()).prop_map(|(conversation, agent, items)| Step::Memory { conversation, agent, items }),
        5 => (n(), 0..2usize, 0..6usize, items(), prop::bool::weighted(0.1)).prop_map(
            |(conversation, agent, keep, more, other_type)| Step::Sync { conversation, agent, keep, more, other_type }),
        3 => (n(), n(), 0..2usize).prop_map(|(parent, at, agent)| Step::Fork { parent, at, agent }),
        1 => n().prop_map(|parent| Step::Blank { parent }),
        2 => (-1_000_000i64..2_000_000).prop_map(|micros| Step::Time { micros }),
    ];
    prop::collection::vec(step, 1..40)
}

/// An entry as the model remembers it.
#[derive(Debug, Clone, PartialEq)]
struct Remembered {
    id: EntryId,
    agent: Option<usize>,
    epoch: Option<i64>,
    content_type: String,
    items: Vec<Value>,
}

/// Each conversation with a copy of everything it sees.
struct Model {
    conversations: Vec<(ConversationId, Vec<Remembered>)>,
}

impl Model {
    fn memory(&self, conversation: usize, agent: usize) -> Vec<&Remembered> {
        self.conversations[conversation].1.iter().filter(|e| e.agent == Some(agent)).collect()
    }

    fn latest(&self, conversation: usize, agent: usize) -> (Option<i64>, Vec<&Remembered>) {
        let all = self.memory(conversation, agent);
        let epoch = all.iter().filter_map(|e| e.epoch).max();
        (epoch, all.into_iter().filter(|e| e.epoch == epoch).collect())
    }
}

struct World {
    services: Services,
    clock: Arc<TestClock>,
    user: Caller,
    agents: Vec<Caller>,
    /// The store and its folder live as long as this.
    _world: crate::world::World,
}

async fn world() -> World {
    let world = crate::world::World::new(Settings::default()).await;
    World {
        services: world.services.clone(),
        clock: world.clock.clone(),
        user: caller("alice", None),
        agents: AGENTS.iter().map(|agent| caller("alice", Some(agent))).collect(),
        _world: world,
    }
}

fn request(channel: Channel, content_type: &str, items: &[Value]) -> AppendRequest {
    AppendRequest {
        channel: Some(channel),
        content_type: Some(content_type.into()),
        content: Some(Json::of(&items).unwrap()),
        ..AppendRequest::default()
    }
}

fn remembered(entry: &Entry) -> Remembered {
    Remembered {
        id: entry.id,
        agent: (entry.channel == Channel::Memory).then(|| {
            AGENTS.iter().position(|a| entry.client_id.as_ref().is_some_and(|c| c.as_str() == *a)).unwrap()
        }),
        epoch: entry.epoch,
        content_type: entry.content_type.clone(),
        items: serde_json::from_str(entry.content.get()).unwrap(),
    }
}

impl World {
    async fn step(&self, model: &mut Model, step: Step) -> TestCaseResult {
        let api = &self.services.conversations;
        let count = model.conversations.len();
        match step {
            Step::Time { micros } => self.clock.advance_micros(micros),
            Step::History { conversation } => {
                let (id, view) = &mut model.conversations[conversation % count];
                let items = [json!({"role": "USER", "text": "hi"})];
                let entry = api
                    .append(&self.user, *id, request(Channel::History, "history", &items), None)
                    .await
                    .unwrap();
                view.push(remembered(&entry));
            }
            Step::Memory { conversation, agent, items } => {
                let conversation = conversation % count;
                let expected = model.latest(conversation, agent).0.unwrap_or(1);
                let (id, view) = &mut model.conversations[conversation];
                let items: Vec<Value> = items.iter().map(|n| json!(n)).collect();
                let entry = api
                    .append(&self.agents[agent], *id, request(Channel::Memory, "T", &items), None)
                    .await
                    .unwrap();
                prop_assert_eq!(entry.epoch, Some(expected));
                view.push(remembered(&entry));
            }
            Step::Sync { conversation, agent, keep, more, other_type } => {
                self.sync(model, conversation % count, agent, keep, &more, other_type).await?;
            }
            Step::Fork { parent, at, agent } => {
                let (id, view) = &model.conversations[parent % count];
                let visible: Vec<usize> =
                    (0..view.len()).filter(|i| view[*i].agent.is_none_or(|owner| owner == agent)).collect();
                let Some(at) = visible.get(at.checked_rem(visible.len()).unwrap_or(0)) else { return Ok(()) };
                let prefix = view[..*at].to_vec();
                let fork = api.fork(&self.agents[agent], *id, view[*at].id, None).await.unwrap();
                prop_assert_eq!(fork.forked_at_conversation_id, Some(*id));
                prop_assert_eq!(fork.forked_at_entry_id, prefix.last().map(|e| e.id));
                model.conversations.push((fork.id, prefix));
            }
            Step::Blank { parent } => {
                let parent = model.conversations[parent % count].0;
                let id = ConversationId(self.clock.new_id());
                let items = [json!({"role": "AI", "text": "new"})];
                let request = AppendRequest {
                    forked_at_conversation_id: Some(parent),
                    ..request(Channel::History, "history", &items)
                };
                let entry = api.append(&self.user, id, request, None).await.unwrap();
                model.conversations.push((id, vec![remembered(&entry)]));
            }
        }
        Ok(())
    }

    async fn sync(
        &self,
        model: &mut Model,
        conversation: usize,
        agent: usize,
        keep: usize,
        more: &[u8],
        other_type: bool,
    ) -> TestCaseResult {
        let api = &self.services.conversations;
        let content_type = if other_type { "U" } else { "T" };
        let (epoch, stored) = model.latest(conversation, agent);
        let flat: Vec<Value> = stored.iter().flat_map(|e| e.items.clone()).collect();
        let mixed = stored.iter().any(|e| e.content_type != content_type);
        let mut incoming: Vec<Value> =
            flat.iter().take(keep.max(flat.len().saturating_sub(keep))).cloned().collect();
        incoming.extend(more.iter().map(|n| json!(n)));

        // The contract's algorithm, on whole values.
        let (expected_epoch, no_op, incremented, written) = if !stored.is_empty() && mixed {
            (epoch.map(|e| e + 1), false, true, incoming.clone())
        } else if flat == incoming {
            (epoch, true, false, vec![])
        } else if incoming.starts_with(&flat) {
            (Some(epoch.unwrap_or(1)), false, false, incoming[flat.len()..].to_vec())
        } else {
            (epoch.map(|e| e + 1), false, true, incoming.clone())
        };

        let (id, view) = &mut model.conversations[conversation];
        let digest = api.request_digest(&self.agents[agent], content_type.as_bytes());
        let outcome = api
            .sync(&self.agents[agent], *id, request(Channel::Memory, content_type, &incoming), digest)
            .await
            .unwrap();
        prop_assert_eq!(
            (outcome.epoch, outcome.no_op, outcome.epoch_incremented),
            (expected_epoch, no_op, incremented)
        );
        prop_assert_eq!(outcome.entry.is_none(), no_op);
        if let Some(entry) = &outcome.entry {
            prop_assert_eq!(&remembered(entry).items, &written);
            view.push(remembered(entry));
        }
        Ok(())
    }

    /// Everything every agent can list is what the model remembers, by pages of any size and from both ends.
    async fn compare(&self, model: &Model) -> TestCaseResult {
        let api = &self.services.conversations;
        for (n, (id, view)) in model.conversations.iter().enumerate() {
            for (agent, caller) in self.agents.iter().enumerate() {
                let visible: Vec<Remembered> =
                    view.iter().filter(|e| e.agent.is_none_or(|owner| owner == agent)).cloned().collect();
                let list = |request: ListEntries| api.list_entries(caller, *id, request);
                let all =
                    ListEntries { channel: ChannelFilter::All, limit: Some(200), ..ListEntries::default() };
                let page = list(all.clone()).await.unwrap();
                prop_assert_eq!(page.data.iter().map(remembered).collect::<Vec<_>>(), visible.clone());
                prop_assert!(
                    page.data.is_sorted_by_key(|e| e.created_at),
                    "time never runs backwards in a tree"
                );

                let latest = ListEntries {
                    channel: ChannelFilter::Memory,
                    epoch: EpochFilter::Latest,
                    limit: Some(1000),
                    ..ListEntries::default()
                };
                let expected: Vec<Remembered> = model.latest(n, agent).1.into_iter().cloned().collect();
                prop_assert_eq!(
                    list(latest).await.unwrap().data.iter().map(remembered).collect::<Vec<_>>(),
                    expected
                );

                prop_assert_eq!(self.walk(caller, *id, true).await, ids(&visible));
                prop_assert_eq!(self.walk(caller, *id, false).await, ids(&visible));
            }
        }
        Ok(())
    }

    /// All ids by pages of three, forwards or backwards.
    async fn walk(&self, caller: &Caller, id: ConversationId, forwards: bool) -> Vec<EntryId> {
        let mut request = ListEntries {
            channel: ChannelFilter::All,
            limit: Some(3),
            tail: !forwards,
            ..ListEntries::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self.services.conversations.list_entries(caller, id, request.clone()).await.unwrap();
            let mut ids: Vec<EntryId> = page.data.iter().map(|e| e.id).collect();
            if forwards {
                found.append(&mut ids);
                let Some(after) = page.after else { return found };
                request.after = Some(after);
            } else {
                ids.append(&mut found);
                found = ids;
                let Some(before) = page.before.flatten() else { return found };
                request.tail = false;
                request.before = Some(before);
            }
        }
    }
}

fn ids(entries: &[Remembered]) -> Vec<EntryId> {
    entries.iter().map(|e| e.id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn the_service_agrees_with_the_contracts_definitions(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world().await;
            let root = world.services.conversations.create(&world.user, CreateConversation::default()).await.unwrap();
            let mut model = Model { conversations: vec![(root.id, vec![])] };
            for step in steps {
                world.step(&mut model, step).await?;
            }
            world.compare(&model).await
        })?;
    }
}
