//! HTTP as a library speaks it, for comparisons of transports: both sides have the same client, whichever version they speak.
//!
//! It costs more than the prebuilt bytes of [`load`](crate::load), the same on each side. Requests are written as HTTP/1.1 has
//! them and taken apart when they are sent.

use crate::load::HttpAnswer;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// What connections of a side speak.
#[derive(Debug, Clone, Copy)]
pub enum Wire {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, with this many requests under way on one connection.
    Http2 { streams: usize },
}

/// The largest window there is: the server never waits for this client.
const WINDOW: u32 = (1 << 31) - 1;

/// A connection, or a share of one.
pub struct HyperConnection {
    link: Link,
    body: Vec<u8>,
}

enum Link {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl HyperConnection {
    /// Connects.
    pub async fn open(address: SocketAddr, wire: Wire) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        // A connection that breaks is told to the request that is under way on it.
        let link = match wire {
            Wire::Http1 => {
                let (link, connection) = http1::handshake(io).await?;
                tokio::spawn(connection);
                Link::Http1(link)
            }
            Wire::Http2 { .. } => {
                let mut client = http2::Builder::new(TokioExecutor::new());
                client.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
                let (link, connection) = client.handshake(io).await?;
                tokio::spawn(connection);
                Link::Http2(link)
            }
        };
        Ok(Self { link, body: Vec::new() })
    }

    /// Another share of the same connection, if it has streams.
    pub fn share(&self) -> Option<Self> {
        let Link::Http2(link) = &self.link else { return None };
        Some(Self { link: Link::Http2(link.clone()), body: Vec::new() })
    }

    /// Sends one request and waits for its whole answer. A call that fails is one with the status 500.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<HttpAnswer<'_>> {
        let mut response = self.send(request).await?;
        let mut status = response.status().as_u16();
        let mut failure = failure_of_call(response.headers());
        self.body.clear();
        while let Some(frame) = response.body_mut().frame().await.transpose()? {
            if let Some(data) = frame.data_ref() {
                self.body.extend_from_slice(data);
            } else if let Some(trailers) = frame.trailers_ref() {
                failure = failure.or_else(|| failure_of_call(trailers));
            }
        }
        if let Some(failure) = failure {
            (status, self.body) = (500, failure);
        }
        Ok(HttpAnswer { status, body: &self.body })
    }

    /// Sends one request and waits for the beginning of its answer.
    pub async fn send(&mut self, request: &[u8]) -> Result<Response<Incoming>> {
        match &mut self.link {
            Link::Http1(link) => {
                link.ready().await?;
                Ok(link.send_request(read(request, "")?).await?)
            }
            Link::Http2(link) => {
                link.ready().await?;
                let mut request = read(request, "http://localhost")?;
                // The address says the host.
                request.headers_mut().remove(HOST);
                Ok(link.send_request(request).await?)
            }
        }
    }
}

/// Takes a request of HTTP/1.1 apart.
fn read(request: &[u8], origin: &str) -> Result<Request<Full<Bytes>>> {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(request)? else {
        anyhow::bail!("a request without end")
    };
    let path = head.path.context("a request without a path")?;
    let mut built = Request::builder()
        .method(head.method.context("a request without a method")?)
        .uri(format!("{origin}{path}"));
    for field in head.headers {
        built = built.header(field.name, field.value);
    }
    Ok(built.body(Full::new(Bytes::copy_from_slice(&request[length..])))?)
}

/// What went wrong, in the fields that end a call.
fn failure_of_call(fields: &HeaderMap) -> Option<Vec<u8>> {
    let status = fields.get("grpc-status").filter(|status| *status != "0")?;
    let message = fields.get("grpc-message").map_or(&b""[..], |message| message.as_bytes());
    Some([status.as_bytes(), b" ", message].concat())
}
