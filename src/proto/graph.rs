//! Graphs and batches as objects: their records, and how far their jobs have come.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::every::Every;
use super::job::JobId;
use super::window::GraphWindow;
use crate::proto::word_table::words;

words! {
    /// The kind of a joint submission.
    #[derive(Deserialize, JsonSchema)]
    GraphKind;
    /// As a graph: they wait for each other by name.
    Graph = "graph",
    /// As a batch.
    Batch = "batch",
}

words! {
    /// The outcome of a job of a graph.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    GraphJobOutcome, "outcome", "waiting, finished, failed or cancelled";
    /// It has not ended.
    Waiting = "waiting",
    /// It finished, or failed and may fail.
    Finished = "finished",
    /// It ended in an error.
    Failed = "failed",
    /// It was stopped, or deleted before its end.
    Cancelled = "cancelled",
}

impl GraphJobOutcome {
    /// All, those first that a person looks for first.
    pub const WORST_FIRST: [Self; 4] =
        [Self::Failed, Self::Cancelled, Self::Waiting, Self::Finished];
    /// The distance between the scores of two outcomes.
    const STEP: u64 = 1_000_000_000;

    /// Returns its first and last score in the set of the jobs of a graph.
    pub fn scores(self) -> (u64, u64) {
        let first = self as u64 * Self::STEP;
        (first, first + Self::STEP - 1)
    }

    pub fn of_score(score: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| *outcome as u64 == score / Self::STEP)
    }

    /// Returns the place in the graph that a score stands for, from 0.
    pub fn place_of_score(score: u64) -> u64 {
        score % Self::STEP
    }
}

words! {
    /// The state of a graph.
    #[derive(Deserialize, JsonSchema)]
    GraphState;
    /// Some of its jobs have not ended.
    Running = "running",
    /// All have finished.
    Finished = "finished",
    /// All have ended, and some failed.
    Failed = "failed",
    /// All have ended, none failed, and some were cancelled.
    Cancelled = "cancelled",
}

/// The number of the jobs of a graph, and of those that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GraphCounts {
    pub jobs: u64,
    /// Jobs that finished, or failed and may fail.
    pub finished: u64,
    pub failed: u64,
    /// Jobs that were stopped, or deleted before their end.
    pub cancelled: u64,
}

impl GraphCounts {
    pub fn waiting(&self) -> u64 {
        self.jobs.saturating_sub(self.finished + self.failed + self.cancelled)
    }

    pub fn state(&self) -> GraphState {
        match self {
            _ if self.waiting() > 0 => GraphState::Running,
            Self { failed: 1.., .. } => GraphState::Failed,
            Self { cancelled: 1.., .. } => GraphState::Cancelled,
            _ => GraphState::Finished,
        }
    }
}

/// `137 of 200 done, 2 failed, 61 waiting`.
impl fmt::Display for GraphCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} done", self.finished, self.jobs)?;
        let others =
            [(self.failed, "failed"), (self.cancelled, "cancelled"), (self.waiting(), "waiting")];
        others
            .iter()
            .filter(|(number, _)| *number > 0)
            .try_for_each(|(number, word)| write!(f, ", {number} {word}"))
    }
}

words! {
    /// A job that a graph or batch asks for at its end.
    #[derive(PartialOrd, Ord)]
    GraphCallback;
    /// Once all jobs have finished.
    Success = "on_success",
    /// Once all have ended, and not all finished.
    Failure = "on_failure",
    /// Once all have ended.
    End = "on_end",
}

/// A graph or batch. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphInfo {
    pub id: JobId,
    pub name: Option<String>,
    pub kind: GraphKind,
    /// The name of its submitter, from its first job.
    pub caller: String,
    pub created_at: String,
    /// The time when its last job ended.
    pub ended_at: Option<String>,
    pub counts: GraphCounts,
    /// The callbacks that were started last, each with its job.
    pub callbacks: BTreeMap<&'static str, String>,
    pub window: GraphWindow,
    /// The error of its jobs that did not start, once it was stopped after failures.
    pub stopped: Option<String>,
    /// The jobs that started before the others, as long as `pause_after` binds them.
    pub first: Vec<JobId>,
    /// When the others start, or started, in microseconds since 1970.
    pub goes_on_us: Option<i64>,
    /// True if its first jobs have started and no other starts yet.
    pub paused: bool,
    /// The receivers of its jobs, if they are copies of one job.
    pub every: Option<Every>,
}

