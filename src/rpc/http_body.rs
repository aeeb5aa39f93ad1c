//! The bodies of requests: JSON, within a size and a time.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};

use super::rpc_error::{RpcError, code};
use super::service::ApiService;

/// Reads the body of a request, which must be JSON. Fails with the status and the error of the refusal.
pub(super) async fn read_json(
    service: &ApiService,
    request: Request,
) -> Result<Bytes, (StatusCode, RpcError)> {
    let settings = service.settings();
    if !is_json(request.headers()) {
        let message = "the content type must be application/json: send the header `Content-Type: application/json`";
        let error = RpcError::new(code::INVALID_REQUEST, message);
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let size_max = usize::try_from(settings.body_size_max).unwrap_or(usize::MAX);
    let read = body(request, size_max, settings.client_timeout).await;
    read.map_err(|(status, message)| (status, RpcError::new(code::INVALID_REQUEST, message)))
}

/// Returns true if a page of another origin cannot send this without being asked for.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = text.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

async fn body(
    request: Request,
    size_max: usize,
    within: Duration,
) -> Result<Bytes, (StatusCode, String)> {
    let told = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let told = told.and_then(|text| text.parse::<usize>().ok());
    let too_large = || {
        let message =
            format!("the body is larger than the limit of {size_max} bytes (api.body_size_max)");
        (StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if told.is_some_and(|told| told > size_max) {
        return Err(too_large());
    }
    let read = axum::body::to_bytes(request.into_body(), size_max);
    match tokio::time::timeout(within, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => {
            use std::error::Error as _;
            let is_size = error.source().is_some_and(|e| e.to_string().contains("length limit"));
            if is_size {
                return Err(too_large());
            }
            Err((StatusCode::BAD_REQUEST, format!("cannot read the body: {error}")))
        }
        Err(_) => {
            let message = format!("the body did not arrive within {within:?} (api.client_timeout)");
            Err((StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}
