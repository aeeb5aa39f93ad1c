//! Counters of each script type: jobs that came and ended, and times.

mod place_stats;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::place_stats::AskedPlaces;
use super::documents::{StatsDocument, TypeStatsDocument};
use super::{Client, ClientError};
use crate::proto::target::ScriptType;
use crate::proto::times::TimeHistogram;

/// The counters of a type, by name.
pub type Counters = BTreeMap<String, u64>;

impl TypeStatsDocument {
    /// Reads it from the counters of a type, or of several together.
    pub fn of(script_type: &str, counters: &Counters) -> Self {
        let counter = |name: &str| counters.get(name).copied().unwrap_or_default();
        let (finished, failed) = (counter("finished"), counter("failed"));
        Self {
            script_type: script_type.to_owned(),
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
}

fn failed_percent(finished: u64, failed: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let float = |number: u64| number as f64;
    let ended = finished + failed;
    (ended > 0).then(|| 100.0 * float(failed) / float(ended))
}

impl StatsDocument {
    /// Returns the document of the counts of a time, or since the first job of each type.
    pub fn of(counters: &[(ScriptType, Counters)], took: Option<Duration>) -> Self {
        let types =
            counters.iter().map(|(of, counters)| TypeStatsDocument::of(of.as_str(), counters));
        let seconds = took.map(|took| took.as_secs_f64());
        Self { seconds, types: types.collect(), ..Self::default() }
    }
}

impl Client {
    /// Returns the counters of every script type that ever had a job or an actor.
    pub async fn all_counters(&self) -> Result<Vec<(ScriptType, Counters)>, ClientError> {
        let types: Vec<ScriptType> =
            self.list_types().await?.into_iter().map(|of| of.script_type).collect();
        let counters = self.counters_of(&types).await?;
        Ok(types.into_iter().zip(counters).collect())
    }

    /// Returns the counts since the first job of each type.
    pub async fn stats(&self) -> Result<StatsDocument, ClientError> {
        Ok(StatsDocument::of(&self.all_counters().await?, None))
    }
}
