//! The jobs of `batch.submit` for every machine or actor, within the groups of the caller.

use std::sync::Arc;

use super::job_types::{BatchJob, JobSettings};
use super::{CallContext, Result, RpcError, Scope};
use crate::client::{ClientError, FleetMember};
use crate::proto::every::Every;
use crate::proto::job::Job;
use crate::proto::message::ActorState;
use crate::proto::target::Fallback;

/// Returns the copies of the only job of a batch for every machine or actor.
pub(super) async fn fleet(
    context: &CallContext,
    jobs: &[BatchJob],
    every: Every,
) -> Result<Vec<FleetMember>> {
    let has_fleet = context.caller.scopes.has(Scope::Fleet);
    if !context.caller.operates() && !has_fleet {
        let what = "submit a job for every machine: this needs the scope operate or fleet";
        return Err(context.may_not(what));
    }
    let only = match jobs {
        [only] if only.inputs.is_empty() && only.stdin.is_none() => &only.settings,
        _ => {
            let message = "a batch for every machine has one job without files, which each gets";
            return Err(RpcError::wrong("jobs", message));
        }
    };
    let members = if has_fleet && context.caller.bounds.groups.is_some() {
        within_groups(context, only, every).await?
    } else {
        context.client.machines().fleet(&checked(context, only).await?, every).await?
    };
    for job in members.iter().filter_map(|of| of.job.as_ref()) {
        context.client.check(job)?;
    }
    Ok(members)
}

/// Returns the copies for actors of the groups that the caller is bound to: for each, or for one on every machine.
async fn within_groups(
    context: &CallContext,
    settings: &JobSettings,
    every: Every,
) -> Result<Vec<FleetMember>> {
    // Each copy names its actor: the expression chooses among them, and leads to no other.
    let mut caller = (*context.caller).clone();
    let groups = caller.bounds.groups.take();
    let free = CallContext { caller: Arc::new(caller), ..context.clone() };
    let mut job = settings.job_within(context, &free).await?;
    context.client.check(&job)?;
    context.has_type(&job)?;
    job.bounds.get_or_insert_default().groups = groups;
    let fallback = job.spec.fallback.or(Some(Fallback::None));
    let members = match context.client.machines().fleet(&job, Every::Actor).await {
        // The error counts the actors of other groups.
        Err(ClientError::NoMachine(_)) => Vec::new(),
        members => members?,
    };
    let is_own =
        |of: &FleetMember| of.actor.as_ref().is_some_and(|of| context.caller.admits_actor(of));
    let mut own: Vec<FleetMember> = members.into_iter().filter(is_own).collect();
    if own.is_empty() {
        let script_type = job.spec.script_type.map(|of| of.to_string()).unwrap_or_default();
        let what = format!("{script_type} that matches, in the groups of {}", context.caller.name);
        return Err(ClientError::NoMachine(what).into());
    }
    if every == Every::Machine {
        let place_of_state = |of: &FleetMember| {
            let actor = of.actor.as_ref().map(ToString::to_string);
            let found = of.machine.actors.iter().find(|one| Some(&one.actor) == actor.as_ref());
            match found.and_then(|one| one.state) {
                Some(ActorState::Ready) => 0,
                Some(_) => 1,
                None => 2,
            }
        };
        let place = |of: &FleetMember| (of.machine.host.clone(), of.machine.machine.clone());
        own.sort_by_key(|of| (place(of), place_of_state(of)));
        own.dedup_by(|one, before| one.machine.machine == before.machine.machine);
    }
    for job in own.iter_mut().filter_map(|of| of.job.as_mut()) {
        job.spec.fallback = fallback;
        context.stays_within(job)?;
        context.reaches_nothing_beyond(job)?;
    }
    Ok(own)
}

pub(super) async fn checked(context: &CallContext, settings: &JobSettings) -> Result<Job> {
    let job = settings.job(context).await?;
    context.client.check(&job)?;
    context.has_type(&job)?;
    Ok(job)
}
