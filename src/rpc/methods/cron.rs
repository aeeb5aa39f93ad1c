//! `cron.*`: the periodic jobs of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::caller::Scope;
use super::super::error::RpcError;
use super::super::method::{CallContext, Method};
use super::blocking;
use super::job::Id;
use super::params::Nothing;
use crate::client::{PeriodicJobDocument, PeriodicJobHistoryDocument};
use crate::config::Crontab;
use crate::proto::target::ScriptType;

pub(super) fn methods() -> [Method; 5] {
    [
        Method::new(
            "cron.list",
            Scope::Read,
            "Lists the periodic jobs: when each is due next, and how its last firing ended.",
            list,
        ),
        Method::new(
            "cron.get",
            Scope::Read,
            "Shows a periodic job with its next and latest firings.",
            get,
        ),
        Method::new(
            "cron.run",
            Scope::Operate,
            "Runs a periodic job now, besides its schedule.",
            run,
        ),
        Method::new(
            "cron.enable",
            Scope::Operate,
            "Lets a disabled periodic job fire again.",
            enable,
        ),
        Method::new(
            "cron.disable",
            Scope::Operate,
            "Disables a periodic job: it does not fire until it is enabled.",
            disable,
        ),
    ]
}

/// The periodic jobs.
#[derive(Serialize, JsonSchema)]
struct PeriodicJobList {
    /// The periodic jobs, by name.
    cron: Vec<PeriodicJobDocument>,
    /// The mistakes of the files whose jobs are left out.
    problems: Vec<String>,
}

async fn crontab(context: &CallContext) -> Result<Crontab, RpcError> {
    let config = std::sync::Arc::clone(&context.config);
    blocking(move || Ok(config.crontab())).await
}

async fn list(context: CallContext, _: Nothing) -> Result<PeriodicJobList, RpcError> {
    let crontab = crontab(&context).await?;
    let mut cron = context.client.periodic_job_documents(&crontab).await?;
    if let Some(types) = &context.caller.bounds.types {
        cron.retain(|job| job.script_type.as_ref().is_some_and(|of| types.contains(of)));
    }
    let problems = crontab.problems.iter().map(ToString::to_string).collect();
    Ok(PeriodicJobList { cron, problems })
}

/// A periodic job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePeriodicJob {
    /// Its name.
    name: String,
}

async fn get(
    context: CallContext,
    given: OnePeriodicJob,
) -> Result<PeriodicJobHistoryDocument, RpcError> {
    let mut crontab = crontab(&context).await?;
    // Beyond the bounds of a caller there is nothing.
    if let Some(types) = &context.caller.bounds.types {
        let is_within = |of: &ScriptType| types.contains(of.as_str());
        crontab.entries.retain(|entry| entry.script_type().is_some_and(is_within));
        crontab.problems.clear();
    }
    Ok(context.client.periodic_job_history(&crontab, &given.name).await?)
}

async fn run(context: CallContext, given: OnePeriodicJob) -> Result<Id, RpcError> {
    context.needs_no_bounds("run periodic jobs")?;
    let crontab = crontab(&context).await?;
    let id = context.client.run_periodic_job(&crontab, &given.name).await?;
    Ok(Id { id: id.to_string() })
}

/// A periodic job that was enabled or disabled.
#[derive(Serialize, JsonSchema)]
struct Switched {
    /// Its name.
    name: String,
    /// Set if it is enabled now.
    enabled: bool,
    /// Set if that changed it.
    changed: bool,
}

async fn enable(context: CallContext, given: OnePeriodicJob) -> Result<Switched, RpcError> {
    switch(context, given.name, true).await
}

async fn disable(context: CallContext, given: OnePeriodicJob) -> Result<Switched, RpcError> {
    switch(context, given.name, false).await
}

async fn switch(context: CallContext, name: String, enabled: bool) -> Result<Switched, RpcError> {
    context.needs_no_bounds("change periodic jobs")?;
    let (crontab, by) = (crontab(&context).await?, context.caller.name.as_str());
    let changed = context.client.enable_periodic_job(&crontab, &name, enabled, by).await?;
    Ok(Switched { name, enabled, changed })
}
