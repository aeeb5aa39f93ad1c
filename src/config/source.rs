//! The text of one TOML file, and the place of each key in it.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, ValueDeserializer};

use super::config_error::{ConfigError, FilePlace, KeyPath, PathStep, explain, unknown_key};
use crate::proto::text::shown;

/// A value of a file, with its place in the text.
type Placed<T> = (T, Range<usize>);

/// One file, parsed.
pub struct Source<'t> {
    file: &'t Path,
    text: &'t str,
    tree: Spanned<DeTable<'t>>,
}

impl<'t> Source<'t> {
    pub fn parse(file: &'t Path, text: &'t str) -> Result<Self, ConfigError> {
        match DeTable::parse(text) {
            Ok(tree) => Ok(Self { file, text, tree }),
            Err(error) => Err(ConfigError::Wrong {
                place: place(file, text, error.span().map(|span| span.start)),
                message: match (error.message(), error.span().and_then(|span| text.get(span))) {
                    (message @ "duplicate key", Some(key)) => format!("{message} `{}`", shown(key)),
                    (message, _) => explain(message, None),
                },
            }),
        }
    }

    /// Deserializes the file as `T`.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        T::deserialize(Deserializer::from(self.tree.clone())).map_err(|error| {
            let path = error.span().and_then(|span| self.path_to(&span));
            self.wrong(error.span(), explain(error.message(), path.as_ref()))
        })
    }

    /// The keys and values of the file, with their places.
    pub(super) fn tree(&self) -> &DeTable<'t> {
        self.tree.get_ref()
    }

    /// Rejects a key at the top of the file that is not one of the known tables.
    pub fn has_only(&self, known: &[&str]) -> Result<(), ConfigError> {
        let unknown = self.tree().keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        unknown.map_or(Ok(()), |key| {
            let path = KeyPath::of(&[key.get_ref()]);
            Err(self.wrong(Some(key.span()), unknown_key(Some(&path), known)))
        })
    }

    /// Returns the value of a key at the top of the file, with its place; `None` if the key is missing.
    pub fn value<T: DeserializeOwned>(
        &self,
        key: &str,
        expected: &str,
    ) -> Result<Option<Placed<T>>, ConfigError> {
        let Some(value) = self.tree().get(key) else { return Ok(None) };
        let read = T::deserialize(ValueDeserializer::from(value.clone()));
        let wrong = |_| self.wrong(Some(value.span()), format!("{key}: expected {expected}"));
        Ok(Some((read.map_err(wrong)?, value.span())))
    }

    /// Creates an error at a place of the text, or about the whole file.
    pub fn wrong(&self, span: Option<Range<usize>>, message: String) -> ConfigError {
        let place = place(self.file, self.text, span.map(|span| span.start));
        ConfigError::Wrong { place, message }
    }

    /// Returns the path to the key or value that stands at exactly this span.
    pub(super) fn path_to(&self, span: &Range<usize>) -> Option<KeyPath> {
        let mut path = Vec::new();
        descend(TomlNode::Table(self.tree()), span, &mut path).then_some(KeyPath(path))
    }

    /// Returns how many steps of the path this file has, and the place of the last of them.
    pub(super) fn find(&self, path: &KeyPath) -> (usize, FilePlace) {
        let mut found = (0, None);
        let mut tables = Some(TomlNode::Table(self.tree.get_ref()));
        for (number, step) in path.0.iter().enumerate() {
            let next = match (tables, step) {
                (Some(TomlNode::Table(table)), PathStep::Key(key)) => table.get(key.as_str()),
                (Some(TomlNode::Array(array)), PathStep::Index(index)) => array.get(*index),
                _ => None,
            };
            let Some(value) = next else { break };
            found = (number + 1, Some(value.span().start));
            tables = TomlNode::of(value);
        }
        (found.0, place(self.file, self.text, found.1))
    }
}

/// Returns the place of a byte in a text; without one, the file as a whole.
pub(super) fn place(file: &Path, text: &str, offset: Option<usize>) -> FilePlace {
    let position = offset.map(|offset| {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    });
    FilePlace { file: file.to_owned(), position }
}

/// A value with values of its own.
#[derive(Clone, Copy)]
enum TomlNode<'a> {
    Table(&'a DeTable<'a>),
    Array(&'a [Spanned<DeValue<'a>>]),
}

impl<'a> TomlNode<'a> {
    fn of(value: &'a Spanned<DeValue<'a>>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Self::Table(table)),
            DeValue::Array(array) => Some(Self::Array(array)),
            _ => None,
        }
    }
}

/// Searches below a node; the parser bounds the nesting, and so this recursion.
fn descend(node: TomlNode<'_>, span: &Range<usize>, path: &mut Vec<PathStep>) -> bool {
    let mut enter = |step: PathStep, is_here: bool, value: &Spanned<DeValue<'_>>| {
        path.push(step);
        let found = is_here
            || value.span() == *span
            || TomlNode::of(value).is_some_and(|below| descend(below, span, path));
        if !found {
            path.pop();
        }
        found
    };
    match node {
        TomlNode::Table(table) => table.iter().any(|(key, value)| {
            enter(PathStep::from(key.get_ref().as_ref()), key.span() == *span, value)
        }),
        TomlNode::Array(array) => array
            .iter()
            .enumerate()
            .any(|(index, value)| enter(PathStep::Index(index), false, value)),
    }
}
