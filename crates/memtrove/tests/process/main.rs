//! The program as its users run it: its commands, its nodes, and what is left when it is killed. One binary for all chapters:
//! linking one for each takes longer than running it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopt;
mod alerts;
mod architecture;
mod archive;
mod cli;
mod cluster;
mod config;
mod crash;
mod damage;
mod importing;
mod mcp;
mod recorder;
