//! Where knowledge comes from, in the protocol's words and in ours.

use crate::memories::Memory;
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

/// A source in the protocol's words.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeSource {
    /// One of [`SOURCE_TYPES`].
    pub source_type: &'static str,
    /// Which one.
    pub identifier: Option<String>,
    /// Further members.
    pub further: Map<String, Value>,
}

impl KnowledgeSource {
    /// The source that an entry shows.
    pub fn of(memory: &Memory) -> Self {
        let stored = memory.metadata.get("source").and_then(Value::as_object);
        let reference = stored.and_then(|source| source.get("reference")?.as_str());
        let further = stored.into_iter().flatten().filter(|(name, _)| !OURS.contains(&name.as_str()));
        Self {
            source_type: source_type(&memory.metadata),
            identifier: Some(reference.map_or_else(|| memory.id.to_string(), str::to_owned)),
            further: further.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    /// The source to be stored for this one. One that is given back as it was shown stays as it is stored, because several of
    /// ours look alike there.
    pub fn into_stored(self, entry: Option<&Memory>) -> Option<Map<String, Value>> {
        if let Some(entry) = entry.filter(|entry| Self::of(entry) == self) {
            return entry.metadata.get("source").and_then(Value::as_object).cloned();
        }
        let (origin, kind) = STORED_AS.into_iter().find(|(name, _)| *name == self.source_type)?;
        let mut stored =
            Map::from_iter([("type".to_owned(), json!(kind)), ("origin".to_owned(), json!(origin))]);
        stored.extend(self.identifier.map(|identifier| ("reference".to_owned(), json!(identifier))));
        stored.extend(self.further.into_iter().filter(|(name, _)| !OURS.contains(&name.as_str())));
        Some(stored)
    }
}
