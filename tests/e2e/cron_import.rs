//! `hero cron import`: a crontab is moved by the documented commands.

use std::fs;

use jiff::{SignedDuration, Timestamp};

use crate::support::{Hero, Redis, keys, wait_until};

const CRONTAB: &str = "SHELL=/bin/sh
PATH=/usr/local/bin:/usr/bin:/bin
MAILTO=ops@example.org
17 * * * * root cd / && run-parts --report /etc/cron.hourly
25 6 * * * root test -x /usr/sbin/anacron || run-parts --report /etc/cron.daily
0 3 1,15 * MON backup /usr/local/bin/dump --all
@weekly root find /tmp -mtime +7 -delete
*/5 8-18 * jan-dec mon-fri ann echo \"100\\% up\"
30 9 * * 1-5 ann cat%good morning,%all
@reboot root /usr/local/bin/start
99 * * * * root never
* * * * * root echo \"beat $GREETING\"
GREETING=late
";

fn hero(redis: &Redis) -> (Hero, std::path::PathBuf) {
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    let cron_dir = format!("\"{}\"", folder.display());
    (Hero::on(redis).set("supervisor.cron_dir", &cron_dir), folder.join("crontab.toml"))
}

#[test]
fn crontab_of_twelve_lines_is_moved_and_fires() {
    let redis = Redis::start();
    let (hero, output) = hero(&redis);
    let crontab = redis.folder().join("crontab");
    fs::write(&crontab, CRONTAB).expect("writing a file");
    let (crontab, output) = (crontab.display().to_string(), output.display().to_string());
    let checked = hero.run(&["cron", "import", "--system", "--check", &crontab]).code(0);
    for (line, says) in [
        (3, "cron mails the output to ops@example.org"),
        (4, "cron runs it as root"),
        (6, "it names days of the month and of the week"),
        (9, "what follows the first % becomes the standard input"),
        (10, "left out: @reboot"),
        (11, "left out: not a cron line: `99` is no minute"),
    ] {
        assert!(
            checked.stderr.contains(&format!("{crontab}:{line}: {says}")),
            "{}",
            checked.stderr
        );
    }
    assert!(checked.stderr.contains("7 periodic jobs; 2 lines are left out"), "{}", checked.stderr);
    assert_eq!(checked.stdout, "", "--check writes nothing");
    hero.run(&["cron", "import", "--system", &crontab, "--output", &output]).code(0);
    hero.run(&["cron", "import", "--system", &crontab, "--output", &output])
        .code(74)
        .says("choose another --output");
    hero.run(&["check"]).code(0);
    let listed = hero.run(&["cron", "list"]).code(0).stdout;
    for name in ["run-parts", "run-parts-2", "dump", "find", "echo", "cat", "echo-2"] {
        assert!(
            listed.lines().any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {listed}"
        );
    }
    let _running = [hero.actor("bash-default-1").start()];
    let run = |name: &str| {
        let id = hero.run(&["cron", "run", name]).code(0).stdout;
        hero.run(&["job", "wait", id.trim()]).code(0).stdout
    };
    assert_eq!(run("echo"), "100% up\n");
    assert_eq!(run("cat"), "good morning,\nall\n");
    // A supervisor sees a firing of half a minute ago.
    let due = (Timestamp::now() - SignedDuration::from_secs(62)).as_microsecond();
    redis.set_field(&keys::cron("echo-2"), "due_us", due);
    let _supervisor = hero.supervisor().start();
    wait_until("it fires", || !redis.keys(&keys::job("cron-echo-2-")).is_empty());
    let key = redis.keys(&keys::job("cron-echo-2-")).remove(0);
    let id = key.strip_prefix(&keys::prefix("JOB")).expect("a job").to_owned();
    // The variable stands below the line, and counts for those behind it alone.
    hero.run(&["job", "wait", &id]).code(0).stdout("beat \n");
}

#[test]
fn import_names_a_file_that_it_cannot_read_and_takes_no_name_twice() {
    let redis = Redis::start();
    let (hero, output) = hero(&redis);
    hero.run(&["cron", "import", "/no/such"]).code(66).says("no such file: /no/such");
    let crontab = redis.folder().join("own");
    fs::write(&crontab, "0 1 * * * tidy --all\n").expect("writing a file");
    let crontab = crontab.display().to_string();
    let first = hero.run(&["cron", "import", &crontab]).code(0).stdout;
    assert!(first.contains("[cron.tidy]"), "{first}");
    fs::write(output, &first).expect("writing a file");
    let second = hero.run(&["cron", "import", &crontab, "--json"]).code(0).stdout;
    let second: serde_json::Value = serde_json::from_str(&second).expect("one document");
    assert_eq!(second["names"][0], "tidy-2");
}
