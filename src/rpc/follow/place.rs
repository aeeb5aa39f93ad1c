//! The place of an entry in a stream of Redis, which is the sequence number of notifications.

use std::fmt;
use std::str::FromStr;

/// A place: milliseconds by Redis's clock, and a number within that millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct StreamPlace(u64, u64);

impl StreamPlace {
    /// Reads the place of an entry that Redis gave.
    pub(super) fn of(text: &str) -> Self {
        text.parse().unwrap_or_default()
    }
}

impl FromStr for StreamPlace {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |(time, number): (&str, &str)| Some((time.parse().ok()?, number.parse().ok()?));
        let parsed = text.split_once('-').and_then(read);
        let (time, number) = parsed.ok_or("expected a sequence number such as 1790000000000-0")?;
        Ok(Self(time, number))
    }
}

impl fmt::Display for StreamPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}
