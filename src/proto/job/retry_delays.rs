//! The waits between the attempts of a job, and the exit codes that decide about further ones.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::proto::target::IllegalName;
use crate::proto::units::{format_duration, parse_duration};

/// The waits before retries: `10s..5m` doubles from the first to the longest, `10s` stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryDelays {
    pub first: Duration,
    pub longest: Duration,
}

impl RetryDelays {
    pub const FORM: &'static str =
        "a duration such as 10s, or two with .. between them such as 10s..5m, the longer one last";
    /// The longest wait that may be asked for.
    pub const MAX: Duration = Duration::from_hours(24 * 366);

    /// Returns the wait before the retry of this number, counted from 1.
    pub fn before(&self, retry: u32) -> Duration {
        let doubled = retry.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doubled).min(self.longest)
    }
}

impl FromStr for RetryDelays {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let (first, longest) = value.split_once("..").unwrap_or((value, value));
        let parsed = parse_duration(first.trim()).ok().zip(parse_duration(longest.trim()).ok());
        match parsed {
            Some((first, longest)) if first <= longest && longest <= Self::MAX => {
                Ok(Self { first, longest })
            }
            _ => Err(IllegalName::new("backoff", value, Self::FORM)),
        }
    }
}

impl fmt::Display for RetryDelays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_duration(self.first))?;
        if self.longest > self.first {
            write!(f, "..{}", format_duration(self.longest))?;
        }
        Ok(())
    }
}

/// Exit codes and ranges of them: `1`, `1,4`, `1-10,75`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitCodes {
    ranges: Vec<(u8, u8)>,
}

impl ExitCodes {
    pub const FORM: &'static str =
        "exit codes from 1 to 255 and ranges of them, with commas between them, such as 1,64-78";
    const RANGES_MAX: usize = 64;

    pub fn contains(&self, code: i32) -> bool {
        self.ranges
            .iter()
            .any(|(first, last)| (i32::from(*first)..=i32::from(*last)).contains(&code))
    }
}

impl FromStr for ExitCodes {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last): (u8, u8) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first > 0 && first <= last).then_some((first, last))
        };
        let ranges: Option<Vec<_>> = value.split(',').map(range).collect();
        match ranges {
            Some(ranges) if ranges.len() <= Self::RANGES_MAX => Ok(Self { ranges }),
            _ => Err(IllegalName::new("retry_if", value, Self::FORM)),
        }
    }
}

impl fmt::Display for ExitCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> RetryDelays {
        text.parse().expect("legal")
    }

    #[test]
    fn delays_double_from_the_first_to_the_longest() {
        let delays = of("10s..1m");
        let seconds = [1, 2, 3, 4, u32::MAX].map(|retry| delays.before(retry).as_secs());
        assert_eq!(seconds, [10, 20, 40, 60, 60]);
        assert_eq!([1, 5].map(|retry| of("30s").before(retry).as_secs()), [30, 30]);
    }

    #[test]
    fn delays_are_written_as_they_are_read() {
        for text in ["10s", "10s..5m", "500ms..1h", "0s"] {
            assert_eq!(of(text).to_string(), text);
        }
    }

    #[test]
    fn illegal_delays_are_rejected() {
        for text in ["", "10", "5m..10s", "..5m", "5m..", "1s..2s..3s", "400d", "-1s"] {
            assert!(text.parse::<RetryDelays>().is_err(), "{text}");
        }
    }

    #[test]
    fn set_contains_its_codes_and_ranges() {
        let codes: ExitCodes = "1, 4,10-12".parse().expect("legal");
        let inside: Vec<i32> = (-2..300).filter(|code| codes.contains(*code)).collect();
        assert_eq!(inside, [1, 4, 10, 11, 12]);
        assert_eq!(codes.to_string(), "1,4,10-12");
    }

    #[test]
    fn illegal_sets_are_rejected() {
        for text in ["", "0", "256", "a", "1,", "3-1", "1--2", "-1"] {
            assert!(text.parse::<ExitCodes>().is_err(), "{text}");
        }
        assert!(vec!["1"; 65].join(",").parse::<ExitCodes>().is_err());
    }
}
