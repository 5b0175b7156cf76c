//! `memtrove mcp`: the memory of one user for an agent, over standard input and output.
//!
//! An editor starts this process and talks to it line by line. A data folder has one owner, and a person has several editors: the
//! first process opens the folder and a [socket], and the others pass their lines on to it. When the owner ends, one of the others
//! takes its place ([relay]).
//!
//! Standard output belongs to the protocol; everything else goes to standard error.

mod lines;
pub(crate) mod owner;
mod relay;
#[cfg(unix)]
pub(crate) mod socket;
#[cfg(not(unix))]
#[path = "mcp/no_socket.rs"]
pub(crate) mod socket;

use crate::adopt;
use crate::config::{Config, DEFAULT, Flag, Inputs};
use crate::serve::{StopSignals, refuse_problems, start_telemetry};
use anyhow::Context;
use clap::Args;
use memtrove_core::{Clock, SystemClock};
use memtrove_server::mcp::{Bound, Local};
use relay::Relay;
use std::path::PathBuf;
use tokio::sync::watch;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  claude mcp add --scope user memtrove -- memtrove mcp
  memtrove mcp --project shop                Memories can also be kept for a project
  memtrove mcp --data-dir /srv/memtrove       Another folder
  memtrove mcp --store postgres://memtrove@db.example/memtrove

Needs no configuration: data lies in $XDG_DATA_HOME/memtrove or
~/.local/share/memtrove, and belongs to the user who is logged in. A memtrove.toml
in the folder where an editor happens to start this is not read. Several editors
may use the same folder at once.";

/// Arguments of `memtrove mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Whose memory it is [default: the user who is logged in]
    #[arg(long)]
    pub user: Option<String>,
    /// The project that is worked on; what is remembered for it is shared by all who name it
    #[arg(long)]
    pub project: Option<String>,
    /// Which agent works with the memory, for the audit trail
    #[arg(long)]
    pub agent: Option<String>,
    /// The tenant [default: auth.default_tenant]
    #[arg(long)]
    pub tenant: Option<String>,
    /// Configuration file [default: $MEMTROVE_CONFIG, or none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for everything that must survive [default: $XDG_DATA_HOME/memtrove or ~/.local/share/memtrove]
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<String>,
    /// sqlite, sqlite:/path/to/file.db or postgres://user@host/database [default: sqlite]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// Serves until standard input ends, or SIGINT or SIGTERM.
pub async fn run(args: McpArgs) -> anyhow::Result<()> {
    let config = args.load()?;
    refuse_problems(&config)?;
    let signals = StopSignals::listen()?;
    let _telemetry = start_telemetry(&config)?;
    let local = args.local(&config);
    // Said now, and not by the owner of the folder.
    Bound::local(local.clone()).context("--user, --tenant, --project or --agent")?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    Relay::new(config, local, input, output).run(signals.first()).await
}

/// Resolves when a flag is set, or nothing is left that could set it.
async fn is_set(flag: &mut watch::Receiver<bool>) {
    drop(flag.wait_for(|is_set| *is_set).await);
}

impl McpArgs {
    fn load(&self) -> anyhow::Result<Config> {
        let flag = |name, key, value: &Option<String>| value.clone().map(|value| Flag { name, key, value });
        let flags = [
            flag("--data-dir", "server.data_dir", &self.data_dir),
            flag("--store", "store.url", &self.store),
        ];
        let loaded = Config::load(&Inputs {
            file: self.config.clone(),
            flags: flags.into_iter().flatten().collect(),
            named_file_only: true,
            ..Inputs::from_environment()
        })?;
        adopt::Leftovers::find().announce(&loaded)?;
        let default_level = loaded.source("log.level") == DEFAULT;
        let mut config = loaded.config;
        if default_level {
            config.log.level = "warn".to_owned();
        }
        Ok(config)
    }

    fn local(&self, config: &Config) -> Local {
        Local {
            user: self.user.clone().unwrap_or_else(os_user),
            // Decided here, because the owner of the folder may have another default.
            tenant: self.tenant.clone().unwrap_or_else(|| config.auth.default_tenant.clone()),
            project: self.project.clone(),
            agent: self.agent.clone(),
            session: SystemClock.new_id(),
        }
    }
}

/// Who is logged in. Hosts start processes with few variables, so the account and the home folder say it too.
fn os_user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let home = || std::env::home_dir().and_then(|home| Some(home.file_name()?.to_str()?.to_owned()));
    let unnamed = std::iter::once_with(account).chain(std::iter::once_with(home)).flatten();
    named.chain(unnamed).find(|name| !name.trim().is_empty()).unwrap_or_else(|| "user".to_owned())
}

/// The name of the account that this process runs under, where the machine keeps its accounts in a file.
fn account() -> Option<String> {
    #[cfg(unix)]
    let uid = rustix::process::getuid().as_raw().to_string();
    #[cfg(not(unix))]
    let uid = String::new();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = accounts.lines().map(|line| line.split(':'));
    fields.find_map(|mut fields| Some(fields.next()?.to_owned()).filter(|_| fields.nth(1) == Some(&uid)))
}
