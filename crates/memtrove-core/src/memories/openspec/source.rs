//! Where knowledge comes from, in the protocol's words and in ours.

use crate::Result;
use crate::memories::Memory;
use crate::memories::members::Members;
use serde_json::{Map, Value, json};

/// The protocol's types of source, each with the type of `metadata.source` it is stored as.
const STORED_AS: [(&str, &str); 9] = [
    ("user_upload", "import"),
    ("git_repository", "knowledge_sync"),
    ("notebooklm", "import"),
    ("dust_ai", "import"),
    ("perplexity", "import"),
    ("web_scrape", "import"),
    ("api_import", "import"),
    ("agent_generated", "conversation"),
    ("custom_provider", "manual"),
];

/// The types of source, in the protocol's order.
pub const SOURCE_TYPES: [&str; 9] = {
    let mut types = [""; 9];
    let mut at = 0;
    while at < types.len() {
        types[at] = STORED_AS[at].0;
        at += 1;
    }
    types
};

/// The members of a stored source that the protocol shows under another name, or not at all.
const OURS: [&str; 4] = ["type", "reference", "origin", "identifier"];

/// The type of source that an entry shows: as it was given here, else by what `/v1` says.
pub fn source_type(metadata: &Map<String, Value>) -> &'static str {
    let source = metadata.get("source");
    let word = |name: &str| source?.get(name)?.as_str();
    let given = SOURCE_TYPES.into_iter().find(|known| word("origin") == Some(known));
    given.unwrap_or_else(|| match word("type") {
        Some("conversation" | "tool_result") => "agent_generated",
        Some("knowledge_sync") => "git_repository",
        Some("import") => "api_import",
        _ => "user_upload",
    })
}

/// The source of an entry as the protocol shows it.
pub fn shown(memory: &Memory) -> Map<String, Value> {
    let stored = memory.metadata.get("source").and_then(Value::as_object);
    let reference = stored.and_then(|source| source.get("reference")?.as_str());
    let mut shown = Map::new();
    shown.insert("type".to_owned(), json!(source_type(&memory.metadata)));
    shown.insert(
        "identifier".to_owned(),
        json!(reference.map_or_else(|| memory.id.to_string(), str::to_owned)),
    );
    let others = stored.into_iter().flatten().filter(|(name, _)| !OURS.contains(&name.as_str()));
    shown.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    shown
}

/// Makes the stored source of the one a request gives. A source that is given back as it was shown stays as it is stored,
/// because several of ours look alike there.
pub(super) fn read(entry: Members<'_>, stored: Option<&Memory>) -> Result<Option<Map<String, Value>>> {
    let Some(source) = entry.object("source", "entry.source.")? else { return Ok(None) };
    if let Some(stored) = stored.filter(|stored| shown(stored) == source.to_map()) {
        return Ok(stored.metadata.get("source").and_then(Value::as_object).cloned());
    }
    let known = |word: &str| STORED_AS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let (origin, kind) = source.required("type", source.word("type", known, &SOURCE_TYPES))?;
    let mut read = Map::from_iter([("type".to_owned(), json!(kind)), ("origin".to_owned(), json!(origin))]);
    if let Some(identifier) = source.text("identifier")? {
        read.insert("reference".to_owned(), json!(identifier));
    }
    read.extend(source.to_map().into_iter().filter(|(name, _)| !OURS.contains(&name.as_str())));
    Ok(Some(read))
}
