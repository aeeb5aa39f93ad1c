//! Measures Redis during a load: the longest call of each script, from `SLOWLOG`, and how long a PING takes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use hero::proto::keys::Keys;
use hero::store::lua_sources;
use redis::{Client, Connection, RedisResult, Script, Value};

use crate::bench::{Done, quantile};

/// Calls shorter than this are not in the slow log.
const LOGGED_US: u64 = 500;
const SLOWLOG_LEN: u64 = 200_000;
/// Commands that this program alone sends.
const OWN: [&str; 3] = ["SLOWLOG", "LATENCY", "CONFIG"];
const PING_EVERY: Duration = Duration::from_millis(1);

pub(super) struct Observed {
    pub(super) scripts: u64,
    /// Calls of all commands, those in scripts too.
    pub(super) commands: u64,
    /// The longest call of each script or command that is in the slow log.
    pub(super) longest: BTreeMap<String, Duration>,
    pub(super) pings: Vec<Duration>,
    /// The longest times that Redis itself noted, such as an expire cycle's.
    pub(super) events: BTreeMap<String, Duration>,
}

/// The thread that sends PINGs, and what stops it.
type Prober = (SyncSender<()>, JoinHandle<RedisResult<Vec<Duration>>>);

pub(super) struct Watch {
    client: Client,
    link: Connection,
    names: HashMap<String, &'static str>,
    prober: Option<Prober>,
}

impl Watch {
    /// Connects, and lets Redis log slow calls.
    pub(super) fn open(client: Client, keys: &Keys) -> Done<Self> {
        let mut link = client.get_connection()?;
        for (name, value) in [
            ("slowlog-log-slower-than", LOGGED_US),
            ("slowlog-max-len", SLOWLOG_LEN),
            ("latency-monitor-threshold", 1),
        ] {
            redis::cmd("CONFIG").arg("SET").arg(name).arg(value).exec(&mut link)?;
        }
        prefer(&mut link)?;
        let sources = lua_sources(keys).into_iter();
        let names = sources.map(|one| (Script::new(&one.text).get_hash().to_owned(), one.name));
        Ok(Self { client, link, names: names.collect(), prober: None })
    }

    pub(super) fn connect(&self) -> RedisResult<Connection> {
        self.client.get_connection()
    }

    pub(super) fn begin(&mut self) -> Done {
        for (command, about) in
            [("CONFIG", "RESETSTAT"), ("SLOWLOG", "RESET"), ("LATENCY", "RESET")]
        {
            redis::cmd(command).arg(about).exec(&mut self.link)?;
        }
        let (stop, stopped) = sync_channel(1);
        let link = self.connect()?;
        self.prober = Some((stop, spawn(move || probe(link, &stopped))));
        Ok(())
    }

    /// Stops, and returns the observations since the start.
    pub(super) fn end(&mut self) -> Done<Observed> {
        let (stop, prober) = self.prober.take().ok_or("nothing is being observed")?;
        drop(stop);
        let pings = prober.join().map_err(|_| "the thread of the PINGs failed")??;
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut self.link)?;
        let calls: BTreeMap<&str, u64> = stats.lines().filter_map(calls_of).collect();
        let scripts = calls.get("evalsha").copied().unwrap_or_default();
        let is_own = |name: &str| name == "ping" || OWN.iter().any(|own| of_command(name, own));
        let others = calls.iter().filter(|(name, _)| !is_own(name));
        let commands = others.map(|(_, calls)| calls).sum();
        let mut longest = BTreeMap::new();
        let log: Vec<Vec<Value>> =
            redis::cmd("SLOWLOG").arg("GET").arg(SLOWLOG_LEN).query(&mut self.link)?;
        for entry in log {
            let [_, _, us, words, ..]: [Value; 6] =
                entry.try_into().map_err(|_| "an entry of the slow log has another form")?;
            let took = Duration::from_micros(redis::from_redis_value(us)?);
            let words: Vec<Vec<u8>> = redis::from_redis_value(words)?;
            let texts: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
            let name = self.name(&texts);
            if OWN.contains(&name.as_str()) {
                continue;
            }
            let longest: &mut Duration = longest.entry(name).or_default();
            *longest = took.max(*longest);
        }
        let latest: Vec<(String, u64, u64, u64)> =
            redis::cmd("LATENCY").arg("LATEST").query(&mut self.link)?;
        let events = latest.into_iter().map(|(name, _, _, max)| (name, Duration::from_millis(max)));
        Ok(Observed { scripts, commands, longest, pings, events: events.collect() })
    }

    fn name(&self, words: &[Cow<'_, str>]) -> String {
        let script = match words {
            [command, hash, ..] if command.eq_ignore_ascii_case("EVALSHA") => {
                self.names.get(hash.as_ref())
            }
            _ => None,
        };
        match (script, words.first()) {
            (Some(script), _) => (*script).to_owned(),
            (None, Some(command)) => command.to_ascii_uppercase(),
            (None, None) => "?".to_owned(),
        }
    }
}

fn calls_of(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    Some((name, rest.split(',').next()?.parse().ok()?))
}

/// Returns whether this is the name of a command, or of a part of it.
fn of_command(name: &str, command: &str) -> bool {
    name.split('|').next().is_some_and(|name| name.eq_ignore_ascii_case(command))
}

/// Lets Redis run before the loads and the actors, where this user may: the slow log counts time when
/// Redis waits for a processor, and they would take all of them.
#[expect(clippy::disallowed_methods, reason = "nix has no call for the priority of a process")]
fn prefer(link: &mut Connection) -> Done {
    let server: String = redis::cmd("INFO").arg("server").query(link)?;
    let pid = server.lines().find_map(|line| line.strip_prefix("process_id:"));
    let pid = pid.ok_or("Redis does not say its process id")?;
    let preferred = Command::new("renice").args(["-n", "-15", "-p", pid]).output();
    if !preferred.is_ok_and(|done| done.status.success()) {
        say(
            "Redis has no higher priority than the loads (only root can give it): the longest calls include waiting",
        );
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a notice of a command line program")]
fn say(notice: &str) {
    eprintln!("{notice}");
}

fn probe(mut link: Connection, stop: &Receiver<()>) -> RedisResult<Vec<Duration>> {
    let mut pings = Vec::new();
    while stop.recv_timeout(PING_EVERY) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        redis::cmd("PING").exec(&mut link)?;
        pings.push(began.elapsed());
    }
    Ok(pings)
}

/// Commands that always take only some microseconds.
const SMALL: [&str; 12] = [
    "PING", "EXISTS", "EXPIRE", "GET", "HSTRLEN", "LLEN", "SET", "SREM", "TTL", "TYPE", "ZREM",
    "ZSCORE",
];

impl Observed {
    /// The longest time that other work is known to have stopped Redis: of a command that takes none itself.
    pub(super) fn disturbed(&self) -> Duration {
        let small = SMALL.iter().filter_map(|name| self.longest.get(*name));
        small.max().copied().unwrap_or_default()
    }

    pub(super) fn ping(&mut self, q: f64) -> Duration {
        quantile(&mut self.pings, q)
    }
}
