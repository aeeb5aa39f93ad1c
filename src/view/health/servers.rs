//! Redis: its place, what it keeps, its memory, foreign keys; and the clocks of machines beside its own.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Found, HealthRules, ProblemKind, Severity, Subject, reached};
use crate::proto::text::{counted, shown};
use crate::proto::units::brief;
use crate::store::{EmptiedRedis, RedisState, RiskKind};
use crate::view::Snapshot;

/// The oldest Redis that Hero works with.
const OLDEST_REDIS: (u32, u32) = (6, 2);
/// A clock that differs by more is a problem.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(2);
/// A live daemon renews its presence far more often; if a presence is older by its clock, that clock is slow.
const PRESENCE_AGE_MAX: Duration = Duration::from_mins(1);

pub(super) fn all(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    for (shard, redis) in snapshot.servers() {
        server(&Subject::Redis(shard), redis, rules, found);
    }
}

fn server(subject: &Subject, redis: &RedisState, rules: &HealthRules, found: &mut Found) {
    let mut add = |of, what: &str, remedy: &str| {
        found.add(of, subject.clone(), format!("{subject} {what}"), remedy);
    };
    if redis.version.is_none() {
        let what = "does not tell its version and settings: its user may not call INFO";
        let of = (ProblemKind::RedisUnknown, Severity::Note);
        add(of, what, "allow +info in its access control list");
    }
    if let Some(version) = redis.version.as_deref().filter(|version| is_old(version)) {
        let (major, minor) = OLDEST_REDIS;
        let what = format!("is version {version}; hero needs {major}.{minor} or later");
        add((ProblemKind::RedisOld, Severity::Critical), &what, "upgrade it");
    }
    if redis.role.as_deref() == Some("slave") {
        let of = (ProblemKind::RedisReplica, Severity::Critical);
        add(of, "is a replica, and refuses writes", "let redis.url name the primary");
    }
    for risk in redis.risks() {
        let of = match risk.kind {
            RiskKind::CannotAppend => (ProblemKind::RedisCannotAppend, Severity::Critical),
            RiskKind::CannotSave => (ProblemKind::RedisCannotSave, Severity::Warning),
            RiskKind::RefusesWrites => (ProblemKind::RedisRefusesWrites, Severity::Critical),
            RiskKind::NamedAlone => (ProblemKind::RedisNamedAlone, Severity::Warning),
            RiskKind::Forgets if rules.check.durable => {
                (ProblemKind::RedisForgets, Severity::Warning)
            }
            RiskKind::Forgets => continue,
        };
        add(of, &risk.text, &risk.remedy);
    }
    let check = &rules.check;
    let used = redis.memory_percent();
    if let Some((severity, from)) = reached(used, check.memory_warning, check.memory_critical) {
        add(
            (ProblemKind::RedisMemory, severity),
            &format!("uses {used} % of its maxmemory (threshold {from} %)"),
            "give it more memory (maxmemory), or keep ended jobs for a shorter time (job.retention)",
        );
    }
}

fn is_old(version: &str) -> bool {
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    parts.next().zip(parts.next()).is_some_and(|known| known < OLDEST_REDIS)
}

pub(super) fn emptied(snapshot: &Snapshot, found: &mut Found) {
    let Some(EmptiedRedis { at, jobs, restarted }) = &snapshot.emptied else { return };
    let (how, why) = if *restarted {
        ("was restarted without its data", "see what it keeps: hero doctor")
    } else {
        ("was emptied", "FLUSHALL or FLUSHDB, or its keys were deleted")
    };
    let jobs = counted(*jobs, "job was known", "jobs were known");
    found.add(
        (ProblemKind::RedisEmptied, Severity::Critical),
        Subject::Redis(None),
        format!("redis {how} at {at:.0}, {jobs}: {why}"),
        "restore a backup: hero restore FILE; programs must submit all later jobs again. This is told for a \
         day",
    );
}

/// Keys that another program uses.
pub(super) fn keys(snapshot: &Snapshot, found: &mut Found) {
    for wrong in &snapshot.wrong_types {
        found.add(
            (ProblemKind::WrongType, Severity::Critical),
            Subject::Redis(None),
            wrong.clone(),
            "another program uses this key: give Hero a namespace of its own (redis.namespace), or rename \
             that key",
        );
    }
}

