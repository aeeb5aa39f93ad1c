//! The table of keys against the structs that read them: each key has a row, each row a key.

use std::collections::BTreeSet;

use super::*;

/// Returns a file with one key in a table.
fn file(path: &str, is_list: bool, key: &str, value: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let header = match (path, is_list) {
        ("", _) => String::new(),
        (_, true) => format!("[[{lower}]]\n"),
        (_, false) => format!("[{lower}]\n"),
    };
    format!("{header}{key} = {value}\n")
}

/// Returns the words between backticks in an error after a mark.
fn words_after(text: &str, mark: &str) -> Option<BTreeSet<String>> {
    let error = read(text).err()?.to_string();
    let (_, words) = error.split_once(mark)?;
    Some(words.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect())
}

/// Returns the keys that the structs know in a table; `None` if the table takes any key.
fn known_keys(path: &str, is_list: bool) -> Option<BTreeSet<String>> {
    words_after(&file(path, is_list, "\"????????????\"", "1"), "; known are ")
}

fn parts_below(path: &str) -> BTreeSet<String> {
    let below = |table: &KeyTable| {
        let rest = if path.is_empty() {
            Some(table.path)
        } else {
            table.path.strip_prefix(path)?.strip_prefix('.')
        };
        rest?.split('.').next().map(ToOwned::to_owned)
    };
    KEY_TABLES.iter().filter_map(below).collect()
}

#[test]
fn each_key_has_a_row_and_each_row_a_key() {
    assert_eq!(known_keys("", false), Some(parts_below("")), "src/config/table.rs: KEY_TABLES");
    for table in KEY_TABLES {
        let rows = table.rows.iter().map(|row| row.key.to_owned());
        let rows: BTreeSet<String> = rows.chain(parts_below(table.path)).collect();
        let Some(known) = known_keys(table.path, table.is_list) else {
            assert_eq!(rows, BTreeSet::new(), "{} takes any key", table.path);
            continue;
        };
        let path = table.path;
        let lacking: Vec<_> = known.difference(&rows).collect();
        assert!(
            lacking.is_empty(),
            "[{path}] has keys without a row: {lacking:?}. Add each to the table \"{path}\" in src/config/ \
             as `/// A sentence about it.` and its kind (key_row.rs has them), then run `cargo xtask docs`"
        );
        let unknown: Vec<_> = rows.difference(&known).collect();
        assert!(
            unknown.is_empty(),
            "\"{path}\" in src/config/ has rows without a key: {unknown:?}. Remove them, or add the fields to \
             the struct of [{path}] in src/config/"
        );
    }
}

#[test]
fn words_of_a_row_are_those_that_the_file_takes() {
    for table in KEY_TABLES {
        for row in table.rows {
            let text = file(table.path, table.is_list, row.key, "\"?\"");
            let known = words_after(&text, ": expected one of ");
            let known = known.or_else(|| {
                words_after(&text, ": expected `").and_then(|_| words_after(&text, ": expected "))
            });
            let of_row = match row.kind {
                KeyKind::OneOf(words) => Some(words.iter().map(ToString::to_string).collect()),
                _ => None,
            };
            assert!(
                known.is_none() || known == of_row,
                "{}.{} takes {known:?}: its row in src/config/ has {:?}",
                table.path,
                row.key,
                row.kind
            );
            assert!(
                of_row.is_none() || known.is_some(),
                "{}.{} takes other words",
                table.path,
                row.key
            );
        }
    }
}

#[test]
fn default_of_each_key_is_of_its_kind() {
    let text = Config::default().to_toml().expect("writable");
    let root: Value = toml::from_str(&text).expect("TOML");
    let mut seen = 0;
    for table in KEY_TABLES {
        let (path, rows) = (table.path.replace("NAME", "python"), table.rows);
        let values = path.split('.').try_fold(&root, |value, part| value.get(part));
        for row in rows {
            let Some(value) = values.and_then(|values| values.get(row.key)) else { continue };
            seen += 1;
            let is_of_kind = match row.kind {
                KeyKind::Flag => value.is_bool(),
                KeyKind::Number(..) => value.is_integer(),
                KeyKind::Decimal(..) => value.is_float(),
                KeyKind::Map | KeyKind::Labels => value.is_table(),
                KeyKind::Texts
                | KeyKind::SomeOf(_)
                | KeyKind::Folders
                | KeyKind::Numbers(..)
                | KeyKind::Durations(..) => value.is_array(),
                KeyKind::Text
                | KeyKind::OneOf(_)
                | KeyKind::File
                | KeyKind::Folder
                | KeyKind::FolderOrNone => value.is_str(),
                KeyKind::Duration(..) => {
                    value.as_str().is_some_and(|text| parse_duration(text).is_ok())
                }
                KeyKind::Size(..) => value.as_str().is_some_and(|text| parse_size(text).is_ok()),
                KeyKind::Form => true,
            };
            assert!(is_of_kind, "{path}.{} is {value}, not {:?}", row.key, row.kind);
        }
    }
    assert!(seen > 150, "{seen} keys have a default");
}

#[test]
fn text_of_each_row_is_a_sentence() {
    for table in KEY_TABLES {
        let texts = table.rows.iter().map(|row| (row.key, row.text));
        for (at, (key, text)) in std::iter::once(("", table.about)).chain(texts).enumerate() {
            // The first row has no row before it whose text it shares.
            assert!(at > 1 || !text.is_empty(), "{}.{key} has no text", table.path);
            let first = text.first().map_or("A", |line| line.trim_start());
            let is_start = first.starts_with(|c: char| c.is_uppercase() || "`0".contains(c));
            assert!(is_start, "{}.{key} begins with {first:?}", table.path);
        }
    }
}
