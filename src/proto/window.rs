//! The window of a graph or batch: how many of its jobs run at once, after how many failures no other starts, and after
//! how many jobs the others pause.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::counted;
use super::units::{format_duration, parse_duration};
use super::word_table::{as_text, inline_schema};

/// The window of a graph or batch, or a change of it. Zero is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GraphWindow {
    /// The number of its jobs that run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<u32>,
    /// The failures after which its other jobs are stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<StopAfter>,
    /// The jobs that start before the others, which pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_after: Option<PauseAfter>,
}

impl GraphWindow {
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        let at_a_time = self.at_a_time.map(|number| ("at_a_time", number.to_string()));
        let stop_after = self.stop_after.map(|failures| ("stop_after", failures.to_string()));
        let pause_after = self.pause_after.map(|pause| ("pause_after", pause.to_string()));
        [at_a_time, stop_after, pause_after].into_iter().flatten()
    }

    /// Returns it without the bounds that are zero.
    #[must_use]
    pub fn without_zeros(self) -> Self {
        Self {
            at_a_time: self.at_a_time.filter(|number| *number > 0),
            stop_after: self.stop_after.filter(|of| of.bound != FailureBound::Failures(0)),
            pause_after: self.pause_after.filter(|of| of.jobs > 0),
        }
    }

    /// Returns whether its bound of failures depends on the number of all jobs.
    pub fn has_share(&self) -> bool {
        self.stop_after.is_some_and(|of| matches!(of.bound, FailureBound::Share(_)))
    }

    /// Returns it with those bounds of another that this has.
    #[must_use]
    pub fn changed_by(self, other: Self) -> Self {
        Self {
            at_a_time: other.at_a_time.or(self.at_a_time),
            stop_after: other.stop_after.or(self.stop_after),
            pause_after: other.pause_after.or(self.pause_after),
        }
    }
}

/// `4 at a time, stops after 5% failed, pauses after 1 job for 10m`.
impl fmt::Display for GraphWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_a_time {
            Some(number) => write!(f, "{number} at a time")?,
            None => f.write_str("all at a time")?,
        }
        if let Some(StopAfter { bound, stops_running }) = self.stop_after {
            let running = if stops_running { ", those that run too" } else { "" };
            write!(f, ", stops after {bound} failed{running}")?;
        }
        let Some(PauseAfter { jobs, time }) = self.pause_after else { return Ok(()) };
        write!(f, ", pauses after {}", counted(jobs, "job", "jobs"))?;
        time.map_or(Ok(()), |time| write!(f, " for {}", format_duration(time)))
    }
}

/// The failures after which the other jobs of a graph or batch are stopped, written `2` or `5%`; with `2 running` those that
/// run too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopAfter {
    pub bound: FailureBound,
    /// True if jobs that run are stopped as well.
    pub stops_running: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureBound {
    Failures(u32),
    /// So many of a hundred jobs, rounded up.
    Share(u8),
}

/// The jobs of a graph or batch that start first, and the pause of the others once these have ended well; written `1 10m`,
/// or `1 tell`. Zero jobs are no pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseAfter {
    pub jobs: u32,
    /// The length of the pause; without it, the pause lasts until the graph is told to go on.
    pub time: Option<Duration>,
}

impl PauseAfter {
    /// The most jobs that start before the others.
    pub const JOBS_MAX: u32 = 100;
    const TIME_MAX: Duration = Duration::from_hours(30 * 24);
    /// Ends a pause that has no length.
    const TELL: &str = "tell";
}

const PAUSE_FORM: &str = "expected a number of jobs up to 100 and the length of the pause up to 30d, such as `1 10m`, or `1 tell`";

impl fmt::Display for PauseAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time {
            _ if self.jobs == 0 => f.write_str("0"),
            Some(time) => write!(f, "{} {}", self.jobs, format_duration(time)),
            None => write!(f, "{} {}", self.jobs, Self::TELL),
        }
    }
}

