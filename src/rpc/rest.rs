//! Jobs by plain HTTP, for `curl` and for tools that speak no JSON-RPC: each path calls a method of the table.
//! A browser that asks for a page gets the page of the same address.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::guard::{asking_for_token, wants_page};
use super::http_body::{is_json, read_json};
use super::json::{self, Sender};
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use crate::proto::json_text::refuse_wide_integers;
use crate::proto::text::shown;

#[derive(Debug, PartialEq, Eq)]
enum RestCall {
    /// `GET /jobs/ID`, with the maximum wait for the end, in seconds.
    Get(String, Option<String>),
    /// `POST /jobs`, with the maximum wait for the end, in seconds.
    Submit(Option<String>),
    /// `POST /jobs/ID/tell`.
    Tell(String),
}

/// Answers the calls by paths; all else goes on.
pub(super) async fn serve(
    State(service): State<ApiService>,
    request: Request,
    next: Next,
) -> Response {
    let mut request = request;
    if let Some(list) = list_as_json(&request) {
        *request.uri_mut() = list;
    }
    let Some(call) = of(request.method(), request.uri(), request.headers()) else {
        let path = request.uri().path().to_owned();
        let response = next.run(request).await;
        let is_refused = response.status() == StatusCode::METHOD_NOT_ALLOWED;
        return if is_refused { method_not_allowed(&path, &response) } else { response };
    };
    let known: &[&str] = match &call {
        RestCall::Get(..) | RestCall::Submit(_) => &["wait"],
        RestCall::Tell(_) => &[],
    };
    let answered = match unknown_parameter(known, request.uri().query()) {
        Some((name, message)) => Err(RpcError::wrong(&name, message)),
        None => answer(&service, call, request).await,
    };
    answered.unwrap_or_else(|error| {
        asking_for_token(json_response(error.status(), json!({ "error": error }).to_string()))
    })
}

fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<RestCall> {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = uri.path().trim_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    // A HEAD is answered as a GET, without its body.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let wait = || {
        let mut pairs = uri.query().unwrap_or_default().split('&');
        pairs.find_map(|pair| pair.strip_prefix("wait=")).map(str::to_owned)
    };
    match (method, parts.as_slice()) {
        // The page has the job as a file.
        (&Method::GET, ["jobs", id])
            if !wants_page(headers) && id.strip_suffix(".json").is_none() =>
        {
            Some(RestCall::Get((*id).to_owned(), wait()))
        }
        // A form of the page has no such header: what a program sends in another type is refused with what to send.
        (&Method::POST, ["jobs"])
            if is_json(headers) || headers.contains_key(header::AUTHORIZATION) =>
        {
            Some(RestCall::Submit(wait()))
        }
        (&Method::POST, ["jobs", id, "tell"]) => Some(RestCall::Tell((*id).to_owned())),
        _ => None,
    }
}

/// Returns the address of the list of jobs as JSON for a program with a token that asks for the list.
fn list_as_json(request: &Request) -> Option<Uri> {
    let (uri, headers) = (request.uri(), request.headers());
    let is_program = headers.contains_key(header::AUTHORIZATION) && !wants_page(headers);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_list = reads && uri.path().trim_end_matches('/') == "/jobs";
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    (is_program && is_list).then(|| format!("/jobs.json{query}").parse().ok()).flatten()
}

/// Adds to the refusal of a verb which ones the path takes.
fn method_not_allowed(path: &str, response: &Response) -> Response {
    let allowed = response.headers().get(header::ALLOW).cloned();
    let takes = allowed.as_ref().and_then(|allowed| allowed.to_str().ok()).unwrap_or_default();
    let message = format!(
        "{} takes {}; what has no verb here, such as deleting a job, is a method of POST /rpc: GET /openapi.json",
        shown(path),
        takes.replace(',', ", ")
    );
    let error = RpcError::new(code::METHOD_NOT_FOUND, message);
    let mut told =
        json_response(StatusCode::METHOD_NOT_ALLOWED, json!({ "error": error }).to_string());
    told.headers_mut().extend(allowed.map(|allowed| (header::ALLOW, allowed)));
    told
}

/// Returns the first parameter of an address that is not known, and its error.
pub(crate) fn unknown_parameter(known: &[&str], query: Option<&str>) -> Option<(String, String)> {
    let pairs = query.unwrap_or_default().split('&');
    let mut names = pairs.filter_map(|pair| pair.split('=').next()).filter(|it| !it.is_empty());
    let unknown = shown(names.find(|name| !known.contains(name))?);
    let takes = match known {
        [] => "none".to_owned(),
        known => format!("`{}`", known.join("`, `")),
    };
    let message = format!("unknown parameter `{unknown}` in the address, which takes {takes}");
    Some((unknown, message))
}

fn seconds(wait: &str) -> Result<f64> {
    // No JSON has an infinite number.
    let seconds: Option<f64> = wait.parse().ok().filter(|seconds: &f64| seconds.is_finite());
    seconds.ok_or_else(|| RpcError::wrong("wait", "wait must be a number of seconds"))
}

