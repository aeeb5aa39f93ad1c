//! The service behind every route: the table of methods and their resources.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tracing::info;

use super::agent_calls::AgentCalls;
use super::caller::Caller;
use super::follow::{FollowHub, Following};
use super::login::{TokenCheck, TokenLogin, peer};
use super::method::{CallContext, Method};
use super::nonce::Logins;
use super::rpc_error::{Result, RpcError, code};
use super::table::MethodTable;
use super::webhook_rates::WebhookRates;
use crate::client::{Client, ClientError};
use crate::config::{ApiConfig, Config};
use crate::metrics::{Format, Metrics};
use crate::proto::audit::Author;
use crate::proto::text::shown;
use crate::trace::Tracer;
use crate::view::HealthRules;

/// The maximum age of a reading of metrics that is served again.
const METRICS_AGE_MAX: Duration = Duration::from_secs(1);
/// The time between two checks of the token of a caller who waits.
const TOKEN_CHECK: Duration = Duration::from_secs(5);

/// The API without its transport. Cheap to clone.
#[derive(Clone)]
pub struct ApiService(Arc<ApiParts>);

pub struct ApiParts {
    pub table: Arc<MethodTable>,
    pub client: Client,
    /// The address of Redis, without a password.
    pub address: Arc<str>,
    config: watch::Receiver<Arc<Config>>,
    pub login: TokenLogin,
    metrics: Mutex<Option<(Instant, Arc<Metrics>)>>,
    pub(super) follows: FollowHub,
    pub(super) agent_calls: AgentCalls,
    pub(super) webhooks: WebhookRates,
}

impl Deref for ApiService {
    type Target = ApiParts;

    fn deref(&self) -> &ApiParts {
        &self.0
    }
}

impl ApiService {
    /// Creates the service of a namespace. The configuration may change while it runs. The tracer takes the spans of
    /// calls that submit jobs.
    pub fn new(
        client: Client,
        config: watch::Receiver<Arc<Config>>,
        check: TokenCheck,
        logins: Arc<Logins>,
        tracer: Option<Tracer>,
    ) -> Self {
        let address = config.borrow().redis.redacted_url().into();
        let table = Arc::new(MethodTable::new(tracer));
        let parts = ApiParts {
            address,
            follows: FollowHub::new(client.clone(), Arc::clone(&table.work)),
            table,
            client,
            config,
            login: TokenLogin::new(check, logins),
            metrics: Mutex::default(),
            agent_calls: AgentCalls::default(),
            webhooks: WebhookRates::default(),
        };
        Self(Arc::new(parts))
    }

    /// Waits until a token is not valid any more; without end for a caller that the kernel knows.
    pub(super) async fn token_ends(&self, token: Option<&str>) {
        let Some(token) = token else { return std::future::pending().await };
        loop {
            tokio::time::sleep(TOKEN_CHECK).await;
            if let Ok(None) = self.login.holder(token).await {
                return;
            }
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    pub(super) fn settings(&self) -> ApiConfig {
        self.config.borrow().api.clone()
    }

    pub fn context(&self, caller: Arc<Caller>) -> CallContext {
        self.context_through(caller, "API")
    }

    /// Returns the same for a caller that comes through another entrance.
    pub(crate) fn context_through(
        &self,
        caller: Arc<Caller>,
        through: &'static str,
    ) -> CallContext {
        let client = self.client.clone().as_author(author(&caller, through));
        CallContext::new(client, Arc::clone(&self.address), self.config(), caller)
    }

    /// Calls a method. A call that changes something is logged with its caller.
    pub async fn call(&self, caller: Arc<Caller>, method: &str, params: Value) -> Result<Value> {
        self.call_in(self.context(caller), method, params).await
    }

    /// The same with the means of the method.
    pub(super) async fn call_in(
        &self,
        context: CallContext,
        method: &str,
        params: Value,
    ) -> Result<Value> {
        let name = context.caller.name.clone();
        let id = params.get("id").and_then(Value::as_str).map(str::to_owned);
        let result = self.table.call(context, method, params).await;
        self.log(&name, method, id.as_deref(), result.as_ref().err());
        result
    }

    /// Returns what a subscription of a caller follows. A refusal is logged.
    pub(super) async fn open(
        &self,
        caller: Arc<Caller>,
        method: &str,
        params: Value,
    ) -> Result<Following> {
        let name = caller.name.clone();
        let id = params.get("id").and_then(Value::as_str).map(str::to_owned);
        let result = self.table.open(self.context(caller), method, params).await;
        self.log(&name, method, id.as_deref(), result.as_ref().err());
        result
    }

    /// Logs a call that changes something or is refused.
    fn log(&self, name: &str, method: &str, id: Option<&str>, error: Option<&RpcError>) {
        let found = self.table.method(method);
        let is_refusal =
            |error: &RpcError| matches!(error.code, code::UNAUTHENTICATED | code::NOT_PERMITTED);
        if !found.is_some_and(Method::changes) && !error.is_some_and(is_refusal) {
            return;
        }
        let method = found.map_or(method, |found| found.name);
        let about = id.map(|id| format!(" of {}", shown(id))).unwrap_or_default();
        match error {
            None => info!(caller = %name, method, "{name} called {method}{about}"),
            Some(error) => info!(caller = %name, method, "{name} called {method}{about}: {error}"),
        }
    }

    /// Returns the metrics, at most a second old.
    pub(super) async fn metrics(&self, format: Format) -> Result<String, ClientError> {
        let (bounds, rules) = {
            let config = self.config.borrow();
            (config.metrics.clone(), HealthRules::from(&**config))
        };
        // One reader at a time; the others wait for its result.
        let mut kept = self.metrics.lock().await;
        let metrics = match &*kept {
            Some((at, metrics)) if at.elapsed() < METRICS_AGE_MAX => Arc::clone(metrics),
            _ => {
                let address = self.address.as_ref().to_owned();
                let metrics = Arc::new(Metrics::read(&self.client, address, &rules).await?);
                *kept = Some((Instant::now(), Arc::clone(&metrics)));
                metrics
            }
        };
        drop(kept);
        Ok(metrics.text(format, &bounds))
    }
}

/// Returns a caller as the author of changes, with the client whose request is being answered.
pub(crate) fn author(caller: &Caller, through: &'static str) -> Author {
    // Only a user of the command line has groups.
    let names =
        Some(caller.name.clone()).filter(|name| !name.starts_with('@')).into_iter().collect();
    Author { who: caller.name.clone(), from: peer(), through, names }
}
