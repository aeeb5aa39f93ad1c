//! A set of exit codes of a process.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::IllegalName;

/// Exit codes and ranges of them: `1`, `1,4`, `1-10,75`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitCodes {
    ranges: Vec<(u8, u8)>,
}

impl ExitCodes {
    /// The legal form, for messages.
    pub const FORM: &'static str =
        "exit codes from 1 to 255 and ranges of them, with commas between them, such as 1,64-78";
    /// The maximum number of codes and ranges of one set.
    const RANGES_MAX: usize = 64;

    /// Returns true if the code is one of them.
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
            _ => {
                let value = value.to_owned();
                Err(IllegalName { what: "retry_if", value, form: Self::FORM })
            }
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
