//! Measures that only developers need, on the Redis of `HERO_CONFIG`. Each prints lines of a name,
//! a figure and its unit. A private Redis with a supervisor and actors comes from `hero dev`:
//!
//! ```sh
//! target/release/hero dev -- target/release/xtask bench lists
//! target/release/hero dev -- target/release/xtask bench fleet
//! target/release/hero dev -- target/release/xtask bench api
//! xtask/bench-amqp.sh
//! xtask/bench-shards.sh
//! target/release/hero --config xtask/dual.toml dev -- target/release/xtask bench bridge
//! ```

mod fleet;
mod pages;

use std::error::Error;
use std::fs;
use std::future::Future;
use std::time::{Duration, Instant};

use clap::Subcommand;
pub(crate) use hero::cli::{millis, per_second, quantile};
use hero::client::{Client, JobBuilder};
use hero::config::{Config, OsisConfig};
use hero::proto::job::{Job, JobId};
use hero::proto::keys::Keys;
use hero::proto::object::{Ask, Change, Context, ObjectId, ObjectType, Query, Write};
use hero::proto::queue::Queue;
use hero::proto::target::ScriptType;
use hero::store::{ListQuery, Shards, Store, Submitted};
use redis::Connection;
use serde_json::{Value, json};

use super::performer::Performer;
use super::{bench_amqp, bench_api};

pub(crate) type Done<T = ()> = Result<T, Box<dyn Error>>;

const FEW: usize = 1000;
const MANY: usize = 1_000_000;
/// Jobs in one call of a bulk submission.
const BULK: usize = 1000;
/// Repetitions of a measure; the figure is their median.
const TIMES: usize = 500;
/// Repetitions before those that count.
const WARM_UPS: usize = 50;

/// Measure what `hero bench` does not
#[derive(Debug, Subcommand)]
pub(crate) enum Measure {
    /// A page of a list and a claim, among 1 000 and among 1 000 000 jobs
    Lists,
    /// Jobs with `where` and batches with a window, beside plain jobs: the time that Redis takes for a call
    Fleet(fleet::FleetSizes),
    /// Getting and finding an object of scripts, among 1 000 and among 1 000 000
    Objects,
    /// Enqueueing and draining jobs; compare a run on a dual configuration with one on the default
    Queue {
        #[arg(long, default_value_t = 20_000)]
        jobs: usize,
    },
    /// The time that the bridge adds to a task of rhailib, beside a job of Hero
    Bridge,
    /// The share of a core that each live actor uses while it is idle
    Idle,
    /// The time that the API adds to a job, and the share of a core of a supervisor with many followers
    Api,
    /// Brokers beside bare consumers of the same RabbitMQ; xtask/bench-amqp.sh runs it
    Amqp(bench_amqp::AmqpSizes),
    /// Submit small jobs, as many on each shard; xtask/bench-shards.sh measures what they cost Redis
    Shards {
        #[arg(long, default_value_t = 40_000)]
        jobs: usize,
    },
    /// The time that the pages of a large namespace take, and the share of a core that open pages cost
    Pages(pages::PageSizes),
}

impl Measure {
    pub(crate) fn run(&self) -> Done {
        let config = config_of("bench ...")?;
        let bench =
            Bench { client: Client::open(&config)?, store: Store::open(&config.redis)?, config };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self {
                Self::Lists => bench.lists().await,
                Self::Fleet(sizes) => bench.fleet(sizes).await,
                Self::Objects => bench.objects().await,
                Self::Queue { jobs } => bench.queue(*jobs).await,
                Self::Bridge => Box::pin(bench.bridge()).await,
                Self::Idle => bench.idle().await,
                Self::Api => Box::pin(bench_api::run(&bench.client)).await,
                Self::Amqp(sizes) => bench_amqp::run(&bench.client, &bench.config, sizes).await,
                Self::Shards { jobs } => bench.shards(*jobs).await,
                Self::Pages(sizes) => bench.pages(sizes).await,
            }
        })
    }
}

struct Bench {
    client: Client,
    store: Store,
    config: Config,
}

impl Bench {
    /// The jobs are of a type that no actor serves.
    async fn lists(&self) -> Done {
        let query = ListQuery { limit: 50, ..ListQuery::default() };
        let claimer = self.performer("bench", 1).await?;
        for (more, among) in [(FEW, "1 000"), (MANY - FEW, "1 000 000")] {
            submit(&self.client, (BULK, more), |number| job("bench", number)).await?;
            let page =
                || async { self.client.list_jobs(&query).await.map(drop).map_err(Into::into) };
            print(&format!("page of 50 among {among}"), median(TIMES, page).await?, "ms");
            let claim = || async {
                let jobs = claimer.claim(&[], 1).await?;
                if jobs.is_empty() { Err("no job was claimed".into()) } else { Ok(()) }
            };
            print(&format!("claim among {among}"), median(TIMES, claim).await?, "ms");
        }
        Ok(())
    }

