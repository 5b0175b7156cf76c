//! The one middleware: everything that surrounds a handler, in one pass.

use super::access::Noted;
use super::answers::{Answers, NoRoom};
use super::bodies::{Bodies, Watched};
use super::body_limit::{self, Overrun};
use super::connection::OpenRequest;
use super::meter::{Meter, UNMATCHED};
use super::pace::Patience;
use super::request_id::{self, RequestId, X_REQUEST_ID};
use super::room::Asker;
use super::whole_messages::{Messages, WholeMessages};
use super::{ShellConfig, compression};
use crate::auth::loopback;
use crate::grpc::deadline;
use crate::grpc::error::over_rest;
use crate::rest::IDEMPOTENCY_REPLAYED;
use crate::rest::error::{self, ApiError, RequestInfo};
use crate::rest::surface::Surface;
use crate::rest::{memories, operation};
use crate::telemetry::panic_text;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use memtrove_core::{Code, Error};
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
    answers: Answers,
}

#[derive(Clone, Copy)]
struct Settings {
    body_limit: u64,
    files_body_limit: u64,
    memories_body_limit: u64,
    request_timeout: Duration,
    patient_routes: &'static [&'static str],
    streamed_routes: &'static [&'static str],
    reading_routes: &'static [&'static str],
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
            reading_routes: config.reading_routes,
            compression: config.compression,
            loopback_names_only: config.loopback_names_only,
        };
        // A body may take no longer than its handler.
        let stall = config.patience.stall.min(config.request_timeout);
        let bodies = Bodies::new(config.bodies_limit, Patience { stall, ..config.patience });
        Self { settings, bodies, answers: Answers::new(config.answers_limit, config.patience) }
    }
}

impl<S> Layer<S> for ShellLayer {
    type Service = Shell<S>;

    fn layer(&self, inner: S) -> Shell<S> {
        let Self { settings, bodies, answers } = self.clone();
        Shell { inner, settings, bodies, answers, meter: Arc::default() }
    }
}

/// One endpoint in its shell.
#[derive(Clone)]
pub(super) struct Shell<S> {
    inner: S,
    settings: Settings,
    bodies: Bodies,
    answers: Answers,
    meter: Arc<Meter>,
}

impl<S> Service<Request> for Shell<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Unpin + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture<S::Future>;

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
        let only_reads = method.is_safe() || is_one_of(self.settings.reading_routes);
        let closes = request.version() < Version::HTTP_2;
        let asker = match is_open(request.uri().path()) {
            true => Asker::nameless(request.extensions()),
            false => Asker::of(request.headers(), request.extensions()),
        };
        let Admitted { refusal, overrun, body } = if is_called_by_name {
            self.admit(&mut request, &asker, surface, streamed, body_limit)
        } else {
            if closes {
                body_limit::linger(std::mem::take(request.body_mut()));
            }
            Admitted { refusal: Some(loopback::refusal()), ..Admitted::default() }
        };
        let refusal = refusal.or_else(|| {
            // What is done is answered, whether there is room or not; so nothing is done for those who do not read.
            (!only_reads && self.answers.has_its_part(&asker)).then(NO_ROOM)
        });
        request.extensions_mut().insert(RequestId(id.clone()));
        let handler = match refusal {
            Some(error) => Handler::Refused(Some(error)),
            None => Handler::Running(self.inner.call(request)),
        };
        ResponseFuture {
            handler,
            time_limit,
            sleep: None,
            id: Some(id.clone()),
            about: About {
                id: id.clone(),
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
                body,
                _open: asker.connection.as_ref().and_then(OpenRequest::on),
                asker,
                answers: self.answers.clone(),
                only_reads,
                closes,
                streamed,
                ends,
            },
            body_limit,
        }
    }
}

/// Whether a request is answered without asking who calls: its credential may be made up.
fn is_open(path: &str) -> bool {
    const OPEN: [&str; 7] = [
        "/memory.v1.SystemService/",
        "/grpc.health.",
        "/grpc.reflection.",
        "/openapi.json",
        "/docs",
        "/metrics",
        "/v1/attachments/download/",
    ];
    path == "/" || OPEN.iter().any(|open| path.starts_with(open))
}

/// What became of a request's body before its handler saw it.
#[derive(Default)]
struct Admitted {
    refusal: Option<Error>,
    overrun: Option<Overrun>,
    body: Option<Watched>,
}

