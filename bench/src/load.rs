//! The load generator: keep-alive HTTP/1.1 connections that send prebuilt bytes and read just enough of the answer. Where
//! transports are compared, both sides have the [client of a library](crate::hyper_client) instead.
//!
//! It shares two cores with the server, so everything it spends is taken from the result. One thread runs all
//! connections; a request costs one `write`, one `read` and its share of an `epoll_wait`. There is no HTTP library:
//! an answer is a status, a `Content-Length` and that many bytes.
//!
//! The loop is closed: each connection sends its next request when the last answer is in. Latency is what that
//! connection waited, so it includes queueing behind the other connections.

use crate::hyper_client::{HyperConnection, Wire};
use crate::postgres::Postgres;
use crate::sender::Sender;
use crate::server::{Server, cpu_time};
use anyhow::{Context as _, Result, bail, ensure};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// One side of a comparison: a server, or several that share a database, and what each connection to them sends.
pub struct Side {
    /// The servers; connections are spread over them.
    pub nodes: Vec<Arc<Server>>,
    /// The database, if it is a process of its own.
    pub database: Option<Arc<Postgres>>,
    /// As many as there may be connections.
    pub senders: Vec<Sender>,
    /// What the library's client speaks, where it takes the place of prebuilt bytes.
    pub wire: Option<Wire>,
}

impl Side {
    /// A server that stands alone.
    pub fn alone(server: Arc<Server>, senders: Vec<Sender>) -> Self {
        Self { nodes: vec![server], database: None, senders, wire: None }
    }

    /// Lets the first sender ask once; the body of the answer, which must be a good one.
    pub async fn ask(&mut self) -> Result<Vec<u8>> {
        let mut link = SenderLink::open_all(self, 1).await?.remove(0);
        let sender = &mut self.senders[0];
        let answer = link.exchange(sender.request()).await?;
        ensure!(answer.is_success(), "the server answers {}", answer.describe());
        let body = answer.body.to_vec();
        sender.answered(&body)?;
        Ok(body)
    }

    /// Processor time that the servers and the database used so far.
    pub fn cpu_time(&self) -> Result<[Duration; 2]> {
        let nodes = self.nodes.iter().map(|node| cpu_time(node.id())).sum::<Result<Duration>>()?;
        let database = self.database.as_ref().map_or(Ok(Duration::ZERO), |database| database.cpu_time())?;
        Ok([nodes, database])
    }
}

pub struct HttpAnswer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl HttpAnswer<'_> {
    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Status and the beginning of the body, for people.
    pub fn describe(&self) -> String {
        let shown = &self.body[..self.body.len().min(300)];
        format!("{} {}", self.status, String::from_utf8_lossy(shown))
    }
}

/// A keep-alive connection and the buffer its answers arrive in.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 64 * 1024] })
    }

    /// Sends one request and waits for its whole answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<HttpAnswer<'_>> {
        self.send(request).await?;
        let mut filled = 0;
        let head = loop {
            filled += self.receive(filled).await?;
            if let Some(head) = Head::parse(&self.buffer[..filled])? {
                break head;
            }
        };
        let end = head.length + head.body_length;
        while filled < end {
            filled += self.receive(filled).await?;
        }
        if filled > end {
            bail!("the server sent {} bytes more than its Content-Length", filled - end);
        }
        Ok(HttpAnswer { status: head.status, body: &self.buffer[head.length..end] })
    }

    async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = poll_fn(|context| Pin::new(&mut self.stream).poll_write(context, bytes)).await?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Reads once, behind what is there already.
    ///
    /// `poll_read` rather than `try_read`: after a short read it knows that the socket is empty and waits for the
    /// next event without asking the kernel again, which saves a system call for every request.
    async fn receive(&mut self, filled: usize) -> Result<usize> {
        if filled == self.buffer.len() {
            self.buffer.resize(filled * 2, 0);
        }
        let mut space = ReadBuf::new(&mut self.buffer[filled..]);
        poll_fn(|context| Pin::new(&mut self.stream).poll_read(context, &mut space)).await?;
        match space.filled().len() {
            0 => bail!("the server closed the connection in the middle of an exchange"),
            received => Ok(received),
        }
    }
}

/// What the generator needs to know of an answer's head.
#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    length: usize,
    body_length: usize,
}

