//! Storage: units of work, SQL repositories, and the engines that run them.
//!
//! A [`Store`] owns threads, each thread owns a connection, and work is a plain synchronous closure over a [`Tx`]. The
//! repositories ([`conversations`], [`tasks`], …) are written once, in portable SQL against that port; what
//! differs between engines (schema, full text, row locks, array parameters) sits behind [`Tx`] in the engine's module.
//! The [`vault`] seals content before it is stored and opens it after it is read.
//! This crate knows no transport and no use case. To add a table: a migration in every engine, a repository module
//! here, and its behaviours in the testkit's engine suite.

pub mod archive;
pub mod attachments;
pub mod changes;
pub mod conversations;
mod damage;
mod error;
pub mod files;
pub mod idempotency;
pub mod leases;
pub mod locators;
pub mod memories;
pub mod meta;
pub mod nodes;
mod port;
pub mod postgres;
mod pulse;
pub mod rates;
pub mod sqlite;
mod store;
pub mod stream;
pub mod tasks;
mod tenancy;
pub mod vault;
pub mod vectors;

pub use error::StoreError;
pub use port::{
    Compaction, EachRow, FeedEntry, Lock, Recorded, Row, StalePages, TextDocument, TextHit, TextQuery, Tx,
    TxExt, Value,
};
pub use store::{Engine, Health, QueuedWork, Store, Traces, UnitOfWork};
pub use tenancy::{AllTenants, TenantScope};
