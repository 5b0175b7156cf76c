use super::*;
use crate::memories::Fact;
use crate::memories::requests::code;
use crate::memories::testing::memory;
use proptest::prelude::*;

const KEY: CursorKey = [7; 32];
const LIST: Fingerprint = Fingerprint([1; 32]);
const OTHER: Fingerprint = Fingerprint([2; 32]);

fn position(at: i64, id: u128) -> Position {
    Position { at: Timestamp::from_micros(at), id: MemoryId(Uuid::from_u128(id)) }
}

fn fact_position(precedence: u8, confidence: f64, at: i64, id: u128) -> FactPosition {
    let updated_at = Timestamp::from_micros(at);
    FactPosition { precedence, confidence, updated_at, id: MemoryId(Uuid::from_u128(id)) }
}

proptest! {
    #[test]
    fn a_cursor_leads_back_to_its_place(at in any::<i64>(), id in any::<u128>(), precedence in 1u8..=7, confidence in 0.0f64..=1.0) {
        let list = position(at, id);
        let text = list.encode(LIST, &KEY);
        prop_assert!(text.len() <= MAX_CURSOR_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        prop_assert_eq!(Position::decode(&text, LIST, &KEY), Ok(list));
        let facts = fact_position(precedence, confidence, at, id);
        let text = facts.encode(LIST, &KEY);
        prop_assert!(text.len() <= MAX_CURSOR_LENGTH);
        prop_assert_eq!(FactPosition::decode(&text, LIST, &KEY), Ok(facts));
    }

    #[test]
    fn an_edited_cursor_is_none(at in any::<i64>(), id in any::<u128>(), place in 0usize..112, by in any::<char>()) {
        let text = position(at, id).encode(LIST, &KEY);
        let edited: String = text.chars().enumerate().map(|(index, c)| if index == place { by } else { c }).collect();
        prop_assume!(edited != text);
        prop_assert_eq!(code(Position::decode(&edited, LIST, &KEY)), "INVALID_CURSOR");
        prop_assert_eq!(code(Position::decode(&text[..place], LIST, &KEY)), "INVALID_CURSOR");
        prop_assert_eq!(code(Position::decode(&format!("{text}{by}"), LIST, &KEY)), "INVALID_CURSOR");
    }

    #[test]
    fn garbage_is_no_cursor(text in prop_oneof![".{0,600}", "[0-9a-f]{0,600}"]) {
        prop_assert_eq!(code(Position::decode(&text, LIST, &KEY)), "INVALID_CURSOR");
        prop_assert_eq!(code(FactPosition::decode(&text, LIST, &KEY)), "INVALID_CURSOR");
    }
}

#[test]
fn a_cursor_fits_its_own_query_key_and_kind_of_list_and_is_spelled_in_one_way() {
    let text = position(5, 6).encode(LIST, &KEY);
    assert_eq!(code(Position::decode(&text, OTHER, &KEY)), "INVALID_CURSOR");
    assert_eq!(code(Position::decode(&text, LIST, &[8; 32])), "INVALID_CURSOR");
    assert_eq!(code(FactPosition::decode(&text, LIST, &KEY)), "INVALID_CURSOR");
    assert_eq!(code(Position::decode(&text.to_uppercase(), LIST, &KEY)), "INVALID_CURSOR");
    let facts = fact_position(1, 0.5, 5, 6).encode(LIST, &KEY);
    assert_eq!(code(Position::decode(&facts, LIST, &KEY)), "INVALID_CURSOR");
}

#[test]
fn a_list_is_newest_first_and_facts_are_strongest_first() {
    let list = [position(9, 2), position(9, 1), position(3, 9), position(-3, 9)];
    assert!(list.is_sorted_by(|a, b| a.compare(b).is_lt()));
    let facts = [
        fact_position(1, 0.1, 0, 9),
        fact_position(2, 0.9, 5, 9),
        fact_position(2, 0.5, 9, 1),
        fact_position(2, 0.5, 9, 2),
        fact_position(2, 0.5, 8, 1),
        fact_position(7, 1.0, 9, 1),
    ];
    assert!(facts.is_sorted_by(|a, b| a.compare(b).is_lt()));
}

#[test]
fn the_place_of_an_entry() {
    let occurred = Timestamp::from_micros(3);
    let text = || "x".to_owned();
    let fact =
        Fact { fact_type: text(), subject: text(), predicate: text(), object: text(), confidence: 0.25 };
    let entry = Memory {
        occurred_at: Some(occurred),
        updated_at: Timestamp::from_micros(4),
        fact: Some(fact),
        ..memory(1, "x")
    };
    assert_eq!(Position::of(&entry), position(3, 1));
    assert_eq!(FactPosition::of(&entry), fact_position(2, 0.25, 4, 1));
}
