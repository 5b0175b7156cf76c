//! The embedded engine beside PostgreSQL, with one node and with three, and appends beside what PostgreSQL does by itself.

use crate::deployment::Deployment;
use crate::load::{self, Load, Run, Side};
use crate::postgres::{Inserts, Postgres};
use crate::progress::Progress;
use crate::report::{ratio, run_json, thousands, verdict};
use crate::scenario::{Operation, Workload};
use crate::server::Server;
use crate::world::World;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Turns that each side has.
const TURNS: usize = 3;
/// Connections of a node that write, as its settings have them unless somebody says otherwise.
const WRITERS: usize = 8;
/// What an append stores for a text of 300 bytes.
const CONTENT: usize = 330;
/// The least share of PostgreSQL's own inserts that appends must reach.
const GOAL: f64 = 0.5;

/// Everything that is compared.
pub struct Engines {
    /// The server's version.
    version: String,
    deployments: Vec<String>,
    rows: Vec<EngineRow>,
    floors: Vec<InsertFloor>,
}

/// An operation with this many connections.
struct EngineRow {
    operation: Operation,
    connections: usize,
    /// The HTTP shell around nothing.
    floor: Run,
    /// As many as there are deployments.
    runs: Vec<Run>,
}

/// Appends with this many connections, beside PostgreSQL's own inserts.
struct InsertFloor {
    connections: usize,
    nodes: usize,
    append: Run,
    /// With as many connections to the database as those nodes write with.
    as_writers: Vec<Inserts>,
    /// With as many connections to the database as clients have to the nodes.
    as_clients: Vec<Inserts>,
}

/// What to measure, and for how long.
pub struct EnginePlan<'a> {
    /// The product.
    pub binary: &'a Path,
    /// Whole seconds that each side has in a turn.
    pub seconds: u64,
    /// Connections to measure with.
    pub connections: &'a [usize],
    pub operations: Vec<Operation>,
    /// What is going on.
    pub progress: Progress,
}

pub async fn measure(plan: &EnginePlan<'_>) -> Result<Engines> {
    let postgres = Arc::new(Postgres::find()?);
    let most = plan.connections.iter().max().copied().unwrap_or(1);
    let deployments = [
        Deployment::Embedded,
        Deployment::Postgres(Arc::clone(&postgres), 1),
        Deployment::Postgres(Arc::clone(&postgres), 3),
    ];
    let titles = deployments.iter().map(Deployment::title).collect();
    let mut engines =
        Engines { version: postgres.version()?, deployments: titles, rows: vec![], floors: vec![] };
    let mut worlds = Vec::new();
    for deployment in deployments {
        worlds.push(World::new(plan.binary, deployment, most, plan.progress).await?);
    }
    for &operation in &plan.operations {
        let mut sides = Vec::new();
        for (world, title) in worlds.iter_mut().zip(&engines.deployments) {
            plan.progress.say(&format!("{}: seeding, {title}", operation.title()));
            let workload =
                operation.prepare(world).await.with_context(|| format!("cannot prepare {operation:?}"))?;
            if sides.is_empty() {
                sides.push(shell(&workload).await?);
            }
            sides.push(workload.side);
        }
        quiet(&sides, Duration::from_secs(60)).await?;
        for connections in plan.levels(operation) {
            plan.progress.say(&format!("{}: measuring, connections: {connections}", operation.title()));
            let mut runs = plan.in_turns(connections, &mut sides).await?.into_iter();
            let floor = runs.next().unwrap_or_default();
            engines.rows.push(EngineRow { operation, connections, floor, runs: runs.collect() });
        }
        if operation == Operation::Append {
            engines.floors = plan.floors(&postgres, &mut sides[2..]).await?;
        }
    }
    Ok(engines)
}

/// The HTTP shell, with the requests and the answers of a workload.
async fn shell(workload: &Workload) -> Result<Side> {
    let server = Server::floor(workload.status, &workload.body).await?;
    Ok(Side::alone(Arc::new(server), workload.side.senders.clone()))
}

