//! `hero doctor`: what it finds on a machine and in a namespace, and what it advises.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Hero, Redis, Served, wait_until};

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
    let hero = Hero::on(&redis).with_default_user();
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
    let hero = Hero::on(&redis).with_default_user();
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

/// Every way to look at a namespace tells that Redis refuses writes, and not that nobody is live.
fn all_tell_the_refusal(site: &Served, cause: &str, remedy: &str) {
    let hero = &site.hero;
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(69);
    let check = hero.run(&["status", "--check"]).code(2).stdout;
    assert!(check.starts_with(&format!("CRITICAL - {cause}")), "{check}");
    let status = hero.run(&["status"]).code(0).stdout;
    assert!(status.starts_with("WRONG: redis refuses every write"), "{status}");
    let all = findings(hero);
    let of = found(&all, cause);
    assert_eq!((&of["state"], &of["kind"]), (&"error".into(), &"redis_refuses_writes".into()));
    assert!(of["remedy"].as_str().is_some_and(|of| of.contains(remedy)), "{of}");
    let health = site.call("system.health", &serde_json::json!({}));
    assert_eq!(health["problems"][0]["kind"], "redis_refuses_writes", "{health}");
    let get = |path: &str, accept: &str| site.unix().get(path, &[("accept", accept)]);
    let ready = get("/readyz", "*/*");
    assert_eq!((ready.status, ready.text().as_str()), (503, "redis refuses writes\n"));
    let told = format!("{check}{status}{all:?}{health}");
    for wrong in ["0 live supervisors", "few_supervisors", "start one"] {
        assert!(!told.contains(wrong), "{wrong}: {told}");
    }
    // These are read once in a while.
    let labels = "kind=\"redis_refuses_writes\",severity=\"critical\",subject=\"redis\"";
    let series = format!("hero_problems{{{labels}}} 1\n");
    wait_until("the metrics have it", || get("/metrics", "text/plain").text().contains(&series));
    let page = || get("/", "text/html").text();
    wait_until("the page tells it", || page().contains("refuses every write"));
}

#[test]
fn redis_that_refuses_writes_is_reported_alike_by_all_and_is_the_cause_of_missing_supervisors() {
    let redis = Redis::start();
    let site =
        Served::with(Hero::on(&redis).with_default_user().set("check.durable", "false"), &redis);
    let check = || site.hero.run(&["status", "--check"]).code;
    let is_well = || check() == 0 && site.unix().get("/readyz", &[]).status == 200;
    wait_until("all is well", is_well);
    redis.run("CONFIG SET min-replicas-to-write 1");
    let remedy = "CONFIG SET min-replicas-to-write 0";
    all_tell_the_refusal(&site, "redis refuses every write: min-replicas-to-write wants", remedy);

    // As half a minute later, when no presence is left.
    redis.run("CONFIG SET min-replicas-to-write 0");
    site.supervisor.signal(Signal::SIGSTOP);
    for key in redis.all("SUPERVISOR") {
        redis.delete(&key);
    }
    redis.run("CONFIG SET min-replicas-to-write 1");
    let status = site.hero.run(&["status", "--check"]).code(2).stdout;
    assert!(status.starts_with("CRITICAL - redis refuses every write"), "{status}");
    assert!(!status.contains("live supervisors (threshold"), "{status}");
    let text = site.hero.run(&["status"]).code(0).stdout;
    assert!(text.contains("supervisors are not known") && !text.contains("start one"), "{text}");
    redis.run("CONFIG SET min-replicas-to-write 0");
    site.supervisor.signal(Signal::SIGCONT);
    wait_until("all is well again", is_well);
}

#[test]
fn snapshot_that_fails_is_an_error_only_while_it_makes_redis_refuse_writes() {
    let redis = Redis::start();
    let site =
        Served::with(Hero::on(&redis).with_default_user().set("check.durable", "false"), &redis);
    let is_well = || site.hero.run(&["status", "--check"]).code == 0;
    wait_until("all is well", is_well);
    // A folder in the place of the snapshot.
    let snapshot = redis.folder().join("dump.rdb");
    std::fs::create_dir(&snapshot).expect("a folder");
    redis.run("BGSAVE");
    let has_failed =
        || redis.ask::<String>("INFO persistence").contains("rdb_last_bgsave_status:err");
    wait_until("the snapshot has failed", has_failed);
    let accepts = findings(&site.hero);
    let of = found(&accepts, "redis cannot write its snapshot");
    let text = "redis cannot write its snapshot";
    assert_eq!((&of["state"], &of["text"]), (&"warning".into(), &text.into()));
    assert_eq!(site.unix().get("/readyz", &[]).status, 200);
    redis.ask_with::<String, _>("CONFIG SET save", &["10000 10000"]);
    let cause = "redis refuses every write, as it cannot write its snapshot";
    all_tell_the_refusal(&site, cause, "whether its disk is full");
    std::fs::remove_dir(&snapshot).expect("removed");
    redis.run("BGSAVE");
    wait_until("all is well again", is_well);
}

#[test]
fn redis_that_does_not_answer_and_a_wrong_configuration_are_findings() {
    let mut redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user();
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
    let with = Hero::on(&redis)
        .with_default_user()
        .set("redis.password_file", &format!("{:?}", file.display().to_string()));
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
    let hero = Hero::on(&redis).with_default_user();
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
fn doctor_of_a_development_instance_checks_its_folders_and_not_those_of_the_machine() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis).with_default_user();
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
