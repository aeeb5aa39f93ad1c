//! The runs of docs/fleet.md as they stand there, and periodic jobs that run on every machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::field;
use super::machines::{can_divide, on, shut_down, until_noted};
use crate::support::{Hero, Process, Redis, wait_until};

const PAGE: &str = include_str!("../../docs/fleet.md");

/// Returns the commands of the five runs of the page.
fn runs() -> [&'static str; 5] {
    let section = PAGE.split("\n## ").find(|part| part.starts_with("Five runs\n"));
    let blocks = section.expect("the section").split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
    blocks.collect::<Vec<_>>().try_into().expect("five runs")
}

/// Actors of bash, whose scripts may write into the folder of the test.
fn writing(redis: &Redis) -> Hero {
    on(redis)
        .set("type.bash.engine", "\"command\"")
        .set("type.bash.command", r#"["/bin/bash", "{script}"]"#)
        .set("type.bash.sandbox.write", &format!("[{:?}]", redis.folder().display().to_string()))
        .set("supervisor.cron_dir", &format!("{:?}", redis.folder().join("cron.d").display()))
        .set("unit.bash-default-3.labels.role", "\"db\"")
}

/// Actors on web1, web2 and db1.
fn machines(hero: &Hero) -> [Process; 3] {
    let on = |unit: &str, host: &str| hero.actor(unit).on_machine(host).start();
    [on("bash-default-1", "web1"), on("bash-default-2", "web2"), on("bash-default-3", "db1")]
}

/// Runs lines of a shell in the folder of the test. Returns their exit code and standard output.
fn shell(hero: &Hero, lines: &str) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_hero")).parent().expect("its folder");
    let script = format!("set -uo pipefail; export PATH={}:$PATH\n{lines}", program.display());
    let done = hero.command_of_user("bash").args(["-c", &script]).output().expect("bash runs");
    let code = done.status.code().expect("it ended by itself");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(code < 2, "{lines}: {code} {error}");
    (code, String::from_utf8_lossy(&done.stdout).into_owned())
}

fn marks(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn sorted(path: &Path) -> Vec<String> {
    let mut all = marks(path);
    all.sort();
    all
}

fn marks_in(redis: &Redis) -> PathBuf {
    redis.folder().join("marks")
}

#[test]
fn service_is_restarted_on_all_web_machines_and_the_run_stops_after_a_failure() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let (hero, path) = (writing(&redis), marks_in(&redis));
    let (_supervisor, _machines) = (hero.supervisor().start(), machines(&hero));
    let restart = format!("hostname >> {}", path.display());
    let (code, _) = shell(&hero, &runs()[0].replace("systemctl restart nginx", &restart));
    assert_eq!((code, sorted(&path)), (0, vec!["web1".to_owned(), "web2".to_owned()]));
    fs::remove_file(&path).expect("deleted");
    let fails = runs()[0].replace("--at-a-time 2", "--at-a-time 1");
    let fails = fails.replace("systemctl restart nginx", &format!("{restart}; exit 3"));
    let (code, text) = shell(&hero, &fails);
    assert_eq!((code, marks(&path).len()), (1, 1), "{text}");
}

#[test]
fn fact_of_every_machine_is_collected_into_one_csv() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = writing(&redis);
    let (_supervisor, _machines) = (hero.supervisor().start(), machines(&hero));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel");
    assert_eq!(shell(&hero, runs()[1]).0, 0);
    let csv = sorted(&redis.folder().join("kernels.csv"));
    let row = |host: &str| format!("\"{host}\",\"{}\"", kernel.trim());
    assert_eq!(csv, ["db1", "web1", "web2"].map(row));
}

