//! The time that Redis takes for jobs with `where` and for windows of batches, beside plain jobs in the same run.

use std::time::Duration;

use clap::Args;
use hero::client::{Graph, JobBuilder};
use hero::proto::job::Job;
use hero::proto::target::SelectorDigest;
use hero::proto::window::GraphWindow;
use redis::Connection;

use super::{BULK, Bench, Done, Performer, bare_redis, quantile, submit};

/// The numbers of expressions that an actor matches.
const MATCHED: [usize; 3] = [0, 10, 100];
/// The repetitions of a submission that all actors learn of, which have appeared within a minute.
const NEW: usize = 50;
/// A plain job beside the expressions and actors, and a job of a batch.
const BESIDE: &str = "beside them";
const BATCH: &str = "of a batch";
/// The batches of each window.
const BATCHES: usize = 5;

/// The size of the fleet.
#[derive(Debug, Args)]
pub(crate) struct FleetSizes {
    #[arg(long, default_value_t = 10_000)]
    expressions: usize,
    #[arg(long, default_value_t = 1000)]
    actors: usize,
    /// The jobs of a batch with a window
    #[arg(long, default_value_t = 300)]
    jobs: usize,
    /// The repetitions of each call
    #[arg(long, default_value_t = 500)]
    times: usize,
}

impl Bench {
    pub(super) async fn fleet(&self, sizes: &FleetSizes) -> Done {
        let mut calls = Calls::open(self)?;
        let actor = self.performer("plain", 1).await?;
        for _ in 0..sizes.times {
            self.pass(&mut calls, &actor, &[], None, "alone").await?;
        }
        for number in 1..=sizes.actors {
            self.performer("fleet", number).await?;
        }
        for number in sizes.expressions..sizes.expressions + NEW {
            let new = job("fleet", Some(number))?;
            let name = "submission, of a new expression".to_owned();
            calls
                .measure(name, async || self.client.submit(new).await.map(drop).map_err(Into::into))
                .await?;
        }
        let new = |number| job("fleet", Some(number));
        submit(&self.client, (BULK, sizes.expressions), new).await?;
        let queues = self.client.queues().list().await?.into_iter().map(|state| state.queue);
        for queue in queues.filter(|queue| queue.target.script_type().as_str() == "fleet") {
            self.store.queues().purge(&queue, self.config.job.kept()).await?;
        }
        let claimer = self.performer("fleet", sizes.actors + 1).await?;
        for _ in 0..sizes.times {
            self.pass(&mut calls, &actor, &[], None, BESIDE).await?;
            for number in MATCHED {
                let matched: Vec<SelectorDigest> =
                    (0..number).map(|of| SelectorDigest::of_text(&expression(of))).collect();
                let last = number.checked_sub(1);
                let name = format!("of an actor that matches {number}");
                self.pass(&mut calls, &claimer, &matched, last, &name).await?;
            }
        }
        for at_a_time in [None, Some(64), Some(4)].repeat(BATCHES) {
            self.window(&mut calls, &actor, at_a_time, sizes.jobs).await?;
        }
        calls.print();
        Ok(())
    }

    /// Submits a job, claims and ends it, and then claims and waits in vain.
    async fn pass(
        &self,
        calls: &mut Calls,
        actor: &Performer,
        matched: &[SelectorDigest],
        expression: Option<usize>,
        name: &str,
    ) -> Done {
        let new = job(actor.present.actor.script_type.as_str(), expression)?;
        calls
            .measure(format!("submission, {name}"), async || {
                self.client.submit(new.clone()).await.map(drop).map_err(Into::into)
            })
            .await?;
        let mut claimed = Vec::new();
        calls
            .measure(format!("claim, {name}"), async || {
                claimed = actor.claim(matched, 1).await?;
                Ok(())
            })
            .await?;
        if claimed.len() != 1 {
            return Err(format!("{} jobs were claimed, {name}", claimed.len()).into());
        }
        calls.measure(format!("end, {name}"), async || actor.end(&claimed, "1").await).await?;
        calls
            .measure(format!("claim in vain, {name}"), async || {
                actor.claim(matched, 1).await.map(drop)
            })
            .await?;
        let wakes = actor.wakes(matched);
        let mut link = self.store.blocking();
        // The token of the job.
        link.pop(&wakes, Duration::from_millis(1)).await?;
        calls
            .measure_command("blpop", format!("wait, {name}"), async || {
                link.pop(&wakes, Duration::from_millis(1)).await.map(drop).map_err(Into::into)
            })
            .await
    }

