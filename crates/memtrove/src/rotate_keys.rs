//! `memtrove rotate-keys`: seals everything anew, under fresh keys or because encryption was turned on or off.

use crate::cli::StoreArgs;
use crate::config::{AutoDerive, Config, Database};
use crate::{serve, target, terminal};
use anyhow::{Context, ensure};
use clap::Args;
use memtrove_server::telemetry::{self, TelemetryConfig};
use memtrove_store::vault::rotation::{self, Rotation};
use memtrove_store::{AllTenants, Store, StoreError, Traces, Tx, archive, postgres, sqlite};
use std::process::ExitCode;
use std::time::Duration;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove rotate-keys
  memtrove rotate-keys --wrap-only
  memtrove rotate-keys --config /etc/memtrove.toml --data-dir /var/lib/memtrove

Brings all stored content into the state that [encryption] asks for: sealed with
fresh keys, which encryption.dek.key wraps, or as plain text where \"plain\" is the
first of encryption.providers. To exchange the key, move the old one to
encryption.dek.decryption_keys first, and remove it there afterwards.

No server may run on the store meanwhile. Broken off, the command goes on where
it was when it is run again. Where something readable was sealed or taken out of
search, the database is written anew, without its traces. That needs free space:
of SQLite as large as the database twice, beside it and in the folder for
temporary files (TMPDIR, else /var/tmp), of PostgreSQL as large as the largest
table with its indexes.

The bytes of attachments stay as they are: those that were uploaded before
encryption was turned on are not sealed by this.";

/// Arguments of `memtrove rotate-keys`.
#[derive(Debug, Args)]
pub struct RotateKeysArgs {
    /// Only wrap the keys of the content with encryption.dek.key; a matter of moments
    #[arg(long)]
    pub wrap_only: bool,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub settings: StoreArgs,
}

const BAR: &str = "sealing {bar:40} {pos}/{len} rows {elapsed}";

/// Rotates, showing progress on a terminal.
pub async fn run(args: &RotateKeysArgs) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?.config;
    let _telemetry =
        telemetry::init(&TelemetryConfig { filter: "warn".into(), ..TelemetryConfig::default() })?;
    let keys = config.encryption.keys()?;
    let keys =
        keys.context("there is no key: set encryption.dek.key to the output of `openssl rand -base64 32`")?;
    let folder = RotatedStore { database: config.database()?, config };
    target::ensure_exists(&folder.config, &folder.database)?;
    let key = keys.current().id();
    if args.wrap_only {
        let wrapped = folder.wrap().await?;
        let data_keys = if wrapped == 1 { "data key" } else { "data keys" };
        terminal::line(format_args!(
            "Wrapped {wrapped} {data_keys} with the key {key}; content stays as it is."
        ));
    } else {
        let rows = folder.rotate().await?;
        let rows = format!("{rows} {}", if rows == 1 { "row" } else { "rows" });
        terminal::line(match folder.config.encryption.is_on() {
            true => format!("Sealed {rows} with fresh keys, which the key {key} wraps."),
            false => format!("Unsealed {rows}; the keys in [encryption] are not needed any more."),
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// A store, and what is to become of its content.
struct RotatedStore {
    config: Config,
    database: Database,
}

impl RotatedStore {
    fn open(&self) -> anyhow::Result<Store> {
        serve::open_store_with(&self.config, self.config.encryption.vault()?.rotating())
    }

    /// Writes the database anew, without traces of what was in it.
    async fn rewrite(&self) -> anyhow::Result<()> {
        let rewritten = match &self.database {
            Database::Sqlite(file) => {
                let file = file.clone();
                tokio::task::spawn_blocking(move || sqlite::rewrite(&file)).await?
            }
            Database::Postgres(_) => {
                let rewritten = self.config.store.postgres(self.config.encryption.vault()?);
                tokio::task::spawn_blocking(move || postgres::rewrite(&rewritten)).await?
            }
        };
        Ok(rewritten?)
    }

    async fn wrap(&self) -> anyhow::Result<u64> {
        let store = self.open()?;
        let wrapped = store
            .write(AllTenants, "rotate_keys", |tx| whole(tx).and_then(|()| rotation::rewrap(tx)))
            .await?;
        close(store).await?;
        Ok(wrapped)
    }

    async fn rotate(&self) -> anyhow::Result<u64> {
        let rotation = Rotation { keep_derived_texts: self.config.auto_derive() == AutoDerive::Text };
        let store = self.open()?;
        let begun = store
            .write(AllTenants, "rotate_keys", move |tx| whole(tx).and_then(|()| rotation.begin(tx)))
            .await?;
        if begun.rows > 0 {
            terminal::line(format_args!("Going on after {} rows of an earlier run.", begun.rows));
        }
        let (bar, mut rows) = (terminal::progress_bar(BAR, begun.total), begun.rows);
        bar.set_position(rows);
        while let Some(visited) = store.write(AllTenants, "rotate_keys", move |tx| rotation.step(tx)).await? {
            rows = visited;
            bar.set_position(rows);
        }
        bar.finish_and_clear();
        if begun.leaves_traces {
            let spinner = terminal::progress_bar("{spinner} removing traces {elapsed}", 0);
            spinner.enable_steady_tick(Duration::from_millis(100));
            // Unused space of pages goes as the database is written anew.
            store.rewrite_texts().await?;
            ensure!(
                store.scrub(Traces::Log).await?,
                "another program reads from {}: close it and run this again",
                self.database
            );
            close(store).await?;
            self.rewrite().await?;
            spinner.finish_and_clear();
        } else {
            close(store).await?;
        }
        // Last, so that a run that is broken off anywhere is one that can go on.
        let store = self.open()?;
        store.write(AllTenants, "rotate_keys", move |tx| rotation.finish(tx)).await?;
        close(store).await?;
        Ok(rows)
    }
}

/// Refuses a store with half an import in it.
fn whole(tx: &mut dyn Tx) -> Result<(), StoreError> {
    archive::refuse_unfinished(tx)
}

async fn close(store: Store) -> Result<(), StoreError> {
    let closed = tokio::task::spawn_blocking(move || store.close()).await;
    closed.map_err(|_| StoreError::Unavailable("the process is ending".into()))
}
