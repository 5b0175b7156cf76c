//! One call: a request, its attempts, and what is made of the answer.

use crate::builder::secret;
use crate::client::Client;
use crate::conversations::PageRequest;
use crate::error::ApiError;
use crate::operations::{Effect, Operation};
use crate::{Error, Result, address, retry};
use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Request, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::time::Duration;

const SERVICE_ID: HeaderName = HeaderName::from_static("x-service-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that is being put together.
pub(crate) struct Call {
    client: Client,
    operation: &'static Operation,
    url: Url,
    headers: HeaderMap,
    body: Body,
    timeout: Option<Duration>,
    /// Whether the caller's own headers go along.
    own: bool,
}

/// What a request carries.
enum Body {
    Empty,
    Bytes(Bytes),
    /// Can be sent once; only operations that are never retried have one.
    Form(Option<reqwest::multipart::Form>),
}

/// What came of an attempt that was answered.
enum AttemptOutcome<T> {
    /// What was asked for.
    Given(T),
    /// A refusal, which may pass.
    Refused { status: StatusCode, headers: HeaderMap, body: Bytes },
}

impl Client {
    /// A call of an operation, with the names that its address needs.
    pub(crate) fn call(&self, operation: &'static Operation, names: &[&str]) -> Result<Call> {
        let url = address::fill(&self.inner.base_url, operation.path, names)?;
        let mut headers = HeaderMap::clone(&self.headers);
        if operation.effect != Effect::Read {
            let service_id = self.options.service_id.as_ref().or(self.inner.service_id.as_ref());
            if let Some(service_id) = service_id {
                headers.insert(SERVICE_ID, value(&SERVICE_ID, service_id)?);
            }
        }
        match (&self.options.idempotency_key, operation.effect) {
            (Some(key), Effect::Keyed) => {
                headers.insert(IDEMPOTENCY_KEY, value(&IDEMPOTENCY_KEY, key)?);
            }
            // Dropping the key would let the caller believe that sending this twice does no harm.
            (Some(_), Effect::Change) => {
                let id = operation.id;
                return Err(Error::invalid(format!("{id} takes no idempotency key: call it without one")));
            }
            _ => {}
        }
        let timeout = Some(self.inner.timeout);
        Ok(Call { client: self.clone(), operation, url, headers, body: Body::Empty, timeout, own: true })
    }

    /// A call of an operation at an address that was given to us. Nothing that says who we are goes along.
    pub(crate) fn call_at(&self, operation: &'static Operation, url: Url) -> Call {
        let (headers, timeout) = (HeaderMap::new(), Some(self.inner.timeout));
        Call { client: self.clone(), operation, url, headers, body: Body::Empty, timeout, own: false }
    }
}

impl Call {
    /// The name of the operation.
    pub(crate) fn operation_id(&self) -> &'static str {
        self.operation.id
    }

    /// Adds the parameters of a page.
    pub(crate) fn page(self, page: PageRequest) -> Self {
        self.query("after", page.after).query("limit", page.limit)
    }

    /// Adds a parameter once per value.
    pub(crate) fn each(self, name: &str, values: impl IntoIterator<Item = impl Display>) -> Self {
        values.into_iter().fold(self, |call, value| call.query(name, Some(value)))
    }

    /// Adds a parameter, if there is something to say.
    pub(crate) fn query(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.url.query_pairs_mut().append_pair(name, &value.to_string());
        }
        self
    }

    /// Adds a header, if there is something to say.
    pub(crate) fn header(mut self, name: HeaderName, text: Option<&str>) -> Result<Self> {
        if let Some(text) = text {
            self.headers.insert(&name, value(&name, text)?);
        }
        Ok(self)
    }

    /// Asks for the change of this version only, if one is given.
    pub(crate) fn version(self, version: Option<i64>) -> Result<Self> {
        self.header(IF_MATCH, version.map(version_tag).as_deref())
    }

    /// Asks for nothing if it still is this version.
    pub(crate) fn unless_version(self, version: i64) -> Result<Self> {
        self.header(IF_NONE_MATCH, Some(&version_tag(version)))
    }

    /// Says what the answer should look like.
    pub(crate) fn accept(mut self, media_type: &'static str) -> Self {
        self.headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        self
    }

    /// Sends this as JSON.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(body)
            .map_err(|error| Error::invalid(format!("{}: not JSON: {error}", self.operation.id)))?;
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = Body::Bytes(bytes.into());
        Ok(self)
    }

    /// Sends a form.
    pub(crate) fn form(mut self, form: reqwest::multipart::Form) -> Self {
        self.body = Body::Form(Some(form));
        self.patiently()
    }

    /// Waits as long as it takes.
    pub(crate) fn patiently(mut self) -> Self {
        self.timeout = None;
        self
    }

    /// Sends it and reads the answer as JSON.
    pub(crate) async fn receive<T: DeserializeOwned>(self) -> Result<T> {
        let operation = self.operation.id;
        let (_, body) = self.whole().await?;
        read(operation, &body)
    }

    /// The same, where the answer may be that nothing changed since.
    pub(crate) async fn receive_changed<T: DeserializeOwned>(self) -> Result<Option<T>> {
        let operation = self.operation.id;
        match self.whole().await? {
            (StatusCode::NOT_MODIFIED, _) => Ok(None),
            (_, body) => read(operation, &body).map(Some),
        }
    }

    /// Sends it; the answer has nothing to say but success.
    pub(crate) async fn finish(self) -> Result<()> {
        self.whole().await.map(|_| ())
    }

    /// Sends it and hands over the answer as soon as it begins, which it must do in time. It may say that what is wanted
    /// is elsewhere.
    pub(crate) async fn open(mut self) -> Result<Response> {
        // The body has all the time it needs, so the limit is not the request's.
        let head = self.timeout.take();
        let follows = |status: StatusCode| status.is_success() || status.is_redirection();
        self.send(head, follows, |response| std::future::ready(Ok(response))).await
    }

    /// Sends it and reads the answer to its end. A connection that breaks in the middle is a failed attempt.
    async fn whole(self) -> Result<(StatusCode, Bytes)> {
        let done = |status: StatusCode| status.is_success() || status == StatusCode::NOT_MODIFIED;
        let read = |response: Response| async { Ok((response.status(), response.bytes().await?)) };
        self.send(None, done, read).await
    }

    /// Sends it, and again where that may help. `given` says which answers are what was asked for, `take` what to take of
    /// one; an attempt must come so far within the `limit`.
    async fn send<T, Fut>(
        mut self,
        limit: Option<Duration>,
        given: fn(StatusCode) -> bool,
        take: impl Fn(Response) -> Fut + Send + Sync,
    ) -> Result<T>
    where
        T: Send,
        Fut: Future<Output = reqwest::Result<T>> + Send,
    {
        let mut retries = 0;
        loop {
            let attempt = self.attempt(given, &take);
            let outcome = match limit {
                Some(limit) => tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| {
                    let late = format!("it did not begin within {limit:?}");
                    Err(Error::transport(self.operation.id, late))
                }),
                None => attempt.await,
            };
            match self.pause(&outcome, retries) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return outcome.and_then(AttemptOutcome::accept),
            }
            retries += 1;
        }
    }

    /// How long to wait before this is sent again; `None` if it is not.
    fn pause<T>(&self, outcome: &Result<AttemptOutcome<T>>, retries: u32) -> Option<Duration> {
        let policy = &self.client.inner.retry;
        let options = &self.client.options;
        let may = match self.operation.effect {
            Effect::Read => true,
            Effect::Keyed => options.retry && options.idempotency_key.is_some(),
            Effect::Change => false,
        };
        if !may || retries >= policy.max_retries {
            return None;
        }
        match outcome {
            Err(Error::Transport { .. }) => Some(policy.pause(retries)),
            Ok(AttemptOutcome::Refused { status, headers, .. }) if retry::is_passing(*status) => {
                Some(retry::retry_after(headers).unwrap_or_else(|| policy.pause(retries)))
            }
            _ => None,
        }
    }

    async fn attempt<T, Fut>(
        &mut self,
        given: fn(StatusCode) -> bool,
        take: &(impl Fn(Response) -> Fut + Send + Sync),
    ) -> Result<AttemptOutcome<T>>
    where
        Fut: Future<Output = reqwest::Result<T>> + Send,
    {
        let operation = self.operation.id;
        let failed = |error: reqwest::Error| Error::transport(operation, error.without_url());
        let mut request = self.request()?;
        let inner = self.client.inner.clone();
        if let Some(provider) = inner.header_provider.as_ref().filter(|_| self.own) {
            let headers = provider.headers().await.map_err(|error| Error::transport(operation, error))?;
            provide(request.headers_mut(), &headers)?;
        }
        if let Some(hook) = &inner.on_request {
            hook(&request);
        }
        let response = inner.http.execute(request).await.map_err(failed)?;
        if let Some(hook) = &inner.on_response {
            hook(&response);
        }
        if given(response.status()) {
            return take(response).await.map(AttemptOutcome::Given).map_err(failed);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(AttemptOutcome::Refused { status, headers, body: response.bytes().await.map_err(failed)? })
    }

    fn request(&mut self) -> Result<Request> {
        let mut request = Request::new(self.operation.method.clone(), self.url.clone());
        match &mut self.body {
            Body::Empty => {}
            Body::Bytes(bytes) => *request.body_mut() = Some(bytes.clone().into()),
            Body::Form(form) => {
                let form = form.take().ok_or_else(|| Error::invalid("a form can be sent only once"))?;
                let builder = self.client.inner.http.request(request.method().clone(), self.url.clone());
                request = builder.multipart(form).build().map_err(|error| {
                    Error::invalid(format!("{}: the form cannot be sent: {error}", self.operation.id))
                })?;
            }
        }
        request.headers_mut().extend(self.headers.clone());
        *request.timeout_mut() = self.timeout;
        Ok(request)
    }
}

