//! Scripts that wait without a task: for an event, for jobs, for a time.

use std::fs;
use std::path::Path;

use nix::unistd::{Group, getgid};
use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, keys, needs, wait_until};

/// Returns an example of this folder.
fn example(name: &str) -> String {
    format!("{}/examples/wait/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn waits(redis: &Redis, id: &str) -> bool {
    field(redis, id, "wait").is_some()
}

fn output(hero: &Hero, id: &str) -> String {
    hero.run(&["job", "output", id]).code(0).stdout
}

#[test]
fn deploy_waits_for_its_approval_without_a_task_in_every_language() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let has_node = needs("node", || Path::new("/usr/bin/node").exists());
    for (unit, script, is_there) in [
        ("python-default-1", "deploy.py", true),
        ("bash-default-1", "deploy.sh", true),
        ("node-default-1", "deploy.js", has_node),
        ("sal-default-1", "deploy.rhai", true),
    ] {
        if is_there {
            let _actor = hero.actor(unit).start();
            let kind = unit.split('-').next().expect("a type");
            hero.run(&["submit", "-t", kind, "--id", kind, &example(script)]).code(0);
            wait_until("it waits", || waits(&redis, kind));
            // Its task is free, and it stands in one index.
            let free = if kind == "bash" { "true" } else { "1" };
            hero.run(&["exec", "-t", kind, "-e", free]).code(0);
            let shown = hero.run(&["job", "show", kind]).code(0).stdout;
            assert!(shown.contains("approved"), "{shown}");
            let told = hero.run(&["job", "tell", kind, "approved", "--data", "{\"v\": 7}"]).code(0);
            assert_eq!(told.stdout, format!("{kind} told approved\n"));
            until(&redis, kind, "finished");
            let said = output(&hero, kind);
            assert!(said.starts_with("deployed") && said.contains('7'), "{said}");
            assert_eq!(field(&redis, kind, "attempt").as_deref(), Some("1"), "no retry is counted");
        }
    }
    let audit = hero.run(&["audit", "--what", "job.tell", "--json"]).code(0).stdout;
    assert!(audit.contains("python (approved)"), "{audit}");
}

#[test]
fn wait_lasts_for_a_time_or_until_jobs_have_ended() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("python-default-1").start();
    let timed = "import hero\nif hero.event is None: hero.wait('never', '100ms')\nprint(hero.event['timeout'])";
    hero.run(&["exec", "-t", "python", "-e", timed]).code(0).stdout("True\n");
    hero.run(&["submit", "-t", "python", "--id", "child", "--delay", "1h", "-e", "1"]).code(0);
    let parent =
        "import hero\nif hero.event is None: hero.wait(jobs=['child'])\nprint(hero.event['jobs'])";
    hero.run(&["submit", "-t", "python", "--id", "parent", "-e", parent]).code(0);
    wait_until("it waits", || waits(&redis, "parent"));
    hero.run(&["job", "stop", "child"]).code(0);
    until(&redis, "parent", "finished");
    assert_eq!(output(&hero, "parent"), "{'child': 'error'}");
}

#[test]
fn of_two_who_tell_at_once_one_is_heard_and_the_other_is_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("python-default-1").start();
    hero.run(&["submit", "-t", "python", "--id", "a", &example("deploy.py")]).code(0);
    wait_until("it waits", || waits(&redis, "a"));
    let told = || hero.run(&["job", "tell", "a", "approved"]);
    let codes: Vec<_> = std::thread::scope(|scope| {
        let both = [scope.spawn(told), scope.spawn(told)];
        both.into_iter().map(|one| one.join().expect("ran").code).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    until(&redis, "a", "finished");
    assert_eq!(field(&redis, "a", "waits").as_deref(), Some("1"));
}

#[test]
fn event_told_first_is_found_and_stopped_and_deleted_jobs_wait_no_more() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let actor = hero.actor("python-default-1");
    hero.run(&["submit", "-t", "python", "--id", "a", &example("deploy.py")]).code(0);
    let told = hero.run(&["job", "tell", "a", "approved"]).code(0).stdout;
    assert_eq!(told, "a keeps approved for its next wait\n");
    let _actor = actor.start();
    until(&redis, "a", "finished");
    for id in ["stopped", "deleted"] {
        hero.run(&["submit", "-t", "python", "--id", id, &example("deploy.py")]).code(0);
        wait_until("it waits", || waits(&redis, id));
    }
    hero.run(&["job", "stop", "stopped"]).code(0);
    hero.run(&["job", "delete", "deleted"]).code(0);
    let refused = hero.run(&["job", "tell", "stopped", "approved"]);
    assert!(refused.code != 0 && refused.stderr.contains("error"), "{}", refused.stderr);
    assert_eq!(field(&redis, "stopped", "wait"), None);
    assert!(hero.run(&["job", "tell", "deleted", "approved"]).code != 0);
}

