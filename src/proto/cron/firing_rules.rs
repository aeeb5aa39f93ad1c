//! The rules of a schedule beside its line.

use std::time::Duration;

use super::calendar::Calendar;

/// The rules beside a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FiringRules {
    pub(super) delay: Duration,
    /// The longest delay that the name could give.
    pub(super) spread: Duration,
    /// The days on which nothing fires.
    pub(super) calendar: Option<Calendar>,
}
