//! The schedule of a periodic job. Pure: the caller passes the time.
//!
//! A cron line means local time in its time zone. Where the local clock jumps ahead, a job with fixed
//! times inside the gap runs once at the end of the gap, and a repeating one continues there. Where it goes
//! back, a job with fixed times runs in the first pass alone, and a repeating one in both. A line repeats if
//! its minute or hour has a `*`, as in Debian's cron.

mod added;
mod calendar;
mod import;
mod in_force;
mod lateness;
mod line;
mod rules;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

pub use self::added::{ADDED_BYTES_MAX, ADDED_MAX, AddedCron, CronChange, CronGraph};
pub use self::calendar::{CALENDAR_DAYS_MAX, Calendar, CalendarName, FreeDays};
pub use self::import::{CrontabKind, ImportNote, ImportedCrontab, ImportedJob, imported};
pub use self::in_force::CronInForce;
pub use self::lateness::{MissedFirings, OverdueTime};
use self::line::CronLine;
pub use self::rules::delay_of;
use super::job::JobId;
use super::spoken_time::moments;
use super::target::{IllegalName, is_small_word, name};
use super::units::{format_duration, parse_duration};
use crate::proto::word_table::words;

name!(
    /// The name of a periodic job. It becomes part of a key and of job ids.
    CronName,
    "name of a periodic job",
    "1 to 32 of a-z, 0-9, _ and -, the first a letter or digit",
    |name| is_small_word(name, 32, b"_-") && name[0].is_ascii_alphanumeric()
);

/// A firing that is later than this counts as missed: no supervisor was running.
pub const MISSED_AFTER: Duration = Duration::from_mins(1);
/// The maximum number of missed firings that are caught up: the latest ones.
pub const CAUGHT_UP_MAX: usize = 1000;
const LINE_BYTES_MAX: usize = 256;
/// The shortest and the longest distance of `@every`.
const EVERY_MIN: Duration = Duration::from_secs(1);
const EVERY_MAX: Duration = Duration::from_hours(366 * 24);

words! {
    /// The treatment of missed firings.
    #[derive(Default, serde::Deserialize)]
    CatchUp;
    /// Left out.
    #[default]
    Skip = "skip",
    /// The latest one is caught up.
    Once = "once",
    /// Each is caught up, of the latest [`CAUGHT_UP_MAX`].
    All = "all",
}

impl CatchUp {
    /// Returns the number of missed firings that are caught up at most.
    fn most(self) -> usize {
        match self {
            Self::Skip => 0,
            Self::Once => 1,
            Self::All => CAUGHT_UP_MAX,
        }
    }
}

words! {
    /// The treatment of a firing while the job of the last one has not ended.
    #[derive(Default, serde::Deserialize)]
    Overlap;
    /// The new job runs beside it.
    Allow = "allow",
    /// The new firing is left out.
    #[default]
    Skip = "skip",
    /// The last job is stopped.
    Replace = "replace",
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// Times of the local clock.
    Times(Box<CronLine>),
    /// A distance in seconds. The firings are its multiples since 1970-01-01T00:00:00Z: time that passes, which no change
    /// of a clock makes longer or shorter.
    Every(i64),
}

impl Pattern {
    fn parse(line: &str) -> Result<Self, String> {
        let Some(distance) = line.strip_prefix("@every") else {
            return CronLine::parse(line).map(|line| Self::Times(Box::new(line)));
        };
        let every = parse_duration(distance.trim()).map_err(|error| error.to_string())?;
        if every.subsec_nanos() > 0 || !(EVERY_MIN..=EVERY_MAX).contains(&every) {
            let (least, most) = (format_duration(EVERY_MIN), format_duration(EVERY_MAX));
            return Err(format!("@every takes whole seconds, {least} to {most}"));
        }
        i64::try_from(every.as_secs()).map(Self::Every).map_err(|error| error.to_string())
    }
}

/// The rules of a schedule beside its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FiringRules {
    delay: Duration,
    /// The longest delay that the name could give.
    spread: Duration,
    calendar: Option<Calendar>,
}

