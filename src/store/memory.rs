//! What Redis does when its memory is full. It must refuse what is new; anything else would throw
//! away accepted jobs.

use super::{Store, StoreError};

/// The only policy that throws nothing away.
const SAFE: &str = "noeviction";

impl Store {
    /// What is wrong with how Redis treats a full memory, as a sentence for a person; `None` if
    /// nothing is, or it does not say.
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
                "redis at {} may throw away accepted jobs when its memory is full: its \
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
    fn the_policy_is_read_from_what_redis_says_of_its_memory() {
        let info = "# Memory\r\nused_memory:1\r\nmaxmemory_policy:allkeys-lru\r\nx:1\r\n";
        assert_eq!(policy(info), Some("allkeys-lru"));
        assert_eq!(policy("# Memory\r\n"), None);
    }
}
