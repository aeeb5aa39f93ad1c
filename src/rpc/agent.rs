//! The server of the Model Context Protocol for agents that run scripts: its answers, without a transport.
//!
//! It keeps no sessions. A client begins with `initialize`, or says its version with each request, as the
//! protocol has it since 2026-07-28.

mod course;
mod fleet;
mod published;
mod resources;
mod results;
mod schema;
mod tools;
mod types;
mod written;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

pub use self::course::CallCourse;
pub(super) use self::results::output_of;
use super::caller::Caller;
use super::method::CallContext;
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;
use super::table::MethodTable;
use crate::config::EngineKind;
use crate::proto::target::ScriptType;
use crate::proto::text::shown;

/// The versions of the protocol that begin with `initialize`, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// From this version on, each request says its version.
const VERSION_PER_REQUEST: &str = "2026-07-28";
/// The members of `_meta` with the version of a request, and with the name of the server.
const VERSION_OF_REQUEST: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The time that a client may keep the list of tools, in milliseconds.
const KEPT_MS: u64 = 60_000;
const INSTRUCTIONS: &str = "Runs scripts as jobs, with limits of time and memory. run_script runs one and returns \
    its output, and keeps nothing; start_session and run_in_session are for several scripts that share variables and \
    files. submit_job, wait_job, follow_job and stop_job are for long ones. Files that a script leaves in the \
    folder $HERO_OUTPUT_DIR are kept: job_files, get_file. A Python script may name packages of PyPI at its head \
    (PEP 723).";

/// Codes of errors that the protocol adds to JSON-RPC.
pub(super) mod agent_code {
    pub(in crate::rpc) const NO_RESOURCE: i32 = -32002;
    pub(in crate::rpc) const HEADER_MISMATCH: i32 = -32020;
    pub(in crate::rpc) const UNSUPPORTED_VERSION: i32 = -32022;
}

pub struct AgentServer {
    table: Arc<MethodTable>,
    context: CallContext,
    /// Logs the calls, in a supervisor.
    service: Option<ApiService>,
}

impl AgentServer {
    /// Creates the server of one agent.
    pub fn new(context: CallContext) -> Self {
        Self { table: Arc::new(MethodTable::new(None)), context, service: None }
    }

    /// Creates the server of an agent that calls the API of a supervisor.
    pub(super) fn of(service: &ApiService, caller: Arc<Caller>) -> Self {
        let (table, context) =
            (Arc::clone(&service.table), service.context_through(caller, "agent"));
        Self { table, context, service: Some(service.clone()) }
    }

