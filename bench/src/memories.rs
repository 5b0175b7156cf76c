//! Memories under load: how long a search takes as its scope grows, and as everybody else's do.

use crate::dataset::memories as requests;
use crate::load::{self, Load, Run, Side};
use crate::progress::Progress;
use crate::report::{thousands, verdict};
use crate::sender::Sender;
use crate::server::Server;
use anyhow::{Context as _, Result};
use memtrove_recall::embed::{EmbeddingConfig, Embeddings};
use memtrove_recall::index::rescore;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The sizes of the scopes that are searched, smallest first.
const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Statements of one bulk request.
const BULK: u64 = 250;
/// Bulk requests that are under way at once.
const BULK_CONNECTIONS: usize = 8;
/// Questions whose answers are compared with those of a full scan.
const COMPARED: u64 = 50;

/// A measured number next to what was asked of it.
pub struct GoalRow {
    what: String,
    result: String,
    goal: String,
    json: Value,
}

/// What was measured.
pub struct Memories {
    rows: Vec<GoalRow>,
    /// Requests that went wrong.
    pub failures: Vec<String>,
}

struct MemoryBench<'a> {
    server: Arc<Server>,
    seconds: f64,
    progress: &'a Progress,
    measured: Memories,
}

/// Measures all of it on a server of its own.
pub async fn measure(binary: &Path, seconds: f64, progress: &Progress) -> Result<Memories> {
    let server = Arc::new(Server::product(binary).await?);
    let measured = Memories { rows: Vec::new(), failures: Vec::new() };
    let mut bench = MemoryBench { server, seconds, progress, measured };
    bench.embed().await?;
    bench.add().await?;
    bench.layers().await?;
    let mut alone = None;
    for size in SIZES {
        bench.fill(size).await?;
        let run = bench.search_scope(size).await?;
        if size == 10_000 {
            alone = Some(run);
        }
    }
    bench.among_others(alone.as_ref()).await?;
    bench.recall().await?;
    bench.memory()?;
    Ok(bench.measured)
}

fn scope(size: u64) -> Value {
    json!({"projectId": format!("p{size}")})
}

