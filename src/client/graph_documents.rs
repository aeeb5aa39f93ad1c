//! Graphs and batches as JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ClientError;
use crate::proto::every::Every;
use crate::proto::graph::{GraphCounts, GraphInfo, GraphJobOutcome, GraphKind, GraphState};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::counted;
use crate::proto::units::format_duration;
use crate::proto::window::{GraphWindow, PauseAfter, StopAfter};
use crate::store::{GraphMember, JobSummary};

/// A graph or batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kind of its submission.
    pub kind: GraphKind,
    /// Its state: `running` until all jobs have ended, then `finished`, `failed` if a job failed, else
    /// `cancelled` if a job was stopped.
    pub state: GraphState,
    /// The number of its jobs.
    pub jobs: u64,
    /// Jobs that finished, or failed and may fail.
    pub finished: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were stopped, or deleted before their end.
    pub cancelled: u64,
    /// Jobs that have not ended.
    pub waiting: u64,
    /// The name of its submitter, from its first job.
    pub caller_id: String,
    /// The time of its submission, in RFC 3339.
    pub created_at: String,
    /// The time when its last job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The callbacks that were started at its last end: `on_success`, `on_failure`, `on_end`, each with the
    /// id of its job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callbacks: BTreeMap<String, String>,
    /// The jobs of these callbacks with their states, where one graph or batch is asked for; without a job that was
    /// deleted or has expired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callback_jobs: Vec<CallbackJob>,
    /// The number of its jobs that run at once, if it has a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<u32>,
    /// The failures after which its other jobs are stopped: a number, or a share of all jobs such as `5%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<StopAfter>,
    /// The error of its jobs that did not start, once it was stopped after failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The number of its jobs that start before the others, and the length of the pause of the others, such as `1 10m`, or
    /// `1 tell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_after: Option<PauseAfter>,
    /// True while these jobs have started and no other starts.
    #[serde(default)]
    pub paused: bool,
    /// When the others start, or started: RFC 3339. Without it, once its first jobs have ended well and the pause is over, or
    /// it is told to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on_at: Option<String>,
    /// `machine` or `actor` if its jobs are copies of one job for every one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
}

/// The job of a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackJob {
    /// The callback: `on_success`, `on_failure` or `on_end`.
    pub callback: String,
    /// The id of the job.
    pub id: String,
    /// Its state.
    pub status: String,
}

impl From<&GraphInfo> for GraphDocument {
    fn from(graph: &GraphInfo) -> Self {
        let counts = &graph.counts;
        Self {
            id: graph.id.to_string(),
            name: graph.name.clone(),
            kind: graph.kind,
            state: counts.state(),
            jobs: counts.jobs,
            finished: counts.finished,
            failed: counts.failed,
            cancelled: counts.cancelled,
            waiting: counts.waiting(),
            caller_id: graph.caller.clone(),
            created_at: graph.created_at.clone(),
            ended_at: graph.ended_at.clone(),
            callbacks: graph
                .callbacks
                .iter()
                .map(|(name, id)| ((*name).to_owned(), id.clone()))
                .collect(),
            callback_jobs: Vec::new(),
            at_a_time: graph.window.at_a_time,
            stop_after: graph.window.stop_after,
            // The failures that ended the last jobs have stopped none.
            stopped: graph.stopped.clone().filter(|_| counts.cancelled + counts.waiting() > 0),
            pause_after: graph.window.pause_after,
            paused: graph.paused && counts.waiting() > 0,
            goes_on_at: graph
                .goes_on_us
                .and_then(|us| Timestamp::from_microsecond(us).ok().map(|at| format!("{at:.3}"))),
            every: graph.every,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOfGraph {
    /// Its id, outcome and place.
    pub member: GraphMember,
    /// The job as lists show it; `None` if it was deleted or has expired.
    pub job: Option<JobSummary>,
}

impl GraphDocument {
    pub fn window(&self) -> Option<GraphWindow> {
        let Self { at_a_time, stop_after, pause_after, .. } = *self;
        let window = GraphWindow { at_a_time, stop_after, pause_after };
        (window != GraphWindow::default()).then_some(window)
    }

    /// Returns why its other jobs do not start, as long as it pauses: its end as `at` writes it, if it has one.
    pub fn pause(&self, at: impl Fn(&str) -> String) -> Option<String> {
        let pause = self.pause_after.filter(|_| self.paused)?;
        let (id, jobs) = (&self.id, counted(pause.jobs, "job", "jobs"));
        let ended = self.finished + self.failed + self.cancelled;
        if self.goes_on_at.is_none() && ended < pause.jobs.into() {
            return Some(format!(
                "after {jobs}, of which {ended} ended; then: hero graph tell {id} go"
            ));
        }
        if self.goes_on_at.is_none() && self.failed + self.cancelled > 0 {
            return Some(format!(
                "after {jobs}, and not all that started ended well: hero graph retry {id}, or hero graph tell {id} go"
            ));
        }
        Some(match (&self.goes_on_at, pause.time) {
            (Some(end), _) => format!("after {jobs}; goes on at {}", at(end)),
            (None, None) => format!("after {jobs}: hero graph tell {id} go"),
            (None, Some(time)) => format!(
                "after {jobs} until {} after all of them ended well: hero graph tell {id} go",
                format_duration(time)
            ),
        })
    }

    /// The number of its jobs, and of those that ended.
    pub fn counts(&self) -> GraphCounts {
        let Self { jobs, finished, failed, cancelled, .. } = *self;
        GraphCounts { jobs, finished, failed, cancelled }
    }
}

/// A job of a graph or batch, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobOfGraphDocument {
    /// The id of the job.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its outcome.
    pub outcome: GraphJobOutcome,
    /// Its state; absent if it was deleted or has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<JobStatus>,
    /// Its error, the first 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its place in the graph, from 0: prerequisites come before their dependents.
    pub place: u64,
    /// The limit that holds it: `@graph=ID` for the window of the graph, `@paused=ID` for its pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The exit code of its last attempt, if its script is a process that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The last line of its log, the first 200 characters, if it is a copy for a machine or actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
}

impl From<&JobOfGraph> for JobOfGraphDocument {
    fn from(JobOfGraph { member, job }: &JobOfGraph) -> Self {
        let field = |name| job.as_ref().and_then(|job| job.fields.get(name)).cloned();
        Self {
            id: member.id.to_string(),
            name: field("name"),
            outcome: member.outcome(),
            status: job.as_ref().map(|job| job.status),
            error: field("error"),
            place: member.place(),
            held_by: field("held_by"),
            exit_code: field("exit_code").and_then(|code| code.parse().ok()),
            last_line: None,
        }
    }
}

/// The result of an operation on the jobs of a graph or batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphChange {
    /// The jobs that were retried, stopped or deleted.
    pub done: u64,
    /// Running jobs whose actors were told to stop them.
    pub told: u64,
    /// The jobs that stay as they are, at most 100, and the reason.
    pub problems: Vec<GraphProblem>,
    /// The number of jobs that stay as they are.
    pub left: u64,
}

/// A job of a graph or batch that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphProblem {
    /// The id of the job.
    pub id: String,
    /// The reason.
    pub problem: String,
}

impl GraphChange {
    const PROBLEMS_MAX: usize = 100;

    pub(super) fn problem(&mut self, id: &JobId, error: &ClientError) {
        self.left += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(GraphProblem { id: id.to_string(), problem: error.to_string() });
        }
    }
}
