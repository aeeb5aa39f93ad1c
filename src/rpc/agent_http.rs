//! `/mcp`: the Model Context Protocol over HTTP. Each request is a POST, and its response is JSON.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::agent::{
    AgentServer, CallCourse, agent_code, is_per_request, is_supported, unsupported, version_of,
};
use super::agent_calls::{AgentCall, CancelByDrop, RunningCall};
use super::guard::{json_text, refusal};
use super::http_body::read_json;
use super::json::{self, Sender};
use super::request_trace::TRACE;
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use crate::proto::job::{BootId, TraceParent};
use crate::proto::json_text::{readable, refuse_wide_integers};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const SESSION: &str = "mcp-session-id";

pub(super) async fn call(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let caller = match sender.known() {
        Ok(caller) => Arc::clone(caller),
        Err(error) => return refusal(&error, true),
    };
    let headers = request.headers().clone();
    let body = match read_json(&service, request).await {
        Ok(body) => body,
        Err(error) => return refusal(&error, true),
    };
    let version = text(&headers, VERSION);
    if let Some(version) = version.filter(|version| !is_supported(version)) {
        return failed(Value::Null, &unsupported(version), true);
    }
    let is_modern = version.is_some_and(is_per_request);
    let session = text(&headers, SESSION);
    let request = match message(&body) {
        Ok(request) => request,
        Err((id, error)) => return failed(id, &error, true),
    };
    // Answers to requests that were never made have no method.
    let Some(AgentMessage { id, method, params }) = request else {
        return StatusCode::ACCEPTED.into_response();
    };
    let Some(id) = id else {
        let cancelled = AgentCall::of(&caller.name, session, &params["requestId"]);
        if let Some(call) = cancelled.filter(|_| method == "notifications/cancelled") {
            service.agent_calls.cancel(&call);
        }
        return StatusCode::ACCEPTED.into_response();
    };
    if let Err(error) = checked(&headers, &method, &params) {
        return failed(id, &error, is_modern);
    }
    let begins = method == "initialize";
    let (running, cancelled) = service.agent_calls.begin(AgentCall::of(&caller.name, session, &id));
    // In the versions with sessions a client that goes away may come back.
    let reader = is_modern.then(|| running.cancelled_by_drop());
    let server = AgentServer::of(&service, caller);
    let call = HttpCall { server, running, cancelled, trace: sender.trace };
    if streams(&headers, &params) {
        let token = sender.token.clone();
        let ends = Box::pin(async move { service.token_ends(token.as_deref()).await });
        return told((call, ends), reader, id, method, params);
    }
    let (notices, _) = mpsc::channel(1);
    // A task of its own: the server stops waiting when the client goes away.
    let answered = tokio::spawn(call.answer(notices, method, params));
    let result = tokio::select! {
        done = answered => done.ok().flatten(),
        () = service.token_ends(sender.token.as_deref()) => Some(Err(json::revoked())),
    };
    drop(reader);
    match result {
        Some(Ok(result)) => {
            let text = json::text_of(json::response(id, Ok(result))).await;
            let response = json_text(StatusCode::OK, text);
            if begins { (session_header(), response).into_response() } else { response }
        }
        Some(Err(error)) => failed(id, &error, is_modern),
        // A cancelled request has no answer.
        None => StatusCode::ACCEPTED.into_response(),
    }
}

struct HttpCall {
    server: AgentServer,
    running: RunningCall,
    cancelled: watch::Receiver<bool>,
    /// The place of the request in a trace.
    trace: Option<TraceParent>,
}

impl HttpCall {
    /// Answers it; `None` if it is cancelled.
    async fn answer(
        self,
        notices: mpsc::Sender<Value>,
        method: String,
        params: Value,
    ) -> Option<Result<Value>> {
        let course = CallCourse { notices, cancelled: self.cancelled };
        let answer = self.server.answer_in(course, &method, params);
        // It runs in a task of its own.
        let result = TRACE.scope(self.trace.into(), answer).await;
        drop(self.running);
        result
    }
}

