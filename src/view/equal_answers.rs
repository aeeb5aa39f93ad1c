//! Answers of machines or actors to a job for every one: equal answers are one.

use crate::proto::error_kind::FailureCause;
use crate::proto::job::JobStatus;

/// Begins the answer of a machine whose job still waits or runs.
const UNENDED: &str = "has not ended";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetAnswer<'a> {
    pub name: String,
    pub id: &'a str,
    /// Why it did not finish.
    pub error: Option<String>,
    /// Its output, or what it printed.
    pub output: &'a [u8],
}

/// An equal answer of some machines or actors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EqualAnswers<'a> {
    pub error: Option<String>,
    pub output: &'a [u8],
    pub names: Vec<String>,
    /// The ids of their jobs, in the order of the names.
    pub ids: Vec<&'a str>,
}

pub fn answered_error(status: JobStatus, error: Option<&str>) -> Option<String> {
    if status.is_terminal() {
        return error.map(str::to_owned);
    }
    Some(format!("{UNENDED}: {status}"))
}

impl<'a> EqualAnswers<'a> {
    /// Groups answers: the outputs, the most common first, then the errors.
    pub fn of(answers: impl IntoIterator<Item = FleetAnswer<'a>>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for FleetAnswer { name, id, error, output } in answers {
            match groups.iter_mut().find(|of| of.error == error && of.output == output) {
                Some(of) => {
                    of.names.push(name);
                    of.ids.push(id);
                }
                None => groups.push(Self { error, output, names: vec![name], ids: vec![id] }),
            }
        }
        groups.sort_by_key(|of| (of.error.is_some(), usize::MAX - of.names.len()));
        groups
    }

    /// Returns true if their jobs failed. One that a person or its window stopped has not.
    pub fn has_failed(&self) -> bool {
        self.error.as_ref().is_some_and(|error| {
            FailureCause::of(error) != FailureCause::Stopped && !error.starts_with(UNENDED)
        })
    }
}
