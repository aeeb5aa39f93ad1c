//! The handover of jobs to the threads of one actor, which all shards of the process share: threads that
//! wait for jobs, and jobs that wait for threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use tokio::sync::Notify;

use super::running_job::RunningJob;
use super::tasks::{Others, TaskPool, Use};

/// Threads that wait for jobs, or jobs that wait for threads.
pub(super) struct Handover {
    tasks: TaskPool,
    /// The settings that the threads have: each change starts others.
    generation: u64,
    /// The free threads, each by its own channel; the last that became free is first.
    free: Vec<SyncSender<Arc<RunningJob>>>,
    /// The jobs of each shard that were claimed ahead, each with the time since when it waits.
    waiting: Vec<VecDeque<(Instant, Arc<RunningJob>)>>,
    /// Notified when a task is kept for a shard that wanted one.
    kept: Vec<Arc<Notify>>,
}

/// The next thing that a thread does.
pub(super) enum Turn {
    /// It runs this job.
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

    /// The generation of its threads.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Tells a boot when a task is kept for its shard.
    pub(super) fn tell(&mut self, shard: usize, kept: &Arc<Notify>) {
        self.kept[shard] = Arc::clone(kept);
    }

    /// Returns whether tasks are kept for claims of a shard.
    pub(super) fn keeps(&self, shard: usize) -> bool {
        self.tasks.keeps(shard)
    }

    /// Adds threads, each by its channel.
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

    /// Returns the use of the tasks by the other shards.
    pub(super) fn others(&self, shard: usize) -> Others {
        self.tasks.others(shard)
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

    /// Hands a job to a free thread, or lets it wait for one.
    pub(super) fn run(&mut self, run: &Arc<RunningJob>) {
        if !self.tasks.start(run.shard) {
            self.waiting[run.shard].push_back((Instant::now(), Arc::clone(run)));
        } else if !self.send(run) {
            self.tasks.postpone(run.shard);
            self.waiting[run.shard].push_back((Instant::now(), Arc::clone(run)));
        }
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

    /// Takes a thread back that has run a job, and returns what it does next.
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
                    let Some(first) = self.waiting[shard].pop_front() else { continue };
                    if !self.send(&first.1) {
                        self.tasks.postpone(shard);
                        self.waiting[shard].push_front(first);
                        return;
                    }
                }
            }
        }
    }

    fn send(&mut self, run: &Arc<RunningJob>) -> bool {
        self.free.pop().is_some_and(|thread| thread.send(Arc::clone(run)).is_ok())
    }
}
