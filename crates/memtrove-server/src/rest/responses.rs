//! `/v1/conversations/{conversationId}/response`: a response while it is being given, over again; and cancelling it.

use super::App;
use super::error::{ApiError, ErrorBody};
use super::extract::{self, Query, Segments, User};
use super::memories::no_store;
use crate::forward::{ForwardedRequest, Whose};
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, StatusCode};
use memtrove_core::{Error, parse_uuid};
use memtrove_service::recorder::{Cancel, EndReason, RecordingReader, Replay};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const LAST_EVENT_ID: &str = "Last-Event-ID";
/// What stands for the place behind everything in the id of an event.
const END: &str = "end";
/// A stream on which nothing happens says so this often, so that nothing in between takes it for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ReplayQuery {
    /// The same as the header `Last-Event-ID`, for those who cannot set one; the header is stronger.
    last_event_id: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the header in the OpenAPI document; the handler reads it")]
pub(super) struct EventResumeHeader {
    /// The id of the last event seen: the stream goes on behind it.
    #[param(rename = "Last-Event-ID", nullable = false)]
    last_event_id: Option<String>,
}

/// One event of the stream.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the stream in the OpenAPI document; axum writes the events")]
pub(super) struct ResponseEvent {
    /// What the stream is resumed after.
    id: Option<String>,
    /// Absent with a piece of the response; `restart` when it is not the one that was resumed, so what was seen of that is
    /// void; `end` behind the last piece.
    event: Option<String>,
    /// `{"content": "…"}`: the text of the piece. Pieces follow each other without a gap; where one ends means nothing. With
    /// `restart` an empty object; with `end` `{"status": "…"}`: `success`, `cancelled` or `error`.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// A piece of a response.
#[derive(Serialize)]
struct Piece<'a> {
    content: &'a str,
}

/// Tells the response that is being given, from its beginning on and as it goes on.
///
/// Also one that has ended, for a short time. A stream is resumed by sending the last id seen as `Last-Event-ID`, which an
/// `EventSource` does by itself. 204 says that there is nothing to tell: the response is in the history, or will be.
#[utoipa::path(get, path = "/v1/conversations/{conversationId}/response", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"), ReplayQuery, EventResumeHeader),
    responses(
        (status = 200, description = "The response", content((ResponseEvent = "text/event-stream"))),
        (status = 204, description = "No response is being given, or all of it was seen"),
        (status = 502, description = "The node that records it does not answer", body = ErrorBody)))]
pub(super) async fn replay_response(
    User(caller): User,
    Segments(id): Segments<String>,
    Query(query): Query<ReplayQuery>,
    headers: HeaderMap,
    asked: ForwardedRequest,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let id = extract::conversation_id(&id)?;
    let header = extract::header(&headers, LAST_EVENT_ID)?.filter(|last| !last.is_empty());
    let last = header.or(extract::given("lastEventId", query.last_event_id)?);
    let recorder = &app.0.services.recorder;
    let look = || async {
        Ok(match recorder.replay(&caller, id, asked.reached_at()).await? {
            Replay::Nothing => Whose::Ours(StatusCode::NO_CONTENT.into_response()),
            Replay::Here(reader) => Whose::Ours(event_stream(reader, last.as_deref())),
            Replay::Elsewhere(address) => Whose::Theirs(address),
        })
    };
    Ok(no_store(app.0.peers.answer(&asked, look).await?))
}

/// Cancels the response that is being given.
///
/// Returns when its recording is closed. What was said so far stays replayable for a short time. If none is being given,
/// nothing happens.
#[utoipa::path(delete, path = "/v1/conversations/{conversationId}/response", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation")),
    responses(
        (status = 200, description = "No response is being given any more"),
        (status = 502, description = "The node that records it does not answer", body = ErrorBody)))]
pub(super) async fn cancel_response(
    User(caller): User,
    Segments(id): Segments<String>,
    asked: ForwardedRequest,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let id = extract::conversation_id(&id)?;
    let recorder = &app.0.services.recorder;
    let look = || async {
        Ok(match recorder.cancel(&caller, id, asked.reached_at()).await? {
            Cancel::Done => Whose::Ours(StatusCode::OK.into_response()),
            Cancel::Elsewhere(address) => Whose::Theirs(address),
        })
    };
    Ok(app.0.peers.answer(&asked, look).await?)
}

/// A recording as a stream, behind the event with this id if it is one of it.
fn event_stream(mut reader: RecordingReader, last: Option<&str>) -> Response {
    let restart = match last.map(|last| ResumePoint::of(last, &mut reader)) {
        Some(ResumePoint::Behind) => return StatusCode::NO_CONTENT.into_response(),
        Some(ResumePoint::Elsewhere) => Some(Event::default().event("restart").data("{}")),
        Some(ResumePoint::Found) | None => None,
    };
    let events = stream::iter(restart.map(Ok)).chain(events(reader));
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
}

/// Where the id of an event leads.
enum ResumePoint {
    /// Into the recording, whose reader is there now.
    Found,
    /// Behind all of it.
    Behind,
    /// To another recording, or nowhere.
    Elsewhere,
}

impl ResumePoint {
    fn of(last: &str, reader: &mut RecordingReader) -> Self {
        let Some((recording, place)) = last.split_once(':') else { return Self::Elsewhere };
        if parse_uuid(recording) != Some(reader.recording_id()) {
            return Self::Elsewhere;
        }
        match place.parse() {
            _ if place == END => Self::Behind,
            Ok(position) if reader.skip_to(position) => Self::Found,
            Ok(_) | Err(_) => Self::Elsewhere,
        }
    }
}

/// What is left of a recording, as events. A piece is read when the one before it has been sent.
fn events(reader: RecordingReader) -> impl Stream<Item = Result<Event, Error>> {
    stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        let recording = reader.recording_id();
        match reader.next().await {
            Ok(Some(content)) => {
                let event = Event::default().id(format!("{recording}:{}", reader.position()));
                Some((Ok(event.data(json(&Piece { content: &content }))), Some(reader)))
            }
            // With data, without which a browser would not tell of it.
            Ok(None) => {
                let event = Event::default().id(format!("{recording}:{END}")).event(END);
                let event = event.data(format!(r#"{{"status":"{}"}}"#, status(reader.ended())));
                Some((Ok(event), None))
            }
            Err(error) => {
                // The connection breaks off, so that the reader comes back and goes on where it was.
                tracing::warn!(%error, "the replay of a response was broken off");
                Some((Err(error), None))
            }
        }
    })
}

/// How a response ended, in the words of `RecordStatus`.
fn status(ended: Option<EndReason>) -> &'static str {
    match ended {
        None => "success",
        Some(EndReason::Cancelled | EndReason::Superseded) => "cancelled",
        Some(EndReason::TooLarge { .. } | EndReason::NoRoom | EndReason::Failed | EndReason::Stopped) => {
            "error"
        }
    }
}

/// Serialising a piece cannot fail: it is a text.
fn json(piece: &Piece<'_>) -> String {
    serde_json::to_string(piece).unwrap_or_default()
}
