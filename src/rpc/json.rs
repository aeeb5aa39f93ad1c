//! JSON-RPC 2.0: the requests in a text, and the text of their responses.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use tracing::debug;

use super::caller::Caller;
use super::login::PEER;
use super::request_trace::TRACE;
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use super::subscriptions::SocketCall;
use crate::proto::job::TraceParent;
use crate::proto::json_text::refuse_wide_integers;
use crate::proto::text::shown;

/// A text beyond this size is read and written on a thread of its own, in bytes.
const LARGE_BYTES: usize = 256 << 10;
/// The answers to a batch; once they have more bytes, its further calls are not made.
const BATCH_BYTES_MAX: usize = 16 << 20;

#[derive(Clone)]
pub(super) struct Sender {
    /// The caller; `None` if it is not known.
    pub(super) caller: Option<Arc<Caller>>,
    /// Its address or user, for the log and for failed logins.
    pub(super) peer: Arc<str>,
    /// The token that identifies the caller; `None` if the kernel does.
    pub(super) token: Option<Arc<str>>,
    /// The message of a WebSocket that has the request.
    pub(super) socket: Option<Arc<SocketCall>>,
    /// The place of the request in a trace, as its header says.
    pub(super) trace: Option<TraceParent>,
}

impl Sender {
    /// Returns the caller, which must be known.
    pub(super) fn known(&self) -> Result<&Arc<Caller>> {
        self.caller.as_ref().ok_or_else(|| RpcError::new(code::UNAUTHENTICATED, NOBODY))
    }
}

pub(super) struct RpcAnswers {
    /// The text to send; `None` if it had only notifications.
    pub(super) text: Option<String>,
    /// The status of HTTP: the error's, if there is one response and it is an error.
    pub(super) status: StatusCode,
}

impl RpcAnswers {
    /// One error that belongs to no request.
    pub(super) fn error(error: &RpcError) -> Self {
        let text = response(Value::Null, Err(error.clone())).to_string();
        Self { text: Some(text), status: error.status() }
    }
}

pub(super) struct Request {
    /// `None` for a notification.
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Value,
}

pub(super) enum Parsed {
    One(Result<Request, Value>),
    Batch(Vec<Result<Request, Value>>),
}

/// Parses a text, which is no empty or too large batch. A wrong request of a batch becomes its response.
pub(super) fn parse(text: &[u8], batch_max: usize) -> Result<Parsed> {
    refuse_wide_integers(text).map_err(|why| RpcError::new(code::INVALID_REQUEST, why))?;
    let value = serde_json::from_slice(text).map_err(|error| {
        RpcError::new(code::PARSE, format!("cannot parse the request as JSON: {error}"))
    })?;
    match value {
        Value::Array(requests) if requests.is_empty() => {
            Err(RpcError::new(code::INVALID_REQUEST, "the batch is empty"))
        }
        Value::Array(requests) if requests.len() > batch_max => {
            let message = format!(
                "the batch has {} calls, more than the limit of {batch_max} (api.batch_max); send \
                 several batches",
                requests.len()
            );
            Err(RpcError::new(code::INVALID_REQUEST, message))
        }
        Value::Array(requests) => Ok(Parsed::Batch(requests.into_iter().map(request).collect())),
        one => Ok(Parsed::One(request(one))),
    }
}

fn request(value: Value) -> Result<Request, Value> {
    let wrong =
        |id: Value, message: &str| response(id, Err(RpcError::new(code::INVALID_REQUEST, message)));
    let Value::Object(mut members) = value else {
        return Err(wrong(Value::Null, "a request must be an object"));
    };
    let id = members.remove("id");
    let known = match &id {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.clone(),
        None | Some(Value::Null) => Value::Null,
        Some(_) => return Err(wrong(Value::Null, "id must be a string, a number or null")),
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong(known, "jsonrpc must be \"2.0\""));
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return Err(wrong(known, "method must be a string"));
    };
    let params = members.remove("params").unwrap_or_default();
    if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
        return Err(wrong(known, "params must be an object or an array"));
    }
    Ok(Request { id, method, params })
}

pub(crate) fn response(id: Value, result: Result<Value>) -> Value {
    let mut members = Map::new();
    members.insert("jsonrpc".to_owned(), "2.0".into());
    match result {
        Ok(result) => members.insert("result".to_owned(), result),
        Err(error) => members.insert("error".to_owned(), json!(error)),
    };
    members.insert("id".to_owned(), id);
    Value::Object(members)
}

pub(super) async fn answer(service: &ApiService, sender: &Sender, text: Bytes) -> RpcAnswers {
    let batch_max = service.settings().batch_max;
    let is_large = text.len() > LARGE_BYTES;
    match on_own_thread(is_large, move || parse(&text, batch_max)).await {
        Err(error) => RpcAnswers::error(&error),
        Ok(Parsed::One(Err(response))) => {
            RpcAnswers { text: Some(response.to_string()), status: StatusCode::BAD_REQUEST }
        }
        Ok(Parsed::One(Ok(request))) => one(service, sender, request).await,
        Ok(Parsed::Batch(requests)) => batch(service, sender, requests).await,
    }
}

async fn one(service: &ApiService, sender: &Sender, request: Request) -> RpcAnswers {
    let Request { id, method, params } = request;
    let result = call(service, sender, &method, params).await;
    let status = result.as_ref().err().map_or(StatusCode::OK, RpcError::status);
    let text = match id {
        Some(id) => Some(text_of(response(id, result)).await),
        None => None,
    };
    RpcAnswers { text, status }
}

