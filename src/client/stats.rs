//! Counters of each script type: jobs that came and ended, and times. And which machine is slow: failures and times of the
//! jobs that ended lately, by their machine or actor. No counter has them; they are read from the jobs that are still there.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::documents::{PlaceStatsDocument, StatsBy, StatsDocument, TypeStatsDocument};
use super::{Client, Result};
use crate::proto::job::JobStatus;
use crate::proto::job_filter::JobFilter;
use crate::proto::target::ScriptType;
use crate::proto::times::TimeHistogram;
use crate::store::{JobSearch, JobSummary, ListQuery};

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
    pub async fn all_counters(&self) -> Result<Vec<(ScriptType, Counters)>> {
        let types: Vec<ScriptType> =
            self.list_types().await?.into_iter().map(|of| of.script_type).collect();
        let counters = self.counters_of(&types).await?;
        Ok(types.into_iter().zip(counters).collect())
    }

    /// Returns the counts since the first job of each type.
    pub async fn stats(&self) -> Result<StatsDocument> {
        Ok(StatsDocument::of(&self.all_counters().await?, None))
    }

    /// Returns failures and times of ended jobs by machine or actor, the slowest first: of the latest that can be read within
    /// two seconds, and that the caller `sees`.
    pub async fn stats_by(
        &self,
        asked: &AskedPlaces,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<StatsDocument> {
        let now = self.now().await?;
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
        let each = |job| add(&mut places, asked.by, &job);
        let found = self.each_found(query, &search, sees, each).await?;
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
}

impl From<(String, Counters)> for PlaceStatsDocument {
    fn from((name, counters): (String, Counters)) -> Self {
        let TypeStatsDocument { finished, failed, cancelled, failed_percent, wait, run, .. } =
            TypeStatsDocument::of("", &counters);
        Self { name, finished, failed, cancelled, failed_percent, wait, run }
    }
}

/// The question of [`Client::stats_by`].
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

const COUNTED: [&str; 7] =
    ["hostname", "actor", "error", "created_at", "run_at", "started_at", "finished_at"];

/// Adds an ended job to the counters of its place.
fn add(places: &mut BTreeMap<String, Counters>, by: StatsBy, job: &JobSummary) {
    let field = match by {
        StatsBy::Host => "hostname",
        StatsBy::Actor => "actor",
    };
    // What did not start has neither.
    let Some(place) = job.fields.get(field) else { return };
    let counters = places.entry(place.clone()).or_default();
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
