//! Counters and throughput.

use std::collections::BTreeMap;
use std::time::Duration;

use super::backoff::{from_now, micros, millis};
use super::{Result, Store};
use crate::proto::queue::Queue;
use crate::proto::target::ScriptType;

/// The maximum number of steps of one sample; each removes some thousand entries of expired jobs.
const STEPS_MAX: usize = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sampled {
    pub types: u64,
    /// Jobs of a type have ended since the sample before, or entries are left to clean or to sort.
    pub jobs_end: bool,
    /// The jobs that ended under an older version, and were sorted by their ends now.
    pub sorted: u64,
}

impl Store {
    /// Samples the throughput of types not sampled within `least`, and cleans the indexes of ended jobs and the queues.
    pub async fn sample(&self, least: Duration) -> Result<Sampled> {
        let mut sampled = Sampled::default();
        // Jobs may expire faster than one step cleans; the bound lets the caller do other things.
        for _ in 0..STEPS_MAX {
            let (types, is_left, busy, sorted): (u64, u64, u64, u64) =
                self.run_script("sampling statistics", &self.scripts.sample, millis(least)).await?;
            sampled.types += types;
            sampled.jobs_end |= busy > 0 || is_left > 0;
            sampled.sorted += sorted;
            if is_left == 0 {
                break;
            }
        }
        Ok(sampled)
    }

    /// Queues whose first job has begun to wait for `long` or longer, with its wait; and, with
    /// `None`, queues where that has ended. Reports each change once.
    pub async fn long_waits(&self, long: Duration) -> Result<Vec<(Queue, Option<Duration>)>> {
        let news: Vec<(String, i64)> = self
            .run_script("looking for long waits", &self.scripts.long_waits, micros(long))
            .await?;
        let read = |(queue, us): (String, i64)| Some((queue.parse().ok()?, from_now(us)));
        Ok(news.into_iter().filter_map(read).collect())
    }

    /// The counters of several types, in their order: submitted, started, finished, failed, retried, dead, skipped.
    pub async fn counters_of(&self, types: &[ScriptType]) -> Result<Vec<BTreeMap<String, u64>>> {
        let of_type = |of| ("HGETALL", self.keys.stats(of));
        let answers = self.link.each("reading statistics", types, of_type).await?;
        Ok(answers.into_iter().map(|answer| numbers(answer.unwrap_or_default())).collect())
    }

    /// Counts spans of traces that no receiver got.
    pub async fn count_dropped_spans(&self, service: &str, number: u64) -> Result<()> {
        let arguments = (self.keys.spans_dropped(), service, number);
        self.link.command("counting dropped spans", "HINCRBY", arguments).await
    }

    /// Returns the number of spans of traces that no receiver got, by service.
    pub async fn dropped_spans(&self) -> Result<BTreeMap<String, u64>> {
        let key = self.keys.spans_dropped();
        Ok(numbers(self.link.command("reading statistics", "HGETALL", key).await?))
    }
}

fn numbers(fields: Vec<(String, String)>) -> BTreeMap<String, u64> {
    fields.into_iter().filter_map(|(name, number)| Some((name, number.parse().ok()?))).collect()
}
