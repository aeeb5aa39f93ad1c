//! The choices of a script type, its hooks, and its times.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Rhai without access to the system.
    #[default]
    Osis,
    /// Rhai with access to the system.
    Sal,
    /// `HeroScript` with functions in Rhai, without access to the system.
    HeroScript,
    Command,
}

impl EngineKind {
    /// Returns whether its scripts need nothing but Redis.
    pub fn needs_only_redis(self) -> bool {
        matches!(self, Self::Osis | Self::HeroScript)
    }
}

/// The failed jobs of a type that become dead letters, beside those that took down too many actors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadLetters {
    /// Jobs with retries that used up their attempts.
    #[default]
    Retried,
    /// Jobs without retries too.
    All,
}

/// The hooks of a script type. An empty path stands for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksConfig {
    pub before: PathBuf,
    pub after: PathBuf,
    pub timeout: Duration,
}

impl Default for HooksConfig {
    fn default() -> Self {
        let (before, after) = (PathBuf::new(), PathBuf::new());
        Self { before, after, timeout: Duration::from_secs(30) }
    }
}

impl HooksConfig {
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.before, &self.after].into_iter().map(PathBuf::as_path);
        files.filter(|file| !file.as_os_str().is_empty())
    }
}

/// The times that the jobs of a script type have unless they say. Zero stands for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimesConfig {
    pub expect_within: Duration,
    pub slow_after: Duration,
}
