//! Counters, throughput, and the samples of the counters of the last hour, one a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::backoff::{from_now, micros, millis};
use super::text::StoredText;
use super::{Result, StatsStore};
use crate::proto::queue::Queue;
use crate::proto::target::ScriptType;
use crate::proto::times::TimeHistogram;

/// The maximum number of steps of one sample; each removes some thousand entries of expired jobs.
const STEPS_MAX: usize = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sampled {
    pub types: u64,
    /// Jobs of a type have ended since the sample before, or entries are left to clean or to sort.
    pub jobs_end: bool,
    /// The jobs that ended under an older version, and were sorted by their ends now.
    pub sorted: u64,
}

impl StatsStore<'_> {
    /// Samples the throughput of types not sampled within `least`, and cleans the indexes of ended jobs and the queues.
    pub async fn sample(self, least: Duration) -> Result<Sampled> {
        let mut sampled = Sampled::default();
        // Jobs may expire faster than one step cleans; the bound lets the caller do other things.
        for _ in 0..STEPS_MAX {
            let (types, is_left, busy, sorted): (u64, u64, u64, u64) = self
                .store
                .run_script("sampling statistics", &self.store.scripts.sample, millis(least))
                .await?;
            sampled.types += types;
            sampled.jobs_end |= busy > 0 || is_left > 0;
            sampled.sorted += sorted;
            if is_left == 0 {
                break;
            }
        }
        Ok(sampled)
    }

    /// Queues whose first job has begun to wait for `long` or longer, with its wait; and, with
    /// `None`, queues where that has ended. Reports each change once.
    pub async fn long_waits(self, long: Duration) -> Result<Vec<(Queue, Option<Duration>)>> {
        let news: Vec<(String, i64)> = self
            .store
            .run_script("looking for long waits", &self.store.scripts.long_waits, micros(long))
            .await?;
        let read = |(queue, us): (String, i64)| Some((queue.parse().ok()?, from_now(us)));
        Ok(news.into_iter().filter_map(read).collect())
    }

    /// The counters of several types, in their order: submitted, started, finished, failed, retried, dead, skipped.
    pub async fn counters_of(self, types: &[ScriptType]) -> Result<Vec<BTreeMap<String, u64>>> {
        let of_type = |of| ("HGETALL", self.store.keys.stats(of));
        let answers = self.store.link.each("reading statistics", types, of_type).await?;
        Ok(answers.into_iter().map(|answer| numbers(answer.unwrap_or_default())).collect())
    }

    /// Counts spans of traces that no receiver got.
    pub async fn count_dropped_spans(self, service: &str, number: u64) -> Result<()> {
        let arguments = (self.store.keys.spans_dropped(), service, number);
        self.store.link.command("counting dropped spans", "HINCRBY", arguments).await
    }

    /// Returns the number of spans of traces that no receiver got, by service.
    pub async fn dropped_spans(self) -> Result<BTreeMap<String, u64>> {
        let key = self.store.keys.spans_dropped();
        Ok(numbers(self.store.link.command("reading statistics", "HGETALL", key).await?))
    }
}

fn numbers(fields: Vec<(String, String)>) -> BTreeMap<String, u64> {
    fields.into_iter().filter_map(|(name, number)| Some((name, number.parse().ok()?))).collect()
}

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

impl StatsStore<'_> {
    /// Keeps a sample of the counters, unless this minute has one. Returns whether it kept one.
    pub async fn keep_sample(self) -> Result<bool> {
        let (doing, names) = ("keeping a sample of the counters", CounterSample::names());
        self.store.run_script(doing, &self.store.scripts.keep_sample, names).await
    }

    /// The samples of the last hour and the one before it, the oldest first.
    pub async fn samples(self) -> Result<Vec<CounterSample>> {
        self.samples_in(self.store.keys.samples()).await
    }

    /// The samples of the last 30 days, one an hour, and then of the last hour, the oldest first.
    pub async fn all_samples(self) -> Result<Vec<CounterSample>> {
        let mut all = self.samples_in(self.store.keys.hours()).await?;
        all.extend(self.samples().await?);
        all.sort_by_key(|sample| sample.at_us);
        all.dedup_by_key(|sample| sample.at_us);
        Ok(all)
    }

    async fn samples_in(self, list: String) -> Result<Vec<CounterSample>> {
        let texts: Vec<StoredText> =
            self.store.link.command("reading samples", "LRANGE", (list, 0, -1)).await?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}
