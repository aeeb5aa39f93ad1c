//! The login: every command of the help at a Redis that wants a password which nobody gave.

use std::collections::BTreeSet;
use std::fs;

use super::{commands_in, field};
use crate::support::{Hero, Redis, keys};

/// The words that a command needs beside its name. `FILE` is a backup, `LINES` a file of objects. `None`
/// for commands that use no Redis, or one of their own.
const WORDS: &[(&str, Option<&[&str]>)] = &[
    ("run", Some(&["osis-default-1", "--wait", "5s"])),
    ("dev", None),
    ("check", Some(&["--redis"])),
    ("doctor", None),
    ("explain", None),
    ("status", Some(&[])),
    ("stats", Some(&[])),
    ("top", Some(&["--once", "--interval", "100ms"])),
    ("metrics", Some(&[])),
    ("exec", Some(&["-t", "osis", "-e", "1"])),
    ("submit", Some(&["-t", "osis", "-e", "1"])),
    ("run-script", Some(&["a"])),
    ("job list", Some(&[])),
    ("job errors", Some(&[])),
    ("job open", Some(&["a"])),
    ("job find", None),
    ("job show", Some(&["a"])),
    ("job wait", Some(&["a"])),
    ("job output", Some(&["a"])),
    ("job logs", Some(&["a"])),
    ("job files", Some(&["a"])),
    ("job fetch", Some(&["a", "b"])),
    ("job stop", Some(&["a"])),
    ("job tell", Some(&["a", "b"])),
    ("job retry", Some(&["a"])),
    ("job edit", Some(&["a", "--priority", "0"])),
    ("job clone", Some(&["a"])),
    ("job delete", Some(&["a"])),
    ("job clear", Some(&["--yes"])),
    ("graph list", Some(&[])),
    ("graph show", Some(&["a"])),
    ("graph wait", Some(&["a"])),
    ("graph retry", Some(&["a"])),
    ("graph edit", Some(&["a", "--at-a-time", "2"])),
    ("graph tell", Some(&["a", "go"])),
    ("graph stop", Some(&["a"])),
    ("graph delete", Some(&["a"])),
    ("queue list", Some(&[])),
    ("queue pause", Some(&["type:osis"])),
    ("queue drain", Some(&["--all"])),
    ("queue resume", Some(&["type:osis"])),
    ("queue purge", Some(&["--yes", "type:osis"])),
    ("actor list", Some(&[])),
    ("actor drain", Some(&["osis-default-1"])),
    ("actor resume", Some(&["osis-default-1"])),
    ("actor ping", Some(&["osis-default-1"])),
    ("actor stop", Some(&["osis-default-1"])),
    ("machine list", Some(&[])),
    ("machine show", Some(&["web1"])),
    ("machine drain", Some(&["web1"])),
    ("machine resume", Some(&["web1"])),
    ("machine forget", Some(&["web1"])),
    ("cron list", Some(&[])),
    ("cron show", Some(&["tick"])),
    ("cron add", Some(&["more", "--schedule", "@daily", "-t", "osis", "-e", "1"])),
    ("cron edit", Some(&["more", "--schedule", "@weekly"])),
    ("cron delete", Some(&["more"])),
    ("cron run", Some(&["tick"])),
    ("cron history", Some(&["tick"])),
    ("cron backfill", Some(&["tick", "--since", "2d", "--yes"])),
    ("cron import", None),
    ("cron enable", Some(&["tick"])),
    ("cron disable", Some(&["tick"])),
    ("limit list", Some(&[])),
    ("notify list", Some(&[])),
    ("notify test", Some(&["ops"])),
    ("hook list", Some(&[])),
    ("hook test", None),
    ("audit", Some(&[])),
    ("dead list", Some(&[])),
    ("dead errors", Some(&[])),
    ("dead show", Some(&["a"])),
    ("dead retry", Some(&["a"])),
    ("dead delete", Some(&["a"])),
    ("events", Some(&[])),
    ("token new", Some(&["a", "--scope", "read"])),
    ("token list", Some(&[])),
    ("token rotate", Some(&["a"])),
    ("token revoke", Some(&["a"])),
    ("key new", None),
    ("key show", None),
    ("osis list", Some(&[])),
    ("osis get", Some(&["note", "a"])),
    ("osis delete", Some(&["note", "a"])),
    ("osis export", Some(&["note"])),
    ("osis import", Some(&["LINES"])),
    ("osis reindex", Some(&[])),
    ("amqp publish", None),
    ("amqp topology", None),
    ("amqp status", None),
    ("amqp check", None),
    ("amqp dlq list", None),
    ("amqp dlq show", None),
    ("amqp dlq retry", None),
    ("amqp dlq delete", None),
    ("amqp shutdown", None),
    ("amqp delete-queue", None),
    ("amqp logs", Some(&[])),
    ("amqp purge-logs", Some(&["--root", "a"])),
    ("migrate status", Some(&[])),
    ("script doc", None),
    ("script check", None),
    ("script repl", None),
    ("script redis", None),
    ("script publish", Some(&["a", "-t", "osis", "-e", "1"])),
    ("script list", Some(&[])),
    ("script show", Some(&["a"])),
    ("script history", Some(&["a"])),
    ("script diff", Some(&["a", "1"])),
    ("script rollback", Some(&["a", "1"])),
    ("script delete", Some(&["a"])),
    ("backup", Some(&["OTHER"])),
    ("restore", Some(&["FILE"])),
    ("mcp", None),
    ("completions", None),
    ("bench", None),
];

