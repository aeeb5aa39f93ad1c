//! Samples of the counters of the last hour, one a minute.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::text::StoredText;
use super::{Result, Store};
use crate::proto::times::TimeHistogram;

/// The counters of the namespace at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CounterSample {
    /// Its time, in microseconds of Redis's clock.
    pub at_us: i64,
    /// Jobs that stood in queues.
    pub queued: u64,
    pub held: u64,
    /// Jobs that actors of Hero ran.
    pub running: u64,
    /// The counters of each script type, in the order of [`CounterSample::names`].
    types: BTreeMap<String, Vec<u64>>,
}

impl CounterSample {
    pub fn names() -> Vec<String> {
        let times = TimeHistogram::ALL.into_iter().flat_map(TimeHistogram::counters);
        let ends = ["submitted", "finished", "failed"].map(str::to_owned);
        // Those that a sample of an older version lacks come last.
        let later = ["cancelled", "replaced"].map(str::to_owned);
        ends.into_iter().chain(times).chain(later).collect()
    }

    /// Returns by how much the counters of each type have grown since an earlier sample. A type that the
    /// earlier one does not have counts from zero; a counter that it does not have has not grown.
    pub fn grown_since(&self, earlier: &Self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let names = Self::names();
        let grown = self.types.iter().map(|(of, numbers)| {
            let earlier = earlier.types.get(of);
            let numbers = numbers.iter().enumerate();
            let grown = numbers.map(|(place, number)| {
                let before = earlier.map_or(0, |of| of.get(place).copied().unwrap_or(*number));
                number.saturating_sub(before)
            });
            (of.clone(), names.iter().cloned().zip(grown).collect())
        });
        grown.collect()
    }

    /// Returns the sample that the counters of all types are at a moment.
    pub fn of_counters<'a>(
        at_us: i64,
        types: impl IntoIterator<Item = (&'a str, &'a BTreeMap<String, u64>)>,
    ) -> Self {
        let names = Self::names();
        let numbers = |counters: &BTreeMap<String, u64>| {
            names.iter().map(|name| counters.get(name).copied().unwrap_or_default()).collect()
        };
        let types = types.into_iter().map(|(of, counters)| (of.to_owned(), numbers(counters)));
        Self { at_us, queued: 0, held: 0, running: 0, types: types.collect() }
    }
}

impl Store {
    /// Keeps a sample of the counters, unless this minute has one. Returns whether it kept one.
    pub async fn keep_sample(&self) -> Result<bool> {
        let (doing, names) = ("keeping a sample of the counters", CounterSample::names());
        self.run_script(doing, &self.scripts.keep_sample, names).await
    }

    /// The samples of the last hour and the one before it, the oldest first.
    pub async fn samples(&self) -> Result<Vec<CounterSample>> {
        self.samples_in(self.keys.samples()).await
    }

    /// The samples of the last 30 days, one an hour, and then of the last hour, the oldest first.
    pub async fn all_samples(&self) -> Result<Vec<CounterSample>> {
        let mut all = self.samples_in(self.keys.hours()).await?;
        all.extend(self.samples().await?);
        all.sort_by_key(|sample| sample.at_us);
        all.dedup_by_key(|sample| sample.at_us);
        Ok(all)
    }

    async fn samples_in(&self, list: String) -> Result<Vec<CounterSample>> {
        let texts: Vec<StoredText> =
            self.link.command("reading samples", "LRANGE", (list, 0, -1)).await?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}
