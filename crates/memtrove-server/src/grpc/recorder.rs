//! `ResponseRecorderService`: responses while they are given, for callers that lost the connection.

use super::error::GrpcError;
use super::{Calls, answer, decode, encode};
use crate::shell::Connection;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use memtrove_core::{Code, ConversationId, Error};
use memtrove_proto::v1;
use memtrove_proto::v1::RecordStatus;
use memtrove_proto::v1::response_recorder_service_server::ResponseRecorderService;
use memtrove_service::recorder::{Cancel, EndReason, Recording, RecordingReader, Replay};
use std::net::SocketAddr;
use std::sync::Arc;
use tonic::{Extensions, Request, Response, Status, Streaming};

/// Conversations that can be asked about at once.
const MOST_CHECKED: usize = 1000;

#[tonic::async_trait]
impl ResponseRecorderService for Calls {
    type ReplayStream = BoxStream<'static, Result<v1::ReplayResponse, Status>>;

    async fn record(
        &self,
        request: Request<Streaming<v1::RecordRequest>>,
    ) -> Result<Response<v1::RecordResponse>, Status> {
        let caller = self.user(&request).map_err(GrpcError)?;
        let reached_at = reached_at(request.extensions());
        let mut messages = request.into_inner();
        let first = messages.message().await?.unwrap_or_default();
        let id = decode::conversation_id(&first.conversation_id).map_err(GrpcError)?;
        match self.app.services().recorder.record(&caller, id, reached_at).await {
            Ok(recording) => record(id, recording, first, messages).await.map(Response::new),
            Err(Error { code: Code::RecorderDisabled, .. }) => {
                Ok(Response::new(ended(RecordStatus::Error, "Response recorder is not enabled")))
            }
            Err(error) => Err(GrpcError(error).into()),
        }
    }

    async fn replay(
        &self,
        request: Request<v1::ReplayRequest>,
    ) -> Result<Response<Self::ReplayStream>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = decode::conversation_id(&request.get_ref().conversation_id)?;
            let reached_at = reached_at(request.extensions());
            Ok(match self.app.services().recorder.replay(&caller, id, reached_at).await? {
                Replay::Nothing => stream::empty().boxed(),
                Replay::Elsewhere(address) => {
                    let (content, redirect_address) = (String::new(), address.to_string());
                    stream::iter([Ok(v1::ReplayResponse { content, redirect_address })]).boxed()
                }
                Replay::Here(reader) => replay_stream(reader).boxed(),
            })
        })
        .await
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRecordRequest>,
    ) -> Result<Response<v1::CancelRecordResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = decode::conversation_id(&request.get_ref().conversation_id)?;
            let reached_at = reached_at(request.extensions());
            Ok(match self.app.services().recorder.cancel(&caller, id, reached_at).await? {
                Cancel::Done => v1::CancelRecordResponse { accepted: true, redirect_address: String::new() },
                Cancel::Elsewhere(address) => {
                    v1::CancelRecordResponse { accepted: false, redirect_address: address.to_string() }
                }
            })
        })
        .await
    }

    async fn is_enabled(&self, request: Request<()>) -> Result<Response<v1::IsEnabledResponse>, Status> {
        answer(async {
            self.authenticated(&request)?;
            Ok(v1::IsEnabledResponse { enabled: self.app.services().recorder.is_enabled() })
        })
        .await
    }

    async fn check_recordings(
        &self,
        request: Request<v1::CheckRecordingsRequest>,
    ) -> Result<Response<v1::CheckRecordingsResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let ids = &request.get_ref().conversation_ids;
            if ids.len() > MOST_CHECKED {
                let problem = format!("must have at most {MOST_CHECKED} items");
                return Err(Error::invalid("conversation_ids", problem));
            }
            let ids = ids.iter();
            let ids = ids.map(|id| decode::required_id("conversation_ids", id).map(ConversationId));
            let ids = ids.collect::<Result<_, _>>()?;
            let live = self.app.services().recorder.check(&caller, ids).await?;
            Ok(v1::CheckRecordingsResponse { conversation_ids: live.into_iter().map(encode::id).collect() })
        })
        .await
    }
}

/// The address that the call came in at, by which other nodes may find this one.
fn reached_at(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<Arc<Connection>>()?.local_address()
}

/// Takes in messages until the response is complete, its agent half-closes or hangs up, or the recording must stop.
async fn record(
    id: ConversationId,
    mut recording: Recording,
    first: v1::RecordRequest,
    mut messages: Streaming<v1::RecordRequest>,
) -> Result<v1::RecordResponse, Status> {
    let mut message = first;
    loop {
        if !message.content.is_empty()
            && let Err(why) = recording.append(&message.content).await
        {
            return Ok(stopped(why));
        }
        if message.complete {
            break;
        }
        // An agent is told at once that it must stop, also while it has nothing to say.
        let next = tokio::select! {
            biased;
            why = recording.ended() => return Ok(stopped(why)),
            next = messages.message() => next?,
        };
        let Some(next) = next else { break };
        if !next.conversation_id.is_empty()
            && decode::conversation_id(&next.conversation_id).map_err(GrpcError)? != id
        {
            let problem = "must be that of the first message: a call records one response";
            return Err(GrpcError(Error::invalid("conversation_id", problem)).into());
        }
        message = next;
    }
    recording.finish().await;
    Ok(ended(RecordStatus::Success, ""))
}

fn stopped(why: EndReason) -> v1::RecordResponse {
    match why {
        EndReason::Cancelled | EndReason::Superseded => ended(RecordStatus::Cancelled, ""),
        EndReason::TooLarge { .. } | EndReason::NoRoom | EndReason::Failed | EndReason::Stopped => {
            ended(RecordStatus::Error, &why.to_string())
        }
    }
}

fn ended(status: RecordStatus, error_message: &str) -> v1::RecordResponse {
    v1::RecordResponse { status: status.into(), error_message: error_message.to_owned() }
}

/// What is recorded, as messages. A piece is read when the one before it has been sent.
fn replay_stream(reader: RecordingReader) -> impl Stream<Item = Result<v1::ReplayResponse, Status>> {
    stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(content)) => {
                Some((Ok(v1::ReplayResponse { content, redirect_address: String::new() }), Some(reader)))
            }
            Ok(None) => None,
            Err(error) => Some((Err(GrpcError(error).into()), None)),
        }
    })
}
