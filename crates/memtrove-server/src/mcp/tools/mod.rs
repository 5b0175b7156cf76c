//! The tools: arguments in, one function of the service, few words out.

mod conversations;
pub(super) mod events;
mod facts;
mod files;
mod memories;

use super::McpServer;
use super::failure::to_failure;
use memtrove_core::Error;
use memtrove_wire::tools::{Arguments, FileTool, ToolFailure};
use serde_json::{Map, Value};

/// No result is longer, but for a file, which is loaded as a whole: a model pays for every word of it.
const RESULT_CHARS: usize = 20_000;
/// So much of a result is for what is found; the rest is for what is said about it.
const FOUND_CHARS: usize = 19_500;
/// So much is shown of something that is found alone.
const ALONE_CHARS: usize = 18_000;
/// So much is shown of each of several that are found.
const SHOWN_CHARS: usize = 1000;
/// So much may stand beside each: an id, a day, keywords.
const BESIDE_CHARS: usize = 200;
/// So much is told of what went wrong.
const MESSAGE_CHARS: usize = 1000;

/// What a tool answers: a text for the model, or a failure for it.
type Outcome = Result<String, ToolFailure>;

/// Calls a tool; `None` where there is none of this name.
pub(super) async fn call(server: &McpServer, name: &str, arguments: Map<String, Value>) -> Option<Outcome> {
    let outcome = dispatch(server, name, arguments).await?;
    Some(match outcome {
        Ok(text) if name == FileTool::LoadFile.name() => Ok(text),
        Ok(text) => Ok(cut(&text, RESULT_CHARS)),
        Err(failure) => Err(ToolFailure { message: cut(&failure.message, MESSAGE_CHARS), ..failure }),
    })
}

async fn dispatch(server: &McpServer, name: &str, arguments: Map<String, Value>) -> Option<Outcome> {
    if let Some(word) = arguments.keys().find(|word| names_a_scope(word)) {
        return super::catalogue::names().any(|known| known == name).then(|| Err(bound(word)));
    }
    let arguments = Value::Object(arguments);
    if let Some(tool) = FileTool::named(name) {
        return Some(files::call(server, tool, &arguments).await);
    }
    Some(match name {
        "memory_delete_file" => files::delete(server, &arguments).await,
        "memory_log_event" => events::log(server, &arguments).await,
        "remember" => memories::remember(server, &arguments).await,
        "recall" => memories::recall(server, &arguments).await,
        "forget" => memories::forget(server, &arguments).await,
        "remember_fact" => facts::remember(server, &arguments).await,
        "query_facts" => facts::query(server, &arguments).await,
        "search_conversations" => conversations::search(server, &arguments).await,
        "append_message" => conversations::append(server, &arguments).await,
        _ => return None,
    })
}

/// Names of arguments by which a model would choose whose memory it works with.
const SCOPES: [&str; 17] = [
    "agent",
    "agentid",
    "clientid",
    "companyid",
    "identifiers",
    "layer",
    "namespace",
    "orgid",
    "owner",
    "project",
    "projectid",
    "scope",
    "teamid",
    "tenant",
    "tenantid",
    "user",
    "userid",
];

/// Whether an argument of this name would say whose memory is meant.
pub(super) fn names_a_scope(word: &str) -> bool {
    let plain: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
    SCOPES.contains(&plain.to_ascii_lowercase().as_str())
}

fn bound(word: &str) -> ToolFailure {
    let word = cut(word, MESSAGE_CHARS / 2);
    let message = format!("'{word}' cannot be chosen: whose memory this is, is fixed by the host");
    ToolFailure::arguments(message, format!("Call again without '{word}'."))
}

/// Reads the arguments of a tool that takes these, and no others.
fn read(arguments: &Value, names: &[&str], takes: &str) -> Result<Arguments, ToolFailure> {
    let arguments = Arguments::read(arguments, takes)?;
    arguments.only(names)?;
    Ok(arguments)
}

/// A number from 0 to 1; what is out of range is brought into it.
fn share(arguments: &Arguments, name: &str) -> Result<Option<f64>, ToolFailure> {
    let Some(value) = arguments.get(name) else { return Ok(None) };
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
    match number.filter(|number| number.is_finite()) {
        Some(number) => Ok(Some(number.clamp(0.0, 1.0))),
        None => Err(arguments.wrong(format!("'{name}' is not a number from 0 to 1"))),
    }
}

/// Whether the project's memory is meant.
fn for_project(server: &McpServer, arguments: &Arguments) -> Result<bool, ToolFailure> {
    match arguments.get("for_project") {
        None | Some(Value::Bool(false)) => Ok(false),
        Some(Value::Bool(true)) if server.bound.project().is_some() => Ok(true),
        Some(Value::Bool(true)) => {
            let message = "no project is bound to this session, so nothing can be kept for one";
            Err(ToolFailure::arguments(message, "Call again without 'for_project'."))
        }
        Some(_) => Err(arguments.wrong("'for_project' is neither true nor false".to_owned())),
    }
}

/// How many characters are shown of each of so many that are found.
fn share_of(found: usize) -> usize {
    match found {
        0 | 1 => ALONE_CHARS,
        several => SHOWN_CHARS.min((FOUND_CHARS / several).saturating_sub(BESIDE_CHARS)),
    }
}

/// Keeps as many lines as a result may hold, at least one; says how many are left out.
fn fitting(lines: &mut Vec<String>) -> usize {
    let mut chars = 0;
    let fit = lines.iter().take_while(|line| {
        chars += line.chars().count() + 1;
        chars <= FOUND_CHARS
    });
    let (fit, all) = (fit.count().max(1), lines.len());
    lines.truncate(fit);
    all - lines.len()
}

/// The beginning of a text, and how much of it is missing.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => {
            let rest = text[end..].chars().count();
            format!("{}… ({rest} more characters)", &text[..end])
        }
    }
}

/// Text that belongs to one item of a list, however many lines it has.
fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

/// The day of an instant.
fn day(instant: &str) -> &str {
    instant.get(..10).unwrap_or(instant)
}

fn internal(error: impl std::fmt::Display) -> ToolFailure {
    to_failure(Error::internal(error.to_string()))
}