/// A cron line and its time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    line: String,
    parsed: Pattern,
    zone: TimeZone,
    rules: FiringRules,
}

/// Returns the end of a message about a line that is a time of the day.
fn of_time(line: &str) -> String {
    let number = |text: &str, most: u8| text.parse().ok().filter(|number: &u8| *number < most);
    let time = line.split_once(':').and_then(|(h, m)| number(h, 24).zip(number(m, 60)));
    time.map_or_else(String::new, |(hour, minute)| {
        format!("; every day at {line} is \"{minute} {hour} * * *\"")
    })
}

impl Schedule {
    /// Parses a line of five fields, of six with seconds first, a word such as `@daily`, or `@every 90m`.
    ///
    /// # Errors
    /// The mistake, as text; a line that never fires is one too.
    pub fn new(line: &str, zone: TimeZone) -> Result<Self, String> {
        let line = line.trim();
        if line.len() > LINE_BYTES_MAX {
            return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
        }
        let parsed = Pattern::parse(line).map_err(|mistake| {
            format!(
                "not a cron line: {mistake}; expected five fields such as \"30 3 * * MON-FRI\" (minute, hour, \
                 day, month, day of the week), six with seconds first, a word such as @daily, or @every 90m{}",
                of_time(line)
            )
        })?;
        let schedule = Self { line: line.to_owned(), parsed, zone, rules: FiringRules::default() };
        match schedule.next_after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err("never fires: no such day comes in any month".to_owned()),
        }
    }

    pub fn line(&self) -> &str {
        &self.line
    }

    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// Returns the first time of the line after a time.
    fn next_of_line(&self, time: Timestamp) -> Option<Timestamp> {
        let second = Timestamp::from_second(time.as_millisecond().div_euclid(1000)).ok()?;
        match &self.parsed {
            Pattern::Every(every) => {
                Timestamp::from_second((second.as_second().div_euclid(*every) + 1) * every).ok()
            }
            Pattern::Times(line) if line.repeats() => self.next_of_both(line, second),
            Pattern::Times(line) => self.next_of_first(line, second),
        }
    }

    /// Returns the next moment after a time when the local clock shows a time of the line, in any pass.
    fn next_of_both(&self, line: &CronLine, time: Timestamp) -> Option<Timestamp> {
        let mut from = time.checked_add(1.second()).ok()?;
        loop {
            let offset = self.zone.to_offset(from);
            let moment = offset.to_timestamp(line.first_from(offset.to_datetime(from))?).ok()?;
            let change = self.zone.following(from).next().map(|change| change.timestamp());
            match change.filter(|change| *change <= moment) {
                Some(change) => from = change,
                None => return Some(moment),
            }
        }
    }

    /// Returns the next moment after a time when the local clock shows a time of the line for the first
    /// time. A time inside a gap is its end.
    fn next_of_first(&self, line: &CronLine, time: Timestamp) -> Option<Timestamp> {
        let mut from = self.zone.to_datetime(time).checked_add(1.second()).ok()?;
        // After the clock has gone back: the local times until then have passed already.
        let change = self.zone.preceding(time.checked_add(1.second()).ok()?).next();
        if let Some(change) = change.map(|change| change.timestamp()) {
            let before = self.zone.to_offset(change.checked_sub(1.nanosecond()).ok()?);
            from = from.max(before.to_datetime(change));
        }
        loop {
            let local = line.first_from(from)?;
            // Always later, else callers would loop without end.
            match moments(local, &self.zone).first() {
                Some(moment) if *moment > time => return Some(*moment),
                _ => from = local.checked_add(1.second()).ok()?,
            }
        }
    }

    /// Returns the firings that are due, in order: after `last`, the latest that was fired or left
    /// out, up to `now`. If that is in the future, the clock was set back: the firings of the last minute are due.
    pub fn due(&self, last: Timestamp, now: Timestamp, catch_up: CatchUp) -> Vec<Timestamp> {
        let minute_ago = now.checked_sub(MISSED_AFTER).unwrap_or(Timestamp::MIN);
        let last = if last > now { minute_ago } else { last };
        let missed_before = minute_ago.max(last);
        let mut due = self.latest(last, missed_before, catch_up.most());
        due.extend(self.between(missed_before, now));
        due
    }

    fn between(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(from), |at| self.next_after(*at))
            .take_while(move |at| *at <= to)
    }

    /// Returns the latest firings after one time and up to another, at most `number`. Looks back
    /// in growing steps, as a line may fire each second and the time span years.
    fn latest(&self, from: Timestamp, to: Timestamp, number: usize) -> Vec<Timestamp> {
        const STEP: Duration = Duration::from_mins(1);
        const GROWS_BY: u32 = 8;
        let mut back = STEP;
        loop {
            let start = to.checked_sub(back).unwrap_or(Timestamp::MIN).max(from);
            let mut found: Vec<Timestamp> = self.between(start, to).collect();
            if found.len() >= number || start == from {
                found.drain(..found.len().saturating_sub(number));
                return found;
            }
            back = back.saturating_mul(GROWS_BY);
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.line, self.zone())
    }
}

