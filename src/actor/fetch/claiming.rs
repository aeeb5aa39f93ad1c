//! Claims: jobs for free slots, the pops that they take over, and the check which jobs this boot
//! owns after a claim whose answer was lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::action::Action;
use super::errands::Errand;
use super::inputs::{self, InputsOf, JobInputs};
use super::jobs::Jobs;
use super::pending::Pending;
use super::slots::Slots;
use crate::actor::boot::Boot;
use crate::actor::settings::ActorSettings;
use crate::failpoint;
use crate::proto::job::JobId;
use crate::store::{Claim, Claimed, GivenBack, StoreError, Woken};

/// The size of a hash beside its script.
const HASH_MARGIN_BYTES: u64 = 1 << 20;
/// The shortest time between two log lines about skipped ids.
const SKIP_LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two comparisons while a claim whose answer was lost may still reach Redis.
const LATE_CLAIM_INTERVAL: Duration = Duration::from_secs(1);
/// The most jobs that are compared with those that run here.
const OWNED_MAX: usize = 10_000;

/// The claims of one boot.
pub(super) struct Claiming {
    boot: Arc<Boot>,
    /// Pops that the next claim takes over, each with its actor.
    popped: Vec<(usize, Woken)>,
    /// Pops of a claim that failed: it may have taken them over. They go back, since a second claim
    /// could take the id of a job that has ended meanwhile for a new push.
    unanswered: Vec<Woken>,
    /// A claim may have succeeded though its answer was lost.
    is_unsure: bool,
    /// When the answer to a claim was last lost.
    lost_at: Option<Instant>,
    compared_at: Instant,
    /// When the claim under way began.
    began_at: Instant,
    /// Skipped ids that were not logged yet.
    skipped: u64,
    skips_logged_at: Option<Instant>,
    claim: Pending<ClaimRound>,
    comparison: Pending<Result<Vec<(JobId, u64)>, StoreError>>,
}

/// The end of a call.
pub(super) enum ClaimingEnd {
    /// A round of claims.
    Round(ClaimRound),
    /// The jobs that this boot owns.
    Owned(Result<Vec<(JobId, u64)>, StoreError>),
}

/// The answers to a round of claims, one for each actor with free slots.
#[derive(Debug, Default)]
pub(super) struct ClaimRound {
    answers: Vec<ActorClaim>,
    /// Pops that no claim took over, because one before it failed.
    popped: Vec<(usize, Woken)>,
    failed: Option<StoreError>,
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
    /// Claims nothing yet.
    pub(super) fn new(boot: &Arc<Boot>) -> Self {
        Self {
            boot: Arc::clone(boot),
            popped: Vec::new(),
            unanswered: Vec::new(),
            is_unsure: false,
            lost_at: None,
            compared_at: Instant::now(),
            began_at: Instant::now(),
            skipped: 0,
            skips_logged_at: None,
            claim: Pending::default(),
            comparison: Pending::default(),
        }
    }

    /// Lets the next claim take over a popped job.
    pub(super) fn push(&mut self, actor: usize, popped: Woken) {
        self.popped.push((actor, popped));
    }

    /// Returns whether a claim is under way.
    pub(super) fn is_claiming(&self) -> bool {
        self.claim.is_active()
    }

    /// Returns since when a claim is under way.
    pub(super) fn claims_since(&self) -> Option<Instant> {
        self.is_claiming().then_some(self.began_at)
    }

    /// Returns whether no claim may begin until the owned jobs were compared.
    pub(super) fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// Returns whether the owned jobs are being compared: no end may be recorded meanwhile, as its
    /// job would look forgotten.
    pub(super) fn is_comparing(&self) -> bool {
        self.comparison.is_active()
    }

