//! Files that are fetched from the web.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{Engine, HOUR, Setting, caller, outcome, principal, referred};
use futures_util::future::BoxFuture;
use memtrove_blobs::fetch::{Fetcher, Names};
use memtrove_core::conversations::AccessLevel;
use memtrove_core::{Clock, Code, Error};
use memtrove_service::attachments::{Attachment, Content, NewSource, Status};
use memtrove_store::vault::Vault;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};

on_both_engines!(
    a_source_is_fetched_in_the_background,
    what_is_still_fetched_is_read_at_its_source,
    a_source_that_cannot_be_fetched_leaves_a_failed_attachment,
    records_that_share_what_is_fetched_get_it_together,
    what_is_deleted_while_it_is_fetched_does_not_come_back,
    a_fetch_whose_process_died_is_given_up,
    a_server_may_refuse_to_fetch_at_all,
    a_source_inside_is_refused_at_once,
    nobody_keeps_all_others_waiting,
    what_is_not_wanted_any_more_is_not_fetched,
    only_who_named_a_source_is_led_there,
    a_kind_of_file_that_is_not_known_yet_is_not_written_down,
    what_a_forgotten_user_had_from_elsewhere_does_not_say_from_where,
);

/// A web of one server: every name leads to it, through an address that looks public.
#[derive(Debug)]
struct Web(SocketAddr);

impl Names for Web {
    fn look_up(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let address =
            if host == "inside.example" { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(93, 184, 215, 14) };
        Box::pin(async move { Ok(vec![address.into()]) })
    }

    fn route(&self, _: IpAddr) -> SocketAddr {
        self.0
    }
}

/// What nobody should ask the server for.
const UNWANTED: &str = "/unwanted.png";
static ASKED_FOR_UNWANTED: AtomicBool = AtomicBool::new(false);

/// Answers every request with a cat, once it is told to.
async fn serve(go: Arc<Notify>, asked: Arc<Semaphore>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (go, asked) = (go.clone(), asked.clone());
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).await.unwrap();
                if head[..read].starts_with(format!("GET {UNWANTED}").as_bytes()) {
                    ASKED_FOR_UNWANTED.store(true, Ordering::SeqCst);
                }
                let answer: &[u8] = if head[..read].starts_with(b"GET /missing") {
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                } else {
                    b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 3\r\nConnection: close\r\n\r\ncat"
                };
                asked.add_permits(1);
                go.notified().await;
                stream.write_all(answer).await.unwrap();
            });
        }
    });
    address
}

async fn world(engine: Engine) -> (Setting, Arc<Notify>) {
    let (setting, go, _) = asked_world(engine).await;
    (setting, go)
}

/// As [`world`], and one permit for each time that its server was asked.
async fn asked_world(engine: Engine) -> (Setting, Arc<Notify>, Arc<Semaphore>) {
    let (go, asked) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let address = serve(go.clone(), asked.clone()).await;
    let fetcher = Fetcher::with_names(Arc::new(Web(address))).unwrap();
    let setting = Setting::with(engine, Vault::plain(), |settings| settings.fetcher = Some(fetcher)).await;
    (setting, go, asked)
}

impl Setting {
    async fn fetch(&self, url: &str) -> Attachment {
        let new = NewSource { source_url: Some(url.into()), ..NewSource::default() };
        self.services.attachments.fetch(&caller("alice"), new).await.unwrap()
    }
}

const DOWNLOADING: &str = "SELECT COUNT(*) FROM attachments WHERE status = 2";

async fn a_source_is_fetched_in_the_background(engine: Engine) {
    let (setting, go) = world(engine).await;
    let taken_on = setting.fetch("http://web.example/pictures/cat.png?size=1").await;
    assert_eq!((taken_on.status, taken_on.filename.as_deref()), (Status::Downloading, Some("cat.png")));
    go.notify_one();
    setting.until(DOWNLOADING, 0).await;
    let ready = setting.services.attachments.get(&caller("alice"), taken_on.id).await.unwrap();
    assert_eq!(
        (ready.status, ready.size, ready.content_type.as_str()),
        (Status::Ready, Some(3), "image/png")
    );
    assert_eq!(ready.expires_at, taken_on.expires_at);
    assert_eq!(setting.bytes_of(&ready).await.unwrap(), b"cat");

    let new = NewSource {
        source_url: Some("http://web.example/".into()),
        content_type: Some("image/x-mine".into()),
        name: Some("mine".into()),
        expires_in: Some("PT2H".into()),
    };
    let said = setting.services.attachments.fetch(&caller("alice"), new).await.unwrap();
    assert_eq!(said.expires_at, Some(setting.clock.now().saturating_add_micros(2 * HOUR)));
    go.notify_one();
    setting.until(DOWNLOADING, 0).await;
    let ready = setting.services.attachments.get(&caller("alice"), said.id).await.unwrap();
    assert_eq!((ready.content_type.as_str(), ready.filename.as_deref()), ("image/x-mine", Some("mine")));
}

