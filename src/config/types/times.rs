//! The times of a script type: what its jobs have unless they say.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::units;

/// The times that the jobs of a script type have unless they say. Zero stands for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimesConfig {
    /// The time after its submission within which a job is expected to end.
    pub expect_within: Duration,
    /// The time of an attempt after which it is slow.
    pub slow_after: Duration,
}

/// A time in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct TypeTime(#[serde(with = "units::duration")] pub(super) Duration);
