//! Recovery: what dead actors, lost connections and foreign programs have left behind. Every
//! operation is idempotent; any number of supervisors may run them at once.
//!
//! Among it are jobs that stand in no index, since foreign actors that waited popped their ids before Hero knew of them.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, Value};

use super::attempts::{kept, millis};
use super::backoff::micros;
use super::{RecoveryStore, RedisStore, Result};
use crate::proto::job::{BootId, JobId, Retention};
use crate::proto::message::RECOVERING;
use crate::proto::target::{Fallback, ScriptType};
use crate::proto::text::text_of;
use crate::proto::word_table::words;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    pub boots: u64,
    /// Jobs put back to the front of their queues.
    pub put_back: u64,
    /// Jobs ended at the crash limit.
    pub given_up: u64,
    /// Jobs whose start or end by a foreign actor was noted.
    pub foreign: u64,
    /// Entries of jobs that are gone.
    pub orphans: u64,
    /// True if Redis's clock was set back: [`RecoveryStore::shorten_waits`] has work.
    pub was_set_back: bool,
    /// Notes on the first hundred jobs.
    pub notes: Vec<JobNote>,
}

/// A job that a foreign actor popped and has not started within this time is lost.
const POP_GRACE: Duration = Duration::from_secs(2);
/// The entries of a queue that are searched for an entry that Hero has pushed.
const HEAD_DEPTH: usize = 50;
/// Queues and index entries that one sweep looks at.
const PER_SWEEP: usize = 200;
/// The entries of a queue that one step looks at for jobs that may fall back.
const FALLBACKS_PER_STEP: usize = 100;
/// The entries that one step after a step back of the clock looks at.
const ENTRIES_PER_STEP: usize = 250;
/// The margin of a foreign actor beyond the timeout of its job.
const FOREIGN_MARGIN: Duration = Duration::from_secs(5);

words! {
    /// The cause of a boot's death, as far as its successor knows.
    BootDeath;
    /// Nothing is known: the jobs that it ran are charged a crash.
    Unknown = "",
    /// The kernel killed it for lack of memory, not its scripts, which are processes: they are charged nothing.
    Memory = "memory",
    /// The kernel killed it for lack of memory; its scripts ran within it, and are charged a crash.
    MemoryOfScripts = "memory of scripts",
}

/// The values that `recover_boots.lua` returns.
type BootsAnswer = (u64, u64, u64, Vec<JobNote>, u64, bool);

