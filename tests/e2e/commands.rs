//! The command line: exit codes, lists, and errors of a broken configuration.

use crate::support::{Hero, Redis, wait_until};

use super::{commands_in, until};

#[test]
fn exit_codes_are_those_of_the_help() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    for (code, args) in [
        (0, vec!["exec", "-t", "osis", "-e", "1"]),
        (0, vec!["--help"]),
        (0, vec!["--version"]),
        (1, vec!["exec", "-t", "osis", "-e", "throw \"no\""]),
        (2, vec!["exec", "--no-such-option"]),
        (2, vec!["dance"]),
        (2, vec![]),
        (65, vec!["submit", "-t", "Osis", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "-g", "a:b", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "-i", "0", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "--id", "a:b", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "--priority", "3", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "--timeout", "never", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "--after", "nobody", "-e", "1"]),
        (65, vec!["submit", "-t", "osis", "--timeout", "1000h", "-e", "1"]),
        (66, vec!["job", "show", "nobody"]),
        (66, vec!["job", "stop", "nobody"]),
        (66, vec!["exec", "no-such-file.rhai"]),
        (66, vec!["run", "nobody"]),
        (75, vec!["exec", "--wait", "50ms", "-t", "sal", "-e", "1"]),
    ] {
        let done = hero.run(&args).code(code);
        if code != 0 {
            assert!(!done.stderr.is_empty(), "{args:?} says nothing");
            assert!(done.stdout.is_empty(), "{args:?} prints {}", done.stdout);
        }
    }
    assert!(redis.all("JOB").len() == 3, "only three of them were jobs");
}

#[test]
fn errors_say_what_failed_and_what_to_do() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "bad", "-e", "throw \"no\""]).code(1);
    let file = redis.folder().join("other");
    std::fs::write(&file, "no backup\n").expect("a file");
    let file = file.to_str().expect("a path of text");
    for (args, said) in [
        (vec!["job", "output", "bad"], "job bad failed: no (line 1"),
        (vec!["logs", "bad"], "a similar subcommand exists: 'job logs'"),
        (vec!["job", "cancel", "bad"], "'job stop'"),
        (vec!["restart", "bad"], "a similar subcommand exists: 'job retry'"),
        (vec!["cron", "pause", "a"], "'cron disable'"),
        (vec!["run", "a.py"], "a script is run by hero exec a.py"),
        (vec!["submit", "-t", "osis", "--at", "10m", "-e", "1"], "--delay 10m"),
        (vec!["submit", "-t", "osis", "--delay", "never", "-e", "1"], "hero: --delay: "),
        (
            vec!["submit", "-t", "python", "--memory", "128M", "-e", "1"],
            "with its unit such as 512MiB",
        ),
        (vec!["job", "tell", "bad", "a", "--data", "yes"], "--data is no JSON"),
        (vec!["job", "list", "--status", "done"], "unknown state `done`: expected waiting"),
        (vec!["queue", "pause", "bash"], "did you mean `type:bash`?"),
        (vec!["events", "-f", "--job", "nobody"], "no such job: nobody"),
        (vec!["submit", "-t", "osis", "-e", ""], "it is empty"),
        (vec!["metrics", "--json"], "hero status --json"),
        (vec!["restore", file], "it is no backup of Hero"),
        (vec!["backup", "."], "it is a folder; name a file in it"),
        (
            vec!["submit", "-t", "osis", "--retention", "100000d", "-e", "1"],
            "--retention: `100000d` is more than 315360000 seconds, the limit",
        ),
        (
            vec!["exec", "--wait", "10ms", "-t", "sal", "-e", "1"],
            "waits for an actor: no live one claims jobs of type:sal",
        ),
    ] {
        hero.run(&args).says(said);
    }
    for id in ["one", "two"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "40 + 2"]).code(0);
    }
    hero.run(&["job", "wait", "one", "two"]).code(0).stdout("42\n42\n");
    hero.run(&["job", "wait", "bad", "two"]).code(1).stdout("42\n").says("job bad failed: no");
    hero.run(&["job", "wait", "one", "nobody"]).code(66).stdout("");
    // The variable HERO_CONFIG, which is set here, does not make an option of messages on usage.
    let usage = hero.run(&["dead", "retry"]).code(2).stderr;
    assert!(
        usage.contains("Usage: hero dead retry <ID>...") && !usage.contains("--config"),
        "{usage}"
    );
    for (words, one_of) in [
        (&["dead", "retry"][..], "<ID|--all>"),
        (&["dead", "delete"], "<ID|--all>"),
        (&["queue", "pause"], "<QUEUE|--all|--type <TYPE>|--group <GROUP>>"),
        (&["queue", "drain"], "<QUEUE|--all|--type <TYPE>|--group <GROUP>>"),
        (&["amqp", "dlq", "retry"], "<IDS|--all|--reason <TEXT>>"),
        (&["amqp", "shutdown"], "<--node <NODE>|--tag <TAG>>"),
    ] {
        hero.run(words).code(2).says(one_of);
    }
    hero.run(&["actor", "drain", "osis-default-1"])
        .code(0)
        .stdout("osis:default:1 told to drain\n");
}

