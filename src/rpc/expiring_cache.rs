//! A cache by name whose entries expire: used nonces, logins, checked tokens, users with their groups.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const KEPT_MAX: usize = 1000;

/// Values by name, each for the same lifetime.
pub(super) struct ExpiringCache<T> {
    lifetime: Duration,
    values: Mutex<HashMap<String, (Instant, T)>>,
}

impl<T: Clone> ExpiringCache<T> {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, values: Mutex::default() }
    }

    /// Returns a value that is not too old.
    pub(super) fn get(&self, name: &str) -> Option<T> {
        let values = self.values.lock();
        let (since, value) = values.get(name)?;
        (since.elapsed() < self.lifetime).then(|| value.clone())
    }

    /// Keeps a value; those that are too old make room. Returns false if there is no room.
    pub(super) fn keep(&self, name: String, value: T) -> bool {
        let mut values = self.values.lock();
        if values.len() >= KEPT_MAX {
            values.retain(|_, (since, _)| since.elapsed() < self.lifetime);
        }
        let has_room = values.len() < KEPT_MAX;
        if has_room {
            values.insert(name, (Instant::now(), value));
        }
        has_room
    }
}
