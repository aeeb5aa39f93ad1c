//! Reading: a snapshot of a namespace, what is wrong at it, and the fields of jobs. The command line, the page, the API
//! and the metrics only format what stands here.

mod blockers;
mod check_verdict;
mod claimed_queues;
mod equal_answers;
pub mod health;
pub(crate) mod job_csv;
mod minutes;
pub(crate) mod snapshot;
mod start;
mod status_document;

pub use blockers::{blocker_words, limit_title};
pub use check_verdict::{CheckReason, CheckState, CheckVerdict};
pub use claimed_queues::{ClaimedQueue, MachineWaits};
pub use equal_answers::{EqualAnswers, FleetAnswer, answered_error};
pub use health::{
    HealthRules, HealthState, NamespaceHealth, Problem, ProblemKind, Severity, Subject,
};
pub use minutes::Minute;
pub use snapshot::{ActorCount, LatestJobs, Snapshot, counted};
pub use start::{has_systemd, start_of};
pub use status_document::{
    ActorsOfType, JobsOfType, RedisDocument, ServedQueue, ShardDocument, StatusDocument,
};
