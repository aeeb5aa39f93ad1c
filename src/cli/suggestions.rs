//! Suggestions for unknown commands: the command for a word that other programs use; and for options and arguments that a
//! command does not take: the option that does.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::Cli;
use crate::proto::job::{FieldKind, Setting};
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

/// The tip for an argument of a script that stands before `--`.
const OF_SCRIPT: &str = "arguments of the script come after --: hero exec report.py -- north";
/// Options that a command does not have, with the tips; an empty command is any.
const TIPS: [(&str, &str, &str); 2] = [
    ("", "--retry", "the number of further attempts is --retries"),
    (
        "submit",
        "--wait",
        "hero exec waits for the end of a new job, hero job wait ID for the end of any",
    ),
];

/// Names the command that is meant by an unknown word, and takes tips away that have little in common with
/// it: clap takes `cancel` for `clone`.
pub(super) fn suggest_command(error: &mut clap::Error, args: &[OsString]) {
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

/// Returns where an unknown option or argument would be legal, if that is known, in place of other tips.
pub(super) fn suggest_option(error: &mut clap::Error, args: &[OsString]) {
    let words: Vec<&str> = args.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let (name, command) = given_command(&words);
    // A command that passes arguments on to a script.
    let has_arguments = command.get_arguments().any(clap::Arg::is_last_set);
    if let Some(tip) = tip(error, &words, (&name, &command), has_arguments) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if error.kind() == ErrorKind::UnknownArgument && !has_arguments {
        // For clap any command with a name takes options as names: `-- --group`.
        error.remove(ContextKind::Suggested);
    }
}

fn tip(
    error: &clap::Error,
    words: &[&str],
    (name, command): (&str, &Command),
    has_arguments: bool,
) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    match error.kind() {
        ErrorKind::ArgumentConflict => {
            let prior = error.get(ContextKind::PriorArg).map(ToString::to_string);
            let both = [word.as_str(), prior.as_deref().unwrap_or_default()];
            let is_script = both.contains(&"[FILE]") && both.contains(&"--eval <CODE>");
            (has_arguments && is_script).then(|| OF_SCRIPT.to_owned())
        }
        ErrorKind::UnknownArgument if !word.starts_with('-') => {
            has_arguments.then(|| OF_SCRIPT.to_owned())
        }
        ErrorKind::UnknownArgument if word.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
            let pair = words.windows(2).find(|pair| pair[1].starts_with(word.as_str()));
            let (option, value) = pair.map(|pair| (pair[0], pair[1]))?;
            let is_option = option.starts_with('-');
            is_option.then(|| format!("{option} takes no value below zero, such as {value}"))
        }
        ErrorKind::UnknownArgument => {
            let known = TIPS
                .iter()
                .find(|(of, option, _)| option == word && (of.is_empty() || *of == name));
            known.map(|(_, _, tip)| (*tip).to_owned()).or_else(|| of_set(command, word))
        }
        _ => None,
    }
}

/// Returns the tip for an option of `hero submit` at a command that takes settings by `--set`.
fn of_set(command: &Command, word: &str) -> Option<String> {
    let name = word.trim_start_matches('-').replace('-', "_");
    let set = command.get_arguments().find(|arg| arg.get_long() == Some("set"))?;
    let form = set.get_value_names()?.first()?.replace("FIELD", "NAME");
    let value = match Setting::named(&name)?.kind {
        FieldKind::Map | FieldKind::Object => "'{\"NAME\": \"VALUE\"}'",
        FieldKind::List | FieldKind::Texts => "'[\"VALUE\"]'",
        _ => "VALUE",
    };
    let form = form.replace("NAME", &name).replace("VALUE", value);
    Some(format!("a setting of the job is given by --set {form}"))
}

/// Returns the command that words name, with its name.
fn given_command(words: &[&str]) -> (String, Command) {
    let (mut names, mut command) = (Vec::new(), Cli::command());
    for word in words {
        if let Some(found) = command.find_subcommand(word).cloned() {
            names.push(*word);
            command = found;
        }
    }
    (names.join(" "), command)
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

    #[test]
    fn misplaced_argument_is_rejected_with_the_option_that_takes_it() {
        for (line, said) in [
            ("hero exec six.sh extra", "arguments of the script come after --"),
            ("hero submit six.sh extra", "arguments of the script come after --"),
            (
                "hero cron add --schedule @daily n six.sh extra",
                "arguments of the script come after --",
            ),
            ("hero exec -t bash -e 1 a", "arguments of the script come after --"),
            ("hero exec -t bash a -e 1", "arguments of the script come after --"),
            ("hero submit --retry 3 a.sh", "is --retries"),
            ("hero submit a.sh --wait 5s", "hero job wait ID"),
            ("hero submit a.sh --retries -1", "--retries takes no value below zero, such as -1"),
            ("hero submit a.sh --timeout -5s", "--timeout takes no value below zero, such as -5s"),
            ("hero job edit a --limit-key A", "--set limit_key=VALUE"),
            ("hero job edit a --env A=1", "--set env='{\"NAME\": \"VALUE\"}'"),
            ("hero graph retry a --timeout 3s", "--set JOB.timeout=VALUE"),
        ] {
            let wrong = fault(line);
            assert!(wrong.contains(said), "{line}: {wrong}");
            assert!(!wrong.contains("'-- ") && !wrong.contains("similar"), "{line}: {wrong}");
        }
        for line in
            ["hero job show a --group b", "hero queue pause bash --grup a", "hero cron show a -x"]
        {
            let wrong = fault(line);
            assert!(!wrong.contains("'-- "), "{line}: {wrong}");
        }
        let wrong = fault("hero exec a.sh --width 3");
        assert!(wrong.contains("'-- --width'"), "{wrong}");
    }
}
