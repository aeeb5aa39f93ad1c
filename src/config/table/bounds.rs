//! Checks each value of a configuration against the bounds of its row.

use std::path::{Component, Path};
use std::time::Duration;

use toml::value::Value;

use super::KEY_TABLES;
use crate::config::config_error::{Fault, KeyPath};
use crate::config::key_row::{KeyKind, KeyTable, is_chosen};
use crate::config::schema::Config;
use crate::proto::units::{format_duration, format_size, parse_duration, parse_size};

/// Checks every value of a configuration.
///
/// # Errors
/// The first [`Fault`] found, in the order of the table.
pub(crate) fn check_bounds(config: &Config) -> Result<(), Fault> {
    let root = Value::try_from(config).map_err(|error| {
        Fault::new(KeyPath::default(), format!("cannot write it as TOML: {error}"))
    })?;
    for table in KEY_TABLES {
        for (place, values) in places(&root, table) {
            for row in table.rows {
                if let Some(value) = values.get(row.key) {
                    row.kind.check(&place.then(row.key), value)?;
                }
            }
        }
    }
    Ok(())
}

impl KeyKind {
    /// Checks a value of this kind, or each entry of an array.
    fn check(self, key: &KeyPath, value: &Value) -> Result<(), Fault> {
        if let Value::Array(entries) = value {
            return entries
                .iter()
                .enumerate()
                .try_for_each(|(index, entry)| self.check(&key.then(index), entry));
        }
        let text = value.as_str().unwrap_or_default();
        let wrong = |message: &str| Err(Fault::new(key.clone(), message));
        let within = |value: Option<u64>, bounds: (u64, u64)| match value {
            Some(value) if value < bounds.0 || bounds.1 < value => {
                let shown = [bounds.0, bounds.1, value].map(|amount| self.shown(amount));
                let [least, most, value] = shown;
                wrong(&format!("must be from {least} to {most}, not {value}"))
            }
            _ => Ok(()),
        };
        match self {
            Self::Number(least, most) | Self::Numbers(least, most) => {
                let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
                within(number, (least, most))
            }
            Self::Duration(least, most) | Self::Durations(least, most) => {
                let time = parse_duration(text).ok();
                within(time.and_then(|time| u64::try_from(time.as_millis()).ok()), (least, most))
            }
            Self::Decimal(most) => match value.as_float() {
                Some(number) if !(0.0..=f64::from(most)).contains(&number) => {
                    wrong(&format!("must be from 0 to {most}, not {number}"))
                }
                _ => Ok(()),
            },
            Self::Size(least, most) => within(parse_size(text).ok(), (least, most)),
            Self::File if !text.is_empty() && !Path::new(text).is_absolute() => {
                wrong("must be an absolute path")
            }
            Self::FolderOrNone if !text.is_empty() && !is_plain(text) => {
                wrong("must be an absolute path without .., or empty")
            }
            Self::Folder | Self::Folders if !is_plain(text) => {
                wrong("must be an absolute path without ..")
            }
            _ => Ok(()),
        }
    }

    /// Returns a bound as the file spells it.
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::Duration(..) | Self::Durations(..) => {
                format_duration(Duration::from_millis(amount))
            }
            Self::Size(..) => format_size(amount),
            _ => amount.to_string(),
        }
    }
}

fn is_plain(folder: &str) -> bool {
    let is_way =
        |part| matches!(part, Component::RootDir | Component::CurDir | Component::Normal(_));
    let folder_path = Path::new(folder);
    folder_path.is_absolute() && folder_path.components().all(is_way) && !folder.contains('\0')
}

/// Returns each place of a table with its values: `type.NAME` is at `type.osis`, `type.python` and so on.
fn places<'v>(root: &'v Value, table: &KeyTable) -> Vec<(KeyPath, &'v Value)> {
    let mut found = vec![(KeyPath::default(), root)];
    for part in table.path.split('.') {
        found = found.into_iter().flat_map(|(path, value)| step(&path, value, part)).collect();
    }
    if !table.is_list {
        return found;
    }
    let entries = |(path, value): (KeyPath, &'v Value)| {
        let entries = value.as_array().into_iter().flatten().enumerate();
        entries.map(move |(index, entry)| (path.then(index), entry)).collect::<Vec<_>>()
    };
    found.into_iter().flat_map(entries).collect()
}

fn step<'v>(path: &KeyPath, value: &'v Value, part: &str) -> Vec<(KeyPath, &'v Value)> {
    let entries = value.as_table().into_iter().flatten();
    entries
        .filter(|(key, _)| is_chosen(part) || *key == part)
        .map(|(key, value)| (path.then(key.as_str()), value))
        .collect()
}
