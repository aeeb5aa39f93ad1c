//! The keys that only tell of the state of the system.

use super::Keys;
use crate::proto::job::BootId;
use crate::proto::target::ScriptType;

impl Keys {
    /// String, TTL 15 s: presence of a supervisor, JSON.
    pub fn supervisor(&self, id: &BootId) -> String {
        self.key(format_args!("meta:supervisor:inst:{id}"))
    }

    /// Sorted set: ids of supervisors, by their last heartbeat.
    pub fn supervisors(&self) -> String {
        self.key(format_args!("meta:supervisor:index"))
    }

    /// Sorted set: actors of foreign programs, by when their presence was last found.
    pub fn foreign_actors(&self) -> String {
        self.key(format_args!("meta:actor:foreign"))
    }

    /// List: the counters of a script type during the last hour, sampled once a minute, oldest first.
    pub fn hour(&self, script_type: &ScriptType) -> String {
        self.key(format_args!("meta:queue:hour:type:{script_type}"))
    }

    /// Sorted set: scheduled jobs whose scripts wait, by the time when their wait ends anyway.
    pub fn waits(&self, script_type: &ScriptType) -> String {
        self.key(format_args!("meta:job:index:waits:type:{script_type}"))
    }
}
