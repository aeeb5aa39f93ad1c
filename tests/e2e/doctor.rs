//! `hero doctor`: what it finds on a machine and in a namespace, and what it advises.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Hero, Redis, wait_until};

fn findings(hero: &Hero) -> Vec<Value> {
    let done = hero.run(&["doctor", "--json"]);
    let document: Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    document["findings"].as_array().cloned().unwrap_or_default()
}

fn found<'a>(findings: &'a [Value], text: &str) -> &'a Value {
    let has = |of: &&Value| of["text"].as_str().is_some_and(|of| of.contains(text));
    findings.iter().find(has).unwrap_or_else(|| panic!("nothing says {text}: {findings:#?}"))
}

#[test]
fn healthy_namespace_has_nothing_wrong_and_says_what_was_looked_at() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    let problems = || hero.run(&["doctor", "--problems"]);
    wait_until("all is well", || problems().code == 0);
    let page = hero.run(&["doctor"]).code(0).stdout;
    for line in [
        "this machine\n  ok       hero ",
        "can run: ",
        "\nredis\n  ok       redis+unix://",
        "keeps every write (appendonly yes",
        "1 supervisor and 1 actor are live, and no queue waits too long",
        "\nnothing is wrong\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

#[test]
fn each_fault_is_found_with_what_to_do() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.run("CONFIG SET maxmemory-policy allkeys-lru");
    hero.run(&["submit", "-t", "osis", "-g", "io", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "python", "-e", "1"]).code(0);
    hero.run(&["queue", "pause", "type:python"]).code(0);
    let all = findings(&hero);
    for (text, remedy) in [
        ("may evict accepted jobs", "CONFIG SET maxmemory-policy noeviction"),
        ("0 live supervisors", "systemctl enable --now hero@supervisor"),
        ("queue type:osis:group:io has 1 job and no live actor", "hero@osis-io-1"),
    ] {
        let of = found(&all, text);
        assert!(of["remedy"].as_str().is_some_and(|of| of.contains(remedy)), "{of}");
        assert!(matches!(of["state"].as_str(), Some("warning" | "error")), "{of}");
    }
    let paused = found(&all, "queue type:python is paused");
    assert_eq!(
        (&paused["state"], &paused["remedy"]),
        (&"note".into(), &"resume it: hero queue resume type:python".into())
    );
    assert_eq!(hero.run(&["doctor"]).code, 1);
}

#[test]
fn redis_that_does_not_answer_and_a_wrong_configuration_are_findings() {
    let mut redis = Redis::start();
    let hero = Hero::on(&redis);
    // The connection is from before, and stays.
    let mut link = redis.link();
    redis.run("CONFIG SET requirepass secret");
    let refused = findings(&hero);
    let refusal = found(&refused, "NOAUTH");
    assert_eq!(refusal["area"], "redis");
    let remedy = refusal["remedy"].as_str().expect("text");
    assert!(remedy.contains("password") && remedy.contains("/etc/credstore"), "{remedy}");
    let check = hero.run(&["status", "--check"]).code(2).stdout;
    assert!(check.starts_with("CRITICAL - redis at") && check.contains("NOAUTH"), "{check}");
    hero.run(&["status"]).code(77).says("this command has no password");
    let taken = redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("").exec(&mut link);
    taken.expect("no password any more");
    let file = redis.folder().join("password");
    std::fs::write(&file, "secret").expect("written");
    let with =
        Hero::on(&redis).set("redis.password_file", &format!("{:?}", file.display().to_string()));
    let none = "without any password configured for the default user";
    with.run(&["status"]).code(77).says(none);
    assert_eq!(found(&findings(&with), none)["area"], "redis");
    hero.run(&["status"]).code(0);
    redis.kill();
    let down = hero.run(&["doctor", "--problems"]).code(1).stdout;
    assert!(
        down.contains("-> see that redis runs") && down.ends_with("1 error, 0 warnings\n"),
        "{down}"
    );
    let wrong = hero.run(&["--config", "/none.toml", "doctor"]).code(1).stdout;
    assert!(wrong.contains("ERROR    cannot read the configuration /none.toml"), "{wrong}");
}

#[test]
fn stopped_actor_with_jobs_in_its_queue_is_found() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let osis = hero.actor("osis-default-1").start();
    wait_until("all is well", || hero.run(&["doctor"]).code == 0);
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    let all = findings(&hero);
    let of = found(&all, "queue type:osis has 1 job and no live actor");
    assert_eq!((&of["area"], &of["state"]), (&"jobs".into(), &"warning".into()));
}

#[test]
fn doctor_of_a_development_instance_looks_at_its_folders_and_not_at_those_of_the_machine() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let kept = redis.folder().join("kept").display().to_string();
    for keep in [&[][..], &["--keep", &kept]] {
        let command =
            "hero doctor; dirname \"$HERO_CONFIG\"; readlink \"$(dirname \"$HERO_CONFIG\")/run\"";
        let dev = [&["dev"], keep, &["--", "sh", "-c", command]].concat();
        let done = hero.run(&dev).code(0);
        let lines: Vec<&str> = done.stdout.lines().collect();
        let [page @ .., stage, jobs] = lines.as_slice() else { panic!("{done:?}") };
        for (folder, what) in
            [(jobs, "the folders of jobs"), (stage, "redis, the units and their sockets")]
        {
            let found = page.iter().find(|line| line.ends_with(&format!(" free for {what}")));
            assert!(found.is_some_and(|line| line.contains(&format!(" {folder}: "))), "{page:#?}");
        }
        let page = page.join("\n");
        for of_machine in ["/run: ", "/run/hero", "/var/lib/", "/var/cache/", "/var/log/"] {
            assert!(!page.contains(of_machine), "{of_machine}: {page}");
        }
        assert!(page.contains("the units of this hero dev are no units of systemd"), "{page}");
    }
}
