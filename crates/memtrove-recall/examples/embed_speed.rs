//! How long the bundled model takes for a text: `cargo run --release -p memtrove-recall --example embed_speed`.

#![allow(clippy::print_stdout, reason = "it is run to be read")]

use memtrove_recall::embed::static_model::StaticModel;
use std::hint::black_box;
use std::time::Instant;

const SENTENCE: &str = "I moved to Lisbon last March and started a pottery class on Tuesdays.";

fn main() {
    let started = Instant::now();
    black_box(StaticModel::vector(""));
    println!("reading the vocabulary  {:>9.2} ms", started.elapsed().as_secs_f64() * 1e3);

    let page = format!("{SENTENCE} ").repeat(29);
    let longest = format!("{SENTENCE} ").repeat(1429);
    for (name, text, rounds) in [
        ("a question", "When do we deploy?", 100_000),
        ("a sentence", SENTENCE, 100_000),
        ("a page", &page, 2_000),
        ("the longest memory", &longest, 50),
    ] {
        let started = Instant::now();
        for _ in 0..rounds {
            black_box(StaticModel::vector(black_box(text)));
        }
        let each = started.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
        println!("{name:<19} {:>7} characters {each:>9.2} µs", text.len());
    }
}
