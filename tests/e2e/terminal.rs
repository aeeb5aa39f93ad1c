//! Output at a terminal of 80 columns, and in a pipe: colours, widths, short ids; and many jobs at once.

use serde_json::Value;

use super::{ENDLESS, field, until};
use crate::support::{Hero, Redis, wait_until};

/// The text without its colours, and the line ends of a terminal as in a file.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = |part: &str| part.split_once('m').map_or(String::new(), |(_, rest)| rest.to_owned());
    parts.fold(first, |text, part| text + rest(part).as_str()).replace('\r', "")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

const UUIDS: [&str; 2] =
    ["7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7", "7f9c3ba4-e88f-4cc3-a4b0-55d1c0e2a9f7"];

#[test]
fn output_at_a_terminal_shows_control_characters_and_sends_none() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let file = redis.folder().join("title.sh");
    std::fs::write(&file, "printf 'a\\033]0;owned\\007b\\n'").expect("written");
    let exec = ["exec", "--id", "a", file.to_str().expect("text")];
    let sent = "a\u{1b}]0;owned\u{7}b";
    let shown = hero.begin_at_terminal(&exec).ends().code(0).stdout;
    assert!(shown.contains("a\\u{1b}]0;owned\\u{7}b") && !shown.contains(sent), "{shown:?}");
    for command in ["output", "wait"] {
        let at_terminal = |more: &[&str]| {
            let words = [&["job", command, "a"], more].concat();
            hero.begin_at_terminal(&words).ends().code(0).stdout
        };
        assert!(at_terminal(&[]).contains("a\\u{1b}]0;owned"), "{command}");
        assert!(at_terminal(&["--raw"]).contains(sent), "{command}");
        assert!(hero.run(&["job", command, "a"]).code(0).stdout.contains(sent), "{command}");
    }
}

#[test]
fn list_of_jobs_fits_the_terminal_and_has_colours_there_alone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _actor = hero.actor("osis-default-1").start();
    let name = "統計を集める仕事 with a long name of its own";
    let error = "throw \"a rather long error that does not fit beside all the other columns\"";
    let words = ["submit", "-t", "osis", "--id", UUIDS[0], "--name", name, "-e", error];
    hero.run(&words).code(0);
    hero.run(&["submit", "-t", "osis", "--id", UUIDS[1], "-e", "1"]).code(0);
    until(&redis, UUIDS[0], "error");
    until(&redis, UUIDS[1], "finished");

    let shown = hero.begin_at_terminal(&["job", "list"]).ends().code(0).stdout;
    assert!(shown.contains("\u{1b}[31mfailed\u{1b}[0m"), "{shown:?}");
    assert!(shown.contains("\u{1b}[32mfinished\u{1b}[0m"), "{shown:?}");
    let shown = plain(&shown);
    assert!(shown.contains("7f9c2ba4 ") && shown.contains("7f9c3ba4 "), "{shown}");
    assert!(shown.contains("統計") && shown.contains('…') && shown.contains("ERROR"), "{shown}");
    // Characters of two columns count twice.
    let columns =
        |line: &str| -> usize { line.chars().map(|c| if c > '\u{2e80}' { 2 } else { 1 }).sum() };
    assert!(shown.lines().all(|line| columns(line) <= 80), "{shown}");

    let bare = ["--color", "never", "job", "list"];
    let shown = hero.begin_at_terminal(&bare).ends().code(0).stdout;
    assert!(!shown.contains('\u{1b}') && shown.contains("7f9c2ba4 "), "{shown:?}");
    let piped = hero.run(&["job", "list"]).code(0).stdout;
    assert!(
        !piped.contains('\u{1b}')
            && piped.contains(UUIDS[0])
            && piped.contains("統計を集める仕事 with"),
        "{piped}"
    );
    let piped = hero.run(&["job", "list", "--color", "always"]).code(0).stdout;
    assert!(piped.contains("\u{1b}[31mfailed\u{1b}[0m") && piped.contains(UUIDS[0]), "{piped:?}");

    let listed = json(&hero.run(&["job", "list", "--status", "error", "--json"]).code(0).stdout);
    assert_eq!(listed["jobs"][0]["attempt"], 1);
    assert_eq!(json(&hero.run(&["job", "show", "7f9c2", "--json"]).code(0).stdout)["attempt"], 1);
}

