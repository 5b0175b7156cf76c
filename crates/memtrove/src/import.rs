//! `memtrove import`: an archive of ours, or what people have elsewhere, into a store.
//!
//! Each foreign format is a file of pure functions that make [records](record::Record) of JSON or text; `writing` gives them
//! ids that follow from where they come from, so that what is brought in again is recognised. To add a format: a file with a
//! `read`, its name in [`format::Format`], and how it is recognised in [`format::recognise`].

mod archive;
pub mod chatgpt;
pub mod claude;
pub mod format;
pub mod items;
pub mod markdown;
pub mod mcp;
pub mod mem0;
mod reading;
pub mod record;
mod report;
mod source;
mod writing;

use crate::cli::StoreArgs;
use crate::config::{Config, Database};
use crate::{export, serve, terminal};
use anyhow::ensure;
use clap::Args;
use format::Format;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use indicatif::ProgressBar;
use memtrove_core::identity::{Tenant, is_user_id};
use memtrove_core::{Clock, SystemClock};
use memtrove_server::telemetry::{self, TelemetryConfig};
use memtrove_service::Services;
use memtrove_store::Tx;
use memtrove_store::postgres::inspection;
use reading::SourceRecords;
use record::LeftOut;
use report::{ImportReport, Outcome};
use source::{Selection, Source};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use writing::{Batch, Destination, Foresight, Placed};

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove import backup.mtz --store sqlite --data-dir /var/lib/memtrove
  memtrove import backup.mtz --store postgres://memtrove@db.example/memtrove
  memtrove export -o - | memtrove import - --data-dir ./copy
  memtrove import backup.mtz --verify
  memtrove import chatgpt-export.zip --user alice --dry-run
  memtrove import claude-export/conversations.json --user alice
  memtrove import mem0.json --tenant acme
  memtrove import ./notes --user alice --overwrite
  memtrove import ./notes --user \"$USER\"                                       # for editors
  memtrove import memory.jsonl --user alice

What it is shows in its content: an archive of `memtrove export`; the data export of
ChatGPT or Claude (the ZIP, its folder or conversations.json); memories of mem0 as
JSON; the memory file of the MCP reference server; a folder of Markdown. --from says
it where the content does not.

What was brought in before is recognised: run it again after it was broken off, or
with a newer export, and only what is missing comes in. Branches become forks;
times, titles and roles stay. At the end it says what was left out, and which
records were refused; those make the exit code 3, and the others are in all the
same. Files and memories that differ here are left as they are, unless --overwrite
is given. A data folder must be used by no server meanwhile.

An archive is read to its end before anything is written; a pipe is read once. No
server may run on the store meanwhile. An import of one that was broken off leaves
a store that no server starts on: run it again with the same archive, and it goes
on where it was. At the end all rows are read again and compared with the archive.

An archive of one tenant may go into a store that has others. A whole one goes
into an empty store, or from a file into one that has none of its tenants. What
is encrypted needs the key it was encrypted with.";

/// Arguments of `memtrove import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// An archive or an export; `-` is an archive on standard input
    #[arg(value_name = "FILE|FOLDER")]
    pub from_where: PathBuf,
    /// Change nothing: check that an archive is whole, or say what an export would bring
    #[arg(long, visible_alias = "dry-run")]
    pub verify: bool,
    /// What it is, where its content does not tell
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Whose it becomes; memories of mem0 may say so themselves
    #[arg(long)]
    pub user: Option<String>,
    /// The tenant it goes to [default: auth.default_tenant]
    #[arg(long)]
    pub tenant: Option<String>,
    /// Replace files and memories that are there and differ
    #[arg(long)]
    pub overwrite: bool,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub settings: StoreArgs,
}

/// What may wait to be written: as many records, and as many bytes of them.
const WAITING: usize = 64;
const WAITING_KIB: usize = 64 * 1024;
/// Units of work that are under way together; they are committed together.
const AT_ONCE: usize = 16;
/// Memories of one unit of work.
const BATCH: usize = 100;
/// The exit code where some of it could not be taken.
const INCOMPLETE: u8 = 3;

