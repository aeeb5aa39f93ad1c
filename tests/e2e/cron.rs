//! Periodic jobs: files in a folder, each fired once whenever it is due.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;

use crate::support::{Hero, Redis, keys, wait_until};

use super::field;

/// Returns a Hero with these periodic jobs.
fn with_cron(redis: &Redis, files: &[(&str, &str)]) -> Hero {
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("writing a file");
    }
    Hero::on(redis).set("supervisor.cron_dir", &format!("\"{}\"", folder.display()))
}

/// Returns the due times that a periodic job has fired for, read from its job ids.
fn fired(redis: &Redis, name: &str) -> BTreeSet<String> {
    let prefix = keys::job(&format!("cron-{name}-"));
    redis.keys(&prefix).iter().map(|key| key[prefix.len()..].to_owned()).collect()
}

/// Returns the id of the job of the first firing.
fn first(redis: &Redis, name: &str) -> String {
    let due = fired(redis, name).pop_first().expect("it has fired");
    format!("cron-{name}-{due}")
}

const EACH_SECOND: &str = "[cron.tick]\nschedule = \"* * * * * *\"\ntype = \"osis\"\nscript = \"ENV.HERO_CRON_DUE\"\noverlap = \"allow\"\n";

#[test]
fn three_supervisors_fire_a_job_of_each_second_once_a_second() {
    // `make chaos` runs this for a minute.
    let firings = std::env::var("FIRINGS").map_or(6, |text| text.parse().expect("a number"));
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("tick.toml", EACH_SECOND)])
        .set("unit.two.role", "\"supervisor\"")
        .set("unit.three.role", "\"supervisor\"");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisors =
        [hero.supervisor().start(), hero.actor("two").start(), hero.actor("three").start()];
    for number in 1..=firings {
        wait_until(&format!("it has fired {number} times"), || {
            fired(&redis, "tick").len() >= number
        });
    }
    let times: Vec<i64> = fired(&redis, "tick")
        .iter()
        .map(|time| {
            let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", time).expect("a time");
            time.to_zoned(jiff::tz::TimeZone::UTC).expect("in range").timestamp().as_second()
        })
        .collect();
    // The due times do not depend on the speed of the machine: none twice, none missing.
    assert!(times.windows(2).all(|pair| pair[1] == pair[0] + 1), "{times:?}");
    let stands = || redis.field(&keys::cron("tick"), "fired").and_then(|n| n.parse().ok());
    assert!(stands().is_some_and(|number: usize| number >= firings));
    let id = first(&redis, "tick");
    super::until(&redis, &id, "finished");
    let due = field(&redis, &id, "output").expect("it finished").replace(['-', ':'], "");
    assert_eq!(format!("cron-tick-{due}"), id);
}

