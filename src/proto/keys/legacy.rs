//! The keys of older programs: legacy queues, and the circles of rhailib.

use super::Keys;
use crate::proto::legacy::{Circle, LegacyQueue, is_old_name};

impl Keys {
    /// Adds legacy queues.
    ///
    /// # Errors
    /// The first name that is not one of [`Keys::LEGACY_FORM`].
    pub fn beside(mut self, legacy: &[LegacyQueue]) -> Result<Self, String> {
        if let Some(illegal) = legacy.iter().find(|queue| !self.is_legacy_queue(&queue.legacy)) {
            return Err(illegal.legacy.clone());
        }
        self.legacy = legacy.to_vec();
        Ok(self)
    }

    /// Returns the legacy queues that are served.
    pub fn legacy(&self) -> &[LegacyQueue] {
        &self.legacy
    }

    /// The legal forms of a legacy queue's name, for messages.
    pub const LEGACY_FORM: &'static str = "NAMESPACE:work_queue:NAME, NAMESPACE:job:NAME or \
         NAMESPACE:job:actor_queue:NAME, with 1 to 64 of A-Z, a-z, 0-9, _, . and - as the NAME";

    /// Returns whether a key can be a legacy work queue.
    pub fn is_legacy_queue(&self, key: &str) -> bool {
        let name = |prefix| key.strip_prefix(self.key(format_args!("{prefix}")).as_str());
        [name("work_queue:"), name("job:actor_queue:"), name("job:")]
            .into_iter()
            .flatten()
            .any(|name| is_old_name(name.as_bytes()))
    }

    /// List: ids of jobs for one worker of an older program.
    pub fn legacy_queue(&self, worker: &str) -> String {
        self.key(format_args!("work_queue:{worker}"))
    }

    /// List: ids of jobs to stop, from older programs, for the worker of a legacy queue.
    pub fn legacy_stops(&self, queue: &LegacyQueue) -> String {
        let worker = queue.legacy.rsplit(':').next().unwrap_or_default();
        self.key(format_args!("stop_queue:{worker}"))
    }

    /// Hash: the last observation of a legacy queue or a circle.
    pub fn seen(&self, name: &str) -> String {
        self.key(format_args!("meta:legacy:seen:{name}"))
    }

    /// List: ids of the tasks of a circle. Outside the namespace, as rhailib spells it.
    pub fn tasks(circle: &Circle) -> String {
        format!("rhai_tasks:{circle}")
    }

    /// Hash: a task of rhailib and its result.
    pub fn task_details(task: &str) -> String {
        format!("rhai_task_details:{task}")
    }

    /// List: the reply to a task, as clients of rhailib name it.
    pub fn task_reply(task: &str) -> String {
        format!("rhai_reply:{task}")
    }

    /// Sorted set: ids of tasks whose details have not appeared yet, by the time they were taken.
    pub fn late_tasks(&self, circle: &Circle) -> String {
        self.key(format_args!("meta:legacy:late:{circle}"))
    }
}
