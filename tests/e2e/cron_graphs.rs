//! Periodic jobs whose firings are graphs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::field;
use crate::support::{Hero, Redis, keys, wait_until};

/// The count waits for what is fetched.
const PIPE: &str = "[defaults]\ntype = \"osis\"\n[job.fetch]\nscript = \"ENV.HERO_CRON_DUE\"\n\
                    [job.count]\nscript = \"`${INPUTS.fetch} counted`\"\nafter = [\"fetch\"]\n";

/// Returns a Hero with a periodic job of a file whose graph is `pipe.toml` beside it.
fn with_pipe(redis: &Redis, keys: &str, pipe: &str) -> Hero {
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(folder.join("graphs")).expect("a folder");
    let table = format!("[cron.nightly]\ngraph = \"graphs/pipe.toml\"\n{keys}\n");
    fs::write(folder.join("nightly.toml"), table).expect("writing a file");
    fs::write(folder.join("graphs/pipe.toml"), pipe).expect("writing a file");
    Hero::on(redis)
        .set("supervisor.cron_dir", &format!("\"{}\"", folder.display()))
        .set("unit.two.role", "\"supervisor\"")
}

fn document(hero: &Hero, args: &[&str]) -> Value {
    let text = hero.run(&[&["--json"], args].concat()).code(0).stdout;
    serde_json::from_str(&text).expect(&text)
}

fn firings(hero: &Hero) -> Vec<Value> {
    let history = document(hero, &["cron", "history", "nightly"]);
    history["firings"].as_array().expect("firings").clone()
}

/// Returns the ids of the jobs of a graph by their names.
fn jobs_of(hero: &Hero, graph: &str) -> BTreeMap<String, String> {
    let shown = document(hero, &["graph", "show", graph]);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let jobs = shown["jobs"].as_array().expect("jobs").iter();
    jobs.map(|job| (text(&job["name"]), text(&job["id"]))).collect()
}

#[test]
fn graph_fires_once_for_each_time_though_supervisors_are_killed() {
    let redis = Redis::start();
    let keys = "schedule = \"* * * * * *\"\noverlap = \"allow\"\ncatch_up = \"all\"";
    let hero = with_pipe(&redis, keys, PIPE);
    let _osis = hero.actor("osis-default-1").start();
    let mut dying = hero.supervisor().start();
    let _other = hero.actor("two").start();
    for _ in 0..4 {
        let before = firings(&hero).len();
        wait_until("it fires", || firings(&hero).len() > before);
        dying.kill();
        dying = hero.supervisor().start();
    }
    hero.run(&["cron", "disable", "nightly"]).code(0);
    wait_until("all graphs have finished", || {
        firings(&hero).iter().all(|of| of["status"] == "finished")
    });
    let firings = firings(&hero);
    let due: BTreeSet<&str> = firings.iter().filter_map(|of| of["due"].as_str()).collect();
    assert_eq!(due.len(), firings.len(), "one firing for each time: {firings:?}");
    let jobs = redis.keys(&keys::prefix("JOB")).len();
    assert_eq!(jobs, 2 * firings.len(), "two jobs for each firing");
    for firing in &firings {
        let graph = firing["batch_id"].as_str().expect("a graph");
        assert!(graph.starts_with("cron-nightly-"), "{graph}");
        let jobs = jobs_of(&hero, graph);
        assert_eq!(jobs.keys().collect::<Vec<_>>(), ["count", "fetch"]);
        let output = field(&redis, &jobs["count"], "output").expect("it finished");
        let due = firing["due"].as_str().expect("a time").replace(".000Z", "Z");
        assert_eq!(output, format!("{due} counted"));
    }
    let last = document(&hero, &["cron", "show", "nightly"]);
    assert!(last["succeeded_at"].is_string() && last["failed_at"].is_null(), "{last}");
}