#[test]
fn nightly_clean_up_is_spread_over_an_hour_by_machine() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let (hero, path) = (writing(&redis), marks_in(&redis));
    let (_supervisor, _machines) = (hero.supervisor().start(), machines(&hero));
    let clean = format!("hostname >> {}", path.display());
    let lines = runs()[2].replace("find /var/tmp -xdev -type f -mtime +30 -delete", &clean);
    let (code, text) = shell(&hero, &lines);
    assert_eq!((code, sorted(&path)), (0, ["db1", "web1", "web2"].map(str::to_owned).to_vec()));
    assert!(text.contains("3 of 3 done") && text.contains("finished"), "{text}");
    let shown = hero.run(&["cron", "show", "clean"]).code(0).stdout;
    assert!(
        shown.contains("every      machine, all at a time\nspread     1h, by machine"),
        "{shown}"
    );
    hero.run(&["cron", "backfill", "clean", "--since", "2d", "--yes"])
        .code(65)
        .says("hero cron run");
    let edited = |options: &[&str]| {
        hero.run(&[&["cron", "edit", "clean"], options].concat()).code(0);
        let shown = hero.run(&["--json", "cron", "show", "clean"]).code(0).stdout;
        let shown: Value = serde_json::from_str(&shown).expect(&shown);
        (shown["every"].clone(), shown["at_a_time"].clone())
    };
    assert_eq!(edited(&["--at-a-time", "2"]), ("machine".into(), 2.into()));
    assert_eq!(edited(&["--every-none"]), (Value::Null, Value::Null), "its bounds went too");
    hero.run(&["cron", "edit", "clean", "--every-machine"]).code(0);
    // The firing itself: each copy waits for a time of its own.
    hero.run(&["cron", "edit", "clean", "--schedule", "* * * * * *"]).code(0);
    let scheduled = || {
        let list = hero.run(&["--json", "job", "list", "--status", "scheduled"]).code(0).stdout;
        let list: Value = serde_json::from_str(&list).expect(&list);
        list["jobs"].as_array().expect("jobs").clone()
    };
    wait_until("a firing has submitted its copies", || scheduled().len() >= 3);
    hero.run(&["cron", "disable", "clean"]).code(0);
    let history = hero.run(&["--json", "cron", "history", "clean"]).code(0).stdout;
    let history: Value = serde_json::from_str(&history).expect(&history);
    let firings = history["firings"].as_array().expect("firings");
    let fired: Vec<&Value> =
        firings.iter().filter(|of| of["outcome"] == "fired" && of["why"].is_null()).collect();
    assert_eq!(fired.len(), 1, "the next ones are left out: {history}");
    let due: jiff::Timestamp =
        fired[0]["due"].as_str().and_then(|at| at.parse().ok()).expect("a time");
    let batch = fired[0]["batch_id"].as_str().expect("a batch");
    assert!(batch.starts_with("cron-clean-"), "{batch}");
    let mut delays = BTreeSet::new();
    for job in scheduled() {
        let at = field(&redis, job["id"].as_str().expect("an id"), "run_at").expect("a time");
        let at: jiff::Timestamp = at.parse().expect("a time");
        let delay = at.duration_since(due).as_secs();
        assert!((1..=3600).contains(&delay), "{delay}");
        delays.insert(delay);
    }
    assert_eq!(delays.len(), 3, "each machine has its own");
}

#[test]
fn rest_of_the_machines_follows_the_canary_after_approval() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let (hero, path) = (writing(&redis), marks_in(&redis));
    let (_supervisor, _machines) = (hero.supervisor().start(), machines(&hero));
    let script = format!("hostname >> {}", path.display());
    let lines = runs()[3].replace("apt-get --version", &script);
    let (submit, rest) = lines.split_once('\n').expect("lines");
    let (_, batch) = shell(&hero, &format!("{submit}\necho \"$batch\""));
    let finished = || {
        let shown = hero.run(&["--json", "graph", "show", batch.trim()]).code(0).stdout;
        let shown: Value = serde_json::from_str(&shown).expect(&shown);
        shown["graph"]["finished"] == 1
    };
    wait_until("the canary has finished", finished);
    assert_eq!(marks(&path).len(), 1);
    let (_, text) = shell(&hero, &format!("batch={batch}{rest}"));
    assert!(
        text.contains(&format!("paused     after 1 job: hero graph tell {} go", batch.trim())),
        "{text}"
    );
    assert!(text.contains("goes on") && text.contains("2 of 2 done"), "{text}");
    assert_eq!(sorted(&path), ["web1", "web2"]);
}