/// Runs a command at a terminal of 80 columns. Returns its lines.
fn lines_at_terminal(hero: &Hero, args: &[&str]) -> Vec<String> {
    let shown = plain(&hero.begin_at_terminal(args).ends().code(0).stdout);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    shown.lines().map(str::to_owned).collect()
}

#[test]
fn state_is_never_cut_and_a_job_that_does_not_fit_has_two_lines() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let actor = hero.actor("osis-default-1").start();
    let name = "a-rather-long-name-of-a-nightly-job";
    let error = "throw \"an error of about sixty characters, which needs a line alone\"";
    let submit = |id: &str, more: &[&str]| {
        let words = ["submit", "-t", "osis", "--id", id, "--name", name];
        hero.run(&[&words, more].concat()).code(0);
    };
    submit("failed", &["-e", error]);
    until(&redis, "failed", "error");
    drop(actor);
    submit("first", &["-e", "1"]);
    submit("waits", &["-e", "1", "--after", "first"]);
    submit("later", &["-e", "1", "--at", "2100-01-01T09:00:00Z"]);
    let lines = lines_at_terminal(&hero, &["job", "list", "--color", "never"]);
    let of = |word: &str| lines.iter().position(|line| line.contains(word)).expect(word);
    assert!(lines[of("waits ")].contains(" waiting_for_prerequisites "), "{lines:#?}");
    assert!(lines[of("later ") + 1].starts_with("  2100-01-01 09:00:00"), "{lines:#?}");
    assert!(lines[1].starts_with("  STARTS ") && lines[1].ends_with(" ERROR"), "{lines:#?}");
    let error = &lines[of("failed ") + 1];
    assert!(
        error.starts_with("  ") && error.contains("an error of about sixty char"),
        "{lines:#?}"
    );
    // A job with neither has no second line.
    assert_eq!(lines.len(), 2 + 4 + 2, "{lines:#?}");
}

#[test]
fn errors_have_the_width_that_the_other_columns_leave() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _actor = hero.actor("osis-default-1").start();
    let said = "an error of fifty-one characters as people write it";
    hero.run(&["exec", "-t", "osis", "-e", &format!("throw \"{said}\"")]).code(1);
    let lines = lines_at_terminal(&hero, &["job", "errors", "--color", "never"]);
    assert!(lines[1].contains(&said[..45]) && lines[0].contains("TYPES"), "{lines:#?}");
}

#[test]
fn time_zone_of_a_periodic_job_is_always_shown() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).in_zone("UTC");
    let name = "report-of-all-customers-of-north";
    let zone = "America/Argentina/Buenos_Aires";
    let words = ["cron", "add", name, "--timezone", zone, "--schedule", "*/10 8-18 * * 1-5"];
    hero.run(&[&words[..], &["-t", "osis", "-e", "1"]].concat()).code(0);
    let lines = lines_at_terminal(&hero, &["cron", "list", "--color", "never"]).join("\n");
    assert!(lines.contains("TIME ZONE") && lines.contains(zone) && lines.contains(name), "{lines}");
    assert!(lines.contains("*/10 8-18 * * 1-5"), "{lines}");
}

