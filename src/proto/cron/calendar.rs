//! Days on which periodic jobs do not fire.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::{Date, Weekday};

use crate::proto::target::{IllegalName, is_small_word, name};
use crate::proto::text::shown;
use crate::proto::word_table::as_text;

name!(
    CalendarName,
    "name of a calendar",
    "1 to 32 of a-z, 0-9, _ and -, the first a letter or digit",
    |name| is_small_word(name, 32, b"_-") && name[0].is_ascii_alphanumeric()
);

pub const CALENDAR_DAYS_MAX: usize = 1000;

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MON", Weekday::Monday),
    ("TUE", Weekday::Tuesday),
    ("WED", Weekday::Wednesday),
    ("THU", Weekday::Thursday),
    ("FRI", Weekday::Friday),
    ("SAT", Weekday::Saturday),
    ("SUN", Weekday::Sunday),
];
/// A leap year, which has every day of a year.
const LEAP_YEAR: i16 = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeDays {
    Date(Date),
    Yearly { month: i8, day: i8 },
    Range(Date, Date),
    Weekday(Weekday),
}
as_text!(FreeDays);

impl FreeDays {
    pub fn has(&self, date: Date) -> bool {
        match *self {
            Self::Date(day) => day == date,
            Self::Yearly { month, day } => (month, day) == (date.month(), date.day()),
            Self::Range(first, last) => (first..=last).contains(&date),
            Self::Weekday(day) => day == date.weekday(),
        }
    }
}

impl FromStr for FreeDays {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let illegal = || {
            format!(
                "`{}` is no day: expected a date such as \"2026-12-25\", a day of every year such as \"12-25\", a range \
                 such as \"2026-07-01..2026-07-31\", or a day of the week, MON to SUN",
                shown(text)
            )
        };
        let date =
            |text: &str| text.trim().parse::<Date>().ok().filter(|_| text.trim().len() == 10);
        if let Some((first, last)) = text.split_once("..") {
            let range = date(first).zip(date(last)).filter(|(first, last)| first <= last);
            return range.map(|(first, last)| Self::Range(first, last)).ok_or_else(illegal);
        }
        let word = text.trim().to_ascii_uppercase();
        if let Some((_, day)) = WEEKDAYS.iter().find(|(known, _)| *known == word) {
            return Ok(Self::Weekday(*day));
        }
        if let Some(date) = date(text) {
            return Ok(Self::Date(date));
        }
        let yearly = word.split_once('-').and_then(|(month, day)| {
            let (month, day) = (month.parse().ok()?, day.parse().ok()?);
            Date::new(LEAP_YEAR, month, day).ok()
        });
        let yearly = yearly.map(|day| Self::Yearly { month: day.month(), day: day.day() });
        yearly.ok_or_else(illegal)
    }
}

impl fmt::Display for FreeDays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => write!(f, "{date}"),
            Self::Yearly { month, day } => write!(f, "{month:02}-{day:02}"),
            Self::Range(first, last) => write!(f, "{first}..{last}"),
            Self::Weekday(day) => {
                let word = WEEKDAYS.iter().find(|(_, known)| known == day);
                f.write_str(word.map_or("", |(word, _)| word))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    name: CalendarName,
    days: Arc<[FreeDays]>,
}

impl Calendar {
    pub fn new(name: CalendarName, days: Vec<FreeDays>) -> Self {
        Self { name, days: days.into() }
    }

    pub fn name(&self) -> &CalendarName {
        &self.name
    }

    pub fn days(&self) -> &[FreeDays] {
        &self.days
    }

    pub fn has(&self, date: Date) -> bool {
        self.days.iter().any(|days| days.has(date))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_a_date_a_day_of_every_year_a_range_or_a_weekday() {
        let has = |entry: &str, date: &str| {
            let days: FreeDays = entry.parse().expect(entry);
            days.has(date.parse().expect("a date"))
        };
        for (entry, in_it, out_of_it) in [
            ("2026-12-25", "2026-12-25", "2027-12-25"),
            ("12-25", "2031-12-25", "2031-12-26"),
            ("2-29", "2028-02-29", "2028-02-28"),
            ("2026-07-01..2026-07-31", "2026-07-31", "2026-08-01"),
            ("sat", "2026-11-28", "2026-11-27"),
        ] {
            assert!(has(entry, in_it) && !has(entry, out_of_it), "{entry}");
            let written: FreeDays = entry.parse().expect(entry);
            assert_eq!(written.to_string().parse(), Ok(written), "{entry}");
        }
        for illegal in ["", "12-32", "2-30", "2026-07-31..2026-07-01", "FUNDAY", "2026-1-1", "1..2"]
        {
            let error = illegal.parse::<FreeDays>().expect_err(illegal);
            assert!(error.contains("is no day: expected a date"), "{error}");
        }
    }
}
