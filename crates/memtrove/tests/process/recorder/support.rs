//! An agent that records, readers that replay, and the few sentences that nearly every test begins with.

pub use memtrove_proto::v1::{RecordRequest, RecordResponse, RecordStatus, ReplayResponse};
pub use memtrove_testkit::postgres::Database;
pub use memtrove_testkit::redis::Redis;
pub use memtrove_testkit::server::{Client, Setup, TestServer, fresh_id, fresh_name};
pub use memtrove_testkit::steps::until;
pub use serde_json::{Value, json};
pub use std::time::{Duration, Instant};
pub use tonic::{Code, Status};

use memtrove_proto::v1::response_recorder_service_client::ResponseRecorderServiceClient;
use memtrove_proto::v1::{CancelRecordRequest, CancelRecordResponse, CheckRecordingsRequest, ReplayRequest};
use memtrove_testkit::steps::PATIENCE;
use std::sync::LazyLock;
pub use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
});

/// The binary under test.
pub fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_memtrove"))
}

/// Waits for something that must happen.
#[track_caller]
pub fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match RUNTIME.block_on(async { tokio::time::timeout(PATIENCE, work).await }) {
        Ok(done) => done,
        Err(_) => panic!("it never came about that {what}"),
    }
}

/// 16 bytes, as calls have ids.
pub fn bytes_of(id: &str) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(memtrove_core::parse_uuid(id).expect("a UUID").as_bytes())
}

