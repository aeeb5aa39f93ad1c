//! `hero status` as tables that fit 80 columns.

use std::cmp::Reverse;
use std::fmt::Write;

use jiff::Timestamp;

use super::super::look::OutputLook;
use super::super::table::TextTable;
use super::super::time::{age, brief};
use crate::client::Overview;
use crate::proto::text::counted;
use crate::proto::units::readable_size;
use crate::store::{QueueState, RedisState};

/// Queues that are shown; the others are counted.
const QUEUES_SHOWN: usize = 20;
/// The width of the longest names in each table.
const NAME_WIDTH: usize = 16;
const QUEUE_WIDTH: usize = 36;

/// The whole state as text.
pub(super) fn of(overview: &Overview, now: Timestamp, look: OutputLook) -> String {
    let mut parts = vec![redis(overview), supervisors(overview, now, look)];
    parts.push(if overview.actors.is_empty() {
        "no live actor: jobs wait; start one: systemctl start hero@osis-default-1\n".to_owned()
    } else {
        actors(overview, look)
    });
    parts.extend([queues(overview, look), types(overview, look)]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn redis(overview: &Overview) -> String {
    let redis = &overview.redis;
    let unknown = "unknown".to_owned();
    let version = redis.version.clone().unwrap_or_else(|| unknown.clone());
    let role = redis.role.clone().unwrap_or(unknown);
    let replicas = counted(redis.replicas, "replica", "replicas");
    let mut text = format!("redis   {}\n", overview.address);
    let _ = writeln!(text, "        version {version}, {role}, {replicas}");
    let _ = writeln!(text, "memory  {}", memory(redis));
    let _ = writeln!(text, "keeps   {}", redis.keeps());
    for danger in redis.dangers() {
        text.push_str(&wrapped("danger", &danger));
    }
    text.push_str(&shards(overview));
    text
}

/// One line: the number of shards, and the servers beside the first.
fn shards(overview: &Overview) -> String {
    let number = overview.shards.len();
    if number == 0 {
        return String::new();
    }
    let servers = overview.servers();
    let mut text =
        format!("shards  {number}, on {}\n", counted(servers.len() as u64, "server", "servers"));
    for (shard, redis) in servers.into_iter().filter_map(|(shard, redis)| Some((shard?, redis))) {
        let line = format!("{}, keeps {}", memory(redis), redis.keeps());
        text.push_str(&wrapped(&format!("shard {shard}"), &line));
    }
    text
}

fn memory(redis: &RedisState) -> String {
    let most = match redis.memory_max_bytes {
        0 => "no maxmemory".to_owned(),
        bytes => format!("maxmemory {}", readable_size(bytes)),
    };
    let policy = redis.eviction_policy.as_deref().unwrap_or("policy unknown");
    format!("{} in use, {most}, {policy}", readable_size(redis.memory_used_bytes))
}

fn supervisors(overview: &Overview, now: Timestamp, look: OutputLook) -> String {
    if overview.supervisors.is_empty() {
        return "no live supervisor: schedules, retries and recovery wait;\n\
                start one: systemctl start hero@supervisor\n"
            .to_owned();
    }
    let mut table =
        TextTable::new(&["SUPERVISOR", "HOST", ">PID", ">UP", ">SEEN", "*REDIS", "VERSION"]);
    let ago = |time: &str| time.parse().map(|time| age(time, now)).unwrap_or_default();
    let mut notes = String::new();
    for of in &overview.supervisors {
        let is_ok = of.redis == "ok";
        table.row([
            fitted(&of.unit, NAME_WIDTH),
            fitted(&of.hostname, NAME_WIDTH),
            of.pid.to_string(),
            ago(&of.started_at),
            ago(&of.last_heartbeat),
            if is_ok { "ok" } else { "failing" }.to_owned(),
            fitted(&of.version, NAME_WIDTH),
        ]);
        if !is_ok {
            notes.push_str(&wrapped(&of.unit, &of.redis));
        }
    }
    table.show(look) + notes.as_str()
}

fn actors(overview: &Overview, look: OutputLook) -> String {
    let mut table = TextTable::new(&[
        "ACTORS OF TYPE",
        ">LIVE",
        ">READY",
        ">DRAINING",
        ">HOLDING",
        ">RUNNING",
        ">TASKS",
    ]);
    for (script_type, count) in &overview.actors {
        table.row([
            fitted(script_type.as_str(), NAME_WIDTH),
            count.live.to_string(),
            count.ready.to_string(),
            count.draining.to_string(),
            count.holding.to_string(),
            count.running.to_string(),
            count.tasks.to_string(),
        ]);
    }
    table.show(look)
}

fn queues(overview: &Overview, look: OutputLook) -> String {
    let mut shown: Vec<&(QueueState, u64)> = overview.queues.iter().collect();
    if shown.is_empty() {
        return String::new();
    }
    // Trouble first: jobs without an actor, then the longest wait.
    let is_served = |of: &(QueueState, u64)| of.0.depth == 0 || of.1 > 0 || of.0.paused;
    shown.sort_by_key(|of| (is_served(of), Reverse(of.0.oldest_wait)));
    let mut table = TextTable::new(&["QUEUE", ">DEPTH", ">HELD", ">WAIT", ">ACTORS", "*STATE"]);
    for (state, actors) in shown.iter().take(QUEUES_SHOWN) {
        table.row([
            fitted(&state.queue.to_string(), QUEUE_WIDTH),
            state.depth.to_string(),
            state.held.to_string(),
            state.oldest_wait.map(brief).unwrap_or_default(),
            actors.to_string(),
            if state.paused { "paused" } else { "open" }.to_owned(),
        ]);
    }
    let more = shown.len().saturating_sub(QUEUES_SHOWN);
    let more = match more {
        0 => String::new(),
        more => {
            format!("and {}: hero queue list\n", counted(more as u64, "more queue", "more queues"))
        }
    };
    table.show(look) + more.as_str()
}

fn types(overview: &Overview, look: OutputLook) -> String {
    if overview.types.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        "JOBS OF TYPE",
        ">AFTER",
        ">SCHEDULED",
        ">DUE",
        ">HELD",
        ">DONE/H",
        ">FAILED/H",
        ">DEAD/H",
    ]);
    for of in &overview.types {
        let hour = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
        table.row([
            fitted(of.script_type.as_str(), NAME_WIDTH),
            of.waiting.to_string(),
            of.scheduled.to_string(),
            of.due.to_string(),
            overview.held(&of.script_type).to_string(),
            hour(of.hour.map(|hour| hour.finished)),
            hour(of.hour.map(|hour| hour.failed)),
            hour(of.hour.map(|hour| hour.dead)),
        ]);
    }
    table.show(look)
}

