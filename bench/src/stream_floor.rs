//! The floor of a replay: a plain tonic server whose stream is prebuilt pieces and nothing else.

use crate::dataset::Writer;
use anyhow::Result;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use memtrove_proto::v1;
use memtrove_proto::v1::response_recorder_service_server::{
    ResponseRecorderService, ResponseRecorderServiceServer,
};
use std::sync::Arc;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// What the floor streams.
#[derive(Debug, clap::Args)]
pub struct StreamFloorOptions {
    /// Bytes of a piece.
    #[arg(long)]
    pub piece: usize,
    /// Pieces of a stream.
    #[arg(long)]
    pub pieces: usize,
}

/// The text of this many pieces, the same wherever it is made.
pub fn text(options: &StreamFloorOptions) -> String {
    // One piece after another is the same text: making up megabytes of words would take longer than measuring.
    Writer::new(11).text(options.piece).repeat(options.pieces)
}

/// Serves until it is killed.
pub fn serve(options: &StreamFloorOptions) -> Result<()> {
    let text = text(options);
    let pieces = (0..options.pieces).map(|number| text[number * options.piece..][..options.piece].to_owned());
    let floor = StreamFloor { pieces: pieces.collect() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("floor on http://{}", listener.local_addr()?);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let service = ResponseRecorderServiceServer::new(floor);
        Ok(Server::builder().add_service(service).serve_with_incoming(incoming).await?)
    })
}

struct StreamFloor {
    pieces: Arc<[String]>,
}

#[tonic::async_trait]
impl ResponseRecorderService for StreamFloor {
    type ReplayStream = BoxStream<'static, Result<v1::ReplayResponse, Status>>;

    async fn replay(
        &self,
        _request: Request<v1::ReplayRequest>,
    ) -> Result<Response<Self::ReplayStream>, Status> {
        let pieces = Arc::clone(&self.pieces);
        let message = move |number: usize| {
            Ok(v1::ReplayResponse { content: pieces[number].clone(), redirect_address: String::new() })
        };
        Ok(Response::new(stream::iter(0..self.pieces.len()).map(message).boxed()))
    }

    async fn record(
        &self,
        _request: Request<Streaming<v1::RecordRequest>>,
    ) -> Result<Response<v1::RecordResponse>, Status> {
        Err(nothing_else())
    }

    async fn cancel(
        &self,
        _request: Request<v1::CancelRecordRequest>,
    ) -> Result<Response<v1::CancelRecordResponse>, Status> {
        Err(nothing_else())
    }

    async fn is_enabled(&self, _request: Request<()>) -> Result<Response<v1::IsEnabledResponse>, Status> {
        Err(nothing_else())
    }

    async fn check_recordings(
        &self,
        _request: Request<v1::CheckRecordingsRequest>,
    ) -> Result<Response<v1::CheckRecordingsResponse>, Status> {
        Err(nothing_else())
    }
}

fn nothing_else() -> Status {
    Status::unimplemented("the floor streams, and does nothing else")
}
