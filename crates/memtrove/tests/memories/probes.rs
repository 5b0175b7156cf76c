//! Questions that the project wrote itself, asked of the real server: figures with floors.
//!
//! A line of `fixtures/probes/<kind>.jsonl` is one item: what is remembered (`memories`, `turns` of a conversation, or
//! the text of a `file`), a `query`, and `want`, the places of what answers it, best first. All items of a kind belong to
//! one user, so they distract from each other. Turns are asked of conversations; memories and files also, as what a user said. The first half of each file is `frozen`: nobody looks at it while tuning,
//! and the floors hold for it.
//!
//! A figure that falls below its floor fails the test, which prints the table. Who makes the ranking better raises the
//! floor to the new figure less two points.

mod calendar;

use crate::support::*;
use calendar::Day;
use std::collections::HashMap;

/// One figure of one kind, in per cent.
struct Figure {
    kind: &'static str,
    /// Which search is asked.
    surface: Surface,
    /// Only the items in this language, if it is named.
    language: &'static str,
    measure: Measure,
    /// What the frozen half must reach.
    floor: f64,
    /// Where it is meant to get to, if that was ever said.
    goal: Option<f64>,
}

/// Where things are remembered and searched.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Surface {
    Memories,
    Conversations,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    /// The first that is wanted stands before the second, or without it.
    NewerFirst,
    /// The first that is wanted comes first.
    First,
    /// All that is wanted is among the first five.
    InFive,
    /// An answerable question has a higher best score than an unanswerable one.
    Auc,
    /// The wanted hit has a `passage` that holds the sentence with the answer.
    Passage,
    /// The wanted hit has `highlights` that hold the answer.
    Highlights,
    /// The first that is wanted comes first in `mode: "semantic"`.
    ByMeaning,
}

const fn figure(kind: &'static str, measure: Measure, floor: f64, goal: Option<f64>) -> Figure {
    Figure { kind, surface: Surface::Memories, language: "", measure, floor, goal }
}

const fn in_chat(kind: &'static str, measure: Measure, floor: f64, goal: Option<f64>) -> Figure {
    Figure { surface: Surface::Conversations, ..figure(kind, measure, floor, goal) }
}

const fn language(kind: &'static str, language: &'static str, floor: f64) -> Figure {
    Figure { language, ..figure(kind, Measure::First, floor, Some(95.0)) }
}

const fn language_in_chat(kind: &'static str, named: &'static str, floor: f64) -> Figure {
    Figure { surface: Surface::Conversations, ..language(kind, named, floor) }
}

const FIGURES: [Figure; 48] = [
    figure("newest_same", Measure::NewerFirst, 94.7, Some(90.0)),
    figure("newest_changed", Measure::NewerFirst, 64.7, Some(70.0)),
    figure("newest_told", Measure::NewerFirst, 64.7, Some(70.0)),
    figure("time_words", Measure::First, 98.0, Some(80.0)),
    figure("negation", Measure::First, 74.7, Some(70.0)),
    figure("names", Measure::First, 96.0, None),
    figure("names", Measure::InFive, 98.0, Some(97.0)),
    figure("typos", Measure::First, 96.0, None),
    figure("typos", Measure::InFive, 96.0, Some(95.0)),
    figure("identifiers", Measure::First, 92.0, None),
    figure("identifiers", Measure::InFive, 98.0, Some(97.0)),
    // The goal is that of `hops: 2`, which a search does not take yet.
    figure("two_hop", Measure::InFive, 81.3, Some(70.0)),
    figure("answerable", Measure::First, 98.0, None),
    figure("answerable", Measure::Auc, 91.7, Some(92.0)),
    figure("other_words", Measure::First, 61.3, None),
    figure("other_words", Measure::InFive, 84.7, None),
    figure("long", Measure::First, 98.0, Some(85.0)),
    figure("long", Measure::Passage, 98.0, Some(90.0)),
    figure("long", Measure::ByMeaning, 81.3, Some(85.0)),
    figure("languages", Measure::First, 98.0, Some(95.0)),
    language("languages", "de", 98.0),
    language("languages", "fr", 98.0),
    language("languages", "zh", 98.0),
    language("languages", "ja", 98.0),
    in_chat("assistant_chat", Measure::First, 64.7, None),
    in_chat("assistant_chat", Measure::InFive, 91.3, None),
    in_chat("assistant_answer", Measure::First, 71.3, None),
    in_chat("assistant_answer", Measure::InFive, 98.0, None),
    in_chat("assistant_answer", Measure::Passage, 91.3, Some(90.0)),
    in_chat("assistant_answer", Measure::Highlights, 71.3, None),
    in_chat("human_chat", Measure::First, 41.3, None),
    in_chat("human_chat", Measure::InFive, 84.7, None),
    in_chat("long", Measure::First, 98.0, Some(85.0)),
    in_chat("long", Measure::Passage, 98.0, Some(90.0)),
    in_chat("typos", Measure::First, 84.0, None),
    in_chat("typos", Measure::InFive, 84.0, Some(95.0)),
    in_chat("identifiers", Measure::First, 86.0, None),
    in_chat("identifiers", Measure::InFive, 98.0, Some(97.0)),
    in_chat("chat_languages", Measure::First, 94.7, Some(95.0)),
    language_in_chat("chat_languages", "de", 98.0),
    language_in_chat("chat_languages", "fr", 83.7),
    language_in_chat("chat_languages", "zh", 98.0),
    language_in_chat("chat_languages", "ja", 98.0),
    in_chat("languages", Measure::First, 98.0, Some(95.0)),
    language_in_chat("languages", "de", 98.0),
    language_in_chat("languages", "fr", 98.0),
    language_in_chat("languages", "zh", 98.0),
    language_in_chat("languages", "ja", 98.0),
];

