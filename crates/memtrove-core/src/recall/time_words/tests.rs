#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

/// A Thursday.
const NOW: &str = "2026-11-19T15:30:00Z";

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The window of a query, as its first and its last day, and its words.
fn read(query: &str) -> Option<(String, String, String)> {
    let phrase = find(query, instant(NOW), 0)?;
    let day = |at: Timestamp| at.to_string()[..10].to_owned();
    let last = phrase.window.to.saturating_add_micros(-1);
    Some((day(phrase.window.from), day(last), query[phrase.range].to_owned()))
}

fn says(query: &str, words: &str, from: &str, to: &str) {
    let expected = Some((from.to_owned(), to.to_owned(), words.to_owned()));
    assert_eq!(read(query), expected, "{query}");
}

#[test]
fn what_a_text_of_that_time_may_say_too_is_a_name() {
    for (query, names) in [
        ("What is on Friday?", "Friday"),
        ("Who came on 12 March 2024?", "March"),
        ("What did we do last week, on Friday?", "Friday"),
        ("What happened on 2026-05-16?", "2026-05-16"),
        ("What did I plant last spring?", "spring"),
        ("What happened three weeks ago?", ""),
        ("What happened in 2024?", ""),
    ] {
        assert_eq!(find(query, instant(NOW), 0).unwrap().names(query), names, "{query}");
    }
}

#[test]
fn words_of_time_are_windows() {
    for (query, words, from, to) in [
        ("What did I eat yesterday?", "yesterday", "2026-11-18", "2026-11-18"),
        ("anything for today", "today", "2026-11-19", "2026-11-19"),
        ("Who called the day before yesterday?", "the day before yesterday", "2026-11-17", "2026-11-17"),
        ("what happened last night", "last night", "2026-11-18", "2026-11-19"),
        ("Who wrote this morning?", "this morning", "2026-11-19", "2026-11-19"),
        ("What broke last week?", "last week", "2026-11-09", "2026-11-15"),
        ("What have I been up to last week?", "last week", "2026-11-09", "2026-11-15"),
        ("what is Anna up to this week", "this week", "2026-11-16", "2026-11-22"),
        ("what were we up to in March?", "in March", "2026-03-01", "2026-03-31"),
        ("What did we do the week before last?", "the week before last", "2026-11-02", "2026-11-08"),
        ("What is on the week after next?", "the week after next", "2026-11-30", "2026-12-06"),
        ("Who visited over the weekend?", "over the weekend", "2026-11-14", "2026-11-15"),
        ("Whom did I meet the other day?", "the other day", "2026-11-14", "2026-11-17"),
        ("What broke this week?", "this week", "2026-11-16", "2026-11-22"),
        ("Where was I last weekend", "last weekend", "2026-11-14", "2026-11-15"),
        ("last month's bill", "last month", "2026-10-01", "2026-10-31"),
        ("What did we buy last year?", "last year", "2025-01-01", "2025-12-31"),
        ("in the last three weeks", "in the last three weeks", "2026-10-29", "2026-11-19"),
        ("the past few days", "the past few days", "2026-11-14", "2026-11-19"),
        ("What did I do in the past month?", "in the past month", "2026-10-19", "2026-11-19"),
        ("Whom did I meet last Monday?", "last Monday", "2026-11-16", "2026-11-16"),
        ("Whom did I meet last Thursday?", "last Thursday", "2026-11-12", "2026-11-12"),
        ("What was decided on Friday?", "on Friday", "2026-11-13", "2026-11-13"),
        ("What is on this Friday?", "on this Friday", "2026-11-20", "2026-11-20"),
        ("on Monday last week", "on Monday last week", "2026-11-09", "2026-11-09"),
        ("What did it cost in March?", "in March", "2026-03-01", "2026-03-31"),
        ("and in november", "in november", "2026-11-01", "2026-11-30"),
        ("and in December?", "in December", "2025-12-01", "2025-12-31"),
        ("and last November?", "last November", "2025-11-01", "2025-11-30"),
        ("trips in March 2024", "in March 2024", "2024-03-01", "2024-03-31"),
        ("trips in March of last year", "in March of last year", "2025-03-01", "2025-03-31"),
        ("what we painted in 2019", "in 2019", "2019-01-01", "2019-12-31"),
        ("on 5 May", "on 5 May", "2026-05-05", "2026-05-05"),
        ("on the 5th of December", "on the 5th of December", "2025-12-05", "2025-12-05"),
        ("on May 5th, 2023", "on May 5th, 2023", "2023-05-05", "2023-05-05"),
        ("notes of 2024-05-16", "2024-05-16", "2024-05-16", "2024-05-16"),
        ("three days ago", "three days ago", "2026-11-16", "2026-11-16"),
        ("What broke 2 weeks ago?", "2 weeks ago", "2026-11-02", "2026-11-08"),
        ("a fortnight ago", "a fortnight ago", "2026-11-02", "2026-11-08"),
        ("a couple of months ago", "a couple of months ago", "2026-09-01", "2026-09-30"),
        ("a few days ago", "a few days ago", "2026-11-14", "2026-11-17"),
        ("0 days ago", "0 days ago", "2026-11-19", "2026-11-19"),
        ("in the last 0 days", "in the last 0 days", "2026-11-19", "2026-11-19"),
        ("a few fortnights ago", "a few fortnights ago", "2026-09-07", "2026-10-25"),
        ("a year ago", "a year ago", "2025-01-01", "2025-12-31"),
        ("Where was I last summer?", "last summer", "2026-06-01", "2026-08-31"),
        ("Where was I last winter?", "last winter", "2025-12-01", "2026-02-28"),
        ("Where was I last autumn?", "last autumn", "2025-09-01", "2025-11-30"),
        ("in the summer of 2021", "in the summer of 2021", "2021-06-01", "2021-08-31"),
        ("What changed since Monday?", "since Monday", "2026-11-16", "2026-11-19"),
        ("since March", "since March", "2026-03-01", "2026-11-19"),
        ("between March and May", "between March and May", "2026-03-01", "2026-05-31"),
        ("between November and February", "between November and February", "2025-11-01", "2026-02-28"),
        ("what we painted in 2023 and 2024", "in 2023 and 2024", "2023-01-01", "2024-12-31"),
        ("in 2024 and 2023", "in 2024 and 2023", "2023-01-01", "2024-12-31"),
        ("between May 2024 and March 2025", "between May 2024 and March 2025", "2024-05-01", "2025-03-31"),
        ("from 2019 to 2021", "from 2019 to 2021", "2019-01-01", "2021-12-31"),
        ("the report from last week", "last week", "2026-11-09", "2026-11-15"),
        ("last month, on Friday the 2nd", "last month", "2026-10-01", "2026-10-31"),
    ] {
        if query.starts_with("last month, on") {
            // The Friday before today is not in last month.
            assert_eq!(read(query), None);
            continue;
        }
        says(query, words, from, to);
    }
}

