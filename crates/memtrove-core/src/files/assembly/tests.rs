use super::*;
use Outcome::{Dropped, Missing, Selected};
use proptest::prelude::*;

const TOO_MANY: Outcome = Dropped(DropReason::MaxDocs);
const TOO_LONG: Outcome = Dropped(DropReason::MaxCharsTotal);

fn outcomes(max_docs: usize, max_chars_total: usize, sizes: &[Option<usize>]) -> Vec<Outcome> {
    walk(sizes, Budget { max_docs, max_chars_total }, |size| Ok(*size)).unwrap()
}

#[test]
fn files_are_taken_in_order_while_they_fit() {
    assert_eq!(outcomes(4, 100, &[Some(60), Some(40)]), [Selected, Selected], "exactly full");
    assert_eq!(
        outcomes(4, 100, &[Some(60), Some(41), Some(40)]),
        [Selected, TOO_LONG, Selected],
        "a later one may fit"
    );
    assert_eq!(
        outcomes(2, 100, &[None, Some(1), Some(1), Some(1), None]),
        [Missing, Selected, Selected, TOO_MANY, TOO_MANY]
    );
    assert_eq!(
        outcomes(1, 100, &[Some(101), Some(1)]),
        [TOO_LONG, Selected],
        "what is dropped is not counted"
    );
    assert_eq!(outcomes(0, 100, &[Some(1), None]), [TOO_MANY, TOO_MANY]);
    assert_eq!(outcomes(4, 0, &[Some(1), None]), [TOO_LONG, Missing]);
    assert_eq!(
        (DropReason::MaxDocs.as_str(), DropReason::MaxCharsTotal.as_str()),
        ("max_docs", "max_chars_total")
    );
}

#[test]
fn nothing_is_looked_at_once_there_are_enough() {
    let mut looked_at = Vec::new();
    let budget = Budget { max_docs: 1, max_chars_total: 10 };
    let look = |file: &&'static str| {
        looked_at.push(*file);
        Ok(Some(1))
    };
    assert_eq!(walk(&["a", "b", "c"], budget, look).unwrap(), [Selected, TOO_MANY, TOO_MANY]);
    assert_eq!(looked_at, ["a"]);
}

proptest! {
    #[test]
    fn a_context_never_exceeds_its_budget_and_never_wastes_room(
        sizes in prop::collection::vec(prop::option::of(0usize..50), 0..20), max_docs in 0usize..6, max_chars_total in 0usize..120,
    ) {
        let outcomes = outcomes(max_docs, max_chars_total, &sizes);
        let (mut docs, mut chars) = (0, 0);
        for (size, outcome) in sizes.iter().zip(&outcomes) {
            match outcome {
                Selected => (docs, chars) = (docs + 1, chars + size.unwrap()),
                Missing => prop_assert_eq!(*size, None),
                Dropped(DropReason::MaxDocs) => prop_assert_eq!(docs, max_docs),
                Dropped(DropReason::MaxCharsTotal) => prop_assert!(chars + size.unwrap() > max_chars_total),
            }
        }
        prop_assert!(docs <= max_docs && chars <= max_chars_total);
    }
}
