//! Keys with a wrong type, of every kind: they hurt no job but their own, and are named.

use std::sync::atomic::{AtomicUsize, Ordering};

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobOutput, JobStatus};
use hero::proto::message::Presence;
use hero::store::{Recorded, Store, Submitted, Verdict};

use crate::support::{Hero, Life, RETENTION, Redis, World, keys, wait_until};

/// For each kind of key: the rest of a key that the jobs of the test use, and its type.
const KINDS: &[(&str, &str, &str)] = &[
    ("JOB", "bad", "hash"),
    ("WORK", "type:osis:group:default:inst:1", "list"),
    ("WAKE", "type:osis", "list"),
    ("WHERE", "osis", "hash"),
    ("WHERE_USED", "osis", "zset"),
    ("CONTROL", "osis:group:default:inst:1", "list"),
    ("CONTROL", "osis", "list"),
    ("REPLY", "0", "list"),
    ("DEAD", "osis", "list"),
    ("PRESENCE", "osis:default:1", "string"),
    ("STATS", "osis", "hash"),
    ("SPANS_DROPPED", "", "hash"),
    ("LOG", "0", "stream"),
    ("OUTPUT", "0", "string"),
    ("FILES", "0", "hash"),
    ("READY", "type:osis", "zset"),
    ("RUNNING", "BOOT", "zset"),
    ("INDEX", "finished:type:osis", "zset"),
    ("INDEX", "waiting_for_prerequisites:type:osis", "zset"),
    ("INDEX", "scheduled:type:osis", "zset"),
    ("INDEX", "waits:type:osis", "zset"),
    ("QUEUES", "", "set"),
    ("TYPES", "", "set"),
    ("TYPE_TIMES", "", "hash"),
    ("ACTORS", "", "zset"),
    ("FOREIGN_ACTORS", "", "zset"),
    ("ACTORS_SEEN", "", "zset"),
    ("ACTOR_LABELS", "", "hash"),
    ("WINDOWS", "", "string"),
    ("SUPERVISOR", "0", "string"),
    ("SUPERVISORS", "", "zset"),
    ("BOOTS", "", "zset"),
    ("BOOT_HOSTS", "", "hash"),
    ("UNIQUE", "key", "string"),
    ("PENDING", "bad", "set"),
    ("DEPENDENTS", "0", "list"),
    ("AWAITED", "", "zset"),
    ("AWAITING", "0", "list"),
    ("UNINDEXED", "", "zset"),
    ("EXPIRING", "", "zset"),
    ("EXPECTED", "", "zset"),
    ("STAGED", "bad", "string"),
    ("RESERVED", "0", "string"),
    ("COMMITTING", "", "list"),
    ("SETTLING", "", "list"),
    ("NOTES", "", "list"),
    ("OLDER", "", "hash"),
    ("RATE", "osis", "hash"),
    ("HOUR", "osis", "list"),
    ("SAMPLES", "", "list"),
    ("HOURS", "", "list"),
    ("TOKENS", "", "hash"),
    ("AUDIT", "", "stream"),
    ("MARKS", "", "hash"),
    ("SLOW", "", "set"),
    ("WRONG_TYPES", "", "zset"),
    ("CRON", "daily", "hash"),
    ("CRON_ADDED", "", "hash"),
    ("CRON_ENDED", "daily", "hash"),
    ("CRON_NAMES", "", "zset"),
    ("SCRIPTS", "", "hash"),
    ("SCRIPT", "deploy", "hash"),
    ("AMQP_ENDED", "prod", "zset"),
    ("AMQP_SHUTDOWN", "prod", "hash"),
    ("AMQP_BROKERS", "prod", "hash"),
    ("AMQP_REPEATS", "prod:m1", "list"),
    ("AMQP_DONE", "m1", "string"),
    ("EVENTS", "", "stream"),
    ("NOTIFY_EVENTS", "", "stream"),
    ("NOTIFY_WANTED", "", "hash"),
    ("NOTIFY_FAILING", "", "hash"),
    ("NOTIFY_STATE", "", "hash"),
    ("NOTIFY_MESSAGES", "", "hash"),
    ("NOTIFY_DUE", "", "zset"),
    ("NOTIFY_RECENT", "", "list"),
    ("NOTIFY_TROUBLE", "", "hash"),
    ("NOTIFY_PROBLEMS", "", "hash"),
    ("OSIS_CONTEXTS", "", "set"),
    ("OSIS_COUNT", "c", "hash"),
    ("OSIS_BODY", "c", "hash"),
    ("OSIS_HEAD", "c", "hash"),
    ("OSIS_IDS", "c", "zset"),
    ("OSIS_INDEX", "c", "zset"),
    ("OSIS_STATE", "c", "hash"),
    ("GRAPH", "few", "hash"),
    ("GRAPH_JOBS", "few", "zset"),
    ("GRAPHS", "", "zset"),
    ("OSIS_UNDECLARED", "", "zset"),
    ("PAUSED", "", "set"),
    ("HELD", "type:osis", "zset"),
    ("LIMITS", "", "zset"),
    ("LIMIT_PROBES", "", "hash"),
    ("LIMIT_HELD", "few", "zset"),
    ("LIMIT_FAIR", "few", "hash"),
    ("LIMIT_RUNNING", "few", "zset"),
    ("LIMIT_RULES", "0", "hash"),
    ("LIMIT_STARTS", "few", "zset"),
    ("LEGACY_WORK", "w", "list"),
    ("LEGACY_STOP", "w", "list"),
    ("LEGACY_REPLY", "0", "list"),
    ("SEEN", "w", "hash"),
    ("LATE", "w", "zset"),
];
const TYPES: [(&str, &[&str]); 6] = [
    ("string", &["SET", "KEY", "x"]),
    ("list", &["RPUSH", "KEY", "x"]),
    ("set", &["SADD", "KEY", "x"]),
    ("zset", &["ZADD", "KEY", "1", "x"]),
    ("hash", &["HSET", "KEY", "x", "y"]),
    ("stream", &["XADD", "KEY", "*", "x", "y"]),
];
/// Kinds that every round of the units uses.
const NAMED: [&str; 7] = ["BOOTS", "TYPES", "QUEUES", "ACTORS", "PAUSED", "READY", "LIMIT_RUNNING"];
/// Jobs that run for each kind and type: three of each sort, of which the limit lets two run.
const JOBS: usize = 12;
/// The worlds that share the kinds: an actor that cannot wait for its lists looks every two seconds.
const WORLDS: usize = 5;

