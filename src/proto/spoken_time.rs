//! Times as people say them: `09:00`, `tomorrow 09:00`, `friday 18:00`, `2026-12-24 18:00`. Pure: the
//! caller passes the time zone and the time now.
//!
//! Where the local clock jumps ahead, a time inside the gap means the end of the gap. Where it goes back,
//! a time that comes twice means the first that is still ahead. The schedules of periodic jobs do the same.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::job::parse_timestamp;
use super::text::shown;
use super::units::parse_duration;

const BYTES_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error(
        "`{0}` is not a time: expected 09:00 or 9am (the next time that it is), today 23:30, tomorrow 09:00, \
         friday 18:00, 2026-12-24 18:00, or RFC 3339 with Z or an offset, such as \
         2026-12-24T18:00:00+01:00"
    )]
    Form(String),
    #[error("`{0}` is a length of time: give it as the delay, --delay {0}")]
    Length(String),
    #[error("`{text}` has passed: it is {now}; name a later day")]
    Past {
        text: String,
        /// The local time now, with its zone.
        now: String,
    },
}

enum Day {
    /// The next day when the time is still ahead.
    Next,
    /// The next of this name.
    Weekday(Weekday),
    Date(Date),
}

/// A time for a search, which cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a time: expected a duration ago such as 10m, 09:00 (the last time that it was), \
     today 09:00, yesterday 18:00, friday 18:00 (the last one), yesterday or 2026-12-24 for the start of \
     the day, 2026-12-24 18:00, or RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00"
)]
pub struct PastTimeError(String);

