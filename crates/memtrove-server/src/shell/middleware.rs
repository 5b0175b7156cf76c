//! The one middleware: everything that surrounds a handler, in one pass.

use super::access::Noted;
use super::bodies::{Bodies, Share, Watched};
use super::body_limit::{self, Overrun};
use super::meter::{Meter, UNMATCHED};
use super::request_id::{self, X_REQUEST_ID};
use super::{ShellConfig, compression};
use crate::auth::loopback;
use crate::grpc::deadline;
use crate::grpc::error::over_rest;
use crate::rest::operation;
use crate::rest::surface::Surface;
use crate::telemetry::panic_text;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use memtrove_core::Error;
use opentelemetry::propagation::Extractor;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;
use tower::{Layer, Service};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Puts [`Shell`] around every endpoint of a router, each with a meter of its own.
#[derive(Clone)]
pub(super) struct ShellLayer {
    settings: Settings,
    bodies: Bodies,
}

#[derive(Clone, Copy)]
struct Settings {
    body_limit: u64,
    files_body_limit: u64,
    memories_body_limit: u64,
    request_timeout: Duration,
    patient_routes: &'static [&'static str],
    streamed_routes: &'static [&'static str],
    compression: bool,
    loopback_names_only: bool,
}

impl ShellLayer {
    pub(super) fn new(config: &ShellConfig) -> Self {
        let settings = Settings {
            body_limit: config.body_limit,
            files_body_limit: config.files_body_limit,
            memories_body_limit: config.memories_body_limit,
            request_timeout: config.request_timeout,
            patient_routes: config.patient_routes,
            streamed_routes: config.streamed_routes,
            compression: config.compression,
            loopback_names_only: config.loopback_names_only,
        };
        Self { settings, bodies: Bodies::new(config.bodies_limit) }
    }
}

impl<S> Layer<S> for ShellLayer {
    type Service = Shell<S>;

    fn layer(&self, inner: S) -> Shell<S> {
        Shell { inner, settings: self.settings, bodies: self.bodies.clone(), meter: Arc::default() }
    }
}

/// One endpoint in its shell.
#[derive(Clone)]
pub(super) struct Shell<S> {
    inner: S,
    settings: Settings,
    bodies: Bodies,
    meter: Arc<Meter>,
}

impl<S> Service<Request> for Shell<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Unpin + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let started = Instant::now();
        let is_called_by_name =
            !self.settings.loopback_names_only || loopback::is_called(request.uri(), request.headers());
        let headers = request.headers();
        let surface = Surface::of(request.uri().path());
        let id = request_id::accept_or_generate(headers.get(X_REQUEST_ID), surface);
        let encoding = if self.settings.compression { compression::wanted(headers) } else { None };
        let method = request.method().clone();
        let route = request.extensions().get::<MatchedPath>().cloned();
        let span = span(&method, route.as_ref(), &id, headers);

        let is_one_of =
            |routes: &[&str]| route.as_ref().is_some_and(|route| routes.contains(&route.as_str()));
        let streamed = is_one_of(self.settings.streamed_routes);
        let unhurried = streamed || is_one_of(self.settings.patient_routes);
        let deadline = if surface == Surface::Grpc { deadline::of(headers) } else { None };
        let time_limit = match (deadline, unhurried) {
            (deadline, true) => deadline,
            (deadline, false) => Some(self.settings.request_timeout.min(deadline.unwrap_or(Duration::MAX))),
        };
        let ends = if streamed { deadline } else { None };
        let ends = ends.and_then(|deadline| tokio::time::Instant::now().checked_add(deadline));
        let body_limit = match surface {
            Surface::Conversations | Surface::Grpc | Surface::Mcp => self.settings.body_limit,
            Surface::Files => self.settings.files_body_limit,
            Surface::Memories | Surface::OpenSpec | Surface::Mem0 => self.settings.memories_body_limit,
        };
        let noted = (surface == Surface::Files).then(|| {
            let noted = Noted::default();
            request.extensions_mut().insert(noted.clone());
            (noted, request.uri().path().to_owned())
        });
        let Admitted { refusal, overrun, bodies } = if is_called_by_name {
            self.admit(&mut request, surface, streamed, body_limit)
        } else {
            Admitted { refusal: Some(loopback::refusal()), ..Admitted::default() }
        };
        let handler = match refusal {
            Some(error) => Handler::Refused(Some(error)),
            None => Handler::Running(self.inner.call(request)),
        };
        Answer {
            handler,
            time_limit,
            sleep: None,
            id: Some(id),
            about: About {
                started,
                surface,
                noted,
                operation: operation(surface, &method, route.as_ref()),
                method,
                route,
                span,
                meter: self.meter.clone(),
                encoding,
                overrun,
                bodies,
                streamed,
                ends,
            },
            body_limit,
        }
    }
}

