//! Reading the configuration: defaults < file < environment < command line, remembering where each value came from.

use super::Config;
use super::suggest::closest;
use figment::error::{Actual, Kind};
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The prefix of every environment variable that sets a key.
const PREFIX: &str = "MEMTROVE_";
/// The variable that names the file.
pub const CONFIG_VARIABLE: &str = "MEMTROVE_CONFIG";
/// The source of a value that is not set.
pub const DEFAULT: &str = "default";
/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "memtrove.toml";

/// What the configuration is read from.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The file, which must exist. Without one, [`CONFIG_VARIABLE`] names it, else [`DEFAULT_FILE`] is read if it is
    /// there.
    pub file: Option<PathBuf>,
    /// Environment variables; those that are none of ours are skipped.
    pub environment: Vec<(String, String)>,
    /// From the command line.
    pub flags: Vec<Flag>,
    /// Whether [`DEFAULT_FILE`] is left alone: for a process that others start, in whatever folder.
    pub named_file_only: bool,
}

/// A key that was set on the command line.
#[derive(Debug, Clone)]
pub struct Flag {
    /// As typed, e.g. `--listen`.
    pub name: &'static str,
    /// The key it sets, e.g. `server.listen`.
    pub key: &'static str,
    pub value: String,
}

impl Inputs {
    /// The process's environment, and nothing from the command line yet.
    pub fn from_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { environment: std::env::vars_os().filter_map(text).collect(), ..Self::default() }
    }
}

/// A configuration and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration itself. It can be read; whether it can be run with is what [`Config::problems`] says.
    pub config: Config,
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
    sources: BTreeMap<String, String>,
}

/// One key of the effective configuration.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Setting {
    /// The key, e.g. `server.listen`.
    pub key: String,
    /// Its value, with secrets redacted.
    pub value: serde_json::Value,
    /// Where it came from: [`DEFAULT`], a file, an environment variable or a flag.
    pub source: String,
}

/// Why a configuration could not be read: a sentence that says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(String);

impl Config {
    /// Reads the configuration.
    pub fn load(inputs: &Inputs) -> Result<Loaded, LoadError> {
        let file = find_file(inputs)?;
        let mut figment = Figment::new();
        if let Some(file) = &file {
            figment = figment.merge(Toml::file_exact(file));
        }
        for (name, value) in &inputs.environment {
            if let Some(key) = key_of_variable(name)? {
                // Parsing never fails: what is no number, list or table is a text.
                let value = value.parse::<Value>().unwrap_or_else(|never| match never {});
                figment =
                    figment.merge(OuterValue { origin: format!("environment variable {name}"), key, value });
            }
        }
        for flag in &inputs.flags {
            let value = Value::from(flag.value.clone());
            figment = figment.merge(OuterValue {
                origin: format!("flag {}", flag.name),
                key: flag.key.into(),
                value,
            });
        }
        let mut config: Config =
            figment.extract().map_err(|error| LoadError(explain(error, file.as_deref())))?;
        config.auth.roles = config.roles.clone();
        let mut sources = BTreeMap::new();
        let data = figment.data().map_err(|error| LoadError(explain(error, file.as_deref())))?;
        for (name, value) in data.get(&Profile::Default).into_iter().flatten() {
            note_sources(&figment, name.clone(), value, &mut sources);
        }
        Ok(Loaded { config, file, sources })
    }
}

impl Loaded {
    /// Every key with its effective value and source.
    pub fn settings(&self) -> Vec<Setting> {
        leaves(&self.config)
            .into_iter()
            .map(|(key, value)| Setting { source: self.source(&key).to_owned(), key, value })
            .collect()
    }

    /// Where a key's value came from. A list or table is set as a whole, so the source of what holds the key counts.
    pub fn source(&self, key: &str) -> &str {
        let mut at = key;
        loop {
            if let Some(source) = self.sources.get(at) {
                return source;
            }
            match at.rsplit_once('.') {
                Some((parent, _)) => at = parent,
                None => return DEFAULT,
            }
        }
    }
}

fn find_file(inputs: &Inputs) -> Result<Option<PathBuf>, LoadError> {
    let variable = inputs.environment.iter().find(|(name, _)| name == CONFIG_VARIABLE);
    let (file, named_by) = match (&inputs.file, variable) {
        (Some(file), _) => (file.clone(), "--config"),
        (None, Some((_, file))) if !file.is_empty() => (PathBuf::from(file), CONFIG_VARIABLE),
        _ if inputs.named_file_only => return Ok(None),
        _ => {
            let file = PathBuf::from(DEFAULT_FILE);
            return Ok(file.is_file().then_some(file));
        }
    };
    if file.is_file() {
        return Ok(Some(file));
    }
    Err(LoadError(format!("the configuration file {} named by {named_by} is not there", file.display())))
}

/// The key an environment variable sets. `None` for variables that are not about the configuration.
fn key_of_variable(name: &str) -> Result<Option<String>, LoadError> {
    let Some(rest) = name.strip_prefix(PREFIX).filter(|_| name != CONFIG_VARIABLE) else { return Ok(None) };
    if rest.contains("__") {
        return Ok(Some(rest.to_lowercase().replace("__", ".")));
    }
    let flat = rest.to_lowercase();
    match known_keys().iter().find(|key| key.replace('.', "_") == flat) {
        Some(key) => Err(LoadError(format!(
            "the environment variable {name} sets nothing: write {PREFIX}{}, with two underscores between the parts",
            key.to_uppercase().replace('.', "__")
        ))),
        None => Ok(None),
    }
}

