//! `remember`, `recall`, `forget`.

use super::events::happened_at;
use super::{Outcome, cut, day, facts, for_project, indented, read, share, share_of};
use crate::mcp::McpServer;
use crate::mcp::failure::{NO_MEMORY, to_failure};
use memtrove_core::memories::{
    AddMemory, Assertion, Layer, MemoryCaller, MemoryId, Precondition, Ranking, SearchMemories, mirror,
};
use memtrove_service::memories::Hit;
use memtrove_service::quota::CallKind;
use memtrove_wire::tools::ToolFailure;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The most characters of something to remember; what is longer is a file.
const MAX_TEXT_CHARS: usize = 8000;
const MAX_QUERY_CHARS: usize = 2000;
const DEFAULT_LIMIT: u32 = 5;

/// Remembers something, once.
pub(super) async fn remember(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"remember takes {"text": "one self-contained sentence", "happened_at": "2026-01-31T09:00:00Z"}; happened_at is optional; texts over 8000 characters belong in a file: memory_write_file."#;
    let arguments = read(arguments, &["text", "happened_at", "for_project"], takes)?;
    let text = arguments.text("text", MAX_TEXT_CHARS)?;
    let layer = if for_project(server, &arguments)? { Layer::Project } else { Layer::User };
    let identifiers = server.bound.identifiers().map_err(to_failure)?;
    let add = AddMemory { occurred_at: happened_at(&arguments)?, ..AddMemory::new(layer, identifiers, text) };
    let caller = server.memories_caller();
    let remembered = server.services.memories.remember(&caller, add).await.map_err(to_failure)?;
    let (what, id) =
        (if remembered.created { "remembered" } else { "already remembered" }, remembered.memory.id);
    Ok(format!("{what} [{id}]"))
}

/// Finds memories.
pub(super) async fn recall(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"recall takes {"query": "plain words", "limit": 5, "min_score": 0}; limit (1 to 20) and min_score (0 to 1) are optional."#;
    let arguments = read(arguments, &["query", "limit", "min_score"], takes)?;
    let threshold = share(&arguments, "min_score")?;
    let query = arguments.text("query", MAX_QUERY_CHARS)?;
    let limit = arguments.number(&["limit"], 1, 20)?.unwrap_or(DEFAULT_LIMIT);
    let search = SearchMemories {
        limit: Some(limit as usize),
        threshold,
        ranking: Ranking::Score,
        ..search(server, query)?
    };
    let (memories, caller) = (&server.services.memories, server.memories_caller());
    let found = memories.search(&caller, search).await.map_err(to_failure)?;
    if found.hits.is_empty() {
        let threshold = found.threshold;
        let advice = if threshold > 0.0 { "; other words or a lower min_score may find more" } else { "" };
        return Ok(format!("nothing found with a score of {threshold} or more{advice}"));
    }
    let chars = share_of(found.hits.len());
    let mut shown = String::from("score, memory [id, day]\n");
    for hit in &found.hits {
        let memory = &hit.memory;
        let at = memory.occurred_at.unwrap_or(memory.updated_at).to_string();
        let whose = if memory.scope.user().is_none() { ", project" } else { "" };
        // Whoever asks for a single memory wants to read all of it.
        let text = if limit == 1 { memory.content.as_str().into() } else { passage_of(hit) };
        let text = cut(&indented(&text), chars);
        // Writing to a `String` cannot fail.
        let _ = writeln!(shown, "{:.2} {text} [{}, {}{whose}]", hit.matched.score(), memory.id, day(&at));
    }
    Ok(shown.trim_end().to_owned())
}

/// What of a memory matters. That a passage is not all of it can be seen.
fn passage_of(hit: &Hit) -> Cow<'_, str> {
    match &hit.passage {
        None => hit.text().into(),
        Some(passage) => {
            let before = if passage.start > 0 { "… " } else { "" };
            let after = if passage.end < hit.memory.content.len() { " …" } else { "" };
            format!("{before}{}{after}", hit.text()).into()
        }
    }
}

/// Forgets a memory, which a fact is too, or an event with the memory that mirrors it.
pub(super) async fn forget(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"forget takes {"id": "…"} as recall, query_facts or memory_log_event showed it, or {"text": "all of its text"}."#;
    let arguments = read(arguments, &["id", "text"], takes)?;
    let id = arguments.optional_text("id", 100)?;
    let text = arguments.optional_text("text", MAX_TEXT_CHARS)?;
    let (memories, caller) = (&server.services.memories, server.memories_caller());
    let caller = &*server.charge_once(&caller, CallKind::Write).await?;
    let forgotten = match (id, text) {
        // Ids are shown in brackets.
        (Some(id), None) => forget_id(server, caller, id.trim().trim_matches(['[', ']'])).await?,
        (None, Some(text)) => {
            let words = search(server, text.clone())?;
            match memories.forget_words(caller, words).await.map_err(to_failure)?.len() {
                0 => {
                    let mut gone = 0;
                    for fact in facts::shown_as(server, caller, &text).await? {
                        gone += forget_id(server, caller, &fact.id.to_string()).await?;
                    }
                    gone
                }
                several => several,
            }
        }
        (Some(_), Some(_)) => return Err(arguments.wrong("there is both an 'id' and a 'text'".to_owned())),
        (None, None) => return Err(arguments.wrong("neither 'id' nor 'text' is given".to_owned())),
    };
    match forgotten {
        0 => Err(ToolFailure::new(
            "MEMORY_NOT_FOUND",
            "no memory, fact or event here has this id or says exactly this",
            NO_MEMORY,
        )),
        1 => Ok("forgotten".to_owned()),
        several => Ok(format!("forgotten: {several} memories")),
    }
}

/// Forgets what has this id; says how many that were.
async fn forget_id(server: &McpServer, caller: &MemoryCaller, id: &str) -> Result<usize, ToolFailure> {
    let memories = &server.services.memories;
    let mut ids = vec![MemoryId::named(id)];
    if let Ok(files) = server.files_caller() {
        ids.push(mirror::id(&files.scope, id));
    }
    let identifiers = server.bound.identifiers().map_err(to_failure)?;
    let at_any = Precondition::default();
    for id in ids {
        let mut gone = 0;
        for layer in server.bound.layers() {
            // An id leads to no other scope than those that are bound.
            let bound = Assertion { layer: Some(layer), identifiers: identifiers.clone() };
            let deleted = memories.delete(caller, id, &bound, &at_any).await.map_err(to_failure)?;
            gone += usize::from(deleted);
        }
        if gone > 0 {
            return Ok(gone);
        }
    }
    Ok(0)
}

/// A search of the memories that are bound.
fn search(server: &McpServer, query: String) -> Result<SearchMemories, ToolFailure> {
    let identifiers = server.bound.identifiers().map_err(to_failure)?;
    Ok(SearchMemories { layers: Some(server.bound.layers()), ..SearchMemories::new(identifiers, query) })
}
