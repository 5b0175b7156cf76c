//! The results: next to what was asked of them, as a table for people and as JSON for programs.

use crate::against::AgainstOlder;
use crate::engines::Engines;
use crate::growth::Growth;
use crate::load::Run;
use crate::machine::Machine;
use crate::memories::Memories;
use crate::recordings::Recordings;
use crate::replays::Replays;
use crate::scenario::{Goal, Operation};
use crate::transports::Transports;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// An operation next to the floor, with this many connections.
pub struct Comparison {
    /// What was measured.
    pub operation: Operation,
    pub connections: usize,
    pub product: Run,
    /// The same shell around a handler that does nothing.
    pub floor: Run,
}

/// The same request on little and on much.
pub struct Grown {
    /// What grew.
    pub growth: Growth,
    pub connections: usize,
    /// On little.
    pub little: Run,
    /// On much.
    pub much: Run,
}

/// What an idle server costs.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    /// Resident memory after a start on an empty folder.
    pub resident_bytes: u64,
    /// Milliseconds from the start of the process to its first good answer; median.
    pub start_millis: f64,
}

/// Everything one run found out.
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// Seconds measured on each side of a comparison.
    pub seconds: f64,
    /// Operations against the floor.
    pub comparisons: Vec<Comparison>,
    /// Growth.
    pub grown: Vec<Grown>,
    /// What the bare engine's own measurement printed.
    pub engine: Option<Value>,
    /// Memory and start.
    pub footprint: Option<Footprint>,
    pub memories: Option<Memories>,
    /// PostgreSQL beside the embedded engine.
    pub engines: Option<Engines>,
    /// gRPC beside REST.
    pub transports: Option<Transports>,
    /// Replays beside a plain stream.
    pub replays: Option<Replays>,
    /// Many recordings at once.
    pub recordings: Option<Recordings>,
    /// This build beside an older one.
    pub against: Option<AgainstOlder>,
}

/// Goals for [`Footprint`].
const RESIDENT_GOAL_MB: f64 = 40.0;
const START_GOAL_MILLIS: f64 = 150.0;

impl Comparison {
    /// The product's share of the floor's throughput.
    fn ratio(&self) -> f64 {
        ratio(&self.product, &self.floor)
    }

    fn verdicts(&self) -> String {
        let [p50, p99] = self.product.percentiles([0.5, 0.99]);
        let verdicts: Vec<String> = self
            .operation
            .goals(self.connections)
            .iter()
            .map(|goal| match *goal {
                Goal::OfFloor(share) => verdict(&format!("≥ {share:.2} of floor"), self.ratio() >= share),
                Goal::PerSecond(number) => {
                    verdict(&format!("≥ {}/s", thousands(number)), self.product.throughput() >= number)
                }
                Goal::Median(millis) => verdict(&format!("p50 ≤ {millis:.0} ms"), p50 <= millis),
                Goal::TailToMedian(times) => {
                    verdict(&format!("p99 ≤ {times:.0} × p50 (is {:.1})", p99 / p50), p99 <= times * p50)
                }
            })
            .collect();
        verdicts.join("; ")
    }
}

impl Grown {
    /// How many times as long a request takes on much.
    fn ratio(&self) -> f64 {
        ratio(&self.little, &self.much)
    }
}

impl Report {
    /// Requests that went wrong, each with an example; a run with any is not a result.
    pub fn failures(&self) -> Vec<String> {
        let compared = self.comparisons.iter().flat_map(|row| {
            let name = format!("{} at {} connections", row.operation.title(), row.connections);
            [(name.clone(), &row.product), (format!("floor of {name}"), &row.floor)]
        });
        let grown = self
            .grown
            .iter()
            .flat_map(|row| [&row.little, &row.much].map(|run| (row.growth.title().to_owned(), run)));
        compared
            .chain(grown)
            .filter(|(_, run)| run.failures > 0)
            .map(|(name, run)| {
                format!(
                    "{name}: {} failed, the first with: {}",
                    run.failures,
                    run.failure.as_deref().unwrap_or("?")
                )
            })
            .chain(self.memories.iter().flat_map(|memories| memories.failures.clone()))
            .chain(self.engines.iter().flat_map(Engines::failures))
            .chain(self.against.iter().flat_map(AgainstOlder::failures))
            .chain(self.transports.iter().flat_map(Transports::failures))
            .collect()
    }

