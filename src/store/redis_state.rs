//! The state of Redis: its memory, its role, and what of the accepted jobs it keeps.

use redis::Value;

use super::listing::read;
use super::{Store, StoreError};

/// The only eviction policy that evicts nothing.
const SAFE_POLICY: &str = "noeviction";

/// The commands that make a running Redis durable.
const REMEDY: &str = "run: redis-cli CONFIG SET appendonly yes, redis-cli CONFIG SET appendfsync \
                      everysec, redis-cli CONFIG REWRITE";

/// The state of Redis, as far as its user may read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisState {
    /// Its version.
    pub version: Option<String>,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// Its replicas.
    pub replicas: u64,
    /// Bytes of memory in use.
    pub memory_used_bytes: u64,
    /// Its `maxmemory` in bytes; 0 for no limit.
    pub memory_max_bytes: u64,
    /// Its `maxmemory-policy`.
    pub eviction_policy: Option<String>,
    /// True if it appends every write to a file.
    pub appends: Option<bool>,
    /// True if the last write to that file failed.
    pub append_failed: bool,
    /// Its `appendfsync`. A user of its access control list cannot read it.
    pub fsync: Option<String>,
    /// Its `save`: pairs of seconds and changes. A user of its access control list cannot read it.
    pub save_points: Option<String>,
    /// True if its last snapshot failed.
    pub save_failed: bool,
}

impl Store {
    /// Reads the state of Redis. An ACL that forbids CONFIG often allows INFO, and Redis logs what it
    /// forbids; so `asks_config` is for the default user and for a person who asks.
    ///
    /// # Errors
    /// [`StoreError`]; without the right to INFO, everything is unknown and this is no error.
    pub async fn redis_state(&self, asks_config: bool) -> Result<RedisState, StoreError> {
        const DOING: &str = "asking redis for its state";
        let info: String = match self.link.query(DOING, &redis::cmd("INFO")).await {
            Ok(info) => info,
            Err(StoreError::NotPermitted { reason, .. }) if reason.contains("NOPERM") => {
                return Ok(RedisState::default());
            }
            Err(error) => return Err(error),
        };
        let mut state = RedisState::read(&info);
        if asks_config || self.link.server.is_default_user {
            let mut pipeline = redis::pipe();
            pipeline.ignore_errors();
            for name in ["appendfsync", "save"] {
                pipeline.cmd("CONFIG").arg("GET").arg(name);
            }
            let mut values = self.link.pipeline::<Vec<Value>>(DOING, &pipeline).await?.into_iter();
            let mut value = || read::<(String, String)>(values.next()?).map(|(_, value)| value);
            (state.fsync, state.save_points) = (value(), value());
        }
        Ok(state)
    }
}

impl RedisState {
    fn read(info: &str) -> Self {
        let text = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
            info.lines().map(str::trim_end).find_map(value)
        };
        let number = |name| text(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        let failed = |name| text(name).is_some_and(|status| status != "ok");
        Self {
            version: text("redis_version"),
            role: text("role"),
            replicas: number("connected_slaves"),
            memory_used_bytes: number("used_memory"),
            memory_max_bytes: number("maxmemory"),
            eviction_policy: text("maxmemory_policy"),
            appends: text("aof_enabled").map(|enabled| enabled == "1"),
            append_failed: failed("aof_last_write_status"),
            fsync: None,
            save_points: None,
            save_failed: failed("rdb_last_bgsave_status"),
        }
    }

    /// Returns whether a killed Redis keeps every accepted job, and a power failure takes those of the
    /// last second at most. `None` if that cannot be known. An unknown `appendfsync` counts as right,
    /// since `everysec` is its default.
    pub fn is_durable(&self) -> Option<bool> {
        let evicts = self.eviction_policy.as_deref().is_some_and(|policy| policy != SAFE_POLICY);
        let syncs = self.fsync.as_deref() != Some("no");
        self.appends.map(|appends| appends && syncs && !evicts && !self.append_failed)
    }

    /// Describes in one line what Redis keeps.
    pub fn keeps(&self) -> String {
        let file = match (self.appends, self.fsync.as_deref()) {
            (None, _) => "unknown: its user may not call INFO".to_owned(),
            (Some(true), Some(fsync)) => {
                format!("every write (appendonly yes, appendfsync {fsync})")
            }
            (Some(true), None) => "every write (appendonly yes)".to_owned(),
            (Some(false), _) => match self.save_points.as_deref() {
                Some("") => "nothing (appendonly no, no save points)".to_owned(),
                Some(points) => format!("snapshots (appendonly no, save {points})"),
                None => "snapshots at most (appendonly no)".to_owned(),
            },
        };
        match self.eviction_policy.as_deref() {
            Some(policy) if policy != SAFE_POLICY => format!("{file}, but evicts ({policy})"),
            _ => file,
        }
    }