#[test]
fn unreachable_redis_is_named_and_exits_with_69() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    for args in
        [vec!["submit", "-t", "osis", "-e", "1"], vec!["job", "list"], vec!["actor", "list"]]
    {
        hero.run(&args).code(69).says("redis.sock");
    }
}

#[test]
fn redis_that_refuses_the_password_exits_with_77() {
    let redis = Redis::start();
    redis.run("CONFIG SET requirepass secret");
    let hero = Hero::on(&redis).with_default_user();
    hero.run(&["job", "list"]).code(77);
    hero.actor("osis-default-1").begin().ends().code(77);
}

#[test]
fn broken_configuration_exits_with_78_and_names_file_line_column_and_nearest_key() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let file = redis.folder().join("broken.toml");
    let path = file.to_str().expect("a path of text");
    for (text, place, said) in [
        ("[job]\ntimeuot = \"1s\"\n", ":2:1", "timeout"),
        ("[job]\n\ntimeout = 5\n", ":3:11", "\"15s\""),
        ("[actor]\ntasks = \"many\"\n", ":2:9", ""),
        ("[redis]\nurl = \"http://x\"\n", ":2:7", "redis://"),
        ("[job\n", ":1:", ""),
    ] {
        std::fs::write(&file, text).expect("writing a broken configuration");
        for args in [vec!["check"], vec!["run", "supervisor"], vec!["job", "list"]] {
            let args = [vec!["--config", path], args].concat();
            let done = hero.run(&args).code(78);
            let wanted = format!("broken.toml{place}");
            assert!(done.stderr.contains(&wanted), "{text}: no {wanted} in {}", done.stderr);
            assert!(done.stderr.contains(said), "{text}: no {said} in {}", done.stderr);
        }
    }
    std::fs::remove_file(&file).expect("removing it");
    hero.run(&["--config", path, "check"]).code(78);
    hero.run(&["check"]).code(0);
}

#[test]
fn jobs_are_listed_by_state_and_type_in_pages() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["a", "b", "c"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "1"]).code(0);
    }
    hero.run(&["submit", "-t", "sal", "--id", "s", "-e", "1"]).code(0);
    let list = |args: &[&str]| -> serde_json::Value {
        let args = [&["--json", "job", "list"], args].concat();
        serde_json::from_str(&hero.run(&args).code(0).stdout).expect("one JSON document")
    };
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let jobs = page["jobs"].as_array().expect("a list").iter();
        jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&list(&["--type", "sal"])), ["s"]);
    assert_eq!(ids(&list(&["--status", "finished"])), [] as [&str; 0]);
    let first = list(&["--status", "dispatched", "--type", "osis", "--limit", "2"]);
    assert_eq!(ids(&first), ["c", "b"]);
    let cursor = first["next"].as_str().expect("there is more");
    let rest = ["--status", "dispatched", "--type", "osis", "--limit", "2", "--cursor", cursor];
    assert_eq!(ids(&list(&rest)), ["a"]);
    let queues = hero.run(&["--json", "queue", "list"]).code(0).stdout;
    let queues: serde_json::Value = serde_json::from_str(&queues).expect("one JSON document");
    assert_eq!(queues["queues"].as_array().map(Vec::len), Some(2), "{queues}");
}

#[test]
fn log_is_followed_until_the_job_ends() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _sal = hero.actor("sal-default-1").start();
    let gate = redis.folder().join("gate");
    let script =
        format!("print(\"one\"); while !exist({gate:?}) {{ sleep(0.01); }} print(\"two\"); 1");
    hero.run(&["submit", "-t", "sal", "--id", "a", "-e", &script]).code(0);
    let logs = hero.begin(&["job", "logs", "-f", "a"]);
    wait_until("the first line is shown", || logs.out() == "one\n");
    std::fs::write(&gate, "").expect("opening the gate");
    logs.ends().code(0).stdout("one\ntwo\n");
    until(&redis, "a", "finished");
}

