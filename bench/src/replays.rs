//! One recording and many who replay it, beside a plain stream of the same pieces.

use crate::dataset::conversations as requests;
use crate::dataset::translation::call;
use crate::hyper_client::{HyperConnection, Wire};
use crate::load::{Side, cpu_between, send_all};
use crate::progress::Progress;
use crate::server::Server;
use crate::stream_floor::{StreamFloorOptions, text};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use memtrove_proto::v1;
use memtrove_proto::v1::response_recorder_service_client::ResponseRecorderServiceClient;
use prost::Message;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tonic::Request;
use tonic::transport::Endpoint;
use uuid::Uuid;

/// How many replay at once.
const READERS: [usize; 3] = [1, 10, 100];
/// Turns that each side has.
const TURNS: u32 = 3;
/// What a recording is read back in, and how much of it there is: 16 MB.
const PIECES: StreamFloorOptions = StreamFloorOptions { piece: 32 * 1024 - 16, pieces: 512 };
/// Each reader has a connection of its own.
const WIRE: Wire = Wire::Http2 { streams: 1 };
const USER: &str = "narrator";
const CONVERSATION: Uuid = Uuid::from_u128(0x019b_76da_a800_7000_8000_0000_0000_00aa);

/// Everything that is compared.
#[derive(Default)]
pub struct Replays {
    rows: Vec<ReplayRow>,
}

struct ReplayRow {
    readers: usize,
    floor: Flow,
    product: Flow,
}

/// How much flowed, in each turn.
#[derive(Default)]
struct Flow {
    bytes_per_second: Vec<f64>,
    bytes: u64,
    server_cpu: Duration,
}

/// Measures all of it on servers of its own.
pub async fn measure(binary: &Path, seconds: f64, progress: Progress) -> Result<Replays> {
    progress.say("replays: recording");
    let product = Arc::new(Server::keeping_recordings(binary).await?);
    let floor = Arc::new(Server::stream_floor(&PIECES).await?);
    let text = text(&PIECES);
    record(&product, &text).await.context("cannot record")?;
    let conversation_id = Bytes::copy_from_slice(CONVERSATION.as_bytes());
    let message = v1::ReplayRequest { conversation_id }.encode_to_vec();
    let request = call("/memory.v1.ResponseRecorderService/Replay", USER, &message);
    let readers = Readers { request: Arc::new(request) };
    let sides = [&floor, &product].map(|server| Side::alone(Arc::clone(server), Vec::new()));
    for side in &sides {
        readers.check(side, &text).await?;
    }
    let mut measured = Replays::default();
    for count in READERS {
        progress.say(&format!("replays: measuring, readers: {count}"));
        let mut flows = [Flow::default(), Flow::default()];
        for _ in 0..TURNS {
            for (side, flow) in sides.iter().zip(&mut flows) {
                let measure = Duration::from_secs_f64(seconds / f64::from(TURNS));
                readers.drive(side, count, measure, flow).await?;
            }
        }
        let [floor, product] = flows;
        measured.rows.push(ReplayRow { readers: count, floor, product });
    }
    Ok(measured)
}

/// Records a response, as an agent does.
async fn record(server: &Server, text: &str) -> Result<()> {
    let conversation = CONVERSATION.to_string();
    send_all(server.address, vec![requests::append(USER, &conversation, "What happened?")]).await?;
    let first = v1::RecordRequest {
        conversation_id: Bytes::copy_from_slice(CONVERSATION.as_bytes()),
        ..v1::RecordRequest::default()
    };
    let contents: Vec<String> =
        text.as_bytes().chunks(20_000).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
    let messages =
        contents.into_iter().map(|content| v1::RecordRequest { content, ..v1::RecordRequest::default() });
    let last = v1::RecordRequest { complete: true, ..v1::RecordRequest::default() };
    let messages: Vec<_> = std::iter::once(first).chain(messages).chain([last]).collect();
    let mut request = Request::new(tokio_stream::iter(messages));
    request.metadata_mut().insert("authorization", format!("Bearer {USER}").parse()?);
    let channel = Endpoint::from_shared(format!("http://{}", server.address))?.connect().await?;
    let answer = ResponseRecorderServiceClient::new(channel).record(request).await?.into_inner();
    ensure!(answer.status() == v1::RecordStatus::Success, "the server answers {answer:?}");
    Ok(())
}

/// A reader of replays.
struct Readers {
    request: Arc<Vec<u8>>,
}

