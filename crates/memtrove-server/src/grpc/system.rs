//! Whether the server is there: our own service, and the standard one that load balancers ask.

use super::Calls;
use crate::shell::Readiness;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use memtrove_proto::v1;
use memtrove_proto::v1::system_service_server::SystemService;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Between two looks for those who watch.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);
/// For so long what was found holds.
const FRESH: Duration = Duration::from_secs(1);
/// A store that takes longer than this to answer is not ready, whatever it answers then.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// What was found last, and when: anybody may ask as often as they like, and asking costs the store a write.
    found: Arc<Mutex<Option<(Instant, ServingStatus)>>>,
    /// What can be asked for by name; the empty name is the server.
    services: Vec<String>,
}

impl Health {
    pub(super) fn new(ready: Readiness, services: Vec<String>) -> Self {
        Self { ready, found: Arc::default(), services }
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty() || self.services.iter().any(|known| known == service)
    }

    async fn status(&self) -> ServingStatus {
        let mut found = self.found.lock().await;
        if let Some((at, status)) = *found
            && at.elapsed() < FRESH
        {
            return status;
        }
        let status = match tokio::time::timeout(PATIENCE, (self.ready)()).await {
            Ok(Ok(())) => ServingStatus::Serving,
            Ok(Err(_)) | Err(_) => ServingStatus::NotServing,
        };
        *found = Some((Instant::now(), status));
        status
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

    /// Says how it is, and then the change for the worse, which is the end: the watcher asks again, perhaps another server.
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
                if told == Some(ServingStatus::NotServing) {
                    return None;
                }
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
