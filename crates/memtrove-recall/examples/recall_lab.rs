//! What the ranker is worth on LoCoMo: `recall_lab <locomo10.json> [directory of the local model]`.
//!
//! Every question is asked over the turns of its own conversation, in this process; `bench/` does the same through the
//! API. Weights may be tuned on conversations of odd number, and are reported for those of even number apart.
#![allow(clippy::print_stdout, reason = "what it is for")]

use memtrove_core::recall::actors::{self, Subject};
use memtrove_core::recall::document::parts;
use memtrove_core::recall::fusion::{Candidate, REACH, Weights, rank};
use memtrove_core::recall::lexical::idf;
use memtrove_core::recall::terms::{Terms, query, terms};
use memtrove_core::text::Analyzer;
use memtrove_recall::embed::Vector;
use memtrove_recall::embed::static_model::StaticModel;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::error::Error;

/// So many are found by words, and by meaning.
const FOUND: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let data = std::fs::read(arguments.next().ok_or("where is locomo10.json?")?)?;
    let samples: Vec<Value> = serde_json::from_slice(&data)?;
    let analyzer = Analyzer::new("english").ok_or("no analyser for English")?;
    let dialogues: Vec<Dialogue> = samples.iter().map(|sample| Dialogue::read(sample, &analyzer)).collect();

    let fixed = Weights::default();
    let words = Lab::new(&dialogues, None, None);
    println!("| | part | {} | adv. R@10 |", METRICS.join(" | "));
    words.report("lexical", &fixed);
    let quick = embed(&dialogues, &|text| StaticModel::vector(text));
    let still = Lab::new(&dialogues, Some(&quick), Some(&quick));
    still.report("static", &fixed);
    let mut labs = vec![("lexical", words), ("static", still)];
    let slow = arguments.next().map(|directory| local(&directory, &dialogues)).transpose()?;
    if let Some(slow) = &slow {
        Lab::new(&dialogues, Some(&quick), Some(slow)).report("static query, local documents", &fixed);
        let local = Lab::new(&dialogues, Some(slow), Some(slow));
        local.report("local", &fixed);
        labs.push(("local", local));
    }
    for (name, lab) in &labs {
        println!("\n{name}, odd numbers: R@10 without each part");
        lab.without("nothing", &fixed);
        lab.without("the meaning of neighbours", &Weights { context: 0.0, ..fixed });
        lab.without("who speaks", &Weights { by_another: 1.0, ..fixed });
        lab.without("what asks", &Weights { asks: 1.0, ..fixed });
        lab.alone();
    }
    Ok(())
}

#[cfg(feature = "local")]
fn local(directory: &str, dialogues: &[Dialogue]) -> Result<Vec<Vectors>, Box<dyn Error>> {
    let model = memtrove_recall::embed::local::LocalEmbedder::open(directory.as_ref())?;
    Ok(embed(dialogues, &|text| model.compute(&[text]).remove(0)))
}

#[cfg(not(feature = "local"))]
fn local(_: &str, _: &[Dialogue]) -> Result<Vec<Vectors>, Box<dyn Error>> {
    Err("built without the feature `local`".into())
}

/// A conversation and what is asked about it.
struct Dialogue {
    turns: Vec<Turn>,
    questions: Vec<Question>,
    names: BTreeSet<String>,
}

struct Turn {
    session: u64,
    position: u32,
    speaker: Option<String>,
    asks: bool,
    pieces: Vec<Piece>,
}

struct Piece {
    body: String,
    terms: HashSet<u64>,
    length: u32,
}

struct Question {
    text: String,
    terms: Vec<u64>,
    adversarial: bool,
    evidence: Vec<usize>,
}

impl Dialogue {
    fn read(sample: &Value, analyzer: &Analyzer) -> Self {
        let conversation = &sample["conversation"];
        let (mut turns, mut ids) = (Vec::new(), Vec::new());
        for session in 1..100 {
            let Some(said) = conversation[format!("session_{session}")].as_array() else { continue };
            let date = conversation[format!("session_{session}_date_time")].as_str().unwrap_or_default();
            for (position, turn) in said.iter().enumerate() {
                ids.extend(named_turns(&turn["dia_id"]));
                turns.push(Turn::of(&as_indexed(turn, date), session, position as u32, analyzer));
            }
        }
        let names = turns.iter().filter_map(|turn| turn.speaker.clone()).collect();
        let questions = sample["qa"].as_array().into_iter().flatten().filter_map(|asked| {
            let mut evidence: Vec<usize> = asked["evidence"]
                .as_array()?
                .iter()
                .flat_map(named_turns)
                .filter_map(|id| ids.iter().position(|known| *known == id))
                .collect();
            evidence.sort_unstable();
            evidence.dedup();
            let text = asked["question"].as_str()?.to_owned();
            let terms = query(analyzer, &text);
            let adversarial = asked["category"] == 5;
            (!evidence.is_empty()).then_some(Question { text, terms, adversarial, evidence })
        });
        let questions = questions.collect();
        Self { turns, questions, names }
    }
}

