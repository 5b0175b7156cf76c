//! The same files over gRPC.

use crate::support::*;
use bytes::Bytes;
use memtrove_proto::v1::attachments_service_client::AttachmentsServiceClient;
use memtrove_proto::v1::download_attachment_response::Payload as Sent;
use memtrove_proto::v1::upload_attachment_request::Payload;
use memtrove_proto::v1::{
    AttachmentInfo, DownloadAttachmentRequest, GetAttachmentRequest, UploadAttachmentRequest,
    UploadAttachmentResponse, UploadMetadata,
};
use std::sync::LazyLock;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const MIB: usize = 1024 * 1024;

/// Somebody who calls over gRPC.
#[derive(Clone)]
struct Caller {
    client: AttachmentsServiceClient<Channel>,
    user: Option<String>,
}

/// Calls as the same user.
fn calls(server: &TestServer, user: &Client) -> Caller {
    Caller { user: Some(user.user().to_owned()), ..nobody(server) }
}

/// Calls without credentials.
fn nobody(server: &TestServer) -> Caller {
    let endpoint = Endpoint::from_shared(server.url().to_owned()).expect("an address");
    let channel = RUNTIME.block_on(endpoint.connect()).expect("a connection");
    Caller { client: AttachmentsServiceClient::new(channel), user: None }
}

impl Caller {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(user) = &self.user {
            let value = format!("Bearer {user}").parse().expect("a value");
            request.metadata_mut().insert("authorization", value);
        }
        request
    }

    fn send(&self, messages: Vec<Option<Payload>>) -> Result<UploadAttachmentResponse, Status> {
        let messages = messages.into_iter().map(|payload| UploadAttachmentRequest { payload });
        let request = self.request(tokio_stream::iter(messages.collect::<Vec<_>>()));
        let mut client = self.client.clone();
        RUNTIME.block_on(client.upload_attachment(request)).map(tonic::Response::into_inner)
    }

    fn upload(&self, metadata: UploadMetadata, bytes: &[u8]) -> Result<UploadAttachmentResponse, Status> {
        let chunks = bytes.chunks(50_000).map(|chunk| Some(Payload::Chunk(Bytes::copy_from_slice(chunk))));
        self.send([Some(Payload::Metadata(metadata))].into_iter().chain(chunks).collect())
    }

    fn get(&self, id: &str) -> Result<AttachmentInfo, Status> {
        let request = self.request(GetAttachmentRequest { id: id.to_owned() });
        RUNTIME.block_on(self.client.clone().get_attachment(request)).map(tonic::Response::into_inner)
    }

    /// Everything that a download sends.
    fn download(&self, id: &str) -> Result<Vec<Sent>, Status> {
        let request = self.request(DownloadAttachmentRequest { id: id.to_owned() });
        let mut client = self.client.clone();
        RUNTIME.block_on(async {
            let mut messages = client.download_attachment(request).await?.into_inner();
            let mut all = Vec::new();
            while let Some(message) = messages.message().await? {
                all.push(message.payload.expect("something in every message"));
            }
            Ok(all)
        })
    }
}

fn named(filename: &str, content_type: &str) -> UploadMetadata {
    UploadMetadata { filename: filename.into(), content_type: content_type.into(), expires_in: String::new() }
}

fn chunk(bytes: &'static [u8]) -> Option<Payload> {
    Some(Payload::Chunk(Bytes::from_static(bytes)))
}

#[track_caller]
fn assert_code<T: std::fmt::Debug>(result: Result<T, Status>, code: Code) -> Status {
    let status = result.expect_err("a refusal");
    assert_eq!(status.code(), code, "{status:?}");
    status
}

#[test]
fn what_is_uploaded_over_one_transport_is_read_over_the_other() {
    let alice = SERVER.someone("alice");
    let caller = calls(&SERVER, &alice);
    let bytes = noise(200_000, 1);

    let uploaded = caller.upload(named("größe.png", "image/png"), &bytes).expect("an upload");

    assert_eq!(uploaded.href, at(&uploaded.id));
    assert_eq!((uploaded.content_type.as_str(), uploaded.filename.as_str()), ("image/png", "größe.png"));
    assert_eq!((uploaded.size, uploaded.sha256.as_str()), (200_000, digest(&bytes).as_str()));
    assert_eq!(uploaded.status, "ready");
    assert!(uploaded.expires_at.ends_with('Z'), "{}", uploaded.expires_at);
    assert!(read(&SERVER, &alice, &uploaded.href, &[]).expect(200).bytes == bytes);

    let over_rest = try_upload(&alice, "plan.png", "image/png", &bytes).expect(201);
    let info = caller.get(&over_rest.id()).expect("what is known of it");
    assert_eq!(info.href, over_rest.text_of("href"));
    assert_eq!(info.filename, "plan.png");
    assert_eq!((info.size, info.sha256.as_str()), (200_000, digest(&bytes).as_str()));
    assert_eq!(info.expires_at, over_rest.text_of("expiresAt"));
    assert!(info.created_at.ends_with('Z'));
}

