//! A Redis that answers and does not serve: READONLY, MASTERDOWN, MISCONF, LOADING. The units back
//! off, log few lines, recover, and every job ends once.

use serde_json::json;

use crate::support::{Hero, Process, Redis, Served, agent, request, wait_until};
use crate::web::requests::{send, signed_in};

/// The warnings and errors of one unit during one outage.
const LINES_MAX: usize = 30;

/// A supervisor that serves, and an actor that runs a job.
struct Units {
    site: Served,
    osis: Process,
}

impl Units {
    /// Starts them, and a job that ends while Redis does not serve.
    fn start(redis: &Redis) -> Self {
        let hero = Hero::on(redis).quick_sweeps().set("actor.lease", "\"15s\"");
        let site = Served::with(hero, redis);
        let osis = site.hero.actor("osis-default-1").start();
        redis.push_job("osis", "before", "sleep(0.5)");
        wait_until("it runs", || redis.count("osis", "started") == 1);
        Self { site, osis }
    }

    /// Waits until both have said once that Redis does not serve.
    fn say_so(&self) {
        for process in [&self.site.supervisor, &self.osis] {
            wait_until("it says so", || process.err().contains("does not serve"));
        }
    }

    /// Checks that jobs end again, each once, and that the log of the outage is short.
    fn have_recovered(&self, redis: &Redis) {
        let hero = &self.site.hero;
        // A rejected submission leaves nothing.
        let exec = || hero.run(&["exec", "-t", "osis", "-e", "1"]).code == 0;
        wait_until("redis serves again", exec);
        hero.run(&["submit", "-t", "osis", "--delay", "10ms", "-e", "2"]).code(0);
        wait_until("all have ended", || redis.count("osis", "finished") == 3);
        assert_eq!(redis.count("osis", "started"), 3, "no job ran twice");
        for process in [&self.site.supervisor, &self.osis] {
            let log = process.err();
            let troubles = log.lines().filter(|l| l.contains("WARN") || l.contains("ERROR"));
            let troubles: Vec<&str> = troubles.collect();
            assert!(troubles.len() < LINES_MAX, "{}", troubles.join("\n"));
        }
    }
}

/// The number of calls that Redis has rejected with this code.
fn rejected(redis: &Redis, code: &str) -> u64 {
    let stats: String = redis.ask("INFO errorstats");
    let name = format!("errorstat_{code}:count=");
    let of = stats.lines().find_map(|line| line.strip_prefix(name.as_str()));
    of.map_or(0, |number| number.trim().parse().expect("a number"))
}

/// Lets the units work against a Redis that rejects hundreds of their calls with this code.
fn rides_out(code: &str, begins: &[&str], ends: &[&str]) {
    let redis = Redis::start();
    let units = Units::start(&redis);
    let hero = &units.site.hero;
    for command in begins {
        redis.run(command);
    }
    units.say_so();
    wait_until("redis has rejected hundreds of calls", || rejected(&redis, code) > 200);
    for process in [&units.site.supervisor, &units.osis] {
        let log = process.err();
        assert!(!log.contains("redis is back") && !log.contains("script: "), "{log}");
    }
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(69).says(code);
    for command in ends {
        redis.run(command);
    }
    units.have_recovered(&redis);
}

#[test]
fn units_outlast_a_replica_that_is_read_only() {
    // A master that does not listen: it stays a replica.
    rides_out("READONLY", &["REPLICAOF 127.0.0.1 1"], &["REPLICAOF NO ONE"]);
}

#[test]
fn units_outlast_a_replica_that_lost_its_master() {
    let begins = ["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"];
    rides_out("MASTERDOWN", &begins, &["REPLICAOF NO ONE"]);
}

#[test]
fn units_outlast_too_few_replicas() {
    let begins = ["CONFIG SET min-replicas-to-write 1"];
    rides_out("NOREPLICAS", &begins, &["CONFIG SET min-replicas-to-write 0"]);
}

#[test]
fn units_outlast_a_snapshot_that_cannot_be_written() {
    let redis = Redis::start();
    let units = Units::start(&redis);
    let hero = &units.site.hero;
    // A folder in the place of the snapshot.
    let snapshot = redis.folder().join("dump.rdb");
    std::fs::create_dir(&snapshot).expect("a folder");
    redis.ask_with::<String, _>("CONFIG SET save", &["10000 10000"]);
    redis.run("BGSAVE");
    units.say_so();
    wait_until("redis has rejected hundreds of calls", || rejected(&redis, "MISCONF") > 200);
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(69).says("MISCONF");
    let status = hero.run(&["status", "--json"]).code(0).stdout;
    let cause = "redis refuses every write, as it cannot write its snapshot";
    assert!(status.contains(cause), "{status}");
    std::fs::remove_dir(&snapshot).expect("removed");
    redis.run("BGSAVE");
    units.have_recovered(&redis);
}

#[test]
fn units_outlast_a_redis_that_loads_its_file() {
    const KEYS: usize = 4000;
    let mut redis = Redis::that_keeps();
    let units = Units::start(&redis);
    let hero = &units.site.hero;
    let pairs: Vec<String> =
        (0..KEYS).flat_map(|n| [format!("other-{n}"), "x".repeat(100)]).collect();
    redis.ask_with::<String, _>("MSET", &pairs);
    redis.run("BGREWRITEAOF");
    wait_until("the file is written", || {
        let info: String = redis.ask("INFO persistence");
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
    let cookie = signed_in(&units.site, &["ann", "--scope", "read"]);
    redis.kill();
    // Five milliseconds for each key, and an answer after each kilobyte.
    let slow = ["--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"];
    redis.begin_again(&slow);
    wait_until("it listens", || redis.folder().join("redis.sock").exists());
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(69).says("LOADING");
    for args in [
        &["doctor", "--problems"][..],
        &["status"],
        &["status", "--check"],
        &["top", "--once"],
        &["queue", "list"],
    ] {
        let done = hero.run(args);
        let text = format!("{}{}", done.stdout, done.stderr);
        assert!(text.contains("LOADING") && !text.contains("forgets"), "{args:?}: {text}");
    }
    let told = agent(hero, "health", &json!({}));
    assert!(told.contains("LOADING") && !told.contains("forgets"), "{told}");
    let asked = request("system.health", &json!({}));
    wait_until("the API says so", || {
        units.site.unix().post("/rpc", &[], &asked).text().contains("LOADING")
    });
    wait_until("the page says so", || {
        send(&units.site, "GET", "/queues", &cookie, "").body.contains("LOADING")
    });
    redis.run("CONFIG SET key-load-delay 0");
    units.have_recovered(&redis);
    let log = units.site.supervisor.err();
    assert!(!log.contains("forgets") && !log.contains("emptied"), "{log}");
}
