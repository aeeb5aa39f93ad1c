//! `[limit.NAME]`: bounds on concurrent jobs and on starts per time.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::toml_table::toml_table;
use crate::proto::job::LimitKey;
use crate::proto::target::{Group, IllegalName, ScriptType, is_small_word, name};
use crate::proto::units::{format_duration, parse_duration};
use crate::proto::word_table::as_text;
use crate::proto::word_table::words;

name!(
    /// The name of a limit, in the configuration, in Redis, and in the jobs that it holds.
    LimitName,
    "name of a limit",
    "a letter a-z or digit, then at most 63 of a-z, 0-9, _, . and -",
    |name| is_small_word(name, 64, b"_.-") && name[0].is_ascii_alphanumeric()
);

toml_table! {
    /// Limits: how many jobs may run at once, and how many may start within a time, counted over all machines. All
    /// machines must have the same limits. One of `running` and `rate` is required. A job without a slot is held:
    /// jobs after it run, and no other job of the same limit overtakes it.
    ///
    /// At most 4 at once, and 100 starts within any minute, of the jobs that are submitted with `--limit-key api`:
    ///
    ///     [limit.api]
    ///     key = "api"
    ///     running = 4
    ///     rate = "100/m"
    ///
    /// At most 10 at once per caller:
    ///
    ///     [limit.callers]
    ///     per = "caller"
    ///     running = 10
    ///
    /// Eight at once, each caller in turn, and two of `shop` for each one of another:
    ///
    ///     [limit.python]
    ///     type = "python"
    ///     running = 8
    ///     fair = "caller"
    ///     weights = { shop = 2 }
    ///
    /// Five starts within ten seconds, of the jobs with all of these properties:
    ///
    ///     [limit.reports]
    ///     type = "python"
    ///     group = "io"
    ///     caller = "reports"
    ///     rate = "5/10s"
    /// ---
    /// Names are a letter of a-z or a digit, then at most 63 of a-z, 0-9, `_`, `.` and `-`.
    pub struct LimitConfig in "limit.NAME" {
        /// The most jobs that run at once.
        running: Option<u32> = None => Number(1, 10_000);
        /// The most jobs that start within a time, such as `10/s`, `100/m` or `5/10s`: from 1 to 10000, within 1ms to
        /// 1d.
        rate: Option<Rate> = None => Text;
        /// Counts separately by `type`, `group` (of a type), `caller` or `key`. Without it all jobs of the limit are
        /// counted together.
        per: Option<Per> = None => OneOf(&["type", "group", "caller", "key"]);
        /// Shares the slots of `running` by `caller`, `key`, `context` or `group`: of the jobs that wait for a slot, the next
        /// one is of whom has had the fewest, by `weights`. Needs `running`, and no `per`.
        fair: Option<Fair> = None => OneOf(&["caller", "key", "context", "group"]);
        /// The weights from 1 to 1000 of callers, keys, contexts or groups by their names, `"*"` for all others; 1 without.
        weights: BTreeMap<String, u32> = BTreeMap::new() => Labels;
        /// Select the jobs of the limit; each narrows the selection. A job without a group counts as one of `default`.
        /// The key is the one that a job names with `--limit-key`.
        script_type named "type": Option<ScriptType> = None => Text;
        group: Option<Group> = None => Text;
        caller: Option<String> = None => Text;
        key: Option<LimitKey> = None => Text;
    }
}

words! {
    #[derive(Deserialize)]
    Per;
    Type = "type",
    /// Each group of a script type.
    Group = "group",
    Caller = "caller",
    Key = "key",
}

words! {
    #[derive(Deserialize)]
    Fair;
    Caller = "caller",
    Key = "key",
    Context = "context",
    Group = "group",
}

/// A number of starts within a time, written `10/s`, `100/m`, `5/10s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub number: u32,
    /// The time, as a sliding window.
    pub period: Duration,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = format_duration(self.period);
        // One second is written `s`; `11s` keeps its number.
        let unit = period.strip_prefix('1').filter(|unit| unit.starts_with(char::is_alphabetic));
        write!(f, "{}/{}", self.number, unit.unwrap_or(&period))
    }
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "expected a number of starts within a time, such as \"10/s\" or \"100/5m\"";
        let (number, period) = text.split_once('/').ok_or(FORM)?;
        let number = number.parse().map_err(|_| FORM)?;
        let bare = period.starts_with(char::is_alphabetic);
        let period = if bare { format!("1{period}") } else { period.to_owned() };
        let period = parse_duration(&period).map_err(|_| FORM)?;
        Ok(Self { number, period })
    }
}

as_text!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_is_written() {
        for text in ["10/s", "1/ms", "100/m", "5/10s", "7/11s", "3/1500ms", "0/s"] {
            assert_eq!(text.parse::<Rate>().map(|rate| rate.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("4/60s".parse::<Rate>().expect("legal").to_string(), "4/m");
        for bad in ["", "10", "/s", "10/", "s/10", "-1/s", "1/2/s", "10/fortnight", "1.5/s"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad} was accepted");
        }
    }
}
