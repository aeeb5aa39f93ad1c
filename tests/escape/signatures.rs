//! Attacks of a program that may write everything in Redis on jobs that must be signed: the actor runs none of them. The
//! same attack on an actor that requires no signature succeeds.

use std::fs;

use jiff::Timestamp;
use serde_json::json;

use crate::support::{Hero, Redis, Served, keys, request, until, wait_until};

/// A change of a signed job before an actor takes it.
type Attack = fn(&Redis, &str);

fn set(redis: &Redis, id: &str, field: &str, value: &str) {
    redis.set_field(&keys::job(id), field, value);
}

fn signature(redis: &Redis, id: &str) -> String {
    redis.field(&keys::job(id), "signature").expect("a signature")
}

fn set_file(redis: &Redis, id: &str, name: &str, content: &str) {
    redis.set_field(&hero_keys().files(&id.parse().expect("an id")), name, content);
}

fn hero_keys() -> hero::proto::keys::Keys {
    keys::keys()
}

/// Moves a job to another queue, with the fields that say so or without.
fn requeue(redis: &Redis, id: &str, queue: &str) {
    for from in ["type:bash", "type:bash:group:default", "type:bash:group:default:inst:1"] {
        redis.run(&format!("LREM {} 0 {id}", keys::work(from)));
        redis.remove(&keys::ready(from), id);
    }
    redis.put(&keys::ready(queue), 1, id);
    redis.push(&keys::work(queue), &[id]);
}