    /// Returns the reasons why accepted jobs can be lost, each with what to do.
    pub fn dangers(&self) -> Vec<String> {
        let mut dangers = Vec::new();
        match (self.appends, self.fsync.as_deref()) {
            (Some(false), _) => dangers.push(format!(
                "redis forgets accepted jobs when it is killed or restarted: it appends to no file \
                 (appendonly no); {REMEDY}"
            )),
            (Some(true), Some("no")) => dangers.push(format!(
                "redis forgets the jobs of the last half minute in a power failure: it leaves \
                 writing to the kernel (appendfsync no); {REMEDY}"
            )),
            _ => {}
        }
        if self.append_failed {
            dangers.push(
                "redis cannot write its append-only file, and refuses writes; see its log, and \
                 whether its disk is full"
                    .to_owned(),
            );
        }
        if self.save_failed {
            dangers.push(
                "redis cannot write its snapshot, and may refuse writes \
                 (stop-writes-on-bgsave-error); see its log, and whether its disk is full"
                    .to_owned(),
            );
        }
        if let Some(policy) = self.eviction_policy.as_deref().filter(|of| *of != SAFE_POLICY) {
            dangers.push(format!(
                "redis may evict accepted jobs when its memory is full: its maxmemory-policy is \
                 {policy}; run: redis-cli CONFIG SET maxmemory-policy {SAFE_POLICY}, redis-cli \
                 CONFIG REWRITE"
            ));
        }
        dangers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nused_memory:1024\r\n\
                        maxmemory:4096\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\n\
                        rdb_last_bgsave_status:ok\r\naof_enabled:1\r\naof_last_write_status:ok\r\n\
                        # Replication\r\nrole:master\r\nconnected_slaves:2\r\n";

    fn read_with(from: &str, to: &str) -> RedisState {
        assert!(INFO.contains(from), "{from}");
        RedisState::read(&INFO.replace(from, to))
    }

    #[test]
    fn append_only_file_without_eviction_is_durable() {
        let state = RedisState::read(INFO);
        assert_eq!((state.is_durable(), state.dangers()), (Some(true), Vec::new()));
        assert_eq!(state.keeps(), "every write (appendonly yes)");
        assert_eq!(
            (state.memory_used_bytes, state.memory_max_bytes, state.replicas),
            (1024, 4096, 2)
        );
        let synced = RedisState { fsync: Some("always".to_owned()), ..state };
        assert_eq!(synced.keeps(), "every write (appendonly yes, appendfsync always)");
    }

    #[test]
    fn every_way_to_lose_jobs_is_a_danger_with_its_remedy() {
        let no_file = read_with("aof_enabled:1", "aof_enabled:0");
        assert_eq!(no_file.is_durable(), Some(false));
        assert!(no_file.dangers()[0].contains("CONFIG SET appendonly yes"), "{no_file:?}");
        let with_points = RedisState { save_points: Some("3600 1".to_owned()), ..no_file.clone() };
        assert_eq!(with_points.keeps(), "snapshots (appendonly no, save 3600 1)");
        let without = RedisState { save_points: Some(String::new()), ..no_file };
        assert_eq!(without.keeps(), "nothing (appendonly no, no save points)");

        let evicting = read_with("noeviction", "allkeys-lru");
        assert_eq!(evicting.is_durable(), Some(false));
        assert!(evicting.dangers()[0].contains("maxmemory-policy noeviction"), "{evicting:?}");
        assert_eq!(evicting.keeps(), "every write (appendonly yes), but evicts (allkeys-lru)");

        let lazy = RedisState { fsync: Some("no".to_owned()), ..RedisState::read(INFO) };
        assert_eq!((lazy.is_durable(), lazy.dangers().len()), (Some(false), 1));
        let full = read_with("aof_last_write_status:ok", "aof_last_write_status:err");
        assert_eq!((full.is_durable(), full.dangers().len()), (Some(false), 1));
        let unsaved = read_with("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err");
        assert_eq!((unsaved.is_durable(), unsaved.dangers().len()), (Some(true), 1));
    }

    #[test]
    fn redis_that_tells_nothing_is_unknown() {
        let state = RedisState::read("");
        assert_eq!((state.is_durable(), state.dangers()), (None, Vec::new()));
        assert!(state.keeps().starts_with("unknown"), "{}", state.keeps());
    }
}
