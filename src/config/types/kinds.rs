//! The choices of a script type.

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
