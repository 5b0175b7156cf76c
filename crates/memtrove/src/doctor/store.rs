//! The store that a configuration names, whichever engine it is of.

use super::{Check, postgres, sqlite};
use crate::config::{Config, Database};
use memtrove_store::vault::Vault;
use memtrove_store::{StoreError, Tx};

/// A store, after a look at it that changed nothing.
pub(super) enum ExaminedStore {
    /// Unknown: the check of the configuration tells why.
    Nowhere,
    Sqlite(sqlite::ExaminedSqlite),
    Postgres(Box<postgres::ExaminedPostgres>),
}

/// Whether what is stored can be read with the configured keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Readable<'a> {
    /// There is nothing to read, or it cannot be looked at.
    Nothing,
    /// It has another version's schema, so only the upgrade shows it.
    AfterUpgrade,
    Yes,
    /// What a start would be refused with.
    No(&'a StoreError),
}

impl<'a> Readable<'a> {
    /// What an inspection says about it.
    pub(super) fn of(inspected: Option<&'a Result<(), StoreError>>) -> Self {
        match inspected {
            None => Self::AfterUpgrade,
            Some(Ok(())) => Self::Yes,
            Some(Err(refusal)) => Self::No(refusal),
        }
    }
}

impl ExaminedStore {
    pub(super) async fn of(config: &Config) -> Self {
        // Keys that are no keys are told about with the configuration.
        let vault = config.encryption.vault().unwrap_or_else(|_| Vault::plain());
        match config.database() {
            Err(_) => Self::Nowhere,
            Ok(Database::Sqlite(path)) => Self::Sqlite(sqlite::ExaminedSqlite::of(path, vault)),
            Ok(Database::Postgres(address)) => {
                let lease = config.tasks.lease.0;
                let examined =
                    postgres::ExaminedPostgres::of(address, config.store.postgres(vault), lease).await;
                Self::Postgres(Box::new(examined))
            }
        }
    }

    /// Whether a server works on it.
    pub(super) fn in_use(&self) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Sqlite(examined) => examined.in_use(),
            Self::Postgres(examined) => examined.in_use(),
        }
    }

    pub(super) fn readable(&self) -> Readable<'_> {
        match self {
            Self::Nowhere => Readable::Nothing,
            Self::Sqlite(examined) => examined.readable(),
            Self::Postgres(examined) => examined.readable(),
        }
    }

    /// Reads from it, if it can be read.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        vault: Vault,
        read: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Option<T> {
        if !matches!(self.readable(), Readable::Yes) {
            return None;
        }
        match self {
            Self::Nowhere => None,
            Self::Sqlite(examined) => examined.look(vault, read).ok(),
            Self::Postgres(examined) => examined.look(read).await.ok(),
        }
    }

    /// What there is to say about it, where the server that has it may be `running` as configured.
    pub(super) fn checks(&self, config: &Config, running: bool) -> Vec<Check> {
        match self {
            Self::Nowhere => vec![],
            Self::Sqlite(examined) => examined.checks(config, running),
            Self::Postgres(examined) => examined.checks(running),
        }
    }
}