/// An item as it is written, and what the server answered.
struct Asked {
    item: Value,
    /// The places in the item of what was found, best first; what belongs to other items is `None`.
    found: Vec<Option<usize>>,
    best_score: f64,
    /// Whether what is wanted comes first by its meaning alone, where that was asked.
    first_by_meaning: bool,
    /// The passage that the first wanted hit shows, if it is long.
    passage: Option<String>,
    /// Its highlights without marks; of an entry.
    highlights: Option<String>,
}

impl Asked {
    fn wanted(&self) -> Vec<usize> {
        match &self.item["want"] {
            // A document is a single memory, which answers.
            Value::Null => vec![0],
            want => list(want).iter().map(place).collect(),
        }
    }

    fn rank(&self, wanted: usize) -> Option<usize> {
        self.found.iter().position(|found| *found == Some(wanted))
    }

    fn is_hit(&self, measure: Measure) -> bool {
        let wanted = self.wanted();
        match measure {
            Measure::NewerFirst => match (self.rank(wanted[0]), self.rank(wanted[1])) {
                (Some(newer), Some(older)) => newer < older,
                (newer, _) => newer.is_some(),
            },
            Measure::First => self.rank(wanted[0]) == Some(0),
            Measure::InFive => wanted.iter().all(|wanted| self.rank(*wanted).is_some_and(|rank| rank < 5)),
            Measure::Passage => {
                self.passage.as_ref().is_some_and(|passage| passage.contains(&text(&self.item["passage"])))
            }
            Measure::Highlights => {
                self.highlights.as_ref().is_some_and(|shown| shown.contains(&text(&self.item["answer"])))
            }
            Measure::ByMeaning => self.first_by_meaning,
            Measure::Auc => unreachable!("a figure of all items together"),
        }
    }
}

