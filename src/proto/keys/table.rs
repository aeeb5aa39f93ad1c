//! The table of the keys of one namespace: for Rust, for Lua, and for the check of their types.

use super::Keys;
use crate::proto::cron::CronName;
use crate::proto::job::{BootId, JobEnd, JobId, JobStatus, UniqueKey};
use crate::proto::legacy::Circle;
use crate::proto::object::{Context, Field, ObjectType};
use crate::proto::queue::Queue;
use crate::proto::script_use::ScriptName;
use crate::proto::target::{ActorId, ScriptType, Target};

/// Defines the table. A row is `NAME: "type" = "the key behind its prefix" { function(arguments) }`: its constant of Lua,
/// which has the key up to its first argument, or `RUST_ONLY` without one; its type in Redis, where that is checked; and the
/// function of [`Keys`] that spells it.
macro_rules! keys {
    (@function [$($doc:tt)*] $key:literal {}) => {};
    (@function [$($doc:tt)*] $key:literal {
        $name:ident($($argument:ident: $type:ty),*) $(, $part:expr)?
    }) => {
        $($doc)*
        pub fn $name(&self, $($argument: $type),*) -> String {
            self.key(format_args!($key $(, $part)?))
        }
    };
    ($( $(#[doc = $doc:literal])* $lua:ident $(: $of:literal)? = $key:literal $function:tt )+) => {
        /// Each row: its constant of Lua, its key, and its type or nothing.
        pub(super) const KEYS: &[(&str, &str, &str)] =
            &[$((stringify!($lua), $key, concat!($($of)?))),+];

        impl Keys {
            $( keys!(@function [$(#[doc = $doc])*] $key $function); )+
        }
    };
}

keys! {
    /// Hash: the job.
    JOB = "job:{id}" { job(id: &JobId) }
    /// A key that never exists, as `!` is in no id: a cluster's answer to it reports whether a node
    /// has the whole slot of the namespace.
    PROBE = "job:!" { probe() }
    /// List: ids of the jobs that wait in a queue, head first.
    WORK = "q:work:{queue}" { work(queue: &Queue) }
    /// List: control messages for every live actor of the type.
    CONTROL = "q:ctl:type:{script_type}" { control_of_type(script_type: &ScriptType) }
    /// List, TTL 60 s: one reply.
    REPLY = "q:reply:{id}" { reply(id: &JobId) }
    /// List: ids of the jobs that used up their attempts.
    DEAD = "q:dead:type:{script_type}" { dead(script_type: &ScriptType) }
    /// String, TTL 15 s: presence of an actor, JSON.
    PRESENCE = "meta:actor:inst:{actor}" { presence(actor: &ActorId) }
    /// Hash: counters of a script type.
    STATS = "meta:queue:stats:type:{script_type}" { stats(script_type: &ScriptType) }
    /// Hash: the spans of traces that no receiver got, by the service that made them.
    SPANS_DROPPED = "meta:queue:stats:spans_dropped" { spans_dropped() }
    /// Stream, capped, TTL: live log lines of a job.
    LOG = "meta:job:log:{id}" { log(id: &JobId) }
    /// String, TTL: the output of a finished job, if it is too large for the hash.
    OUTPUT = "meta:job:output:{id}" { output(id: &JobId) }
    /// String, a minute: an output that an attempt of a job leaves, until its end is recorded. The time of
    /// the claim names the attempt. No id has a colon.
    RUST_ONLY = "meta:job:output:{id}:{boot}:{claimed_at}" { staged_output(id: &JobId, boot: &BootId, claimed_at: u64) }
    /// List, a minute: the reply with a staged output.
    RUST_ONLY = "meta:job:output:{id}:{boot}:{claimed_at}:reply" { staged_reply(id: &JobId, boot: &BootId, claimed_at: u64) }
    /// Hash, TTL: the files of a job.
    FILES = "meta:job:files:{id}" { files(id: &JobId) }
    /// Sorted set: the contents in the folder of `[artifacts]` with the jobs that name them, `HASH:ID`. No
    /// job has this id.
    RUST_ONLY = "meta:job:files:#contents" { contents() }
    /// Sorted set, the index of `dispatched`: ids that wait in a queue, by dispatch.
    READY = "meta:queue:ready:{queue}" { ready(queue: &Queue) }
    /// Sorted set, the index of `started`: ids that one boot runs, by start.
    RUNNING = "meta:boot:running:{boot}" { running(boot: &BootId) }
    /// Sorted set, the index of every other state: ids by the time that matters to the state
    /// (created: creation; waiting: submission; scheduled: when due; finished and error: expiry;
    /// started by a foreign actor: when to look at it next).
    INDEX = "meta:job:index:{status}:type:{script_type}" { index(status: JobStatus, script_type: &ScriptType) }
    /// Sorted set: ended jobs of a script type, by when they ended.
    RUST_ONLY = "meta:job:index:ended:{end}:type:{script_type}" { ended(end: JobEnd, script_type: &ScriptType) }
    /// Sorted set: scheduled jobs whose scripts wait, by the time when their wait ends anyway.
    RUST_ONLY = "meta:job:index:waits:type:{script_type}" { waits(script_type: &ScriptType) }
    /// Set: names of the queues that may hold jobs.
    QUEUES: "set" = "meta:queue:index" { queues() }
    /// Set: script types that ever had a job or an actor.
    TYPES: "set" = "meta:type:index" { types() }
    /// Hash: the times that jobs of a script type have unless they say, in seconds, by setting and type.
    TYPE_TIMES: "hash" = "meta:type:times" { type_times() }
    /// Sorted set: identities of actors, by their last heartbeat.
    ACTORS: "zset" = "meta:actor:index" { actors() }
    /// Sorted set: actors of foreign programs, by when their presence was last found.
    FOREIGN_ACTORS: "zset" = "meta:actor:foreign" { foreign_actors() }
    /// Sorted set: identities of actors, by when a supervisor last saw them live on a machine.
    ACTORS_SEEN: "zset" = "meta:actor:seen" { actors_seen() }
    /// Hash: the labels of these, JSON.
    ACTOR_LABELS: "hash" = "meta:actor:labels" { actor_labels() }
    /// String, TTL 15 s: presence of a supervisor, JSON.
    SUPERVISOR = "meta:supervisor:inst:{id}" { supervisor(id: &BootId) }
    /// Sorted set: ids of supervisors, by their last heartbeat.
    SUPERVISORS: "zset" = "meta:supervisor:index" { supervisors() }
    /// Sorted set: boot ids, by the end of their lease.
    BOOTS: "zset" = "meta:boot:index" { boots() }
    /// Hash: the machine of each boot; it reports where the attempts of a job ran.
    BOOT_HOSTS: "hash" = "meta:boot:hosts" { boot_hosts() }
    /// String: id of the job that holds a unique key.
    UNIQUE = "meta:job:unique:{key}" { unique(key: &UniqueKey) }
    /// Set: prerequisites of a job that have not finished yet.
    PENDING = "meta:job:pending:{id}" { pending(id: &JobId) }
    /// List: the dependents of a job that do not fit into the field of its hash.
    DEPENDENTS = "meta:job:dependents:{id}" { dependents(id: &JobId) }
    AWAITED: "zset" = "meta:job:awaited" {}
    AWAITING = "meta:job:awaiting:" {}
    /// Sorted set: jobs that stand in no index, and `LIST ID` of ids that were pushed before their hash, by when in µs.
    UNINDEXED: "zset" = "meta:job:unindexed" { unindexed() }
    EXPIRING: "zset" = "meta:job:expiring" {}
    EXPECTED: "zset" = "meta:job:expected" {}
    /// String, TTL: the number of jobs of an atomic batch that are staged so far. Followed by `:`
    /// and a job's id: that staged job.
    STAGED = "meta:job:staged:{whole}" { staged(whole: &JobId) }
    /// String, TTL: the atomic batch that has reserved the id of a job.
    RESERVED = "meta:job:reserved:{id}" { reserved(id: &JobId) }
    /// List: atomic batches that are being committed.
    COMMITTING: "list" = "meta:job:committing" { committing() }
    /// List: ended jobs whose dependents were too many to tell in one step, JSON with those left.
    SETTLING: "list" = "meta:job:settling" { settling() }
    /// List: notes on jobs that ended before any actor had them, as JSON, for a supervisor's log.
    NOTES: "list" = "meta:job:notes" { notes() }
    /// Hash, TTL: a graph or batch.
    GRAPH = "meta:graph:info:{id}" { graph(id: &JobId) }
    /// Sorted set, TTL: the jobs of a graph or batch, by their outcome and place.
    GRAPH_JOBS = "meta:graph:jobs:{id}" { graph_jobs(id: &JobId) }
    /// Sorted set: graphs and batches, by the time of their submission.
    GRAPHS: "zset" = "meta:graph:index" { graphs() }
    /// String, TTL: exists while a graph or batch may have a window.
    WINDOWS = "meta:graph:windows" { graph_windows() }
    /// Hash: throughput of a script type, as last sampled.
    RATE = "meta:queue:rate:type:{script_type}" { rate(script_type: &ScriptType) }
    /// List: the counters of a script type during the last hour, sampled once a minute, oldest first.
    HOUR = "meta:queue:hour:type:{script_type}" { hour(script_type: &ScriptType) }
    /// List: samples of the counters of all types, one a minute of the last hour, JSON.
    SAMPLES: "list" = "meta:queue:samples" { samples() }
    /// List: one of these samples an hour, of the last 30 days.
    HOURS: "list" = "meta:queue:hour:samples" { hours() }
    /// Hash: the marks of the recovery sweeps, per queue and index.
    MARKS: "hash" = "meta:queue:marks" { marks() }
    SLOW: "set" = "meta:queue:slow" {}
    /// Sorted set: keys that scripts found to have the wrong type, by when that was logged; 0 before.
    WRONG_TYPES: "zset" = "meta:key:wrong_types" { wrong_types() }
    /// Hash: the last firing of a periodic job.
    CRON = "meta:cron:{name}" { cron(name: &CronName) }
    /// Hash: the periodic jobs that were added by command, JSON by name; and their revision, under `#`.
    CRON_ADDED = "meta:cron:added:jobs" { cron_added() }
    /// Hash: how the jobs of a periodic job ended, and the time from which it is overdue.
    CRON_ENDED = "meta:cron:ended:{name}" { cron_ended(name: &CronName) }
    /// Sorted set: the names of the periodic jobs that supervisors fire, by the latest note.
    CRON_NAMES = "meta:cron:names:index" { cron_names() }
    /// Hash: the latest version of each published script without its text, JSON by name.
    SCRIPTS = "meta:script:index" { scripts() }
    /// Hash: the versions of a published script that are kept.
    SCRIPT = "meta:script:of:{name}" { script(name: &ScriptName) }
    /// Hash: the records of the tokens of the API, by the SHA-256 of each.
    TOKENS: "hash" = "meta:api:tokens" { tokens() }
    AMQP_ENDED = "meta:amqp:ended:" {}
    /// List: one entry while there is something to answer, for the brokers that wait.
    RUST_ONLY = "meta:amqp:ended:@{scope}" { amqp_bell(scope: &str) }
    /// Hash: when the brokers of each node, or of all (`*`), were asked to end, in microseconds.
    AMQP_SHUTDOWN = "meta:amqp:shutdown:{scope}" { amqp_shutdown(scope: &str) }
    /// Hash: the state of each broker, by `{unit}@{machine}`: the time in microseconds, and JSON.
    AMQP_BROKERS = "meta:amqp:brokers:{scope}" { amqp_brokers(scope: &str) }
    /// Hash: the number of log events that wait in the spool of each unit, by `{unit}@{machine}`.
    RUST_ONLY = "meta:amqp:spool:{scope}" { amqp_spool(scope: &str) }
    /// List: the repeats of a message that are answered with it, JSON. `chain` names all its attempts.
    AMQP_REPEATS = "meta:amqp:repeats:{scope}:{chain}" { amqp_repeats(scope: &str, chain: &str) }
    /// String: the digest of a message that has changed objects, and the results of its changes.
    AMQP_DONE = "meta:amqp:done:{mark}" { amqp_done(mark: &str) }
    /// Stream: records of changes that people and programs make.
    AUDIT = "meta:api:audit" { audit() }
    /// Stream, capped: every transition of every job, with `job.events`.
    EVENTS: "stream" = "meta:job:events" { events() }
    /// Sorted set, all of score 0: contexts that have objects, as key parts.
    OSIS_CONTEXTS: "zset" = "meta:osis:contexts" { object_contexts() }
    /// Hash: how many objects a context has, type by type, and of all types under `%`.
    OSIS_COUNT = "meta:osis:count:{}" { object_counts(context: &Context), context.as_key_part() }
    OSIS_BODY = "meta:osis:body:" {}
    /// Hash: the store's own data about an object, by its id.
    OSIS_HEAD = "meta:osis:head:{}:{of}" { object_heads(context: &Context, of: &ObjectType), context.as_key_part() }
    /// Sorted set, all of score 0: ids of objects.
    OSIS_IDS = "meta:osis:ids:{}:{of}" { object_ids(context: &Context, of: &ObjectType), context.as_key_part() }
    /// Sorted set, all of score 0: entries of the index on a field.
    OSIS_INDEX = "meta:osis:index:{}:{of}:{field}" {
        object_index(context: &Context, of: &ObjectType, field: &Field), context.as_key_part()
    }
    /// Hash: the fields that have an index, each `ready`, or `@` and the last id that is in it.
    OSIS_STATE = "meta:osis:state:{}:{of}" { object_indexes(context: &Context, of: &ObjectType), context.as_key_part() }
    OSIS_UNDECLARED = "meta:osis:undeclared" {}
    /// Stream, capped: events for notifications, written by the scripts that end jobs.
    NOTIFY_EVENTS = "meta:notify:events" { notify_events() }
    /// Hash, TTL: the kinds of events that supervisors want, each with the time until which, in ms since 1970.
    NOTIFY_WANTED = "meta:notify:wanted" { notify_wanted() }
    /// Hash, TTL: the jobs of which the last one failed, by type and name or group, each with its time.
    NOTIFY_FAILING = "meta:notify:failing" { notify_failing() }
    /// Hash: the state of each notification, and how far each shard's events are read.
    NOTIFY_STATE = "meta:notify:state" { notify_state() }
    /// Hash: messages that are not delivered, JSON by id.
    NOTIFY_MESSAGES = "meta:notify:messages" { notify_messages() }
    /// Sorted set: ids of these messages, by when they are due.
    NOTIFY_DUE = "meta:notify:due" { notify_due() }
    /// List: the latest ends of deliveries, JSON, the newest first.
    NOTIFY_RECENT = "meta:notify:recent" { notify_recent() }
    /// Hash: the notifications whose last attempt to deliver failed, JSON by name.
    NOTIFY_TROUBLE = "meta:notify:trouble" { notify_trouble() }
    /// Hash, TTL: the problems of queues and periodic jobs that last, JSON by kind and subject, and when they were
    /// last judged.
    NOTIFY_PROBLEMS = "meta:notify:problems" { notify_problems() }
    /// Set: names of the paused queues.
    PAUSED: "set" = "meta:queue:paused" { paused() }
    /// Hash: the expressions of `where` that jobs of a type have in their queues, by their digests.
    WHERE = "meta:where:{script_type}" { selectors(script_type: &ScriptType) }
    /// Sorted set: the digests of these expressions, by when a job with it last went to its queue.
    WHERE_USED = "meta:where:used:{script_type}" { selectors_used(script_type: &ScriptType) }
    /// List: the token that wakes an actor which waits for jobs of a target, of any priority; one at most.
    WAKE = "meta:wake:{target}" { wake(target: &Target) }
    /// Sorted set, the other index of `dispatched`: ids of a queue that a limit holds back, by
    /// dispatch.
    HELD = "meta:queue:held:{queue}" { held(queue: &Queue) }
    /// Sorted set: limits that hold jobs, by when to look at them next.
    LIMITS: "zset" = "meta:limit:index" { limits() }
    LIMIT_PROBES: "hash" = "meta:limit:probes" {}
    /// Sorted set: jobs that a limit holds, each with its queue, by their dispatch, or their share under a fair limit.
    LIMIT_HELD = "meta:limit:held:{limit}" { limit_held(limit: &str) }
    /// Hash: the shares of those among whom a fair limit shares its slots: see `fair.lua`.
    LIMIT_FAIR = "meta:limit:fair:{limit}" { limit_fair(limit: &str) }
    /// Sorted set: jobs that have a slot in a limit, by their start.
    LIMIT_RUNNING = "meta:limit:running:{limit}" { limit_running(limit: &str) }
    /// Hash, TTL: limits of a configuration as JSON, by the caller or key that they select by.
    LIMIT_RULES = "meta:limit:rules:{digest}" { limit_rules(digest: &str) }
    /// Sorted set, TTL: starts of jobs under a limit within the period of its rate.
    LIMIT_STARTS = "meta:limit:starts:{limit}" { limit_starts(limit: &str) }
    /// List: ids of jobs for one worker of an older program.
    LEGACY_WORK = "work_queue:{worker}" { legacy_queue(worker: &str) }
    LEGACY_STOP = "stop_queue:" {}
    LEGACY_REPLY = "reply:" {}
    /// Hash: the last observation of a legacy queue or a circle.
    SEEN = "meta:legacy:seen:{name}" { seen(name: &str) }
    /// Sorted set: ids of tasks whose details have not appeared yet, by the time they were taken.
    LATE = "meta:legacy:late:{circle}" { late_tasks(circle: &Circle) }
    /// Hash: legacy queues and circles that a supervisor has found, by their keys, with the time in
    /// microseconds. At most 256, each for a day.
    OLDER: "hash" = "meta:queue:older" { older() }
}
