//! The places of a table in a configuration: `type.NAME` is at `type.osis`, `type.python` and so on.

use toml::value::Value;

use crate::config::config_error::KeyPath;
use crate::config::key_row::{KeyTable, is_chosen};

/// Returns each place of a table with its values.
pub(super) fn places<'v>(root: &'v Value, table: &KeyTable) -> Vec<(KeyPath, &'v Value)> {
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
