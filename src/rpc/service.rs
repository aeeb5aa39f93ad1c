//! The service behind every route: the table of methods and their resources.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tracing::info;

use super::agent_calls::AgentCalls;
use super::caller::{Caller, Scope};
use super::follow::{FollowHub, Following};
use super::login::{TokenCheck, TokenLogin, peer};
use super::method::CallContext;
use super::nonce::Logins;
use super::rpc_error::{RpcError, code, shown};
use super::table::MethodTable;
use crate::client::{Client, ClientError};
use crate::config::{ApiConfig, Config};
use crate::metrics::{Format, Metrics};
use crate::proto::audit::Author;
use crate::trace::Tracer;
use crate::view::HealthRules;

/// The maximum age of a reading of metrics that is served again.
const METRICS_AGE_MAX: Duration = Duration::from_secs(1);
/// The time between two checks of the token of a caller who waits.
const TOKEN_CHECK: Duration = Duration::from_secs(5);

/// The API without its transport. Cheap to clone.
#[derive(Clone)]
pub struct ApiService(Arc<Parts>);

struct Parts {
    table: Arc<MethodTable>,
    client: Client,
    address: Arc<str>,
    config: watch::Receiver<Arc<Config>>,
    login: TokenLogin,
    /// The methods that change something.
    changing: HashSet<&'static str>,
    metrics: Mutex<Option<(Instant, Arc<Metrics>)>>,
    follows: FollowHub,
    agent_calls: AgentCalls,
}

impl ApiService {
    /// Creates the service of a namespace. The configuration may change while it runs. The tracer takes the spans of
    /// calls that submit jobs.
    pub fn new(
        client: Client,
        config: watch::Receiver<Arc<Config>>,
        check: TokenCheck,
        logins: Logins,
        tracer: Option<Tracer>,
    ) -> Self {
        let table = Arc::new(MethodTable::new().traced(tracer));
        let address = config.borrow().redis.redacted_url().into();
        let login = TokenLogin::new(check, logins);
        let changes = |scope: Option<Scope>| scope.is_some_and(|scope| scope != Scope::Read);
        let changing = table.methods().filter(|method| changes(method.scope));
        let changing = changing.map(|method| method.name).collect();
        let metrics = Mutex::default();
        let follows = FollowHub::new(client.clone());
        let agent_calls = AgentCalls::default();
        let parts = Parts {
            table,
            client,
            address,
            config,
            login,
            changing,
            metrics,
            follows,
            agent_calls,
        };
        Self(Arc::new(parts))
    }

    pub fn table(&self) -> &Arc<MethodTable> {
        &self.0.table
    }

    /// The jobs of the namespace.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The address of Redis, without a password.
    pub fn address(&self) -> &Arc<str> {
        &self.0.address
    }

    pub fn login(&self) -> &TokenLogin {
        &self.0.login
    }

    /// Waits until a token is not valid any more; without end for a caller that the kernel knows.
    pub(super) async fn token_ends(&self, token: Option<&str>) {
        let Some(token) = token else { return std::future::pending().await };
        loop {
            tokio::time::sleep(TOKEN_CHECK).await;
            if let Ok(None) = self.0.login.holder(token).await {
                return;
            }
        }
    }

    /// The things that subscriptions follow.
    pub(super) fn follows(&self) -> &FollowHub {
        &self.0.follows
    }

    /// The calls of agents that run.
    pub(super) fn agent_calls(&self) -> &AgentCalls {
        &self.0.agent_calls
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.config.borrow())
    }

    pub(super) fn settings(&self) -> ApiConfig {
        self.0.config.borrow().api.clone()
    }

    /// Returns the resources of a method.
    pub fn context(&self, caller: Arc<Caller>) -> CallContext {
        self.context_through(caller, "API")
    }

    /// Returns the same for a caller that comes through another entrance.
    pub(crate) fn context_through(
        &self,
        caller: Arc<Caller>,
        through: &'static str,
    ) -> CallContext {
        let client = self.0.client.clone().as_author(author(&caller, through));
        CallContext::new(client, Arc::clone(&self.0.address), self.config(), caller)
    }

    /// Calls a method. A call that changes something is logged with its caller.
    ///
    /// # Errors
    /// [`RpcError`], as [`MethodTable::call`].
    pub async fn call(
        &self,
        caller: Arc<Caller>,
        method: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        self.call_in(self.context(caller), method, params).await
    }

    /// The same with the means of the method.
    pub(super) async fn call_in(
        &self,
        context: CallContext,
        method: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        let name = context.caller.name.clone();
        let id = params.get("id").and_then(Value::as_str).map(str::to_owned);
        let result = self.0.table.call(context, method, params).await;
        self.log(&name, method, id.as_deref(), result.as_ref().err());
        result
    }

    /// Returns what a subscription of a caller follows. A refusal is logged.
    pub(super) async fn open(
        &self,
        caller: Arc<Caller>,
        method: &str,
        params: Value,
    ) -> Result<Following, RpcError> {
        let name = caller.name.clone();
        let id = params.get("id").and_then(Value::as_str).map(str::to_owned);
        let result = self.0.table.open(self.context(caller), method, params).await;
        self.log(&name, method, id.as_deref(), result.as_ref().err());
        result
    }

    /// Logs a call that changes something or is refused.
    fn log(&self, name: &str, method: &str, id: Option<&str>, error: Option<&RpcError>) {
        let method = self.0.table.method(method).map_or(method, |found| found.name);
        if !self.0.changing.contains(method) && !error.is_some_and(is_refusal) {
            return;
        }
        let about = id.map(|id| format!(" of {}", shown(id))).unwrap_or_default();
        match error {
            None => info!(caller = %name, method, "{name} called {method}{about}"),
            Some(error) => info!(caller = %name, method, "{name} called {method}{about}: {error}"),
        }
    }

    /// Returns the metrics, at most a second old.
    pub(super) async fn metrics(&self, format: Format) -> Result<String, ClientError> {
        let (bounds, rules) = {
            let config = self.0.config.borrow();
            (config.metrics.clone(), HealthRules::from(&**config))
        };
        // One reader at a time; the others wait for its result.
        let mut kept = self.0.metrics.lock().await;
        let metrics = match &*kept {
            Some((at, metrics)) if at.elapsed() < METRICS_AGE_MAX => Arc::clone(metrics),
            _ => {
                let address = self.0.address.as_ref().to_owned();
                let metrics = Arc::new(Metrics::read(&self.0.client, address, &rules).await?);
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

fn is_refusal(error: &RpcError) -> bool {
    matches!(error.code, code::UNAUTHENTICATED | code::NOT_PERMITTED)
}
