#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::recall::terms;
use proptest::prelude::*;

fn english() -> Analyzer {
    Analyzer::new("english").unwrap()
}

fn split(text: &str) -> Vec<&str> {
    let found = sentences(text);
    (0..found.len()).map(|number| &text[bytes(&found, number..number + 1)]).collect()
}

fn length(text: &str) -> usize {
    words(text).iter().map(|word| word.length).sum()
}

fn asking(query: &str) -> PassageQuery {
    let terms = terms::query_for_entries(&english(), query).all();
    let asked = Asked { known: terms.len() as f64, unknown: 0.0, understood: 1.0 };
    PassageQuery::new(terms.into_iter().map(|hash| (hash, 1.0)).collect(), asked)
}

/// The passage that answers a query, by its words alone.
fn shown<'a>(text: &'a str, query: &str) -> &'a str {
    let (query, analyzer) = (asking(query), english());
    let piece = query.best_piece(&analyzer, text, &cut(text, 64), |_, _| 0.0).unwrap();
    &text[query.passage(&analyzer, text, &piece)]
}

#[test]
fn sentences_end_where_a_reader_sees_it() {
    for (text, sentences) in [
        ("One. Two! Three? Four", &["One. ", "Two! ", "Three? ", "Four"][..]),
        ("He said \"no.\" Then he left.", &["He said \"no.\" ", "Then he left."]),
        ("Ask Dr. Smith or J. Doe, e.g. Monday.", &["Ask Dr. Smith or J. Doe, e.g. Monday."]),
        ("Version 1.2 is out... at last", &["Version 1.2 is out... at last"]),
        ("- one\n- two\n", &["- one\n", "- two\n"]),
        ("我去东京。你呢？「好。」他说", &["我去东京。", "你呢？", "「好。」", "他说"]),
        ("", &[]),
    ] {
        assert_eq!(split(text), sentences, "{text}");
    }
}

#[test]
fn lengths_are_words_or_pairs_of_characters() {
    for (text, words) in [("", 0), ("two words", 4), ("东京塔", 3), ("去 Tokyo 塔。", 4), ("a - b", 6)]
    {
        assert_eq!(length(text), words, "{text}");
    }
    assert_eq!(length(&"x".repeat(WORD_CHARS * 10)), 10 * WORD, "a blob is as long as its bytes");
}

#[test]
fn a_text_of_120_words_is_whole_and_one_of_121_is_not() {
    let text = |words: usize| "A few words stand here. ".repeat(words / 5) + &"one ".repeat(words % 5);
    assert_eq!(cut(&text(120), 64).len(), 1);
    assert!(!is_long(&text(120)));
    assert_eq!(cut(&text(121), 64).len(), 2);
    assert!(is_long(&text(121)));
    assert!(!is_long(&"东".repeat(240)) && is_long(&"东".repeat(241)));
}

#[test]
fn neighbouring_pieces_share_a_few_sentences() {
    let text: String =
        (0..60).map(|number| format!("This is sentence number {number} of a text. ")).collect();
    let pieces = cut(&text, 64);
    for (one, next) in pieces.iter().zip(&pieces[1..]) {
        let shared = length(&text[next.start..one.end]) / WORD;
        assert!((8..=30).contains(&shared), "{shared}");
        assert!(length(&text[one.clone()]) / WORD <= PIECE_WORDS);
        assert!(text[next.clone()].starts_with("This"), "pieces begin with a sentence");
    }
}

#[test]
fn a_text_of_any_length_has_so_many_pieces_at_most() {
    let text = "Some words are said here. ".repeat(20_000);
    let pieces = cut(&text, 64);
    assert!((40..=64).contains(&pieces.len()), "{}", pieces.len());
    let whole = &cut(&text, 1)[..];
    assert!(matches!(whole, [one] if *one == (0..text.len())), "{whole:?}");
}

