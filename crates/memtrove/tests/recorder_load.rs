//! The recorder under load: a thousand responses at once, each replayed twice while it is recorded.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use memtrove_proto::json;
use memtrove_proto::v1::entries_service_client::EntriesServiceClient;
use memtrove_proto::v1::response_recorder_service_client::ResponseRecorderServiceClient;
use memtrove_proto::v1::{self, RecordRequest, RecordResponse, RecordStatus, ReplayResponse};
use memtrove_testkit::server::{Setup, TestServer, fresh_id, fresh_name};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::{Barrier, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// Responses that are recorded at the same time.
const RECORDINGS: usize = 1_000;
/// Connections that they and their replays share: each may have 128 calls at a time.
const CONNECTIONS: usize = 32;
/// Bytes of a line. No piece that the server cuts a recording into is a multiple of it, so pieces end inside characters.
const LINE: usize = 256;
/// Lines of a message: 8 KiB.
const LINES: usize = 32;
/// Messages of a response: half a MiB.
const MESSAGES: usize = 64;
/// The most memory the server may ever have resident. All responses together are half a gibibyte, which does not fit beside what
/// counts: how many recordings, replays and connections there are, and not how long they are:
/// - 128 MiB before it does anything, half of which is the debug binary itself;
/// - two pieces of 32 KiB of each recording: the one that grows and the one that is being written;
/// - three times 32 KiB of each of its two replays: a piece as it was read, as a message, and in the connection's send buffer;
/// - a window of 1 MiB of each connection: what was received and not yet asked for.
///
/// That is 410 MiB. Half of it again is for the state of 3,000 calls, which are not optimised, and for what the allocator keeps: 420
/// to 489 MiB were seen, also on a machine that had ten times the work that it could do. With windows of 4 MiB it was 629.
const MEMORY: u64 = {
    let piece = 32 << 10;
    let recordings = RECORDINGS as u64 * 2 * piece;
    let replays = RECORDINGS as u64 * 2 * 3 * piece;
    let connections = CONNECTIONS as u64 * (1 << 20);
    ((128 << 20) + recordings + replays + connections) / 2 * 3
};
/// A cancel is to reach the agent within a second. Here client and server want more of the processor than there is, and neither
/// is optimised; but it must not wait until the load is over.
const CANCEL: Duration = Duration::from_secs(5);
/// Longer than all of it takes.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn a_thousand_responses_are_recorded_and_replayed_twice_each_in_bounded_memory() {
    let runtime = runtime();
    let folder = TempDir::new().expect("a folder");
    let server = start(&folder);
    let load = within(&runtime, Load::prepare(&server));
    let begun = Instant::now();

    let cancels = within(&runtime, async {
        let mut recordings = JoinSet::new();
        let (all_begun, all_replayed) =
            (Arc::new(Barrier::new(RECORDINGS + 1)), Arc::new(Barrier::new(RECORDINGS)));
        for number in 0..RECORDINGS {
            let (load, part) = (Arc::clone(&load), Part::of(number));
            let gates = [Arc::clone(&all_begun), Arc::clone(&all_replayed)];
            recordings.spawn(async move { load.record_and_replay(number, part, gates).await });
        }
        let watcher = Arc::clone(&load);
        recordings.spawn(async move {
            watcher.all_are_live().await;
            all_begun.wait().await;
            None
        });
        let mut cancels = Vec::new();
        while let Some(done) = recordings.join_next().await {
            cancels.extend(done.expect("a recording goes well"));
        }
        cancels
    });

    let slowest = cancels.iter().max().copied().unwrap_or_default();
    let memory = peak_memory(&server);
    let spooled = spooled(&server, folder.path());
    println!(
        "{RECORDINGS} recordings in {:.1?}: {} MiB at most in memory, {} MiB on the disk, the slowest of {} cancels took {:.0?}",
        begun.elapsed(),
        memory >> 20,
        spooled >> 20,
        cancels.len(),
        slowest
    );
    assert_eq!(cancels.len(), RECORDINGS / 20);
    assert!(slowest <= CANCEL, "a cancel took {slowest:?}");
    let recorded = (RECORDINGS * MESSAGES * LINES * LINE) as u64;
    assert!(spooled >= recorded / 4 * 3, "only {spooled} of {recorded} bytes are on the disk");
    assert!(memory <= MEMORY, "the server took {} MiB", memory >> 20);
}

