//! Windows of graphs and batches, counted by the jobs themselves.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::field;
use crate::support::{Hero, Redis, until, wait_until};

/// Actors of bash whose scripts may write into the folder of the test.
fn hero_on(redis: &Redis) -> Hero {
    Hero::on(redis)
        .set("type.bash.engine", "\"command\"")
        .set("type.bash.command", r#"["/bin/bash", "{script}"]"#)
        .set("type.bash.sandbox.write", &format!("[{:?}]", redis.folder().display().to_string()))
        .set("unit.bash-default-1.labels.role", "\"web\"")
        .set("unit.bash-default-2.labels.role", "\"web\"")
        .set("unit.bash-default-3.labels.role", "\"db\"")
        .set("actor.lease", "\"1s\"")
}

fn marks_in(redis: &Redis) -> PathBuf {
    redis.folder().join("marks")
}

/// A script that marks its start and its end, and does something between.
fn marking(marks: &Path, body: &str) -> String {
    let marks = marks.display();
    format!("echo \"+ $$ $HERO_JOB_ID\" >> {marks}\n{body}\necho \"- $$\" >> {marks}\n")
}

/// Returns the marks: if it is a start, the process, and the job of a start.
fn marks(path: &Path) -> Vec<(bool, String, String)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mark = |line: &str| {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        let (what, process) = (words.next()?, words.next()?);
        Some((what == "+", process, words.next().unwrap_or_default()))
    };
    text.lines().filter_map(mark).collect()
}

/// Returns the processes that have a start and no end, with their jobs.
fn running(path: &Path) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for (is_start, process, job) in marks(path) {
        if is_start {
            all.insert((process, job));
        } else {
            all.retain(|(of, _)| *of != process);
        }
    }
    all
}

fn most_at_once(path: &Path) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for (is_start, ..) in marks(path) {
        now = if is_start { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    most
}

fn starts(path: &Path) -> usize {
    marks(path).iter().filter(|(is_start, ..)| *is_start).count()
}

fn batch(redis: &Redis, jobs: usize, script: &str) {
    let job = json!({ "script_type": "bash", "script": script, "where": "role = \"web\"" });
    fs::write(redis.folder().join("jobs.jsonl"), format!("{job}\n").repeat(jobs)).expect("written");
}

fn json_of(hero: &Hero, args: &[&str]) -> Value {
    let text = hero.run(&[&["--json"], args].concat()).code(0).stdout;
    serde_json::from_str(&text).expect(&text)
}

#[test]
fn no_more_jobs_of_a_batch_run_at_once_than_its_window_also_after_the_death_of_an_actor() {
    const JOBS: usize = 24;
    let redis = Redis::start();
    let (hero, path) = (hero_on(&redis), marks_in(&redis));
    batch(&redis, JOBS, &marking(&path, "sleep 0.1"));
    let _supervisor = hero.supervisor().start();
    let mut dying = hero.actor("bash-default-1").tasks(4).start();
    let _other = hero.actor("bash-default-2").tasks(4).start();
    let _db = hero.actor("bash-default-3").tasks(4).start();
    hero.run(&["submit", "--batch", "jobs.jsonl", "--id", "b", "--at-a-time", "3"]).code(0);
    let actor_of = |job: &str| field(&redis, job, "actor").unwrap_or_default();
    let own = || {
        let all = running(&path).into_iter();
        all.filter(|(_, job)| actor_of(job) == "bash:default:1").collect::<BTreeSet<_>>()
    };
    wait_until("the actor runs one of several jobs", || starts(&path) > 6 && !own().is_empty());
    dying.kill();
    let left = own();
    wait_until("its scripts are gone", || {
        left.iter().all(|(process, _)| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        })
    });
    let mut file = OpenOptions::new().append(true).open(&path).expect("the marks");
    for (process, _) in running(&path).intersection(&left) {
        writeln!(file, "- {process}").expect("written");
    }
    hero.run(&["graph", "wait", "b", "--wait", "60s"]).code(0).stdout("24 of 24 done\n");
    assert_eq!(most_at_once(&path), 3);
    assert!(starts(&path) >= JOBS);
    let started = marks(&path).into_iter().filter(|(is_start, ..)| *is_start);
    let actors: BTreeSet<String> = started.map(|(_, _, job)| actor_of(&job)).collect();
    assert!(!actors.contains("bash:default:3"), "it has another label");
    assert!(redis.all("LIMIT_RUNNING").is_empty() && redis.all("LIMIT_HELD").is_empty());
}

