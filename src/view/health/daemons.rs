//! Supervisors and actors: too few, failing, holding, of other versions.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Found, HealthRules, ProblemKind, Severity, Subject};
use crate::proto::labels::label;
use crate::proto::message::{Presence, RECOVERING};
use crate::proto::target::ActorId;
use crate::proto::text::counted;
use crate::proto::units::brief;
use crate::store::PresenceOf;
use crate::view::{ActorCount, Snapshot, start_of};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Too few supervisors, and each that says that something fails.
pub(super) fn supervisors(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let (live, least) = (snapshot.supervisors.len() as u64, rules.check.supervisors_min);
    if live < least && !snapshot.refuses_writes() {
        let live = counted(live, "live supervisor", "live supervisors");
        let remedy = format!(
            "nothing recovers jobs or fires schedules without one; run on one machine or more: {}",
            start_of("supervisor")
        );
        found.add(
            (ProblemKind::FewSupervisors, Severity::Critical),
            Subject::Supervisors,
            format!("{live} (threshold {least})"),
            remedy,
        );
    }
    for of in snapshot.supervisors.iter().filter(|of| of.redis != "ok") {
        let (severity, effect) = if of.redis.starts_with(RECOVERING) {
            (Severity::Critical, "; until it can, they stay started")
        } else {
            (Severity::Warning, "")
        };
        found.add(
            (ProblemKind::SupervisorFails, severity),
            Subject::Supervisor(of.unit.clone(), of.hostname.clone()),
            format!("supervisor {} on {} fails: {}{effect}", of.unit, of.hostname, of.redis),
            format!("see its log on {}: journalctl -u hero@{}", of.hostname, of.unit),
        );
    }
}

/// Periodic jobs that are not in force as their files have them, or that name or are named by what does not exist, for
/// each supervisor.
pub(super) fn periodic_jobs(snapshot: &Snapshot, found: &mut Found) {
    let named = |texts: &[String]| {
        let name = texts.first()?.split(':').next().unwrap_or_default().to_owned();
        Some((name, texts.join("; ")))
    };
    for of in &snapshot.supervisors {
        let Some(cron) = &of.cron else { continue };
        let (unit, host) = (&of.unit, &of.hostname);
        let mut add = |kind, text: String, remedy: String| {
            let subject = Subject::Supervisor(unit.clone(), host.clone());
            found.add((kind, Severity::Warning), subject, text, remedy);
        };
        if !cron.changed.is_empty() {
            let files = cron.changed.join(", ");
            let text = format!("periodic jobs changed on disk, not in force on {host}: {files}");
            let remedy = format!("reload the supervisor on {host}: systemctl reload hero@{unit}");
            add(ProblemKind::CronChanged, text, remedy);
        }
        if !cron.refused.is_empty() {
            let mistakes = cron.refused.join("; ");
            let text =
                format!("periodic jobs that supervisor {unit} on {host} does not fire: {mistakes}");
            let remedy = "mend the file, test it with hero check, and reload the supervisor";
            add(ProblemKind::CronRefused, text, remedy.to_owned());
        }
        // They name notifications that the supervisor does not have.
        if let Some((job, unheard)) = named(&cron.unheard) {
            let text = format!(
                "nobody is told of periodic jobs: supervisor {unit} on {host} has no such notification: {unheard}"
            );
            let remedy = format!(
                "add the table [notify.NAME] to hero.toml on {host} and reload the supervisor, or name another one: \
                 hero cron show {job}"
            );
            add(ProblemKind::CronUnheard, text, remedy);
        }
        if let Some((name, unknown)) = named(&cron.unknown) {
            let text = format!(
                "notifications of supervisor {unit} on {host} name periodic jobs that do not exist: {unknown}"
            );
            let remedy = format!(
                "correct `crons` of [notify.{name}] in hero.toml on {host} and reload the supervisor; the names: hero cron list"
            );
            add(ProblemKind::CronUnknown, text, remedy);
        }
    }
}

/// Actors whose process before was killed for lack of memory within the last hour.
pub(super) fn oom_kills(snapshot: &Snapshot, found: &mut Found) {
    const TOLD: SignedDuration = SignedDuration::from_hours(1);
    let recent = |of: &&PresenceOf| {
        let at = of.presence.after_oom_kill.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
        at.is_some_and(|at| snapshot.at.duration_since(at) < TOLD)
    };
    let mut killed = snapshot.actors.iter().filter(recent);
    let Some(PresenceOf { actor, presence }) = killed.next() else { return };
    let others = match killed.count() {
        0 => String::new(),
        number => format!(", and {} in the last hour", counted(number as u64, "other", "others")),
    };
    let at = presence.after_oom_kill.as_deref().unwrap_or_default();
    found.add(
        (ProblemKind::ActorOomKilled, Severity::Warning),
        Subject::Actors(Some(actor.script_type.clone())),
        format!(
            "actor {actor} on {} was killed as memory ran out, before {at}{others}",
            presence.hostname
        ),
        "raise MemoryMax= of its unit, or lower `tasks`, or `memory` and `job_memory` of the sandbox: hero check UNIT",
    );
}

/// Actors that hang, were killed, or are on machines that are away. While Redis refuses writes, none can renew its presence.
pub(super) fn silent(snapshot: &Snapshot, found: &mut Found) {
    let Some((actor, at)) = snapshot.silent_actors.first() else { return };
    if snapshot.refuses_writes() {
        return;
    }
    let others = match snapshot.silent_actors.len() - 1 {
        0 => String::new(),
        number => format!(", and so have {}", counted(number as u64, "other", "others")),
    };
    found.add(
        (ProblemKind::ActorSilent, Severity::Note),
        Subject::Actors(Some(actor.script_type.clone())),
        format!("{}{others}", silence(snapshot, actor, *at)),
        silence_remedy(actor),
    );
}