fn replace(redis: &Redis, key: &str, command: &[&str]) {
    let script = "redis.call('DEL', ARGV[2]) redis.call(unpack(ARGV))";
    let command = command.iter().map(|word| if *word == "KEY" { key } else { word });
    let words: Vec<&str> = [script, "0"].into_iter().chain(command).collect();
    redis.ask_with::<redis::Value, _>("EVAL", &words);
}

/// Jobs that log, wait for each other, hold a unique key, or run under a limit.
fn jobs(round: &str) -> Vec<Job> {
    let id = |number: usize| format!("{round}-{number}");
    let jobs = (0..JOBS).map(|number| {
        let job = JobBuilder::new("osis", "print(1); 1").id(&id(number));
        let job = match number % 4 {
            1 => job.after(&id(number - 1)),
            2 => job.limit_key("few"),
            _ => job,
        };
        job.build().expect("legal")
    });
    jobs.collect()
}

#[test]
fn every_kind_of_key_is_in_the_test() {
    let missing: Vec<String> = keys::kinds(&keys())
        .into_iter()
        .map(|(kind, _)| kind)
        .filter(|kind| !["HERO", "PROBE", "TASKS", "DETAILS"].contains(&kind.as_str()))
        .filter(|kind| KINDS.iter().all(|(known, ..)| known != kind))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn key_of_a_wrong_type_hurts_no_other_job_and_is_named_once() {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| spoil_kinds(&next));
        }
    });
}