/// A turn as an agent would hand it in.
fn as_indexed(turn: &Value, date: &str) -> String {
    let member = |name: &str| turn[name].as_str().unwrap_or_default();
    let shared = match member("blip_caption") {
        "" => String::new(),
        caption => format!(" [shares {caption}]"),
    };
    format!("[{date}] {}: {}{shared}", member("speaker"), member("text"))
}

/// The turns that a label names: some labels are joined or mistyped ("D8:6; D9:17", "D:11:26").
fn named_turns(label: &Value) -> Vec<(u32, u32)> {
    let numbers = |part: &str| {
        let mut numbers = part.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    };
    label.as_str().unwrap_or_default().split('D').filter_map(numbers).collect()
}

impl Turn {
    fn of(text: &str, session: u64, position: u32, analyzer: &Analyzer) -> Self {
        let parts = parts(text);
        let piece = |body: &str| {
            let Terms { counts, length } = terms(analyzer, &parts.searched(body));
            Piece { body: body.to_owned(), terms: counts.into_iter().map(|(hash, _)| hash).collect(), length }
        };
        let pieces = parts.pieces().into_iter().map(piece).collect();
        let speaker = parts.speaker.map(str::to_owned);
        Self { session, position, speaker, asks: parts.asks(), pieces }
    }
}

/// The vectors of a conversation: of each turn's pieces, and of each question.
struct Vectors {
    turns: Vec<Vec<Vector>>,
    questions: Vec<Vector>,
}

fn embed(dialogues: &[Dialogue], model: &dyn Fn(&str) -> Vector) -> Vec<Vectors> {
    let vectors = |dialogue: &Dialogue| {
        let names = || dialogue.names.iter().map(String::as_str);
        let turn = |turn: &Turn| turn.pieces.iter().map(|piece| model(&piece.body)).collect();
        let question = |question: &Question| model(&actors::in_first_person(&question.text, names()));
        Vectors {
            turns: dialogue.turns.iter().map(turn).collect(),
            questions: dialogue.questions.iter().map(question).collect(),
        }
    };
    dialogues.iter().map(vectors).collect()
}

/// Everything found for all questions, to be ranked one way and another.
struct Lab<'a> {
    dialogues: &'a [Dialogue],
    found: Vec<Vec<Found>>,
}

/// What the ranker is given for a question.
struct Found {
    turns: Vec<usize>,
    worth: Vec<f64>,
    candidates: Vec<Candidate>,
}

impl<'a> Lab<'a> {
    fn new(dialogues: &'a [Dialogue], asked: Option<&[Vectors]>, said: Option<&[Vectors]>) -> Self {
        let found = |(number, dialogue): (usize, &Dialogue)| {
            let asked = asked.map(|vectors| &vectors[number].questions);
            let said = said.map(|vectors| &vectors[number].turns);
            let questions = dialogue.questions.iter().enumerate();
            questions
                .map(|(at, question)| find(dialogue, question, asked.map(|all| &all[at]), said))
                .collect()
        };
        Self { dialogues, found: dialogues.iter().enumerate().map(found).collect() }
    }

    fn report(&self, name: &str, weights: &Weights) {
        for part in [Part::All, Part::Odd, Part::Even] {
            let (metrics, adversarial) = self.measure(part, weights);
            let metrics: Vec<String> = metrics.iter().map(|value| format!("{value:.1}")).collect();
            println!("| {name} | {part:?} | {} | {adversarial:.1} |", metrics.join(" | "));
        }
    }

    fn without(&self, what: &str, weights: &Weights) {
        let (metrics, adversarial) = self.measure(Part::Odd, weights);
        println!("- {what}: {:.1}, adversarial {adversarial:.1}", metrics[1]);
    }

    /// Without neighbours at all: as if every turn were a session of its own.
    fn alone(&self) {
        let alone = |found: &Found| Found {
            turns: found.turns.clone(),
            worth: found.worth.clone(),
            candidates: (0u64..)
                .zip(&found.candidates)
                .map(|(n, c)| Candidate { session: n, ..*c })
                .collect(),
        };
        let found = self.found.iter().map(|all| all.iter().map(alone).collect()).collect();
        Lab { dialogues: self.dialogues, found }.without("neighbours", &Weights::default());
    }

    /// The means over the questions, and recall at 10 of the adversarial ones apart, in per cent.
    fn measure(&self, part: Part, weights: &Weights) -> ([f64; METRICS.len()], f64) {
        let (mut sums, mut count) = ([0.0; METRICS.len()], 0.0);
        let (mut adversarial, mut adversarial_count) = (0.0, 0.0);
        let numbered = self.dialogues.iter().zip(&self.found).enumerate();
        for (_, (dialogue, found)) in numbered.filter(|(number, _)| part.has(*number)) {
            for (question, found) in dialogue.questions.iter().zip(found) {
                let metrics = measure(dialogue, question, &found.ranked(weights));
                if question.adversarial {
                    adversarial += metrics[1];
                    adversarial_count += 1.0;
                } else {
                    sums.iter_mut().zip(metrics).for_each(|(sum, metric)| *sum += metric);
                    count += 1.0;
                }
            }
        }
        (sums.map(|sum| 100.0 * sum / count), 100.0 * adversarial / adversarial_count)
    }
}

