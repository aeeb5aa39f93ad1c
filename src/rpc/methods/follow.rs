//! Subscriptions: `job.follow`, `events.follow`, `stats.follow` and `unsubscribe`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::follow::{
    EventsNotice, FollowTopic, Following, JobNotice, StatsNotice, StreamPlace,
};
use super::{CallContext, Method, Result, RpcError, Scope, code};
use crate::proto::job::JobReference;
use crate::proto::text::shown;

/// The method that ends a subscription.
pub(in crate::rpc) const UNSUBSCRIBE: &str = "unsubscribe";

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::subscription::<_, JobNotice, _, _>(
            "job.follow",
            Scope::Read,
            "Follows a job: its states, its progress and the lines of its log, until it has ended.",
            job,
        ),
        Method::subscription::<_, EventsNotice, _, _>(
            "events.follow",
            Scope::Read,
            "Follows the transitions of all jobs, from now on or from a sequence number; needs job.events.",
            events,
        ),
        Method::subscription::<_, StatsNotice, _, _>(
            "stats.follow",
            Scope::Read,
            "Follows the counters and times of each script type: as they are, then each change, once a second.",
            stats,
        ),
        Method::new(
            UNSUBSCRIBE,
            None,
            "Ends a subscription of this connection; false if it has ended before.",
            async |_: CallContext, params: EndSubscription| -> Result<bool> {
                let EndSubscription { subscription } = params;
                let message = format!(
                    "there is no subscription {} here: subscriptions are of a WebSocket, at /rpc",
                    shown(&subscription)
                );
                Err(RpcError::new(code::INVALID_REQUEST, message))
            },
        ),
    ]
}

/// A subscription to end.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::rpc) struct EndSubscription {
    /// The id of the subscription.
    pub(in crate::rpc) subscription: String,
}

/// A job to follow.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FollowJob {
    /// The id of the job.
    id: JobReference,
    /// The sequence number of a notification, to get only what came after it. Without it the log is told from
    /// its start.
    since: Option<StreamPlace>,
}

async fn job(context: CallContext, params: FollowJob) -> Result<Following> {
    let seen = context.seen(params.id).await?;
    let job = context.client.get_job(&seen.id).await;
    let job = context.still(&seen, job).await?;
    Ok(following(&context, FollowTopic::Job(job.id, job.created_at), params.since))
}

fn following(context: &CallContext, topic: FollowTopic, since: Option<StreamPlace>) -> Following {
    Following { topic, since, caller: Arc::clone(&context.caller) }
}

/// Where to begin.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FollowSince {
    /// The sequence number of a notification, to get only what came after it. Without it, from now on.
    since: Option<StreamPlace>,
}

async fn events(context: CallContext, params: FollowSince) -> Result<Following> {
    context.needs_no_bounds("follow the events of all jobs")?;
    if !context.config.job.events {
        let message = "cannot follow events: none are recorded; set job.events = true";
        return Err(RpcError::new(code::CONFLICT, message));
    }
    Ok(following(&context, FollowTopic::Events, params.since))
}

async fn stats(context: CallContext, params: FollowSince) -> Result<Following> {
    context.needs_whole_types("follow the numbers of script types")?;
    Ok(following(&context, FollowTopic::Stats, params.since))
}
