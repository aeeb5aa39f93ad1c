//! Periodic jobs with a spread and a calendar.

use std::fs;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use crate::support::{Hero, Redis, wait_until};

const FREE: &str = "\n[calendar.free]\ndays = [\"SAT\", \"SUN\"]\n";

fn with_cron(redis: &Redis, text: &str) -> Hero {
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("own.toml"), text).expect("writing a file");
    Hero::on(redis).set("supervisor.cron_dir", &format!("\"{}\"", folder.display())).add(FREE)
}

fn one(hero: &Hero, name: &str) -> Value {
    let shown = hero.run(&["cron", "show", name, "--json"]).code(0).stdout;
    serde_json::from_str(&shown).expect("one document")
}

#[test]
fn next_times_leave_out_the_days_of_the_calendar_and_have_the_delay_of_the_name() {
    let job = "schedule = \"0 12 * * *\"\ntype = \"osis\"\nscript = \"1\"\n";
    let text =
        format!("[cron.plain]\n{job}[cron.late]\n{job}spread = \"30m\"\ncalendar = \"free\"\n");
    let redis = Redis::start();
    let hero = with_cron(&redis, &text);
    let _supervisor = hero.supervisor().start();
    wait_until("it is in force", || one(&hero, "late")["next"].is_string());
    let late = one(&hero, "late");
    let delay = late["spread"]["own_s"].as_i64().expect("a delay");
    assert_eq!(
        (late["spread"]["most_s"].as_i64(), late["calendar"].as_str()),
        (Some(1800), Some("free"))
    );
    assert!((1..=1800).contains(&delay), "{delay}");
    let upcoming = late["upcoming"].as_array().expect("a list");
    for at in upcoming {
        let at: Timestamp = at.as_str().expect("text").parse().expect("a time");
        let planned = TimeZone::UTC.to_datetime(at - delay.seconds());
        assert_eq!((planned.hour(), planned.minute(), planned.second()), (12, 0, 0), "{at}");
        assert!(!matches!(planned.weekday(), Weekday::Saturday | Weekday::Sunday), "{at}");
    }
    let shown = hero.run(&["cron", "show", "late"]).code(0).stdout;
    assert!(shown.contains("spread     30m, ") && shown.contains("calendar   free"), "{shown}");
    assert_eq!(one(&hero, "plain")["spread"], Value::Null);
}

#[test]
fn wrong_spread_and_unknown_calendar_are_rejected_with_their_place() {
    let job = "[cron.a]\nschedule = \"0 12 * * SUN\"\ntype = \"osis\"\nscript = \"1\"\n";
    let redis = Redis::start();
    for (more, says) in [
        ("spread = \"25h\"\n", "own.toml:5:10: cron.a.spread: is longer than a day"),
        ("spread = \"soon\"\n", "own.toml:5:10: cron.a.spread: "),
        (
            "calendar = \"holidays\"\n",
            "own.toml:5:12: cron.a.calendar: unknown calendar `holidays`; hero.toml has: free",
        ),
        (
            "calendar = \"free\"\n",
            "cron.a.calendar: never fires: the calendar free leaves out all its days",
        ),
    ] {
        with_cron(&redis, &format!("{job}{more}")).run(&["check"]).code(78).says(says);
    }
    let wrong = Hero::on(&redis).add("\n[calendar.x]\ndays = [\"FUNDAY\"]\n");
    wrong.run(&["check"]).code(78).says("`FUNDAY` is no day");
}

#[test]
fn periodic_job_in_redis_has_a_spread_and_a_calendar_too() {
    let redis = Redis::start();
    let hero = with_cron(&redis, "");
    let _supervisor = hero.supervisor().start();
    let add = ["cron", "add", "report", "--schedule", "@daily", "-t", "osis", "-e", "1"];
    let more = ["--spread", "10m", "--calendar", "free"];
    hero.run(&[&add[..], &more].concat()).code(0);
    assert_eq!(one(&hero, "report")["calendar"], "free");
    hero.run(&["cron", "edit", "report", "--spread", "0s", "--calendar", ""]).code(0);
    let report = one(&hero, "report");
    assert_eq!((&report["calendar"], &report["spread"]), (&Value::Null, &Value::Null));
    hero.run(&["cron", "edit", "report", "--calendar", "none"]).code(65).says("unknown calendar");
}
