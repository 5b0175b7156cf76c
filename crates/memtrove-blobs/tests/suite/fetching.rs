//! Fetching from a web that wants to lead us into our own network. Names and their public addresses are made up; what is
//! connected to is this machine.

use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use memtrove_blobs::fetch::{FetchError, Fetcher, Limits, Names};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PUBLIC: &str = "93.184.215.14";

/// A web of one server, which every public address leads to.
#[derive(Debug, Clone)]
struct Web {
    server: SocketAddr,
    /// What the names answer, one look-up after the other; the last answer stays.
    names: Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names for Web {
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut names = self.names.lock().unwrap();
        let answer = match names.get_mut(&host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            None => Err(io::Error::other("there is no such name")),
        };
        Box::pin(std::future::ready(answer))
    }

    fn route(&self, address: IpAddr) -> SocketAddr {
        match address.to_string() == PUBLIC {
            true => self.server,
            false => SocketAddr::new(address, self.server.port()),
        }
    }
}

impl Web {
    /// The server answers a path with the bytes given for it, and notes what it was asked. After the bytes it closes,
    /// unless they end in the middle of something: then it waits for the test to end.
    async fn serve(answers: &[(&'static str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web =
            Self { server: listener.local_addr().unwrap(), names: Arc::default(), asked: Arc::default() };
        web.name("public.example", &[&[PUBLIC]]);
        let answers: HashMap<_, _> = answers.iter().cloned().collect();
        let asked = web.asked.clone();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let (answers, asked) = (answers.clone(), asked.clone());
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        match connection.read_u8().await {
                            Ok(byte) => request.push(byte),
                            Err(_) => return,
                        }
                    }
                    let request = String::from_utf8(request).unwrap();
                    let path = request.split(' ').nth(1).unwrap().to_owned();
                    asked.lock().unwrap().push(request);
                    let answer = answers.get(path.as_str()).cloned().unwrap_or_else(|| head(404, &[]));
                    let _ = connection.write_all(&answer).await;
                    if path == "/hangs" {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        web
    }

    fn name(&self, name: &str, answers: &[&[&str]]) {
        let answers =
            answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
        self.names.lock().unwrap().insert(name.into(), answers.collect());
    }

    async fn fetch(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch_within(url, Limits { max_bytes: 1000, ..Limits::default() }).await
    }

    async fn fetch_within(&self, url: &str, limits: Limits) -> Result<Vec<u8>, FetchError> {
        let fetched = Fetcher::with_names(Arc::new(self.clone())).unwrap().fetch(url, limits).await?;
        let pieces: Vec<_> = fetched.body.try_collect().await?;
        Ok(pieces.concat())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn head(status: u16, headers: &[&str]) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("HTTP/1.1 {status} Whatever\r\nConnection: close\r\n{headers}\r\n").into_bytes()
}

fn redirect(to: &str) -> Vec<u8> {
    head(302, &[&format!("Location: {to}"), "Content-Length: 0"])
}

fn hello() -> Vec<u8> {
    [head(200, &["Content-Type: text/plain", "Content-Length: 5"]), b"hello".to_vec()].concat()
}

#[tokio::test]
async fn what_is_public_is_fetched_with_its_type_and_length() {
    let web = Web::serve(&[("/hello", hello())]).await;
    let fetcher = Fetcher::with_names(Arc::new(web.clone())).unwrap();
    let fetched = fetcher.fetch("http://public.example/hello", Limits::default()).await.unwrap();
    assert_eq!(fetched.content_type.as_deref(), Some("text/plain"));
    assert_eq!(fetched.length, Some(5));
    let pieces: Vec<_> = fetched.body.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"hello");

    let asked = web.asked().concat().to_lowercase();
    assert!(asked.contains("accept-encoding: identity"), "{asked}");
    for never in ["cookie", "authorization", "referer"] {
        assert!(!asked.contains(never), "{asked}");
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_not_even_asked() {
    let web = Web::serve(&[("/hello", hello())]).await;
    let port = web.server.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:db8::1]",
    ] {
        for url in [format!("http://{host}:{port}/hello"), format!("https://{host}/hello")] {
            assert_eq!(web.fetch(&url).await, Err(FetchError::Refused), "{url}");
        }
    }
    assert_eq!(web.asked(), [""; 0]);
}

#[tokio::test]
async fn names_that_lead_into_our_network_are_refused_also_if_they_lead_elsewhere_too() {
    let web = Web::serve(&[("/hello", hello())]).await;
    let answers: [&[&str]; 5] =
        [&["127.0.0.1"], &["::1"], &["10.0.0.7"], &[PUBLIC, "127.0.0.1"], &["169.254.169.254", PUBLIC]];
    for answer in answers {
        web.name("inside.example", &[answer]);
        assert_eq!(web.fetch("http://inside.example/hello").await, Err(FetchError::Refused), "{answer:?}");
    }
    assert_eq!(web.asked(), [""; 0]);
}

#[tokio::test]
async fn the_names_of_this_machine_are_looked_at_too() {
    let web = Web::serve(&[("/hello", hello())]).await;
    let port = web.server.port();
    let fetcher = Fetcher::new().unwrap().with_ports(&[port]);
    let fetched = fetcher.fetch(&format!("http://localhost:{port}/hello"), Limits::default()).await;
    assert_eq!(fetched.map(drop), Err(FetchError::Refused));
    assert_eq!(web.asked(), [""; 0]);
}

#[tokio::test]
async fn redirects_are_followed_and_looked_at_like_the_first_address() {
    let web = Web::serve(&[
        ("/relative", redirect("/hello")),
        ("/absolute", redirect("http://other.example/relative")),
        ("/to-loopback", redirect("http://127.0.0.1/hello")),
        ("/to-metadata", redirect("http://169.254.169.254/latest/meta-data/")),
        ("/to-v6", redirect("http://[::1]/hello")),
        ("/to-name", redirect("http://inside.example/hello")),
        ("/to-file", redirect("file:///etc/passwd")),
        ("/to-password", redirect("http://me:secret@public.example/hello")),
        ("/to-nowhere", redirect("http://")),
        ("/hello", hello()),
    ])
    .await;
    web.name("other.example", &[&[PUBLIC]]);
    web.name("inside.example", &[&["127.0.0.1"]]);
    for path in ["relative", "absolute"] {
        assert_eq!(web.fetch(&format!("http://public.example/{path}")).await.unwrap(), b"hello", "{path}");
    }
    for path in ["to-loopback", "to-metadata", "to-v6", "to-name"] {
        let fetched = web.fetch(&format!("http://public.example/{path}")).await;
        assert_eq!(fetched, Err(FetchError::Refused), "{path}");
    }
    for path in ["to-file", "to-password", "to-nowhere"] {
        let fetched = web.fetch(&format!("http://public.example/{path}")).await;
        assert!(matches!(fetched, Err(FetchError::Invalid(_))), "{path}: {fetched:?}");
    }
}

#[tokio::test]
async fn five_redirects_are_followed_and_no_more() {
    let steps = ["/0", "/1", "/2", "/3", "/4", "/5"];
    let mut answers: Vec<_> = steps.windows(2).map(|pair| (pair[0], redirect(pair[1]))).collect();
    answers.extend([("/5", hello()), ("/more", redirect("/0")), ("/round", redirect("/round"))]);
    let web = Web::serve(&answers).await;
    assert_eq!(web.fetch("http://public.example/0").await.unwrap(), b"hello");
    for path in ["more", "round"] {
        let fetched = web.fetch(&format!("http://public.example/{path}")).await;
        assert_eq!(fetched, Err(FetchError::TooManyRedirects), "{path}");
    }
}

#[tokio::test]
async fn a_name_that_changes_its_answer_gains_nothing() {
    let web = Web::serve(&[("/hello", hello()), ("/again", redirect("http://turning.example/hello"))]).await;
    // Looked up once, and connected to as it was looked at.
    web.name("turning.example", &[&[PUBLIC], &["127.0.0.1"]]);
    assert_eq!(web.fetch("http://turning.example/hello").await.unwrap(), b"hello");
    // The next connection is looked at anew.
    assert_eq!(web.fetch("http://turning.example/hello").await, Err(FetchError::Refused));
    web.name("turning.example", &[&[PUBLIC], &["127.0.0.1"]]);
    assert_eq!(web.fetch("http://turning.example/again").await, Err(FetchError::Refused));
}

#[tokio::test]
async fn ports_on_which_other_things_are_spoken_are_not_asked() {
    let web = Web::serve(&[("/hello", hello()), ("/mail", redirect("http://public.example:25/hello"))]).await;
    for port in [1, 22, 25, 6379, 9200, 65535] {
        let fetched = web.fetch(&format!("http://public.example:{port}/hello")).await;
        assert_eq!(fetched, Err(FetchError::Port(port)));
    }
    assert_eq!(web.asked(), [""; 0]);
    assert_eq!(web.fetch("http://public.example/mail").await, Err(FetchError::Port(25)));

    let port = web.server.port();
    let fetcher = Fetcher::with_names(Arc::new(web)).unwrap().with_ports(&[port]);
    let url = format!("http://public.example:{port}/hello");
    assert!(fetcher.fetch(&url, Limits::default()).await.is_ok());
    assert_eq!(fetcher.check("http://public.example/hello"), Err(FetchError::Port(80)));
}

#[tokio::test]
async fn what_an_address_says_of_itself_is_known_before_anybody_is_asked() {
    let web = Web::serve(&[]).await;
    let fetcher = Fetcher::with_names(Arc::new(web.clone())).unwrap();
    for url in ["http://public.example/hello", "https://93.184.215.14/", "http://unknown.example:8080/"] {
        assert_eq!(fetcher.check(url), Ok(()), "{url}");
    }
    for url in ["http://127.0.0.1/", "http://0x7f.1:8080/", "https://[::1]/", "http://168.63.129.16/machine"]
    {
        assert_eq!(fetcher.check(url), Err(FetchError::Refused), "{url}");
    }
    for url in ["ftp://public.example/", "http://me:secret@public.example/", "public.example"] {
        assert!(matches!(fetcher.check(url), Err(FetchError::Invalid(_))), "{url}");
    }
    assert_eq!(web.asked(), [""; 0]);
}

#[tokio::test]
async fn what_is_not_of_the_web_is_not_fetched() {
    let web = Web::serve(&[]).await;
    for url in [
        "",
        "hello",
        "/hello",
        "file:///etc/passwd",
        "ftp://public.example/",
        "gopher://public.example/",
        "data:,hello",
        "http://",
        "http://me@public.example/",
        "http://me:secret@public.example/",
        "http://:secret@public.example/",
    ] {
        let fetched = web.fetch(url).await;
        assert!(matches!(fetched, Err(FetchError::Invalid(_))), "{url}: {fetched:?}");
    }
    assert_eq!(web.asked(), [""; 0]);
}

#[tokio::test]
async fn more_bytes_than_allowed_are_not_taken_whatever_the_server_says() {
    let bytes = |count: usize| vec![b'x'; count];
    let chunked = [
        head(200, &["Transfer-Encoding: chunked"]),
        b"3e9\r\n".to_vec(),
        bytes(1001),
        b"\r\n0\r\n\r\n".to_vec(),
    ];
    let web = Web::serve(&[
        ("/fits", [head(200, &["Content-Length: 1000"]), bytes(1000)].concat()),
        ("/says-so", [head(200, &["Content-Length: 1001"]), bytes(1001)].concat()),
        ("/says-nothing", [head(200, &[]), bytes(1001)].concat()),
        ("/chunked", chunked.concat()),
    ])
    .await;
    assert_eq!(web.fetch("http://public.example/fits").await.unwrap().len(), 1000);
    for path in ["says-so", "says-nothing", "chunked"] {
        let fetched = web.fetch(&format!("http://public.example/{path}")).await;
        assert_eq!(fetched, Err(FetchError::TooLarge { max_bytes: 1000 }), "{path}");
    }
}

#[tokio::test]
async fn answers_that_are_not_the_content_are_errors() {
    let web = Web::serve(&[
        ("/gone", head(410, &["Content-Length: 0"])),
        ("/nothing", head(204, &[])),
        ("/part", [head(206, &["Content-Length: 1"]), b"x".to_vec()].concat()),
        ("/nowhere", head(302, &["Content-Length: 0"])),
        ("/packed", [head(200, &["Content-Encoding: gzip", "Content-Length: 1"]), b"x".to_vec()].concat()),
        ("/cut", [head(200, &["Content-Length: 100"]), b"x".to_vec()].concat()),
    ])
    .await;
    for (path, error) in [
        ("gone", FetchError::Status(410)),
        ("nothing", FetchError::Status(204)),
        ("part", FetchError::Status(206)),
        ("nowhere", FetchError::Status(302)),
        ("packed", FetchError::Compressed),
        ("cut", FetchError::Interrupted),
        ("missing", FetchError::Status(404)),
    ] {
        assert_eq!(web.fetch(&format!("http://public.example/{path}")).await, Err(error), "{path}");
    }
    assert_eq!(web.fetch("http://unknown.example/").await, Err(FetchError::Unreachable));
}

#[tokio::test]
async fn a_server_that_hangs_does_not_hold_us() {
    let web = Web::serve(&[("/hangs", [head(200, &["Content-Length: 10"]), b"x".to_vec()].concat())]).await;
    let limits = Limits { total: Duration::from_millis(300), ..Limits::default() };
    assert_eq!(web.fetch_within("http://public.example/hangs", limits).await, Err(FetchError::TimedOut));
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_not_used() {
    let web = Web::serve(&[("/hello", hello())]).await;
    if std::env::var_os("http_proxy").is_some() {
        assert_eq!(web.fetch("http://public.example/hello").await.unwrap(), b"hello");
        return;
    }
    // Variables belong to a process, so another one is asked, in which nothing listens where the proxy should be.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fetching::a_proxy_of_the_environment_is_not_used"])
        .env("http_proxy", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
