//! Limits in the claim: jobs that get a slot, wait for one, and free it.

use std::collections::BTreeSet;
use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::store::{ListQuery, Verdict};

use crate::support::{Life, RETENTION, World, ids, job, keys, queue};

const ONE: &str = "[limit.one]\nrunning = 1";

fn world(limits: &str) -> World {
    let mut world = World::new();
    world.limit(limits);
    world
}

fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

fn id(name: &str) -> JobId {
    name.parse().expect("a legal id")
}

fn with_key(name: &str, key: &str) -> Job {
    JobBuilder::new("osis", "1").id(name).limit_key(key).build().expect("a legal job")
}

fn serial(name: &str) -> Job {
    JobBuilder::new("osis", "1").id(name).concurrent(false).build().expect("a legal job")
}

/// Makes every limit that holds jobs due.
async fn tend(world: &World) {
    for limit in world.redis.members(&keys::limits()) {
        world.redis.put(&keys::limits(), 1, &limit);
    }
    world.store.limits().tend(100).await.expect("looking after limits");
    world.check();
}

#[tokio::test]
async fn no_more_run_than_the_limit_and_each_end_lets_the_next_go_in_order() {
    let (world, life) = (world("[limit.two]\nrunning = 2"), Life::of("osis-default-1"));
    let jobs: Vec<Job> = ["a", "b", "c", "d", "e"].map(job).into();
    world.accepts(&jobs).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "b"]);
    assert_eq!(world.status("c"), JobStatus::Dispatched);
    assert_eq!(world.indexes_of("c"), [keys::held("type:osis")]);
    assert_eq!(world.field("c", "held_by").as_deref(), Some("two"));
    assert!(world.work("type:osis").is_empty(), "held jobs block no other");
    assert!(world.claim(&life, 9).await.attempts.is_empty());
    world.finish(&life, &id("b"), done()).await;
    assert_eq!(world.work("type:osis"), ["c"]);
    assert_eq!(world.field("c", "held_by"), None);
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["c"]);
    world.finish(&life, &id("a"), done()).await;
    world.finish(&life, &id("c"), done()).await;
    assert_eq!(world.work("type:osis"), ["d", "e"], "in the order of their dispatch");
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["d", "e"]);
    for name in ["d", "e"] {
        world.finish(&life, &id(name), done()).await;
        assert_eq!(world.field(name, "limits"), None);
    }
    assert!(world.redis.all("LIMIT_RUNNING").is_empty());
}

#[tokio::test]
async fn held_jobs_go_on_by_priority_and_then_in_the_order_of_their_dispatch() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    world.accepts(&[job("runs")]).await;
    world.claim(&life, 9).await;
    let of = |id: &str, priority: u8| {
        JobBuilder::new("osis", "1").id(id).priority(priority).build().expect("a legal job")
    };
    let (late, soon) = (2, 0);
    world.accepts(&[of("z", late), job("m"), job("n"), of("a", soon), of("b", soon)]).await;
    assert!(world.claim(&life, 9).await.attempts.is_empty(), "all are held");
    let mut ran = vec![id("runs")];
    for _ in 0..5 {
        world.finish(&life, ran.last().expect("it runs"), done()).await;
        let next = world.claim(&life, 9).await.attempts;
        assert_eq!(next.len(), 1);
        ran.push(next[0].id.clone());
    }
    let ran: Vec<&str> = ran.iter().map(JobId::as_str).collect();
    assert_eq!(ran, ["runs", "a", "b", "m", "n", "z"]);
}

#[tokio::test]
async fn jobs_behind_held_jobs_are_claimed() {
    let (world, life) =
        (world("[limit.api]\nkey = \"api\"\nrunning = 1"), Life::of("osis-default-1"));
    world
        .accepts(&[with_key("a", "api"), with_key("b", "api"), job("c"), with_key("d", "other")])
        .await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "c", "d"]);
    assert_eq!(world.indexes_of("b"), [keys::held("type:osis")]);
}

