//! A store to import into, on either engine, and the server that shows what is in it.

use memtrove_testkit::postgres::Database;
use memtrove_testkit::server::{Client, Setup, TestServer};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_memtrove");

enum Kept {
    Folder,
    Database(Arc<Database>),
}

/// A store, and a folder to write exports to.
pub struct Place {
    kept: Kept,
    folder: TempDir,
}

impl Place {
    pub fn sqlite() -> Self {
        Self { kept: Kept::Folder, folder: tempfile::tempdir().unwrap() }
    }

    pub fn postgres() -> Self {
        Self { kept: Kept::Database(Database::fresh()), folder: tempfile::tempdir().unwrap() }
    }

    /// One of each engine.
    pub fn both() -> [Self; 2] {
        [Self::sqlite(), Self::postgres()]
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes something to import.
    pub fn give(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn url(&self) -> String {
        match &self.kept {
            Kept::Folder => format!("sqlite:{}", self.folder().join("data/memtrove.db").display()),
            Kept::Database(database) => database.url().to_owned(),
        }
    }

    /// How many entries the store has by now, whoever else is at it. Its tables must be there.
    pub fn entries(&self) -> u64 {
        let count = "SELECT COUNT(*) FROM entries";
        match &self.kept {
            Kept::Folder => {
                let database = rusqlite::Connection::open(self.folder().join("data/memtrove.db")).unwrap();
                database.busy_timeout(Duration::from_secs(10)).unwrap();
                let counted: i64 = database.query_row(count, [], |row| row.get(0)).unwrap();
                u64::try_from(counted).unwrap()
            }
            Kept::Database(database) => database.rows(count)[0][0].as_ref().unwrap().parse().unwrap(),
        }
    }

    pub fn serve(&self) -> TestServer {
        if matches!(self.kept, Kept::Folder) {
            std::fs::create_dir_all(self.folder().join("data")).unwrap();
        }
        Setup::new(BINARY).variable("MEMTROVE_STORE__URL", self.url()).start()
    }

    pub fn command(&self, what: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_"))
        {
            command.env_remove(name);
        }
        std::fs::create_dir_all(self.folder().join("data")).unwrap();
        command.current_dir(self.folder()).arg("import").arg(what).args(more).args(["--store", &self.url()]);
        command
    }

    /// Imports; what was said.
    #[track_caller]
    pub fn import(&self, what: &Path, more: &[&str]) -> String {
        self.ends_with(0, what, more)
    }

    /// Imports, which ends with this exit code; what was said.
    #[track_caller]
    pub fn ends_with(&self, code: i32, what: &Path, more: &[&str]) -> String {
        let output = self.command(what, more).output().unwrap();
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(code), "import {} {more:?}: {printed}", what.display());
        printed
    }
}

pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/importing/fixtures").join(name)
}

/// Everything a list shows.
#[track_caller]
pub fn list(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).expect(200).json["data"].as_array().unwrap().clone()
}

#[track_caller]
pub fn says(printed: &str, parts: &[&str]) {
    for part in parts {
        assert!(printed.contains(part), "it does not say '{part}': {printed}");
    }
}

/// The conversation with this title, among the roots.
#[track_caller]
pub fn titled(client: &Client, title: &str) -> Value {
    let roots = list(client, "/v1/conversations?mode=roots&limit=200");
    let found = roots.iter().find(|one| one["title"] == title);
    found.unwrap_or_else(|| panic!("no conversation '{title}' in {roots:#?}")).clone()
}

/// What is said on a conversation: role and text of each entry.
#[track_caller]
pub fn said(client: &Client, id: &Value) -> Vec<(String, String)> {
    let entries = list(client, &format!("/v1/conversations/{}/entries?limit=200", id.as_str().unwrap()));
    let part = |entry: &Value, name: &str| entry["content"][0][name].as_str().unwrap_or_default().to_owned();
    entries.iter().map(|entry| (part(entry, "role"), part(entry, "text"))).collect()
}
