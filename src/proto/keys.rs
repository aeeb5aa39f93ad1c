//! The only place that spells keys of Redis: the hashes of jobs, the lists under `q:`, and the keys under `meta:`. Foreign
//! programs read and write the first two, `presence`, `stats` and `log`; they do not need the others.
//!
//! All scores of the sorted sets are microseconds since the epoch, by Redis's clock.

mod legacy;
mod programs;
mod table;

pub use programs::{
    job_hash_key, reply_queue_key, work_queue_group, work_queue_instance, work_queue_type,
};

use std::fmt;
use std::str::FromStr;

use super::job::{JobId, ReplyFormat};
use super::legacy::LegacyQueue;
use super::queue::Queue;
use super::target::{ActorId, IllegalName, Target, is_word, name};

name!(
    /// The prefix of every key, so that several environments can share one Redis.
    Namespace,
    "namespace",
    "1 to 64 of A-Z, a-z, 0-9, _, . and -, or the same in braces for Redis Cluster",
    |name| {
        let bare = name.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(name);
        is_word(bare, 64, b"_.-")
    }
);

impl Default for Namespace {
    fn default() -> Self {
        Self("hero".to_owned())
    }
}

impl Namespace {
    /// Returns whether it is in braces: then a Redis Cluster keeps all its keys in one slot.
    pub fn is_hash_tag(&self) -> bool {
        self.as_str().starts_with('{')
    }
}

/// Spells the keys of one namespace.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    namespace: Namespace,
    /// The legacy queues that are served beside Hero's own.
    legacy: Vec<LegacyQueue>,
    /// Every transition of a job is written into the event log.
    has_events: bool,
    /// The format of the replies to jobs that do not set one.
    reply_format: ReplyFormat,
}