#[tokio::test]
async fn separate_counts_do_not_share_slots() {
    let limits = "[limit.callers]\nper = \"caller\"\nrunning = 1";
    let (world, life) = (world(limits), Life::of("osis-default-1"));
    let long = "x".repeat(300);
    let of = |name: &str, caller: &str| {
        JobBuilder::new("osis", "1").id(name).caller_id(caller).build().expect("legal")
    };
    let jobs = [
        of("a1", "a"),
        of("a2", "a"),
        of("b1", "b: \n*"),
        of("b2", "b: \n*"),
        of("c1", &long),
        job("d1"),
        job("d2"),
    ];
    world.accepts(&jobs).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a1", "b1", "c1", "d1"]);
    assert_eq!(world.field("a2", "held_by").as_deref(), Some("callers=a"));
    for name in ["b2", "d2"] {
        let by = world.field(name, "held_by").expect("it is held");
        assert!(by.starts_with("callers#"), "{by}: what is no plain word is hashed");
    }
}

#[tokio::test]
async fn many_limits_of_callers_and_keys_hold_as_few_do() {
    let limit = |n: usize| {
        let running = "running = 1";
        format!(
            "[limit.c{n}]\ncaller = \"c{n}\"\n{running}\n[limit.k{n}]\nkey = \"k{n}\"\n{running}\n\
             [limit.b{n}]\ncaller = \"b{n}\"\nkey = \"b\"\n{running}\n"
        )
    };
    for number in [9, 300] {
        let all: String = (0..number).map(limit).collect();
        let (world, life) = (world(&all), Life::of("osis-default-1"));
        let of = |name: &str, caller: &str, key: &str| {
            let mut job = JobBuilder::new("osis", "1").id(name).caller_id(caller);
            if !key.is_empty() {
                job = job.limit_key(key);
            }
            job.build().expect("legal")
        };
        let jobs = vec![
            of("c7-1", "c7", ""),
            of("c7-2", "c7", "k3"),
            of("k8-1", "other", "k8"),
            of("k8-2", "c5", "k8"),
            of("b1", "b4", "b"),
            of("b2", "b4", "b"),
            of("b3", "b4", ""),
            of("free", "other", ""),
        ];
        world.accepts(&jobs).await;
        let claimed = world.claim(&life, 9).await;
        assert_eq!(ids(&claimed.attempts), ["c7-1", "k8-1", "b1", "b3", "free"], "{number}");
        let held_by = ["c7-2", "k8-2", "b2"].map(|id| world.field(id, "held_by"));
        assert_eq!(held_by.map(Option::unwrap_or_default), ["c7", "k8", "b4"]);
        let rules = world.redis.all("LIMIT_RULES");
        assert_eq!(rules.len(), usize::from(number > 50));
        for forgotten in [false, true] {
            for key in rules.iter().filter(|_| forgotten) {
                world.redis.delete(key);
            }
            tend(&world).await;
            assert!(world.claim(&life, 9).await.attempts.is_empty());
        }
        world.finish(&life, &id("c7-1"), done()).await;
        assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["c7-2"]);
    }
}

#[tokio::test]
async fn groups_and_types_are_counted_separately_too() {
    let limits =
        "[limit.groups]\nper = \"group\"\nrunning = 1\n[limit.types]\nper = \"type\"\nrunning = 2";
    let world = world(limits);
    let (osis, sal) = (Life::of("osis-io-1"), Life::of("sal-io-1"));
    let of = |kind: &str, name: &str, group: Option<&str>| {
        let builder = JobBuilder::new(kind, "1").id(name);
        let builder = if let Some(group) = group { builder.group(group) } else { builder };
        builder.build().expect("legal")
    };
    let jobs = [
        of("osis", "io1", Some("io")),
        of("osis", "io2", Some("io")),
        of("osis", "any1", None),
        of("osis", "any2", None),
        of("sal", "sal1", Some("io")),
    ];
    world.accepts(&jobs).await;
    assert_eq!(ids(&world.claim(&osis, 9).await.attempts), ["io1", "any1"]);
    assert_eq!(ids(&world.claim(&sal, 9).await.attempts), ["sal1"]);
    assert_eq!(world.field("io2", "held_by").as_deref(), Some("groups=osis/io"));
    assert_eq!(world.field("any2", "held_by").as_deref(), Some("groups=osis/default"));
}