impl EnginePlan<'_> {
    /// The connections to measure an operation with: latency without a queue and throughput say enough of most.
    fn levels(&self, operation: Operation) -> Vec<usize> {
        match self.connections {
            [fewest, .., most] if operation != Operation::Append => vec![*fewest, *most],
            all => all.to_vec(),
        }
    }

    async fn drive(&self, connections: usize, side: &mut Side) -> Result<Run> {
        let measure = Duration::from_secs(self.seconds);
        let load = Load { connections, warm_up: Duration::from_millis(300), measure };
        let run = load::drive(side, load).await?;
        quiet(std::slice::from_ref(side), Duration::from_secs(20)).await?;
        Ok(run)
    }

    async fn in_turns(&self, connections: usize, sides: &mut [Side]) -> Result<Vec<Run>> {
        let mut runs = vec![Run::default(); sides.len()];
        for _ in 0..TURNS {
            for (side, run) in sides.iter_mut().zip(&mut runs) {
                run.add(self.drive(connections, side).await?);
            }
        }
        Ok(runs)
    }

    /// Appends on PostgreSQL in turns with its own inserts.
    async fn floors(&self, postgres: &Postgres, sides: &mut [Side]) -> Result<Vec<InsertFloor>> {
        let table = postgres.floor_table()?;
        let mut floors = Vec::new();
        for &connections in self.connections {
            for side in sides.iter_mut() {
                let nodes = side.nodes.len();
                self.progress
                    .say(&format!("PostgreSQL's own inserts, connections: {connections}, nodes: {nodes}"));
                let mut floor = InsertFloor {
                    connections,
                    nodes,
                    append: Run::default(),
                    as_writers: vec![],
                    as_clients: vec![],
                };
                let writers = connections.min(WRITERS * nodes);
                for _ in 0..TURNS {
                    floor.as_writers.push(postgres.inserts(&table, writers, CONTENT, self.seconds)?);
                    floor.append.add(self.drive(connections, side).await?);
                    floor.as_clients.push(postgres.inserts(&table, connections, CONTENT, self.seconds)?);
                }
                floors.push(floor);
            }
        }
        Ok(floors)
    }
}

/// Waits until what requests left to the background is done, so that no side pays for another's turn.
async fn quiet(sides: &[Side], patience: Duration) -> Result<()> {
    const LOOK: Duration = Duration::from_millis(250);
    const BUSY: f64 = 0.1;
    let used = || {
        sides
            .iter()
            .map(Side::cpu_time)
            .map(|used| Ok(used?.iter().sum::<Duration>()))
            .sum::<Result<Duration>>()
    };
    let begun = Instant::now();
    let mut before = used()?;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = used()?;
        let busy = now.saturating_sub(before).as_secs_f64() / LOOK.as_secs_f64();
        if busy < BUSY || begun.elapsed() > patience {
            return Ok(());
        }
        before = now;
    }
}

impl InsertFloor {
    /// Appends as a share of the inserts beside them, the median over the turns.
    fn share(&self, inserts: &[Inserts]) -> f64 {
        median(self.append.slices.iter().zip(inserts).map(|(append, insert)| append / insert.per_second))
    }

