//! The load of a measure: many jobs of one kind, and the time to submit or run them.

use std::time::{Duration, Instant};

use clap::Args;

use crate::client::{Client, ClientError, Graph, JobBuilder};
use crate::error::Error;
use crate::proto::job::Job;

/// Jobs in a round trip of a bulk submission.
const BULK: usize = 1000;
/// Runs before those that count.
const WARM_UPS: usize = 20;

/// The jobs of a load.
#[derive(Debug, Clone, Args)]
pub(super) struct JobKind {
    /// Their script type
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "osis")]
    script_type: String,
    /// Their script, where {i} stands for the number of the job
    #[arg(long, value_name = "TEXT", default_value = "{i}", allow_hyphen_values = true)]
    script: String,
}

impl Default for JobKind {
    fn default() -> Self {
        Self::new("osis", "{i}")
    }
}

impl JobKind {
    pub(super) fn new(script_type: &str, script: &str) -> Self {
        Self { script_type: script_type.to_owned(), script: script.to_owned() }
    }

    pub(super) fn job(&self, number: usize) -> Result<Job, ClientError> {
        let script = self.script.replace("{i}", &number.to_string());
        Ok(JobBuilder::new(&self.script_type, script).build()?)
    }
}

pub(super) async fn enqueue(client: &Client, kind: &JobKind, n: usize) -> Result<Duration, Error> {
    let began = Instant::now();
    for number in 0..n {
        client.submit(kind.job(number)?).await?;
    }
    Ok(began.elapsed())
}

/// Submits `n` jobs, a thousand in a round trip.
pub(super) async fn bulk(client: &Client, kind: &JobKind, n: usize) -> Result<Duration, Error> {
    let began = Instant::now();
    for first in (0..n).step_by(BULK) {
        let numbers = first..n.min(first + BULK);
        let jobs: Vec<Job> = numbers.map(|number| kind.job(number)).collect::<Result<_, _>>()?;
        for submitted in client.submit_all(&jobs).await? {
            submitted?;
        }
    }
    Ok(began.elapsed())
}

/// Runs `n` jobs, each after the end of the one before, and returns their times.
pub(super) async fn latency(
    client: &Client,
    kind: &JobKind,
    n: usize,
) -> Result<Vec<Duration>, Error> {
    let mut times = Vec::with_capacity(n);
    for number in 0..WARM_UPS + n {
        let job = kind.job(number)?;
        let began = Instant::now();
        client.run_job_and_await_result(job, None).await?;
        if number >= WARM_UPS {
            times.push(began.elapsed());
        }
    }
    Ok(times)
}

/// Submits a chain of `n` jobs and returns the time from the start of the first to the end of the
/// last, by Redis's clock.
pub(super) async fn chain(client: &Client, n: usize) -> Result<Duration, Error> {
    let mut graph = Graph::new();
    let mut ids = Vec::with_capacity(n);
    for number in 0..n {
        let job = JobKind::default().job(number)?;
        ids.push(job.id.clone());
        let node = graph.add(number.to_string(), job);
        if number > 0 {
            node.after((number - 1).to_string());
        }
    }
    client.graphs().submit(&mut graph).await?;
    client.await_result(&ids[n - 1], None).await?;
    let (first, last) = (client.get_job(&ids[0]).await?, client.get_job(&ids[n - 1]).await?);
    let took = first.started_at.zip(last.finished_at).map(|(began, ended)| ended - began);
    Ok(took.and_then(|took| took.try_into().ok()).unwrap_or_default())
}

/// Submits a graph of `n` jobs, each with up to three prerequisites.
pub(super) async fn graph(client: &Client, n: usize) -> Result<Duration, Error> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut graph = Graph::new();
    for number in 0..n {
        let node = graph.add(number.to_string(), JobKind::default().job(number)?);
        for _ in 0..rng.usize(..4).min(number) {
            node.after(rng.usize(..number).to_string());
        }
    }
    let began = Instant::now();
    client.graphs().submit(&mut graph).await?;
    Ok(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_of_a_job_contains_its_number() {
        let kind = JobKind { script_type: "bash".to_owned(), script: "echo {i} {i}".to_owned() };
        let job = kind.job(7).expect("legal");
        assert_eq!(job.spec.script, "echo 7 7");
        assert_eq!(JobKind::default().job(3).expect("legal").spec.script, "3");
    }
}