#[test]
fn periodic_job_is_listed_and_run_on_request() {
    let nightly = "[cron.nightly]\nschedule = \"30 3 * * *\"\ntime_zone = \"Europe/Brussels\"\n\
                   type = \"osis\"\nscript = \"40 + 2\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("nightly.toml", nightly)]);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wait_until("it is in force", || listed(&hero)[0]["next"].is_string());
    let listed = hero.run(&["cron", "list"]).code(0).stdout;
    let row = listed.lines().nth(1).expect("a row");
    assert!(row.starts_with("nightly  30 3 * * *  Europe/Brussels  2"), "{listed}");
    // In its own zone, wherever the caller is.
    let next = row.split_whitespace().nth(8).expect("a time of day");
    assert_eq!(next, "03:30", "{listed}");
    let listed = hero.run(&["cron", "list", "--json"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("one document");
    assert_eq!(listed["cron"][0]["last"], serde_json::Value::Null);
    let id = hero.run(&["cron", "run", "nightly"]).code(0).stdout;
    hero.run(&["job", "wait", id.trim()]).code(0).stdout("42\n");
    hero.run(&["cron", "run", "weekly"]).code(66).says("no such periodic job: `weekly`");
    hero.run(&["check"]).code(0);
}

#[test]
fn reload_takes_over_changed_files_and_a_broken_file_disables_only_itself() {
    let broken = "[cron.broken]\nschedule = \"0 0 30 2 *\"\ntype = \"osis\"\nscript = \"1\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("broken.toml", broken), ("tick.toml", EACH_SECOND)]);
    let supervisor = hero.supervisor().start();
    let problem = "broken.toml:2:12: cron.broken.schedule: never fires";
    assert!(supervisor.err().contains(problem), "{}", supervisor.err());
    wait_until("the other fires", || !fired(&redis, "tick").is_empty());
    hero.run(&["check"]).code(78).says(problem);
    hero.run(&["cron", "list"]).code(78).says(problem);
    let folder = redis.folder().join("cron.d");
    let mended = EACH_SECOND.replace("tick", "tock");
    fs::write(folder.join("broken.toml"), mended).expect("writing a file");
    fs::remove_file(folder.join("tick.toml")).expect("removing a file");
    supervisor.signal(Signal::SIGHUP);
    wait_until("the mended one fires", || !fired(&redis, "tock").is_empty());
    // A sweep that began before the reload may still fire the old job; the next cannot.
    let known = fired(&redis, "tick").len();
    let tocks = fired(&redis, "tock").len();
    wait_until("the new one fires on", || fired(&redis, "tock").len() >= tocks + 2);
    assert!(fired(&redis, "tick").len() <= known, "it is gone");
}

/// Returns true if `hero status --check` tells a problem whose sentence contains a text.
fn has_problem(hero: &Hero, text: &str) -> bool {
    hero.run(&["status", "--check"]).stdout.contains(text)
}

#[test]
fn periodic_job_that_no_supervisor_fires_says_so_instead_of_a_next_time() {
    let nightly = "[cron.nightly]\nschedule = \"30 3 * * *\"\ntype = \"osis\"\nscript = \"1\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("nightly.toml", nightly)]);
    let why = |hero: &Hero| {
        let job = listed(hero).remove(0);
        assert_eq!(job["next"].is_null(), job["not_in_force"].is_string(), "{job}");
        job["not_in_force"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(why(&hero), "no live supervisor fires it");
    let supervisor = hero.supervisor().start();
    wait_until("it is in force", || why(&hero).is_empty());
    let file = redis.folder().join("cron.d").join("nightly.toml");
    fs::write(&file, nightly.replace("30 3", "45 4")).expect("writing a file");
    assert_eq!(why(&hero), "changed on disk, not in force: reload");
    let text = hero.run(&["cron", "list"]).code(0).stdout;
    assert!(text.contains("changed on disk, not in force: reload"), "{text}");
    let text = hero.run(&["cron", "show", "nightly"]).code(0).stdout;
    assert!(text.contains("not in force: reload") && !text.contains("next:"), "{text}");
    let changed = "periodic jobs changed on disk, not in force";
    wait_until("the problem is told", || has_problem(&hero, changed));
    supervisor.signal(Signal::SIGHUP);
    wait_until("the change is in force", || why(&hero).is_empty());
    wait_until("the problem is over", || !has_problem(&hero, changed));
}

#[test]
fn illegal_periodic_job_is_a_problem_and_leaves_the_others_of_its_file_in_force() {
    let broken = "[cron.broken]\nschedule = \"0 0 30 2 *\"\ntype = \"osis\"\nscript = \"1\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("both.toml", &format!("{broken}{EACH_SECOND}"))]);
    let _supervisor = hero.supervisor().start();
    wait_until("the other fires", || !fired(&redis, "tick").is_empty());
    let mistake = "cron.broken.schedule: never fires";
    wait_until("the problem is told", || has_problem(&hero, mistake));
    let list = hero.run(&["cron", "list", "--json"]).code(78).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("one document");
    assert_eq!(
        (&list["cron"][0]["name"], &list["cron"][1]),
        (&"tick".into(), &().into()),
        "{list}"
    );
}

#[test]
fn pending_job_is_kept_or_replaced_by_the_next_firing() {
    let text = |name: &str, overlap: &str| {
        format!(
            "[cron.{name}]\nschedule = \"* * * * * *\"\ntype = \"osis\"\nscript = \"sleep(600)\"\n\
             timeout = \"15m\"\noverlap = \"{overlap}\"\n"
        )
    };
    let (kept, replaced) = (text("kept", "skip"), text("replaced", "replace"));
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("a.toml", &kept), ("b.toml", &replaced)]);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    let left_out = || redis.field(&keys::cron("kept"), "left_out").and_then(|n| n.parse().ok());
    wait_until("firings are left out", || left_out().is_some_and(|number: u32| number >= 2));
    assert_eq!(fired(&redis, "kept").len(), 1);
    let shown = hero.run(&["cron", "show", "kept", "--json"]).code(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("one document");
    let history = shown["history"].as_array().expect("a list");
    let oldest = history.last().expect("it fired");
    assert_eq!((&oldest["outcome"], &oldest["why"]), (&"fired".into(), &().into()), "{shown}");
    let newest = &history[0];
    assert_eq!(
        (&newest["outcome"], &newest["why"], &newest["job_id"]),
        (&"left_out".into(), &"overlap".into(), &oldest["job_id"]),
        "{shown}"
    );
    let text = hero.run(&["cron", "show", "kept"]).code(0).stdout;
    assert!(text.contains("  left out  cron-kept-"), "{text}");
    hero.run(&["cron", "show", "none"]).code(66).says("no such periodic job: `none`");
    wait_until("firings replace each other", || fired(&redis, "replaced").len() >= 3);
    let jobs = fired(&redis, "replaced");
    let first = format!("cron-replaced-{}", jobs.first().expect("it fired"));
    super::until(&redis, &first, "error");
    let error = field(&redis, &first, "error").expect("it was stopped");
    assert!(error.starts_with("stopped") || error.starts_with("replaced by job "), "{error}");
}

#[test]
fn a_firing_is_left_out_while_another_job_holds_its_unique_key() {
    let redis = Redis::start();
    let tick = format!("{EACH_SECOND}unique_key = \"k\"\nlimit_key = \"l\"\nretention = \"7d\"\n");
    let hero = with_cron(&redis, &[("tick.toml", &tick)]);
    hero.run(&["submit", "--id", "holder", "--unique-key", "k", "-t", "osis", "-e", "1"]).code(0);
    let supervisor = hero.supervisor().start();
    wait_until("a firing is left out", || redis.field(&keys::cron("tick"), "left_out").is_some());
    wait_until("the log says why", || supervisor.err().contains("holder"));
    assert_eq!(fired(&redis, "tick"), BTreeSet::new());
    hero.run(&["job", "stop", "holder"]).code(0);
    wait_until("the next fires", || !fired(&redis, "tick").is_empty());
    let id = first(&redis, "tick");
    let said = ["limit_key", "retention"].map(|name| field(&redis, &id, name));
    assert_eq!(said, [Some("l".to_owned()), Some("604800".to_owned())]);
}

#[test]
fn disabled_periodic_job_does_not_fire_until_it_is_enabled() {
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("tick.toml", EACH_SECOND)]);
    hero.run(&["cron", "disable", "tick"]).code(0).stdout("tick disabled\n");
    hero.run(&["cron", "disable", "tick"]).code(0).stdout("tick was disabled already\n");
    hero.run(&["cron", "disable", "tock"]).code(66).says("no such periodic job: `tock`");
    let listed = || {
        let listed = hero.run(&["cron", "list", "--json"]).code(0).stdout;
        serde_json::from_str::<serde_json::Value>(&listed).expect("one document")["cron"][0].clone()
    };
    let disabled = listed();
    assert_eq!(
        (&disabled["enabled"], &disabled["next"]),
        (&false.into(), &().into()),
        "{disabled}"
    );
    assert!(disabled["disabled_by"].as_str().is_some_and(|by| !by.is_empty()), "{disabled}");
    assert!(hero.run(&["cron", "list"]).code(0).stdout.contains("  disabled by "));
    let _supervisor = hero.supervisor().start();
    let looked = || redis.field(&keys::cron("tick"), "due_us");
    let before = looked();
    wait_until("the supervisor has looked", || looked() != before);
    assert!(fired(&redis, "tick").is_empty());
    hero.run(&["cron", "enable", "tick", "--json"]).code(0).stdout("{\"enabled\":[\"tick\"]}\n");
    wait_until("it fires", || !fired(&redis, "tick").is_empty());
    assert_eq!(listed()["enabled"], true);
}

/// Returns the documents of `hero cron list`.
fn listed(hero: &Hero) -> Vec<serde_json::Value> {
    let listed = hero.run(&["cron", "list", "--json"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("one document");
    listed["cron"].as_array().expect("a list").clone()
}

#[test]
fn periodic_job_of_a_command_fires_once_is_changed_and_deleted() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("unit.two.role", "\"supervisor\"")
        .set("unit.three.role", "\"supervisor\"");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisors =
        [hero.supervisor().start(), hero.actor("two").start(), hero.actor("three").start()];
    let tick = ["cron", "add", "tick", "--schedule", "* * * * * *", "--overlap", "allow"];
    let tick = [&tick[..], &["-t", "osis", "-e", "\"old\""]].concat();
    hero.run(&tick).code(0).stdout("tick added\n");
    hero.run(&tick).code(65).says("cron tick exists already; hero cron edit tick changes it");
    let ran = |output: &str| {
        fired(&redis, "tick").iter().any(|due| {
            field(&redis, &format!("cron-tick-{due}"), "output").as_deref() == Some(output)
        })
    };
    wait_until("it fires", || ran("old") && fired(&redis, "tick").len() >= 2);
    let one = listed(&hero).remove(0);
    assert_eq!((&one["name"], &one["file"]), (&"tick".into(), &"redis".into()));
    assert!(one["added_by"].is_string() && one["added_at"].is_string(), "{one}");
    // Each due time has one firing, whichever supervisor did it.
    let shown = hero.run(&["cron", "show", "tick", "--json"]).code(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("one document");
    let due: Vec<&str> = shown["history"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|of| of["due"].as_str())
        .collect();
    assert_eq!(due.iter().collect::<BTreeSet<_>>().len(), due.len(), "{shown}");
    hero.run(&["cron", "edit", "tick", "-e", "\"new\""]).code(0).stdout("tick changed\n");
    wait_until("the new script runs", || ran("new"));
    let rare = ["cron", "edit", "tick", "--schedule", "0 0 1 1 *", "--timezone", "UTC"];
    hero.run(&rare).code(0).says("-01-01 00:00 in UTC");
    let one = listed(&hero).remove(0);
    assert!(one["next"].as_str().is_some_and(|at| at.ends_with("-01-01T00:00:00Z")), "{one}");
    hero.run(&["cron", "disable", "tick"]).code(0);
    hero.run(&["cron", "enable", "tick"]).code(0);
    let id = hero.run(&["cron", "run", "tick"]).code(0).stdout;
    hero.run(&["job", "wait", id.trim()]).code(0).stdout("new\n");
    hero.run(&["cron", "delete", "tick"]).code(0).stdout("tick deleted\n");
    assert!(listed(&hero).is_empty());
    hero.run(&["cron", "delete", "tick"]).code(66).says("no such periodic job in redis: `tick`");
    hero.run(&["cron", "edit", "tick", "-e", "1"]).code(66);
}

#[test]
fn periodic_job_of_a_command_is_checked_as_that_of_a_file_which_wins() {
    let redis = Redis::start();
    let hero = with_cron(&redis, &[("tick.toml", EACH_SECOND)]);
    let add = |name: &str, schedule: &str, more: &[&str]| {
        let base = ["cron", "add", name, "--schedule", schedule, "-t", "osis", "-e", "1"];
        hero.run(&[&base, more].concat())
    };
    add("tick", "@daily", &[]).code(65).says("tick.toml: change that file");
    add("a", "99 * * * *", &[]).code(65).says("cron a: schedule: not a cron line");
    add("a", "@daily", &["--timezone", "Mars/Base"]).code(65).says("time_zone: not a time zone");
    add("a", "@daily", &["--at", "09:00"]).code(65).says("its schedule says when it starts");
    add("a", "@daily", &["--timeout", "999h"]).code(65).says("timeout");
    add("A b", "@daily", &[]).code(65);
    hero.run(&["cron", "edit", "a"]).code(2).says("nothing to change");
    assert_eq!(listed(&hero).len(), 1);
}

#[test]
fn periodic_job_of_a_command_is_in_the_backup() {
    let (redis, other) = (Redis::start(), Redis::start());
    let (hero, copy) = (Hero::on(&redis), Hero::on(&other));
    let base = ["cron", "add", "report", "--schedule", "0 9 * * 1-5", "-t", "osis", "-e", "1"];
    hero.run(&[&base[..], &["--timezone", "Europe/Brussels"]].concat()).code(0);
    let file = redis.folder().join("backup").display().to_string();
    hero.run(&["backup", &file]).code(0);
    copy.run(&["restore", &file]).code(0);
    assert_eq!(listed(&copy), listed(&hero));
}

#[test]
fn periodic_job_of_a_command_has_arguments_and_parameters_but_no_files() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    std::fs::write(redis.folder().join("p.json"), r#"{"n": 4}"#).expect("written");
    std::fs::write(redis.folder().join("v.env"), "CITY=Ghent\n").expect("written");
    let script = "`${args[0]} ${params.n} ${params.to} ${ENV.CITY}`";
    let add = ["cron", "add", "report", "--schedule", "@daily", "-t", "osis", "-e", script];
    let given = ["--params", "p.json", "--param", "to=ann", "--env-file", "v.env", "--", "north"];
    hero.run(&[&add[..], &given].concat()).code(0);
    let ran = || {
        let id = hero.run(&["cron", "run", "report"]).code(0).stdout;
        hero.run(&["job", "wait", id.trim()]).code(0).stdout
    };
    assert_eq!(ran(), "north 4 ann Ghent\n");
    hero.run(&["cron", "edit", "report", "--", "south"]).code(0);
    assert_eq!(ran(), "south 4 ann Ghent\n");
    for option in ["--input", "--stdin"] {
        hero.run(&[&add[..], &[option, "a=b"]].concat())
            .code(2)
            .says("a periodic job keeps no files; give it the path by --param");
    }
    let help = hero.run(&["cron", "add", "--help"]).code(0).stdout;
    assert!(help.contains("--param ") && !help.contains("  --input "), "{help}");
}

#[test]
fn run_outside_of_the_schedule_counts_in_lists_and_history() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["cron", "add", "far", "--schedule", "0 0 1 1 *", "-t", "osis", "-e", "1"]).code(0);
    let id = hero.run(&["cron", "run", "far"]).code(0).stdout;
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&hero.run(args).code(0).stdout).expect("JSON")
    };
    let listed = json(&["cron", "list", "--json"])["cron"][0].clone();
    assert_eq!(
        (&listed["last"]["job_id"], &listed["fired"]),
        (&id.trim().into(), &1.into()),
        "{listed}"
    );
    let shown = json(&["cron", "show", "far", "--json"]);
    assert_eq!(
        (&shown["history"][0]["job_id"], &shown["history"][0]["why"]),
        (&id.trim().into(), &"run now".into())
    );
}

