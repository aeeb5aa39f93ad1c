//! Notes on scripts that fail as a module, a package or a file is missing. None names a package to install by what was
//! missing: on an index, anybody may have taken the name of another's own module.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use regex::{Captures, Regex};

use super::paths::paths_in;
use super::with_path;
use crate::process::prepare::{Environment, INPUT, MODULES};
use crate::proto::target::ScriptType;
use crate::proto::text::{escape, shown};

const LINES_MAX: usize = 100;
/// The longest line that is read, and the longest name, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024;
const NAME_BYTES_MAX: usize = 512;
/// The first line of the block that names a script's packages.
const BLOCK: &str = "# /// script";
/// The variable with the folders in which `require` of node searches for packages.
const NODE_MODULES: &str = "NODE_PATH";
/// The error of Python, with the first part of the name of the module and its further parts.
const NO_MODULE: &str =
    r"^ModuleNotFoundError: No module named '([0-9A-Za-z_]{1,100})(\.[0-9A-Za-z_.]{1,200})?'";
/// The error of node, with how it was asked for the package, and its name without the path in it.
const NO_PACKAGE: &str = r"(?-u)^Error(: Cannot find module| \[ERR_MODULE_NOT_FOUND\]: Cannot find package) '(@[\w.-]{1,100}/[\w-][\w.-]{0,100}|[\w-][\w.-]{0,200})['/]";

/// The folders outside of the program where a module may lie.
pub(in crate::process) struct ModuleFolders<'a> {
    /// The environment of the child: its `PYTHONPATH` or `NODE_PATH`, and the folder of its input files.
    pub(in crate::process) env: &'a Environment,
    /// The script type, and the paths that its sandbox has to read.
    pub(in crate::process) script_type: &'a ScriptType,
    pub(in crate::process) read: &'a [PathBuf],
}

impl ModuleFolders<'_> {
    /// Returns the note about the module that a failed script in Python missed; `source` is its text.
    pub(in crate::process) fn missing_module(&self, stderr: &str, source: &str) -> Option<String> {
        let found = last_found(NO_MODULE, stderr)?;
        let name = &found[1];
        if let Some(part) = found.get(2) {
            let part = part.as_str();
            return Some(format!("note: Python has found {name}, and in it no {name}{part}"));
        }
        if let Some(found) = self.found(name) {
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
            "note: this Python has no module {name}; {how}; a module of your own comes with --input, and is found in \
             $HERO_INPUT_DIR"
        ))
    }

    /// Returns the note about the package that a failed script of node missed.
    pub(in crate::process) fn missing_package(&self, stderr: &str) -> Option<String> {
        let found = last_found(NO_PACKAGE, stderr)?;
        let (is_import, name, of) = (found[1].contains("ERR"), &found[2], self.script_type);
        let has = |folder: &PathBuf| folder.is_absolute() && folder.join(name).exists();
        let Some(folder) = self.of_variable(NODE_MODULES).find(has) else {
            return Some(format!(
                "note: node finds no package {name}; the lines `// /// script`, `// dependencies = [\"PACKAGE\"]`, `// ///` at the \
                 head of the script install a package; env = {{ {NODE_MODULES} = \"FOLDER/node_modules\" }} of [type.{of}], and \
                 `read` of its sandbox, name a folder with packages"
            ));
        };
        Some(if is_import {
            format!(
                "note: import does not use {NODE_MODULES}; createRequire(import.meta.url)(\"{name}\") of node:module finds it"
            )
        } else {
            format!("note: {}", self.hidden(name, &folder))
        })
    }

    fn of_variable(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        self.env.get(OsStr::new(name)).into_iter().flat_map(std::env::split_paths)
    }

    /// Returns where a module of Python lies that the script did not find, and how it does.
    fn found(&self, name: &str) -> Option<String> {
        let has = |folder: &PathBuf| {
            let (package, file) = (folder.join(name), folder.join(format!("{name}.py")));
            folder.is_absolute() && (package.is_dir() || file.is_file())
        };
        if self.of_variable(INPUT).any(|folder| has(&folder)) {
            return Some(format!(
                "{name} is among the input files; sys.path.insert(0, os.environ[\"{INPUT}\"]) before its import finds it"
            ));
        }
        Some(self.hidden(name, &self.of_variable(MODULES).find(has)?))
    }

    fn hidden(&self, name: &str, folder: &Path) -> String {
        let (of, read) = (self.script_type, with_path("read", self.read, folder));
        let folder = escape(&folder.to_string_lossy());
        format!(
            "{name} is in {folder}, which the sandbox hides; [type.{of}.sandbox] {read} would allow it"
        )
    }
}

/// Returns the parts of the last line of a text that has a form.
fn last_found<'t>(form: &str, text: &'t str) -> Option<Captures<'t>> {
    let form = Regex::new(form).ok()?;
    text.lines().rev().take(LINES_MAX).find_map(|line| form.captures(line))
}

/// Returns the note about the file that a failed script missed last, if it is one below `home`, the working
/// directory of the script unless `has_other_folder`.
pub(in crate::process) fn missing_of_own_folder(
    stderr: &str,
    home: &Path,
    has_other_folder: bool,
) -> Option<String> {
    let lines = stderr.lines().rev().take(LINES_MAX);
    let mut missing = lines.filter(|line| line.len() <= LINE_BYTES_MAX && says_missing(line));
    let name = missing.find_map(|line| below_home(line, home).or_else(|| relative(line)))?;
    let is_elsewhere = has_other_folder && !name.starts_with("~/");
    let is_there = home.join(name.trim_start_matches("~/")).exists();
    if is_elsewhere || is_there || name.len() > NAME_BYTES_MAX {
        return None;
    }
    Some(format!(
        "note: a job has a HOME and a working directory of its own, with nothing but its script at first, so not \
         with {}; --input NAME=FILE gives it files, in HERO_INPUT_DIR",
        shown(&name)
    ))
}

