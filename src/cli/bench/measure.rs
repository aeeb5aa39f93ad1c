//! One run of all measures on a fresh stage.

use std::time::{Duration, Instant};

use super::load::{self, JobKind};
use super::scripts;
use super::{Figures, millis, per_second, quantile, resident_bytes, start};
use crate::cli::input::parsed;
use crate::cli::stage::{Stage, first_actor, unavailable};
use crate::client::ClientError;
use crate::error::Error;
use crate::proto::target::ActorId;
use crate::store::Store;

const PINGS: usize = 2000;
const PUSHES: usize = 200_000;
const CALLS: usize = 500;
/// Jobs of a chain after the first.
const LINKS: u32 = 500;
const GRAPH: usize = 10_000;
/// An actor counts as idle after this time without jobs.
const SETTLE: Duration = Duration::from_secs(1);
const DRAIN_MAX: Duration = Duration::from_mins(10);
/// The interval between readings of the count of finished jobs: it costs the actor nothing measurable.
const COUNT_EVERY: Duration = Duration::from_millis(5);

/// Measures everything; `jobs` are enqueued and drained.
pub(super) async fn measure(stage: &mut Stage, jobs: usize) -> Result<Figures, Error> {
    let store = Store::open(&stage.config.redis).map_err(ClientError::from)?;
    let mut figures = Figures::new();
    floor(&store, &mut figures).await?;
    let pid = start_actor(stage, &mut figures).await?;
    let mut times = load::latency(&stage.client, &JobKind::default(), CALLS).await?;
    for (name, q) in [("wait_p50_ms", 0.5), ("wait_p99_ms", 0.99), ("wait_max_ms", 1.0)] {
        figures.insert(name, millis(quantile(&mut times, q)));
    }
    let took = load::chain(&stage.client, LINKS as usize + 1).await?;
    figures.insert("link_ms", millis(took) / f64::from(LINKS));
    idle(pid, &mut figures).await?;
    stage.end_units(None).await?;
    drain(stage, &store, jobs, &mut figures).await?;
    stage.end_units(None).await?;
    let took = load::bulk(&stage.client, &JobKind::default(), jobs).await?;
    figures.insert("bulk_per_s", per_second(jobs, took));
    let took = load::graph(&stage.client, GRAPH).await?;
    figures.insert("graph_ms", millis(took));
    // The last: the jobs left in the queue are of a type without an actor now.
    figures.extend(Box::pin(scripts::measure(stage)).await?);
    Ok(figures)
}

/// Enqueues the jobs while no actor runs, takes their memory, and lets one actor drain them.
async fn drain(
    stage: &mut Stage,
    store: &Store,
    jobs: usize,
    figures: &mut Figures,
) -> Result<(), Error> {
    let empty = store.redis().memory_used_bytes().await.map_err(ClientError::from)?;
    let took = load::enqueue(&stage.client, &JobKind::default(), jobs).await?;
    figures.insert("enqueue_per_s", per_second(jobs, took));
    let queued = store.redis().memory_used_bytes().await.map_err(ClientError::from)?;
    figures.insert("queued_bytes", per_job(empty, queued, jobs));
    let actor = first_actor(parsed("osis")?)?;
    let before = finished(stage, &actor).await?;
    stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
    let began = Instant::now();
    let mut first = None;
    loop {
        let (now, done) = (Instant::now(), finished(stage, &actor).await? - before);
        if done > 0 {
            let (at, count) = *first.get_or_insert((now, done));
            if done >= jobs {
                // All finished within one interval: the interval is the best bound.
                let took = (now - at).max(COUNT_EVERY);
                figures.insert("drain_per_s", per_second((done - count).max(1), took));
                break;
            }
        }
        stage.check()?;
        if began.elapsed() > DRAIN_MAX {
            let message = format!("only {done} of {jobs} jobs were drained in {DRAIN_MAX:.0?}");
            return Err(unavailable(message));
        }
        tokio::time::sleep(COUNT_EVERY).await;
    }
    let drained = store.redis().memory_used_bytes().await.map_err(ClientError::from)?;
    figures.insert("finished_bytes", per_job(empty, drained, jobs));
    Ok(())
}

async fn floor(store: &Store, figures: &mut Figures) -> Result<(), Error> {
    let mut pings = store.redis().time_pings(PINGS).await.map_err(ClientError::from)?;
    figures.insert("ping_ms", millis(quantile(&mut pings, 0.5)));
    let pushes = store.redis().time_pushes(PUSHES).await.map_err(ClientError::from)?;
    figures.insert("rpush_per_s", per_second(PUSHES, pushes));
    Ok(())
}

/// Starts the one actor and takes the time until its presence shows.
async fn start_actor(stage: &mut Stage, figures: &mut Figures) -> Result<i32, Error> {
    let began = Instant::now();
    let pid = start(stage, "osis").await?;
    figures.insert("ready_ms", millis(began.elapsed()));
    Ok(pid)
}

async fn idle(pid: i32, figures: &mut Figures) -> Result<(), Error> {
    tokio::time::sleep(SETTLE).await;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let resident = resident_bytes(pid)? as f64;
    figures.insert("idle_rss_mb", resident / 1e6);
    Ok(())
}

async fn finished(stage: &Stage, actor: &ActorId) -> Result<usize, Error> {
    let counters = stage.client.stats().counters(&actor.script_type).await?;
    let finished = counters.get("finished").copied().unwrap_or_default();
    Ok(usize::try_from(finished).unwrap_or(usize::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_job(before: u64, after: u64, jobs: usize) -> f64 {
    (after as f64 - before as f64) / jobs as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_shrank_is_negative() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(per_job(1000, 2000, 10), 100.0) && close(per_job(2000, 1000, 10), -100.0));
    }
}
