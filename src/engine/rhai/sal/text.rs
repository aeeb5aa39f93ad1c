//! Indentation, prefixes and names.

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
            let lines: Vec<String> = text.lines().map(|line| format!("{prefix}{line}")).collect();
            lines.join("\n")
        },
    );
    functions.add(
        "name_fix",
        ["text"],
        "Converts a text to a plain name: lower case, without accents and special characters, with \
         `_` for spaces and punctuation.",
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
}

/// Removes the shared indentation of a command with several lines, so that a script can indent it.
pub(super) fn dedented(command: &str) -> String {
    if command.trim_end().contains('\n') { dedent(command) } else { command.to_owned() }
}

fn dedent(text: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let lines = || text.lines().map(|line| if line.trim().is_empty() { "" } else { line });
    let shared = lines().filter(|line| !line.is_empty()).map(indentation).min().unwrap_or_default();
    let dedented: Vec<&str> = lines().map(|line| line.get(shared..).unwrap_or_default()).collect();
    dedented.join("\n")
}

/// Replaces each run of other characters by one `_`, but removes it before a dot and at either end.
fn name_fix(text: &str) -> String {
    let mut fixed = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars().filter(char::is_ascii) {
        if c.is_ascii_alphanumeric() || c == '.' {
            if gap && !fixed.is_empty() && c != '.' {
                fixed.push('_');
            }
            gap = false;
            fixed.push(c.to_ascii_lowercase());
        } else {
            gap = true;
        }
    }
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_indentation_is_removed() {
        assert_eq!(dedented("  ls -l"), "  ls -l");
        assert_eq!(dedented("\n    if x\n      y\n\n    fi\n  "), "\nif x\n  y\n\nfi\n");
        assert_eq!(dedented("a\n  b"), "a\n  b");
    }

    #[test]
    fn name_fix_returns_a_plain_name() {
        for (text, fixed) in
            [("Hello, World!", "hello_world"), ("a - b", "a_b"), ("été", "t"), ("", ""), ("?", "")]
        {
            assert_eq!(name_fix(text), fixed);
        }
    }
}
