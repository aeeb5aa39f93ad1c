//! Firings of periodic jobs as a table.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::table::TextTable;
use super::time::{brief, wall_clock};
use crate::client::{FiringDocument, PeriodicJobDocument};
use crate::config::time_zone;

/// The longest delay that is shown: ten years.
pub(super) const LATE_MAX_S: f64 = 315_360_000.0;

/// Returns firings as a table, in the time zone of their periodic job.
pub(super) fn firing_table(firings: &[FiringDocument], zone: &TimeZone) -> TextTable {
    let late = |of: &FiringDocument| Duration::from_secs_f64(of.late_s.clamp(0.0, LATE_MAX_S));
    TextTable::of(firings)
        .column("DUE", &|of| with_offset(&of.due, zone))
        .column(">LATE", &|of| brief(late(of)))
        .column("FIRING", &|of| of.outcome.replace('_', " "))
        .column("#JOB", &|of| of.job_id.clone().or(of.batch_id.clone()).unwrap_or_default())
        .column("*STATUS", &|of| of.status.clone().unwrap_or_default())
        .column("!WHY", &|of| of.why.clone().unwrap_or_default())
        .table()
}

/// Formats a time as the clock of a zone shows it, with the offset from UTC: one time may come twice in a night.
pub(super) fn with_offset(time: &str, zone: &TimeZone) -> String {
    let shown = wall_clock(time, zone);
    let offset = time.parse().map(|time: Timestamp| zone.to_offset(time));
    offset.map_or_else(
        |_| shown.clone(),
        |offset| {
            let sign = if offset.is_negative() { '-' } else { '+' };
            let minutes = offset.seconds().unsigned_abs() / 60;
            format!("{shown} {sign}{:02}:{:02}", minutes / 60, minutes % 60)
        },
    )
}

/// The time zone of a periodic job; a name that this machine does not know is shown as UTC.
pub(super) fn zone_of(job: &PeriodicJobDocument) -> TimeZone {
    time_zone(&job.time_zone).unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_comes_twice_has_its_offset() {
        let zone = TimeZone::get("Europe/Brussels").expect("a zone");
        let shown =
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"].map(|at| with_offset(at, &zone));
        assert_eq!(shown, ["2026-10-25 02:30 +02:00", "2026-10-25 02:30 +01:00"]);
        let zone = TimeZone::get("America/St_Johns").expect("a zone");
        assert_eq!(with_offset("2026-01-01T12:00:00Z", &zone), "2026-01-01 08:30 -03:30");
    }
}