fn place(value: &Value) -> usize {
    value
        .as_u64()
        .and_then(|place| usize::try_from(place).ok())
        .unwrap_or_else(|| panic!("no place: {value}"))
}

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/probes/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn items(kind: &str) -> Vec<Value> {
    let lines = fixture(&format!("{kind}.jsonl"));
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// Remembers everything of this kind as one user and asks every question.
fn asked((kind, surface): (&str, Surface)) -> Vec<Asked> {
    match surface {
        Surface::Memories => asked_of_memories(items(kind)),
        Surface::Conversations => asked_of_conversations(items(kind)),
    }
}

/// All items of one kind as memories of one user.
struct Remembered {
    tenant: Tenant,
    user: Place,
    /// The item of each memory, and its place in that.
    known: HashMap<String, (usize, usize)>,
    /// The document that an item is about.
    files: HashMap<usize, String>,
}

impl Remembered {
    fn new(items: &[Value]) -> Self {
        let (tenant, user, today) = (Tenant::fresh(), Place::user("u"), Day::today());
        let mut bodies = Vec::new();
        let mut places = Vec::new();
        let mut documents: Vec<String> = Vec::new();
        for (number, item) in items.iter().enumerate() {
            for (place, memory) in item["memories"].as_array().into_iter().flatten().enumerate() {
                let mut body = user.with(json!({"content": memory["text"]}));
                if !memory["at"].is_null() {
                    body["occurredAt"] = json!(today.instant(&memory["at"]));
                }
                bodies.push(body);
                places.push((number, place));
            }
            for (place, turn) in item["turns"].as_array().into_iter().flatten().enumerate() {
                let said = format!("{}: {}", text(&turn["role"]), text(&turn["text"]));
                bodies.push(user.with(json!({"content": said})));
                places.push((number, place));
            }
            let document = item["file"].as_str();
            if let Some(file) = document.filter(|file| !documents.iter().any(|known| known == file)) {
                documents.push(file.to_owned());
                bodies.push(user.with(json!({"content": fixture(file)})));
                places.push((number, 0));
            }
        }
        let files = items
            .iter()
            .enumerate()
            .filter_map(|(number, item)| Some((number, item["file"].as_str()?.to_owned())))
            .collect();
        let known = tenant.add_all(bodies).into_iter().zip(places).collect();
        Self { tenant, user, known, files }
    }

    /// The best results of a search for what an item asks.
    fn search(&self, item: &Value, members: &Value) -> Vec<Value> {
        let body = json!({
            "query": item["query"], "identifiers": self.user.identifiers, "ranking": "score",
        });
        list(&self.tenant.search(merged(body, members)).expect(200).json["results"])
    }

    /// Where in the item with this number a result comes from; `None` if it comes from another.
    fn place_in(&self, number: usize, hit: &Value) -> Option<usize> {
        let (owner, place) = self.known[&id_of(&hit["memory"])];
        // Questions about one document share the memory that the first of them added.
        let shared = || self.files.get(&owner).is_some_and(|file| Some(file) == self.files.get(&number));
        (owner == number || shared()).then_some(place)
    }
}

fn asked_of_memories(items: Vec<Value>) -> Vec<Asked> {
    let remembered = Remembered::new(&items);
    let ask = |(n, item): (usize, Value)| {
        let hits = remembered.search(&item, &json!({"threshold": 0, "limit": 10}));
        let found: Vec<Option<usize>> = hits.iter().map(|hit| remembered.place_in(n, hit)).collect();
        let best_score = hits.first().map_or(0.0, |hit| number(&hit["score"]));
        let answer = found.iter().position(Option::is_some).map(|rank| &hits[rank]);
        let passage = answer.and_then(|hit| hit["passage"].as_str()).map(str::to_owned);
        let by_meaning = || {
            let hits = remembered.search(&item, &json!({"threshold": 0, "limit": 1, "mode": "semantic"}));
            hits.first().and_then(|hit| remembered.place_in(n, hit)).is_some()
        };
        let first_by_meaning = item["file"].is_string() && by_meaning();
        Asked { item, found, best_score, first_by_meaning, passage, highlights: None }
    };
    items.into_iter().enumerate().map(ask).collect()
}

/// What is said in the conversation of an item, and by whom.
fn turns(item: &Value) -> Vec<(String, String)> {
    let by_user = |said: String| ("USER".to_owned(), said);
    match (&item["turns"], &item["memories"]) {
        (Value::Array(turns), _) => {
            turns.iter().map(|turn| (text(&turn["role"]), text(&turn["text"]))).collect()
        }
        (_, Value::Array(memories)) => memories.iter().map(|memory| by_user(text(&memory["text"]))).collect(),
        _ => vec![by_user(fixture(&text(&item["file"])))],
    }
}

fn asked_of_conversations(items: Vec<Value>) -> Vec<Asked> {
    let user = SERVER.someone("chatter").with_key(AGENT).in_tenant(&fresh_name("tenant"));
    let mut known = HashMap::new();
    // Questions about one document share the entry that the first of them brought.
    let mut documents: HashMap<String, usize> = HashMap::new();
    for (number, item) in items.iter().enumerate() {
        if let Some(file) = item["file"].as_str()
            && *documents.entry(file.to_owned()).or_insert(number) != number
        {
            continue;
        }
        let conversation = fresh_id();
        for (place, (role, said)) in turns(item).into_iter().enumerate() {
            let mut entry = json!({
                "channel": "history", "contentType": "history", "content": [{"role": role, "text": said}],
            });
            if !["USER", "AI"].contains(&role.as_str()) {
                // Who speaks has no member of its own: it stands before what is said, as in an import.
                entry["content"][0]["role"] = json!("USER");
                entry["indexedContent"] = json!(format!("{role}: {said}"));
            }
            let path = format!("/v1/conversations/{conversation}/entries");
            known.insert(user.post(&path, entry).expect(201).id(), (number, place));
        }
    }
    let ask = |(n, item): (usize, Value)| {
        let body = json!({
            "query": item["query"], "searchType": "auto", "limit": 10, "groupByConversation": false,
            "includeEntry": false,
        });
        let page = user.post("/v1/conversations/search", body).expect_page();
        let number_of_item = item["file"].as_str().map_or(n, |file| documents[file]);
        let place_in_item = |id: &String| {
            let (owner, place) = known[id];
            (owner == number_of_item).then_some(place)
        };
        let found: Vec<Option<usize>> = page.all("entryId").iter().map(place_in_item).collect();
        let best_score = page.data.first().map_or(0.0, |hit| number(&hit["score"]));
        let mut asked =
            Asked { item, found, best_score, first_by_meaning: false, passage: None, highlights: None };
        let answer =
            asked.wanted().first().and_then(|wanted| asked.rank(*wanted)).map(|rank| &page.data[rank]);
        if let Some(hit) = answer {
            asked.passage = hit["passage"].as_str().map(str::to_owned);
            asked.highlights = hit["highlights"].as_str().map(|shown| shown.replace("**", ""));
        }
        asked
    };
    items.into_iter().enumerate().map(ask).collect()
}

/// The share of right ones in per cent.
fn measured(figure: &Figure, asked: &[&Asked]) -> f64 {
    let in_language =
        |asked: &&&Asked| figure.language.is_empty() || asked.item["language"] == figure.language;
    let asked: Vec<&Asked> = asked.iter().filter(in_language).copied().collect();
    let (answerable, unanswerable): (Vec<&Asked>, Vec<&Asked>) =
        asked.iter().partition(|asked| !asked.wanted().is_empty());
    let share = |right: f64, of: usize| 100.0 * right / of as f64;
    match figure.measure {
        Measure::Auc => {
            let wins = answerable.iter().flat_map(|yes| {
                unanswerable.iter().map(move |no| match yes.best_score.total_cmp(&no.best_score) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                })
            });
            share(wins.sum(), answerable.len() * unanswerable.len())
        }
        measure => {
            let right = answerable.iter().filter(|asked| asked.is_hit(measure)).count();
            share(right as f64, answerable.len())
        }
    }
}