#[test]
fn notification_that_the_configuration_lacks_is_reported_where_it_is_named() {
    let redis = Redis::start();
    let tick = "[cron.tick]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\nnotify = [\"opps\"]\n";
    let hero = with_cron(&redis, &[("tick.toml", tick)]).set("notify.ops.journal", "true");
    let said =
        "this configuration has no [notify.opps], so nobody may be told; did you mean `ops`?";
    for named in [
        &["submit", "-t", "osis", "--notify", "opps", "-e", "1"][..],
        &["cron", "add", "a", "--schedule", "@daily", "-t", "osis", "--notify", "opps", "-e", "1"],
    ] {
        hero.run(named).code(0).says(said);
    }
    let graph = "[job.a]\ntype = \"osis\"\nscript = \"1\"\nnotify = [\"opps\"]\n";
    fs::write(redis.folder().join("g.toml"), graph).expect("written");
    hero.run(&["submit", "--graph", "g.toml"]).code(0).says(said);
    hero.run(&["check"]).code(0).says(&format!("cron tick: {said}"));
    let doctor = hero.run(&["doctor"]).stdout;
    assert!(doctor.contains(said), "{doctor}");
    let known = hero.run(&["submit", "-t", "osis", "--notify", "ops", "-e", "1"]).code(0);
    assert!(!known.stderr.contains("[notify."), "{}", known.stderr);
}

#[test]
fn notification_is_missed_without_any_of_the_configuration_too() {
    let redis = Redis::start();
    let tick =
        "[cron.tick]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\nnotify = [\"ops\"]\n";
    let hero = with_cron(&redis, &[("tick.toml", tick)]);
    let said =
        "this configuration has no [notify.ops], so nobody may be told: add the table to hero.toml";
    hero.run(&["submit", "-t", "osis", "--notify", "ops", "-e", "1"]).code(0).says(said);
    let add =
        ["cron", "add", "a", "--schedule", "@daily", "-t", "osis", "--notify", "ops", "-e", "1"];
    hero.run(&add).code(0).says(said);
    hero.run(&["check"]).code(0).says(&format!("cron tick: {said}"));
    let problems = hero.run(&["doctor", "--problems"]).stdout;
    assert!(problems.contains(said), "{problems}");
}
