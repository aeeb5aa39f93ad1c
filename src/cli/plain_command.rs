//! A command after `--`, as in `hero exec -- ls -la`: the job is a script of one line for the shell.

use super::input::parsed;
use crate::config::{Config, check_configured, runs_with};
use crate::error::{Error, Exit};
use crate::proto::job::JobSpec;
use crate::proto::target::ScriptType;

/// The type of the job unless another is named.
const TYPE: &str = "bash";

/// Makes the arguments of a job its script: a command whose words reach it as they were given. Fails with
/// [`Exit::Usage`] if there is none, if it is a quoted line of shell, or if the named type is not run by a shell.
pub(super) fn fill(spec: &mut JobSpec, config: &Config) -> Result<(), Error> {
    let usage = |message: String| Error::new(Exit::Usage, message);
    let words = std::mem::take(&mut spec.args);
    let Some(program) = words.first().filter(|word| !word.is_empty()) else {
        let message = "nothing to run: name a file, -e CODE, --uses NAME, or a command after --";
        return Err(usage(message.to_owned()));
    };
    if words.len() == 1 && program.contains(char::is_whitespace) {
        return Err(usage(format!(
            "the command after -- is one quoted word, {0}: for a line of shell, use -e {0}; for a command, leave the \
             quotes away",
            quoted(&words)
        )));
    }
    let script_type = spec.script_type.take().map_or_else(|| parsed::<ScriptType>(TYPE), Ok)?;
    check_configured(&script_type, &config.types)?;
    let command = config.types.get(&script_type).map(|of| of.command.as_slice());
    if !command.is_some_and(|command| runs_with("#!/bin/sh", command)) {
        return Err(usage(format!(
            "a command after -- is run by a shell, and {script_type} is none: leave --type away, or name a file or \
             -e CODE before --"
        )));
    }
    if spec.name.is_none() {
        spec.name = program.rsplit('/').next().and_then(|name| name.parse().ok());
    }
    spec.script = format!("{}\n", quoted(&words));
    spec.script_type = Some(script_type);
    Ok(())
}

/// Returns words as a line for a shell, which takes each of them as it is.
fn quoted(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:@_".contains(&byte);
        if !word.is_empty() && word.bytes().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(script_type: Option<&str>, words: &[&str]) -> Result<JobSpec, Error> {
        let mut spec = JobSpec {
            args: words.iter().map(|word| (*word).to_owned()).collect(),
            script_type: script_type.map(|name| name.parse().expect("legal")),
            ..JobSpec::default()
        };
        fill(&mut spec, &Config::default()).map(|()| spec)
    }

    #[test]
    fn command_is_a_line_of_bash_with_its_words_quoted() {
        for (words, line) in [
            (&["ls", "-la"][..], "ls -la\n"),
            (&["echo", "a b", "$HOME", "*", ""], "echo 'a b' '$HOME' '*' ''\n"),
            (&["/usr/bin/printf", "it's\n"], "/usr/bin/printf 'it'\\''s\n'\n"),
            (&["A=1", "~/x", "#"], "'A=1' '~/x' '#'\n"),
        ] {
            let spec = filled(None, words).expect("a command");
            assert_eq!(spec.script, line);
            assert_eq!(spec.script_type.expect("a type").as_str(), "bash");
            assert!(spec.args.is_empty());
        }
        let spec = filled(Some("bash"), &["/usr/bin/rsync", "-a"]).expect("a command");
        assert_eq!(spec.name.expect("a name").as_str(), "rsync");
    }

    #[test]
    fn command_needs_a_word_and_a_shell() {
        for (script_type, words) in
            [(None, &[][..]), (None, &[""]), (None, &["ls | wc"]), (Some("python"), &["ls"])]
        {
            let error = filled(script_type, words).expect_err("no command");
            assert_eq!(error.exit, Exit::Usage, "{error}");
        }
        assert_eq!(filled(Some("ruby"), &["ls"]).expect_err("no type").exit, Exit::Data);
    }
}