impl Head {
    /// `None` while the head is incomplete.
    fn parse(received: &[u8]) -> Result<Option<Self>> {
        let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let mut lines = received[..end].split(|&byte| byte == b'\n');
        let status: u16 = lines
            .next()
            .and_then(|line| std::str::from_utf8(line.get(9..12)?).ok()?.parse().ok())
            .context("the answer does not begin with an HTTP status line")?;
        let mut body_length = if status == 204 || status == 304 { Some(0) } else { None };
        for line in lines {
            const NAME: &[u8] = b"content-length:";
            if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
                let value = std::str::from_utf8(&line[NAME.len()..])?.trim();
                body_length = Some(value.parse().context("Content-Length is not a number")?);
            }
        }
        let body_length =
            body_length.context("the answer has no Content-Length: the generator reads no chunks")?;
        Ok(Some(Self { status, length: end + 4, body_length }))
    }
}

/// What a measurement saw; several slices of one can be added up.
#[derive(Debug, Default, Clone)]
pub struct Run {
    /// Nanoseconds of every answered request.
    nanos: Vec<u32>,
    /// Requests per second of each slice.
    pub slices: Vec<f64>,
    /// Time measured.
    measured: Duration,
    /// Processor time the servers spent.
    server_cpu: Duration,
    /// Processor time the database spent, where it is a process of its own.
    database_cpu: Duration,
    /// Processor time the generator spent.
    generator_cpu: Duration,
    /// Answers that were not 2xx, and broken connections.
    pub failures: u64,
    /// The first of them.
    pub failure: Option<String>,
}

impl Run {
    /// Adds another slice.
    pub fn add(&mut self, slice: Run) {
        self.nanos.extend(slice.nanos);
        self.slices.extend(slice.slices);
        self.measured += slice.measured;
        self.server_cpu += slice.server_cpu;
        self.database_cpu += slice.database_cpu;
        self.generator_cpu += slice.generator_cpu;
        self.failures += slice.failures;
        self.failure = self.failure.take().or(slice.failure);
    }

    /// Requests answered.
    pub fn answered(&self) -> usize {
        self.nanos.len()
    }

    /// Requests per second.
    pub fn throughput(&self) -> f64 {
        self.nanos.len() as f64 / self.measured.as_secs_f64().max(f64::EPSILON)
    }

    /// The server's processor time for one request, in microseconds.
    pub fn server_micros(&self) -> f64 {
        self.server_cpu.as_secs_f64() * 1e6 / (self.nanos.len().max(1) as f64)
    }

    /// The database's processor time for one request, in microseconds.
    pub fn database_micros(&self) -> f64 {
        self.database_cpu.as_secs_f64() * 1e6 / (self.nanos.len().max(1) as f64)
    }

    /// The generator's processor time for one request, in microseconds. Its one thread is the limit, and the result
    /// is none, where this times the throughput comes close to a second.
    pub fn generator_micros(&self) -> f64 {
        self.generator_cpu.as_secs_f64() * 1e6 / (self.nanos.len().max(1) as f64)
    }

    /// The latencies that the given shares of all requests stayed within, in milliseconds.
    pub fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        shares.map(|share| {
            let rank = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
            sorted.get(rank).map_or(f64::NAN, |&nanos| f64::from(nanos) / 1e6)
        })
    }

    /// Takes note of a request that was answered.
    pub fn note(&mut self, waited: Duration) {
        self.nanos.push(u32::try_from(waited.as_nanos()).unwrap_or(u32::MAX));
    }

    /// Takes note of one that went wrong.
    pub fn fail(&mut self, what: String) {
        self.failures += 1;
        self.failure.get_or_insert(what);
    }
}

/// How much load, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Connections, each with one request under way; over HTTP/2 streams, of which a connection may have several.
    pub connections: usize,
    /// Time before the measurement starts: connections open, caches and the scheduler settle.
    pub warm_up: Duration,
    /// Time measured.
    pub measure: Duration,
}

/// Lets a side's senders send for as long as `load` says.
pub async fn drive(side: &mut Side, load: Load) -> Result<Run> {
    ensure!(load.connections <= side.senders.len(), "fewer senders than connections");
    let links = SenderLink::open_all(side, load.connections).await?;
    let begin = Instant::now() + load.warm_up;
    let end = begin + load.measure;
    let mut tasks = JoinSet::new();
    for (link, sender) in links.into_iter().zip(side.senders.drain(..load.connections)) {
        tasks.spawn(repeat(link, sender, begin, end));
    }
    let [server_cpu, database_cpu, generator_cpu] = cpu_between(side, begin, end).await?;
    let mut run = Run { measured: load.measure, server_cpu, database_cpu, generator_cpu, ..Run::default() };
    while let Some(part) = tasks.join_next().await {
        let (part, sender) = part?;
        side.senders.push(sender);
        run.nanos.extend(part.nanos);
        run.failures += part.failures;
        run.failure = run.failure.or(part.failure);
    }
    run.slices.push(run.throughput());
    Ok(run)
}

/// What one sender sends over.
enum SenderLink {
    Prebuilt(Connection),
    Library(HyperConnection),
}

