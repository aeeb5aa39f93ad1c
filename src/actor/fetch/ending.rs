//! The ends of attempts as their threads saw them, and the end of a boot: in order by a shutdown, or at once after its
//! lease is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{Instant as Deadline, timeout_at};
use tracing::{debug, warn};

use super::Fetch;
use super::background_calls::BackgroundCall;
use super::draining::{EXTRA, Rest};
use super::jobs::given_back;
use crate::actor::heartbeat::check_overload;
use crate::actor::running_job::RunOutcome;
use crate::engine::{Failure, StopReason};
use crate::proto::job::JobId;
use crate::proto::report::{ServiceReport, Shutdown};
use crate::store::ReturnedAttempt;

/// The longest delay of the next boot by a Redis that is away.
const PASS_ON_PATIENCE: Duration = Duration::from_secs(2);

impl Fetch {
    /// Takes an outcome, and all others that have come.
    pub(super) fn on_outcomes(&mut self, first: RunOutcome) {
        let mut next = Some(first);
        while let Some(outcome) = next.map(RunOutcome::with_latest_reason) {
            if let Some(outcome) = self.unit_signals.sort(outcome, Instant::now()) {
                self.on_outcome(outcome);
            }
            next = self.outcomes.try_recv().ok();
        }
    }

    /// Takes the outcomes that have waited for a signal of this process.
    pub(super) fn take_settled(&mut self) {
        for outcome in self.unit_signals.settled(Instant::now()) {
            self.on_outcome(outcome);
        }
    }

    fn on_outcome(&mut self, outcome: RunOutcome) {
        let run = Arc::clone(&outcome.run);
        let lack = match &outcome.result {
            Err(Failure::Machine { message }) => Some((message.clone(), false)),
            Err(Failure::Killed { message, .. }) => Some((message.clone(), true)),
            Err(Failure::Stopped(StopReason::Shutdown)) if run.job.session == 0 => {
                self.calls.give_back_ended(&run);
                None
            }
            _ => None,
        };
        let ended = self.jobs.end(outcome, &self.settings);
        if let Some((message, has_crashed)) = lack {
            // Claims no jobs for a while.
            self.boot.health.set_shortage(&message);
            check_overload(&self.boot);
            if ended.is_none() {
                // What the machine could not start has not begun.
                let back = ReturnedAttempt { has_crashed, ..given_back(&run, has_crashed) };
                self.calls.push(BackgroundCall::GiveBack(vec![back]));
            }
        }
        if let Some(ended) = ended {
            let script_type = self.jobs.slots[run.actor].id.script_type.clone();
            self.recording.add(run.attempt(), script_type, ended, &run.log);
        }
    }

    /// Ends the boot after its lease is lost: its jobs run again elsewhere unless they are gone, so their scripts are
    /// stopped and nothing of them is written. A wake-up that it just got goes to another actor.
    /// Returns once the scripts have ended, or had the time to.
    pub(in crate::actor) async fn abandon(&mut self) {
        let lost: Vec<JobId> = self.jobs.running.keys().cloned().collect();
        let unrecorded: Vec<JobId> = self.recording.ids().cloned().collect();
        // Those that no thread has begun need none for their end.
        self.jobs.take_waiting(Instant::now(), true);
        // Other shards need not wait for the end of the scripts to use the other tasks.
        if self.jobs.is_shared() {
            self.jobs.leave_tasks();
        }
        self.jobs.stop_all(StopReason::LeaseLost);
        for id in self.unit_signals.take() {
            self.jobs.running.remove(&id);
        }
        let until = Deadline::now() + PASS_ON_PATIENCE;
        for (id, what) in self.futures_of(&lost, until).await {
            warn!(job_id = %id, "lost job {id} with the lease: stopping its script; {what}");
        }
        for (id, what) in self.futures_of(&unrecorded, until).await {
            warn!(job_id = %id, "lost job {id} with the lease before its end was recorded: {what}");
        }
        if let Some(woken) = self.waiting.stop(&self.boot.store, until).await {
            match timeout_at(until, self.boot.store.jobs().pass_on(&woken)).await {
                Ok(Ok(())) => debug!(key = %woken.list, "passed a wake-up on"),
                Ok(Err(error)) => warn!(key = %woken.list, "cannot pass a wake-up on: {error}"),
                Err(_) => {
                    warn!(key = %woken.list, "cannot pass a wake-up on: redis does not answer");
                }
            }
        }
        let until = Deadline::now() + self.settings.job.kill_grace + EXTRA;
        while !self.jobs.running.is_empty() {
            match timeout_at(until, self.outcomes.recv()).await {
                Ok(Some(outcome)) => self.jobs.running.remove(&outcome.run.job.id),
                Ok(None) | Err(_) => break,
            };
        }
    }

