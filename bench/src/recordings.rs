//! A thousand responses that are recorded at once, each replayed twice meanwhile: how much goes through, and what it takes.

use crate::dataset::conversations as requests;
use crate::dataset::{Ids, Writer};
use crate::load::send_all;
use crate::progress::Progress;
use crate::report::verdict;
use crate::server::{Server, cpu_time};
use anyhow::{Result, ensure};
use bytes::Bytes;
use memtrove_proto::v1;
use memtrove_proto::v1::response_recorder_service_client::ResponseRecorderServiceClient;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

/// Responses that are recorded at the same time.
const RECORDINGS: usize = 1_000;
/// Every twentieth response is cancelled in the middle.
const CANCELLED: usize = 20;
/// Connections that they and their replays share.
const CONNECTIONS: usize = 16;
/// Messages of a response, and bytes of a message: 2 MiB.
const MESSAGES: usize = 512;
const MESSAGE: usize = 4096;
const USER: &str = "narrator";
/// Goals: memory is that of a few pieces of 32 KiB for each recording, however long it is; a cancel reaches the agent in a second.
const MEMORY_GOAL_MB: f64 = 256.0;
const CANCEL_GOAL_MILLIS: f64 = 1_000.0;

/// What was measured.
pub struct Recordings {
    seconds: f64,
    recorded: u64,
    replayed: u64,
    peak_bytes: u64,
    server_cpu: Duration,
    /// From asking for a cancel to the agent's answer, shortest first.
    cancels: Vec<Duration>,
}

/// Measures it on a server of its own.
pub async fn measure(binary: &Path, progress: Progress) -> Result<Recordings> {
    progress.say("recordings: seeding");
    let server = Server::keeping_recordings(binary).await?;
    let mut ids = Ids::default();
    let conversations: Vec<_> = (0..RECORDINGS).map(|_| ids.next()).collect();
    let append = |id: &uuid::Uuid| requests::append(USER, &id.to_string(), "What happened?");
    send_all(server.address, conversations.iter().map(append).collect()).await?;
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        let endpoint = Endpoint::from_shared(format!("http://{}", server.address))?;
        channels.push(endpoint.initial_connection_window_size(64 << 20).connect().await?);
    }
    let message: Arc<str> = Writer::new(13).text(MESSAGE).into();

    progress.say("recordings: measuring");
    let (begun, cpu) = (Instant::now(), cpu_time(server.id())?);
    let gates = [Arc::new(Barrier::new(RECORDINGS)), Arc::new(Barrier::new(RECORDINGS))];
    let mut tasks = JoinSet::new();
    for (number, id) in conversations.iter().enumerate() {
        let talk = Talk {
            conversation: Bytes::copy_from_slice(id.as_bytes()),
            message: Arc::clone(&message),
            agent: channels[number % CONNECTIONS].clone(),
            readers: channels[(number + 5) % CONNECTIONS].clone(),
            gates: gates.clone(),
        };
        tasks.spawn(talk.run(number % CANCELLED == 7));
    }
    let mut measured = Recordings {
        seconds: 0.0,
        recorded: 0,
        replayed: 0,
        peak_bytes: 0,
        server_cpu: Duration::ZERO,
        cancels: Vec::new(),
    };
    while let Some(done) = tasks.join_next().await {
        let TalkOutcome { recorded, replayed, cancelled } = done??;
        measured.recorded += recorded;
        measured.replayed += replayed;
        measured.cancels.extend(cancelled);
    }
    measured.seconds = begun.elapsed().as_secs_f64();
    measured.server_cpu = cpu_time(server.id())?.saturating_sub(cpu);
    measured.peak_bytes = server.peak_bytes()?;
    measured.cancels.sort();
    Ok(measured)
}

/// A response with its agent and its readers.
struct Talk {
    conversation: Bytes,
    message: Arc<str>,
    agent: Channel,
    readers: Channel,
    /// They open when every recording has begun, and when every one has both of its replays.
    gates: [Arc<Barrier>; 2],
}

/// How a response went.
struct TalkOutcome {
    recorded: u64,
    replayed: u64,
    cancelled: Option<Duration>,
}

