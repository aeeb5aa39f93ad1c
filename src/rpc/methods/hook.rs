//! `hook.*`: webhooks of other services, their latest deliveries, and a test.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::webhook_delivery::WebhookDelivery;
use super::notify::{DELIVERIES_MAX, DeliveriesToList};
use super::params::page_size;
use super::{CallContext, Result, RpcError, Scope, blocking, code};
use crate::client::{AuditFilter, job_of_members};
use crate::config::HookName;
use crate::proto::audit::AuditRecord;

methods! {
    /// Lists the webhooks of the configuration and their latest deliveries, the newest first.
    "hook.list", Scope::Admin => list;
    /// Returns the job that a webhook would submit for a delivery, without its proof and without submitting it.
    "hook.test", Scope::Admin => test;
}

/// A webhook of the configuration.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ConfiguredWebhook {
    /// Its name, `[hook.NAME]`.
    pub(crate) name: String,
    /// Its path at the addresses of the API.
    pub(crate) path: String,
    /// The proof of its sender: `github`, `gitlab`, `stripe`, `slack`, `hmac-sha256` or `path`.
    pub(crate) verify: String,
    /// The published script that it submits.
    pub(crate) uses: String,
}

/// The webhooks and their latest deliveries.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct WebhookList {
    /// The webhooks that are configured here.
    pub(crate) hooks: Vec<ConfiguredWebhook>,
    /// The records of deliveries, each with its verdict, the newest first. Of refused ones each supervisor keeps one a minute.
    pub(crate) deliveries: Vec<AuditRecord>,
}

async fn list(context: CallContext, params: DeliveriesToList) -> Result<WebhookList> {
    context.needs_no_bounds("read deliveries of webhooks")?;
    let limit = page_size(params.limit, DELIVERIES_MAX)?;
    let filter = AuditFilter { what: Some("hook".to_owned()), limit, ..AuditFilter::default() };
    let deliveries = context.client.audit().list(&filter).await?;
    let api = &context.config.api.path;
    let hooks = context.config.hooks.iter().map(|(name, hook)| ConfiguredWebhook {
        name: name.to_string(),
        path: format!("{api}/hooks/{name}"),
        verify: hook.verify.map(|of| of.to_string()).unwrap_or_default(),
        uses: hook.uses.as_ref().map(ToString::to_string).unwrap_or_default(),
    });
    Ok(WebhookList { hooks: hooks.collect(), deliveries })
}

/// A delivery to test.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebhookToTest {
    /// The name of the webhook, `[hook.NAME]`.
    name: HookName,
    /// The body of the delivery.
    body: String,
    /// Its headers by name.
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// The result of a test.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct WebhookTest {
    /// The settings of the job that it would submit; none if it would skip the delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Map<String, Value>>,
    /// The condition that the delivery does not meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
}

async fn test(context: CallContext, params: WebhookToTest) -> Result<WebhookTest> {
    context.needs_no_bounds("test a webhook")?;
    let name = params.name;
    let hook = context.config.hooks.get(&name).cloned().ok_or_else(|| {
        let message = format!("no such webhook: this configuration has no [hook.{name}]");
        RpcError::new(code::NOT_FOUND, message)
    })?;
    let wrong = || RpcError::wrong("headers", "a header has an illegal name or value");
    let headers = params.headers.into_iter().map(|(name, value)| {
        let name: HeaderName = name.parse().map_err(|_| wrong())?;
        Ok((name, HeaderValue::try_from(value).map_err(|_| wrong())?))
    });
    let headers = headers.collect::<Result<_>>()?;
    let delivery = WebhookDelivery { headers, body: params.body.into(), path_secret: None };
    let of = hook.clone();
    let secret = blocking(move || Ok(of.secret(&name).map_err(crate::error::Error::from)?));
    if secret.await?.is_none() {
        let message = "this webhook has no secret, so it refuses every delivery: set secret_file";
        return Err(RpcError::new(code::CONFLICT, message));
    }
    let job = match delivery.job(&hook) {
        Ok(job) => job,
        Err(why) => return Ok(WebhookTest { job: None, skipped: Some(why) }),
    };
    let mut checked = job_of_members(job.clone())?;
    context.resolve(&mut checked).await?;
    context.client.check(&checked)?;
    Ok(WebhookTest { job: Some(job), skipped: None })
}
