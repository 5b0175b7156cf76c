//! `make bench`: load against a running Memtrove, next to the floor of its own stack.
//!
//! It starts the release binary on empty folders, seeds it over HTTP, and measures from this second process. Every
//! operation is measured in turns with the floor (see [`floor`]), so that noise hits both. This crate knows the
//! product by its HTTP contract and its shell only; it never opens the store.
//!
//! To measure one more operation, see [`scenario`]; one more thing that must not grow, see [`growth`].
#![allow(clippy::print_stdout, reason = "progress and results are this program's output")]

mod against;
mod dataset;
mod deployment;
mod engines;
mod floor;
mod growth;
mod hyper_client;
mod load;
mod machine;
mod memories;
mod postgres;
mod progress;
mod recordings;
mod replays;
mod report;
mod scenario;
mod sender;
mod server;
mod stream_floor;
mod transports;
mod world;

use against::AgainstOlder;
use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use deployment::Deployment;
use engines::Engines;
use growth::Growth;
use load::{Load, Run, Side};
use machine::Machine;
use postgres::Postgres;
use progress::Progress;
use report::{Comparison, Footprint, Grown, Report};
use scenario::Operation;
use serde_json::Value;
use server::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// The product's allocator, because the floor is the product's stack.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Memtrove over HTTP, next to the floor of its own stack.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    process: Option<Process>,
    /// What is measured: the embedded engine, or PostgreSQL beside it.
    #[arg(long, value_enum, default_value_t)]
    engine: Engine,
    /// Seconds measured on each side of a comparison [default: 1.2, with PostgreSQL 6]
    #[arg(long)]
    seconds: Option<f64>,
    /// Connections to measure with [default: 64,256, with PostgreSQL 1,16,64]
    #[arg(long, value_delimiter = ',')]
    connections: Vec<usize>,
    /// Measures only this part; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = part_names())]
    only: Vec<String>,
    /// Measures every operation in turns with this older binary, on the same engine, in place of all else.
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// The memtrove binary [default: the one next to this program]
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// Where the results are written.
    #[arg(long, value_name = "FOLDER", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    #[default]
    Sqlite,
    Postgres,
}

impl Engine {
    /// A commit on PostgreSQL waits for other processes: that takes longer to come to rest, and shows with one connection.
    fn seconds(self) -> f64 {
        match self {
            Self::Sqlite => 1.2,
            Self::Postgres => 6.0,
        }
    }

