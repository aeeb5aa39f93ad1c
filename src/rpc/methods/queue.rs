//! `queue.*`: lists, pauses, resumes and purges queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::super::visible_health::sees_whole_types;
use super::params::Nothing;
use crate::client::QueueDocument;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::target::{Group, Priority, Target};

methods! {
    /// Lists the queues: their depth, held jobs, the wait of the first.
    "queue.list", Scope::Read => list;
    /// Pauses a queue, or all queues of a rule: no actor claims their jobs until they are resumed.
    "queue.pause", Scope::Operate => pause;
    /// Resumes a paused queue, or all queues of a rule.
    "queue.resume", Scope::Operate => resume;
    /// Ends all waiting jobs of a queue in error, as job.stop does.
    "queue.purge", Scope::Admin => purge;
}

/// The queues.
#[derive(Serialize, JsonSchema)]
struct Queues {
    /// Every queue that may hold jobs or is paused, by name.
    queues: Vec<QueueDocument>,
    /// The rules that pause queues as a whole, also those that come later.
    pauses: Vec<String>,
}

async fn list(context: CallContext, _: Nothing) -> Result<Queues, RpcError> {
    let mut queues = context.client.queue_documents().await?;
    queues.retain(|queue| {
        let queue: Result<Queue, _> = queue.queue.parse();
        queue.is_ok_and(|queue| may_use(&context, &queue).is_ok())
    });
    if !sees_whole_types(&context.caller) {
        for queue in &mut queues {
            queue.type_throughput_per_s = None;
        }
    }
    let pauses = context.client.pauses().await?.rules.into_iter();
    let pauses = pauses.filter(|rule| may_use_all(&context, rule).is_ok());
    Ok(Queues { queues, pauses: pauses.map(|rule| rule.to_string()).collect() })
}

/// Refuses a queue beyond the bounds of the caller.
fn may_use(context: &CallContext, queue: &Queue) -> Result<(), RpcError> {
    let target = &queue.target;
    context.admits(target.script_type().as_str(), target.group_name().map(Group::as_str))
}

/// Refuses a rule for queues beyond the bounds of the caller.
fn may_use_all(context: &CallContext, rule: &PauseRule) -> Result<(), RpcError> {
    match &rule.script_type {
        Some(of) => context.admits(of.as_str(), rule.group.as_ref().map(Group::as_str)),
        None => context.needs_no_bounds("pause or resume queues of all types"),
    }
}

/// A queue.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneQueue {
    /// The queue: type:T, type:T:group:G, type:T:group:G:inst:I or type:T:where:DIGEST, for all priorities; with :prio:0,
    /// :prio:1 or :prio:2 at the end, for one. To pause and resume also a rule, for all its queues and those that come
    /// later: *, type:T:*, type:*:group:G:* or type:T:group:G:*.
    queue: String,
    /// Accepts a queue that no configured or live actor serves and that holds no jobs.
    #[serde(default)]
    force: bool,
}

impl OneQueue {
    /// Returns the rule, if it names one.
    async fn rule(&self, context: &CallContext) -> Result<Option<PauseRule>, RpcError> {
        let Ok(rule) = self.queue.parse::<PauseRule>() else { return Ok(None) };
        may_use_all(context, &rule)?;
        if let Some(of) = rule.script_type.clone().filter(|_| !self.force) {
            let queue = Queue { target: Target::any(of), priority: Priority::Normal };
            context.client.check_known(&[queue], &context.config).await?;
        }
        Ok(Some(rule))
    }

    async fn queues(&self, context: &CallContext) -> Result<Vec<Queue>, RpcError> {
        let queues = Queue::all_named(&self.queue)?;
        for queue in &queues {
            may_use(context, queue)?;
        }
        if !self.force {
            context.client.check_known(&queues, &context.config).await?;
        }
        Ok(queues)
    }
}

/// Paused queues.
#[derive(Serialize, JsonSchema)]
struct Paused {
    /// The queues or the rule that were not paused before.
    paused: Vec<String>,
}

async fn pause(context: CallContext, given: OneQueue) -> Result<Paused, RpcError> {
    context.needs_all_callers("pause queues")?;
    if let Some(rule) = given.rule(&context).await? {
        let is_new = context.client.pause_by_rule(&rule).await?;
        return Ok(Paused { paused: is_new.then(|| rule.to_string()).into_iter().collect() });
    }
    let paused = context.client.pause_queues(&given.queues(&context).await?).await?;
    Ok(Paused { paused: paused.iter().map(ToString::to_string).collect() })
}

/// Resumed queues.
#[derive(Serialize, JsonSchema)]
struct Resumed {
    /// The queues and rules that were paused.
    resumed: Vec<String>,
}

async fn resume(context: CallContext, given: OneQueue) -> Result<Resumed, RpcError> {
    context.needs_all_callers("resume queues")?;
    if let Some(rule) = given.rule(&context).await? {
        let ended = context.client.resume_by_rule(&rule).await?;
        return Ok(Resumed { resumed: ended.names() });
    }
    let resumed = context.client.resume_queues(&given.queues(&context).await?).await?;
    Ok(Resumed { resumed: resumed.iter().map(ToString::to_string).collect() })
}

/// A number of ended jobs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Purged {
    /// The number of jobs that ended.
    pub(crate) purged: u64,
}

async fn purge(context: CallContext, given: OneQueue) -> Result<Purged, RpcError> {
    context.needs_all_callers("purge queues")?;
    let mut purged = 0;
    for queue in given.queues(&context).await? {
        purged += context.client.purge_queue(&queue).await?;
    }
    Ok(Purged { purged })
}
