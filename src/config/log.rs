//! `[log]`: the level of the daemon's log, and the jobs that it tells of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config_error::{Fault, KeyPath};
use super::key_row::TEN_YEARS;
use super::toml_table::toml_table;
use super::units::duration;
use crate::proto::target::is_word;
use crate::proto::text::shown;
use crate::proto::word_table::words;

toml_table! {
    /// The log of the daemon.
    pub struct LogConfig in "log" {
        /// The least severe level that is logged: `info` has the story of every job.
        level: LogLevel = LogLevel::default()
            => OneOf(&["error", "warn", "info", "debug", "trace"]);
        /// The jobs whose schedule, start and success are logged: `all`, `slow` (those that took longer than `slow`,
        /// one line each) or `failed` (none of them). Failed attempts, retries, dead letters and recoveries are logged
        /// in any case. Beyond 4000 lines about successful jobs, or about failed attempts, within 30 s the others are
        /// counted and left out: the journal's own limit is 10000 lines of a unit within 30 s (`RateLimitBurst` in
        /// journald.conf(5)), and beyond it, lines of every kind are lost.
        jobs: LoggedJobs = LoggedJobs::default() => OneOf(&["all", "slow", "failed"]);
        /// The time from which a successful job is slow.
        slow: Duration as "duration" = Duration::from_secs(1) => Duration(0, TEN_YEARS);
        /// Names of variables of jobs (`env_vars`), as patterns in which `*` is any text, in capitals or not. Their
        /// values, from four bytes on, are printed as `***` in the logs, outputs and errors of jobs, in log files and
        /// in the journal, line by line.
        redact: Vec<String> = REDACTED.split(' ').map(ToOwned::to_owned).collect() => Texts;
    }
}

/// The patterns of names of variables that hold secrets, by default.
const REDACTED: &str = "PASS *_PASS *PASSWORD* *PASSWD* *PASSPHRASE* *_PWD *TOKEN* *SECRET* *CREDENTIAL* AUTH *_AUTH \
     *AUTHORIZATION* *BEARER* *APIKEY* *_KEY";

impl LogConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        const PATTERNS_MAX: usize = 100;
        let table = KeyPath::of(&["log"]);
        let is_legal = |pattern: &&String| is_word(pattern.as_bytes(), 256, b"_*");
        if let Some(illegal) = self.redact.iter().find(|pattern| !is_legal(pattern)) {
            let message = format!(
                "has `{}`, which is not the name of a variable: letters, digits, _ and * for any text",
                shown(illegal)
            );
            return table.wrong("redact", message);
        }
        if self.redact.len() > PATTERNS_MAX {
            return table.wrong("redact", format!("must be at most {PATTERNS_MAX}"));
        }
        Ok(())
    }
}

/// The jobs whose schedule, start and success are written. Attempts that fail, and everything that a
/// supervisor recovers, are written in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedJobs {
    #[default]
    All,
    /// Jobs that took longer than `slow`: one line at their end.
    Slow,
    /// None: only attempts that fail.
    Failed,
}

words! {
    #[derive(Default, Deserialize)]
    LogLevel;
    /// Failures.
    Error = "error",
    /// And what an operator should check.
    Warn = "warn",
    /// And start and end of every job.
    #[default]
    Info = "info",
    /// And details for debugging.
    Debug = "debug",
    /// And every step.
    Trace = "trace",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::pattern::matches_name;

    #[test]
    fn usual_names_of_secrets_are_redacted_by_default_in_any_case() {
        let hides = |name: &str| matches_name(&LogConfig::default().redact, name);
        for name in [
            "PASSWORD",
            "Password",
            "PGPASSWORD",
            "db_password_2",
            "MYSQL_PASSWD",
            "SSH_PASSPHRASE",
            "DB_PASS",
            "TOKEN",
            "GithubToken",
            "SECRET",
            "clientSecret",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_APIKEY",
            "api_key",
            "PASS",
            "MYSQL_PWD",
            "HTTP_AUTH",
            "Authorization",
            "BEARER",
            "AWS_CREDENTIALS",
        ] {
            assert!(hides(name), "{name}");
        }
        for name in [
            "PATH", "HOME", "KEY", "KEYBOARD", "PASSED", "COMPASS", "LANG", "PWD", "OLDPWD",
            "AUTHOR",
        ] {
            assert!(!hides(name), "{name}");
        }
        assert!(LogConfig::default().check().is_ok());
    }
}
