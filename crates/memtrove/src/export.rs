//! `memtrove export`: everything a store holds, or everything of one tenant, as one archive.

use crate::attached::AttachmentBytes;
use crate::cli::StoreArgs;
use crate::config::{Config, Database};
use crate::terminal;
use anyhow::{Context, bail, ensure};
use clap::Args;
use indicatif::ProgressBar;
use memtrove_core::{Clock, SystemClock};
use memtrove_server::telemetry::{self, TelemetryConfig};
use memtrove_store::archive::{self, About, ArchiveError, ByteSource, Exported, Selection, Summary};
use memtrove_store::vault::Vault;
use memtrove_store::{AllTenants, StoreError, TenantScope, Tx, postgres, sqlite};
use std::fs::{File, TryLockError};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove export -o backup.mtz
  memtrove export -o acme.mtz --tenant acme
  memtrove export -o - --data-dir /var/lib/memtrove | ssh vault 'cat > backup.mtz'
  memtrove export --checksum

The archive is one snapshot of the store, taken while servers may go on working,
and the same whichever engine it comes from: `memtrove import` brings it into any
other. Encrypted content stays encrypted, so it can be read with the same key
only. The digest at the end names what was exported: stores that hold the same
have the same, and --checksum prints it without writing an archive.

The bytes of attachments are in it, read from where [attachments] keeps them.
With --without-attachments they are not: then copy that place as well.";

/// Arguments of `memtrove export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Where the archive goes; `-` is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "checksum")]
    pub output: Option<PathBuf>,
    /// Only this tenant
    #[arg(long)]
    pub tenant: Option<String>,
    /// Leave out the bytes of attachments, which are copied by other means
    #[arg(long)]
    pub without_attachments: bool,
    /// Print the digest of what would be exported, and write nothing
    #[arg(long, conflicts_with = "output")]
    pub checksum: bool,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub settings: StoreArgs,
}

const BAR: &str = "exporting {bar:40} {pos}/{len} rows {elapsed} {msg}";
const SPINNER: &str = "{spinner} exporting {pos} rows {elapsed} {msg}";
/// How long somebody who has just begun to use a database may take until its log is there.
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Exports, showing progress on a terminal.
pub async fn run(args: ExportArgs) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?.config;
    let _telemetry =
        telemetry::init(&TelemetryConfig { filter: "warn".into(), ..TelemetryConfig::default() })?;
    // Reading takes a thread to itself, which owns a connection.
    tokio::task::spawn_blocking(move || export(&args, &config)).await??;
    Ok(ExitCode::SUCCESS)
}

fn export(args: &ExportArgs, config: &Config) -> anyhow::Result<()> {
    let Some(output) = &args.output else {
        let found = look(config, AllTenants, Vault::plain(), |tx, shared| {
            let (of, bar) = begin(tx, args, shared)?;
            archive::checksum(tx, &of, |progress| show(&bar, &progress))
        })?;
        eprintln!("Read {} of {}.", counted(found.rows, "row"), config.database()?);
        terminal::line(digest(&found));
        return Ok(());
    };
    if output.as_os_str() == "-" {
        ensure!(
            !std::io::stdout().is_terminal(),
            "an archive is not for a terminal: name a file with -o, or send it to another program"
        );
        let Exported { summary: written, missing, .. } = write(args, config, std::io::stdout())?;
        refuse_nothing(args, &written, missing)?;
        let exported = exported(&written, &config.database()?, "to standard output");
        eprintln!("{exported}\n{}", digest(&written));
        if let Some(attachments) = attachments(&written, missing) {
            eprintln!("{attachments}");
        }
        return Ok(());
    }
    let partial = Partial::create(output)?;
    let Exported { sink, summary: written, missing } = write(args, config, BufWriter::new(&partial.file))?;
    drop(sink);
    refuse_nothing(args, &written, missing)?;
    let bytes = partial.keep(output)?;
    let place = format!("to {} ({})", output.display(), indicatif::BinaryBytes(bytes));
    terminal::line(exported(&written, &config.database()?, &place));
    terminal::line(digest(&written));
    if let Some(attachments) = attachments(&written, missing) {
        terminal::line(attachments);
    }
    Ok(())
}

fn write<W: Write + Send>(args: &ExportArgs, config: &Config, sink: W) -> anyhow::Result<Exported<W>> {
    let clock = SystemClock;
    let about = About { id: clock.new_id(), version: env!("CARGO_PKG_VERSION").into(), at: clock.now() };
    let with_bytes = !args.without_attachments;
    let rows = look(config, AllTenants, Vault::plain(), |tx, shared| {
        let (of, bar) = begin(tx, args, shared)?;
        archive::export(tx, &about, &of, with_bytes, sink, |progress| show(&bar, &progress))
    })?;
    let mut bytes = with_bytes.then(|| AttachmentBytes::of(config));
    Ok(rows.finish(bytes.as_mut().map(|bytes| bytes as &mut dyn ByteSource))?)
}

/// What is to be read, and a bar for it. How much a tenant has would take as long to find out as to read it.
fn begin<'a>(
    tx: &mut dyn Tx,
    args: &'a ExportArgs,
    shared: bool,
) -> Result<(Selection<'a>, ProgressBar), StoreError> {
    archive::refuse_unfinished(tx)?;
    let bar = match &args.tenant {
        None if std::io::stderr().is_terminal() => terminal::progress_bar(BAR, archive::count(tx)?),
        _ => terminal::progress_bar(SPINNER, 0),
    };
    Ok((Selection { tenant: args.tenant.as_deref(), shared }, bar))
}