/// Attacks whose job runs where no signature is required.
const ATTACKS: [(&str, Attack); 31] = [
    ("another script", |redis, id| set(redis, id, "script", "echo owned")),
    ("a byte more in the script", |redis, id| set(redis, id, "script", "echo ran $* \n")),
    ("another argument", |redis, id| set(redis, id, "args", "[\"owned\"]")),
    ("an argument in two", |redis, id| set(redis, id, "args", "[\"ho\",\"me\"]")),
    ("no arguments", |redis, id| redis.run(&format!("HDEL {} args", keys::job(id)))),
    ("another parameter", |redis, id| set(redis, id, "params", r#"{"to":"eve"}"#)),
    ("another variable", |redis, id| set(redis, id, "env_vars", r#"{"BASH_ENV":"/tmp/x"}"#)),
    ("another name", |redis, id| set(redis, id, "name", "other")),
    ("another caller", |redis, id| set(redis, id, "caller_id", "root")),
    ("another context", |redis, id| set(redis, id, "context_id", "root")),
    ("a longer timeout", |redis, id| set(redis, id, "timeout", "3599")),
    ("more retries", |redis, id| set(redis, id, "retries", "9")),
    ("other waits", |redis, id| set(redis, id, "backoff", "1s")),
    ("other exit codes", |redis, id| set(redis, id, "retry_if", "75")),
    ("exit codes that discard it", |redis, id| set(redis, id, "discard_if", "75")),
    ("another bound of memory", |redis, id| set(redis, id, "memory", "100MiB")),
    ("another bound of memory of the job", |redis, id| set(redis, id, "job_memory", "100MiB")),
    ("another bound of processor time", |redis, id| set(redis, id, "cpu", "20")),
    ("another network", |redis, id| set(redis, id, "network", "none")),
    ("another log file", |redis, id| set(redis, id, "log_path", "owned.log")),
    ("one at a time", |redis, id| set(redis, id, "concurrent", "false")),
    ("a wider fallback", |redis, id| set(redis, id, "fallback", "type")),
    ("another fate of the output", |redis, id| set(redis, id, "output_overflow", "fail")),
    ("another limit", |redis, id| set(redis, id, "limit_key", "other")),
    ("an input of another job", |redis, id| set(redis, id, "prerequisites", "[\"done\"]")),
    ("another content of a file", |redis, id| set_file(redis, id, "i:data.csv", "owned")),
    ("no file", |redis, id| redis.run(&format!("HDEL {} input_files", keys::job(id)))),
    ("a file more", |redis, id| {
        set_file(redis, id, "i:more", "owned");
        set(redis, id, "input_files", "[\"data.csv\",\"more\"]");
    }),
    ("a standard input", |redis, id| {
        set_file(redis, id, "stdin", "owned");
        set(redis, id, "input_files", "[\"data.csv\",\"-\"]");
    }),
    ("no signature", |redis, id| redis.run(&format!("HDEL {} signature", keys::job(id)))),
    ("the signature of another job", |redis, id| {
        set(redis, id, "signature", &signature(redis, "done"));
    }),
];

/// Attacks on the signature itself.
const FORGERIES: [(&str, Attack); 9] = [
    ("a later time", |redis, id| {
        let text = signature(redis, id);
        let parts: Vec<&str> = text.split(' ').collect();
        set(redis, id, "signature", &format!("{} 2100-01-01T00:00:00Z {}", parts[0], parts[2]));
    }),
    ("the name of another key", |redis, id| {
        set(redis, id, "signature", &signature(redis, id).replacen("ops", "dba", 1));
    }),
    ("an unknown key", |redis, id| {
        set(redis, id, "signature", &signature(redis, "of-eve"));
    }),
    ("an unknown key by a known name", |redis, id| {
        set(redis, id, "signature", &signature(redis, "of-eve").replacen("eve", "ops", 1));
    }),
    ("odd bytes in the name", |redis, id| {
        set(
            redis,
            id,
            "signature",
            &signature(redis, id).replacen("ops", "o\u{1b}[2Jps\u{202e}", 1),
        );
    }),
    ("a path for a name", |redis, id| {
        set(redis, id, "signature", &signature(redis, id).replacen("ops", "../../ops", 1));
    }),
    ("a giant signature", |redis, id| {
        set(redis, id, "signature", &(signature(redis, id) + "A".repeat(4 << 20).as_str()));
    }),
    ("a signature of zeros", |redis, id| {
        let zeros = "A".repeat(86) + "==";
        set(redis, id, "signature", &format!("ops 2100-01-01T00:00:00Z {zeros}"));
    }),
    ("bytes that are no text", |redis, id| {
        redis.set_field(&keys::job(id), "signature", &[0xff_u8, 0xfe, b' '][..]);
    }),
];

/// Makes a key, and returns the setting that trusts it.
fn new_key(hero: &Hero, redis: &Redis, name: &str) -> (String, String) {
    let file = redis.folder().join(format!("{name}.key")).display().to_string();
    let made = hero.run(&["--json", "key", "new", name, "--file", &file]).code(0).stdout;
    let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
    (file, made["public_key"].to_string())
}

fn submit(hero: &Hero, file: &str, id: &str, more: &[&str]) {
    let start = ["submit", "-t", "bash", "--id", id, "--sign", file];
    let rest = ["-e", "echo ran $*", "--", "home"];
    hero.run(&[&start[..], more, &rest].concat()).code(0);
}

/// Submits a signed job for each attack, attacks, and starts the actors. Returns the ids with the attacks.
fn attacked<'a>(
    redis: &Redis,
    attacks: impl Iterator<Item = &'a (&'a str, Attack)>,
    is_signed: bool,
) -> Vec<(&'a str, String, Option<String>)> {
    let plain = Hero::on(redis);
    let [(ops, public), (eve, _)] = ["ops", "eve"].map(|name| new_key(&plain, redis, name));
    let mut hero = Hero::on(redis).set("keys.ops.public_key", &public);
    if is_signed {
        hero = hero.set("type.bash.require_signature", "[\"ops\"]");
    }
    fs::write(redis.folder().join("data.csv"), "1,2\n").expect("written");
    let input = redis.folder().join("data.csv").display().to_string();
    let prepared = hero.actor("bash-default-1").start();
    submit(&hero, &ops, "done", &[]);
    until(redis, "done", "finished");
    drop(prepared);
    submit(&hero, &eve, "of-eve", &["-g", "nobody"]);
    let attacks: Vec<_> = attacks.collect();
    for (number, (_, attack)) in attacks.iter().enumerate() {
        let id = format!("a-{number}");
        submit(&hero, &ops, &id, &["--input", &input, "--param", "to=ann", "--timeout", "1m"]);
        attack(redis, &id);
    }
    submit(&hero, &ops, "honest", &["--input", &input]);
    let _actor = hero.actor("bash-default-1").tasks(2).start();
    until(redis, "honest", "finished");
    let ended = attacks.iter().enumerate().map(|(number, (what, _))| {
        let key = keys::job(&format!("a-{number}"));
        let status = || redis.field(&key, "status").unwrap_or_default();
        wait_until(what, || matches!(status().as_str(), "finished" | "error"));
        (*what, status(), redis.field(&key, "error"))
    });
    ended.collect()
}

#[test]
fn job_that_was_changed_after_its_signature_is_not_run() {
    let redis = Redis::start();
    let ended = attacked(&redis, ATTACKS.iter().chain(&FORGERIES), true);
    let held = |error: &Option<String>| {
        error.as_deref().is_some_and(|text| {
            text.starts_with("invalid job: signature ")
                || text.starts_with("invalid job: its hash is larger than ")
        })
    };
    let failures: Vec<_> =
        ended.iter().filter(|(_, status, error)| status != "error" || !held(error)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(ended.len(), ATTACKS.len() + FORGERIES.len());
    assert!(!redis.folder().join("logs/owned.log").exists(), "nothing was done for it");
}

#[test]
fn the_same_changes_succeed_where_no_signature_is_required() {
    let redis = Redis::start();
    let ended = attacked(&redis, ATTACKS.iter(), false);
    let failures: Vec<_> = ended.iter().filter(|(_, status, _)| status != "finished").collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The settings of two types that require a signature, and of an actor of each.
fn strict(redis: &Redis) -> (Hero, String) {
    let (ops, public) = new_key(&Hero::on(redis), redis, "ops");
    let hero = Hero::on(redis)
        .set("keys.ops.public_key", &public)
        .set("type.bash.require_signature", "[\"ops\"]")
        .set("type.shell.engine", "\"command\"")
        .set("type.shell.command", "[\"/bin/bash\", \"{script}\"]")
        .set("type.shell.extension", "\".shell\"")
        .set("type.shell.require_signature", "[\"ops\"]");
    (hero, ops)
}

fn refusal(redis: &Redis, id: &str) -> String {
    until(redis, id, "error");
    redis.field(&keys::job(id), "error").expect("an error")
}

#[test]
fn signed_job_runs_under_its_own_id_type_and_group_alone() {
    let redis = Redis::start();
    let (hero, ops) = strict(&redis);
    for id in ["original", "alias", "group", "instance"] {
        submit(&hero, &ops, id, if id == "instance" { &["-i", "1"] } else { &["-g", "default"] });
    }
    let other = "type:bash:group:other";
    // A copy under another id.
    let fields: Vec<String> = redis.ask(&format!("HGETALL {}", keys::job("original")));
    redis.ask_with::<i64, _>(&format!("HSET {}", keys::job("copy")), &fields);
    set(&redis, "copy", "id", "copy");
    requeue(&redis, "copy", "type:bash");
    // Another type with the same program.
    set(&redis, "alias", "script_type", "shell");
    redis.run(&format!("HDEL {} group", keys::job("alias")));
    requeue(&redis, "alias", "type:shell");
    // Another group, told by the fields.
    set(&redis, "group", "group", "other");
    requeue(&redis, "group", other);
    // Another instance of the group, told by the fields.
    set(&redis, "instance", "instance", "2");
    set(&redis, "instance", "group", "other");
    requeue(&redis, "instance", "type:bash:group:other:inst:2");
    let _actors = ["bash-default-1", "shell-default-1", "bash-other-1", "bash-other-2"]
        .map(|unit| hero.actor(unit).start());
    for id in ["copy", "alias", "group", "instance"] {
        let error = refusal(&redis, id);
        assert!(error.contains("signature does not fit"), "{id}: {error}");
    }
    until(&redis, "original", "finished");
    // Without a word of the key's owner: as programs push jobs.
    redis.push_job("bash", "pushed", "echo owned");
    assert!(refusal(&redis, "pushed").contains("signature is missing"));
}

#[test]
fn signature_that_ran_out_allows_no_run_and_no_retry() {
    let redis = Redis::start();
    let (hero, ops) = strict(&redis);
    submit(&hero, &ops, "late", &["--signed-for", "1s"]);
    let sign =
        ["--sign", &ops, "--signed-for", "3s", "-t", "bash", "--id", "failed", "-e", "exit 1"];
    let failed = [&["submit"][..], &sign].concat();
    hero.run(&failed).code(0);
    let not_after = |id: &str| {
        let text = signature(&redis, id);
        text.split(' ').nth(1).and_then(|time| time.parse::<Timestamp>().ok()).expect("a time")
    };
    wait_until("the signature ran out", || Timestamp::now() > not_after("late"));
    let _actor = hero.actor("bash-default-1").start();
    let error = refusal(&redis, "late");
    assert!(error.contains("signature ran out: the key ops has signed until"), "{error}");
    until(&redis, "failed", "error");
    wait_until("the other ran out", || Timestamp::now() > not_after("failed"));
    hero.run(&["job", "retry", "failed"]).code(0);
    wait_until("it says so", || refusal(&redis, "failed").contains("signature ran out"));
}

#[test]
fn corrected_script_is_refused_without_another_signature() {
    let redis = Redis::start();
    let (hero, ops) = strict(&redis);
    submit(&hero, &ops, "old", &["--at", "2100-01-01T00:00:00Z"]);
    let script = redis.folder().join("new.sh").display().to_string();
    fs::write(&script, "echo owned").expect("written");
    let retry = ["job", "edit", "old", "--file", &script];
    hero.run(&retry).code(65).says("is signed by the key ops");
    // Its time is not signed.
    hero.run(&["job", "edit", "old", "--delay", "1ms"]).code(0);
    let _actor = hero.actor("bash-default-1").start();
    let _supervisor = hero.supervisor().start();
    until(&redis, "old", "finished");
}

#[test]
fn type_that_needs_signatures_has_no_session() {
    let redis = Redis::start();
    let (hero, _) = strict(&redis);
    let site = Served::with(hero, &redis);
    let token = format!("Bearer {}", site.token(&["ann", "--scope", "read,submit"]));
    let call = request("session.start", &json!({ "script_type": "bash", "wait": 1 }));
    let answer = site.tcp().post("/rpc", &[("authorization", &token)], &call).json();
    let error = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("must be signed"), "{answer}");
}
