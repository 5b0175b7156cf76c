//! gRPC beside REST: the same operations, the same data, in turns.

use crate::dataset::Ids;
use crate::dataset::translation::as_calls;
use crate::hyper_client::{HyperConnection, Wire};
use crate::load::{self, Load, Run, Side};
use crate::progress::Progress;
use crate::report::{ratio, run_json, thousands, verdict};
use crate::sender::{IdEncoding, Sender, Template};
use crate::server::Server;
use crate::world::World;
use anyhow::{Context as _, Result, ensure};
use memtrove_proto::v1;
use prost::Message;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What is measured over each transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransportOperation {
    Append,
    Page,
    Sync,
    Growing,
}

/// How requests travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// REST over HTTP/1.1, with a connection for each client.
    Rest,
    /// gRPC, with a connection for each client.
    Calls,
    /// REST over HTTP/2, with a connection for each client: what framing costs.
    RestOverHttp2,
    /// gRPC, with one connection for all clients.
    CallsTogether,
}

/// What gRPC must reach of REST's throughput.
const GOAL: f64 = 1.0;
/// Clients, each with one request under way.
const CLIENTS: [usize; 3] = [1, 16, 64];
/// Turns that each way has.
const TURNS: u32 = 3;
/// Stands for conversations that have their ids when requests are sent.
const GAP: Uuid = Uuid::from_u128(0x0f1e_2d3c_4b5a_7697_8796_a5b4_c3d2_e1f0);

/// Everything that is compared.
#[derive(Default)]
pub struct Transports {
    rows: Vec<TransportRow>,
}

struct TransportRow {
    operation: TransportOperation,
    clients: usize,
    /// In the order of [`Way::ALL`].
    runs: [Run; 4],
}

/// Measures all of it, with this many clients unless those of [`CLIENTS`] are wanted.
pub async fn measure(
    world: &mut World,
    seconds: f64,
    clients: &[usize],
    progress: Progress,
) -> Result<Transports> {
    let clients = if clients.is_empty() { &CLIENTS } else { clients };
    let most = clients.iter().max().copied().unwrap_or(1);
    let mut measured = Transports::default();
    for operation in TransportOperation::ALL {
        progress.say(&format!("gRPC beside REST, {}: seeding", operation.title()));
        let prepared = operation.prepare(world, most).await;
        let mut sides = prepared.with_context(|| format!("cannot prepare {operation:?}"))?;
        for &clients in clients {
            progress.say(&format!("gRPC beside REST, {}: measuring, clients: {clients}", operation.title()));
            let measure = Duration::from_secs_f64(seconds / f64::from(TURNS));
            let load = Load { connections: clients, warm_up: Duration::from_millis(100), measure };
            let mut runs: [Run; 4] = Default::default();
            for _ in 0..TURNS {
                for (side, run) in sides.iter_mut().zip(&mut runs) {
                    run.add(load::drive(side, load).await?);
                }
            }
            measured.rows.push(TransportRow { operation, clients, runs });
        }
    }
    Ok(measured)
}

impl Way {
    const ALL: [Self; 4] = [Self::Rest, Self::Calls, Self::RestOverHttp2, Self::CallsTogether];

    fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Calls => "grpc",
            Self::RestOverHttp2 => "restOverHttp2",
            Self::CallsTogether => "grpcOnOneConnection",
        }
    }

    /// What connections speak, with this many clients at most.
    fn wire(self, most: usize) -> Wire {
        match self {
            Self::Rest => Wire::Http1,
            Self::Calls | Self::RestOverHttp2 => Wire::Http2 { streams: 1 },
            Self::CallsTogether => Wire::Http2 { streams: most },
        }
    }

    fn is_rest(self) -> bool {
        matches!(self, Self::Rest | Self::RestOverHttp2)
    }

    fn translate(self, requests: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if self.is_rest() { Ok(requests) } else { as_calls(&requests) }
    }
}

impl TransportOperation {
    const ALL: [Self; 4] = [Self::Append, Self::Page, Self::Sync, Self::Growing];

    fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Page => "page",
            Self::Sync => "sync",
            Self::Growing => "sync-growing",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Append => "append, 300 bytes",
            Self::Page => "newest 50 entries",
            Self::Sync => "no-op sync, 500 messages",
            Self::Growing => "sync of one more message, 1 to 50",
        }
    }

    /// Its requests for each way, in the order of [`Way::ALL`].
    async fn prepare(self, world: &mut World, most: usize) -> Result<[Side; 4]> {
        let server = Arc::clone(world.server());
        let common = match self {
            Self::Append => world.append_requests().await?,
            Self::Page => world.page_requests().await?,
            Self::Sync | Self::Growing => Vec::new(),
        };
        let mut sides = Vec::new();
        for (number, way) in Way::ALL.into_iter().enumerate() {
            let senders = match self {
                Self::Append | Self::Page => Sender::random(way.translate(common.clone())?, most),
                Self::Sync => {
                    // What was synced over one transport is another request over the other: each has memories of its own.
                    let syncs = way.translate(world.sync_requests())?;
                    seed(&server, way.wire(1), &syncs).await?;
                    Sender::random(syncs, most)
                }
                Self::Growing => growing(way, world.growing_requests(&GAP.to_string(), most), number * most)?,
            };
            let mut side = Side::alone(Arc::clone(&server), senders);
            side.wire = Some(way.wire(most));
            self.check(&mut side, way).await?;
            sides.push(side);
        }
        sides.try_into().ok().context("as many sides as ways")
    }

    /// Asks once, to see that it does what is to be measured.
    async fn check(self, side: &mut Side, way: Way) -> Result<()> {
        let answer = side.ask().await?;
        let (right, shown) = match way.is_rest() {
            true => {
                let body: Value = serde_json::from_slice(&answer)?;
                let right = match self {
                    Self::Append => body["id"].is_string(),
                    Self::Page => body["data"].as_array().is_some_and(|entries| entries.len() == 50),
                    Self::Sync => body["noOp"] == true,
                    Self::Growing => body["noOp"] == false,
                };
                (right, body.to_string())
            }
            false => {
                let message = answer.get(5..).context("an answer without a message")?;
                match self {
                    Self::Append => {
                        let entry = v1::Entry::decode(message)?;
                        (entry.id.len() == 16, format!("{entry:?}"))
                    }
                    Self::Page => {
                        let page = v1::ListEntriesResponse::decode(message)?;
                        (page.entries.len() == 50, format!("{page:?}"))
                    }
                    Self::Sync | Self::Growing => {
                        let synced = v1::SyncEntriesResponse::decode(message)?;
                        (synced.no_op == (self == Self::Sync), format!("{synced:?}"))
                    }
                }
            }
        };
        ensure!(right, "{self:?} over {way:?} should not be answered {shown:.500}");
        Ok(())
    }
}