#[test]
fn killed_actor_and_supervisor_lose_and_double_no_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"").set("job.crash_limit", "1000");
    let mut supervisor = hero.supervisor().start();
    let mut actor = hero.actor("python-default-1").start();
    let script = "import hero\n\
                  n = hero.state or 0\n\
                  if hero.event and hero.event['event'] == f'go{n}':\n\
                  \x20   n += 1\n\
                  \x20   hero.checkpoint(n)\n\
                  if n < 4: hero.wait(f'go{n}', '1h')\n\
                  print(n, end='')";
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", script]).code(0);
    for turn in 0..4 {
        let awaited = format!("{{\"event\":\"go{turn}\"}}");
        // The actor dies about when the wait is said: the attempt is repeated, or the wait stands.
        wait_until("it runs or waits", || {
            waits(&redis, "a") || field(&redis, "a", "status").as_deref() == Some("started")
        });
        actor.kill();
        actor = hero.actor("python-default-1").start();
        wait_until("it waits", || field(&redis, "a", "wait").as_deref() == Some(&awaited));
        let event = format!("go{turn}");
        std::thread::scope(|scope| {
            let tell = scope.spawn(|| hero.run(&["job", "tell", "a", &event]));
            supervisor.kill();
            let told = tell.join().expect("ran").code(0).stdout;
            assert_eq!(told, format!("a told {event}\n"));
        });
        supervisor = hero.supervisor().start();
    }
    until(&redis, "a", "finished");
    assert_eq!(output(&hero, "a"), "4");
    assert_eq!(field(&redis, "a", "waits").as_deref(), Some("4"));
    drop((actor, supervisor));
}

#[test]
fn event_tells_who_told_it_and_a_wait_for_others_is_not_ended() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("python-default-1").start();
    let script = "import hero, json\nif hero.event is None: hero.wait('ok', who='no-such-person')\nprint(json.dumps(hero.event))";
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", script]).code(0);
    wait_until("it waits", || waits(&redis, "a"));
    let refused = hero.run(&["job", "tell", "a", "ok"]);
    assert!(refused.stderr.contains("from others than"), "{}", refused.stderr);
    let script =
        "import hero, json\nif hero.event is None: hero.wait('ok')\nprint(json.dumps(hero.event))";
    hero.run(&["submit", "-t", "python", "--id", "b", "-e", script]).code(0);
    wait_until("it waits", || waits(&redis, "b"));
    hero.run(&["job", "tell", "b", "ok", "--data", "12345678901234567890"]).code(0);
    until(&redis, "b", "finished");
    let came: Value = serde_json::from_str(&output(&hero, "b")).expect("JSON");
    assert_eq!((&came["event"], &came["through"]), (&json!("ok"), &json!("command line")));
    assert!(
        came["who"].is_string() && came["from"].is_string() && came["when"].is_string(),
        "{came}"
    );
    // By the name of a group of the user of the command.
    let group = Group::from_gid(getgid()).expect("groups").expect("a group").name;
    let script = format!(
        "import hero\nif hero.event is None: hero.wait('ok', who=['@no-such-group', '@{group}'])\nprint(1)"
    );
    hero.run(&["submit", "-t", "python", "--id", "c", "-e", &script]).code(0);
    wait_until("it waits", || waits(&redis, "c"));
    hero.run(&["job", "tell", "c", "ok"]).code(0).stdout("c told ok\n");
    until(&redis, "c", "finished");
}

