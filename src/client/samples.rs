//! The last hour, minute by minute, from the samples that supervisors keep.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::documents::{StatsDocument, TypeStatsDocument};
use super::stats::Counters;
use super::{Client, Result};
use crate::proto::target::ScriptType;
use crate::store::{CounterSample, Store};

/// The last hour, minute by minute.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SamplesDocument {
    /// The minutes, the oldest first. A minute without a live supervisor is missing, and the next one is longer.
    pub samples: Vec<SampleDocument>,
}

/// About a minute: what happened in it, and the jobs at its end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SampleDocument {
    /// Its end, in RFC 3339.
    pub at: String,
    /// Its length in seconds.
    pub seconds: f64,
    /// Jobs that stood in queues.
    pub queued: u64,
    /// Jobs that limits held.
    pub held: u64,
    /// Jobs that actors of Hero ran.
    pub running: u64,
    /// The counters of all sampled types together; `script_type` is empty.
    pub all: TypeStatsDocument,
    /// The counters of each type, of at most 32.
    pub types: Vec<TypeStatsDocument>,
}

#[derive(Debug, Clone)]
pub struct PeriodStats {
    /// The first sample: at the start of the period, or the nearest before it.
    pub from: Timestamp,
    pub to: Timestamp,
    /// The counters of each type, by how much they grew.
    pub types: Vec<(ScriptType, Counters)>,
}

impl PeriodStats {
    /// The sentence for a period without a sample.
    pub const NONE: &str =
        "no supervisor has kept a sample of this period: samples are kept for 30 days";

    pub fn document(&self) -> StatsDocument {
        let took = Duration::try_from(self.to.duration_since(self.from)).unwrap_or_default();
        let [from, to] = [self.from, self.to].map(|time| Some(format!("{time:.3}")));
        StatsDocument { from, to, ..StatsDocument::of(&self.types, Some(took)) }
    }
}

/// A minute of all shards together.
#[derive(Default)]
struct SummedMinute {
    end_us: i64,
    length_us: i64,
    queued: u64,
    held: u64,
    running: u64,
    types: BTreeMap<String, Counters>,
}

impl SummedMinute {
    /// Adds what happened on a shard between two samples.
    fn add(&mut self, earlier: &CounterSample, later: &CounterSample) {
        self.end_us = self.end_us.max(later.at_us);
        self.length_us = self.length_us.max(later.at_us - earlier.at_us);
        self.queued += later.queued;
        self.held += later.held;
        self.running += later.running;
        for (of, grown) in later.grown_since(earlier) {
            add(self.types.entry(of).or_default(), &grown);
        }
    }

    fn document(&self) -> SampleDocument {
        let mut all = Counters::new();
        self.types.values().for_each(|counters| add(&mut all, counters));
        let end = Timestamp::from_microsecond(self.end_us).ok();
        SampleDocument {
            at: end.map(|at| format!("{at:.3}")).unwrap_or_default(),
            seconds: SignedDuration::from_micros(self.length_us).as_secs_f64(),
            queued: self.queued,
            held: self.held,
            running: self.running,
            all: TypeStatsDocument::of("", &all),
            types: self
                .types
                .iter()
                .map(|(of, counters)| TypeStatsDocument::of(of, counters))
                .collect(),
        }
    }
}

pub(super) fn add(sum: &mut Counters, counters: &Counters) {
    for (name, number) in counters {
        *sum.entry(name.clone()).or_default() += number;
    }
}

/// The samples from the last one up to `from` to the last one up to `to`.
fn of_period(samples: &[CounterSample], from_us: i64, to_us: i64) -> &[CounterSample] {
    let first = samples.partition_point(|sample| sample.at_us <= from_us).saturating_sub(1);
    let end = samples.partition_point(|sample| sample.at_us <= to_us);
    &samples[first.min(end)..end]
}

impl Client {
    /// Returns the counts of a period, from samples: of each minute of the last hour, of each hour of the last
    /// 30 days. Without an end, until now. `None` if there is no sample of it.
    pub async fn stats_between(
        &self,
        from: Timestamp,
        to: Option<Timestamp>,
    ) -> Result<Option<PeriodStats>> {
        let now = self.now().await?;
        let to = to.unwrap_or(now).min(now);
        let types: Vec<ScriptType> =
            self.list_types().await?.into_iter().map(|of| of.script_type).collect();
        let asked = types.as_slice();
        let of_shards = self
            .shards
            .each(|store| async move {
                let mut samples = store.all_samples().await?;
                let counters = store.counters_of(asked).await?;
                let counted = asked.iter().map(ScriptType::as_str).zip(&counters);
                samples.push(CounterSample::of_counters(now.as_microsecond(), counted));
                Ok(samples)
            })
            .await?;
        let mut sums: BTreeMap<String, Counters> = BTreeMap::new();
        let (mut first, mut last): (Option<i64>, Option<i64>) = (None, None);
        for samples in &of_shards {
            let samples = of_period(samples, from.as_microsecond(), to.as_microsecond());
            for pair in samples.windows(2) {
                first = Some(first.map_or(pair[0].at_us, |at| at.min(pair[0].at_us)));
                last = last.max(Some(pair[1].at_us));
                for (of, grown) in pair[1].grown_since(&pair[0]) {
                    add(sums.entry(of).or_default(), &grown);
                }
            }
        }
        let time = |at: Option<i64>| Timestamp::from_microsecond(at?).ok();
        let (Some(from), Some(to)) = (time(first), time(last)) else { return Ok(None) };
        let types = sums.into_iter().filter_map(|(of, sum)| Some((of.parse().ok()?, sum)));
        Ok(Some(PeriodStats { from, to, types: types.collect() }))
    }

    /// Returns the last hour, minute by minute.
    pub async fn samples(&self) -> Result<SamplesDocument> {
        const MINUTE_US: i64 = 60_000_000;
        let mut minutes: BTreeMap<i64, SummedMinute> = BTreeMap::new();
        // A shard keeps one sample a minute.
        for samples in self.shards.each(Store::samples).await? {
            for pair in samples.windows(2) {
                let minute = minutes.entry(pair[1].at_us.div_euclid(MINUTE_US)).or_default();
                minute.add(&pair[0], &pair[1]);
            }
        }
        Ok(SamplesDocument { samples: minutes.values().map(SummedMinute::document).collect() })
    }
}
