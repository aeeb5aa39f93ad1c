//! The text of a script, as its file has it, and its first line, such as `#!/bin/bash -e`. The configured command
//! runs the script; the options in that line count as they do by hand, if it names the same interpreter.

use std::borrow::Cow;
use std::ffi::OsString;

use crate::config::{ENV_SPLITS, file_name, is_interpreter_of};
use crate::engine::Failure;
use crate::proto::job::InvalidJob;
use crate::proto::text::shown;

/// Characters that `env -S` quotes and expands with.
const QUOTES: [char; 4] = ['\'', '"', '\\', '$'];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Asked {
    /// The options before the file of the script.
    pub(super) options: Vec<OsString>,
    pub(super) variables: Vec<(String, String)>,
}

/// Returns the text for the file of a script, with this system's line ends for a shell. Fails if it contains a NUL.
pub(super) fn to_write(source: &str, is_of_shell: bool) -> Result<Cow<'_, str>, Failure> {
    if let Some(at) = source.find('\0') {
        let line = source[..at].matches('\n').count() + 1;
        return Err(illegal(&format!("has a NUL in line {line}")));
    }
    let source = without_mark(source);
    // A shell takes the carriage return for a part of the last word.
    let converts = is_of_shell && all_lines_end_with_cr_lf(source);
    Ok(if converts { source.replace("\r\n", "\n").into() } else { source.into() })
}

/// Returns a text without the byte order mark that some editors write, and few interpreters accept.
pub(super) fn without_mark(source: &str) -> &str {
    source.strip_prefix('\u{feff}').unwrap_or(source)
}

pub(super) fn illegal(reason: &str) -> Failure {
    Failure::Invalid { message: InvalidJob::new("script", reason.to_owned()).to_string() }
}

/// Returns true for the text of an editor on Windows. Where only some lines end so, the script means it.
fn all_lines_end_with_cr_lf(source: &str) -> bool {
    let lines = source.matches('\n').count();
    lines > 0 && source.matches("\r\n").count() == lines
}

/// Returns what the first line of a script asks of the interpreter of `command`; nothing if it names another.
/// The error is why it cannot be honoured, for a person.
pub(super) fn asked(source: &str, command: &[String]) -> Result<Asked, String> {
    let line = source.lines().next().and_then(|line| line.strip_prefix("#!"));
    let line = line.unwrap_or_default().trim();
    let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    if file_name(program) == "env" {
        return of_env(rest.trim(), command);
    }
    let mut asked = Asked::default();
    if is_interpreter_of(program, command) {
        asked.options = rest.split_ascii_whitespace().map(OsString::from).collect();
    }
    Ok(asked)
}

/// Reads the words after `env`: its options, variables, the interpreter and its options.
fn of_env(text: &str, command: &[String]) -> Result<Asked, String> {
    let split = ENV_SPLITS.iter().find_map(|option| text.strip_prefix(option));
    let text = split.unwrap_or(text);
    let mut words = text.split_ascii_whitespace().peekable();
    let (mut asked, mut own_option) = (Asked::default(), None);
    while let Some(word) = words.next_if(|word| word.starts_with('-') || word.contains('=')) {
        match word.split_once('=') {
            Some((name, value)) if !name.starts_with('-') => {
                asked.variables.push((name.to_owned(), value.to_owned()));
            }
            _ => own_option = own_option.or(Some(word)),
        }
    }
    if !words.next().is_some_and(|program| is_interpreter_of(program, command)) {
        return Ok(Asked::default());
    }
    if let Some(option) = own_option {
        return Err(format!("cannot honour the option {} of env in its first line", shown(option)));
    }
    if split.is_some() && text.contains(QUOTES) {
        return Err(
            "cannot honour quotes, backslashes and variables of env in its first line".to_owned()
        );
    }
    asked.options = words.map(OsString::from).collect();
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_script_of_a_shell_whose_lines_all_end_with_cr_lf_is_converted() {
        for (source, written) in [
            ("echo a\r\necho b\r\n", "echo a\necho b\n"),
            ("echo a\r\necho b", "echo a\necho b"),
            ("cat <<E\nGET / HTTP/1.0\r\n\r\nE\n", "cat <<E\nGET / HTTP/1.0\r\n\r\nE\n"),
            ("echo a\r", "echo a\r"),
            ("\u{feff}echo a\r\n", "echo a\n"),
        ] {
            assert_eq!(to_write(source, true).expect("legal"), written);
            assert_eq!(to_write(source, false).expect("legal"), without_mark(source));
        }
    }

    fn read(line: &str, program: &str) -> Result<(String, String), String> {
        let asked = asked(&format!("{line}\necho"), &[program.to_owned()])?;
        let options: Vec<_> =
            asked.options.iter().map(|o| o.to_string_lossy().into_owned()).collect();
        let variables: Vec<_> = asked.variables.iter().map(|(n, v)| format!("{n}={v}")).collect();
        Ok((options.join(" "), variables.join(" ")))
    }

    #[test]
    fn options_of_the_same_interpreter_are_taken() {
        for (line, program, options) in [
            ("#!/bin/bash -e", "/bin/bash", "-e"),
            ("#! /bin/bash\t-e -u\r", "/usr/bin/bash", "-e -u"),
            ("#!/bin/sh -e", "/bin/bash", "-e"),
            ("#!/usr/bin/env bash", "/bin/bash", ""),
            ("#!/usr/bin/env -S bash -euo pipefail", "/bin/bash", "-euo pipefail"),
            ("#!/usr/bin/env -Sbash -e", "/bin/bash", "-e"),
            ("#!/usr/bin/env --split-string=bash -e", "/bin/bash", "-e"),
            ("#!/usr/bin/env bash -e", "/bin/bash", "-e"),
            ("#!/usr/bin/python3.12 -O", "/usr/bin/python3", "-O"),
            ("#!/usr/bin/env -S node --no-warnings", "/usr/bin/nodejs", "--no-warnings"),
            ("#!/usr/bin/perl -w", "/usr/bin/perl", "-w"),
            ("#!/usr/bin/env -S uv run --script", "/usr/bin/python3", ""),
            ("#!/bin/zsh -f", "/bin/bash", ""),
            ("#!/bin/bash -e", "/usr/bin/python3", ""),
            ("# !/bin/bash -e", "/bin/bash", ""),
            ("#!", "/bin/bash", ""),
            ("#!/usr/bin/env", "/bin/bash", ""),
            ("", "", ""),
        ] {
            assert_eq!(read(line, program), Ok((options.to_owned(), String::new())), "{line}");
        }
    }

    #[test]
    fn variables_of_env_are_taken_and_its_options_are_refused() {
        let taken = read("#!/usr/bin/env -S A=1 B= python3 -u", "/usr/bin/python3");
        assert_eq!(taken, Ok(("-u".to_owned(), "A=1 B=".to_owned())));
        for line in [
            "#!/usr/bin/env -i bash",
            "#!/usr/bin/env -S -uA bash -e",
            "#!/usr/bin/env --chdir=/ bash",
        ] {
            let why = read(line, "/bin/bash").expect_err(line);
            assert!(why.starts_with("cannot honour the option -"), "{why}");
        }
        let quoted = read("#!/usr/bin/env -S bash -c 'a b'", "/bin/bash").expect_err("quotes");
        assert!(quoted.starts_with("cannot honour quotes"), "{quoted}");
    }
}
