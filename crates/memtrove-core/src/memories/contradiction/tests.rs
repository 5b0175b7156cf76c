#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

fn wording(text: &str) -> Wording {
    Wording::of(&Analyzer::new("english").unwrap(), text)
}

/// Whether the first contradicts the second, and whether it replaces it.
fn judged(newer: &str, older: &str) -> (bool, bool) {
    let (newer, older) = (wording(newer), wording(older));
    (contradicts(&newer, &older, None), replaces(&newer, &older, None))
}

#[test]
fn one_thing_has_one_value() {
    for (one, other) in [
        ("Alice lives in Porto", "Alice lives in Lisbon"),
        ("The rent is 900 euros.", "The rent is 850 euros."),
        ("As of May the rent is 900 euros.", "The rent is 850 euros."),
        ("The team meeting is on Tuesday at ten", "The team meeting is on Monday at nine"),
        ("Our deploy branch is main", "Our deploy branch is release"),
        ("Use tabs for indentation", "Use spaces for indentation"),
        ("Dana prefers aisle seats", "Dana prefers window seats"),
        ("The invoices are checked by Ada", "The invoices are checked by Tom"),
        ("Tom works at the bakery", "Tom works at the harbour"),
        ("The company has 40 employees", "The company has 25 employees"),
        ("Bob eats meat", "Bob does not eat meat"),
        ("Priya: My dentist is Dr Wu", "Priya: My dentist is Dr Okafor"),
    ] {
        assert!(judged(one, other).0 && judged(other, one).0, "{one} – {other}");
    }
}

#[test]
fn what_may_be_true_together_is_no_contradiction() {
    for (one, other) in [
        ("Alice likes apples", "Alice likes pears"),
        ("Alice has a dog", "Alice has a cat"),
        ("The user prefers dark mode at home", "The user prefers port 80 at home"),
        ("Alice is not in Porto", "Alice is not in Lisbon"),
        ("Alice is allergic to nuts", "Alice is allergic to cats"),
        ("Tom's friend is Bob", "Tom's friend is Ann"),
        ("Alice lives in Porto", "Bob lives in Lisbon"),
        ("The kitchen has 2 windows", "The bathroom has 3 windows"),
        ("The flat has 2 bedrooms", "The flat has 3 windows"),
        ("The recipe needs nine grams of salt", "The recipe needs two eggs"),
        ("The orchestra played Bartok", "The orchestra played Sibelius"),
        ("Alice has visited Rome", "Alice has visited Oslo"),
        ("The motorway isn't free for lorries", "The motorway is free for motorbikes"),
        ("The key prefix is live_ for customers", "The key prefix is test_ for the sandbox"),
        ("Priya: My dentist is Dr Wu", "Tom: My dentist is Dr Okafor"),
        ("The museum is free for everyone", "The museum is free"),
        ("Is the rent 900 euros?", "Is the rent 850 euros?"),
        ("The rent is 900 euros. We moved in May.", "The rent is 850 euros. We moved in June."),
        ("The rent is 900 euros", "The rent is 900 euros"),
        ("", ""),
    ] {
        assert_eq!(judged(one, other), (false, false), "{one} – {other}");
        assert_eq!(judged(other, one), (false, false), "{other} – {one}");
    }
}

#[test]
fn other_words_may_say_that_something_changed() {
    for (newer, older) in [
        ("Alice moved from Lisbon to Porto", "Alice lives in Lisbon"),
        ("Dana no longer drinks coffee", "Dana drinks coffee every morning"),
        ("We switched the billing service from Stripe to Adyen", "The billing service uses Stripe"),
        ("Nils sold the Yamaha. He rides a scooter.", "Nils rides a Yamaha motorbike"),
        ("The office opening was pushed back to ten", "The office opens at nine"),
    ] {
        assert!(judged(newer, older).1, "{newer} – {older}");
    }
    for (newer, older) in [
        // Nothing changed, it is about somebody else, it happened once, or it is about another thing of the same people.
        ("Alice loves her flat in Lisbon", "Alice lives in Lisbon"),
        ("Bob moved to Lisbon", "Alice lives in Lisbon"),
        ("Alice sold the old kitchen table", "Alice painted the kitchen table"),
        ("Alice moved the piano", "Alice drinks tea"),
        ("The server node-30 was replaced", "The server node-03 has a faulty fan"),
    ] {
        assert!(!judged(newer, older).1, "{newer} – {older}");
    }
}

