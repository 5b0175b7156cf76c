//! An archive into a store, whichever engine either is of.

use super::ImportArgs;
use crate::attached::Putting;
use crate::config::Config;
use crate::export::{attachments, counted, digest};
use crate::{serve, terminal};
use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use memtrove_core::text::Analyzer;
use memtrove_core::{Clock, SystemClock};
use memtrove_server::telemetry::{self, TelemetryConfig};
use memtrove_store::Store;
use memtrove_store::archive::{ArchivePart, Header, Import, Reader, Summary, Terms};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) const BYTES: &str = "{msg} {bar:40} {bytes}/{total_bytes} {elapsed}";
const PIPE: &str = "{spinner} {msg} {bytes} {elapsed}";
const ROWS: &str = "comparing {bar:40} {pos}/{len} rows {elapsed}";
/// Batches that wait to be written; each has about a megabyte.
const READ_AHEAD: usize = 4;

/// Imports an archive, showing progress on a terminal.
pub(super) async fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let source = ArchiveSource::of(&args.from_where);
    if args.verify {
        let (header, found, _) = tokio::task::spawn_blocking(move || survey(&source)).await??;
        let made = format!("{} by memtrove {}", header.created_at(), header.version);
        let of = header.tenant.map_or("all tenants".into(), |tenant| format!("tenant '{tenant}'"));
        terminal::line(format_args!(
            "The archive is whole: {} of {of}, made {made}.",
            counted(found.rows, "row")
        ));
        terminal::line(digest(&found));
        return Ok(ExitCode::SUCCESS);
    }
    let config = args.settings.load()?.config;
    let _telemetry =
        telemetry::init(&TelemetryConfig { filter: "warn".into(), ..TelemetryConfig::default() })?;
    let terms = terms(&config)?;
    let tenants = match &source {
        ArchiveSource::Pipe => None,
        ArchiveSource::File(_) => {
            let source = source.clone();
            Some(tokio::task::spawn_blocking(move || survey(&source)).await??.2)
        }
    };
    let place = config.database()?;
    let putting = Putting::new(config.clone());
    let store = tokio::task::spawn_blocking(move || serve::open_store(&config)).await??;
    let result = import(&store, source, tenants, terms, putting).await;
    tokio::task::spawn_blocking(move || store.close()).await?;
    let (written, compared) = result?;
    terminal::line(format_args!(
        "Imported {} into {place}{}.",
        counted(written.rows, "row"),
        if compared { ", read again and found equal" } else { "" }
    ));
    terminal::line(digest(&written));
    if let Some(attachments) = attachments(&written, 0) {
        terminal::line(attachments);
    }
    Ok(ExitCode::SUCCESS)
}

/// What texts are found by, as servers with this configuration make it.
fn terms(config: &Config) -> anyhow::Result<Terms> {
    let language = &config.search.language;
    let analyzer = Analyzer::new(language)
        .with_context(|| format!("search.language: '{language}' is not a known language"))?;
    Ok(Arc::new(move |text: &str| analyzer.terms(text)))
}

/// Where the archive is read from.
#[derive(Debug, Clone)]
enum ArchiveSource {
    File(PathBuf),
    Pipe,
}

impl ArchiveSource {
    fn of(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::Pipe } else { Self::File(path.to_owned()) }
    }

    /// The bytes, on a bar that says what is done with them.
    fn open(&self, doing: &'static str) -> anyhow::Result<(Box<dyn Read>, ProgressBar)> {
        let (source, bar): (Box<dyn Read>, _) = match self {
            Self::Pipe => (Box::new(std::io::stdin().lock()), terminal::progress_bar(PIPE, 0)),
            Self::File(path) => {
                let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                let metadata = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
                ensure!(!metadata.is_dir(), "{} is a folder, not an archive", path.display());
                (Box::new(file), terminal::progress_bar(BYTES, metadata.len()))
            }
        };
        bar.set_message(doing);
        Ok((Box::new(bar.wrap_read(source)), bar))
    }
}

/// Reads an archive to its end; says what it is, what it holds and whose that is.
fn survey(source: &ArchiveSource) -> anyhow::Result<(Header, Summary, BTreeSet<String>)> {
    let (bytes, bar) = source.open("checking")?;
    let mut reader = Reader::new(bytes)?;
    let mut tenants = BTreeSet::new();
    while let Some(batch) = reader.next_batch()? {
        batch.note_tenants(&mut tenants);
    }
    bar.finish_and_clear();
    Ok((reader.header().clone(), reader.summary(), tenants))
}

/// What a thread that reads an archive tells the one that writes.
enum Piece {
    Header(Box<Header>),
    ArchivePart(ArchivePart),
    End(Summary),
}

/// Reads on one thread and writes on another. Says what was in the archive, and whether the store was compared with it.
async fn import(
    store: &Store,
    source: ArchiveSource,
    tenants: Option<BTreeSet<String>>,
    terms: Terms,
    mut putting: Putting,
) -> anyhow::Result<(Summary, bool)> {
    let (pieces, mut read) = mpsc::channel(READ_AHEAD);
    let reading = tokio::task::spawn_blocking(move || pass_on(&source, &pieces));
    let (mut import, mut tenants) = (None, Some(tenants));
    while let Some(piece) = read.recv().await {
        match (piece, import.take()) {
            (Piece::Header(header), _) => {
                let (store, tenants) = (store.clone(), tenants.take().flatten());
                let begun = Import::begin(store, *header, tenants, terms.clone(), SystemClock.now()).await?;
                if begun.rows_before() > 0 {
                    let rows = counted(begun.rows_before(), "row");
                    terminal::line(format_args!("Going on after {rows} of an earlier run."));
                }
                import = Some(begun);
            }
            (Piece::ArchivePart(ArchivePart::Rows(batch)), Some(mut begun)) => {
                begun.write(batch).await?;
                import = Some(begun);
            }
            (Piece::ArchivePart(part), Some(begun)) => {
                putting.put(part).await?;
                import = Some(begun);
            }
            (Piece::End(summary), Some(begun)) => {
                let bar = terminal::progress_bar(ROWS, summary.rows);
                let shown = bar.clone();
                let written =
                    begun.finish(&summary, move |progress| shown.set_position(progress.rows)).await?;
                bar.finish_and_clear();
                return Ok((summary, written.compared));
            }
            (Piece::ArchivePart(_) | Piece::End(_), None) => break,
        }
    }
    // It sends everything, or says why it cannot.
    reading.await??;
    anyhow::bail!("the archive was not read to its end")
}

fn pass_on(source: &ArchiveSource, pieces: &mpsc::Sender<Piece>) -> anyhow::Result<()> {
    let (bytes, bar) = source.open("importing")?;
    let mut reader = Reader::new(bytes)?;
    let header = Box::new(reader.header().clone());
    let mut next = Some(Piece::Header(header));
    while let Some(piece) = next.take() {
        let last = matches!(piece, Piece::End(_));
        // The writer has gone away, with an error of its own.
        if pieces.blocking_send(piece).is_err() || last {
            break;
        }
        next = Some(match reader.next_part()? {
            Some(part) => Piece::ArchivePart(part),
            None => Piece::End(reader.summary()),
        });
    }
    bar.finish_and_clear();
    Ok(())
}