impl Talk {
    async fn run(self, is_cancelled: bool) -> Result<TalkOutcome> {
        let (sender, receiver) = mpsc::channel(4);
        let first = v1::RecordRequest {
            conversation_id: self.conversation.clone(),
            content: self.message.to_string(),
            complete: false,
        };
        sender.send(first).await?;
        let mut client = ResponseRecorderServiceClient::new(self.agent.clone());
        let request = request_of(ReceiverStream::new(receiver))?;
        let call = tokio::spawn(async move { client.record(request).await });
        let early = self.begun_replay().await?;
        self.gates[0].wait().await;

        let early = tokio::spawn(drain(early));
        let mut said = 1;
        while said < MESSAGES / 2 {
            sender.send(self.next()).await?;
            said += 1;
        }
        let late = tokio::spawn(drain((0, self.replay().await?)));
        self.gates[1].wait().await;

        let mut cancelled = None;
        if is_cancelled {
            let begun = Instant::now();
            let conversation_id = self.conversation.clone();
            let cancel = request_of(v1::CancelRecordRequest { conversation_id })?;
            let mut client = ResponseRecorderServiceClient::new(self.readers.clone());
            let (answer, asked) = tokio::join!(call, client.cancel(cancel));
            asked?;
            let answer = answer??.into_inner();
            ensure!(
                answer.status() == v1::RecordStatus::Cancelled,
                "a cancelled call is answered {answer:?}"
            );
            cancelled = Some(begun.elapsed());
        } else {
            while said < MESSAGES {
                sender.send(self.next()).await?;
                said += 1;
            }
            sender.send(v1::RecordRequest { complete: true, ..v1::RecordRequest::default() }).await?;
            let answer = call.await??.into_inner();
            ensure!(answer.status() == v1::RecordStatus::Success, "a recording is answered {answer:?}");
        }
        let (early, late) = (early.await??, late.await??);
        ensure!(early == late, "two replays have {early} and {late} bytes");
        ensure!(is_cancelled || early == (MESSAGES * MESSAGE) as u64, "a replay has {early} bytes");
        Ok(TalkOutcome { recorded: early, replayed: early + late, cancelled })
    }

    fn next(&self) -> v1::RecordRequest {
        v1::RecordRequest { content: self.message.to_string(), ..v1::RecordRequest::default() }
    }

    async fn replay(&self) -> Result<Streaming<v1::ReplayResponse>> {
        let request = request_of(v1::ReplayRequest { conversation_id: self.conversation.clone() })?;
        Ok(ResponseRecorderServiceClient::new(self.readers.clone()).replay(request).await?.into_inner())
    }

    /// A replay, as soon as there is something to replay; without its first message.
    async fn begun_replay(&self) -> Result<(u64, Streaming<v1::ReplayResponse>)> {
        loop {
            let mut stream = self.replay().await?;
            if let Some(message) = stream.message().await? {
                return Ok((message.content.len() as u64, stream));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Reads a replay to its end; how much it had.
async fn drain((mut bytes, mut stream): (u64, Streaming<v1::ReplayResponse>)) -> Result<u64> {
    while let Some(message) = stream.message().await? {
        bytes += message.content.len() as u64;
    }
    Ok(bytes)
}

fn request_of<T>(message: T) -> Result<Request<T>> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {USER}").parse()?);
    Ok(request)
}

impl Recordings {
    fn slowest_cancel(&self) -> f64 {
        self.cancels.last().map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    }

    /// The table.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "## Recordings\n\n\
             {RECORDINGS} responses of {} MiB at once in messages of {MESSAGE} bytes, each replayed from the beginning by one reader and\n\
             from the middle of it on by another who catches up; one in {CANCELLED} is cancelled in the middle. All on {CONNECTIONS} connections\n\
             of one process, whose client is tonic's and shares the cores with the server.\n\n\
             | | result | goal |\n|---|--:|---|\n",
            (MESSAGES * MESSAGE) >> 20
        );
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let _ = writeln!(out, "| recorded | {:.0} MB/s | |", megabytes(self.recorded) / self.seconds);
        let _ = writeln!(out, "| replayed | {:.0} MB/s | |", megabytes(self.replayed) / self.seconds);
        let _ = writeln!(
            out,
            "| server CPU for a megabyte recorded and replayed twice | {:.0} µs | |",
            self.server_cpu.as_secs_f64() * 1e6 / megabytes(self.recorded)
        );
        let peak = megabytes(self.peak_bytes);
        let memory = verdict(&format!("≤ {MEMORY_GOAL_MB:.0} MB"), peak <= MEMORY_GOAL_MB);
        let _ = writeln!(
            out,
            "| most memory resident, for {:.0} MB recorded | {peak:.0} MB | {memory} |",
            megabytes(self.recorded)
        );
        let slowest = self.slowest_cancel();
        let cancel = verdict(&format!("≤ {CANCEL_GOAL_MILLIS:.0} ms"), slowest <= CANCEL_GOAL_MILLIS);
        let _ = writeln!(out, "| slowest of {} cancels | {slowest:.0} ms | {cancel} |", self.cancels.len());
        out.push('\n');
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "seconds": self.seconds,
            "recordedBytes": self.recorded,
            "replayedBytes": self.replayed,
            "peakResidentBytes": self.peak_bytes,
            "serverCpuSeconds": self.server_cpu.as_secs_f64(),
            "cancelMillis": self.cancels.iter().map(|took| took.as_secs_f64() * 1e3).collect::<Vec<_>>(),
        })
    }
}
