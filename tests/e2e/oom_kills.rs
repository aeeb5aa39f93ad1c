//! Actors that the kernel kills for lack of memory, and the memory that jobs may take.

use crate::support::{Hero, Redis, keys, wait_until};

/// Returns whether the kernel of this machine has killed a process for lack of memory before.
fn has_killed() -> bool {
    let counters = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    counters.lines().any(|line| line.starts_with("oom_kill ") && line != "oom_kill 0")
}

#[test]
fn actor_that_was_killed_for_lack_of_memory_charges_no_job_and_is_named() {
    if !has_killed() {
        return;
    }
    let redis = Redis::start();
    let folder = redis.folder().display().to_string();
    let hero = Hero::on(&redis).set("type.bash.sandbox.read", &format!("[{folder:?}]"));
    let mut actor = hero.actor("bash-default-1").start();
    let go = redis.folder().join("go");
    let script = format!("until test -e {}; do sleep 0.05; done; echo done", go.display());
    for id in ["a", "b"] {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", &script]).code(0);
        let status = || redis.field(&keys::job(id), "status").unwrap_or_default();
        wait_until("it runs", || status() == "started");
    }
    actor.kill();
    // As if the kernel had killed none before this one.
    let name = "bash:default:1".parse().expect("an actor");
    let key = keys::keys().presence(&name);
    let text: String = redis.ask(&format!("GET {key}"));
    let mut presence: serde_json::Value = serde_json::from_str(&text).expect("a presence");
    presence["oom_kills"] = 0.into();
    redis.ask_with::<String, _>("SET", &[&key, &presence.to_string(), "KEEPTTL"]);
    let actor = hero.actor("bash-default-1").start();
    assert!(actor.err().contains("was killed as memory ran out"), "{}", actor.err());
    let problems = hero.run(&["doctor", "--problems"]).stdout;
    assert!(
        problems.contains("bash:default:1") && problems.contains("memory ran out"),
        "{problems}"
    );
    std::fs::write(go, "").expect("a file");
    for id in ["a", "b"] {
        hero.run(&["job", "wait", id]).code(0).stdout("done\n");
        assert_eq!(redis.field(&keys::job(id), "crashes"), None);
        let shown = hero.run(&["job", "show", id]).code(0).stdout;
        assert!(shown.contains("was killed as memory ran out"), "{shown}");
    }
}

#[test]
fn check_compares_the_memory_of_each_unit_and_of_all_together_with_that_of_the_machine() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.bash.sandbox.job_memory", "\"1GiB\"")
        .set("unit.one.role", "\"actor\"")
        .set("unit.one.actors", "[{ type = \"bash\", instance = 1, tasks = 2 }]")
        .set("unit.two.role", "\"actor\"")
        .set("unit.two.actors", "[{ type = \"bash\", instance = 2, tasks = 3 }]");
    let told = hero.run(&["check"]).code(0).stdout;
    for line in [
        "unit one: the jobs may take 2GiB of memory at once; this machine has ",
        "unit two: the jobs may take 3GiB of memory at once; this machine has ",
        "all units together: the jobs may take 5GiB of memory at once; this machine has ",
    ] {
        assert!(told.contains(line), "{told}");
    }
}