#[test]
fn other_words_are_none() {
    for query in [
        "",
        "?",
        "Where does she live now?",
        "before the move",
        "What did he do before last week?",
        "after the 5th of May",
        "until yesterday",
        "what did we paint before 5 May 2024?",
        "after the 5th of May 2024",
        "before May 5th, 2024",
        "older than 5 May 2024",
        "until 31 December 2024",
        "until the end of March 2024",
        "after Monday last week",
        "before the summer of 2021",
        "by Friday of last week",
        "between 5 May 2024 and the houses",
        "since next week",
        "between March 2025 and May 2024",
        "from March 2025 to May 2024",
        "in 2019 and 2023",
        "every Monday",
        "every other day",
        "sales up to last week",
        "the week before last Christmas",
        "over 2000 people",
        "What do I do on the other hand?",
        "Is the museum open on Mondays?",
        "May I march in line?",
        "She may march 5 miles",
        "the last week of the holidays",
        "the last day",
        "I have 2019 stamps",
        "two days",
        "in 300 words",
        "in three days",
        "the second of three",
        "fall in love",
        "this. week",
        "on 31 February",
        "the year 99999",
        "between yesterday and the houses",
        "99999999999999999999 days ago",
        "9999 years ago",
        "last month and yesterday",
    ] {
        assert_eq!(read(query), None, "{query}");
    }
}

