//! `memtrove mcp`: the memory of one user for an agent, over standard input and output.
//!
//! An editor starts this process and talks to it line by line. A data folder has one owner, and a person has several
//! editors: so whoever has the folder open holds a [door] open for the others, and whoever finds it taken passes its
//! lines on through that door. When the owner goes, one of the others becomes it, unless it was a server: its folder is left to it
//! ([relay]).
//!
//! Standard output belongs to the protocol; everything else goes to standard error.

#[cfg(unix)]
pub(crate) mod door;
#[cfg(not(unix))]
#[path = "mcp/no_door.rs"]
pub(crate) mod door;
mod lines;
mod owner;
mod relay;

use crate::adopt;
use crate::config::{Config, DEFAULT, Flag, Inputs, LogFormat};
use crate::serve::{StopSignals, refuse_problems};
use anyhow::Context;
use clap::Args;
use memtrove_core::{Clock, SystemClock};
use memtrove_server::mcp::{Bound, Local};
use memtrove_server::telemetry::{self, TelemetryConfig};
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
    /// Whose memory it is [default: whoever is logged in]
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
    let _telemetry = telemetry::init(&TelemetryConfig {
        format: match config.log.format {
            LogFormat::Pretty => telemetry::LogFormat::Pretty,
            LogFormat::Json => telemetry::LogFormat::Json,
        },
        filter: config.log.level.clone(),
        otlp_endpoint: config.telemetry.otlp_endpoint.clone(),
        ..TelemetryConfig::default()
    })?;
    let local = args.local(&config);
    // Said now, and not by whoever has the folder open.
    Bound::local(local.clone()).context("--user, --tenant, --project or --agent")?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    Relay::new(config, local, input, output).run(signals.first()).await
}

/// Resolves when this process is to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // An error means that whoever would say so is gone, which is as good.
    drop(stopped.wait_for(|stopped| *stopped).await);
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
            // Decided here: whoever has the folder open may have another default.
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
#[cfg(unix)]
fn account() -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let uid = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = accounts.lines().map(|line| line.split(':'));
    fields.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    None
}
