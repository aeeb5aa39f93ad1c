//! The interpreter that the first line of a script names, such as `#!/bin/bash -e`; and the scripts that serve the calls of
//! a session, by the interpreter of its type.

use std::path::Path;

use super::command::is_python;
use super::types::TypeConfig;

/// The shells that take each other's scripts.
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
/// The options of `env` before the words that it splits itself.
pub const ENV_SPLITS: [&str; 3] = ["--split-string=", "--split-string ", "-S"];

/// Returns true if the first line of a script names the interpreter of `command`.
pub fn runs_with(source: &str, command: &[String]) -> bool {
    let line = source.lines().next().and_then(|line| line.strip_prefix("#!"));
    let line = line.unwrap_or_default().trim();
    let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    if file_name(program) != "env" {
        return is_interpreter_of(program, command);
    }
    let rest =
        ENV_SPLITS.iter().find_map(|option| rest.trim().strip_prefix(option)).unwrap_or(rest);
    let mut words = rest.split_ascii_whitespace();
    let program = words.find(|word| !word.starts_with('-') && !word.contains('='));
    program.is_some_and(|program| is_interpreter_of(program, command))
}

/// Returns true if a script that names `program` runs with the interpreter of `command`.
pub fn is_interpreter_of(program: &str, command: &[String]) -> bool {
    let (asked, own) = (file_name(program), file_name(command.first().map_or("", String::as_str)));
    let both = |names: &dyn Fn(&str) -> bool| names(asked) && names(own);
    !asked.is_empty() && asked == own
        || both(&|name| SHELLS.contains(&name))
        || both(&|name| is_python(&[name.to_owned()]))
        || both(&|name| name == "node" || name == "nodejs")
}

/// Returns the name of a program without its folder.
pub fn file_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The scripts that serve calls, by the start of the name of their program.
const DRIVERS: [(&str, &str); 2] =
    [("bash", include_str!("session/driver.sh")), ("node", include_str!("session/driver.js"))];
/// The same for Python.
const PYTHON: &str = include_str!("session/driver.py");

impl TypeConfig {
    /// Returns the script that serves the calls of a session; `None` if the type has no sessions. Its argument is the
    /// number of seconds without a call after which it ends.
    pub fn session_driver(&self) -> Option<&'static str> {
        let command = &self.command;
        if is_python(command) {
            return Some(PYTHON);
        }
        let program = file_name(command.first()?);
        DRIVERS.iter().find(|(name, _)| *name == program).map(|(_, driver)| *driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_names_the_interpreter_of_a_command() {
        for (line, program) in [
            ("#!/bin/bash -e", "/bin/bash"),
            ("#!/bin/sh", "/bin/bash"),
            ("#!/usr/bin/env python3", "/usr/bin/python3"),
            ("#!/usr/bin/env -S A=1 node --no-warnings", "/usr/bin/node"),
            ("#!/usr/bin/env -i perl", "/usr/bin/perl"),
        ] {
            assert!(runs_with(&format!("{line}\n1"), &[program.to_owned()]), "{line}");
        }
        for line in ["", "#!", "#!/usr/bin/env", "#!/usr/bin/ruby", "/bin/bash", "# !/bin/bash"] {
            assert!(!runs_with(line, &["/bin/bash".to_owned()]), "{line}");
        }
    }
}