    async fn objects(&self) -> Done {
        let object_type: ObjectType = "person".parse()?;
        let fields = ["email".parse()?, "age".parse()?].into();
        let index = [(object_type.clone(), fields)].into();
        let config = OsisConfig { objects_max: MANY as u64, index, ..OsisConfig::default() };
        let context = Context::default();
        let ask = async |ask: Ask| -> Done {
            self.store.objects(&context, ask, &config).await.map(drop).map_err(Into::into)
        };
        for (from, to, among) in [(0, FEW, "1 000"), (FEW, MANY, "1 000 000")] {
            for first in (from..to).step_by(Store::OBJECT_CHANGES_MAX) {
                let numbers = first..to.min(first + Store::OBJECT_CHANGES_MAX);
                let writes = numbers.map(|n| person(&object_type, n)).collect::<Done<_>>()?;
                ask(Ask::Write(writes)).await?;
            }
            let get = || async {
                let id = object_id(fastrand::usize(..to))?;
                ask(Ask::Get(object_type.clone(), id)).await
            };
            print(&format!("get an object among {among}"), median(TIMES, get).await?, "ms");
            let find = || async {
                let query = format!("email = \"{}\"", email(fastrand::usize(..to)));
                let query = Query::parse(&query)?;
                let object_type = object_type.clone();
                ask(Ask::Find { object_type, query, after: None, limit: 10 }).await
            };
            print(&format!("find an object among {among}"), median(TIMES, find).await?, "ms");
        }
        Ok(())
    }

    /// The queue is paused while the jobs are submitted, so that the actor drains all of them.
    async fn queue(&self, jobs: usize) -> Done {
        let osis: ScriptType = "osis".parse()?;
        let queue: Queue = "type:osis".parse()?;
        self.client.queues().pause(std::slice::from_ref(&queue)).await?;
        let began = Instant::now();
        for number in 0..jobs {
            self.client.submit(job("osis", number)?).await?;
        }
        print("enqueue one by one", per_second(jobs, began.elapsed()), "jobs/s");
        let before = self.finished(&osis).await?;
        self.client.queues().resume(std::slice::from_ref(&queue)).await?;
        let began = Instant::now();
        while self.finished(&osis).await? < before + jobs as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        print("drain", per_second(jobs, began.elapsed()), "jobs/s");
        Ok(())
    }

    async fn bridge(&self) -> Done {
        let circles = &self.config.supervisor.rhailib_circles;
        let circle = circles.first().ok_or("the configuration has no rhailib circle")?;
        let mut link = bare_redis(&self.config)?.get_connection()?;
        let list = Keys::tasks(&circle.circle);
        let mut times = [const { Vec::new() }; 3];
        // In turns, so that other load on the machine affects all alike.
        for number in 0..WARM_UPS + TIMES {
            let began = Instant::now();
            self.client.run_job_and_await_result(job("osis", number)?, None).await?;
            let mut took = [began.elapsed(); 3];
            for (took, details_first) in took[1..].iter_mut().zip([true, false]) {
                let began = Instant::now();
                run_task(&mut link, &list, details_first)?;
                *took = began.elapsed();
            }
            if number >= WARM_UPS {
                times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
        }
        for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
            let [job, task, id_first] = times.each_mut().map(|times| millis(quantile(times, q)));
            print(&format!("job, {name}"), job, "ms");
            print(&format!("a task takes longer by, {name}"), task - job, "ms");
            print(&format!("a task with its id pushed first, {name}"), id_first - job, "ms");
        }
        Ok(())
    }

    async fn idle(&self) -> Done {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for one in self.client.actors().list(None).await? {
            print_share(&one.actor.to_string(), one.presence.pid).await?;
        }
        Ok(())
    }

    /// Submits small jobs, as many on each shard.
    async fn shards(&self, jobs: usize) -> Done {
        /// The time that they are kept after their end.
        const RETENTION: Duration = Duration::from_hours(1);
        let shards = Shards::open(&self.config.redis, Ok)?;
        let each = jobs / shards.all().len();
        for store in shards.all() {
            for first in (0..each).step_by(BULK) {
                let job = |number: usize| {
                    let mut job = Job::new(store.shard().id(&JobId::random()), number.to_string());
                    job.spec.script_type = Some("osis".parse()?);
                    Ok(job)
                };
                let batch = (first..each.min(first + BULK)).map(job).collect::<Done<Vec<Job>>>()?;
                for submitted in store.jobs().submit(&batch, true, RETENTION).await? {
                    if !matches!(submitted, Submitted::Accepted(_)) {
                        return Err(format!("a job is not accepted: {submitted:?}").into());
                    }
                }
            }
        }
        Ok(())
    }

