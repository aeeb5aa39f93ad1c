//! The handover of jobs to the threads of one actor, which all shards of the process share: threads that
//! wait for jobs, and jobs that wait for threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::running_job::RunningJob;
use super::tasks::{TaskPool, Use};

/// The minimum of waiting work that justifies waking a thread: a wake-up takes about as long.
const WORTH_A_THREAD: Duration = Duration::from_micros(100);
/// A job that waits beside free threads gets one after this time: the job before it takes longer than
/// earlier ones.
const SPREAD_AFTER: Duration = Duration::from_millis(1);

/// Threads that wait for jobs, or jobs that wait for threads.
pub(super) struct Handover {
    pub(super) tasks: TaskPool,
    /// The settings that the threads have: each change starts others.
    pub(super) generation: u64,
    /// The free threads, each by its own channel; the last that became free is first.
    free: Vec<SyncSender<Arc<RunningJob>>>,
    /// The jobs of each shard that were claimed ahead, each with the time since when it waits.
    waiting: Vec<VecDeque<(Instant, Arc<RunningJob>)>>,
    /// Notified when a task is kept for a shard that wanted one.
    kept: Vec<Arc<Notify>>,
}

/// The next thing that a thread does.
pub(super) enum Turn {
    Run(Arc<RunningJob>),
    /// It waits here for one.
    Wait(Receiver<Arc<RunningJob>>),
    /// It ends: another has its place.
    End,
}

impl Handover {
    /// Hands jobs of `shards` shards to `tasks` threads, which are still to be started.
    pub(super) fn new(tasks: usize, shards: usize) -> Self {
        Self {
            tasks: TaskPool::new(tasks, shards),
            generation: 0,
            free: Vec::new(),
            waiting: std::iter::repeat_with(VecDeque::new).take(shards).collect(),
            kept: std::iter::repeat_with(Arc::default).take(shards).collect(),
        }
    }

    /// Notifies a boot when a task is reserved for its shard.
    pub(super) fn tell(&mut self, shard: usize, kept: &Arc<Notify>) {
        self.kept[shard] = Arc::clone(kept);
    }

    pub(super) fn add(&mut self, threads: Vec<SyncSender<Arc<RunningJob>>>) {
        self.free.extend(threads);
        self.use_free();
    }

    /// Replaces the threads by new ones: those before end after the job that they run.
    pub(super) fn replace(&mut self, tasks: usize, threads: Vec<SyncSender<Arc<RunningJob>>>) {
        self.generation += 1;
        self.tasks.resize(tasks);
        self.free.clear();
        self.add(threads);
    }

    /// Begins a boot of a shard. Returns its number, and how many threads still run jobs of the boot before:
    /// they end with them.
    pub(super) fn join(&mut self, shard: usize) -> (u64, usize) {
        self.waiting[shard].clear();
        let joined = self.tasks.join(shard);
        self.use_free();
        joined
    }

    /// Keeps tasks for a claim of a shard, at most this many. Returns how many.
    pub(super) fn keep(&mut self, shard: usize, tasks: usize) -> usize {
        let kept = self.tasks.keep(shard, tasks);
        self.use_free();
        kept
    }

    /// Sets whether a shard without a task wants to claim a job.
    pub(super) fn want(&mut self, shard: usize, wants: bool) {
        self.tasks.want(shard, wants);
        self.use_free();
    }

    /// Hands a job to a free thread, or lets it wait for one. `mean` is the time of such a job, if it may
    /// wait: jobs that take less than a wake-up are left to the threads that run already.
    pub(super) fn run(&mut self, run: &Arc<RunningJob>, mean: Option<Duration>) {
        self.waiting[run.shard].push_back((Instant::now(), Arc::clone(run)));
        self.tasks.wait(run.shard);
        if !mean.is_some_and(|mean| self.is_served(run.shard, mean)) {
            self.hand_over(run.shard);
        }
    }

    /// Wakes free threads for the jobs of a shard that have waited for long.
    pub(super) fn spread(&mut self, shard: usize, now: Instant) {
        while self.spread_at(shard).is_some_and(|at| at <= now) && self.hand_over(shard) {}
    }

    /// Returns when the first waiting job of a shard should get a thread of its own, if one is free.
    pub(super) fn spread_at(&self, shard: usize) -> Option<Instant> {
        let has_thread = !self.free.is_empty() && self.tasks.has_task(shard);
        let first = self.waiting[shard].front().filter(|_| has_thread);
        first.map(|(since, _)| *since + SPREAD_AFTER)
    }

    /// Returns whether the threads that run are enough for the waiting jobs of a shard, which take `mean`
    /// each.
    fn is_served(&self, shard: usize, mean: Duration) -> bool {
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let running = WORTH_A_THREAD.saturating_mul(of(self.tasks.running()));
        mean.saturating_mul(of(self.waiting[shard].len())) < running
    }

    /// Hands the first waiting job of a shard to a free thread. Returns whether there were both.
    fn hand_over(&mut self, shard: usize) -> bool {
        self.tasks.start(shard) && self.send_first(shard)
    }

    #[cfg(test)]
    pub(super) fn free_and_waiting(&self, shard: usize) -> (usize, usize) {
        (self.free.len(), self.waiting[shard].len())
    }

    /// Returns since when the first of the waiting jobs of a shard waits for a thread.
    pub(super) fn waiting_since(&self, shard: usize) -> Option<Instant> {
        self.waiting[shard].front().map(|(since, _)| *since)
    }

    /// Takes the jobs of a shard back that no thread has begun.
    pub(super) fn take_waiting(&mut self, shard: usize) -> Vec<Arc<RunningJob>> {
        self.tasks.taken_back(shard, self.waiting[shard].len());
        self.waiting[shard].drain(..).map(|(_, run)| run).collect()
    }

    /// Takes a thread back that has run a job, and returns its next work.
    pub(super) fn turn(&mut self, generation: u64, ended: &RunningJob) -> Turn {
        let is_latest = self.tasks.is_latest(ended.shard, ended.boot);
        if is_latest {
            self.tasks.ended(ended.shard);
        }
        if !is_latest || generation != self.generation {
            self.use_free();
            return Turn::End;
        }
        match self.tasks.use_free() {
            Some(Use::Run(shard)) => {
                if let Some((_, run)) = self.waiting[shard].pop_front() {
                    return Turn::Run(run);
                }
            }
            Some(Use::Keep(shard)) => self.kept[shard].notify_one(),
            None => {}
        }
        let (sender, jobs) = sync_channel(1);
        self.free.push(sender);
        Turn::Wait(jobs)
    }

    /// Uses the free tasks for waiting jobs, and for shards that want one.
    fn use_free(&mut self) {
        while let Some(used) = self.tasks.use_free() {
            match used {
                Use::Keep(shard) => self.kept[shard].notify_one(),
                Use::Run(shard) => {
                    if !self.waiting[shard].is_empty() && !self.send_first(shard) {
                        return;
                    }
                }
            }
        }
    }

    /// Sends the first waiting job of a shard, which has a task, to a free thread. Without one it waits on.
    fn send_first(&mut self, shard: usize) -> bool {
        let Some(first) = self.waiting[shard].pop_front() else { return false };
        let thread = self.free.pop();
        let is_sent = thread.is_some_and(|thread| thread.send(Arc::clone(&first.1)).is_ok());
        if !is_sent {
            self.tasks.postpone(shard);
            self.waiting[shard].push_front(first);
        }
        is_sent
    }
}
