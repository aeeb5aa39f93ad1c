//! The task slots of one actor, which decide whether it claims, waits, or does neither. Pure.

use std::time::{Duration, Instant};

use crate::actor::tasks::Others;
use crate::proto::keys::Keys;
use crate::proto::queue::Queue;
use crate::proto::target::{ActorId, Priority, SelectorDigest, Target};

/// The work that an actor claims ahead of its threads, as the time that one thread needs for it.
const AHEAD: Duration = Duration::from_millis(3);
/// The maximum number of jobs that are claimed ahead.
const AHEAD_MAX: usize = 64;
/// The attempts that suffice to know the time of the next ones.
const MEASURED: u32 = 8;
/// The maximum number of expressions whose lists one claim reads; the next claim goes on behind them.
const MATCHED_PER_CLAIM: usize = 500;
/// The time that a list is left alone that cannot be read.
const BROKEN_FOR: Duration = Duration::from_secs(30);

/// The task slots and lists of one actor of this process.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) id: ActorId,
    pub(super) control: String,
    keys: Keys,
    /// Its work lists for each priority, first come first.
    lists: Vec<ListsOfPriority>,
    /// The number of claims so far.
    claims: u32,
    /// The place among the expressions that it matches where the next claim begins, so that none starves the others.
    first_matched: usize,
    /// The number of expressions that claims have yet to read until they have read all.
    unread: usize,
    matched: Vec<SelectorDigest>,
    /// Its wake lists: of its own queues, of expressions, of its group's, of its type's.
    wakes: Vec<String>,
    /// Legacy queues: their jobs are adopted.
    pub(super) legacy: Vec<String>,
    /// Lists that cannot be read, and when to try again.
    broken: Vec<(String, Instant)>,
    /// The number of jobs that it may run at once.
    pub(super) tasks: usize,
    /// Its tasks that other shards have.
    pub(super) others: Others,
    /// The number of jobs of this shard that it runs, with those that it has claimed ahead.
    pub(super) running: usize,
    /// The mean time of its latest attempts.
    mean: Duration,
    /// The attempts in this mean.
    measured: u32,
    pub(super) draining: bool,
    overloaded: bool,
    /// True until a claim has found its queues empty.
    pub(super) may_have_work: bool,
}

/// The work lists of an actor at one priority.
#[derive(Debug)]
struct ListsOfPriority {
    own: Vec<String>,
    /// The lists of each expression that it matches.
    matched: Vec<Vec<String>>,
    wide: Vec<String>,
}

impl ListsOfPriority {
    fn new(priority: Priority, targets: &[Target], keys: &Keys) -> Self {
        let read = |target: &Target| keys.work_as_read(&Queue { target: target.clone(), priority });
        let (matched, others): (Vec<&Target>, Vec<&Target>) =
            targets.iter().partition(|target| target.selector().is_some());
        let (own, wide) = others.split_at(1);
        Self {
            own: own.iter().copied().flat_map(read).collect(),
            matched: matched.into_iter().map(read).collect(),
            wide: wide.iter().copied().flat_map(read).collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.own.iter().chain(self.matched.iter().flatten()).chain(&self.wide)
    }

    /// Returns the lists of one claim, of some expressions only, from a place on.
    fn from(&self, first: usize) -> impl Iterator<Item = &String> {
        let number = self.matched.len().min(MATCHED_PER_CLAIM);
        let matched = self.matched.iter().cycle().skip(first).take(number).flatten();
        self.own.iter().chain(matched).chain(&self.wide)
    }
}

impl Slots {
    pub(super) fn new(id: ActorId, tasks: usize, keys: &Keys, legacy: Vec<String>) -> Self {
        let mut slots = Self {
            legacy,
            control: keys.control(&id),
            keys: keys.clone(),
            wakes: Vec::new(),
            lists: Vec::new(),
            claims: 0,
            first_matched: 0,
            unread: 0,
            matched: Vec::new(),
            broken: Vec::new(),
            id,
            tasks,
            others: Others { tasks: 0, sharers: 1, wait_for_one: false },
            running: 0,
            mean: Duration::ZERO,
            measured: 0,
            draining: false,
            overloaded: false,
            may_have_work: true,
        };
        slots.set_lists();
        slots
    }