#[test]
fn empty_result_says_what_was_looked_for() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.events", "true");
    hero.run(&["submit", "-t", "osis", "--id", "alone", "-e", "1"]).code(0);
    hero.run(&["job", "delete", "alone"]).code(0);
    for (args, said) in [
        (
            &["job", "errors", "-t", "python", "--since", "yesterday 18:00"][..],
            "no failed job of type python submitted since yesterday 18:00",
        ),
        (
            &["job", "list", "--status", "failed", "--tag", "night", "--host", "web-1"],
            "no job in state failed with tag night on machine web-1",
        ),
        (&["job", "list"], "hero: no job\n"),
        (&["job", "list", "--queue", "type:osis:group:gpu"], "no job of queue type:osis:group:gpu"),
        (&["job", "retry", "--name", "x"], "no job with a name that contains `x`"),
        (&["cron", "list"], "no periodic job in Redis or in "),
        (&["graph", "list"], "no graph or batch"),
        (&["actor", "list", "-t", "osis"], "no live actor of type osis"),
        (&["limit", "list"], "no limit is configured"),
        (&["token", "list"], "hero: no token"),
        (&["events", "-t", "python"], "no recorded event of type python"),
        (&["audit", "--what", "job.edit"], "no change is recorded of job.edit"),
        (&["osis", "list"], "hero: no object"),
        (&["osis", "list", "person", "--context", "c"], "no object of type person in context c"),
    ] {
        hero.run(args).code(0).says(said);
    }
    let shown = hero.begin_at_terminal(&["job", "list"]).ends().code(0).stdout;
    assert!(!shown.contains("STATUS"), "titles without a row: {shown}");
    let documents = hero.run(&["job", "list", "--json"]).code(0);
    assert_eq!(documents.stderr, "", "a document is empty without words");
}

#[test]
fn unique_beginning_of_an_id_names_the_job_and_another_lists_the_candidates() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in UUIDS {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "1"]).code(0);
    }
    hero.run(&["submit", "-t", "osis", "--id", "7f9c", "-e", "1"]).code(0);
    let shown = hero.run(&["job", "show", "7f9c2"]).code(0).stdout;
    assert!(shown.contains(UUIDS[0]), "{shown}");
    // A text that is a whole id and the beginning of others means none of them without its mark.
    hero.run(&["job", "stop", "7f9c"]).code(65).says("write more of the id, or id:7f9c");
    hero.run(&["job", "stop", "id:7f9c"]).code(0).stdout("7f9c stopped\n");
    let said = "several jobs have ids that begin with 7f9c-";
    hero.run(&["job", "delete", "7f9c-"]).code(66).says("no such job: 7f9c-");
    hero.run(&["job", "delete", "7f9"]).code(66).says("no such job: 7f9");
    hero.run(&["submit", "-t", "osis", "--id", "7f9c-a", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "7f9c-b", "-e", "1"]).code(0);
    hero.run(&["job", "delete", "7f9c-"]).code(65).says(said).says("7f9c-a, 7f9c-b");
    hero.run(&["job", "stop", "7f9c3", "7f9c-a"])
        .code(0)
        .stdout(&format!("{} stopped\n7f9c-a stopped\n", UUIDS[1]));
    assert_eq!(field(&redis, UUIDS[0], "status").as_deref(), Some("dispatched"));
}

#[test]
fn times_of_filters_are_those_that_people_say() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.events", "true");
    hero.run(&["submit", "-t", "osis", "--id", "7f9c2ba4-x", "-e", "1"]).code(0);
    let listed = |args: &[&str]| {
        let done = hero.run(&[&["job", "list", "--json"], args].concat()).code(0);
        json(&done.stdout)["jobs"].as_array().expect("a list").len()
    };
    for since in ["1h", "yesterday 18:00", "yesterday", "2026-01-01", "2026-01-01T00:00:00Z"] {
        assert_eq!(listed(&["--since", since]), 1, "since {since}");
        assert_eq!(listed(&["--until", since, "--timezone", "Europe/Brussels"]), 0, "{since}");
        let events = ["events", "--json", "--job", "7f9c", "--since", since];
        let events = json(&hero.run(&events).code(0).stdout);
        assert_eq!(events["events"][0]["id"], "7f9c2ba4-x", "since {since}");
        hero.run(&["job", "logs", "7f9c", "--since", since]).code(0);
    }
    hero.run(&["job", "list", "--until", "soon"])
        .code(65)
        .says("--until: `soon` is not a time: expected a duration ago such as 10m");
    let bulk = ["job", "stop", "--since", "yesterday", "--timezone", "UTC", "--dry-run"];
    assert!(hero.run(&bulk).code(0).stdout.contains("7f9c2ba4-x"));
}

