//! Random entries and random questions, asked of the half and of an implementation too simple to be wrong.

use super::*;
use crate::steps::Dice;
use memtrove_core::memories::Position;
use memtrove_core::memories::merge::Match;
use memtrove_core::recall::relevance::Relevance;
use serde_json::json;
use std::collections::BTreeMap;

fn any_vector(dice: &mut Dice, dimensions: usize) -> Vec<f32> {
    (0..dimensions).map(|_| dice.roll(2001) as f32 / 1000.0 - 1.0).collect()
}

const NAMES: [&str; 3] = ["ann", "bob", "carol"];
const TAGS: [&str; 3] = ["red", "green", "blue"];

/// What there should be.
struct Model {
    scopes: Vec<ScopeKey>,
    entries: BTreeMap<MemoryId, Memory>,
}

impl Model {
    fn new() -> Self {
        let scopes = vec![
            user("u"),
            scope("acme", Layer::Session, &["u", "s"]),
            scope("acme", Layer::Agent, &["a", "u"]),
        ];
        Self { scopes, entries: BTreeMap::new() }
    }

    /// Does something to the half and to the model.
    async fn step(&mut self, fixture: &Fixture, dice: &mut Dice) {
        let known: Vec<MemoryId> = self.entries.keys().copied().collect();
        match dice.roll(4) {
            0 if !known.is_empty() => {
                let before = self.entries[dice.pick(&known)].clone();
                let mut after = fixture.next(&before, |_| ());
                Self::shape(fixture, &mut after, dice);
                assert_eq!(fixture.replace(after.clone(), before.version).await, WriteOutcome::Done);
                self.entries.insert(after.id, after);
            }
            1 if known.len() > 20 => {
                let gone = self.entries.remove(dice.pick(&known)).unwrap();
                assert_eq!(fixture.remove(&gone).await, WriteOutcome::Done);
            }
            _ => {
                let mut memory = fixture.entry(dice.pick(&self.scopes), "", &[]);
                Self::shape(fixture, &mut memory, dice);
                fixture.insert([memory.clone()]).await;
                self.entries.insert(memory.id, memory);
            }
        }
    }

    /// Gives an entry random content.
    fn shape(fixture: &Fixture, memory: &mut Memory, dice: &mut Dice) {
        let now = fixture.now();
        memory.kind = *dice.pick(fixture.kinds);
        memory.state = match memory.kind {
            Kind::Archival => State::Archived,
            _ => *dice.pick(&[State::Active, State::Active, State::Decayed]),
        };
        memory.content = format!("note {}", dice.roll(1000));
        memory.metadata = metadata(
            json!({"tags": [dice.pick(&TAGS)], "size": dice.roll(5), "relevance": dice.roll(3) as f64 / 4.0}),
        );
        memory.policy =
            AccessPolicy::new(*dice.pick(&[Policy::Organization, Policy::Public, Policy::Private]));
        memory.created_by = Author { user: Some((*dice.pick(&NAMES)).to_owned()), client: None };
        memory.expires_at = (dice.roll(4) == 0).then(|| now.saturating_add_micros(dice.roll(400_000) as i64));
        memory.ttl_seconds = memory.expires_at.map(|_| 1);
        memory.embedding = match dice.roll(8) {
            0 => None,
            1 => Some(Embedding::of_whole(MODELS[1].into(), unit(&any_vector(dice, 4)))),
            2 => Some(Embedding::of_whole(MODELS[0].into(), vec![0.0; 8])),
            _ => Some(Embedding::of_whole(MODELS[0].into(), unit(&any_vector(dice, 8)))),
        };
        if memory.embedding.is_none() && memory.state != State::Archived {
            memory.state = State::Created;
        }
    }

    fn conditions(&self, fixture: &Fixture, dice: &mut Dice) -> Conditions {
        let instants: Vec<Timestamp> = self.entries.values().map(Memory::at).collect();
        let filters = [
            json!({}),
            json!({}),
            json!({"tags": [dice.pick(&TAGS)]}),
            json!({"custom": {"size": {"$gte": 2}}}),
        ];
        Conditions {
            kinds: (dice.roll(3) == 0).then(|| vec![*dice.pick(fixture.kinds), *dice.pick(fixture.kinds)]),
            include_archived: dice.roll(2) == 0,
            from: (dice.roll(4) == 0).then(|| *dice.pick(&instants)),
            to: (dice.roll(4) == 0).then(|| *dice.pick(&instants)),
            state: (dice.roll(6) == 0).then(|| *dice.pick(&[State::Active, State::Decayed, State::Archived])),
            filter: filter(dice.pick(&filters)),
        }
    }