/// The text of 16 bytes.
#[track_caller]
fn id_of(bytes: &[u8]) -> String {
    assert_eq!(bytes.len(), 16);
    let hex = hex::encode(bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Where the response of a conversation is.
pub fn response_of(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/response")
}

/// A user at a node, over both transports.
#[derive(Clone)]
pub struct Caller {
    pub user: String,
    pub rest: Client,
    url: String,
    grpc: ResponseRecorderServiceClient<Channel>,
}

impl Caller {
    /// Somebody that no other test knows.
    pub fn fresh(node: &TestServer, role: &str) -> Self {
        Self::named(node, &fresh_name(role))
    }

    pub fn named(node: &TestServer, user: &str) -> Self {
        Self::over(&RUNTIME, node, user)
    }

    /// Somebody whose connections go with this runtime.
    pub fn over(line: &Runtime, node: &TestServer, user: &str) -> Self {
        let url = node.url().to_owned();
        let _entered = line.enter();
        let channel = Endpoint::from_shared(url.clone()).expect("an address").connect_lazy();
        let grpc = ResponseRecorderServiceClient::new(channel);
        Self { user: user.to_owned(), rest: node.as_user(user), url, grpc }
    }

    /// The same user at another node.
    pub fn at(&self, node: &TestServer) -> Self {
        Self::named(node, &self.user)
    }

    /// A new conversation of this user; its id.
    pub fn start(&self) -> String {
        self.rest.post("/v1/conversations", json!({"title": "Plans"})).expect(201).id()
    }

    /// Lets somebody else in.
    pub fn share(&self, conversation: &str, other: &Caller, level: &str) {
        let member = json!({"userId": other.user, "accessLevel": level});
        self.rest.post(&format!("/v1/conversations/{conversation}/memberships"), member).expect(201);
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let credential = format!("Bearer {}", self.user).parse().expect("a header");
        request.metadata_mut().insert("authorization", credential);
        request
    }

    /// Begins to record, and waits until the server says so.
    #[track_caller]
    pub fn record(&self, conversation: &str) -> Recording {
        let recording = self.begin(conversation);
        until("the recording is live", || {
            assert!(!recording.has_ended(), "it ended before it was live");
            self.is_live(conversation)
        });
        recording
    }

    /// Begins to record.
    pub fn begin(&self, conversation: &str) -> Recording {
        self.begin_within(conversation, None)
    }

    /// Begins a recording that may take so long, as its agent says.
    pub fn begin_within(&self, conversation: &str, deadline: Option<Duration>) -> Recording {
        let (sender, receiver) = mpsc::channel(16);
        let first = RecordRequest { conversation_id: bytes_of(conversation), ..RecordRequest::default() };
        sender.try_send(first).expect("there is room");
        let (mut grpc, mut request) = (self.grpc.clone(), self.request(ReceiverStream::new(receiver)));
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        let call = RUNTIME.spawn(async move { grpc.record(request).await.map(tonic::Response::into_inner) });
        Recording { sender, call: Call(Some(call)) }
    }

    /// A whole call at once: these messages, and half-closed.
    pub fn recorded(&self, messages: Vec<RecordRequest>) -> Result<RecordResponse, Status> {
        let request = self.request(tokio_stream::iter(messages));
        let answer = soon("Record is answered", self.grpc.clone().record(request));
        answer.map(tonic::Response::into_inner)
    }

    /// A whole response at once.
    #[track_caller]
    pub fn record_whole(&self, conversation: &str, content: &str) {
        let message = RecordRequest {
            conversation_id: bytes_of(conversation),
            content: content.to_owned(),
            complete: true,
        };
        let answer = self.recorded(vec![message]).expect("a response");
        assert_eq!(answer.status(), RecordStatus::Success, "{answer:?}");
    }

    pub fn try_replay(&self, conversation: &str) -> Result<Replaying, Status> {
        let request = self.request(ReplayRequest { conversation_id: bytes_of(conversation) });
        let answer = soon("Replay is answered", self.grpc.clone().replay(request));
        answer.map(|answer| Replaying { stream: answer.into_inner() })
    }

    #[track_caller]
    pub fn replay(&self, conversation: &str) -> Replaying {
        self.try_replay(conversation).expect("a replay")
    }

    pub fn cancel(&self, conversation: &str) -> Result<CancelRecordResponse, Status> {
        let request = self.request(CancelRecordRequest { conversation_id: bytes_of(conversation) });
        soon("Cancel is answered", self.grpc.clone().cancel(request)).map(tonic::Response::into_inner)
    }

    pub fn is_enabled(&self) -> bool {
        let answer = soon("IsEnabled is answered", self.grpc.clone().is_enabled(self.request(())));
        answer.expect("an answer").into_inner().enabled
    }

    /// Which of these are being recorded.
    #[track_caller]
    pub fn check(&self, conversations: &[&str]) -> Vec<String> {
        let conversation_ids = conversations.iter().map(|id| bytes_of(id)).collect();
        let request = self.request(CheckRecordingsRequest { conversation_ids });
        let answer = soon("CheckRecordings is answered", self.grpc.clone().check_recordings(request));
        let ids = answer.expect("an answer").into_inner().conversation_ids;
        ids.iter().map(|id| id_of(id)).collect()
    }

    pub fn is_live(&self, conversation: &str) -> bool {
        self.check(&[conversation]) == [conversation]
    }

    /// A replay as server-sent events.
    #[track_caller]
    pub fn follow(&self, conversation: &str) -> Events {
        self.follow_after(conversation, None)
    }

    /// The same, behind the event with this id.
    #[track_caller]
    pub fn follow_after(&self, conversation: &str, last: Option<&str>) -> Events {
        let mut request = HTTP.get(format!("{}{}", self.url, response_of(conversation)));
        request = request.header("authorization", format!("Bearer {}", self.user));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = soon("the replay is answered", request.send()).expect("an answer");
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, unread: Vec::new() }
    }
}

static HTTP: LazyLock<reqwest::Client> =
    LazyLock::new(|| reqwest::Client::builder().no_proxy().build().expect("a client"));

/// A call that records.
pub struct Recording {
    sender: mpsc::Sender<RecordRequest>,
    call: Call,
}

struct Call(Option<JoinHandle<Result<RecordResponse, Status>>>);

impl Call {
    fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Call {
    /// A client that drops its call hangs up.
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            call.abort();
        }
    }
}

impl Recording {
    /// Sends a piece. A call that has ended takes nothing more, which is no failure: the answer says why.
    #[track_caller]
    pub fn say(&self, content: &str) {
        self.send(RecordRequest { content: content.to_owned(), ..RecordRequest::default() });
    }

    #[track_caller]
    pub fn send(&self, message: RecordRequest) {
        let _ = soon("a message is taken", self.sender.send(message));
    }

    /// Whether the server has answered.
    pub fn has_ended(&self) -> bool {
        self.call.is_finished()
    }

    /// Says that the response is complete, and waits for the answer.
    #[track_caller]
    pub fn complete(self) {
        self.send(RecordRequest { complete: true, ..RecordRequest::default() });
        let answer = self.answer().expect("a response");
        assert_eq!(answer.status(), RecordStatus::Success, "{answer:?}");
    }

    /// What the server answers to the call, while it may still be open.
    #[track_caller]
    pub fn answer(mut self) -> Result<RecordResponse, Status> {
        let call = self.call.0.take().expect("the answer was not taken yet");
        soon("the recording is answered", call).expect("no panic")
    }

    /// Requires the answer that the recording was cancelled.
    #[track_caller]
    pub fn expect_cancelled(self) {
        let answer = self.answer().expect("a response");
        assert_eq!(answer.status(), RecordStatus::Cancelled, "{answer:?}");
    }