    fn verdict(&self) -> String {
        verdict(&format!("≥ {GOAL}"), self.share(&self.as_writers) >= GOAL)
    }
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Engines {
    /// Requests that went wrong, each with an example.
    pub fn failures(&self) -> Vec<String> {
        let rows = self.rows.iter().flat_map(|row| {
            let name = format!("{} at {} connections", row.operation.title(), row.connections);
            self.deployments.iter().zip(&row.runs).map(move |(title, run)| (format!("{name}, {title}"), run))
        });
        let floors = self.floors.iter().map(|floor| ("append".to_owned(), &floor.append));
        rows.chain(floors)
            .filter(|(_, run)| run.failures > 0)
            .map(|(name, run)| {
                format!("{name}: {} failed, {}", run.failures, run.failure.as_deref().unwrap_or("?"))
            })
            .collect()
    }

    /// The tables.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "## PostgreSQL {} beside the embedded engine\n\n\
             In turns on one machine, every commit durable (`fsync`, `synchronous_commit` and `full_page_writes` are on). Nodes,\n\
             database and generator share the cores, so three nodes show what sharing costs and not what more machines\n\
             bring. Processor time is that of the nodes + that of the database, for one request.\n\n",
            self.version
        );
        self.write_rows(&mut out);
        self.write_floors(&mut out);
        out
    }

    fn write_rows(&self, out: &mut String) {
        out.push_str("| operation | conn. | HTTP floor/s |");
        for title in &self.deployments {
            let _ = write!(out, " {title}/s | p50 ms | p99 ms | CPU µs |");
        }
        out.push_str(" of embedded |\n|---|--:|--:|");
        out.push_str(&"--:|--:|--:|--:|".repeat(self.deployments.len()));
        out.push_str("--:|\n");
        for row in &self.rows {
            let floor = thousands(row.floor.throughput());
            let _ = write!(out, "| {} | {} | {floor} |", row.operation.title(), row.connections);
            for run in &row.runs {
                let [p50, p99] = run.percentiles([0.5, 0.99]);
                let per_second = thousands(run.throughput());
                let _ = write!(out, " **{per_second}** | {p50:.2} | {p99:.2} | {} |", cpu(run));
            }
            let shares: Vec<String> =
                row.runs[1..].iter().map(|run| format!("{:.2}", ratio(run, &row.runs[0]))).collect();
            let _ = writeln!(out, " {} |", shares.join(", "));
        }
        out.push('\n');
    }

    fn write_floors(&self, out: &mut String) {
        if self.floors.is_empty() {
            return;
        }
        let _ = write!(
            out,
            "## Appends beside PostgreSQL's own inserts\n\n\
             The floor is `pgbench` with prepared statements on the same server: one row of {CONTENT} bytes into a table with a\n\
             primary key, each in a transaction of its own. It has as many connections as the nodes write with ({WRITERS} each, or\n\
             fewer if there are fewer clients). The last columns are the same with a connection for each client.\n\n\
             | nodes | clients | connections | inserts/s | CPU µs | appends/s | CPU µs | **share** | goal | inserts/s with a connection per client | share |\n\
             |--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|\n"
        );
        for floor in &self.floors {
            let rate = |inserts: &[Inserts]| thousands(median(inserts.iter().map(|one| one.per_second)));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {:.0} | {} | {} | **{:.2}** | {} | {} | {:.2} |",
                floor.nodes,
                floor.connections,
                floor.connections.min(WRITERS * floor.nodes),
                rate(&floor.as_writers),
                median(floor.as_writers.iter().map(|one| one.cpu_micros)),
                thousands(floor.append.throughput()),
                cpu(&floor.append),
                floor.share(&floor.as_writers),
                floor.verdict(),
                rate(&floor.as_clients),
                floor.share(&floor.as_clients),
            );
        }
        out.push('\n');
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let inserts = |all: &[Inserts]| {
            let one =
                |one: &Inserts| json!({"perSecond": one.per_second, "databaseCpuMicros": one.cpu_micros});
            all.iter().map(one).collect::<Vec<_>>()
        };
        json!({
            "postgres": self.version,
            "deployments": self.deployments,
            "operations": self.rows.iter().map(|row| json!({
                "operation": row.operation.name(),
                "connections": row.connections,
                "floor": run_json(&row.floor),
                "runs": row.runs.iter().map(run_json).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "floors": self.floors.iter().map(|floor| json!({
                "nodes": floor.nodes,
                "connections": floor.connections,
                "append": run_json(&floor.append),
                "asWriters": inserts(&floor.as_writers),
                "asClients": inserts(&floor.as_clients),
                "share": floor.share(&floor.as_writers),
            })).collect::<Vec<_>>(),
        })
    }
}

fn cpu(run: &Run) -> String {
    match run.database_micros() {
        0.0 => format!("{:.0}", run.server_micros()),
        database => format!("{:.0} + {database:.0}", run.server_micros()),
    }
}
