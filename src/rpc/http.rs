//! The routes of the API over HTTP. Every other path is the page's.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};

use super::agent_http;
use super::caller::Scope;
use super::error::{RpcError, code};
use super::guard::{self, Guarded, RefusedPage, refusal};
use super::http_body::read_json;
use super::json::{self, NOBODY, Sender};
use super::service::ApiService;
use super::socket;
use crate::metrics::Format;

/// The pages that are served beside the API.
pub struct Pages {
    /// Their routes, without a prefix.
    pub routes: Router,
    /// Returns the page that says why a request was refused.
    pub refused: RefusedPage,
}

/// Returns all routes: those of the API, and the page's for every other path.
pub(super) fn routes(service: &ApiService, pages: Pages) -> Router {
    let guarded = Guarded { service: service.clone(), refused: pages.refused };
    Router::new()
        .route("/rpc", post(call).get(socket::open))
        .route("/mcp", post(agent_http::call))
        .route("/metrics", get(metrics))
        .with_state(service.clone())
        .fallback_service(pages.routes)
        .layer(middleware::from_fn_with_state(guarded, guard::guard))
}

/// Answers the requests in the body.
async fn call(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let body = match read_json(&service, request).await {
        Ok(body) => body,
        Err((status, error)) => return refusal(status, &error, true),
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