    /// Answers a request as [`AgentServer::answer`] does, and tells its progress. `None` if it is cancelled.
    pub async fn answer_in(
        &self,
        course: CallCourse,
        method: &str,
        params: Value,
    ) -> Option<Result<Value>> {
        if method != "tools/call" {
            return Some(self.answer(method, params).await);
        }
        let (begun, seen) = watch::channel(None);
        let context = CallContext { begun: Some(Arc::new(begun)), ..self.context.clone() };
        let (table, service) = (Arc::clone(&self.table), self.service.clone());
        let server = Self { table, context, service };
        let given = params.clone();
        let call = Box::pin(server.answer(method, params));
        course.follow(self, &given, seen, call).await
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such method or tool, or its parameters are wrong. A tool that fails has a
    /// result.
    pub async fn answer(&self, method: &str, params: Value) -> Result<Value> {
        let version = version_of(&params);
        if let Some(asked) = version.as_deref().filter(|asked| *asked != VERSION_PER_REQUEST) {
            return Err(unsupported(asked));
        }
        let mut result = match method {
            "initialize" => initialized(&params, &self.instructions().await),
            "server/discover" => discovered(&self.instructions().await),
            "ping" => json!({}),
            "tools/list" => {
                let types = types::AgentTypes::of(&self.context).await;
                let mut all = tools::list(&self.table, &types, fleet::is_offered(&self.context));
                all.extend(published::list(&self.context, &types).await);
                json!({ "tools": all, "ttlMs": KEPT_MS, "cacheScope": "private" })
            }
            "tools/call" => tools::call(self, params).await?,
            "resources/list" => resources::list(self, &params).await?,
            "resources/templates/list" => resources::templates(),
            "resources/read" => resources::read(self, &params).await?,
            "prompts/list" => {
                let types = types::AgentTypes::of(&self.context).await;
                json!({ "prompts": published::prompts(&self.context, &types).await })
            }
            "prompts/get" => {
                let types = types::AgentTypes::of(&self.context).await;
                published::prompt(&self.context, &types, &params).await?
            }
            _ => {
                let message = format!("there is no method `{}`", shown(method));
                return Err(RpcError::new(code::METHOD_NOT_FOUND, message));
            }
        };
        if version.is_some() {
            result["resultType"] = json!("complete");
            result["_meta"] = json!({ SERVER_INFO: server_info() });
        }
        Ok(result)
    }

    async fn instructions(&self) -> String {
        let types = types::AgentTypes::of(&self.context).await;
        let rhai = self.context.usable_types().filter(|name| {
            let config = self.context.config.types.get(*name);
            config.is_some_and(|config| matches!(config.engine, EngineKind::Osis | EngineKind::Sal))
        });
        let rhai: Vec<&str> = rhai.map(ScriptType::as_str).collect();
        let network = match types.network.join(", ") {
            none if none.is_empty() => "Scripts have no network.".to_owned(),
            some => format!("Only scripts of the type {some} have a network."),
        };
        let rhai = match rhai.join(" and ") {
            none if none.is_empty() => none,
            names => format!(" Scripts of the type {names} are in Rhai."),
        };
        format!(
            "{INSTRUCTIONS} The script types are {}. {}{} {network}{rhai}",
            types.names.join(", "),
            types.waiting(),
            types.sandboxes()
        )
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value> {
        match &self.service {
            Some(service) => service.call_in(self.context.clone(), method, params).await,
            None => self.table.call(self.context.clone(), method, params).await,
        }
    }
}

pub(super) fn version_of(params: &Value) -> Option<String> {
    params["_meta"][VERSION_OF_REQUEST].as_str().map(str::to_owned)
}

pub(super) fn is_supported(version: &str) -> bool {
    version == VERSION_PER_REQUEST || VERSIONS.contains(&version)
}

/// Returns true if each request of a version says that version.
pub(super) fn is_per_request(version: &str) -> bool {
    version == VERSION_PER_REQUEST
}

pub(super) fn unsupported(asked: &str) -> RpcError {
    let message = format!("the version {} of the protocol is not supported", shown(asked));
    RpcError::new(agent_code::UNSUPPORTED_VERSION, message)
        .with("supported", supported())
        .with("requested", asked)
}

fn supported() -> Vec<&'static str> {
    [VERSION_PER_REQUEST].into_iter().chain(VERSIONS).collect()
}

fn server_info() -> Value {
    json!({ "name": "hero", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to the first request: the version that the client asks for, if the server speaks it.
fn initialized(params: &Value, instructions: &str) -> Value {
    let asked = params["protocolVersion"].as_str();
    let version =
        VERSIONS.into_iter().find(|version| asked == Some(version)).unwrap_or(VERSIONS[0]);
    let mut result = about(instructions);
    result["protocolVersion"] = json!(version);
    result["serverInfo"] = server_info();
    result
}

/// The answer to the question for the versions and capabilities.
fn discovered(instructions: &str) -> Value {
    let mut result = about(instructions);
    result["supportedVersions"] = json!(supported());
    result["ttlMs"] = json!(KEPT_MS);
    result["cacheScope"] = json!("private");
    result
}

fn about(instructions: &str) -> Value {
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
    json!({ "capabilities": capabilities, "instructions": instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_the_client_is_used_if_it_is_known() {
        let version = |asked: &str| {
            initialized(&json!({ "protocolVersion": asked }), "")["protocolVersion"].clone()
        };
        assert_eq!(
            (version("2024-11-05"), version("1999-01-01")),
            (json!("2024-11-05"), json!(VERSIONS[0]))
        );
    }
}