async fn what_is_still_fetched_is_read_at_its_source(engine: Engine) {
    let (setting, go) = world(engine).await;
    let (url, alice) = ("http://web.example/cat.png", caller("alice"));
    let taken_on = setting.fetch(url).await;
    let (_, content) = setting.services.attachments.open(&alice, taken_on.id).await.unwrap();
    assert_eq!(content, Content::Redirect { url: url.into(), lasting: Duration::ZERO });
    let link = setting.services.attachments.download_url(&alice, taken_on.id).await.unwrap();
    assert_eq!((link.url.as_str(), link.expires_in), (url, Duration::ZERO));
    go.notify_one();
    setting.until(DOWNLOADING, 0).await;
    let (_, content) = setting.services.attachments.open(&alice, taken_on.id).await.unwrap();
    assert_eq!(content, Content::Bytes);
}

async fn a_source_that_cannot_be_fetched_leaves_a_failed_attachment(engine: Engine) {
    let (setting, go) = world(engine).await;
    go.notify_one();
    let refused = [
        setting.fetch("http://web.example/missing").await,
        setting.fetch("http://inside.example/cat.png").await,
    ];
    setting.until(DOWNLOADING, 0).await;
    for attachment in refused {
        let failed = setting.services.attachments.get(&caller("alice"), attachment.id).await.unwrap();
        assert_eq!(failed.status, Status::Failed, "{:?}", failed.source_url);
        assert_eq!(
            outcome(setting.services.attachments.open(&caller("alice"), attachment.id).await),
            "failed"
        );
        let link = setting.services.attachments.download_url(&caller("alice"), attachment.id).await;
        assert_eq!(outcome(link), "failed");
    }
    assert_eq!(setting.files().len(), 0);
    let no_web = NewSource { source_url: Some("file:///etc/passwd".into()), ..NewSource::default() };
    assert_eq!(outcome(setting.services.attachments.fetch(&caller("alice"), no_web).await), "invalid");
}

async fn records_that_share_what_is_fetched_get_it_together(engine: Engine) {
    let (setting, go) = world(engine).await;
    let conversation = setting.start("alice").await;
    let taken_on = setting.fetch("http://web.example/cat.png").await;
    let first = setting.say("alice", conversation, &[taken_on.id]).await.unwrap();
    let second = setting.say("alice", conversation, &[taken_on.id]).await.unwrap();
    go.notify_one();
    setting.until(DOWNLOADING, 0).await;
    for entry in [first, second] {
        let ready = setting.services.attachments.get(&caller("alice"), referred(&entry)[0]).await.unwrap();
        assert_eq!((ready.status, ready.entry_id, ready.expires_at), (Status::Ready, Some(entry.id), None));
        assert_eq!(setting.bytes_of(&ready).await.unwrap(), b"cat");
    }
}

