//! Use cases on real stores. One program: linking one for each chapter takes longer than running it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod attaching;
mod feed;
mod forget;
mod ingest;
mod jobs;
mod joints;
mod large_scopes;
mod memory_halves;
mod model;
mod nodes;
mod recorder;
mod remembering;
mod removal;
mod retention;
mod search_budget;
mod semantic_search;
mod sessions;
mod tasks;
mod time;
mod vectors;
mod world;
