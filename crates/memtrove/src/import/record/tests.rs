//! Messages get their places, whatever answers what.

use super::*;
use proptest::prelude::*;

fn unplaced(id: usize, parent: Option<usize>, kept: bool) -> Unplaced {
    let message = Message {
        source_id: id.to_string(),
        parent: None,
        current: false,
        at: None,
        role: Speaker::User,
        text: id.to_string(),
        events: Vec::new(),
    };
    Unplaced {
        id: id.to_string(),
        parent: parent.map(|parent| parent.to_string()),
        message: kept.then_some(message),
    }
}

#[test]
fn what_is_not_kept_is_skipped_and_loops_are_counted() {
    let messages = vec![
        unplaced(3, Some(2), true),
        unplaced(0, None, false),
        unplaced(2, Some(1), false),
        unplaced(1, Some(0), true),
        unplaced(8, Some(9), true),
        unplaced(9, Some(8), true),
        unplaced(5, Some(77), true),
    ];
    let mut left_out = LeftOut::default();
    let found = placed(messages, Some("2"), &mut left_out);
    let told: Vec<_> = found.iter().map(|one| (one.source_id.as_str(), one.parent, one.current)).collect();
    assert_eq!(told, [("1", None, true), ("3", Some(0), false), ("5", None, false)]);
    assert_eq!(left_out.iter().map(|(_, times)| times).sum::<u64>(), 2);
}

proptest! {
    #[test]
    fn every_message_comes_after_the_one_it_answers(
        parents in prop::collection::vec((prop::option::of(0..40usize), any::<bool>()), 0..40),
    ) {
        let messages = parents.iter().enumerate().map(|(id, (parent, kept))| unplaced(id, *parent, *kept)).collect();
        let found = placed(messages, Some("3"), &mut LeftOut::default());
        for (place, message) in found.iter().enumerate() {
            prop_assert!(message.parent.is_none_or(|parent| parent < place));
        }
    }

    #[test]
    fn no_text_makes_a_time_panic(text in ".{0,40}", number in any::<f64>()) {
        instant(&text);
        time(&serde_json::json!({"t": number}), "t");
    }
}

#[test]
fn times_are_read_as_they_are_written() {
    let at = |text: &str| instant(text).map(|at| at.to_string());
    for text in
        ["2024-05-01T10:00:00Z", "2024-05-01T12:00:00+02:00", "2024-05-01 10:00:00", "2024-05-01T10:00:00"]
    {
        assert_eq!(at(text).as_deref(), Some("2024-05-01T10:00:00.000000Z"), "{text}");
    }
    assert_eq!(at("2024-05-01").as_deref(), Some("2024-05-01T00:00:00.000000Z"));
    assert_eq!(at("yesterday"), None);
    let seconds = time(&serde_json::json!({"t": 1714557600.5}), "t").unwrap();
    assert_eq!(seconds.as_micros(), 1_714_557_600_500_000);
}