    pub(super) fn set_matched(&mut self, matched: Vec<SelectorDigest>) {
        if self.matched == matched {
            return;
        }
        self.matched = matched;
        (self.first_matched, self.unread) = (0, 0);
        self.set_lists();
        self.check_again();
    }

    fn set_lists(&mut self) {
        let targets = self.id.targets_with(&self.matched);
        let of_priority = |priority| ListsOfPriority::new(priority, &targets, &self.keys);
        self.lists = Priority::ALL.into_iter().map(of_priority).collect();
        self.wakes = targets.iter().map(|target| self.keys.wake(target)).collect();
    }

    /// Returns how many more jobs it may claim.
    pub(super) fn free(&self) -> usize {
        if self.is_held() { 0 } else { self.limit().saturating_sub(self.running) }
    }

    /// Returns how many tasks are left by other shards.
    pub(super) fn limit(&self) -> usize {
        self.tasks.saturating_sub(self.others.tasks)
    }

    /// Returns whether it has a use for a task that other shards leave: a job may wait in its queues.
    pub(super) fn wants_task(&self) -> bool {
        self.may_have_work && !self.is_held() && self.running < self.tasks
    }

    fn is_held(&self) -> bool {
        self.draining || self.overloaded
    }

    /// Returns how many jobs it may have claimed that wait for a thread: as many as one thread runs
    /// within milliseconds, so none where an attempt takes longer.
    fn ahead_max(&self) -> usize {
        if self.is_held() || self.measured < MEASURED || self.limit() == 0 {
            return 0;
        }
        let fitting = AHEAD.as_nanos() / self.mean.as_nanos().max(1);
        // The shards that have tasks share the time; those that wait for one have no jobs.
        let sharers = self.others.sharers.clamp(1, self.tasks.max(1));
        usize::try_from(fitting).unwrap_or(usize::MAX).div_euclid(sharers).min(AHEAD_MAX)
    }

    /// Returns the mean time of its attempts, if they are so short that jobs are claimed ahead.
    pub(super) fn brief(&self) -> Option<Duration> {
        (self.ahead_max() > 0).then_some(self.mean)
    }

    /// Returns how many jobs to claim beyond those for free threads.
    pub(super) fn ahead(&self) -> usize {
        let waiting = self.running.saturating_sub(self.limit());
        self.ahead_max().saturating_sub(waiting)
    }

    /// Claims nothing ahead for some attempts: the next job in its queues has to wait for a thread.
    pub(super) fn claim_none_ahead(&mut self) {
        self.measured = 0;
    }

    /// Returns whether a claim is due: for a free thread, or ahead once half of what it may hold is used
    /// up, unless another shard waits for its turn.
    pub(super) fn wants_claim(&self) -> bool {
        let is_half_used_up = self.ahead() > self.ahead_max() / 2;
        self.may_have_work && (self.free() > 0 || is_half_used_up && !self.others.wait_for_one)
    }

    /// Returns whether it should wait for its lists: the latest claim found them empty. While other shards
    /// have all tasks it does, as it would not learn of a job otherwise.
    pub(super) fn wants_wait(&self) -> bool {
        !self.may_have_work && !self.is_held() && self.running < self.tasks
    }

    /// Returns its control list, if it can be read.
    pub(super) fn control(&self) -> Option<&String> {
        Some(&self.control).filter(|list| !self.is_broken(list))
    }

    /// Returns the work lists that can be read.
    pub(super) fn work(&self) -> impl Iterator<Item = &String> {
        self.lists.iter().flat_map(ListsOfPriority::all).filter(|list| !self.is_broken(list))
    }

    /// Returns the wake lists to wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &String> {
        self.wakes.iter().filter(|list| !self.is_broken(list))
    }

    /// Lets the next claim check its queues.
    pub(super) fn check_again(&mut self) {
        self.may_have_work = !self.is_held() && self.running < self.tasks;
    }

