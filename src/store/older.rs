//! Legacy queues and circles that a supervisor has found, for the patterns of the configuration.

use super::{Store, StoreError};
use crate::proto::keys::Keys;
use crate::proto::legacy::{LegacyQueue, RhailibCircle};

impl Store {
    /// Replaces patterns by the queues that a supervisor has found for them.
    pub async fn found_queues(
        &self,
        queues: &[LegacyQueue],
    ) -> Result<Vec<LegacyQueue>, StoreError> {
        let (patterns, mut found): (Vec<LegacyQueue>, Vec<LegacyQueue>) =
            queues.iter().cloned().partition(LegacyQueue::is_pattern);
        if patterns.is_empty() {
            return Ok(found);
        }
        for key in self.older_lists().await? {
            let is_new = found.iter().all(|queue| queue.legacy != key);
            if is_new && self.keys.is_legacy_queue(&key) {
                found.extend(patterns.iter().find_map(|pattern| pattern.with_key(&key)));
            }
        }
        Ok(found)
    }

    /// Replaces patterns by the circles that a supervisor has found for them.
    pub async fn found_circles(
        &self,
        circles: &[RhailibCircle],
    ) -> Result<Vec<RhailibCircle>, StoreError> {
        let (patterns, mut found): (Vec<RhailibCircle>, Vec<RhailibCircle>) =
            circles.iter().cloned().partition(|circle| circle.circle.is_pattern());
        if patterns.is_empty() {
            return Ok(found);
        }
        for key in self.older_lists().await? {
            let Some(name) = Keys::circle_of(&key) else { continue };
            if found.iter().all(|circle| circle.circle != name) {
                found.extend(patterns.iter().find_map(|pattern| pattern.with_name(&name)));
            }
        }
        Ok(found)
    }

    /// Returns the lists of older programs that have entries and are none of these, each with its
    /// length; without it where the user of Redis may not read it.
    pub async fn other_older_lists(
        &self,
        queues: &[LegacyQueue],
        circles: &[RhailibCircle],
    ) -> Result<Vec<(String, Option<u64>)>, StoreError> {
        let mut others = Vec::new();
        for key in self.older_lists().await? {
            let is_known = queues.iter().any(|queue| queue.legacy == key)
                || circles.iter().any(|circle| Keys::tasks(&circle.circle) == key);
            if is_known {
                continue;
            }
            match self.link.command::<u64>("reading a list of older programs", "LLEN", &key).await {
                // A key of another type is no list of theirs.
                Ok(0) | Err(StoreError::Failed { .. }) => {}
                Ok(length) => others.push((key, Some(length))),
                Err(StoreError::NotPermitted { .. }) => others.push((key, None)),
                Err(error) => return Err(error),
            }
        }
        others.sort();
        Ok(others)
    }

    async fn older_lists(&self) -> Result<Vec<String>, StoreError> {
        let mut command = redis::cmd("HKEYS");
        command.arg(self.keys.older());
        let keys: Vec<Vec<u8>> =
            self.link.query("reading the lists of older programs", &command).await?;
        Ok(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect())
    }
}
