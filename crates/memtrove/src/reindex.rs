//! `memtrove reindex`: makes anew what searches look at, through a running server or in the store itself.

use crate::target::{RunningServer, TargetArgs};
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use memtrove_core::identity::Tenant;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove reindex
  memtrove reindex --data-dir /var/lib/memtrove --tenant acme
  memtrove reindex --url http://127.0.0.1:7077 --token admin
  memtrove reindex --embeddings --url http://127.0.0.1:7077 --token admin

Searches among events look at an index that is made from the stored events and
kept up to date with every write. Rebuild it when the log says that a part of it
cannot be read. Events, files and conversations stay as they are; through a
server, searches and writes go on meanwhile.

With --embeddings it makes the vectors anew that another model made than the one
that is configured now: those of conversations and memories, of all tenants. A
server begins with that by itself when it starts with another model; this tells
how far it is. The old vectors serve until then.

Without --url the store is opened directly, and every tenant is done. That needs
a data folder that no server runs on; on PostgreSQL servers may go on. A server
does the tenant of the token, or the one named by --tenant if the token may
choose. Broken off, it can be run again at any time.";

/// Arguments of `memtrove reindex`.
#[derive(Debug, Args)]
pub struct ReindexArgs {
    /// Make the vectors of other models anew, instead of the index of events
    #[arg(long, conflicts_with = "tenant")]
    pub embeddings: bool,
    /// Where.
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Between two looks at a job.
const PAUSE: Duration = Duration::from_millis(100);

/// What is made anew.
#[derive(Debug, Clone, Copy)]
enum What {
    Events,
    Embeddings,
}

impl What {
    fn bar(self) -> &'static str {
        match self {
            Self::Events => "indexing {bar:40} {pos}/{len} events {elapsed}",
            Self::Embeddings => "embedding {bar:40} {pos}/{len} texts {elapsed}",
        }
    }

    fn done(self, count: u64) -> String {
        let plural = if count == 1 { "" } else { "s" };
        match self {
            Self::Events => format!("Indexed {count} event{plural}."),
            Self::Embeddings => format!("Made the vectors of {count} text{plural} anew."),
        }
    }

    fn failed(self) -> &'static str {
        match self {
            Self::Events => "the index could not be rebuilt as a whole",
            Self::Embeddings => "not all vectors could be made anew",
        }
    }
}

/// Makes it anew, showing progress on a terminal.
pub async fn run(args: &ReindexArgs) -> anyhow::Result<ExitCode> {
    let what = if args.embeddings { What::Embeddings } else { What::Events };
    let done = match args.target.server()? {
        Some(server) => through_server(args, what, &server).await?,
        None => in_folder(args, what).await?,
    };
    terminal::line(what.done(done));
    Ok(ExitCode::SUCCESS)
}

async fn in_folder(args: &ReindexArgs, what: What) -> anyhow::Result<u64> {
    let folder = args.target.folder().await?;
    let bar = terminal::progress_bar(what.bar(), 0);
    let show = |done: i64, total: i64| {
        bar.set_length(total.unsigned_abs());
        bar.set_position(done.unsigned_abs());
    };
    let done = match what {
        What::Events => {
            let tenant = args.target.tenant.clone().map(Tenant::listed);
            folder.services.files.reindex_now(tenant.as_ref(), show).await
        }
        What::Embeddings => folder.services.vectors.reindex_now(show).await,
    };
    bar.finish_and_clear();
    folder.close().await?;
    Ok(done.with_context(|| what.failed())?.unsigned_abs())
}

/// What a server says of the work it was asked to do.
#[derive(Deserialize)]
struct Job {
    status: String,
    processed: u64,
    total: u64,
    errors: Vec<String>,
}

async fn through_server(args: &ReindexArgs, what: What, server: &RunningServer<'_>) -> anyhow::Result<u64> {
    #[derive(Deserialize)]
    struct Started {
        job_id: String,
    }
    let mut request = server.request(Method::POST, "/v1/admin/reindex");
    if let Some(justification) = &args.target.justification {
        request = request.header("x-justification", justification);
    }
    if let What::Embeddings = what {
        request = request.json(&json!({ "target": "embeddings" }));
    }
    let answer = server.send(request).await?.json().await;
    let Started { job_id } = answer.context("what answered there is no Memtrove server: check --url")?;
    let path = format!("/v1/admin/jobs/{job_id}");
    let bar = terminal::progress_bar(what.bar(), 0);
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
            _ => bail!("{}:\n  {}", what.failed(), job.errors.join("\n  ")),
        }
    }
}
