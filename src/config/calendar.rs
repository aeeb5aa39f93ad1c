//! `[calendar.NAME]`: days on which periodic jobs do not fire.

use serde::{Deserialize, Serialize};

use crate::proto::cron::FreeDays;

/// One calendar.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct CalendarConfig {
    /// The days.
    pub days: Vec<FreeDays>,
}
