//! The problems of queues and periodic jobs that last, as supervisors have told them.

use std::collections::{BTreeMap, HashMap};

use super::{Result, Store};
use crate::proto::notification::{ProblemMark, ProblemSteps};

/// The field that has the time of the latest judgement.
const JUDGED: &str = "judged";

/// The snapshots of two supervisors differ by less.
const AHEAD_MAX_MS: u64 = 60_000;

/// The marks of all problems that last.
#[derive(Debug, Default)]
pub struct ProblemMarks {
    /// The marks by kind and subject.
    pub marks: BTreeMap<String, ProblemMark>,
    /// The time of the snapshot that was judged last, in ms since 1970; empty if there was none.
    judged: String,
}

impl ProblemMarks {
    /// Returns whether a snapshot is newer than the one that was judged last. One of the future is of before Redis's clock was
    /// set back.
    pub fn is_before(&self, now_ms: u64) -> bool {
        let is_before = |judged: u64| judged < now_ms || judged > now_ms + AHEAD_MAX_MS;
        self.judged.parse().map_or(true, is_before)
    }
}

impl Store {
    pub async fn problem_marks(&self) -> Result<ProblemMarks> {
        let (doing, key) = ("reading the problems that are told", self.keys.notify_problems());
        let fields: HashMap<String, Vec<u8>> = self.link.command(doing, "HGETALL", key).await?;
        let mut marks = ProblemMarks::default();
        for (field, value) in fields {
            if field == JUDGED {
                marks.judged = String::from_utf8_lossy(&value).into_owned();
            } else {
                marks.marks.insert(field, serde_json::from_slice(&value).unwrap_or_default());
            }
        }
        Ok(marks)
    }

    /// Writes what was decided of a snapshot, and its events. Returns false if another has judged since `read`.
    pub async fn tell_problems(
        &self,
        read: &ProblemMarks,
        now_ms: u64,
        steps: &ProblemSteps,
    ) -> Result<bool> {
        let mut script = self.scripts.notify_problems.prepare_invoke();
        script.arg(&read.judged).arg(now_ms).arg(steps.marks.len());
        for (key, mark) in &steps.marks {
            let text = mark.as_ref().map(serde_json::to_string);
            script.arg(key).arg(text.and_then(Result::ok).unwrap_or_default());
        }
        for event in &steps.events {
            let fields = event.problem_fields();
            script.arg(fields.len());
            for (name, value) in fields {
                script.arg(name).arg(value);
            }
        }
        self.invoke("telling problems", &script).await
    }
}