async fn batch(
    service: &ApiService,
    sender: &Sender,
    requests: Vec<Result<Request, Value>>,
) -> RpcAnswers {
    let mut text = String::from("[");
    for request in requests {
        let response = match request {
            Err(response) => Some(response),
            Ok(Request { id, .. }) if text.len() > BATCH_BYTES_MAX => {
                id.map(|id| response(id, Err(not_called())))
            }
            Ok(Request { id, method, params }) => {
                let result = call(service, sender, &method, params).await;
                id.map(|id| response(id, result))
            }
        };
        let Some(response) = response else { continue };
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&text_of(response).await);
    }
    text.push(']');
    RpcAnswers { text: (text.len() > 2).then_some(text), status: StatusCode::OK }
}

fn not_called() -> RpcError {
    let message = format!(
        "not called: the answers to the calls before it have more than {} MiB; send it again, in a smaller batch",
        BATCH_BYTES_MAX >> 20
    );
    RpcError::new(code::INTERNAL, message).with("retryable", true)
}

pub(super) async fn text_of(response: Value) -> String {
    on_own_thread(is_large(&response, &mut 0), move || response.to_string()).await
}

/// Does what takes long for a large text on a thread of its own, so that other callers are answered meanwhile.
pub(crate) async fn on_own_thread<T: Send + 'static>(
    is_large: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if !is_large {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// Returns whether the text of a value has more than [`LARGE_BYTES`], about; `counted` are those before it.
fn is_large(value: &Value, counted: &mut usize) -> bool {
    *counted += match value {
        Value::String(text) => text.len(),
        _ => size_of::<u64>(),
    };
    let inner = |value| is_large(value, counted);
    match value {
        Value::Array(values) => values.iter().any(inner),
        Value::Object(members) => members.values().any(inner),
        _ => *counted > LARGE_BYTES,
    }
}

pub(super) async fn call(
    service: &ApiService,
    sender: &Sender,
    method: &str,
    params: Value,
) -> Result<Value> {
    if let Some(result) = service.login.call(method, &params, &sender.peer).await {
        return result;
    }
    let caller = sender.known().inspect_err(|_| {
        debug!(peer = %sender.peer, "refused {} to {}", shown(method), sender.peer);
    })?;
    if let Some(socket) = &sender.socket
        && let Some(result) = socket.call(service, caller, method, &params).await
    {
        return result;
    }
    let call = service.call(Arc::clone(caller), method, params);
    let call = PEER.scope(Arc::clone(&sender.peer), TRACE.scope(sender.trace.into(), call));
    // A WebSocket ends with its token.
    let Some(token) = sender.token.as_ref().filter(|_| sender.socket.is_none()) else {
        return call.await;
    };
    // The calls of a batch before it may have waited for long.
    if let Ok(None) = service.login.holder(token).await {
        return Err(revoked());
    }
    tokio::select! {
        result = call => result,
        () = service.token_ends(Some(token)) => Err(revoked()),
    }
}

/// The error of a call whose token is not valid any more.
pub(super) fn revoked() -> RpcError {
    RpcError::new(code::UNAUTHENTICATED, "the token was revoked or has expired meanwhile")
}

const NOBODY: &str = "the caller is not known: over TCP send a token in the header \
     Authorization (make one with `hero token new`), over the Unix socket call as root or as a member \
     of api.group or api.admin_group";

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        match parse(text.as_bytes(), 2) {
            Err(error) => error.message,
            Ok(Parsed::One(Err(response))) => response["error"]["message"].as_str().unwrap().into(),
            _ => panic!("{text} is legal"),
        }
    }

    #[test]
    fn wrong_requests_are_rejected_with_their_reason() {
        for (text, expected) in [
            ("", "cannot parse the request as JSON"),
            ("{", "cannot parse the request as JSON"),
            ("[]", "the batch is empty"),
            ("[1,2,3]", "the batch has 3 calls, more than the limit of 2"),
            ("1", "a request must be an object"),
            ("{}", "jsonrpc must be"),
            (r#"{"jsonrpc":"1.0","method":"a"}"#, "jsonrpc must be"),
            (r#"{"jsonrpc":"2.0"}"#, "method must be a string"),
            (r#"{"jsonrpc":"2.0","method":"a","id":{}}"#, "id must be"),
            (r#"{"jsonrpc":"2.0","method":"a","params":1}"#, "params must be"),
        ] {
            let message = wrong(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
        let deep = "[".repeat(100_000);
        assert!(wrong(&deep).contains("recursion limit"), "not bounded");
    }

    #[test]
    fn wrong_request_keeps_its_id() {
        let Ok(Parsed::Batch(requests)) = parse(br#"[{"id":7},{"jsonrpc":"2.0","method":"a"}]"#, 2)
        else {
            panic!("not a batch")
        };
        assert!(matches!(&requests[0], Err(response) if response["id"] == 7));
        assert!(matches!(&requests[1], Ok(Request { id: None, method, .. }) if method == "a"));
    }

    #[test]
    fn request_without_an_id_is_a_notification_and_null_is_an_id() {
        let id = |text: &str| match parse(text.as_bytes(), 1) {
            Ok(Parsed::One(Ok(request))) => request.id,
            _ => panic!("{text}"),
        };
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"a"}"#), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"a","id":null}"#), Some(Value::Null));
    }
}
