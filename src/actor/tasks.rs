//! The tasks of one actor, which the shards that its process serves share. Pure.
//!
//! A shard takes tasks before it claims jobs for them. A task that becomes free goes to the shard with the
//! fewest tasks that has a job or wants to claim one; among equals to a shard with a job. So a shard first
//! runs all jobs of its claim, then another shard claims. A claim has many jobs.

#[derive(Debug)]
pub(super) struct TaskPool {
    tasks: usize,
    shares: Vec<Share>,
    /// The number of tasks that were given so far.
    turns: u64,
}

/// The tasks of one shard.
#[derive(Debug, Default)]
struct Share {
    /// The boot that has them: each takes the next number.
    boot: u64,
    /// Jobs on threads.
    running: usize,
    /// Tasks that are kept for a claim.
    kept: usize,
    /// Jobs that were claimed ahead, and wait for a task.
    waiting: usize,
    /// True if it wants to claim a job and has no task for it.
    wants: bool,
    /// The turn when it last got a task.
    turn: u64,
}

/// The use of a task that became free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The first waiting job of this shard runs.
    Run(usize),
    /// It is kept for a claim of this shard.
    Keep(usize),
}

/// The use of the tasks by other shards, as one of them sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Others {
    /// The tasks that they have.
    pub(super) tasks: usize,
    /// The number of shards that have or want tasks, including the asking shard.
    pub(super) sharers: usize,
    /// True if one of them wants to claim and has neither a task nor a job.
    pub(super) wait_for_one: bool,
}

impl TaskPool {
    pub(super) fn new(tasks: usize, shards: usize) -> Self {
        let none = std::iter::repeat_with(Share::default).take(shards);
        Self { tasks, shares: none.collect(), turns: 0 }
    }

    /// Changes their number. Until some jobs end, more may run.
    pub(super) fn resize(&mut self, tasks: usize) {
        self.tasks = tasks;
    }

    /// Begins a boot of a shard without tasks. Returns its number, and the jobs of the boot before that still
    /// run: their tasks are free, and their ends no longer count.
    pub(super) fn join(&mut self, place: usize) -> (u64, usize) {
        let Share { boot, running, .. } = self.shares[place];
        self.shares[place] = Share { boot: boot + 1, ..Share::default() };
        (boot + 1, running)
    }

    pub(super) fn is_latest(&self, place: usize, boot: u64) -> bool {
        self.shares[place].boot == boot
    }

    pub(super) fn others(&self, place: usize) -> Others {
        let others = || self.shares.iter().enumerate().filter(|(other, _)| *other != place);
        let has_part = |share: &Share| share.used() + share.waiting > 0 || share.wants;
        Others {
            tasks: others().map(|(_, share)| share.used()).sum(),
            sharers: 1 + others().filter(|(_, share)| has_part(share)).count(),
            wait_for_one: others()
                .any(|(_, share)| share.wants && share.used() + share.waiting == 0),
        }
    }

    /// Keeps tasks for a claim, at most this many, and frees those beyond. Returns how many it keeps.
    pub(super) fn keep(&mut self, place: usize, tasks: usize) -> usize {
        let free = self.free();
        let share = &mut self.shares[place];
        share.kept = tasks.min(share.kept + free);
        share.kept
    }

    pub(super) fn keeps(&self, place: usize) -> bool {
        self.shares[place].kept > 0
    }

    /// Sets whether a shard without a task wants to claim a job.
    pub(super) fn want(&mut self, place: usize, wants: bool) {
        self.shares[place].wants = wants;
    }

    /// Counts a job that was claimed. It waits for a task.
    pub(super) fn wait(&mut self, place: usize) {
        self.shares[place].waiting += 1;
    }

    /// Starts a waiting job. Returns `false` if it has to wait on.
    pub(super) fn start(&mut self, place: usize) -> bool {
        let is_there = self.has_task(place);
        let share = &mut self.shares[place];
        if share.waiting > 0 && is_there {
            share.kept = share.kept.saturating_sub(1);
            share.waiting -= 1;
            share.running += 1;
            return true;
        }
        false
    }

    /// Returns whether a task is free, or kept for a shard.
    pub(super) fn has_task(&self, place: usize) -> bool {
        self.shares[place].kept > 0 || self.free() > 0
    }

    pub(super) fn running(&self) -> usize {
        self.shares.iter().map(|share| share.running).sum()
    }

    /// Lets a job that was started wait after all.
    pub(super) fn postpone(&mut self, place: usize) {
        let share = &mut self.shares[place];
        share.running = share.running.saturating_sub(1);
        share.waiting += 1;
    }

    pub(super) fn ended(&mut self, place: usize) {
        let share = &mut self.shares[place];
        share.running = share.running.saturating_sub(1);
    }

    /// Counts waiting jobs that no longer wait.
    pub(super) fn taken_back(&mut self, place: usize, jobs: usize) {
        let share = &mut self.shares[place];
        share.waiting = share.waiting.saturating_sub(jobs);
    }