#[test]
fn a_download_tells_what_it_is_and_then_brings_it_in_pieces() {
    let alice = SERVER.someone("alice");
    let caller = calls(&SERVER, &alice);
    for size in [0, 1, 65_535, 65_536, 65_537, 300_000] {
        let bytes = noise(size, size as u64);
        let id = upload(&alice, "a.bin", "application/octet-stream", &bytes);
        let mut messages = caller.download(&id).expect("a download").into_iter();
        let Some(Sent::Metadata(info)) = messages.next() else { panic!("metadata comes first") };
        assert_eq!((info.id, info.size), (id, size as i64));
        let chunks: Vec<Bytes> = messages
            .map(|payload| match payload {
                Sent::Chunk(chunk) => chunk,
                Sent::Metadata(_) => panic!("metadata comes once"),
            })
            .collect();
        assert!(chunks.concat() == bytes, "{size}");
        let sizes: Vec<usize> = chunks.iter().map(Bytes::len).collect();
        assert!(sizes.iter().rev().skip(1).all(|size| *size == 65_536), "{sizes:?}");
        assert!(sizes.iter().all(|size| (1..=65_536).contains(size)), "{sizes:?}");
    }
}

#[test]
fn metadata_comes_first_and_once() {
    let server = local_server();
    let caller = calls(&server, &server.as_user("alice"));
    let metadata = || Some(Payload::Metadata(named("a.txt", "text/plain")));
    for messages in [
        vec![],
        vec![chunk(b"x")],
        vec![chunk(b"x"), metadata()],
        vec![metadata(), chunk(b"x"), metadata()],
        vec![metadata(), metadata()],
        vec![None],
        vec![metadata(), None],
    ] {
        assert_code(caller.send(messages), Code::InvalidArgument);
    }
    until("nothing is left", || records(&server.stored()) == 0 && files_in(&server).is_empty());
    caller.send(vec![metadata()]).expect("an empty file is a file");
}

#[test]
fn what_is_said_of_a_file_follows_the_same_rules() {
    let caller = calls(&SERVER, &SERVER.someone("alice"));
    let kept = caller.upload(named("../../etc/passwd", ""), b"x").expect("an upload");
    assert_eq!((kept.filename.as_str(), kept.content_type.as_str()), ("passwd", "application/octet-stream"));
    assert_eq!(caller.upload(named("", ""), b"x").expect("an upload").filename, "");
    let lasting = |expires_in: &str| {
        caller.upload(UploadMetadata { expires_in: expires_in.into(), ..named("a", "") }, b"x")
    };
    lasting("PT24H").expect("an upload");
    for metadata in [
        named(&"ä".repeat(256), ""),
        named("a\r\nb", ""),
        named("a\0b", ""),
        named("a", "nothing"),
        named("a", "image/png;a=b,text/html"),
        named("a", &format!("image/{}", "x".repeat(122))),
    ] {
        assert_code(caller.upload(metadata, b"x"), Code::InvalidArgument);
    }
    for expires_in in ["P2D", "PT0S", "soon"] {
        assert_code(lasting(expires_in), Code::InvalidArgument);
    }
}

#[test]
fn a_file_that_is_too_large_is_refused_and_leaves_nothing() {
    let server = local_server();
    let caller = calls(&server, &server.as_user("alice"));
    let bytes = noise(10 * MIB + 1, 2);
    caller.upload(named("fits", ""), &bytes[..10 * MIB]).expect("an upload");
    assert_code(caller.upload(named("too-large", ""), &bytes), Code::ResourceExhausted);
    // Far too large.
    let more = noise(40 * MIB, 3);
    assert_code(caller.upload(named("too-large", ""), &more), Code::ResourceExhausted);
    until("what was refused is gone", || records(&server.stored()) == 1 && files_in(&server).len() == 1);
}

