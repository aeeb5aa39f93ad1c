//! The children that this process waits for. All others are orphans of jobs: see `end/orphans.rs`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError, RwLock, RwLockWriteGuard};

use nix::sys::prctl::set_child_subreaper;
use nix::unistd::Pid;
use tracing::warn;

use crate::engine::process::proc;

/// The environment variable that marks all processes of a job.
pub(in crate::process::start) const MARK: &str = "HERO_RUN_ID";

/// Locked for reading from the start of a child to its registration, for writing while orphans are searched.
static STARTING: RwLock<()> = RwLock::new(());
static REGISTERED: Mutex<BTreeMap<i32, RegisteredChild>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Clone, Copy)]
pub(in crate::process) struct RegisteredChild {
    /// A time just before it began, or just before its job for a fork made ahead, in the kernel's ticks since boot.
    pub(in crate::process) began: u64,
    pub(in crate::process) run: Option<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) struct Run(u64);

/// The process that started a job, and the tag of the job, as a process of the job has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRun {
    /// The id of the process that started the job.
    pub actor_pid: u32,
    tag: u64,
}

impl ProcessRun {
    /// Returns the run that a process of this machine belongs to; `None` if it belongs to none.
    pub fn of_process(pid: u32) -> Option<Self> {
        let number = proc::run_number(i32::try_from(pid).ok()?)?;
        let actor_pid = u32::try_from(number >> 32).ok().filter(|actor| *actor > 0)?;
        Some(Self { actor_pid, tag: number & TAG_MAX })
    }

    /// Returns whether it may be a run of this job: of 65536 other jobs one has the same tag.
    pub fn may_be_of(self, job_id: &str) -> bool {
        self.tag == tag_of(job_id)
    }
}

const TAG_MAX: u64 = 0xffff;

/// Returns the part of a run's number that names its job: a hash by FNV.
fn tag_of(job_id: &str) -> u64 {
    let hash = job_id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 48) & TAG_MAX
}

impl Run {
    /// Returns the next run, of a job: a counter and the tag of the job, in 32 bits.
    pub(in crate::process) fn next(job_id: &str) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let count = RUNS.fetch_add(1, Ordering::Relaxed) & TAG_MAX;
        Self(count << 16 | tag_of(job_id))
    }

    /// Returns the value of the mark. It holds this process's id, as another Hero may run below it.
    pub(in crate::process) fn mark(self) -> String {
        format!("{}.{}", std::process::id(), self.0)
    }

    /// Returns the mark padded to a fixed length, to be written over [`Run::blank_mark`].
    pub(in crate::process) fn wide_mark(self) -> String {
        format!("{:010}.{:020}", std::process::id(), self.0)
    }

    pub(in crate::process) fn blank_mark() -> String {
        format!("{:010}.{:020}", 0, 0)
    }

    /// Returns the number that the processes of the run inherit. It holds this process's id as well.
    pub(in crate::process) fn number(self) -> u64 {
        (u64::from(std::process::id()) << 32) | (self.0 & u64::from(u32::MAX))
    }

    /// Returns the run that a process belongs to by its number, or by its mark if it has no number.
    pub(in crate::process) fn of_process(pid: i32) -> Option<Self> {
        match proc::run_number(pid) {
            Some(number) if number >> 32 == u64::from(std::process::id()) => {
                Some(Self(number & u64::from(u32::MAX)))
            }
            _ => proc::variable(pid, MARK).as_deref().and_then(Self::from_mark),
        }
    }

    fn from_mark(mark: &[u8]) -> Option<Self> {
        let (process, run) = std::str::from_utf8(mark).ok()?.split_once('.')?;
        (process.parse() == Ok(std::process::id())).then_some(())?;
        run.parse().ok().map(Self)
    }
}

/// The registration of a child. To be dropped once the child was reaped.
#[derive(Debug)]
pub(in crate::process) struct Registered(i32);

impl Registered {
    pub(in crate::process) fn start(
        start: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<(Child, Self)> {
        Self::register(None, start, |child| i32::try_from(child.id()).unwrap_or_default())
    }

    /// Registers a process that is a child of this one by the time that `start` returns its id.
    pub(in crate::process) fn adopt(
        run: Option<Run>,
        start: impl FnOnce() -> io::Result<Pid>,
    ) -> io::Result<(Pid, Self)> {
        become_subreaper();
        Self::register(run, start, |pid| pid.as_raw())
    }

    fn register<T>(
        run: Option<Run>,
        start: impl FnOnce() -> io::Result<T>,
        pid_of: impl FnOnce(&T) -> i32,
    ) -> io::Result<(T, Self)> {
        let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
        let began = proc::ticks();
        let started = start()?;
        let pid = pid_of(&started);
        insert(pid, RegisteredChild { began, run });
        Ok((started, Self(pid)))
    }

    /// Assigns a child without a job to a run, which begins now.
    pub(in crate::process) fn begins(&self, run: Run) {
        insert(self.0, RegisteredChild { began: proc::ticks(), run: Some(run) });
    }
}

fn insert(pid: i32, child: RegisteredChild) {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, child);
}

impl Drop for Registered {
    fn drop(&mut self) {
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

pub(in crate::process) fn registered() -> BTreeMap<i32, RegisteredChild> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Keeps children from being started until the guard is dropped: each child is registered, or an orphan.
pub(in crate::process) fn pause_starts() -> RwLockWriteGuard<'static, ()> {
    STARTING.write().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of processes below it that lose theirs.
fn become_subreaper() {
    static SUBREAPER: Once = Once::new();
    SUBREAPER.call_once(|| {
        if let Err(error) = set_child_subreaper(true) {
            warn!("processes that leave their job's process group will not be found: {error}");
        }
    });
}

/// Returns a `Command` for `program`. Programs outside of a sandbox are started by it.
#[expect(clippy::disallowed_methods, reason = "engine/process is the room that starts processes")]
pub(in crate::process) fn command(program: &Path) -> std::process::Command {
    std::process::Command::new(program)
}
