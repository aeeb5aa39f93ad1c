//! The keys of older programs: legacy queues, and the circles of rhailib.

use super::Keys;
use crate::proto::legacy::{Circle, LegacyQueue, is_old_name};

impl Keys {
    /// Adds legacy queues.
    ///
    /// # Errors
    /// The first name that is not one of [`Keys::LEGACY_FORM`].
    pub fn with_legacy_queues(mut self, legacy: &[LegacyQueue]) -> Result<Self, String> {
        let is_legal = |queue: &&LegacyQueue| self.is_legacy_pattern(&queue.legacy);
        if let Some(illegal) = legacy.iter().find(|queue| !is_legal(queue)) {
            return Err(illegal.legacy.clone());
        }
        self.legacy = legacy.to_vec();
        Ok(self)
    }

    pub fn legacy(&self) -> &[LegacyQueue] {
        &self.legacy
    }

    /// The legal forms of a legacy queue's name, for messages.
    pub const LEGACY_FORM: &'static str = "NAMESPACE:work_queue:NAME, NAMESPACE:job:NAME or \
         NAMESPACE:job:actor_queue:NAME, with 1 to 128 of A-Z, a-z, 0-9, _, ., -, @ and : as the \
         NAME, and * in it for any text";

    pub fn is_legacy_queue(&self, key: &str) -> bool {
        self.worker_of(key).is_some_and(|name| is_old_name(name.as_bytes(), false))
    }

    /// Returns whether a text can be a legacy work queue, or a pattern of some.
    pub fn is_legacy_pattern(&self, text: &str) -> bool {
        self.worker_of(text).is_some_and(|name| is_old_name(name.as_bytes(), true))
    }

    /// Returns the name of the worker, the last part of the key of its legacy queue.
    fn worker_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let prefixes = ["work_queue:", "job:actor_queue:", "job:"];
        prefixes
            .into_iter()
            .find_map(|prefix| key.strip_prefix(self.key(format_args!("{prefix}")).as_str()))
    }

    /// List: ids of jobs to stop, from older programs, for the worker of a legacy queue.
    pub fn legacy_stops(&self, queue: &LegacyQueue) -> String {
        let worker = self.worker_of(&queue.legacy).unwrap_or_default();
        self.key(format_args!("stop_queue:{worker}"))
    }

    /// List: ids of the tasks of a circle. Outside the namespace, as rhailib spells it.
    pub fn tasks(circle: &Circle) -> String {
        format!("rhai_tasks:{circle}")
    }

    pub fn circle_of(list: &str) -> Option<Circle> {
        let name = list.strip_prefix("rhai_tasks:")?;
        name.parse().ok().filter(|circle: &Circle| !circle.is_pattern())
    }

    /// Hash: a task of rhailib and its result.
    pub fn task_details(task: &str) -> String {
        format!("rhai_task_details:{task}")
    }

    /// List: the reply to a task, as clients of rhailib name it.
    pub fn task_reply(task: &str) -> String {
        format!("rhai_reply:{task}")
    }
}
