//! `memtrove doctor`: the effective configuration, and whether a server could run with it.

mod attachments;
mod embedding;
mod postgres;
mod redis;
mod sqlite;
mod store;

use crate::adopt::Leftovers;
use crate::cli::ServeArgs;
use crate::config::{Config, DEFAULT, Loaded, Provider, Setting};
use crate::terminal::{Paint, line};
use clap::Args;
use memtrove_server::auth::Authenticator;
use memtrove_store::StoreError;
use serde::Serialize;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use store::{ExaminedStore, Readable};

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove doctor
  memtrove doctor --settings
  memtrove doctor --config /etc/memtrove.toml
  memtrove doctor --json | jq '.checks[] | select(.outcome == \"problem\")'

The exit code is 1 when something keeps a server from running, or its users from
signing in. Nothing is changed, so it can be run next to a server that is
running.";

/// The name of the check of the store, whichever it is.
const DATABASE: &str = "database";

/// Arguments of `memtrove doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Show every setting, not only those that were set
    #[arg(long)]
    pub settings: bool,
    /// Print JSON, with every setting
    #[arg(long)]
    pub json: bool,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub server: ServeArgs,
}

/// Everything the doctor found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether a server could run.
    pub ok: bool,
    /// The version of this binary.
    pub version: &'static str,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Every key.
    pub settings: Vec<Setting>,
    /// Every check, in order.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub outcome: CheckOutcome,
    /// In words.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    /// Good.
    Ok,
    /// A server can run, but somebody should know.
    Warning,
    /// A server cannot run.
    Problem,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, outcome: CheckOutcome::Ok, message: message.into(), fix: None }
    }

    fn warning(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, outcome: CheckOutcome::Warning, message: message.into(), fix: None }
    }

    /// A warning that says what to do about it.
    fn advice(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..Self::warning(name, message) }
    }

    fn problem(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, outcome: CheckOutcome::Problem, message: message.into(), fix: Some(fix.into()) }
    }

    /// What the store says when a server starts; the sentence says what to do, too.
    fn refusal(name: &'static str, refusal: &StoreError) -> Self {
        Self { name, outcome: CheckOutcome::Problem, message: refusal.to_string(), fix: None }
    }
}

/// Looks at everything and prints what it found.
pub async fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let loaded = args.server.load()?;
    let report = examine(&loaded).await;
    if args.json {
        line(serde_json::to_string_pretty(&report)?);
    } else {
        print(&report, args.settings, Paint::for_stdout());
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn examine(loaded: &Loaded) -> Report {
    let config = &loaded.config;
    let listen = config.server.listen.0;
    let memtrove_listens = is_memtrove(listen).await;
    let store = ExaminedStore::of(config).await;
    // The server that has the port is the one that has the store.
    let running = memtrove_listens && store.in_use();

    let mut checks = configuration(config);
    let leftovers = Leftovers::find();
    let outcome =
        if leftovers.awaited(loaded).is_some() { CheckOutcome::Problem } else { CheckOutcome::Warning };
    checks.extend(
        leftovers
            .notices(loaded)
            .into_iter()
            .map(|notice| Check { outcome, ..Check::warning("earlier name", notice) }),
    );
    checks.extend(encryption(config, store.readable()));
    checks.extend(embedding::check(config, &store).await);
    checks.extend(store.checks(config, running));
    checks.extend(attachments::check(config).await);
    checks.extend(redis::check(config).await);
    checks.push(port(listen, memtrove_listens, running));
    checks.extend(issuer(config).await);
    Report {
        ok: checks.iter().all(|check| check.outcome != CheckOutcome::Problem),
        version: env!("CARGO_PKG_VERSION"),
        file: loaded.file.clone(),
        settings: loaded.settings(),
        checks,
    }
}

fn print(report: &Report, every_setting: bool, paint: Paint) {
    let file = report.file.as_ref().map_or("no configuration file".into(), |file| file.display().to_string());
    line(format_args!("{} {}\n", paint.bold(format_args!("memtrove {}", report.version)), paint.faint(file)));
    let is_default = |setting: &&Setting| setting.source == DEFAULT;
    let settings: Vec<&Setting> =
        report.settings.iter().filter(|setting| every_setting || !is_default(setting)).collect();
    let widest =
        |of: fn(&Setting) -> usize| settings.iter().map(|setting| of(setting)).max().unwrap_or(0).min(40);
    let keys = widest(|setting| setting.key.len());
    let values = widest(|setting| shown(setting).len());
    for setting in &settings {
        let source = if is_default(setting) { paint.faint(&setting.source) } else { setting.source.clone() };
        line(format_args!("  {:keys$}  {:values$}  {source}", setting.key, shown(setting)));
    }
    let unshown = report.settings.len() - settings.len();
    if unshown > 0 {
        let more = if settings.is_empty() { "" } else { " more" };
        let hint = format!("  {unshown}{more} settings have their defaults; --settings shows them");
        line(paint.faint(hint));
    }
    line("");
    for check in &report.checks {
        let mark = match check.outcome {
            CheckOutcome::Ok => paint.green("✓"),
            CheckOutcome::Warning => paint.yellow("!"),
            CheckOutcome::Problem => paint.red("✗"),
        };
        line(format_args!("{mark} {}: {}", check.name, check.message));
        if let Some(fix) = &check.fix {
            line(format_args!("  → {fix}"));
        }
    }
}

/// A value as it would be written in the file.
fn shown(setting: &Setting) -> String {
    match &setting.value {
        serde_json::Value::Null => "–".into(),
        value => value.to_string(),
    }
}

fn configuration(config: &Config) -> Vec<Check> {
    const NAME: &str = "configuration";
    let problems = config.problems();
    let mut checks: Vec<Check> = problems
        .into_iter()
        .map(|found| Check::problem(NAME, format!("{}: {}", found.key, found.problem), found.fix))
        .collect();
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "valid"));
    }
    checks.extend(config.warnings().into_iter().map(|warning| Check::warning(NAME, warning)));
    checks
}