#[test]
fn failures_of_a_graph_stop_what_has_not_started_until_it_is_retried() {
    let redis = Redis::start();
    let (hero, path) = (hero_on(&redis), marks_in(&redis));
    let mut text = "name = \"rollout\"\nat_a_time = 1\nstop_after = \"25%\"\n\
                    [defaults]\ntype = \"bash\"\n"
        .to_owned();
    let fixed = redis.folder().join("fixed");
    for number in 0..6 {
        let body = format!("[ {number} = 0 ] || [ -e {} ] || exit 3", fixed.display());
        let _ = writeln!(text, "[job.j{number}]\nscript = '''\n{}'''", marking(&path, &body));
    }
    let _ = writeln!(text, "[job.last]\nscript = 'true'\nafter = [\"j5\"]");
    fs::write(redis.folder().join("g.toml"), &text).expect("written");
    let _supervisor = hero.supervisor().start();
    let _actors = ["bash-default-1", "bash-default-2"].map(|unit| hero.actor(unit).start());
    hero.run(&["submit", "--check", "--graph", "g.toml"]).code(0);
    hero.run(&["submit", "--graph", "g.toml", "--id", "g"]).code(0);
    let wait = hero.run(&["graph", "wait", "rollout", "--wait", "60s"]).code(1);
    assert_eq!(wait.stdout, "1 of 7 done, 2 failed, 4 cancelled\n");
    assert_eq!(starts(&path), 3, "25% of 7 are 2");
    let shown = hero.run(&["graph", "show", "g"]).code(0).stdout;
    for line in [
        "window     1 at a time, stops after 25% failed",
        "stopped    stopped after 2 failures of graph g",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let cancelled = json_of(&hero, &["job", "list", "--cancelled"]);
    assert_eq!(cancelled["jobs"].as_array().map(Vec::len), Some(4), "{cancelled}");
    fs::write(&fixed, "").expect("written");
    hero.run(&["graph", "retry", "g"]).code(0).stdout("6 jobs retried\n");
    hero.run(&["graph", "wait", "g", "--wait", "60s"]).code(0).stdout("7 of 7 done\n");
}

#[test]
fn failures_stop_the_jobs_that_run_too_where_the_bound_says_so() {
    let redis = Redis::start();
    let (hero, path) = (hero_on(&redis), marks_in(&redis));
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").start();
    let go = redis.folder().join("go");
    let runs = format!("echo + $$ >> {}; sleep 600", path.display());
    let fails = format!("until [ -e {} ]; do sleep 0.05; done; exit 3", go.display());
    let line = |id: &str, script: &str, more: Value| {
        let mut job =
            json!({ "id": id, "script_type": "bash", "script": script, "timeout": "15m" });
        job.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        format!("{job}\n")
    };
    let lines = [
        line("runs", &runs, json!({})),
        line("fails", &fails, json!({})),
        line("waits", "true", json!({ "delay": "1h" })),
    ];
    let words = ["submit", "--batch", "-", "--id", "b", "--stop-after", "1 running"];
    hero.run_with_input(&words, &lines.concat()).code(0);
    until(&redis, "runs", "started");
    fs::write(&go, "").expect("written");
    let wait = hero.run(&["graph", "wait", "b", "--wait", "60s"]).code(1);
    assert_eq!(wait.stdout, "0 of 3 done, 1 failed, 2 cancelled\n");
    let errors = ["runs", "waits"].map(|id| field(&redis, id, "error").expect("an error"));
    assert_eq!(errors, ["stopped after 1 failure of batch b"; 2]);
    let shown = hero.run(&["graph", "show", "b"]).code(0).stdout;
    assert!(shown.contains("stops after 1 failed, those that run too"), "{shown}");
}

#[test]
fn window_of_a_running_batch_is_changed_by_a_command() {
    let redis = Redis::start();
    let (hero, path) = (hero_on(&redis), marks_in(&redis));
    let go = redis.folder().join("go");
    let until = format!("until [ -e {} ]; do sleep 0.02; done; exit 1", go.display());
    batch(&redis, 8, &marking(&path, &until));
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").tasks(8).start();
    hero.run(&["submit", "--batch", "jobs.jsonl", "--id", "b", "--at-a-time", "1"]).code(0);
    wait_until("one runs", || starts(&path) == 1);
    let edited = hero.run(&["graph", "edit", "b", "--at-a-time", "3", "--stop-after", "1"]).code(0);
    assert_eq!(edited.stdout, "batch b: 3 at a time, stops after 1 failed\n");
    wait_until("three run", || starts(&path) == 3);
    let limits = json_of(&hero, &["limit", "list"]);
    let own = limits["limits"].as_array().or_else(|| limits.as_array()).expect("limits");
    let own = own.iter().find(|of| of["name"] == "@graph=b").expect("its limit");
    let numbers = [&own["running"], &own["running_max"], &own["held"]];
    assert_eq!(numbers, [&json!(3), &json!(3), &json!(5)], "{own}");
    let shown = json_of(&hero, &["graph", "show", "b"]);
    assert_eq!(shown["waits_for"], json!(["a slot in its window"]), "{shown}");
    let held = |of: &&Value| of["held_by"] == "@graph=b";
    assert_eq!(shown["jobs"].as_array().expect("jobs").iter().filter(held).count(), 5);
    let held = json_of(&hero, &["job", "list", "--held"]);
    let id = held["jobs"][0]["id"].as_str().expect("held jobs");
    assert_eq!(field(&redis, id, "held_by").as_deref(), Some("@graph=b"));
    fs::write(&go, "").expect("written");
    let wait = hero.run(&["graph", "wait", "b", "--wait", "60s"]).code(1);
    assert_eq!(wait.stdout, "0 of 8 done, 3 failed, 5 cancelled\n");
    assert_eq!(starts(&path), 3);
    hero.run(&["graph", "edit", "b"]).code(2).says("--at-a-time");
    hero.run(&["graph", "edit", "none", "--at-a-time", "1"]).code(66).says("none");
}

#[test]
fn jobs_after_one_that_may_fail_run_and_their_graph_finishes() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let text = "stop_after = 1\n[defaults]\ntype = \"bash\"\n\
                [job.check]\nscript = 'exit 3'\nmay_fail = true\n\
                [job.next]\nscript = 'jq -c . \"$HERO_INPUTS\" || cat \"$HERO_INPUTS\"'\nafter = [\"check\"]\n\
                [on_success]\nscript = 'echo \"$HERO_GRAPH_STATE $HERO_GRAPH_FINISHED\"'\n";
    fs::write(redis.folder().join("g.toml"), text).expect("written");
    let line = |id: &str, more: Value| {
        let mut job = json!({ "script_type": "bash", "script": "exit 3", "id": id });
        job.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        format!("{job}\n")
    };
    let lines = [
        line("m1", json!({ "may_fail": true })),
        line("m2", json!({ "script": "true", "prerequisites": ["m1"] })),
    ];
    fs::write(redis.folder().join("b.jsonl"), lines.concat()).expect("written");
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").start();
    hero.run(&["submit", "--graph", "g.toml", "--id", "g"]).code(0);
    hero.run(&["graph", "wait", "g", "--wait", "60s"]).code(0).stdout("2 of 2 done\n");
    let shown = json_of(&hero, &["graph", "show", "g"]);
    assert_eq!(shown["graph"]["state"], "finished", "{shown}");
    let callback = shown["graph"]["callbacks"]["on_success"].as_str().expect("a callback");
    hero.run(&["job", "wait", callback]).code(0).stdout("finished 2\n");
    let check = shown["jobs"].as_array().expect("jobs");
    let check = check.iter().find(|job| job["name"] == "check").expect("the job");
    assert_eq!(check["status"], "error", "{shown}");
    // Twice, as after a lost answer.
    for _ in 0..2 {
        hero.run(&["submit", "--batch", "b.jsonl", "--all-or-none"]).code(0);
    }
    hero.run(&["job", "wait", "m2"]).code(0);
}