    fn connections(self) -> &'static [usize] {
        match self {
            Self::Sqlite => &[64, 256],
            Self::Postgres => &[1, 16, 64],
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Process {
    /// Serves the floor; the benchmark starts it by itself.
    #[command(hide = true)]
    Floor(floor::FloorOptions),
    /// Serves the floor of replays.
    #[command(hide = true)]
    StreamFloor(stream_floor::StreamFloorOptions),
}

/// Slices each side of a comparison is cut into; the sides take turns.
const SLICES: u32 = 3;

const FOOTPRINT: &str = "footprint";
const ENGINE: &str = "engine";
const MEMORIES: &str = "memories";
const GRPC: &str = "grpc";
const REPLAYS: &str = "replays";
const RECORDINGS: &str = "recordings";

fn part_names() -> clap::builder::PossibleValuesParser {
    let operations = Operation::ALL.map(Operation::name);
    let growths = Growth::ALL.map(Growth::name);
    operations
        .into_iter()
        .chain(growths)
        .chain([FOOTPRINT, ENGINE, MEMORIES, GRPC, REPLAYS, RECORDINGS])
        .collect::<Vec<_>>()
        .into()
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<ExitCode> {
    match &options.process {
        Some(Process::Floor(floor)) => return floor::serve(floor).map(|()| ExitCode::SUCCESS),
        Some(Process::StreamFloor(floor)) => return stream_floor::serve(floor).map(|()| ExitCode::SUCCESS),
        None => {}
    }
    // One thread for all connections: see `load`.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(Bench::run(options))?;
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Bench {
    options: Options,
    seconds: f64,
    connections: Vec<usize>,
    binary: PathBuf,
    progress: Progress,
}

impl Bench {
    async fn run(options: Options) -> Result<Report> {
        let seconds = options.seconds.unwrap_or(options.engine.seconds());
        let connections = match options.connections.as_slice() {
            [] => options.engine.connections().to_vec(),
            asked => asked.to_vec(),
        };
        ensure!(connections.iter().all(|&count| count > 0), "--connections must be at least 1");
        ensure!(seconds > 0.0, "--seconds must be more than 0");
        let binary = binary(options.bin.as_deref())?;
        let bench = Self { options, seconds, connections, binary, progress: Progress::begin() };
        let mut report = Report {
            machine: Machine::inspect(&std::env::temp_dir())?,
            seconds,
            comparisons: Vec::new(),
            grown: Vec::new(),
            engine: None,
            footprint: None,
            memories: None,
            engines: None,
            transports: None,
            replays: None,
            recordings: None,
            against: None,
        };
        println!("{}", report.machine.describe());
        match (&bench.options.against, bench.options.engine) {
            (Some(older), engine) => report.against = Some(bench.against(older, engine).await?),
            (None, Engine::Sqlite) => bench.measure_all(&mut report).await?,
            (None, Engine::Postgres) => report.engines = Some(bench.beside().await?),
        }
        println!("\n{}", report.markdown());
        println!("Written to {}", report.write(&bench.options.results)?.display());
        Ok(report)
    }

    /// This build beside an older one.
    async fn against(&self, older: &Path, engine: Engine) -> Result<AgainstOlder> {
        let deployment = match engine {
            Engine::Sqlite => Deployment::Embedded,
            Engine::Postgres => Deployment::Postgres(Arc::new(Postgres::find()?), 1),
        };
        let plan = against::AgainstPlan {
            older: &binary(Some(older))?,
            newer: &self.binary,
            deployment,
            seconds: self.seconds / f64::from(SLICES),
            connections: &self.connections,
            operations: self.quickly_seeded(),
            progress: self.progress,
        };
        against::measure(&plan).await
    }

    /// What is asked for, without a million events over HTTP: what grows is in docs/scaling.md.
    fn quickly_seeded(&self) -> Vec<Operation> {
        let large = Operation::CrowdedEventSearch;
        Operation::ALL.into_iter().filter(|&o| o != large && self.wants(o.name())).collect()
    }

    /// PostgreSQL beside the embedded engine.
    async fn beside(&self) -> Result<Engines> {
        let plan = engines::EnginePlan {
            binary: &self.binary,
            // What pgbench can be told.
            seconds: (self.seconds / f64::from(SLICES)).ceil() as u64,
            connections: &self.connections,
            operations: self.quickly_seeded(),
            progress: self.progress,
        };
        engines::measure(&plan).await
    }

    async fn measure_all(&self, report: &mut Report) -> Result<()> {
        if self.wants(FOOTPRINT) {
            report.footprint = Some(self.footprint().await?);
        }
        if self.wants(ENGINE) {
            report.engine = self.engine()?;
        }
        if self.wants(MEMORIES) {
            let seconds = self.seconds * 2.0;
            report.memories = Some(memories::measure(&self.binary, seconds, &self.progress).await?);
        }
        if self.wants(REPLAYS) {
            report.replays = Some(replays::measure(&self.binary, self.seconds, self.progress).await?);
        }
        if self.wants(RECORDINGS) {
            report.recordings = Some(recordings::measure(&self.binary, self.progress).await?);
        }
        let most = self.connections.iter().max().copied().unwrap_or(1);
        let mut world = World::new(&self.binary, Deployment::Embedded, most, self.progress).await?;
        if self.wants(GRPC) {
            let clients = &self.options.connections;
            let measured = transports::measure(&mut world, self.seconds, clients, self.progress).await?;
            report.transports = Some(measured);
        }
        self.compare(&mut world, report).await?;
        self.grow(&mut world, report).await?;
        for (name, server) in world.servers() {
            self.say(&format!("done; {name} now holds {:.0} MB", server.resident_bytes()? as f64 / 1e6));
        }
        Ok(())
    }

    /// Every operation against the floor.
    async fn compare(&self, world: &mut World, report: &mut Report) -> Result<()> {
        for operation in Operation::ALL.into_iter().filter(|operation| self.wants(operation.name())) {
            self.say(&format!("{}: seeding", operation.title()));
            let workload =
                operation.prepare(world).await.with_context(|| format!("cannot prepare {operation:?}"))?;
            let floor = Server::floor(workload.status, &workload.body).await?;
            let floor = Side::alone(Arc::new(floor), workload.side.senders.clone());
            let mut sides = [floor, workload.side];
            for connections in levels(operation.unqueued(), &self.connections) {
                self.say(&format!("{}: measuring, connections: {connections}", operation.title()));
                let [floor, product] = self.measure(connections, &mut sides).await?;
                report.comparisons.push(Comparison { operation, connections, product, floor });
            }
        }
        Ok(())
    }

    /// The same request on little and on much.
    async fn grow(&self, world: &mut World, report: &mut Report) -> Result<()> {
        for growth in Growth::ALL.into_iter().filter(|growth| self.wants(growth.name())) {
            self.say(&format!("{}: seeding", growth.title()));
            let sides = growth.prepare(world).await.with_context(|| format!("cannot prepare {growth:?}"))?;
            let mut sides = [sides.little, sides.much];
            for connections in levels(growth.unqueued(), &self.connections[..1]) {
                self.say(&format!("{}: measuring, connections: {connections}", growth.title()));
                let [little, much] = self.measure(connections, &mut sides).await?;
                report.grown.push(Grown { growth, connections, little, much });
            }
        }
        Ok(())
    }

    /// Measures two sides in turns, A B A B …, so that noise hits both.
    async fn measure(&self, connections: usize, sides: &mut [Side; 2]) -> Result<[Run; 2]> {
        let measure = Duration::from_secs_f64(self.seconds / f64::from(SLICES));
        let load = Load { connections, warm_up: Duration::from_millis(100), measure };
        let mut runs = [Run::default(), Run::default()];
        for _ in 0..SLICES {
            for (side, run) in sides.iter_mut().zip(&mut runs) {
                run.add(load::drive(side, load).await?);
            }
        }
        Ok(runs)
    }

    /// Start and idle memory on an empty folder.
    async fn footprint(&self) -> Result<Footprint> {
        self.say("footprint: five starts");
        let mut starts = Vec::new();
        let mut resident_bytes = 0;
        for _ in 0..5 {
            let server = Server::product(&self.binary).await?;
            starts.push(server.ready_after.as_secs_f64() * 1e3);
            // Long enough for start-up work to end and its memory to be counted.
            tokio::time::sleep(Duration::from_millis(300)).await;
            resident_bytes = resident_bytes.max(server.resident_bytes()?);
        }
        starts.sort_by(f64::total_cmp);
        Ok(Footprint { resident_bytes, start_millis: starts[starts.len() / 2] })
    }

    /// Commits per second of the engine without anything around it: what writes could reach at best.
    fn engine(&self) -> Result<Option<Value>> {
        let Some(program) = beside_this("examples/commits") else {
            self.say(
                "engine: the example `commits` of memtrove-store is not built next to this program; left out",
            );
            return Ok(None);
        };
        self.say("engine: commits per second");
        let run =
            Command::new(&program).output().with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(run.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&run.stderr));
        let text = String::from_utf8(run.stdout)?;
        let json = text.find('{').map_or("", |start| &text[start..]);
        Ok(Some(serde_json::from_str(json).with_context(|| format!("{} printed {text}", program.display()))?))
    }

    fn wants(&self, part: &str) -> bool {
        self.options.only.is_empty() || self.options.only.iter().any(|only| only == part)
    }

    fn say(&self, what: &str) {
        self.progress.say(what);
    }
}

/// The connections to measure with: those asked for, and perhaps one alone.
fn levels(unqueued: bool, asked: &[usize]) -> Vec<usize> {
    let alone = if unqueued && !asked.contains(&1) { &[1][..] } else { &[] };
    [alone, asked].concat()
}

/// The binary under test, as an absolute path: the server runs in a folder of its own.
fn binary(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(path) => path.canonicalize().with_context(|| format!("there is no binary {}", path.display())),
        None => match beside_this("memtrove") {
            Some(path) => Ok(path),
            None => bail!("no memtrove binary next to this program: build it, or name one with --bin"),
        },
    }
}

/// A file in the folder this program was built into.
fn beside_this(name: &str) -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.join(name);
    path.is_file().then_some(path)
}