#[tokio::test]
async fn no_job_overtakes_one_of_its_priority_that_has_waited_longer() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a"]);
    world.finish(&life, &id("a"), done()).await;
    // Its slot is free; a more urgent job comes, and one that is not.
    let urgent = JobBuilder::new("osis", "1").id("urgent").priority(0).build().expect("legal");
    world.accepts(&[job("d"), urgent]).await;
    for next in ["urgent", "b", "c", "d"] {
        assert_eq!(ids(&world.claim(&life, 9).await.attempts), [next]);
        world.finish(&life, &id(next), done()).await;
    }
}

#[tokio::test]
async fn every_end_of_a_run_frees_its_slot() {
    let world = world(ONE);
    let mut life = Life::of("osis-default-1");
    let names: Vec<String> = (0..6).map(|n| format!("j{n}")).collect();
    for name in &names {
        world.accepts(&[job(name)]).await;
    }
    let next = async |life: &Life| {
        let claimed = world.claim(life, 9).await;
        assert_eq!(claimed.attempts.len(), 1, "one place, and it is free");
        claimed.attempts[0].id.clone()
    };
    let first = next(&life).await;
    let failed = Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true };
    world.finish(&life, &first, failed).await;
    let second = next(&life).await;
    let delay = Duration::from_hours(1);
    let again = Verdict::Retry { error: "no".to_owned(), exit_code: None, delay };
    world.finish(&life, &second, again).await;
    let third = next(&life).await;
    world.give_back(&life, &[(third.clone(), None)]).await;
    world.check();
    assert_eq!(next(&life).await, third, "it is in front of those that were held");
    world.set_lease(&life, 1);
    world.store.recovery().boots(None, Duration::ZERO, 3, RETENTION).await.expect("recovering");
    world.check();
    life = Life::of("osis-default-2");
    assert_eq!(next(&life).await, third, "a crash keeps the order as well");
    world.set_lease(&life, 1);
    world.store.recovery().boots(None, Duration::ZERO, 1, RETENTION).await.expect("recovering");
    world.check();
    assert_eq!(world.status(third.as_str()), JobStatus::Error);
    life = Life::of("osis-default-3");
    let fourth = next(&life).await;
    assert_eq!(fourth, id("j3"));
    // A foreign program ends it while it runs.
    world.redis.set_job("j3", "status finished");
    world.set_lease(&life, 1);
    world.store.recovery().boots(None, Duration::ZERO, 3, RETENTION).await.expect("recovering");
    world.check();
    life = Life::of("osis-default-4");
    assert_eq!(next(&life).await, id("j4"));
}

#[tokio::test]
async fn slot_of_a_removed_job_is_freed() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b")]).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a"]);
    world.redis.delete(&keys::job("a"));
    world.redis.remove(&keys().running(&life.boot), "a");
    world.redis.put(&keys::limits(), 1, "one");
    let tended = world.store.limits().tend(100).await.expect("looking after limits");
    world.check();
    assert_eq!((tended.taken_back, tended.released), (1, 1));
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["b"]);
}

