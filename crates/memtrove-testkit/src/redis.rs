//! A real Redis that one test has for itself, which `scripts/redis.sh` installs and starts.
//!
//! It starts in some milliseconds and takes a few megabytes, so no test has to share one, and each may be killed.

#![expect(
    clippy::expect_used,
    reason = "a test helper fails by panicking, with what a person needs to see why"
)]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a server may take until it answers; the first one on a machine is installed before.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A server with nothing in it. It ends with its last holder, and also when the test process ends without dropping it.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    /// `None` while it is killed.
    process: Mutex<Option<Child>>,
}

impl Redis {
    /// Starts a server.
    #[track_caller]
    pub fn start() -> Arc<Self> {
        // Another process may take a free port first.
        for _ in 0..5 {
            let port = free_port();
            if let Some(process) = launch(port) {
                return Arc::new(Self { port, process: Mutex::new(Some(process)) });
            }
        }
        panic!("scripts/redis.sh start fails, and this test needs Redis; run it by hand to see why");
    }

    /// Where it is: what `redis.url` says.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Ends the server at once. Whatever it knew is gone.
    pub fn kill(&self) {
        let process = self.process.lock().expect("a lock that nobody panicked with").take();
        if let Some(mut process) = process {
            // The script ends the server when its standard input closes.
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }

    /// Brings a killed server back on the same port, with nothing in it.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        let process = launch(self.port).expect("the port of the server that was killed");
        *self.process.lock().expect("a lock that nobody panicked with") = Some(process);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its number").port()
}

/// A server that answers; none if it ended before it did.
fn launch(port: u16) -> Option<Child> {
    let mut command = Command::new(script_path());
    command.args(["start", &port.to_string()]);
    // In a group of its own: an interrupt that ends the test is for the test.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", script_path().display()));
    let deadline = Instant::now() + START_TIMEOUT;
    while Instant::now() < deadline {
        if process.try_wait().expect("the state of the process").is_some() {
            return None;
        }
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(process.stdin.take());
    let _ = process.wait();
    None
}

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/redis.sh")
}