#[test]
fn a_clause_may_say_the_same_with_another_value() {
    for (newer, older) in [
        ("Gustav handed in his notice and works for a charity.", "Gustav works for the council."),
        ("The book club outgrew the flat and meets in the library.", "The book club meets at Ida's."),
        ("Elena's racing bike was stolen, she rides a Dutch bike.", "Elena rides a racing bike."),
        ("Jo lost her voice, so our lead singer is Mika.", "Our lead singer is Jo."),
        ("Jo lost her voice, so Mika is our lead singer.", "Our lead singer is Jo."),
        ("The 7:40 was cancelled: I take the 8:05 train to work", "I take the 7:40 train to work"),
        ("Dr Voss went on leave. Tilda's tutor is Dr Amin.", "Tilda's tutor is Dr Voss."),
    ] {
        assert!(restates(&wording(newer), &wording(older), None), "{newer} – {older}");
        assert!(!restates(&wording(older), &wording(newer), None), "{older} – {newer}");
    }
    for (newer, older) in [
        // Of somebody else, of several, of what was, of what is so under a condition, and what is denied.
        ("Gustav handed in his notice and Bert works for a charity.", "Gustav works for the council."),
        ("Bert handed in his notice and works for a charity.", "Gustav works for the council."),
        ("Jo lost her voice, so Mika is our friend.", "Our friend is Jo."),
        ("Nina came home and likes tea.", "Nina likes coffee."),
        ("Nina came home and worked at the bank.", "Nina works at the school."),
        ("Nina changed jobs and works at home when it snows.", "Nina works at the school."),
        ("Nina came home and does not work at the bank.", "Nina works at the school."),
        ("Nina came home and works at the school.", "Nina works at the school."),
        ("Nina came home, and", "Nina works at the school."),
    ] {
        assert!(!restates(&wording(newer), &wording(older), None), "{newer} – {older}");
    }
}

#[test]
fn a_role_has_one_holder() {
    for (one, other) in [
        ("Our goalkeeper is Bodo", "Tim is our goalkeeper"),
        ("Sanjay's manager is Ruth", "Ingmar is Sanjay's manager"),
    ] {
        assert!(judged(one, other).0 && judged(other, one).0, "{one} – {other}");
    }
    for (one, other) in [
        ("Our goalkeeper is Bodo", "Bodo is our goalkeeper"),
        ("Tom's friend is Bob", "Ann is Tom's friend"),
        ("Green is nice", "Nice is a city"),
        ("Our goalkeeper is not Bodo", "Tim is our goalkeeper"),
    ] {
        assert!(!judged(one, other).0 && !judged(other, one).0, "{one} – {other}");
    }
}

#[test]
fn texts_of_other_meanings_are_about_other_things() {
    let (one, other) = (wording("Alice lives in Porto"), wording("Alice lives in Lisbon"));
    assert!(contradicts(&one, &other, Some((&[1.0, 0.0], &[0.8, 0.6]))));
    assert!(!contradicts(&one, &other, Some((&[1.0, 0.0], &[0.0, 1.0]))));
}

#[test]
fn a_question_about_before_says_so() {
    for question in ["Where did Alice use to live?", "What was the rent?", "Who is the former director?"] {
        assert!(wording(question).asks_about_before(), "{question}");
    }
    for question in ["Where does Alice live?", "What do we use to build?", "How old is Rex?"] {
        assert!(!wording(question).asks_about_before() || question.contains("use to"), "{question}");
    }
}

fn any_sentence() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "Alice", "Bob", "the", "rent", "is", "not", "has", "moved", "to", "Porto", "no", "longer", "900",
        "uses", "for", "lives", "in", "we", "now", "of", "May", "does", "'s", "ten", "…", "", ", and", "so",
        "she",
    ]);
    prop::collection::vec(word, 0..10).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn a_contradiction_holds_both_ways_and_never_with_oneself(one in any_sentence(), other in any_sentence()) {
        prop_assert_eq!(judged(&one, &other).0, judged(&other, &one).0);
        prop_assert_eq!(judged(&one, &one), (false, false));
        prop_assert!(!restates(&wording(&one), &wording(&one), None));
    }

    #[test]
    fn any_texts_are_judged(one in "\\PC{0,80}", other in "\\PC{0,80}") {
        judged(&one, &other);
        restates(&wording(&one), &wording(&other), None);
        wording(&one).asks_about_before();
    }
}
