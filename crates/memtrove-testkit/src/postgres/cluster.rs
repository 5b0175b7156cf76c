//! A PostgreSQL server: the one that all tests share, or one of a test's own that can be killed.

use super::SHARED;
use super::leash::Leash;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// A server with all its databases.
#[derive(Debug)]
pub struct Cluster {
    /// Of the database that is always there.
    url: String,
    own: Option<Own>,
}

/// What a server of a test's own lives in.
#[derive(Debug)]
struct Own {
    // The leash first: what is dropped first ends the server.
    leash: Leash,
    directory: TempDir,
}

impl Cluster {
    /// The server that all tests share; started by the first.
    pub fn shared() -> Self {
        static URL: LazyLock<String> = LazyLock::new(|| match std::env::var(SHARED) {
            Ok(url) => url,
            Err(_) => script(None, &["start"]),
        });
        Self { url: URL.clone(), own: None }
    }

    /// A server that only the caller knows, for tests that take it away. It takes a second to make.
    pub fn own() -> Self {
        Self::with_options("")
    }

    /// A server of the caller's own that writes every statement to its [log](Self::log).
    pub fn logging_statements() -> Self {
        Self::with_options("-c log_statement=all")
    }

    fn with_options(options: &str) -> Self {
        // Open to all: root's tests lend the folder to an unprivileged user.
        let directory = tempfile::Builder::new()
            .prefix("memtrove-postgres-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary folder");
        let leash = Leash::to(&script_path(), &["stop"], Some(directory.path()));
        let url = script_with(&[("MEMTROVE_POSTGRES_OPTIONS", options)], Some(directory.path()), &["start"]);
        Self { url, own: Some(Own { leash, directory }) }
    }

    /// What the server has written to its log.
    #[track_caller]
    pub fn log(&self) -> String {
        let path = self.directory().join("cluster/log");
        let log = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Ends the server at once, as a crash does. What was committed is kept.
    #[track_caller]
    pub fn kill(&self) {
        script(Some(self.directory()), &["kill"]);
    }

    /// Brings a killed server back, on the same port.
    #[track_caller]
    pub fn restart(&self) {
        script(Some(self.directory()), &["start"]);
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> &str {
        let rest = self.url.rsplit_once('@').map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split_once('/').map_or(rest, |(address, _)| address)
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    pub(super) fn url_of(&self, database: &str) -> String {
        match self.url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/{database}"),
            None => panic!("{SHARED} is {:?}, which names no database", self.url),
        }
    }

    pub(super) fn leash(&self, arguments: &[&str]) -> Leash {
        Leash::to(&script_path(), arguments, self.own.as_ref().map(|own| own.directory.path()))
    }

    #[track_caller]
    fn directory(&self) -> &Path {
        match &self.own {
            Some(own) => own.directory.path(),
            None => panic!("other tests use the shared server; Cluster::own() makes one that may be killed"),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(own) = &mut self.own {
            own.leash.let_go_and_wait();
        }
    }
}

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh")
}

/// Runs the script and answers what it prints.
#[track_caller]
fn script(directory: Option<&Path>, arguments: &[&str]) -> String {
    script_with(&[], directory, arguments)
}

#[track_caller]
fn script_with(variables: &[(&str, &str)], directory: Option<&Path>, arguments: &[&str]) -> String {
    let mut command = Command::new(script_path());
    command.args(arguments).envs(variables.iter().copied());
    if let Some(directory) = directory {
        command.env("MEMTROVE_POSTGRES_DIR", directory);
    }
    let output = command.output().unwrap_or_else(|e| panic!("{}: {e}", script_path().display()));
    assert!(
        output.status.success(),
        "scripts/postgres.sh {} failed, and this test needs PostgreSQL; run it by hand to see why:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
