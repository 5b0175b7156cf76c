//! What every test of Memloom shares: the server under test and the suite that every storage engine passes.

pub mod clock;
pub mod embedder;
pub mod engine_suite;
pub mod server;