    /// The tables.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# Memtrove under load\n\n");
        let _ = writeln!(
            out,
            "{}\n\nThe *floor* is the product's own HTTP shell around a handler that reads the body and returns a\n\
             prebuilt answer of the same size, measured in turns with the product; ratios are medians over the turns.\n\
             Generator and server share the cores. {} s on each side of a comparison; a closed loop, so latency\n\
             includes queueing.\n",
            self.machine.describe(),
            self.seconds
        );
        if let Some(engines) = &self.engines {
            out.push_str(&engines.markdown());
        }
        if let Some(against) = &self.against {
            out.push_str(&against.markdown());
        }
        self.write_comparisons(&mut out);
        if let Some(transports) = &self.transports {
            out.push_str(&transports.markdown());
        }
        if let Some(replays) = &self.replays {
            out.push_str(&replays.markdown());
        }
        if let Some(recordings) = &self.recordings {
            out.push_str(&recordings.markdown());
        }
        self.write_engine(&mut out);
        self.write_grown(&mut out);
        if let Some(memories) = &self.memories {
            out.push_str(&memories.markdown());
        }
        self.write_footprint(&mut out);
        for failure in self.failures() {
            let _ = writeln!(out, "\n**Failed:** {failure}");
        }
        out
    }

    fn write_comparisons(&self, out: &mut String) {
        if self.comparisons.is_empty() {
            return;
        }
        out.push_str("## Against the floor\n\n");
        out.push_str(
            "| operation | conn. | floor/s | Memtrove/s | ratio | p50 ms | p99 ms | floor p50 | floor p99 | CPU µs | floor CPU µs | goal |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
        );
        for row in &self.comparisons {
            let [p50, p99] = row.product.percentiles([0.5, 0.99]);
            let [floor_p50, floor_p99] = row.floor.percentiles([0.5, 0.99]);
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | **{:.2}** | {p50:.2} | {p99:.2} | {floor_p50:.2} | {floor_p99:.2} | {:.0} | {:.0} | {} |",
                row.operation.title(),
                row.connections,
                thousands(row.floor.throughput()),
                thousands(row.product.throughput()),
                row.ratio(),
                row.product.server_micros(),
                row.floor.server_micros(),
                row.verdicts()
            );
        }
        out.push('\n');
    }

    fn write_engine(&self, out: &mut String) {
        let Some(engine) = &self.engine else { return };
        out.push_str(
            "## The bare engine\n\n\
             Rows written durably by `memtrove-store`'s example `commits` on the same file system: what writes could\n\
             reach at best. The share is the operation's throughput with as many connections.\n\n\
             | writers | rows/s | commits/s | p50 ms | p99 ms | share |\n|--:|--:|--:|--:|--:|---|\n",
        );
        for level in engine["writes"].as_array().into_iter().flatten() {
            let number = |name: &str| level[name].as_f64().unwrap_or(f64::NAN);
            let rows = number("rows_per_second");
            let shares: Vec<String> = self
                .comparisons
                .iter()
                .filter(|row| row.operation.commits() && row.connections as f64 == number("concurrent"))
                .map(|row| format!("{} {:.2}", row.operation.name(), row.product.throughput() / rows))
                .collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {:.2} | {:.2} | {} |",
                number("concurrent"),
                thousands(rows),
                thousands(number("commits_per_second")),
                number("p50_us") / 1e3,
                number("p99_us") / 1e3,
                shares.join(", ")
            );
        }
        out.push('\n');
    }

    fn write_grown(&self, out: &mut String) {
        if self.grown.is_empty() {
            return;
        }
        out.push_str("## Growth\n\n");
        out.push_str(
            "| operation | conn. | little/s | much/s | time × | little p50 ms | much p50 ms | goal |\n\
             |---|--:|--:|--:|--:|--:|--:|---|\n",
        );
        for row in &self.grown {
            let ([little], [much]) = (row.little.percentiles([0.5]), row.much.percentiles([0.5]));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | **{:.2}** | {little:.2} | {much:.2} | {} |",
                row.growth.title(),
                row.connections,
                thousands(row.little.throughput()),
                thousands(row.much.throughput()),
                row.ratio(),
                verdict(&format!("≤ {:.1} ×", row.growth.goal()), row.ratio() <= row.growth.goal())
            );
        }
        out.push('\n');
    }

    fn write_footprint(&self, out: &mut String) {
        let Some(footprint) = self.footprint else { return };
        let megabytes = footprint.resident_bytes as f64 / 1e6;
        out.push_str("## Footprint\n\n| | result | goal |\n|---|--:|---|\n");
        let _ = writeln!(
            out,
            "| resident memory, idle, empty folder | {megabytes:.1} MB | {} |",
            verdict(&format!("≤ {RESIDENT_GOAL_MB:.0} MB"), megabytes <= RESIDENT_GOAL_MB)
        );
        let _ = writeln!(
            out,
            "| start to ready, empty folder, median of 5 | {:.0} ms | {} |",
            footprint.start_millis,
            verdict(&format!("≤ {START_GOAL_MILLIS:.0} ms"), footprint.start_millis <= START_GOAL_MILLIS)
        );
    }

    /// The same for programs, with the throughput of every slice.
    pub fn json(&self) -> Value {
        json!({
            "machine": self.machine.json(),
            "seconds": self.seconds,
            "comparisons": self.comparisons.iter().map(|row| json!({
                "operation": row.operation.name(),
                "connections": row.connections,
                "ratio": row.ratio(),
                "product": run_json(&row.product),
                "floor": run_json(&row.floor),
            })).collect::<Vec<_>>(),
            "growth": self.grown.iter().map(|row| json!({
                "name": row.growth.name(),
                "connections": row.connections,
                "ratio": row.ratio(),
                "goal": row.growth.goal(),
                "little": run_json(&row.little),
                "much": run_json(&row.much),
            })).collect::<Vec<_>>(),
            "engine": self.engine,
            "footprint": self.footprint.map(|footprint| json!({
                "residentBytes": footprint.resident_bytes,
                "startMillis": footprint.start_millis,
            })),
            "memories": self.memories.as_ref().map(Memories::json),
            "engines": self.engines.as_ref().map(Engines::json),
            "transports": self.transports.as_ref().map(Transports::json),
            "replays": self.replays.as_ref().map(Replays::json),
            "recordings": self.recordings.as_ref().map(Recordings::json),
            "against": self.against.as_ref().map(AgainstOlder::json),
            "failures": self.failures(),
        })
    }

    /// Writes both into `folder`, and a copy of the table under a name that stays. Returns the table's path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let stem = self.machine.file_stem();
        let table = folder.join(format!("{stem}.md"));
        fs::write(&table, self.markdown())?;
        let latest = match (&self.engines, &self.against) {
            (Some(_), _) => "postgres.md",
            (None, Some(_)) => "against.md",
            (None, None) => "latest.md",
        };
        fs::write(folder.join(latest), self.markdown())?;
        fs::write(folder.join(format!("{stem}.json")), format!("{:#}\n", self.json()))?;
        Ok(table)
    }
}