/// Parses a time in RFC 3339, a duration ago, or a local time of the zone: without a date the latest that
/// has passed.
pub fn parse_past_time(
    text: &str,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<Timestamp, PastTimeError> {
    let form = || PastTimeError(shown(text));
    if text.len() > BYTES_MAX {
        return Err(form());
    }
    if let Some(time) = parse_timestamp(text) {
        return Ok(time);
    }
    if let Ok(ago) = parse_duration(text) {
        return now.checked_sub(ago).map_err(|_| form());
    }
    let today = now.to_zoned(zone.clone()).date();
    let lower = text.to_ascii_lowercase();
    let whole_day = || Some((day(lower.trim(), today)?, Time::midnight()));
    let (day, time) = local(&lower, today).or_else(whole_day).ok_or_else(form)?;
    let days = day.dates(today, -1).into_iter();
    let moments: Vec<Timestamp> =
        days.flat_map(|day| moments(day.to_datetime(time), zone)).collect();
    let passed = moments.iter().filter(|moment| **moment <= now).max();
    // A date that is ahead may be an end.
    passed.or(moments.first()).copied().ok_or_else(form)
}

/// Parses a time in RFC 3339, or a local time of the zone, which must be ahead.
pub fn parse_time(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Timestamp, TimeError> {
    let form = || TimeError::Form(shown(text));
    if text.len() > BYTES_MAX {
        return Err(form());
    }
    if let Some(time) = parse_timestamp(text) {
        return Ok(time);
    }
    if parse_duration(text).is_ok() {
        return Err(TimeError::Length(shown(text)));
    }
    let today = now.to_zoned(zone.clone()).date();
    let (day, time) = local(&text.to_ascii_lowercase(), today).ok_or_else(form)?;
    let days = day.dates(today, 1).into_iter();
    let mut moments = days.flat_map(|day| moments(day.to_datetime(time), zone));
    moments.find(|moment| *moment > now).ok_or_else(|| {
        let here = now.to_zoned(zone.clone()).strftime("%H:%M on %Y-%m-%d").to_string();
        let now = format!("{here} in {}", zone.iana_name().unwrap_or("the local time zone"));
        TimeError::Past { text: shown(text), now }
    })
}

impl Day {
    /// Returns the dates that it may mean, the nearest first: from today on in this direction, 1 or -1, as its time may have
    /// passed today, or may be ahead.
    fn dates(self, today: Date, direction: i64) -> Vec<Date> {
        let near = |more| {
            (0..=more)
                .filter_map(move |days: i64| today.checked_add((direction * days).days()).ok())
        };
        match self {
            Self::Date(date) => vec![date],
            Self::Next => near(1).collect(),
            Self::Weekday(name) => near(7).filter(|date| date.weekday() == name).collect(),
        }
    }
}

/// Reads an optional day and a time of day.
fn local(text: &str, today: Date) -> Option<(Day, Time)> {
    let text = text.replace(" am", "am").replace(" pm", "pm");
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (day, time) = match words.as_slice() {
        [time] => (Day::Next, time),
        [day, time] | [day, "at", time] => (self::day(day, today)?, time),
        _ => return None,
    };
    Some((day, time_of_day(time)?))
}

fn day(word: &str, today: Date) -> Option<Day> {
    Some(match word {
        "today" => Day::Date(today),
        "tomorrow" => Day::Date(today.tomorrow().ok()?),
        "yesterday" => Day::Date(today.yesterday().ok()?),
        "monday" | "mon" => Day::Weekday(Weekday::Monday),
        "tuesday" | "tue" => Day::Weekday(Weekday::Tuesday),
        "wednesday" | "wed" => Day::Weekday(Weekday::Wednesday),
        "thursday" | "thu" => Day::Weekday(Weekday::Thursday),
        "friday" | "fri" => Day::Weekday(Weekday::Friday),
        "saturday" | "sat" => Day::Weekday(Weekday::Saturday),
        "sunday" | "sun" => Day::Weekday(Weekday::Sunday),
        date => {
            let mut parts = date.split('-');
            let mut next = |digits| number(parts.next()?, digits..=digits);
            let (year, month, day) = (next(4)?, next(2)?, next(2)?);
            if parts.next().is_some() {
                return None;
            }
            let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
            Day::Date(date.ok()?)
        }
    })
}

/// Reads `9:00`, `09:00`, `09:00:30`, `9am`, `9:30pm`, `noon` or `midnight`.
fn time_of_day(text: &str) -> Option<Time> {
    match text {
        "noon" => return Some(Time::constant(12, 0, 0, 0)),
        "midnight" => return Some(Time::midnight()),
        _ => {}
    }
    let half = |word, hours| Some((text.strip_suffix(word)?, hours));
    let (clock, half) =
        half("am", 0).or_else(|| half("pm", 12)).map_or((text, None), |of| (of.0, Some(of.1)));
    let mut parts = clock.split(':');
    let mut hour = number(parts.next()?, 1..=2)?;
    if let Some(hours) = half {
        hour = (1..=12).contains(&hour).then_some(hour % 12 + hours)?;
    }
    let minute = match parts.next() {
        None => half.map(|_| 0)?,
        Some(minute) => number(minute, 2..=2)?,
    };
    let second = parts.next().map_or(Some(0), |second| number(second, 2..=2))?;
    if parts.next().is_some() {
        return None;
    }
    let [hour, minute, second] = [hour, minute, second].map(i8::try_from);
    Time::new(hour.ok()?, minute.ok()?, second.ok()?, 0).ok()
}

fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i16> {
    let is_number = digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Returns the moments when the local clock shows a time, in order; at a gap its end.
pub(super) fn moments(time: DateTime, zone: &TimeZone) -> Vec<Timestamp> {
    let at = |offset: jiff::tz::Offset| offset.to_timestamp(time).ok();
    match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => at(offset).into_iter().collect(),
        AmbiguousOffset::Fold { before, after } => {
            at(before).into_iter().chain(at(after)).collect()
        }
        AmbiguousOffset::Gap { before, after } => {
            let end = |moment| zone.following(moment).next().map(|gap| gap.timestamp());
            at(after).and_then(end).or_else(|| at(before)).into_iter().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str, zone: &str, now: &str) -> Result<String, TimeError> {
        let zone = if zone == "UTC" { TimeZone::UTC } else { TimeZone::get(zone).expect("a zone") };
        parse_time(text, &zone, now.parse().expect("a time")).map(|time| time.to_string())
    }

    #[test]
    fn time_is_read_in_its_zone() {
        // A Monday, 11:00 in Brussels.
        let now = "2026-11-23T10:00:00Z";
        for (text, zone, expected) in [
            ("2026-12-24T18:00:00+01:00", "UTC", "2026-12-24T17:00:00Z"),
            ("2020-12-24T18:00:00Z", "Europe/Brussels", "2020-12-24T18:00:00Z"),
            ("09:00", "UTC", "2026-11-24T09:00:00Z"),
            ("10:00", "UTC", "2026-11-24T10:00:00Z"),
            ("10:00:01", "UTC", "2026-11-23T10:00:01Z"),
            ("11:01", "Europe/Brussels", "2026-11-23T10:01:00Z"),
            ("9:00", "Europe/Brussels", "2026-11-24T08:00:00Z"),
            ("today 23:30", "Europe/Brussels", "2026-11-23T22:30:00Z"),
            ("tomorrow 09:00", "Europe/Brussels", "2026-11-24T08:00:00Z"),
            ("Tomorrow at 09:00", "Europe/Brussels", "2026-11-24T08:00:00Z"),
            ("friday 18:00", "Europe/Brussels", "2026-11-27T17:00:00Z"),
            ("Fri 18:00", "UTC", "2026-11-27T18:00:00Z"),
            ("tomorrow 3am", "Europe/Brussels", "2026-11-24T02:00:00Z"),
            ("tomorrow at 3:30 PM", "UTC", "2026-11-24T15:30:00Z"),
            ("12am", "UTC", "2026-11-24T00:00:00Z"),
            ("12 pm", "UTC", "2026-11-23T12:00:00Z"),
            ("friday noon", "UTC", "2026-11-27T12:00:00Z"),
            ("tomorrow midnight", "UTC", "2026-11-24T00:00:00Z"),
            ("monday 18:00", "UTC", "2026-11-23T18:00:00Z"),
            ("monday 09:00", "UTC", "2026-11-30T09:00:00Z"),
            ("2026-12-24 18:00", "Europe/Brussels", "2026-12-24T17:00:00Z"),
            ("2026-07-01 18:00", "UTC", "passed"),
            ("2027-07-01 18:00", "Europe/Brussels", "2027-07-01T16:00:00Z"),
        ] {
            let read = parse(text, zone, now).unwrap_or_else(|_| "passed".to_owned());
            assert_eq!(read, expected, "{text} in {zone}");
        }
    }

    #[test]
    fn past_time_is_the_latest_that_has_passed() {
        let read = |text: &str, zone: &str| {
            let zone = TimeZone::get(zone).expect("a zone");
            // A Monday, 11:00 in Brussels.
            let now = "2026-11-23T10:00:00Z".parse().expect("a time");
            parse_past_time(text, &zone, now).map(|time| time.to_string())
        };
        for (text, expected) in [
            ("2h", "2026-11-23T08:00:00Z"),
            ("1h30m", "2026-11-23T08:30:00Z"),
            ("2026-11-20T18:00:00+01:00", "2026-11-20T17:00:00Z"),
            ("yesterday 18:00", "2026-11-22T17:00:00Z"),
            ("Yesterday at 18:00", "2026-11-22T17:00:00Z"),
            ("yesterday", "2026-11-21T23:00:00Z"),
            ("today", "2026-11-22T23:00:00Z"),
            ("today 09:00", "2026-11-23T08:00:00Z"),
            ("today 18:00", "2026-11-23T17:00:00Z"),
            ("09:00", "2026-11-23T08:00:00Z"),
            ("18:00", "2026-11-22T17:00:00Z"),
            ("11:00", "2026-11-23T10:00:00Z"),
            ("friday 18:00", "2026-11-20T17:00:00Z"),
            ("monday 09:00", "2026-11-23T08:00:00Z"),
            ("monday 12:00", "2026-11-16T11:00:00Z"),
            ("2026-11-01 18:00", "2026-11-01T17:00:00Z"),
            ("2026-11-01", "2026-10-31T23:00:00Z"),
            ("tomorrow 09:00", "2026-11-24T08:00:00Z"),
        ] {
            assert_eq!(read(text, "Europe/Brussels").as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(read("today 09:00", "UTC").as_deref(), Ok("2026-11-23T09:00:00Z"));
        for wrong in ["", "soon", "25:00", "2026-02-30", "2026-12-24T18:00:00", &"9".repeat(1000)] {
            let error = read(wrong, "UTC").expect_err(wrong).to_string();
            assert!(error.contains("yesterday 18:00") && error.len() < 500, "{error}");
        }
    }

    #[test]
    fn last_second_of_the_last_year_is_a_time_of_searches_and_starts() {
        let (zone, now) = (TimeZone::UTC, Timestamp::UNIX_EPOCH);
        let never = "9999-12-31T23:59:59Z";
        assert_eq!(parse_past_time(never, &zone, now), Ok(Timestamp::MAX));
        assert_eq!(parse_time(never, &zone, now), Ok(Timestamp::MAX));
    }

    #[test]
    fn day_is_that_of_the_zone_and_not_of_utc() {
        // 00:30 on the 24th in Brussels.
        let now = "2026-11-23T23:30:00Z";
        for (text, expected) in [
            ("tomorrow 09:00", "2026-11-25T08:00:00Z"),
            ("today 09:00", "2026-11-24T08:00:00Z"),
            ("00:15", "2026-11-24T23:15:00Z"),
        ] {
            assert_eq!(parse(text, "Europe/Brussels", now).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn time_in_the_gap_of_spring_is_the_end_of_the_gap() {
        // 29 March 2026: 02:00 becomes 03:00 in Brussels, which is 01:00 UTC.
        let now = "2026-03-28T12:00:00Z";
        for (text, expected) in [
            ("tomorrow 01:59", "2026-03-29T00:59:00Z"),
            ("tomorrow 02:00", "2026-03-29T01:00:00Z"),
            ("tomorrow 02:30", "2026-03-29T01:00:00Z"),
            ("2026-03-29 02:59:59", "2026-03-29T01:00:00Z"),
            ("sunday 03:00", "2026-03-29T01:00:00Z"),
        ] {
            assert_eq!(parse(text, "Europe/Brussels", now).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn time_that_comes_twice_in_autumn_is_the_first_that_is_ahead() {
        // 25 October 2026: 03:00 becomes 02:00 in Brussels, which is 01:00 UTC.
        for (now, text, expected) in [
            ("2026-10-24T12:00:00Z", "tomorrow 02:30", "2026-10-25T00:30:00Z"),
            ("2026-10-24T12:00:00Z", "02:30", "2026-10-25T00:30:00Z"),
            ("2026-10-25T00:45:00Z", "02:30", "2026-10-25T01:30:00Z"),
            ("2026-10-25T00:45:00Z", "2026-10-25 02:30", "2026-10-25T01:30:00Z"),
            ("2026-10-25T01:45:00Z", "02:30", "2026-10-26T01:30:00Z"),
            ("2026-10-24T12:00:00Z", "tomorrow 03:00", "2026-10-25T02:00:00Z"),
        ] {
            let read = parse(text, "Europe/Brussels", now);
            assert_eq!(read.as_deref(), Ok(expected), "{text} at {now}");
        }
    }

    #[test]
    fn unknown_form_is_rejected_with_the_known_ones() {
        for text in [
            "",
            "tomorrow",
            "friday",
            "soon",
            "25:00",
            "09:60",
            "9",
            "13pm",
            "0am",
            "9:5am",
            "09:0",
            "0900",
            "-1:00",
            "09:00:00:00",
            "2026-02-30 09:00",
            "26-12-24 09:00",
            "2026-12-24",
            "2026-12-24-1 09:00",
            "2026-12-24T18:00:00",
            "tomorrow 09:00 now",
            "tomorrow on 09:00",
            &"9".repeat(1000),
        ] {
            let error = parse(text, "UTC", "2026-11-23T10:00:00Z").expect_err(text);
            assert!(matches!(error, TimeError::Form(_)), "{text}: {error}");
            let said = error.to_string();
            assert!(said.contains("tomorrow 09:00") && said.len() < 400, "{said}");
        }
    }

    #[test]
    fn local_time_that_has_passed_is_rejected_with_the_time_there() {
        let error = parse("today 09:00", "Europe/Brussels", "2026-11-23T10:00:00Z");
        assert_eq!(
            error.expect_err("it has passed").to_string(),
            "`today 09:00` has passed: it is 11:00 on 2026-11-23 in Europe/Brussels; name a later day"
        );
    }

    proptest! {
        #[test]
        fn every_local_time_is_ahead_and_within_a_week(
            zone in proptest::sample::select(vec!["Europe/Brussels", "America/New_York", "Australia/Lord_Howe", "UTC"]),
            now in 1_774_000_000_i64..1_800_000_000, hour in 0..24, minute in 0..60,
            day in proptest::sample::select(vec!["", "sunday ", "tomorrow "]),
        ) {
            let now = Timestamp::from_second(now).expect("in range");
            let zone = TimeZone::get(zone).expect("a zone");
            let time = parse_time(&format!("{day}{hour:02}:{minute:02}"), &zone, now);
            let ahead = time.expect("legal").duration_since(now).as_secs();
            prop_assert!(0 < ahead && ahead <= 8 * 86_400, "{ahead}");
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-0-9:. a-zT]{0,24}") {
            let _ = parse_time(&text, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
            let _ = parse_past_time(&text, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
        }
    }
}