    /// Returns the lists for the next claim. Every `fair_every` claims they are in the reverse order;
    /// never with 0.
    pub(super) fn lists_to_claim(&mut self, fair_every: u32) -> Vec<String> {
        self.claims = self.claims.wrapping_add(1);
        let lists = self.lists.iter().flat_map(|of| of.from(self.first_matched));
        let mut lists: Vec<String> = lists.filter(|list| !self.is_broken(list)).cloned().collect();
        // Background jobs first, and the jobs of its type before narrower ones, so that none of these starve the others.
        if fair_every > 0 && self.claims.is_multiple_of(fair_every) {
            lists.reverse();
        }
        let number = self.matched.len();
        let left = if self.unread == 0 { number } else { self.unread };
        self.unread = left.saturating_sub(MATCHED_PER_CLAIM);
        let step = if number > MATCHED_PER_CLAIM { MATCHED_PER_CLAIM } else { 1 };
        self.first_matched = (self.first_matched + step) % number.max(1);
        lists
    }

    /// Takes whether a claim has left jobs in the lists that it read.
    pub(super) fn claimed(&mut self, leaves_some: bool) {
        self.may_have_work = leaves_some || self.unread > 0;
    }

    fn is_broken(&self, list: &str) -> bool {
        self.broken.iter().any(|(broken, _)| broken == list)
    }

    /// Returns whether this is one of its own lists.
    pub(super) fn reads(&self, list: &str) -> bool {
        let work = self.lists.iter().flat_map(ListsOfPriority::all);
        work.chain(&self.wakes).chain([&self.control]).any(|own| own == list)
    }

    /// Leaves a list alone for 30 s. Returns whether it was not already.
    pub(super) fn set_broken(&mut self, list: &str, now: Instant) -> bool {
        let is_new = !self.is_broken(list);
        if is_new {
            self.broken.push((list.to_owned(), now + BROKEN_FOR));
        }
        is_new
    }

    /// Reads broken lists again whose time has come.
    pub(super) fn retry_broken(&mut self, now: Instant) {
        if self.broken.iter().any(|(_, until)| *until <= now) {
            self.broken.retain(|(_, until)| *until > now);
            self.may_have_work = true;
        }
    }

    /// Changes how many jobs run at once. Until some end, more may run.
    pub(super) fn resize(&mut self, tasks: usize) {
        if tasks > self.tasks {
            self.may_have_work = true;
        }
        self.tasks = tasks;
    }

    pub(super) fn job_started(&mut self) {
        self.running += 1;
    }

    /// Counts a job that ended after this time. A slot that becomes free beside free ones needs no
    /// claim: the wait covers its lists.
    pub(super) fn job_ended(&mut self, took: Duration) {
        // The latest eighth of the mean is of the latest attempt.
        self.mean = if self.measured == 0 { took } else { (self.mean * 7 + took) / 8 };
        self.measured = self.measured.saturating_add(1);
        self.job_left();
    }

    /// Counts a job that goes back to its queue without having run.
    pub(super) fn job_left(&mut self) {
        if self.running == self.tasks {
            self.may_have_work = true;
        }
        self.running = self.running.saturating_sub(1);
    }

    /// Claims nothing while its machine is overloaded.
    pub(super) fn set_overloaded(&mut self, overloaded: bool) {
        self.may_have_work |= self.overloaded && !overloaded;
        self.overloaded = overloaded;
    }

    pub(super) fn is_overloaded(&self) -> bool {
        self.overloaded
    }

