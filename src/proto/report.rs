//! Messages between a role and the daemon that runs it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The target of log lines about the usual course of a job: its schedule, start and success. The key
/// `log.jobs` of the configuration selects which of them are written.
pub const JOB_COURSE: &str = "hero::job::course";
/// The target of log lines about attempts that failed. The journal has them as notices, dead letters as warnings.
pub const JOB_FAILURE: &str = "hero::job::failure";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceReport {
    /// Redis answered, and the role has started its work.
    Ready,
    /// The role makes progress; a line about its state.
    Alive(String),
    Stopping {
        /// A line about the jobs or calls that it waits for.
        status: String,
        /// The longest time that this takes.
        within: Duration,
    },
}

/// The receiver of reports. It is called from the role's loops and must not block.
pub type Reporter = Arc<dyn Fn(ServiceReport) + Send + Sync>;

/// The reports of the parts of one process, such as its loops for each shard, merged into the reports of the
/// process: it is ready with its first part, and alive while all parts that have begun are.
#[derive(Clone)]
pub struct Reports {
    to: Reporter,
    state: Arc<Mutex<ReportState>>,
}

#[derive(Default)]
struct ReportState {
    is_ready: bool,
    parts: Vec<ReportPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportPart {
    /// It has not begun, or has ended.
    Absent,
    /// It has said nothing since the process last did.
    Silent,
    Alive,
}

impl Reports {
    /// Passes the reports of this many parts on to `to`.
    pub fn new(to: Reporter, parts: usize) -> Self {
        let state = ReportState { is_ready: false, parts: vec![ReportPart::Absent; parts] };
        Self { to, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the receiver of the reports of one part. A line about its state is one about the process.
    pub fn of(&self, part: usize) -> Reporter {
        let all = self.clone();
        Arc::new(move |report| {
            if all.notes(part, &report) {
                (all.to)(report);
            }
        })
    }

    /// Notes that a part has ended, or begins again later.
    pub fn gone(&self, part: usize) {
        self.with(|state| state.parts[part] = ReportPart::Absent);
    }

    /// Notes a report. Returns whether it is one of the process.
    fn notes(&self, part: usize, report: &ServiceReport) -> bool {
        self.with(|state| match report {
            ServiceReport::Ready => !std::mem::replace(&mut state.is_ready, true),
            ServiceReport::Stopping { .. } => true,
            ServiceReport::Alive(_) => {
                state.parts[part] = ReportPart::Alive;
                let is_alive = !state.parts.contains(&ReportPart::Silent);
                if is_alive {
                    let alive = state.parts.iter_mut().filter(|part| **part == ReportPart::Alive);
                    alive.for_each(|part| *part = ReportPart::Silent);
                }
                is_alive
            }
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut ReportState) -> T) -> T {
        // No code panics while it holds it.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns which part of Redis is away, for a status line: how long it is away, for each of so
/// many shards that is. `None` if none is.
pub fn redis_away(away: &[Duration], shards: usize) -> Option<String> {
    let longest = away.iter().max()?.as_secs();
    Some(match shards {
        1 => format!("redis away for {longest} s"),
        _ => format!("redis of {} of {shards} shards away for {longest} s", away.len()),
    })
}

/// Returns that Redis refuses the login, for a status line, if the Redis of some shard does.
pub fn redis_refuses(refused: usize, shards: usize) -> Option<String> {
    match (refused, shards) {
        (0, _) => None,
        (_, 1) => Some("redis refuses the login".to_owned()),
        _ => Some(format!("redis of {refused} of {shards} shards refuses the login")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Shutdown {
    #[default]
    No,
    /// In order: running jobs may end, within the deadline.
    Drain,
    /// In the same order, without waiting.
    Now,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_ready_with_its_first_part_and_alive_while_all_that_began_are() {
        let seen: Arc<Mutex<Vec<ServiceReport>>> = Arc::default();
        let to = Arc::clone(&seen);
        let reports =
            Reports::new(Arc::new(move |report| to.lock().expect("held").push(report)), 3);
        let (first, second) = (reports.of(0), reports.of(1));
        let taken = || std::mem::take(&mut *seen.lock().expect("held"));
        let alive = || ServiceReport::Alive("busy".to_owned());
        first(ServiceReport::Ready);
        second(ServiceReport::Ready);
        assert_eq!(taken(), [ServiceReport::Ready]);
        first(alive());
        assert_eq!(taken(), [alive()], "the others have not begun");
        second(alive());
        assert_eq!(taken(), [], "the first said nothing since");
        first(alive());
        assert_eq!(taken(), [alive()]);
        // The second makes no progress.
        first(alive());
        first(alive());
        assert_eq!(taken(), []);
        reports.gone(1);
        first(alive());
        assert_eq!(taken(), [alive()]);
    }
}