/// What a valid configuration means for content, and whether what the database holds can be read with it. One that is not
/// valid is told about elsewhere.
fn encryption(config: &Config, readable: Readable<'_>) -> Option<Check> {
    const NAME: &str = "encryption";
    let encryption = &config.encryption;
    encryption.vault().ok()?;
    let message = match encryption.keys().ok()?.filter(|_| encryption.is_on()) {
        None => "content is stored as plain text".to_owned(),
        Some(keys) if encryption.providers().contains(&Provider::Plain) => {
            format!("content is encrypted with the key {}, plain content is read too", keys.current().id())
        }
        Some(keys) => format!("content is encrypted with the key {}", keys.current().id()),
    };
    Some(match readable {
        Readable::Yes | Readable::Nothing => Check::ok(NAME, message),
        Readable::No(refusal) => Check::refusal(NAME, refusal),
        Readable::AfterUpgrade => Check::warning(
            NAME,
            format!("{message}; whether the database fits shows when it has been upgraded"),
        ),
    })
}

fn port(listen: SocketAddr, memtrove_listens: bool, running: bool) -> Check {
    const NAME: &str = "port";
    match TcpListener::bind(listen) {
        Ok(_) if listen.port() == 0 => Check::ok(NAME, format!("{listen} picks a free one")),
        Ok(_) => Check::ok(NAME, format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            if running {
                return Check::warning(NAME, format!("a Memtrove server is already running on {listen}"));
            }
            let who = if memtrove_listens { "a Memtrove server with other data" } else { "another program" };
            let fix = "stop it, or choose another port with --listen";
            Check::problem(NAME, format!("{who} listens on {listen}"), fix)
        }
        Err(error) => Check::problem(
            NAME,
            format!("cannot listen on {listen}: {error}"),
            "choose another with --listen",
        ),
    }
}

/// Whether a Memtrove server answers there.
async fn is_memtrove(listen: SocketAddr) -> bool {
    let ask =
        reqwest::Client::new().get(format!("http://{listen}/v1/health")).timeout(Duration::from_secs(2));
    let Ok(response) = ask.send().await else { return false };
    response.headers().contains_key("x-request-id")
        && response.text().await.is_ok_and(|body| body.contains("\"ok\""))
}

async fn issuer(config: &Config) -> Option<Check> {
    const NAME: &str = "issuer";
    let name = config.auth.jwt.issuer.clone()?;
    let probe = Authenticator::new(config.auth.clone()).ok()?.probe_issuer().await?;
    Some(match probe {
        Ok(keys) => Check::ok(
            NAME,
            format!("{name} publishes {keys} usable {}", if keys == 1 { "key" } else { "keys" }),
        ),
        Err(problem) => Check::problem(
            NAME,
            problem,
            "check auth.jwt.issuer (and auth.jwt.discovery_url), and that this machine can reach it",
        ),
    })
}