    pub(super) fn drain(&mut self, draining: bool) {
        self.draining = draining;
        self.may_have_work = !draining;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(tasks: usize) -> Slots {
        let id = ActorId::from_unit("osis-default-1").expect("legal");
        Slots::new(id, tasks, &Keys::default(), vec![legacy_queue()])
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn legacy_queue() -> String {
        Keys::default().legacy_queue("w1")
    }

    #[test]
    fn actor_claims_first_and_waits_only_when_its_queues_are_empty() {
        let mut slots = slots(2);
        assert!(slots.wants_claim() && !slots.wants_wait());
        slots.may_have_work = false;
        assert!(!slots.wants_claim() && slots.wants_wait());
    }

    #[test]
    fn full_actor_neither_claims_nor_waits_until_a_slot_is_free() {
        let mut slots = slots(1);
        slots.job_started();
        assert!(!slots.wants_claim() && !slots.wants_wait());
        slots.may_have_work = false;
        slots.job_ended(SECOND);
        assert!(slots.wants_claim());
    }

    #[test]
    fn freed_slot_needs_no_claim_while_others_are_free() {
        let mut slots = slots(2);
        slots.job_started();
        slots.may_have_work = false;
        slots.job_ended(SECOND);
        assert!(!slots.wants_claim() && slots.wants_wait());
    }

    /// Lets jobs of this duration start and end.
    fn run(slots: &mut Slots, jobs: u32, took: Duration) {
        for _ in 0..jobs {
            slots.job_started();
            slots.job_ended(took);
        }
    }

    #[test]
    fn as_many_jobs_are_claimed_ahead_as_a_thread_runs_within_milliseconds() {
        let ahead = |took| {
            let mut slots = slots(1);
            run(&mut slots, MEASURED, took);
            slots.ahead()
        };
        assert_eq!(ahead(Duration::from_micros(10)), AHEAD_MAX);
        assert_eq!(ahead(AHEAD / 5), 5);
        assert_eq!(ahead(AHEAD * 2), 0);
        assert_eq!((slots(1).ahead(), ahead(Duration::ZERO)), (0, AHEAD_MAX));
    }

    #[test]
    fn full_actor_claims_ahead_once_half_is_used_up_and_none_while_it_drains() {
        let mut slots = slots(1);
        run(&mut slots, MEASURED, AHEAD / 8);
        for _ in 0..5 {
            slots.job_started();
        }
        assert_eq!((slots.free(), slots.ahead(), slots.wants_claim()), (0, 4, false));
        slots.job_ended(AHEAD / 8);
        assert_eq!((slots.ahead(), slots.wants_claim(), slots.wants_wait()), (5, true, false));
        slots.drain(true);
        assert_eq!(slots.ahead(), 0);
        slots.drain(false);
        slots.claim_none_ahead();
        assert_eq!((slots.ahead(), slots.wants_claim()), (0, false));
    }

    #[test]
    fn actor_without_tasks_waits_for_its_lists_and_wants_a_task_once_they_may_have_a_job() {
        let mut slots = slots(2);
        slots.others = others(2, 2);
        slots.may_have_work = false;
        assert_eq!((slots.free(), slots.wants_wait(), slots.wants_task()), (0, true, false));
        slots.check_again();
        assert_eq!(
            (slots.wants_claim(), slots.wants_wait(), slots.wants_task()),
            (false, false, true)
        );
        slots.others = others(1, 2);
        assert_eq!((slots.free(), slots.wants_claim()), (1, true));
        slots.drain(true);
        assert!(!slots.wants_task());
    }

    fn others(tasks: usize, sharers: usize) -> Others {
        Others { tasks, sharers, wait_for_one: false }
    }

    #[test]
    fn shards_with_tasks_share_the_time_of_the_jobs_that_are_claimed_ahead() {
        let ahead = |tasks, of_others| {
            let mut slots = slots(tasks);
            run(&mut slots, MEASURED, AHEAD / 8);
            slots.others = of_others;
            slots.ahead()
        };
        assert_eq!((ahead(4, others(0, 2)), ahead(4, others(3, 4))), (4, 2));
        assert_eq!(ahead(4, others(3, 64)), 2, "as many shards as there are tasks have jobs");
        assert_eq!(ahead(4, others(4, 4)), 0, "all run elsewhere");
    }

    #[test]
    fn shard_claims_no_more_ahead_while_another_waits_for_its_turn() {
        let mut slots = slots(1);
        run(&mut slots, MEASURED, AHEAD / 8);
        slots.job_started();
        assert!(slots.wants_claim());
        slots.others = Others { wait_for_one: true, ..others(0, 2) };
        assert!(!slots.wants_claim());
        slots.job_ended(AHEAD / 8);
        assert_eq!((slots.wants_claim(), slots.ahead()), (true, 8), "it has a free task");
    }

    #[test]
    fn queues_found_empty_are_looked_at_again_when_no_job_waits_for_a_thread() {
        let mut slots = slots(1);
        run(&mut slots, MEASURED, Duration::ZERO);
        slots.job_started();
        slots.job_started();
        slots.may_have_work = false;
        slots.job_ended(Duration::ZERO);
        assert!(!slots.wants_claim());
        slots.job_ended(Duration::ZERO);
        assert!(slots.wants_claim());
    }

    #[test]
    fn draining_actor_claims_nothing_until_it_resumes() {
        let mut slots = slots(2);
        slots.drain(true);
        assert_eq!((slots.free(), slots.wants_claim(), slots.wants_wait()), (0, false, false));
        slots.drain(false);
        assert!(slots.wants_claim());
    }

    #[test]
    fn background_priority_comes_first_every_so_many_claims() {
        let mut slots = slots(1);
        let background = |list: &String| list.ends_with(":prio:2");
        let fair = |slots: &mut Slots, every| background(&slots.lists_to_claim(every)[0]);
        let seen: Vec<bool> = (0..6).map(|_| fair(&mut slots, 3)).collect();
        assert_eq!(seen, [false, false, true, false, false, true]);
        assert!((0..20).all(|_| !fair(&mut slots, 0)), "0 is never");
        assert!(fair(&mut slots, 1));
    }

    #[test]
    fn actor_claims_nothing_while_its_machine_is_overloaded() {
        let mut slots = slots(2);
        slots.may_have_work = false;
        slots.set_overloaded(true);
        assert_eq!((slots.free(), slots.wants_claim(), slots.wants_wait()), (0, false, false));
        slots.set_overloaded(true);
        slots.set_overloaded(false);
        assert!(slots.wants_claim(), "jobs that came meanwhile were not waited for");
    }

    #[test]
    fn actor_waits_for_the_wake_lists_of_its_instance_group_and_type() {
        let slots = slots(1);
        let awaited: Vec<&str> = slots.awaited().map(String::as_str).collect();
        let ends = ["type:osis:group:default:inst:1", "type:osis:group:default", "type:osis"];
        assert_eq!(awaited, ends.map(|end| format!("hero:meta:wake:{end}")));
    }

    #[test]
    fn expressions_take_turns_in_claims_and_are_waited_for() {
        let mut slots = slots(1);
        slots.may_have_work = false;
        let digest = |number: usize| SelectorDigest::of_text(&number.to_string());
        slots.set_matched((0..3).map(digest).collect());
        assert!(slots.wants_claim(), "they may have jobs");
        assert_eq!((slots.awaited().count(), slots.work().count()), (6, 24));
        let first = |slots: &mut Slots| slots.lists_to_claim(0)[1].clone();
        let turns: Vec<String> = (0..4).map(|_| first(&mut slots)).collect();
        assert!(turns[0] != turns[1] && turns[1] != turns[2] && turns[0] == turns[3], "{turns:?}");
        slots.set_matched((0..1200).map(digest).collect());
        let mut all = std::collections::BTreeSet::new();
        for claim in 0..3 {
            let lists = slots.lists_to_claim(0);
            slots.claimed(false);
            assert_eq!(slots.may_have_work, claim < 2, "the third reads the last");
            assert_eq!(lists.len(), 4 * (MATCHED_PER_CLAIM + 3));
            all.extend(lists);
        }
        assert_eq!(all.len(), 4 * 1203);
    }

    #[test]
    fn broken_list_is_not_read_for_a_while() {
        let (mut slots, now) = (slots(1), Instant::now());
        let lists = |slots: &mut Slots| slots.lists_to_claim(0).len();
        let (all, list) = (lists(&mut slots), slots.lists[0].own[0].clone());
        assert!(slots.set_broken(&list, now));
        assert!(!slots.set_broken(&list, now));
        assert_eq!(lists(&mut slots), all - 1);
        slots.may_have_work = false;
        slots.retry_broken(now + BROKEN_FOR);
        assert_eq!(lists(&mut slots), all);
        assert!(slots.may_have_work, "the list may hold a job");
    }
}
