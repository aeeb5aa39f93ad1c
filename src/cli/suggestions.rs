//! Suggestions for unknown commands: the command for a word that other programs use.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory};

use super::Cli;
use crate::proto::text::nearest;

/// Words that other programs have, by the command before them, with the commands of Hero.
const MEANT: [(&str, &[&str], &[&str]); 28] = [
    ("", &["ps", "jobs"], &["status", "top", "job list"]),
    ("", &["queues"], &["queue list"]),
    ("", &["workers", "worker", "actors"], &["actor list"]),
    ("", &["crontab", "periodic"], &["cron list"]),
    ("", &["cancel", "kill", "abort"], &["job stop"]),
    ("", &["rm", "remove"], &["job delete"]),
    ("", &["pause"], &["queue pause"]),
    ("", &["resume", "unpause"], &["queue resume"]),
    ("", &["drain"], &["queue drain", "actor drain"]),
    ("", &["purge"], &["queue purge"]),
    ("", &["schedule"], &["cron add", "submit"]),
    ("", &["start", "enqueue", "push", "add"], &["submit", "exec"]),
    ("", &["xargs", "parallel", "foreach", "batch"], &["submit"]),
    ("", &["restart", "rerun"], &["job retry"]),
    ("", &["log", "tail"], &["job logs"]),
    ("job", &["cancel", "kill", "abort"], &["job stop"]),
    ("job", &["rm", "remove", "purge"], &["job delete"]),
    ("job", &["ls", "ps", "search", "find"], &["job list"]),
    ("job", &["log", "tail"], &["job logs"]),
    ("job", &["status", "info", "get"], &["job show"]),
    ("job", &["rerun", "restart", "resume"], &["job retry"]),
    ("job", &["copy"], &["job clone"]),
    ("job", &["result"], &["job output"]),
    ("job", &["submit", "run", "add"], &["submit", "exec"]),
    ("graph", &["cancel", "kill"], &["graph stop"]),
    ("graph", &["resume", "rerun"], &["graph retry"]),
    ("cron", &["rm", "remove"], &["cron delete"]),
    ("cron", &["pause", "stop"], &["cron disable"]),
];

/// Names the command that is meant by an unknown word, and takes tips away that have little in common with
/// it: clap takes `cancel` for `clone`.
pub(super) fn suggest(error: &mut clap::Error, args: &[OsString]) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        keep_alike(error, ContextKind::InvalidArg, ContextKind::SuggestedArg);
        return;
    };
    let unknown = unknown.clone();
    let is_given = |word: &&OsString| word.as_os_str() == unknown.as_str();
    let place = args.iter().skip(1).take_while(|word| !is_given(word)).count();
    let parent = args.get(place).filter(|_| place > 0).and_then(|word| word.to_str());
    let command = Cli::command();
    let parent = parent.filter(|word| command.find_subcommand(word).is_some()).unwrap_or_default();
    let of_job = command.find_subcommand("job").and_then(|job| job.find_subcommand(&unknown));
    let known =
        MEANT.iter().find(|(of, words, _)| *of == parent && words.contains(&unknown.as_str()));
    let meant: Option<Vec<String>> = match (known, of_job) {
        (Some((_, _, meant)), _) => Some(meant.iter().map(|word| (*word).to_owned()).collect()),
        (None, Some(_)) if parent.is_empty() => Some(vec![format!("job {unknown}")]),
        _ if parent.is_empty() && unknown == "version" => Some(vec!["--version".to_owned()]),
        _ => shown_by(command.find_subcommand(parent), &unknown),
    };
    let tips = ContextKind::SuggestedSubcommand;
    match meant {
        Some(meant) => drop(error.insert(tips, ContextValue::Strings(meant))),
        None => keep_alike(error, ContextKind::InvalidSubcommand, tips),
    }
}

/// Returns the command that shows something, of those below a noun, for a word that means this elsewhere.
fn shown_by(noun: Option<&Command>, word: &str) -> Option<Vec<String>> {
    let noun = noun.filter(|_| ["show", "get", "info", "ls", "status"].contains(&word))?;
    let shown = if word == "ls" { ["list", "list"] } else { ["show", "list"] };
    let found = shown.iter().find(|name| noun.find_subcommand(name).is_some())?;
    Some(vec![format!("{} {found}", noun.get_name())])
}

/// Keeps of the tips those that are like the unknown word.
fn keep_alike(error: &mut clap::Error, unknown: ContextKind, tips: ContextKind) {
    let Some(ContextValue::String(word)) = error.get(unknown) else { return };
    let word = word.trim_start_matches('-').to_owned();
    let is_kept = |tip: &String| {
        let tip = tip.trim_start_matches('-');
        let is_part = word.starts_with(tip) || tip.starts_with(&word);
        is_part || nearest(&word, [tip].into_iter()).is_some()
    };
    let kept = match error.get(tips) {
        Some(ContextValue::String(tip)) if !is_kept(tip) => None,
        Some(ContextValue::Strings(of)) => {
            let kept: Vec<String> = of.iter().filter(|tip| is_kept(tip)).cloned().collect();
            (!kept.is_empty()).then_some(ContextValue::Strings(kept))
        }
        None => None,
        _ => return,
    };
    if let Some(kept) = kept {
        error.insert(tips, kept);
        return;
    }
    error.remove(tips);
    // Without a tip, clap has an empty list, and prints an empty line for it.
    let further = error.get(ContextKind::Suggested);
    if matches!(further, Some(ContextValue::StyledStrs(of)) if of.is_empty()) {
        error.remove(ContextKind::Suggested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> String {
        let args = line.split(' ').map(OsString::from);
        Cli::of_args(args).expect_err(line).to_string()
    }

    #[test]
    fn words_of_other_programs_name_the_command() {
        for (line, meant) in [
            ("hero job cancel 7f9c2ba4", "'job stop'"),
            ("hero job rm 7f9c2ba4", "'job delete'"),
            ("hero cancel 7f9c2ba4", "'job stop'"),
            ("hero worker list", "'actor list'"),
            ("hero pause bash", "'queue pause'"),
            ("hero ps", "'top'"),
            ("hero --json graph resume a", "'graph retry'"),
            ("hero job lst", "'list'"),
            ("hero limit show", "'limit list'"),
            ("hero graph info a", "'graph show'"),
            ("hero queue ls", "'queue list'"),
            ("hero version", "'--version'"),
            ("hero restart 7f9c2ba4", "'job retry'"),
            ("hero log 7f9c2ba4", "'job logs'"),
            ("hero cron pause nightly", "'cron disable'"),
            ("hero cron stop nightly", "'cron disable'"),
        ] {
            let wrong = fault(line);
            assert!(wrong.contains(meant), "{line}: {wrong}");
            for other in ["'clone'", "'token'", "'status'"] {
                assert!(line == "hero ps" || !wrong.contains(other), "{line}: {wrong}");
            }
        }
        for (_, _, meant) in MEANT {
            for command in meant {
                let words = format!("hero {command} --help");
                let answer = Cli::of_args(words.split(' ').map(OsString::from));
                let answer = answer.expect_err("its help").kind();
                assert_eq!(answer, clap::error::ErrorKind::DisplayHelp, "{command}");
            }
        }
    }

    #[test]
    fn wrong_tips_are_left_out() {
        for line in ["hero job confirm a", "hero job list --id a", "hero job abc a"] {
            let wrong = fault(line);
            assert!(!wrong.contains("similar") && !wrong.contains("\n\n\n"), "{line}: {wrong}");
        }
    }
}
