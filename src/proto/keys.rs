//! The only file in which a key of Redis is spelled.
//!
//! The keys up to `log` are public: programs of others read and write them. The rest, all under
//! `meta:`, belong to Hero; a program that speaks the protocol needs none of them.
//!
//! All scores of the sorted sets are microseconds since the epoch, by Redis's clock.

use std::fmt;
use std::str::FromStr;

use super::job::{BootId, JobId, JobStatus, UniqueKey};
use super::target::{ActorId, IllegalName, Queue, ScriptType, name};

name!(
    /// What every key starts with, so that several environments can share one Redis.
    Namespace,
    "namespace",
    "1 to 64 of A-Z, a-z, 0-9, _, . and -, or the same in braces for Redis Cluster",
    |name| {
        let bare = name.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(name);
        (1..=64).contains(&bare.len())
            && bare.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
    }
);

impl Default for Namespace {
    fn default() -> Self {
        Self("hero".to_owned())
    }
}

/// Spells the keys of one namespace.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    namespace: Namespace,
}

impl Keys {
    /// The keys of `namespace`.
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace }
    }

    fn key(&self, rest: fmt::Arguments<'_>) -> String {
        format!("{}:{rest}", self.namespace)
    }

    /// Hash: the job.
    pub fn job(&self, id: &JobId) -> String {
        self.key(format_args!("job:{id}"))
    }

    /// List: ids of the jobs that wait in a queue, head first.
    pub fn work(&self, queue: &Queue) -> String {
        self.key(format_args!("q:work:{queue}"))
    }

    /// The lists a reader of the queue looks into: priority 1 is written without a suffix and
    /// read in both spellings.
    pub fn work_as_read(&self, queue: &Queue) -> Vec<String> {
        let written = self.work(queue);
        match queue.priority {
            super::target::Priority::Normal => vec![format!("{written}:prio:1"), written],
            _ => vec![written],
        }
    }

    /// The queue of a work list, in either spelling; none if it is no work list of this namespace.
    pub fn queue_of_work(&self, key: &str) -> Option<Queue> {
        let prefix = self.key(format_args!("q:work:"));
        Queue::from_str(key.strip_prefix(prefix.as_str())?).ok()
    }

    /// List: control messages for every live actor of the type.
    pub fn control_of_type(&self, script_type: &ScriptType) -> String {
        self.key(format_args!("q:ctl:type:{script_type}"))
    }

    /// List: control messages for one actor.
    pub fn control(&self, actor: &ActorId) -> String {
        let ActorId { script_type, group, instance } = actor;
        self.key(format_args!("q:ctl:type:{script_type}:group:{group}:inst:{instance}"))
    }

    /// List, TTL 60 s: one reply.
    pub fn reply(&self, id: &JobId) -> String {
        self.key(format_args!("q:reply:{id}"))
    }

    /// List: ids of the jobs that used up their attempts.
    pub fn dead(&self, script_type: &ScriptType) -> String {
        self.key(format_args!("q:dead:type:{script_type}"))
    }

    /// String, TTL 15 s: presence of an actor, JSON.
    pub fn presence(&self, actor: &ActorId) -> String {
        self.key(format_args!("meta:actor:inst:{actor}"))
    }

    /// Hash: counters of a script type.
    pub fn stats(&self, script_type: &ScriptType) -> String {
        self.key(format_args!("meta:queue:stats:type:{script_type}"))
    }

    /// Stream, capped, TTL: live log lines of a job.
    pub fn log(&self, id: &JobId) -> String {
        self.key(format_args!("meta:job:log:{id}"))
    }

    /// Sorted set, the index of `dispatched`: ids that wait in a queue, by dispatch.
    pub fn ready(&self, queue: &Queue) -> String {
        self.key(format_args!("meta:queue:ready:{queue}"))
    }

    /// Sorted set, the index of `started`: ids that one boot runs, by start.
    pub fn running(&self, boot: &BootId) -> String {
        self.key(format_args!("meta:boot:running:{boot}"))
    }

    /// Sorted set, the index of every other state: ids by the time that matters to the state
    /// (created: creation; waiting: submission; scheduled: when due; finished and error: expiry;
    /// started by a foreign actor: when to look at it next).
    pub fn index(&self, status: JobStatus, script_type: &ScriptType) -> String {
        self.key(format_args!("meta:job:index:{status}:type:{script_type}"))
    }

    /// Set: names of the queues that may hold jobs.
    pub fn queues(&self) -> String {
        self.key(format_args!("meta:queue:index"))
    }

    /// Set: script types that ever had a job or an actor.
    pub fn types(&self) -> String {
        self.key(format_args!("meta:type:index"))
    }

    /// Sorted set: identities of actors, by their last heartbeat.
    pub fn actors(&self) -> String {
        self.key(format_args!("meta:actor:index"))
    }

    /// Sorted set: boot ids, by the end of their lease.
    pub fn boots(&self) -> String {
        self.key(format_args!("meta:boot:index"))
    }

    /// String: id of the job that holds a unique key.
    pub fn unique(&self, key: &UniqueKey) -> String {
        self.key(format_args!("meta:job:unique:{key}"))
    }

    /// Set: prerequisites of a job that have not finished yet.
    pub fn pending(&self, id: &JobId) -> String {
        self.key(format_args!("meta:job:pending:{id}"))
    }

    /// List: those dependents of a job for which the field of its hash has no room.
    pub fn dependents(&self, id: &JobId) -> String {
        self.key(format_args!("meta:job:dependents:{id}"))
    }

    /// List: ended jobs whose dependents were too many to tell in one step, JSON with those left.
    pub fn settling(&self) -> String {
        self.key(format_args!("meta:job:settling"))
    }

    /// Hash: throughput of a script type, as last sampled.
    pub fn rate(&self, script_type: &ScriptType) -> String {
        self.key(format_args!("meta:queue:rate:type:{script_type}"))
    }

    /// Hash: where the sweeps of recovery stand, per queue and index.
    pub fn marks(&self) -> String {
        self.key(format_args!("meta:queue:marks"))
    }

    /// Sorted set, the other index of `dispatched`: ids of a queue that a limit holds back, by
    /// dispatch.
    pub fn held(&self, queue: &Queue) -> String {
        self.key(format_args!("meta:queue:held:{queue}"))
    }

    /// Set: names of the queues that somebody has paused.
    pub fn paused(&self) -> String {
        self.key(format_args!("meta:queue:paused"))
    }

    /// Whether a key is a reply list of this namespace, the only place where a stranger may ask
    /// an actor to push an answer to.
    pub fn is_reply(&self, key: &str) -> bool {
        let prefix = self.key(format_args!("q:reply:"));
        key.strip_prefix(prefix.as_str()).is_some_and(|id| id.parse::<JobId>().is_ok())
    }

    /// The same keys as constants of Lua, which every server-side script starts with.
    pub fn lua(&self) -> String {
        let constants = [
            ("JOB", "job:"),
            ("WORK", "q:work:"),
            ("CONTROL", "q:ctl:type:"),
            ("REPLY", "q:reply:"),
            ("DEAD", "q:dead:type:"),
            ("PRESENCE", "meta:actor:inst:"),
            ("STATS", "meta:queue:stats:type:"),
            ("LOG", "meta:job:log:"),
            ("READY", "meta:queue:ready:"),
            ("RUNNING", "meta:boot:running:"),
            ("INDEX", "meta:job:index:"),
            ("QUEUES", "meta:queue:index"),
            ("TYPES", "meta:type:index"),
            ("ACTORS", "meta:actor:index"),
            ("BOOTS", "meta:boot:index"),
            ("UNIQUE", "meta:job:unique:"),
            ("PENDING", "meta:job:pending:"),
            ("DEPENDENTS", "meta:job:dependents:"),
            ("SETTLING", "meta:job:settling"),
            ("RATE", "meta:queue:rate:type:"),
            ("MARKS", "meta:queue:marks"),
            ("PAUSED", "meta:queue:paused"),
            ("HELD", "meta:queue:held:"),
            ("LIMITS", "meta:limit:index"),
            ("LIMIT_PROBES", "meta:limit:probes"),
            ("LIMIT_HELD", "meta:limit:held:"),
            ("LIMIT_RUNNING", "meta:limit:running:"),
            ("LIMIT_STARTS", "meta:limit:starts:"),
        ];
        let line = |(name, rest): &(&str, &str)| {
            format!(
                "local {name} = '{}:{rest}'
",
                self.namespace
            )
        };
        constants.iter().map(line).collect::<Vec<_>>().concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::target::{Priority, Target};

    #[test]
    fn every_key_is_spelled_as_the_protocol_says() {
        let keys = Keys::default();
        let actor = ActorId::from_unit("osis-io-3").expect("legal");
        let osis = actor.script_type.clone();
        let id: JobId = "job-1".parse().expect("legal");
        let boot: BootId = "b7e151628aed4a6abf7158809cf4f3c7".parse().expect("legal");
        let unique: UniqueKey = "daily report".parse().expect("legal");
        let queue = |priority| Queue {
            target: Target::instance(osis.clone(), actor.group.clone(), actor.instance),
            priority,
        };
        for (spelled, key) in [
            (keys.job(&id), "hero:job:job-1"),
            (keys.work(&queue(Priority::Normal)), "hero:q:work:type:osis:group:io:inst:3"),
            (keys.work(&queue(Priority::Urgent)), "hero:q:work:type:osis:group:io:inst:3:prio:0"),
            (keys.control_of_type(&osis), "hero:q:ctl:type:osis"),
            (keys.control(&actor), "hero:q:ctl:type:osis:group:io:inst:3"),
            (keys.reply(&id), "hero:q:reply:job-1"),
            (keys.dead(&osis), "hero:q:dead:type:osis"),
            (keys.presence(&actor), "hero:meta:actor:inst:osis:io:3"),
            (keys.stats(&osis), "hero:meta:queue:stats:type:osis"),
            (keys.log(&id), "hero:meta:job:log:job-1"),
            (
                keys.ready(&queue(Priority::Background)),
                "hero:meta:queue:ready:type:osis:group:io:inst:3:prio:2",
            ),
            (keys.running(&boot), "hero:meta:boot:running:b7e151628aed4a6abf7158809cf4f3c7"),
            (keys.index(JobStatus::Finished, &osis), "hero:meta:job:index:finished:type:osis"),
            (keys.queues(), "hero:meta:queue:index"),
            (keys.types(), "hero:meta:type:index"),
            (keys.actors(), "hero:meta:actor:index"),
            (keys.boots(), "hero:meta:boot:index"),
            (keys.unique(&unique), "hero:meta:job:unique:daily report"),
            (keys.pending(&id), "hero:meta:job:pending:job-1"),
            (keys.dependents(&id), "hero:meta:job:dependents:job-1"),
            (keys.settling(), "hero:meta:job:settling"),
            (keys.rate(&osis), "hero:meta:queue:rate:type:osis"),
            (keys.marks(), "hero:meta:queue:marks"),
            (keys.paused(), "hero:meta:queue:paused"),
            (
                keys.held(&queue(Priority::Urgent)),
                "hero:meta:queue:held:type:osis:group:io:inst:3:prio:0",
            ),
        ] {
            assert_eq!(spelled, key);
            // The scripts must spell the same keys: each is a constant or starts with one.
            assert!(
                keys.lua()
                    .lines()
                    .filter_map(|line| line.split('\'').nth(1))
                    .any(|constant| key == constant
                        || (constant.ends_with(':') && key.starts_with(constant))),
                "no constant of Lua begins {key}"
            );
        }
    }

    #[test]
    fn normal_priority_is_read_in_both_spellings() {
        let keys = Keys::default();
        let queue: Queue = "type:osis".parse().expect("legal");
        let read = keys.work_as_read(&queue);
        assert_eq!(read, ["hero:q:work:type:osis:prio:1", "hero:q:work:type:osis"]);
        assert!(read.iter().all(|key| keys.queue_of_work(key).as_ref() == Some(&queue)));
    }

    #[test]
    fn a_namespace_may_be_a_hash_tag_and_never_holds_a_colon() {
        assert!("{hero}".parse::<Namespace>().is_ok());
        for illegal in ["", "{}", "a:b", "{a", "a b", "{{a}}"] {
            assert!(illegal.parse::<Namespace>().is_err(), "{illegal} was accepted");
        }
    }

    #[test]
    fn only_reply_lists_may_be_pushed_to_on_request() {
        let keys = Keys::default();
        assert!(keys.is_reply("hero:q:reply:ping-1"));
        for other in ["hero:job:x", "hero:q:work:type:osis", "hero:q:reply:", "hero:q:reply:a:b"] {
            assert!(!keys.is_reply(other), "{other} was accepted");
        }
    }
}
