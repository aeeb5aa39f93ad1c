//! `system.*`: the daemon itself; `whoami`: the caller.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::caller::Bounds;
use super::super::rpc_error::RpcError;
use super::super::visible_health::visible_snapshot;
use super::params::Nothing;
use super::{CallContext, Result, Scope};
use crate::error::Exit;
use crate::view::{HealthRules, NamespaceHealth, Snapshot, StatusDocument};

/// The program that answers.
#[derive(Serialize, JsonSchema)]
struct Info {
    /// The version of Hero.
    version: String,
    /// The address of Redis, without a password.
    redis: String,
    /// The prefix of all keys.
    namespace: String,
    /// The script types that the caller may use.
    types: Vec<String>,
    /// The types among them whose scripts are not sandboxed.
    not_sandboxed: Vec<String>,
}

/// An authenticated caller.
#[derive(Serialize, JsonSchema)]
struct Who {
    /// Its name, which becomes `caller_id` of its jobs.
    name: String,
    /// Its rights: read, submit, operate, admin, fleet.
    scopes: Vec<&'static str>,
    /// The bounds of its jobs.
    bounds: Bounds,
}

methods! {
    /// Returns what is wrong now, as `hero status --check` and `hero doctor` tell it: the state of the namespace
    /// and its problems, the worst first.
    "system.health", Scope::Read => health;
    /// Returns the version, the address of Redis and the script types that the caller may use.
    "system.info", Scope::Read => info;
    /// Returns the state of the namespace as `hero status` shows it: Redis, supervisors, actors by type, queues and jobs by
    /// type, and the verdict of `hero status --check`.
    "system.status", Scope::Read => status;
    /// Returns the caller: its name, scopes and bounds.
    "whoami", None => whoami;
}

async fn info(context: CallContext, _: Nothing) -> Result<Info> {
    context.client.ping().await?;
    Ok(Info {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        redis: context.address.as_ref().to_owned(),
        namespace: context.config.redis.namespace.to_string(),
        not_sandboxed: context
            .usable_types()
            .filter(|name| !context.config.is_sandboxed(name))
            .map(ToString::to_string)
            .collect(),
        types: context.usable_types().map(ToString::to_string).collect(),
    })
}

async fn health(context: CallContext, _: Nothing) -> Result<NamespaceHealth> {
    let snapshot = snapshot_for(&context).await?;
    Ok(NamespaceHealth::of(&snapshot, &HealthRules::from(&*context.config)))
}

async fn status(context: CallContext, _: Nothing) -> Result<StatusDocument> {
    let snapshot = snapshot_for(&context).await?;
    Ok(StatusDocument::of(&snapshot, &HealthRules::from(&*context.config)))
}

/// Returns the snapshot that a caller may see.
async fn snapshot_for(context: &CallContext) -> Result<Snapshot> {
    let address = context.address.as_ref().to_owned();
    let snapshot = match Snapshot::read(&context.client, address).await {
        Ok(snapshot) => snapshot,
        Err(error) => return Err(naming_shards(context, error.into()).await),
    };
    if context.caller.is_bound() {
        return Ok(visible_snapshot(&snapshot, &context.caller));
    }
    Ok(snapshot)
}

/// Names the shards that are away in an error, if others are there.
async fn naming_shards(context: &CallContext, mut error: RpcError) -> RpcError {
    let shards = context.config.redis.shards;
    if error.exit != Some(Exit::Unavailable) || shards == 1 {
        return error;
    }
    let away = context.client.system().shards_away().await;
    if !away.is_empty() && away.len() < usize::from(shards) {
        let lines: Vec<String> =
            away.iter().map(|(shard, reason)| format!("shard {shard}: {reason}")).collect();
        error.message = format!("{} of {shards} shards away: {}", away.len(), lines.join("; "));
    }
    error
}

async fn whoami(context: CallContext, _: Nothing) -> Result<Who> {
    let caller = &context.caller;
    Ok(Who {
        name: caller.name.clone(),
        scopes: Vec::from(caller.scopes).into_iter().map(Scope::as_str).collect(),
        bounds: caller.bounds.clone(),
    })
}
