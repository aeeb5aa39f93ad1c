//! The keys that Redis does not let this login read: its access list is of an older version.

use super::{Result, Store};

impl Store {
    /// Returns the patterns of keys that Redis refuses to this login, as an access list writes them: `hero:job:*`.
    pub async fn refused_keys(&self) -> Result<Vec<String>> {
        let mut refused = Vec::new();
        for (pattern, key) in self.keys.patterns() {
            match self.link.command::<u64>("looking at the access list", "EXISTS", key).await {
                Err(error) if error.is_access_refused() => refused.push(pattern),
                answer => _ = answer?,
            }
        }
        Ok(refused)
    }
}
