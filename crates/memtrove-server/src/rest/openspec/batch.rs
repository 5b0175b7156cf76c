//! Many writes in one request, one after the other.

use super::decode::NewEntry;
use super::entries::replace;
use super::error::number;
use super::{ApiError, OpenSpecErrorBody, decode, fresh_id, respond};
use crate::rest::App;
use crate::rest::memories::Problem;
use crate::rest::memories::extract::{Called, JsonBody};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{Assertion, Code, Identifiers, MemoryCaller, MemoryId, Precondition, Rules};
use memtrove_core::{Error, Result};
use memtrove_service::memories::Memories;
use memtrove_service::quota::CallKind;
use memtrove_wire::openspec as wire;
use serde_json::Value;

/// What errors of items call the operation.
const OPERATION: &str = "openspec.batch";

/// What a batch does with each of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Update,
    Delete,
    Upsert,
}

impl Operation {
    const WORDS: [&str; 4] = ["create", "update", "delete", "upsert"];

    fn parse(word: &str) -> Option<Self> {
        let all = [Self::Create, Self::Update, Self::Delete, Self::Upsert];
        all.into_iter()
            .zip(Self::WORDS)
            .find_map(|(one, name)| name.eq_ignore_ascii_case(word).then_some(one))
    }
}

/// A batch that may be carried out.
#[derive(Debug)]
struct Batch<'a> {
    operation: Operation,
    items: &'a [Value],
    continue_on_error: bool,
}

impl<'a> Batch<'a> {
    fn read(body: &'a Value, rules: &Rules) -> Result<Self> {
        let members = Members::body(body)?;
        let operation = members.word("operation", Operation::parse, &Operation::WORDS);
        let operation = members.required("operation", operation)?;
        let items = members.required("entries", members.items("entries"))?;
        let options = members.object("options", "options.")?;
        let continue_on_error = options.map_or(Ok(false), |options| options.flag("continue_on_error"))?;
        let most = rules.limits.bulk_add;
        if items.len() > most {
            return Err(Error::too_long(Code::BatchTooLarge, most, items.len()));
        }
        Ok(Self { operation, items, continue_on_error })
    }
}

/// What became of one item: its id, and the word for it.
type ItemOutcome = (String, &'static str);

/// Creates, replaces or deletes many entries, one after the other.
#[utoipa::path(post, path = "/openspec/v1/knowledge/batch", tag = "knowledge",
    request_body = wire::KnowledgeBatchRequest,
    responses((status = 200, description = "What became of each", body = wire::KnowledgeBatch),
        (status = 422, description = "Too many", body = OpenSpecErrorBody)))]
pub(in crate::rest) async fn batch_knowledge(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let body = body.value()?;
    let batch = Batch::read(&body, memories.rules())?;
    // A batch is one call, for whom its credentials name.
    let caller = memories.charge_once(&caller, &Identifiers::default(), CallKind::Write).await?;
    let mut report = Report::default();
    for item in batch.items {
        if report.stopped {
            report.skip();
            continue;
        }
        let id = item.get("id").and_then(Value::as_str);
        report.note(id, carry_out(memories, &caller, batch.operation, item).await);
        report.stopped = !report.errors.is_empty() && !batch.continue_on_error;
    }
    Ok(respond(StatusCode::OK, &report.finish()))
}

async fn carry_out(
    memories: &Memories,
    caller: &MemoryCaller,
    operation: Operation,
    item: &Value,
) -> Result<ItemOutcome> {
    let body = Members::body(item)?;
    let id = body.text("id")?.filter(|id| !id.is_empty());
    let created = async || {
        let NewEntry { add, generate_embedding } = decode::create(body, caller)?;
        let memory = memories.create(caller, add, generate_embedding.unwrap_or(true)).await?;
        Ok((memory.id.to_string(), "created"))
    };
    let updated = async |id| {
        let memory = replace(memories, caller, MemoryId::named(id), Precondition::default(), body).await?;
        Ok((memory.id.to_string(), "updated"))
    };
    match (operation, id) {
        (Operation::Create, _) | (Operation::Upsert, None) => created().await,
        (Operation::Update | Operation::Delete, None) => Err(body.refuse("id", "is required")),
        (Operation::Update, Some(id)) => updated(id).await,
        (Operation::Upsert, Some(id)) => match updated(id).await {
            Err(Error { code: Code::MemoryNotFound, .. }) => created().await,
            outcome => outcome,
        },
        (Operation::Delete, Some(id)) => {
            decode::check_deletion(body)?;
            let (any, at_any) = (Assertion::default(), Precondition::default());
            match memories.delete(caller, MemoryId::named(id), &any, &at_any).await? {
                true => Ok((id.to_owned(), "deleted")),
                false => Err(Error::no_such_memory()),
            }
        }
    }
}

/// What became of the items so far.
#[derive(Debug, Default)]
struct Report {
    succeeded: u64,
    /// Whether a failure ended it.
    stopped: bool,
    items: Vec<wire::KnowledgeBatchItem>,
    errors: Vec<wire::KnowledgeBatchError>,
}

impl Report {
    fn note(&mut self, id: Option<&str>, outcome: Result<ItemOutcome>) {
        match outcome {
            Ok((id, status)) => {
                self.succeeded += 1;
                self.push(Some(id), status);
            }
            Err(error) => {
                let problem = Problem::from(error);
                self.errors.push(wire::KnowledgeBatchError {
                    index: self.items.len() as u64,
                    id: id.map(str::to_owned),
                    code: number(&problem, OPERATION),
                    name: problem.code.to_owned(),
                    message: problem.message,
                });
                self.push(id.map(str::to_owned), "failed");
            }
        }
    }

    fn skip(&mut self) {
        self.push(None, "skipped");
    }

    fn push(&mut self, id: Option<String>, status: &str) {
        let index = self.items.len() as u64;
        self.items.push(wire::KnowledgeBatchItem { index, id, status: status.to_owned() });
    }

    fn finish(self) -> wire::KnowledgeBatch {
        let is_failed = self.stopped || self.succeeded == 0;
        wire::KnowledgeBatch {
            operation_id: fresh_id(),
            status: if is_failed { "failed" } else { "completed" }.to_owned(),
            results: wire::KnowledgeBatchResults {
                succeeded: self.succeeded,
                failed: self.errors.len() as u64,
                errors: self.errors,
                items: self.items,
            },
        }
    }
}

#[cfg(test)]
mod tests;
