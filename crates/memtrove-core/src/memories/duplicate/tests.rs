use super::*;
use proptest::prelude::*;

/// Whether two texts are duplicates although no model can tell them apart.
fn same(a: &str, b: &str) -> bool {
    let vector: &[f32] = &[0.6, 0.8];
    duplicates(&Profile::of(a), Some(vector), &Profile::of(b), Some(vector), SIMILARITY)
}

fn same_text(a: &str, b: &str) -> bool {
    duplicates(&Profile::of(a), None, &Profile::of(b), None, SIMILARITY)
}

#[test]
fn texts_are_equal_but_for_case_spacing_and_punctuation_at_the_end() {
    for (a, b) in [
        ("User prefers dark mode", "user  prefers\n dark MODE."),
        ("  Use tabs ", "Use tabs?!"),
        ("Really; ", "really ..."),
        ("ÜBER", "über"),
        ("!!!", "!!!"),
    ] {
        assert!(same_text(a, b), "{a:?} and {b:?}");
    }
    for (a, b) in [
        ("!!!", "???"),
        ("! !", "!  !"),
        ("Use tabs", "Use (tabs)"),
        ("Use tabs", "!Use tabs"),
        ("Use tabs", "Usetabs"),
        ("", "."),
        ("User prefers dark mode", "The user prefers dark mode"),
    ] {
        assert!(!same_text(a, b), "{a:?} and {b:?}");
    }
}

#[test]
fn texts_that_contradict_each_other_are_no_duplicates_however_alike_they_look() {
    for (a, b) in [
        // Numbers.
        ("The timeout of the gateway is 30 seconds", "The timeout of the gateway is 60 seconds"),
        ("Use Node v18 for builds", "Use Node v20 for builds"),
        ("The rate is 1.5 percent", "The rate is 15 percent"),
        ("Keep it at -5 degrees", "Keep it at 5 degrees"),
        ("From 9:30 to 17 we are open", "From 17 to 9:30 we are open"),
        ("超时时间为30秒", "超时时间为60秒"),
        // Negations.
        ("always use MySQL for reports", "never use MySQL for reports"),
        ("you may deploy on Fridays", "you may not deploy on Fridays"),
        ("She drinks coffee with sugar", "She drinks coffee without sugar"),
        ("They do eat fish", "They don't eat fish"),
        ("They do eat fish", "They don’t eat fish"),
        // Order.
        ("Alice reports to Bob", "Bob reports to Alice"),
        ("狗咬人", "人咬狗"),
        // Small words.
        ("Run the migrations after deploying the API", "Run the migrations before deploying the API"),
        ("Run the migrations after deploying the API", "Run migrations before deploying the new API"),
        ("Nora moved to Rome", "Nora moved from Rome"),
        ("All tests are green", "Some tests are green"),
        ("Few guests came", "Many guests came"),
        ("Only managers may approve", "Also managers may approve"),
        ("Managers may approve", "Only managers may approve"),
        ("The parcel is for Anna", "The parcel is from Anna"),
        ("The bike is in the garage", "The bike is out of the garage"),
        ("The backup runs on the server", "The backup runs off the server"),
        ("My sister lives in Oslo", "Your sister lives in Oslo"),
        ("He can drive", "He could drive"),
        ("Tom was vegetarian", "Tom is vegetarian"),
    ] {
        assert!(!same(a, b), "{a:?} and {b:?}");
        assert!(!same(b, a), "{b:?} and {a:?}");
    }
}

#[test]
fn the_small_words_can_be_looked_up() {
    assert!(SMALL_WORDS.is_sorted());
}

#[test]
fn nothing_forbids_texts_that_say_the_same_in_other_words() {
    for (a, b) in [
        ("User prefers dark mode", "The user prefers dark mode"),
        ("The timeout is 30 seconds", "The timeout: 30 seconds."),
        ("Ports 80, 443 are open", "The open ports are 80 and 443"),
        ("They don't eat fish", "They don’t eat any fish"),
        ("Deploys happen on Tuesdays", "We deploy every Tuesday"),
        ("Alice likes the green tea", "Alice likes her green tea"),
        ("The backup runs at night on a server", "The backup runs at night on the server of the team"),
        ("我们使用深色模式", "我们都使用深色模式"),
    ] {
        assert!(same(a, b), "{a:?} and {b:?}");
    }
}

