//! Metrics of the periodic jobs that supervisors fire. There are none where none has been fired.

use jiff::Timestamp;

use super::float;
use super::text::{Exposition, Kind};
use crate::store::FiredCron;
use crate::view::Snapshot;

/// A gauge of each periodic job: its name, its help and its value.
type CronGauge = (&'static str, &'static str, fn(&FiredCron) -> Option<f64>);

const GAUGES: [CronGauge; 5] = [
    ("hero_cron_last_success_timestamp_seconds", "When its last job that finished ended.", |of| {
        of.ends.succeeded.as_ref().map(|(at, _)| seconds(*at))
    }),
    ("hero_cron_last_failure_timestamp_seconds", "When its last job that failed ended.", |of| {
        of.ends.failed.as_ref().map(|(at, ..)| seconds(*at))
    }),
    ("hero_cron_last_duration_seconds", "How long its last job that ended ran.", |of| {
        of.ends.took.map(|took| took.as_secs_f64())
    }),
    (
        "hero_cron_overdue_timestamp_seconds",
        "From when on it has not succeeded for twice its interval.",
        |of| of.ends.overdue.map(seconds),
    ),
    ("hero_cron_running", "1 if the job of its last firing runs.", |of| {
        Some(f64::from(u8::from(of.is_running)))
    }),
];

/// Writes them. Periodic jobs beyond the bound have no series.
pub(super) fn write(text: &mut Exposition, snapshot: &Snapshot, most: usize) {
    if snapshot.periodic_jobs.is_empty() {
        return;
    }
    let jobs = || snapshot.periodic_jobs.iter().take(most);
    for (metric, help, value) in GAUGES {
        let values = jobs().filter_map(|of| Some((of.name.as_str(), value(of)?)));
        text.family((metric, Kind::Gauge, help), "name", values);
    }
    let help = "Firings that were missed, as no supervisor ran, and are not made up for.";
    let missed = jobs().map(|of| (of.name.as_str(), float(of.ends.missed)));
    text.family(("hero_cron_missed", Kind::Counter, help), "name", missed);
}

fn seconds(at: Timestamp) -> f64 {
    at.as_duration().as_secs_f64()
}
