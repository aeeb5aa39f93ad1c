//! Background calls: small calls to Redis, done one after the other, each until it succeeds.

use std::collections::VecDeque;
use std::sync::Arc;

use tracing::{info, warn};

use super::jobs::given_back;
use super::pending::Pending;
use super::script_requests::RunningRequest;
use crate::actor::boot::Boot;
use crate::actor::running_job::RunningJob;
use crate::proto::job::JobId;
use crate::proto::target::ScriptType;
use crate::store::{
    AdoptionRules, AfterAdoption, LogEntry, RefusedLines, ReturnedAttempt, StopOutcome, StoreError,
    UsedSelectors, Waker, Woken,
};

/// The maximum number of background calls that may wait. More come only from a flood of control messages, which then
/// stay in their list.
const WAITING_MAX: usize = 1000;

/// A read of the expressions of a type that were used since a time.
pub(super) type SelectorRead = (ScriptType, u64);

/// A small call to Redis. It is idempotent.
#[derive(Debug, Clone)]
pub(super) enum BackgroundCall {
    /// Pass on a stop for a job that does not run here.
    PassOnStop(JobId),
    /// Answer a ping into this list.
    Pong(String),
    /// Pass on a wake-up that this process does not need.
    PassOn(Woken),
    /// Adopt what programs pushed into lists of an actor.
    Adopt(usize, Vec<String>),
    /// Write the last lines of a job's log before it is given back.
    WriteLog(JobId, u64, Vec<LogEntry>),
    /// Do what a running script asks for.
    Keep(Arc<RunningRequest>),
    GiveBack(Vec<ReturnedAttempt>),
    ReadSelectors(SelectorRead),
    Wake(Waker),
}

/// The result of a background call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Done {
    Finished,
    /// The boot owns the job that should stop: its claim is still being answered.
    StopIsOwn(JobId),
    /// Expressions were read, unless Redis refuses that.
    Selectors(SelectorRead, Option<UsedSelectors>),
    Adopted {
        actor: usize,
        /// Its queues may have jobs now.
        has_work: bool,
        /// An old worker may be about to start some: look again later.
        look_later: bool,
    },
}

pub(super) type CallResult = (BackgroundCall, Result<Done, StoreError>);

/// The background calls that wait, and the one under way.
#[derive(Default)]
pub(super) struct BackgroundCalls {
    waiting: VecDeque<BackgroundCall>,
    /// True if the one under way gives jobs back.
    is_giving_back: bool,
    pub(super) under_way: Pending<CallResult>,
}

impl BackgroundCalls {
    /// Queues a background call after the others; a wake-up comes before them.
    pub(super) fn push(&mut self, call: BackgroundCall) {
        match call {
            BackgroundCall::Wake(_) => self.waiting.push_front(call),
            _ => self.waiting.push_back(call),
        }
    }

    pub(super) fn give_back(&mut self, jobs: Vec<ReturnedAttempt>) {
        if !jobs.is_empty() {
            self.push(BackgroundCall::GiveBack(jobs));
        }
    }

    /// Gives back a job whose process has ended as the actor shuts down, after the lines that it wrote meanwhile.
    pub(super) fn give_back_ended(&mut self, run: &RunningJob) {
        let lines = run.log.take_rest();
        if !lines.is_empty() {
            let (id, claimed_at) = run.attempt();
            self.push(BackgroundCall::WriteLog(id, claimed_at, lines));
        }
        self.push(BackgroundCall::GiveBack(vec![given_back(run, true)]));
    }

    /// Queues background calls that do what running scripts ask for.
    pub(super) fn keep(&mut self, asked: Vec<RunningRequest>) {
        self.waiting.extend(asked.into_iter().map(|work| BackgroundCall::Keep(Arc::new(work))));
    }

    /// Returns whether jobs are being given back: a claim could take later jobs of a queue first.
    pub(super) fn gives_back(&self) -> bool {
        self.is_giving_back
            || self.waiting.iter().any(|call| matches!(call, BackgroundCall::GiveBack(_)))
    }

    /// Queues a background call that adopts entries of lists, unless one waits.
    pub(super) fn adopt(&mut self, actor: usize, lists: Vec<String>) {
        let is_one =
            |call: &BackgroundCall| matches!(call, BackgroundCall::Adopt(of, _) if *of == actor);
        if !lists.is_empty() && !self.waiting.iter().any(is_one) {
            self.push(BackgroundCall::Adopt(actor, lists));
        }
    }

    /// Returns the number of those that are not done.
    pub(super) fn left(&self) -> usize {
        self.waiting.len() + usize::from(self.under_way.is_active())
    }

