//! Claims: jobs for free slots, and the check which jobs this boot owns after a claim whose answer was lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{error, warn};

use super::action::Action;
use super::background_calls::BackgroundCall;
use super::inputs::{self, InputsOf, JobInputs};
use super::jobs::{Jobs, not_begun};
use super::pending::Pending;
use super::slots::Slots;
use crate::actor::boot::Boot;
use crate::actor::settings::ActorSettings;
use crate::failpoint;
use crate::proto::job::JobId;
use crate::store::{Claim, Claimed, StoreError};

/// The size of a hash beside its script.
const HASH_MARGIN_BYTES: u64 = 1 << 20;
/// The time between two comparisons while a claim whose answer was lost may still reach Redis.
const LATE_CLAIM_INTERVAL: Duration = Duration::from_secs(1);
/// A Redis that answers within this time after a lost connection was not away.
const SERVES_SOON: Duration = Duration::from_secs(1);
/// The maximum number of jobs that are compared with those that run here.
const OWNED_MAX: usize = 10_000;

pub(super) struct Claiming {
    boot: Arc<Boot>,
    /// A claim may have succeeded though its answer was lost: none may begin until the owned jobs were compared.
    pub(super) is_unsure: bool,
    /// When the answer to a claim was last lost.
    lost_at: Option<Instant>,
    /// The jobs of claims whose answers were lost, and the actor of the last such claim: until they are claimed again,
    /// each job is claimed alone.
    suspects: BTreeSet<JobId>,
    /// The run id of the server that they were last found on.
    suspects_server: Option<String>,
    failed_actor: usize,
    compared_at: Instant,
    began_at: Instant,
    claim: Pending<ClaimRound>,
    comparison: Pending<Result<OwnedJobs, StoreError>>,
}

#[derive(Debug, Default)]
pub(super) struct OwnedJobs {
    /// The jobs, each with the time of its claim.
    jobs: Vec<(JobId, u64)>,
    /// The run id of the server.
    server: Option<String>,
}

pub(super) enum ClaimingEnd {
    Round(ClaimRound),
    Owned(Result<OwnedJobs, StoreError>),
}

/// The answers to a round of claims, one for each actor with free slots.
#[derive(Debug, Default)]
pub(super) struct ClaimRound {
    answers: Vec<ActorClaim>,
    failed: Option<(usize, StoreError)>,
}

#[derive(Debug)]
struct ActorClaim {
    actor: usize,
    wanted: usize,
    claimed: Claimed,
    inputs: InputsOf,
}

/// A claim that is due: for free threads, and ahead of them.
struct Due {
    actor: usize,
    free: usize,
    ahead: usize,
    lists: Vec<String>,
}

impl Claiming {
    pub(super) fn new(boot: &Arc<Boot>) -> Self {
        Self {
            boot: Arc::clone(boot),
            is_unsure: false,
            lost_at: None,
            suspects: BTreeSet::new(),
            suspects_server: None,
            failed_actor: 0,
            compared_at: Instant::now(),
            began_at: Instant::now(),
            claim: Pending::default(),
            comparison: Pending::default(),
        }
    }

    pub(super) fn is_claiming(&self) -> bool {
        self.claim.is_active()
    }

    pub(super) fn claims_since(&self) -> Option<Instant> {
        self.is_claiming().then_some(self.began_at)
    }

    /// Returns whether the owned jobs are being compared: no end may be recorded meanwhile, as its
    /// job would look forgotten.
    pub(super) fn is_comparing(&self) -> bool {
        self.comparison.is_active()
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_claiming() && !self.is_unsure
    }

    /// Starts to ask which jobs this boot owns, after a claim whose answer was lost, and then again,
    /// since such a claim may reach Redis late. While ends are being recorded, a job may be in neither
    /// place.
    pub(super) fn begin_comparison(&mut self, now: Instant, is_recording: bool) {
        let interval = comparison_interval(self.lost_at, now, self.boot.lease);
        if now.duration_since(self.compared_at) >= interval {
            self.is_unsure = true;
        }
        if self.is_unsure && !is_recording && !self.is_comparing() && !self.is_claiming() {
            let boot = Arc::clone(&self.boot);
            self.comparison.start(async move {
                let jobs = boot.store.attempts().running(&boot.id, OWNED_MAX).await?;
                let server =
                    if jobs.is_empty() { None } else { boot.store.redis().run_id().await? };
                Ok(OwnedJobs { jobs, server })
            });
        }
    }