    /// The entries of these scopes that a viewer sees now.
    fn visible<'a>(
        &'a self,
        spans: &'a [Span],
        viewer: &'a Viewer,
        conditions: &'a Conditions,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Memory> {
        self.entries.values().filter(move |memory| {
            let span = spans.iter().find(|span| span.scope == memory.scope);
            span.is_some_and(|span| span.until.is_none_or(|until| memory.created_at <= until))
                && memory.is_live(now)
                && viewer.sees(&memory.policy, &memory.created_by)
                && conditions.admits(memory)
        })
    }

    fn spans(&self, dice: &mut Dice) -> Vec<Span> {
        let instants: Vec<Timestamp> = self.entries.values().map(|memory| memory.created_at).collect();
        let mut chosen: Vec<Span> = self
            .scopes
            .iter()
            .filter_map(|scope| {
                let until = (dice.roll(4) == 0).then(|| *dice.pick(&instants));
                (dice.roll(3) > 0).then(|| Span { scope: scope.clone(), until })
            })
            .collect();
        if chosen.is_empty() {
            chosen.push(Span { scope: self.scopes[0].clone(), until: None });
        }
        chosen
    }
}

pub async fn a_scan_agrees_with_a_plain_one(fixture: Fixture) {
    let (mut dice, mut model) = (Dice(0xface), Model::new());
    for round in 0..60 {
        for _ in 0..4 {
            model.step(&fixture, &mut dice).await;
        }
        let spans = model.spans(&mut dice);
        let viewer = viewer(NAMES[dice.roll(3)]);
        let conditions = model.conditions(&fixture, &mut dice);
        let now = fixture.now().saturating_add_micros(dice.roll(200_000) as i64);
        let mut expected: Vec<Memory> = model.visible(&spans, &viewer, &conditions, now).cloned().collect();
        expected.sort_by(|a, b| Position::of(a).compare(&Position::of(b)));
        let total = expected.len();
        let after = (dice.roll(2) == 0 && total > 0).then(|| Position::of(&expected[dice.roll(total)]));
        if let Some(after) = after {
            expected.retain(|memory| after.compare(&Position::of(memory)).is_lt());
        }
        let limit = 1 + dice.roll(30);
        expected.truncate(limit);

        let query = ScanQuery { viewer, conditions, after, limit, with_embeddings: true, now };
        let page = fixture.scan_spans(spans, query.clone()).await;

        assert_eq!(page.memories, expected, "round {round}: {query:?}");
        assert_eq!(page.total, total, "round {round}: {query:?}");
    }
}

pub async fn a_search_agrees_with_a_plain_one(fixture: Fixture) {
    let (mut dice, mut model) = (Dice(0xcafe), Model::new());
    for round in 0..60 {
        for _ in 0..4 {
            model.step(&fixture, &mut dice).await;
        }
        let spans = model.spans(&mut dice);
        let vectors =
            [asked(MODELS[0], &any_vector(&mut dice, 8)), asked(MODELS[1], &any_vector(&mut dice, 4))];
        let vectors = vectors[..1 + dice.roll(2)].to_vec();
        let now = fixture.now().saturating_add_micros(dice.roll(200_000) as i64);
        let query = ScopeQuery {
            vectors,
            threshold: *dice.pick(&[0.0, 0.0, 0.15, 0.4]),
            want: 1 + dice.roll(20),
            viewer: viewer(NAMES[dice.roll(3)]),
            conditions: model.conditions(&fixture, &mut dice),
            now,
            ..fixture.like(&[])
        };
        let cosine = |memory: &Memory| {
            let embedding = memory.embedding.as_ref()?;
            let space = Space::of(&embedding.model)?;
            let vector = query.vectors.iter().find(|vector| vector.space == space)?;
            Some(
                vector
                    .vector
                    .iter()
                    .zip(&embedding.vector)
                    .map(|(a, b)| f64::from(*a) * f64::from(*b))
                    .sum::<f64>(),
            )
        };
        let mut expected: Vec<Match> = model
            .visible(&spans, &query.viewer, &query.conditions, now)
            .filter_map(|memory| {
                let cosine = cosine(memory)?;
                Some(Match {
                    id: memory.id,
                    key: 0,
                    layer: memory.scope.layer(),
                    evidence: Relevance::of_meaning(cosine),
                    cosine,
                    relevance: memory.number("relevance").unwrap(),
                    at: memory.told_at(),
                    is_dated: memory.at() != memory.created_at,
                    updated_at: memory.updated_at,
                    conflict_key: None,
                    overridden_by: None,
                })
            })
            .filter(|matched| matched.score() >= query.threshold)
            .collect();
        let total = expected.len();
        expected.sort_by(Match::by_score);

        let hits = fixture.nearest_in(spans.clone(), query.clone()).await;

        assert_eq!((hits.total, !hits.inexact), (total, true), "round {round}: {query:?}");
        // Every scope of the model is of another layer.
        for layer in spans.iter().map(|span| span.scope.layer()) {
            let mut near: Vec<&Match> = hits.matches.iter().filter(|near| near.layer == layer).collect();
            near.sort_by(|a, b| a.by_score(b));
            let best = expected.iter().filter(|matched| matched.layer == layer);
            let best: Vec<&Match> = best.take(query.want).collect();
            assert_eq!(near.len(), best.len(), "round {round}: {query:?}");
            for (near, best) in near.iter().zip(best) {
                assert!(
                    (near.score() - best.score()).abs() < 1e-5,
                    "round {round}: {near:?} is not {best:?}"
                );
                let same =
                    (near.id, near.relevance, near.updated_at) == (best.id, best.relevance, best.updated_at);
                assert!(same, "round {round}: {near:?} is not {best:?}");
            }
        }
    }
}
