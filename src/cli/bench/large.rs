//! Whether what should not grow with the number of jobs does not: a page of a list, a claim.

use std::time::{Duration, Instant};

use super::load::{self, Kind};
use super::measure::{Figures, millis, quantile, unreachable};
use crate::cli::dev::first_actor;
use crate::cli::exec::parsed;
use crate::cli::stage::{Stage, unavailable};
use crate::error::Error;
use crate::proto::job::BootId;
use crate::store::{Claim, ListQuery, Store};

const FEW: usize = 1000;
const MANY: usize = 1_000_000;
/// How often each is done; the figure is the median.
const TIMES: usize = 200;
const PAGE: usize = 50;

/// Measures among few jobs, fills up, and measures among many.
pub(super) async fn measure(stage: &mut Stage) -> Result<Figures, Error> {
    let store = Store::open(&stage.config.redis).map_err(|e| unavailable(e.to_string()))?;
    let mut figures = Figures::new();
    let sizes = [
        (FEW, "page_of_few_ms", "claim_of_few_ms"),
        (MANY - FEW, "page_of_many_ms", "claim_of_many_ms"),
    ];
    for (more, page_name, claim_name) in sizes {
        load::bulk(&stage.client, &Kind::default(), more).await?;
        figures.insert(page_name, millis(page(stage).await?));
        figures.insert(claim_name, millis(claim(stage, &store).await?));
        stage.check()?;
    }
    Ok(figures)
}

async fn page(stage: &Stage) -> Result<Duration, Error> {
    let query = ListQuery { limit: PAGE, ..ListQuery::default() };
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        stage.client.list_jobs(&query).await?;
        times.push(began.elapsed());
    }
    Ok(quantile(&mut times, 0.5))
}

/// Claims one job after the other, as an actor with one free task does.
async fn claim(stage: &Stage, store: &Store) -> Result<Duration, Error> {
    let actor = first_actor(parsed("osis")?)?;
    let lists: Vec<String> = actor.queues().iter().map(|queue| store.keys().work(queue)).collect();
    let boot = BootId::random();
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let claim = Claim {
            boot: &boot,
            actor: &actor,
            lists: &lists,
            wanted: 1,
            popped: &[],
            size_max_bytes: stage.config.job.script_size_max,
            limits: &crate::store::Limits::default(),
        };
        let began = Instant::now();
        let claimed = store.claim(&claim).await.map_err(unreachable)?;
        times.push(began.elapsed());
        if claimed.attempts.is_empty() {
            return Err(unavailable("a claim among waiting jobs brought none"));
        }
    }
    Ok(quantile(&mut times, 0.5))
}