    /// Returns whether nothing is under way or waits.
    pub(super) fn is_idle(&self) -> bool {
        self.popped.is_empty() && !self.is_claiming() && !self.is_unsure
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
            self.comparison.start(async move { boot.store.running(&boot.id, OWNED_MAX).await });
        }
    }

    /// Starts a round of claims for the actors with free slots.
    pub(super) fn begin(&mut self, jobs: &mut Jobs, settings: &ActorSettings) -> Vec<Action> {
        if self.is_claiming() || self.is_unsure {
            return Vec::new();
        }
        let due = due_claims(jobs, settings);
        // An actor that drains by now leaves its pops to others, and so does one whose tasks other shards
        // have taken meanwhile.
        let is_free =
            |(actor, _): &(usize, Woken)| due.iter().any(|due| due.actor == *actor && due.free > 0);
        let (keep, back): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.popped).into_iter().partition(is_free);
        self.popped = keep;
        let back = back.into_iter().map(|(_, woken)| Action::Do(Errand::PutBack(woken))).collect();
        if !due.is_empty() {
            let popped = std::mem::take(&mut self.popped);
            let size_max_bytes = settings.job.script_size_max.saturating_add(HASH_MARGIN_BYTES);
            let (boot, limits) = (Arc::clone(&self.boot), settings.limits.clone());
            let (retention, requeue_by_push) = (settings.job.kept(), settings.job.requeue_by_push);
            self.began_at = Instant::now();
            self.claim.start(async move {
                let mut round = ClaimRound { popped, ..ClaimRound::default() };
                for Due { actor, free, ahead, lists } in due {
                    let own: Vec<(String, Vec<u8>)> = round
                        .popped
                        .iter()
                        .filter(|(of, _)| *of == actor)
                        .map(|(_, woken)| (woken.list.clone(), woken.entry.clone()))
                        .collect();
                    let claim = Claim {
                        boot: &boot.id,
                        actor: &boot.actors[actor],
                        lists: &lists,
                        wanted: free + ahead,
                        ahead,
                        popped: &own,
                        size_max_bytes,
                        limits: &limits,
                        retention,
                        requeue_by_push,
                    };
                    if let Err(error) = round.claim(&boot, actor, &claim).await {
                        round.failed = Some(error);
                        break;
                    }
                }
                round
            });
        }
        back
    }

    /// Waits for the end of the call under way.
    pub(super) async fn next(&mut self) -> ClaimingEnd {
        tokio::select! {
            round = self.claim.next() => ClaimingEnd::Round(round),
            owned = self.comparison.next() => ClaimingEnd::Owned(owned),
        }
    }

    /// Takes the end of a call. `is_known` tells whether a job runs here or its end is about to be
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
                self.on_owned(Vec::new(), is_known)
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
            slots.may_have_work = claimed.more || claimed.attempts.len() >= wanted;
            if claimed.none_ahead {
                slots.claim_none_ahead();
            }
            self.note_skipped(slots, &claimed);
            for id in &claimed.again {
                info!(job_id = %id, "job {id} had ended and runs again: a program has pushed its id");
            }
            if claimed.fenced {
                actions.push(Action::LeaseLost);
            } else if slots.set_paused(std::mem::take(&mut claimed.paused)) {
                info!(actor = %slots.id, paused = slots.paused_len(), "queues were paused or resumed");
            }
            if !claimed.later.is_empty() {
                let later = std::mem::take(&mut claimed.later).into_iter();
                let later = later.map(|(list, id)| Woken { list, entry: id.into_bytes() });
                actions.push(Action::PutBackLater(later.collect()));
            }
            if !claimed.attempts.is_empty() {
                failpoint::reached(failpoint::AFTER_CLAIM);
            }
            actions.extend(claimed.attempts.into_iter().map(|attempt| {
                let inputs = inputs.remove(&attempt.id).unwrap_or_else(|| Ok(JobInputs::default()));
                Action::Start(actor, Box::new(attempt), inputs)
            }));
        }
        if round.failed.is_some() {
            self.unanswered.extend(round.popped.into_iter().map(|(_, woken)| woken));
        }
        actions.push(match round.failed {
            Some(error) => {
                self.is_unsure = true;
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
        owned: Vec<(JobId, u64)>,
        is_known: impl Fn(&JobId) -> bool,
    ) -> Vec<Action> {
        self.is_unsure = false;
        self.compared_at = Instant::now();
        let unknown = owned.into_iter().filter(|(id, _)| !is_known(id));
        let unknown: Vec<GivenBack> = unknown
            .map(|(id, claimed_at)| GivenBack { id, claimed_at, queue: None, has_begun: false })
            .collect();
        // A read is no sign that Redis accepts writes again.
        let unanswered = std::mem::take(&mut self.unanswered).into_iter();
        let mut actions: Vec<Action> =
            unanswered.map(|woken| Action::Do(Errand::PutBack(woken))).collect();
        if !unknown.is_empty() {
            warn!(
                jobs = unknown.len(),
                "gives back claimed jobs: the answer to their claim was lost"
            );
            actions.push(Action::Do(Errand::GiveBack(unknown)));
        }
        actions
    }

    /// Leaves broken lists alone; counts skipped ids, and logs them now and then.
    fn note_skipped(&mut self, slots: &mut Slots, claimed: &Claimed) {
        let now = Instant::now();
        for (list, reason) in &claimed.broken {
            if slots.set_broken(list, now) {
                error!(key = %list, "cannot read a work queue; trying again in 30 s: {reason}");
            }
        }
        self.skipped += claimed.skipped;
        let due = self.skips_logged_at.is_none_or(|at| now.duration_since(at) >= SKIP_LOG_INTERVAL);
        if self.skipped > 0 && due {
            let some = claimed.skipped_some.iter();
            let some: Vec<String> = some.map(|(id, why)| format!("{id}: {why}")).collect();
            warn!(ids = self.skipped, "skipped ids in work queues: {}", some.join(", "));
            self.skipped = 0;
            self.skips_logged_at = Some(now);
        }
    }

    /// Ends the claim under way. Returns the pops that no claim took over.
    pub(super) async fn stop(&mut self, until: tokio::time::Instant) -> Vec<Woken> {
        let mut popped = std::mem::take(&mut self.popped);
        // The claim of a boot that is declared dead puts its pops back itself.
        if self.is_claiming()
            && let Ok(round) = tokio::time::timeout_at(until, self.claim.next()).await
        {
            popped.extend(round.popped);
        }
        let unanswered = std::mem::take(&mut self.unanswered);
        popped.into_iter().map(|(_, woken)| woken).chain(unanswered).collect()
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
        let claimed = boot.store.claim(claim).await?;
        self.popped.retain(|(of, _)| *of != actor);
        // If this fails, the comparison finds the claimed jobs and gives them back.
        let inputs = inputs::fetch(&boot.store, &boot.settings().job, &claimed.attempts).await?;
        self.answers.push(ActorClaim { actor, wanted: claim.wanted, claimed, inputs });
        Ok(())
    }
}

/// Returns the time between two comparisons: short for a lease after the answer to a claim was lost,
/// since a machine sends again for seconds after a partition what it has sent into it.
fn comparison_interval(lost_at: Option<Instant>, now: Instant, lease: Duration) -> Duration {
    match lost_at {
        Some(at) if now.duration_since(at) < lease => LATE_CLAIM_INTERVAL.min(lease),
        _ => lease,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_jobs_are_compared_often_for_a_lease_after_a_lost_claim() {
        let (lease, lost) = (Duration::from_secs(15), Instant::now());
        let after =
            |seconds| comparison_interval(Some(lost), lost + Duration::from_secs(seconds), lease);
        assert_eq!([after(0), after(14)], [LATE_CLAIM_INTERVAL; 2]);
        assert_eq!([after(15), comparison_interval(None, lost, lease)], [lease; 2]);
    }
}
