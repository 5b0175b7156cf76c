//! Several nodes on one PostgreSQL, and what happens when one of them, the network or the database fails.
//!
//! Real processes, a real database, and requests over HTTP. What is promised is the same everywhere: a write that was
//! acknowledged is there, one that was refused is not, one whose outcome nobody knows is there whole or not at all, and a
//! repetition under a key is applied once.

mod load;
mod sound;
mod stream;
mod support;

mod cuts;
mod database;
mod dead_node;
mod forgetting;
mod keys;
mod leaving;
mod quotas;
mod reading;
mod tenants;
mod together;
mod upgrading;
