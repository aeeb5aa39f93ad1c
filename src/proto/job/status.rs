//! The states of a job, the transitions between them, and the ends of jobs: finer than their states in Redis, which have
//! `error` for all that did not finish.

use crate::proto::word_table::words;

words! {
    /// The state of a job. Only the server-side scripts change it, and only as
    /// [`JobStatus::may_become`] allows.
    #[derive(PartialOrd, Ord, Hash, schemars::JsonSchema)]
    JobStatus,
    "status",
    "created, waiting_for_prerequisites, scheduled, dispatched, started, finished or error",
    any_case;
    /// Stored, not started.
    Created = "created",
    /// Waits for its prerequisites.
    WaitingForPrerequisites = "waiting_for_prerequisites",
    /// Waits for its time: a `run_at`, or the backoff before a retry.
    Scheduled = "scheduled",
    /// Waits in its queue.
    Dispatched = "dispatched",
    /// Runs.
    Started = "started",
    /// Succeeded. Terminal.
    Finished = "finished",
    /// Failed, was stopped, or could not run. Terminal.
    Error = "error",
}

impl JobStatus {
    /// Returns whether only an explicit retry by a person leaves this state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Error)
    }

    /// Returns true for a job that has not started yet, or not again.
    pub fn is_waiting(self) -> bool {
        !self.is_terminal() && self != Self::Started
    }

    /// Returns whether the transition table allows a change.
    pub fn may_become(self, next: Self) -> bool {
        use JobStatus::{
            Created, Dispatched, Error, Finished, Scheduled, Started, WaitingForPrerequisites,
        };
        match self {
            Created => matches!(next, WaitingForPrerequisites | Scheduled | Dispatched | Error),
            WaitingForPrerequisites => matches!(next, Scheduled | Dispatched | Error),
            Scheduled => matches!(next, Dispatched | Error),
            Dispatched => matches!(next, Started | Error),
            // Back to its queue when the actor drains or dies, to the schedule for a retry.
            Started => matches!(next, Dispatched | Scheduled | Finished | Error),
            // A person may run it again.
            Finished | Error => matches!(next, WaitingForPrerequisites | Dispatched),
        }
    }
}

impl<'de> serde::Deserialize<'de> for JobStatus {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

words! {
    /// The end of a job. Each end has an index of its own.
    #[derive(PartialOrd, Ord, Hash, schemars::JsonSchema)]
    JobEnd, "end of a job", "finished, failed, cancelled, replaced or expired", any_case;
    /// It succeeded.
    Finished = "finished",
    /// It failed, or could not run.
    Failed = "failed",
    /// It was stopped.
    Cancelled = "cancelled",
    /// A later job with its unique key replaced it.
    Replaced = "replaced",
    /// It was not started within the time that it had for that.
    Expired = "expired",
}

impl JobEnd {
    pub const IN_ERROR: [Self; 4] = [Self::Failed, Self::Cancelled, Self::Replaced, Self::Expired];
    /// The ends that nobody wanted.
    pub const FAILURES: [Self; 2] = [Self::Failed, Self::Expired];

    /// Returns its state in Redis.
    pub fn status(self) -> JobStatus {
        if self == Self::Finished { JobStatus::Finished } else { JobStatus::Error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_table_is_that_of_the_protocol() {
        let drawn: Vec<String> = JobStatus::ALL
            .into_iter()
            .flat_map(|from| {
                JobStatus::ALL
                    .into_iter()
                    .filter(move |to| from.may_become(*to))
                    .map(move |to| format!("{from} {to}"))
            })
            .collect();
        assert_eq!(
            drawn,
            [
                "created waiting_for_prerequisites",
                "created scheduled",
                "created dispatched",
                "created error",
                "waiting_for_prerequisites scheduled",
                "waiting_for_prerequisites dispatched",
                "waiting_for_prerequisites error",
                "scheduled dispatched",
                "scheduled error",
                "dispatched started",
                "dispatched error",
                "started scheduled",
                "started dispatched",
                "started finished",
                "started error",
                "finished waiting_for_prerequisites",
                "finished dispatched",
                "error waiting_for_prerequisites",
                "error dispatched",
            ]
        );
    }

    #[test]
    fn every_state_reads_back_as_it_is_written() {
        for status in JobStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("Finished".parse(), Ok(JobStatus::Finished));
        assert!("done".parse::<JobStatus>().is_err());
    }
}