async fn answer(service: &ApiService, call: RestCall, request: Request) -> Result<Response> {
    let Some(sender) = request.extensions().get::<Sender>().cloned() else {
        return Err(RpcError::new(code::INTERNAL, "the request has no sender"));
    };
    let ask =
        async |method: &str, params: Value| json::call(service, &sender, method, params).await;
    let document = async |method: &str, params: Value| -> Result<Response> {
        Ok(json_response(StatusCode::OK, json::text_of(ask(method, params).await?).await))
    };
    match call {
        RestCall::Get(id, None) => document("job.get", json!({ "id": id })).await,
        RestCall::Get(id, Some(wait)) => {
            document("job.wait", json!({ "id": id, "wait": seconds(&wait)? })).await
        }
        RestCall::Tell(id) => {
            let body = read_json(service, request).await?;
            document("job.tell", event_for(id, &body)?).await
        }
        RestCall::Submit(wait) => {
            let body = read_json(service, request).await?;
            let method = if wait.is_some() { "job.run" } else { "job.submit" };
            let job = ask(method, submission(&body, wait.as_deref())?).await?;
            let id = job["id"].as_str().unwrap_or_default();
            let place = HeaderValue::from_str(&format!("{}/jobs/{id}", service.settings().path));
            let status = if wait.is_some() { StatusCode::OK } else { StatusCode::CREATED };
            let mut response = json_response(status, json::text_of(job).await);
            if let Ok(place) = place {
                response.headers_mut().insert(header::LOCATION, place);
            }
            Ok(response)
        }
    }
}

/// Returns the parameters of a submission: the body is the job, with `inputs` and `stdin` beside its settings.
fn submission(body: &[u8], wait: Option<&str>) -> Result<Value> {
    let mut job = object_in(body, "a job, an object of JSON")?;
    let mut params = Map::new();
    for name in ["inputs", "stdin"] {
        params.extend(job.remove_entry(name));
    }
    if let Some(wait) = wait {
        params.insert("wait".to_owned(), json!(seconds(wait)?));
    }
    params.insert("job".to_owned(), Value::Object(job));
    Ok(Value::Object(params))
}

/// Returns the parameters of an event: the body is the event, with its data.
fn event_for(id: String, body: &[u8]) -> Result<Value> {
    let mut params = object_in(body, "an event, an object of JSON with `event`")?;
    if params.insert("id".to_owned(), Value::String(id)).is_some() {
        return Err(RpcError::wrong("id", "the id of the job stands in the address"));
    }
    Ok(Value::Object(params))
}

fn object_in(body: &[u8], what: &str) -> Result<Map<String, Value>> {
    let wrong = |message: String| RpcError::new(code::INVALID_PARAMS, message);
    refuse_wide_integers(body).map_err(wrong)?;
    serde_json::from_slice(body).map_err(|error| wrong(format!("the body must be {what}: {error}")))
}

fn json_response(status: StatusCode, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (status, headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(
        method: &Method,
        path: &str,
        headers: &[(header::HeaderName, &str)],
    ) -> Option<RestCall> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(name, value.parse().expect("a value"));
        }
        of(method, &path.parse().expect("a path"), &all)
    }

    #[test]
    fn browser_gets_the_page_and_a_program_the_job() {
        let page = [(header::ACCEPT, "text/html,*/*")];
        assert_eq!(call(&Method::GET, "/jobs/a", &page), None);
        assert_eq!(call(&Method::GET, "/jobs/a", &[]), Some(RestCall::Get("a".to_owned(), None)));
        assert_eq!(call(&Method::GET, "/jobs/a.json", &[]), None);
        let dotted = Some(RestCall::Get("a.b".to_owned(), None));
        assert_eq!(call(&Method::GET, "/jobs/a%2Eb", &[]), dotted);
        let coded = Some(RestCall::Get("a b%".to_owned(), None));
        assert_eq!(call(&Method::GET, "/jobs/a%20b%25", &[]), coded);
        assert_eq!(call(&Method::HEAD, "/jobs/a%20b%25", &[]), coded);
        for other in ["/jobs", "/", "/queues/a"] {
            assert_eq!(call(&Method::GET, other, &[]), None, "{other}");
        }
        for of_page in ["/jobs/a/log?x=1", "/jobs/a/output", "/jobs/a/files/x"] {
            assert_eq!(call(&Method::GET, of_page, &[]), None, "{of_page}");
        }
    }

    #[test]
    fn form_of_the_page_is_no_submission() {
        let form = [(header::CONTENT_TYPE, "application/x-www-form-urlencoded")];
        assert_eq!(call(&Method::POST, "/jobs", &form), None);
        let json = [(header::CONTENT_TYPE, "application/json")];
        assert_eq!(call(&Method::POST, "/jobs", &json), Some(RestCall::Submit(None)));
        let wait = Some(RestCall::Submit(Some("5".to_owned())));
        assert_eq!(call(&Method::POST, "/jobs?wait=5", &json), wait);
    }

    #[test]
    fn event_is_the_body_and_its_job_stands_in_the_address() {
        let tell = Some(RestCall::Tell("a".to_owned()));
        assert_eq!(call(&Method::POST, "/jobs/a/tell", &[]), tell);
        assert_eq!(call(&Method::GET, "/jobs/a/tell", &[]), None);
        let params = event_for("a".to_owned(), br#"{"event": "approved", "data": [1]}"#);
        let expected = json!({ "id": "a", "event": "approved", "data": [1] });
        assert_eq!(params.expect("legal"), expected);
        for wrong in ["", "[]", "7", r#"{"event": "a", "id": "b"}"#] {
            let error = event_for("a".to_owned(), wrong.as_bytes()).expect_err("illegal");
            assert_eq!(error.code, code::INVALID_PARAMS, "{wrong}");
        }
    }

    #[test]
    fn files_are_members_of_the_submission_not_of_the_job() {
        let body = br#"{"script": "1", "script_type": "osis", "stdin": "eA=="}"#;
        let params = submission(body, Some("2")).expect("legal");
        let job = json!({ "script": "1", "script_type": "osis" });
        assert_eq!(params, json!({ "job": job, "stdin": "eA==", "wait": 2.0 }));
        let wide = submission(br#"{"params": {"n": 100000000000000000000}}"#, None);
        for wrong in [submission(b"[]", None), submission(b"{}", Some("soon")), wide] {
            assert_eq!(wrong.expect_err("illegal").code, code::INVALID_PARAMS);
        }
    }
}