impl Keys {
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace, ..Self::default() }
    }

    #[must_use]
    pub fn with_events(self, has_events: bool) -> Self {
        Self { has_events, ..self }
    }

    #[must_use]
    pub fn with_replies(self, reply_format: ReplyFormat) -> Self {
        Self { reply_format, ..self }
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn key(&self, rest: fmt::Arguments<'_>) -> String {
        format!("{}:{rest}", self.namespace)
    }

    /// Returns the lists of a queue for its readers: priority 1 is written without a suffix and
    /// read in both spellings.
    pub fn work_as_read(&self, queue: &Queue) -> Vec<String> {
        let written = self.work(queue);
        match queue.priority {
            super::target::Priority::Normal => vec![format!("{written}:prio:1"), written],
            _ => vec![written],
        }
    }

    /// Returns the queue of a work list, in either spelling; `None` for any other key.
    pub fn queue_of_work(&self, key: &str) -> Option<Queue> {
        let prefix = self.key(format_args!("q:work:"));
        Queue::from_str(key.strip_prefix(prefix.as_str())?).ok()
    }

    /// List: control messages for one actor.
    pub fn control(&self, actor: &ActorId) -> String {
        let ActorId { script_type, group, instance } = actor;
        self.key(format_args!("q:ctl:type:{script_type}:group:{group}:inst:{instance}"))
    }

    /// Returns the target of a wake list; `None` for any other key.
    pub fn target_of_wake(&self, key: &str) -> Option<Target> {
        let prefix = self.key(format_args!("meta:wake:"));
        Queue::from_str(key.strip_prefix(prefix.as_str())?).ok().map(|queue| queue.target)
    }

    /// Returns the actor of a presence key; `None` for any other key.
    pub fn actor_of_presence(&self, key: &str) -> Option<ActorId> {
        let prefix = self.key(format_args!("meta:actor:inst:"));
        key.strip_prefix(prefix.as_str())?.parse().ok()
    }

    /// Returns the starts of the keys that programs write with plain commands, beside hashes of jobs: lists of
    /// work, also of older programs, and the presence of actors.
    pub fn written_by_programs(&self) -> Vec<String> {
        let own = ["q:work:", "meta:actor:inst:", "job:actor_queue:", "work_queue:"];
        let mut starts: Vec<String> =
            own.iter().map(|start| self.key(format_args!("{start}"))).collect();
        starts.push("rhai_tasks:".to_owned());
        starts
    }

    pub fn is_own(&self, key: &[u8]) -> bool {
        let namespace = self.namespace.as_str().as_bytes();
        key.strip_prefix(namespace).is_some_and(|rest| rest.first() == Some(&b':'))
    }

    /// Returns whether a key is a reply list of this namespace: an actor pushes answers for
    /// foreign programs nowhere else.
    pub fn is_reply(&self, key: &str) -> bool {
        let prefix = self.key(format_args!("q:reply:"));
        key.strip_prefix(prefix.as_str()).is_some_and(|id| id.parse::<JobId>().is_ok())
    }

    /// Returns the keys as patterns of an access list, such as `hero:job:*`, each with a key that it permits; without
    /// the keys of older programs.
    pub fn patterns(&self) -> Vec<(String, String)> {
        let of_older = ["LEGACY_WORK", "LEGACY_STOP", "LEGACY_REPLY", "SEEN", "LATE"];
        let constants = constants().filter(|(name, _)| !of_older.contains(name));
        let pattern = |(_, rest): (&str, &str)| {
            let key = self.key(format_args!("{rest}"));
            if key.ends_with(':') {
                (format!("{key}*"), format!("{key}!"))
            } else {
                (key.clone(), key)
            }
        };
        constants.map(pattern).collect()
    }

    /// Returns the keys as Lua constants; every server-side script starts with them.
    pub fn lua(&self) -> String {
        let line =
            |(name, rest): (&str, &str)| format!("local {name} = '{}:{rest}'\n", self.namespace);
        let legacy = match self.legacy.as_slice() {
            [] => "false".to_owned(),
            queues => {
                let queues: Vec<String> = queues.iter().map(LegacyQueue::lua).collect();
                format!("{{ {} }}", queues.join(", "))
            }
        };
        let mut lua: String = constants().map(line).collect();
        lua.push_str("local HERO = '");
        lua.push_str(self.namespace.as_str());
        lua.push_str(":'\nlocal TASKS = 'rhai_tasks:'\nlocal DETAILS = 'rhai_task_details:'\n");
        // A constant, so that without events the scripts do not even check.
        lua.push_str(
            &["local EVENTS_ON = ", if self.has_events { "true" } else { "false" }, "\n"].concat(),
        );
        lua.push_str(&["local REPLY_FORMAT = '", self.reply_format.as_str(), "'\n"].concat());
        lua.push_str(&["local LEGACY = ", &legacy, "\n"].concat());
        lua
    }

    /// Returns the keys without a variable part, each with its type.
    pub fn fixed(&self) -> Vec<(String, &'static str)> {
        let typed = table::KEYS.iter().filter(|(.., of)| !of.is_empty());
        typed.map(|(_, rest, of)| (self.key(format_args!("{rest}")), *of)).collect()
    }

    /// The keys of one staged job, and the list of all of a batch.
    pub fn staged_parts(&self, batch: &JobId, id: &JobId) -> [String; 5] {
        let batch = self.staged(batch);
        let job = format!("{batch}:{id}");
        let part = |name| format!("{job}:{name}");
        [part("pending"), part("dependents"), part("others"), format!("{batch}::jobs"), job]
    }
}

