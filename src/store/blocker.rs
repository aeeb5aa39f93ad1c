//! The reason why a job does not start, and its place in its queue.

use std::fmt;

use jiff::Timestamp;

use super::listing::queue_of_fields;
use super::{JobStore, PresenceOf, Result};
use crate::proto::job::{AskedWait, Job, JobId, JobStatus};
use crate::proto::labels::Labels;
use crate::proto::message::ActorState;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::selector::Selector;
use crate::proto::target::{ActorId, Priority};

/// The reason why a dispatched job does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// This limit holds it.
    Limit(String),
    /// Its queue is paused, by its name or by this rule.
    Pause(Queue, Option<PauseRule>),
    /// No live actor claims jobs of its queue.
    NoActor(Queue),
    /// No live actor of its type matches its expression.
    NoMatch {
        selector: Selector,
        /// The number of actors that fail each part of it.
        mismatch: String,
    },
    /// The actors that claim jobs of its queue drain; the first of them.
    Drained(ActorId),
    /// The actors that claim jobs of its queue run as many jobs as they have tasks.
    Busy { queue: Queue, tasks: usize },
    /// It is due, and no supervisor is live that dispatches it.
    NoSupervisor,
    /// Its script waits for this.
    Wait(AskedWait),
}

/// Returns how many of these actors fail each part of an expression.
pub fn mismatch(selector: &Selector, actors: &[PresenceOf]) -> String {
    let labels: Vec<&Labels> = actors.iter().map(|of| &of.presence.labels).collect();
    selector.mismatch(&labels)
}

impl JobStore<'_> {
    /// The reason why a dispatched job does not start, or the wait of a scheduled one; `None` if there is none.
    pub async fn blocker(self, id: &JobId) -> Result<Option<Blocker>> {
        const FIELDS: [&str; 9] = [
            "status",
            "held_by",
            "script_type",
            "group",
            "instance",
            "priority",
            "wait",
            "run_at",
            "where",
        ];
        let doing = "reading the prerequisites of a job";
        let of = self.store.link.fields(doing, self.store.keys.job(id), &FIELDS).await?;
        match of.parsed("status") {
            Some(JobStatus::Dispatched) => {}
            Some(JobStatus::Scheduled) => {
                if let Some(wait) = of.text("wait").and_then(AskedWait::of_field) {
                    return Ok(Some(Blocker::Wait(wait)));
                }
                return self.overdue_blocker(of.parsed("run_at")).await;
            }
            _ => return Ok(None),
        }
        if let Some(limit) = of.text("held_by") {
            return Ok(Some(Blocker::Limit(limit.to_owned())));
        }
        let Some(queue) = queue_of_fields(|name| of.text(name)) else { return Ok(None) };
        let pauses = self.store.queues().pauses().await?;
        if pauses.covers(&queue) {
            let rule = pauses.rules.into_iter().find(|rule| rule.covers(&queue));
            return Ok(Some(Blocker::Pause(queue, rule)));
        }
        let mut actors = self.store.actors().list(Some(queue.target.script_type())).await?;
        let selector: Option<Selector> = of.parsed("where");
        let mismatch = selector.as_ref().map(|selector| mismatch(selector, &actors));
        actors.retain(|of| of.claims_from(&queue.target, selector.as_ref()));
        let drained = actors.first().map(|of| of.actor.clone());
        actors.retain(|of| of.presence.state != ActorState::Draining);
        if let Some(drained) = drained.filter(|_| actors.is_empty()) {
            return Ok(Some(Blocker::Drained(drained)));
        }
        if actors.is_empty() {
            return Ok(Some(match (selector, mismatch) {
                (Some(selector), Some(mismatch)) => Blocker::NoMatch { selector, mismatch },
                _ => Blocker::NoActor(queue),
            }));
        }
        self.store.actors().count_running(&mut actors).await?;
        let tasks = actors.iter().map(|of| of.presence.tasks).sum();
        let running: usize = actors.iter().map(|of| of.presence.running).sum();
        Ok((running >= tasks).then_some(Blocker::Busy { queue, tasks }))
    }

    /// Returns why a job with this time is still scheduled, if the time has come.
    async fn overdue_blocker(self, run_at: Option<Timestamp>) -> Result<Option<Blocker>> {
        let now = self.store.now().await?;
        let is_due = run_at.is_some_and(|time| time <= now);
        Ok((is_due && self.store.supervisors().list().await?.is_empty())
            .then_some(Blocker::NoSupervisor))
    }
}

/// The place of a waiting job in its queue, as text: `12 of 340 in type:bash, behind 3 more urgent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    pub queue: Queue,
    /// The place by the time of its dispatch, from 1.
    pub place: u64,
    /// The jobs that wait in the queue and that no limit holds.
    pub waiting: u64,
    /// The jobs that wait for the same target with a higher priority.
    pub more_urgent: u64,
}

impl fmt::Display for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, place, waiting, more_urgent } = self;
        write!(f, "{place} of {waiting} in {queue}")?;
        if *more_urgent > 0 { write!(f, ", behind {more_urgent} more urgent") } else { Ok(()) }
    }
}

impl JobStore<'_> {
    /// Returns the place of a job that waits in its queue; `None` for any other, and for one that a limit holds. Jobs in
    /// other queues of the same actors are not counted.
    pub async fn queue_place(self, job: &Job) -> Result<Option<QueuePlace>> {
        const DOING: &str = "reading the place of a job in its queue";
        let queue = job.spec.queue().filter(|_| job.status == JobStatus::Dispatched);
        let Some(queue) = queue else { return Ok(None) };
        let rank = (self.store.keys.ready(&queue), job.id.as_str());
        let after: Option<u64> = self.store.link.command(DOING, "ZREVRANK", rank).await?;
        let Some(after) = after else { return Ok(None) };
        let priorities = Priority::ALL.into_iter().filter(|level| *level <= queue.priority);
        let ready =
            |priority| ("ZCARD", self.store.keys.ready(&Queue { priority, ..queue.clone() }));
        let numbers: Vec<Option<u64>> = self.store.link.each(DOING, priorities, ready).await?;
        let mut numbers: Vec<u64> = numbers.into_iter().flatten().collect();
        let waiting = numbers.pop().unwrap_or_default().max(after + 1);
        let (place, more_urgent) = (waiting - after, numbers.iter().sum());
        Ok(Some(QueuePlace { queue, place, waiting, more_urgent }))
    }
}
