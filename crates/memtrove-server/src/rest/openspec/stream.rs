//! What happens to entries, as it happens; or the results of a query, one by one.

use super::decode::identifier_name;
use super::query::{ParsedQuery, Shown};
use super::{ApiError, decode, encode, fresh_id, provided};
use crate::rest::App;
use crate::rest::extract::header;
use crate::rest::memories::decode::Params;
use crate::rest::memories::extract::{Called, Parameters};
use crate::rest::memories::no_store;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use memtrove_core::files::body;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{Code, Identifier, Memory, MemoryCaller};
use memtrove_core::{Error, Result};
use memtrove_service::memories::journal::Milestone;
use memtrove_service::memories::stream::{Event as Happened, Update};
use memtrove_service::memories::{Memories, SearchResults, StreamRequest, Streamed, Subscription};
use memtrove_wire::openspec as wire;
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const LAST_EVENT_ID: &str = "Last-Event-ID";
/// A stream on which nothing happens says so this often, so that nothing in between takes it for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a stream tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Which entries there are, and how they change.
    Updates,
    /// The results of a query.
    Query,
    /// What the life of entries comes to.
    Notifications,
}

impl Subject {
    const WORDS: [&str; 3] = ["updates", "query", "notifications"];

    fn read(params: Params<'_>) -> Result<Self> {
        let Some(word) = params.one("type")? else { return Ok(Self::Updates) };
        let all = [Self::Updates, Self::Query, Self::Notifications].into_iter().zip(Self::WORDS);
        let known = all.into_iter().find(|(_, name)| name.eq_ignore_ascii_case(word));
        known
            .map(|(subject, _)| subject)
            .ok_or_else(|| Error::field("type", format!("must be one of {}", Self::WORDS.join(", "))))
    }
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes parameters in the OpenAPI document; the handler reads them")]
pub(in crate::rest) struct StreamParameters {
    /// `updates` unless said otherwise, `query` or `notifications`.
    #[param(rename = "type", nullable = false)]
    subject: Option<String>,
    /// `sse`; nothing else is offered.
    #[param(nullable = false)]
    format: Option<String>,
    /// Only of these layer types: a list with commas.
    #[param(nullable = false)]
    types: Option<String>,
    /// Only with at least one of these tags: a list with commas.
    #[param(nullable = false)]
    tags: Option<String>,
    /// With `type=query`: a text, or the body of a query as JSON.
    #[param(nullable = false)]
    query: Option<String>,
    /// The agent.
    #[param(max_length = 255, nullable = false)]
    agent_id: Option<String>,
    /// The user; the authenticated one unless said otherwise.
    #[param(max_length = 255, nullable = false)]
    user_id: Option<String>,
    /// The session.
    #[param(max_length = 255, nullable = false)]
    session_id: Option<String>,
    /// The project.
    #[param(max_length = 255, nullable = false)]
    project_id: Option<String>,
    /// The team.
    #[param(max_length = 255, nullable = false)]
    team_id: Option<String>,
    /// The organisation.
    #[param(max_length = 255, nullable = false)]
    org_id: Option<String>,
    /// The tenant; no other may be named.
    #[param(max_length = 255, nullable = false)]
    company_id: Option<String>,
}

/// One event of the stream.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the stream in the OpenAPI document; axum writes the events")]
pub(in crate::rest) struct KnowledgeEvent {
    /// What the stream is resumed after: grows along the stream, and counts nothing.
    id: Option<i64>,
    /// `ready` or `reset`; `created`, `updated`, `deleted`; `decayed`, `archived`, `restored`, `promoted`, `consolidated`,
    /// `expired`; or `result`.
    event: String,
    /// JSON, as the event's name has it.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// Tells what happens to entries, or the results of a query.
///
/// The first event is `ready`: whatever is acknowledged after it will be told. A stream is resumed by sending the last id seen
/// as `Last-Event-ID`; `reset` says that some of what happened since is not kept any more, or that the id is of an older
/// version. Ids grow along a stream and say nothing of what others write. Whoever reads too slowly is disconnected.
#[utoipa::path(get, path = "/openspec/v1/knowledge/stream", operation_id = "stream_knowledge", tag = "knowledge",
    params(StreamParameters,
        ("Last-Event-ID" = Option<i64>, Header, description = "The last id seen", minimum = 0)),
    responses((status = 200, description = "The stream", content((KnowledgeEvent = "text/event-stream")))))]
pub(in crate::rest) async fn stream_knowledge(
    Called(caller): Called,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let params = Params::new(&params)?;
    let subject = Subject::read(params)?;
    check_format(params)?;
    let since = last_event_id(&headers)?;
    if subject == Subject::Query {
        // All of it is there, so it is one answer of a known length, which counts among those that are not read yet.
        let results = query(memories, &caller, params).await?;
        let kind = HeaderValue::from_static("text/event-stream");
        return Ok(provided(no_store(([(CONTENT_TYPE, kind)], results).into_response())));
    }
    let layer = layer(params)?;
    let reach = decode::reach(Some(Members::within(&layer, "")), memories.rules(), &caller)?;
    let viewer = caller.viewer(&reach.identifiers);
    let (scopes, tags) = (reach.scopes.clone(), list(params, "tags")?);
    let admits = Box::new(move |memory: &Memory| reach.covers(memory) && is_tagged(memory, &tags));
    let milestones = subject == Subject::Notifications;
    let request = StreamRequest { scopes, viewer, admits, milestones };
    let subscription = memories.subscribe(&caller, request, since).await?;
    Ok(sent(events(subscription, subject, since.is_some())))
}

fn sent(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    provided(no_store(events.into_response()))
}

