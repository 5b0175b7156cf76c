//! The command line: what can be asked for, and which key each flag sets.

use crate::config::{Config, Flag, Inputs, Loaded};
use crate::{doctor, evict, serve, terminal, token};
use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// One memory service for every AI agent.
#[derive(Debug, Parser)]
#[command(name = "memloom", version, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do; `serve` unless said otherwise.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The settings of `serve`, for when no command is named.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

const EXAMPLES: &str = "\
Examples:
  memloom                                 Serve on 127.0.0.1:7077, data in ./memloom-data
  memloom serve --listen 127.0.0.1:0      Serve on a free port and print it
  memloom doctor                          Show the configuration and check that the server can run
  curl -H \"$(memloom token --user alice)\" http://127.0.0.1:7077/v1/conversations
  memloom evict --older-than P90D         Remove what was deleted more than 90 days ago

Configuration:
  Every setting can be in memloom.toml, in MEMLOOM_SECTION__KEY (MEMLOOM_SERVER__LISTEN=…) or, for the usual ones, in a
  flag; later ones win. `memloom doctor` lists every setting with its value and where it came from.";

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves the API until it is told to stop (Ctrl-C or SIGTERM)
    #[command(after_help = serve::EXAMPLES)]
    Serve(SettingsArgs),
    /// Shows the effective configuration and checks whether a server could run with it
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Prints the Authorization header of a user, for local mode and test servers
    #[command(after_help = token::EXAMPLES)]
    Token(token::TokenArgs),
    /// Removes for good what was deleted long ago
    #[command(after_help = evict::EXAMPLES)]
    Evict(evict::EvictArgs),
    /// Prints the OpenAPI description of the REST API
    #[command(after_help = "Example:\n  memloom openapi > memloom.json")]
    Openapi,
}

/// The settings that have a flag.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArgs {
    /// Configuration file [default: $MEMLOOM_CONFIG, else ./memloom.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address and port to listen on; port 0 picks a free one [default: 127.0.0.1:7077]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Folder for everything that must survive [default: ./memloom-data]
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<String>,
    /// Where data is kept: sqlite, or sqlite:/path/to/file.db [default: sqlite]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

impl SettingsArgs {
    /// The configuration with these flags on top.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        let flags = [
            ("--listen", "server.listen", &self.listen),
            ("--data-dir", "server.data_dir", &self.data_dir),
            ("--store", "store.url", &self.store),
        ];
        let flags = flags.into_iter().filter_map(|(name, key, value)| {
            let value = value.clone()?;
            Some(Flag { name, key, value })
        });
        let inputs =
            Inputs { file: self.config.clone(), flags: flags.collect(), ..Inputs::from_environment() };
        Ok(Config::load(&inputs)?)
    }
}

impl Cli {
    /// Does what was asked for.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command.unwrap_or(Command::Serve(self.settings)) {
            Command::Serve(args) => {
                let loaded = args.load()?;
                runtime(loaded.config.server.workers)?.block_on(serve::run(&loaded.config))?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Doctor(args) => runtime(Some(1))?.block_on(doctor::run(&args)),
            Command::Token(args) => token::run(&args),
            Command::Evict(args) => runtime(Some(1))?.block_on(evict::run(&args)),
            Command::Openapi => {
                terminal::line(serve::openapi()?);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn runtime(workers: Option<usize>) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // Zero is refused with a sentence later; here it must only not panic.
    if let Some(workers) = workers.filter(|workers| *workers > 0) {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().context("the threads that serve requests cannot be started")
}
