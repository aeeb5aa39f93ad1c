//! The README and the answers to administrators: their commands do what they say.

use std::fmt::Write;

use hero::config::Require;
use hero::sandbox::Support;

use crate::support::{Hero, Redis, needs};

const README: &str = include_str!("../../README.md");
const OPERATIONS: &str = include_str!("../../docs/operations.md");
/// Needs a terminal.
const OF_A_TERMINAL: &str = "hero top";
/// Exit with 1 where something is wrong, as a failed job is.
const JUDGEMENTS: [&str; 2] = ["hero doctor", "hero status --check"];

/// Returns the lines of the first block of the page; the first line opens the shell for the others.
fn first_lines() -> (&'static str, String) {
    let block = README.split("```sh\n").nth(1).expect("a block");
    let block = block.split("```").next().expect("its end");
    let (dev, rest) = block.split_once('\n').expect("lines");
    (dev, rest.to_owned())
}

#[test]
fn first_lines_of_the_readme_run_as_they_stand() {
    let (dev, lines) = first_lines();
    assert!(dev.starts_with("hero dev -- bash"), "{dev}");
    assert!(lines.lines().count() <= 4, "{lines}");
    if !needs("landlock", || Support::of_this_kernel().level() >= Require::Basic) {
        return;
    }
    let done = Hero::on(&Redis::absent(false)).run(&["dev", "--", "bash", "-c", &lines]).code(0);
    assert!(done.stdout.starts_with("42\nhello\nID "), "{done:#?}");
    let refused = done.stderr.contains("listing /home was refused; [type.bash.sandbox] read");
    assert!(refused, "{done:#?}");
    for state in ["finished  osis", "finished  python", "failed    bash"] {
        assert!(done.stdout.contains(state), "{state}: {done:#?}");
    }
}

/// Returns the commands of the program in the answers to the questions of administrators, without comments.
fn answers() -> Vec<&'static str> {
    let section = OPERATIONS.split("\n## ").find(|part| part.starts_with("Twenty questions"));
    let section = section.expect("the section");
    let questions = section.lines().filter(|line| line.starts_with("### ") && line.ends_with('?'));
    assert_eq!(questions.count(), 20);
    let commands = section.lines().filter(|line| line.starts_with("hero "));
    commands.map(|line| line.split(" #").next().unwrap_or_default().trim_end()).collect()
}

#[test]
fn answers_to_the_questions_of_administrators_run_as_they_stand() {
    let redis = Redis::absent(false);
    let backup = redis.folder().join("backup").display().to_string();
    let mut script = "hero submit -t osis --id failed-1 --caller ann -e 'throw \"HTTP 503\"'\n\
                      hero job wait failed-1\n\
                      hero submit -t osis --id waits-1 --delay 1h -e '1'\n\
                      hero token new ci --scope read\n\
                      echo 1 > report.rhai; hero cron add report --schedule '0 2 * * *' report.rhai\n"
        .to_owned();
    let commands = answers();
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands.iter().filter(|command| **command != OF_A_TERMINAL) {
        let id = if command.starts_with("hero job stop") { " waits-1" } else { " failed-1" };
        let line = command.replace(" ID", id).replace("/var/backups/hero.jsonl", &backup);
        let allowed = u8::from(JUDGEMENTS.contains(command));
        let said = command.replace('\'', "");
        let _ = writeln!(script, "{line} || [ $? -le {allowed} ] || echo 'NO ANSWER: {said}'");
    }
    let script = format!("cd '{}'\n{script}", redis.folder().display());
    let done = Hero::on(&redis).run(&["dev", "--", "bash", "-c", &script]).code(0);
    assert!(!done.stdout.contains("NO ANSWER"), "{done:#?}");
}