#[test]
fn a_crash_under_load_leaves_no_file_and_every_conversation_free() {
    let runtime = runtime();
    let folder = TempDir::new().expect("a folder");
    let mut server = start(&folder);
    let mut load = within(&runtime, Load::prepare(&server));

    let calls = within(&runtime, async {
        let calls: Vec<_> = (0..RECORDINGS).map(|number| load.record(number)).collect();
        load.all_are_live().await;
        calls.into_iter().map(|(agent, call)| (tokio::spawn(agent.talk_from(1)), call)).collect::<Vec<_>>()
    });
    let deadline = Instant::now() + PATIENCE;
    while spooled(&server, folder.path()) < 32 << 20 {
        assert!(Instant::now() < deadline, "nothing was ever written to the disk");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.kill();
    within(&runtime, async {
        for (talk, call) in calls {
            talk.await.expect("no panic");
            let answer = call.await.expect("no panic");
            assert!(answer.is_err(), "the server is dead, and answers {answer:?}");
        }
    });
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    assert!(left.is_empty(), "the crash has left {left:?}");

    server.restart();
    load = within(&runtime, load.at(&server));
    within(&runtime, async {
        let mut again = JoinSet::new();
        for number in 0..RECORDINGS {
            let load = Arc::clone(&load);
            again.spawn(async move {
                assert_eq!(
                    load.entries(number).await,
                    [opening(number)],
                    "what was appended before is there"
                );
                let (agent, call) = load.record(number);
                agent.complete().await;
                expect(&call.await, RecordStatus::Success);
                let heard = Listener::new(number, load.replay(number).await).hear_all().await;
                assert_eq!(heard, LINES * LINE, "one message was recorded anew");
            });
        }
        while let Some(done) = again.join_next().await {
            done.expect("a conversation is as it was");
        }
    });
}

/// What becomes of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It is recorded to its end.
    Whole,
    /// One of its replays stands still until it has ended.
    SlowReader,
    /// It is cancelled in the middle.
    Cancelled,
}

impl Part {
    fn of(number: usize) -> Self {
        match number % 20 {
            7 => Self::Cancelled,
            13 => Self::SlowReader,
            _ => Self::Whole,
        }
    }
}

/// The conversations, and connections of the user they belong to.
struct Load {
    user: String,
    conversations: Vec<Bytes>,
    channels: Vec<Channel>,
    /// A connection with nothing else on it, as somebody has who presses a button.
    aside: Channel,
}

impl Load {
    /// A user with a thousand conversations, each with an entry.
    async fn prepare(server: &TestServer) -> Arc<Self> {
        let conversations = (0..RECORDINGS).map(|_| fresh_id_bytes()).collect();
        let load = Self::connect(server, fresh_name("agent"), conversations).await;
        let mut appends = JoinSet::new();
        for number in 0..RECORDINGS {
            let load = Arc::clone(&load);
            appends.spawn(async move { load.append(number).await });
        }
        while let Some(done) = appends.join_next().await {
            done.expect("an entry is appended");
        }
        load
    }

    /// The same user and conversations, at a server that was started again.
    async fn at(&self, server: &TestServer) -> Arc<Self> {
        Self::connect(server, self.user.clone(), self.conversations.clone()).await
    }