/// Returns a text of at most this width; a longer one loses its middle.
fn fitted(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let head = width / 2;
    let tail = width - head - 1;
    let (first, last) = (&letters[..head], &letters[letters.len() - tail..]);
    first.iter().chain(&['…']).chain(last).collect()
}

/// Breaks a long text into lines of at most 80 columns, behind a word.
fn wrapped(first: &str, text: &str) -> String {
    const WIDTH: usize = 80;
    let indent = " ".repeat(8);
    let mut lines = vec![format!("{first}:")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map(|line| (line.chars().count(), line));
        match line {
            Some((length, line)) if length + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::overview::tests::overview;

    fn at() -> Timestamp {
        "2026-01-31T13:00:02Z".parse().expect("a time")
    }

    #[test]
    fn state_is_plain_tables() {
        assert_eq!(
            of(&overview(), at(), OutputLook::PLAIN),
            "redis   redis://127.0.0.1:6379/0\n        \
             version 7.0.15, master, 0 replicas\n\
             memory  3.0 MiB in use, maxmemory 100.0 MiB, noeviction\n\
             keeps   every write, but those of the last second (appendonly yes)\n\
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
    fn long_names_large_numbers_and_dangers_fit_80_columns() {
        let mut overview = overview();
        overview.redis.appends = Some(false);
        overview.redis.memory_max_bytes = 0;
        overview.supervisors[0].hostname = "a-host-with-a-very-long-name.example.org".to_owned();
        overview.supervisors[0].unit = "a-unit-with-a-very-long-name-of-its-own".to_owned();
        overview.supervisors[0].pid = 4_194_304;
        overview.supervisors[0].redis = "sampling statistics: no ".repeat(10);
        let name = format!("type:{}:group:{}:inst:7:prio:2", "t".repeat(30), "g".repeat(30));
        overview.queues[0].0.queue = name.parse().expect("legal");
        overview.queues[0].0.depth = 1_000_000;
        overview.queues[0].0.held = 100_000;
        overview.types[0].scheduled = 1_000_000;
        overview.types[0].hour = Some(crate::store::LastHour {
            finished: 10_000_000,
            failed: 1_000_000,
            dead: 10_000,
            since: std::time::Duration::from_hours(1),
        });
        let first = overview.queues[0].clone();
        overview.queues.extend(std::iter::repeat_n(first, 30));
        let text = of(&overview, at(), OutputLook::PLAIN);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("and 11 more queues: hero queue list"), "{text}");
        assert!(text.contains("type:ttttttttttttt…"), "{text}");
    }

    #[test]
    fn missing_supervisor_and_actors_are_said_with_what_to_do() {
        let mut overview = overview();
        overview.supervisors.clear();
        overview.actors.clear();
        let text = of(&overview, at(), OutputLook::PLAIN);
        assert!(text.contains("systemctl start hero@supervisor"), "{text}");
        assert!(text.contains("no live actor"), "{text}");
    }
}
