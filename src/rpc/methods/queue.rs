//! `queue.*`: lists, pauses, resumes and purges queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::visible_health::keep_visible;
use super::params::{Nothing, OneOrMany};
use super::{CallContext, Result, RpcError, Scope};
use crate::client::QueueDocument;
use crate::proto::pauses::{PauseRule, Pauses};
use crate::proto::queue::Queue;
use crate::proto::target::{Group, Priority, Target};

methods! {
    /// Lists the queues: their depth, held jobs, the wait of the first.
    "queue.list", Scope::Read => list;
    /// Pauses a queue, or all queues of a rule: no actor claims their jobs until they are resumed.
    "queue.pause", Scope::Operate => pause;
    /// Resumes a paused queue, or all queues of a rule.
    "queue.resume", Scope::Operate => resume;
    /// Pauses a queue, or all queues of a rule, and counts the jobs of them that run: none once it is drained.
    "queue.drain", Scope::Operate => drain;
    /// Ends all waiting jobs of a queue in error, as job.stop does.
    "queue.purge", Scope::Admin => purge;
}

/// The queues.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct QueueList {
    /// Every queue that may hold jobs or is paused, by name.
    pub(crate) queues: Vec<QueueDocument>,
    /// The rules that pause queues as a whole, also those that come later.
    pub(crate) pauses: Vec<String>,
    /// The lists that programs pushed to and nobody serves. For callers without bounds.
    pub(crate) unserved: Vec<UnservedList>,
}

/// A list that has no queue's name, or is of an unknown type.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct UnservedList {
    /// Its name.
    pub(crate) list: String,
    /// The number of ids in it; null if it is no list.
    pub(crate) length: Option<u64>,
}

async fn list(context: CallContext, _: Nothing) -> Result<QueueList> {
    let mut queues = context.client.queues().list().await?;
    keep_visible(&mut queues, |state| state, &context.caller);
    let queues = queues.iter().map(QueueDocument::from).collect();
    let pauses = context.client.queues().pauses().await?.rules.into_iter();
    let pauses = pauses.filter(|rule| may_use_all(&context, rule).is_ok());
    let pauses = pauses.map(|rule| rule.to_string()).collect();
    let unserved = if context.caller.is_bound() {
        Vec::new()
    } else {
        context.client.migration().unserved_lists().await.unwrap_or_default()
    };
    let unserved = unserved.into_iter().map(|(list, length)| UnservedList { list, length });
    Ok(QueueList { queues, pauses, unserved: unserved.collect() })
}

/// Refuses a queue beyond the bounds of the caller.
fn may_use(context: &CallContext, queue: &Queue) -> Result<()> {
    let target = &queue.target;
    context.admits(target.script_type().as_str(), target.group_name().map(Group::as_str))
}

/// Refuses a rule for queues beyond the bounds of the caller.
fn may_use_all(context: &CallContext, rule: &PauseRule) -> Result<()> {
    match &rule.script_type {
        Some(of) => context.admits(of.as_str(), rule.group.as_ref().map(Group::as_str)),
        None => context.needs_no_bounds("pause or resume queues of all types"),
    }
}

/// Queues.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NamedQueues {
    /// The queue, or a list of some: type:T, type:T:group:G, type:T:group:G:inst:I or type:T:where:DIGEST, for all
    /// priorities; with :prio:0, :prio:1 or :prio:2 at the end, for one. To pause, drain and resume also one rule, for all its queues and those that
    /// come later: *, type:T:*, type:*:group:G:* or type:T:group:G:*.
    queue: OneOrMany,
    /// Accepts queues that no configured or live actor serves and that hold no jobs.
    #[serde(default)]
    force: bool,
}

impl NamedQueues {
    /// Returns the rule, if it names one.
    fn rule(&self, context: &CallContext) -> Result<Option<PauseRule>> {
        let [name] = self.queue.names() else { return Ok(None) };
        let Ok(rule) = name.parse::<PauseRule>() else { return Ok(None) };
        may_use_all(context, &rule)?;
        Ok(Some(rule))
    }

    /// Refuses a rule of a type that no configured or live actor serves, which is mistyped or of a later time.
    async fn check(&self, rule: &PauseRule, context: &CallContext) -> Result<()> {
        if let Some(of) = rule.script_type.clone().filter(|_| !self.force) {
            let queue = Queue { target: Target::any(of), priority: Priority::Normal };
            context.client.queues().check_known(&[queue], &context.config).await?;
        }
        Ok(())
    }

    async fn queues(&self, context: &CallContext) -> Result<Vec<Queue>> {
        let mut queues = Vec::new();
        for name in self.queue.names() {
            let named = Queue::all_with_suggestion(name);
            queues.extend(named.map_err(|why| RpcError::wrong("queue", why))?);
        }
        for queue in &queues {
            may_use(context, queue)?;
        }
        if !self.force {
            context.client.queues().check_known(&queues, &context.config).await?;
        }
        Ok(queues)
    }
}

/// Paused queues.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Paused {
    /// The queues or the rule that were not paused before.
    pub(crate) paused: Vec<String>,
}

async fn pause(context: CallContext, params: NamedQueues) -> Result<Paused> {
    Ok(Paused { paused: paused(&context, &params).await?.0 })
}

/// Pauses queues. Returns the names of those that were not paused before, and all that are named.
async fn paused(context: &CallContext, params: &NamedQueues) -> Result<(Vec<String>, Pauses)> {
    context.needs_all_callers("pause queues")?;
    if let Some(rule) = params.rule(context)? {
        params.check(&rule, context).await?;
        let is_new = context.client.queues().pause_by_rule(&rule).await?;
        let changed = is_new.then(|| rule.to_string()).into_iter().collect();
        return Ok((changed, Pauses { rules: [rule].into(), ..Pauses::default() }));
    }
    let queues = params.queues(context).await?;
    let changed = context.client.queues().pause(&queues).await?;
    let changed = changed.iter().map(ToString::to_string).collect();
    Ok((changed, Pauses { queues: queues.into_iter().collect(), ..Pauses::default() }))
}

/// Paused queues with running jobs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Drained {
    /// The queues or the rule that were not paused before.
    pub(crate) paused: Vec<String>,
    /// The number of jobs of the queues that run.
    pub(crate) running: u64,
}

async fn drain(context: CallContext, params: NamedQueues) -> Result<Drained> {
    let (paused, of) = paused(&context, &params).await?;
    Ok(Drained { paused, running: context.client.queues().count_running(&of).await? })
}

/// Resumed queues.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Resumed {
    /// The queues and rules that were paused.
    pub(crate) resumed: Vec<String>,
}

async fn resume(context: CallContext, params: NamedQueues) -> Result<Resumed> {
    context.needs_all_callers("resume queues")?;
    if let Some(rule) = params.rule(&context)? {
        let ended = context.client.queues().resume_by_rule(&rule).await?;
        return Ok(Resumed { resumed: ended.names() });
    }
    let resumed = context.client.queues().resume(&params.queues(&context).await?).await?;
    Ok(Resumed { resumed: resumed.iter().map(ToString::to_string).collect() })
}

/// A number of ended jobs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Purged {
    /// The number of jobs that ended.
    pub(crate) purged: u64,
}

async fn purge(context: CallContext, params: NamedQueues) -> Result<Purged> {
    context.needs_all_callers("purge queues")?;
    let mut purged = 0;
    for queue in params.queues(&context).await? {
        purged += context.client.queues().purge(&queue).await?;
    }
    Ok(Purged { purged })
}