impl GraphInfo {
    /// The fields of its hash, without the callbacks, which may be large.
    pub const FIELDS: [&str; 16] = [
        "jobs",
        "kind",
        "name",
        "caller",
        "created_at",
        "ended_at",
        "on_success_job",
        "on_failure_job",
        "on_end_job",
        "at_a_time",
        "stop_after",
        "stopped",
        "pause_after",
        "first",
        "goes_on_us",
        "every",
    ];

    /// Reads the values of its fields at a time, in microseconds since 1970. `None` if it does not exist.
    pub fn from_values(id: JobId, values: Vec<Option<String>>, now_us: i64) -> Option<Self> {
        let fields = Self::FIELDS.into_iter().zip(values);
        let mut fields: HashMap<&str, String> =
            fields.filter_map(|(name, value)| Some((name, value?))).collect();
        let jobs = parsed(&fields, "jobs")?;
        let callbacks = GraphCallback::ALL.into_iter().zip(&Self::FIELDS[6..9]);
        let callbacks = callbacks
            .filter_map(|(callback, field)| Some((callback.as_str(), fields.get(field)?.clone())))
            .collect();
        let kind = match fields.get("kind").map(String::as_str) {
            Some("batch") => GraphKind::Batch,
            _ => GraphKind::Graph,
        };
        let window = GraphWindow {
            at_a_time: parsed(&fields, "at_a_time"),
            stop_after: parsed(&fields, "stop_after"),
            pause_after: parsed(&fields, "pause_after"),
        };
        let first = fields.get("first").map(String::as_str).unwrap_or_default();
        let first: Vec<JobId> = first.split(' ').filter_map(|id| id.parse().ok()).collect();
        let goes_on_us = parsed(&fields, "goes_on_us");
        let is_full = window.pause_after.is_some_and(|pause| first.len() >= pause.jobs as usize);
        Some(Self {
            id,
            name: fields.remove("name"),
            kind,
            caller: fields.remove("caller").unwrap_or_default(),
            created_at: fields.remove("created_at").unwrap_or_default(),
            ended_at: fields.remove("ended_at"),
            counts: GraphCounts { jobs, ..GraphCounts::default() },
            callbacks,
            window,
            stopped: fields.remove("stopped"),
            first,
            goes_on_us,
            every: parsed(&fields, "every"),
            paused: is_full && goes_on_us.is_none_or(|at: i64| at > now_us),
        })
    }
}

fn parsed<T: FromStr>(fields: &HashMap<&str, String>, name: &str) -> Option<T> {
    fields.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_reported_in_words_without_zeros() {
        let counts = |finished, failed, cancelled| {
            let counts = GraphCounts { jobs: 200, finished, failed, cancelled };
            (counts.to_string(), counts.state())
        };
        let running = ("137 of 200 done, 2 failed, 61 waiting".to_owned(), GraphState::Running);
        assert_eq!(counts(137, 2, 0), running);
        assert_eq!(counts(200, 0, 0), ("200 of 200 done".to_owned(), GraphState::Finished));
        assert_eq!(counts(198, 1, 1).1, GraphState::Failed);
        let cancelled = ("199 of 200 done, 1 cancelled".to_owned(), GraphState::Cancelled);
        assert_eq!(counts(199, 0, 1), cancelled);
    }

    #[test]
    fn score_is_outcome_and_place() {
        for outcome in GraphJobOutcome::ALL {
            let (first, last) = outcome.scores();
            assert_eq!(GraphJobOutcome::of_score(first + 17), Some(outcome));
            assert_eq!(GraphJobOutcome::of_score(last), Some(outcome));
            assert_eq!(GraphJobOutcome::place_of_score(first + 17), 17);
            assert_eq!(outcome.as_str().parse(), Ok(outcome));
        }
        assert_eq!(GraphJobOutcome::of_score(4_000_000_000), None);
    }
}