/// Finds what is to be ranked: the best by words and by meaning, and their neighbours.
fn find(
    dialogue: &Dialogue,
    question: &Question,
    asked: Option<&Vector>,
    said: Option<&Vec<Vec<Vector>>>,
) -> Found {
    let pieces = || dialogue.turns.iter().flat_map(|turn| &turn.pieces);
    let total = pieces().count();
    let worth: Vec<f64> = question
        .terms
        .iter()
        .map(|term| idf(total, pieces().filter(|piece| piece.terms.contains(term)).count()))
        .collect();
    let held = |piece: &Piece| {
        let terms = question.terms.iter().enumerate().filter(|(_, term)| piece.terms.contains(term));
        terms.fold((0.0, 0u64), |(sum, mask), (n, _)| (sum + worth[n], mask | 1 << n))
    };
    let words: Vec<(f64, u64)> = dialogue
        .turns
        .iter()
        .map(|turn| {
            turn.pieces.iter().map(held).max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default()
        })
        .collect();
    let similarity = |turn: usize| {
        let (asked, pieces) = (asked?, &said?[turn]);
        pieces.iter().map(|piece| cosine(piece, asked)).max_by(f64::total_cmp)
    };
    let similarities: Vec<Option<f64>> = (0..dialogue.turns.len()).map(similarity).collect();

    let best_by_words = best(words.iter().map(|(sum, _)| Some(*sum).filter(|sum| *sum > 0.0)));
    let best_by_meaning = best(similarities.iter().copied());
    let turns: BTreeSet<usize> =
        best_by_words.into_iter().chain(best_by_meaning).flat_map(|at| around(dialogue, at)).collect();
    let names = dialogue.names.iter().map(String::as_str);
    let subject = actors::subject(&question.text, names);
    let understood = StaticModel::understood(&question.text);
    let candidate = |at: &usize| {
        let turn = &dialogue.turns[*at];
        let by_another =
            matches!(subject, Some(Subject::Named(name)) if turn.speaker.as_deref() != Some(name));
        Candidate {
            terms: words[*at].1,
            similarity: similarities[*at],
            understood,
            length: turn.pieces.iter().map(|piece| piece.length).sum(),
            by_agent: false,
            by_another,
            asks: turn.asks,
            session: turn.session,
            position: turn.position,
        }
    };
    let candidates = turns.iter().map(candidate).collect();
    Found { turns: turns.into_iter().collect(), worth, candidates }
}

fn best(values: impl Iterator<Item = Option<f64>>) -> Vec<usize> {
    let mut numbered: Vec<(usize, f64)> =
        values.enumerate().filter_map(|(number, value)| Some((number, value?))).collect();
    numbered.sort_by(|one, other| other.1.total_cmp(&one.1));
    numbered.into_iter().take(FOUND).map(|(number, _)| number).collect()
}

fn around(dialogue: &Dialogue, at: usize) -> impl Iterator<Item = usize> {
    let (reach, session) = (REACH as usize, dialogue.turns[at].session);
    let near = at.saturating_sub(reach)..(at + reach + 1).min(dialogue.turns.len());
    near.filter(move |other| dialogue.turns[*other].session == session)
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| f64::from(a * b)).sum()
}

impl Found {
    /// The turns found, the best first.
    fn ranked(&self, weights: &Weights) -> Vec<usize> {
        let scores = rank(&self.worth, &self.candidates, weights);
        let mut ranked: Vec<(usize, f64)> =
            self.turns.iter().copied().zip(scores.iter().map(|s| s.score)).collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked.into_iter().map(|(turn, _)| turn).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Part {
    All,
    Odd,
    Even,
}

impl Part {
    fn has(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::Odd => number % 2 == 1,
            Self::Even => number.is_multiple_of(2),
        }
    }
}

const METRICS: [&str; 8] = ["R@5", "R@10", "R@20", "R@50", "hit@10", "MRR", "nDCG@10", "S@5"];

fn measure(dialogue: &Dialogue, question: &Question, ranked: &[usize]) -> [f64; METRICS.len()] {
    let wanted = question.evidence.len() as f64;
    let places: Vec<usize> =
        question.evidence.iter().filter_map(|turn| ranked.iter().position(|other| other == turn)).collect();
    let recall = |most: usize| places.iter().filter(|place| **place < most).count() as f64 / wanted;
    let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
    let ideal: f64 = (0..question.evidence.len().min(10)).map(gain).sum();
    let gained: f64 = places.iter().filter(|place| **place < 10).map(|place| gain(*place)).sum();
    let session = |turn: &usize| dialogue.turns[*turn].session;
    let mut sessions: Vec<u64> = Vec::new();
    for session in ranked.iter().map(session) {
        if sessions.len() < 5 && !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    let hit_session = question.evidence.iter().map(session).any(|session| sessions.contains(&session));
    [
        recall(5),
        recall(10),
        recall(20),
        recall(50),
        f64::from(recall(10) > 0.0),
        places.iter().min().map_or(0.0, |place| 1.0 / (*place as f64 + 1.0)),
        gained / ideal,
        f64::from(hit_session),
    ]
}
