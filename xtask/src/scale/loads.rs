//! The loads. Types that no actor serves keep jobs in their queues; claims and ends of those are
//! made here, as an actor makes them. Jobs of `osis` run in a real actor, and a real supervisor
//! does what happens later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hero::client::{Graph, JobBuilder};
use hero::proto::job::{Job, JobId, JobOutput, Retention};
use hero::proto::queue::Queue;
use hero::proto::target::ScriptType;
use hero::proto::window::GraphWindow;
use jiff::Timestamp;

use super::{Stage, many};
use crate::bench::{Done, accepted, submit};

const BULK: usize = 10_000;
/// The longest wait for something that a supervisor or an actor does.
const PATIENCE: Duration = Duration::from_mins(10);
const GLANCE: Duration = Duration::from_millis(20);
/// As `[job]` allows by default.
const OUTPUT_LEN: usize = 1 << 20;

/// Runs every load that is asked for, each divided in size.
pub(super) async fn all(stage: &mut Stage<'_>, by: usize) -> Done {
    if stage.is_asked("idle") {
        many::idle(stage, by).await?;
    }
    if stage.is_asked("queued") {
        let size = 1_000_000 / by;
        stage.load("queued", size, async |on| on.submit("bulk", size, |job| job).await).await?;
        let ended = 20_000 / by;
        let drain = async |on: &Stage<'_>| on.drain("bulk", 64, ended, "1").await;
        stage.load("claim and record among them", ended, drain).await?;
    }
    if stage.is_asked("expiry") {
        expiry(stage, 500_000 / by).await?;
    }
    if stage.is_asked("bytes") {
        bytes(stage, by).await?;
    }
    if stage.is_asked("graphs") {
        graphs(stage, by).await?;
    }
    if stage.is_asked("windows") {
        windows(stage, 10_000 / by).await?;
    }
    if stage.is_asked("many") {
        many::many(stage, by).await?;
    }
    if stage.is_asked("due") {
        let size = 100_000 / by;
        let at = Timestamp::now() + Duration::from_secs(5 + size as u64 / 5000);
        let submit = async |on: &Stage<'_>| on.submit("due", size, |job| job.run_at(at)).await;
        stage.load("scheduled", size, submit).await?;
        let until = async |on: &Stage<'_>| on.until_depth("type:due", size as u64).await;
        stage.load("due at once", size, until).await?;
    }
    if stage.is_asked("deaths") {
        deaths(stage, by).await?;
    }
    Ok(())
}

async fn expiry(stage: &mut Stage<'_>, size: usize) -> Done {
    const PARTS: usize = 50;
    let part = (size / PARTS).max(1);
    for number in 0..PARTS {
        let group = |job: JobBuilder| job.group(&format!("g{number}"));
        stage.submit("purged", part, group).await?;
    }
    let began = Instant::now();
    let kept = Duration::from_mins(4);
    let purge = async |on: &Stage<'_>| {
        for number in 0..PARTS {
            let queue: Queue = format!("type:purged:group:g{number}").parse()?;
            let left = kept.saturating_sub(began.elapsed()).max(Duration::from_secs(5));
            on.store.queues().purge(&queue, Retention::from(left)).await?;
        }
        Ok(())
    };
    stage.load("purge", size, purge).await?;
    tokio::time::sleep(kept.saturating_sub(began.elapsed() + Duration::from_secs(3))).await;
    let purged: ScriptType = "purged".parse()?;
    let index = stage.store.keys().index(hero::proto::job::JobStatus::Error, &purged);
    let expire = async |on: &Stage<'_>| on.until_gone(&index).await;
    stage.load("expire together", size, expire).await
}