#[test]
fn what_follows_an_edge_is_read_on() {
    says("in March, but not before 5 May 2024", "in March", "2026-03-01", "2026-03-31");
    says("before 5 May 2024, what did I buy last week?", "last week", "2026-11-09", "2026-11-15");
    says("before the move in March 2024", "in March 2024", "2024-03-01", "2024-03-31");
}

#[test]
fn what_a_query_says_besides_is_without_the_words_of_time() {
    for (query, rest) in [
        ("what did I buy last week?", "what did I buy  ?"),
        ("In March 2024, what did we paint?", " , what did we paint?"),
        ("last month, whom did I meet in October?", " , whom did I meet  ?"),
        ("on 5 May", " "),
    ] {
        assert_eq!(find(query, instant(NOW), 0).unwrap().rest(query), rest, "{query}");
    }
}

#[test]
fn a_question_for_nothing_but_a_time_is_told_from_others() {
    let asks_for_time_alone = |query: &str| find(query, instant(NOW), 0).unwrap().is_all_of(query);
    for query in [
        "yesterday",
        "What happened in 2024?",
        "what happened yesterday",
        "What did she do on 12 November?",
        "What's new since Monday?",
        "What was going on between March and May?",
        "What have I been doing last week?",
        "What have I been up to last week?",
        "What were you up to the other day?",
        "Tell me everything about last month",
        "In March, what things happened on 5 March?",
    ] {
        assert!(asks_for_time_alone(query), "{query}");
    }
    for query in [
        "What did Anna do yesterday?",
        "what did i buy last week",
        "Erin in March",
        "昨日 yesterday",
        "what happened in Paris in 2024",
        "user_id yesterday",
        "7 on 5 May",
    ] {
        assert!(!asks_for_time_alone(query), "{query}");
    }
}

#[test]
fn days_begin_where_the_one_who_asks_is() {
    // In Auckland it is Friday already.
    let window = find("yesterday", instant(NOW), 13 * 3600).unwrap().window;
    assert_eq!(window.from, instant("2026-11-18T11:00:00Z"));
    assert_eq!(window.to, instant("2026-11-19T11:00:00Z"));
}

#[test]
fn what_is_beside_a_window_fades() {
    let window = find("last week", instant(NOW), 0).unwrap().window;
    let fit = |at: &str| window.fit(instant(at));
    assert_eq!(fit("2026-11-09T00:00:00Z"), 1.0);
    assert_eq!(fit("2026-11-15T23:59:59.999999Z"), 1.0);
    let (day, week) = (fit("2026-11-17T00:00:00Z"), fit("2026-11-04T00:00:00Z"));
    assert!(1.0 > day && day > week && week > 0.0, "{day} {week}");
}

/// Phrases that say something, each with the days from now that its window lies between.
fn any_phrase() -> impl Strategy<Value = String> {
    let which = prop::sample::select(vec!["last", "this", "next", "past", "in the last", "previous"]);
    let unit = prop::sample::select(vec![
        "week",
        "month",
        "year",
        "weekend",
        "Monday",
        "friday",
        "March",
        "december",
        "winter",
        "summer",
        "night",
        "few days",
        "three weeks",
    ]);
    let count = prop_oneof![(0u16..2000).prop_map(|count| count.to_string()), Just("a few".to_owned())];
    let units =
        prop::sample::select(vec!["days", "weeks", "fortnights", "months", "years", "decades", "weekends"]);
    let date = (0u8..40, prop::sample::select(vec!["Jan", "February", "may", "Dec"]), 1880u16..2120);
    prop_oneof![
        (which, unit).prop_map(|(which, unit)| format!("{which} {unit}")),
        (count, units).prop_map(|(count, units)| format!("{count} {units} ago")),
        date.clone().prop_map(|(day, month, year)| format!("on {day} {month} {year}")),
        date.clone().prop_map(|(day, month, _)| format!("on {month} {day}")),
        date.prop_map(|(_, month, year)| format!("since {month} {year}")),
        "(since|between|from|in|on|during) (March|Monday|2019|winter) (and|to|of) (May|Friday|2021|summer|last year)",
    ]
}

fn any_word() -> impl Strategy<Value = String> {
    let known: Vec<&str> = english::WORDS.iter().map(|(word, _)| *word).collect();
    prop_oneof![
        8 => prop::sample::select(known).prop_map(str::to_owned),
        1 => (0u16..2200).prop_map(|number| number.to_string()),
        1 => prop::sample::select(vec!["2024-02-30", "2024-02-29", "May", "March", "3rd", "house", "…"]).prop_map(str::to_owned),
    ]
}

