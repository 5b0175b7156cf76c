//! How long the local embedder takes: `local_speed <directory of the model>`.
#![allow(clippy::print_stdout, reason = "what it is for")]

use memtrove_recall::embed::local::LocalEmbedder;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory is the model in?")?;
    let start = Instant::now();
    let embedder = LocalEmbedder::open(Path::new(&directory))?;
    println!("loaded in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    for tokens in [8, 16, 32, 64, 128, 256] {
        let text = words(tokens - 2);
        println!("{tokens:>4} tokens: {:.2} ms", median(41, || drop(embedder.compute(&[&text]))));
    }
    for tokens in [8, 16, 32, 64] {
        let text = words(tokens - 2);
        let texts = vec![text.as_str(); 64];
        let took = median(5, || drop(embedder.compute(&texts)));
        println!("texts of {tokens} tokens: {:.0} per second", texts.len() as f64 / took * 1e3);
    }
    Ok(())
}

/// So many words of one token each.
fn words(count: usize) -> String {
    let words = ["the", "old", "river", "runs", "past", "every", "house", "in", "town"];
    words.into_iter().cycle().take(count).collect::<Vec<_>>().join(" ")
}

/// The median of so many runs, in milliseconds.
fn median(runs: usize, run: impl Fn()) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
