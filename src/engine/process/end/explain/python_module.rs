//! Tells a Python script that failed because a module is missing how it gets packages.

use crate::proto::text::shown;

/// The last lines of standard error that are read.
const LINES_MAX: usize = 20;
/// The longest name of a module, in bytes.
const NAME_BYTES_MAX: usize = 100;
/// The first line of the block that names a script's packages.
const BLOCK: &str = "# /// script";

/// Returns the note about the module that a failed script in Python missed; `source` is its text.
pub(in crate::process) fn missing_module(stderr: &str, source: &str) -> Option<String> {
    let lines = stderr.lines().rev().take(LINES_MAX);
    let name = lines.into_iter().find_map(module_of)?;
    let package = shown(name);
    let how = if source.lines().any(|line| line.trim_end() == BLOCK) {
        format!("add its package, mostly \"{package}\", to the dependencies of the block `{BLOCK}`")
    } else {
        format!(
            "the lines `{BLOCK}`, `# dependencies = [\"{package}\"]`, `# ///` at the head of the script install it (its \
             package may have another name)"
        )
    };
    Some(format!("note: this Python has no module {package}; {how}"))
}

/// Returns the first part of the name of the module that a line says is missing.
fn module_of(line: &str) -> Option<&str> {
    let quoted = line.strip_prefix("ModuleNotFoundError: No module named '")?;
    let (name, _) = quoted.split_once('\'')?;
    let first = name.split('.').next().unwrap_or(name);
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (!first.is_empty() && first.len() <= NAME_BYTES_MAX && is_name(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_reported_with_the_lines_that_install_it() {
        let said = "Traceback (most recent call last):\n  File \"x\", line 1\n\
                    ModuleNotFoundError: No module named 'requests.adapters'\n";
        let note = missing_module(said, "import requests.adapters").expect("a note");
        assert!(note.contains("no module requests;"), "{note}");
        assert!(note.contains("`# dependencies = [\"requests\"]`"), "{note}");
        let source = "# /// script\n# dependencies = []\n# ///\nimport requests";
        let note = missing_module(said, source).expect("a note");
        assert!(
            note.contains("add its package, mostly \"requests\", to the dependencies"),
            "{note}"
        );
    }

    #[test]
    fn other_errors_and_names_that_are_none_are_not_reported() {
        let long = format!("ModuleNotFoundError: No module named '{}'", "a".repeat(101));
        for said in [
            "",
            "ValueError: No module named 'x'",
            "ModuleNotFoundError: No module named ''",
            "ModuleNotFoundError: No module named 'a\u{1b}[31m'",
            "ModuleNotFoundError: No module named 'a",
            &long,
        ] {
            assert_eq!(missing_module(said, ""), None, "{said}");
        }
    }
}