/// Every kind on every surface.
fn asked_kinds() -> Vec<(&'static str, Surface)> {
    let mut kinds: Vec<_> = FIGURES.iter().map(|figure| (figure.kind, figure.surface)).collect();
    kinds.dedup();
    kinds
}

fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = Vec::new();
    for figure in &FIGURES {
        if !kinds.contains(&figure.kind) {
            kinds.push(figure.kind);
        }
    }
    kinds
}

/// The figure as people read it.
fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.1}"))
}

#[test]
fn every_kind_of_question_is_answered_as_often_as_before() {
    let kinds = asked_kinds();
    let answers = at_once(kinds.len(), |n| asked(kinds[n]));

    let mut table =
        format!("{:<20} {:<11} {:>7} {:>7} {:>7} {:>7}\n", "kind", "", "frozen", "whole", "floor", "goal");
    let mut fallen = Vec::new();
    for figure in &FIGURES {
        let is_asked = |(kind, surface): &(&str, Surface)| (*kind, *surface) == (figure.kind, figure.surface);
        let asked = &answers[kinds.iter().position(is_asked).expect("a kind")];
        let all: Vec<&Asked> = asked.iter().collect();
        let frozen: Vec<&Asked> = asked.iter().filter(|asked| asked.item["frozen"] == true).collect();
        assert_eq!(frozen.len() * 2, all.len(), "half of {} is frozen", figure.kind);
        let (of_frozen, of_all) = (measured(figure, &frozen), measured(figure, &all));
        let chat = if figure.surface == Surface::Conversations { "*" } else { "" };
        let name = format!("{}{chat} {}", figure.kind, figure.language);
        let cells = [Some(of_frozen), Some(of_all), Some(figure.floor), figure.goal].map(shown);
        let [frozen, whole, floor, goal] = &cells;
        let measure = format!("{:?}", figure.measure);
        table += &format!("{name:<20} {measure:<11} {frozen:>7} {whole:>7} {floor:>7} {goal:>7}\n");
        if of_frozen < figure.floor {
            fallen.push(name);
        }
    }
    println!("{table}* asked of conversations");

    assert!(fallen.is_empty(), "below the floor: {fallen:?}\n{table}");
}