#[test]
fn graph_that_runs_holds_back_a_firing_or_is_stopped_by_it() {
    let redis = Redis::start();
    // Without an actor its jobs wait.
    let hero = with_pipe(&redis, "schedule = \"* * * * * *\"", PIPE);
    let supervisor = hero.supervisor().start();
    let fired = |firings: &[Value]| -> Vec<String> {
        let fired = firings.iter().filter(|of| of["outcome"] == "fired");
        fired.map(|of| of["batch_id"].as_str().expect("a graph").to_owned()).collect()
    };
    wait_until("a firing is left out", || {
        firings(&hero).iter().any(|of| of["outcome"] == "left_out")
    });
    let of_all = firings(&hero);
    let first = fired(&of_all);
    assert_eq!(first.len(), 1, "{of_all:?}");
    let left_out = of_all.iter().find(|of| of["outcome"] == "left_out").expect("it is");
    assert_eq!((&left_out["batch_id"], &left_out["why"]), (&json!(first[0]), &json!("overlap")));
    let file = redis.folder().join("cron.d/nightly.toml");
    let text = fs::read_to_string(&file).expect("the file");
    fs::write(&file, text + "overlap = \"replace\"\n").expect("written");
    supervisor.signal(Signal::SIGHUP);
    wait_until("it is replaced", || fired(&firings(&hero)).len() > 1);
    hero.run(&["cron", "disable", "nightly"]).code(0);
    hero.run(&["graph", "wait", &first[0], "--wait", "30s"])
        .stdout("0 of 2 done, 2 cancelled\n")
        .says("cancelled");
    let why = format!("replaced {}", first[0]);
    assert!(firings(&hero).iter().any(|of| of["why"] == why.as_str()), "{:?}", firings(&hero));
}

#[test]
fn graph_runs_on_request_and_is_shown_with_its_jobs() {
    let redis = Redis::start();
    let pipe = format!("name = \"pipe\"\n{PIPE}[on_end]\nscript = \"1\"\n");
    let hero = with_pipe(&redis, "schedule = \"0 3 * * *\"", &pipe);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    hero.run(&["check"]).code(0);
    let graph = hero.run(&["cron", "run", "nightly"]).code(0).stdout;
    hero.run(&["graph", "wait", graph.trim()]).code(0).stdout("2 of 2 done\n");
    let last = &firings(&hero)[0];
    assert_eq!((&last["batch_id"], &last["why"]), (&json!(graph.trim()), &json!("run now")));
    let shown = document(&hero, &["cron", "show", "nightly"]);
    assert_eq!(shown["graph_jobs"], 2);
    assert_eq!(
        shown["graph"],
        json!({
            "name": "pipe",
            "jobs": [
                { "name": "fetch", "job": { "script": "ENV.HERO_CRON_DUE", "script_type": "osis" } },
                { "name": "count", "after": ["fetch"], "job":
                    { "script": "`${INPUTS.fetch} counted`", "script_type": "osis" } },
            ],
            "on_end": { "name": "on_end of nightly", "script": "1", "script_type": "osis" },
        })
    );
    let text = hero.run(&["cron", "show", "nightly"]).code(0).stdout;
    assert!(text.contains("type       graph of 2 jobs\n"), "{text}");
    assert!(text.contains("  count  osis  fetch\n"), "{text}");
}

#[test]
fn graph_of_a_file_is_checked_when_it_is_read() {
    let redis = Redis::start();
    for (keys, pipe, message) in [
        (
            "script = \"1\"",
            PIPE,
            "nightly.toml:2:9: cron.nightly.graph: cannot be set beside a script",
        ),
        ("timeout = \"5m\"", PIPE, "cron.nightly.graph: cannot be set beside a script or settings"),
        (
            "every = \"machine\"",
            PIPE,
            "nightly.toml:4:9: cron.nightly.every: cannot be set beside graph",
        ),
        (
            "",
            &PIPE.replace("[\"fetch\"]", "[\"fetsh\"]"),
            "pipe.toml:5:6: count: waits for `fetsh`",
        ),
        ("", &PIPE.replace("osis", "ruby"), "job.fetch: the script type `ruby` is not configured"),
        ("", &format!("id = \"g\"\n{PIPE}"), "id: each firing has its own"),
        (
            "",
            &PIPE.replace("after =", "delay = \"5m\"\nafter ="),
            "count: at: its schedule says when it starts",
        ),
        ("", "[job.a]\n", "pipe.toml:1:6: job.a: needs one of script, file and uses"),
    ] {
        let hero = with_pipe(&redis, &format!("schedule = \"@daily\"\n{keys}"), pipe);
        hero.run(&["check"]).code(78).says(message);
    }
    let hero = with_pipe(&redis, "schedule = \"@daily\"", PIPE);
    fs::remove_file(redis.folder().join("cron.d/graphs/pipe.toml")).expect("removed");
    hero.run(&["check"]).code(78).says("graphs/pipe.toml: no such file");
}

