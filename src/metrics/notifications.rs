//! Metrics of notifications.

use std::collections::BTreeMap;

use super::float;
use super::text::{Exposition, Kind};

/// Writes how often each notification was delivered or failed, by `NAME STATE`.
pub(super) fn write(text: &mut Exposition, counts: &BTreeMap<String, u64>, most: usize) {
    let help = "Attempts to deliver messages of a notification, by their end.";
    text.metric("hero_notifications", Kind::Counter, help);
    for (name, number) in counts.iter().take(most) {
        let (name, state) = name.split_once(' ').unwrap_or((name, ""));
        text.sample(&[("notification", name), ("state", state)], float(*number));
    }
}
