//! The eviction policy of Redis. With a full memory it must refuse writes; any other policy evicts
//! accepted jobs.

use super::{Store, StoreError};

/// The only policy that evicts nothing.
const SAFE: &str = "noeviction";

impl Store {
    /// A warning about the eviction policy of Redis, as a sentence; `None` if it is right or unknown.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn eviction_danger(&self) -> Result<Option<String>, StoreError> {
        // An ACL that forbids CONFIG often allows INFO.
        let mut command = redis::cmd("INFO");
        command.arg("memory");
        let info: String =
            self.link.query("asking redis for its eviction policy", &command).await?;
        Ok(policy(&info).filter(|policy| *policy != SAFE).map(|policy| {
            format!(
                "redis at {} may evict accepted jobs when its memory is full: its \
                 maxmemory-policy is {policy}; set it to {SAFE}",
                self.address()
            )
        }))
    }
}

fn policy(info: &str) -> Option<&str> {
    info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_policy_is_read_from_info() {
        let info = "# Memory\r\nused_memory:1\r\nmaxmemory_policy:allkeys-lru\r\nx:1\r\n";
        assert_eq!(policy(info), Some("allkeys-lru"));
        assert_eq!(policy("# Memory\r\n"), None);
    }
}