/// Returns the constants of Lua: the name of each, and its key without the namespace.
fn constants() -> impl Iterator<Item = (&'static str, &'static str)> {
    let named = table::KEYS.iter().filter(|(name, ..)| *name != "RUST_ONLY");
    named.map(|(name, key, _)| (*name, key.split('{').next().unwrap_or(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::{BootId, JobEnd, JobStatus, UniqueKey};
    use crate::proto::object::{Context, Field, ObjectType};
    use crate::proto::target::Priority;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a row for each key")]
    fn every_key_is_spelled_as_the_protocol_says() {
        let keys = Keys::default();
        let actor = ActorId::from_unit("osis-io-3").expect("legal");
        let osis = actor.script_type.clone();
        let id: JobId = "job-1".parse().expect("legal");
        let boot: BootId = "b7e151628aed4a6abf7158809cf4f3c7".parse().expect("legal");
        let unique: UniqueKey = "daily report".parse().expect("legal");
        let (person, shared): (ObjectType, Context) =
            ("person".parse().expect("legal"), "a:b".parse().expect("legal"));
        let city: Field = "home.city".parse().expect("legal");
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
            (
                keys.wake(&queue(Priority::Urgent).target),
                "hero:meta:wake:type:osis:group:io:inst:3",
            ),
            (keys.reply(&id), "hero:q:reply:job-1"),
            (keys.dead(&osis), "hero:q:dead:type:osis"),
            (keys.presence(&actor), "hero:meta:actor:inst:osis:io:3"),
            (keys.stats(&osis), "hero:meta:queue:stats:type:osis"),
            (keys.spans_dropped(), "hero:meta:queue:stats:spans_dropped"),
            (keys.log(&id), "hero:meta:job:log:job-1"),
            (keys.files(&id), "hero:meta:job:files:job-1"),
            (
                keys.ready(&queue(Priority::Background)),
                "hero:meta:queue:ready:type:osis:group:io:inst:3:prio:2",
            ),
            (keys.running(&boot), "hero:meta:boot:running:b7e151628aed4a6abf7158809cf4f3c7"),
            (keys.index(JobStatus::Finished, &osis), "hero:meta:job:index:finished:type:osis"),
            (keys.waits(&osis), "hero:meta:job:index:waits:type:osis"),
            (keys.ended(JobEnd::Failed, &osis), "hero:meta:job:index:ended:failed:type:osis"),
            (keys.queues(), "hero:meta:queue:index"),
            (keys.probe(), "hero:job:!"),
            (keys.types(), "hero:meta:type:index"),
            (keys.type_times(), "hero:meta:type:times"),
            (keys.actors(), "hero:meta:actor:index"),
            (keys.foreign_actors(), "hero:meta:actor:foreign"),
            (keys.supervisor(&boot), "hero:meta:supervisor:inst:b7e151628aed4a6abf7158809cf4f3c7"),
            (keys.supervisors(), "hero:meta:supervisor:index"),
            (keys.boots(), "hero:meta:boot:index"),
            (keys.unique(&unique), "hero:meta:job:unique:daily report"),
            (keys.pending(&id), "hero:meta:job:pending:job-1"),
            (keys.dependents(&id), "hero:meta:job:dependents:job-1"),
            (keys.staged(&id), "hero:meta:job:staged:job-1"),
            (keys.reserved(&id), "hero:meta:job:reserved:job-1"),
            (keys.committing(), "hero:meta:job:committing"),
            (keys.settling(), "hero:meta:job:settling"),
            (keys.unindexed(), "hero:meta:job:unindexed"),
            (keys.notes(), "hero:meta:job:notes"),
            (keys.graph(&id), "hero:meta:graph:info:job-1"),
            (keys.graph_jobs(&id), "hero:meta:graph:jobs:job-1"),
            (keys.graphs(), "hero:meta:graph:index"),
            (keys.graph_windows(), "hero:meta:graph:windows"),
            (keys.rate(&osis), "hero:meta:queue:rate:type:osis"),
            (keys.hour(&osis), "hero:meta:queue:hour:type:osis"),
            (keys.marks(), "hero:meta:queue:marks"),
            (keys.events(), "hero:meta:job:events"),
            (keys.tokens(), "hero:meta:api:tokens"),
            (keys.audit(), "hero:meta:api:audit"),
            (keys.notify_events(), "hero:meta:notify:events"),
            (keys.notify_wanted(), "hero:meta:notify:wanted"),
            (keys.notify_failing(), "hero:meta:notify:failing"),
            (keys.notify_state(), "hero:meta:notify:state"),
            (keys.notify_messages(), "hero:meta:notify:messages"),
            (keys.notify_due(), "hero:meta:notify:due"),
            (keys.notify_recent(), "hero:meta:notify:recent"),
            (keys.notify_trouble(), "hero:meta:notify:trouble"),
            (keys.notify_problems(), "hero:meta:notify:problems"),
            (keys.amqp_bell("prod_@/"), "hero:meta:amqp:ended:@prod_@/"),
            (keys.amqp_shutdown("prod_@/"), "hero:meta:amqp:shutdown:prod_@/"),
            (keys.amqp_spool("prod_@/"), "hero:meta:amqp:spool:prod_@/"),
            (keys.amqp_brokers("prod_@/"), "hero:meta:amqp:brokers:prod_@/"),
            (keys.amqp_repeats("prod_@/", "c1"), "hero:meta:amqp:repeats:prod_@/:c1"),
            (keys.amqp_done("ab12"), "hero:meta:amqp:done:ab12"),
            (keys.cron(&"nightly".parse().expect("legal")), "hero:meta:cron:nightly"),
            (keys.cron_added(), "hero:meta:cron:added:jobs"),
            (keys.cron_ended(&"nightly".parse().expect("legal")), "hero:meta:cron:ended:nightly"),
            (keys.cron_names(), "hero:meta:cron:names:index"),
            (keys.scripts(), "hero:meta:script:index"),
            (keys.script(&"deploy".parse().expect("legal")), "hero:meta:script:of:deploy"),
            (keys.object_contexts(), "hero:meta:osis:contexts"),
            (keys.object_counts(&Context::default()), "hero:meta:osis:count:%"),
            (keys.object_heads(&shared, &person), "hero:meta:osis:head:a%3ab:person"),
            (keys.object_ids(&shared, &person), "hero:meta:osis:ids:a%3ab:person"),
            (keys.object_indexes(&shared, &person), "hero:meta:osis:state:a%3ab:person"),
            (
                keys.object_index(&shared, &person, &city),
                "hero:meta:osis:index:a%3ab:person:home.city",
            ),
            (keys.paused(), "hero:meta:queue:paused"),
            (keys.selectors(&osis), "hero:meta:where:osis"),
            (keys.selectors_used(&osis), "hero:meta:where:used:osis"),
            (
                keys.held(&queue(Priority::Urgent)),
                "hero:meta:queue:held:type:osis:group:io:inst:3:prio:0",
            ),
            (keys.limits(), "hero:meta:limit:index"),
            (keys.limit_starts("api"), "hero:meta:limit:starts:api"),
            (keys.limit_rules("0f"), "hero:meta:limit:rules:0f"),
            (keys.seen("main"), "hero:meta:legacy:seen:main"),
            (keys.older(), "hero:meta:queue:older"),
            (keys.late_tasks(&"main".parse().expect("legal")), "hero:meta:legacy:late:main"),
            (Keys::tasks(&"main".parse().expect("legal")), "rhai_tasks:main"),
            (Keys::task_details("t"), "rhai_task_details:t"),
        ] {
            assert_eq!(spelled, key);
            // The scripts spell the same keys: each is a constant or starts with one.
            assert!(
                keys.lua()
                    .lines()
                    .filter_map(|line| line.split('\'').nth(1))
                    .any(|constant| key == constant
                        || (constant.ends_with(':') && key.starts_with(constant))),
                "no Lua constant begins {key}"
            );
        }
        // The scripts take this key from the task.
        assert_eq!(Keys::task_reply("t"), "rhai_reply:t");
    }

    #[test]
    fn legacy_queues_have_one_of_three_forms_and_reach_the_scripts() {
        let keys = Keys::default();
        assert!(keys.is_legacy_queue(&keys.legacy_queue("w1")));
        for legal in ["hero:work_queue:w-1", "hero:work_queue:w@h:1", "hero:job:osis_1"] {
            assert!(keys.is_legacy_queue(legal), "{legal} was rejected");
        }
        for illegal in [
            "hero:work_queue:",
            "hero:work_queue:*",
            "hero:work_queue:a'b",
            "hero:q:work:type:osis",
            "prod:work_queue:w1",
            "work_queue:w1",
        ] {
            assert!(!keys.is_legacy_queue(illegal), "{illegal} was accepted");
        }
        let queue = |legacy: &str| LegacyQueue {
            legacy: legacy.to_owned(),
            script_type: "osis".parse().expect("legal"),
            group: "io".parse().expect("legal"),
            instance: None,
        };
        assert_eq!(keys.legacy_stops(&queue("hero:job:actor_queue:v")), "hero:stop_queue:v");
        assert!(keys.lua().ends_with("local LEGACY = false\n"));
        assert_eq!(
            keys.clone().with_legacy_queues(&[queue("nonsense")]).err().as_deref(),
            Some("nonsense")
        );
        let served = keys.with_legacy_queues(&[queue("hero:work_queue:w1")]).expect("legal");
        assert!(served.lua().contains(
            "{ { list = 'hero:work_queue:w1', type = 'osis', group = 'io', instance = '' } }"
        ));
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

    #[test]
    fn outputs_are_staged_under_names_that_no_job_has() {
        let keys = Keys::default();
        let id: JobId = "job-1".parse().expect("legal");
        let boot: BootId = "b7e151628aed4a6abf7158809cf4f3c7".parse().expect("legal");
        let (own, staged) = (keys.output(&id), keys.staged_output(&id, &boot, 7));
        assert_eq!(own, "hero:meta:job:output:job-1");
        assert_eq!(staged, "hero:meta:job:output:job-1:b7e151628aed4a6abf7158809cf4f3c7:7");
        assert_eq!(keys.staged_reply(&id, &boot, 7), format!("{staged}:reply"));
        assert!(keys.lua().contains("local OUTPUT = 'hero:meta:job:output:'\n"));
        assert!("job-1:x".parse::<JobId>().is_err());
    }
}
