//! Periodic jobs that do not succeed, that were missed, and their firings of the past.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Hero, Redis, keys, wait_until};

use super::field;

/// Returns a Hero with this file of periodic jobs.
fn with_cron(redis: &Redis, text: &str) -> Hero {
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("own.toml"), text).expect("writing a file");
    Hero::on(redis).set("supervisor.cron_dir", &format!("\"{}\"", folder.display()))
}

fn ended(name: &str) -> String {
    format!("{}{name}", keys::prefix("CRON_ENDED"))
}

fn days_ago(days: i64) -> i64 {
    (Timestamp::now() - SignedDuration::from_hours(24 * days)).as_microsecond()
}

fn document(hero: &Hero, args: &[&str]) -> Value {
    serde_json::from_str(&hero.run(args).code(0).stdout).expect("one document")
}

#[test]
fn periodic_job_that_fails_or_has_no_actor_is_overdue_until_it_succeeds() {
    let daily = "[cron.backup]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = 'throw \"no space\"'\nretries = 0\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, daily);
    // It was first seen three days ago, and no actor ran it since.
    redis.set_field(&ended("backup"), "since_us", days_ago(3));
    let supervisor = hero.supervisor().start();
    let problem = |text: &str| hero.run(&["status", "--check"]).stdout.contains(text);
    wait_until("it is told", || {
        problem("periodic job backup has not succeeded, though it was due twice")
    });
    assert!(hero.run(&["doctor"]).stdout.contains("periodic job backup has not succeeded"));
    let metric = |name: &str| {
        let text = hero.run(&["metrics"]).code(0).stdout;
        let line = format!("{name}{{name=\"backup\"}} ");
        text.lines().find_map(|of| of.strip_prefix(&line)?.parse::<f64>().ok())
    };
    let now = Timestamp::now().as_duration().as_secs_f64();
    assert!(metric("hero_cron_overdue_timestamp_seconds").is_some_and(|at| at < now));
    assert_eq!(metric("hero_cron_last_success_timestamp_seconds"), None);
    let _osis = hero.actor("osis-default-1").start();
    let run = || hero.run(&["cron", "run", "backup"]).code(0).stdout.trim().to_owned();
    let id = run();
    wait_until("the failure is told", || problem(&format!("; job {id} failed: ")));
    assert!(metric("hero_cron_last_failure_timestamp_seconds").is_some_and(|at| at > now - 1.0));
    let shown = hero.run(&["cron", "show", "backup"]).code(0).stdout;
    assert!(shown.contains("no space") && shown.contains("overdue    since "), "{shown}");
    let listed = hero.run(&["cron", "list"]).code(0).stdout;
    assert!(listed.contains("never, overdue"), "{listed}");
    let file = redis.folder().join("cron.d/own.toml");
    fs::write(file, daily.replace("throw \"no space\"", "42")).expect("writing a file");
    supervisor.signal(Signal::SIGHUP);
    let id = run();
    hero.run(&["job", "wait", &id]).code(0).stdout("42\n");
    wait_until("it is no problem any more", || !problem("periodic job backup"));
    assert!(metric("hero_cron_last_success_timestamp_seconds").is_some_and(|at| at > now));
    assert!(metric("hero_cron_overdue_timestamp_seconds").is_some_and(|at| at > now + 80_000.0));
    assert!(metric("hero_cron_last_duration_seconds").is_some_and(|took| took < 60.0));
    assert_eq!(metric("hero_cron_running"), Some(0.0));
    let one = document(&hero, &["cron", "show", "backup", "--json"]);
    assert_eq!((one["overdue"].as_bool(), one["succeeded_at"].is_string()), (Some(false), true));
    // One that is disabled is late for nobody.
    hero.run(&["cron", "disable", "backup"]).code(0);
    assert_eq!(metric("hero_cron_overdue_timestamp_seconds"), None);
}

#[test]
fn firings_that_no_supervisor_made_are_counted_once() {
    let hourly = "[cron.hourly]\nschedule = \"30 * * * *\"\ntype = \"osis\"\nscript = \"1\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, hourly).set("unit.two.role", "\"supervisor\"");
    redis.set_field(&keys::cron("hourly"), "due_us", days_ago(1));
    let _supervisors = [hero.supervisor().start(), hero.actor("two").start()];
    let shown = || document(&hero, &["cron", "show", "hourly", "--json"]);
    wait_until("they are counted", || shown()["missed"].as_u64() > Some(0));
    let missed = shown()["missed"].as_u64().expect("a number");
    assert!((23..=25).contains(&missed), "{missed}");
    let firings = document(&hero, &["cron", "history", "hourly", "--json"]);
    let firings = firings["firings"].as_array().expect("a list");
    let of: Vec<&Value> = firings.iter().filter(|of| of["outcome"] == "missed").collect();
    assert_eq!(of.len(), 1, "{firings:?}");
    assert_eq!(of[0]["why"], format!("{missed} firings: no supervisor ran"));
    let text = hero.run(&["cron", "history", "hourly"]).code(0).stdout;
    assert!(text.contains("missed"), "{text}");
}