/// Returns the words for the time since the last heartbeat of an actor.
pub(super) fn silence(snapshot: &Snapshot, actor: &ActorId, at: Timestamp) -> String {
    let silent = Duration::try_from(snapshot.at.duration_since(at)).unwrap_or_default();
    format!("actor {actor} has had no heartbeat for {} and has not shut down", brief(silent))
}

/// Returns what gives an actor its heartbeat again.
pub(super) fn silence_remedy(actor: &ActorId) -> String {
    let unit = actor.unit();
    format!(
        "it hangs, was killed, or its machine is away: end its process if it is there, then {}",
        start_of(&unit)
    )
}

/// Folders of jobs that actors could not remove: they fill the disk or the memory that they are in.
pub(super) fn folders_left(snapshot: &Snapshot, found: &mut Found) {
    let of_process = |of: &&PresenceOf| of.presence.folders_left > 0;
    // Actors of one process count the same folders.
    let mut processes: Vec<&PresenceOf> = snapshot.actors.iter().filter(of_process).collect();
    processes.sort_by_key(|of| (&of.presence.hostname, of.presence.pid));
    processes.dedup_by_key(|of| (&of.presence.hostname, of.presence.pid));
    let Some(PresenceOf { actor, presence }) = processes.first() else { return };
    let number: u64 = processes.iter().map(|of| of.presence.folders_left).sum();
    found.add(
        (ProblemKind::FoldersLeft, Severity::Warning),
        Subject::Actors(Some(actor.script_type.clone())),
        format!(
            "{} of jobs could not be removed, by actor {actor} on {} among others; each minute they are tried again",
            counted(number, "folder", "folders"),
            presence.hostname
        ),
        "the log of the actor names each folder and the reason, `cannot remove`: remove it, or what keeps it",
    );
}

/// Machines that one label `machine` stands for: a job for one of them may run on the other.
pub(super) fn clones(snapshot: &Snapshot, found: &mut Found) {
    let mut machines: BTreeMap<&str, Vec<&Presence>> = BTreeMap::new();
    for PresenceOf { presence, .. } in &snapshot.actors {
        if let Some(machine) = label(&presence.labels, "machine") {
            let sightings = machines.entry(machine.as_str()).or_default();
            if sightings.iter().all(|of| of.is_elsewhere(presence)) {
                sightings.push(presence);
            }
        }
    }
    for (machine, sightings) in machines.into_iter().filter(|(_, of)| of.len() > 1) {
        let sightings: Vec<String> = sightings.into_iter().map(Presence::sighting).collect();
        found.add(
            (ProblemKind::MachineClones, Severity::Warning),
            Subject::Actors(None),
            format!("{} have one machine id: the label machine = \"{machine}\" stands for all of them", sightings.join(" and ")),
            "give each clone an id of its own, rm /etc/machine-id && systemd-machine-id-setup, and restart its units",
        );
    }
}

/// Actors that claim no jobs. If others of their type do, that is worth a note.
pub(super) fn holding(snapshot: &Snapshot, found: &mut Found) {
    for (script_type, of) in &snapshot.actor_counts {
        let ActorCount { ready, holding, .. } = *of;
        if holding == 0 {
            continue;
        }
        let (severity, who) = if holding < ready {
            (Severity::Note, format!("{holding} of {}", counted(ready, "actor", "actors")))
        } else {
            (Severity::Warning, counted(ready, "actor", "actors"))
        };
        let (claim, machines) = match holding {
            1 => ("claims", "its machine is"),
            _ => ("claim", "their machines are"),
        };
        let text = match (severity, holding) {
            (Severity::Warning, 2..) => format!("all {who}"),
            _ => who,
        };
        let reasons = snapshot.actors.iter().filter(|of| of.actor.script_type == *script_type);
        let mut reasons =
            reasons.filter_map(|of| Some((of.actor.clone(), of.presence.holding.clone()?)));
        let first = reasons.next().map(|(actor, why)| format!(" ({actor}: {why})"));
        found.add(
            (ProblemKind::ActorsHold, severity),
            Subject::Actors(Some(script_type.clone())),
            format!(
                "{text} of type {script_type} {claim} no jobs, as {machines} overloaded or full{}",
                first.unwrap_or_default()
            ),
            "see which and why: hero actor list",
        );
    }
}

/// Daemons of other versions than this program's.
pub(super) fn versions(snapshot: &Snapshot, found: &mut Found) {
    let supervisors =
        snapshot.supervisors.iter().map(|of| (of.version.as_str(), of.unit.clone(), &of.hostname));
    let actors = snapshot
        .actors
        .iter()
        .map(|of| (of.presence.version.as_str(), of.actor.unit(), &of.presence.hostname));
    let others: Vec<String> = supervisors
        .chain(actors)
        .filter(|(version, ..)| !version.is_empty() && *version != VERSION)
        .map(|(version, unit, host)| format!("{unit} on {host}: {version}"))
        .collect();
    let Some(first) = others.first() else { return };
    let number = counted(others.len() as u64, "daemon has", "daemons have");
    found.add(
        (ProblemKind::VersionsDiffer, Severity::Note),
        Subject::Actors(None),
        format!("{number} another version than this program's {VERSION}: {first}"),
        "upgrade the package there; units restart by themselves then",
    );
}
