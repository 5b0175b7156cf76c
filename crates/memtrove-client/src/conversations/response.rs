//! The response that is being given: all of it for a reader who comes later, and an end to it.

use crate::sse::{self, AtEnd, Event, LAST_EVENT_ID};
use crate::{Client, ConversationId, Error, Result, operations};
use futures_util::{Stream, TryStreamExt, future};
use serde::Deserialize;

/// Something that the replay of a response tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseEvent {
    /// The next piece of its text. Where a piece ends means nothing.
    Piece {
        /// The text.
        content: String,
        /// What a replay is resumed after.
        id: Option<String>,
    },
    /// Another response has begun: what was told of the one before is void.
    Restart,
    /// That was all of it.
    End {
        /// `success`, `cancelled` or `error`.
        status: String,
    },
}

impl ResponseEvent {
    fn read(event: Event) -> Result<Option<Self>> {
        #[derive(Deserialize)]
        struct Piece {
            content: String,
        }
        #[derive(Deserialize)]
        struct End {
            status: String,
        }
        let bad = |error| Error::decode(operations::REPLAY_RESPONSE.id, error, event.data.as_bytes());
        Ok(match event.name.as_str() {
            "message" => {
                let Piece { content } = serde_json::from_str(&event.data).map_err(bad)?;
                Some(Self::Piece { content, id: event.id })
            }
            "restart" => Some(Self::Restart),
            "end" => {
                let End { status } = serde_json::from_str(&event.data).map_err(bad)?;
                Some(Self::End { status })
            }
            _ => None,
        })
    }
}

impl Client {
    /// Tells the response that is being given, from its beginning on and as it goes on; also one that has ended, for a short
    /// time. If none is given, the stream is empty.
    ///
    /// A connection that breaks is replaced, and the stream goes on behind what was told. A reader who was away for longer begins
    /// with the id of the last piece they have.
    pub fn replay_response(
        &self,
        id: ConversationId,
        last_event_id: Option<String>,
    ) -> impl Stream<Item = Result<ResponseEvent>> + Send + use<> {
        let client = self.clone();
        let open = move |seen: Option<&str>| {
            client.call(&operations::REPLAY_RESPONSE, &[&id.to_string()])?.header(LAST_EVENT_ID, seen)
        };
        sse::follow(self.stream_manner(AtEnd::Resume), last_event_id, open, |event| event.name == "end")
            .try_filter_map(|event| future::ready(ResponseEvent::read(event)))
    }

    /// Cancels the response that is being given; if none is, nothing happens.
    pub async fn cancel_response(&self, id: ConversationId) -> Result<()> {
        self.call(&operations::CANCEL_RESPONSE, &[&id.to_string()])?.patiently().finish().await
    }
}