#[test]
fn job_is_shown_deleted_and_run_again() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let shown = hero.run(&["--json", "job", "show", "a"]).code(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("one JSON document");
    assert_eq!((&shown["status"], &shown["output"]), (&"finished".into(), &"1".into()));
    hero.run(&["job", "retry", "a"]).code(0);
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
    hero.run(&["job", "delete", "a"]).code(0);
    hero.run(&["job", "show", "a"]).code(66);
    assert!(redis.all("JOB").is_empty());
}

#[test]
fn check_as_another_user_fails_on_a_file_that_the_user_may_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let set_mode = |path: &std::path::Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("a mode");
    };
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    set_mode(redis.folder(), 0o755);
    let file = redis.folder().join("own.toml");
    let drop_in = redis.folder().join("own.toml.d/late.toml");
    std::fs::create_dir(redis.folder().join("own.toml.d")).expect("a folder");
    for path in [&file, &drop_in] {
        std::fs::write(path, format!("redis.url = {:?}", redis.url())).expect("written");
        set_mode(path, 0o644);
    }
    let path = file.to_str().expect("text");
    let check = || hero.run(&["--config", path, "check", "--user", "nobody"]);
    check().code(0);
    set_mode(&drop_in, 0o600);
    let said = format!("user nobody cannot read {} (mode 0600); put a copy of ", drop_in.display());
    check().code(78).says(&said);
    hero.run(&["--config", path, "check"]).code(0);
    hero.run(&["check", "--user", "no-such-user-of-hero"]).code(66).says("no such user");
}

#[test]
fn wait_ends_with_the_exit_code_of_exec_and_names_the_log() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _bash = hero.actor("bash-default-1").start();
    for (id, script, code) in [("seven", "exit 7", 7), ("killed", "kill -9 $$", 137)] {
        hero.run(&["exec", "-t", "bash", "--id", id, "-e", script]).code(code);
        hero.run(&["job", "wait", id]).code(code).says(&format!("hero job logs {id}"));
        hero.run(&["--json", "job", "wait", id]).code(code);
    }
    hero.run(&["submit", "-t", "bash", "--id", "good", "-e", "echo 1"]).code(0);
    hero.run(&["job", "wait", "good", "seven", "killed"]).code(7).stdout("1\n");
}

#[test]
fn no_line_of_a_help_ends_with_a_blank() {
    // A line of blanks alone parts the paragraphs of an option.
    fn has_blanks(line: &str) -> bool {
        line.ends_with(' ') && !line.trim().is_empty()
    }
    fn look(hero: &Hero, above: &[&str]) {
        let help = hero.run(&[above, &["--help"]].concat()).code(0).stdout;
        let faulty: Vec<&str> = help.lines().filter(|line| has_blanks(line)).collect();
        assert_eq!(faulty, [] as [&str; 0], "{above:?}");
        assert!(!help.contains("\\\""), "{above:?}: {help}");
        for name in commands_in(&help) {
            look(hero, &[above, &[name]].concat());
        }
    }
    let redis = Redis::absent(false);
    look(&Hero::on(&redis), &[]);
}

#[test]
fn job_that_has_not_started_and_a_prerequisite_are_named_and_more_can_be_copied() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let graph = "id = \"g\"\n[job.load]\nid = \"x1\"\ntype = \"osis\"\nscript = \"1\"\n\
                 [job.sum]\ntype = \"osis\"\nafter = [\"load\"]\nscript = \"1\"\n";
    std::fs::write(redis.folder().join("g.toml"), graph).expect("a file");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    hero.run(&["job", "logs", "x1"]).code(0).says("job x1 has not started: it is dispatched");
    hero.run(&["job", "stop", "x1"]).code(0);
    until(&redis, "x1", "error");
    let shown = || hero.run(&["graph", "show", "g"]).code(0).stdout;
    wait_until("its dependent has failed", || shown().contains("prerequisite failed: load"));
    let listed = hero.run(&["job", "list", "--limit", "1"]).code(0);
    let more = listed.stderr.trim_end().strip_prefix("more: hero ").expect("a command").to_owned();
    assert!(more.starts_with("job list --limit 1 --until 20"), "{more}");
    let first = listed.stdout;
    let second = hero.run(&more.split(' ').collect::<Vec<_>>()).code(0).stdout;
    assert!(
        second.lines().count() == 2 && second.lines().last() != first.lines().last(),
        "{second}"
    );
}
