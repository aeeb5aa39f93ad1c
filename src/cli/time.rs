//! Times and durations as people read and write them.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::input::bad;
pub(super) use crate::config::local_zone;
use crate::config::time_zone;
use crate::error::Error;
use crate::proto::spoken_time::parse_past_time;
pub(super) use crate::proto::units::brief;
use crate::store::LogLine;

/// Formats a time as the clock of a zone shows it: `2026-12-24 18:00:00.000+01:00`, with `Z` in UTC. The
/// options that take a time read it.
pub(super) fn local(time: Timestamp, zone: &TimeZone) -> String {
    let offset = if *zone == TimeZone::UTC { "Z" } else { "%:z" };
    time.to_zoned(zone.clone()).strftime(&format!("%Y-%m-%d %H:%M:%S.%3f{offset}")).to_string()
}

/// Formats a time as [`local`] does, without fractions of a second.
pub(super) fn local_second(time: Timestamp, zone: &TimeZone) -> String {
    let offset = if *zone == TimeZone::UTC { "Z" } else { "%:z" };
    time.to_zoned(zone.clone()).strftime(&format!("%Y-%m-%d %H:%M:%S{offset}")).to_string()
}

/// Formats a time in RFC 3339 as the clock of a zone that is named beside it shows it: `2026-12-24 18:00`, with
/// seconds where they are not zero.
pub(super) fn wall_clock(text: &str, zone: &TimeZone) -> String {
    let Ok(time) = text.parse::<Timestamp>() else { return text.to_owned() };
    let shown = time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
    shown.strip_suffix(":00").map_or_else(|| shown.clone(), str::to_owned)
}

/// Formats a time as the clock of a zone shows it, with the offset from UTC: one time may come twice in a night.
pub(super) fn with_offset(time: &str, zone: &TimeZone) -> String {
    let shown = wall_clock(time, zone);
    match time.parse::<Timestamp>() {
        Ok(time) => format!("{shown} {}", time.to_zoned(zone.clone()).strftime("%:z")),
        Err(_) => shown,
    }
}

/// Formats a time in RFC 3339 as the clock of a zone shows it. Returns any other text as it is.
pub(super) fn local_text(text: &str, zone: &TimeZone) -> String {
    text.parse().map_or_else(|_| text.to_owned(), |time| local(time, zone))
}

/// Formats a time as [`local_text`] does, without fractions of a second.
pub(super) fn local_second_text(text: &str, zone: &TimeZone) -> String {
    text.parse().map_or_else(|_| text.to_owned(), |time| local_second(time, zone))
}

/// The age of a time without fractions, or `in …` for a time in the future.
pub(super) fn age(time: Timestamp, now: Timestamp) -> String {
    if time > now {
        return format!("in {}", coarse(between(now, time)));
    }
    match between(time, now) {
        short if short < Duration::from_secs(1) => brief(short),
        long => coarse(long),
    }
}

/// The age of a time in RFC 3339; empty for any other text.
pub(super) fn age_of_text(text: &str, now: Timestamp) -> String {
    text.parse().map(|time| age(time, now)).unwrap_or_default()
}

/// The time from one to the other; zero if they are reversed, since clocks differ.
pub(super) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

fn coarse(duration: Duration) -> String {
    match duration.as_secs() {
        secs @ 0..60 => format!("{secs}s"),
        _ => brief(duration),
    }
}

/// The time zone of the moments of a command.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PastZone {
    /// The time zone of the times that are given, such as Europe/Brussels; by default the zone of TZ, else of this machine
    #[arg(long, visible_alias = "time-zone", value_name = "ZONE", value_parser = time_zone)]
    pub(super) timezone: Option<TimeZone>,
}

impl PastZone {
    pub(super) fn read(
        &self,
        option: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        parse_past_time(text, &self.zone_or_local(), now)
            .map_err(|error| bad(format!("{option}: {error}")))
    }

    pub(super) fn read_given(
        &self,
        option: &str,
        text: Option<&String>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        text.map(|text| self.read(option, text, now)).transpose()
    }

    /// Returns the place in a log before the time of `--since`.
    pub(super) fn place(&self, since: &str, now: Timestamp) -> Result<String, Error> {
        Ok(LogLine::place_before(self.read("--since", since, now)?))
    }

    pub(super) fn zone_or_local(&self) -> TimeZone {
        self.timezone.clone().unwrap_or_else(local_zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_shows_its_largest_units() {
        for (millis, shown) in [
            (0, "0us"),
            (12, "12ms"),
            (1250, "1.25s"),
            (200_000, "3m20s"),
            (18_120_000, "5h02m"),
            (356_400_000, "4d3h"),
        ] {
            assert_eq!(brief(Duration::from_millis(millis)), shown);
        }
        assert_eq!(brief(Duration::from_micros(340)), "340us");
    }

    #[test]
    fn local_time_has_its_offset_and_is_read_back() {
        let zone = TimeZone::get("Europe/Brussels").expect("a zone");
        for (utc, shown) in [
            ("2026-12-24T17:00:00.125Z", "2026-12-24 18:00:00.125+01:00"),
            ("2026-07-01T22:30:00.000Z", "2026-07-02 00:30:00.000+02:00"),
        ] {
            assert_eq!(local_text(utc, &zone), shown);
            let without = format!("{}{}", &shown[..19], &shown[23..]);
            assert_eq!(local_second(utc.parse().expect("a time"), &zone), without);
            let read: Timestamp = shown.parse().expect("a time");
            assert_eq!(format!("{read:.3}"), utc);
        }
        let utc = local_text("2026-12-24T17:00:00Z", &TimeZone::UTC);
        assert_eq!(utc, "2026-12-24 17:00:00.000Z");
        assert_eq!(local_text("soon", &zone), "soon");
        assert_eq!(wall_clock("2026-07-01T22:30:00Z", &zone), "2026-07-02 00:30");
        assert_eq!(wall_clock("2026-07-01T22:00:30.000Z", &zone), "2026-07-02 00:00:30");
    }

    #[test]
    fn future_time_is_shown_with_in() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        assert_eq!(age(at(100), at(130)), "30s");
        assert_eq!(age(at(130), at(100)), "in 30s");
        assert_eq!(between(at(130), at(100)), Duration::ZERO);
    }

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