#[test]
fn unique_beginning_of_an_id_names_the_graph() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    std::fs::write(redis.folder().join("b"), "{\"script_type\": \"osis\", \"script\": \"1\"}\n")
        .expect("written");
    for id in UUIDS {
        hero.run(&["submit", "--batch", "b", "--id", id]).code(0);
    }
    let shown = hero.run(&["graph", "show", "7f9c2"]).code(0).stdout;
    assert!(shown.contains(UUIDS[0]), "{shown}");
    hero.run(&["graph", "stop", "7f9c"])
        .code(65)
        .says("several graphs have ids that begin with 7f9c");
    hero.run(&["graph", "stop", "7f9c3"]).code(0).stdout("1 job stopped\n");
    hero.run(&["graph", "delete", "7f9d"]).code(66);
}

#[test]
fn filters_choose_the_jobs_that_are_stopped_retried_and_deleted() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["a", "b", "c"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "--name", "night run", "-e", "1"]).code(0);
    }
    hero.run(&["submit", "-t", "osis", "--id", "other", "-e", "1"]).code(0);
    let night = ["--name", "night"];
    let run = |words: &[&str]| hero.run(&[&["job"], words, &night].concat());
    run(&["stop", "--dry-run"]).code(0).says("3 jobs would be stopped");
    run(&["stop"]).code(2).says("cannot stop 3 jobs without confirmation");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    run(&["stop", "--yes"]).code(0).stdout("3 jobs stopped\n");
    assert_eq!(field(&redis, "other", "status").as_deref(), Some("dispatched"));
    let stopped = run(&["list", "--failed-because", "stopped", "--since", "1h", "--json"]);
    assert_eq!(json(&stopped.code(0).stdout)["jobs"].as_array().map(Vec::len), Some(3));
    let none = run(&["list", "--until", "1h", "--json"]).code(0).stdout;
    assert_eq!(json(&none)["jobs"].as_array().map(Vec::len), Some(0));
    run(&["list", "--failed-because", "luck"]).code(65).says("timeout");
    run(&["retry"]).code(0).stdout("0 jobs retried\n");
    run(&["retry", "--limit", "2", "--cancelled"])
        .code(0)
        .stdout("2 jobs retried\n")
        .says("more may match");
    run(&["retry", "--cancelled", "--json"])
        .code(0)
        .stdout("{\"retried\":1,\"left\":0,\"reason\":null}\n");
    run(&["delete", "--yes"]).code(0).stdout("3 jobs deleted\n");
    assert_eq!(field(&redis, "a", "status"), None);
    assert_eq!(field(&redis, "other", "status").as_deref(), Some("dispatched"));
    hero.run(&["job", "stop"]).code(2).says("neither ids nor filters");
    hero.run(&["job", "stop", "other", "--type", "osis"]).code(2).says("both ids and filters");
}

