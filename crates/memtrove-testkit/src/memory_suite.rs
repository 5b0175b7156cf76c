//! The behaviours that both halves of the memories' store have, on every engine and with every index, one named test each.
//!
//! A test file says how to make one, and passes:
//!
//! ```ignore
//! memtrove_testkit::memory_suite!(open);
//! ```
//!
//! where `open` is an `async fn() -> Fixture` with a half that holds nothing yet. To add a behaviour: write an
//! `async fn` in one of the files here and name it in the macro.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;
mod scanning;
mod searching;
mod writing;

pub use model::*;
pub use scanning::*;
pub use searching::*;
pub use writing::*;

use crate::clock::TestClock;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{
    AccessPolicy, Author, Conditions, Embedding, Filter, Kind, Layer, Lineage, MemberConditions, Memory,
    MemoryId, Mode, Policy, ScopeKey, State, Viewer,
};
use memtrove_core::recall::relevance::DEFAULT_THRESHOLD;
use memtrove_core::recall::terms::{self, EntryQuery};
use memtrove_core::recall::time_words::TimeWindow;
use memtrove_core::text::Analyzer;
use memtrove_core::{Clock, Timestamp};
use memtrove_recall::embed::{Calibration, QueryVector, Space};
use memtrove_service::Services;
use memtrove_service::memories::access::Writable;
use memtrove_service::memories::journal::{Actor, Entry};
use memtrove_service::memories::memory_store::{Half, MemoryPage, ScanQuery};
use memtrove_service::memories::scope_search::{Matches, ScopeQuery, Span};
use memtrove_service::memories::writing::{Write, WriteOutcome};
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

/// One `#[tokio::test]` for each behaviour, on halves that `$open` makes.
#[macro_export]
macro_rules! memory_suite {
    ($open:path) => {
        $crate::memory_suite!($open;
            a_half_says_what_it_can_do_and_that_it_is_well,
            an_entry_comes_back_as_it_was_written,
            an_unknown_id_is_nothing,
            a_new_version_takes_the_place_of_the_old_one,
            a_removed_entry_is_nowhere,
            a_stale_write_changes_nothing,
            writing_what_is_not_there_is_a_conflict,
            an_insert_that_is_repeated_does_no_harm,
            a_batch_is_done_whole_or_not_at_all,
            a_fact_is_stated_once_in_a_scope,
            a_request_under_a_known_key_is_answered_as_before,
            one_of_many_writers_of_a_version_wins,
            changes_that_are_tried_again_are_never_lost,
            tenants_never_meet,
            scopes_never_meet_whatever_they_are_called,
            a_page_is_newest_first,
            pages_together_are_the_whole,
            entries_that_come_and_go_disturb_no_page,
            what_has_expired_does_not_exist,
            embeddings_come_along_if_wanted,
            a_span_ends_at_its_instant,
            policies_hide_entries_from_lists_searches_and_counts,
            a_scan_agrees_with_a_plain_one,
            a_write_is_found_at_once,
            the_least_score_is_inclusive,
            a_filter_comes_before_the_limit,
            what_has_no_direction_is_similar_to_nothing,
            only_vectors_of_one_space_are_compared,
            words_are_found_without_any_vector,
            words_are_found_in_other_forms_and_though_a_letter_is_wrong,
            words_and_meaning_both_count,
            a_long_entry_is_found_by_its_best_piece,
            words_that_stand_together_outweigh_words_of_many_pieces,
            the_best_are_the_best_however_close_they_are,
            what_is_of_the_time_that_is_asked_about_is_found_among_much_else,
            everything_of_a_time_is_found_where_nothing_else_is_asked_for,
            among_equals_the_more_relevant_and_the_later_come_first,
            entries_that_may_conflict_are_all_named,
            searches_beside_writers_see_whole_entries,
            a_search_agrees_with_a_plain_one,
        );
    };
    ($open:path; $($behaviour:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                $crate::memory_suite::$behaviour($open().await).await;
            }
        )*
    };
}

/// The models of the suite's vectors: each has a space of its own.
pub(crate) const MODELS: [&str; 2] = ["openai:suite:8", "openai:other:4"];