impl SenderLink {
    /// This many, spread over the nodes of a side.
    async fn open_all(side: &Side, count: usize) -> Result<Vec<Self>> {
        let mut links = Vec::with_capacity(count);
        let mut nodes = side.nodes.iter().cycle();
        while links.len() < count {
            let address = nodes.next().context("a side without servers")?.address;
            match side.wire {
                None => links.push(Self::Prebuilt(Connection::open(address).await?)),
                Some(wire) => {
                    let streams = if let Wire::Http2 { streams } = wire { streams } else { 1 };
                    let first = HyperConnection::open(address, wire).await?;
                    let others = (1..streams.min(count - links.len())).map_while(|_| first.share());
                    let mut shares: Vec<_> = others.map(Self::Library).collect();
                    shares.push(Self::Library(first));
                    links.append(&mut shares);
                }
            }
        }
        Ok(links)
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<HttpAnswer<'_>> {
        match self {
            Self::Prebuilt(connection) => connection.exchange(request).await,
            Self::Library(connection) => connection.exchange(request).await,
        }
    }
}

/// Processor time that servers, database and generator spend between two instants.
pub async fn cpu_between(side: &Side, begin: Instant, end: Instant) -> Result<[Duration; 3]> {
    let used = || {
        let [nodes, database] = side.cpu_time()?;
        Ok::<_, anyhow::Error>([nodes, database, cpu_time(std::process::id())?])
    };
    tokio::time::sleep_until(begin.into()).await;
    let before = used()?;
    tokio::time::sleep_until(end.into()).await;
    let after = used()?;
    Ok(std::array::from_fn(|index| after[index].saturating_sub(before[index])))
}

/// One connection's share of [`drive`]. A request counts when its answer arrives within the measured time.
async fn repeat(mut link: SenderLink, mut sender: Sender, begin: Instant, end: Instant) -> (Run, Sender) {
    let mut run = Run::default();
    let mut sent = Instant::now();
    while sent < end {
        let failure = match link.exchange(sender.request()).await {
            Ok(answer) if answer.is_success() => {
                sender.answered(answer.body).err().map(|error| format!("{error:#}"))
            }
            Ok(answer) => Some(answer.describe()),
            Err(error) => {
                // The connection is in an unknown state: this one is over.
                run.fail(format!("{error:#}"));
                return (run, sender);
            }
        };
        let answered = Instant::now();
        match failure {
            Some(what) => run.fail(what),
            None if (begin..end).contains(&answered) => {
                run.note(answered - sent);
            }
            None => {}
        }
        sent = answered;
    }
    (run, sender)
}

/// Sends each request once, many at a time, and returns the bodies of the answers in the order of the requests. The
/// first answer that is not 2xx ends it. Seeding uses this.
pub async fn send_all(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    const CONNECTIONS: usize = 256;
    let requests = Arc::new(requests);
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS.min(requests.len()) {
        tasks.spawn(send_share(address, Arc::clone(&requests), Arc::clone(&next)));
    }
    let mut bodies = vec![Vec::new(); requests.len()];
    while let Some(share) = tasks.join_next().await {
        for (index, body) in share?? {
            bodies[index] = body;
        }
    }
    Ok(bodies)
}

async fn send_share(
    address: SocketAddr,
    requests: Arc<Vec<Vec<u8>>>,
    next: Arc<AtomicUsize>,
) -> Result<Vec<(usize, Vec<u8>)>> {
    let mut connection = Connection::open(address).await?;
    let mut bodies = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(request) = requests.get(index) else { return Ok(bodies) };
        let answer = connection.exchange(request).await?;
        if !answer.is_success() {
            let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
            bail!("{} was answered {}", String::from_utf8_lossy(line), answer.describe());
        }
        bodies.push((index, answer.body.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_complete() {
        let answer = b"HTTP/1.1 201 Created\r\nX-A: b\r\nContent-Length: 12\r\n\r\n{\"a\":";
        assert_eq!(Head::parse(&answer[..40]).unwrap(), None);
        let head = Head::parse(answer).unwrap().unwrap();
        assert_eq!(head, Head { status: 201, length: answer.len() - 5, body_length: 12 });
    }

    #[test]
    fn an_answer_of_unknown_length_is_refused_unless_it_cannot_have_a_body() {
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
        let head = Head::parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().unwrap();
        assert_eq!((head.status, head.body_length), (204, 0));
    }

    #[test]
    fn percentiles_name_the_request_that_the_share_stayed_within() {
        let run = Run { nanos: (1..=100).rev().map(|n| n * 1_000_000).collect(), ..Run::default() };
        assert_eq!(run.percentiles([0.5, 0.99, 1.0]), [50.0, 99.0, 100.0]);
    }
}
