//! The routes of the API over HTTP. Every other path is the page's.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use super::agent_http;
use super::caller::Scope;
use super::guard::{self, Guarded, RefusedPage, json_text, refusal};
use super::http_body::{in_blocks, read_json};
use super::json::{self, Sender};
use super::rest;
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use super::socket;
use super::webhooks;
use crate::client::ClientError;
use crate::metrics::Format;

/// The longest time that Redis may take to answer before the supervisor is not ready.
const READY_MAX: Duration = Duration::from_secs(2);

/// The pages that are served beside the API.
pub struct Pages {
    /// Their routes, without a prefix.
    pub routes: Router,
    pub refused: RefusedPage,
}

pub(super) fn routes(service: &ApiService, pages: Pages) -> Router {
    let guarded = Guarded { service: service.clone(), refused: pages.refused };
    Router::new()
        .route("/rpc", post(call).get(socket::open))
        .route("/mcp", post(agent_http::call))
        .route("/hooks/{name}", post(webhooks::receive))
        .route("/hooks/{name}/{secret}", post(webhooks::receive))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/openapi.json", get(paths))
        .with_state(service.clone())
        .fallback_service(pages.routes)
        .layer(middleware::from_fn_with_state(service.clone(), rest::serve))
        .layer(middleware::from_fn_with_state(guarded, guard::guard))
        .layer(middleware::map_response(in_blocks))
        .layer(CompressionLayer::new().compress_when(worth_compressing()))
}

async fn call(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let body = match read_json(&service, request).await {
        Ok(body) => body,
        Err(error) => return refusal(&error, true),
    };
    let answers = json::answer(&service, &sender, body).await;
    let Some(text) = answers.text else { return StatusCode::NO_CONTENT.into_response() };
    json_text(answers.status, text)
}

/// Returns the rule that answers of more than 1 KiB are compressed, block by block, for clients that ask for it; live
/// streams, and the outputs and files of jobs, which may be large, are sent as they are.
fn worth_compressing() -> impl Predicate {
    const LEAST: u16 = 1024;
    SizeAbove::new(LEAST)
        .and(NotForContentType::SSE)
        .and(NotForContentType::IMAGES)
        .and(NotForContentType::const_new("application/octet-stream"))
}

/// Describes the paths that call methods. No token is needed.
async fn paths(State(service): State<ApiService>) -> Response {
    json_text(StatusCode::OK, service.table.paths_document().to_string())
}

/// Says that the process serves. No token is needed.
async fn healthy() -> &'static str {
    "ok\n"
}

/// Says whether Redis answers and accepts writes, so that calls can succeed. No token is needed.
async fn ready(State(service): State<ApiService>) -> Response {
    let client = &service.client;
    let asked = async {
        let accepts = client.system().accepts_writes().await?;
        if accepts {
            // A Redis that loads its file tells its state, and serves nothing.
            client.ping().await?;
        }
        Ok::<bool, ClientError>(accepts)
    };
    let reason = match tokio::time::timeout(READY_MAX, asked).await {
        Ok(Ok(true)) => return "ok\n".into_response(),
        Ok(Ok(false)) => "redis refuses writes".to_owned(),
        Ok(Err(_)) => "redis cannot be reached".to_owned(),
        Err(_) => format!("redis has not answered within {} s", READY_MAX.as_secs()),
    };
    // The cause is in the log; who asks here is not known.
    (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response()
}

/// Refuses the metrics to a caller that may not see all jobs.
fn may_read_metrics(sender: &Sender) -> Result<()> {
    let caller = sender.known()?;
    let why = if !caller.scopes.has(Scope::Read) {
        "it needs the scope read"
    } else if caller.is_bound() {
        "they count jobs beyond the bounds of this caller"
    } else {
        return Ok(());
    };
    let message = format!("{} may not read metrics: {why}", caller.name);
    Err(RpcError::new(code::NOT_PERMITTED, message))
}

async fn metrics(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    headers: HeaderMap,
) -> Response {
    if !service.settings().metrics_open
        && let Err(error) = may_read_metrics(&sender)
    {
        return refusal(&error, false);
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