/// Lists that programs pushed to and nobody serves.
pub(super) fn lists(snapshot: &Snapshot, found: &mut Found) {
    const SHOWN_MAX: usize = 5;
    if snapshot.unserved.is_empty() {
        return;
    }
    let some = snapshot.unserved.iter().take(SHOWN_MAX).map(|(list, length)| match length {
        Some(length) => format!("{} ({length})", shown(list)),
        None => shown(list),
    });
    let some = some.collect::<Vec<_>>().join(", ");
    let lists = counted(snapshot.unserved.len() as u64, "list", "lists");
    let more = if snapshot.unserved.len() > SHOWN_MAX { ", …" } else { "" };
    found.add(
        (ProblemKind::ListUnserved, Severity::Warning),
        Subject::Queues,
        format!("programs pushed to {lists} that nobody serves: {some}{more}"),
        "no queue has such a name: see the names in hero(7); for the queue of an older worker set \
         supervisor.legacy_queues",
    );
}

/// Ids that programs pushed, and whose hashes are not there.
pub(super) fn ids_without_hash(snapshot: &Snapshot, found: &mut Found) {
    let Some((list, id)) = snapshot.ids_without_hash.first() else { return };
    let number = snapshot.ids_without_hash.len() as u64;
    found.add(
        (ProblemKind::IdsWithoutHash, Severity::Warning),
        Subject::Queues,
        format!(
            "programs pushed {} within the last minute: {} to {}",
            counted(number, "id without a job", "ids without jobs"),
            shown(id),
            shown(list)
        ),
        "let them write the hash of a job before they push its id; an id whose hash comes within a minute is pushed again",
    );
}

/// The clocks of this machine and of each machine with a daemon, by the times of their heartbeats.
pub(super) fn clocks(snapshot: &Snapshot, found: &mut Found) {
    const REMEDY: &str = "jobs are due by redis's clock: set both by NTP, see timedatectl status";
    let differs = (ProblemKind::ClockDiffers, Severity::Warning);
    let difference = snapshot.clock_difference;
    if difference > CLOCK_DIFFERENCE_MAX {
        let difference = brief(difference);
        let text = format!("the clocks of this machine and of redis differ by {difference}");
        found.add(differs, Subject::Machine(None), text, REMEDY);
    }
    for (host, difference) in clocks_of_machines(snapshot) {
        let difference = brief(difference);
        let text = format!("the clocks of {host} and of redis differ by {difference} or more");
        found.add(differs, Subject::Machine(Some(host.to_owned())), text, REMEDY);
    }
}

/// The longest step of Redis's clock that a supervisor has noticed within the last hour.
pub(super) fn clock_steps(snapshot: &Snapshot, found: &mut Found) {
    let steps = snapshot.supervisors.iter().filter_map(|of| of.clock_step.as_ref());
    let Some(step) = steps.max_by_key(|step| step.seconds.unsigned_abs()) else { return };
    let severity = if step.is_long() { Severity::Critical } else { Severity::Warning };
    found.add(
        (ProblemKind::ClockStepped, severity),
        Subject::Redis(None),
        format!("{} at {}", step.text(""), step.at),
        "scheduled jobs, retries, expiries and retention are early or late by as much: let NTP keep the time of \
         its machine. This is told for an hour",
    );
}

/// The machines whose clocks differ, each with the least difference that its heartbeats prove.
fn clocks_of_machines(snapshot: &Snapshot) -> BTreeMap<&str, Duration> {
    let supervisors =
        snapshot.supervisors.iter().map(|of| (of.hostname.as_str(), of.last_heartbeat.as_str()));
    // A foreign program may tell any time.
    let actors = snapshot.actors.iter().map(|of| &of.presence).filter(|of| of.boot_id.is_some());
    let actors = actors.map(|of| (of.hostname.as_str(), of.last_heartbeat.as_str()));
    let mut differing: BTreeMap<&str, Duration> = BTreeMap::new();
    for (host, beat) in supervisors.chain(actors) {
        let Ok(beat) = beat.parse::<Timestamp>() else { continue };
        let age = snapshot.at.duration_since(beat);
        let difference = match Duration::try_from(age) {
            Ok(age) => age.saturating_sub(PRESENCE_AGE_MAX),
            Err(_) => age.unsigned_abs(),
        };
        if difference > CLOCK_DIFFERENCE_MAX {
            let known = differing.entry(host).or_default();
            *known = difference.max(*known);
        }
    }
    differing
}