async fn what_is_deleted_while_it_is_fetched_does_not_come_back(engine: Engine) {
    let (setting, go, asked) = asked_world(engine).await;
    let taken_on = setting.fetch("http://web.example/cat.png").await;
    asked.acquire().await.unwrap().forget();
    setting.services.attachments.delete(&caller("alice"), taken_on.id).await.unwrap();
    setting.clean_up().await;
    assert_eq!(setting.records().await, 0);
    let mut commits = setting.store.commits();
    go.notify_one();
    // The one that would note that the bytes are here.
    commits.changed().await.unwrap();
    let gone = async {
        while !setting.files().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the bytes to go");
    assert_eq!(setting.records().await, 0);
}

async fn a_fetch_whose_process_died_is_given_up(engine: Engine) {
    let (setting, _never) = world(engine).await;
    let new = NewSource {
        source_url: Some("http://web.example/cat.png".into()),
        expires_in: Some("PT2H".into()),
        ..NewSource::default()
    };
    let taken_on = setting.services.attachments.fetch(&caller("alice"), new).await.unwrap();
    setting.clean_up().await;
    let status =
        async || setting.services.attachments.get(&caller("alice"), taken_on.id).await.unwrap().status;
    assert_eq!(status().await, Status::Downloading);
    setting.clock.advance_micros(HOUR);
    setting.clean_up().await;
    assert_eq!(status().await, Status::Failed);
}

async fn a_server_may_refuse_to_fetch_at_all(engine: Engine) {
    let setting = Setting::new(engine).await;
    let new = NewSource { source_url: Some("http://web.example/cat.png".into()), ..NewSource::default() };
    assert_eq!(outcome(setting.services.attachments.fetch(&caller("alice"), new).await), "forbidden");
    assert_eq!(setting.records().await, 0);
}

async fn a_source_inside_is_refused_at_once(engine: Engine) {
    let (setting, _never) = world(engine).await;
    for url in [
        "http://127.0.0.1/cat.png",
        "http://[::1]/cat.png",
        "http://169.254.169.254/latest/meta-data",
        "http://user:password@web.example/cat.png",
    ] {
        let new = NewSource { source_url: Some(url.into()), ..NewSource::default() };
        let refused = setting.services.attachments.fetch(&caller("alice"), new).await;
        assert_eq!(outcome(refused), "invalid", "{url}");
    }
    assert_eq!(setting.records().await, 0);
}

async fn nobody_keeps_all_others_waiting(engine: Engine) {
    let (setting, go) = world(engine).await;
    let fetch = async |user: &str| {
        let new = NewSource { source_url: Some("http://web.example/cat.png".into()), ..NewSource::default() };
        setting.services.attachments.fetch(&caller(user), new).await
    };
    for _ in 0..8 {
        fetch("alice").await.unwrap();
    }
    let refused = fetch("alice").await;
    assert!(matches!(refused, Err(Error { code: Code::Overloaded, .. })), "{refused:?}");
    fetch("bob").await.unwrap();
    fetch("alice@other").await.unwrap();
    assert_eq!(setting.records().await, 10);

    let last = async {
        while fetch("alice").await.is_err() {
            go.notify_one();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), last).await.expect("a place for one more");
}

async fn what_is_not_wanted_any_more_is_not_fetched(engine: Engine) {
    let (setting, go, asked) = asked_world(engine).await;
    let fetch = async |user: &str, path: &str| {
        let new = NewSource { source_url: Some(format!("http://web.example{path}")), ..NewSource::default() };
        setting.services.attachments.fetch(&caller(user), new).await
    };
    // As many as are fetched at a time, and one more whose turn has not come.
    for user in ["alice", "bob"] {
        for _ in 0..8 {
            fetch(user, "/cat.png").await.unwrap();
        }
    }
    asked.acquire_many(16).await.unwrap().forget();
    let unwanted = fetch("carol", UNWANTED).await.unwrap();
    setting.services.attachments.delete(&caller("carol"), unwanted.id).await.unwrap();
    for _ in 0..7 {
        fetch("carol", "/cat.png").await.unwrap();
    }
    let next = async {
        while fetch("carol", "/cat.png").await.is_err() {
            go.notify_one();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), next).await.expect("a turn to come");
    assert!(!ASKED_FOR_UNWANTED.load(Ordering::SeqCst));
}

async fn only_who_named_a_source_is_led_there(engine: Engine) {
    let (setting, _never) = world(engine).await;
    let taken_on = setting.fetch("http://web.example/cat.png").await;
    let conversation = setting.start("alice").await;
    setting.invite("alice", conversation, "bob", AccessLevel::Reader).await;
    setting.say("alice", conversation, &[taken_on.id]).await.unwrap();
    let attachments = &setting.services.attachments;
    assert_eq!(outcome(attachments.open(&caller("alice"), taken_on.id).await), "ok");
    assert_eq!(outcome(attachments.open(&caller("bob"), taken_on.id).await), "in progress");
    assert_eq!(outcome(attachments.download_url(&caller("bob"), taken_on.id).await), "in progress");
    let admin = principal("admin");
    assert_eq!(outcome(attachments.admin_open(&admin, taken_on.id, None).await), "in progress");
    assert_eq!(outcome(attachments.admin_download_url(&admin, taken_on.id, None).await), "in progress");
}

async fn a_kind_of_file_that_is_not_known_yet_is_not_written_down(engine: Engine) {
    let (setting, _never) = world(engine).await;
    let conversation = setting.start("alice").await;
    let taken_on = setting.fetch("http://web.example/cat.png").await;
    let entry = setting.say("alice", conversation, &[taken_on.id]).await.unwrap();
    let content = entry.content.value().unwrap();
    assert_eq!(content[0]["attachments"][0].get("contentType"), None);
    assert_eq!(content[0]["attachments"][0]["name"], "cat.png");
}

async fn what_a_forgotten_user_had_from_elsewhere_does_not_say_from_where(engine: Engine) {
    let (setting, go) = world(engine).await;
    let conversation = setting.start("bob").await;
    setting.invite("bob", conversation, "alice", AccessLevel::Writer).await;
    let taken_on = setting.fetch("http://web.example/cat.png?of=alice").await;
    setting.say("alice", conversation, &[taken_on.id]).await.unwrap();
    go.notify_one();
    setting.until(DOWNLOADING, 0).await;
    setting.forget("alice").await;
    let kept = setting.services.attachments.get(&caller("bob"), taken_on.id).await.unwrap();
    assert_eq!((kept.source_url.as_deref(), kept.filename.as_deref()), (None, Some("cat.png")));
    assert_eq!(setting.bytes_of(&kept).await.unwrap(), b"cat");
}
