//! Indentation, prefixes and names.

use ::rhai::INT;

use super::context::{CallResult, SalJob, operation};
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("text", "Texts: changes, replacements and templates.");
    functions.add(
        "dedent",
        ["text"],
        "Removes the indentation that all lines share.",
        r#"
dedent("    first\n      second\n    third")
// → first
//     second
//   third"#,
        |text: &str| dedent(text),
    );
    functions.add(
        "prefix",
        ["text", "prefix"],
        "Puts a prefix in front of every line.",
        r#"
prefix("one\ntwo", "> ")
// → > one
//   > two"#,
        |text: &str, prefix: &str| {
            operation("prefix", "", |job| {
                let number = text.lines().count();
                check_length(job, text.len().saturating_add(number.saturating_mul(prefix.len())))?;
                let lines: Vec<String> =
                    text.lines().map(|line| format!("{prefix}{line}")).collect();
                Ok(lines.join("\n"))
            })
        },
    );
    functions.add(
        "name_fix",
        ["text"],
        "Converts a text to a plain name: lower case, only characters of ASCII, with one `_` for each \
         run of spaces and of the characters , - \" ' # ! ( ) [ ] = + < > @ $ % ^ & *.",
        r#"
name_fix("My Report (final), v2.PDF")
// → my_report_final_v2.pdf"#,
        |text: &str| name_fix(text),
    );
    functions.add(
        "path_fix",
        ["path"],
        "Does the same as name_fix to the last part of a path.",
        r#"
path_fix("/srv/My Files/New Page.md")
// → /srv/My Files/new_page.md"#,
        |path: &str| match path.rsplit_once('/') {
            Some((folder, name)) => format!("{folder}/{}", name_fix(name)),
            None => name_fix(path),
        },
    );
    functions.add(
        "name_fix_kubernetes",
        ["text"],
        "Converts a text to a name for Kubernetes: at most 63 lower-case letters, digits and `-`.",
        r#"
name_fix_kubernetes("My App_v2!")
// → my-app-v2"#,
        |text: &str| name_fix_kubernetes(text),
    );
    register_widths(functions);
}

fn register_widths(functions: &mut Functions<'_>) {
    functions.add(
        "repeat",
        ["text", "count"],
        "Returns the text repeated a number of times.",
        r#"
repeat("-=", 3)
// → -=-=-="#,
        |text: &str, count: INT| {
            operation("repeat", "", |job| {
                let count = usize::try_from(count).map_err(|_| "the count is negative")?;
                check_length(job, text.len().saturating_mul(count))?;
                Ok(text.repeat(count))
            })
        },
    );
    functions.add(
        "pad_right",
        ["text", "width"],
        "Returns the text with spaces at its end, up to a number of characters.",
        r#"
pad_right("ab", 4) + "|"
// → ab  |"#,
        |text: &str, width: INT| {
            operation("pad_right", "", |job| Ok(format!("{text}{}", spaces(job, text, width)?)))
        },
    );
    functions.add(
        "pad_left",
        ["text", "width"],
        "Returns the text with spaces at its start, up to a number of characters.",
        r#"
pad_left("7", 3)
// →   7"#,
        |text: &str, width: INT| {
            operation("pad_left", "", |job| Ok(format!("{}{text}", spaces(job, text, width)?)))
        },
    );
}

/// Returns the spaces that a text lacks to a width.
fn spaces(job: SalJob<'_>, text: &str, width: INT) -> CallResult<String> {
    let width = usize::try_from(width).unwrap_or_default();
    check_length(job, width)?;
    Ok(" ".repeat(width.saturating_sub(text.chars().count())))
}

pub(super) fn check_length(job: SalJob<'_>, bytes: usize) -> CallResult<()> {
    let bytes_max = job.run.limits.string_size_max;
    if bytes as u64 > bytes_max {
        return Err(format!("the result is longer than {bytes_max} bytes").into());
    }
    Ok(())
}

/// Removes the shared indentation of a command with several lines, so that a script can indent it.
pub(super) fn dedented(command: &str) -> String {
    if command.trim_end().contains('\n') { dedent(command) } else { command.to_owned() }
}

/// Removes the indentation that all lines share; a tab counts as four spaces.
fn dedent(text: &str) -> String {
    let width = |c: char| if c == '\t' { 4 } else { 1 };
    let indentation = |line: &str| -> usize {
        line.chars().take_while(|c| [' ', '\t'].contains(c)).map(width).sum()
    };
    let lines = || text.lines().map(|line| if line.trim().is_empty() { "" } else { line });
    let shared = lines().filter(|line| !line.is_empty()).map(indentation).min().unwrap_or_default();
    let dedented: Vec<&str> = lines()
        .map(|line| {
            let mut left = shared;
            line.trim_start_matches(|c: char| {
                let removed = left > 0 && [' ', '\t'].contains(&c);
                left = left.saturating_sub(width(c));
                removed
            })
        })
        .collect();
    dedented.join("\n")
}

/// Replaces each run of white space and special characters by one `_`, and removes all that is not ASCII.
fn name_fix(text: &str) -> String {
    let mut fixed = String::with_capacity(text.len());
    let mut after_gap = false;
    for c in text.chars().filter(char::is_ascii) {
        let is_gap = c.is_whitespace() || ",-\"'#!()[]=+<>@$%^&*".contains(c);
        if !is_gap {
            fixed.push(c.to_ascii_lowercase());
        } else if !after_gap {
            fixed.push('_');
        }
        after_gap = is_gap;
    }
    fixed
}

/// Converts to a name for Kubernetes: letters, digits and `-`, at most 63, a letter or digit at either end.
fn name_fix_kubernetes(text: &str) -> String {
    let fixed: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let parts: Vec<&str> = fixed.split('-').filter(|part| !part.is_empty()).collect();
    let joined = parts.join("-");
    joined.get(..63).unwrap_or(&joined).trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_indentation_is_removed() {
        assert_eq!(dedented("  ls -l"), "  ls -l");
        assert_eq!(dedented("\n    if x\n      y\n\n    fi\n  "), "\nif x\n  y\n\nfi\n");
        assert_eq!(dedented("a\n  b"), "a\n  b");
        assert_eq!(dedented("\ta\n    b\n\t\tc"), "a\nb\n\tc");
    }

    #[test]
    fn name_fix_returns_a_plain_name() {
        for (text, fixed) in [
            ("Hello, World!", "hello_world_"),
            ("a - b", "a_b"),
            ("été", "t"),
            ("", ""),
            ("?", "?"),
        ] {
            assert_eq!(name_fix(text), fixed);
        }
    }
}
