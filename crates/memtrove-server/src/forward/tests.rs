use super::*;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::StatusCode;
use memtrove_core::Code;
use serde_json::{Value, json};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

/// A node that answers everything with this router, and where it is.
async fn node(router: Router) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().into();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Where nobody listens.
async fn nobody() -> Address {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().into()
}

async fn asked(request: http::request::Builder) -> ForwardedRequest {
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    let Ok(asked) = ForwardedRequest::from_request_parts(&mut parts, &()).await;
    asked
}

async fn any_request() -> ForwardedRequest {
    asked(http::Request::delete("/v1/thing")).await
}

/// Answers what it was asked, and forbids it.
async fn echo(request: Request) -> Response {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let names = [
        "authorization",
        "x-api-key",
        "x-user-id",
        "x-tenant-id",
        "last-event-id",
        "x-memtrove-hops",
        "cookie",
    ];
    let headers: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!(header(name)))).collect();
    let body =
        json!({"method": request.method().as_str(), "target": request.uri().to_string(), "headers": headers});
    let headers = [(CONTENT_TYPE, "application/json"), (http::header::SERVER, "somebody")];
    (StatusCode::FORBIDDEN, headers, body.to_string()).into_response()
}

#[tokio::test]
async fn a_request_takes_its_credentials_along_and_the_answer_comes_back() {
    let other = node(Router::new().fallback(echo)).await;
    let request = http::Request::get("/v1/thing?lastEventId=a%3A1")
        .header("authorization", "Bearer alice")
        .header("x-api-key", "agent")
        .header("x-user-id", "bob")
        .header("x-tenant-id", "acme")
        .header("last-event-id", "a:7")
        .header("x-memtrove-hops", "1")
        .header("cookie", "of another application");
    let peers = Peers::new().unwrap();
    let response =
        peers.answer(&asked(request).await, || ready(Ok(Whose::Theirs(other.clone())))).await.unwrap();

    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    assert!(!response.headers().contains_key(http::header::SERVER));
    let body: Value = serde_json::from_slice(&to_bytes(response.into_body(), 10_000).await.unwrap()).unwrap();
    let expected = json!({
        "method": "GET",
        "target": "/v1/thing?lastEventId=a%3A1",
        "headers": {
            "authorization": "Bearer alice", "x-api-key": "agent", "x-user-id": "bob", "x-tenant-id": "acme",
            "last-event-id": "a:7", "x-memtrove-hops": "2", "cookie": null,
        },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_request_that_came_through_three_nodes_goes_no_further() {
    let other = node(Router::new().fallback(echo)).await;
    let request = http::Request::delete("/v1/thing").header("x-memtrove-hops", "3");
    let peers = Peers::new().unwrap();
    let refused = peers.answer(&asked(request).await, || ready(Ok(Whose::Theirs(other.clone())))).await;
    assert!(matches!(refused, Err(Error { code: Code::PeerUnreachable, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_node_that_is_gone_is_waited_for_until_it_does_not_have_it_any_more() {
    let (gone, mut looks) = (nobody().await, 0);
    let peers = Peers::new().unwrap();
    let answer = peers
        .answer(&any_request().await, || {
            looks += 1;
            ready(Ok(match looks {
                1 | 2 => Whose::Theirs(gone.clone()),
                _ => Whose::Ours(StatusCode::NO_CONTENT.into_response()),
            }))
        })
        .await
        .unwrap();
    assert_eq!((answer.status(), looks), (StatusCode::NO_CONTENT, 3));
}

#[tokio::test]
async fn a_node_that_keeps_what_it_has_and_never_answers_is_said_to_be_unreachable() {
    let gone = nobody().await;
    let peers = Peers { patience: Duration::ZERO, ..Peers::new().unwrap() };
    let refused = peers.answer(&any_request().await, || ready(Ok(Whose::Theirs(gone.clone())))).await;
    let Err(Error { code: Code::PeerUnreachable, cause: Some(reason), .. }) = refused else {
        panic!("{refused:?}")
    };
    assert!(reason.starts_with(&gone.to_string()), "{reason}");
}

/// A node that hears what is asked and never answers, and how often it was asked.
async fn silent() -> (Address, Arc<AtomicUsize>) {
    let times = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&times);
    let never = move || {
        asked.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<StatusCode>()
    };
    (node(Router::new().fallback(never)).await, times)
}

/// Short enough to be waited for.
fn impatient() -> Peers {
    let (told_within, done_within) = (Duration::from_millis(100), Duration::from_millis(300));
    Peers { told_within, done_within, ..Peers::new().unwrap() }
}

#[tokio::test]
async fn what_a_node_may_have_done_is_not_asked_for_again() {
    let (other, times) = silent().await;
    let refused = impatient().answer(&any_request().await, || ready(Ok(Whose::Theirs(other.clone())))).await;
    assert!(matches!(refused, Err(Error { code: Code::PeerUnreachable, .. })), "{refused:?}");
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_node_that_was_to_tell_something_and_did_not_is_asked_again() {
    let (other, times) = silent().await;
    let heard = Arc::clone(&times);
    let request = asked(http::Request::get("/v1/thing")).await;
    let look = || {
        ready(Ok(match heard.load(Ordering::Relaxed) {
            0 | 1 => Whose::Theirs(other.clone()),
            _ => Whose::Ours(StatusCode::NO_CONTENT.into_response()),
        }))
    };
    assert_eq!(impatient().answer(&request, look).await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(times.load(Ordering::Relaxed), 2);
}

#[test]
fn a_cancel_is_waited_for_longer_than_it_takes() {
    let peers = Peers::new().unwrap();
    assert!(peers.done_within > Duration::from_secs(30));
}

#[tokio::test]
async fn a_stream_is_passed_on_as_it_comes_and_ends_when_this_node_stops() {
    let endless = || async {
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"first"))]);
        Body::from_stream(first.chain(stream::pending())).into_response()
    };
    let other = node(Router::new().fallback(endless)).await;
    let peers = Peers::new().unwrap();
    let answer =
        peers.answer(&any_request().await, || ready(Ok(Whose::Theirs(other.clone())))).await.unwrap();
    let mut body = answer.into_body().into_data_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), "first");
    assert!(body.next().now_or_never().is_none(), "nothing more came, and nothing ended");
    peers.close();
    assert!(body.next().await.is_none());
}
