//! Where the numbers come from: the machine, the compiler and the commit.

use anyhow::Result;
use memtrove_core::{Clock as _, SystemClock};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Facts without which a result cannot be compared.
#[derive(Debug)]
pub struct Machine {
    /// When the run began, RFC 3339 in UTC.
    pub began: String,
    /// The commit, with `-dirty` behind it when files differ from it.
    pub commit: String,
    /// Cores available to this process.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Kernel release.
    pub kernel: String,
    /// Compiler version.
    pub rustc: String,
    /// The file system that holds the data, because a durable commit is as fast as it is.
    pub file_system: String,
    /// Processes that wanted to run in the minute before the start: more than a few tenths means a noisy result.
    pub load_average: f64,
}

impl Machine {
    /// Asks the machine; `folder` is where data will lie.
    pub fn inspect(folder: &Path) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kilobytes: f64 = memory.trim_end_matches("kB").trim().parse().unwrap_or_default();
        let dirty = if output("git", &["status", "--porcelain"]).is_empty() { "" } else { "-dirty" };
        let commit = output("git", &["rev-parse", "--short=10", "HEAD"]);
        Ok(Self {
            began: SystemClock.now().to_string(),
            commit: if commit.is_empty() { "uncommitted".into() } else { format!("{commit}{dirty}") },
            cores: std::thread::available_parallelism()?.get(),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            memory_gib: kilobytes / 1024.0 / 1024.0,
            // What follows the second number names a build, which says nothing to others.
            kernel: read("/proc/sys/kernel/osrelease")
                .trim()
                .split('.')
                .take(2)
                .collect::<Vec<_>>()
                .join("."),
            rustc: output("rustc", &["--version"]),
            file_system: file_system(folder),
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
        })
    }

    /// `2026-01-31T120000-0123abcdef`: sorts by time, and is a file name everywhere.
    pub fn file_stem(&self) -> String {
        let time: String =
            self.began.chars().take("2026-01-31T12:00:00".len()).filter(|c| *c != ':').collect();
        format!("{time}-{}", self.commit)
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        format!(
            "{} · commit {} · {} cores ({}) · {:.0} GiB · Linux {} · {} · {} · load average {:.1}",
            self.began,
            self.commit,
            self.cores,
            self.processor,
            self.memory_gib,
            self.kernel,
            self.rustc,
            self.file_system,
            self.load_average
        )
    }

    /// For the result file.
    pub fn json(&self) -> Value {
        json!({
            "began": self.began,
            "commit": self.commit,
            "cores": self.cores,
            "processor": self.processor,
            "memoryGib": self.memory_gib,
            "kernel": self.kernel,
            "rustc": self.rustc,
            "fileSystem": self.file_system,
            "loadAverage": self.load_average,
        })
    }
}

/// What a program prints, or nothing when it cannot be run.
fn output(program: &str, arguments: &[&str]) -> String {
    let run = Command::new(program).args(arguments).output();
    run.ok()
        .filter(|run| run.status.success())
        .map(|run| String::from_utf8_lossy(&run.stdout).trim().to_owned())
        .unwrap_or_default()
}

/// The type of the file system a folder is on: that of the longest mount point which contains it.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut found: Vec<(&str, &str)> = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(point, _)| folder.starts_with(point))
        .collect();
    found.sort_by_key(|(point, _)| point.len());
    found.pop().map_or_else(|| "unknown file system".to_owned(), |(_, kind)| kind.to_owned())
}
