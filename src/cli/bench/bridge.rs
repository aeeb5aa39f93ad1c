//! What the bridge to a circle of rhailib adds to a round trip: jobs of Hero's own and tasks of
//! rhailib in turns, so that whatever slows the machine meets both.

use std::time::{Duration, Instant};

use super::load::Kind;
use super::measure::{Figures, millis, quantile, unreachable};
use crate::cli::dev::first_actor;
use crate::cli::exec::parsed;
use crate::cli::stage::{Stage, unavailable};
use crate::config::{RhailibCircle, SupervisorConfig};
use crate::error::Error;
use crate::store::Store;

/// How often each is done. One in a hundred is what the p99 tells.
const CALLS: usize = 2000;
/// Rounds before those that count.
const WARM_UPS: usize = 50;

/// A supervisor that serves one circle.
pub(super) fn supervisor() -> Result<SupervisorConfig, Error> {
    let circle = RhailibCircle { circle: parsed("bench")?, script_type: parsed("osis")? };
    Ok(SupervisorConfig { rhailib_circles: vec![circle], ..SupervisorConfig::default() })
}

/// Measures on a stage that is configured so.
pub(super) async fn measure(stage: &mut Stage) -> Result<Figures, Error> {
    let circle = stage.config.supervisor.rhailib_circles.first().cloned();
    let circle = circle.ok_or_else(|| unavailable("the stage serves no circle of rhailib"))?;
    let store = Store::open(&stage.config.redis).map_err(|e| unavailable(e.to_string()))?;
    let actor = first_actor(parsed("osis")?)?;
    stage.start_unit("supervisor", &[("HERO_LOG", "warn")])?;
    stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
    stage.until_present(std::slice::from_ref(&actor)).await?;

    let (mut jobs, mut tasks, mut tasks_id_first) = (Vec::new(), Vec::new(), Vec::new());
    let mut waiting = store.blocking();
    for number in 0..WARM_UPS + CALLS {
        let script = number.to_string();
        let mut taken: [Duration; 3] = [Duration::ZERO; 3];
        let began = Instant::now();
        let job = Kind::default().job(number)?;
        stage.client.run_job_and_await_result(job, None).await?;
        taken[0] = began.elapsed();
        for (took, details_first) in taken[1..].iter_mut().zip([true, false]) {
            let began = Instant::now();
            let task = store.run_task(&mut waiting, &circle, &script, details_first);
            task.await.map_err(unreachable)?;
            *took = began.elapsed();
        }
        if number >= WARM_UPS {
            jobs.push(taken[0]);
            tasks.push(taken[1]);
            tasks_id_first.push(taken[2]);
        }
        stage.check()?;
    }
    stage.end_units(None).await?;

    let mut figures = Figures::new();
    for (q, job, task, id_first) in [
        (0.5, "beside_tasks_p50_ms", "task_added_p50_ms", "task_id_first_added_p50_ms"),
        (0.99, "beside_tasks_p99_ms", "task_added_p99_ms", "task_id_first_added_p99_ms"),
    ] {
        let base = millis(quantile(&mut jobs, q));
        figures.insert(job, base);
        figures.insert(task, millis(quantile(&mut tasks, q)) - base);
        figures.insert(id_first, millis(quantile(&mut tasks_id_first, q)) - base);
    }
    Ok(figures)
}
