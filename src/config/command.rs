//! The forms of the keys of a `command` type, and the packages of Python scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::config_error::{Fault, KeyPath};
use super::key_row::{DAY, SECOND};
use super::units::duration;
use crate::config::toml_table::toml_table;
use crate::proto::target::is_word;

toml_table! {
    /// The packages that a script of Python or node declares in its own text (PEP 723). Each set is installed once, into
    /// `job.cache_dir`: of Python with uv if present, else with pip; of node with npm.
    pub struct DependenciesConfig in "type.NAME.dependencies" {
        /// Allows installing packages.
        enabled: bool = true => Flag;
        /// The URL of the package index. Empty: the installer's default. `none`: no index. From Linux 6.7 on an
        /// installer reaches port 443 and the ports of the addresses here, in `find_links` and in `env`; an index that
        /// only `/etc/pip.conf` names on another port does not answer: name it here.
        index: String = String::new() => Text;
        /// Folders and pages with packages, besides the index; for Python only.
        find_links: Vec<String> = Vec::new() => Texts;
        /// Variables of the installer: `SSL_CERT_FILE`, `HTTPS_PROXY`, `UV_...`, `PIP_...` and `npm_config_...` It may read the files and
        /// folders that they name.
        env: BTreeMap<String, String> = BTreeMap::new() => Map;
        /// Allows building packages from source, which runs their code, and packages by an address, a file or a
        /// repository.
        source_builds: bool = false => Flag;
        /// The time limit of one installation. The job's own timeout applies as well.
        build_timeout: Duration as "duration" = Duration::from_mins(5) => Duration(SECOND, DAY);
    }
}

impl DependenciesConfig {
    pub(super) fn check(&self, table: &KeyPath) -> Result<(), Fault> {
        let is_argument = |text: &String| !text.starts_with('-') && !text.contains(['\0', '\n']);
        if !is_argument(&self.index) {
            return Err(Fault::new(table.then("index"), "must be an address, \"none\" or empty"));
        }
        if !self.find_links.iter().all(|link| !link.is_empty() && is_argument(link)) {
            return Err(Fault::new(table.then("find_links"), "must be folders or addresses"));
        }
        if !are_variables(&self.env) {
            return Err(Fault::new(table.then("env"), NOT_VARIABLES));
        }
        Ok(())
    }
}

pub(super) const NOT_EXTENSION: &str =
    "must be a dot and 1 to 15 letters or digits, such as \".py\"";

/// Returns true for a dot and 1 to 15 letters, digits, `_` and `-`.
pub(super) fn is_extension(text: &str) -> bool {
    text.strip_prefix('.').is_some_and(|rest| is_word(rest.as_bytes(), 15, b"_-"))
}

pub(super) const NOT_VARIABLES: &str =
    "has a name that is empty or has = or a NUL, or a value with a NUL";

pub(super) fn are_variables(env: &BTreeMap<String, String>) -> bool {
    let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
    env.iter().all(|(name, value)| is_name(name) && !value.contains('\0'))
}

/// Returns whether a command runs Python, by the name of its program, in any version.
pub fn is_python(command: &[String]) -> bool {
    program_begins(command, b"python")
}

/// Returns whether a command runs node, by the name of its program, in any version.
pub fn is_node(command: &[String]) -> bool {
    program_begins(command, b"node")
}

fn program_begins(command: &[String], name: &[u8]) -> bool {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|program| program.as_encoded_bytes().starts_with(name))
}

pub(super) fn has(words: &[String], placeholder: &str) -> bool {
    words.iter().any(|word| word.contains(placeholder))
}

pub(super) fn are_words(words: &[String]) -> bool {
    const WORDS_MAX: usize = 256;
    words.len() <= WORDS_MAX && words.iter().all(|word| !word.contains('\0'))
}

pub(super) fn is_module(name: &str) -> bool {
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
    fn contradictory_options_are_rejected_with_their_place() {
        let any = "command = [\"x\", \"{script}\"]\n";
        for (keys, message) in [
            (format!("{any}cwd = \"here\""), "4:7: type.x.cwd must be an absolute path"),
            (format!("{any}env = {{ \"A=\" = \"1\" }}"), "type.x.env has a name that is empty"),
            (
                format!("{any}more_extensions = [\"x\"]"),
                "4:19: type.x.more_extensions must be a dot",
            ),
            (format!("{any}check = [\"x\"]"), "4:9: type.x.check must begin with a program"),
            (
                format!("{any}compile = [\"x\", \"{{script}}\"]"),
                "type.x.compile must have {binary}",
            ),
            (
                "command = [\"{binary}\"]".to_owned(),
                "type.x.command has {binary}, but compile is not set",
            ),
            (
                format!("{any}warm = true"),
                "4:8: type.x.warm is for Python only, and the command is not",
            ),
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
    fn any_program_with_the_name_of_python_is_one() {
        let is = |program: &str| super::is_python(&[program.to_owned()]);
        assert!(is("/usr/bin/python3") && is("python3.12") && is("/opt/x/bin/python"));
        assert!(!is("/usr/bin/pypy3") && !is("/python/bin/bash") && !super::is_python(&[]));
    }
}
