//! Suggestions for options and arguments that a command does not take: the option that does.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::Cli;
use crate::proto::job::{FieldKind, Setting};

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

/// Says where an unknown option or argument belongs, if that is known, in place of other tips.
pub(super) fn suggest(error: &mut clap::Error, args: &[OsString]) {
    if let Some(tip) = tip(error, args) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if error.kind() == ErrorKind::UnknownArgument && !takes_arguments(args) {
        // For clap any command with a name takes options as names: `-- --group`.
        error.remove(ContextKind::Suggested);
    }
}

fn tip(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let words: Vec<&str> = args.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let (name, command) = given_command(&words);
    let has_arguments = command.get_arguments().any(clap::Arg::is_last_set);
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
            known.map(|(_, _, tip)| (*tip).to_owned()).or_else(|| of_set(&command, word))
        }
        _ => None,
    }
}

/// Returns true if the command passes arguments on to a script.
fn takes_arguments(args: &[OsString]) -> bool {
    let words: Vec<&str> = args.iter().skip(1).filter_map(|word| word.to_str()).collect();
    given_command(&words).1.get_arguments().any(clap::Arg::is_last_set)
}

/// Returns the tip for an option of `hero submit` at a command that takes settings by `--set`.
fn of_set(command: &Command, word: &str) -> Option<String> {
    let name = word.trim_start_matches('-').replace('-', "_");
    let set = command.get_arguments().find(|arg| arg.get_long() == Some("set"))?;
    let form = set.get_value_names()?.first()?.replace("FIELD", "NAME");
    Setting::named(&name)?;
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
            let args = line.split(' ').map(OsString::from);
            let wrong = Cli::of_args(args).expect_err(line).to_string();
            assert!(wrong.contains(said), "{line}: {wrong}");
            assert!(!wrong.contains("'-- ") && !wrong.contains("similar"), "{line}: {wrong}");
        }
        for line in
            ["hero job show a --group b", "hero queue pause bash --grup a", "hero cron show a -x"]
        {
            let args = line.split(' ').map(OsString::from);
            let wrong = Cli::of_args(args).expect_err(line).to_string();
            assert!(!wrong.contains("'-- "), "{line}: {wrong}");
        }
        let width = "hero exec a.sh --width 3".split(' ').map(OsString::from);
        let wrong = Cli::of_args(width).expect_err("no such option").to_string();
        assert!(wrong.contains("'-- --width'"), "{wrong}");
    }
}