#[test]
fn supervisor_makes_up_for_every_firing_that_was_missed_with_catch_up_all() {
    let hourly = "[cron.hourly]\nschedule = \"30 * * * *\"\ntype = \"osis\"\nscript = \"ENV.HERO_CRON_DUE\"\n\
                  catch_up = \"all\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, hourly);
    redis.set_field(&keys::cron("hourly"), "due_us", days_ago(1));
    let _units = [hero.supervisor().start(), hero.actor("osis-default-1").start()];
    let finished = || {
        let args = ["--json", "job", "list", "--status", "finished"];
        document(&hero, &args)["jobs"].as_array().map_or(0, Vec::len)
    };
    wait_until("each has run", || (23..=25).contains(&finished()));
    let shown = document(&hero, &["cron", "show", "hourly", "--json"]);
    assert_eq!(shown["missed"].as_u64().unwrap_or_default(), 0, "{shown}");
}

#[test]
fn backfill_submits_each_firing_of_a_period_once_and_one_after_the_other() {
    let daily = "[cron.report]\nschedule = \"0 3 * * *\"\ntype = \"osis\"\nscript = \"ENV.HERO_CRON_DUE\"\n";
    let redis = Redis::start();
    let hero = with_cron(&redis, daily);
    let period = ["--since", "2026-01-01", "--until", "2026-01-04", "--timezone", "UTC"];
    let backfill =
        |more: &[&str]| hero.run(&[&["cron", "backfill", "report"], &period[..], more].concat());
    let days = ["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z", "2026-01-03T03:00:00Z"];
    let shown = days.map(|day| format!("{} 03:00 +00:00\n", &day[..10])).concat();
    backfill(&["--dry-run"]).code(0).stdout(&shown);
    backfill(&[]).code(2).says("this submits 3 jobs of report");
    assert!(redis.all("JOB").is_empty());
    // The second day was fired.
    let fired = "cron-report-20260102T030000Z";
    redis.set_job(fired, "status finished script_type osis");
    backfill(&["--dry-run"]).code(0).stdout(&shown);
    let missing = shown.replace("2026-01-02 03:00 +00:00\n", "");
    backfill(&["--dry-run", "--only-missing"]).code(0).stdout(&missing);
    let outcomes = |more: &[&str]| -> Vec<String> {
        let done = backfill(&[&["--yes", "--json"], more].concat()).code(0).stdout;
        let done: Value = serde_json::from_str(&done).expect("one document");
        let firings = done["firings"].as_array().expect("a list").iter();
        firings.map(|of| of["outcome"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(outcomes(&["--only-missing"]), ["submitted", "fired", "submitted"]);
    assert_eq!(outcomes(&[]), ["exists", "submitted", "exists"]);
    let id = |day: &str| format!("cron-report-202601{day}T030000Z-fill");
    assert_eq!(field(&redis, &id("03"), "status").as_deref(), Some("waiting_for_prerequisites"));
    let _running = [hero.actor("osis-default-1").start(), hero.supervisor().start()];
    for (day, due) in ["01", "02", "03"].iter().zip(days) {
        hero.run(&["job", "wait", &id(day)]).code(0).stdout(&format!("{due}\n"));
        assert_eq!(field(&redis, &id(day), "cron").as_deref(), Some("report"));
    }
    assert_eq!(outcomes(&[]), ["exists"; 3], "a second backfill doubles nothing");
    let nothing = "nothing to submit of report: it fired, or was backfilled";
    backfill(&["--dry-run"]).code(0).stdout("").says(nothing);
    backfill(&[]).code(0).says(nothing);
    let history = document(&hero, &["cron", "history", "report", "--json"]);
    assert_eq!(history["firings"][0]["why"], "backfill");
    hero.run(&["cron", "backfill", "report", "--since", "2010-01-01", "--yes"])
        .code(65)
        .says("more than 1000 firings");
    hero.run(&["cron", "backfill", "report", "--since", "1h", "--until", "2100-01-01", "--yes"])
        .code(65);
    hero.run(&["cron", "backfill", "other", "--since", "1d", "--yes"]).code(66);
}

#[test]
fn periodic_job_whose_script_is_gone_is_shown_as_failed_and_is_a_problem_at_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    hero.run(&["script", "publish", "tidy", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&["cron", "add", "often", "--schedule", "* * * * * *", "--uses", "tidy"]).code(0);
    let listed = || {
        let text = hero.run(&["cron", "list", "--json"]).code(0).stdout;
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["cron"][0].clone()
    };
    wait_until("it has fired", || listed()["last"]["job_id"].is_string());
    hero.run(&["script", "delete", "tidy"]).code(0);
    wait_until("a firing has no job", || listed()["last"]["status"] == "failed");
    let of = listed();
    assert!(of["failed_id"].is_null() && of["failed_at"].is_string(), "{of}");
    let shown = hero.run(&["cron", "show", "often"]).code(0).stdout;
    assert!(shown.contains(", not submitted: "), "{shown}");
    let doctor = hero.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("periodic job often could not be submitted when it was due: "),
        "{doctor}"
    );
}
