//! Whether the server is there: our own service, and the standard one that load balancers ask.

use super::Calls;
use crate::shell::Readiness;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use memloom_proto::v1;
use memloom_proto::v1::system_service_server::SystemService;
use std::time::Duration;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Between two looks for those who watch.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);
/// A store that takes longer than this to answer is not ready, whatever it answers then.
const PATIENCE: Duration = Duration::from_secs(2);

#[tonic::async_trait]
impl SystemService for Calls {
    async fn get_health(&self, _: Request<()>) -> Result<Response<v1::HealthResponse>, Status> {
        Ok(Response::new(v1::HealthResponse { status: "ok".to_owned() }))
    }
}

/// `grpc.health.v1.Health`: serving means ready, for every service alike.
#[derive(Clone)]
pub(super) struct Health {
    ready: Readiness,
    /// What can be asked for by name; the empty name is the server.
    services: Vec<String>,
}

impl Health {
    pub(super) fn new(ready: Readiness, services: Vec<String>) -> Self {
        Self { ready, services }
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty() || self.services.iter().any(|known| known == service)
    }

    async fn status(&self) -> ServingStatus {
        match tokio::time::timeout(PATIENCE, (self.ready)()).await {
            Ok(Ok(())) => ServingStatus::Serving,
            Ok(Err(_)) | Err(_) => ServingStatus::NotServing,
        }
    }
}

fn said(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl tonic_health::pb::health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.knows(&request.get_ref().service) {
            true => Ok(Response::new(said(self.status().await))),
            false => Err(Status::not_found("there is no such service")),
        }
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    /// Says how it is, and then every change.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        if !self.knows(&request.get_ref().service) {
            let unknown = stream::iter([Ok(said(ServingStatus::ServiceUnknown))]);
            return Ok(Response::new(unknown.chain(stream::pending()).boxed()));
        }
        let changes = stream::unfold((self.clone(), None), async |(health, told)| {
            loop {
                let status = health.status().await;
                if told != Some(status) {
                    return Some((Ok(said(status)), (health, Some(status))));
                }
                tokio::time::sleep(WATCH_INTERVAL).await;
            }
        });
        Ok(Response::new(changes.boxed()))
    }
}