    /// Starts a round of claims for the actors with free slots.
    pub(super) fn begin(&mut self, jobs: &mut Jobs, settings: &ActorSettings) {
        if self.is_claiming() || self.is_unsure {
            return;
        }
        let mut due = due_claims(jobs, settings);
        if !self.suspects.is_empty() {
            due.iter_mut().for_each(Due::narrow);
        }
        if !due.is_empty() {
            let size_max_bytes = settings.job.script_size_max.saturating_add(HASH_MARGIN_BYTES);
            let (boot, limits) = (Arc::clone(&self.boot), settings.limits.clone());
            self.began_at = Instant::now();
            self.claim.start(async move {
                let mut round = ClaimRound::default();
                for Due { actor, free, ahead, lists } in due {
                    let claim = Claim {
                        boot: &boot.id,
                        actor: &boot.actors[actor],
                        lists: &lists,
                        wanted: free + ahead,
                        ahead,
                        size_max_bytes,
                        limits: &limits,
                    };
                    if let Err(error) = round.claim(&boot, actor, &claim).await {
                        round.failed = Some((actor, error));
                        break;
                    }
                }
                round
            });
        }
    }

    pub(super) async fn next(&mut self) -> ClaimingEnd {
        tokio::select! {
            round = self.claim.next() => ClaimingEnd::Round(round),
            owned = self.comparison.next() => ClaimingEnd::Owned(owned),
        }
    }

    /// Takes the end of a call. `is_known` reports whether a job runs here or its end is about to be
    /// recorded.
    pub(super) fn done(
        &mut self,
        end: ClaimingEnd,
        slots: &mut [Slots],
        is_known: impl Fn(&JobId) -> bool,
    ) -> Vec<Action> {
        match end {
            ClaimingEnd::Round(round) => self.on_round(round, slots),
            ClaimingEnd::Owned(Ok(owned)) => self.on_owned(owned, is_known),
            // The key has the wrong type: the claims report that.
            ClaimingEnd::Owned(Err(StoreError::Failed { .. })) => {
                self.on_owned(OwnedJobs::default(), is_known)
            }
            ClaimingEnd::Owned(Err(error)) => {
                vec![Action::RedisFailed("reading the jobs of this boot", error)]
            }
        }
    }

    fn on_round(&mut self, round: ClaimRound, slots: &mut [Slots]) -> Vec<Action> {
        let mut actions = Vec::new();
        for ActorClaim { actor, wanted, mut claimed, mut inputs } in round.answers {
            let slots = &mut slots[actor];
            slots.claimed(claimed.more || claimed.attempts.len() >= wanted);
            if claimed.none_ahead {
                slots.claim_none_ahead();
            }
            note_broken(slots, &claimed);
            if claimed.fenced {
                actions.push(Action::LeaseLost);
            }
            if !claimed.unadopted.is_empty() {
                actions.push(Action::Adopt(actor, std::mem::take(&mut claimed.unadopted)));
            }
            if claimed.attempts.is_empty() {
                // Other actors have the jobs.
                self.suspects.clear();
            } else {
                failpoint::reached(failpoint::AFTER_CLAIM);
            }
            for attempt in &claimed.attempts {
                self.suspects.remove(&attempt.id);
            }
            actions.extend(claimed.attempts.into_iter().map(|attempt| {
                let inputs = inputs.remove(&attempt.id).unwrap_or_else(|| Ok(JobInputs::default()));
                Action::Start(actor, Box::new(attempt), inputs)
            }));
        }
        actions.push(match round.failed {
            Some((actor, error)) => {
                self.is_unsure = true;
                self.failed_actor = actor;
                if matches!(error, StoreError::Unreachable { .. }) {
                    self.lost_at = Some(Instant::now());
                }
                Action::RedisFailed("claiming jobs", error)
            }
            None => Action::RedisAnswered,
        });
        actions
    }

