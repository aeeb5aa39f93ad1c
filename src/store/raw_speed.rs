//! The speed of raw Redis commands, for comparison.

use std::time::{Duration, Instant};

use super::{RedisStore, Result, StoreError};
use crate::proto::job::JobId;

impl RedisStore<'_> {
    /// Times `count` PINGs, one after the other.
    pub async fn time_pings(self, count: usize) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let began = Instant::now();
            self.store.ping().await?;
            times.push(began.elapsed());
        }
        Ok(times)
    }

    /// Times `count` pushes of a job id, a thousand in a round trip, to a list that is deleted afterwards.
    pub async fn time_pushes(self, count: usize) -> Result<Duration> {
        const PUSHES_PER_ROUND_TRIP: usize = 1000;
        let doing = "measuring redis";
        let id = JobId::random();
        let list = self.store.keys.reply(&id);
        let began = Instant::now();
        let mut left = count;
        while left > 0 {
            let mut pipeline = redis::pipe();
            for _ in 0..left.min(PUSHES_PER_ROUND_TRIP) {
                pipeline.cmd("RPUSH").arg(&list).arg(id.as_str()).ignore();
            }
            self.store.link.pipeline::<()>(doing, &pipeline).await?;
            left = left.saturating_sub(PUSHES_PER_ROUND_TRIP);
        }
        let took = began.elapsed();
        self.store.link.command::<i64>(doing, "DEL", &list).await?;
        Ok(took)
    }

    /// The bytes of memory that Redis uses.
    pub async fn memory_used_bytes(self) -> Result<u64> {
        let doing = "asking redis for its memory";
        let info: String = self.store.link.command(doing, "INFO", "memory").await?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        used.and_then(|used| used.trim().parse().ok()).ok_or_else(|| StoreError::unexpected(doing))
    }
}