/// The commands that the help lists, with those below them in place of a noun.
fn commands(hero: &Hero, above: &[&str]) -> Vec<String> {
    let help = hero.run(&[above, &["--help"]].concat()).code(0).stdout;
    let names = commands_in(&help);
    if names.is_empty() {
        return vec![above.join(" ")];
    }
    names.into_iter().flat_map(|name| commands(hero, &[above, &[name]].concat())).collect()
}

#[test]
fn every_command_says_that_redis_wants_a_password_and_exits_with_77() {
    let redis = Redis::start();
    let path = |name: &str| redis.folder().join(name).display().to_string();
    fs::create_dir(path("cron.d")).expect("a folder");
    let tick = "[cron.tick]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\n";
    fs::write(path("cron.d/tick.toml"), tick).expect("a file");
    let queue = keys::keys().legacy_queue("w1");
    let queue = format!("{{ legacy = \"{queue}\", type = \"osis\" }}");
    let hero = Hero::on(&redis)
        .set("supervisor.cron_dir", &format!("{:?}", path("cron.d")))
        .set("notify.ops.journal", "true")
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", &format!("[{queue}]"));
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    assert_eq!(field(&redis, "a", "script").as_deref(), Some("1"));
    hero.run(&["backup", &path("FILE")]).code(0);
    let line = "{\"context\":\"\",\"type\":\"note\",\"object\":{\"id\":\"a\"}}\n";
    fs::write(path("LINES"), line).expect("a file");
    redis.run("CONFIG SET requirepass secret");
    // A long command gets another answer than a short one.
    let long = "1 + ".repeat(30_000) + "1";
    for words in [["submit", "-t", "osis", "-e", &long], ["exec", "-t", "osis", "-e", "1"]] {
        hero.run(&words).code(77).says("NOAUTH");
    }
    let listed: BTreeSet<String> = commands(&hero, &[]).into_iter().collect();
    assert_eq!(listed, WORDS.iter().map(|(name, _)| (*name).to_owned()).collect());
    for (name, words) in WORDS {
        let Some(words) = words else { continue };
        let words = words.iter().map(|word| match *word {
            "FILE" | "LINES" | "OTHER" => path(word),
            word => word.to_owned(),
        });
        let words: Vec<String> = name.split(' ').map(ToOwned::to_owned).chain(words).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        hero.run(&words).code(77).says("NOAUTH");
    }
}
