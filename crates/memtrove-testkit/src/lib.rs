//! What the tests of Memtrove share: the server under test, and the suites that both storage engines and both halves of the
//! memories' store pass.

pub mod clock;
pub mod embedder;
pub mod engine_suite;
pub mod memory_suite;
pub mod object_stores;
pub mod postgres;
pub mod proxy;
pub mod redis;
pub mod server;
pub mod small_disk;
pub mod steps;
pub mod stored;
