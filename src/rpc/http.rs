//! The routes of the API over HTTP. Every other path is the page's.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};

use super::caller::Scope;
use super::error::{RpcError, code};
use super::guard::{self, refusal};
use super::json::{self, NOBODY, Sender};
use super::service::ApiService;
use crate::metrics::Format;

/// Returns all routes: those of the API, and the page's for every other path.
pub(super) fn routes(service: &ApiService, pages: Router) -> Router {
    Router::new()
        .route("/rpc", post(call))
        .route("/metrics", get(metrics))
        .with_state(service.clone())
        .fallback_service(pages)
        .layer(middleware::from_fn_with_state(service.clone(), guard::guard))
}

/// Answers the requests in the body.
async fn call(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let settings = service.settings();
    if !is_json(request.headers()) {
        let message = "the content type must be application/json";
        let error = RpcError::new(code::INVALID_REQUEST, message);
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error, true);
    }
    let size_max = usize::try_from(settings.body_size_max).unwrap_or(usize::MAX);
    let body = match body(request, size_max, settings.client_timeout).await {
        Ok(body) => body,
        Err((status, message)) => {
            return refusal(status, &RpcError::new(code::INVALID_REQUEST, message), true);
        }
    };
    let answers = json::answer(&service, &sender, &body).await;
    let Some(text) = answers.text else { return StatusCode::NO_CONTENT.into_response() };
    let status = match answers.code {
        Some(code::UNAUTHENTICATED) => StatusCode::UNAUTHORIZED,
        Some(code::NOT_PERMITTED) => StatusCode::FORBIDDEN,
        _ => StatusCode::OK,
    };
    let json = HeaderValue::from_static("application/json");
    let mut response = (status, [(header::CONTENT_TYPE, json)], text).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let asked = HeaderValue::from_static("Bearer realm=\"hero\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, asked);
    }
    response
}

/// Returns true if a page of another origin cannot send this without being asked for.
fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = text.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

/// Reads a body within a size and a time.
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

/// Serves the metrics.
async fn metrics(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    headers: HeaderMap,
) -> Response {
    if !service.settings().metrics_open {
        let Some(caller) = &sender.caller else {
            let error = RpcError::new(code::UNAUTHENTICATED, NOBODY);
            return refusal(StatusCode::UNAUTHORIZED, &error, false);
        };
        if !caller.scopes.has(Scope::Read) {
            let message = format!("{} may not read metrics: it needs the scope read", caller.name);
            let error = RpcError::new(code::NOT_PERMITTED, message);
            return refusal(StatusCode::FORBIDDEN, &error, false);
        }
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_open = accept.is_some_and(|text| text.contains("application/openmetrics-text"));
    let (format, content_type) = if is_open {
        (Format::OpenMetrics, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    } else {
        (Format::Classic, "text/plain; version=0.0.4; charset=utf-8")
    };
    match service.metrics(format).await {
        Ok(text) => {
            let content_type = HeaderValue::from_static(content_type);
            ([(header::CONTENT_TYPE, content_type)], text).into_response()
        }
        Err(error) => {
            let message = format!("cannot read the metrics: {error}\n");
            (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
        }
    }
}