    /// Claims and ends the jobs of a batch one by one, beside those that wait for a slot.
    async fn window(
        &self,
        calls: &mut Calls,
        actor: &Performer,
        at_a_time: Option<u32>,
        jobs: usize,
    ) -> Done {
        let name = at_a_time.map_or(BATCH.to_owned(), |of| format!("{BATCH}, {of} at a time"));
        let mut graph = Graph::new();
        graph.set_window(GraphWindow { at_a_time, ..GraphWindow::default() });
        for number in 0..jobs {
            graph.add(number.to_string(), job("plain", None)?);
        }
        self.client.graphs().submit(&mut graph).await?;
        let mut running = Vec::new();
        let first = format!("first claim, {name}");
        calls
            .measure(first, async || {
                running.extend(actor.claim(&[], 16).await?);
                Ok(())
            })
            .await?;
        let mut left = jobs;
        while left > 0 {
            let Some(ended) = running.pop() else {
                return Err(format!("{left} jobs are left {name}").into());
            };
            calls.measure(format!("end, {name}"), async || actor.end([&ended], "1").await).await?;
            left -= 1;
            calls
                .measure(format!("claim, {name}"), async || {
                    running.extend(actor.claim(&[], 1).await?);
                    Ok(())
                })
                .await?;
        }
        Ok(())
    }
}

fn expression(number: usize) -> String {
    format!("rack = {number}")
}

fn job(script_type: &str, number: Option<usize>) -> Done<Job> {
    let builder = JobBuilder::new(script_type, "1");
    let builder = match number {
        Some(number) => builder.r#where(&expression(number)),
        None => builder,
    };
    Ok(builder.build()?)
}

/// The times of calls, by their names in the order of their first call.
struct Calls {
    link: Connection,
    times: Vec<(String, Vec<Duration>)>,
}

impl Calls {
    fn open(on: &Bench) -> Done<Self> {
        Ok(Self { link: bare_redis(&on.config)?.get_connection()?, times: Vec::new() })
    }

    /// Returns the time that Redis has spent on a command.
    fn spent(&mut self, command: &str) -> Done<Duration> {
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut self.link)?;
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
        let us = line.and_then(|line| line.split("usec=").nth(1)?.split(',').next()?.parse().ok());
        Ok(Duration::from_micros(us.unwrap_or_default()))
    }

    async fn measure(&mut self, name: String, call: impl AsyncFnOnce() -> Done) -> Done {
        self.measure_command("evalsha", name, call).await
    }

    async fn measure_command(
        &mut self,
        command: &str,
        name: String,
        call: impl AsyncFnOnce() -> Done,
    ) -> Done {
        let before = self.spent(command)?;
        call().await?;
        let took = self.spent(command)?.saturating_sub(before);
        match self.times.iter_mut().find(|(of, _)| *of == name) {
            Some((_, times)) => times.push(took),
            None => self.times.push((name, vec![took])),
        }
        Ok(())
    }

    /// Prints medians, with the tenth and the ninetieth percentile, and their ratio to the same call for a plain job, or a
    /// job of a batch without a window, in the same turns.
    #[expect(clippy::print_stdout, reason = "the result of a command line program")]
    fn print(mut self) {
        let figures = self.times.iter_mut().map(|(name, times)| {
            (&**name, [0.1, 0.5, 0.9].map(|q| quantile(times, q).as_secs_f64() * 1e6))
        });
        let figures: Vec<(&str, [f64; 3])> = figures.collect();
        for (name, [low, median, high]) in &figures {
            let (step, of) = name.split_once(", ").unwrap_or_default();
            let base = if of.starts_with(BATCH) { BATCH } else { BESIDE };
            let base = figures.iter().find(|(name, _)| *name == format!("{step}, {base}"));
            let ratio = base.map_or(1.0, |(_, [_, base, _])| median / base.max(1.0));
            println!("{name:<52} {median:>7.0} ({low:.0}–{high:.0}) µs {ratio:>6.2} × plain");
        }
    }
}