impl<T> AttemptOutcome<T> {
    /// What was asked for, if that is what came.
    fn accept(self) -> Result<T> {
        match self {
            Self::Given(answer) => Ok(answer),
            Self::Refused { status, headers, body } => {
                Err(Error::Api(Box::new(ApiError::read(status, &headers, &body))))
            }
        }
    }
}

/// A version of a memory or an entry, as the headers about versions have it.
fn version_tag(version: i64) -> String {
    format!("\"v{version}\"")
}

fn read<T: DeserializeOwned>(operation: &'static str, body: &[u8]) -> Result<T> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::decode(operation, "it is empty", body));
    }
    serde_json::from_slice(body).map_err(|error| Error::decode(operation, error, body))
}

fn value(name: &HeaderName, text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|_| Error::invalid(format!("'{}' cannot be sent as {name}", text.escape_debug())))
}

/// Adds what a provider gives where it is not blank and nothing is there yet.
fn provide(headers: &mut HeaderMap, provided: &[(String, String)]) -> Result<()> {
    for (name, text) in provided {
        if name.trim().is_empty() || text.trim().is_empty() {
            continue;
        }
        let name = HeaderName::try_from(name.trim()).map_err(|_| {
            Error::invalid(format!("the provided header name '{}' cannot be sent", name.escape_debug()))
        })?;
        // It may be a token, so it stays out of messages and of what hooks print.
        let text = secret(&name, text)?;
        headers.entry(name).or_insert(text);
    }
    Ok(())
}
