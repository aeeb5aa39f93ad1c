//! Reads tables of TOML files whose keys are settings of a job: `[job.NAME]` and `[defaults]` of a
//! graph, `[cron.NAME]` of a periodic job.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::config_error::{ConfigError, KeyPath, explain, unknown_field, unknown_key};
use super::files::{read_bounded, reason};
use super::source::Source;
use crate::proto::job::{Entrance, FieldKind, JobSpec, SETTINGS, Setting};
use crate::proto::units::parse_duration;

/// One table of a file. Its keys are settings of a job, and keys of the table's own.
pub struct JobTable<'s> {
    /// Its name, the last part of its path.
    pub name: String,
    pub span: Range<usize>,
    path: KeyPath,
    table: &'s DeTable<'s>,
    source: &'s Source<'s>,
    entrance: Entrance,
}

impl Source<'_> {
    /// Returns the table `[NAME]`; `None` if the file does not have it.
    pub fn job_table(
        &self,
        name: &str,
        entrance: Entrance,
    ) -> Result<Option<JobTable<'_>>, ConfigError> {
        let found = self.tree().get_key_value(name);
        let path = KeyPath::of(&[name]);
        found.map(|(key, value)| self.table_at(path, key.span(), value, entrance)).transpose()
    }

    /// Returns the tables `[PARENT.NAME]` in the order of the file.
    pub fn job_tables(
        &self,
        parent: &str,
        entrance: Entrance,
    ) -> Result<Vec<JobTable<'_>>, ConfigError> {
        let Some(parent_table) = self.job_table(parent, entrance)? else { return Ok(Vec::new()) };
        let mut tables = parent_table
            .table
            .iter()
            .map(|(key, value)| {
                let path = parent_table.path.then(key.get_ref().as_ref());
                self.table_at(path, key.span(), value, entrance)
            })
            .collect::<Result<Vec<_>, _>>()?;
        tables.sort_by_key(|table| table.span.start);
        Ok(tables)
    }

    /// Returns the whole file as one table.
    pub(super) fn whole(&self, entrance: Entrance) -> JobTable<'_> {
        let (name, path) = (String::new(), KeyPath::default());
        JobTable { name, span: 0..0, path, table: self.tree(), source: self, entrance }
    }

    fn table_at<'s>(
        &'s self,
        path: KeyPath,
        span: Range<usize>,
        value: &'s Spanned<DeValue<'s>>,
        entrance: Entrance,
    ) -> Result<JobTable<'s>, ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(Some(value.span()), format!("{path}: expected a table")));
        };
        let name = path.last_key().to_owned();
        Ok(JobTable { name, span, path, table, source: self, entrance })
    }
}

