//! Times and durations in the hash of a job, and the times that jobs of a script type have unless they say.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

use super::value::{FieldKind, HashValue};
use crate::proto::target::ScriptType;
use crate::proto::text::shown;

/// The longest duration in any job: ten years.
const SECONDS_MAX: f64 = 315_360_000.0;

/// Returns the latest time that Hero knows for one of the two days after it, as `9999-12-31T23:59:59Z`, by which other programs
/// say never; `None` for any other text.
fn last_time(text: &str) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let is_last =
        pieces.date().year() == 9999 && pieces.date().month() == 12 && pieces.date().day() >= 30;
    (is_last && pieces.time().is_some() && pieces.offset().is_some()).then_some(Timestamp::MAX)
}

/// Parses a time in RFC 3339 with Z or an offset.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| last_time(text))
}

impl HashValue for Timestamp {
    const KIND: FieldKind = FieldKind::Time;

    fn read(text: &str) -> Result<Self, String> {
        parse_timestamp(text).ok_or_else(|| {
            format!(
                "`{}` is not a time in RFC 3339 with Z or an offset, such as \
                 2026-12-24T18:00:00+01:00",
                shown(text)
            )
        })
    }

    /// UTC with milliseconds.
    fn write(&self) -> String {
        format!("{self:.3}")
    }
}

impl HashValue for Duration {
    const KIND: FieldKind = FieldKind::Duration;

    fn read(text: &str) -> Result<Self, String> {
        let seconds = text.parse().ok().filter(|seconds| is_legal(*seconds));
        seconds.map(Self::from_secs_f64).ok_or_else(|| no_duration(text))
    }

    /// Whole seconds have no fraction, as older programs expect.
    fn write(&self) -> String {
        self.as_secs_f64().to_string()
    }

    fn fault(&self) -> Option<String> {
        (!is_legal(self.as_secs_f64())).then(|| no_duration(&self.write()))
    }
}

fn is_legal(seconds: f64) -> bool {
    seconds > 0.0 && seconds <= SECONDS_MAX
}

fn no_duration(text: &str) -> String {
    if text.parse().is_ok_and(|seconds: f64| seconds > SECONDS_MAX && seconds.is_finite()) {
        return format!("`{}` is more than {SECONDS_MAX} seconds, the limit", shown(text));
    }
    format!("`{}` is not a number of seconds above 0", shown(text))
}

/// The times of all script types: seconds by setting and type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeTimes(Vec<(String, String)>);

impl TypeTimes {
    pub fn fields(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }
}

/// A setting, a script type and the time, zero for none.
impl<'a> FromIterator<(&'static str, &'a ScriptType, Duration)> for TypeTimes {
    fn from_iter<I: IntoIterator<Item = (&'static str, &'a ScriptType, Duration)>>(all: I) -> Self {
        let set = all.into_iter().filter(|(.., time)| !time.is_zero());
        Self(set.map(|(field, of, time)| (format!("{field}:{of}"), time.write())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_second_of_the_last_year_is_the_latest_time() {
        let read = <Timestamp as HashValue>::read;
        for text in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999+00:00"] {
            let time = read(text).expect(text);
            assert_eq!(
                read(&time.write()).expect("it is read as it is written").as_second(),
                time.as_second()
            );
            assert!(time.to_string().starts_with("9999-12-30"), "{time}");
        }
        for text in
            ["9999-12-31", "9999-12-31T23:59:59", "9999-13-31T23:59:59Z", "99999-12-31T23:59:59Z"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_by_setting_and_type_without_those_that_are_not_set() {
        let (bash, osis) = ("bash".parse().expect("legal"), "osis".parse().expect("legal"));
        let times: TypeTimes = [
            ("expect_within", &bash, Duration::from_mins(10)),
            ("slow_after", &bash, Duration::ZERO),
            ("slow_after", &osis, Duration::from_millis(1)),
        ]
        .into_iter()
        .collect();
        let fields: Vec<_> = times.fields().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(fields, [("expect_within:bash", "600"), ("slow_after:osis", "0.001")]);
    }
}