#[test]
fn tags_find_jobs_and_edits_change_those_that_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let words =
        ["submit", "-t", "osis", "--tag", "nightly", "--tag", "team:io", "--id", "a", "-e", "1"];
    hero.run(&words).code(0);
    hero.run(&["submit", "-t", "osis", "--tag", "nightly", "--id", "b", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "osis", "--tag", "two words", "-e", "1"]).code(65).says("two words");
    let found = hero.run(&["job", "list", "--tag", "nightly", "--tag", "team:io", "--json"]);
    let found = json(&found.code(0).stdout);
    assert_eq!(found["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["jobs"][0]["tags"], serde_json::json!(["nightly", "team:io"]));

    hero.run(&["job", "edit", "a", "--priority", "0"]).code(0).stdout("a dispatched\n");
    let edited = json(&hero.run(&["job", "edit", "b", "--delay", "1h", "--json"]).code(0).stdout);
    assert_eq!(edited["result"], "scheduled");
    let due = edited["run_at"].as_str().expect("a time");
    assert!(due.ends_with('Z'), "{due}");
    let at = ["job", "edit", "b", "--at", "tomorrow 09:00", "--timezone", "UTC"];
    let edited = hero.run(&at).code(0).stdout;
    assert!(edited.starts_with("b scheduled, starts 2"), "{edited}");
    hero.run(&["job", "edit", "a", "--priority", "7"]).code(65);
    hero.run(&["job", "edit", "a"]).code(2).says("nothing to change");
    hero.run(&["job", "stop", "a"]).code(0);
    hero.run(&["job", "edit", "a", "--group", "io"]).code(65).says("has not started");
    let stats = json(&hero.run(&["stats", "--json"]).code(0).stdout);
    assert_eq!([&stats["types"][0]["failed"], &stats["types"][0]["cancelled"]], [0, 1]);
}

#[test]
fn drain_pauses_the_queues_and_waits_for_their_running_jobs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "osis", "--id", "long", "--timeout", "1h", "-e", ENDLESS]).code(0);
    until(&redis, "long", "started");
    hero.run(&["queue", "drain", "--all", "--wait", "1ms"])
        .code(75)
        .says("1 job still runs")
        .says("hero queue resume");
    let drain = hero.begin(&["queue", "drain", "type:osis"]);
    wait_until("it says what it waits for", || drain.err().contains("1 job still runs"));
    hero.run(&["job", "stop", "long"]).code(0);
    let drained = drain.ends().code(0);
    assert!(drained.stdout.contains("type:osis paused"), "{}", drained.stdout);
    assert!(drained.stdout.ends_with("drained: no job of these queues runs\n"));
    hero.run(&["submit", "-t", "osis", "--id", "later", "-e", "1"]).code(0);
    assert_eq!(field(&redis, "later", "status").as_deref(), Some("dispatched"));
    let listed = hero.run(&["queue", "list"]).code(0).stdout;
    assert_eq!(listed.lines().filter(|line| line.starts_with("type:osis ")).count(), 1, "{listed}");
    hero.run(&["queue", "resume", "type:osis:prio:1"]).code(65).says("hero queue resume --all");
    hero.run(&["queue", "resume", "--all"]).code(0);
    until(&redis, "later", "finished");
    hero.run(&["queue", "resume", "--all"]).code(0).stdout("");
}

#[test]
fn help_of_a_submission_has_sections_and_fits_the_terminal() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    for command in ["exec", "submit"] {
        let shown = hero.begin_at_terminal(&[command, "--help"]).ends().code(0).stdout;
        let shown = plain(&shown);
        let long: Vec<&str> = shown.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, [] as [&str; 0], "{shown}");
        for section in ["What:", "When:", "Where:", "Limits:", "Files and output:"] {
            assert!(shown.lines().any(|line| line == section), "{section}: {shown}");
        }
        for call in ["hero.progress", "hero.output", "hero.result", "hero.inputs"] {
            assert!(shown.contains(call), "{call}: {shown}");
        }
        assert!(shown.contains("hero.retry_in") && shown.contains("hero.discard"), "{shown}");
        let piped = hero.run(&[command, "--help"]).code(0).stdout;
        let long: Vec<&str> = piped.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(long, [] as [&str; 0], "{piped}");
        // A program that asks for wide lines reads each option on one.
        let mut wide = hero.command_of_user(env!("CARGO_BIN_EXE_hero"));
        let piped =
            wide.env("COLUMNS", "1000").args([command, "--help"]).output().expect("it runs");
        let piped = String::from_utf8(piped.stdout).expect("text");
        let option = "The timeout of one attempt, such as 30s; by default `job.timeout`, 1m";
        assert!(piped.lines().any(|line| line.ends_with(option)), "{piped}");
    }
}