/// Names a session: it tells the requests of one client from the requests of another. The server keeps nothing of it.
fn session_header() -> [(&'static str, String); 1] {
    [(SESSION, BootId::random().to_string())]
}

/// Returns true if the agent wants to be told the progress of its call, and can read a stream.
fn streams(headers: &HeaderMap, params: &Value) -> bool {
    let accepts = text(headers, "accept").is_some_and(|kinds| kinds.contains("text/event-stream"));
    accepts && !params["_meta"]["progressToken"].is_null()
}

/// The answer as a stream: notifications of progress, then the response, until the token `ends`. `reader` is dropped with the stream.
fn told(
    (call, ends): (HttpCall, impl Future<Output = ()> + Send + 'static),
    reader: Option<CancelByDrop>,
    id: Value,
    method: String,
    params: Value,
) -> Response {
    let (notices, told) = mpsc::channel(1);
    tokio::spawn(async move {
        if let Some(result) = call.answer(notices.clone(), method, params).await {
            drop(notices.send(json::response(id, result)).await);
        }
    });
    let events = stream::unfold((told, reader), |(mut told, reader)| async move {
        let message = told.recv().await?;
        let event = Event::default().event("message").data(message.to_string());
        Some((Ok::<_, Infallible>(event), (told, reader)))
    });
    Sse::new(events.take_until(ends)).into_response()
}

/// A message with a method: a request, or without an id a notification.
pub(crate) struct AgentMessage {
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// Reads a message; `None` for one without a method. An error has the id of its request, as far as that can be read.
#[allow(clippy::result_large_err, reason = "it is the answer to a wrong message, made once")]
pub(crate) fn message(body: &[u8]) -> Result<Option<AgentMessage>, (Value, RpcError)> {
    let mut message: Value = serde_json::from_str(&readable(body)).map_err(|error| {
        let text = format!("cannot parse the message as JSON: {error}");
        (Value::Null, RpcError::new(code::PARSE, text))
    })?;
    let id = message.get("id").cloned();
    let wrong = |why: &str| {
        Err((id.clone().unwrap_or_default(), RpcError::new(code::INVALID_REQUEST, why)))
    };
    if let Err(why) = refuse_wide_integers(body) {
        return wrong(&why);
    }
    let Some(members) = message.as_object_mut() else {
        return wrong("the body must be one message of JSON-RPC, an object");
    };
    let Some(Value::String(method)) = members.remove("method") else {
        let is_answer = members.contains_key("result") || members.contains_key("error");
        return if is_answer { Ok(None) } else { wrong("the message has no method") };
    };
    let params = members.remove("params").unwrap_or_default();
    Ok(Some(AgentMessage { id, method, params }))
}

/// Refuses a request whose headers say something else than its body: a proxy may have looked only at them.
fn checked(headers: &HeaderMap, method: &str, params: &Value) -> Result<()> {
    let version = text(headers, VERSION);
    let own = version_of(params);
    let differs = |name: &str| {
        let message = format!("the header {name} and the body of the request differ");
        Err(RpcError::new(agent_code::HEADER_MISMATCH, message))
    };
    let is_modern = version.is_some_and(is_per_request);
    if !is_modern && own.is_none() {
        return Ok(());
    }
    if own.as_deref() != version {
        return match (own, version) {
            (None, _) => {
                let message = "the request does not say its version in params._meta";
                Err(RpcError::new(code::INVALID_PARAMS, message))
            }
            _ => differs("MCP-Protocol-Version"),
        };
    }
    if text(headers, METHOD) != Some(method) {
        return differs("Mcp-Method");
    }
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    if name.is_some() && text(headers, NAME).and_then(decoded).as_deref() != name {
        return differs("Mcp-Name");
    }
    Ok(())
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the value of a header, which is Base64 if it has more than a header can.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(base64) => String::from_utf8(STANDARD.decode(base64).ok()?).ok(),
    }
}

/// The response of an error. Since the requests say their versions, the status of HTTP tells it too.
fn failed(id: Value, error: &RpcError, has_status: bool) -> Response {
    let status = match error.code {
        _ if !has_status => StatusCode::OK,
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::INTERNAL => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    json_text(status, json::response(id, Err(error.clone())).to_string())
}
