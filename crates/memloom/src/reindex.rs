//! `memloom reindex`: rebuilds the event index, through a running server or in the data folder itself.

use crate::target::{Server, TargetArgs};
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use memloom_core::identity::Tenant;
use reqwest::Method;
use serde::Deserialize;
use std::process::ExitCode;
use std::time::Duration;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memloom reindex
  memloom reindex --data-dir /var/lib/memloom --tenant acme
  memloom reindex --url http://127.0.0.1:7077 --token admin

Searches among events look at an index that is made from the stored events and
kept up to date with every write. Rebuild it when the log says that a part of it
cannot be read. Events, files and conversations stay as they are; through a
server, searches and writes go on meanwhile.

Without --url the data folder is opened directly, which needs that no server
runs on it, and every tenant is done. A server does the tenant of the token, or
the one named by --tenant if the token may choose. Broken off, it can be run
again at any time.";

/// Arguments of `memloom reindex`.
#[derive(Debug, Args)]
pub struct ReindexArgs {
    /// Where.
    #[command(flatten)]
    pub target: TargetArgs,
}

const BAR: &str = "indexing {bar:40} {pos}/{len} events {elapsed}";
/// Between two looks at a job.
const PAUSE: Duration = Duration::from_millis(100);

/// Rebuilds the index, showing progress on a terminal.
pub async fn run(args: &ReindexArgs) -> anyhow::Result<ExitCode> {
    let events = match args.target.server()? {
        Some(server) => through_server(args, &server).await?,
        None => in_folder(args).await?,
    };
    terminal::line(format_args!("Indexed {events} {}.", if events == 1 { "event" } else { "events" }));
    Ok(ExitCode::SUCCESS)
}

async fn in_folder(args: &ReindexArgs) -> anyhow::Result<u64> {
    let folder = args.target.folder().await?;
    let tenant = args.target.tenant.clone().map(Tenant::listed);
    let bar = terminal::progress_bar(BAR, 0);
    let show = |done: i64, total: i64| {
        bar.set_length(total.unsigned_abs());
        bar.set_position(done.unsigned_abs());
    };
    let indexed = folder.services.files.reindex_now(tenant.as_ref(), show).await?;
    bar.finish_and_clear();
    folder.close().await?;
    Ok(indexed.unsigned_abs())
}

/// What a server says of the work it was asked to do.
#[derive(Deserialize)]
struct Job {
    status: String,
    processed: u64,
    total: u64,
    errors: Vec<String>,
}

async fn through_server(args: &ReindexArgs, server: &Server<'_>) -> anyhow::Result<u64> {
    #[derive(Deserialize)]
    struct Started {
        job_id: String,
    }
    let mut request = server.request(Method::POST, "/v1/admin/reindex");
    if let Some(justification) = &args.target.justification {
        request = request.header("x-justification", justification);
    }
    let answer = server.send(request).await?.json().await;
    let Started { job_id } = answer.context("what answered there is no Memloom server: check --url")?;
    let path = format!("/v1/admin/jobs/{job_id}");
    let bar = terminal::progress_bar(BAR, 0);
    loop {
        let looked = server.send(server.request(Method::GET, &path)).await;
        let job: Job = looked
            .with_context(|| format!("the server works on job {job_id}, but how far it is cannot be seen"))?
            .json()
            .await
            .context("the job cannot be read")?;
        bar.set_length(job.total);
        bar.set_position(job.processed);
        match job.status.as_str() {
            "queued" | "running" => tokio::time::sleep(PAUSE).await,
            "succeeded" => {
                bar.finish_and_clear();
                return Ok(job.processed);
            }
            _ => bail!("the index could not be rebuilt as a whole:\n  {}", job.errors.join("\n  ")),
        }
    }
}