    async fn performer(&self, script_type: &str, instance: usize) -> Done<Performer> {
        Performer::appear(&self.config, &self.store, script_type, instance).await
    }

    async fn finished(&self, script_type: &ScriptType) -> Done<u64> {
        Ok(self
            .client
            .stats()
            .counters(script_type)
            .await?
            .get("finished")
            .copied()
            .unwrap_or_default())
    }
}

fn job(script_type: &str, number: usize) -> Done<Job> {
    Ok(JobBuilder::new(script_type, number.to_string()).build()?)
}

fn person(object_type: &ObjectType, number: usize) -> Done<Write> {
    let fields = json!({ "name": "a name", "email": email(number), "age": number % 100 });
    let body = fields.as_object().cloned().unwrap_or_default();
    let change = Change::Set { body, created_ms: None };
    let id = object_id(number)?;
    Ok(Write { object_type: object_type.clone(), id, expected: None, change })
}

fn object_id(number: usize) -> Done<ObjectId> {
    Ok(format!("p{number}").parse()?)
}

fn email(number: usize) -> String {
    format!("p{number}@example.org")
}

/// Pushes a task as a client of rhailib does and waits for its reply. Its details are written
/// before its id is pushed, or after it, as the sequence diagram of rhailib has it.
fn run_task(link: &mut Connection, list: &str, details_first: bool) -> Done {
    let id = JobId::random();
    let (task, reply_to) = (id.as_str(), Keys::task_reply(id.as_str()));
    let mut details = redis::cmd("HSET");
    details.arg(Keys::task_details(task)).arg("script").arg("1");
    details.arg("status").arg("pending").arg("reply_to_queue").arg(&reply_to);
    let mut push = redis::cmd("LPUSH");
    push.arg(list).arg(task);
    let steps = if details_first { [&details, &push] } else { [&push, &details] };
    for step in steps {
        step.query::<i64>(link)?;
    }
    let reply: Option<(String, String)> = redis::cmd("BLPOP").arg(&reply_to).arg(30).query(link)?;
    let (_, reply) = reply.ok_or("no reply came within 30 s")?;
    let reply: Value = serde_json::from_str(&reply)?;
    if reply["status"] == "completed" {
        Ok(())
    } else {
        Err(format!("a task failed: {reply}").into())
    }
}

/// Loads the configuration of `hero dev`, for a task of this program.
pub(crate) fn config_of(task: &str) -> Done<Config> {
    let file = std::env::var_os("HERO_CONFIG")
        .ok_or_else(|| format!("HERO_CONFIG is not set; run this as `hero dev -- xtask {task}`"))?;
    Ok(Config::load(Some(file.as_ref()))?)
}

pub(crate) fn bare_redis(config: &Config) -> Done<redis::Client> {
    let url = config.redis.url.to_string().replacen("redis+unix:", "unix:", 1);
    Ok(redis::Client::open(url)?)
}

/// Submits jobs, a bulk of a size in each call.
pub(crate) async fn submit(
    client: &Client,
    (bulk, count): (usize, usize),
    job: impl Fn(usize) -> Done<Job>,
) -> Done {
    for first in (0..count).step_by(bulk) {
        let jobs = (first..count.min(first + bulk)).map(&job).collect::<Done<Vec<_>>>()?;
        accepted(client.submit_all(&jobs).await?)?;
    }
    Ok(())
}

pub(crate) fn accepted<E: Error + 'static>(results: Vec<Result<JobId, E>>) -> Done {
    results.into_iter().try_for_each(|result| result.map(drop)).map_err(Into::into)
}

pub(crate) async fn print_share(name: &str, pid: u32) -> Done {
    /// Longer than a heartbeat.
    const WATCHED: Duration = Duration::from_secs(10);
    let (before, began) = (cpu_time(pid)?, Instant::now());
    tokio::time::sleep(WATCHED).await;
    let used = cpu_time(pid)?.saturating_sub(before);
    print(name, 100.0 * used.as_secs_f64() / began.elapsed().as_secs_f64(), "% of a core");
    Ok(())
}

pub(crate) fn print_times(name: &str, times: &mut [Duration]) {
    for (of, q) in [("p50", 0.5), ("p99", 0.99)] {
        print(&format!("{name}, {of}"), millis(quantile(times, q)), "ms");
    }
}

/// Returns the time that all threads of a process have spent on a processor.
fn cpu_time(pid: u32) -> Done<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

async fn median<F: Future<Output = Done>>(times: usize, run: impl Fn() -> F) -> Done<f64> {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let began = Instant::now();
        run().await?;
        taken.push(began.elapsed());
    }
    Ok(millis(quantile(&mut taken, 0.5)))
}

#[expect(clippy::print_stdout, reason = "the result of a command line program")]
pub(crate) fn print(name: &str, figure: f64, unit: &str) {
    println!("{name:<44} {figure:>12.3} {unit}");
}