#[tokio::test]
async fn held_jobs_are_listed_stopped_deleted_and_purged_like_others_that_wait() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    let jobs: Vec<Job> = ["a", "b", "c", "d", "e"].map(job).into();
    world.accepts(&jobs).await;
    world.claim(&life, 9).await;
    let statuses = vec![JobStatus::Dispatched];
    let query = ListQuery { statuses, limit: 9, ..ListQuery::default() };
    assert_eq!(world.store.jobs().list(&query).await.expect("listing").items.len(), 4);
    let seen = world.store.queues().states([].into()).await.expect("listing");
    assert_eq!((seen[0].depth, seen[0].held), (0, 4));
    assert!(seen[0].held_wait.is_some() && seen[0].oldest_wait.is_none());
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(
        world.store.queues().states([].into()).await.expect("listing").len(),
        1,
        "it is not given up"
    );
    world.store.jobs().stop(&id("b"), RETENTION, None).await.expect("stopping");
    world.check();
    assert_eq!(world.field("b", "error").as_deref(), Some("stopped"));
    world.store.jobs().delete(&id("c"), RETENTION).await.expect("deleting");
    world.check();
    world.store.jobs().retry(&id("b")).await.expect("running again");
    world.check();
    assert_eq!(
        world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging"),
        3
    );
    world.check();
    assert!(world.redis.all("LIMIT_HELD").is_empty());
    world.finish(&life, &id("a"), done()).await;
    tend(&world).await;
    for kind in ["LIMITS", "LIMIT_PROBES", "LIMIT_HELD", "LIMIT_RUNNING", "LIMIT_STARTS"] {
        assert_eq!(world.redis.all(kind), [] as [&str; 0], "an unused limit leaves no key");
    }
}

#[tokio::test]
async fn a_rate_lets_so_many_start_within_its_time_and_the_next_when_it_has_passed() {
    let (world, life) = (world("[limit.slow]\nrate = \"2/h\""), Life::of("osis-default-1"));
    let jobs: Vec<Job> = ["a", "b", "c", "d", "e"].map(job).into();
    world.accepts(&jobs).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "b"]);
    let starts = keys::limit_starts("slow");
    let look = world.redis.score(&keys::limits(), "slow").expect("it is known");
    let first: Vec<(String, f64)> = world.redis.ask(&format!("ZRANGE {starts} 0 0 WITHSCORES"));
    assert!(
        (look - first[0].1 - 3_600_000_000.0).abs() < 1.0,
        "the next look is when it may start"
    );
    world.finish(&life, &id("a"), done()).await;
    tend(&world).await;
    assert!(world.claim(&life, 9).await.attempts.is_empty(), "an end frees no start");
    // The hour has passed for one of the two.
    world.redis.put(&starts, 1, &first[0].0.replace(' ', "_"));
    world.redis.ask_with::<i64, _>(&format!("ZREM {starts}"), &[&first[0].0]);
    tend(&world).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["c"]);
    world.redis.delete(&starts);
    tend(&world).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["d", "e"]);
}

#[tokio::test]
async fn a_limit_that_is_lowered_below_what_runs_holds_until_enough_have_ended() {
    let (mut world, life) = (world("[limit.one]\nrunning = 3"), Life::of("osis-default-1"));
    let jobs: Vec<Job> = ["a", "b", "c", "d"].map(job).into();
    world.accepts(&jobs).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "b", "c"]);
    world.limit(ONE);
    for name in ["a", "b"] {
        world.finish(&life, &id(name), done()).await;
        assert!(world.claim(&life, 9).await.attempts.is_empty());
    }
    world.finish(&life, &id("c"), done()).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["d"]);
}

#[tokio::test]
async fn jobs_of_a_limit_that_was_raised_or_removed_do_not_wait_for_ever() {
    for limits in ["[limit.one]\nrunning = 100", ""] {
        let (mut world, life) = (world(ONE), Life::of("osis-default-1"));
        let jobs: Vec<Job> = (0..40).map(|n| job(&format!("j{n}"))).collect();
        world.accepts(&jobs).await;
        assert_eq!(world.claim(&life, 99).await.attempts.len(), 1);
        world.limit(limits);
        let mut taken = 1;
        for _ in 0..7 {
            tend(&world).await;
            taken += world.claim(&life, 99).await.attempts.len();
        }
        assert_eq!(taken, 40, "{limits}");
    }
}

#[tokio::test]
async fn a_held_job_is_tried_again_at_varying_times() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
    assert!(world.claim(&life, 9).await.attempts.is_empty());
    let mut times = BTreeSet::new();
    for _ in 0..5 {
        world.redis.put(&keys::limits(), 1, "one");
        let tended = world.store.limits().tend(100).await.expect("looking after limits");
        assert_eq!(tended.released, 1);
        assert!(world.claim(&life, 9).await.attempts.is_empty());
        times.insert(tended.next);
    }
    assert!(times.len() > 1, "{times:?}");
}