impl FromStr for PauseAfter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "0" {
            return Ok(Self { jobs: 0, time: None });
        }
        let (jobs, pause) = text.split_once(' ').ok_or(PAUSE_FORM)?;
        if !jobs.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(PAUSE_FORM);
        }
        let jobs = jobs.parse().map_err(|_| PAUSE_FORM)?;
        let time = match pause {
            Self::TELL => None,
            pause => Some(parse_duration(pause).map_err(|_| PAUSE_FORM)?),
        };
        let is_legal = (1..=Self::JOBS_MAX).contains(&jobs)
            && time.is_none_or(|time| !time.is_zero() && time <= Self::TIME_MAX);
        if is_legal { Ok(Self { jobs, time }) } else { Err(PAUSE_FORM) }
    }
}

as_text!(PauseAfter);

inline_schema!(PauseAfter, { "type": "string", "pattern": "^(0|[0-9]+ (tell|[0-9a-z]+))$" });

const FORM: &str = "expected a number of failures such as 2, or a share of all jobs such as 5%; with `2 running` the jobs that run are stopped too";
/// Follows the failures if the jobs that run are stopped too.
const RUNNING: &str = " running";

impl fmt::Display for StopAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.bound, if self.stops_running { RUNNING } else { "" })
    }
}

impl fmt::Display for FailureBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failures(number) => write!(f, "{number}"),
            Self::Share(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FromStr for StopAfter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let failures = text.strip_suffix(RUNNING);
        let (text, stops_running) = (failures.unwrap_or(text), failures.is_some());
        let digits = text.strip_suffix('%');
        if !digits.unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(FORM);
        }
        let bound = match digits.map(str::parse) {
            None => FailureBound::Failures(text.parse().map_err(|_| FORM)?),
            Some(Ok(percent @ 1..=100)) => FailureBound::Share(percent),
            Some(_) => return Err(FORM),
        };
        let is_none = bound == FailureBound::Failures(0);
        if stops_running && is_none { Err(FORM) } else { Ok(Self { bound, stops_running }) }
    }
}

impl Serialize for StopAfter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self { bound: FailureBound::Failures(number), stops_running: false } => {
                to.serialize_u32(*number)
            }
            _ => to.collect_str(self),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of failures such as 2, or a share such as \"5%\"")]
enum NumberOrText {
    Number(u32),
    Text(String),
}

impl<'de> Deserialize<'de> for StopAfter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(from)? {
            NumberOrText::Number(number) => {
                Ok(Self { bound: FailureBound::Failures(number), stops_running: false })
            }
            NumberOrText::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

inline_schema!(StopAfter, { "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+%?( running)?$" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_of_failures_is_a_number_or_a_share_and_reads_back() {
        for (text, read) in [
            ("0", FailureBound::Failures(0)),
            ("2", FailureBound::Failures(2)),
            ("1%", FailureBound::Share(1)),
            ("100%", FailureBound::Share(100)),
        ] {
            let read = StopAfter { bound: read, stops_running: false };
            assert_eq!(text.parse(), Ok(read));
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).expect("JSON");
            assert_eq!(serde_json::from_str::<StopAfter>(&json).expect("it reads back"), read);
        }
        let running = "2 running".parse().expect("legal");
        assert_eq!(StopAfter { bound: FailureBound::Failures(2), stops_running: true }, running);
        assert_eq!(running.to_string(), "2 running");
        assert_eq!(serde_json::to_string(&running).expect("JSON"), "\"2 running\"");
        for bad in [
            "",
            "0 running",
            "2running",
            "2 run",
            " running",
            "%",
            "0%",
            "101%",
            "5 %",
            "-1",
            "+1",
            "1.5%",
            "two",
            "99999999999",
        ] {
            assert!(bad.parse::<StopAfter>().is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn pause_round_trips_with_a_duration_or_without() {
        let minutes = |jobs, minutes| PauseAfter { jobs, time: Some(Duration::from_mins(minutes)) };
        for (text, read) in [
            ("0", PauseAfter { jobs: 0, time: None }),
            ("1 tell", PauseAfter { jobs: 1, time: None }),
            ("1 10m", minutes(1, 10)),
            ("100 90m", minutes(100, 90)),
        ] {
            assert_eq!(text.parse(), Ok(read));
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).expect("JSON");
            assert_eq!(serde_json::from_str::<PauseAfter>(&json).expect("it reads back"), read);
        }
        for bad in [
            "", "1", "0 tell", "0 10m", "101 tell", "1 go", "1  10m", "+1 tell", "1 31d", "1 0s",
            "tell",
        ] {
            assert!(bad.parse::<PauseAfter>().is_err(), "{bad} was accepted");
        }
    }
}
