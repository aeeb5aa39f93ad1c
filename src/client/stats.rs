//! Counters of each script type: jobs that came and ended, and times; also of a period, and of the last hour minute by minute, from
//! the samples that supervisors keep. And which machine is slow: failures and times of the
//! jobs that ended lately, by their machine or actor. No counter has them; they are read from the jobs that are still there.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::documents::{PlaceStatsDocument, StatsBy, StatsDocument, TypeStatsDocument};
use super::{Result, StatsClient};
use crate::proto::job::JobStatus;
use crate::proto::job_filter::JobFilter;
use crate::proto::target::ScriptType;
use crate::proto::times::TimeHistogram;
use crate::store::{CounterSample, JobSearch, JobSummary, ListQuery};

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

impl StatsClient<'_> {
    /// Returns the counters of every script type that ever had a job or an actor.
    pub async fn all_counters(self) -> Result<Vec<(ScriptType, Counters)>> {
        let types: Vec<ScriptType> =
            self.client.system().types().await?.into_iter().map(|of| of.script_type).collect();
        let counters = self.counters_of(&types).await?;
        Ok(types.into_iter().zip(counters).collect())
    }

    /// Returns the counts since the first job of each type.
    pub async fn get(self) -> Result<StatsDocument> {
        Ok(StatsDocument::of(&self.all_counters().await?, None))
    }

    /// Returns failures and times of ended jobs by machine or actor, the slowest first: of the latest that can be read within
    /// two seconds, and that the caller `sees`.
    pub async fn by(
        self,
        asked: &AskedPlaces,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<StatsDocument> {
        let now = self.client.system().now().await?;
        // The filters are of parsed values.
        let (query, search) =
            JobSearch::of(&asked.filter(), &TimeZone::UTC, now).unwrap_or_default();
        let search = search.reading(&COUNTED);
        let query = ListQuery {
            statuses: vec![JobStatus::Finished, JobStatus::Error],
            budget: Some(ListQuery::BUDGET),
            limit: usize::MAX,
            ..query
        };
        let mut places: BTreeMap<String, Counters> = BTreeMap::new();
        let each = |job| add_job(&mut places, asked.by, &job);
        let found = self.client.jobs().each_found(query, &search, sees, each).await?;
        let mut places: Vec<PlaceStatsDocument> =
            places.into_iter().map(PlaceStatsDocument::from).collect();
        let mean = |of: &PlaceStatsDocument| of.run.mean_s.unwrap_or_default();
        places.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then_with(|| a.name.cmp(&b.name)));
        let text = |time: Timestamp| format!("{time:.3}");
        Ok(StatsDocument {
            seconds: None,
            from: found.back_to().or(asked.since).map(text),
            to: Some(text(asked.until.map_or(now, |until| until.min(now)))),
            types: Vec::new(),
            by: Some(asked.by),
            places,
            searched: Some(found.searched as u64),
            complete: Some(found.complete),
        })
    }

    /// Returns the counts of a period, from samples: of each minute of the last hour, of each hour of the last
    /// 30 days. Without an end, until now. `None` if there is no sample of it.
    pub async fn between(
        self,
        from: Timestamp,
        to: Option<Timestamp>,
    ) -> Result<Option<PeriodStats>> {
        let now = self.client.system().now().await?;
        let to = to.unwrap_or(now).min(now);
        let types: Vec<ScriptType> =
            self.client.system().types().await?.into_iter().map(|of| of.script_type).collect();
        let asked = types.as_slice();
        let of_shards = self
            .client
            .shards
            .each(|store| async move {
                let mut samples = store.stats().all_samples().await?;
                let counters = store.stats().counters_of(asked).await?;
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
    pub async fn samples(self) -> Result<SamplesDocument> {
        const MINUTE_US: i64 = 60_000_000;
        let mut minutes: BTreeMap<i64, SummedMinute> = BTreeMap::new();
        // A shard keeps one sample a minute.
        for samples in self.client.shards.each(|store| store.stats().samples()).await? {
            for pair in samples.windows(2) {
                let minute = minutes.entry(pair[1].at_us.div_euclid(MINUTE_US)).or_default();
                minute.add(&pair[0], &pair[1]);
            }
        }
        Ok(SamplesDocument { samples: minutes.values().map(SummedMinute::document).collect() })
    }
}

impl From<(String, Counters)> for PlaceStatsDocument {
    fn from((name, counters): (String, Counters)) -> Self {
        let TypeStatsDocument { finished, failed, cancelled, failed_percent, wait, run, .. } =
            TypeStatsDocument::of("", &counters);
        let memory_peak = counters.get(MEMORY_PEAK).copied();
        Self { name, finished, failed, cancelled, failed_percent, wait, run, memory_peak }
    }
}

/// The question of [`StatsClient::by`].
#[derive(Debug, Clone)]
pub struct AskedPlaces {
    pub by: StatsBy,
    /// Only jobs of this type.
    pub script_type: Option<ScriptType>,
    /// Only jobs that ended then or later.
    pub since: Option<Timestamp>,
    /// Only jobs that ended then or earlier.
    pub until: Option<Timestamp>,
}

impl AskedPlaces {
    fn filter(&self) -> JobFilter {
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let script_type = self.script_type.as_ref().map(ToString::to_string);
        let (since, until) = (text(self.since), text(self.until));
        let values = [("type", script_type), ("ended_since", since), ("ended_until", until)];
        let given = values.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        JobFilter::of(given)
    }
}

/// The field of a job, and the member of the counters that has the largest of them.
const MEMORY_PEAK: &str = "memory_peak";
const COUNTED: [&str; 9] = [
    "hostname",
    "actor",
    "name",
    "error",
    "created_at",
    "run_at",
    "started_at",
    "finished_at",
    MEMORY_PEAK,
];

/// Adds an ended job to the counters of its place.
fn add_job(places: &mut BTreeMap<String, Counters>, by: StatsBy, job: &JobSummary) {
    let field = match by {
        StatsBy::Host => "hostname",
        StatsBy::Actor => "actor",
        StatsBy::Name => "name",
    };
    // What did not start has neither of the first two.
    let Some(place) = job.fields.get(field) else { return };
    let counters = places.entry(place.clone()).or_default();
    if let Some(peak) = job.fields.get(MEMORY_PEAK).and_then(|peak| peak.parse::<u64>().ok()) {
        let largest = counters.entry(MEMORY_PEAK.to_owned()).or_default();
        *largest = peak.max(*largest);
    }
    let mut count = |name: String, number: u64| *counters.entry(name).or_default() += number;
    let end = match job.status {
        JobStatus::Finished => "finished",
        _ if job.intended_end().is_some() => "cancelled",
        _ => "failed",
    };
    count(end.to_owned(), 1);
    let Some(started) = job.time("started_at") else { return };
    let due = job.time("created_at").max(job.time("run_at"));
    let since = |from: Option<Timestamp>, to: Option<Timestamp>| {
        Duration::try_from(to?.duration_since(from?)).ok()
    };
    let times = [
        (TimeHistogram::Wait, since(due, Some(started))),
        (TimeHistogram::Run, since(Some(started), job.time("finished_at"))),
    ];
    for (histogram, time) in times {
        let counts = time.into_iter().flat_map(|time| histogram.counts(time));
        counts.for_each(|(name, number)| count(name, number));
    }
}

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
