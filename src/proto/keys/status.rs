//! The keys that only report the state of the system.

use super::spell;
use crate::proto::job::{BootId, JobEnd};
use crate::proto::target::ScriptType;

spell! {
    /// String, TTL 15 s: presence of a supervisor, JSON.
    supervisor(id: &BootId) = "meta:supervisor:inst:{id}";

    /// Sorted set: ids of supervisors, by their last heartbeat.
    supervisors() = "meta:supervisor:index";

    /// Sorted set: actors of foreign programs, by when their presence was last found.
    foreign_actors() = "meta:actor:foreign";

    /// List: the counters of a script type during the last hour, sampled once a minute, oldest first.
    hour(script_type: &ScriptType) = "meta:queue:hour:type:{script_type}";

    /// Sorted set: ended jobs of a script type, by when they ended.
    ended(end: JobEnd, script_type: &ScriptType) = "meta:job:index:ended:{end}:type:{script_type}";

    /// Sorted set: scheduled jobs whose scripts wait, by the time when their wait ends anyway.
    waits(script_type: &ScriptType) = "meta:job:index:waits:type:{script_type}";
}
