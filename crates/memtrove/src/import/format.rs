//! The format of an export, found by its content and not by its name.

use super::items::Shape;
use clap::ValueEnum;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;
use std::fmt;

/// How much of a file is looked at.
pub const LOOK: usize = 256 * 1024;
/// How archives of ours begin: they are compressed.
const ARCHIVE: &[u8] = b"\x28\xb5\x2f\xfd";
const ZIP: &[u8] = b"PK\x03\x04";

/// What can be brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An archive of `memtrove export`
    Archive,
    /// The data export of ChatGPT
    Chatgpt,
    /// The data export of Claude
    Claude,
    /// Memories of mem0
    Mem0,
    /// The file of the MCP reference server for memory
    Mcp,
    /// A folder of Markdown
    Markdown,
}

impl Format {
    /// Whether its records can say whose they are.
    pub fn names_users(self) -> bool {
        self == Self::Mem0
    }

    /// What stands before its name in a sentence.
    pub fn article(self) -> &'static str {
        if matches!(self, Self::Archive | Self::Mcp) { "an" } else { "a" }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "archive",
            Self::Chatgpt => "ChatGPT export",
            Self::Claude => "Claude export",
            Self::Mem0 => "mem0 export",
            Self::Mcp => "MCP memory file",
            Self::Markdown => "folder of Markdown",
        })
    }
}

/// What is said of an unknown format.
pub const KNOWN: &str = "\
what can be imported is an archive of `memtrove export`; a ChatGPT or Claude data export (the ZIP, its folder or \
conversations.json); mem0 memories as JSON; the memory.jsonl of the MCP reference server; a folder of Markdown. \
--from says which it is, where the content does not tell";

/// What the beginning of a file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Several files in one.
    Zip,
    /// A file in a format.
    Known(Format),
    /// Nothing that is known.
    Unknown,
}

/// Where lists of memories of mem0 are: in what its platform and `get_all` answer, and in what a vector store does.
const MEM0_LISTS: [&str; 7] =
    ["results[]", "memories[]", "data[]", "relations[]", "points[]", "result[]", "result.points[]"];

/// What the beginning of a file tells of it.
pub fn recognise(beginning: &[u8]) -> Seen {
    if beginning.starts_with(ZIP) {
        return Seen::Zip;
    }
    // An archive that was cut off at its very beginning is still one.
    if ARCHIVE.starts_with(beginning) || beginning.starts_with(ARCHIVE) {
        return Seen::Known(Format::Archive);
    }
    let outline = Outline::of(beginning);
    let has = |path: &str| outline.paths.contains(path);
    let in_any = |name: &str| ["", "[].", "conversations[]."].iter().any(|at| has(&format!("{at}{name}")));
    if in_any("mapping") {
        return Seen::Known(Format::Chatgpt);
    }
    let project = in_any("prompt_template") || (in_any("docs") && in_any("uuid"));
    if in_any("chat_messages") || in_any("conversations_memory") || in_any("project_memories") || project {
        return Seen::Known(Format::Claude);
    }
    let graph =
        has("entities[].entityType") || has("entities[].observations") || has("relations[].relationType");
    if graph || (has("type") && (has("entityType") || has("relationType"))) {
        return Seen::Known(Format::Mcp);
    }
    let remembers = |at: &str| has(&format!("{at}memory")) || has(&format!("{at}payload.data"));
    let is_listed = ["[]"].iter().chain(&MEM0_LISTS).any(|list| remembers(&format!("{list}.")));
    if is_listed || (has("id") && remembers("")) {
        return Seen::Known(Format::Mem0);
    }
    Seen::Unknown
}

/// How the items of a file lie that is known to be in a format.
pub fn shape(format: Format, beginning: &[u8]) -> Shape {
    let outline = Outline::of(beginning);
    if outline.is_array {
        return Shape::Array;
    }
    let has = |path: &str| outline.paths.contains(path);
    let single =
        ["mapping", "chat_messages", "conversations_memory", "project_memories", "prompt_template", "docs"];
    let memory = ["memory", "payload", "data", "text", "relationship"];
    match format {
        Format::Mcp if !has("entities") && !has("relations") => Shape::Lines,
        Format::Chatgpt | Format::Claude if single.into_iter().any(has) => alone(beginning),
        Format::Mem0 if !MEM0_LISTS.into_iter().any(has) && memory.into_iter().any(has) => alone(beginning),
        _ => Shape::Members,
    }
}

/// The shape of a file that is one item, or one after the other. With a line for each, one that is broken is only one.
fn alone(beginning: &[u8]) -> Shape {
    let text = trimmed(beginning);
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    let is_line = serde_json::from_slice::<IgnoredAny>(line).is_ok();
    if is_line && rest.trim_ascii_start().starts_with(b"{") { Shape::Lines } else { Shape::Single }
}

/// A text from where it begins.
pub fn trimmed(beginning: &[u8]) -> &[u8] {
    beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start()
}

/// The names of members near the top of a JSON text, each with the way to it: `results[].memory`. One that is a list is there
/// as `results[]`, too.
#[derive(Debug, Default)]
struct Outline {
    is_array: bool,
    paths: BTreeSet<String>,
}

/// How deep names are of interest.
const DEPTH: usize = 5;
/// How many names are enough.
const NAMES: usize = 8192;

/// Where in a JSON text something is.
enum JsonLevel {
    Array,
    /// With the last name that was seen.
    Object(String),
}

impl Outline {
    /// Looks at a text that may be cut off anywhere, or be no JSON at all.
    fn of(text: &[u8]) -> Self {
        let text = trimmed(text);
        let mut outline = Self { is_array: text.first() == Some(&b'['), ..Self::default() };
        let mut levels: Vec<JsonLevel> = Vec::new();
        let mut bytes = text.iter().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'[' => levels.push(JsonLevel::Array),
                b'{' => levels.push(JsonLevel::Object(String::new())),
                b']' | b'}' => drop(levels.pop()),
                b'"' => {
                    let Some(end) = end_of_string(&mut bytes) else { return outline };
                    let after = text[end + 1..].trim_ascii_start().strip_prefix(b":");
                    if let Some(value) = after.filter(|_| levels.len() <= DEPTH) {
                        let is_list = value.trim_ascii_start().starts_with(b"[");
                        outline.note(&mut levels, &text[at + 1..end], is_list);
                    }
                }
                _ => {}
            }
        }
        outline
    }

    fn note(&mut self, levels: &mut [JsonLevel], name: &[u8], is_list: bool) {
        let Some((JsonLevel::Object(here), above)) = levels.split_last_mut() else { return };
        *here = String::from_utf8_lossy(name).into_owned();
        let mut path = String::new();
        for level in above.iter() {
            match level {
                JsonLevel::Array => path.push_str("[]"),
                JsonLevel::Object(name) => {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(name);
                }
            }
        }
        path.push_str(if path.is_empty() { "" } else { "." });
        path.push_str(here);
        if self.paths.len() < NAMES {
            if is_list {
                self.paths.insert(format!("{path}[]"));
            }
            self.paths.insert(path);
        }
    }
}

/// The place of the quote that ends a string.
fn end_of_string<'a>(bytes: &mut impl Iterator<Item = (usize, &'a u8)>) -> Option<usize> {
    loop {
        match bytes.next()? {
            (_, b'\\') => drop(bytes.next()),
            (end, b'"') => return Some(end),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