#[test]
fn what_is_shown_holds_the_sentence_that_answers() {
    let filler = |from: usize| -> String {
        (from..from + 40).map(|number| format!("Nothing of note is said in line {number}. ")).collect()
    };
    let text = format!("{}The ferry to Korčula leaves at nine. {}", filler(0), filler(40));
    let passage = shown(&text, "when does the ferry to Korcula leave?");
    assert!(passage.contains("leaves at nine."), "{passage}");
    assert!(length(passage) <= WHOLE && length(passage) > WHOLE / 2);
    assert!(passage.starts_with("Nothing") && passage.ends_with('.'), "whole sentences: {passage}");
    let wide = cut(&text, 1);
    let (query, analyzer) = (asking("ferry"), english());
    assert!(
        text[query.passage(&analyzer, &text, &wide[0])].contains("ferry"),
        "of a piece longer than a passage"
    );
}

#[test]
fn rare_words_weigh_more_than_common_ones() {
    let text =
        format!("{}Ask the harbour master. {}", "She likes boats. ".repeat(60), "Boats sail. ".repeat(60));
    let (boats, master) = (terms::query(&english(), "boats")[0], terms::query(&english(), "master")[0]);
    let asked = Asked { known: 10.0, unknown: 0.0, understood: 0.0 };
    let query = PassageQuery::new(vec![(boats, 1.0), (master, 9.0)], asked);
    let piece = query.best_piece(&english(), &text, &cut(&text, 64), |_, _| 0.0).unwrap();
    assert!(text[piece].contains("master"));
}

#[test]
fn where_no_word_matches_meaning_decides() {
    let text = format!("{}{}", "All about ships. ".repeat(60), "All about trains. ".repeat(60));
    let near = |_, part: &str| if part.contains("trains") && !part.contains("ships") { 0.9 } else { 0.1 };
    let piece = asking("railway").best_piece(&english(), &text, &cut(&text, 64), near).unwrap();
    assert!(!text[piece].contains("ships"));
}

/// Texts of many kinds: prose, blobs, lists, scripts without spaces.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-zA-Z]{1,8}[ \n.!?,]{1,2}",
        "[东京塔会。！」]{1,20}",
        "\\PC{0,30}",
        "[a-z0-9]{60,200}",
        Just(" \n\n ".to_owned()),
        Just("Words that stand in a sentence of their own. ".repeat(9)),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn pieces_are_in_order_overlap_and_cover_the_text(text in any_text(), most in 1..70usize) {
        let pieces = cut(&text, most);
        prop_assert!((1..=most).contains(&pieces.len()));
        prop_assert_eq!((pieces[0].start, pieces[pieces.len() - 1].end), (0, text.len()));
        for piece in &pieces {
            prop_assert!(text.is_char_boundary(piece.start) && text.is_char_boundary(piece.end));
        }
        for (one, next) in pieces.iter().zip(&pieces[1..]) {
            prop_assert!(one.start < next.start && next.start <= one.end && one.end < next.end);
        }
    }

    #[test]
    fn pieces_are_no_longer_than_a_passage_where_there_may_be_many(text in any_text()) {
        for piece in cut(&text, usize::MAX) {
            prop_assert!(length(&text[piece.clone()]) <= WHOLE);
            let visible = text[piece].chars().filter(|c| !c.is_whitespace()).count();
            prop_assert!(visible <= WHOLE * WORD_CHARS);
        }
    }

    #[test]
    fn a_text_is_long_if_it_has_several_pieces(text in any_text()) {
        prop_assert_eq!(is_long(&text), cut(&text, usize::MAX).len() > 1);
    }

    #[test]
    fn a_passage_is_whole_sentences_of_the_text_and_touches_its_piece(
        text in any_text(), query in "[a-z东京]{1,6} [a-z]{1,6}", which in any::<prop::sample::Index>()
    ) {
        let pieces = cut(&text, 64);
        let piece = which.get(&pieces);
        let passage = asking(&query).passage(&english(), &text, piece);
        prop_assert!(passage.start <= piece.end && piece.start <= passage.end);
        prop_assert!(length(&text[passage.clone()]) <= WHOLE);
        prop_assert_eq!(text[passage.clone()].trim(), &text[passage.clone()]);
        let ends: Vec<usize> = sentences(&text).iter().map(|one| one.end).chain([0]).collect();
        let is_edge = |at: usize| ends.iter().any(|end| text[at.min(*end)..at.max(*end)].trim().is_empty());
        prop_assert!(passage.is_empty() || (is_edge(passage.start) && is_edge(passage.end)));
    }
}
