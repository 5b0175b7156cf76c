use super::*;
use crate::memories::testing::memory;

const AT: Timestamp = Timestamp::from_micros(100);

fn admitted(conditions: &Conditions) -> Vec<Kind> {
    let state = |kind| if kind == Kind::Archival { State::Archived } else { State::Active };
    Kind::ALL.into_iter().filter(|kind| conditions.admits_head(*kind, state(*kind), AT)).collect()
}

#[test]
fn archived_entries_are_hidden_unless_asked_for() {
    let live = &Kind::ALL[..6];
    let kinds = |kinds: &[Kind]| Conditions { kinds: Some(kinds.to_vec()), ..Conditions::default() };
    let archived = Conditions { state: Some(State::Archived), ..Conditions::default() };
    assert_eq!(admitted(&Conditions::default()), live);
    assert_eq!(admitted(&Conditions { include_archived: true, ..Conditions::default() }), Kind::ALL);
    assert_eq!(admitted(&archived), [Kind::Archival]);
    assert_eq!(admitted(&kinds(&[Kind::Semantic])), [Kind::Semantic]);
    assert_eq!(admitted(&kinds(&[Kind::Semantic, Kind::Archival])), [Kind::Semantic, Kind::Archival]);
    let both = Conditions { include_archived: true, ..kinds(&[Kind::Semantic]) };
    assert_eq!(admitted(&both), [Kind::Semantic, Kind::Archival]);
}

#[test]
fn a_state_is_exact() {
    let decayed = Conditions { state: Some(State::Decayed), include_archived: true, ..Conditions::default() };
    assert!(decayed.admits_head(Kind::Semantic, State::Decayed, AT));
    assert!(!decayed.admits_head(Kind::Semantic, State::Active, AT));
    assert!(!decayed.admits_head(Kind::Archival, State::Archived, AT));
}

#[test]
fn both_ends_of_a_range_belong_to_it() {
    let range = |from: Option<i64>, to: Option<i64>| Conditions {
        from: from.map(Timestamp::from_micros),
        to: to.map(Timestamp::from_micros),
        ..Conditions::default()
    };
    for (from, to, inside) in [
        (Some(100), Some(100), true),
        (Some(101), None, false),
        (None, Some(99), false),
        (Some(99), Some(101), true),
        (None, None, true),
    ] {
        assert_eq!(range(from, to).admits_head(Kind::Semantic, State::Active, AT), inside, "{from:?} {to:?}");
    }
}

#[test]
fn time_is_when_it_happened_where_that_is_known() {
    let conditions = Conditions { from: Some(AT), ..Conditions::default() };
    let made_early = memory(1, "x");
    assert!(!conditions.admits(&made_early));
    assert!(conditions.admits(&Memory { occurred_at: Some(AT), kind: Kind::Episodic, ..made_early }));
}

#[test]
fn what_admits_the_same_has_the_same_fingerprint() {
    let all: Vec<Kind> = Kind::ALL[..6].to_vec();
    let named = Conditions { kinds: Some(all), ..Conditions::default() };
    assert_eq!(named.fingerprint(), Conditions::default().fingerprint());
    let archived = Conditions { include_archived: true, ..Conditions::default() };
    assert_ne!(archived.fingerprint(), Conditions::default().fingerprint());
}
