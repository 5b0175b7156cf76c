//! Both engines and the vault, on real databases.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod postgres;
mod postgres_engine;
mod postgres_tls;
mod postgres_vectors;
mod sqlite;
mod vault;