/// Sends each request once.
async fn seed(server: &Server, wire: Wire, requests: &[Vec<u8>]) -> Result<()> {
    let mut connection = HyperConnection::open(server.address, wire).await?;
    for request in requests {
        let answer = connection.exchange(request).await?;
        ensure!(answer.is_success(), "the server answers {}", answer.describe());
    }
    Ok(())
}

/// Senders of memories that grow, each of its own user. `first` is the number of the first of them among all ways.
fn growing(way: Way, requests: Vec<Vec<Vec<u8>>>, first: usize) -> Result<Vec<Sender>> {
    let sender = |(number, requests)| {
        let ids = Ids::of((first + number) as u64);
        let template = |request: &Vec<u8>| match way.is_rest() {
            true => Template::new(request, GAP.to_string()),
            false => Template::new(request, GAP.as_bytes()),
        };
        let encoding = if way.is_rest() { IdEncoding::Text } else { IdEncoding::Bytes };
        Ok(Sender::growing(way.translate(requests)?.iter().map(template).collect(), ids, encoding))
    };
    requests.into_iter().enumerate().map(sender).collect()
}

impl TransportRow {
    fn run(&self, way: Way) -> &Run {
        let [rest, calls, rest_over_http2, calls_together] = &self.runs;
        match way {
            Way::Rest => rest,
            Way::Calls => calls,
            Way::RestOverHttp2 => rest_over_http2,
            Way::CallsTogether => calls_together,
        }
    }

    /// The throughput of one way as a share of REST's.
    fn ratio(&self, way: Way) -> f64 {
        ratio(self.run(way), self.run(Way::Rest))
    }
}

impl Transports {
    /// Requests that went wrong, each with an example.
    pub fn failures(&self) -> Vec<String> {
        let runs = self.rows.iter().flat_map(|row| Way::ALL.map(|way| (row, way, row.run(way))));
        runs.filter(|(.., run)| run.failures > 0)
            .map(|(row, way, run)| {
                let failure = run.failure.as_deref().unwrap_or("?");
                format!("{} over {}: {} failed, {failure}", row.operation.title(), way.name(), run.failures)
            })
            .collect()
    }

    /// The table.
    pub fn markdown(&self) -> String {
        let mut out = String::from(
            "## gRPC beside REST\n\n\
             The same operations on the same server in turns. Every client has one request under way: on a connection of its own,\n\
             or in the last columns on a stream of one connection that all share. Ratios are to REST over HTTP/1.1; REST over\n\
             HTTP/2 shows what of it is framing. CPU is the server's for one request.\n\n\
             | operation | clients | REST/s | gRPC/s | **ratio** | REST p50 ms | gRPC p50 | REST CPU µs | gRPC CPU | generator µs | goal \
             | REST over HTTP/2 /s | ratio | CPU µs | gRPC on one connection /s | ratio | CPU µs |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|\n",
        );
        for row in &self.rows {
            let [rest, calls, framed, together] = &row.runs;
            let ([rest_p50], [calls_p50]) = (rest.percentiles([0.5]), calls.percentiles([0.5]));
            let ratio = row.ratio(Way::Calls);
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | **{ratio:.2}** | {rest_p50:.2} | {calls_p50:.2} | {:.0} | {:.0} | {:.0}, {:.0} | {} | {} | {:.2} | {:.0} | {} | {:.2} | {:.0} |",
                row.operation.title(),
                row.clients,
                thousands(rest.throughput()),
                thousands(calls.throughput()),
                rest.server_micros(),
                calls.server_micros(),
                rest.generator_micros(),
                calls.generator_micros(),
                verdict(&format!("≥ {GOAL:.1} ×"), ratio >= GOAL),
                thousands(framed.throughput()),
                row.ratio(Way::RestOverHttp2),
                framed.server_micros(),
                thousands(together.throughput()),
                row.ratio(Way::CallsTogether),
                together.server_micros(),
            );
        }
        out.push('\n');
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let row = |row: &TransportRow| {
            let ways = Way::ALL.map(|way| (way.name().to_owned(), run_json(row.run(way))));
            json!({
                "operation": row.operation.name(),
                "clients": row.clients,
                "ratio": row.ratio(Way::Calls),
                "ways": ways.into_iter().collect::<serde_json::Map<_, _>>(),
            })
        };
        self.rows.iter().map(row).collect()
    }
}