/// Imports, showing progress on a terminal.
pub async fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    if args.from_where.as_os_str() == "-" || args.from == Some(Format::Archive) {
        return run_archive(args).await;
    }
    if !args.verify {
        // A store that cannot be meant is said before anything is read.
        args.settings.load()?;
    }
    let (path, from) = (args.from_where.clone(), args.from);
    let (source, selection) = tokio::task::spawn_blocking(move || select(&path, from)).await??;
    if selection.format == Format::Archive {
        return run_archive(args).await;
    }
    let format = selection.format;
    ensure!(
        args.user.is_some() || format.names_users(),
        "a {format} does not say which user of this store it is of: add --user NAME"
    );
    ensure!(
        args.user.as_deref().is_none_or(is_user_id),
        "--user must name somebody: 1..255 characters, not blank"
    );
    ensure!(
        !args.overwrite || format != Format::Chatgpt,
        "--overwrite is for files and memories, and a {format} brings none"
    );
    let config = args.settings.load()?.config;
    let tenant = args.tenant.clone().unwrap_or_else(|| config.auth.default_tenant.clone());
    let to = Destination { format, tenant, user: args.user.clone(), overwrite: args.overwrite };
    if let Some(user) = &to.user {
        to.principal(Some(user))?;
    }
    let _telemetry =
        telemetry::init(&TelemetryConfig { filter: "warn".into(), ..TelemetryConfig::default() })?;
    let whose = to.user.as_ref().map_or(String::new(), |user| format!(" for {user}"));
    let place = config.database()?.to_string();
    let reading = Reading { source, selection };
    let report = match args.verify {
        true => tokio::task::spawn_blocking(move || foresee(&config, reading, to)).await??,
        false => write(config, reading, to).await?,
    };
    let heading = match args.verify {
        true => format!("Nothing was written. This {format} would bring{whose} into {place}:"),
        false => format!("Imported {} {format}{whose} into {place}:", format.article()),
    };
    report.print(&heading, args.verify);
    Ok(if report.is_incomplete() { ExitCode::from(INCOMPLETE) } else { ExitCode::SUCCESS })
}

/// An archive says itself what goes where.
async fn run_archive(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let named = [
        ("--user", args.user.is_some()),
        ("--tenant", args.tenant.is_some()),
        ("--overwrite", args.overwrite),
    ];
    for (flag, given) in named {
        ensure!(!given, "{flag} is not for archives: they say themselves whose everything is");
    }
    archive::run(args).await
}

fn select(path: &Path, from: Option<Format>) -> anyhow::Result<(Source, Selection)> {
    let mut source = Source::open(path)?;
    let selection = source.select(path, from)?;
    Ok((source, selection))
}

/// A source, and what of it is to be read.
struct Reading {
    source: Source,
    selection: Selection,
}

impl Reading {
    fn bar(&self) -> ProgressBar {
        let bytes = self.selection.parts.iter().map(|part| part.bytes).sum();
        let bar = terminal::progress_bar(archive::BYTES, bytes);
        bar.set_message("importing");
        bar
    }

    fn each(mut self, sink: &mut dyn FnMut(SourceRecords) -> anyhow::Result<()>) -> anyhow::Result<LeftOut> {
        let bar = self.bar();
        let left_out = reading::each(&mut self.source, self.selection, &bar, sink)?;
        bar.finish_and_clear();
        Ok(left_out)
    }
}

/// What was found, and the room it takes until it is written.
struct Parcel {
    found: SourceRecords,
    room: OwnedSemaphorePermit,
}

type WriteFuture = BoxFuture<'static, anyhow::Result<Vec<Outcome>>>;

/// Reads on one thread and writes what it finds, several records at a time.
async fn write(config: Config, reading: Reading, to: Destination) -> anyhow::Result<ImportReport> {
    let settings = serve::settings(&config);
    let store = tokio::task::spawn_blocking(move || serve::open_store(&config)).await??;
    let services = Services::new(store.clone(), Arc::new(SystemClock), settings).await;
    let written = match services {
        Ok(services) => write_all(&services, reading, to).await,
        Err(error) => Err(error.into()),
    };
    tokio::task::spawn_blocking(move || store.close()).await?;
    written
}