impl RecoveryStore<'_> {
    /// Recovers the jobs of a boot that the caller knows to be gone, and how it died; or of those whose lease has run out, as
    /// long as the last look was no longer ago than `pause`. Else the clock of Redis was set, or nobody looked: then the
    /// leases last on for what they had left.
    pub async fn boots(
        self,
        gone: Option<(&BootId, BootDeath)>,
        pause: Duration,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered> {
        let (boot, death) = gone.map_or(("", ""), |(boot, death)| (boot.as_str(), death.as_str()));
        let arguments = (boot, crash_limit, kept(retention), millis(pause), death);
        let mut found = Recovered::default();
        loop {
            let answer: BootsAnswer = self
                .store
                .run_script(RECOVERING, &self.store.scripts.recover_boots, &arguments)
                .await?;
            let (boots, put_back, given_up, notes, left, was_set_back) = answer;
            found.was_set_back = was_set_back;
            found.boots += boots;
            found.put_back += put_back;
            found.given_up += given_up;
            found.notes.extend(notes);
            if left == 0 || put_back + given_up == 0 {
                return Ok(found);
            }
        }
    }

    /// Shortens the waits that a step back of Redis's clock has made longer.
    pub async fn shorten_waits(self) -> Result<()> {
        let (doing, script) =
            ("shortening waits after a step of the clock", &self.store.scripts.shorten_waits);
        while self.store.run_script(doing, script, ENTRIES_PER_STEP).await? {}
        Ok(())
    }

    /// Puts back jobs that foreign actors popped and never started.
    pub async fn pops(self, retention: impl Into<Retention>) -> Result<Recovered> {
        let arguments = (millis(POP_GRACE), HEAD_DEPTH, PER_SWEEP, kept(retention));
        let (put_back, started, ended, orphans, notes): (u64, u64, u64, u64, Vec<JobNote>) = self
            .store
            .run_script("recovering foreign pops", &self.store.scripts.recover_pops, arguments)
            .await?;
        let foreign = started + ended;
        Ok(Recovered { put_back, foreign, orphans, notes, ..Recovered::default() })
    }

    /// Moves jobs that have waited for longer than `after` in group and instance queues without live
    /// actors to the next wider queue, where they, or else their types, allow it. Returns notes on the
    /// first hundred.
    pub async fn fall_back(
        self,
        after: Duration,
        of_types: &BTreeMap<ScriptType, Fallback>,
    ) -> Result<Vec<JobNote>> {
        let of_types = of_types.iter().map(|(of, fallback)| (of.as_str(), fallback.as_str()));
        let of_types: Vec<(&str, &str)> = of_types.collect();
        let doing = "moving jobs from queues without live actors";
        let arguments = (micros(after), PER_SWEEP, FALLBACKS_PER_STEP, of_types);
        let (_, notes): (u64, Vec<JobNote>) =
            self.store.run_script(doing, &self.store.scripts.fall_back, arguments).await?;
        Ok(notes)
    }

    /// Tends jobs that foreign actors run. `timeout` is the default of a job, `every` the time between looks at it.
    pub async fn foreign(
        self,
        timeout: Duration,
        every: Duration,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered> {
        let times = (timeout.as_secs_f64(), millis(FOREIGN_MARGIN), millis(every));
        let (doing, arguments) =
            ("tending jobs of foreign actors", (times, crash_limit, kept(retention)));
        let (foreign, put_back, given_up, notes) =
            self.store.run_script(doing, &self.store.scripts.recover_foreign, arguments).await?;
        Ok(Recovered { put_back, given_up, foreign, notes, ..Recovered::default() })
    }

    /// Returns the keys that scripts found to have a wrong type, with it; each again after `again` if not repaired.
    pub async fn report_wrong_types(self, again: Duration) -> Result<Vec<(String, String)>> {
        let doing = "reading which keys have the wrong type";
        self.store.run_script(doing, &self.store.scripts.report_wrong_types, again.as_secs()).await
    }

    pub async fn orphans(self) -> Result<Recovered> {
        let orphans = self
            .store
            .run_script("removing orphans", &self.store.scripts.recover_orphans, PER_SWEEP)
            .await?;
        Ok(Recovered { orphans, ..Recovered::default() })
    }
}

impl RedisStore<'_> {
    /// Returns the fixed keys of a wrong type, and all keys where scripts found one lately, as sentences.
    pub async fn wrong_types(self) -> Result<Vec<String>> {
        const DOING: &str = "reading types of keys";
        let mut pipeline = redis::pipe();
        let fixed = self.store.keys.fixed();
        for (key, _) in &fixed {
            pipeline.cmd("TYPE").arg(key);
        }
        let types: Vec<String> = self.store.link.pipeline(DOING, &pipeline).await?;
        let wrong = fixed.iter().zip(types).filter(|((_, right), of)| of != right && of != "none");
        let mut found: Vec<String> = wrong
            .map(|((key, right), of)| format!("key {key} is a {of}, not a {right}; delete it"))
            .collect();
        let noted =
            self.store.link.command(DOING, "ZRANGE", (self.store.keys.wrong_types(), 0, -1)).await;
        // Its own wrong type is among the others.
        let noted: Vec<String> = noted.unwrap_or_default();
        let noted = noted.iter().filter(|noted| fixed.iter().all(|(key, _)| key != *noted));
        found.extend(
            noted.map(|key| format!("key {key} had the wrong type lately; check its type")),
        );
        Ok(found)
    }
}

/// A job that stands in no index and in no list is left to the actor that may have popped it, and to the program that
/// may be about to push it, for this time.
const GRACE: Duration = Duration::from_secs(10);
/// The keys that one step of the walk looks at.
const KEYS_PER_STEP: u32 = 50;
/// Two steps of the walk are at least so far apart, by whichever supervisors.
const STEP_PAUSE: Duration = Duration::from_millis(125);