/// Everything but working memory lasts.
const LASTING: [Kind; 6] =
    [Kind::Semantic, Kind::Session, Kind::Episodic, Kind::Procedural, Kind::UserPersonal, Kind::Archival];
const WORKING: [Kind; 1] = [Kind::Working];

/// A half under test.
pub struct Fixture {
    services: Services,
    /// The kinds that are kept with it.
    kinds: &'static [Kind],
    /// Whether every scope is given to the database before it is read.
    tended: bool,
    clock: TestClock,
    /// What has to live as long as the services.
    _world: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// The half of what lasts, and whatever it needs to live.
    pub fn durable(services: Services, world: impl Any + Send + Sync) -> Self {
        Self { services, kinds: &LASTING, tended: false, clock: TestClock::new(), _world: Box::new(world) }
    }

    /// The half of working memory.
    pub fn volatile(services: Services, world: impl Any + Send + Sync) -> Self {
        Self { kinds: &WORKING, ..Self::durable(services, world) }
    }

    /// The half of what lasts, whose scopes the database searches.
    pub fn in_database(services: Services, world: impl Any + Send + Sync) -> Self {
        Self { tended: true, ..Self::durable(services, world) }
    }

    fn half(&self) -> &Half {
        self.services.memories.store().of(self.kinds[0])
    }

    async fn tend(&self) {
        if self.tended {
            self.services.memories.tend_indexes().await.unwrap();
        }
    }