fn show(bar: &ProgressBar, progress: &archive::ArchiveProgress) {
    bar.set_position(progress.rows);
    bar.set_message(progress.table);
}

/// An archive of nothing is mostly a name that was written wrong, and one without any bytes a place.
fn refuse_nothing(args: &ExportArgs, written: &Summary, missing: u64) -> anyhow::Result<()> {
    ensure!(
        missing == 0 || written.blobs > 0,
        "not one of {} of attachments was found: check [attachments], or leave them out with --without-attachments",
        counted(missing, "file")
    );
    match &args.tenant {
        Some(tenant) if written.rows == 0 => {
            bail!("the store has nothing of a tenant '{tenant}': check --tenant")
        }
        _ => Ok(()),
    }
}

fn exported(written: &Summary, store: &Database, place: &str) -> String {
    let (rows, tables) = (written.rows, written.tables.len());
    format!("Exported {} of {} from {store} {place}.", counted(rows, "row"), counted(tables as u64, "table"))
}

/// A number of things, in words.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// What is to be said of the attachments of an archive, if it has some, and of files that were not found for it.
pub(crate) fn attachments(of: &Summary, missing: u64) -> Option<String> {
    let (_, records) = of.tables.iter().find(|(table, _)| *table == "attachments")?;
    let (records, blobs) = (counted(*records, "attachment"), of.blobs);
    Some(match blobs {
        0 => format!(
            "It has {records} without the bytes: copy the directory, bucket or container of [attachments] too \
             (docs/backup.md)."
        ),
        _ if missing > 0 => format!(
            "It has {records} with {blobs} of {}: the others were deleted meanwhile, or are lost (docs/backup.md).",
            counted(blobs + missing, "file")
        ),
        _ => format!("It has {records} with {}.", counted(blobs, "file")),
    })
}

/// What people compare.
pub(crate) fn digest(of: &Summary) -> String {
    format!("digest {}", of.digest)
}

/// Reads from the store of a configuration, on one snapshot and without opening it for work. Who opens nothing that is sealed
/// needs no key, and brings a plain vault. `read` is also told whether several processes may use the store.
pub(crate) fn look<T: Send>(
    config: &Config,
    tenants: impl Into<TenantScope>,
    vault: Vault,
    read: impl FnOnce(&mut dyn Tx, bool) -> Result<T, ArchiveError> + Send,
) -> anyhow::Result<T> {
    const OTHER_SCHEMA: &str = "the database has another schema than this version of memtrove works with: export it with the \
                                version that wrote it, or start this one's server on it first, which upgrades it";
    let found = match config.database()? {
        Database::Sqlite(database) => {
            ensure!(database.exists(), "there is no database at {}: check --data-dir", database.display());
            let _alone = keep_others_out(&database)?;
            let inspected = sqlite::inspect(&database, Vault::plain())?;
            ensure!(inspected.readable.is_some(), OTHER_SCHEMA);
            sqlite::look(&database, vault, |tx| Ok(read(tx, false)))
        }
        Database::Postgres(_) => {
            let settings = config.store.postgres(vault);
            let inspected = postgres::inspection::inspect(&settings, &SystemClock)?;
            ensure!(inspected.readable.is_some(), OTHER_SCHEMA);
            postgres::look(&settings, tenants.into(), |tx| Ok(read(tx, true)))
        }
    };
    Ok(found??)
}

/// A database that is not in use is read as a file that does not change, so no process may begin to use it meanwhile. One that is
/// used has a log, and everybody sees their own snapshot.
fn keep_others_out(database: &Path) -> anyhow::Result<Option<File>> {
    let beside = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    for _ in 0..PATIENCE {
        if beside("-wal").exists() {
            return Ok(None);
        }
        // Where no lock can be written, no database can be either.
        let lock = File::options().create(true).truncate(false).write(true).open(beside(".lock"));
        let Ok(lock) = lock else { return Ok(None) };
        match lock.try_lock() {
            Ok(()) => return Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error).context("the data folder cannot be locked"),
        }
    }
    bail!("another memtrove process is opening {}: try again", database.display())
}

/// An archive that is being written, under another name until it is whole. What stood under its own name stays until then.
struct Partial {
    file: File,
    path: PathBuf,
    kept: bool,
}

impl Partial {
    fn create(output: &Path) -> anyhow::Result<Self> {
        let mut path = output.as_os_str().to_owned();
        path.push(".partial");
        let path = PathBuf::from(path);
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        // It holds what the database holds.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, path, kept: false })
    }

    /// Gives it its name, once it is on the disk; says how long it is.
    fn keep(mut self, output: &Path) -> anyhow::Result<u64> {
        let failed = || format!("cannot write {}", output.display());
        self.file.sync_all().with_context(failed)?;
        let bytes = self.file.metadata().with_context(failed)?.len();
        std::fs::rename(&self.path, output).with_context(failed)?;
        self.kept = true;
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The name is on the disk when the folder is; where a folder cannot be opened, the system sees to it.
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            folder.sync_all().with_context(failed)?;
        }
        Ok(bytes)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            // What is left of it says by its name what it is.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