/// One value from outside the file.
struct OuterValue {
    origin: String,
    key: String,
    value: Value,
}

impl Provider for OuterValue {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let nested = figment::util::nest(&self.key, self.value.clone());
        Ok(nested.into_dict().into_iter().map(|dict| (Profile::Default, dict)).collect())
    }
}

fn note_sources(figment: &Figment, key: String, value: &Value, sources: &mut BTreeMap<String, String>) {
    match value {
        Value::Dict(_, dict) => {
            for (name, value) in dict {
                note_sources(figment, format!("{key}.{name}"), value, sources);
            }
        }
        leaf => {
            if let Some(metadata) = figment.get_metadata(leaf.tag()) {
                sources.insert(key, origin(metadata));
            }
        }
    }
}

fn origin(metadata: &Metadata) -> String {
    match metadata.source.as_ref().and_then(|source| source.file_path()) {
        Some(path) => path.display().to_string(),
        None => metadata.name.to_string(),
    }
}

/// Every key there is, with its default.
pub fn known_keys() -> Vec<String> {
    leaves(&Config::default()).into_iter().map(|(key, _)| key).collect()
}

/// The keys and values of a configuration as a flat list.
fn leaves(config: &Config) -> Vec<(String, serde_json::Value)> {
    fn walk(key: &str, value: serde_json::Value, out: &mut Vec<(String, serde_json::Value)>) {
        match value {
            serde_json::Value::Object(fields) if !fields.is_empty() => {
                for (name, value) in fields {
                    let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                    walk(&key, value, out);
                }
            }
            leaf => out.push((key.to_owned(), leaf)),
        }
    }
    let mut out = Vec::new();
    walk("", serde_json::to_value(config).unwrap_or_default(), &mut out);
    out
}

/// A figment error as a sentence. It names the key and the source, and no value that might be a secret.
fn explain(error: figment::Error, file: Option<&Path>) -> String {
    let source = match (&error.metadata, file) {
        (Some(metadata), _) => origin(metadata),
        (None, Some(file)) => file.display().to_string(),
        (None, None) => "the configuration".into(),
    };
    let path = error.path.join(".");
    let secrets = [
        "attachments.azure.access_key",
        "attachments.download_url_secret",
        "attachments.s3.secret_access_key",
        "auth.api_keys",
        "auth.jwt.hmac_secret",
        "embedding.openai.api_key",
        "encryption.dek",
        "redis.url",
        "store.url",
    ];
    // Also what stands where a section with a secret belongs: it may be that secret, one level too high.
    let secret = secrets.iter().any(|key| path.starts_with(key) || key.starts_with(&format!("{path}.")));
    let expected = |what: &str| format!("{source}: {path} must be {}", in_words(what));
    match &error.kind {
        Kind::UnknownField(name, _) => {
            // Figment's path ends with the unknown key itself or with what holds it, depending on the source.
            let full = match path.as_str() {
                "" => name.clone(),
                path if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
                path => format!("{path}.{name}"),
            };
            let known = known_keys();
            let sections = known.iter().filter_map(|key| key.split_once('.')).map(|(section, _)| section);
            let hint = match closest(&full, known.iter().map(String::as_str).chain(sections)) {
                Some(key) => format!("did you mean {key}?"),
                None => "remove it; `memtrove doctor --settings` lists every key".into(),
            };
            format!("{source}: {full} is not a setting; {hint}")
        }
        Kind::UnknownVariant(value, allowed) => {
            format!("{source}: {path} is '{value}', but can only be one of: {}", allowed.join(", "))
        }
        Kind::InvalidType(_, what) | Kind::InvalidValue(_, what) if secret => expected(what),
        Kind::InvalidType(actual, what) | Kind::InvalidValue(actual, what) => {
            format!("{}, not {}", expected(what), as_written(actual))
        }
        Kind::MissingField(name) => format!("{source}: {path} lacks '{name}'"),
        Kind::Message(message) if path.is_empty() => format!("{source}: {}", without_excerpt(message)),
        Kind::Message(message) => format!("{source}: {path}: {message}"),
        other => format!("{source}: {path}: {other}"),
    }
}

/// What the TOML parser says, without the line of the file that it quotes: a secret may stand there.
fn without_excerpt(message: &str) -> String {
    let quoted =
        |line: &&str| line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|');
    message.lines().filter(|line| !quoted(line)).collect::<Vec<_>>().join(": ")
}

/// What a setting takes, in words for people; serde names Rust's types. Our own types say it themselves.
fn in_words(expected: &str) -> &str {
    match expected {
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "a list such as [\"a\", \"b\"]",
        "a map" => "a table",
        "u64" | "usize" => "a whole number from 0 on",
        "u32" => "a whole number from 0 to 4294967295",
        "f64" => "a number",
        section if section.starts_with("struct ") => "a section",
        own => own,
    }
}

/// A value as it stands in the file.
fn as_written(value: &Actual) -> String {
    match value {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(value) => value.to_string(),
        Actual::Signed(value) => value.to_string(),
        Actual::Float(value) => value.to_string(),
        Actual::Str(value) => format!("{value:?}"),
        Actual::Seq => "a list".into(),
        Actual::Map => "a table".into(),
        other => other.to_string(),
    }
}
