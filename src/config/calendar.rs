//! `[calendar.NAME]`: days on which periodic jobs do not fire.

use crate::config::toml_table::toml_table;
use crate::proto::cron::FreeDays;

toml_table! {
    /// Calendars: days on which the periodic jobs that name one (`calendar = "holidays"`) do not fire. All machines
    /// with a supervisor must have the same calendars.
    ///
    ///     [calendar.holidays]
    ///     days = ["12-25", "2026-04-06", "2026-12-28..2026-12-31", "SUN"]
    /// ---
    /// Names have 1 to 32 of a-z, 0-9, `_` and `-`.
    pub struct CalendarConfig in "calendar.NAME" {
        /// Dates (`2026-12-25`), days of every year (`12-25`), ranges (`2026-07-01..2026-07-31`) and days of the week
        /// (`SUN`), at most 1000. A day is one of the time zone of the periodic job.
        days: Vec<FreeDays> = Vec::new() => Texts;
    }
}
