//! The errors of a configuration: the mistake, its place, and the expected value.

use hero_error::{Error, Exit};
use std::fmt;
use std::path::PathBuf;

use crate::proto::target::is_word;
use crate::proto::text::{did_you_mean, nearest, shown};

/// The reason of [`ConfigError::Unreadable`] where another user may be able to read the file.
pub(super) const NO_PERMISSION: &str = "permission denied";

/// The reason why there is no configuration, or no such unit in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{place}: {message}")]
    Wrong { place: FilePlace, message: String },
    #[error("cannot read {what} {}: {reason}", .file.display())]
    Unreadable {
        /// The purpose of the file: `the configuration`, `the password`.
        what: &'static str,
        file: PathBuf,
        reason: String,
    },
    /// The unit is unknown: it is not of the form of an actor's, and has no `[unit.NAME]`.
    #[error("no such unit: `{}`{}", shown(.name), unit_hint(.name, .nearest.as_deref()))]
    NoSuchUnit { name: String, nearest: Option<String> },
    #[error("{message}")]
    Unit {
        name: String,
        /// The mistake, beginning with `unit.NAME`.
        message: String,
    },
    /// A configuration built by a program cannot be written as TOML.
    #[error("cannot write the configuration as TOML: {0}")]
    Unwritable(String),
}

/// A place in a file, written `FILE:LINE:COLUMN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    pub file: PathBuf,
    /// Line and column, both from 1, the column in characters; `None` for the whole file.
    pub position: Option<(usize, usize)>,
}

