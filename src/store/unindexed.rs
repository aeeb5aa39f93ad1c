//! Jobs that stand in no index, since foreign actors that waited popped their ids before Hero knew of them.

use std::time::Duration;

use super::attempts::{kept, millis};
use super::{JobNote, Recovered, Result, Store};
use crate::proto::job::{JobId, Retention};

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

impl Store {
    /// Lists the ids of the last minute without a hash, each after its list: at most a thousand.
    pub async fn ids_without_hash(&self) -> Result<Vec<(String, String)>> {
        let arguments = (self.keys.unindexed(), 0, SHOWN_MAX - 1);
        let noted: Vec<String> =
            self.link.command("reading which ids were pushed early", "ZRANGE", arguments).await?;
        let pushed = |entry: &String| {
            let (list, id) = entry.split_once(' ')?;
            Some((list.to_owned(), id.to_owned()))
        };
        Ok(noted.iter().filter_map(pushed).collect())
    }

    /// Looks at jobs that are noted since they stand in no index, and, with `walks`, at some of the hashes of all jobs.
    /// Walks are `pause` apart. Calling again is safe.
    pub async fn find_unindexed(
        &self,
        walks: bool,
        pause: Duration,
        retention: impl Into<Retention>,
    ) -> Result<FoundUnindexed> {
        let mut script = self.scripts.find_unindexed.prepare_invoke();
        script.arg(millis(GRACE)).arg(if walks { KEYS_PER_STEP } else { 0 });
        script.arg(millis(STEP_PAUSE.min(pause))).arg(millis(pause)).arg(kept(retention));
        let (put_back, started, ended, next_ms, number, one, notes): Answer =
            self.invoke("finding jobs that stand in no index", &script).await?;
        let foreign = started + ended;
        Ok(FoundUnindexed {
            recovered: Recovered { put_back, foreign, notes, ..Recovered::default() },
            next: Duration::from_millis(next_ms),
            untyped: (number > 0).then_some((number, one)),
        })
    }

    /// Notes that a client waits for a job: if it stands in no index, a supervisor looks at it.
    pub async fn note_awaited(&self, id: &JobId) -> Result<()> {
        let doing = "noting that a job is awaited";
        self.run_script(doing, &self.scripts.note_awaited, id.as_str()).await
    }
}
