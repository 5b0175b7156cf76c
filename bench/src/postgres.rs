//! The PostgreSQL server that `scripts/postgres.sh` started for this run: databases on it, and what it can do by itself.

use crate::server::cpu_time;
use anyhow::{Context as _, Result, bail, ensure};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A running server.
pub struct Postgres {
    /// Without a database's name.
    url: String,
    process: u32,
    databases: AtomicUsize,
}

/// What its own benchmark measured.
#[derive(Debug, Clone, Copy)]
pub struct Inserts {
    /// Rows per second, each in a transaction of its own.
    pub per_second: f64,
    /// The database's processor time for one row.
    pub cpu_micros: f64,
}

impl Postgres {
    /// Finds the server that this program was started beside.
    pub fn find() -> Result<Self> {
        let variable = |name: &str| {
            env::var(name).with_context(|| format!("{name} is not set: run `make bench ENGINE=postgres`"))
        };
        let url = variable("MEMTROVE_TEST_POSTGRES")?;
        let (url, _) = url.rsplit_once('/').context("MEMTROVE_TEST_POSTGRES names no database")?;
        let file = PathBuf::from(variable("MEMTROVE_POSTGRES_DIR")?).join("cluster/data/postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let process =
            text.lines().next().unwrap_or_default().parse().context("postmaster.pid has no number")?;
        let postgres = Self { url: url.to_owned(), process, databases: AtomicUsize::new(0) };
        for (setting, wanted) in [("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")] {
            let is = postgres.sql("postgres", &format!("SHOW {setting}"))?;
            ensure!(is == wanted, "{setting} is {is}: a commit that is not durable is no result");
        }
        Ok(postgres)
    }

    /// Its version, for the first lines of a result.
    pub fn version(&self) -> Result<String> {
        self.sql("postgres", "SHOW server_version")
    }

    /// Makes an empty database; it goes with the server.
    pub fn new_database(&self) -> Result<String> {
        let name = format!("bench_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(format!("{}/{name}", self.url))
    }

    /// Processor time that its processes used so far.
    pub fn cpu_time(&self) -> Result<Duration> {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.process))?;
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        // One that ended since it was listed is among those that ended.
        let running: Duration =
            children.chain([self.process]).filter_map(|process| cpu_time(process).ok()).sum();
        Ok(running + self.ended()?)
    }

    /// Processor time of connections and helpers that are gone, in hundredths of a second.
    fn ended(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process))?;
        // The program's name, which may have spaces, ends with the last bracket.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let hundredths: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(hundredths * 10))
    }

    /// A table for [`Postgres::inserts`]; answers its database.
    pub fn floor_table(&self) -> Result<String> {
        let database = self.new_database()?;
        let name = database.rsplit('/').next().unwrap_or_default();
        self.sql(name, "CREATE TABLE floor (id UUID PRIMARY KEY, content BYTEA NOT NULL)")?;
        Ok(database)
    }

    /// What `pgbench` reaches with single rows of this many bytes, prepared, one client thread, for whole seconds.
    pub fn inserts(&self, database: &str, connections: usize, bytes: usize, seconds: u64) -> Result<Inserts> {
        let script = tempfile::NamedTempFile::new()?;
        let insert = format!(
            "INSERT INTO floor (id, content) VALUES (uuidv7(), CAST(repeat('x', {bytes}) AS BYTEA));\n"
        );
        fs::write(script.path(), insert)?;
        let before = self.cpu_time()?;
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        let run = Command::new("pgbench")
            .args(["--no-vacuum", "--protocol", "prepared", "--jobs", "1"])
            .args(["--client", &connections, "--time", &seconds, "--file"])
            .arg(script.path())
            .arg(database)
            .output()
            .context("cannot run pgbench")?;
        let text = String::from_utf8_lossy(&run.stdout);
        let (Some(per_second), Some(rows)) = (number(&text, "tps"), number(&text, "actually processed"))
        else {
            bail!("pgbench: {text}{}", String::from_utf8_lossy(&run.stderr));
        };
        let used = self.cpu_time()?.saturating_sub(before);
        Ok(Inserts { per_second, cpu_micros: used.as_secs_f64() * 1e6 / rows.max(1.0) })
    }

    fn sql(&self, database: &str, sql: &str) -> Result<String> {
        let run = Command::new("psql")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .arg(format!("{}/{database}", self.url))
            .output()
            .context("cannot run psql")?;
        ensure!(run.status.success(), "{sql}: {}", String::from_utf8_lossy(&run.stderr));
        Ok(String::from_utf8_lossy(&run.stdout).trim().to_owned())
    }
}

/// The number behind a name that `pgbench` prints.
fn number(text: &str, name: &str) -> Option<f64> {
    let (_, rest) = text.split_once(name)?;
    rest.trim_start_matches([' ', '=', ':']).split([' ', '\n']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_what_pgbench_prints() {
        let text = "duration: 2 s\nnumber of transactions actually processed: 6295\n\
                    number of failed transactions: 0 (0.000%)\nlatency average = 2.542 ms\n\
                    tps = 3147.438607 (without initial connection time)\n";
        assert_eq!(number(text, "actually processed"), Some(6295.0));
        assert_eq!(number(text, "tps"), Some(3147.438607));
        assert_eq!(number(text, "nothing"), None);
    }
}
