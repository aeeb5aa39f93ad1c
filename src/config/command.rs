//! What the scripts of a `command` type get beside their program: variables, a folder, a compiler,
//! a check, and for Python a warm interpreter and packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{Fault, KeyPath};
use super::units;

/// The optional keys of `[type.NAME]` with `engine = "command"`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOptions {
    /// Variables of every script of the type; those of the job come over them.
    pub env: BTreeMap<String, String>,
    /// Where scripts start; empty for their own private folder.
    pub cwd: PathBuf,
    /// What turns `{script}` into the program `{binary}`; empty if nothing has to.
    pub compile: Vec<String>,
    /// What tells whether a script is well formed, without running it; empty if nothing does.
    pub check: Vec<String>,
    /// Whether a parent interpreter is kept ready, of which each job is a fork. Of the types that
    /// come with Hero `python` has it.
    pub warm: bool,
    /// The modules that the parent interpreter has imported.
    pub preload: Vec<String>,
    /// `[type.NAME.dependencies]`.
    pub dependencies: DependenciesConfig,
}

/// `[type.NAME.dependencies]`: the packages that a Python script asks for in its own text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct DependenciesConfig {
    /// Whether they are installed at all.
    pub enabled: bool,
    /// The package index; empty for the installer's own, `none` for none.
    pub index: String,
    /// Folders and pages with packages, beside the index.
    pub find_links: Vec<String>,
    /// Whether packages may be built from their sources, which runs their code.
    pub source_builds: bool,
    /// How long one set of packages may take to install.
    #[serde(with = "units::duration")]
    pub build_timeout: Duration,
}

impl Default for DependenciesConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            index: String::new(),
            find_links: Vec::new(),
            source_builds: false,
            build_timeout: Duration::from_mins(5),
        }
    }
}

impl CommandOptions {
    /// Checks them beside the command that they belong to.
    ///
    /// # Errors
    /// The first [`Fault`] found.
    pub(super) fn check(&self, table: &KeyPath, command: &[String]) -> Result<(), Fault> {
        let fault = |key: &str, message: &str| {
            Err(Fault::new(table.then(key), message.to_owned()).or(table.clone()))
        };
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return fault(
                    "env",
                    "has a name that is empty or holds = or a NUL, or such a value",
                );
            }
        }
        if !self.cwd.as_os_str().is_empty() && !is_plain(&self.cwd) {
            return fault("cwd", "must be an absolute path without .., or empty");
        }
        for (key, words) in [("compile", &self.compile), ("check", &self.check)] {
            if words.is_empty() {
                continue;
            }
            if words[0].is_empty() || !has(words, "{script}") || !are_words(words) {
                return fault(
                    key,
                    "must begin with a program, and have {script} in one of at most 256 words",
                );
            }
        }
        if self.compile.is_empty() {
            if has(command, "{binary}") {
                return fault("command", "has {binary}, but there is no compile that makes it");
            }
        } else if !has(&self.compile, "{binary}") || !has(command, "{binary}") {
            return fault("compile", "must have {binary}, and so must command");
        }
        if !is_python(command) {
            for (key, is_set) in [
                ("warm", self.warm),
                ("preload", !self.preload.is_empty()),
                ("dependencies", self.dependencies != DependenciesConfig::default()),
            ] {
                if is_set {
                    return fault(key, "means nothing here: the command is no python");
                }
            }
        }
        if !self.preload.iter().all(|module| is_module(module)) {
            return fault("preload", "must be names of modules, such as [\"json\"]");
        }
        self.dependencies.check(&table.then("dependencies"))
    }
}

impl DependenciesConfig {
    fn check(&self, table: &KeyPath) -> Result<(), Fault> {
        let is_argument = |text: &String| !text.starts_with('-') && !text.contains(['\0', '\n']);
        if !is_argument(&self.index) {
            return Err(Fault::new(table.then("index"), "must be an address, \"none\" or empty"));
        }
        if !self.find_links.iter().all(|link| !link.is_empty() && is_argument(link)) {
            return Err(Fault::new(table.then("find_links"), "must be folders or addresses"));
        }
        let legal = Duration::from_secs(1)..=Duration::from_hours(24);
        if !legal.contains(&self.build_timeout) {
            let message = "must be from 1s to 1d".to_owned();
            return Err(Fault::new(table.then("build_timeout"), message));
        }
        Ok(())
    }
}

/// Whether a command runs Python: its program is called so, whatever its version.
pub fn is_python(command: &[String]) -> bool {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"))
}

fn is_plain(folder: &Path) -> bool {
    use std::path::Component::{CurDir, Normal, RootDir};
    let is_plain = folder.components().all(|part| matches!(part, RootDir | CurDir | Normal(_)));
    folder.is_absolute() && is_plain && !folder.as_os_str().as_encoded_bytes().contains(&0)
}

fn has(words: &[String], placeholder: &str) -> bool {
    words.iter().any(|word| word.contains(placeholder))
}

fn are_words(words: &[String]) -> bool {
    const WORDS_MAX: usize = 256;
    words.len() <= WORDS_MAX && words.iter().all(|word| !word.contains('\0'))
}

fn is_module(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|first: char| first.is_ascii_digit())
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    name.len() <= 200 && name.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn refusal(keys: &str) -> String {
        let text = format!("[type.x]\nengine = \"command\"\n{keys}");
        Config::from_toml("hero.toml".as_ref(), &text).expect_err(keys).to_string()
    }

    #[test]
    fn options_that_cannot_be_meant_are_refused_where_they_stand() {
        let any = "command = [\"x\", \"{script}\"]\n";
        for (keys, message) in [
            (format!("{any}cwd = \"here\""), "4:7: type.x.cwd must be an absolute path"),
            (format!("{any}env = {{ \"A=\" = \"1\" }}"), "type.x.env has a name that is empty"),
            (format!("{any}check = [\"x\"]"), "4:9: type.x.check must begin with a program"),
            (
                format!("{any}compile = [\"x\", \"{{script}}\"]"),
                "type.x.compile must have {binary}",
            ),
            ("command = [\"{binary}\"]".to_owned(), "type.x.command has {binary}, but there is no"),
            (format!("{any}warm = true"), "4:8: type.x.warm means nothing here: the command is no"),
            (
                "command = [\"python3\", \"{script}\"]\npreload = [\"os; x\"]".to_owned(),
                "4:11: type.x.preload must be names of modules",
            ),
            (
                "command = [\"python3\", \"{script}\"]\ndependencies.index = \"--x\"".to_owned(),
                "type.x.dependencies.index must be an address",
            ),
        ] {
            let refusal = refusal(&keys);
            assert!(refusal.contains(message), "{keys}: {refusal}");
        }
    }

    #[test]
    fn any_program_that_is_called_python_is_one() {
        let is = |program: &str| super::is_python(&[program.to_owned()]);
        assert!(is("/usr/bin/python3") && is("python3.12") && is("/opt/x/bin/python"));
        assert!(!is("/usr/bin/pypy3") && !is("/python/bin/bash") && !super::is_python(&[]));
    }
}