/// What became of a request's body before its handler saw it.
#[derive(Default)]
struct Admitted {
    refusal: Option<Error>,
    overrun: Option<Overran>,
    bodies: Option<Share>,
}

/// Whether a body of unknown length turned out to be too much, and for what.
enum Overran {
    ItsLimit(Overrun),
    TheRoom(Watched),
}

impl Overran {
    fn error(&self, max_bytes: u64) -> Option<Error> {
        match self {
            Self::ItsLimit(overrun) if overrun.happened() => {
                Some(Error::TooLarge { max_bytes, actual_bytes: None })
            }
            Self::TheRoom(watched) if watched.was_refused() => Some(NO_ROOM),
            Self::ItsLimit(_) | Self::TheRoom(_) => None,
        }
    }

    /// Says that nobody waits for the answer any more.
    fn abandon(&self) {
        if let Self::TheRoom(watched) = self {
            watched.abandon();
        }
    }
}

/// The answer to a body for which there is no room now.
const NO_ROOM: Error = Error::Overloaded { retry_after_seconds: 1 };

impl<S> Shell<S> {
    /// Limits a body, by itself and together with all others.
    fn admit(&self, request: &mut Request, surface: Surface, streamed: bool, limit: u64) -> Admitted {
        if surface == Surface::Grpc {
            // What a message may have is for those who read messages.
            let overrun = Some(Overran::TheRoom(self.bodies.watch(request, streamed)));
            return Admitted { overrun, ..Admitted::default() };
        }
        if streamed {
            DefaultBodyLimit::disable().apply(request);
            return Admitted::default();
        }
        let bodies = self.bodies.admit(request, limit);
        match body_limit::apply(request, limit) {
            Err(error) => Admitted { refusal: Some(error), ..Admitted::default() },
            Ok(_) if bodies.is_none() => Admitted { refusal: Some(NO_ROOM), ..Admitted::default() },
            Ok(overrun) => Admitted { refusal: None, overrun: overrun.map(Overran::ItsLimit), bodies },
        }
    }
}

enum Handler<F> {
    Running(F),
    Refused(Option<Error>),
    Done,
}

/// The response head, once there is one.
pub(super) struct Answer<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
{
    handler: Handler<F>,
    time_limit: Option<Duration>,
    /// Made only when the handler has to wait: most answer on the first poll, and timers are not free.
    sleep: Option<Pin<Box<Sleep>>>,
    /// Lent to the thread while the handler runs.
    id: Option<HeaderValue>,
    about: About,
    body_limit: u64,
}

/// What has to be remembered until the response is there.
struct About {
    started: Instant,
    surface: Surface,
    /// For the log: what the handler said, and the path.
    noted: Option<(Noted, String)>,
    /// What errors call it.
    operation: &'static str,
    method: Method,
    route: Option<MatchedPath>,
    span: Span,
    meter: Arc<Meter>,
    encoding: Option<HeaderValue>,
    overrun: Option<Overran>,
    /// Its share of what all bodies may take.
    bodies: Option<Share>,
    /// Its body comes piece by piece, for as long as its caller is there.
    streamed: bool,
    /// When the caller of a stream has waited long enough.
    ends: Option<tokio::time::Instant>,
}

impl<F> Future for Answer<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
{
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Answer { handler, time_limit, sleep, id, about, body_limit } = self.get_mut();
        let poll = || {
            let _entered = about.span.enter();
            let Poll::Ready(mut response) = poll_handler(handler, about.surface, *time_limit, sleep, cx)
            else {
                return Poll::Pending;
            };
            let late = std::mem::replace(handler, Handler::Done);
            if let Some(error) = about.overrun.as_ref().and_then(|overrun| overrun.error(*body_limit)) {
                response = about.surface.answer(error);
            }
            Poll::Ready((about.finish(response), late))
        };
        let answered = request_id::within(id, || operation::within(about.operation, poll));
        answered.map(|(mut response, late)| {
            if let Handler::Running(late) = late
                && !about.streamed
            {
                about.overrun.iter().for_each(Overran::abandon);
                run_out(late, id.clone(), &about.method, about.bodies.take());
            }
            if let Some(id) = id.take() {
                response.headers_mut().insert(X_REQUEST_ID, id);
            }
            Ok(response)
        })
    }
}

/// A caller that hangs up is counted, and what it began is done all the same: a change that may be committed must also
/// be audited. What came piece by piece ends with its caller.
impl<F> Drop for Answer<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
{
    fn drop(&mut self) {
        if let Handler::Running(left) = std::mem::replace(&mut self.handler, Handler::Done) {
            self.about.abandoned();
            self.about.overrun.iter().for_each(Overran::abandon);
            if !self.about.streamed {
                run_out(left, self.id.take(), &self.about.method, self.about.bodies.take());
            }
        }
    }
}

