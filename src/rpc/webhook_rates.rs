//! The deliveries of webhooks that this process has had of late: too many are refused.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::config::{HookName, Rate};

/// The deliveries of each hook within its current period, and those that were refused.
#[derive(Default)]
pub(super) struct WebhookRates(Mutex<HashMap<(HookName, bool), (Instant, u32)>>);

impl WebhookRates {
    /// Counts a delivery, proven or not, and returns whether it is among the first of its period.
    pub(super) fn admits(&self, name: &HookName, is_proven: bool, rate: Rate) -> bool {
        let mut periods = self.0.lock();
        let period = periods.entry((name.clone(), is_proven)).or_insert((Instant::now(), 0));
        if period.0.elapsed() >= rate.period {
            *period = (Instant::now(), 0);
        }
        period.1 = period.1.saturating_add(1);
        period.1 <= rate.number
    }
}
