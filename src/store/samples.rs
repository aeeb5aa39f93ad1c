//! Samples of the counters of the last hour, one a minute.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Store, StoreError};
use crate::proto::times::TimeHistogram;

/// The counters of the namespace at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CounterSample {
    /// Its time, in microseconds of Redis's clock.
    pub at_us: i64,
    /// Jobs that stood in queues.
    pub queued: u64,
    /// Jobs that limits held.
    pub held: u64,
    /// Jobs that actors of Hero ran.
    pub running: u64,
    /// The counters of each script type, in the order of [`CounterSample::names`].
    types: BTreeMap<String, Vec<u64>>,
}

impl CounterSample {
    /// Returns the names of the counters.
    pub fn names() -> Vec<String> {
        let times = TimeHistogram::ALL.into_iter().flat_map(TimeHistogram::counters);
        ["submitted", "finished", "failed"].map(str::to_owned).into_iter().chain(times).collect()
    }

    /// Returns by how much the counters of each type have grown since an earlier sample. A type that the
    /// earlier one does not have counts from zero.
    pub fn grown_since(&self, earlier: &Self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let names = Self::names();
        let grown = self.types.iter().filter(|(_, numbers)| numbers.len() == names.len());
        let grown = grown.map(|(of, numbers)| {
            let before = earlier.types.get(of).filter(|before| before.len() == names.len());
            let before = |place: usize| before.map_or(0, |before| before[place]);
            let numbers = numbers.iter().enumerate();
            let grown = numbers.map(|(place, number)| number.saturating_sub(before(place)));
            (of.clone(), names.iter().cloned().zip(grown).collect())
        });
        grown.collect()
    }
}

impl Store {
    /// Keeps a sample of the counters, unless this minute has one. Returns whether it kept one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn keep_sample(&self) -> Result<bool, StoreError> {
        let mut script = self.scripts.keep_sample.prepare_invoke();
        for name in CounterSample::names() {
            script.arg(name);
        }
        let kept: u8 = self.invoke("keeping a sample of the counters", &script).await?;
        Ok(kept == 1)
    }

    /// The samples of the last hour and the one before it, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn samples(&self) -> Result<Vec<CounterSample>, StoreError> {
        let mut command = redis::cmd("LRANGE");
        command.arg(self.keys.samples()).arg(0).arg(-1);
        let texts: Vec<String> = self.link.query("reading samples", &command).await?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}
