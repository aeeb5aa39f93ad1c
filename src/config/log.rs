//! `[log]`: the level of the daemon's log, and the jobs that it tells of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config_error::{Fault, KeyPath};
use super::units;
use crate::proto::text::shown;

/// `[log]`: the log of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LogConfig {
    /// The least severe level that is written.
    pub level: LogLevel,
    /// The jobs whose usual course is written.
    pub jobs: LoggedJobs,
    /// A successful job of this time or more counts as slow.
    #[serde(with = "units::duration")]
    pub slow: Duration,
    /// The names of the environment variables of jobs whose values no log shows, as patterns.
    pub redact: Vec<String>,
}

/// The patterns of names of variables that hold secrets, by default.
const REDACTED: [&str; 8] = [
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*_PASS",
    "*TOKEN*",
    "*SECRET*",
    "*APIKEY*",
    "*_KEY",
];

impl LogConfig {
    /// Checks the patterns.
    ///
    /// # Errors
    /// [`Fault`] names the first illegal one.
    pub(super) fn check(&self) -> Result<(), Fault> {
        const PATTERNS_MAX: usize = 100;
        let key = || KeyPath::of(&["log", "redact"]);
        let is_legal = |pattern: &&String| {
            (1..=256).contains(&pattern.len())
                && pattern.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'*'))
        };
        if let Some(illegal) = self.redact.iter().find(|pattern| !is_legal(pattern)) {
            let message = format!(
                "has `{}`, which is not the name of a variable: letters, digits, _ and * for any text",
                shown(illegal)
            );
            return Err(Fault::new(key(), message));
        }
        if self.redact.len() > PATTERNS_MAX {
            return Err(Fault::new(key(), format!("must be at most {PATTERNS_MAX}")));
        }
        Ok(())
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        let (level, jobs) = (LogLevel::default(), LoggedJobs::default());
        let redact = REDACTED.map(ToOwned::to_owned).into();
        Self { level, jobs, slow: Duration::from_secs(1), redact }
    }
}

/// The jobs whose schedule, start and success are written. Attempts that fail, and everything that a
/// supervisor recovers, are written in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedJobs {
    /// Every job.
    #[default]
    All,
    /// Jobs that took longer than `slow`: one line at their end.
    Slow,
    /// None: only attempts that fail.
    Failed,
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// And what an operator should check.
    Warn,
    /// And start and end of every job.
    #[default]
    Info,
    /// And details for debugging.
    Debug,
    /// And every step.
    Trace,
}

impl LogLevel {
    /// Returns the level as the configuration spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
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
        ] {
            assert!(hides(name), "{name}");
        }
        for name in ["PATH", "HOME", "KEY", "KEYBOARD", "PASSED", "COMPASS", "LANG"] {
            assert!(!hides(name), "{name}");
        }
        assert!(LogConfig::default().check().is_ok());
    }
}
