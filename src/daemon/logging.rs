//! Writes the log to the journal under systemd, else to standard error.

use std::io::IsTerminal;

use tracing::warn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::config::LogLevel;

/// The variable that overrides the configured level, in the syntax of `tracing` (`warn`,
/// `hero::actor=debug`).
const OVERRIDE: &str = "HERO_LOG";

/// The handle that changes the log level.
pub(super) struct Logging {
    /// `None` if the level cannot be changed.
    filter: Option<reload::Handle<EnvFilter, Registry>>,
}

impl Logging {
    /// Starts logging. Has no effect in a process that logs already.
    pub(super) fn start(level: LogLevel) -> Self {
        let overridden = EnvFilter::try_from_env(OVERRIDE).ok();
        let fixed = overridden.is_some();
        let filter = overridden.unwrap_or_else(|| EnvFilter::new(level.as_str()));
        let (filter, handle) = reload::Layer::new(filter);
        let registry = tracing_subscriber::registry().with(filter);
        // The journal stores fields separately, so that `journalctl JOB_ID=…` finds a job.
        let journal = reads_journal()
            .then(|| tracing_journald::layer().ok())
            .flatten()
            .map(|layer| layer.with_field_prefix(None));
        let started = match journal {
            Some(journal) => registry.with(journal).try_init(),
            None => registry
                .with(
                    fmt::layer()
                        .with_writer(std::io::stderr)
                        .with_ansi(std::io::stderr().is_terminal())
                        .with_target(false),
                )
                .try_init(),
        };
        Self { filter: Some(handle).filter(|_| started.is_ok() && !fixed) }
    }

    /// Sets a new level.
    pub(super) fn set(&self, level: LogLevel) {
        if let Some(filter) = &self.filter
            && let Err(error) = filter.reload(EnvFilter::new(level.as_str()))
        {
            warn!("cannot change the log level: {error}");
        }
    }
}

/// Returns true if standard error is connected to the journal. The variable alone does not prove it: a
/// child with other output inherits the variable.
fn reads_journal() -> bool {
    let Ok(stderr) = nix::sys::stat::fstat(std::io::stderr()) else {
        return false;
    };
    std::env::var("JOURNAL_STREAM")
        .is_ok_and(|stream| stream == format!("{}:{}", stderr.st_dev, stderr.st_ino))
}
