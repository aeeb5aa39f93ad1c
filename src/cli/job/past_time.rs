//! A time as people write it: a time that has passed, or a duration ago.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::input::bad;
use crate::cli::time::local_zone;
use crate::config::time_zone;
use crate::error::Error;
use crate::proto::spoken_time::parse_past_time;
use crate::store::LogLine;

/// The time zone of the moments of a command.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct PastZone {
    /// The time zone of the times that are given, such as Europe/Brussels; by default the zone of TZ, else of this machine
    #[arg(long, visible_alias = "time-zone", value_name = "ZONE", value_parser = time_zone)]
    timezone: Option<TimeZone>,
}

impl PastZone {
    /// Parses the time of an option.
    pub(in crate::cli) fn read(
        &self,
        option: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        parse_past_time(text, &self.zone_or_local(), now)
            .map_err(|error| bad(format!("{option}: {error}")))
    }

    /// Parses the time of an option, if it is given.
    pub(in crate::cli) fn read_given(
        &self,
        option: &str,
        text: Option<&String>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        text.map(|text| self.read(option, text, now)).transpose()
    }

    /// Returns the place in a log before the time of `--since`.
    pub(in crate::cli) fn place(&self, since: &str, now: Timestamp) -> Result<String, Error> {
        Ok(LogLine::place_before(self.read("--since", since, now)?))
    }

    /// Returns the zone that is given, else the one of this machine.
    pub(super) fn zone_or_local(&self) -> TimeZone {
        self.timezone.clone().unwrap_or_else(local_zone)
    }

    /// Returns the zone that is given.
    pub(super) fn zone(&self) -> Option<&TimeZone> {
        self.timezone.as_ref()
    }

    /// Returns the name of the zone that is given.
    pub(super) fn name(&self) -> Option<&str> {
        self.timezone.as_ref().and_then(TimeZone::iana_name)
    }
}