impl ConfigError {
    /// Returns whether another user may be able to read the file.
    pub fn is_for_others(&self) -> bool {
        matches!(self, Self::Unreadable { reason, .. } if reason == NO_PERMISSION)
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.display().fmt(f)?;
        match self.position {
            Some((line, column)) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into a table.
    Key(String),
    /// Into an array, from 0.
    Index(usize),
}

impl From<&str> for PathStep {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PathStep {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The path from the top of a file to a value, written `unit.mixed.actors[0].tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeyPath(pub(super) Vec<PathStep>);

impl KeyPath {
    pub(crate) fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| PathStep::from(*key)).collect())
    }

    pub(super) fn then(&self, step: impl Into<PathStep>) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.into());
        Self(steps)
    }

    /// Returns the fault of one of its keys; the message follows the path.
    pub(super) fn wrong<T>(&self, key: &str, message: impl fmt::Display) -> Result<T, Fault> {
        Err(Fault::new(self.then(key), message))
    }

    /// Returns the last key; empty for an element of an array.
    pub(super) fn last_key(&self) -> &str {
        self.split_last().map_or("", |(_, key)| key)
    }

    /// Splits off the last key; `None` for an element of an array.
    fn split_last(&self) -> Option<(Self, &str)> {
        match self.0.split_last() {
            Some((PathStep::Key(key), rest)) => Some((Self(rest.to_vec()), key)),
            _ => None,
        }
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |key: &str| is_word(key.as_bytes(), usize::MAX, b"_-");
        for (number, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Key(key) => {
                    let dot = if number == 0 { "" } else { "." };
                    let quote = if is_bare(key) { "" } else { "\"" };
                    write!(f, "{dot}{quote}{}{quote}", shown(key))?;
                }
            }
        }
        Ok(())
    }
}

/// A well-formed value that is not legal, found in the merged configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The keys at fault, the likeliest first: the error has the place of the first that is set, else of what is set of
    /// the path to the likeliest.
    pub(super) keys: Vec<KeyPath>,
    /// The mistake, with the path of the key.
    pub(super) message: String,
}

impl Fault {
    /// Creates a fault of one key; the message follows its path.
    pub(super) fn new(key: KeyPath, message: impl fmt::Display) -> Self {
        Self { message: format!("{key} {message}"), keys: vec![key] }
    }

    pub(super) fn or(mut self, key: KeyPath) -> Self {
        self.keys.push(key);
        self
    }
}

/// Rejects the first text of a list that is not legal; `key` is the place of the list.
pub(super) fn check_each(
    texts: &[String],
    key: &KeyPath,
    is_legal: impl Fn(&str) -> bool,
    message: &str,
) -> Result<(), Fault> {
    let place = texts.iter().position(|text| !is_legal(text));
    place.map_or(Ok(()), |place| Err(Fault::new(key.then(place), message)))
}

/// Rewords a message of the TOML and serde crates. `path` is the path of the key or value at fault. A
/// value is never repeated: it may be a misplaced secret.
pub(crate) fn explain(message: &str, path: Option<&KeyPath>) -> String {
    let expected = message.rsplit_once(", expected ").map_or("", |(_, expected)| expected);
    if let Some((_, known)) = unknown_field(message) {
        return unknown_key(path, &known);
    }
    let about = path.filter(|path| !path.0.is_empty()).map(ToString::to_string);
    if let Some(rest) = message.strip_prefix("missing field `") {
        let key = rest.trim_end_matches('`');
        return match about {
            Some(table) => format!("missing key `{key}` in [{table}]"),
            None => format!("missing key `{key}`"),
        };
    }
    let text = if is_too_large(message, expected) {
        "expected a whole number, but the number is too large".to_owned()
    } else if message.starts_with("invalid ") && !expected.is_empty() {
        format!("expected {}", plain(expected))
    } else if message.starts_with("unknown variant `") {
        format!("expected {expected}")
    } else {
        reworded(message).to_owned()
    };
    match about {
        Some(about) => format!("{about}: {text}"),
        None => text,
    }
}

/// Returns the key and the known keys of serde's message about an unknown one.
pub(super) fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let (key, rest) = message.strip_prefix("unknown field `")?.split_once('`')?;
    Some((key, backticked(rest)))
}

/// Returns the message about an unknown key, with the nearest known one or all of them.
pub(super) fn unknown_key(path: Option<&KeyPath>, known: &[&str]) -> String {
    let Some((table, key)) = path.and_then(KeyPath::split_last) else {
        return "unknown key".to_owned();
    };
    let place = if table.0.is_empty() { String::new() } else { format!(" in [{table}]") };
    let hint = match nearest(key, known.iter().copied()) {
        Some(near) => did_you_mean(Some(near)),
        None if known.is_empty() => String::new(),
        None => format!("; known are `{}`", known.join("`, `")),
    };
    format!("unknown key `{}`{place}{hint}", shown(key))
}

/// Returns the words between backticks in a list such as ``one of `a`, `b` ``.
fn backticked(list: &str) -> Vec<&str> {
    list.split('`').skip(1).step_by(2).collect()
}

/// Rewords messages of the parser that do not help a person.
fn reworded(message: &str) -> &str {
    match message {
        "wanted string or table" => "expected a string",
        "string values must be quoted, expected literal string" => {
            "expected a value; text is written in quotes, such as \"text\""
        }
        other => other.strip_suffix(", expected nothing").unwrap_or(other),
    }
}

/// Returns true for a whole number above the range of its type; serde names the value, and its own type if that is wide.
fn is_too_large(message: &str, expected: &str) -> bool {
    let value = message.split_once("integer `").and_then(|(_, rest)| rest.split_once('`'));
    let is_whole = plain(expected).starts_with("a whole number");
    is_whole && value.is_some_and(|(value, _)| value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Rewords serde's name of a type.
fn plain(expected: &str) -> &str {
    match expected {
        "i64" => "a whole number",
        "f64" => "a number, such as 8.0",
        "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "a sequence" => "an array, such as [\"…\"]",
        "a map" => "a table",
        other => other,
    }
}

fn unit_hint(name: &str, nearest: Option<&str>) -> String {
    let plain = name.replace("\\x2d", "-");
    if plain != name {
        let plain = shown(&plain);
        return format!(
            "; its name was escaped, as systemd-escape does: the unit of systemd is hero@{plain}, with every `-` as it is"
        );
    }
    if name.contains(['.', '/']) {
        return format!("; a script is run by hero exec {}", shown(name));
    }
    let forms = "; a unit is `supervisor`, `broker`, an actor written TYPE-GROUP-INSTANCE such as \
                 `osis-default-1`, or has a [unit.NAME] in the configuration";
    if nearest.is_some() { did_you_mean(nearest) } else { forms.to_owned() }
}

impl From<toml::ser::Error> for ConfigError {
    fn from(error: toml::ser::Error) -> Self {
        Self::Unwritable(error.to_string())
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let exit = match &error {
            ConfigError::NoSuchUnit { .. } => Exit::NotFound,
            _ => Exit::Config,
        };
        Self::new(exit, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_in_the_file() {
        let path = KeyPath::of(&["unit", "a.b", "actors"]).then(1).then("tasks");
        assert_eq!(path.to_string(), "unit.\"a.b\".actors[1].tasks");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_not_repeated() {
        let path = KeyPath::of(&["redis"]);
        assert_eq!(
            explain("invalid type: string \"hunter2, expected a\", expected a table", Some(&path)),
            "redis: expected a table"
        );
        assert_eq!(
            explain("unknown variant `hunter2`, expected `osis` or `sal`", Some(&path)),
            "redis: expected `osis` or `sal`"
        );
    }

    #[test]
    fn a_hostile_key_is_shortened_and_escaped() {
        let path = KeyPath::of(&["actor", &"\u{1b}[2J".repeat(10_000)]);
        let message = explain("unknown field `x`, expected `tasks`", Some(&path));
        assert!(message.len() < 1000 && !message.contains('\u{1b}'), "{message}");
    }
}
