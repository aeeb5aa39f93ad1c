//! `POST /hooks/NAME`: deliveries of other services, which submit published scripts. Who cannot prove that it knows the secret of a
//! hook does not learn whether there is one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::warn;

use super::agent::output_of;
use super::caller::{Bounds, Caller, Scope, Scopes};
use super::guard::{json_text, refusal};
use super::http_body::read_body;
use super::method::CallContext;
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use super::webhook_delivery::WebhookDelivery;
use crate::config::{HookName, Rate, WebhookConfig};

/// Refused deliveries of a hook leave one record within this time.
const REFUSALS_WITHIN: Duration = Duration::from_mins(1);

/// Answers a delivery.
pub(super) async fn receive(
    State(service): State<ApiService>,
    Path(path): Path<BTreeMap<String, String>>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let body = match read_body(&service, request).await {
        Ok(body) => body,
        Err(error) => return refusal(&error, false),
    };
    let delivery = WebhookDelivery { headers, body, path_secret: path.get("secret").cloned() };
    let name = path.get("name").map_or("", String::as_str);
    let answered = answer(&service, name, delivery).await;
    answered.unwrap_or_else(|error| refusal(&error, false))
}

async fn answer(service: &ApiService, name: &str, delivery: WebhookDelivery) -> Result<Response> {
    let stranger = || {
        let message = "there is no such webhook, or its secret, signature or time is wrong";
        RpcError::new(code::NOT_PERMITTED, message)
    };
    let config = service.config();
    let found = name.parse::<HookName>().ok();
    let found = found.and_then(|name| config.hooks.get(&name).cloned().map(|hook| (name, hook)));
    let (name, hook) = found.ok_or_else(stranger)?;
    let context = context_of(service, &name);
    let secret = secret_of(&name, &hook).await.ok_or_else(stranger)?;
    if !delivery.is_proven(&hook, &secret, Timestamp::now().as_second()) {
        if service.webhooks.admits(&name, false, Rate { number: 1, period: REFUSALS_WITHIN }) {
            note(&context, &name, "refused: its secret, signature or time is wrong").await;
        }
        return Err(stranger());
    }
    if !service.webhooks.admits(&name, true, hook.rate) {
        let message = format!("more than {} deliveries (rate of [hook.{name}])", hook.rate);
        let error = RpcError::new(code::CONFLICT, message);
        return Err(error.over_http(StatusCode::TOO_MANY_REQUESTS));
    }
    let job = match delivery.job(&hook) {
        Ok(job) => job,
        Err(why) => {
            note(&context, &name, &format!("skipped: {why}")).await;
            return Ok(json_text(StatusCode::OK, json!({ "skipped": why }).to_string()));
        }
    };
    let submitted = submit(service, &context, &hook, job).await;
    let verdict = match &submitted {
        Ok((verdict, _)) => verdict.clone(),
        Err(error) => format!("failed: {error}"),
    };
    note(&context, &name, &verdict).await;
    submitted.map(|(_, response)| response)
}

/// Submits the job of a delivery. Returns the verdict on it, and the answer.
async fn submit(
    service: &ApiService,
    context: &CallContext,
    hook: &WebhookConfig,
    job: Map<String, Value>,
) -> Result<(String, Response)> {
    let mut params = json!({ "job": job });
    let waits = !hook.wait.is_zero();
    if waits {
        params["wait"] = json!(hook.wait.as_secs_f64());
    }
    let method = if waits { "job.run" } else { "job.submit" };
    let job = service.call_in(context.clone(), method, params).await?;
    let id = job["id"].as_str().unwrap_or_default();
    let verdict = match job["created"].as_bool() {
        Some(false) => format!("repeated: job {id}"),
        _ => format!("submitted job {id}"),
    };
    let of_status = |status| {
        let mut document = json!({ "id": id });
        for member in ["created", "status"] {
            if let Some(value) = job.get(member) {
                document[member] = value.clone();
            }
        }
        json_text(status, document.to_string())
    };
    let response = match job["status"].as_str() {
        Some("finished") => output(&job)?,
        Some("error") => of_status(StatusCode::UNPROCESSABLE_ENTITY),
        _ => of_status(StatusCode::ACCEPTED),
    };
    Ok((verdict, response))
}

/// Returns the output of a job as it is, text or bytes, which no browser runs.
fn output(job: &Value) -> Result<Response> {
    let is_text = job["output_encoding"].is_null();
    let kind = if is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_DISPOSITION, "attachment"),
    ];
    Ok((headers, output_of(job)?).into_response())
}

/// Returns the means of a hook: it submits jobs of its own, whose unique keys are its own.
fn context_of(service: &ApiService, name: &HookName) -> CallContext {
    let scopes = Scopes::from_iter([Scope::Submit]);
    let caller = Caller { name: format!("hook:{name}"), scopes, bounds: Bounds::default() };
    service.context_through(Arc::new(caller), "webhook")
}

async fn note(context: &CallContext, name: &HookName, verdict: &str) {
    context.client.audit().note_delivery(format!("{name} {verdict}")).await;
}

/// Reads the secret of a hook beside the runtime. What is wrong with it stands in the log.
async fn secret_of(name: &HookName, hook: &WebhookConfig) -> Option<String> {
    let (of, hook) = (name.clone(), hook.clone());
    let read = tokio::task::spawn_blocking(move || hook.secret(&of)).await.ok()?;
    match read {
        Ok(Some(secret)) => Some(secret.expose().to_owned()),
        Ok(None) => {
            warn!("refused a delivery: [hook.{name}] has no secret: set secret_file");
            None
        }
        Err(error) => {
            warn!("refused a delivery to [hook.{name}]: {error}");
            None
        }
    }
}