    /// Uses a free task, if there is one and a shard has a use for it.
    pub(super) fn use_free(&mut self) -> Option<Use> {
        if self.free() == 0 {
            return None;
        }
        let shares = self.shares.iter_mut().enumerate();
        let with_use = shares.filter(|(_, share)| share.waiting > 0 || share.wants);
        let (place, share) =
            with_use.min_by_key(|(_, share)| (share.used(), share.waiting == 0, share.turn))?;
        self.turns += 1;
        share.turn = self.turns;
        if share.waiting > 0 {
            share.waiting -= 1;
            share.running += 1;
            return Some(Use::Run(place));
        }
        share.wants = false;
        share.kept += 1;
        Some(Use::Keep(place))
    }

    fn free(&self) -> usize {
        let used: usize = self.shares.iter().map(Share::used).sum();
        self.tasks.saturating_sub(used)
    }
}

impl Share {
    fn used(&self) -> usize {
        self.running + self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a job, and starts it if there is a task.
    fn start(pool: &mut TaskPool, shard: usize) -> bool {
        pool.wait(shard);
        pool.start(shard)
    }

    /// A pool whose tasks shard 0 has all taken.
    fn full(tasks: usize, shards: usize) -> TaskPool {
        let mut pool = TaskPool::new(tasks, shards);
        assert_eq!(pool.keep(0, tasks + 5), tasks);
        assert!((0..tasks).all(|_| start(&mut pool, 0)));
        pool
    }

    #[test]
    fn tasks_in_all_never_exceed_their_number() {
        let mut pool = full(2, 3);
        assert_eq!((pool.keep(1, 1), start(&mut pool, 1), start(&mut pool, 2)), (0, false, false));
        assert_eq!(pool.use_free(), None);
        pool.ended(0);
        assert_eq!(pool.use_free(), Some(Use::Run(1)));
        assert_eq!(pool.use_free(), None);
    }

    #[test]
    fn freed_task_goes_to_the_shard_with_the_fewest() {
        let mut pool = full(3, 2);
        pool.want(0, true);
        pool.want(1, true);
        pool.ended(0);
        assert_eq!(pool.use_free(), Some(Use::Keep(1)));
        // It claims for it, while the flooded shard waits.
        assert_eq!((pool.keep(1, 1), start(&mut pool, 1), pool.use_free()), (1, true, None));
        pool.want(1, true);
        pool.ended(0);
        assert_eq!(pool.use_free(), Some(Use::Keep(0)), "one each: the task that waits for longer");
        assert_eq!(pool.keep(0, 1), 1);
        pool.ended(1);
        assert_eq!(pool.use_free(), Some(Use::Keep(1)));
    }

    #[test]
    fn shards_with_one_task_take_turns() {
        let mut pool = full(1, 3);
        (0..3).for_each(|shard| assert!(!start(&mut pool, shard) && !start(&mut pool, shard)));
        let mut turns = Vec::new();
        let mut running = 0;
        for _ in 0..6 {
            pool.ended(running);
            let Some(Use::Run(next)) = pool.use_free() else { panic!("a job waits") };
            running = next;
            turns.push(next);
        }
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn claim_that_brought_fewer_frees_tasks_for_others() {
        let mut pool = TaskPool::new(4, 2);
        assert_eq!(pool.keep(0, 4), 4);
        pool.want(1, true);
        assert_eq!(pool.use_free(), None);
        assert!(start(&mut pool, 0));
        assert_eq!(pool.keep(0, 0), 0);
        assert_eq!(pool.use_free(), Some(Use::Keep(1)));
        let others = Others { tasks: 1, sharers: 2, wait_for_one: false };
        assert_eq!((pool.others(0), pool.others(1)), (others, others));
    }

    #[test]
    fn shard_runs_the_jobs_that_it_has_before_another_claims() {
        let mut pool = full(1, 2);
        assert!(!start(&mut pool, 0) && !start(&mut pool, 0));
        pool.want(1, true);
        for _ in 0..2 {
            assert!(pool.others(0).wait_for_one);
            pool.ended(0);
            assert_eq!(pool.use_free(), Some(Use::Run(0)));
        }
        pool.want(0, true);
        pool.ended(0);
        assert_eq!(pool.use_free(), Some(Use::Keep(1)));
        assert!(!pool.others(0).wait_for_one && pool.others(1).wait_for_one);
    }

    #[test]
    fn boot_that_follows_another_has_no_tasks_and_the_ends_of_the_other_do_not_count() {
        let mut pool = full(2, 2);
        assert!(!start(&mut pool, 0));
        assert_eq!(pool.join(0), (1, 2));
        assert!(!pool.is_latest(0, 0) && pool.is_latest(0, 1));
        assert_eq!(pool.keep(1, 5), 2);
        assert_eq!(pool.use_free(), None);
    }
}
