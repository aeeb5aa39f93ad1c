//! Load: each of many jobs runs exactly once, in order, and leaves nothing behind.

use hero::client::{Client, JobBuilder};
use hero::config::JobConfig;
use hero::proto::job::{Job, JobStatus};
use hero::store::Store;

use crate::support::{Hero, RETENTION, Redis, World, keys, size, wait_until};

/// Builds a job: mostly osis, some sal, a few that start a process; some are targeted or urgent.
/// Each logs one line, which is counted.
fn mixed(n: usize) -> Job {
    let (kind, script) = match n % 100 {
        0 => ("python", "import sys; print('ran', file=sys.stderr)"),
        1..=20 => ("sal", "print(\"ran\"); 1"),
        _ => ("osis", "print(\"ran\"); 1"),
    };
    let mut job = JobBuilder::new(kind, script).id(&format!("j{n}")).reply(n.is_multiple_of(2));
    match n % 7 {
        0 => job = job.group("default"),
        1 => job = job.instance(u16::try_from(n % 2 + 1).expect("small")),
        2 => job = job.priority(0),
        3 => job = job.priority(2),
        _ => {}
    }
    job.build().expect("a legal job")
}

#[tokio::test]
async fn many_mixed_jobs_run_exactly_once_on_two_actors() {
    let redis = Redis::start();
    let unit = |instance: usize| {
        let types = ["osis", "sal", "python"];
        let actors =
            types.map(|t| format!("{{ type = \"{t}\", instance = {instance}, tasks = 4 }}"));
        format!("[{}]", actors.join(", "))
    };
    let hero = Hero::on(&redis).set("unit.one.actors", &unit(1)).set("unit.two.actors", &unit(2));
    let _units = [hero.actor("one").start(), hero.actor("two").start()];
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    let number = size(10_000);
    let jobs: Vec<Job> = (0..number).map(mixed).collect();
    for result in client.submit_all(&jobs).await.expect("submitting") {
        result.expect("every job is accepted");
    }
    let sum = |what: &str| -> usize {
        let of = |t| redis.field(&keys::stats(t), what);
        ["osis", "sal", "python"]
            .into_iter()
            .filter_map(of)
            .map(|n| n.parse::<usize>().expect("n"))
            .sum()
    };
    wait_until("all have ended", || sum("finished") + sum("failed") >= number);
    assert_eq!((sum("finished"), sum("skipped")), (number, 0));

    let mut pipeline = redis::pipe();
    for job in &jobs {
        pipeline.cmd("XLEN").arg(keys().log(&job.id));
    }
    let lines: Vec<usize> = pipeline.query(&mut redis.link()).expect("counting side effects");
    assert!(lines.iter().all(|lines| *lines == 1), "some ran more than once, or not at all");
    for kind in ["WORK", "READY", "RUNNING"] {
        assert_eq!(redis.all(kind), [] as [&str; 0], "left behind");
    }
    World::on(redis, "hero").check();
}

#[tokio::test]
async fn one_task_runs_the_jobs_of_a_queue_in_order() {
    const NUMBER: usize = 300;
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let store = Store::open(&redis.config("hero")).expect("settings");
    let order = redis.folder().join("order");
    let jobs: Vec<Job> = (0..NUMBER)
        .map(|n| {
            let script = format!("run_command(\"echo {n} >> {}\"); 1", order.display());
            JobBuilder::new("sal", script).id(&format!("j{}", n * 7919 % 1000)).build()
        })
        .collect::<Result<_, _>>()
        .expect("legal jobs");
    let accepted = store.jobs().submit(&jobs, true, RETENTION).await.expect("submitting");
    assert_eq!(accepted.len(), NUMBER);
    let _sal = hero.actor("sal-default-1").tasks(1).start();
    let last = jobs.last().expect("there are jobs");
    super::until(&redis, last.id.as_str(), JobStatus::Finished.as_str());
    let ran = std::fs::read_to_string(&order).expect("they ran");
    let expected: Vec<String> = (0..NUMBER).map(|n| n.to_string()).collect();
    assert_eq!(ran.split_whitespace().collect::<Vec<_>>(), expected);
}
