//! Everything is in the library; this only gives the process its exit code.

use clap::Parser;
use memtrove::cli::Cli;
use std::process::ExitCode;

/// What a reader thread allocates, a runtime thread frees: this one is made for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