impl Readers {
    /// Replays once, to see that everything is there.
    async fn check(&self, side: &Side, text: &str) -> Result<()> {
        let mut connection = HyperConnection::open(side.nodes[0].address, WIRE).await?;
        let answer = connection.exchange(&self.request).await?;
        ensure!(answer.is_success(), "the server answers {}", answer.describe());
        let (mut rest, mut read) = (answer.body, String::new());
        while let Some((prefix, more)) = rest.split_at_checked(5) {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            let (message, more) = more.split_at_checked(length).context("a message is cut off")?;
            read.push_str(&v1::ReplayResponse::decode(message)?.content);
            rest = more;
        }
        ensure!(read == text, "of {} bytes that were recorded {} are replayed", text.len(), read.len());
        Ok(())
    }

    /// Lets this many replay again and again, each on a connection of its own.
    async fn drive(&self, side: &Side, count: usize, measure: Duration, flow: &mut Flow) -> Result<()> {
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(HyperConnection::open(side.nodes[0].address, WIRE).await?);
        }
        let begin = Instant::now() + Duration::from_millis(100);
        let end = begin + measure;
        let mut tasks = JoinSet::new();
        for connection in connections {
            tasks.spawn(read(connection, Arc::clone(&self.request), begin, end));
        }
        let [server_cpu, ..] = cpu_between(side, begin, end).await?;
        let mut bytes = 0;
        while let Some(read) = tasks.join_next().await {
            bytes += read??;
        }
        flow.bytes += bytes;
        flow.bytes_per_second.push(bytes as f64 / measure.as_secs_f64());
        flow.server_cpu += server_cpu;
        Ok(())
    }
}

/// One reader's share: the bytes that reached it within the measured time.
async fn read(
    mut connection: HyperConnection,
    request: Arc<Vec<u8>>,
    begin: Instant,
    end: Instant,
) -> Result<u64> {
    let mut bytes = 0;
    loop {
        let mut answer = connection.send(&request).await?;
        while let Some(frame) = answer.frame().await.transpose()? {
            let now = Instant::now();
            if now >= end {
                return Ok(bytes);
            }
            if let Some(data) = frame.data_ref().filter(|_| now >= begin) {
                bytes += data.len() as u64;
            }
        }
    }
}

impl Flow {
    fn megabytes_per_second(&self) -> f64 {
        let turns = self.bytes_per_second.len().max(1) as f64;
        self.bytes_per_second.iter().sum::<f64>() / turns / 1e6
    }

    /// The server's processor time for a megabyte, in microseconds.
    fn micros_per_megabyte(&self) -> f64 {
        self.server_cpu.as_secs_f64() * 1e6 / (self.bytes as f64 / 1e6)
    }

    fn json(&self) -> Value {
        json!({
            "bytesPerSecond": self.megabytes_per_second() * 1e6,
            "slicesBytesPerSecond": self.bytes_per_second,
            "serverCpuMicrosPerMegabyte": self.micros_per_megabyte(),
        })
    }
}

impl ReplayRow {
    /// The product's share of the floor, the median over the turns.
    fn ratio(&self) -> f64 {
        let turns = self.product.bytes_per_second.iter().zip(&self.floor.bytes_per_second);
        let mut turns: Vec<f64> = turns.map(|(product, floor)| product / floor).collect();
        turns.sort_by(f64::total_cmp);
        turns.get(turns.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl Replays {
    /// The table.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "## Replays\n\n\
             One recording of {} MB that lies sealed on the disk, and so many readers that replay it again and again, each on a\n\
             connection of its own. The floor is a plain tonic server that streams the same pieces from memory, in turns.\n\n\
             | readers | floor MB/s | Memtrove MB/s | ratio | floor CPU µs/MB | CPU µs/MB |\n|--:|--:|--:|--:|--:|--:|\n",
            PIECES.piece * PIECES.pieces / 1_000_000
        );
        for row in &self.rows {
            let _ = writeln!(
                out,
                "| {} | {:.0} | {:.0} | **{:.2}** | {:.0} | {:.0} |",
                row.readers,
                row.floor.megabytes_per_second(),
                row.product.megabytes_per_second(),
                row.ratio(),
                row.floor.micros_per_megabyte(),
                row.product.micros_per_megabyte()
            );
        }
        out.push('\n');
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let row = |row: &ReplayRow| {
            json!({
                "readers": row.readers,
                "ratio": row.ratio(),
                "floor": row.floor.json(),
                "product": row.product.json(),
            })
        };
        self.rows.iter().map(row).collect()
    }
}
