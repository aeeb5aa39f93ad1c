//! The progress of jobs: reported by scripts of every type, shown while waiting.

use crate::support::{Hero, Redis, keys, wait_until};

use super::{field, until};

/// Returns whether a job's hash has this progress.
fn has_come(redis: &Redis, id: &str, fraction: &str, text: &str) -> bool {
    field(redis, id, "progress").as_deref() == Some(fraction)
        && field(redis, id, "progress_text").as_deref() == Some(text)
}

#[test]
fn progress_of_rhai_and_of_a_process_is_shown_while_the_job_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["osis-default-1", "sal-default-1", "python-default-1"]
        .map(|unit| hero.actor(unit).start());
    let child = "import os, time\n\
                 tell = os.fdopen(int(os.environ['HERO_FD']), 'w')\n\
                 print('{\"progress\": 0.4, \"text\": \"reading\"}', file=tell, flush=True)\n\
                 time.sleep(600)";
    let script = "progress(0.4, \"reading\"); sleep(600);";
    for (kind, script) in [("osis", script), ("sal", script), ("python", child)] {
        hero.run(&["submit", "-t", kind, "-e", script, "--timeout", "15m", "--id", kind]).code(0);
        wait_until("it tells how far it has come", || has_come(&redis, kind, "0.4", "reading"));
        assert_eq!(field(&redis, kind, "status").as_deref(), Some("started"));
        let shown = hero.run(&["job", "show", kind]).code(0).stdout;
        assert!(shown.contains("progress       40 %\n"), "{shown}");
        let shown = hero.run(&["--json", "job", "show", kind]).code(0).stdout;
        assert!(shown.contains("\"progress\":0.4"), "{shown}");
    }
}

#[test]
fn process_reports_output_and_log_lines_and_malformed_ones_are_ignored() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import os\n\
                  tell = os.fdopen(3, 'w')\n\
                  print('on standard output')\n\
                  print('garbage', file=tell)\n\
                  print('{\"log\": \"a line\"}', file=tell)\n\
                  print('{\"colour\": 1}', file=tell)\n\
                  print('{\"output\": {\"a\": [1, 2]}}', file=tell)";
    hero.run(&["exec", "-t", "python", "-e", script])
        .code(0)
        // Lines that came into the log before the report were printed at once.
        .stdout("on standard output\n{\"a\":[1,2]}\n")
        .says("a line\n")
        .says("2 lines on descriptor 3 were not messages to hero, first `garbage`: see hero exec --help\n");
}

#[test]
fn malformed_progress_is_an_error_in_rhai_and_ignored_of_a_process() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "progress(0.0 / 0.0, \"x\")"])
        .code(1)
        .says("progress: the fraction is not a number");
    hero.run(&["exec", "-t", "osis", "-e", "progress(7); progress(-1.5, \"x\"); 1", "--id", "a"])
        .code(0)
        .stdout("1\n");
    assert!(has_come(&redis, "a", "0", "x"));
}

#[test]
fn frequent_progress_writes_few_entries() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let script = "for n in 0..20000 { progress(n / 19999.0, `${n}`); } print(\"end\")";
    hero.run(&["exec", "-t", "osis", "-e", script, "--id", "a"]).code(0).says("end\n");
    assert!(has_come(&redis, "a", "1", "19999"), "{:?}", field(&redis, "a", "progress"));
    let entries: usize = redis.ask(&format!("XLEN {}", keys::log("a")));
    // At most four a second, and the job takes seconds.
    assert!(entries < 1000, "{entries} entries");
}

#[test]
fn progress_bar_is_drawn_on_a_terminal_only() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let script = "progress(0.5, \"half way\"); sleep(600);";
    let submit = ["submit", "-t", "osis", "-e", script, "--timeout", "15m", "--id", "a"];
    hero.run(&submit).code(0);
    until(&redis, "a", "started");
    wait_until("it tells", || has_come(&redis, "a", "0.5", "half way"));
    let mut seen = hero.begin_at_terminal(&["job", "wait", "a"]);
    wait_until("the bar is drawn", || {
        seen.out().contains("[############            ]  50 % half way") || seen.has_ended()
    });
    let unseen = hero.begin(&["job", "wait", "a"]);
    hero.run(&["job", "stop", "a"]).code(0);
    let done = unseen.ends().code(1).stdout("");
    assert!(!done.stderr.contains("half way"), "{}", done.stderr);
    let all = seen.out();
    assert!(all.contains("half way"), "{all}");
}

#[test]
fn log_is_read_from_a_given_time() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let script = "print(\"old\"); progress(0.5, \"half\"); print(\"new\")";
    hero.run(&["exec", "-t", "osis", "-e", script, "--id", "a"]).code(0);
    let logs = |since: &str| hero.run(&["job", "logs", "a", "--since", since]);
    logs("1h").code(0).stdout("old\nnew\n");
    logs("2020-01-01T00:00:00Z").code(0).stdout("old\nnew\n");
    logs("2999-01-01T00:00:00Z").code(0).stdout("");
    hero.run(&["job", "logs", "-f", "--since", "1h", "a"]).code(0).stdout("old\nnew\n");
    logs("yesterday").code(0).stdout("old\nnew\n");
    logs("never").code(65).says("--since");
    hero.run(&["job", "logs", "none", "--since", "1h"]).code(66);
}