/// The answer where there is no room now, for a body or for an answer.
const NO_ROOM: fn() -> Error = || Error::overloaded(1);

impl<S> Shell<S> {
    /// Limits a body, by itself and together with all others.
    fn admit(
        &self,
        request: &mut Request,
        asker: &Asker,
        surface: Surface,
        streamed: bool,
        limit: u64,
    ) -> Admitted {
        if surface == Surface::Grpc {
            // The reader of messages limits each of them. A call that is no stream has one message: after it the reader would go
            // on, and keep nothing, until no room is left.
            let overrun =
                (!streamed).then(|| body_limit::watch(request, limit.saturating_add(Messages::HEAD as u64)));
            let body = self.bodies.watch(request, asker, streamed);
            let whole = WholeMessages::new(std::mem::take(request.body_mut()), limit);
            *request.body_mut() = Body::new(whole);
            return Admitted { overrun, body, ..Admitted::default() };
        }
        if streamed {
            DefaultBodyLimit::disable().apply(request);
            return Admitted::default();
        }
        match body_limit::apply(request, limit) {
            Err(error) => Admitted { refusal: Some(error), ..Admitted::default() },
            Ok(overrun) => {
                Admitted { refusal: None, overrun, body: self.bodies.watch(request, asker, false) }
            }
        }
    }
}

enum Handler<F> {
    Running(F),
    Refused(Option<Error>),
    Done,
}

/// The response head, once there is one.
pub(super) struct ResponseFuture<F>
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
    id: HeaderValue,
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
    overrun: Option<Overrun>,
    /// Its body, with the room that it took.
    body: Option<Watched>,
    asker: Asker,
    _open: Option<OpenRequest>,
    answers: Answers,
    /// Nothing is done that an answer must tell of.
    only_reads: bool,
    /// Its connection is for one request at a time: one that timed out is closed with its answer.
    closes: bool,
    /// Its body comes piece by piece, for as long as its caller is there.
    streamed: bool,
    /// When the caller of a stream has waited long enough.
    ends: Option<tokio::time::Instant>,
}

impl<F> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
{
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ResponseFuture { handler, time_limit, sleep, id, about, body_limit } = self.get_mut();
        let poll = || {
            let _entered = about.span.enter();
            let Poll::Ready(polled) = poll_handler(handler, about, *time_limit, sleep, cx) else {
                return Poll::Pending;
            };
            let late = std::mem::replace(handler, Handler::Done);
            let response =
                match polled.and_then(|response| about.overrode(*body_limit).map_or(Ok(response), Err)) {
                    Ok(response) => about.hold(about.rendered(response), cx),
                    Err(error) => about.refuse(error),
                };
            Poll::Ready((about.finish(response), late))
        };
        let answered = request_id::within(id, poll);
        answered.map(|(mut response, late)| {
            if let Handler::Running(late) = late {
                about.run_out(late, id.clone());
            }
            if let Some(id) = id.take() {
                response.headers_mut().insert(X_REQUEST_ID, id);
            }
            Ok(response)
        })
    }
}

/// A caller that hangs up is counted, and what it began is done all the same: a change that may be committed must also
/// be audited.
impl<F> Drop for ResponseFuture<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
{
    fn drop(&mut self) {
        if let Handler::Running(left) = std::mem::replace(&mut self.handler, Handler::Done) {
            self.about.abandoned();
            self.about.run_out(left, self.id.take());
        }
    }
}

/// The handler's answer, or the error for its panic or its delay.
fn poll_handler<F>(
    handler: &mut Handler<F>,
    about: &About,
    time_limit: Option<Duration>,
    sleep: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Response, Error>>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin,
{
    let polled = match handler {
        Handler::Running(future) => catch_unwind(AssertUnwindSafe(|| Pin::new(future).poll(cx))),
        Handler::Refused(error) => {
            return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
        }
        Handler::Done => return Poll::Pending,
    };
    match polled {
        Ok(Poll::Ready(Ok(response))) => {
            *handler = Handler::Done;
            return Poll::Ready(Ok(response));
        }
        Ok(Poll::Pending) => {}
        Err(panic) => {
            *handler = Handler::Done;
            let defect = format!("a handler panicked: {}", panic_text(&*panic));
            return Poll::Ready(Err(Error::internal(defect)));
        }
    }
    let Some(time_limit) = time_limit else { return Poll::Pending };
    if about.surface != Surface::Grpc && about.body.as_ref().is_some_and(Watched::is_awaited) {
        // The body has its own time; that of the handler begins when it has something to work with.
        *sleep = None;
        return Poll::Pending;
    }
    let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(time_limit)));
    sleep.as_mut().poll(cx).map(|()| Err(Error::TIMEOUT))
}

