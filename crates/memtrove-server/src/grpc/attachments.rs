//! `AttachmentsService`: files that belong to entries.

use super::error::GrpcError;
use super::{Calls, answer, decode};
use crate::rest::attachments::uploads::UploadPace;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use memtrove_core::attachments::{Attachment, Status as Arrival};
use memtrove_core::{AttachmentId, Error, Resource, Result as CoreResult, parse_uuid};
use memtrove_proto::v1;
use memtrove_proto::v1::attachments_service_server::AttachmentsService;
use memtrove_proto::v1::download_attachment_response::Payload as Sent;
use memtrove_proto::v1::upload_attachment_request::Payload;
use memtrove_service::attachments::NewAttachment;
use tonic::{Request, Response, Status, Streaming};

/// How many bytes of a file go into one message.
const PIECE: usize = 64 * 1024;

#[tonic::async_trait]
impl AttachmentsService for Calls {
    async fn upload_attachment(
        &self,
        request: Request<Streaming<v1::UploadAttachmentRequest>>,
    ) -> Result<Response<v1::UploadAttachmentResponse>, Status> {
        let caller = self.user(&request).map_err(GrpcError)?;
        let _place = self.app.uploads().admit(&caller).map_err(GrpcError)?;
        let (mut messages, mut pace) = (request.into_inner(), UploadPace::default());
        let Some(Payload::Metadata(metadata)) = next(&mut messages, &mut pace).await? else {
            let error = Error::invalid("metadata", "must be in the first message, before any chunk");
            return Err(GrpcError(error).into());
        };
        let new = described(metadata).map_err(GrpcError)?;
        let attachments = &self.app.services().attachments;
        let mut upload = attachments.begin(&caller, new).await.map_err(GrpcError)?;
        while let Some(payload) = next(&mut messages, &mut pace).await? {
            let Payload::Chunk(bytes) = payload else {
                let error = Error::invalid("metadata", "was sent more than once: a call uploads one file");
                return Err(GrpcError(error).into());
            };
            pace.came(bytes.len());
            upload.write(bytes).await.map_err(GrpcError)?;
        }
        answer(async { Ok(uploaded(upload.finish().await?)) }).await
    }

    async fn get_attachment(
        &self,
        request: Request<v1::GetAttachmentRequest>,
    ) -> Result<Response<v1::AttachmentInfo>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = attachment_id(&request.get_ref().id)?;
            Ok(info(self.app.services().attachments.get(&caller, id).await?))
        })
        .await
    }

    type DownloadAttachmentStream = BoxStream<'static, Result<v1::DownloadAttachmentResponse, Status>>;

    async fn download_attachment(
        &self,
        request: Request<v1::DownloadAttachmentRequest>,
    ) -> Result<Response<Self::DownloadAttachmentStream>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = attachment_id(&request.get_ref().id)?;
            let attachments = &self.app.services().attachments;
            let attachment = attachments.get(&caller, id).await?;
            attachment.require_readable()?;
            if attachment.status == Arrival::Downloading {
                // Over REST its source answers meanwhile; a stream of bytes cannot lead anywhere else.
                return Err(Error::UPLOAD_IN_PROGRESS);
            }
            let bytes = attachments.read(&attachment, None).await?;
            let messages = stream::iter([Ok(Sent::Metadata(info(attachment)))])
                .chain(pieces(bytes).map(|piece| piece.map(Sent::Chunk)));
            let messages = messages.map(|payload| match payload {
                Ok(payload) => Ok(v1::DownloadAttachmentResponse { payload: Some(payload) }),
                Err(error) => Err(GrpcError(error).into()),
            });
            Ok(messages.boxed())
        })
        .await
    }
}

/// What the next message of an upload carries, if there is one.
async fn next(
    messages: &mut Streaming<v1::UploadAttachmentRequest>,
    pace: &mut UploadPace,
) -> Result<Option<Payload>, Status> {
    match pace.wait(messages.message()).await.map_err(GrpcError)?? {
        None => Ok(None),
        Some(v1::UploadAttachmentRequest { payload: Some(payload) }) => Ok(Some(payload)),
        Some(v1::UploadAttachmentRequest { payload: None }) => {
            let error = Error::invalid("payload", "is required: a message carries metadata or a chunk");
            Err(GrpcError(error).into())
        }
    }
}