async fn write_all(services: &Services, reading: Reading, to: Destination) -> anyhow::Result<ImportReport> {
    let (sender, mut parcels) = mpsc::channel::<Parcel>(WAITING);
    let room = Arc::new(Semaphore::new(WAITING_KIB));
    let reader = tokio::task::spawn_blocking(move || {
        let here = tokio::runtime::Handle::current();
        reading.each(&mut |found| {
            let kib = (found.bytes / 1024 + 1).min(WAITING_KIB) as u32;
            let room = here.block_on(room.clone().acquire_many_owned(kib))?;
            // The writer has gone away, with an error of its own.
            sender
                .blocking_send(Parcel { found, room })
                .map_err(|_| anyhow::anyhow!("nothing more is written"))
        })
    });
    let (mut report, mut under_way) = (ImportReport::default(), FuturesUnordered::<WriteFuture>::new());
    let mut pending = PendingMemories::default();
    // What replaces must come in the order of the source: the last of several with one id is what is meant.
    let at_once = if to.overwrite { 1 } else { AT_ONCE };
    loop {
        // What is under way gives room for what is to come, so it must go on while that is waited for.
        let parcel = tokio::select! {
            Some(outcomes) = under_way.next() => {
                report.take_all(outcomes?);
                continue;
            }
            parcel = parcels.recv(), if under_way.len() < at_once => parcel,
        };
        let Some(Parcel { found, room }) = parcel else { break };
        let room = Arc::new(room);
        for placed in to.place_all(found, SystemClock.now()) {
            match placed {
                Ok(placed) => under_way.extend(pending.next(services, &to, placed, &room)),
                Err(refused) => report.take(refused),
            }
            while under_way.len() >= at_once {
                let Some(outcomes) = under_way.next().await else { break };
                report.take_all(outcomes?);
            }
        }
    }
    while to.overwrite
        && let Some(outcomes) = under_way.next().await
    {
        report.take_all(outcomes?);
    }
    under_way.extend(pending.flush(services, &to));
    while let Some(outcomes) = under_way.next().await {
        report.take_all(outcomes?);
    }
    report.left_out = reader.await??;
    Ok(report)
}

/// Memories that wait until it is worth while.
#[derive(Default)]
struct PendingMemories {
    batch: Option<Batch>,
    rooms: Vec<Arc<OwnedSemaphorePermit>>,
    kib: usize,
}

impl PendingMemories {
    /// What is to be written next, if anything is.
    fn next(
        &mut self,
        services: &Services,
        to: &Destination,
        placed: Placed,
        room: &Arc<OwnedSemaphorePermit>,
    ) -> Option<WriteFuture> {
        let (services, room) = (services.clone(), room.clone());
        match placed {
            Placed::Conversation { place, caller, transcript } => Some(Box::pin(async move {
                let _room = room;
                writing::conversation(&services, place, &caller, transcript).await
            })),
            Placed::File { place, caller, path, document } => {
                let overwrite = to.overwrite;
                Some(Box::pin(async move {
                    let _room = room;
                    let written = writing::file(&services, place, &caller, path, &document, overwrite).await;
                    written.map(|outcome| vec![outcome])
                }))
            }
            Placed::Memory { place, user, keepsake, is_fact } => {
                let is_another = self.batch.as_ref().is_some_and(|batch| batch.user != user);
                let before = if is_another { self.flush(&services, to) } else { None };
                let batch = self.batch.get_or_insert_with(|| Batch { user, memories: Vec::new() });
                batch.memories.push((place, *keepsake, is_fact));
                let is_full = batch.memories.len() >= BATCH;
                if !self.rooms.last().is_some_and(|last| Arc::ptr_eq(last, &room)) {
                    self.kib += room.num_permits();
                    self.rooms.push(room);
                }
                // What waits must not take the room that the next one waits for.
                let is_full = is_full || self.kib >= WAITING_KIB / 8;
                before.or_else(|| if is_full { self.flush(&services, to) } else { None })
            }
        }
    }

    fn flush(&mut self, services: &Services, to: &Destination) -> Option<WriteFuture> {
        let batch = self.batch.take()?;
        self.kib = 0;
        let (services, to, rooms) = (services.clone(), to.clone(), std::mem::take(&mut self.rooms));
        Some(Box::pin(async move {
            let _rooms = rooms;
            writing::memories(&services, &to, batch).await
        }))
    }
}

/// Says what an import would do, and does nothing: the store is read as it is, if there is one.
fn foresee(config: &Config, reading: Reading, to: Destination) -> anyhow::Result<ImportReport> {
    let is_there = match config.database()? {
        Database::Sqlite(file) => file.exists(),
        Database::Postgres(_) => {
            let settings = config.store.postgres(config.encryption.vault()?);
            inspection::inspect(&settings, &SystemClock)?.schema.is_some()
        }
    };
    match is_there {
        false => foresee_in(None, config, reading, &to),
        true => {
            export::look(config, Tenant::listed(to.tenant.clone()), config.encryption.vault()?, |tx, _| {
                Ok(foresee_in(Some(tx), config, reading, &to))
            })?
        }
    }
}

fn foresee_in(
    tx: Option<&mut dyn Tx>,
    config: &Config,
    reading: Reading,
    to: &Destination,
) -> anyhow::Result<ImportReport> {
    let (mut report, now) = (ImportReport::default(), SystemClock.now());
    let mut foresight = Foresight::new(tx, serve::settings(config), now);
    report.left_out = reading.each(&mut |found| {
        for placed in to.place_all(found, now) {
            match placed {
                Ok(placed) => report.take_all(foresight.of(to, placed)?),
                Err(refused) => report.take(refused),
            }
        }
        Ok(())
    })?;
    Ok(report)
}