#[test]
fn parent_waits_for_its_children_on_the_only_task_through_deaths_of_its_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("actor.lease", "\"1s\"")
        .set("job.crash_limit", "1000")
        .set("type.python.may_submit", "[\"python\"]");
    let _supervisor = hero.supervisor().start();
    let mut actor = hero.actor("python-default-1").tasks(1).start();
    let script = "import hero\n\
                  if hero.event is None:\n\
                  \x20   for n in range(12): hero.submit(f'assert {n} != 7', name=f'c{n}', retries=0)\n\
                  \x20   hero.wait(children=True)\n\
                  print(hero.event['children'], len(hero.event['failed']))";
    hero.run(&["submit", "-t", "python", "--id", "p", "-e", script]).code(0);
    let ended = || redis.count("python", "finished");
    for least in [1, 5] {
        wait_until("some children have finished", || ended() >= least);
        actor.kill();
        actor = hero.actor("python-default-1").tasks(1).start();
    }
    until(&redis, "p", "finished");
    assert_eq!(output(&hero, "p"), "{'finished': 11, 'error': 1, 'missing': 0} 1");
    assert_eq!(field(&redis, "p", "waits").as_deref(), Some("1"));
    assert_eq!(redis.ask::<Vec<String>>(&format!("KEYS {}*", keys::job("child-"))).len(), 12);
    drop(actor);
}

#[test]
fn lists_pages_and_commands_show_what_a_job_waits_for() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("python-default-1").start();
    hero.run(&["submit", "-t", "python", "--id", "a", &example("deploy.py")]).code(0);
    wait_until("it waits", || waits(&redis, "a"));
    let list = hero.run(&["job", "list"]).code(0).stdout;
    assert!(
        list.contains("scheduled, waits for the event approved") && list.contains("STARTS"),
        "{list}"
    );
    let shown = hero.run(&["job", "show", "a"]).code(0);
    assert!(shown.stdout.contains("scheduled, waits for the event approved"), "{}", shown.stdout);
    assert!(shown.stderr.contains("hero job tell a approved"), "{}", shown.stderr);
    // On a busy machine the wait may be over before Redis has answered once.
    wait_until("who gives up learns the event", || {
        let gave_up = hero.run(&["job", "wait", "--wait", "20ms", "a"]);
        gave_up.stderr.contains("hero job tell a approved")
    });
    let listed = hero.run(&["--json", "job", "list", "--status", "waiting"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["jobs"][0]["wait"], json!("{\"event\":\"approved\"}"), "{listed}");
    let healthy = hero.run(&["status", "--check"]);
    assert!(!healthy.stdout.contains("scheduled job"), "{}", healthy.stdout);
    // An event of another name is kept, and the job waits on.
    hero.run(&["job", "tell", "a", "other"])
        .code(0)
        .stdout("a keeps other for its next wait; now it waits for the event approved\n");
    let mistaken = hero.run(&["job", "tell", "a", "two words"]);
    assert!(mistaken.stderr.contains("characters of A-Z"), "{}", mistaken.stderr);
    let missing = hero.run(&["job", "tell", "none", "approved"]);
    assert!(missing.code != 0 && missing.stderr.contains("none"), "{}", missing.stderr);
    let file = redis.folder().join("data.json");
    let given = format!("@{}", file.display());
    let unreadable = hero.run(&["job", "tell", "a", "approved", "--data", &given]);
    assert!(unreadable.stderr.contains("no such file: "), "{unreadable:?}");
    fs::write(&file, "{\n  \"until\" : \"18:00\"\n}\n").expect("written");
    hero.run(&["job", "tell", "a", "approved", "--data", &given]).code(0);
    until(&redis, "a", "finished");
    let said = output(&hero, "a");
    assert!(said.ends_with("{'until': '18:00'}"), "{said}");
}

