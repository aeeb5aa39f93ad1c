//! Labels of actors, and the jobs that go where labels match.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::field;
use crate::support::{Hero, Redis, keys, until, wait_until};

/// Actors of bash: 1 and 3 are `web`, 2 is `db`.
fn fleet(redis: &Redis) -> Hero {
    Hero::on(redis)
        .set("unit.bash-default-1.labels.role", "\"web\"")
        .set("unit.bash-default-2.labels.role", "\"db\"")
        .set("unit.bash-default-3.labels.role", "\"web\"")
        .set("actor.labels.rack", "4")
        .set("actor.lease", "\"1s\"")
}

fn actor_of(redis: &Redis, id: &str) -> String {
    field(redis, id, "actor").unwrap_or_default()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

/// Returns the queue of an expression in its canonical text.
fn queue_of(canonical: &str) -> String {
    let digest = hero::proto::target::SelectorDigest::of_text(canonical);
    format!("type:bash:where:{digest}")
}

#[test]
fn actors_take_only_the_jobs_whose_expression_their_labels_match() {
    let redis = Redis::start();
    let hero = fleet(&redis);
    let (_supervisor, _web) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let _db = hero.actor("bash-default-2").start();
    for number in 0..6 {
        for role in ["web", "db"] {
            let (id, text) = (format!("{role}-{number}"), format!("role = {role} and rack = 4"));
            hero.run(&["submit", "-t", "bash", "--id", &id, "--where", &text, "-e", ":"]).code(0);
        }
    }
    for (role, actor) in [("web", "bash:default:1"), ("db", "bash:default:2")] {
        for number in 0..6 {
            until(&redis, &format!("{role}-{number}"), "finished");
            assert_eq!(actor_of(&redis, &format!("{role}-{number}")), actor);
        }
    }
    // The text is canonical, so both spellings wait in one queue.
    assert_eq!(field(&redis, "db-0", "where").as_deref(), Some("rack = 4 and role = \"db\""));
    hero.run(&[
        "exec",
        "-t",
        "bash",
        "--where",
        "role in (db) and instance = 2",
        "-e",
        "echo $HERO_ACTOR",
    ])
    .code(0);
    let graph = redis.folder().join("fleet.toml");
    let text = "[job.a]\ntype = \"bash\"\nwhere = \"role = 'db'\"\nscript = \":\"\n\
                [job.b]\ntype = \"bash\"\nwhere = \"role = 'web'\"\nscript = \":\"\nafter = [\"a\"]\n\
                [on_success]\ntype = \"bash\"\nwhere = \"role = 'db'\"\nscript = \"echo done\"\n";
    fs::write(&graph, text).expect("written");
    let said =
        hero.run(&["--json", "submit", "--graph", &graph.display().to_string()]).code(0).stdout;
    let jobs = json(&said)["jobs"].clone();
    for (name, actor) in [("a", "bash:default:2"), ("b", "bash:default:1")] {
        let id = jobs[name].as_str().expect(&said).to_owned();
        until(&redis, &id, "finished");
        assert_eq!(actor_of(&redis, &id), actor);
    }
    let callback = || {
        let jobs = redis.keys(&keys::prefix("JOB"));
        let is_it =
            |key: &&String| redis.field(key, "graph_callback").as_deref() == Some("on_success");
        let key = jobs.iter().find(is_it)?.clone();
        redis
            .field(&key, "actor")
            .filter(|_| redis.field(&key, "status").as_deref() == Some("finished"))
    };
    wait_until("the callback has ended", || callback().is_some());
    assert_eq!(callback().as_deref(), Some("bash:default:2"));
    let batch = "{\"id\":\"line\",\"type\":\"bash\",\"where\":\"role = web\",\"script\":\":\"}\n";
    hero.run_with_input(&["submit", "--batch", "-"], batch).code(0);
    until(&redis, "line", "finished");
    assert_eq!(actor_of(&redis, "line"), "bash:default:1");
}

#[test]
fn job_that_no_actor_matches_waits_and_is_reported_until_one_comes() {
    let redis = Redis::start();
    let hero = fleet(&redis);
    let (_supervisor, _web) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    hero.run(&["submit", "-t", "bash", "--id", "a", "--where", "role = db and rak = 4", "-e", ":"])
        .code(0)
        .says(
            "hero: job a waits for an actor that matches rak = 4 and role = \"db\": of 1 live actor, 1 fails rak = 4, \
             1 fails role = \"db\"; none has the label `rak`, did you mean `rack`?: hero actor list --json",
        );
    hero.run(&["submit", "-t", "bash", "--id", "b", "--where", "role = 'db'", "-e", ":"]).code(0);
    let unmatched = "hero: 2 jobs wait: no live actor matches role = \"mail\": of 1 live actor, 1 fails role = \"mail\": hero actor list --json";
    let job = "type = \"bash\"\nscript = \":\"\nwhere = \"role = 'mail'\"\n";
    let graph = format!("[job.one]\n{job}[job.two]\n{job}");
    let graph = hero.run_with_input(&["submit", "--graph", "-", "--id", "g"], &graph).code(0);
    graph.says(unmatched);
    let each = ["submit", "--each", "-", "-t", "bash", "--where", "role = mail", "--", "echo"];
    hero.run_with_input(&each, "1\n2\n").code(0).says(unmatched);
    let line = "{\"type\":\"bash\",\"where\":\"role = mail\",\"script\":\":\"}\n".repeat(2);
    hero.run_with_input(&["submit", "--batch", "-", "--all-or-none"], &line)
        .code(0)
        .says(unmatched);
    let shown = hero.run(&["graph", "show", "g"]).code(0).stdout;
    assert!(shown.contains("waits for  an actor that matches role = \"mail\""), "{shown}");
    let mail = queue_of("role = \"mail\"");
    hero.run(&["queue", "purge", "--yes", &mail]).code(0);
    let queue = queue_of("role = \"db\"");
    let problem = format!(
        "queue {queue} has 1 job and no live actor that matches role = \"db\": of 1 live actor, 1 fails role = \"db\""
    );
    let status = hero.run(&["status", "--check"]).stdout;
    assert!(status.contains(&problem), "{status}");
    hero.run(&["job", "show", "b"]).code(0).says("an actor that matches role = \"db\"");
    // Queues of a group beside them have another remedy.
    for group in ["g1", "g2", "g3", "g4"] {
        hero.run(&["submit", "-t", "bash", "-g", group, "-e", ":"]).code(0);
    }
    for n in 0..3 {
        hero.run(&["submit", "-t", "bash", "--where", &format!("rak = {n}"), "-e", ":"]).code(0);
    }
    let doctor = hero.run(&["doctor", "--problems"]).stdout;
    assert!(
        doctor.contains("start an actor that matches rak = ")
            && doctor.contains("none has the label `rak`"),
        "{doctor}"
    );
    assert!(doctor.contains("bash-g1-1"), "{doctor}");
    let _db = hero.actor("bash-default-2").start();
    until(&redis, "b", "finished");
    assert_eq!(actor_of(&redis, "b"), "bash:default:2");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    let status = hero.run(&["status", "--check"]).stdout;
    assert!(!status.contains(&queue), "{status}");
}

#[test]
fn reload_applies_other_labels() {
    let redis = Redis::start();
    let hero = fleet(&redis);
    let (_supervisor, web) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    hero.run(&["submit", "-t", "bash", "--id", "a", "--where", "role = mail", "-e", ":"]).code(0);
    let list = |text: &str| hero.run(&["actor", "list", "--json", "--where", text]).code(0).stdout;
    assert_eq!(json(&list("role = web"))["actors"][0]["labels"]["rack"], 4);
    let text = fs::read_to_string(web.config()).expect("its file");
    let text = text.replace("labels.role = \"web\"", "labels.role = \"mail\"");
    fs::write(web.config(), text).expect("written");
    web.signal(Signal::SIGHUP);
    until(&redis, "a", "finished");
    wait_until("its presence has them", || json(&list("role = mail"))["actors"][0].is_object());
    assert_eq!(json(&list("role = web"))["actors"], Value::Array(Vec::new()));
    hero.run(&["submit", "-t", "bash", "--id", "b", "--where", "role = web", "-e", ":"])
        .code(0)
        .says("waits for an actor that matches");
    hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    assert_eq!(field(&redis, "b", "status").as_deref(), Some("dispatched"));
}

#[test]
fn job_of_a_killed_actor_runs_again_where_labels_match() {
    let redis = Redis::start();
    let hero = fleet(&redis);
    let (_supervisor, _db) = (hero.supervisor().start(), hero.actor("bash-default-2").start());
    let mut first = hero.actor("bash-default-1").start();
    let mark = redis.folder().join("ran");
    let script = format!("if [ -e {0} ]; then exit 0; fi; touch {0}; sleep 600", mark.display());
    let hero = hero.set("type.bash.sandbox.write", &format!("[{:?}]", redis.folder()));
    drop(first);
    first = hero.actor("bash-default-1").start();
    hero.run(&["submit", "-t", "bash", "--id", "a", "--where", "role = web", "-e", &script])
        .code(0);
    wait_until("it runs", || mark.exists());
    assert_eq!(actor_of(&redis, "a"), "bash:default:1");
    first.kill();
    let _third = hero.actor("bash-default-3").start();
    until(&redis, "a", "finished");
    assert_eq!(actor_of(&redis, "a"), "bash:default:3");
    assert_eq!(field(&redis, "a", "crashes").as_deref(), Some("1"));
}

#[test]
fn queue_of_an_expression_is_listed_paused_limited_and_purged_as_others() {
    let redis = Redis::start();
    let hero = fleet(&redis).add("[limit.one]\nkey = \"k\"\nrunning = 1\n");
    let (_supervisor, web) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let queue = queue_of("role = \"web\"");
    hero.run(&["queue", "pause", "--force", &queue]).code(0);
    for (id, priority) in [("a", "1"), ("b", "0")] {
        hero.run(&[
            "submit",
            "-t",
            "bash",
            "--id",
            id,
            "--priority",
            priority,
            "--where",
            "role=web",
            "-e",
            ":",
        ])
        .code(0);
    }
    let listed = json(&hero.run(&["--json", "queue", "list"]).code(0).stdout);
    let listed = listed["queues"].as_array().expect("a list");
    let of = |name: &str| listed.iter().find(|of| of["queue"] == name).expect(name);
    assert_eq!(of(&queue)["where"], "role = \"web\"");
    assert_eq!((&of(&queue)["depth"], &of(&queue)["paused"]), (&1.into(), &true.into()));
    assert_eq!(of(&format!("{queue}:prio:0"))["depth"], 1);
    let found = hero.run(&["--json", "job", "list", "--queue", &queue]).code(0).stdout;
    assert!(found.contains("\"a\"") && !found.contains("\"b\""), "{found}");
    hero.run(&["queue", "purge", "--yes", &format!("{queue}:prio:0")]).code(0);
    until(&redis, "b", "error");
    hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    hero.run(&["queue", "resume", &queue]).code(0);
    until(&redis, "a", "finished");
    let held = redis.folder().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", held.display());
    for id in ["c", "d"] {
        let args = [
            "submit",
            "-t",
            "bash",
            "--id",
            id,
            "--limit-key",
            "k",
            "--where",
            "role=web",
            "-e",
            &script,
        ];
        hero.run(&args).code(0);
    }
    wait_until("the limit holds one", || {
        redis.ask::<i64>(&format!("ZCARD {}", keys::held(&queue))) == 1
    });
    fs::write(held, "").expect("written");
    for id in ["c", "d"] {
        until(&redis, id, "finished");
    }
    hero.run(&["actor", "drain", "bash-default-1"]).code(0);
    hero.run(&["submit", "-t", "bash", "--id", "e", "--where", "role=web", "-e", ":"]).code(0);
    let status = hero.run(&["status", "--check"]).stdout;
    assert!(status.contains("its actor bash:default:1 drains"), "{status}");
    hero.run(&["actor", "resume", "bash-default-1"]).code(0);
    until(&redis, "e", "finished");
    drop(web);
}

#[test]
fn invalid_expression_and_one_with_a_group_are_rejected_with_the_reason() {
    let redis = Redis::start();
    let hero = fleet(&redis);
    let refused = |args: &[&str], said: &str| {
        let submit = [&["submit", "-t", "bash", "-e", ":"], args].concat();
        hero.run(&submit).code(65).says(said);
    };
    refused(
        &["--where", "role = "],
        "at character 8: expected a value, such as \"web\" or 12, not the end",
    );
    refused(&["--where", "Role = a"], "at character 1: label `Role` is not legal");
    refused(
        &["--where", "role = web", "-g", "io"],
        "cannot stand beside a group or an instance, which are labels: add `group = \"io\"` to it instead",
    );
    refused(&["--where", "role = web", "-i", "2"], "add `instance = 2` to it instead");
    assert_eq!(redis.keys(&keys::prefix("WHERE")), [] as [&str; 0]);
    hero.run(&["submit", "-t", "bash", "--id", "a", "--where", "role = web", "-e", ":"]).code(0);
    hero.run(&["job", "edit", "a", "--group", "io"])
        .code(65)
        .says("cannot stand beside the job's `where`");
    hero.run(&["job", "clone", "a", "--id", "b", "--where", "role = db"]).code(0);
    assert_eq!(field(&redis, "b", "where").as_deref(), Some("role = \"db\""));
}

#[test]
fn every_actor_has_labels_of_its_machine() {
    let redis = Redis::start();
    let hero = fleet(&redis);
    let osis = hero.actor("osis-io-7").start();
    let list = || json(&hero.run(&["actor", "list", "--json"]).code(0).stdout);
    let labels = || list()["actors"][0]["labels"].clone();
    for (name, value) in [("group", Value::from("io")), ("instance", 7.into()), ("rack", 4.into())]
    {
        assert_eq!(labels()[name], value, "{name}");
    }
    let words = ["host", "machine", "arch", "os", "kernel"];
    assert!(words.iter().all(|name| labels()[*name].is_string()), "{}", labels());
    assert!(labels()["cores"].as_u64() >= Some(1) && labels()["memory"].as_u64() > Some(1 << 20));
    hero.run(&[
        "exec",
        "-t",
        "osis",
        "--where",
        "memory > 1MiB and cores >= 1 and group = io",
        "-e",
        "1",
    ])
    .code(0)
    .stdout("1\n");
    // Its sandbox lets it read the files of the machine no more.
    let text = fs::read_to_string(osis.config()).expect("its file");
    let text = text.replace("actor.labels.rack = 4", "actor.labels.rack = 5");
    fs::write(osis.config(), text).expect("written");
    osis.signal(Signal::SIGHUP);
    wait_until("its presence has the new label", || labels()["rack"] == 5);
    assert!(words.iter().all(|name| labels()[*name].is_string()), "{}", labels());
}
