//! Tells `HeroScript` from Rhai: older programs submit both to one type.

/// The constants of scripts in Rhai, where `!!params.flag` is a condition.
const CONSTANTS: [&str; 7] =
    ["JOB_ID", "CALLER_ID", "CONTEXT_ID", "ENV", "args", "params", "INPUTS"];

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