impl JobTable<'_> {
    /// Sets what the table says in `spec`, and reads the keys that are not settings, or that are
    /// among `own`, as `T`.
    pub fn read<T: DeserializeOwned>(
        &self,
        own: &[&str],
        spec: &mut JobSpec,
    ) -> Result<T, ConfigError> {
        let mut rest = DeTable::new();
        for (key, value) in self.table {
            let setting = Setting::named(key.get_ref().as_ref());
            match setting.filter(|setting| !own.contains(&setting.word)) {
                Some(setting) => self.set(setting, value, spec)?,
                None => drop(rest.insert(key.clone(), value.clone())),
            }
        }
        let rest = Spanned::new(self.span.clone(), DeValue::Table(rest));
        T::deserialize(ValueDeserializer::from(rest)).map_err(|error| {
            let Some((key, own)) = unknown_field(error.message()) else {
                let path = error.span().and_then(|span| self.source.path_to(&span));
                let path = path.unwrap_or_else(|| self.path.clone());
                let span = error.span().unwrap_or(self.span.clone());
                return self.source.wrong(Some(span), explain(error.message(), Some(&path)));
            };
            let settings =
                SETTINGS.iter().filter(|setting| setting.absent_at(self.entrance).is_none());
            let words = settings.map(|setting| setting.word).filter(|word| !own.contains(word));
            let known: Vec<&str> = words.chain(own.iter().copied()).collect();
            let span = self.table.get_key_value(key).map(|(key, _)| key.span());
            self.source.wrong(span, unknown_key(Some(&self.path.then(key)), &known))
        })
    }

    fn set(
        &self,
        setting: &Setting,
        value: &Spanned<DeValue<'_>>,
        spec: &mut JobSpec,
    ) -> Result<(), ConfigError> {
        let wrong = |message: String| {
            let path = self.path.then(setting.word);
            self.source.wrong(Some(value.span()), format!("{path}: {message}"))
        };
        if let Some(reason) = setting.absent_at(self.entrance) {
            return Err(wrong(reason.to_owned()));
        }
        let text = match value.get_ref() {
            DeValue::String(word) if setting.field == "priority" => word.to_string(),
            _ => hash_text(setting.kind, value).map_err(wrong)?,
        };
        setting.set(spec, &setting.spoken(&text)).map_err(|error| wrong(error.reason))
    }

    /// Reads the text of the file that one of its keys names.
    pub(super) fn read_file(
        &self,
        key: &str,
        file: &Path,
        bytes_max: u64,
    ) -> Result<String, ConfigError> {
        read_bounded(file, bytes_max)
            .map_err(|error| reason(&error))
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned()))
            .map_err(|why| self.wrong(key, format!("cannot be read: {}: {why}", file.display())))
    }

    /// Creates an error at a key of the table, or at its name if it does not have the key.
    pub fn wrong(&self, key: &str, message: impl Display) -> ConfigError {
        match self.table.get(key) {
            Some(value) => {
                let path = self.path.then(key);
                self.source.wrong(Some(value.span()), format!("{path}: {message}"))
            }
            None => self.wrong_table(message),
        }
    }

    pub fn wrong_table(&self, message: impl Display) -> ConfigError {
        self.source.wrong(Some(self.span.clone()), format!("{}: {message}", self.path))
    }
}

/// Replaces the times of TOML, which JSON does not have, by their texts.
fn times_as_texts(value: &mut Value) {
    const TIME: &str = "$__toml_private_datetime";
    match value {
        Value::Object(entries) => match entries.get_mut(TIME).map(Value::take) {
            Some(text) => *value = text,
            None => entries.values_mut().for_each(times_as_texts),
        },
        Value::Array(values) => values.iter_mut().for_each(times_as_texts),
        _ => {}
    }
}

/// Translates a value of a file into the text of the hash.
fn hash_text(kind: FieldKind, value: &Spanned<DeValue<'_>>) -> Result<String, String> {
    let value = Value::deserialize(ValueDeserializer::from(value.clone()))
        .map_err(|error| explain(error.message(), None))?;
    let expected = match (kind, value) {
        (FieldKind::Duration, Value::String(text)) => {
            let duration = parse_duration(&text).map_err(|error| error.to_string())?;
            return Ok(duration.as_secs_f64().to_string());
        }
        (FieldKind::Text | FieldKind::Time, Value::String(text)) => return Ok(text),
        (FieldKind::Number, value @ Value::Number(_))
        | (FieldKind::Flag, value @ Value::Bool(_))
        | (FieldKind::List | FieldKind::Texts, value @ Value::Array(_))
        | (FieldKind::Map, value @ Value::Object(_)) => return Ok(value.to_string()),
        (FieldKind::Text, _) => "a string",
        (FieldKind::Time, _) => "a string with a time, such as \"2026-12-24T18:00:00+01:00\"",
        (FieldKind::Number, _) => "a whole number",
        (FieldKind::Duration, _) => "a duration with its unit, such as \"15s\"",
        (FieldKind::Flag, _) => "true or false",
        (FieldKind::Object, mut value @ Value::Object(_)) => {
            times_as_texts(&mut value);
            return Ok(value.to_string());
        }
        (FieldKind::List | FieldKind::Texts, _) => "an array of strings",
        (FieldKind::Map, _) => "a table of strings",
        (FieldKind::Object, _) => "a table",
    };
    Err(format!("expected {expected}"))
}