    fn on_owned(
        &mut self,
        OwnedJobs { jobs, server }: OwnedJobs,
        is_known: impl Fn(&JobId) -> bool,
    ) -> Vec<Action> {
        self.is_unsure = false;
        self.compared_at = Instant::now();
        let unknown: Vec<(JobId, u64)> = jobs.into_iter().filter(|(id, _)| !is_known(id)).collect();
        if let [(id, claimed_at)] = &unknown[..]
            && self.suspects.contains(id)
            && serves_on(self.suspects_server.as_ref(), server.as_ref(), self.lost_at)
        {
            // The connection was lost for a second time at the claim of this job, which was alone.
            self.suspects.remove(id);
            return vec![Action::SetApart(self.failed_actor, id.clone(), *claimed_at)];
        }
        self.suspects_server = server;
        self.suspects.extend(unknown.iter().map(|(id, _)| id.clone()));
        // A read is no sign that Redis accepts writes again.
        if unknown.is_empty() {
            return Vec::new();
        }
        warn!(jobs = unknown.len(), "gives back claimed jobs: the answer to their claim was lost");
        let unknown = unknown.into_iter().map(|of| not_begun(of, None)).collect();
        vec![Action::Do(BackgroundCall::GiveBack(unknown))]
    }
}

impl Due {
    /// Claims one job alone.
    fn narrow(&mut self) {
        (self.free, self.ahead) = if self.free > 0 { (1, 0) } else { (0, 1) };
    }
}

/// Leaves broken lists alone.
fn note_broken(slots: &mut Slots, claimed: &Claimed) {
    let now = Instant::now();
    for (list, reason) in &claimed.broken {
        if slots.set_broken(list, now) {
            error!(key = %list, "cannot read a work queue; trying again in 30 s: {reason}");
        }
    }
}

/// Returns the claims that are due, with tasks that are kept for them.
fn due_claims(jobs: &mut Jobs, settings: &ActorSettings) -> Vec<Due> {
    let mut due = Vec::new();
    for actor in 0..jobs.slots.len() {
        let slots = &jobs.slots[actor];
        if !slots.wants_claim() {
            continue;
        }
        let ahead = slots.ahead();
        let free = jobs.keep_tasks(actor, slots.free());
        if free + ahead > 0 {
            let lists = jobs.slots[actor].lists_to_claim(settings.actor.fair_every);
            due.push(Due { actor, free, ahead, lists });
        }
    }
    due
}

impl ClaimRound {
    /// Claims jobs for one actor, and reads the inputs of those that have some.
    async fn claim(
        &mut self,
        boot: &Boot,
        actor: usize,
        claim: &Claim<'_>,
    ) -> Result<(), StoreError> {
        let claimed = boot.store.attempts().claim(claim).await?;
        // If this fails, the comparison finds the claimed jobs and gives them back.
        let inputs = inputs::fetch(&boot.store, &boot.settings().job, &claimed.attempts).await?;
        self.answers.push(ActorClaim { actor, wanted: claim.wanted, claimed, inputs });
        Ok(())
    }
}

/// Returns the time between two comparisons: short for a lease after the answer to a claim was lost,
/// since a machine resends lost packets for seconds after a partition.
fn comparison_interval(lost_at: Option<Instant>, now: Instant, lease: Duration) -> Duration {
    match lost_at {
        Some(at) if now.duration_since(at) < lease => LATE_CLAIM_INTERVAL.min(lease),
        _ => lease,
    }
}

/// Returns whether the server that answers now, by its run id, is the one of before, and was not away when a connection was
/// lost: one that was started again has cut all connections, for any claim.
fn serves_on(before: Option<&String>, now: Option<&String>, lost_at: Option<Instant>) -> bool {
    before == now && lost_at.is_some_and(|at| at.elapsed() < SERVES_SOON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_was_started_again_cut_no_connection_because_of_a_job() {
        let (first, second) = ("a".to_owned(), "b".to_owned());
        let lost = Some(Instant::now());
        assert!(serves_on(Some(&first), Some(&first), lost) && serves_on(None, None, lost));
        assert!(!serves_on(Some(&first), Some(&second), lost));
        assert!(!serves_on(Some(&first), Some(&first), None));
    }

    #[test]
    fn owned_jobs_are_compared_often_for_a_lease_after_a_lost_claim() {
        let (lease, lost) = (Duration::from_secs(15), Instant::now());
        let after =
            |seconds| comparison_interval(Some(lost), lost + Duration::from_secs(seconds), lease);
        assert_eq!([after(0), after(14)], [LATE_CLAIM_INTERVAL; 2]);
        assert_eq!([after(15), comparison_interval(None, lost, lease)], [lease; 2]);
    }
}
