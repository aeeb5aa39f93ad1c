//! `hero status` as tables that fit 80 columns.

use std::cmp::Reverse;
use std::fmt::Write;

use jiff::Timestamp;

use super::super::queue::paused;
use super::super::table::{self, TextTable, without_middle};
use super::super::terminal_style::TerminalStyle;
use super::super::time::{age, brief};
use crate::proto::text::counted;
use crate::store::{LastHour, QueueState, TypeState};
use crate::view::health::lacks_actor;
use crate::view::{Snapshot, start_of};

/// Queues that are shown; the others are counted.
const QUEUES_SHOWN: usize = 20;
/// The width of the longest names in each table.
const NAME_WIDTH: usize = 16;
const QUEUE_WIDTH: usize = 36;

/// The whole state as text; what is wrong stands after the pauses.
pub(super) fn of(snapshot: &Snapshot, wrong: String, look: TerminalStyle) -> String {
    // The rules that pause queues: nobody should look for another reason why jobs wait.
    let pauses = paused(&snapshot.pauses);
    let mut parts = vec![pauses, wrong, redis(snapshot), supervisors(snapshot, look)];
    parts.push(if snapshot.actor_counts.is_empty() && snapshot.refuses_writes() {
        "no live actor is known: while redis refuses writes, all look absent\n".to_owned()
    } else if snapshot.actor_counts.is_empty() {
        let has_jobs = |(state, _): &&(QueueState, u64)| state.depth > 0;
        let queue = snapshot.queues.iter().find(has_jobs);
        let unit = queue.map(|(state, _)| state.queue.target.first_unit());
        let unit = unit.unwrap_or_else(|| "osis-default-1".to_owned());
        format!("no live actor; start one: {}\n", start_of(&unit))
    } else {
        actors(snapshot, look)
    });
    parts.extend([queues(snapshot, look), types(snapshot, look)]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn redis(snapshot: &Snapshot) -> String {
    let redis = &snapshot.redis;
    let version = redis.version.as_deref().unwrap_or("unknown");
    let role = redis.role.as_deref().unwrap_or("unknown");
    let replicas = counted(redis.replicas, "replica", "replicas");
    let mut text = format!("redis   {}\n", snapshot.address);
    let _ = writeln!(text, "        version {version}, {role}, {replicas}");
    let _ = writeln!(text, "memory  {}", redis.memory());
    let _ = writeln!(text, "keeps   {}", redis.keeps());
    for danger in redis.dangers() {
        text.push_str(&wrapped("danger", &danger));
    }
    text.push_str(&shards(snapshot));
    text
}

/// One line: the number of shards, and the servers beside the first.
fn shards(snapshot: &Snapshot) -> String {
    let number = snapshot.shards.len();
    if number == 0 {
        return String::new();
    }
    let servers = snapshot.servers();
    let mut text =
        format!("shards  {number}, on {}\n", counted(servers.len() as u64, "server", "servers"));
    for (shard, redis) in servers.into_iter().filter_map(|(shard, redis)| Some((shard?, redis))) {
        let line = format!("{}, keeps {}", redis.memory(), redis.keeps());
        text.push_str(&wrapped(&format!("shard {shard}"), &line));
    }
    text
}

fn supervisors(snapshot: &Snapshot, look: TerminalStyle) -> String {
    if snapshot.supervisors.is_empty() && snapshot.refuses_writes() {
        return "supervisors are not known: none can renew its presence while redis refuses writes\n"
            .to_owned();
    }
    if snapshot.supervisors.is_empty() {
        let start = start_of("supervisor");
        return format!(
            "no live supervisor: schedules, retries and recovery wait;\nstart one: {start}\n"
        );
    }
    let ago = |time: &str| {
        time.parse::<Timestamp>()
            .map(|time| age(time.min(snapshot.at), snapshot.at))
            .unwrap_or_default()
    };
    let is_ok = |redis: &str| redis == "ok";
    let table = TextTable::of(&snapshot.supervisors)
        .column("SUPERVISOR", &|of| fitted(&of.unit, NAME_WIDTH))
        .column("HOST", &|of| fitted(&of.hostname, NAME_WIDTH))
        .column(">PID", &|of| of.pid.to_string())
        .column(">UP", &|of| ago(&of.started_at))
        .column(">SEEN", &|of| ago(&of.last_heartbeat))
        .column("*REDIS", &|of| if is_ok(&of.redis) { "ok" } else { "failing" }.to_owned())
        .column("VERSION", &|of| fitted(&of.version, NAME_WIDTH));
    let failing = snapshot.supervisors.iter().filter(|of| !is_ok(&of.redis));
    failing.fold(table.show(look), |text, of| text + wrapped(&of.unit, &of.redis).as_str())
}

fn actors(snapshot: &Snapshot, look: TerminalStyle) -> String {
    let counts: Vec<_> = snapshot.actor_counts.iter().collect();
    TextTable::of(&counts)
        .column("ACTORS OF TYPE", &|(of, _)| fitted(of.as_str(), NAME_WIDTH))
        .column(">LIVE", &|(_, count)| count.live.to_string())
        .column(">READY", &|(_, count)| count.ready.to_string())
        .column(">DRAINING", &|(_, count)| count.draining.to_string())
        .column(">HOLDING", &|(_, count)| count.holding.to_string())
        .column(">RUNNING", &|(_, count)| count.running.to_string())
        .column(">TASKS", &|(_, count)| count.tasks.to_string())
        .show(look)
}

fn queues(snapshot: &Snapshot, look: TerminalStyle) -> String {
    let mut shown: Vec<&(QueueState, u64)> = snapshot.queues.iter().collect();
    if shown.is_empty() {
        return String::new();
    }
    // Trouble first: jobs without an actor, then the longest wait.
    let is_served = |of: &(QueueState, u64)| !lacks_actor(&of.0, of.1);
    shown.sort_by_key(|of| (is_served(of), Reverse(of.0.oldest_wait)));
    let table = TextTable::of(&shown[..shown.len().min(QUEUES_SHOWN)])
        .column("QUEUE", &|(state, _)| fitted(&state.queue.to_string(), QUEUE_WIDTH))
        .column(">DEPTH", &|(state, _)| state.depth.to_string())
        .column(">HELD", &|(state, _)| state.held.to_string())
        .column(">WAIT", &|(state, _)| state.oldest_wait.map(brief).unwrap_or_default())
        .column(">ACTORS", &|(_, actors)| actors.to_string())
        .column("*STATE", &|(state, _)| if state.paused { "paused" } else { "open" }.to_owned());
    let more = shown.len().saturating_sub(QUEUES_SHOWN);
    let more = match more {
        0 => String::new(),
        more => {
            format!("and {}: hero queue list\n", counted(more as u64, "more queue", "more queues"))
        }
    };
    table.show(look) + more.as_str()
}

fn types(snapshot: &Snapshot, look: TerminalStyle) -> String {
    if snapshot.types.is_empty() {
        return String::new();
    }
    let hour = |of: &TypeState, number: fn(&LastHour) -> u64| {
        of.hour.map(|hour| number(&hour).to_string()).unwrap_or_default()
    };
    TextTable::of(&snapshot.types)
        .column("JOBS OF TYPE", &|of| fitted(of.script_type.as_str(), NAME_WIDTH))
        .column(">AFTER", &|of| of.waiting.to_string())
        .column(">SCHEDULED", &|of| of.scheduled.to_string())
        .column(">DUE", &|of| of.due.to_string())
        .column(">HELD", &|of| snapshot.held(&of.script_type).to_string())
        .column(">DONE/H", &|of| hour(of, |hour| hour.finished))
        .column(">FAILED/H", &|of| hour(of, |hour| hour.failed))
        .column(">DEAD/H", &|of| hour(of, |hour| hour.dead))
        .show(look)
}

/// Returns a text of at most this width; a longer one loses its middle.
fn fitted(text: &str, width: usize) -> String {
    without_middle(text, width, width / 2, "…")
}

/// Breaks a long text into lines of at most 80 columns, after a word.
pub(super) fn wrapped(first: &str, text: &str) -> String {
    table::wrapped(&format!("{first}: {text}"), 80, &" ".repeat(8)).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::snapshot::tests::healthy_snapshot;

    #[test]
    fn state_is_plain_tables() {
        let at = "2026-01-31T13:00:02Z".parse().expect("a time");
        let mut snapshot = Snapshot { at, ..healthy_snapshot() };
        "0.1.0".clone_into(&mut snapshot.supervisors[0].version);
        assert_eq!(
            of(&snapshot, String::new(), TerminalStyle::PLAIN),
            "redis   redis://127.0.0.1:6379/0\n        \
             version 7.0.15, master, 0 replicas\n\
             memory  3.0 MiB in use, maxmemory 100.0 MiB, noeviction\n\
             keeps   every write, except the last second (appendonly yes)\n\
             \n\
             SUPERVISOR  HOST  PID     UP  SEEN  REDIS  VERSION\n\
             supervisor  one     7  1h00m    2s  ok     0.1.0\n\
             \n\
             ACTORS OF TYPE  LIVE  READY  DRAINING  HOLDING  RUNNING  TASKS\n\
             osis               2      2         0        0        1      8\n\
             \n\
             QUEUE      DEPTH  HELD   WAIT  ACTORS  STATE\n\
             type:osis      3     0  2.00s       2  open\n\
             \n\
             JOBS OF TYPE  AFTER  SCHEDULED  DUE  HELD  DONE/H  FAILED/H  DEAD/H\n\
             osis              1          4    1     0       -         -       -\n"
        );
    }

    #[test]
    fn pause_by_a_rule_stands_first() {
        let snapshot = Snapshot { pauses: vec!["*".parse().expect("legal")], ..healthy_snapshot() };
        let text = of(&snapshot, String::new(), TerminalStyle::PLAIN);
        assert!(
            text.starts_with("PAUSED  all queues: hero queue resume --all\n\nredis "),
            "{text}"
        );
    }

    #[test]
    fn long_names_large_numbers_and_dangers_fit_80_columns() {
        let mut snapshot = healthy_snapshot();
        snapshot.redis.appends = Some(false);
        snapshot.redis.memory_max_bytes = 0;
        snapshot.supervisors[0].hostname = "a-host-with-a-very-long-name.example.org".to_owned();
        snapshot.supervisors[0].unit = "a-unit-with-a-very-long-name-of-its-own".to_owned();
        snapshot.supervisors[0].pid = 4_194_304;
        snapshot.supervisors[0].redis = "sampling statistics: no ".repeat(10);
        let name = format!("type:{}:group:{}:inst:7:prio:2", "t".repeat(30), "g".repeat(30));
        snapshot.queues[0].0.queue = name.parse().expect("legal");
        snapshot.queues[0].0.depth = 1_000_000;
        snapshot.queues[0].0.held = 100_000;
        snapshot.types[0].scheduled = 1_000_000;
        snapshot.types[0].hour = Some(crate::store::LastHour {
            finished: 10_000_000,
            failed: 1_000_000,
            dead: 10_000,
            since: std::time::Duration::from_hours(1),
        });
        let first = snapshot.queues[0].clone();
        snapshot.queues.extend(std::iter::repeat_n(first, 30));
        let text = of(&snapshot, String::new(), TerminalStyle::PLAIN);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("and 11 more queues: hero queue list"), "{text}");
        assert!(text.contains("type:ttttttttttttt…"), "{text}");
    }

    #[test]
    fn missing_supervisor_and_actors_are_said_with_what_to_do() {
        let mut snapshot = healthy_snapshot();
        snapshot.supervisors.clear();
        snapshot.actor_counts.clear();
        let text = of(&snapshot, String::new(), TerminalStyle::PLAIN);
        assert!(text.contains(&format!("start one: {}\n", start_of("supervisor"))), "{text}");
        assert!(text.contains("no live actor"), "{text}");
    }
}
