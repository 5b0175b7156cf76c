//! Makes the messages and services from the contract. The compiler is a crate, so that nothing has to be installed.

use prost::Message;
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

const CONTRACT: &str = "memory/v1/memory_service.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let proto = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", proto.join(CONTRACT).display());
    let descriptors = protox::compile([CONTRACT], [&proto])?;
    // Reflection serves the contract as it is written, comments included.
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".")
        .extern_path(".google.protobuf.Value", "crate::json::Value")
        .extern_path(".google.protobuf.Struct", "crate::json::Struct")
        .compile_fds(descriptors)?;
    Ok(())
}
