//! `hero metrics` and `hero stats`, with Prometheus's own tool as the reader.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Hero, Process, Redis, keys, needs, wait_until};

use super::{ENDLESS, until};

/// The samples by name and labels, as written.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            (name, value.parse().expect("a number"))
        })
        .collect()
}

/// A supervisor and an actor that have run some jobs: two finish, one fails, one
/// times out; and a job of a type without actors.
fn busy(redis: &Redis) -> (Hero, [Process; 2]) {
    let all_dead = "[type.osis]\ndead_letters = \"all\"\n";
    let hero = Hero::on(redis).set("job.retries", "0").add(all_dead);
    let running = [hero.supervisor().start(), hero.actor("osis-default-1").tasks(2).start()];
    for (id, script) in [("a", "1"), ("b", "2"), ("wrong", "throw \"no\"")] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", script]).code(0);
    }
    hero.run(&["submit", "-t", "osis", "--id", "slow", "--timeout", "10ms", "-e", "loop {}"])
        .code(0);
    hero.run(&["submit", "-t", "bash", "-e", "true"]).code(0);
    hero.run(&["cron", "add", "yearly", "--schedule", "@yearly", "-t", "osis", "-e", "1"]).code(0);
    for (id, status) in
        [("a", "finished"), ("b", "finished"), ("wrong", "error"), ("slow", "error")]
    {
        until(redis, id, status);
    }
    wait_until("the supervisor is present", || {
        let text = hero.run(&["metrics"]).stdout;
        text.contains("\nhero_supervisors 1\n") && text.contains("\nhero_cron_running")
    });
    (hero, running)
}

#[test]
fn metrics_count_jobs_by_their_end_queues_actors_and_times() {
    let redis = Redis::start();
    let (hero, _running) = busy(&redis);
    let done = hero.run(&["metrics"]).code(0);
    let samples = samples(&done.stdout);
    let expected = [
        ("hero_jobs_submitted_total{type=\"osis\"}", 4.0),
        ("hero_attempts_started_total{type=\"osis\"}", 4.0),
        ("hero_jobs_finished_total{type=\"osis\"}", 2.0),
        ("hero_jobs_failed_total{type=\"osis\",reason=\"script\"}", 1.0),
        ("hero_jobs_failed_total{type=\"osis\",reason=\"timeout\"}", 1.0),
        ("hero_jobs_failed_total{type=\"osis\",reason=\"other\"}", 0.0),
        ("hero_jobs_dead_total{type=\"osis\"}", 2.0),
        ("hero_dead_letters{type=\"osis\"}", 2.0),
        ("hero_queue_jobs{queue=\"type:bash\"}", 1.0),
        ("hero_queue_actors{queue=\"type:bash\"}", 0.0),
        ("hero_queue_actors{queue=\"type:osis\"}", 1.0),
        ("hero_actors{type=\"osis\",state=\"ready\"}", 1.0),
        ("hero_tasks{type=\"osis\"}", 2.0),
        ("hero_job_run_seconds_count{type=\"osis\"}", 4.0),
        ("hero_job_run_seconds_bucket{type=\"osis\",le=\"+Inf\"}", 4.0),
        ("hero_job_wait_seconds_count{type=\"osis\"}", 4.0),
        ("hero_redis_durable", 0.0),
    ];
    for (name, value) in expected {
        assert_eq!(samples.get(name), Some(&value), "{name} in {}", done.stdout);
    }
    assert!(samples["hero_job_run_seconds_sum{type=\"osis\"}"] >= 0.01, "{}", done.stdout);
    assert!(samples["hero_queue_wait_seconds{queue=\"type:bash\"}"] > 0.0, "{}", done.stdout);
}

#[expect(clippy::disallowed_methods, reason = "tests start the program they test against")]
fn promtool(args: &[&str]) -> Command {
    // `make deps-test` unpacks it where the machine has none.
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/usr/bin/promtool");
    let is_there = Path::new(unpacked).exists();
    let mut command = Command::new(if is_there { unpacked } else { "promtool" });
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/prometheus"));
    command
}

#[test]
fn promtool_accepts_the_metrics_and_the_alerts() {
    if !needs("promtool", || promtool(&["--version"]).output().is_ok()) {
        return;
    }
    let redis = Redis::start();
    let (hero, _running) = busy(&redis);
    let text = hero.run(&["metrics"]).code(0).stdout;
    let mut check = promtool(&["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("promtool");
    check.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("reading");
    let check = check.wait_with_output().expect("an end");
    assert!(check.status.success() && check.stderr.is_empty(), "{check:?}\n{text}");
    for args in [["check", "rules", "hero.rules.yml"], ["test", "rules", "hero.test.yml"]] {
        let done = promtool(&args).output().expect("promtool");
        assert!(done.status.success(), "{done:?}");
    }
}

#[test]
fn every_metric_of_the_alerts_and_of_the_dashboard_exists() {
    let redis = Redis::start();
    let (hero, _running) = busy(&redis);
    let text = hero.run(&["metrics"]).code(0).stdout;
    let page = include_str!("../../docs/monitoring.md");
    let used = [
        include_str!("../../packaging/prometheus/hero.rules.yml"),
        include_str!("../../packaging/grafana/hero.json"),
        page,
    ];
    for used in used {
        for word in used.split(|c: char| !(c.is_ascii_lowercase() || c == '_')) {
            // Metrics of brokers exist where one has run; tests/amqp compares them.
            let is_metric = word.starts_with("hero_") && !word.starts_with("hero_amqp_");
            assert!(!is_metric || text.contains(word), "{word} is no metric");
        }
    }
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/monitoring.md lacks {name}");
    }
}

#[test]
fn queues_beyond_the_bound_are_one_series() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("metrics.queues_max", "1");
    for (script_type, number) in [("bash", 3), ("python", 2), ("sal", 1)] {
        for _ in 0..number {
            hero.run(&["submit", "-t", script_type, "-e", "1"]).code(0);
        }
    }
    let done = hero.run(&["metrics"]).code(0);
    let samples = samples(&done.stdout);
    let of = |queue: &str| samples.get(format!("hero_queue_jobs{{queue=\"{queue}\"}}").as_str());
    assert_eq!([of("type:bash"), of("others"), of("type:sal")], [Some(&3.0), Some(&3.0), None]);
}