    /// Drops the connection's stream as a client does that crashed or was cancelled.
    pub fn hang_up(self) {
        drop(self);
    }
}

/// A replay over gRPC.
pub struct Replaying {
    stream: Streaming<ReplayResponse>,
}

impl Replaying {
    /// The next message; none at the end.
    #[track_caller]
    pub fn next(&mut self) -> Option<ReplayResponse> {
        soon("the replay goes on", self.stream.message()).expect("no error")
    }

    /// Reads exactly this.
    #[track_caller]
    pub fn expect(&mut self, content: &str) {
        let mut read = String::new();
        while read.len() < content.len() {
            let Some(message) = self.next() else { panic!("the replay ended after {read:?}") };
            read.push_str(&content_of(message));
        }
        assert!(read == content, "expected {content:?}, read {read:?}");
    }

    /// Everything up to the end.
    #[track_caller]
    pub fn rest(mut self) -> String {
        let mut read = String::new();
        while let Some(message) = self.next() {
            read.push_str(&content_of(message));
        }
        read
    }

    /// The address it was sent to, which must be all that came.
    #[track_caller]
    pub fn redirect(mut self) -> String {
        let message = self.next().expect("a message");
        assert_eq!(message.content, "");
        assert!(self.next().is_none(), "a redirect is the only message");
        message.redirect_address
    }
}

#[track_caller]
fn content_of(message: ReplayResponse) -> String {
    assert_eq!(message.redirect_address, "", "this is the node that has it");
    message.content
}

/// A replay as server-sent events, and what was not yet read of it.
pub struct Events {
    response: reqwest::Response,
    unread: Vec<u8>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SentEvent {
    pub id: String,
    /// Empty where it has no name.
    pub name: String,
    pub data: String,
}

impl SentEvent {
    /// The piece of the response in it.
    #[track_caller]
    pub fn content(&self) -> String {
        assert_eq!(self.name, "", "{self:?}");
        let data: Value = serde_json::from_str(&self.data).expect("JSON");
        data["content"].as_str().expect("content").to_owned()
    }
}

impl Events {
    /// The next event; none when the connection has ended, well or not.
    #[track_caller]
    pub fn next(&mut self) -> Option<SentEvent> {
        loop {
            while let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                if let Some(event) = read(std::str::from_utf8(&block).expect("whole characters")) {
                    return Some(event);
                }
            }
            match soon("an event comes", self.response.chunk()) {
                Ok(Some(bytes)) => self.unread.extend_from_slice(&bytes),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Waits for a comment, which is no event.
    #[track_caller]
    pub fn expect_comment(&mut self) {
        let chunk = soon("something comes", self.response.chunk()).expect("no error").expect("no end");
        assert!(chunk.starts_with(b":") && chunk.ends_with(b"\n\n"), "{chunk:?}");
    }

    /// Reads exactly this; the id of the last event.
    #[track_caller]
    pub fn expect(&mut self, content: &str) -> String {
        let (mut read, mut id) = (String::new(), String::new());
        while read.len() < content.len() {
            let Some(event) = self.next() else { panic!("the events ended after {read:?}") };
            read.push_str(&event.content());
            id = event.id;
        }
        assert!(read == content, "expected {content:?}, read {read:?}");
        id
    }

    /// Everything up to the event `end`, which must be the last.
    #[track_caller]
    pub fn rest(mut self) -> String {
        let mut read = String::new();
        loop {
            let Some(event) = self.next() else { panic!("the events broke off after {} bytes", read.len()) };
            if event.name == "end" {
                assert_eq!(self.next(), None, "nothing follows the end");
                return read;
            }
            read.push_str(&event.content());
        }
    }
}

/// One block of lines. Comments are nothing.
fn read(block: &str) -> Option<SentEvent> {
    let mut event = SentEvent::default();
    for line in block.lines() {
        match line.split_once(':').map(|(field, value)| (field, value.strip_prefix(' ').unwrap_or(value))) {
            Some(("id", value)) => event.id = value.to_owned(),
            Some(("event", value)) => event.name = value.to_owned(),
            Some(("data", value)) => event.data.push_str(value),
            _ => {}
        }
    }
    (event != SentEvent::default()).then_some(event)
}

/// A text of this many bytes or a few more, in which no two places look alike and characters have one to four bytes.
pub fn long_text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 32);
    for line in 0_usize.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&line.to_string());
        // So that borders of any size fall into the middle of a character sooner or later.
        text.push_str(["a", "é", "語", "🧵", "\n"][line % 5]);
    }
    text
}
