//! Completions of a shell.

use std::path::Path;

use crate::support::{Hero, Redis};

#[test]
fn completions_of_bash_complete_commands_and_values() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "my-job", "--delay", "1h"]).code(0);
    hero.run(&["cron", "add", "far", "--schedule", "@yearly", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&["queue", "pause", "type:osis:prio:0"]).code(0);
    let complete = |words: &str| {
        let line = "source <(hero completions bash); COMP_WORDS=($1); COMP_LINE=$1; COMP_POINT=${#1}; \
                    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hero_values hero \"${COMP_WORDS[COMP_CWORD]}\" \
                    \"${COMP_WORDS[COMP_CWORD-1]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let folder = Path::new(env!("CARGO_BIN_EXE_hero")).parent().expect("a folder");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let mut bash = hero.command_of_user("bash");
        let done = bash.env("PATH", path).args(["-c", line, "bash", words]).output().expect("bash");
        String::from_utf8(done.stdout).expect("text")
    };
    assert_eq!(complete("hero job show my"), "my-job\n");
    assert_eq!(complete("hero cron run f"), "far\n");
    assert_eq!(complete("hero job list --status ca"), "cancelled\n");
    assert_eq!(complete("hero submit -t os"), "osis\n");
    assert!(complete("hero queue resume type:osis").lines().any(|of| of.starts_with("osis")));
    assert!(complete("hero gra").lines().any(|of| of == "graph"), "{}", complete("hero gra"));
    assert!(hero.run(&["completions", "fish"]).code(0).stdout.contains("complete -c hero"));
}