fn described(metadata: v1::UploadMetadata) -> CoreResult<NewAttachment> {
    Ok(NewAttachment {
        filename: decode::given("filename", metadata.filename)?,
        content_type: decode::given("content_type", metadata.content_type)?,
        expires_in: decode::given("expires_in", metadata.expires_in)?,
    })
}

/// An attachment's id. What is no UUID names nothing, as in a path.
fn attachment_id(text: &str) -> CoreResult<AttachmentId> {
    if text.is_empty() {
        return Err(Error::invalid("id", "is required"));
    }
    parse_uuid(text).map(AttachmentId).ok_or_else(|| Error::not_found(Resource::Attachment, text))
}

fn uploaded(attachment: Attachment) -> v1::UploadAttachmentResponse {
    let status = attachment.status.as_str().to_owned();
    let v1::AttachmentInfo { id, href, content_type, filename, size, sha256, expires_at, created_at: _ } =
        info(attachment);
    v1::UploadAttachmentResponse { id, href, content_type, filename, size, sha256, expires_at, status }
}

fn info(attachment: Attachment) -> v1::AttachmentInfo {
    v1::AttachmentInfo {
        id: attachment.id.to_string(),
        href: attachment.href(),
        content_type: attachment.content_type,
        filename: attachment.filename.unwrap_or_default(),
        size: attachment.size.and_then(|size| i64::try_from(size).ok()).unwrap_or_default(),
        sha256: attachment.sha256.unwrap_or_default(),
        expires_at: attachment.expires_at.map(|at| at.to_string()).unwrap_or_default(),
        created_at: attachment.created_at.to_string(),
    }
}

/// The same bytes in pieces of one size, the last one excepted. One is cut when the one before it has been sent.
fn pieces(bytes: BoxStream<'static, CoreResult<Bytes>>) -> impl Stream<Item = CoreResult<Bytes>> {
    stream::unfold((Some(bytes), BytesMut::new()), |(mut bytes, mut held)| async move {
        while held.len() < PIECE {
            match bytes.as_mut()?.next().await {
                Some(Ok(more)) => held.extend_from_slice(&more),
                Some(Err(error)) => return Some((Err(error), (None, held))),
                None if held.is_empty() => return None,
                None => return Some((Ok(held.split().freeze()), (None, held))),
            }
        }
        Some((Ok(held.split_to(PIECE).freeze()), (bytes, held)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn cut(given: Vec<CoreResult<Bytes>>) -> Vec<CoreResult<Bytes>> {
        pieces(stream::iter(given).boxed()).collect().await
    }

    #[tokio::test]
    async fn bytes_are_cut_into_pieces_of_one_size() {
        for sizes in [
            vec![],
            vec![1],
            vec![PIECE],
            vec![PIECE - 1, 2],
            vec![3 * PIECE + 5],
            vec![1; 100],
            vec![0, 7, 0],
        ] {
            let all: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|at| at as u8).collect();
            let mut rest = Bytes::from(all.clone());
            let given = sizes.iter().map(|size| Ok(rest.split_to(*size))).collect();

            let got: Vec<Bytes> = cut(given).await.into_iter().map(Result::unwrap).collect();

            assert_eq!(got.concat(), all, "{sizes:?}");
            let whole = got.len().saturating_sub(1);
            assert!(got[..whole].iter().all(|piece| piece.len() == PIECE), "{sizes:?}");
            assert!(got.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE), "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn what_goes_wrong_is_the_last_that_is_said() {
        let broken = || Err(Error::internal("broken"));
        let got =
            cut(vec![Ok(Bytes::from(vec![0; PIECE + 1])), broken(), Ok(Bytes::from_static(b"more"))]).await;
        assert_eq!(got.len(), 2);
        assert!(got[0].is_ok() && got[1] == broken());
    }
}