fn says_missing(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.contains("no such file or directory") || lower.contains("enoent")
}

/// Returns the first path of a line that is below the home, as `~/NAME`.
fn below_home(line: &str, home: &Path) -> Option<String> {
    let below = |path: &&str| {
        let rest = Path::new(path).strip_prefix(home).ok()?.to_str()?;
        (!rest.is_empty()).then(|| format!("~/{rest}"))
    };
    paths_in(line).iter().flatten().find_map(below)
}

fn relative(line: &str) -> Option<String> {
    let at = line.to_ascii_lowercase().find("no such file or directory")?;
    let (before, after) = (&line[..at], &line[at..]);
    // Python and node name it after the error, programs before it, most of them in quotes.
    let name = quoted(after).or_else(|| quoted(before)).or_else(|| {
        let words = before.trim_end().strip_suffix(':')?;
        words.rsplit(": ").next().filter(|name| !name.contains(' '))
    })?;
    let is_name = !name.is_empty() && !name.starts_with(['/', '-', '~']) && !name.contains("://");
    is_name.then(|| name.trim_start_matches("./").to_owned()).filter(|name| !name.is_empty())
}

fn quoted(text: &str) -> Option<&str> {
    [('\'', '\''), ('"', '"'), ('‘', '’')].into_iter().find_map(|(open, close)| {
        let end = text.rfind(close)?;
        let begin = text[..end].rfind(open)?;
        Some(&text[begin + open.len_utf8()..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(line: &str, source: &str, env: &[(&str, &OsStr)]) -> Option<String> {
        let script_type = "python".parse().expect("legal");
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let folders = ModuleFolders { env: &env, script_type: &script_type, read: &[] };
        folders.missing_module(line, source)
    }

    #[test]
    fn a_missing_module_is_reported_with_the_lines_that_install_a_package() {
        let line = "Traceback (most recent call last):\n  File \"x\", line 1\n\
                    ModuleNotFoundError: No module named 'requests'\n";
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
        let path = folder.path().as_os_str();
        let hint = note(line, "", &[(MODULES, path)]).expect("a note");
        let read = format!("read = [\"{}\"] would allow it", folder.path().display());
        assert!(hint.contains(&read) && !hint.contains("PACKAGE"), "{hint}");
        let part = "ModuleNotFoundError: No module named 'company.part'\n";
        let hint = note(part, "", &[(MODULES, path)]).expect("a note");
        assert_eq!(hint, "note: Python has found company, and in it no company.part");
        let hint = note(line, "", &[(INPUT, path)]).expect("a note");
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

    #[test]
    fn missing_package_is_reported_with_the_folders_that_node_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("@own/shout")).expect("a folder");
        let env = [(NODE_MODULES.into(), folder.path().into())].into();
        let script_type = "node".parse().expect("legal");
        let note = |line: &str| {
            let folders = ModuleFolders { env: &env, script_type: &script_type, read: &[] };
            folders.missing_package(&format!("node:internal\n{line}\n    at x\n"))
        };
        let other = note("Error: Cannot find module 'lodash/fp'").expect("a note");
        assert!(other.contains("no package lodash; the lines `// /// script`"), "{other}");
        let hidden = note("Error: Cannot find module '@own/shout'").expect("a note");
        let read = format!("read = [\"{}\"] would allow it", folder.path().display());
        assert!(hidden.contains(&read), "{hidden}");
        let import =
            note("Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@own/shout' imported from /x")
                .expect("a note");
        assert!(import.contains("createRequire(import.meta.url)(\"@own/shout\")"), "{import}");
        for none in [
            "Error: Cannot find module './x'",
            "Error: Cannot find module '/x'",
            "Error: Cannot find module '@own/../x'",
            "Error: Cannot find module '..'",
            "x",
        ] {
            assert_eq!(note(none), None, "{none}");
        }
    }

    #[test]
    fn file_of_the_folder_of_submission_or_of_home_is_named() {
        for (line, name) in [
            ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", "data.csv"),
            ("cat: data.csv: No such file or directory", "data.csv"),
            ("ls: cannot access 'my data': No such file or directory", "my data"),
            ("head: cannot open ‘in/x’ for reading: No such file or directory", "in/x"),
            ("script.sh: line 3: ./tool.sh: No such file or directory", "tool.sh"),
            ("Error: ENOENT: no such file or directory, open 'config.json'", "config.json"),
            ("cat: /run/job-1/home/.aws/config: No such file or directory", "~/.aws/config"),
            ("Error: ENOENT: no such file or directory, open '/run/job-1/home/x'", "~/x"),
        ] {
            let home = Path::new("/run/job-1/home");
            let said = missing_of_own_folder(line, home, false).unwrap_or_default();
            assert!(said.contains(&format!("so not with {name};")), "{line}: {said}");
        }
    }

    #[test]
    fn other_missing_files_are_not() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("there"), "").expect("written");
        for line in [
            "cat: /srv/x: No such file or directory",
            "cat: there: No such file or directory",
            "No such file or directory",
            "open failed: No such file or directory",
            "curl: (7) Failed to connect",
            "git: fatal: 'https://x/y': No such file or directory",
            "",
        ] {
            assert_eq!(missing_of_own_folder(line, home.path(), false), None, "{line}");
        }
        let line = "cat: x: No such file or directory";
        assert_eq!(missing_of_own_folder(line, home.path(), true), None, "in its own cwd");
        assert!(missing_of_own_folder(line, home.path(), false).is_some());
    }
}