impl MemoryBench<'_> {
    fn row(&mut self, what: impl Into<String>, result: String, goal: String, json: Value) {
        self.measured.rows.push(GoalRow { what: what.into(), result, goal, json });
    }

    async fn drive(&mut self, requests: Vec<Vec<u8>>, connections: usize, what: &str) -> Result<Run> {
        let senders = Sender::random(requests, connections);
        let mut side = Side::alone(self.server.clone(), senders);
        let measure = Duration::from_secs_f64(self.seconds);
        let run = load::drive(&mut side, Load { connections, warm_up: Duration::from_millis(200), measure })
            .await?;
        if run.failures > 0 {
            self.measured.failures.push(format!("{what}: {}", run.failure.as_deref().unwrap_or("?")));
        }
        Ok(run)
    }

    /// One text through the bundled model, in this process: what an add or a search spends on it.
    async fn embed(&mut self) -> Result<()> {
        let embeddings = Embeddings::new(EmbeddingConfig::default())?;
        embeddings.now("The first one reads the vocabulary").context("the bundled model")?;
        let texts: Vec<String> = (0..1_000).map(requests::statement).collect();
        let started = Instant::now();
        for text in &texts {
            std::hint::black_box(embeddings.now(text));
        }
        let micros = started.elapsed().as_secs_f64() * 1e6 / texts.len() as f64;
        self.row(
            "embed one statement (static)",
            format!("{micros:.1} µs"),
            String::new(),
            json!({"micros": micros}),
        );
        Ok(())
    }

    async fn add(&mut self) -> Result<()> {
        self.progress.say("memories: add");
        for connections in [1, 64] {
            let identifiers = json!({"projectId": "adds"});
            let requests = (0..2_000).map(|number| requests::add("project", &identifiers, number)).collect();
            let run = self.drive(requests, connections, "add").await?;
            let [p50, p99] = run.percentiles([0.5, 0.99]);
            let per_second = thousands(run.throughput());
            let result = format!("{per_second}/s, p50 {p50:.2} ms, p99 {p99:.2} ms");
            self.row(format!("add, {connections} connections"), result, String::new(), latency(&run));
        }
        Ok(())
    }

    /// Fills a scope by bulk requests; the largest one is the measurement.
    async fn fill(&mut self, size: u64) -> Result<()> {
        self.progress.say(&format!("memories: {} in one scope", thousands(size as f64)));
        let identifiers = scope(size);
        let started = Instant::now();
        let mut next = 0;
        while next < size {
            let step = (BULK * BULK_CONNECTIONS as u64).min(size - next);
            let batches = (next..next + step).step_by(BULK as usize);
            let batch =
                |from: u64| requests::bulk_add("project", &identifiers, from..(from + BULK).min(size));
            load::send_all(self.server.address, batches.map(batch).collect()).await?;
            next += step;
        }
        let per_second = size as f64 / started.elapsed().as_secs_f64();
        if size == SIZES[3] {
            let goal = verdict("≥ 3,000/s", per_second >= 3_000.0);
            let result = format!("{} memories/s", thousands(per_second));
            self.row(format!("bulk add, {BULK} at a time"), result, goal, json!({"perSecond": per_second}));
        }
        Ok(())
    }

    async fn searches(&mut self, size: u64, what: &str) -> Result<Run> {
        let identifiers = scope(size);
        let requests: Vec<Vec<u8>> =
            (0..500).map(|number| requests::search(&["project"], &identifiers, number, false)).collect();
        // The first one reads the scope into memory.
        let started = Instant::now();
        load::send_all(self.server.address, requests[..1].to_vec()).await?;
        self.progress
            .say(&format!("memories: {what}, first search after {:.1} s", started.elapsed().as_secs_f64()));
        self.drive(requests, 1, what).await
    }

    async fn search_scope(&mut self, size: u64) -> Result<Run> {
        let what = format!("search, {} in the scope", thousands(size as f64));
        let run = self.searches(size, &what).await?;
        let [p50, p99] = run.percentiles([0.5, 0.99]);
        let goal = match size {
            10_000 => format!("{}; {}", verdict("p50 ≤ 2 ms", p50 <= 2.0), verdict("p99 ≤ 8 ms", p99 <= 8.0)),
            100_000 => verdict("p50 ≤ 4 ms", p50 <= 4.0),
            1_000_000 => verdict("p50 ≤ 12 ms", p50 <= 12.0),
            _ => String::new(),
        };
        self.row(what, format!("p50 {p50:.2} ms, p99 {p99:.2} ms"), goal, latency(&run));
        Ok(run)
    }

    async fn layers(&mut self) -> Result<()> {
        self.progress.say("memories: seven layers");
        let identifiers = json!({"agentId": "bench-agent", "userId": "bench", "sessionId": "s", "projectId": "p",
            "teamId": "t", "orgId": "o", "companyId": "default"});
        let layers = ["agent", "user", "session", "project", "team", "org", "company"];
        let batches = layers.iter().flat_map(|layer| {
            let identifiers = &identifiers;
            (0..4).map(move |part| requests::bulk_add(layer, identifiers, part * BULK..(part + 1) * BULK))
        });
        load::send_all(self.server.address, batches.collect()).await?;
        let requests =
            (0..500).map(|number| requests::search(&layers, &identifiers, number, false)).collect();
        let run = self.drive(requests, 1, "seven layers").await?;
        let [p50, p99] = run.percentiles([0.5, 0.99]);
        self.row(
            "search, seven layers of 1,000",
            format!("p50 {p50:.2} ms, p99 {p99:.2} ms"),
            String::new(),
            latency(&run),
        );
        Ok(())
    }

    /// The 10,000 again, now that 1,000,000 others are there.
    async fn among_others(&mut self, alone: Option<&Run>) -> Result<()> {
        let Some(alone) = alone else { return Ok(()) };
        let what = "search, 10,000 in the scope and 1,101,000 in others";
        let run = self.searches(10_000, what).await?;
        let ([before], [after]) = (alone.percentiles([0.5]), run.percentiles([0.5]));
        let times = after / before;
        let goal = verdict("≤ 1.2 × the time without them", times <= 1.2);
        self.row(
            what,
            format!("p50 {after:.2} ms, {times:.2} ×"),
            goal,
            json!({"times": times, "p50Millis": after}),
        );
        Ok(())
    }

    /// The best ten of the largest scope against those of a scan over everything.
    async fn recall(&mut self) -> Result<()> {
        self.progress.say("memories: recall against a full scan");
        let size = SIZES[3];
        let embeddings = Embeddings::new(EmbeddingConfig::default())?;
        let vector = |text: &str| embeddings.now(text).map(|made| made.vector).context("the bundled model");
        let questions: Vec<Vec<f32>> =
            (0..COMPARED).map(|number| vector(&requests::question(number))).collect::<Result<_>>()?;
        let mut best: Vec<Vec<f32>> = vec![Vec::new(); questions.len()];
        for number in 0..size {
            let statement = vector(&requests::statement(number))?;
            for (question, best) in questions.iter().zip(&mut best) {
                let similarity = rescore(question, &statement);
                if best.len() < 10 || similarity > best[9] {
                    let at = best.partition_point(|other| *other >= similarity);
                    best.insert(at, similarity);
                    best.truncate(10);
                }
            }
        }
        let asked =
            (0..COMPARED).map(|number| requests::search(&["project"], &scope(size), number, true)).collect();
        let answers = load::send_all(self.server.address, asked).await?;
        let mut found = 0;
        for (answer, best) in answers.iter().zip(&best) {
            let answer: Value = serde_json::from_slice(answer)?;
            let results = answer["results"].as_array().context("no results")?;
            let similar =
                |result: &&Value| result["similarity"].as_f64().unwrap_or(0.0) >= f64::from(best[9]) - 1e-5;
            found += results.iter().filter(similar).count().min(10);
        }
        let recall = found as f64 / (COMPARED * 10) as f64;
        let goal = verdict("≥ 0.98", recall >= 0.98);
        self.row(
            "recall@10 of exact, 1,000,000 in the scope",
            format!("{recall:.3}"),
            goal,
            json!({"recall": recall}),
        );
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        let megabytes = self.server.resident_bytes()? as f64 / 1e6;
        let goal = verdict("≤ 800 MB", megabytes <= 800.0);
        let what = "resident memory with all scopes in use (1,119,000 memories)";
        self.row(what, format!("{megabytes:.0} MB"), goal, json!({"megabytes": megabytes}));
        Ok(())
    }
}

fn latency(run: &Run) -> Value {
    let [p50, p99] = run.percentiles([0.5, 0.99]);
    json!({"perSecond": run.throughput(), "p50Millis": p50, "p99Millis": p99})
}

impl Memories {
    /// The table.
    pub fn markdown(&self) -> String {
        let mut out = String::from(
            "## Memories\n\nOver HTTP with one connection unless said otherwise: latency is the work and not the queue.\n\n\
             | | result | goal |\n|---|--:|---|\n",
        );
        for GoalRow { what, result, goal, .. } in &self.rows {
            out.push_str(&format!("| {what} | {result} | {goal} |\n"));
        }
        out.push('\n');
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        self.rows.iter().map(|row| (row.what.clone(), row.json.clone())).collect()
    }
}