/// Scripts, outputs and inputs as large as they may be by default.
async fn bytes(stage: &mut Stage<'_>, by: usize) -> Done {
    let size = (1000 / by).max(1);
    let script = "1".repeat(60_000);
    let jobs: Vec<Job> = (0..size).map(|_| job("large", &script)).collect::<Done<_>>()?;
    let submit = async |on: &Stage<'_>| accepted(on.client.submit_all(&jobs).await?);
    stage.load("scripts of 60 KB", size, submit).await?;
    let drain = async |on: &Stage<'_>| on.drain("large", 64, size, "1").await;
    stage.load("claim and record them", size, drain).await?;

    let size = (256 / by).max(1);
    let script = "1".repeat(1 << 20);
    let jobs: Vec<Job> = (0..size).map(|_| job("huge", &script)).collect::<Done<_>>()?;
    let submit = async |on: &Stage<'_>| accepted(on.client.submit_all(&jobs).await?);
    stage.load("scripts of 1 MiB", size, submit).await?;
    let output = "o".repeat(OUTPUT_LEN);
    let drain = async |on: &Stage<'_>| on.drain("huge", 256, size / 2, output.as_str()).await;
    stage.load("claim them, outputs of 1 MiB", size / 2, drain).await?;
    let output = vec![0xff; OUTPUT_LEN];
    let drain = async |on: &Stage<'_>| on.drain("huge", 256, size / 2, output.clone()).await;
    stage.load("claim them, binary outputs", size / 2, drain).await?;

    let size = (640 / by).max(1);
    let script = "let s = \"0123456789abcdef\"; for n in 0..16 { s += s; } s";
    let jobs: Vec<Job> = (0..size).map(|_| job("osis", script)).collect::<Done<_>>()?;
    let run = async |on: &Stage<'_>| {
        let osis: ScriptType = "osis".parse()?;
        let before = on.ended(&osis).await?;
        accepted(on.client.submit_all(&jobs).await?)?;
        let began = Instant::now();
        while on.ended(&osis).await? < before + size as u64 {
            patient(began)?;
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    };
    stage.load("outputs of 1 MiB, 64 tasks", size, run).await
}

async fn graphs(stage: &mut Stage<'_>, by: usize) -> Done {
    let size = 20_000 / by;
    let mut graph = Graph::new();
    for number in 0..size {
        let node = graph.add(number.to_string(), job("graph", "1")?);
        if number > 0 {
            let other = (number - number % 10).saturating_sub(1);
            node.after((number / 2).to_string()).after(other.to_string());
        }
    }
    let submit = async |on: &Stage<'_>| submit_graph(on, &graph).await;
    stage.load("graph", size, submit).await?;

    let mut graph = Graph::new();
    graph.add("root", job("fanned", "1")?);
    for number in 1..size {
        graph.add(number.to_string(), job("fanned", "1")?).after("root");
    }
    let submit = async |on: &Stage<'_>| submit_graph(on, &graph).await;
    stage.load("graph: all after one", size, submit).await?;
    let end = async |on: &Stage<'_>| {
        on.drain("fanned", 64, 1, "1").await?;
        on.until_depth("type:fanned", size as u64 - 1).await
    };
    stage.load("the end of that one", size, end).await?;

    let size = (10_000 / by).max(2);
    let mut graph = Graph::new();
    let names: Vec<String> = (0..size).map(|number| number.to_string()).collect();
    for name in &names {
        graph.add(name, job("part", "1")?);
    }
    let last = graph.add("last", job("last", "1")?);
    for name in &names {
        last.after(name);
    }
    let submit = async |on: &Stage<'_>| submit_graph(on, &graph).await;
    stage.load("graph: one after all", size, submit).await?;
    let output = "o".repeat(800);
    let drain = async |on: &Stage<'_>| {
        on.drain("part", 64, size, output.as_str()).await?;
        on.until_depth("type:last", 1).await
    };
    stage.load("the ends of all", size, drain).await?;
    let read = async |on: &Stage<'_>| {
        let actor = on.performer("last", 1).await?;
        let claimed = actor.claim(&[], 1).await?;
        let attempt = claimed.first().ok_or("the last job was not claimed")?;
        let job = attempt.job.as_ref().map_err(ToString::to_string)?;
        let ids: Vec<JobId> = job.spec.waits_for().cloned().collect();
        let (inputs, ..) =
            on.store.jobs().inputs(&[ids.into()], on.config.job.inputs_size_max).await?;
        let number = inputs.first().and_then(|of| of.as_ref().ok()).map_or(0, BTreeMap::len);
        if number == size { Ok(()) } else { Err(format!("{number} inputs of {size}").into()) }
    };
    stage.load("its inputs", size, read).await?;

    let jobs: Vec<Job> = (0..size).map(|_| job("before", "1")).collect::<Done<_>>()?;
    accepted(stage.client.submit_all(&jobs).await?)?;
    let mut after = job("after", "1")?;
    after.spec.prerequisites = jobs.into_iter().map(|job| job.id).collect();
    let submit =
        async |on: &Stage<'_>| on.client.submit(after.clone()).await.map(drop).map_err(Into::into);
    stage.load("one after all, by their ids", size, submit).await
}