/// Spoils the keys of the next kinds, one after the other in a world of their own.
fn spoil_kinds(next: &AtomicUsize) {
    let redis = Redis::start();
    // Keys of older programs are among them, which the shipped access lists leave out.
    let hero = Hero::on(&redis).with_default_user();
    let hero = hero.set("limit.few.key", "\"few\"").set("limit.few.running", "2");
    let supervisor = hero.supervisor().start();
    let osis = hero.actor("osis-default-1").tasks(4).start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = Store::open(&redis.config("hero")).expect("settings");
    let boot = || {
        Presence::parse(&redis.ask::<Vec<u8>>(&format!("GET {}", keys::presence("osis:default:1"))))
    };
    while let Some((kind, rest, right)) = KINDS.get(next.fetch_add(1, Ordering::Relaxed)) {
        for (wrong, command) in TYPES.iter().filter(|(of, _)| of != right) {
            let round = format!("{}-{}-{wrong}", kind.to_lowercase(), rest.replace(':', "-"));
            let jobs = jobs(&round);
            let rest = match *rest {
                "BOOT" => boot().expect("it is alive").boot_id.expect("its own").to_string(),
                "0" => format!("{round}-0"),
                other => other.to_owned(),
            };
            let key = format!("{}{rest}", keys::prefix(kind));
            replace(&redis, &key, command);
            let accepted = runtime.block_on(store.jobs().submit(&jobs, true, RETENTION));
            let accepted = accepted.expect("submitting");
            assert!(
                accepted.iter().all(|one| matches!(one, Submitted::Accepted(_))),
                "{key}: {accepted:?}"
            );
            have_ended_once(&redis, &jobs, &format!("{key}, a {wrong}"));
            if NAMED.contains(kind) {
                let key = format!("{key} (");
                wait_until(&format!("{key} is named"), || supervisor.err().contains(&key));
            }
            redis.delete(&key);
        }
        if NAMED.contains(kind) {
            let key = format!("{}{rest} (", keys::prefix(kind));
            assert_eq!(supervisor.err().matches(&key).count(), 1, "{key}");
        }
    }
    for process in [&osis, &supervisor] {
        let text = process.err();
        let lines: Vec<&str> =
            text.lines().filter(|l| l.contains("WARN") || l.contains("ERROR")).collect();
        assert!(lines.len() < 200, "{}", lines.join("\n"));
    }
}

/// Waits until jobs have ended beside a key, and checks that each has run once.
fn have_ended_once(redis: &Redis, jobs: &[Job], key: &str) {
    let states = || -> Vec<(Option<String>, Option<String>)> {
        let mut pipeline = redis::pipe();
        for job in jobs {
            pipeline.cmd("HMGET").arg(keys::job(job.id.as_str())).arg("status").arg("attempt");
        }
        pipeline.query(&mut redis.link()).expect("reading jobs")
    };
    wait_until(&format!("all jobs have ended beside {key}"), || {
        states().iter().all(|(status, _)| status.as_deref() == Some("finished"))
    });
    let once = (Some("finished".to_owned()), Some("1".to_owned()));
    assert!(states().iter().all(|state| *state == once), "{key}: {:?}", states());
}

#[tokio::test]
async fn job_whose_pending_set_has_a_wrong_type_ends_in_an_error_that_names_the_key() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let waits = JobBuilder::new("osis", "1").id("b").after("a").build().expect("legal");
    world.accepts(&[waits]).await;
    world.redis.spoil(&keys::pending("b"));
    let done = Verdict::Finished { output: JobOutput::Text(String::new()), exit_code: None };
    assert_eq!(world.finish(&life, &own, done).await, Recorded::Recorded);
    assert_eq!(world.status("b"), JobStatus::Error);
    let error = world.field("b", "error").expect("written");
    assert_eq!(error, format!("{} has the wrong type", keys::pending("b")));
}

#[tokio::test]
async fn retry_runs_at_once_and_a_schedule_is_refused_while_their_index_has_a_wrong_type() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let index = keys::index("scheduled", "osis");
    world.redis.spoil(&index);
    let delay = std::time::Duration::from_hours(1);
    let verdict = Verdict::Retry { error: "no".to_owned(), exit_code: None, delay };
    let end = world.ending(&life, id, verdict);
    let recorded =
        world.store.attempts().finish(&life.boot, RETENTION, &[end]).await.expect("recording");
    let later = JobBuilder::new("osis", "1").delay(delay).build().expect("legal");
    let refused = world.store.jobs().submit(&[later], true, RETENTION).await.expect("submitting");
    assert_eq!(recorded, [Recorded::Recorded]);
    assert!(matches!(&refused[..], [Submitted::BrokenQueue(key)] if *key == index), "{refused:?}");
    world.redis.delete(&index);
    world.check();
    assert_eq!(world.work("type:osis"), ["a"]);
}

#[test]
fn check_of_redis_names_keys_of_a_wrong_type_and_says_why_redis_refuses() {
    let mut redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user();
    let checked = hero.run(&["check", "--redis"]).code(0);
    assert!(checked.stdout.contains("\nredis: answers, and no key has the wrong type\n"));
    redis.spoil(&keys().paused());
    let met = keys::dead("osis");
    redis.put(&keys().wrong_types(), 0, &met);
    hero.run(&["check", "--redis"])
        .code(65)
        .says(&format!("key {} is a string, not a set; delete it", keys().paused()))
        .says(&format!("key {met} had the wrong type lately"));
    redis.run("CONFIG SET requirepass secret");
    hero.run(&["check", "--redis"]).code(77).says("NOAUTH");
    redis.kill();
    hero.run(&["check", "--redis"]).code(69).says("cannot be reached");
}
