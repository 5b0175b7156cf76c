//! The gRPC API: one handler per call, each of them decode, one call of the service, encode.
//!
//! It is the conversations surface over another transport, on the same port and through the same shell. The contract is
//! `proto/`; its messages are `memtrove_proto::v1`. To add a call: write it into the contract, then its handler here.

mod attachments;
mod conversations;
pub(crate) mod deadline;
mod decode;
mod encode;
mod entries;
pub mod error;
pub(crate) mod framing;
mod memberships;
mod recorder;
mod search;
mod system;
mod transfers;

use crate::rest::App;
use crate::shell::Readiness;
use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use error::GrpcError;
use framing::Gate;
use memtrove_core::identity::{Caller, Principal};
use memtrove_core::{Error, Result};
use memtrove_proto::v1::attachments_service_server::AttachmentsServiceServer;
use memtrove_proto::v1::conversation_memberships_service_server::ConversationMembershipsServiceServer;
use memtrove_proto::v1::conversations_service_server::ConversationsServiceServer;
use memtrove_proto::v1::entries_service_server::EntriesServiceServer;
use memtrove_proto::v1::ownership_transfers_service_server::OwnershipTransfersServiceServer;
use memtrove_proto::v1::response_recorder_service_server::ResponseRecorderServiceServer;
use memtrove_proto::v1::search_service_server::SearchServiceServer;
use memtrove_proto::v1::system_service_server::SystemServiceServer;
use prost::Message;
use prost_types::FileDescriptorSet;
use std::convert::Infallible;
use std::sync::Arc;
use system::Health;
use tonic::server::NamedService;
use tonic::{Response, Status};
use tonic_health::pb::health_server::HealthServer;
use tower::Service;

/// How the paths of calls begin.
const PREFIXES: [&str; 2] = ["/memory.v1.", "/grpc."];

/// Whether a path is that of a call.
pub fn is_call(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

/// What every handler works with.
#[derive(Clone)]
pub(crate) struct Calls {
    app: App,
}

impl Calls {
    /// The principal that the gate authenticated; for calls of indexers.
    fn authenticated<T>(&self, request: &tonic::Request<T>) -> Result<Principal> {
        request.extensions().get().cloned().ok_or(Error::UNAUTHORIZED)
    }

    /// A user, acting directly or through an agent; for everything else.
    fn user<T>(&self, request: &tonic::Request<T>) -> Result<Caller> {
        self.authenticated(request)?.into_caller()
    }
}

/// The end of a handler: what it found, or the status that says why not.
async fn answer<T>(work: impl Future<Output = Result<T>>) -> Result<Response<T>, Status> {
    work.await.map(Response::new).map_err(|error| GrpcError(error).into())
}

/// The calls of the API, on an app. A message may have `message_limit` bytes; `ready` is what the health service says.
pub fn router(app: App, message_limit: usize, ready: Readiness) -> Result<Router> {
    let gate = Gate { app: app.clone(), max_bytes: message_limit as u64 };
    let calls = Arc::new(Calls { app });
    let unreadable = |error: &dyn std::fmt::Display| Error::internal(format!("no reflection: {error}"));
    let described = [
        memtrove_proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let contracts: Result<Vec<FileDescriptorSet>> = described
        .into_iter()
        .map(|encoded| FileDescriptorSet::decode(encoded).map_err(|error| unreadable(&error)))
        .collect();
    let mut routes = Routes { router: Router::new(), contracts: contracts? };
    macro_rules! serve {
        ($($server:ident)*) => {$(
            routes.add(
                $server::from_arc(calls.clone())
                    .max_decoding_message_size(message_limit)
                    .max_encoding_message_size(usize::MAX),
            );
        )*};
    }
    serve!(SystemServiceServer ConversationsServiceServer ConversationMembershipsServiceServer
        OwnershipTransfersServiceServer EntriesServiceServer SearchServiceServer ResponseRecorderServiceServer
        AttachmentsServiceServer);

    let services: Vec<String> = routes.services().collect();
    let reflection = || {
        let builder = tonic_reflection::server::Builder::configure();
        described
            .into_iter()
            .take(2)
            .fold(builder, |builder, encoded| builder.register_encoded_file_descriptor_set(encoded))
    };
    routes.add(HealthServer::new(Health::new(ready, services)));
    routes.add(reflection().build_v1().map_err(|error| unreadable(&error))?);
    routes.add(reflection().build_v1alpha().map_err(|error| unreadable(&error))?);
    Ok(routes.router.route_layer(from_fn_with_state(gate, framing::check)))
}

/// A route per call, so that each is counted and timed under its own name.
struct Routes {
    router: Router,
    contracts: Vec<FileDescriptorSet>,
}

impl Routes {
    fn add<S>(&mut self, service: S)
    where
        S: Service<Request, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        let calls =
            self.calls().filter(|(name, _)| name == S::NAME).map(|(name, call)| format!("/{name}/{call}"));
        let paths: Vec<String> = calls.collect();
        for path in paths {
            self.router = std::mem::take(&mut self.router).route_service(&path, service.clone());
        }
    }

    /// Every call of every contract: its service's full name and its own.
    fn calls(&self) -> impl Iterator<Item = (String, &str)> {
        self.contracts.iter().flat_map(|contract| &contract.file).flat_map(|file| {
            file.service.iter().flat_map(|service| {
                let name = format!("{}.{}", file.package(), service.name());
                service.method.iter().map(move |method| (name.clone(), method.name()))
            })
        })
    }

    /// The services of our own contract.
    fn services(&self) -> impl Iterator<Item = String> {
        let own = self
            .contracts
            .iter()
            .flat_map(|contract| &contract.file)
            .filter(|file| file.package() == "memory.v1");
        own.flat_map(|file| {
            file.service.iter().map(|service| format!("{}.{}", file.package(), service.name()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_of_the_contract_is_treated_as_one() {
        let contract = FileDescriptorSet::decode(memtrove_proto::DESCRIPTORS).unwrap();
        for file in &contract.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let streams = method.client_streaming() || method.server_streaming();
                    assert_eq!(crate::STREAMED_ROUTES.contains(&path.as_str()), streams, "{path}");
                    assert!(is_call(&path), "{path}");
                }
            }
        }
    }
}
