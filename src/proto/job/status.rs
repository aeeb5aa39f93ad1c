//! The states of a job and the transitions between them.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::IllegalName;

/// The state of a job. Only the server-side scripts change it, and only as
/// [`JobStatus::may_become`] allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum JobStatus {
    /// Stored, not started.
    Created,
    /// Waits for its prerequisites.
    WaitingForPrerequisites,
    /// Waits for its time: a `run_at`, or the backoff before a retry.
    Scheduled,
    /// Waits in its queue.
    Dispatched,
    /// Runs.
    Started,
    /// Succeeded. Terminal.
    Finished,
    /// Failed, was stopped, or could not run. Terminal.
    Error,
}

impl JobStatus {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 7] = [
        Self::Created,
        Self::WaitingForPrerequisites,
        Self::Scheduled,
        Self::Dispatched,
        Self::Started,
        Self::Finished,
        Self::Error,
    ];
    const FORM: &'static str = "created, waiting_for_prerequisites, scheduled, dispatched, \
                                started, finished or error";

    /// Returns the state as the job hash spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::WaitingForPrerequisites => "waiting_for_prerequisites",
            Self::Scheduled => "scheduled",
            Self::Dispatched => "dispatched",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Error => "error",
        }
    }

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

/// Parses a state in any case, as foreign programs write it.
impl FromStr for JobStatus {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let is_meant = |status: &Self| status.as_str().eq_ignore_ascii_case(value);
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| IllegalName {
            what: "status",
            value: value.to_owned(),
            form: Self::FORM,
        })
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl serde::Serialize for JobStatus {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for JobStatus {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
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
