//! This build beside an older one: `--against PATH`. Both have servers of their own with the same data, and every operation is
//! measured on them in turns, so that noise hits both.

use crate::deployment::Deployment;
use crate::load::{self, Load, Run};
use crate::progress::Progress;
use crate::report::{ratio, run_json, thousands, verdict};
use crate::scenario::Operation;
use crate::world::World;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Turns that each build has.
const TURNS: usize = 7;
/// The least share of the older build's throughput that an operation must keep.
const GOAL: f64 = 0.95;

/// What to measure, and for how long.
pub struct AgainstPlan<'a> {
    pub older: &'a Path,
    pub newer: &'a Path,
    pub deployment: Deployment,
    /// Seconds that each build has in a turn.
    pub seconds: f64,
    pub connections: &'a [usize],
    pub operations: Vec<Operation>,
    pub progress: Progress,
}

/// An operation on both builds, with this many connections.
struct BothBuilds {
    operation: Operation,
    connections: usize,
    older: Run,
    newer: Run,
}

/// Everything that was measured on both builds.
pub struct AgainstOlder {
    deployment: String,
    rows: Vec<BothBuilds>,
}

pub async fn measure(plan: &AgainstPlan<'_>) -> Result<AgainstOlder> {
    let most = plan.connections.iter().max().copied().unwrap_or(1);
    let world = |binary| World::new(binary, plan.deployment.clone(), most, plan.progress);
    let mut worlds = [world(plan.older).await?, world(plan.newer).await?];
    let mut rows = Vec::new();
    for &operation in &plan.operations {
        plan.progress.say(&format!("{}: seeding", operation.title()));
        let mut sides = Vec::new();
        for world in &mut worlds {
            let workload = operation.prepare(world).await;
            sides.push(workload.with_context(|| format!("cannot prepare {operation:?}"))?.side);
        }
        for &connections in plan.connections {
            plan.progress.say(&format!("{}: measuring, connections: {connections}", operation.title()));
            let measure = Duration::from_secs_f64(plan.seconds);
            let load = Load { connections, warm_up: Duration::from_millis(100), measure };
            let mut runs = [Run::default(), Run::default()];
            for _ in 0..TURNS {
                for (side, run) in sides.iter_mut().zip(&mut runs) {
                    run.add(load::drive(side, load).await?);
                }
            }
            let [older, newer] = runs;
            rows.push(BothBuilds { operation, connections, older, newer });
        }
    }
    Ok(AgainstOlder { deployment: plan.deployment.title(), rows })
}

impl BothBuilds {
    fn ratio(&self) -> f64 {
        ratio(&self.newer, &self.older)
    }
}

impl AgainstOlder {
    /// Requests that went wrong.
    pub fn failures(&self) -> Vec<String> {
        let runs = self.rows.iter().flat_map(|row| [(row, &row.older), (row, &row.newer)]);
        runs.filter(|(_, run)| run.failures > 0)
            .map(|(row, run)| {
                let first = run.failure.as_deref().unwrap_or("?");
                format!("{}: {} failed, the first with: {first}", row.operation.title(), run.failures)
            })
            .collect()
    }

    /// The table.
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "## Against an older build ({})\n\n\
             | operation | conn. | older/s | this/s | ratio | older p50 ms | this p50 ms | older CPU µs | this CPU µs | goal |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
            self.deployment
        );
        for row in &self.rows {
            let ([older], [newer]) = (row.older.percentiles([0.5]), row.newer.percentiles([0.5]));
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | **{:.2}** | {older:.2} | {newer:.2} | {:.0} | {:.0} | {} |",
                row.operation.title(),
                row.connections,
                thousands(row.older.throughput()),
                thousands(row.newer.throughput()),
                row.ratio(),
                row.older.server_micros(),
                row.newer.server_micros(),
                verdict(&format!("≥ {GOAL}"), row.ratio() >= GOAL)
            );
        }
        out.push('\n');
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "operation": row.operation.name(),
                "connections": row.connections,
                "ratio": row.ratio(),
                "older": run_json(&row.older),
                "newer": run_json(&row.newer),
            })
        });
        json!({"deployment": self.deployment, "rows": rows.collect::<Vec<_>>()})
    }
}