/// How many of all questions that have an answer, in per cent, must find it with nothing but the question: what the default
/// threshold promises. The frozen halves have the floor.
const COMES_BACK_FLOOR: f64 = 80.0;

/// How often the answer is among the results of a search that names no threshold, and of one that names another.
#[derive(Default)]
struct ComesBack {
    questions: usize,
    /// For each of [`THRESHOLDS`].
    answered: [usize; THRESHOLDS.len()],
    results: [usize; THRESHOLDS.len()],
}

/// The default, and none.
const THRESHOLDS: [Option<f64>; 2] = [None, Some(0.0)];

impl ComesBack {
    fn count(&mut self, other: &Self) {
        self.questions += other.questions;
        for at in 0..THRESHOLDS.len() {
            self.answered[at] += other.answered[at];
            self.results[at] += other.results[at];
        }
    }

    fn share(&self, at: usize) -> f64 {
        100.0 * self.answered[at] as f64 / self.questions as f64
    }

    fn row(&self, name: &str) -> String {
        let cells = (0..THRESHOLDS.len()).map(|at| {
            let results = self.results[at] as f64 / self.questions as f64;
            format!("{:>7.1} {results:>7.2}", self.share(at))
        });
        format!("{name:<22} {:>9} {}\n", self.questions, cells.collect::<Vec<_>>().join(" "))
    }
}

/// Asks what has an answer as the Python package and the tools of MCP do.
fn coming_back(remembered: &Remembered, items: &[Value], is_asked: impl Fn(&Value) -> bool) -> ComesBack {
    let mut all = ComesBack::default();
    for (n, item) in items.iter().enumerate() {
        let answer = item["want"].as_array().map_or(Some(0), |want| want.first().map(place));
        let Some(answer) = answer.filter(|_| is_asked(item)) else { continue };
        all.questions += 1;
        for (at, threshold) in THRESHOLDS.iter().enumerate() {
            let hits = remembered.search(item, &json!({"limit": 5, "threshold": threshold}));
            let answered = hits.iter().any(|hit| remembered.place_in(n, hit) == Some(answer));
            all.answered[at] += usize::from(answered);
            all.results[at] += hits.len();
        }
    }
    all
}

/// The questions that the curve of scores was made from: each has one memory.
fn fitted_questions() -> Vec<Value> {
    let path = format!("{}/../memtrove-recall/tests/fixtures/questions.tsv", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let item = |line: &str| {
        let (memory, question) = line.split_once('\t').expect("a memory and its question");
        json!({"memories": [{"text": memory}], "query": question, "want": [0]})
    };
    lines.lines().map(item).collect()
}

#[test]
fn most_questions_come_back_without_a_threshold() {
    let every = |_: &Value| true;
    let is_frozen = |item: &Value| item["frozen"] == true;
    let kinds = kinds();
    let sets = at_once(kinds.len() + 1, |n| match kinds.get(n) {
        Some(kind) => {
            let items = items(kind);
            let remembered = Remembered::new(&items);
            (coming_back(&remembered, &items, is_frozen), coming_back(&remembered, &items, every))
        }
        None => {
            let items = fitted_questions();
            (ComesBack::default(), coming_back(&Remembered::new(&items), &items, every))
        }
    });

    let (mut frozen, mut whole) = (ComesBack::default(), ComesBack::default());
    let heads = THRESHOLDS.map(|threshold| threshold.map_or("default".to_owned(), |one| format!("{one}")));
    let heads = heads.map(|head| format!("{head:>7} {:>7}", "results")).join(" ");
    let mut table = format!("{:<22} {:>9} {heads}\n", "kind", "questions");
    for (n, (of_frozen, of_all)) in sets.iter().enumerate() {
        let Some(kind) = kinds.get(n) else {
            table += &of_all.row("questions (fitted)");
            continue;
        };
        table += &of_frozen.row(&format!("{kind} (frozen)"));
        table += &of_all.row(kind);
        frozen.count(of_frozen);
        whole.count(of_all);
    }
    table += &frozen.row("all (frozen)");
    table += &whole.row("all");
    println!("{table}Per cent of the questions whose answer is among five results; results a question.");

    let fitted = &sets[kinds.len()].1;
    for (name, set) in [("frozen", &frozen), ("fitted", fitted)] {
        let reached = set.share(0);
        assert!(reached >= COMES_BACK_FLOOR, "{name}: {reached:.1} % come back by default\n{table}");
    }
}