    /// Returns what becomes of jobs that the boot has lost.
    async fn futures_of<'a>(
        &self,
        ids: &'a [JobId],
        until: Deadline,
    ) -> Vec<(&'a JobId, &'static str)> {
        let found = timeout_at(until, self.boot.store.jobs().summaries(ids.to_vec())).await;
        let found = found.ok().and_then(Result::ok);
        let what = |place: usize| match found.as_ref().and_then(|found| found.get(place)) {
            Some(Some(_)) => "it runs again elsewhere",
            Some(None) => "redis does not have it any more, so it does not run again",
            None => "it runs again elsewhere if redis still has it",
        };
        ids.iter().enumerate().map(|(place, id)| (id, what(place))).collect()
    }

    pub(super) fn advance_shutdown(&mut self, asked: Shutdown) {
        let actions = self.draining.advance(
            Instant::now(),
            asked,
            self.jobs.running.len(),
            self.settings.actor.drain_timeout,
            self.settings.job.kill_grace,
        );
        self.apply_all(actions);
    }

    pub(super) fn is_over(&self) -> bool {
        if !self.draining.has_begun() {
            return false;
        }
        let (calls, replies) = (self.calls.left(), self.recording.replies.left());
        let away = self.boot.health.outage.since();
        let rest = Rest {
            running: self.jobs.running.len(),
            unrecorded: self.recording.ids().count(),
            other: calls + replies > 0 || !self.claiming.is_idle() || self.waiting.is_for_work,
            redis_away: away.map_or(Duration::ZERO, |since| since.elapsed()),
        };
        let is_over = self.draining.is_over(Instant::now(), rest);
        if is_over && rest.running + rest.unrecorded > 0 {
            let jobs = rest.running + rest.unrecorded;
            warn!(jobs, "stops with unrecorded jobs: they run again when the lease ends");
        }
        if is_over && calls + replies > 0 {
            warn!(
                calls,
                replies,
                "stops before redis took its last calls and the replies of some jobs: who waits for these finds the \
                 end in the job"
            );
        }
        is_over
    }

    pub(super) fn report_stopping(&self) {
        let status = format!("draining, {} running", self.boot.process.running());
        let (drain, kill) = (self.settings.actor.drain_timeout, self.settings.job.kill_grace);
        (self.boot.report)(ServiceReport::Stopping { status, within: drain + kill + 3 * EXTRA });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use tokio::sync::watch;

    use super::*;
    use crate::actor::boot::Boot;
    use crate::actor::crew::Crew;
    use crate::actor::process::{ActorProcess, Actors};
    use crate::actor::settings::ActorSettings;
    use crate::config::{ActorConfig, ActorUnit, JobConfig, RedisConfig, SecretsConfig};
    use crate::engine::{Cancel, Engine, Failure, Log, Script, Success};
    use crate::proto::target::ScriptType;
    use crate::store::{ClaimLimits, Store};

    /// Gets no script.
    struct Idle(ScriptType);

    impl Engine for Idle {
        fn run(&self, _: &Script<'_>, _: &Cancel, _: &dyn Log) -> Result<Success, Failure> {
            unreachable!("no job is claimed")
        }

        fn unavailable(&self) -> Option<String> {
            None
        }

        fn capabilities(&self) -> Vec<String> {
            Vec::new()
        }

        fn script_type(&self) -> &ScriptType {
            &self.0
        }
    }

    /// A boot of the first of two shards, without a Redis.
    fn boot() -> Arc<Boot> {
        let script_type: ScriptType = "osis".parse().expect("legal");
        let engine: Arc<dyn Engine> = Arc::new(Idle(script_type.clone()));
        let settings = Arc::new(ActorSettings {
            actors: vec![ActorUnit {
                id: "osis:default:1".parse().expect("legal"),
                tasks: 2,
                labels: crate::proto::labels::Labels::new(),
            }],
            labels: Vec::new(),
            job: JobConfig::default(),
            actor: ActorConfig::default(),
            redact: Vec::new(),
            secrets: SecretsConfig::default(),
            limits: ClaimLimits::default(),
            all_dead: BTreeSet::new(),
            may_submit: BTreeMap::new(),
            required_keys: BTreeMap::new(),
            engines: BTreeMap::from([(script_type, engine)]),
            digest: String::new(),
            read_at: jiff::Timestamp::UNIX_EPOCH,
        });
        let crew = Crew::start(&settings, 2).expect("threads");
        let settings = watch::Sender::new(settings).subscribe();
        let store = Store::open(&RedisConfig::default()).expect("legal settings");
        let actors = Actors {
            settings,
            beat_within: None,
            report: Arc::new(|_| {}),
            end: watch::Sender::new(Shutdown::No),
            shards: 2,
            tracer: None,
            home: store.clone(),
        };
        let process = Arc::new(ActorProcess::new(actors, crew));
        Arc::new(Boot::new(&process, 0, &store))
    }

    #[tokio::test]
    async fn boot_without_a_lease_leaves_its_tasks_before_its_loop_ends() {
        let boot = boot();
        let mut fetch = Fetch::new(&boot).expect("threads");
        let handover = || boot.process.crew.workers[0].handover();
        assert_eq!(handover().keep(0, 2), 2);
        assert_eq!(handover().keep(1, 2), 0);
        fetch.abandon().await;
        assert_eq!(handover().keep(1, 2), 2, "the other shard may have them");
    }
}
