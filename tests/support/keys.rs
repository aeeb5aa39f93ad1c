//! The keys of Redis, as the crate spells them: a key with a new name changes no test.
//!
//! Keys stay literal in tests/foreign/, tests/osis/ and tests/e2e/protocol.rs: there they are the
//! contract with programs that are not ours.

use std::fmt::Debug;
use std::str::FromStr;

use hero::proto::job::JobEnd;
use hero::proto::keys::Keys;
use hero::proto::shard::ShardCount;

/// The keys of the default namespace.
pub(crate) fn keys() -> Keys {
    Keys::default()
}

/// The keys of each of so many shards.
pub(crate) fn of_shards(number: u16) -> Vec<Keys> {
    let (home, count) = (keys(), ShardCount::new(number).expect("a legal number"));
    count.shards().map(|shard| Keys::new(shard.namespace(home.namespace()))).collect()
}

/// The hash of a job.
#[track_caller]
pub(crate) fn job(id: &str) -> String {
    keys().job(&parsed(id))
}

/// The set of paused queues.
pub(crate) fn paused() -> String {
    keys().paused()
}

/// The set of script types.
pub(crate) fn types() -> String {
    keys().types()
}

/// The sorted set of supervisors.
pub(crate) fn supervisors() -> String {
    keys().supervisors()
}

/// The index of the jobs of a type that ended so.
#[track_caller]
pub(crate) fn ended(end: JobEnd, script_type: &str) -> String {
    keys().ended(end, &parsed(script_type))
}

/// The list of a queue: `type:osis`, `type:osis:group:io:prio:0`.
#[track_caller]
pub(crate) fn work(queue: &str) -> String {
    keys().work(&parsed(queue))
}

/// The index of the jobs that wait in a queue.
#[track_caller]
pub(crate) fn ready(queue: &str) -> String {
    keys().ready(&parsed(queue))
}

/// The index of the jobs that a limit holds back from a queue.
#[track_caller]
pub(crate) fn held(queue: &str) -> String {
    keys().held(&parsed(queue))
}

/// The index of the jobs of a type in another state.
#[track_caller]
pub(crate) fn index(status: &str, script_type: &str) -> String {
    keys().index(parsed(status), &parsed(script_type))
}

/// The control list of an actor: `osis:default:1`.
#[track_caller]
pub(crate) fn control(actor: &str) -> String {
    keys().control(&parsed(actor))
}

/// The control list of all actors of a type.
#[track_caller]
pub(crate) fn control_of_type(script_type: &str) -> String {
    keys().control_of_type(&parsed(script_type))
}

/// The presence of an actor: `osis:default:1`.
#[track_caller]
pub(crate) fn presence(actor: &str) -> String {
    keys().presence(&parsed(actor))
}

/// The index of the jobs that a boot runs.
#[track_caller]
pub(crate) fn running(boot: &str) -> String {
    keys().running(&parsed(boot))
}

/// The list of the replies to one message or for one job.
#[track_caller]
pub(crate) fn reply(id: &str) -> String {
    keys().reply(&parsed(id))
}

/// The dead letters of a type.
#[track_caller]
pub(crate) fn dead(script_type: &str) -> String {
    keys().dead(&parsed(script_type))
}

/// The counters of a type.
#[track_caller]
pub(crate) fn stats(script_type: &str) -> String {
    keys().stats(&parsed(script_type))
}

/// The throughput of a type.
#[track_caller]
pub(crate) fn rate(script_type: &str) -> String {
    keys().rate(&parsed(script_type))
}

/// The samples of a type's counters during the last hour.
#[track_caller]
pub(crate) fn hour(script_type: &str) -> String {
    keys().hour(&parsed(script_type))
}

/// The files of a job.
#[track_caller]
pub(crate) fn files(id: &str) -> String {
    keys().files(&parsed(id))
}

/// The log of a job.
#[track_caller]
pub(crate) fn log(id: &str) -> String {
    keys().log(&parsed(id))
}

/// The prerequisites of a job that have not finished.
#[track_caller]
pub(crate) fn pending(id: &str) -> String {
    keys().pending(&parsed(id))
}

/// The tokens of the API.
pub(crate) fn tokens() -> String {
    keys().tokens()
}

/// The last firing of a periodic job.
#[track_caller]
pub(crate) fn cron(name: &str) -> String {
    keys().cron(&parsed(name))
}

/// The limits, by the time of the next look at them.
pub(crate) fn limits() -> String {
    prefix("LIMITS")
}

/// The starts that a limit counts.
pub(crate) fn limit_starts(limit: &str) -> String {
    prefix("LIMIT_STARTS") + limit
}

/// The start of all keys of a kind. A kind has the name of its constant in the Lua scripts.
#[track_caller]
pub(crate) fn prefix(kind: &str) -> String {
    prefix_in(&keys(), kind)
}

/// The same in another namespace.
#[track_caller]
pub(crate) fn prefix_in(keys: &Keys, kind: &str) -> String {
    let found = kinds(keys).into_iter().find(|(name, _)| name == kind);
    found.unwrap_or_else(|| panic!("the Lua scripts have no constant {kind}")).1
}

/// The kinds of keys, each with the start of its keys.
pub(crate) fn kinds(keys: &Keys) -> Vec<(String, String)> {
    let constant = |line: &str| {
        let (name, prefix) = line.strip_prefix("local ")?.split_once(" = '")?;
        // The only setting among them.
        if name == "REPLY_FORMAT" {
            return None;
        }
        Some((name.to_owned(), prefix.strip_suffix('\'')?.to_owned()))
    };
    keys.lua().lines().filter_map(constant).collect()
}

#[track_caller]
fn parsed<T: FromStr<Err: Debug>>(name: &str) -> T {
    name.parse().unwrap_or_else(|error| panic!("a key has no `{name}` in it: {error:?}"))
}