#[tokio::test]
async fn held_job_without_actors_does_not_block_the_slot() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    let nobody = JobBuilder::new("osis", "1").id("b").group("gone").build().expect("legal");
    let gone = Life::of("osis-gone-1");
    world.accepts(&[job("a"), nobody, job("c")]).await;
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
    assert!(world.claim(&gone, 9).await.attempts.is_empty());
    assert!(world.claim(&life, 9).await.attempts.is_empty());
    world.finish(&life, &id("a"), done()).await;
    assert_eq!(world.work("type:osis:group:gone"), ["b"]);
    tend(&world).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["c"]);
}

#[tokio::test]
async fn job_under_two_limits_needs_a_slot_in_both_and_takes_none_while_it_waits() {
    let limits = "[limit.all]\nrunning = 2\n[limit.keys]\nper = \"key\"\nrunning = 1";
    let (world, life) = (world(limits), Life::of("osis-default-1"));
    world.accepts(&[with_key("a", "k"), with_key("b", "k"), job("c"), job("d")]).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "c"]);
    assert_eq!(world.field("b", "held_by").as_deref(), Some("keys=k"));
    assert_eq!(world.field("d", "held_by").as_deref(), Some("all"));
    world.finish(&life, &id("a"), done()).await;
    assert_eq!(world.work("type:osis"), ["b", "d"]);
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["b"]);
    world.finish(&life, &id("c"), done()).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["d"]);
}

#[tokio::test]
async fn serial_jobs_run_one_at_a_time_and_in_order_while_others_run() {
    let world = World::new();
    let (one, two) = (Life::of("osis-default-1"), Life::of("osis-default-2"));
    let to_one = |name: &str, concurrent: bool| {
        let builder = JobBuilder::new("osis", "1").id(name).instance(1).concurrent(concurrent);
        builder.build().expect("legal")
    };
    let jobs = [
        to_one("s1", false),
        to_one("s2", false),
        to_one("c1", true),
        to_one("s3", false),
        to_one("c2", true),
    ];
    world.accepts(&jobs).await;
    assert_eq!(ids(&world.claim(&one, 9).await.attempts), ["s1", "c1", "c2"]);
    assert_eq!(world.field("s2", "held_by").as_deref(), Some("@osis/default/1"));
    // Every actor has its own lane.
    world.accepts(&[serial("t1"), serial("t2")]).await;
    assert_eq!(ids(&world.claim(&two, 9).await.attempts), ["t1"]);
    world.give_back(&one, &[(id("s1"), None)]).await;
    world.check();
    assert_eq!(ids(&world.claim(&one, 9).await.attempts), ["s1"], "before those after it");
    for name in ["s1", "s2", "s3"] {
        world.finish(&one, &id(name), done()).await;
        let next = world.claim(&one, 9).await;
        assert!(next.attempts.len() <= 1);
    }
    assert_eq!(world.status("s3"), JobStatus::Finished);
}

#[tokio::test]
async fn illegal_job_is_under_no_limit() {
    let (world, life) = (world(ONE), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    let illegal = "script 1 status dispatched group Not:Legal limits garbage held_by a:b";
    world.redis.set_job("b", illegal);
    world.redis.set_job("c", "script 1 status dispatched");
    world.redis.push(&keys::work("type:osis"), &["b", "c", "c"]);
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "b"]);
    assert_eq!(world.indexes_of("c"), [keys::held("type:osis")], "also a job that names no type");
    world.finish(&life, &id("b"), done()).await;
    world.finish(&life, &id("a"), done()).await;
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["c"]);
}

const FAIR: &str = "[limit.fair]\nrunning = 1\nfair = \"caller\"\nweights = { heavy = 2 }";

fn of_caller(name: &str, caller: &str) -> Job {
    JobBuilder::new("osis", "1").id(name).caller_id(caller).build().expect("a legal job")
}

/// Runs all jobs, one after the other. Returns their ids in order.
async fn run_all(world: &World, life: &Life) -> Vec<String> {
    let mut order = Vec::new();
    while let [attempt] = &world.claim(life, 9).await.attempts[..] {
        world.finish(life, &attempt.id, done()).await;
        order.push(attempt.id.to_string());
    }
    order
}

