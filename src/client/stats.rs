//! Counters of each script type: jobs that came and ended, and times.

use std::collections::BTreeMap;
use std::time::Duration;

use super::documents::{StatsDocument, TypeStatsDocument};
use super::{Client, ClientError};
use crate::proto::target::ScriptType;
use crate::proto::times::{TimeHistogram, Times};

/// The counters of a type, by name.
pub type Counters = BTreeMap<String, u64>;

/// The counters of a type over a time.
#[derive(Debug, Clone)]
pub struct TypeStats {
    /// The script type.
    pub script_type: ScriptType,
    /// Jobs submitted.
    pub submitted: u64,
    /// Jobs that finished.
    pub finished: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were stopped.
    pub cancelled: u64,
    /// Jobs that a later one with their unique key replaced.
    pub replaced: u64,
    /// The times that attempts waited.
    pub wait: Times,
    /// The times that attempts ran.
    pub run: Times,
}

impl TypeStats {
    /// Reads them from the counters of a type.
    pub fn of(script_type: ScriptType, counters: &Counters) -> Self {
        let counter = |name: &str| counters.get(name).copied().unwrap_or_default();
        Self {
            script_type,
            submitted: counter("submitted"),
            finished: counter("finished"),
            failed: counter("failed"),
            cancelled: counter("cancelled"),
            replaced: counter("replaced"),
            wait: TimeHistogram::Wait.read(counter),
            run: TimeHistogram::Run.read(counter),
        }
    }

    /// The share of jobs that failed, of those that failed or finished, in per cent.
    pub fn failed_percent(&self) -> Option<f64> {
        failed_percent(self.finished, self.failed)
    }
}

impl From<&TypeStats> for TypeStatsDocument {
    fn from(of: &TypeStats) -> Self {
        Self {
            script_type: of.script_type.to_string(),
            submitted: of.submitted,
            finished: of.finished,
            failed: of.failed,
            cancelled: of.cancelled,
            replaced: of.replaced,
            failed_percent: of.failed_percent(),
            wait: (&of.wait).into(),
            run: (&of.run).into(),
        }
    }
}

/// Returns the document of counters, without the name of their type.
pub(super) fn counted(counters: &Counters) -> TypeStatsDocument {
    let counter = |name: &str| counters.get(name).copied().unwrap_or_default();
    let (finished, failed) = (counter("finished"), counter("failed"));
    TypeStatsDocument {
        script_type: String::new(),
        submitted: counter("submitted"),
        finished,
        failed,
        cancelled: counter("cancelled"),
        replaced: counter("replaced"),
        failed_percent: failed_percent(finished, failed),
        wait: (&TimeHistogram::Wait.read(counter)).into(),
        run: (&TimeHistogram::Run.read(counter)).into(),
    }
}

fn failed_percent(finished: u64, failed: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let float = |number: u64| number as f64;
    let ended = finished + failed;
    (ended > 0).then(|| 100.0 * float(failed) / float(ended))
}

impl StatsDocument {
    /// Returns the document of the counts of a time, or since the first job of each type.
    pub fn of(stats: &[TypeStats], took: Option<Duration>) -> Self {
        let seconds = took.map(|took| took.as_secs_f64());
        Self { seconds, from: None, to: None, types: stats.iter().map(Into::into).collect() }
    }
}

impl Client {
    /// Returns the counters of every script type that ever had a job or an actor.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn all_counters(&self) -> Result<Vec<(ScriptType, Counters)>, ClientError> {
        let types: Vec<ScriptType> =
            self.list_types().await?.into_iter().map(|of| of.script_type).collect();
        let counters = self.counters_of(&types).await?;
        Ok(types.into_iter().zip(counters).collect())
    }

    /// Returns the counts since the first job of each type.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn stats(&self) -> Result<StatsDocument, ClientError> {
        let all = self.all_counters().await?;
        let stats: Vec<TypeStats> =
            all.into_iter().map(|(of, counters)| TypeStats::of(of, &counters)).collect();
        Ok(StatsDocument::of(&stats, None))
    }
}