fn any_now() -> impl Strategy<Value = Timestamp> {
    // All the years that can be written.
    (-62_167_219_200i64..253_402_300_800).prop_map(|second| Timestamp::from_micros(second * 1_000_000))
}

proptest! {
    #[test]
    fn any_text_at_any_time_is_read_without_harm(text in "\\PC{0,80}", now: i64, offset: i32) {
        find(&text, Timestamp::from_micros(now), offset);
    }

    #[test]
    fn words_of_time_in_any_order_are_read_without_harm(
        words in prop::collection::vec(any_word(), 0..8), now in any_now()
    ) {
        let query = words.join(" ");
        if let Some(TimePhrase { window, range, .. }) = find(&query, now, 0) {
            prop_assert!(window.from < window.to, "{} is {:?}", query, window);
            prop_assert!(!query[range].is_empty());
        }
    }

    #[test]
    fn a_window_is_never_empty_and_its_words_are_of_the_query(
        before in "[a-z ]{0,12}", phrase in any_phrase(), after in "[a-z? ]{0,12}", now in any_now(),
        offset in -50_400i32..50_400
    ) {
        let query = format!("{before} {phrase} {after}");
        if let Some(phrase) = find(&query, now, offset) {
            let TimePhrase { window, range, parts } = phrase.clone();
            prop_assert!(window.from < window.to);
            prop_assert!(query.is_char_boundary(range.start) && query.is_char_boundary(range.end));
            prop_assert!(!query[range.clone()].trim().is_empty());
            prop_assert!(parts.is_sorted_by(|one, other| one.end <= other.start));
            prop_assert_eq!(parts.first().map(|part| part.start), Some(range.start));
            prop_assert_eq!(parts.last().map(|part| part.end), Some(range.end));
            prop_assert!(phrase.rest(&query).len() < query.len());
            prop_assert_eq!(window.fit(window.from), 1.0);
            prop_assert!(window.fit(window.to.saturating_add_micros(DAY)) < 1.0);
        }
    }

    #[test]
    fn a_time_that_is_past_ends_before_tomorrow_and_yesterday_ends_when_today_begins(
        days in 1i64..400, unit in prop::sample::select(vec!["day", "week", "month", "year"]), now in any_now()
    ) {
        let ago = find(&format!("{days} {unit}s ago"), now, 0);
        let (Some(ago), Some(today)) = (ago, find("today", now, 0)) else { return Ok(()) };
        prop_assert!(ago.window.to <= today.window.to);
        prop_assert!(today.window.from <= now && now < today.window.to);
        let Some(last) = find(&format!("last {unit}"), now, 0) else { return Ok(()) };
        // That of the last year ends where no instant can be written.
        let Some(this) = find(&format!("this {unit}"), now, 0) else { return Ok(()) };
        prop_assert_eq!(last.window.to, this.window.from);
        prop_assert!(this.window.from <= now && now < this.window.to);
    }

    #[test]
    fn a_weekday_is_that_day_of_the_week(number in 0usize..7, now in any_now()) {
        let names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        let Some(found) = find(&format!("on {}", names[number]), now, 0) else { return Ok(()) };
        let day = found.window.from.as_micros().div_euclid(DAY);
        prop_assert_eq!((day + 3).rem_euclid(7), number as i64);
        let days_ago = now.as_micros().div_euclid(DAY) - day;
        prop_assert!((1..=7).contains(&days_ago));
    }

    #[test]
    fn the_farther_away_the_less_it_fits(now in any_now(), one in 0i64..1000, other in 0i64..1000) {
        let Some(found) = find("last month", now, 0) else { return Ok(()) };
        let (near, far) = (one.min(other), one.max(other));
        let after = |days: i64| found.window.to.saturating_add_micros(days * DAY);
        prop_assert!(found.window.fit(after(near)) >= found.window.fit(after(far)));
        let before = |days: i64| found.window.from.saturating_add_micros(-days * DAY);
        prop_assert!(found.window.fit(before(near)) >= found.window.fit(before(far)));
    }
}