    /// Returns whether no control message should be taken that could add one.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Starts the next one, unless one is under way.
    pub(super) fn begin(&mut self, boot: &Arc<Boot>, is_flushing: bool) {
        let follows =
            matches!(self.waiting.front(), Some(BackgroundCall::WriteLog(..))) && is_flushing;
        if !follows
            && !self.under_way.is_active()
            && let Some(call) = self.waiting.pop_front()
        {
            self.is_giving_back = matches!(call, BackgroundCall::GiveBack(_));
            let boot = Arc::clone(boot);
            self.under_way.start(async move {
                let done = run(&call, &boot).await;
                (call, done)
            });
        }
    }

    /// Takes the end of a background call: queues it again if Redis was away. Returns what follows.
    pub(super) fn done(&mut self, (call, done): CallResult) -> Result<Done, StoreError> {
        self.is_giving_back = false;
        match done {
            Ok(done) => Ok(done),
            Err(error) => {
                if error.is_outage() && !matches!(call, BackgroundCall::Wake(_)) {
                    self.waiting.push_front(call);
                }
                Err(error)
            }
        }
    }
}

async fn run(call: &BackgroundCall, boot: &Boot) -> Result<Done, StoreError> {
    let store = &boot.store;
    match call {
        BackgroundCall::PassOnStop(id) => {
            let asked = store.jobs().stop(id, boot.settings().job.kept(), Some(&boot.id)).await?;
            if asked == StopOutcome::Own {
                return Ok(Done::StopIsOwn(id.clone()));
            }
            info!(job_id = %id, outcome = ?asked, "passed on the stop of job {id}");
        }
        BackgroundCall::Pong(reply_to) => {
            if !store.actors().pong(reply_to, "pong").await? {
                warn!(reply_to = %reply_to, "dropped a ping: its reply list is not one of Hero's");
            }
        }
        BackgroundCall::PassOn(woken) => store.jobs().pass_on(woken).await?,
        BackgroundCall::Adopt(actor, lists) => return adopt(boot, *actor, lists).await,
        BackgroundCall::WriteLog(id, claimed_at, lines) => {
            for RefusedLines { reason, .. } in boot.append_logs(&[(id, *claimed_at, lines)]).await?
            {
                warn!(job_id = %id, "redis refuses the last lines of job {id}, which are dropped: {reason}");
            }
        }
        BackgroundCall::Keep(keeping) => keeping.keep(boot).await?,
        BackgroundCall::GiveBack(jobs) => {
            let given_back =
                store.attempts().requeue(&boot.id, boot.settings().job.kept(), jobs).await?;
            info!(jobs = given_back, "gave jobs back to their queues");
        }
        BackgroundCall::ReadSelectors(read) => {
            let used = match store.queues().selectors(&read.0, read.1).await {
                Err(error) if error.is_outage() => return Err(error),
                // A supervisor names a key of the wrong type.
                Err(StoreError::Failed { .. }) => None,
                Err(error) => {
                    warn!(script_type = %read.0, "jobs of {} with a new `where` wait: {error}", read.0);
                    None
                }
                Ok(used) => Some(used),
            };
            return Ok(Done::Selectors(read.clone(), used));
        }
        BackgroundCall::Wake(waker) => store.jobs().wake(waker).await?,
    }
    Ok(Done::Finished)
}

async fn adopt(boot: &Boot, actor: usize, lists: &[String]) -> Result<Done, StoreError> {
    let (mut has_work, mut look_later) = (false, false);
    for list in lists {
        let adopted =
            boot.store.legacy().adopt(list, AdoptionRules::from(&boot.settings().job)).await?;
        has_work |= adopted.jobs + adopted.removed > 0;
        look_later |= adopted.next == AfterAdoption::Later;
    }
    Ok(Done::Adopted { actor, has_work, look_later })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> StoreError {
        StoreError::Unreachable {
            address: "here".to_owned(),
            reason: "away".to_owned(),
            sent: true,
        }
    }

    #[test]
    fn call_is_queued_again_before_the_others_while_redis_is_away() {
        let mut calls = BackgroundCalls::default();
        calls.push(BackgroundCall::Pong("second".to_owned()));
        assert!(calls.done((BackgroundCall::Pong("first".to_owned()), Err(away()))).is_err());
        let first = calls.waiting.pop_front();
        assert!(matches!(first, Some(BackgroundCall::Pong(list)) if list == "first"));
        // A wake-up is of no use later.
        assert!(calls.done((BackgroundCall::Wake(Waker::default()), Err(away()))).is_err());
        assert_eq!(calls.waiting.len(), 1);
    }
}
