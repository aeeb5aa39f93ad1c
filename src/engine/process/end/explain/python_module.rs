//! Tells a Python script that failed because a module is missing how it gets packages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::with_path;
use crate::process::prepare::{INPUT, MODULES};
use crate::proto::target::ScriptType;
use crate::proto::text::{escape, shown};

const LINES_MAX: usize = 20;
const NAME_BYTES_MAX: usize = 100;
/// The first line of the block that names a script's packages.
const BLOCK: &str = "# /// script";

/// The folders outside of the program where a module may lie.
pub(in crate::process) struct ModuleFolders<'a> {
    /// The environment of the child: its `PYTHONPATH` or `NODE_PATH`, and the folder of its input files.
    pub(in crate::process) env: &'a [(OsString, OsString)],
    /// The script type, and the paths that its sandbox has to read.
    pub(in crate::process) script_type: &'a ScriptType,
    pub(in crate::process) read: &'a [PathBuf],
}

/// Returns the note about the module that a failed script in Python missed; `source` is its text. It names no package by the
/// name of the module: on an index of packages, anybody may have taken the name of another's own module.
pub(in crate::process) fn missing_module(
    stderr: &str,
    source: &str,
    folders: &ModuleFolders<'_>,
) -> Option<String> {
    let lines = stderr.lines().rev().take(LINES_MAX);
    let (name, is_within) = lines.into_iter().find_map(module_of)?;
    let module = shown(name);
    // Of a part of a package, Python has found the package.
    if let Some(found) = folders.found(name).filter(|_| !is_within) {
        return Some(format!("note: {found}"));
    }
    let how = if source.lines().any(|line| line.trim_end() == BLOCK) {
        format!("add its package to the dependencies of the block `{BLOCK}`")
    } else {
        format!(
            "the lines `{BLOCK}`, `# dependencies = [\"PACKAGE\"]`, `# ///` at the head of the script install a package"
        )
    };
    Some(format!(
        "note: this Python has no module {module}; {how}; a module of your own comes with --input, and is found in \
         $HERO_INPUT_DIR"
    ))
}

impl ModuleFolders<'_> {
    /// Returns the folders that a variable names.
    pub(super) fn of_variable(&self, name: &str) -> Vec<PathBuf> {
        let value = self.env.iter().find(|(of, _)| of == name).map(|(_, value)| value);
        value.into_iter().flat_map(std::env::split_paths).collect()
    }

    /// Returns where a module lies that the script did not find, and how it does.
    fn found(&self, name: &str) -> Option<String> {
        let has = |folder: &Path| {
            let (package, file) = (folder.join(name), folder.join(format!("{name}.py")));
            folder.is_absolute() && (package.is_dir() || file.is_file())
        };
        if self.of_variable(INPUT).iter().any(|folder| has(folder)) {
            return Some(format!(
                "{name} is among the input files; sys.path.insert(0, os.environ[\"{INPUT}\"]) before its import finds it"
            ));
        }
        let hidden = self.of_variable(MODULES).into_iter().find(|folder| has(folder))?;
        let (of, read) = (self.script_type, with_path("read", self.read, &hidden));
        let folder = escape(&hidden.to_string_lossy());
        Some(format!(
            "{name} is in {folder}, which the sandbox hides; [type.{of}.sandbox] {read} would allow it"
        ))
    }
}

/// Returns the first part of the name of the module that a line says is missing, and whether it has further parts.
fn module_of(line: &str) -> Option<(&str, bool)> {
    let quoted = line.strip_prefix("ModuleNotFoundError: No module named '")?;
    let (name, _) = quoted.split_once('\'')?;
    let first = name.split('.').next().unwrap_or(name);
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_legal = !first.is_empty() && first.len() <= NAME_BYTES_MAX && is_name(first);
    is_legal.then_some((first, first.len() < name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(line: &str, source: &str, env: &[(OsString, OsString)]) -> Option<String> {
        let script_type = "python".parse().expect("legal");
        let folders = ModuleFolders { env, script_type: &script_type, read: &[] };
        missing_module(line, source, &folders)
    }

    #[test]
    fn a_missing_module_is_reported_with_the_lines_that_install_a_package() {
        let line = "Traceback (most recent call last):\n  File \"x\", line 1\n\
                    ModuleNotFoundError: No module named 'requests.adapters'\n";
        let hint = note(line, "import requests.adapters", &[]).expect("a note");
        assert!(hint.contains("no module requests; the lines `# /// script`"), "{hint}");
        assert!(!hint.contains("[\"requests\"]"), "the package may be a stranger's: {hint}");
        let source = "# /// script\n# dependencies = []\n# ///\nimport requests";
        let hint = note(line, source, &[]).expect("a note");
        assert!(hint.contains("add its package to the dependencies"), "{hint}");
    }

    #[test]
    fn own_module_that_lies_outside_is_named_with_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("company.py"), "").expect("written");
        let line = "ModuleNotFoundError: No module named 'company'\n";
        let path = folder.path().as_os_str().to_owned();
        let hint = note(line, "", &[(MODULES.into(), path.clone())]).expect("a note");
        let read = format!("read = [\"{}\"] would allow it", folder.path().display());
        assert!(hint.contains(&read) && !hint.contains("PACKAGE"), "{hint}");
        let part = "ModuleNotFoundError: No module named 'company.part'\n";
        let hint = note(part, "", &[(MODULES.into(), path.clone())]).expect("a note");
        assert!(!hint.contains("hides"), "it has the package: {hint}");
        let hint = note(line, "", &[(INPUT.into(), path)]).expect("a note");
        assert!(hint.contains("company is among the input files"), "{hint}");
    }

    #[test]
    fn other_errors_and_names_that_are_none_are_not_reported() {
        let long = format!("ModuleNotFoundError: No module named '{}'", "a".repeat(101));
        for line in [
            "",
            "ValueError: No module named 'x'",
            "ModuleNotFoundError: No module named ''",
            "ModuleNotFoundError: No module named 'a\u{1b}[31m'",
            "ModuleNotFoundError: No module named 'a",
            &long,
        ] {
            assert_eq!(note(line, "", &[]), None, "{line}");
        }
    }
}
