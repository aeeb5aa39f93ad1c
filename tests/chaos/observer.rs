//! The observer: on its own connection to Redis it counts the ends of jobs and times recoveries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, Pipeline};

use crate::support::keys;

/// The wait after an end before a second end is looked for: well within the life of a reply.
const SECOND_LOOK: Duration = Duration::from_secs(8);
/// Jobs looked at in one round trip.
const LOOKED_AT: usize = 400;

/// Jobs that a dead or paused boot ran, not all of them recovered yet.
struct Recovery {
    boot: String,
    since: Instant,
    kind: Kind,
    /// True if another fault struck meanwhile: the time then measures nothing.
    disturbed: bool,
}

/// The cause of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A successor, started at once.
    Successor,
    /// The end of the lease.
    Lease,
}

pub(crate) struct Observer {
    client: redis::Client,
    connection: Option<Connection>,
    /// Accepted, and no end seen.
    pub(crate) open: BTreeSet<String>,
    /// Ended, and to be looked at once more.
    ended: VecDeque<(Instant, String)>,
    pub(crate) ended_twice: BTreeSet<String>,
    recoveries: Vec<Recovery>,
    /// The longest recoveries that nothing else disturbed, and how many there were.
    pub(crate) longest: BTreeMap<Kind, (Duration, usize)>,
    pub(crate) last_end: Instant,
}

impl Observer {
    pub(crate) fn new(socket: &Path) -> Self {
        let client = redis::Client::open(format!("unix://{}", socket.display()));
        Self {
            client: client.expect("a socket"),
            connection: None,
            open: BTreeSet::new(),
            ended: VecDeque::new(),
            ended_twice: BTreeSet::new(),
            recoveries: Vec::new(),
            longest: BTreeMap::new(),
            last_end: Instant::now(),
        }
    }

    /// Runs commands; `None` while Redis is away.
    pub(crate) fn ask<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> Option<T> {
        if self.connection.is_none() {
            self.connection = self.client.get_connection().ok();
        }
        let answer = pipeline.query(self.connection.as_mut()?);
        if answer.is_err() {
            self.connection = None;
        }
        answer.ok()
    }

    /// Looks once: which jobs have ended, and which recoveries.
    pub(crate) fn look(&mut self) {
        self.look_for_ends();
        self.look_again();
        self.look_for_recoveries();
    }

    fn replies(&mut self, ids: &[String]) -> Option<Vec<usize>> {
        if ids.is_empty() {
            return None;
        }
        let mut pipeline = redis::pipe();
        for id in ids {
            pipeline.cmd("LLEN").arg(keys::reply(id));
        }
        self.ask(&pipeline)
    }

    fn look_for_ends(&mut self) {
        let ids: Vec<String> = self.open.iter().take(LOOKED_AT).cloned().collect();
        let Some(replies) = self.replies(&ids) else { return };
        let now = Instant::now();
        for (id, replies) in ids.into_iter().zip(replies) {
            if replies > 0 {
                self.last_end = now;
                self.open.remove(&id);
                self.ended.push_back((now, id));
            }
        }
    }

    fn look_again(&mut self) {
        let now = Instant::now();
        let due = self.ended.iter().take_while(|(at, _)| now - *at > SECOND_LOOK).count();
        self.look_twice(due.min(LOOKED_AT));
    }

    fn look_twice(&mut self, number: usize) {
        let ids: Vec<String> = self.ended.iter().take(number).map(|(_, id)| id.clone()).collect();
        let Some(replies) = self.replies(&ids) else { return };
        self.ended.drain(..ids.len());
        for (id, replies) in ids.into_iter().zip(replies) {
            if replies > 1 {
                self.ended_twice.insert(id);
            }
        }
    }

    /// Looks at what ended last, without waiting for its time.
    pub(crate) fn look_at_the_rest(&mut self) {
        while !self.ended.is_empty() {
            self.look_twice(LOOKED_AT);
        }
    }

    /// The boot that holds an identity, `type:group:instance`.
    pub(crate) fn boot_of(&mut self, actor: &str) -> Option<String> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("GET").arg(keys::presence(actor));
        let (presence,): (Option<String>,) = self.ask(&pipeline)?;
        let presence: serde_json::Value = serde_json::from_str(&presence?).ok()?;
        Some(presence["boot_id"].as_str()?.to_owned())
    }

    /// Takes the time until no job of a dead boot is left. Returns how many jobs that
    /// was.
    pub(crate) fn measure(&mut self, boot: String, kind: Kind) -> usize {
        let since = Instant::now();
        let jobs = self.left_of(&boot).unwrap_or(0);
        if jobs > 0 {
            self.recoveries.push(Recovery { boot, since, kind, disturbed: false });
        }
        jobs
    }

    /// Something else struck: the measurement is void.
    pub(crate) fn disturb(&mut self) {
        self.recoveries.iter_mut().for_each(|recovery| recovery.disturbed = true);
    }

    fn left_of(&mut self, boot: &str) -> Option<usize> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZCARD").arg(keys::running(boot));
        self.ask::<(usize,)>(&pipeline).map(|(left,)| left)
    }

    fn look_for_recoveries(&mut self) {
        let mut recoveries = std::mem::take(&mut self.recoveries);
        recoveries.retain(|recovery| {
            if self.left_of(&recovery.boot) != Some(0) {
                return true;
            }
            if !recovery.disturbed {
                let (longest, number) = self.longest.entry(recovery.kind).or_default();
                *longest = recovery.since.elapsed().max(*longest);
                *number += 1;
            }
            false
        });
        self.recoveries = recoveries;
    }
}
