//! `hero backup` and `hero restore` of a namespace that is in use.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::until;
use crate::support::{Hero, Redis, keys, wait_until};

#[test]
fn backup_during_a_run_restores_elsewhere_and_every_job_ends() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    let batch: Vec<String> = (0..600)
        .map(|n| {
            let script = if n % 50 == 0 { "throw 1" } else { "sleep(0.005); 7" };
            format!("{{\"id\":\"j{n}\",\"script_type\":\"osis\",\"script\":\"{script}\",\"retries\":1}}\n")
        })
        .collect();
    hero.run_with_input(&["submit", "--batch", "-"], &batch.concat()).code(0);
    wait_until("some have finished", || redis.count("osis", "finished") > 20);
    let file = redis.folder().join("hero.jsonl");
    let file = file.to_str().expect("text");
    hero.run(&["backup", file]).code(0);
    assert!(redis.count("osis", "finished") < 588, "the backup came after the last job");
    let mode = fs::metadata(file).expect("written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let other = Redis::start();
    let there = Hero::on(&other);
    let said = there.run(&["--json", "restore", "--into", "copy", file]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("\"jobs\":600"), "{said:?}");
    let there = there.set("redis.namespace", "\"copy\"");
    let _actor = there.actor("osis-default-1").start();
    let _supervisor = there.supervisor().start();
    let status = |n: usize| other.field(&format!("copy:job:j{n}"), "status");
    for n in 0..600 {
        let expected = if n % 50 == 0 { "error" } else { "finished" };
        wait_until(&format!("j{n} has ended"), || status(n).as_deref() == Some(expected));
    }
    there.run(&["restore", file]).code(65);
}

#[test]
fn shipped_access_rules_are_enough_for_a_backup_and_a_restore() {
    const EXAMPLE: &str = include_str!("../../packaging/redis/hero-acl.conf");
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let cron = redis.folder().join("cron.d");
    fs::create_dir(&cron).expect("a folder");
    let text = "[cron.tick]\nschedule = \"* * * * *\"\ntype = \"osis\"\nscript = \"1\"\n";
    fs::write(cron.join("a.toml"), text).expect("written");
    let hero = hero
        .set("supervisor.cron_dir", &format!("{:?}", cron.display().to_string()))
        .set("limit.one", "{ running = 1, rate = \"100/h\", key = \"k\" }");
    let _actor = hero.actor("osis-default-1").start();
    let supervisor = hero.supervisor().start();
    wait_until("the periodic job is known", || !redis.keys(&keys::cron("tick")).is_empty());
    hero.run(&["cron", "run", "tick"]).code(0);
    let ends = keys::keys().cron_ended(&"tick".parse().expect("legal"));
    wait_until("it has succeeded", || redis.field(&ends, "succeeded_id").is_some());
    hero.run(&["exec", "-t", "osis", "-e", "print(1)"]).code(0);
    let object = "{\"type\":\"person\",\"object\":{\"id\":\"a\",\"age\":1}}\n";
    hero.run_with_input(&["osis", "import"], object).code(0);
    for id in ["a", "b", "c"] {
        let script = if id == "a" { "loop {}" } else { "1" };
        hero.run(&["submit", "-t", "osis", "--limit-key", "k", "--id", id, "-e", script]).code(0);
        if id == "a" {
            until(&redis, "a", "started");
        }
    }
    hero.run(&[
        "submit",
        "-t",
        "osis",
        "--id",
        "d",
        "--after",
        "a",
        "--unique-key",
        "u",
        "-e",
        "1",
    ])
    .code(0);
    wait_until("one is held", || !redis.keys(&keys::prefix("LIMIT_HELD")).is_empty());
    let graph = "id = \"g\"\n[job.x]\ntype = \"bash\"\nscript = \"true\"\n\
                 [on_end]\ntype = \"osis\"\nscript = \"1\"\n";
    fs::write(redis.folder().join("g.toml"), graph).expect("written");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    drop(supervisor);
    let rules = EXAMPLE.lines().find_map(|line| line.strip_prefix("user hero-backup "));
    let rules =
        rules.expect("the user").split(' ').map(|word| match word.strip_prefix("#SHA256") {
            Some(_) => ">secret",
            None => word,
        });
    let rules: Vec<&str> = rules.collect();
    let password = redis.folder().join("password");
    fs::write(&password, "secret").expect("written");
    let file = redis.folder().join("hero.jsonl");
    let file = file.to_str().expect("text");
    let other = Redis::start();
    for (redis, words) in [(&redis, ["backup", file]), (&other, ["restore", file])] {
        redis.ask_with::<String, _>("ACL SETUSER hero-backup", &rules);
        let done = Hero::on(redis)
            .set("redis.username", "\"hero-backup\"")
            .set("redis.password_file", &format!("{:?}", password.display().to_string()))
            .set("supervisor.cron_dir", &format!("{:?}", cron.display().to_string()))
            .run(&words);
        assert_eq!(done.code, 0, "{done:?}");
        let denied: Vec<Vec<redis::Value>> = redis.ask("ACL LOG");
        assert!(denied.is_empty(), "{denied:#?}");
    }
    assert_eq!(other.keys(&keys::cron("tick")).len(), 1);
    assert_eq!(other.field(&ends, "succeeded_id"), redis.field(&ends, "succeeded_id"));
    assert_eq!(other.field(&ends, "overdue_us"), None, "a supervisor decides that");
    assert_eq!(other.keys(&keys::keys().limit_starts("one")).len(), 1);
    let graph = keys::keys().graph(&"g".parse().expect("legal"));
    assert_eq!(other.field(&graph, "jobs").as_deref(), Some("1"));
    assert_eq!(other.list(&keys::work("type:osis")), ["a", "b", "c"]);
}

