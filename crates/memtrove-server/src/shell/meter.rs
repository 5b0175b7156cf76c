//! The request histograms, with their handles looked up once per route, method and status.

use crate::telemetry::metrics::{FILES_ROUTES, HTTP_SERVER_REQUESTS};
use http::{Method, StatusCode};
use memtrove_service::files_metrics::REQUEST_DURATION;
use metrics::Histogram;
use std::sync::OnceLock;
use std::time::Duration;

/// The label of requests that no route took, so that scanners cannot create series.
pub(super) const UNMATCHED: &str = "UNKNOWN";

/// The methods with a label of their own; all others share one.
const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];

/// The statuses whose handles are kept. Others work too, they only cost a lookup in the recorder.
const STATUSES: [u16; 23] = [
    200, 201, 202, 204, 206, 207, 302, 303, 304, 307, 400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429,
    500, 503,
];

type PerStatus = [OnceLock<Series>; STATUSES.len()];

/// The handles of one endpoint. The shell makes one per endpoint when the router is built, so reading is lock-free
/// and nothing is hashed.
#[derive(Default)]
pub(super) struct Meter {
    route: OnceLock<Box<str>>,
    per_method: [OnceLock<Box<PerStatus>>; METHODS.len()],
}

impl Meter {
    /// Adds one observation.
    pub(super) fn record(&self, route: &str, method: &Method, status: StatusCode, elapsed: Duration) {
        let method_index = METHODS.iter().position(|known| known == method);
        let status_index = STATUSES.iter().position(|known| *known == status.as_u16());
        let own_route = self.route.get_or_init(|| route.into());
        match (method_index, status_index) {
            (Some(m), Some(s)) if &**own_route == route => {
                let per_status = self.per_method[m].get_or_init(Box::default);
                per_status[s].get_or_init(|| Series::new(route, method, status)).record(elapsed);
            }
            _ => Series::new(route, method, status).record(elapsed),
        }
    }
}

/// Where answers with one status are recorded: among all requests and, where they belong to it, of the files surface.
struct Series {
    all: Histogram,
    files: Option<Histogram>,
}

impl Series {
    fn new(route: &str, method: &Method, status: StatusCode) -> Self {
        let method = if METHODS.contains(method) { method.as_str() } else { "OTHER" };
        let labels = |route_label: &'static str| {
            [
                ("method", method.to_owned()),
                (route_label, route.to_owned()),
                ("status", status.as_str().to_owned()),
            ]
        };
        Self {
            all: metrics::histogram!(HTTP_SERVER_REQUESTS, &labels("uri")),
            files: route
                .starts_with(FILES_ROUTES)
                .then(|| metrics::histogram!(REQUEST_DURATION, &labels("route"))),
        }
    }

    fn record(&self, elapsed: Duration) {
        self.all.record(elapsed);
        if let Some(files) = &self.files {
            files.record(elapsed);
        }
    }
}
