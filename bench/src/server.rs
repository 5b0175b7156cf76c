//! The processes under test: started on a free port, asked for their address, watched through `/proc`.

use crate::load::Connection;
use crate::stream_floor::StreamFloorOptions;
use anyhow::{Context as _, Result, bail};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server process with a folder of its own; both end with this value.
pub struct Server {
    child: Child,
    /// Removed with its data when this value ends.
    _folder: TempDir,
    /// Where it listens.
    pub address: SocketAddr,
    /// From the start of the process to its first good answer.
    pub ready_after: Duration,
}

impl Server {
    /// Starts the product on an empty folder, in local mode, with its default settings otherwise.
    pub async fn product(binary: &Path) -> Result<Self> {
        let mut command = Command::new(binary);
        command.arg("serve");
        Self::start(command, Some("/v1/health")).await
    }

    /// Starts the product on this database, which others may be using already.
    pub async fn node(binary: &Path, database: &str) -> Result<Self> {
        let mut command = Command::new(binary);
        command.arg("serve").arg("--store").arg(database);
        Self::start(command, Some("/v1/health")).await
    }

    /// Starts the product so that recordings can be replayed for longer than anybody measures.
    pub async fn keeping_recordings(binary: &Path) -> Result<Self> {
        let mut command = Command::new(binary);
        command.arg("serve").env("MEMTROVE_RECORDER__FINISHED_RETENTION", "1h");
        Self::start(command, Some("/v1/health")).await
    }

    /// Starts the floor of replays.
    pub async fn stream_floor(options: &StreamFloorOptions) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("stream-floor").arg("--piece").arg(options.piece.to_string());
        command.arg("--pieces").arg(options.pieces.to_string());
        Self::start(command, None).await
    }

    /// Starts the floor: a server that answers every request with `status` and `body`.
    pub async fn floor(status: u16, body: &[u8]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), body)?;
        command.arg("floor").arg("--status").arg(status.to_string()).arg("--body").arg(file.path());
        Self::start(command, None).await
    }

    async fn start(mut command: Command, health: Option<&str>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("memtrove-bench-").tempdir()?;
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        command
            .current_dir(folder.path())
            .env("MEMTROVE_SERVER__LISTEN", "127.0.0.1:0")
            .env("MEMTROVE_SERVER__DATA_DIR", folder.path().join("data"))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        // From here on `drop` ends the process, whatever goes wrong.
        let mut server = Self {
            child,
            _folder: folder,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            ready_after: Duration::ZERO,
        };
        server.address = server.wait_for_address(&log, started).await?;
        if let Some(path) = health {
            server.wait_for_health(path, started).await?;
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    async fn wait_for_address(&mut self, log: &Path, started: Instant) -> Result<SocketAddr> {
        loop {
            let text = fs::read_to_string(log)?;
            if let Some(address) = printed_address(&text) {
                return Ok(address);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status} before it printed its address:\n{text}");
            }
            if started.elapsed() > Duration::from_secs(20) {
                bail!("the server printed no line with http://127.0.0.1:PORT within 20 s:\n{text}");
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    }

    async fn wait_for_health(&self, path: &str, started: Instant) -> Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        loop {
            if let Ok(mut connection) = Connection::open(self.address).await
                && matches!(connection.exchange(request.as_bytes()).await, Ok(answer) if answer.status == 200)
            {
                return Ok(());
            }
            if started.elapsed() > Duration::from_secs(20) {
                bail!("GET {path} was not answered 200 within 20 s");
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    }

    /// Memory the process has resident, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most memory the process ever had resident, in bytes.
    pub fn peak_bytes(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let line = line.with_context(|| format!("no {name} in /proc"))?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Processor time that the threads of a process have used so far. Finer than `/proc/PID/stat`, which counts hundredths of
/// a second.
pub fn cpu_time(process: u32) -> Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end between listing and reading; the ones that matter live as long as the process.
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; its folder goes in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in a log that has a line with `http://127.0.0.1:PORT`.
fn printed_address(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("http://127.0.0.1:")?;
    let digits = rest.find(|character: char| !character.is_ascii_digit())?;
    let port: u16 = rest[..digits].parse().ok()?;
    Some(SocketAddr::from(([127, 0, 0, 1], port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_once_its_line_is_complete() {
        let log = "starting\nlistening on http://127.0.0.1:41234\n";
        assert_eq!(printed_address(log), Some("127.0.0.1:41234".parse().unwrap()));
        assert_eq!(printed_address("listening on http://127.0.0.1:412"), None);
    }
}