/// A batch of which few jobs run at once: an actor with more tasks holds the others.
async fn windows(stage: &mut Stage<'_>, size: usize) -> Done {
    let mut graph = Graph::new();
    graph.set_window(GraphWindow { at_a_time: Some(4), ..GraphWindow::default() });
    for number in 0..size {
        graph.add(number.to_string(), job("window", "1")?);
    }
    let submit = async |on: &Stage<'_>| submit_graph(on, &graph).await;
    stage.load("batch, 4 at a time", size, submit).await?;
    let drain = async |on: &Stage<'_>| on.drain("window", 16, size, "1").await;
    stage.load("claim and record it", size, drain).await
}

async fn deaths(stage: &mut Stage<'_>, by: usize) -> Done {
    let size = 10_000 / by;
    stage.submit("lost", size, |job| job).await?;
    let actor = stage.performer("lost", 1).await?;
    let mut claimed = 0;
    while claimed < size {
        claimed += actor.claim(&[], 1000).await?.len();
    }
    actor.renew(Duration::from_millis(1)).await?;
    let until = async |on: &Stage<'_>| on.until_depth("type:lost", size as u64).await;
    stage.load("jobs of a dead actor", size, until).await
}

fn job(script_type: &str, script: &str) -> Done<Job> {
    Ok(JobBuilder::new(script_type, script).build()?)
}

async fn submit_graph(on: &Stage<'_>, graph: &Graph) -> Done {
    on.client.graphs().submit(&mut graph.clone()).await.map(drop).map_err(Into::into)
}

fn patient(since: Instant) -> Done {
    if since.elapsed() > PATIENCE { Err("waited for too long".into()) } else { Ok(()) }
}

impl Stage<'_> {
    pub(super) async fn submit(
        &self,
        script_type: &str,
        size: usize,
        with: impl Fn(JobBuilder) -> JobBuilder,
    ) -> Done {
        let job = |n: usize| Ok(with(JobBuilder::new(script_type, n.to_string())).build()?);
        submit(&self.client, (BULK, size), job).await
    }

    /// Claims jobs of a type, so many at once, and ends each with this output.
    async fn drain(
        &self,
        script_type: &str,
        tasks: usize,
        size: usize,
        output: impl Into<JobOutput> + Clone,
    ) -> Done {
        let actor = self.performer(script_type, 1).await?;
        let began = Instant::now();
        let mut ended = 0;
        while ended < size {
            patient(began)?;
            let mut all = Vec::new();
            loop {
                let wanted = tasks.min(size - ended) - all.len();
                let claimed = actor.claim(&[], wanted).await?;
                let is_all = claimed.is_empty() || claimed.len() == wanted;
                all.extend(claimed);
                if is_all {
                    break;
                }
            }
            actor.end(&all, output.clone()).await?;
            ended += all.len();
        }
        Ok(())
    }

    async fn ended(&self, script_type: &ScriptType) -> Done<u64> {
        let counters = self.client.stats().counters(script_type).await?;
        Ok(["finished", "failed"].iter().filter_map(|name| counters.get(*name)).sum())
    }

    async fn until_depth(&self, queue: &str, depth: u64) -> Done {
        let queue: Queue = queue.parse()?;
        let began = Instant::now();
        loop {
            let state =
                self.client.queues().list().await?.into_iter().find(|one| one.queue == queue);
            if state.is_some_and(|state| state.depth >= depth) {
                return Ok(());
            }
            patient(began)?;
            tokio::time::sleep(GLANCE).await;
        }
    }

    async fn until_gone(&self, key: &str) -> Done {
        let began = Instant::now();
        let mut link = self.watch.connect()?;
        while redis::cmd("EXISTS").arg(key).query::<bool>(&mut link)? {
            patient(began)?;
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }
}