impl About {
    /// Why the body was not read to its end, if it was our doing: whatever the handler made of it.
    fn overrode(&self, max_bytes: u64) -> Option<Error> {
        if self.overrun.as_ref().is_some_and(Overrun::happened) {
            return Some(Error::too_large(max_bytes, None));
        }
        let body = self.body.as_ref()?;
        match (body.was_refused(), body.was_late()) {
            (true, _) => Some(NO_ROOM()),
            // What a stream makes of it when its sender falls silent is for those who read it.
            (false, true) if !self.streamed => Some(Error::TIMEOUT),
            (false, _) => None,
        }
    }

    fn render(&self, error: Error) -> Response {
        let id = self.id.to_str().unwrap_or_default();
        self.surface.render(error, RequestInfo { id, operation: self.operation })
    }

    /// A response as it is or, of a handler that failed, the error in the surface's shape, with the headers that were added to it.
    fn rendered(&self, mut response: Response) -> Response {
        let Some(ApiError(error)) = response.extensions_mut().remove() else { return response };
        let mut rendered = self.render(error);
        let added = std::mem::take(response.headers_mut());
        for (name, value) in added.into_iter().filter_map(|(name, value)| Some((name?, value))) {
            rendered.headers_mut().entry(name).or_insert(value);
        }
        rendered
    }

    /// Answers with an error. Who was too slow, or waited for us too long, does not get to go on with the same connection.
    fn refuse(&self, error: Error) -> Response {
        let timed_out = error.code == Code::Timeout;
        let mut response = self.render(error);
        if timed_out && self.closes {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        } else if self.body.as_ref().is_some_and(Watched::was_late)
            && let Some(connection) = &self.asker.connection
        {
            // Over HTTP/2 others on it may finish what they have begun.
            connection.give_up();
        }
        response
    }

    /// Holds an answer until it is read, if there is room for that.
    fn hold(&self, response: Response, cx: &mut Context<'_>) -> Response {
        let is_ready = self.surface == Surface::Grpc && !self.streamed;
        // The answer to a repetition tells of nothing that was done now.
        let must = !self.only_reads && !response.headers().contains_key(IDEMPOTENCY_REPLAYED);
        match self.answers.hold(response, &self.asker, is_ready, must, cx) {
            Ok(response) => response,
            Err(NoRoom) => self.refuse(NO_ROOM()),
        }
    }

    /// Lets a handler whose caller is gone come to its end, unless it only reads, or waits for a body of which the rest does
    /// not come: then nothing is done yet. What came piece by piece ends with its caller.
    fn run_out<F>(&self, mut handler: F, mut id: Option<HeaderValue>)
    where
        F: Future<Output = Result<Response, Infallible>> + Unpin + Send + 'static,
    {
        // Without a runtime the process is ending.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let body = self.body.clone();
        if self.streamed || self.only_reads || body.as_ref().is_some_and(|body| !body.is_done()) {
            return;
        }
        let operation = self.surface.counts_operations().then_some(self.operation);
        runtime.spawn(std::future::poll_fn(move |cx| {
            let _held_until_the_end = &body;
            request_id::within(&mut id, || Pin::new(&mut handler).poll(cx)).map(|answered| {
                let Ok(response) = answered;
                if let Some(ApiError(error)) = response.extensions().get() {
                    error::log(error);
                    operation.inspect(|operation| memories::error::count(error.code, operation));
                }
            })
        }));
    }

    /// Counts a request whose caller hung up.
    fn abandoned(&self) {
        let route = self.route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
        let status = hung_up();
        self.meter.record(route, &self.method, status, self.started.elapsed());
        tracing::debug!(target: "memtrove::access", method = %self.method, route, "the caller hung up");
    }

    /// Counts, logs and, if asked, compresses.
    fn finish(&self, response: Response) -> Response {
        let elapsed = self.started.elapsed();
        let status = match self.surface {
            _ if self.body.as_ref().is_some_and(Watched::was_cut_off) => hung_up(),
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

/// What a request counts as whose caller hung up: others count it so too.
fn hung_up() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
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