#[test]
fn incomplete_or_changed_file_is_rejected_before_anything_is_written() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for n in 0..20 {
        hero.run(&["submit", "-t", "osis", "--id", &format!("j{n}"), "-e", "1"]).code(0);
    }
    let path = redis.folder().join("hero.jsonl");
    let file = path.to_str().expect("text");
    hero.run(&["backup", file]).code(0);
    let whole = fs::read(file).expect("readable");
    let restore = |bytes: &[u8], why: &str| {
        fs::write(file, bytes).expect("written");
        let done = hero.run(&["restore", "--into", "copy", file]);
        assert_eq!(done.code, 65, "{done:?}");
        assert!(done.stderr.contains(why), "{done:?}");
        assert_eq!(redis.keys("copy:"), Vec::<String>::new());
    };
    restore(&whole[..whole.len() - 5], "cut off");
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines");
    restore(&whole[..=last], "cut off");
    let changed = String::from_utf8(whole.clone()).expect("text").replacen("j7", "j8", 1);
    restore(changed.as_bytes(), "changed after the backup");
    restore(b"{\"a\": 1}\n", "line 1");
    fs::write(file, &whole).expect("written");
    hero.run(&["restore", "--into", "copy", file]).code(0);
    hero.run(&["restore", "--into", "copy", file]).code(65);
    hero.run(&["restore", "/nowhere"]).code(66);
}

#[test]
fn backup_that_cannot_be_written_leaves_the_old_file() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let path = redis.folder().join("hero.jsonl");
    fs::write(&path, "old").expect("written");
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let away = Redis::absent(false);
    Hero::on(&away).run(&["backup", path.to_str().expect("text")]).code(69);
    assert_eq!(fs::read_to_string(&path).expect("kept"), "old");
    hero.run(&["backup", "/nowhere/hero.jsonl"]).code(74);
    hero.run(&["backup", path.to_str().expect("text")]).code(0);
    assert!(fs::read_to_string(&path).expect("replaced").contains("\"backup\""));
    until(&redis, "a", "dispatched");
}

