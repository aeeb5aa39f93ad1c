//! Notifications in a backup and after its restore, and periodic jobs whose notification does not exist.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{Receiver, fail, finish, wanted};
use crate::support::{Hero, Redis, keys, wait_until};

const ON: &str = "on = [\"failed\", \"recovered\"]\nevery = \"0s\"";

/// Returns the id of each message, with the job that it tells.
fn told(receiver: &Receiver) -> BTreeSet<(String, String)> {
    let text = |of: &Value| of.as_str().expect("text").to_owned();
    let of = |message: &Value| (text(&message["id"]), text(&message["events"][0]["job"]));
    receiver.messages().iter().map(of).collect()
}

#[test]
fn pending_notification_is_backed_up_and_delivered_after_the_restore_with_the_same_id() {
    let redis = Redis::start();
    let mut receiver = Receiver::start(&redis, "receiver.py");
    let hero = super::hero(&redis, &receiver, ON);
    let _osis = hero.actor("osis-default-1").start();
    let mut supervisor = hero.supervisor().start();
    wanted(&redis, &["failed", "recovered"]);
    receiver.kill();
    fail(&hero, &["--id", "message", "--name", "import"]);
    wait_until("an attempt failed", || !redis.all("NOTIFY_TROUBLE").is_empty());
    supervisor.kill();
    fail(&hero, &["--id", "event"]);
    let file = redis.folder().join("hero.jsonl").display().to_string();
    hero.run(&["backup", &file]).code(0);
    // A namespace that no unit serves tells nobody.
    let other = Redis::start();
    let elsewhere = Receiver::start(&other, "receiver.py");
    let there = super::hero(&other, &elsewhere, ON);
    there.run(&["restore", &file]).code(0);
    assert_eq!(other.members(&keys::keys().notify_due()).len(), 1);
    let _actor = there.actor("osis-default-1").start();
    let _supervisor = there.supervisor().start();
    wait_until("both are told", || told(&elsewhere).len() == 2);
    wanted(&other, &["recovered"]);
    finish(&there, &["--name", "import", "--id", "again"]);
    wait_until("it has recovered", || told(&elsewhere).len() == 3);
    // The old namespace goes on as well: a receiver that compares ids gets each once.
    receiver.start_again();
    let _old = hero.supervisor().start();
    wait_until("both are told there too", || told(&receiver).len() == 2);
    assert!(told(&receiver).is_subset(&told(&elsewhere)), "{:?}", told(&elsewhere));
}

#[test]
fn periodic_job_that_names_an_unknown_notification_is_a_problem_until_it_is_known() {
    let redis = Redis::start();
    let cron = redis.folder().join("cron.d");
    fs::create_dir(&cron).expect("a folder");
    let daily = "[cron.report]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\nnotify = [\"opps\", \"ops\"]\n";
    fs::write(cron.join("own.toml"), daily).expect("written");
    let with = |name: &str| {
        Hero::on(&redis)
            .set("supervisor.cron_dir", &format!("\"{}\"", cron.display()))
            .add(&format!("[notify.ops]\njournal = true\n[notify.{name}]\njournal = true\n"))
    };
    let hero = with("chat");
    let supervisor = hero.supervisor().start();
    let add = ["cron", "add", "backup", "--schedule", "@daily", "--notify", "pager"];
    hero.run(&[&add[..], &["-t", "osis", "-e", "1"]].concat()).code(0);
    let said = || hero.run(&["doctor"]).stdout;
    wait_until("both are told", || {
        said().contains("has no such notification: backup: pager; report: opps")
            || said().contains("has no such notification: report: opps; backup: pager")
    });
    assert!(said().contains("add the table [notify.NAME] to hero.toml"), "{}", said());
    drop(supervisor);
    hero.run(&["cron", "delete", "backup"]).code(0);
    let _supervisor = with("opps").supervisor().start();
    wait_until("all are known", || !said().contains("no such notification"));
}

#[test]
fn notification_that_names_an_unknown_periodic_job_is_a_problem_until_it_is_added() {
    let redis = Redis::start();
    let table = "[notify.ops]\njournal = true\ncrons = [\"backup\"]\n";
    let hero = Hero::on(&redis).add(table);
    let _supervisor = hero.supervisor().start();
    let said = || hero.run(&["doctor"]).stdout;
    wait_until("it is told", || said().contains("periodic jobs that do not exist: ops: backup"));
    assert!(said().contains("correct `crons` of [notify.ops] in hero.toml"), "{}", said());
    let add = ["cron", "add", "backup", "--schedule", "@daily", "-t", "osis", "-e", "1"];
    hero.run(&add).code(0);
    wait_until("it exists", || !said().contains("do not exist"));
}
