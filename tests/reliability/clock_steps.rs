//! Steps of Redis's clock: no live actor is declared dead, and nothing waits for as long as the clock was set back.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Hero, Redis, can_set_clock, keys, wait_until};

const HOUR_S: i64 = 3600;

/// Returns the number of firings of a periodic job.
fn firings(redis: &Redis) -> usize {
    redis.keys(&keys::job("cron-tick-")).len()
}

#[test]
fn running_job_of_a_live_actor_is_not_charged_when_the_clock_of_redis_is_set() {
    if !can_set_clock() {
        return;
    }
    let redis = Redis::with_own_clock();
    let folder = redis.folder().display().to_string();
    let hero = Hero::on(&redis).set("type.bash.sandbox.read", &format!("[{folder:?}]"));
    let supervisor = hero.supervisor().start();
    let _bash = hero.actor("bash-default-1").start();
    let go = redis.folder().join("go");
    let script = format!("until test -e {}; do sleep 0.05; done; echo done", go.display());
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", &script]).code(0);
    let status = || redis.field(&keys::job("a"), "status").unwrap_or_default();
    wait_until("it runs", || status() == "started");
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    for (step, told) in [(HOUR_S, "forward by"), (0, "back by")] {
        redis.set_clock(step);
        let looked = || redis.field(&keys::prefix("MARKS"), "leases").unwrap_or_default();
        let before = looked();
        wait_until("the leases were looked at", || looked() != before);
        let once = looked();
        wait_until("the leases were looked at twice", || looked() != once);
        assert_eq!(status(), "started");
        assert_eq!(redis.field(&keys::job("a"), "crashes"), None);
        wait_until("the step is told", || supervisor.err().contains(told));
        let problems = || hero.run(&["doctor", "--problems"]).stdout;
        let is_problem =
            |of: &str| of.lines().any(|line| line.contains("ERROR") && line.contains(told));
        wait_until("it is a critical problem", || is_problem(&problems()));
        let problems = problems();
        assert!(problems.contains("queue type:osis"), "its job waits: {problems}");
        assert!(!problems.contains(" for 1h"), "nothing has waited for an hour: {problems}");
        assert_eq!(supervisor.err().matches(told).count(), 1, "told once: {}", supervisor.err());
    }
    fs::write(go, "").expect("a file");
    hero.run(&["job", "wait", "a"]).code(0).stdout("done\n");
    assert_eq!(redis.field(&keys::job("a"), "attempt").as_deref(), Some("1"));
}

#[test]
fn process_that_stood_still_is_no_step_of_the_clock() {
    let redis = Redis::start();
    let supervisor = Hero::on(&redis).supervisor().start();
    let looked = || redis.field(&keys::prefix("MARKS"), "leases").unwrap_or_default();
    let looks_twice = || {
        for _ in 0..2 {
            let before = looked();
            wait_until("the leases were looked at", || looked() != before);
        }
    };
    looks_twice();
    supervisor.signal(Signal::SIGSTOP);
    // A presence lasts for longer than a step that is reported.
    wait_until("its presence has expired", || redis.all("SUPERVISOR").is_empty());
    supervisor.signal(Signal::SIGCONT);
    looks_twice();
    let info: String = redis.ask("INFO server");
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).expect("a pid");
    let pid = Pid::from_raw(pid.trim().parse().expect("a number"));
    kill(pid, Signal::SIGSTOP).expect("stopping redis");
    wait_until("redis is away", || supervisor.err().contains("all duties wait"));
    kill(pid, Signal::SIGCONT).expect("continuing redis");
    looks_twice();
    assert!(!supervisor.err().contains("the clock of redis"), "{}", supervisor.err());
}

#[test]
fn periodic_job_fires_on_after_the_clock_of_redis_was_set_back() {
    if !can_set_clock() {
        return;
    }
    let redis = Redis::with_own_clock();
    redis.set_clock(HOUR_S);
    let hero = Hero::on(&redis);
    let add = ["cron", "add", "tick", "--schedule", "* * * * * *", "--overlap", "allow"];
    hero.run(&[&add[..], &["-t", "osis", "-e", "1"]].concat()).code(0);
    let _supervisor = hero.supervisor().start();
    wait_until("it fires", || firings(&redis) >= 2);
    redis.set_clock(0);
    let before = firings(&redis);
    wait_until("it fires on", || firings(&redis) >= before + 2);
}

#[test]
fn rate_goes_on_after_the_clock_of_redis_was_set_back() {
    if !can_set_clock() {
        return;
    }
    let redis = Redis::with_own_clock();
    redis.set_clock(HOUR_S);
    let hero = Hero::on(&redis).set("limit.one.rate", "\"1/2s\"");
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    redis.set_clock(0);
    hero.run(&["exec", "-t", "osis", "-e", "2"]).code(0).stdout("2\n");
    hero.run(&["exec", "-t", "osis", "-e", "3"]).code(0).stdout("3\n");
}

#[test]
fn retries_delays_and_held_jobs_wait_for_no_step_back_of_the_clock_of_redis() {
    if !can_set_clock() {
        return;
    }
    let redis = Redis::with_own_clock();
    redis.set_clock(HOUR_S);
    let hero = Hero::on(&redis).set("limit.one.rate", "\"1/2s\"").set("limit.one.key", "\"k\"");
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    let submit = |id: &str, further: &[&str]| {
        let all = [&["submit", "-t", "osis", "--id", id, "-e", "1"], further].concat();
        hero.run(&all).code(0);
    };
    let field = |id: &str, name: &str| redis.field(&keys::job(id), name).unwrap_or_default();
    let named = Timestamp::now() + SignedDuration::from_mins(90);
    submit("named", &["--at", &named.to_string()]);
    let due = field("named", "run_at");
    let fails = ["submit", "-t", "osis", "--id", "retry", "--retries=1", "--backoff=9s"];
    hero.run(&[&fails[..], &["-e", "throw 1"]].concat()).code(0);
    wait_until("it has failed once", || field("retry", "status") == "scheduled");
    submit("delay", &["--delay=8s"]);
    submit("first", &["--limit-key=k"]);
    hero.run(&["job", "wait", "first"]).code(0);
    submit("held", &["--limit-key=k"]);
    redis.set_clock(0);
    for id in ["held", "delay"] {
        hero.run(&["job", "wait", id]).code(0).stdout("1\n");
    }
    wait_until("it has failed again", || field("retry", "status") == "error");
    assert_eq!([field("named", "status"), field("named", "run_at")], ["scheduled".to_owned(), due]);
}

#[test]
fn due_times_are_times_of_the_clock_of_redis() {
    if !can_set_clock() {
        return;
    }
    let redis = Redis::with_own_clock();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "osis", "--id", "a", "--delay", "30m", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "b", "--delay", "90m", "-e", "1"]).code(0);
    redis.set_clock(HOUR_S);
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
    assert_eq!(redis.field(&keys::job("b"), "status").as_deref(), Some("scheduled"));
}
