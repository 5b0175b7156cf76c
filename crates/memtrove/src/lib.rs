//! The `memtrove` binary: command line, configuration, composition root.
//!
//! This crate puts the parts together: rules are in `memtrove-core`, operations in `memtrove-service`, HTTP in
//! `memtrove-server`. It is a library only so that its tests can reach it.
//!
//! To add a command: a file with its arguments and a `run`, and a line in [`cli::Command`].

mod adopt;
mod attached;
pub mod cli;
pub mod config;
mod descriptors;
pub mod doctor;
pub mod evict;
pub mod export;
pub mod import;
pub mod mcp;
pub mod reindex;
pub mod rotate_keys;
pub mod serve;
pub mod target;
mod terminal;
pub mod token;