fn check_format(params: Params<'_>) -> Result<()> {
    match params.one("format")? {
        None => Ok(()),
        Some(word) if word.eq_ignore_ascii_case("sse") => Ok(()),
        Some(word) if word.eq_ignore_ascii_case("websocket") => {
            Err(Error::new(Code::NotImplemented, "there are no web sockets here: use format=sse"))
        }
        Some(_) => Err(Error::field("format", "must be sse")),
    }
}

/// The position a reader was told last.
fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>> {
    // What a browser sends that has seen no id yet.
    let Some(text) = header(headers, LAST_EVENT_ID)?.filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        _ => Err(Error::field(LAST_EVENT_ID, "must be an id that was sent before")),
    }
}

/// The layer object that the parameters are.
fn layer(params: Params<'_>) -> Result<Map<String, Value>> {
    let mut layer = params.members(&Identifier::ALL.map(identifier_name), &[])?;
    let types = list(params, "types")?;
    if !types.is_empty() {
        layer.insert("types".to_owned(), types.into());
    }
    Ok(layer)
}

/// The items of a list with commas.
fn list(params: Params<'_>, name: &str) -> Result<Vec<String>> {
    let items = params.one(name)?.unwrap_or_default().split(',').map(str::trim);
    Ok(items.filter(|item| !item.is_empty()).map(str::to_owned).collect())
}

fn is_tagged(memory: &Memory, wanted: &[String]) -> bool {
    let tags = memory.metadata.get("tags").and_then(Value::as_array);
    let mut tags = tags.into_iter().flatten().filter_map(Value::as_str);
    wanted.is_empty() || tags.any(|tag| wanted.iter().any(|wanted| wanted == tag))
}

/// The results of the query in the parameters: a text, or a whole body, whose own layer is stronger.
async fn query(memories: &Memories, caller: &MemoryCaller, params: Params<'_>) -> Result<String> {
    let text = params.one("query")?.unwrap_or_default();
    let mut given = match text.trim_start().starts_with('{') {
        true => body::object(text.as_bytes())?,
        false => Map::from_iter([("query".to_owned(), text.into())]),
    };
    let layer = layer(params)?;
    if !layer.is_empty() {
        given.entry("layer").or_insert(layer.into());
    }
    let tags = list(params, "tags")?;
    if !tags.is_empty() {
        given.entry("filters").or_insert(json!({"tags": tags}));
    }
    let given = Value::Object(given);
    let asked = ParsedQuery::read(Members::body(&given)?, memories.rules(), caller)?;
    let shown = asked.shown;
    Ok(results(&memories.query(caller, asked.query).await?, shown))
}

/// One event per result, of which the last says so; one without a result if there is none.
fn results(answer: &SearchResults, shown: Shown) -> String {
    let query_id = fresh_id();
    let mut results: Vec<_> = answer.hits.iter().map(|hit| Some(shown.result(hit))).collect();
    if results.is_empty() {
        results.push(None);
    }
    let last = results.len() - 1;
    let event = |(number, result): (usize, Option<wire::KnowledgeResult>)| {
        let data = json!({"query_id": query_id, "result": result, "is_final": number == last});
        // Compact JSON has no line breaks.
        format!("event: result\ndata: {data}\n\n")
    };
    results.into_iter().enumerate().map(event).collect()
}

/// What a subscription tells, as events; it ends with the subscription.
fn events(subscription: Subscription, subject: Subject, resumed: bool) -> impl Stream<Item = Event> {
    let teller = Teller { subject, resumed, newest: 0 };
    stream::unfold((subscription, teller), |(mut subscription, mut teller)| async {
        let streamed = subscription.next().await?;
        Some((teller.tell(&streamed), (subscription, teller)))
    })
}

struct Teller {
    subject: Subject,
    /// Whether the reader has seen events before these.
    resumed: bool,
    /// Where it began.
    newest: i64,
}

impl Teller {
    fn tell(&mut self, streamed: &Streamed) -> Event {
        match streamed {
            Streamed::Ready(newest) => {
                self.newest = *newest;
                // A text: many readers of JSON round numbers of this length.
                let data = json!({"stream_id": fresh_id(), "last_event_id": newest.to_string()});
                let event = Event::default().event("ready").data(data.to_string());
                // A reader that breaks off before anything happens goes on from here; one that resumes is still behind.
                if self.resumed { event } else { event.id(newest.to_string()) }
            }
            // Whatever is not kept cannot be told the next time either.
            Streamed::Reset => {
                let data = json!({"last_event_id": self.newest.to_string()});
                Event::default().event("reset").id(self.newest.to_string()).data(data.to_string())
            }
            Streamed::Happened(number, happened) => {
                let (name, data) = match (self.subject, &happened.milestone) {
                    (Subject::Notifications, Some(milestone)) => {
                        (milestone.name, notification(happened, milestone))
                    }
                    _ => (happened.update.as_str(), update(happened)),
                };
                Event::default().id(number.to_string()).event(name).data(data.to_string())
            }
        }
    }
}

fn notification(happened: &Happened, milestone: &Milestone) -> Value {
    json!({
        "type": milestone.name,
        "entry_id": happened.memory.id.to_string(),
        "timestamp": happened.at,
        "details": milestone.details,
    })
}

/// An entry as it is now; of one that is gone, where it was.
fn update(happened: &Happened) -> Value {
    let memory = &happened.memory;
    let entry = match happened.update {
        Update::Created | Update::Updated => json!(encode::text_entry(memory)),
        Update::Deleted => json!({"id": memory.id.to_string(), "layer": encode::layer(memory)}),
    };
    json!({"type": happened.update.as_str(), "entry": entry, "timestamp": happened.at})
}

#[cfg(test)]
mod tests;