#[test]
fn machine_that_was_off_catches_up() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let (hero, path) = (writing(&redis), marks_in(&redis));
    let _supervisor = hero.supervisor().start();
    let [_web1, _web2, db1] = machines(&hero);
    until_noted(&redis, "bash:default:3");
    shut_down(db1);
    let script = format!("hostname >> {}", path.display());
    let (_, batch) = shell(&hero, &runs()[4].replace("uname -r", &script));
    wait_until("the others have done it", || marks(&path).len() == 2);
    let text = format!(
        "[cron.tidy]\nschedule = \"@yearly\"\nevery = \"machine\"\nexpires = \"2d\"\ntype = \"bash\"\nscript = '{script}'\n"
    );
    fs::create_dir_all(redis.folder().join("cron.d")).expect("a folder");
    fs::write(redis.folder().join("cron.d/tidy.toml"), text).expect("written");
    let nightly = hero.run(&["cron", "run", "tidy"]).code(0).stdout;
    wait_until("the others have done that too", || marks(&path).len() == 4);
    let _back = hero.actor("bash-default-3").on_machine("db1").start();
    for batch in [batch, nightly] {
        hero.run(&["graph", "wait", batch.trim(), "--wait", "60s"]).code(0).stdout("3 of 3 done\n");
    }
    assert_eq!(sorted(&path), ["db1", "db1", "web1", "web1", "web2", "web2"]);
}

#[test]
fn each_firing_runs_once_on_every_machine_though_supervisors_are_killed() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let (hero, path) = (writing(&redis).set("unit.two.role", "\"supervisor\""), marks_in(&redis));
    let text = format!(
        "[cron.tick]\nschedule = \"* * * * * *\"\nevery = \"machine\"\noverlap = \"allow\"\ncatch_up = \"all\"\n\
         type = \"bash\"\nscript = 'echo \"$HERO_CRON_DUE $(hostname)\" >> {}'\n",
        path.display()
    );
    fs::create_dir_all(redis.folder().join("cron.d")).expect("a folder");
    fs::write(redis.folder().join("cron.d/tick.toml"), text).expect("written");
    let _machines = machines(&hero);
    let mut dying = hero.supervisor().start();
    let _other = hero.actor("two").start();
    for _ in 0..4 {
        let before = marks(&path).len();
        wait_until("it fires", || marks(&path).len() > before);
        dying.kill();
        dying = hero.supervisor().start();
    }
    hero.run(&["cron", "disable", "tick"]).code(0);
    let firings = || {
        let history = hero.run(&["--json", "cron", "history", "tick"]).code(0).stdout;
        let history: Value = serde_json::from_str(&history).expect(&history);
        history["firings"].as_array().expect("firings").clone()
    };
    wait_until("all batches have finished", || {
        firings().iter().all(|of| of["status"] == "finished")
    });
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in marks(&path) {
        let (due, host) = line.split_once(' ').expect("two words");
        hosts.entry(due.to_owned()).or_default().push(host.to_owned());
    }
    let due: BTreeSet<String> =
        firings().iter().filter_map(|of| Some(of["due"].as_str()?.replace(".000Z", "Z"))).collect();
    assert_eq!(due, hosts.keys().cloned().collect(), "one firing for each time");
    for (due, mut hosts) in hosts {
        hosts.sort();
        assert_eq!(hosts, ["db1", "web1", "web2"], "{due}");
    }
}
