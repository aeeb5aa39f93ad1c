//! A system of several shards looks like one: placement, ids, and commands that reach each shard.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use hero::proto::keys::Keys;
use serde_json::Value;

use crate::support::{Hero, Redis};

const SHARDS: usize = 4;

/// The documented rule, in another language.
const PLACE: &str = r#"
import hashlib, sys
shards, keys = int(sys.argv[1]), sys.argv[2:]
for key in keys:
    weight = lambda shard: hashlib.sha256(f"{shard}:{key}".encode()).digest()
    print(max(range(shards), key=weight))
"#;

fn four() -> (Redis, Hero) {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("redis.shards", &SHARDS.to_string());
    (redis, hero)
}

/// Returns the shards of keys, by the documented rule.
#[expect(clippy::disallowed_methods, reason = "another language than Hero's")]
fn places(keys: &[&str]) -> Vec<usize> {
    let mut command = Command::new("python3");
    command.args(["-c", PLACE, &SHARDS.to_string()]).args(keys);
    let printed = command.output().expect("python3 runs").stdout;
    let printed = String::from_utf8(printed).expect("UTF-8");
    printed.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Returns the shard that an id tells.
fn told(id: &str) -> usize {
    let number = id.strip_prefix('s').and_then(|rest| rest.split_once('-'));
    number.and_then(|(number, _)| number.parse().ok()).unwrap_or_default()
}

/// Returns the keys of a shard.
fn keys_of(shard: usize) -> Keys {
    let namespace = if shard == 0 { "hero".to_owned() } else { format!("{{hero-{shard}}}") };
    Keys::new(namespace.parse().expect("legal"))
}

/// Returns the key of the hash of a job.
fn hash(id: &str) -> String {
    keys_of(told(id)).job(&id.parse().expect("legal"))
}

/// Submits a job, and returns its id.
#[track_caller]
fn submit(hero: &Hero, options: &[&str]) -> String {
    let args = [&["submit", "-t", "osis", "-e", "1"], options].concat();
    hero.run(&args).code(0).stdout.trim().to_owned()
}

#[track_caller]
fn prints(hero: &Hero, args: &[&str], text: &str) {
    let printed = hero.run(args).code(0).stdout;
    assert!(printed.contains(text), "{args:?} printed {printed}");
}

#[test]
fn another_language_comes_to_the_same_shard() {
    let (redis, hero) = four();
    let keys: Vec<String> = (0..16).map(|number| format!("customer {number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let expected = places(&keys);
    assert_eq!(expected.iter().collect::<BTreeSet<_>>().len(), SHARDS, "each shard gets some");
    for (key, shard) in keys.iter().zip(expected) {
        for option in ["--shard-key", "--unique-key"] {
            let id = submit(&hero, &[option, key]);
            assert_eq!(told(&id), shard, "{option} {key}");
            assert!(redis.field(&hash(&id), "script").is_some(), "{id} is not where it should be");
        }
    }
    let grouped = submit(&hero, &["-g", "web"]);
    let plain = submit(&hero, &[]);
    assert_eq!([told(&grouped), told(&plain)], places(&["osis:web", "osis:default"])[..]);
    // A key finds its holder whatever client asks.
    let holder = submit(&hero, &["--unique-key", "customer 3"]);
    assert_eq!(submit(&hero, &["--unique-key", "customer 3", "-g", "web"]), holder);
}

#[test]
fn commands_with_an_id_reach_its_shard() {
    let (redis, hero) = four();
    for shard in 0..SHARDS {
        let id = if shard == 0 { "daily".to_owned() } else { format!("s{shard}-daily") };
        let input = redis.folder().join("input");
        std::fs::write(&input, "some text").expect("writing a file");
        let input = format!("--input=text={}", input.display());
        hero.run(&["submit", "-t", "python", "-e", "print(1)", "--id", &id, &input]).code(0);
        let shown = hero.run(&["job", "show", "--json", &id]).code(0).stdout;
        let shown: Value = serde_json::from_str(&shown).expect("a document");
        assert_eq!(shown["id"], id.as_str());
        prints(&hero, &["job", "files", &id], "text");
        hero.run(&["job", "edit", "--priority", "0", &id]).code(0);
        assert_eq!(redis.field(&hash(&id), "priority").as_deref(), Some("0"));
        hero.run(&["job", "logs", &id]).code(0);
        hero.run(&["job", "stop", &id]).code(0);
        assert_eq!(redis.field(&hash(&id), "status").as_deref(), Some("error"));
        hero.run(&["job", "retry", &id]).code(0);
        assert_eq!(redis.field(&hash(&id), "status").as_deref(), Some("dispatched"));
        let copy = hero.run(&["job", "clone", &id]).code(0).stdout;
        prints(&hero, &["job", "files", copy.trim()], "text");
        hero.run(&["job", "delete", &id]).code(0);
        assert_eq!(redis.field(&hash(&id), "status"), None);
    }
    // The beginning of an id tells its shard too.
    let id = submit(&hero, &["--id", "s2-nightly-report"]);
    prints(&hero, &["job", "show", "s2-nightly"], &id);
    for args in
        [&["job", "show", "s4-daily"][..], &["exec", "-t", "osis", "-e", "1", "--id", "s4-a"]]
    {
        hero.run(args)
            .code(65)
            .says(" is an id of shard 4, but the configuration has the shards 0 to 3");
    }
}

#[test]
fn a_job_waits_for_jobs_of_one_shard() {
    let (redis, hero) = four();
    let (first, second) = (submit(&hero, &["--id", "s1-a"]), submit(&hero, &["--id", "s3-b"]));
    let after = submit(&hero, &["--after", &first, "--shard-key", "any"]);
    assert_eq!(told(&after), 1);
    assert_eq!(redis.field(&hash(&after), "status").as_deref(), Some("waiting_for_prerequisites"));
    hero.run(&["submit", "-t", "osis", "-e", "1", "--after", &first, "--after-any", &second])
        .code(65)
        .says(
            "prerequisites s1-a and s3-b are on different shards; give the jobs the same shard_key",
        );
    hero.run(&["submit", "-t", "osis", "-e", "1", "--after", &first, "--id", "s2-c"])
        .code(65)
        .says("s1-a is on shard 1, but the job or its graph on shard 2");
    assert_eq!(redis.field(&hash("s2-c"), "status"), None);
}

#[test]
fn legacy_queues_are_at_home_and_clients_reach_every_shard() {
    let (redis, hero) = four();
    let keys = keys_of(0);
    let legacy = keys.legacy_queue("w1");
    let queue = format!("[{{ legacy = \"{legacy}\", type = \"osis\" }}]");
    let hero = hero.set("supervisor.migration", "\"dual\"").set("supervisor.legacy_queues", &queue);
    submit(&hero, &["--id", "at-home"]);
    submit(&hero, &["--id", "s1-other"]);
    assert_eq!(redis.list(&legacy), ["at-home"]);
    prints(&hero, &["job", "show", "s1-other"], "dispatched");
}

#[test]
fn a_graph_is_on_one_shard_with_all_its_jobs() {
    let (redis, hero) = four();
    let node =
        |name: &str, more: &str| format!("[job.{name}]\ntype = \"osis\"\nscript = \"1\"\n{more}\n");
    let jobs = [node("a", ""), node("b", "after = [\"a\"]"), node("c", "after_any = [\"b\"]")];
    let callback = "[on_end]\ntype = \"osis\"\nscript = \"1\"\n";
    let mut seen = BTreeSet::new();
    for number in 0..8 {
        let begin = format!("[defaults]\nshard_key = \"key {number}\"\n");
        let text = [begin.as_str(), &jobs.concat(), callback].concat();
        std::fs::write(redis.folder().join("g.toml"), text).expect("writing a file");
        let printed = hero.run(&["submit", "--json", "--graph", "g.toml"]).code(0).stdout;
        let document: Value = serde_json::from_str(&printed).expect("a document");
        let graph = document["graph_id"].as_str().expect("an id").to_owned();
        let ids: BTreeMap<String, String> =
            serde_json::from_value(document["jobs"].clone()).expect("ids");
        let shard = places(&[&format!("key {number}")])[0];
        seen.insert(shard);
        assert!(ids.values().chain([&graph]).all(|id| told(id) == shard), "{printed}");
        let shown = hero.run(&["graph", "show", "--json", &graph]).code(0).stdout;
        assert_eq!(shown.matches("waiting_for_prerequisites").count(), 2, "{shown}");
        hero.run(&["graph", "stop", &graph]).code(0);
        hero.run(&["graph", "delete", &graph]).code(0);
    }
    assert_eq!(seen.len(), SHARDS, "keys of each shard were tried");
}

#[test]
fn a_batch_with_an_id_is_on_its_shard() {
    let (_redis, hero) = four();
    let lines = "{\"script_type\": \"osis\", \"script\": \"1\"}\n".repeat(3);
    for (options, shard) in
        [(&["--id", "s3-batch"][..], 3), (&["--id", "s2-all", "--all-or-none"], 2)]
    {
        let args = [&["submit", "--json", "--batch", "-"], options].concat();
        let printed = hero.run_with_input(&args, &lines).code(0).stdout;
        let document: Value = serde_json::from_str(&printed).expect("a document");
        let ids: Vec<String> = serde_json::from_value(document["ids"].clone()).expect("ids");
        assert_eq!(ids.len(), 3);
        assert!(ids.iter().all(|id| told(id) == shard), "{printed}");
        prints(&hero, &["graph", "show", options[1]], "3");
    }
    let other = "{\"script_type\": \"osis\", \"script\": \"1\", \"id\": \"s1-x\"}\n";
    hero.run_with_input(&["submit", "--batch", "-", "--id", "s3-other"], other)
        .code(65)
        .says("s1-x is on shard 1, but the job or its graph on shard 3");
}

#[test]
fn any_line_of_a_batch_may_name_its_shard() {
    let (redis, hero) = four();
    let hero = hero.set("type.bash.engine", "\"command\"");
    let hero = hero.set("type.bash.command", "[\"/bin/bash\", \"{script}\"]");
    std::fs::write(redis.folder().join("text"), "some text").expect("writing a file");
    let line = |more: &str| format!("{{\"script_type\": \"bash\", \"script\": \"true\"{more}}}\n");
    for shard in 0..SHARDS {
        for (name, options) in [("a", &[][..]), ("b", &["--all-or-none"])] {
            let id = if shard == 0 { name.to_owned() } else { format!("s{shard}-{name}") };
            let lines = [
                line(""),
                line(", \"inputs\": {\"t\": \"text\"}"),
                line(&format!(", \"id\": {id:?}")),
            ];
            std::fs::write(redis.folder().join("lines"), lines.concat()).expect("writing a file");
            let args = [&["submit", "--json", "--batch", "lines"], options].concat();
            let printed = hero.run(&args).code(0).stdout;
            let document: Value = serde_json::from_str(&printed).expect("a document");
            let ids: Vec<String> = serde_json::from_value(document["ids"].clone()).expect("ids");
            assert!(ids.len() == 3 && ids.iter().all(|id| told(id) == shard), "{printed}");
            prints(&hero, &["job", "files", &ids[1]], "t");
        }
    }
}

#[test]
fn a_backup_has_all_shards_and_needs_as_many() {
    let (redis, hero) = four();
    let keys: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let mut ids: Vec<String> =
        keys.iter().map(|key| submit(&hero, &["--shard-key", key])).collect();
    ids.push(submit(&hero, &["--after", &ids[0]]));
    hero.run(&["queue", "pause", "type:osis"]).code(0);
    let file = redis.folder().join("backup");
    let file = file.to_str().expect("text");
    hero.run(&["backup", file]).code(0);
    let other = Redis::start();
    Hero::on(&other)
        .set("redis.shards", "2")
        .run(&["restore", file])
        .code(65)
        .says("it has the jobs of 4 shards, but the configuration has 2 shards");
    assert_eq!(other.ask::<u64>("DBSIZE"), 0, "nothing was written");
    let there = Hero::on(&other).set("redis.shards", "4");
    prints(&there, &["restore", file], "13 jobs");
    for id in &ids {
        let status = redis.field(&hash(id), "status");
        assert!(status.is_some(), "{id}");
        assert_eq!(other.field(&hash(id), "status"), status, "{id}");
    }
    for shard in 0..SHARDS {
        let paused: u64 = other.ask(&format!("SCARD {}", keys_of(shard).paused()));
        assert_eq!(paused, 3, "shard {shard}");
    }
    there.run(&["restore", file]).code(65).says("has jobs or objects");
}

#[test]
fn status_names_the_shards_that_are_away() {
    let (home, mut second) = (Redis::start(), Redis::start());
    let urls = format!("[{:?}]", second.url());
    let hero = Hero::on(&home).set("redis.shards", "2").set("redis.shard_urls", &urls);
    prints(&hero, &["status"], "shards  2, on 2 servers");
    let status = hero.run(&["status", "--json"]).code(0).stdout;
    let status: Value = serde_json::from_str(&status).expect("a document");
    assert_eq!(status["shards"][1]["address"], second.url());
    second.kill();
    hero.run(&["status"]).code(69).says("1 of 2 shards away: shard 1: redis at ");
    hero.run(&["job", "list"]).code(69).says("cannot be reached");
    // The other shard goes on.
    hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "a"]).code(0);
    prints(&hero, &["job", "show", "a"], "dispatched");
}

#[test]
fn delay_is_counted_on_the_clock_of_the_shard() {
    let (mut home, second) = (Redis::start(), Redis::start());
    let urls = format!("[{:?}]", second.url());
    let hero = Hero::on(&home).set("redis.shards", "2").set("redis.shard_urls", &urls);
    // The home shard cannot be asked.
    home.kill();
    submit(&hero, &["--id", "s1-a", "--delay", "1h"]);
    let graph = "id = \"s1-graph\"\n[job.b]\ntype = \"osis\"\nscript = \"1\"\nid = \"s1-b\"\n\
                 delay = \"1h\"\n";
    std::fs::write(home.folder().join("g.toml"), graph).expect("writing a file");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    for id in ["s1-a", "s1-b"] {
        assert_eq!(second.field(&hash(id), "status").as_deref(), Some("scheduled"));
    }
}

#[test]
fn jobs_of_raw_producers_of_any_shard_run_and_are_seen() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("redis.shards", "2");
    // Each serves one shard; each alone is what an older version would be.
    let further = Hero::on(&redis).set("redis.namespace", "\"{hero-1}\"");
    let _home = Hero::on(&redis).actor("osis-default-1").start();
    let _further = further.actor("osis-default-1").start();
    let queue = "type:osis".parse().expect("legal");
    for id in ["raw", "s1-raw"] {
        redis.run(&format!("HSET {} id {id} status dispatched script 40+2", hash(id)));
        redis.push(&keys_of(told(id)).work(&queue), &[id]);
    }
    for id in ["raw", "s1-raw"] {
        prints(&hero, &["job", "wait", id], "42");
        prints(&hero, &["job", "list"], id);
    }
    // A reply comes from the shard of the job.
    for key in ["a", "b", "c", "d"] {
        prints(&hero, &["exec", "-t", "osis", "-e", "6 * 7", "--shard-key", key], "42");
    }
    let first = submit(&hero, &["--id", "s1-first"]);
    let after = submit(&hero, &["--after", &first]);
    prints(&hero, &["job", "wait", &after], "1");
    let actors = hero.run(&["actor", "list", "--json"]).code(0).stdout;
    assert_eq!(actors.matches("osis:default:1").count(), 1, "{actors}");
    let stats = hero.run(&["stats", "--json"]).code(0).stdout;
    let stats: Value = serde_json::from_str(&stats).expect("a document");
    assert_eq!(stats["types"][0]["finished"], 8, "{stats}");
}
