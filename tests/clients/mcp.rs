//! The official SDK of the Model Context Protocol in TypeScript, against `hero mcp` and `/mcp`.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Hero, Redis, Served, needs, npm};

const CLIENT: &str = include_str!("mcp.mjs");

/// Runs the client in a folder that has the SDK.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn talk(args: &[&str], config: &Path) -> Output {
    let folder = npm().expect("found");
    let name = format!("mcp-{}-{}.mjs", std::process::id(), args[0]);
    let file = folder.join(&name);
    std::fs::write(&file, CLIENT).expect("writing the client");
    let done = Command::new("node")
        .arg(&file)
        .args(args)
        .env("HERO_CONFIG", config)
        .env("HERO_TOKEN", "hero_of-another-program")
        .output();
    std::fs::remove_file(&file).expect("removing the client");
    done.expect("node runs")
}

#[track_caller]
fn assert_done(done: &Output) {
    assert_eq!(done.stdout, b"done\n", "{}", String::from_utf8_lossy(&done.stderr));
}

/// Publishes the script that the client calls as a tool.
fn publish(hero: &Hero) {
    let text = "// /// hero\n// description = \"Greets \"\n// [params.who]\n// required = true\n// [params.times]\n\
                // type = \"integer\"\n// default = 2\n// ///\n\"hello \" + params.who + \" \" + params.times";
    hero.run(&["script", "publish", "greet", "-t", "osis", "-e", text]).code(0);
}

fn has_sdk() -> bool {
    needs("npm", || npm().is_some())
}

#[test]
fn typescript_client_lists_and_calls_every_tool_of_hero_mcp() {
    if !has_sdk() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _units = ["osis-default-1", "bash-default-1"].map(|unit| hero.actor(unit).start());
    publish(&hero);
    assert_done(&talk(&["stdio", env!("CARGO_BIN_EXE_hero"), "mcp"], &hero.config_file()));
}

#[test]
fn typescript_client_lists_and_calls_every_tool_over_http() {
    if !has_sdk() {
        return;
    }
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let _units = ["osis-default-1", "bash-default-1"].map(|unit| site.hero.actor(unit).start());
    publish(&site.hero);
    let token = site.token(&["agent", "--scope", "read,submit,fleet"]);
    assert_done(&talk(&["http", &site.at("/mcp"), &token], &site.hero.config_file()));
}
