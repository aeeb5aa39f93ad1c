//! The state of a job in a list, in the words of lists: why it failed, what it waits for, its queue.

use std::collections::HashSet;

use super::listing::JobSummary;
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{AskedWait, JobEnd, JobStatus};
use crate::proto::queue::Queue;
use crate::proto::target::{SelectorDigest, Target};

impl JobSummary {
    /// Returns `cancelled` or `replaced` if the job ended in `error` because it was.
    pub fn intended_end(&self) -> Option<&'static str> {
        self.cause()?.intended()
    }

    /// Returns the word for its state in lists, by which a filter of states finds it: of its end, else from the hash.
    pub fn state(&self) -> &'static str {
        match self.status {
            JobStatus::Error => self.cause().map_or(JobEnd::Failed, FailureCause::end).as_str(),
            status => status.as_str(),
        }
    }

    /// Returns `late` or `slow` if it has not ended, and is that.
    pub fn delay(&self) -> Option<&'static str> {
        let is_late = self.fields.contains_key("late_at");
        let is_slow = self.status == JobStatus::Started
            && self.time("slow_at").is_some_and(|slow| Some(slow) >= self.time("started_at"));
        let word = is_late.then_some("late").or(is_slow.then_some("slow"));
        word.filter(|_| !self.status.is_terminal())
    }

    /// Returns what its script waits for, in words, if it does.
    pub fn awaited(&self) -> Option<String> {
        let wait = self.fields.get("wait").filter(|_| self.status == JobStatus::Scheduled)?;
        AskedWait::of_field(wait).map(|wait| wait.words())
    }

    /// Sets the machine of a running job, in place of the one of its last attempt in its hash: `host` if its actor is there.
    pub(super) fn running_on(mut self, host: &str, actors_there: &HashSet<String>) -> Self {
        if self.status == JobStatus::Started {
            let is_there =
                self.fields.get("actor").is_some_and(|actor| actors_there.contains(actor));
            self.fields.remove("hostname");
            if is_there {
                self.fields.insert("hostname", host.to_owned());
            }
        }
        self
    }

    /// Returns why the job failed, if it did.
    pub fn cause(&self) -> Option<FailureCause> {
        let error = self.fields.get("error").filter(|_| self.status == JobStatus::Error)?;
        Some(FailureCause::of(error))
    }

    /// Returns the queue of the job; `None` without a type.
    pub fn queue(&self) -> Option<Queue> {
        queue_of_fields(|name| self.fields.get(name).map(String::as_str))
    }
}

/// Returns the queue that the fields of a job name; `None` without a type.
pub(super) fn queue_of_fields<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Option<Queue> {
    let script_type = field("script_type")?.parse().ok()?;
    let group = field("group").and_then(|group| group.parse().ok());
    let instance = field("instance").and_then(|instance| instance.parse().ok());
    let priority = field("priority").and_then(|priority| priority.parse().ok());
    let selector = field("where").map(SelectorDigest::of_text);
    let target = Target::of(script_type, group, instance, selector);
    Some(Queue { target, priority: priority.unwrap_or_default() })
}