#[test]
fn graph_of_a_command_fires_is_changed_and_backfilled() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    fs::write(redis.folder().join("pipe.toml"), PIPE).expect("written");
    let add = ["cron", "add", "nightly", "--graph", "pipe.toml", "--schedule"];
    hero.run(&[&add[..], &["* * * * * *"]].concat()).code(0).stdout("nightly added\n");
    let finished = || firings(&hero).iter().any(|of| of["status"] == "finished");
    wait_until("a graph has finished", finished);
    let rare = ["cron", "edit", "nightly", "--schedule", "0 3 * * *"];
    hero.run(&rare).code(0).stdout("nightly changed\n");
    let ran = |graph: &str, name: &str| {
        hero.run(&["graph", "wait", graph, "--wait", "60s"]).code(0);
        let jobs = jobs_of(&hero, graph);
        field(&redis, &jobs[name], "output").expect("it finished")
    };
    fs::write(redis.folder().join("pipe.toml"), PIPE.replace("counted", "summed"))
        .expect("written");
    hero.run(&["cron", "edit", "nightly", "--graph", "pipe.toml"]).code(0);
    let graph = hero.run(&["cron", "run", "nightly"]).code(0).stdout;
    assert!(ran(graph.trim(), "count").ends_with("Z summed"));
    // Two nights, the second behind the first.
    let period = ["--since", "2026-01-01T00:00:00Z", "--until", "2026-01-03T00:00:00Z", "--yes"];
    let backfill = [&["cron", "backfill", "nightly"], &period[..]].concat();
    let filled = document(&hero, &backfill);
    let ids = ["cron-nightly-20260101T030000Z-fill", "cron-nightly-20260102T030000Z-fill"];
    for (firing, id) in filled["firings"].as_array().expect("firings").iter().zip(ids) {
        assert_eq!((&firing["outcome"], &firing["job_id"]), (&json!("submitted"), &json!(id)));
    }
    assert_eq!(ran(ids[1], "count"), "2026-01-02T03:00:00Z summed");
    let (first, second) = (jobs_of(&hero, ids[0]), jobs_of(&hero, ids[1]));
    let behind = field(&redis, &second["fetch"], "after_any").expect("it waited");
    assert!(first.values().all(|id| behind.contains(id)), "{behind}");
    assert!(field(&redis, &second["count"], "after_any").is_none());
    let again = document(&hero, &backfill);
    assert!(
        again["firings"].as_array().expect("firings").iter().all(|of| of["outcome"] == "exists")
    );
    // A script takes the place of the graph, and a graph that of the script.
    let script = ["cron", "edit", "nightly", "-t", "osis", "-e", "6 * 7"];
    hero.run(&script).code(0);
    let id = hero.run(&["cron", "run", "nightly"]).code(0).stdout;
    hero.run(&["job", "wait", id.trim()]).code(0).stdout("42\n");
    hero.run(&["cron", "edit", "nightly", "--graph", "pipe.toml"]).code(0);
    assert_eq!(document(&hero, &["cron", "show", "nightly"])["graph_jobs"], 2);
    hero.run(&["cron", "edit", "nightly", "--timeout", "5m"]).code(65).says("graph: cannot be set");
}

#[test]
fn missed_graphs_are_made_up_for_one_after_another() {
    let redis = Redis::start();
    let keys = "schedule = \"* * * * *\"\ncatch_up = \"all\"";
    let hero = with_pipe(&redis, keys, PIPE);
    let mut supervisor = hero.supervisor().start();
    wait_until("it is known", || field_of_cron(&redis, "due_us").is_some());
    supervisor.kill();
    let us = |text: String| text.parse::<i64>().expect("a time");
    let before = us(field_of_cron(&redis, "due_us").expect("a time")) - 4 * 60_000_000;
    redis.set_field(&keys::cron("nightly"), "due_us", before.to_string());
    let _supervisor = hero.supervisor().start();
    wait_until("the first is made up for", || !firings(&hero).is_empty());
    assert_eq!(firings(&hero).len(), 1, "the others wait for its end");
    let _osis = hero.actor("osis-default-1").start();
    wait_until("all are made up for", || {
        let firings = firings(&hero);
        firings.len() >= 4 && firings.iter().all(|of| of["status"] == "finished")
    });
}

fn field_of_cron(redis: &Redis, name: &str) -> Option<String> {
    redis.field(&keys::cron("nightly"), name)
}