    /// A moment later than the one before.
    fn tick(&self) -> Timestamp {
        self.clock.advance_micros(1_000);
        self.clock.now()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// An entry that everybody with the scope sees, made now, with a vector of [`MODELS`]' first.
    fn entry(&self, scope: &ScopeKey, content: &str, vector: &[f32]) -> Memory {
        let now = self.tick();
        Memory {
            id: MemoryId(self.clock.new_id()),
            scope: scope.clone(),
            kind: self.kinds[0],
            origin_kind: None,
            content: content.to_owned(),
            metadata: Map::new(),
            state: State::Active,
            policy: AccessPolicy::new(Policy::Organization),
            created_by: Author { user: Some("maker".into()), client: Some("suite".into()) },
            created_at: now,
            updated_at: now,
            occurred_at: None,
            expires_at: None,
            ttl_seconds: None,
            version: 1,
            anchor: now,
            fact: None,
            lineage: Lineage::default(),
            access_count: 0,
            last_accessed_at: None,
            embedding: Some(Embedding::of_whole(MODELS[0].into(), unit(vector))),
        }
    }

    /// The next version of an entry.
    fn next(&self, memory: &Memory, change: impl FnOnce(&mut Memory)) -> Memory {
        let mut next = memory.clone();
        next.version += 1;
        next.updated_at = self.tick();
        change(&mut next);
        next
    }

    fn journal(&self, writes: usize) -> Entry {
        Entry {
            actor: Arc::new(Actor::system("suite")),
            at: self.now(),
            ids: (0..writes).map(|_| self.clock.new_id()).collect(),
            milestones: Vec::new(),
            remember: None,
            audited: true,
            sources: Vec::new(),
            reason: "suite",
        }
    }

    async fn write(&self, writes: Vec<Write>) -> WriteOutcome {
        let journal = self.journal(writes.len());
        self.half().write(writes, journal).await.unwrap()
    }

    async fn insert(&self, memories: impl IntoIterator<Item = Memory>) {
        let writes: Vec<Write> = memories.into_iter().map(|memory| Write::Insert(Arc::new(memory))).collect();
        assert_eq!(self.write(writes).await, WriteOutcome::Done);
    }

    async fn replace(&self, memory: Memory, expected: i64) -> WriteOutcome {
        let current = at_version(expected, &memory);
        self.write(vec![Write::Replace { memory: Arc::new(memory), current }]).await
    }

    async fn remove(&self, memory: &Memory) -> WriteOutcome {
        self.write(vec![Write::Remove(Writable::by_task(memory.clone()))]).await
    }

    async fn get(&self, memory: &Memory) -> Option<Memory> {
        self.half().get(memory.scope.tenant(), memory.id).await.unwrap()
    }

    async fn scan(&self, scopes: &[ScopeKey], query: ScanQuery) -> MemoryPage {
        self.scan_spans(spans(scopes), query).await
    }

    async fn scan_spans(&self, spans: Vec<Span>, query: ScanQuery) -> MemoryPage {
        self.tend().await;
        self.half().scan(spans, query).await.unwrap()
    }

    async fn nearest(&self, scopes: &[ScopeKey], query: ScopeQuery) -> Matches {
        self.nearest_in(spans(scopes), query).await
    }

    /// What matches. What was loaded with it is of the same moment, whatever is written meanwhile.
    async fn nearest_in(&self, spans: Vec<Span>, query: ScopeQuery) -> Matches {
        self.tend().await;
        let loaded = self.half().matches(spans, query).await.unwrap();
        for matched in &loaded.matches.matches {
            let memory = &loaded.memories[&matched.id];
            assert_eq!(memory.updated_at, matched.updated_at, "found and loaded at different moments");
        }
        loaded.matches
    }

    /// Everything that an ordinary viewer sees.
    fn everything(&self) -> ScanQuery {
        ScanQuery {
            viewer: viewer("somebody"),
            conditions: Conditions::default(),
            after: None,
            limit: 1_000,
            with_embeddings: false,
            now: self.now(),
        }
    }

    /// A search by meaning alone that nothing falls through.
    fn like(&self, vector: &[f32]) -> ScopeQuery {
        ScopeQuery {
            vectors: vec![asked(MODELS[0], vector)],
            terms: EntryQuery::default(),
            mode: Mode::Semantic,
            words_required: false,
            threshold: 0.0,
            farthest: None,
            time: None,
            time_alone: false,
            faint_terms: Vec::new(),
            want: 1_000,
            viewer: viewer("somebody"),
            conditions: Conditions::default(),
            now: self.now(),
        }
    }
}

/// A query as a vector of the space of a model; scores are cosines.
fn asked(model: &str, vector: &[f32]) -> QueryVector {
    QueryVector {
        space: Space::of(model).unwrap(),
        vector: unit(vector),
        calibration: Calibration::identity(),
        understood: 1.0,
    }
}

/// The words of a query.
fn words(text: &str) -> EntryQuery {
    terms::query_for_entries(&Analyzer::new("english").unwrap(), text)
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().map(|x| if norm == 0.0 { 0.0 } else { x / norm }).collect()
}

/// An eight-dimensional direction.
fn towards(axis: usize) -> Vec<f32> {
    (0..8).map(|at| if at == axis { 1.0 } else { 0.0 }).collect()
}

fn user(name: &str) -> ScopeKey {
    scope("acme", Layer::User, &[name])
}

fn scope(tenant: &str, layer: Layer, values: &[&str]) -> ScopeKey {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    ScopeKey::listed(Tenant::listed(tenant.to_owned()), layer, values).unwrap()
}

fn spans(scopes: &[ScopeKey]) -> Vec<Span> {
    scopes.iter().map(|scope| Span { scope: scope.clone(), until: None }).collect()
}

fn viewer(user: &str) -> Viewer {
    Viewer { user: Some(user.into()), client: Some("suite".into()), team: None, all: false }
}

/// An entry as somebody read it at a version.
fn at_version(version: i64, memory: &Memory) -> Writable {
    Writable::by_task(Memory { version, ..memory.clone() })
}

/// The filter of these `tags` and `custom` conditions.
fn filter(members: &Value) -> Filter {
    Filter {
        tags: serde_json::from_value(members["tags"].clone()).unwrap_or_default(),
        custom: MemberConditions::new(members["custom"].as_object().cloned().unwrap_or_default()).unwrap(),
        ..Filter::default()
    }
}

fn metadata(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("not metadata: {other}"),
    }
}

fn contents(page: &MemoryPage) -> Vec<&str> {
    page.memories.iter().map(|memory| memory.content.as_str()).collect()
}

/// The ids of hits, the best first.
fn found(hits: &Matches) -> Vec<MemoryId> {
    let mut matches: Vec<_> = hits.matches.iter().collect();
    matches.sort_by(|a, b| a.by_precedence(b));
    matches.into_iter().map(|matched| matched.id).collect()
}