#[test]
fn edited_wait_ends_and_a_priority_leaves_it_and_no_limit_or_key_is_lost() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("limit.one.per", "\"key\"").set("limit.one.running", "1");
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("python-default-1").start();
    let key = ["--limit-key", "one", "--unique-key", "u", "--expires", "1s"];
    let script = "import hero\nif hero.event is None: hero.wait('ok')\nprint(hero.event)";
    hero.run(&[&["submit", "-t", "python", "--id", "a"], &key[..], &["-e", script]].concat())
        .code(0);
    wait_until("it waits", || waits(&redis, "a"));
    // It holds no slot of its limit, but its unique key, and its time to start has not passed.
    hero.run(&["exec", "-t", "python", "--limit-key", "one", "-e", "1"]).code(0);
    let twice = ["submit", "-t", "python", "--unique-key", "u", "--on-duplicate=reject", "-e", "1"];
    assert!(hero.run(&twice).code != 0);
    let expiring = format!("ZCARD {}", keys::prefix("EXPIRING"));
    wait_until("its time to start is looked at", || redis.ask::<u64>(&expiring) == 0);
    assert!(waits(&redis, "a"));
    hero.run(&["job", "edit", "a", "--priority", "urgent"]).code(0);
    assert!(waits(&redis, "a"));
    hero.run(&["job", "edit", "a", "--delay", "0s"]).code(0);
    until(&redis, "a", "finished");
    let said = output(&hero, "a");
    assert!(said.starts_with("{'timeout': True"), "{said}");
}

#[test]
fn backup_has_the_waits_and_the_events_of_jobs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.may_submit", "[\"python\"]");
    let actor = hero.actor("python-default-1").start();
    hero.run(&["submit", "-t", "python", "--id", "event", &example("deploy.py")]).code(0);
    hero.run(&["submit", "-t", "python", "--id", "later", "--delay", "1h", "-e", "1"]).code(0);
    for (id, wait) in [("jobs", "jobs=['later', 'over']"), ("over", "jobs=['none']")] {
        let script = format!(
            "import hero\nif hero.event is None: hero.wait({wait})\nprint(hero.event['jobs'])"
        );
        hero.run(&["submit", "-t", "python", "--id", id, "-e", &script]).code(0);
    }
    let parent = "import hero\nif hero.event is None:\n    hero.submit('1', name='c', run_at='2100-01-01T00:00:00Z')\n    \
                  hero.wait(children=True)\nprint(hero.event['children'])";
    hero.run(&["submit", "-t", "python", "--id", "parent", "-e", parent]).code(0);
    hero.run(&["submit", "-t", "bash", "--id", "told", &example("deploy.sh")]).code(0);
    hero.run(&["job", "tell", "told", "approved"]).code(0);
    for id in ["event", "jobs", "parent"] {
        wait_until("it waits", || waits(&redis, id));
    }
    until(&redis, "over", "finished");
    drop(actor);
    let file = redis.folder().join("hero.jsonl");
    let file = file.to_str().expect("text");
    hero.run(&["backup", file]).code(0);
    let other = Redis::start();
    let there = Hero::on(&other);
    there.run(&["restore", file]).code(0);
    for id in ["event", "jobs", "parent"] {
        assert_eq!(field(&other, id, "status").as_deref(), Some("scheduled"), "{id}");
        assert_eq!(field(&other, id, "wait"), field(&redis, id, "wait"), "{id}");
        assert_eq!(field(&other, id, "run_at"), field(&redis, id, "run_at"), "{id}");
    }
    let _actors = [there.actor("python-default-1").start(), there.actor("bash-default-1").start()];
    there.run(&["job", "tell", "event", "approved"]).code(0).stdout("event told approved\n");
    until(&other, "told", "finished");
    let child: String =
        serde_json::from_str::<Vec<String>>(&field(&other, "parent", "children").expect("one"))
            .expect("ids")
            .remove(0);
    there.run(&["job", "stop", "later", &child]).code(0);
    for id in ["event", "jobs", "parent"] {
        until(&other, id, "finished");
    }
    assert_eq!(output(&there, "jobs"), "{'later': 'error', 'over': 'finished'}");
    assert_eq!(output(&there, "parent"), "{'finished': 0, 'error': 1, 'missing': 0}");
}