/// How two sides that took turns compare: the median over the turns, because a burst of foreign load seldom hits two.
pub fn ratio(one: &Run, other: &Run) -> f64 {
    let mut turns: Vec<f64> = one.slices.iter().zip(&other.slices).map(|(one, other)| one / other).collect();
    turns.sort_by(f64::total_cmp);
    turns.get(turns.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A measurement for programs.
pub fn run_json(run: &Run) -> Value {
    let [p50, p99, worst] = run.percentiles([0.5, 0.99, 1.0]);
    json!({
        "perSecond": run.throughput(),
        "slicesPerSecond": run.slices,
        "answered": run.answered(),
        "failures": run.failures,
        "p50Millis": p50,
        "p99Millis": p99,
        "maxMillis": worst,
        "serverCpuMicros": run.server_micros(),
        "databaseCpuMicros": run.database_micros(),
        "generatorCpuMicros": run.generator_micros(),
    })
}

/// A goal, and whether it was met.
pub fn verdict(goal: &str, met: bool) -> String {
    format!("{goal}: {}", if met { "met" } else { "**missed**" })
}

/// `12345.6` as `12,346`.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_off() {
        assert_eq!(
            ["1", "999", "1000", "1234567"].map(|n| thousands(n.parse().unwrap())),
            ["1", "999", "1,000", "1,234,567"]
        );
    }
}
