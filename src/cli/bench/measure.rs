//! One run of all measures on a fresh stage.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::load::{self, Kind};
use super::process;
use crate::cli::dev::first_actor;
use crate::cli::stage::{Stage, unavailable};
use crate::error::Error;
use crate::proto::target::ActorId;
use crate::store::Store;

/// What one run brought, by the names that the report knows.
pub(super) type Figures = BTreeMap<&'static str, f64>;

const PINGS: usize = 2000;
const PUSHES: usize = 200_000;
const CALLS: usize = 500;
/// How long an actor is left alone before it counts as idle, and how long it is then watched:
/// longer than its heartbeat.
const SETTLE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(6);
const DRAIN_MAX: Duration = Duration::from_mins(10);
/// How often the count of finished jobs is read: often enough for the slope, seldom enough to
/// cost the actor nothing.
const COUNT_EVERY: Duration = Duration::from_millis(5);

/// The size of a run.
pub(super) struct Plan {
    /// Jobs that are enqueued and drained.
    pub(super) jobs: usize,
}

impl Plan {
    pub(super) async fn measure(&self, stage: &mut Stage) -> Result<Figures, Error> {
        let store = Store::open(&stage.config.redis).map_err(|e| unavailable(e.to_string()))?;
        let mut figures = Figures::new();
        floor(&store, &mut figures).await?;
        let pid = start_actor(stage, &mut figures).await?;
        let mut times = load::latency(&stage.client, &Kind::default(), CALLS).await?;
        put_quantiles(&mut times, &mut figures);
        idle(pid, &mut figures).await?;
        stage.end_units(None).await?;
        self.drain(stage, &store, &mut figures).await?;
        stage.end_units(None).await?;
        let took = load::bulk(&stage.client, &Kind::default(), self.jobs).await?;
        figures.insert("bulk_per_s", per_second(self.jobs, took));
        Ok(figures)
    }

    /// The same enqueueing and draining on a stage that is `dual`.
    pub(super) async fn measure_dual(&self, stage: &mut Stage) -> Result<Figures, Error> {
        let store = Store::open(&stage.config.redis).map_err(|e| unavailable(e.to_string()))?;
        let mut figures = Figures::new();
        self.drain(stage, &store, &mut figures).await?;
        stage.end_units(None).await?;
        let renamed =
            [("enqueue_per_s", "dual_enqueue_per_s"), ("drain_per_s", "dual_drain_per_s")];
        Ok(renamed.iter().filter_map(|(from, to)| Some((*to, *figures.get(from)?))).collect())
    }

    /// Enqueues the jobs while no actor runs, weighs them, and lets one actor drain them.
    async fn drain(
        &self,
        stage: &mut Stage,
        store: &Store,
        figures: &mut Figures,
    ) -> Result<(), Error> {
        let empty = store.floor_memory_bytes().await.map_err(unreachable)?;
        let took = load::enqueue(&stage.client, &Kind::default(), self.jobs).await?;
        figures.insert("enqueue_per_s", per_second(self.jobs, took));
        let queued = store.floor_memory_bytes().await.map_err(unreachable)?;
        figures.insert("queued_bytes", per_job(empty, queued, self.jobs));
        let actor = first_actor(osis()?)?;
        let before = finished(stage, &actor).await?;
        stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
        let began = Instant::now();
        let mut first = None;
        loop {
            let (now, done) = (Instant::now(), finished(stage, &actor).await? - before);
            if done > 0 {
                let (at, count) = *first.get_or_insert((now, done));
                if done >= self.jobs {
                    // All within one look: then the look itself is the best that is known.
                    let took = (now - at).max(COUNT_EVERY);
                    figures.insert("drain_per_s", per_second((done - count).max(1), took));
                    break;
                }
            }
            stage.check()?;
            if began.elapsed() > DRAIN_MAX {
                let jobs = self.jobs;
                return Err(unavailable(format!("{done} of {jobs} jobs after {DRAIN_MAX:.0?}")));
            }
            tokio::time::sleep(COUNT_EVERY).await;
        }
        let drained = store.floor_memory_bytes().await.map_err(unreachable)?;
        figures.insert("finished_bytes", per_job(empty, drained, self.jobs));
        Ok(())
    }
}

async fn floor(store: &Store, figures: &mut Figures) -> Result<(), Error> {
    let mut pings = store.floor_ping(PINGS).await.map_err(unreachable)?;
    figures.insert("ping_ms", millis(quantile(&mut pings, 0.5)));
    let pushes = store.floor_rpush(PUSHES).await.map_err(unreachable)?;
    figures.insert("rpush_per_s", per_second(PUSHES, pushes));
    Ok(())
}

/// Starts the one actor and takes the time until others can see that it is there.
async fn start_actor(stage: &mut Stage, figures: &mut Figures) -> Result<i32, Error> {
    let actor = first_actor(osis()?)?;
    let began = Instant::now();
    let pid = stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
    stage.until_present(std::slice::from_ref(&actor)).await?;
    figures.insert("ready_ms", millis(began.elapsed()));
    Ok(pid)
}

async fn idle(pid: i32, figures: &mut Figures) -> Result<(), Error> {
    tokio::time::sleep(SETTLE).await;
    let (began, before) = (Instant::now(), process::cpu_time(pid)?);
    tokio::time::sleep(IDLE).await;
    let used = process::cpu_time(pid)?.saturating_sub(before);
    let share = used.as_secs_f64() / began.elapsed().as_secs_f64();
    figures.insert("idle_cpu_percent", share * 100.0);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let resident = process::resident_bytes(pid)? as f64;
    figures.insert("idle_rss_mb", resident / 1e6);
    Ok(())
}

async fn finished(stage: &Stage, actor: &ActorId) -> Result<usize, Error> {
    let counters = stage.client.counters(&actor.script_type).await?;
    let finished = counters.get("finished").copied().unwrap_or_default();
    Ok(usize::try_from(finished).unwrap_or(usize::MAX))
}

fn put_quantiles(times: &mut [Duration], figures: &mut Figures) {
    for (name, q) in [("wait_p50_ms", 0.5), ("wait_p99_ms", 0.99), ("wait_max_ms", 1.0)] {
        figures.insert(name, millis(quantile(times, q)));
    }
}

/// The value below which the share `q` of all lies; nothing of nothing.
pub(super) fn quantile(times: &mut [Duration], q: f64) -> Duration {
    times.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index is within the few thousand times"
    )]
    let index = (times.len() as f64 * q) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_job(before: u64, after: u64, jobs: usize) -> f64 {
    (after as f64 - before as f64) / jobs as f64
}

fn osis() -> Result<crate::proto::target::ScriptType, Error> {
    crate::cli::exec::parsed("osis")
}

pub(super) fn unreachable(error: crate::store::StoreError) -> Error {
    crate::client::ClientError::from(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&mut times, 0.5), Duration::from_millis(51));
        assert_eq!(quantile(&mut times, 0.99), Duration::from_millis(100));
        assert_eq!(quantile(&mut times, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&mut [], 0.5), Duration::ZERO);
    }

    #[test]
    fn memory_that_shrank_counts_below_zero() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(per_job(1000, 2000, 10), 100.0) && close(per_job(2000, 1000, 10), -100.0));
    }
}