#[test]
fn batch_continues_once_its_canary_has_finished_and_is_approved() {
    let redis = Redis::start();
    let (hero, path) = (hero_on(&redis), marks_in(&redis));
    batch(&redis, 6, &marking(&path, ""));
    let _supervisor = hero.supervisor().start();
    let _actors = ["bash-default-1", "bash-default-2"].map(|unit| hero.actor(unit).start());
    let submit = ["submit", "--batch", "jobs.jsonl", "--id", "b", "--pause-after", "1 tell"];
    hero.run(&submit).code(0);
    wait_until("the canary has finished", || {
        json_of(&hero, &["graph", "show", "b"])["graph"]["finished"] == 1
    });
    let shown = hero.run(&["graph", "show", "b"]).code(0).stdout;
    for line in [
        "window     all at a time, pauses after 1 job\n",
        "paused     after 1 job: hero graph tell b go\n",
        "waits for  the end of its pause\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let gave_up = hero.run(&["graph", "wait", "b", "--wait", "10ms"]).code(75);
    gave_up.says("the end of the pause of b: hero graph show b");
    hero.run(&["graph", "tell", "b", "stop"]).code(2).says("go");
    hero.run(&["graph", "tell", "b", "go"]).code(0).stdout("batch b goes on\n");
    hero.run(&["graph", "wait", "b", "--wait", "60s"]).code(0).stdout("6 of 6 done\n");
    assert_eq!(starts(&path), 6);
    let again = hero.run(&["graph", "tell", "b", "go"]).code(0);
    again.stdout("batch b has ended: finished\n");
    hero.run(&["graph", "edit", "b", "--pause-after", "0"]).code(0);
    hero.run(&["graph", "tell", "b", "go"]).code(65).says("graph b has no pause to end");
}

#[test]
fn canary_runs_alone_though_its_actor_and_supervisor_are_killed() {
    let redis = Redis::start();
    let (hero, path) = (hero_on(&redis), marks_in(&redis));
    let go = redis.folder().join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let mut text = "pause_after = \"1 1s\"\n[defaults]\ntype = \"bash\"\n".to_owned();
    for job in ["a", "b", "c"] {
        let _ = writeln!(text, "[job.{job}]\nscript = '''\n{}'''", marking(&path, &waits));
    }
    fs::write(redis.folder().join("g.toml"), &text).expect("written");
    let mut supervisor = hero.supervisor().start();
    let mut dying = hero.actor("bash-default-1").tasks(4).start();
    hero.run(&["submit", "--graph", "g.toml", "--id", "g"]).code(0);
    wait_until("the canary runs", || starts(&path) == 1);
    let canary = marks(&path)[0].2.clone();
    dying.kill();
    supervisor.kill();
    let _supervisor = hero.supervisor().start();
    let _actors =
        ["bash-default-1", "bash-default-2"].map(|unit| hero.actor(unit).tasks(4).start());
    wait_until("the canary runs again", || starts(&path) == 2);
    assert_eq!(
        marks(&path).iter().filter(|(is_start, _, job)| *is_start && *job == canary).count(),
        2
    );
    fs::write(&go, "").expect("written");
    hero.run(&["graph", "wait", "g", "--wait", "60s"]).code(0).stdout("3 of 3 done\n");
    let shown = json_of(&hero, &["graph", "show", "g"]);
    let went_on = shown["graph"]["goes_on_at"].as_str().expect("a time");
    for job in shown["jobs"].as_array().expect("jobs") {
        let id = job["id"].as_str().expect("an id");
        let started = field(&redis, id, "started_at").expect("it started");
        assert!(id == canary || started.as_str() >= went_on, "{id} {started} {went_on}");
    }
}