    async fn connect(server: &TestServer, user: String, conversations: Vec<Bytes>) -> Arc<Self> {
        let endpoint = Endpoint::from_shared(server.url().to_owned()).expect("an address");
        // Readers that stand still must not use up what the others on their connection may receive.
        let endpoint = endpoint.initial_connection_window_size(64 << 20);
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(endpoint.connect().await.expect("a connection"));
        }
        let aside = endpoint.connect().await.expect("a connection");
        Arc::new(Self { user, conversations, channels, aside })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let credential = format!("Bearer {}", self.user).parse().expect("a header");
        request.metadata_mut().insert("authorization", credential);
        request
    }

    fn entries_client(&self, number: usize) -> EntriesServiceClient<Channel> {
        EntriesServiceClient::new(self.channels[number % CONNECTIONS].clone())
    }

    fn recorder(&self, connection: usize) -> ResponseRecorderServiceClient<Channel> {
        ResponseRecorderServiceClient::new(self.channels[connection % CONNECTIONS].clone())
    }

    async fn append(&self, number: usize) {
        let text = format!(r#"{{"role":"USER","text":"{}"}}"#, opening(number));
        let entry = v1::CreateEntryRequest {
            channel: v1::Channel::History.into(),
            content_type: "history".to_owned(),
            content: vec![json::Value::from_json(&text)],
            ..v1::CreateEntryRequest::default()
        };
        let conversation_id = self.conversations[number].clone();
        let request = self.request(v1::AppendEntryRequest { conversation_id, entry: Some(entry) });
        self.entries_client(number).append_entry(request).await.expect("an entry");
    }

    /// The texts of a conversation's entries.
    async fn entries(&self, number: usize) -> Vec<String> {
        let conversation_id = self.conversations[number].clone();
        let request = self.request(v1::ListEntriesRequest { conversation_id, ..Default::default() });
        let page = self.entries_client(number).list_entries(request).await.expect("a page").into_inner();
        let texts = page.entries.iter().map(|entry| {
            let mut text = String::new();
            entry.content[0].write_json(&mut text, 8).expect("JSON");
            let item: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            item["text"].as_str().expect("a text").to_owned()
        });
        texts.collect()
    }

    /// Begins to record, with a first message.
    fn record(&self, number: usize) -> (Agent, JoinHandle<Result<RecordResponse, Status>>) {
        let (sender, receiver) = mpsc::channel(4);
        let conversation_id = self.conversations[number].clone();
        let first = RecordRequest { conversation_id, content: message(number, 0), complete: false };
        sender.try_send(first).expect("there is room");
        let (mut client, request) = (self.recorder(number), self.request(ReceiverStream::new(receiver)));
        let call = tokio::spawn(async move { client.record(request).await.map(tonic::Response::into_inner) });
        (Agent { number, sender }, call)
    }

    /// Waits until every conversation is being recorded.
    async fn all_are_live(&self) {
        let conversation_ids = self.conversations.clone();
        let asked = v1::CheckRecordingsRequest { conversation_ids };
        loop {
            let request = self.request(asked.clone());
            let live = self.recorder(0).check_recordings(request).await.expect("an answer").into_inner();
            if live.conversation_ids.len() == RECORDINGS {
                assert_eq!(live.conversation_ids, self.conversations);
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Replays on another connection than the one that records.
    async fn replay(&self, number: usize) -> Streaming<ReplayResponse> {
        let request = self.request(v1::ReplayRequest { conversation_id: self.conversations[number].clone() });
        self.recorder(number + 5).replay(request).await.expect("a replay").into_inner()
    }

    async fn cancel(&self, number: usize) {
        let conversation_id = self.conversations[number].clone();
        let request = self.request(v1::CancelRecordRequest { conversation_id });
        let mut client = ResponseRecorderServiceClient::new(self.aside.clone());
        let answer = client.cancel(request).await.expect("an answer").into_inner();
        assert!(answer.accepted, "{answer:?}");
    }

    /// Records a response that is replayed from its beginning by one, and by another that comes when half of it is there. The
    /// gates open when every recording has begun, and when every one has both of its replays. For a recording that is cancelled:
    /// how long it took until its agent knew.
    async fn record_and_replay(
        &self,
        number: usize,
        part: Part,
        [all_begun, all_replayed]: [Arc<Barrier>; 2],
    ) -> Option<Duration> {
        let (agent, mut call) = self.record(number);
        tokio::select! {
            answer = &mut call => panic!("recording {number} ended before it was asked to: {answer:?}"),
            _ = all_begun.wait() => {}
        }

        let (ended, has_ended) = oneshot::channel::<()>();
        let mut early = Listener::new(number, self.replay(number).await);
        let early = tokio::spawn(async move {
            early.hear().await;
            if part == Part::SlowReader {
                // Nobody waits for this reader, or it would wait for ever.
                let _ = has_ended.await;
            }
            early.hear_all().await
        });
        for index in 1..MESSAGES / 2 {
            agent.say(index).await.expect("the recording goes on");
        }
        let mut late = Listener::new(number, self.replay(number).await);
        late.hear().await;
        let late = tokio::spawn(late.hear_all());
        all_replayed.wait().await;

        let cancelled = match part {
            Part::Cancelled => {
                let talk = tokio::spawn(agent.talk_from(MESSAGES / 2));
                let begun = Instant::now();
                let (answer, ()) = tokio::join!(call, self.cancel(number));
                let took = begun.elapsed();
                expect(&answer, RecordStatus::Cancelled);
                talk.await.expect("no panic");
                Some(took)
            }
            Part::Whole | Part::SlowReader => {
                for index in MESSAGES / 2..MESSAGES {
                    agent.say(index).await.expect("the recording goes on");
                }
                agent.complete().await;
                expect(&call.await, RecordStatus::Success);
                None
            }
        };
        drop(ended);
        let (early, late) =
            (early.await.expect("the early replay is right"), late.await.expect("so is the late one"));
        assert_eq!(early, late, "two replays of {number}, which is {part:?}");
        match part {
            Part::Cancelled => assert!(early > 0),
            Part::Whole | Part::SlowReader => assert_eq!(early, MESSAGES * LINES * LINE),
        }
        cancelled
    }
}

/// Whoever gives a response.
struct Agent {
    number: usize,
    sender: mpsc::Sender<RecordRequest>,
}

impl Agent {
    /// Says one message; an error if the call has ended.
    async fn say(&self, index: usize) -> Result<(), mpsc::error::SendError<RecordRequest>> {
        let content = message(self.number, index);
        self.sender.send(RecordRequest { content, ..RecordRequest::default() }).await
    }

    /// Goes on and on until the call has ended.
    async fn talk_from(self, index: usize) {
        let mut index = index;
        while self.say(index).await.is_ok() {
            index += 1;
        }
    }

    async fn complete(self) {
        let last = RecordRequest { complete: true, ..RecordRequest::default() };
        self.sender.send(last).await.expect("the recording goes on");
    }
}

/// Whoever replays a response, and knows what it must be.
struct Listener {
    number: usize,
    stream: Streaming<ReplayResponse>,
    heard: usize,
}

impl Listener {
    fn new(number: usize, stream: Streaming<ReplayResponse>) -> Self {
        Self { number, stream, heard: 0 }
    }

    /// Compares the next piece; `false` at the end.
    async fn hear(&mut self) -> bool {
        let Some(piece) = self.stream.message().await.expect("the replay goes on") else { return false };
        let mut rest = piece.content.as_bytes();
        while !rest.is_empty() {
            let line = line(self.number, self.heard / LINE);
            let expected = &line.as_bytes()[self.heard % LINE..];
            let (now, later) = rest.split_at(rest.len().min(expected.len()));
            assert!(
                now == &expected[..now.len()],
                "at byte {} of recording {} there should be {:?}, and there is {:?}",
                self.heard,
                self.number,
                String::from_utf8_lossy(&expected[..now.len()]),
                String::from_utf8_lossy(now)
            );
            (rest, self.heard) = (later, self.heard + now.len());
        }
        true
    }

    /// Compares everything up to the end; how much that was.
    async fn hear_all(mut self) -> usize {
        while self.hear().await {}
        self.heard
    }
}

/// A line of a response: it says whose it is and which, so that any other one in its place is noticed.
fn line(number: usize, line: usize) -> String {
    // Characters of two, three and four bytes.
    const FILLING: &str = "ä€🦀";
    format!("{number:04}/{line:06} {}\n", FILLING.repeat(27))
}

fn message(number: usize, index: usize) -> String {
    (index * LINES..(index + 1) * LINES).map(|at| line(number, at)).collect()
}

/// What a conversation begins with.
fn opening(number: usize) -> String {
    format!("question {number}")
}

#[track_caller]
fn expect(answer: &Result<Result<RecordResponse, Status>, tokio::task::JoinError>, status: RecordStatus) {
    match answer {
        Ok(Ok(response)) if response.status() == status => {}
        other => panic!("expected {status:?}, and the recording ended with {other:?}"),
    }
}

fn start(folder: &TempDir) -> TestServer {
    // A reader that stands still on purpose is not given up, however long the load takes here.
    let patience = "[server]\nstall_timeout = \"10m\"\n";
    let settings = format!("{patience}[recorder]\nbackend = \"local\"\ntemp_dir = {:?}", folder.path());
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(&settings).start()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

#[track_caller]
fn within<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    match runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await }) {
        Ok(done) => done,
        Err(_) => panic!("it is not done after {PATIENCE:?}"),
    }
}

fn fresh_id_bytes() -> Bytes {
    hex::decode(fresh_id().replace('-', "")).expect("an id is hexadecimal").into()
}

/// The most memory the server ever had resident, in bytes.
fn peak_memory(server: &TestServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// Bytes in the files that the server has open in a folder, where they have no names.
fn spooled(server: &TestServer, folder: &Path) -> u64 {
    let handles = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("its files");
    let paths = handles.filter_map(|handle| handle.ok().map(|handle| handle.path()));
    let spools = paths.filter(|path| fs::read_link(path).is_ok_and(|target| target.starts_with(folder)));
    spools.filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum()
}
