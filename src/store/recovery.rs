//! Recovery: what dead actors, lost connections and foreign programs have left behind. Every
//! operation is idempotent; any number of supervisors may run them at once.

use std::collections::BTreeMap;
use std::time::Duration;

use super::attempts::{kept, millis};
use super::{JobNote, Store, StoreError};
use crate::proto::job::{BootId, Retention};
use crate::proto::message::RECOVERING;
use crate::proto::target::{Fallback, ScriptType};

/// The result of one sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Boots found dead.
    pub boots: u64,
    /// Jobs put back to the front of their queues.
    pub put_back: u64,
    /// Jobs ended at the crash limit.
    pub given_up: u64,
    /// Jobs whose start or end by a foreign actor was noted.
    pub foreign: u64,
    /// Entries of jobs that are gone.
    pub orphans: u64,
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
/// The margin of a foreign actor beyond the timeout of its job.
const FOREIGN_MARGIN: Duration = Duration::from_secs(5);

/// The cause of a boot's death, as far as its successor knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDeath {
    /// Nothing is known: the jobs that it ran are charged a crash.
    Unknown,
    /// The kernel killed it for lack of memory, though its jobs are processes which it would kill first: they are charged
    /// nothing.
    Memory,
    /// The kernel killed it for lack of memory; its scripts ran within it, and are charged a crash.
    MemoryOfScripts,
}

impl BootDeath {
    fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Memory => "memory",
            Self::MemoryOfScripts => "memory of scripts",
        }
    }
}

impl Store {
    /// Recovers the jobs of boots whose lease has run out, or of one boot that the caller knows to
    /// be gone.
    pub async fn recover_boots(
        &self,
        gone: Option<&BootId>,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered, StoreError> {
        self.recover_leases((gone, BootDeath::Unknown), Duration::ZERO, crash_limit, retention)
            .await
    }

    /// Recovers the jobs of a boot that the caller knows to be gone, and how it died.
    pub async fn recover_gone(
        &self,
        gone: &BootId,
        death: BootDeath,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered, StoreError> {
        self.recover_leases((Some(gone), death), Duration::ZERO, crash_limit, retention).await
    }

    /// Recovers the jobs of boots whose lease has run out, as long as the last look was no longer ago than `pause`. Else
    /// the clock of Redis was set, or nobody looked: then the leases last on for what they had left.
    pub async fn recover_expired(
        &self,
        pause: Duration,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered, StoreError> {
        self.recover_leases((None, BootDeath::Unknown), pause, crash_limit, retention).await
    }

    async fn recover_leases(
        &self,
        (gone, death): (Option<&BootId>, BootDeath),
        pause: Duration,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered, StoreError> {
        let retention = kept(retention);
        let mut found = Recovered::default();
        loop {
            let mut script = self.scripts.recover_boots.prepare_invoke();
            script.arg(gone.map_or("", BootId::as_str)).arg(crash_limit).arg(&retention);
            script.arg(millis(pause)).arg(death.as_str());
            let (boots, put_back, given_up, notes, left): (u64, u64, u64, Vec<JobNote>, u64) =
                self.invoke(RECOVERING, &script).await?;
            found.boots += boots;
            found.put_back += put_back;
            found.given_up += given_up;
            found.notes.extend(notes);
            if left == 0 || put_back + given_up == 0 {
                return Ok(found);
            }
        }
    }

    /// Puts back jobs that foreign actors popped and never started.
    pub async fn recover_pops(
        &self,
        retention: impl Into<Retention>,
    ) -> Result<Recovered, StoreError> {
        let mut script = self.scripts.recover_pops.prepare_invoke();
        script.arg(millis(POP_GRACE)).arg(HEAD_DEPTH).arg(PER_SWEEP).arg(kept(retention));
        let (put_back, started, ended, orphans, notes): (u64, u64, u64, u64, Vec<JobNote>) =
            self.invoke("recovering foreign pops", &script).await?;
        let foreign = started + ended;
        Ok(Recovered { put_back, foreign, orphans, notes, ..Recovered::default() })
    }

    /// Moves jobs that have waited for longer than `after` in group and instance queues without live
    /// actors to the next wider queue, where they, or else their types, allow it. Returns notes on the
    /// first hundred.
    pub async fn fall_back(
        &self,
        after: Duration,
        of_types: &BTreeMap<ScriptType, Fallback>,
    ) -> Result<Vec<JobNote>, StoreError> {
        let mut script = self.scripts.fall_back.prepare_invoke();
        script
            .arg(u64::try_from(after.as_micros()).unwrap_or(u64::MAX))
            .arg(PER_SWEEP)
            .arg(FALLBACKS_PER_STEP);
        for (script_type, fallback) in of_types {
            script.arg(script_type.as_str()).arg(fallback.as_str());
        }
        let (_, notes): (u64, Vec<JobNote>) =
            self.invoke("moving jobs from queues without live actors", &script).await?;
        Ok(notes)
    }

    /// Tends jobs that foreign actors run. `timeout` is the default timeout of a job, `every` the
    /// interval between looks at it.
    pub async fn recover_foreign(
        &self,
        timeout: Duration,
        every: Duration,
        crash_limit: u32,
        retention: impl Into<Retention>,
    ) -> Result<Recovered, StoreError> {
        let mut script = self.scripts.recover_foreign.prepare_invoke();
        script
            .arg(timeout.as_secs_f64())
            .arg(millis(FOREIGN_MARGIN))
            .arg(millis(every))
            .arg(crash_limit)
            .arg(kept(retention));
        let (foreign, put_back, given_up, notes) =
            self.invoke("tending jobs of foreign actors", &script).await?;
        Ok(Recovered { put_back, given_up, foreign, notes, ..Recovered::default() })
    }

    /// Returns the keys that scripts found to have the wrong type, each with its type; each again
    /// after `again` while it is not repaired.
    pub async fn report_wrong_types(
        &self,
        again: Duration,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut script = self.scripts.report_wrong_types.prepare_invoke();
        script.arg(again.as_secs());
        self.invoke("reading which keys have the wrong type", &script).await
    }

    /// Returns the fixed keys that have the wrong type, and all keys where scripts found one
    /// lately, each as a sentence.
    pub async fn wrong_types(&self) -> Result<Vec<String>, StoreError> {
        const DOING: &str = "reading types of keys";
        let mut pipeline = redis::pipe();
        let fixed = self.keys.fixed();
        for (key, _) in &fixed {
            pipeline.cmd("TYPE").arg(key);
        }
        let types: Vec<String> = self.link.pipeline(DOING, &pipeline).await?;
        let wrong = fixed.iter().zip(types).filter(|((_, right), of)| of != right && of != "none");
        let mut found: Vec<String> = wrong
            .map(|((key, right), of)| format!("key {key} is a {of}, not a {right}; delete it"))
            .collect();
        let mut command = redis::cmd("ZRANGE");
        command.arg(self.keys.wrong_types()).arg(0).arg(-1);
        // Its own wrong type is among the others.
        let noted: Vec<String> = self.link.query(DOING, &command).await.unwrap_or_default();
        let noted = noted.iter().filter(|noted| fixed.iter().all(|(key, _)| key != *noted));
        found.extend(
            noted.map(|key| format!("key {key} had the wrong type lately; check its type")),
        );
        Ok(found)
    }

    /// Removes entries of jobs that are gone.
    pub async fn recover_orphans(&self) -> Result<Recovered, StoreError> {
        let orphans =
            self.run_script("removing orphans", &self.scripts.recover_orphans, PER_SWEEP).await?;
        Ok(Recovered { orphans, ..Recovered::default() })
    }
}