#[tokio::test]
async fn fair_limit_gives_each_caller_its_turn_by_weight_and_keeps_the_order_of_each() {
    let (world, life) = (world(FAIR), Life::of("osis-default-1"));
    let flood = ["a1", "a2", "a3", "a4", "a5", "a6"].map(|id| of_caller(id, "flood"));
    world.accepts(&flood).await;
    let heavy = ["h1", "h2", "h3", "h4"].map(|id| of_caller(id, "heavy"));
    world
        .accepts(&[heavy.as_slice(), &[of_caller("b1", "late"), of_caller("b2", "late")]].concat())
        .await;
    let order = run_all(&world, &life).await;
    assert_eq!(order, ["a1", "b1", "h1", "h2", "a2", "b2", "h3", "h4", "a3", "a4", "a5", "a6"]);
    tend(&world).await;
    assert!(world.redis.all("LIMIT_FAIR").is_empty(), "nothing is kept of who has no job");
}

#[tokio::test]
async fn fair_limit_decides_among_all_jobs_of_a_long_list_and_urgent_ones_go_first() {
    let (world, life) = (world(FAIR), Life::of("osis-default-1"));
    let flood: Vec<Job> = (0..900).map(|n| of_caller(&format!("a{n}"), "flood")).collect();
    world.accepts(&flood).await;
    let urgent = JobBuilder::new("osis", "1").id("u").caller_id("flood").priority(0);
    world.accepts(&[of_caller("b", "late"), urgent.build().expect("a legal job")]).await;
    let first = world.claim(&life, 9).await.attempts.remove(0).id;
    assert_eq!(first.as_str(), "u");
    assert!(world.work("type:osis").is_empty(), "all others are held");
    world.finish(&life, &first, done()).await;
    let mut order = Vec::new();
    for _ in 0..2 {
        let next = world.claim(&life, 9).await.attempts.remove(0).id;
        world.finish(&life, &next, done()).await;
        order.push(next.to_string());
    }
    assert_eq!(order, ["a0", "b"]);
}

#[tokio::test]
async fn job_that_a_fair_limit_releases_in_vain_keeps_its_turn() {
    let (world, life) = (world(FAIR), Life::of("osis-default-1"));
    world.accepts(&["a1", "a2", "a3"].map(|id| of_caller(id, "flood"))).await;
    let runs = world.claim(&life, 9).await.attempts.remove(0).id;
    world.accepts(&["b1", "b2"].map(|id| of_caller(id, "late"))).await;
    for _ in 0..5 {
        tend(&world).await;
        assert!(world.claim(&life, 9).await.attempts.is_empty(), "no slot is free");
    }
    world.finish(&life, &runs, done()).await;
    assert_eq!(run_all(&world, &life).await, ["a2", "b1", "a3", "b2"]);
}

#[tokio::test]
async fn fair_limit_shares_tasks_where_they_are_fewer_than_its_slots() {
    let world = world("[limit.fair]\nrunning = 50\nfair = \"caller\"");
    let (busy, idle) = (Life::of("osis-default-1"), Life::of("osis-default-2"));
    world.accepts(&["a1", "a2", "a3", "a4"].map(|id| of_caller(id, "flood"))).await;
    assert_eq!(ids(&world.claim(&busy, 1).await.attempts), ["a1"]);
    world.accepts(&[of_caller("b1", "late"), of_caller("b2", "late")]).await;
    world.redis.all("WAKE").iter().for_each(|token| world.redis.delete(token));
    world.accepts(&[of_caller("b3", "late")]).await;
    assert!(!world.redis.all("WAKE").is_empty(), "an idle actor looks for more");
    assert_eq!(ids(&world.claim(&idle, 3).await.attempts), ["a2", "a3", "b1"]);
    world.finish(&busy, &id("a1"), done()).await;
    assert_eq!(ids(&world.claim(&busy, 1).await.attempts), ["b2"]);
}
