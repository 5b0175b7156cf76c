//! The gRPC contract, as Rust: messages, server traits and clients.
//!
//! All of it is made from `proto/` when this crate is built. It does not know the product, so that clients can use it too.
//! To add a call, write it into the contract; the server does not compile until it answers the call.

pub mod json;

/// `memory.v1`: conversations and what belongs to them.
pub mod v1 {
    #![allow(
        clippy::all,
        reason = "made from the contract, whose comments are where it has something to say"
    )]
    tonic::include_proto!("memory.v1");
}

/// The contract as reflection serves it: an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