impl CronName {
    /// Returns the id of the job of one firing; every supervisor makes the same.
    pub fn job_id(&self, due: Timestamp) -> Result<JobId, IllegalName> {
        format!("cron-{self}-{}", due.strftime("%Y%m%dT%H%M%SZ")).parse()
    }

    /// Returns the id of the job that a backfill submits for a time.
    pub fn backfill_id(&self, due: Timestamp) -> Result<JobId, IllegalName> {
        format!("{}-fill", self.job_id(due)?).parse()
    }
}

/// Returns true for the id of the job of a firing, which only a supervisor and a backfill give: `cron-NAME-TIME`,
/// followed by a suffix if that id was taken, or by `-fill`.
pub fn is_id_of_firing(id: &JobId) -> bool {
    let Some(rest) = id.as_str().strip_prefix("cron-") else { return false };
    let is_time = |text: &str| {
        let form = b"########T######Z";
        text.len() == form.len()
            && text.bytes().zip(form).all(|(byte, of_form)| match of_form {
                b'#' => byte.is_ascii_digit(),
                letter => byte == *letter,
            })
    };
    rest.rsplit('-').take(2).any(is_time)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn schedule(line: &str, zone: &str) -> Schedule {
        Schedule::new(line, TimeZone::get(zone).expect("a zone")).expect(line)
    }

    /// Returns the first firings after a time, in UTC.
    fn firings(line: &str, zone: &str, from: &str, number: usize) -> Vec<String> {
        let (schedule, mut from) = (schedule(line, zone), at(from));
        let mut found = Vec::new();
        for _ in 0..number {
            from = schedule.next_after(from).expect("it fires");
            found.push(from.to_string());
        }
        found
    }

    #[test]
    fn lines_have_five_fields_or_six_or_are_a_word() {
        for (line, first) in [
            ("30 3 * * *", "2026-01-01T03:30:00Z"),
            ("15 30 3 * * *", "2026-01-01T03:30:15Z"),
            ("*/20 * * * * *", "2026-01-01T00:00:20Z"),
            ("0 12 * * MON-FRI", "2026-01-01T12:00:00Z"),
            ("0 0 L * *", "2026-01-31T00:00:00Z"),
            ("@hourly", "2026-01-01T01:00:00Z"),
            ("@daily", "2026-01-02T00:00:00Z"),
            ("@midnight", "2026-01-02T00:00:00Z"),
            ("@Annually", "2027-01-01T00:00:00Z"),
            ("@weekly", "2026-01-04T00:00:00Z"),
            ("@monthly", "2026-02-01T00:00:00Z"),
            ("@yearly", "2027-01-01T00:00:00Z"),
            ("@every 90m", "2026-01-01T01:30:00Z"),
            ("@every  1d", "2026-01-02T00:00:00Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ] {
            assert_eq!(firings(line, "UTC", "2026-01-01T00:00:00Z", 1), [first], "{line}");
        }
    }

    #[test]
    fn an_illegal_line_and_one_that_never_fires_are_rejected() {
        for (line, message) in [
            ("", "not a cron line: it is empty; expected five fields such as"),
            ("* * *", "not a cron line: it has 3 fields; expected"),
            ("* * * * * * 2030", "not a cron line: it has 7 fields; expected"),
            ("61 * * * *", "not a cron line: `61` is no minute: 0 to 59; also lists"),
            ("0 25 * * *", "not a cron line: `25` is no hour: 0 to 23; "),
            ("0 0 0 * *", "not a cron line: `0` is no day of the month: 1 to 31, "),
            ("0 0 * 13 *", "not a cron line: `13` is no month: "),
            ("*/0 * * * * *", "not a cron line: `*/0` is no second: "),
            (
                "*/90 * * * *",
                "not a cron line: `*/90` has a step of 90, but there are 60 values of the minute: ",
            ),
            (
                "0 0,*/36 * * *",
                "not a cron line: `0,*/36` has a step of 36, but there are 24 values ",
            ),
            (
                "* * * * FUNDAY",
                "not a cron line: `FUNDAY` is no day of the week: 0 to 7 or SUN to SAT, ",
            ),
            (
                "@fortnightly",
                "not a cron line: unknown word `@fortnightly`: known are @hourly, @daily, ",
            ),
            ("@reboot", "not a cron line: @reboot names no time, and the supervisors of several "),
            ("@every", "not a cron line: "),
            ("@every soon", "not a cron line: "),
            ("@every 0s", "not a cron line: @every takes whole seconds, 1s to 366d"),
            ("@every 1500ms", "not a cron line: @every takes whole seconds"),
            ("@every 400d", "not a cron line: @every takes whole seconds"),
            ("0 0 30 2 *", "never fires: no such day"),
            ("0 0 31 4,6,9,11 *", "never fires: no such day"),
        ] {
            let error = Schedule::new(line, TimeZone::UTC).expect_err(line);
            assert!(error.starts_with(message), "{line}: {error}");
        }
        assert!(Schedule::new(&"0,".repeat(1000), TimeZone::UTC).is_err());
    }

    #[test]
    fn a_fixed_time_in_the_gap_of_spring_fires_at_the_end_of_the_gap() {
        // 29 March 2026: 02:00 becomes 03:00 in Brussels, which is 01:00 UTC.
        let fired = firings("30 2 * * *", "Europe/Brussels", "2026-03-28T12:00:00Z", 2);
        assert_eq!(fired, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        let fired = firings("*/30 * * * *", "Europe/Brussels", "2026-03-29T00:15:00Z", 3);
        assert_eq!(fired, ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]);
    }

    #[test]
    fn a_fixed_time_in_the_overlap_of_autumn_fires_once_and_a_repeating_one_in_both_passes() {
        // 25 October 2026: 03:00 becomes 02:00 in Brussels, which is 01:00 UTC.
        let fired = firings("30 2 * * *", "Europe/Brussels", "2026-10-24T12:00:00Z", 2);
        assert_eq!(fired, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let fired = firings("*/30 * * * *", "Europe/Brussels", "2026-10-25T00:15:00Z", 3);
        assert_eq!(fired, ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"]);
    }

    #[test]
    fn a_distance_is_time_that_passes_also_while_the_clock_changes() {
        for (from, expected) in [
            ("2026-03-28T23:00:00Z", ["2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z"]),
            ("2026-10-25T00:10:00Z", ["2026-10-25T01:30:00Z", "2026-10-25T03:00:00Z"]),
        ] {
            assert_eq!(firings("@every 90m", "Europe/Brussels", from, 2), expected);
        }
        // The same on every machine and after each restart: from no start of a supervisor, and from before 1970 too.
        let before = firings("@every 7h", "UTC", "1969-12-31T18:00:00Z", 2);
        assert_eq!(before, ["1970-01-01T00:00:00Z", "1970-01-01T07:00:00Z"]);
    }

    #[test]
    fn lists_and_ranges_of_hours_are_fixed_times() {
        for line in ["30 2,14 * * *", "30 1-2 * * *", "0,30 2 * * *", "0-59/30 2-3 * * *"] {
            let night = firings(line, "Europe/Brussels", "2026-10-24T22:00:00Z", 100);
            assert!(night.iter().all(|at| at.as_str() < "2026-10-25T01:00" || at.as_str() >= "2026-10-25T02:00"), "{line}: {night:?}");
            let night = firings(line, "Europe/Brussels", "2026-03-28T23:30:00Z", 2);
            assert!(night.iter().any(|at| at == "2026-03-29T01:00:00Z"), "{line}: {night:?}");
        }
        // A `*` in either field repeats, even with a step.
        let twice = firings("*/30 2 * * *", "Europe/Brussels", "2026-10-25T00:15:00Z", 3);
        assert_eq!(twice, ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"]);
    }

    #[test]
    fn missed_firings_are_left_out_or_caught_up_once_or_all() {
        let hourly = schedule("@hourly", "UTC");
        let (last, now) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T05:00:10Z"));
        let hours = |catch_up| -> Vec<String> {
            let due = hourly.due(last, now, catch_up).into_iter();
            due.map(|at| at.strftime("%H").to_string()).collect()
        };
        assert_eq!(hours(CatchUp::Skip), ["05"]);
        assert_eq!(hours(CatchUp::Once), ["04", "05"]);
        assert_eq!(hours(CatchUp::All), ["01", "02", "03", "04", "05"]);
        let long_ago = at("1970-01-01T00:00:00Z");
        let due = schedule("* * * * * *", "UTC").due(long_ago, now, CatchUp::All);
        assert_eq!(due.len(), CAUGHT_UP_MAX + 60, "bounded, however long no supervisor ran");
        assert!(due.is_sorted());
    }

    #[test]
    fn a_name_is_a_legal_part_of_a_key_and_of_a_job_id() {
        let name: CronName = "n".repeat(32).parse().expect("legal");
        let id = name.job_id(at("2026-01-02T03:04:05Z")).expect("legal");
        assert!(id.as_str().ends_with("-20260102T030405Z"), "{id}");
        for illegal in ["", "-a", "_", "a:b", "A", "a b", "ä", "{a}", &"n".repeat(33)] {
            assert!(illegal.parse::<CronName>().is_err(), "{illegal} was accepted");
        }
    }

    proptest! {
        #[test]
        fn every_firing_is_due_in_exactly_one_round(
            line in proptest::sample::select(vec![
                "* * * * * *", "*/7 * * * * *", "*/5 * * * *", "30 2 * * *", "0 1-3 * * *", "@hourly",
                "@every 7s", "@every 90m",
            ]),
            zone in proptest::sample::select(vec![
                "UTC", "Europe/Brussels", "America/New_York", "Australia/Lord_Howe",
            ]),
            start in 1_774_700_000_i64..1_774_760_000,
            autumn: bool,
            rounds in proptest::collection::vec(1_i64..50, 1..20),
        ) {
            let schedule = schedule(line, zone);
            let begin = start + if autumn { 18_140_000 } else { 0 };
            let second = |second| Timestamp::from_second(second).expect("in range");
            let (mut now, mut last, mut fired) = (begin, second(begin), Vec::new());
            for wait in rounds {
                now += wait;
                fired.extend(schedule.due(last, second(now), CatchUp::Skip));
                last = fired.last().copied().unwrap_or(last);
            }
            let all: Vec<_> = schedule.between(second(begin), second(now)).collect();
            prop_assert_eq!(&fired, &all);
            prop_assert!(fired.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn any_line_gives_a_schedule_or_a_sentence(line in "[-0-9*/,@LW#?+A-Za-z ]{0,24}") {
            if let Err(error) = Schedule::new(&line, TimeZone::UTC) {
                prop_assert!(!error.is_empty() && error.len() < 1000);
            }
        }
    }
}
