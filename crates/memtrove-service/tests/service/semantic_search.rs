//! Searching by meaning: whatever was written is found at once, and whatever is gone is not, however far the work in the
//! background has come.

use crate::world::{World, caller, principal};
use memtrove_core::conversations::Channel;
use memtrove_core::identity::Caller;
use memtrove_core::{ConversationId, EntryId, Json};
use memtrove_recall::embed::static_model::StaticModel;
use memtrove_service::conversations::{
    AppendRequest, CreateConversation, IndexItem, SearchRequest, SearchType,
};
use memtrove_service::{SearchSettings, Settings};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::json;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

const WORDS: [&str; 8] = ["walrus", "piano", "bicycle", "volcano", "kitchen", "guitar", "teacher", "ocean"];

#[derive(Debug, Clone)]
enum Step {
    Append { tree: usize, branch: usize, words: Vec<usize> },
    Start,
    Fork { tree: usize, entry: usize },
    Index { tree: usize, entry: usize, words: Vec<usize> },
    Delete { tree: usize },
    Restore { tree: usize },
    Evict,
    TakeIn,
    Search { word: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let n = any::<usize>;
    let words = || prop::collection::vec(0..WORDS.len(), 1..4);
    let step = prop_oneof![
        8 => (n(), n(), words()).prop_map(|(tree, branch, words)| Step::Append { tree, branch, words }),
        1 => Just(Step::Start),
        1 => (n(), n()).prop_map(|(tree, entry)| Step::Fork { tree, entry }),
        4 => (n(), n(), words()).prop_map(|(tree, entry, words)| Step::Index { tree, entry, words }),
        1 => n().prop_map(|tree| Step::Delete { tree }),
        1 => n().prop_map(|tree| Step::Restore { tree }),
        1 => Just(Step::Evict),
        3 => Just(Step::TakeIn),
        5 => (0..WORDS.len()).prop_map(|word| Step::Search { word }),
    ];
    prop::collection::vec(step, 1..40)
}

fn text(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

/// A tree as it should be found.
#[derive(Default)]
struct Tree {
    branches: Vec<ConversationId>,
    texts: BTreeMap<EntryId, (ConversationId, String)>,
    is_deleted: bool,
}

struct Model {
    world: World,
    alice: Caller,
    trees: Vec<Tree>,
}

impl Model {
    async fn new() -> Self {
        // Nothing is similar enough, so `auto` returns what has the word.
        let search = SearchSettings { min_score: Some(2.0), ..SearchSettings::default() };
        let world = World::new(Settings { search, ..Settings::default() }).await;
        Self { world, alice: caller("alice", None), trees: Vec::new() }
    }

    fn live(&mut self, number: usize) -> Option<&mut Tree> {
        let mut live: Vec<&mut Tree> = self.trees.iter_mut().filter(|tree| !tree.is_deleted).collect();
        let count = live.len().max(1);
        (!live.is_empty()).then(|| live.swap_remove(number % count))
    }

    async fn step(&mut self, step: Step) -> TestCaseResult {
        let api = self.world.services.conversations.clone();
        let (alice, admin) = (self.alice.clone(), principal("admin", None));
        match step {
            Step::Start => {
                let root = api.create(&alice, CreateConversation::default()).await.unwrap();
                self.trees.push(Tree { branches: vec![root.id], ..Tree::default() });
            }
            Step::Append { tree, branch, words } => {
                let Some(tree) = self.live(tree) else { return Ok(()) };
                let (id, text) = (tree.branches[branch % tree.branches.len()], text(&words));
                let request = AppendRequest {
                    channel: Some(Channel::History),
                    content_type: Some("history".into()),
                    content: Some(Json::of(&json!([{"role": "USER", "text": text}])).unwrap()),
                    ..AppendRequest::default()
                };
                let entry = api.append(&alice, id, request, None).await.unwrap();
                tree.texts.insert(entry.id, (id, text));
            }
            Step::Fork { tree, entry } => {
                let Some(tree) = self.live(tree) else { return Ok(()) };
                let Some((at, (id, _))) = nth(&tree.texts, entry) else { return Ok(()) };
                let fork = api.fork(&alice, *id, *at, None).await.unwrap();
                tree.branches.push(fork.id);
            }
            Step::Index { tree, entry, words } => {
                let Some(tree) = self.live(tree) else { return Ok(()) };
                let Some((entry, (conversation, _))) = nth(&tree.texts, entry) else { return Ok(()) };
                let (entry, conversation) = (*entry, *conversation);
                let item = IndexItem {
                    conversation_id: Some(conversation),
                    entry_id: Some(entry),
                    indexed_content: Some(text(&words)),
                };
                api.index(&admin, vec![item]).await.unwrap();
                tree.texts.insert(entry, (conversation, text(&words)));
            }
            Step::Delete { tree } => {
                let Some(tree) = self.live(tree) else { return Ok(()) };
                tree.is_deleted = true;
                api.delete(&alice, tree.branches[0]).await.unwrap();
            }
            Step::Restore { tree } => {
                let count = self.trees.len().max(1);
                let Some(tree) = self.trees.get_mut(tree % count) else { return Ok(()) };
                if std::mem::take(&mut tree.is_deleted) {
                    api.admin_restore(&admin, tree.branches[0], None).await.unwrap();
                }
            }
            Step::Evict => {
                self.world.clock.advance_micros(10);
                let (progress, mut listener) = mpsc::channel(1);
                let listening = tokio::spawn(async move { while listener.recv().await.is_some() {} });
                api.evict(&api.eviction(alice.tenant().clone(), 1), progress).await.unwrap();
                listening.await.unwrap();
                self.trees.retain(|tree| !tree.is_deleted);
            }
            Step::TakeIn => self.world.services.run_due_tasks().await.unwrap(),
            Step::Search { word } => self.compare(WORDS[word]).await?,
        }
        Ok(())
    }

    /// What is found, each entry with its score.
    async fn found(&self, query: &str, search_type: SearchType) -> BTreeMap<EntryId, f64> {
        let request = SearchRequest {
            query: Some(query.to_owned()),
            search_type,
            limit: Some(200),
            ..SearchRequest::default()
        };
        let page = self.world.services.conversations.search(&self.alice, request).await.unwrap();
        let found: BTreeMap<EntryId, f64> = page.data.iter().map(|hit| (hit.entry_id, hit.score)).collect();
        assert_eq!(found.len(), page.data.len(), "an entry was found twice");
        found
    }

    async fn compare(&self, query: &str) -> TestCaseResult {
        let trees = self.trees.iter().filter(|tree| !tree.is_deleted);
        let texts: BTreeMap<EntryId, &str> =
            trees.flat_map(|tree| tree.texts.iter().map(|(id, (_, text))| (*id, text.as_str()))).collect();

        let similar = self.found(query, SearchType::Semantic).await;
        prop_assert_eq!(similar.keys().collect::<Vec<_>>(), texts.keys().collect::<Vec<_>>());
        for (id, score) in similar {
            let expected = cosine(query, texts[&id]);
            prop_assert!(
                (score - expected).abs() < 0.02,
                "{query} ~ {}: {score}, not {expected}",
                texts[&id]
            );
        }

        let with_word: Vec<EntryId> =
            texts.iter().filter(|(_, text)| text.contains(query)).map(|(id, _)| *id).collect();
        for search_type in [SearchType::Auto, SearchType::FullText] {
            let found = self.found(query, search_type).await;
            prop_assert_eq!(found.into_keys().collect::<Vec<_>>(), with_word.clone(), "{:?}", search_type);
        }
        Ok(())
    }
}

fn nth<K, V>(map: &BTreeMap<K, V>, number: usize) -> Option<(&K, &V)> {
    map.iter().nth(number % map.len().max(1))
}

fn cosine(one: &str, other: &str) -> f64 {
    let (one, other) = (StaticModel::vector(one), StaticModel::vector(other));
    one.iter().zip(&other).map(|(a, b)| f64::from(a * b)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_search_finds_what_is_there_and_nothing_else(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut model = Model::new().await;
            model.step(Step::Start).await?;
            for step in steps {
                model.step(step).await?;
            }
            model.compare(WORDS[0]).await
        })?;
    }
}
