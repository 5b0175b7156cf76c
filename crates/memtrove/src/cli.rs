//! The command line: what can be asked for, and which key each flag sets.

use crate::config::{Config, Database, Flag, Inputs, Loaded};
use crate::{adopt, doctor, evict, export, import, mcp, reindex, rotate_keys, serve, terminal, token};
use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// One memory service for every AI agent.
#[derive(Debug, Parser)]
#[command(name = "memtrove", version, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do; `serve` unless said otherwise.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The settings of `serve`, for when no command is named.
    #[command(flatten)]
    pub settings: ServeArgs,
}

const EXAMPLES: &str = "\
Examples:
  memtrove                             Serve on 127.0.0.1:7077, data in ~/.local/share/memtrove
  memtrove serve --listen 127.0.0.1:0  Serve on a free port and print it
  memtrove doctor                      Check that a server can run with what is set
  memtrove evict --older-than 90d      Remove what was deleted 90 days ago or before
  curl -H \"$(memtrove token --user alice)\" http://127.0.0.1:7077/v1/conversations

Configuration:
  Every setting can be in memtrove.toml and in a variable MEMTROVE_SECTION__KEY,
  e.g. MEMTROVE_SERVER__LISTEN; the usual ones have a flag. Flags win over
  variables, variables over the file. `memtrove doctor --settings` lists every
  setting with its value and where it came from.";

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves the API until it is told to stop (Ctrl-C or SIGTERM)
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServeArgs),
    /// Shows what is set and checks whether a server could run with it
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Prints the Authorization header of a user, for local mode and test servers
    #[command(after_help = token::EXAMPLES)]
    Token(token::TokenArgs),
    /// Removes for good what was deleted long ago
    #[command(after_help = evict::EXAMPLES)]
    Evict(evict::EvictArgs),
    /// Rebuilds what searches look at: the index of events, or vectors of another model
    #[command(after_help = reindex::EXAMPLES)]
    Reindex(reindex::ReindexArgs),
    /// Encrypts everything anew, or for the first time, or decrypts it
    #[command(after_help = rotate_keys::EXAMPLES)]
    RotateKeys(rotate_keys::RotateKeysArgs),
    /// Writes everything, or one tenant, into an archive: a backup, or the way to another engine
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Brings an archive into a store, or an export of ChatGPT, Claude, mem0, an MCP memory, Markdown
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArgs),
    /// Gives an agent a memory over standard input and output (MCP)
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpArgs),
    /// Moves a data folder from before the product was renamed
    #[command(after_help = adopt::EXAMPLES)]
    Adopt(adopt::AdoptArgs),
    /// Prints the OpenAPI description of the REST API
    #[command(after_help = "Example:\n  memtrove openapi > memtrove.json")]
    Openapi,
}

/// Where the configuration is read from.
#[derive(Debug, Clone, Default, Args)]
pub struct FileArgs {
    /// Configuration file [default: $MEMTROVE_CONFIG or ./memtrove.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The settings of commands that open the data folder.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// See [`FileArgs`].
    #[command(flatten)]
    pub file: FileArgs,
    /// Folder for everything that must survive [default: $XDG_DATA_HOME/memtrove or ~/.local/share/memtrove]
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<String>,
    /// sqlite, sqlite:/path/to/file.db or postgres://user@host/database [default: sqlite]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// The settings of a server.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// See [`StoreArgs`].
    #[command(flatten)]
    pub store: StoreArgs,
    /// Address to listen on; port 0 is any free one [default: 127.0.0.1:7077]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

impl FileArgs {
    /// The configuration.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        self.load_with(vec![])
    }

    fn load_with(&self, flags: Vec<Flag>) -> anyhow::Result<Loaded> {
        Ok(Config::load(&Inputs { file: self.config.clone(), flags, ..Inputs::from_environment() })?)
    }
}

impl StoreArgs {
    /// The configuration with these flags on top.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        self.load_with(self.flags())
    }

    fn load_with(&self, flags: Vec<Flag>) -> anyhow::Result<Loaded> {
        let loaded = self.file.load_with(flags)?;
        // A folder on the command line is meant; a variable must not send the command to another store.
        if let (Some(folder), None, Ok(Database::Postgres(address))) =
            (&self.data_dir, &self.store, loaded.config.database())
        {
            bail!(
                "--data-dir names a folder, and the store is {address}, which has none ({} says so): write \
                 --store sqlite --data-dir {folder} for the store in that folder, or leave --data-dir out",
                loaded.source("store.url")
            );
        }
        Ok(loaded)
    }

    fn flags(&self) -> Vec<Flag> {
        let data_dir = flag("--data-dir", "server.data_dir", &self.data_dir);
        data_dir.into_iter().chain(flag("--store", "store.url", &self.store)).collect()
    }
}

impl ServeArgs {
    /// The configuration with these flags on top.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        let mut flags = self.store.flags();
        flags.extend(flag("--listen", "server.listen", &self.listen));
        self.store.load_with(flags)
    }
}

fn flag(name: &'static str, key: &'static str, value: &Option<String>) -> Option<Flag> {
    value.clone().map(|value| Flag { name, key, value })
}

impl Cli {
    /// Does what was asked for.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command.unwrap_or(Command::Serve(self.settings)) {
            Command::Serve(args) => {
                let loaded = args.load()?;
                adopt::Leftovers::find().announce(&loaded)?;
                runtime(loaded.config.server.workers)?.block_on(serve::run(loaded.config))?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Doctor(args) => runtime(Some(1))?.block_on(doctor::run(&args)),
            Command::Token(args) => token::run(&args),
            Command::Evict(args) => runtime(Some(1))?.block_on(evict::run(&args)),
            Command::Reindex(args) => runtime(Some(1))?.block_on(reindex::run(&args)),
            Command::RotateKeys(args) => runtime(Some(1))?.block_on(rotate_keys::run(&args)),
            Command::Export(args) => runtime(Some(1))?.block_on(export::run(args)),
            Command::Import(args) => runtime(Some(1))?.block_on(import::run(args)),
            Command::Mcp(args) => {
                let runtime = runtime(Some(2))?;
                let served = runtime.block_on(mcp::run(args));
                // A thread may be waiting for what an editor says next, and cannot be told to stop.
                runtime.shutdown_background();
                served.map(|()| ExitCode::SUCCESS)
            }
            Command::Adopt(args) => adopt::run(&args).map(|()| ExitCode::SUCCESS),
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
