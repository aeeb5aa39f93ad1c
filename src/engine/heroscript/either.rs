//! The engine of the script types `osis` and `sal`: Rhai, and `HeroScript` where a script is in that form, as
//! older programs submit both to one type.

use std::path::PathBuf;

use super::HeroScriptEngine;
use crate::engine::rhai::{Finding, RhaiEngine};
use crate::engine::{Cancel, Engine, Failure, Log, Script, Success};
use crate::proto::target::ScriptType;

/// The constants of scripts in Rhai, where `!!params.flag` is a condition.
const CONSTANTS: [&str; 7] =
    ["JOB_ID", "CALLER_ID", "CONTEXT_ID", "ENV", "args", "params", "INPUTS"];

/// Runs scripts in Rhai and in `HeroScript`.
#[derive(Debug)]
pub struct EitherEngine {
    of_actions: HeroScriptEngine,
}

impl EitherEngine {
    /// Creates an engine over the engine of Rhai, with the folders of its modules.
    pub fn new(rhai: RhaiEngine, folders: &[PathBuf]) -> Self {
        Self { of_actions: HeroScriptEngine::over(rhai, folders) }
    }

    /// Returns every mistake that can be found without running a script, ordered by line. `elsewhere` are functions of
    /// other script types, with their types.
    pub fn check(&self, source: &str, elsewhere: &[(&str, &str)]) -> Vec<Finding> {
        if is_of_actions(source) {
            self.of_actions.check(source)
        } else {
            self.rhai().check(source, elsewhere)
        }
    }

    fn rhai(&self) -> &RhaiEngine {
        &self.of_actions.rhai
    }
}

/// Returns true for a script whose first statement is an action: `!!actor.name`. In Rhai a variable cannot stand
/// there before it has a value, unless it is a constant of every script.
pub(super) fn is_of_actions(source: &str) -> bool {
    let lines = source.strip_prefix('\u{feff}').unwrap_or(source).lines().map(str::trim_start);
    let is_code =
        |line: &&str| !(line.is_empty() || line.starts_with("//") || line.starts_with("#!"));
    let action = lines.clone().find(is_code).and_then(|line| line.strip_prefix("!!"));
    let Some((actor, rest)) = action.and_then(|action| action.split_once('.')) else {
        return false;
    };
    let is_name = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let name = rest.split_ascii_whitespace().next().unwrap_or_default();
    is_name(actor) && is_name(name) && !CONSTANTS.contains(&actor)
}

impl Engine for EitherEngine {
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure> {
        if is_of_actions(script.source) {
            self.of_actions.run(script, cancel, log)
        } else {
            self.rhai().run(script, cancel, log)
        }
    }

    fn stack_bytes(&self) -> usize {
        self.rhai().stack_bytes()
    }

    fn warm_up(&self) {
        self.rhai().warm_up();
    }

    fn unavailable(&self) -> Option<String> {
        self.rhai().unavailable()
    }

    fn capabilities(&self) -> Vec<String> {
        self.rhai().capabilities()
    }

    fn script_type(&self) -> &ScriptType {
        self.rhai().script_type()
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_actions;

    #[test]
    fn script_is_of_actions_if_its_first_statement_is_one() {
        for source in [
            "!!person.define name:Ann",
            "\u{feff}#!/usr/bin/env hero\n\n// people\n  !!person.define\n",
            "!!a.b\r\n",
        ] {
            assert!(is_of_actions(source), "{source}");
        }
        for source in [
            "",
            "40 + 2",
            "!!params.flag",
            "!!true",
            "let x = 1; !!x.y",
            "!!a.b()",
            "!! a.b",
            "// !!a.b",
        ] {
            assert!(!is_of_actions(source), "{source}");
        }
    }
}
