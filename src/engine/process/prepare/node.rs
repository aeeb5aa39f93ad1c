//! TypeScript: newer versions of node run it, with an option or without.

use std::ffi::OsString;

use super::SCRIPT;
use crate::config::file_name;

const TYPESCRIPT: [&str; 3] = [".ts", ".mts", ".cts"];
const OPTIONS: &str = "NODE_OPTIONS";
/// Prints nothing if node runs TypeScript, or the option that makes it, or its version.
const QUESTION: &str = "const option = '--experimental-strip-types'; \
    process.features.typescript ? '' : \
    process.allowedNodeEnvironmentFlags.has(option) ? option : process.version";

/// Returns true if node has to be asked whether it runs such a script. A command with own options needs nothing.
pub(super) fn is_in_question<'a>(
    command: &[String],
    extension: &str,
    mut variables: impl Iterator<Item = &'a String>,
) -> bool {
    TYPESCRIPT.contains(&extension)
        && command.first().is_some_and(|program| file_name(program).starts_with("node"))
        && command.get(1).is_some_and(|word| word == SCRIPT)
        && variables.all(|name| name != OPTIONS)
}

pub(super) fn question() -> Vec<OsString> {
    vec!["-p".into(), QUESTION.into()]
}

/// Returns the option that its answer asks for, if any; or why this node cannot run the script, for a person.
pub(super) fn option_of(answer: &str) -> Result<Option<OsString>, String> {
    match answer.trim() {
        "" => Ok(None),
        option if option.starts_with("--") => Ok(Some(option.into())),
        version => Err(format!(
            "cannot run TypeScript: node is {version}, and 22.6 is the first that can; install a newer \
             node, or submit JavaScript"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_commands_of_node_with_typescript_are_in_question() {
        let variables = ["A".to_owned(), OPTIONS.to_owned()];
        let is = |words: &[&str], extension, variables: &[String]| {
            let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            is_in_question(&command, extension, variables.iter())
        };
        let plain = ["/usr/bin/node", "{script}"];
        assert!(is(&plain, ".ts", &variables[..1]) && is(&plain, ".mts", &[]));
        assert!(!is(&plain, ".mjs", &[]) && !is(&plain, ".ts", &variables));
        assert!(!is(&["node", "--import=tsx", "{script}"], ".ts", &[]));
        assert!(!is(&["/usr/bin/deno", "{script}"], ".ts", &[]));
    }

    #[test]
    fn node_without_typescript_is_named_with_the_first_that_has_it() {
        assert_eq!(option_of("\n"), Ok(None));
        assert_eq!(option_of("--experimental-x\n"), Ok(Some("--experimental-x".into())));
        let error = option_of("v20.1.0\n").expect_err("too old");
        assert!(error.contains("node is v20.1.0") && error.contains("22.6"), "{error}");
    }
}
