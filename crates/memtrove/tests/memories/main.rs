//! What the memories contract promises, asked of the real binary over HTTP.
//!
//! One module per chapter. The tests share one server and stay independent because each of them brings its own tenant;
//! those that stop, starve or configure a server start one of their own.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod access;
mod adding;
mod boundaries;
mod bulk;
mod checks;
mod consolidation;
mod contradictions;
mod cursors;
mod decay;
mod dedupe;
mod deleting;
mod durability;
mod embedder;
mod embedding_provider;
mod facts;
mod filters;
mod forks;
mod hostile;
mod http;
mod idempotency;
mod identifiers;
mod instants;
mod introspection;
mod isolation;
mod joints;
mod kept_index;
mod kinds;
mod lifecycle;
mod lifetimes;
mod listing;
mod merging;
mod metadata;
mod openspec;
mod openspec_batch;
mod openspec_query;
mod openspec_writing;
mod override_keys;
mod passages;
mod pointers;
mod principals;
mod probes;
mod promotion;
mod quotas;
mod ranks;
mod reading;
mod searching;
mod sessions;
mod settings;
mod sse;
mod stream;
mod stream_kinds;
mod unseen;
mod updating;