#[test]
fn graph_is_restored_with_its_jobs_and_ends_there() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let graph = "id = \"g\"\nname = \"night\"\n[job.a]\nid = \"a\"\ntype = \"osis\"\nscript = \"1\"\n\
                 [job.b]\nid = \"b\"\ntype = \"bash\"\nafter = [\"a\"]\nscript = \"echo b\"\n\
                 [on_end]\ntype = \"osis\"\nscript = '`${ENV.HERO_GRAPH_NAME}: ${ENV.HERO_GRAPH_FINISHED}`'\n";
    fs::write(redis.folder().join("g.toml"), graph).expect("written");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    hero.run(&["job", "wait", "a"]).code(0);
    let file = redis.folder().join("hero.jsonl");
    let file = file.to_str().expect("text");
    hero.run(&["backup", file]).code(0);
    let other = Redis::start();
    let there = Hero::on(&other);
    there.run(&["restore", file]).code(0);
    there.run(&["graph", "show", "g"]).code(0);
    assert!(there.run(&["graph", "list"]).stdout.contains("1 of 2 done, 1 waiting"));
    let _units = ["osis-default-1", "bash-default-1"].map(|unit| there.actor(unit).start());
    there.run(&["graph", "wait", "g"]).code(0);
    let key = keys().graph(&"g".parse().expect("legal"));
    wait_until("it calls back", || other.field(&key, "on_end_job").is_some());
    let called = other.field(&key, "on_end_job").expect("called");
    there.run(&["job", "wait", &called]).code(0).stdout("night: 2\n");
    // The end of a graph that had ended comes no second time.
    there.run(&["backup", file]).code(0);
    let third = Redis::start();
    let hero = Hero::on(&third);
    hero.run(&["restore", file]).code(0);
    assert_eq!(third.field(&key, "ends").as_deref(), Some("1"));
    assert_eq!(third.field(&key, "open"), None);
    assert!(hero.run(&["graph", "list"]).stdout.contains("2 of 2 done"));
}

#[test]
fn ended_jobs_keep_their_order_and_help_says_what_is_not_in_a_backup() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    for n in 0..6 {
        for (id, script) in [("good", "1"), ("bad", "throw 1")] {
            let id = format!("{id}-{n}");
            hero.run(&["exec", "-t", "osis", "--retries", "0", "--id", &id, "-e", script]);
        }
    }
    let seen = |hero: &Hero| {
        let list = |status: &str| {
            let listed = hero.run(&["--json", "job", "list", "--status", status]).code(0).stdout;
            let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
            let jobs = listed["jobs"].as_array().expect("jobs").clone();
            jobs.iter().map(|job| job["id"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let lists: Vec<Vec<String>> = ["finished", "failed"].map(list).into();
        let errors = hero.run(&["--json", "job", "errors"]).code(0).stdout;
        (lists, errors)
    };
    let before = seen(&hero);
    assert_eq!(before.0[0][0], "good-5");
    let file = redis.folder().join("hero.jsonl");
    let file = file.to_str().expect("text");
    hero.run(&["backup", file]).code(0);
    let other = Redis::start();
    let there = Hero::on(&other);
    there.run(&["restore", file]).code(0);
    assert_eq!(seen(&there), before);
    assert!(hero.run(&["backup", "--help"]).stdout.contains("counters of hero stats"));
}

#[test]
fn backup_says_how_many_jobs_that_have_not_ended_lack_their_input_files() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let input = redis.folder().join("data.csv");
    fs::write(&input, "a,b\n").expect("written");
    let input = format!("data.csv={}", input.display());
    let with_file = |id: &str| {
        hero.run(&["submit", "-t", "bash", "--id", id, "--input", &input, "-e", "true"]).code(0);
    };
    let file = redis.folder().join("hero.jsonl");
    let file = file.to_str().expect("text");
    hero.run(&["submit", "-t", "bash", "--id", "none", "-e", "true"]).code(0);
    let first = hero.run(&["backup", file]).code(0);
    assert!(!first.stderr.contains("input files"), "{first:?}");
    with_file("ended");
    {
        let _bash = hero.actor("bash-default-1").start();
        until(&redis, "ended", "finished");
    }
    with_file("one");
    hero.run(&["backup", file]).code(0).says("hero: 1 job that has not ended has input files");
    with_file("two");
    let said = hero.run(&["--json", "backup", file]).code(0);
    assert!(said.stdout.contains("\"jobs_without_files\":2"), "{said:?}");
    assert!(said.stderr.contains("2 jobs that have not ended have input files"), "{said:?}");
}
