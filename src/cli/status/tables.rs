//! `hero status` as tables that fit 80 columns.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;

use super::super::queue::paused;
use super::super::table::{self, TextTable, without_middle};
use super::super::terminal_style::TerminalStyle;
use super::super::time::{age, brief};
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::text::counted;
use crate::store::LastHour;
use crate::view::{JobsOfType, ServedQueue, StatusDocument, start_of};

/// Queues that are shown; the others are counted.
const QUEUES_SHOWN: usize = 20;
/// The width of the longest names in each table.
const NAME_WIDTH: usize = 16;
const QUEUE_WIDTH: usize = 36;

/// The whole state as text; what is wrong stands after the pauses.
pub(super) fn of(status: &StatusDocument, wrong: String, look: TerminalStyle) -> String {
    // The rules that pause queues: nobody should look for another reason why jobs wait.
    let rules: Vec<PauseRule> = status.paused.iter().filter_map(|rule| rule.parse().ok()).collect();
    let pauses = paused(&rules);
    let mut parts = vec![pauses, wrong, redis(status), supervisors(status, look)];
    parts.push(if status.actors.is_empty() && status.refuses_writes {
        "no live actor is known: while redis refuses writes, all look absent\n".to_owned()
    } else if status.actors.is_empty() {
        let queue = status.queues.iter().find(|of| of.state.depth > 0);
        let queue = queue.and_then(|of| of.state.queue.parse::<Queue>().ok());
        let unit = queue.map(|queue| queue.target.first_unit());
        let unit = unit.unwrap_or_else(|| "osis-default-1".to_owned());
        format!("no live actor; start one: {}\n", start_of(&unit))
    } else {
        actors(status, look)
    });
    parts.extend([queues(status, look), types(status, look)]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn redis(status: &StatusDocument) -> String {
    let redis = &status.redis;
    let state = redis.state();
    let version = redis.version.as_deref().unwrap_or("unknown");
    let role = redis.role.as_deref().unwrap_or("unknown");
    let replicas = counted(redis.replicas, "replica", "replicas");
    let mut text = format!("redis   {}\n", redis.address);
    let _ = writeln!(text, "        version {version}, {role}, {replicas}");
    let _ = writeln!(text, "memory  {}", state.memory());
    let _ = writeln!(text, "keeps   {}", state.keeps());
    for danger in &redis.dangers {
        text.push_str(&wrapped("danger", danger));
    }
    text.push_str(&shards(status));
    text
}

/// One line: the number of shards, and the servers beside the first.
fn shards(status: &StatusDocument) -> String {
    let number = status.shards.len();
    if number == 0 {
        return String::new();
    }
    let servers: Vec<_> = status.shards.iter().filter(|of| of.is_first_of_server).collect();
    let mut text =
        format!("shards  {number}, on {}\n", counted(servers.len() as u64, "server", "servers"));
    // The server of the home shard has its lines above.
    for of in servers.into_iter().filter(|of| of.shard > 0) {
        let redis = of.redis.state();
        let line = format!("{}, keeps {}", redis.memory(), redis.keeps());
        text.push_str(&wrapped(&format!("shard {}", of.shard), &line));
    }
    text
}

fn supervisors(status: &StatusDocument, look: TerminalStyle) -> String {
    if status.supervisors.is_empty() && status.refuses_writes {
        return "supervisors are not known: none can renew its presence while redis refuses writes\n"
            .to_owned();
    }
    if status.supervisors.is_empty() {
        let start = start_of("supervisor");
        return format!(
            "no live supervisor: schedules, retries and recovery wait;\nstart one: {start}\n"
        );
    }
    let ago = |time: &str| match (time.parse::<Timestamp>(), status.at.parse()) {
        (Ok(time), Ok(at)) => age(time.min(at), at),
        _ => String::new(),
    };
    let is_ok = |redis: &str| redis == "ok";
    let table = TextTable::of(&status.supervisors)
        .column("SUPERVISOR", &|of| fitted(&of.unit, NAME_WIDTH))
        .column("HOST", &|of| fitted(&of.hostname, NAME_WIDTH))
        .column(">PID", &|of| of.pid.to_string())
        .column(">UP", &|of| ago(&of.started_at))
        .column(">SEEN", &|of| ago(&of.last_heartbeat))
        .column("*REDIS", &|of| if is_ok(&of.redis) { "ok" } else { "failing" }.to_owned())
        .column("VERSION", &|of| fitted(&of.version, NAME_WIDTH));
    let failing = status.supervisors.iter().filter(|of| !is_ok(&of.redis));
    failing.fold(table.show(look), |text, of| text + wrapped(&of.unit, &of.redis).as_str())
}

fn actors(status: &StatusDocument, look: TerminalStyle) -> String {
    TextTable::of(&status.actors)
        .column("ACTORS OF TYPE", &|of| fitted(&of.script_type, NAME_WIDTH))
        .column(">LIVE", &|of| of.count.live.to_string())
        .column(">READY", &|of| of.count.ready.to_string())
        .column(">DRAINING", &|of| of.count.draining.to_string())
        .column(">HOLDING", &|of| of.count.holding.to_string())
        .column(">RUNNING", &|of| of.count.running.to_string())
        .column(">TASKS", &|of| of.count.tasks.to_string())
        .show(look)
}

fn queues(status: &StatusDocument, look: TerminalStyle) -> String {
    let mut shown: Vec<&ServedQueue> = status.queues.iter().collect();
    if shown.is_empty() {
        return String::new();
    }
    // Trouble first: jobs without an actor, then the longest wait.
    let is_served = |of: &ServedQueue| of.actors > 0 || of.state.depth == 0 || of.state.paused;
    shown.sort_by_key(|of| (is_served(of), Reverse(wait(of))));
    let table = TextTable::of(&shown[..shown.len().min(QUEUES_SHOWN)])
        .column("QUEUE", &|of| fitted(&of.state.queue, QUEUE_WIDTH))
        .column(">DEPTH", &|of| of.state.depth.to_string())
        .column(">HELD", &|of| of.state.held.to_string())
        .column(">WAIT", &|of| wait(of).map(brief).unwrap_or_default())
        .column(">ACTORS", &|of| of.actors.to_string())
        .column("*STATE", &|of| if of.state.paused { "paused" } else { "open" }.to_owned());
    let more = shown.len().saturating_sub(QUEUES_SHOWN);
    let more = match more {
        0 => String::new(),
        more => {
            format!("and {}: hero queue list\n", counted(more as u64, "more queue", "more queues"))
        }
    };
    table.show(look) + more.as_str()
}

fn wait(of: &ServedQueue) -> Option<Duration> {
    of.state.oldest_wait_s.and_then(|wait| Duration::try_from_secs_f64(wait).ok())
}

fn types(status: &StatusDocument, look: TerminalStyle) -> String {
    if status.types.is_empty() {
        return String::new();
    }
    let hour = |of: &JobsOfType, number: fn(&LastHour) -> u64| {
        of.state.hour.map(|hour| number(&hour).to_string()).unwrap_or_default()
    };
    TextTable::of(&status.types)
        .column("JOBS OF TYPE", &|of| fitted(of.state.script_type.as_str(), NAME_WIDTH))
        .column(">AFTER", &|of| of.state.waiting.to_string())
        .column(">SCHEDULED", &|of| of.state.scheduled.to_string())
        .column(">DUE", &|of| of.state.due.to_string())
        .column(">HELD", &|of| of.held.to_string())
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
    use crate::view::{HealthRules, Snapshot};

    fn text_of(snapshot: &Snapshot) -> String {
        let status = StatusDocument::of(snapshot, &HealthRules::default());
        of(&status, String::new(), TerminalStyle::PLAIN)
    }

    #[test]
    fn state_is_plain_tables() {
        let at = "2026-01-31T13:00:02Z".parse().expect("a time");
        let mut snapshot = Snapshot { at, ..healthy_snapshot() };
        "0.1.0".clone_into(&mut snapshot.supervisors[0].version);
        assert_eq!(
            text_of(&snapshot),
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
        let text = text_of(&snapshot);
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
        let text = text_of(&snapshot);
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
        let text = text_of(&snapshot);
        assert!(text.contains(&format!("start one: {}\n", start_of("supervisor"))), "{text}");
        assert!(text.contains("no live actor"), "{text}");
    }
}