#[test]
fn vectors_count_from_the_threshold_on() {
    let (a, b) = (Profile::of("one way to say it"), Profile::of("another manner of speaking"));
    let at = |cosine: f64| vec![cosine as f32, (1.0 - cosine * cosine).sqrt() as f32];
    let alike = |cosine: f64, threshold| duplicates(&a, Some(&at(1.0)), &b, Some(&at(cosine)), threshold);
    assert!(alike(0.95, 0.95) && alike(0.96, 0.95) && !alike(0.9499, 0.95));
    assert!(alike(1.0, 1.0), "equal vectors reach the highest threshold in spite of rounding");
    assert!(alike(0.0, 0.0) && !alike(-0.5, 0.0));
    let zero: &[f32] = &[0.0, 0.0];
    assert!(!duplicates(&a, Some(zero), &b, Some(zero), 0.5), "no direction, nothing in common");
    assert!(!duplicates(&a, Some(&[1.0]), &b, Some(&[1.0, 0.0]), 0.5), "not of one space");
    assert!(!duplicates(&a, None, &b, Some(&[1.0, 0.0]), 0.0));
}

#[test]
fn words_keep_what_belongs_to_them() {
    let words = |text: &str| Profile::of(text).words().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("It's John’s 'own', isn't it"), ["it's", "john’s", "own", "isn't", "it"]);
    assert_eq!(
        words("v1.2, 10,000 at 9:30; -5 or 3-4."),
        ["v1.2", "10,000", "at", "9:30", "-5", "or", "3", "4"]
    );
    assert_eq!(words("snake_case a.b"), ["snake", "case", "a", "b"]);
    assert_eq!(words("用GPT4写"), ["用", "gpt4", "写"]);
    assert_eq!(words("cafe\u{301} …"), ["cafe\u{301}"]);
}

#[test]
fn long_texts_are_judged_like_short_ones_and_soon() {
    let words: Vec<String> =
        (0..20_000).map(|n| format!("word{}", char::from(b'a' + (n % 23) as u8))).collect();
    let text = words.join(" ");
    let edited = format!("prelude {} {} finale", words[5..].join(" "), "more of it");
    assert!(same(&text, &edited), "a few words more and less");
    let (first, second) = words.split_at(10_000);
    let swapped = [second, first].concat().iter().rev().cloned().collect::<Vec<_>>().join(" ");
    assert!(!same(&text, &swapped), "another order");
}

/// The textbook's table.
fn longest_common_subsequence(a: &[u32], b: &[u32]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (at, y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if x == y { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

proptest! {
    #[test]
    fn the_subsequence_is_as_long_as_the_table_says(
        a in prop::collection::vec(0u32..6, 0..200),
        b in prop::collection::vec(0u32..6, 0..200),
    ) {
        prop_assert_eq!(subsequence::length(&a, &b), longest_common_subsequence(&a, &b));
    }

    #[test]
    fn of_two_entries_either_duplicates_the_other(a in "\\PC{0,40}", b in "\\PC{0,40}", cosine in 0.9f32..1.0) {
        let (one, other) = (Profile::of(&a), Profile::of(&b));
        let (x, y) = ([1.0, 0.0], [cosine, (1.0 - cosine * cosine).sqrt()]);
        prop_assert_eq!(
            duplicates(&one, Some(&x), &other, Some(&y), SIMILARITY),
            duplicates(&other, Some(&y), &one, Some(&x), SIMILARITY)
        );
        prop_assert!(duplicates(&one, None, &Profile::of(&a), None, SIMILARITY), "every text duplicates itself");
    }

    #[test]
    fn a_text_duplicates_itself_in_capitals_with_more_space_and_punctuation(text in "[a-z][a-z0-9 .-]{0,40}") {
        let shouted = format!("  {} !?.", text.to_uppercase().replace(' ', "\t \n"));
        prop_assert!(same_text(&text, &shouted));
    }
}