#[test]
fn stats_show_ends_and_times_of_all_jobs_or_of_a_while() {
    let redis = Redis::start();
    let (hero, _running) = busy(&redis);
    let all: Value =
        serde_json::from_str(&hero.run(&["stats", "--json"]).code(0).stdout).expect("JSON");
    let osis =
        all["types"].as_array().expect("types").iter().find(|of| of["script_type"] == "osis");
    let osis = osis.expect("it had jobs");
    assert_eq!([&osis["submitted"], &osis["finished"], &osis["failed"]], [4, 2, 2]);
    assert_eq!((&osis["failed_percent"], &osis["run"]["number"]), (&50.0.into(), &4.into()));
    assert!(osis["run"]["mean_s"].as_f64().expect("a time") > 0.002, "{osis}");
    let shown = hero.run(&["stats", "--for", "10ms"]).code(0).stdout;
    let row = shown.lines().find(|line| line.starts_with("osis")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["osis", "0.0", "0.0", "0.0", "0.0", "-", "-", "-", "-", "-"]);
    hero.run(&["stats", "--for", "soon"]).code(2);
}

#[test]
fn jobs_whose_scripts_wait_are_counted_until_their_wait_ends_in_any_way() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").start();
    let script = "[ -n \"$HERO_EVENT\" ] || echo '{\"wait\": {\"event\": \"ok\"}}' >&$HERO_FD";
    let waiting = || {
        let text = hero.run(&["metrics"]).code(0).stdout;
        let all = samples(&text);
        let of = |name: &str| all[format!("{name}{{type=\"bash\"}}").as_str()];
        (of("hero_jobs_waiting"), of("hero_jobs_scheduled"))
    };
    for id in ["told", "stopped", "deleted", "edited"] {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", script]).code(0);
    }
    hero.run(&["submit", "-t", "bash", "--id", "later", "--delay", "1h", "-e", "true"]).code(0);
    wait_until("four jobs wait", || waiting() == (4.0, 5.0));
    let status = hero.run(&["--json", "status"]).code(0).stdout;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let types = status["types"].as_array().expect("types");
    let bash = types.iter().find(|of| of["script_type"] == "bash").expect("a type");
    assert_eq!((&bash["waits"], &bash["scheduled"]), (&4.into(), &5.into()));
    for (command, left) in [
        (&["job", "tell", "told", "ok"][..], 3.0),
        (&["job", "stop", "stopped"], 2.0),
        (&["job", "delete", "deleted"], 1.0),
        (&["job", "edit", "edited", "--delay", "0s"], 0.0),
    ] {
        hero.run(command).code(0);
        wait_until("one less waits", || waiting() == (left, left + 1.0));
    }
}

#[test]
fn stopped_jobs_are_neither_failures_nor_dead_letters_and_stay_as_long() {
    let redis = Redis::start();
    let all_dead = "[type.osis]\ndead_letters = \"all\"\n";
    let hero = Hero::on(&redis).set("job.retries", "0").add(all_dead);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "wrong", "-e", "throw \"no\""]).code(1);
    hero.run(&["submit", "-t", "osis", "-g", "nobody", "--id", "waits", "-e", "1"]).code(0);
    let runs = ["submit", "-t", "osis", "--id", "runs", "--timeout", "1h", "-e", ENDLESS];
    hero.run(&runs).code(0);
    until(&redis, "runs", "started");
    for id in ["waits", "runs"] {
        hero.run(&["job", "stop", id]).code(0);
        until(&redis, id, "error");
    }
    let text = hero.run(&["metrics"]).code(0).stdout;
    let samples = samples(&text);
    for (name, value) in [
        ("hero_jobs_failed_total{type=\"osis\",reason=\"script\"}", 1.0),
        ("hero_jobs_failed_total{type=\"osis\",reason=\"other\"}", 0.0),
        ("hero_jobs_cancelled_total{type=\"osis\"}", 2.0),
        ("hero_jobs_dead_total{type=\"osis\"}", 1.0),
        ("hero_dead_letters{type=\"osis\"}", 1.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name} in {text}");
    }
    let dead = hero.run(&["job", "list", "--dead", "--json"]).code(0).stdout;
    let dead: Value = serde_json::from_str(&dead).expect("JSON");
    let dead = dead["jobs"].as_array().expect("jobs");
    assert!(dead.len() == 1 && dead[0]["id"] == "wrong", "{dead:?}");
    for id in ["wrong", "waits", "runs"] {
        let ttl = redis.ttl(&keys::job(id));
        assert!(ttl > 6 * 24 * 3600, "{id} stays for {ttl} s");
    }
}