/// Lets a handler that nobody waits for come to its end, unless it only reads.
fn run_out<F>(mut handler: F, mut id: Option<HeaderValue>, method: &Method, bodies: Option<Share>)
where
    F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
{
    // Without a runtime the process is ending.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if method.is_safe() {
        return;
    }
    runtime.spawn(std::future::poll_fn(move |cx| {
        let _held_until_the_end = &bodies;
        request_id::within(&mut id, || Pin::new(&mut handler).poll(cx).map(drop))
    }));
}

/// The handler's answer, or the one for its panic or its delay.
fn poll_handler<F>(
    handler: &mut Handler<F>,
    surface: Surface,
    time_limit: Option<Duration>,
    sleep: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Response>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin,
{
    let polled = match handler {
        Handler::Running(future) => catch_unwind(AssertUnwindSafe(|| Pin::new(future).poll(cx))),
        Handler::Refused(error) => {
            return error.take().map_or(Poll::Pending, |error| Poll::Ready(surface.answer(error)));
        }
        Handler::Done => return Poll::Pending,
    };
    match polled {
        Ok(Poll::Ready(Ok(response))) => {
            *handler = Handler::Done;
            return Poll::Ready(response);
        }
        Ok(Poll::Pending) => {}
        Err(panic) => {
            *handler = Handler::Done;
            let defect = format!("a handler panicked: {}", panic_text(&*panic));
            return Poll::Ready(surface.answer(Error::Internal(defect)));
        }
    }
    let Some(time_limit) = time_limit else { return Poll::Pending };
    let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(time_limit)));
    sleep.as_mut().poll(cx).map(|()| surface.answer(Error::Timeout))
}

impl About {
    /// Counts a request whose caller hung up. 499 is what others count it as.
    fn abandoned(&self) {
        let route = self.route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
        let status = StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST);
        self.meter.record(route, &self.method, status, self.started.elapsed());
        tracing::debug!(target: "memtrove::access", method = %self.method, route, "the caller hung up");
    }

    /// Counts, logs and, if asked, compresses.
    fn finish(&self, response: Response) -> Response {
        let elapsed = self.started.elapsed();
        let status = match self.surface {
            Surface::Grpc if response.status() == StatusCode::OK => over_rest(response.headers()),
            _ => response.status(),
        };
        let route = self.route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
        self.meter.record(route, &self.method, status, elapsed);
        if self.operation != operation::UNKNOWN {
            metrics::histogram!("memory_operations_latency", "operation" => self.operation)
                .record(elapsed.as_secs_f64() * 1e3);
        }

        let (method, micros, failed) = (&self.method, elapsed.as_micros() as u64, status.is_server_error());
        let path = self.noted.as_ref().map(|(_, path)| path.as_str());
        let scope = self.noted.as_ref().and_then(|(noted, _)| noted.read());
        let (tenant, user) = (scope.map(|scope| &*scope.tenant), scope.map(|scope| &*scope.user));
        let (actor, status) = (scope.map(|scope| &*scope.actor), status.as_u16());
        if failed {
            tracing::warn!(target: "memtrove::access", %method, route, tenant, user, path, actor, status, micros, "failed");
        } else {
            tracing::debug!(target: "memtrove::access", %method, route, tenant, user, path, actor, status, micros, "answered");
        }
        if !self.span.is_disabled() {
            self.span.record("http.response.status_code", status);
            if failed {
                self.span.record("otel.status_code", "ERROR");
            }
        }
        let response = match self.ends {
            Some(ends) => response.map(|body| deadline::end_at(body, ends)),
            None => response,
        };
        match self.encoding.clone() {
            Some(accepted) => compression::compress(response, accepted),
            None => response,
        }
    }
}

/// What errors call the operation; only those of the memories contract do.
fn operation(surface: Surface, method: &Method, route: Option<&MatchedPath>) -> &'static str {
    match (surface, route) {
        (Surface::Memories | Surface::OpenSpec | Surface::Mem0, Some(route)) => {
            operation::named(method, route.as_str())
        }
        _ => operation::UNKNOWN,
    }
}

/// The span of a request; costs one load where neither OTLP nor the log's filter wants it.
fn span(method: &Method, route: Option<&MatchedPath>, id: &HeaderValue, headers: &HeaderMap) -> Span {
    let route = route.map_or(UNMATCHED, MatchedPath::as_str);
    let span = tracing::debug_span!(
        target: "memtrove::http",
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        http.request.method = %method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
        request_id = id.to_str().unwrap_or_default(),
    );
    if !span.is_disabled() {
        let parent = opentelemetry::global::get_text_map_propagator(|propagator| {
            propagator.extract(&TraceHeaders(headers))
        });
        // Refused only when no OTLP layer listens; then there is no trace to join.
        let _ = span.set_parent(parent);
    }
    span
}

struct TraceHeaders<'a>(&'a HeaderMap);

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