/// The values that `find_unindexed.lua` returns.
type Answer = (u64, u64, u64, u64, u64, String, Vec<JobNote>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundUnindexed {
    /// The jobs that it put where they belong.
    pub recovered: Recovered,
    pub next: Duration,
    /// The jobs that the walk, which has ended, found to be in no index and to name no legal script type, if the last
    /// walk found another number: this number, and the id of one.
    pub untyped: Option<(u64, String)>,
}

/// The noted entries that are read for people.
const SHOWN_MAX: isize = 1000;

impl RecoveryStore<'_> {
    /// Lists the ids of the last minute without a hash, each after its list: at most a thousand.
    pub async fn ids_without_hash(self) -> Result<Vec<(String, String)>> {
        let arguments = (self.store.keys.unindexed(), 0, SHOWN_MAX - 1);
        let noted: Vec<String> = self
            .store
            .link
            .command("reading which ids were pushed early", "ZRANGE", arguments)
            .await?;
        let pushed = |entry: &String| {
            let (list, id) = entry.split_once(' ')?;
            Some((list.to_owned(), id.to_owned()))
        };
        Ok(noted.iter().filter_map(pushed).collect())
    }

    /// Looks at jobs that are noted since they stand in no index, and, with `walks`, at some of the hashes of all jobs.
    /// Walks are `pause` apart. Calling again is safe.
    pub async fn find_unindexed(
        self,
        walks: bool,
        pause: Duration,
        retention: impl Into<Retention>,
    ) -> Result<FoundUnindexed> {
        let mut script = self.store.scripts.find_unindexed.prepare_invoke();
        script.arg(millis(GRACE)).arg(if walks { KEYS_PER_STEP } else { 0 });
        script.arg(millis(STEP_PAUSE.min(pause))).arg(millis(pause)).arg(kept(retention));
        let (put_back, started, ended, next_ms, number, one, notes): Answer =
            self.store.invoke("finding jobs that stand in no index", &script).await?;
        let foreign = started + ended;
        Ok(FoundUnindexed {
            recovered: Recovered { put_back, foreign, notes, ..Recovered::default() },
            next: Duration::from_millis(next_ms),
            untyped: (number > 0).then_some((number, one)),
        })
    }

    /// Notes that a client waits for a job: if it stands in no index, a supervisor looks at it.
    pub async fn note_awaited(self, id: &JobId) -> Result<()> {
        let doing = "noting that a job is awaited";
        self.store.run_script(doing, &self.store.scripts.note_awaited, id.as_str()).await
    }
}

/// A note on one job that a sweep changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobNote {
    pub job_id: String,
    pub script_type: String,
    /// The change: a sentence without its subject.
    pub text: String,
}

impl JobNote {
    /// Reads a note as `note_end` of the scripts writes it: `[id, script type, text]`.
    pub(super) fn from_json(note: &str) -> Option<Self> {
        let (job_id, script_type, text) = serde_json::from_str(note).ok()?;
        Some(Self { job_id, script_type, text })
    }
}

impl Display for JobNote {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { job_id, script_type, text } = self;
        write!(out, "job {job_id} of {script_type} {text}")
    }
}

impl FromRedisValue for JobNote {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (id, script_type, text): (Vec<u8>, Vec<u8>, Vec<u8>) =
            FromRedisValue::from_redis_value(value)?;
        let [job_id, script_type, text] = [id, script_type, text].map(|bytes| text_of(&bytes));
        Ok(Self { job_id, script_type, text })
    }
}

impl RedisStore<'_> {
    /// Returns the patterns of keys that Redis refuses to this login, as an access list writes them: `hero:job:*`.
    pub async fn refused_keys(self) -> Result<Vec<String>> {
        let mut refused = Vec::new();
        for (pattern, key) in self.store.keys.patterns() {
            match self.store.link.command::<u64>("looking at the access list", "EXISTS", key).await
            {
                Err(error) if error.is_access_refused() => refused.push(pattern),
                answer => _ = answer?,
            }
        }
        Ok(refused)
    }
}
