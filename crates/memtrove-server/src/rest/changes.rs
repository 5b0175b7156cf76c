//! `/v1/changes`: what happened in a tenant, by the page or as a stream.

use super::App;
use super::error::ApiError;
use super::extract::{self, Authenticated, Query};
use super::reply::Ok200;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::HeaderMap;
use memtrove_core::{Error, Result as CoreResult};
use memtrove_service::changes::{ChangesPage, Follower};
use memtrove_wire as wire;
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const LAST_EVENT_ID: &str = "Last-Event-ID";
/// A stream on which nothing happens says so this often, so that nothing in between takes it for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// Only what came after this number; 0 is everything that is kept. Without it a page begins at the oldest change, and a
    /// stream at the next one.
    #[param(value_type = Option<i64>, minimum = 0)]
    after: Option<String>,
    /// The size of a page; 100 unless said otherwise. A stream has none.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the header in the OpenAPI document; the handler reads it")]
pub(super) struct FeedResumeHeader {
    /// The same as `after`, and stronger.
    #[param(rename = "Last-Event-ID", nullable = false, minimum = 0)]
    last_event_id: Option<i64>,
}

/// Tells what happened in the tenant, in order.
///
/// A page, or with `Accept: text/event-stream` a stream that goes on. Every change that was acknowledged is in the feed
/// exactly once, under a number of its own. A stream is resumed by sending the last number seen as `Last-Event-ID`; an event
/// named `gap` says that something before what follows is not kept any more. For admins, auditors and trusted clients.
#[utoipa::path(get, path = "/v1/changes", operation_id = "list_changes", tag = "changes",
    params(ChangesQuery, FeedResumeHeader),
    responses((status = 200, description = "A page, or a stream", content(
        (wire::ChangesPage = "application/json"), (ChangeEvent = "text/event-stream")))))]
pub(super) async fn list_changes(
    Authenticated(principal): Authenticated,
    Query(query): Query<ChangesQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let changes = &app.0.services.changes;
    let resumed = extract::header(&headers, LAST_EVENT_ID)?;
    let after = match sequence(LAST_EVENT_ID, resumed)? {
        Some(resumed) => Some(resumed),
        None => sequence("after", query.after)?,
    };
    let limit = extract::number("limit", query.limit)?;
    if !extract::wants_events(&headers) {
        let page = changes.page(&principal, after, limit).await?;
        return Ok(Ok200(wire_page(page)).into_response());
    }
    if limit.is_some() {
        return Err(Error::invalid("limit", "is for pages; a stream has no end").into());
    }
    let follower = changes.follow(&principal, after).await?;
    // An id without data is no event, but what the reader would resume from before it has seen the first one.
    let start = after.is_none().then(|| Event::default().id(follower.after().to_string()));
    let events = stream::iter(start).chain(events(follower)).map(Ok::<_, Infallible>);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

fn sequence(field: &str, value: Option<String>) -> CoreResult<Option<i64>> {
    match extract::number(field, value)? {
        Some(negative) if negative < 0 => Err(Error::invalid(field, "must not be negative")),
        number => Ok(number),
    }
}

fn wire_page(page: ChangesPage) -> wire::ChangesPage {
    let ChangesPage { changes, next_after, oldest, gap } = page;
    wire::ChangesPage { changes: changes.into_iter().map(Into::into).collect(), next_after, oldest, gap }
}

/// One event of the stream.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the stream in the OpenAPI document; axum writes the events")]
pub(super) struct ChangeEvent {
    /// The change's number; none with `gap`.
    id: Option<i64>,
    /// The change's kind, or `gap`.
    event: String,
    /// A `Change`, or with `gap` a `ChangesGap`.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// What a follower is told, as events. A batch is read when the one before it has been sent.
fn events(follower: Follower) -> impl Stream<Item = Event> {
    stream::unfold(follower, |mut follower| async {
        match follower.next().await {
            Ok(page) => Some((stream::iter(page_events(page?)), follower)),
            Err(error) => {
                // The reader comes back, and goes on where it was.
                tracing::warn!(%error, "a stream of changes was broken off");
                None
            }
        }
    })
    .flatten()
}

fn page_events(page: ChangesPage) -> impl Iterator<Item = Event> {
    let gap = page.gap.then(|| {
        let gap = wire::ChangesGap { oldest: page.oldest };
        Event::default().event("gap").data(json(&gap))
    });
    let changes = page.changes.into_iter().map(|change| {
        let event = Event::default().id(change.sequence.to_string()).event(change.kind.as_str());
        event.data(json(&wire::Change::from(change)))
    });
    gap.into_iter().chain(changes)
}

/// Serialising these types cannot fail: their keys are strings and nothing in them is fallible.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
