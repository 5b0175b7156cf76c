#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::rest::error::RequestInfo;
use crate::rest::surface::Surface;
use memtrove_core::{Quota, Resource};
use tonic_types::StatusExt;
use uuid::Uuid;

/// Every error that can leave over both transports, with what the contract maps it to.
fn errors() -> Vec<(Error, u16, Code)> {
    let quota =
        Quota { scope: "user", resource: "writes", limit: 1, window_seconds: 1, retry_after_seconds: 7 };
    vec![
        (Error::invalid("title", "is too long"), 400, Code::InvalidArgument),
        (Error::bad_request("no"), 400, Code::InvalidArgument),
        (Error::JUSTIFICATION_REQUIRED, 400, Code::InvalidArgument),
        (Error::UNAUTHORIZED, 401, Code::Unauthenticated),
        (Error::forbidden("no"), 403, Code::PermissionDenied),
        (Error::tenant_forbidden("no"), 403, Code::PermissionDenied),
        (Error::not_found(Resource::Entry, "x"), 404, Code::NotFound),
        (Error::METHOD_NOT_ALLOWED, 405, Code::Unimplemented),
        (Error::transfer_already_pending(Uuid::nil()), 409, Code::AlreadyExists),
        (Error::RECORDER_DISABLED, 409, Code::FailedPrecondition),
        (Error::conflict("no"), 409, Code::Aborted),
        (Error::ATTACHMENT_LINKED, 409, Code::Aborted),
        (Error::UPLOAD_IN_PROGRESS, 409, Code::Aborted),
        (Error::too_large(1, None), 413, Code::ResourceExhausted),
        (Error::file_too_large(1, 2), 413, Code::ResourceExhausted),
        (Error::UNSUPPORTED_MEDIA_TYPE, 415, Code::InvalidArgument),
        (Error::DOWNLOAD_FAILED, 422, Code::FailedPrecondition),
        (Error::quota_exceeded(quota), 429, Code::ResourceExhausted),
        (Error::internal("secret"), 500, Code::Internal),
        (Error::SEARCH_DISABLED, 501, Code::Unimplemented),
        (Error::PROMETHEUS_NOT_CONFIGURED, 501, Code::Unimplemented),
        (Error::peer_unreachable("secret"), 502, Code::Unavailable),
        (Error::overloaded(3), 503, Code::Unavailable),
        (Error::storage_unavailable("secret"), 503, Code::Unavailable),
        (Error::semantic_unavailable("secret"), 503, Code::Unavailable),
        (Error::IDENTITY_PROVIDER_UNAVAILABLE, 503, Code::Unavailable),
        (Error::PROMETHEUS_UNAVAILABLE, 503, Code::Unavailable),
        (Error::TIMEOUT, 504, Code::DeadlineExceeded),
    ]
}

#[tokio::test]
async fn both_transports_say_the_same_of_every_error() {
    for (error, status, code) in errors() {
        let request = RequestInfo { id: "r-1", operation: "unknown" };
        let rest = Surface::Conversations.render(error.clone(), request);
        assert_eq!(rest.status().as_u16(), status, "{error:?}");
        let body = axum::body::to_bytes(rest.into_body(), 10_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let grpc = Status::from(GrpcError(error.clone()));
        assert_eq!(grpc.code(), code, "{error:?}");
        let info = grpc.get_details_error_info().unwrap();
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            (body["code"].as_str().unwrap(), DOMAIN),
            "{error:?}"
        );
    }
}

#[test]
fn what_is_for_the_log_never_leaves() {
    for (error, _, _) in errors() {
        let status = Status::from(GrpcError(error));
        let said = format!("{} {:?}", status.message(), status.get_error_details());
        assert!(!said.contains("secret"), "{said}");
    }
    assert_eq!(Status::from(GrpcError(Error::internal("secret"))).message(), "Internal server error");
}

#[test]
fn who_should_come_back_is_told_when() {
    let wait =
        |error| Status::from(GrpcError(error)).get_details_retry_info().and_then(|info| info.retry_delay);
    assert_eq!(wait(Error::overloaded(3)), Some(Duration::from_secs(3)));
    assert_eq!(wait(Error::storage_unavailable(String::new())), Some(Duration::from_secs(5)));
    assert_eq!(wait(Error::TIMEOUT), None, "what timed out may have happened");
    assert_eq!(wait(Error::conflict(String::new())), None);
}

#[test]
fn every_field_that_is_wrong_is_named() {
    let violations = ["title", "metadata"]
        .map(|field| memtrove_core::Violation { field: field.into(), message: "is wrong".into() });
    let status = Status::from(GrpcError(Error::violations(violations.into())));
    let named: Vec<String> =
        status.get_details_bad_request().unwrap().field_violations.into_iter().map(|v| v.field).collect();
    assert_eq!(named, ["title", "metadata"]);
}

#[test]
fn logs_and_metrics_see_a_failed_call_as_what_it_would_be_over_rest() {
    for (error, status, _) in errors() {
        let response = response(error.clone());
        assert_eq!(response.status(), StatusCode::OK, "{error:?}");
        let seen = over_rest(response.headers()).as_u16();
        // A code of gRPC stands for more than one status; what matters is whose fault it is.
        assert_eq!(seen >= 500, status >= 500 || seen == 501, "{error:?}: {seen}");
    }
    assert_eq!(over_rest(&HeaderMap::new()), StatusCode::OK);
}
