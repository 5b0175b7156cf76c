//! Scopes that the database searches, on PostgreSQL: held to the suite of all providers, and compared with those that nodes
//! search in their memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "large_scopes/tended.rs"]
mod tended;

mod in_the_database {
    memloom_testkit::provider_suite!(super::tended::open);
}
