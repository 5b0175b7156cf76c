use super::*;
use crate::memories::testing::{members, memory, scope};
use proptest::prelude::*;
use serde_json::json;

const DAY: i64 = 86_400_000_000;

fn day(days: f64) -> Timestamp {
    Timestamp::from_micros((days * DAY as f64) as i64)
}

fn with(metadata: serde_json::Value) -> Memory {
    Memory { metadata: members(metadata), ..memory(1, "text") }
}

fn relevance(rules: &DecayRules, memory: &Memory, at: Timestamp) -> f64 {
    rules.relevance(memory.scope.layer(), &Fading::of(memory), at)
}

#[test]
fn relevance_fades_by_the_day_and_by_parts_of_it() {
    let rules = DecayRules::default();
    for (metadata, days, expected) in [
        (json!({}), 0.0, 1.0),
        (json!({}), 1.0, 0.99),
        (json!({}), 10.0, 0.99f64.powi(10)),
        (json!({}), 0.5, 0.99f64.sqrt()),
        (json!({}), -3.0, 1.0),
        (json!({"relevance": 0.8}), 1.0, 0.8 * 0.99),
        (json!({"relevance": 0}), 1.0, 0.0),
        (json!({"decayFactor": 10}), 1.0, 0.9),
        (json!({"decayFactor": 0}), 1000.0, 1.0),
    ] {
        let found = relevance(&rules, &with(metadata.clone()), day(days));
        assert!((found - expected).abs() < 1e-12, "{metadata} after {days} days: {found}, not {expected}");
    }
    let all_at_once = DecayRules { rate_per_day: 0.5, ..rules };
    let entry = with(json!({"decayFactor": 10}));
    assert_eq!(relevance(&all_at_once, &entry, day(0.0)), 1.0, "nothing to the power of nothing is one");
    assert_eq!(relevance(&all_at_once, &entry, day(0.001)), 0.0, "no rate is above one");
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    let rules = DecayRules::default();
    let entry = Memory { anchor: Timestamp::from_micros(i64::MIN), ..memory(1, "text") };
    assert_eq!(relevance(&rules, &entry, Timestamp::from_micros(i64::MAX)), 0.0);
}

#[test]
fn reads_show_the_initial_relevance_while_decay_is_off() {
    let entry = with(json!({"relevance": 0.9}));
    let shown = |enabled| {
        DecayRules { enabled, ..DecayRules::default() }.shown(Layer::User, &Fading::of(&entry), day(100.0))
    };
    assert_eq!(shown(false), 0.9);
    assert!(shown(true) < 0.5);
}

#[test]
fn a_pass_finds_the_state_by_the_relevance() {
    let rules = DecayRules::default();
    for (initial, embedded, state) in [
        (1.0, true, State::Active),
        (0.5, true, State::Active),
        (0.499, true, State::Decayed),
        (0.1, true, State::Decayed),
        (0.099, true, State::Archived),
        (1.0, false, State::Created),
        (0.3, false, State::Decayed),
        (0.0, false, State::Archived),
    ] {
        for before in [State::Created, State::Active, State::Decayed] {
            let entry = Memory { state: before, ..with(json!({"relevance": initial})) };
            let found = rules.judge(&entry, embedded, day(0.0)).map(|judgement| judgement.state);
            assert_eq!(found, Some(state), "from {initial}, {before:?}");
        }
    }
}

#[test]
fn some_entries_do_not_fade() {
    let rules = DecayRules::default();
    let pointer = json!({"knowledgePointer": {"sourceType": "adr"}});
    let entry = memory(1, "text");
    for (exempt, why) in [
        (Memory { scope: scope(Layer::Org), ..entry.clone() }, "an exempt layer"),
        (Memory { kind: Kind::Working, ..entry.clone() }, "working entries expire"),
        (Memory { kind: Kind::Session, ..entry.clone() }, "session entries expire"),
        (Memory { kind: Kind::Archival, state: State::Archived, ..entry.clone() }, "archived already"),
        (with(pointer), "its source rules"),
        (with(json!({"decayFactor": 0})), "never decays"),
    ] {
        assert_eq!(rules.judge(&exempt, true, day(10_000.0)), None, "{why}");
        if exempt.state != State::Archived {
            assert_eq!(relevance(&rules, &exempt, day(10_000.0)), 1.0, "{why}");
        }
    }
    let none_exempt = DecayRules { exempt_layers: Vec::new(), ..rules };
    let company = Memory { scope: scope(Layer::Company), ..entry };
    assert_eq!(
        none_exempt.judge(&company, true, day(10_000.0)).map(|judgement| judgement.state),
        Some(State::Archived)
    );
}

#[test]
fn a_decayed_entry_recovers_when_the_rate_or_the_time_does() {
    let entry = Memory { state: State::Decayed, ..memory(1, "text") };
    let state = |rate_per_day, at| {
        let rules = DecayRules { rate_per_day, ..DecayRules::default() };
        rules.judge(&entry, true, day(at)).map(|judgement| judgement.state)
    };
    assert_eq!(state(0.01, 100.0), Some(State::Decayed));
    assert_eq!(state(0.001, 100.0), Some(State::Active));
    assert_eq!(state(0.01, 10.0), Some(State::Active), "a pass as of an earlier day");
}

proptest! {
    #[test]
    fn passes_are_idempotent(
        initial in 0.0f64..=1.0,
        factor in 0.0f64..=10.0,
        rate_per_day in 0.0f64..=1.0,
        mut days in prop::collection::vec(-5.0f64..400.0, 1..6),
        repeats in 1usize..4,
    ) {
        let rules = DecayRules { rate_per_day, ..DecayRules::default() };
        let pass = |entry: &mut Memory, at: f64| {
            if let Some(Judgement { state, .. }) = rules.judge(entry, true, day(at)) {
                if state == State::Archived { entry.archive(day(at)) } else { entry.state = state }
            }
        };
        let entry = with(json!({"relevance": initial, "decayFactor": factor}));
        days.sort_by(f64::total_cmp);
        let (mut often, mut once) = (entry.clone(), entry);
        for at in &days {
            for _ in 0..repeats {
                pass(&mut often, *at);
            }
        }
        pass(&mut once, days[days.len() - 1]);
        prop_assert_eq!(often.state, once.state);
        let at = day(days[days.len() - 1]);
        prop_assert_eq!(relevance(&rules, &often, at), relevance(&rules, &once, at));
        prop_assert!((0.0..=1.0).contains(&relevance(&rules, &once, at)));
    }
}