#[test]
fn an_upload_that_is_broken_off_leaves_nothing() {
    let server = local_server();
    let caller = calls(&server, &server.as_user("alice"));
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let request = caller.request(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let mut client = caller.client.clone();
    let call = RUNTIME.spawn(async move { client.upload_attachment(request).await });
    let send = |payload| {
        let message = UploadAttachmentRequest { payload: Some(payload) };
        RUNTIME.block_on(sender.send(message)).expect("somebody who listens");
    };
    send(Payload::Metadata(named("half.bin", "")));
    send(Payload::Chunk(Bytes::from(noise(100_000, 4))));
    until("it has begun", || records(&server.stored()) == 1);

    call.abort();

    until("nothing is left", || records(&server.stored()) == 0 && files_in(&server).is_empty());
}

#[test]
fn access_is_that_of_rest() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let (as_alice, as_bob, as_nobody) = (calls(&SERVER, &alice), calls(&SERVER, &bob), nobody(&SERVER));
    let conversation = start(&alice, "Plans");
    let id = upload(&alice, "a.txt", "text/plain", b"a");

    as_alice.get(&id).expect("her own");
    assert_code(as_bob.get(&id), Code::PermissionDenied);
    assert_code(as_bob.download(&id), Code::PermissionDenied);
    assert_code(as_nobody.get(&id), Code::Unauthenticated);
    assert_code(as_nobody.download(&id), Code::Unauthenticated);
    assert_code(as_nobody.upload(named("a", ""), b"x"), Code::Unauthenticated);
    for wrong in [fresh_id().as_str(), "not-a-uuid"] {
        assert_code(as_alice.get(wrong), Code::NotFound);
        assert_code(as_alice.download(wrong), Code::NotFound);
    }
    assert_code(as_alice.get(""), Code::InvalidArgument);

    let linked = link(&alice, &conversation, &id);
    assert_code(as_bob.get(&linked), Code::PermissionDenied);
    share(&alice, &conversation, &bob, "reader");
    assert_eq!(as_bob.get(&linked).expect("as a reader").expires_at, "", "it does not expire any more");
    assert_eq!(as_bob.download(&linked).expect("as a reader").len(), 2);
}

#[test]
fn what_is_not_here_is_not_brought() {
    let server = local_server();
    let alice = server.as_user("alice");
    let caller = calls(&server, &alice);
    let id = alice.post(ATTACHMENTS, json!({"sourceUrl": "http://nowhere.invalid/x"})).expect(201).id();
    until("it fails", || alice.get(&at(&id)).status == 422);
    assert_code(caller.download(&id), Code::FailedPrecondition);
    let info = caller.get(&id).expect("what is known of it");
    assert_eq!((info.size, info.sha256.as_str()), (0, ""));

    let stored = server.stored();
    for status in [1, 2] {
        stored
            .execute(&format!("UPDATE attachments SET status = {status} WHERE id = {}", stored.id(&id)), b"");
        assert_code(caller.download(&id), Code::Aborted);
    }
}

#[test]
fn uploads_over_both_transports_share_the_room_there_is() {
    let server = server_with("[attachments]\nuploads = 1");
    let (alice, bob) = (server.as_user("alice"), server.as_user("bob"));
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let slow = calls(&server, &alice);
    let request = slow.request(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let mut client = slow.client.clone();
    let upload = RUNTIME.spawn(async move { client.upload_attachment(request).await });
    let metadata = UploadAttachmentRequest { payload: Some(Payload::Metadata(named("slow", ""))) };
    sender.blocking_send(metadata).expect("a first message");
    until("it has begun", || records(&server.stored()) == 1);

    assert_code(calls(&server, &bob).upload(named("a", ""), b"x"), Code::Unavailable);
    try_upload(&bob, "a", "text/plain", b"x").expect_error(503, "overloaded");

    drop(sender);
    RUNTIME.block_on(upload).expect("no panic").expect("an upload that came to its end");
    until("there is room again", || calls(&server, &bob).upload(named("a", ""), b"x").is_ok());
}

#[test]
fn uploads_at_the_same_time_on_one_connection_do_not_mix() {
    let alice = SERVER.someone("alice");
    let caller = calls(&SERVER, &alice);
    let ids = at_once(8, |n| {
        caller.upload(named(&n.to_string(), ""), &noise(500_000 + n, n as u64)).expect("an upload").id
    });
    for (n, id) in ids.iter().enumerate() {
        assert!(read(&SERVER, &alice, &at(id), &[]).expect(200).bytes == noise(500_000 + n, n as u64), "{n}");
    }
}
