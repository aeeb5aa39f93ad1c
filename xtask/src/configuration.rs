//! The files from the table of the configuration: etc/hero.toml, keys of hero.toml(5), and the schema for editors.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use hero::config::{Config, KEY_TABLES, KeyKind, KeyRow, KeyTable};
use serde_json::{Value as Json, json};
use toml::Value;

use crate::prose::Prose;

/// The script types that come with Hero, in the order of the file.
const TYPES: [&str; 7] = ["osis", "heroscript", "sal", "python", "v", "bash", "node"];
const TYPE: &str = "type.NAME";
/// The lines of the page between which its keys stand.
const BEGIN: &str = ".\\\" The keys: cargo xtask docs\n";
const END: &str = ".\\\" The end of the keys\n";

const HEAD: &str = r##"# /etc/hero/hero.toml - the configuration of Hero.
#
# Every key is here with its default, commented out. To change one, remove the "#"
# before it and edit the value. Unknown keys and invalid values are rejected with
# their line; run `hero check` before a restart.
#
# Durations are written with their unit: "500ms", "15s", "15m", "2h", "1d", "1h30m".
# Sizes are written with their unit: "512B", "64KiB", "10MB", "1MiB".
#
# Files in /etc/hero/hero.toml.d that end in .toml are read after this one, in the
# order of their names. Their values override the ones here, key by key.
#
# Editors with a language server for TOML complete and check the keys by this line:
#:schema file:///usr/share/hero/hero.schema.json
"##;

pub(crate) fn files() -> Result<[(PathBuf, String); 3], Box<dyn Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = root.join("man/hero.toml.5");
    let text = fs::read_to_string(&page)
        .map_err(|error| format!("cannot read {}: {error}", page.display()))?;
    let parts = text.split_once(BEGIN).zip(text.split_once(END));
    let ((head, _), (_, tail)) = parts.ok_or("hero.toml.5 has not the lines around its keys")?;
    let defaults: Value = toml::from_str(&Config::default().to_toml()?)?;
    let schema = serde_json::to_string_pretty(&schema(&defaults)?)?;
    Ok([
        (root.join("etc/hero.toml"), shipped_file(&defaults)),
        (page, format!("{head}{BEGIN}{}{END}{tail}", keys_of_page(&defaults))),
        (root.join("docs/hero.schema.json"), format!("{schema}\n")),
    ])
}

/// Returns the rows of a table in groups that share a text.
fn groups(table: &KeyTable) -> impl Iterator<Item = &'static [KeyRow]> {
    table.rows.chunk_by(|_, next| next.text.is_empty())
}

/// Returns the text about a group of rows, with its bounds.
fn prose(group: &[KeyRow], table: &KeyTable) -> Prose {
    let mut prose = Prose::parse(group[0].text);
    let kinds = group.iter().map(|row| row.kind);
    let shared = kinds.reduce(|one, other| if one == other { one } else { KeyKind::Form });
    let text = prose.markdown();
    prose.append(&bounds(shared.unwrap_or(KeyKind::Form), &text));
    if group.iter().any(|row| row.needs_restart) && !table.needs_restart {
        prose.append("A change needs a restart.");
    }
    prose
}

fn about(table: &KeyTable) -> Prose {
    let mut prose = Prose::parse(table.about);
    if table.needs_restart {
        prose.append("A change needs a restart.");
    }
    prose
}

/// Returns a sentence with the legal values of a kind; empty if the text has it or all are legal.
fn bounds(kind: KeyKind, text: &str) -> String {
    const DECADE: u64 = 3650 * 86_400_000;
    match kind {
        KeyKind::OneOf(words) | KeyKind::SomeOf(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            let is_told = words.iter().all(|word| text.contains(word));
            if is_told { String::new() } else { format!("The values: {}.", words.join(", ")) }
        }
        KeyKind::Number(least, most)
        | KeyKind::Numbers(least, most)
        | KeyKind::Duration(least, most)
        | KeyKind::Durations(least, most)
        | KeyKind::Size(least, most) => {
            let each = matches!(kind, KeyKind::Numbers(..) | KeyKind::Durations(..));
            let each = if each { "Each from" } else { "From" };
            let is_time = matches!(kind, KeyKind::Duration(..) | KeyKind::Durations(..));
            let is_any = if is_time { most >= DECADE } else { most >= 1 << 40 };
            match (least, is_any) {
                (0 | 1, true) => String::new(),
                (_, true) => format!("At least {}.", kind.shown(least)),
                _ => format!("{each} {} to {}.", kind.shown(least), kind.shown(most)),
            }
        }
        KeyKind::Decimal(most) => format!("At most {most}."),
        KeyKind::Folder | KeyKind::FolderOrNone | KeyKind::File => "An absolute path.".to_owned(),
        KeyKind::Folders => "Absolute paths.".to_owned(),
        KeyKind::Flag
        | KeyKind::Text
        | KeyKind::Texts
        | KeyKind::Map
        | KeyKind::Labels
        | KeyKind::Form => String::new(),
    }
}

/// Returns true for a table that is a part of another one.
fn is_part(table: &KeyTable) -> bool {
    KEY_TABLES.iter().any(|other| below(other.path).any(|part| part.path == table.path))
}

/// Returns the values of a table in a tree of values.
fn values<'v>(root: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(root, |value, part| value.get(part))
}

/// Returns the tables of the configuration that stand below another.
fn below(path: &str) -> impl Iterator<Item = &'static KeyTable> {
    KEY_TABLES.iter().filter(move |table| {
        table.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    })
}

fn shipped_file(defaults: &Value) -> String {
    let mut text = HEAD.to_owned();
    for table in KEY_TABLES {
        if table.path == TYPE {
            types_of_file(&mut text, table, defaults);
        } else if !table.path.starts_with(TYPE) {
            let about = about(table);
            if table.is_open() && !about.has_example() {
                continue;
            }
            let gap = if is_part(table) { "\n" } else { "\n\n" };
            let _ = write!(text, "{gap}{}", about.comment());
            if let Some(values) = values(defaults, table.path).filter(|_| !table.is_open()) {
                let _ = writeln!(text, "[{}]", table.path);
                keys_of_file(&mut text, table, values, &mut Vec::new());
            }
        }
    }
    text
}

/// Writes the script types: each text once, at the first type that has its key.
fn types_of_file(text: &mut String, table: &KeyTable, defaults: &Value) {
    let _ = write!(text, "\n\n{}", about(table).comment());
    let mut told = Vec::new();
    for name in TYPES {
        let Some(values) = values(defaults, &format!("type.{name}")) else { continue };
        let _ = writeln!(text, "\n[type.{name}]");
        keys_of_file(text, table, values, &mut told);
        for part in below(TYPE).filter(|part| !told.contains(&part.path)).collect::<Vec<_>>() {
            let key = part.path.rsplit('.').next().unwrap_or_default();
            if let Some(values) = values.get(key) {
                told.push(part.path);
                let _ = writeln!(text, "\n{}[type.{name}.{key}]", about(part).comment());
                keys_of_file(text, part, values, &mut Vec::new());
            }
        }
    }
}

/// Writes the keys of a table, each with its text unless that is among `told`.
fn keys_of_file(text: &mut String, table: &KeyTable, values: &Value, told: &mut Vec<&'static str>) {
    for group in groups(table) {
        let prose = prose(group, table);
        let here: Vec<_> =
            group.iter().filter_map(|row| Some((row.key, values.get(row.key)?))).collect();
        if here.is_empty() && (!prose.has_example() || table.path == TYPE) {
            continue;
        }
        if !told.contains(&group[0].key) {
            let _ = write!(text, "\n{}", prose.comment());
            if table.path == TYPE {
                told.push(group[0].key);
            }
        }
        for (key, value) in here {
            let _ = writeln!(text, "#{key} = {value}");
        }
    }
}

/// Returns the sections of hero.toml(5) that describe keys.
fn keys_of_page(defaults: &Value) -> String {
    let mut page = String::new();
    for table in KEY_TABLES {
        let request = if is_part(table) { ".SS" } else { ".SH" };
        let name =
            if table.is_list { format!("[[{}]]", table.path) } else { format!("[{}]", table.path) };
        let _ = writeln!(page, "{request} \"{name}\"");
        page.push_str(about(table).page(".PP\n").trim_start_matches(".PP\n"));
        for group in groups(table) {
            for (number, row) in group.iter().enumerate() {
                page.push_str(if number == 0 { ".TP\n" } else { ".TQ\n" });
                let _ = match default_of(row, table, defaults) {
                    Some(value) => {
                        let value = value.replace('\\', "\\e").replace('"', "\\(dq");
                        writeln!(page, ".BR {} \" = {value}\"", row.key)
                    }
                    None => writeln!(page, ".B {}", row.key),
                };
            }
            page.push_str(prose(group, table).page(".IP\n").trim_start_matches(".IP\n"));
            if let Some(each) = defaults_of_types(&group[0], table, defaults) {
                page.push_str(&Prose::parse(&[&each]).page(".IP\n"));
            }
        }
    }
    page
}

/// Returns a sentence with the defaults of a key that differ between script types; `None` if they do not.
fn defaults_of_types(row: &KeyRow, table: &KeyTable, defaults: &Value) -> Option<String> {
    let is_told = matches!(row.kind, KeyKind::OneOf(_));
    if table.path != TYPE || is_told || default_of(row, table, defaults).is_some() {
        return None;
    }
    let of_type = |name: &&str| {
        let value = values(defaults, &format!("type.{name}"))?.get(row.key)?;
        let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.as_str() == Some("");
        (!is_empty).then(|| format!("`{value}` for {name}"))
    };
    let found: Vec<String> = TYPES.iter().filter_map(of_type).collect();
    (!found.is_empty()).then(|| format!("The defaults: {}.", found.join(", ")))
}

/// Returns the default of a key as the file spells it; `None` if it has none, or each script type another.
fn default_of(row: &KeyRow, table: &KeyTable, defaults: &Value) -> Option<String> {
    let Some(rest) = table.path.strip_prefix(TYPE) else {
        let found = values(defaults, table.path).filter(|_| !table.is_open());
        return found?.get(row.key).map(ToString::to_string);
    };
    let of_type = |name: &&str| {
        values(defaults, &format!("type.{name}{rest}"))?.get(row.key).map(ToString::to_string)
    };
    let mut found: Vec<String> = TYPES.iter().filter_map(of_type).collect();
    found.dedup();
    if found.len() == 1 { found.pop() } else { None }
}

/// Returns the schema of the file as JSON Schema, draft 7, which the language servers for TOML read.
fn schema(defaults: &Value) -> Result<Json, Box<dyn Error>> {
    let mut root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hero.toml, the configuration of Hero",
        "type": "object",
        "additionalProperties": false,
        "properties": {},
    });
    for table in KEY_TABLES {
        let mut node = &mut root;
        for part in table.path.split('.') {
            let is_chosen = part.starts_with(|first: char| first.is_ascii_uppercase());
            let place = if is_chosen { "/additionalProperties" } else { "/properties" };
            let place = node.pointer_mut(place).ok_or("a table has no table above it")?;
            node = if is_chosen { place } else { &mut place[part] };
            if node.is_null() || node == &json!(true) {
                *node = json!({"type": "object", "additionalProperties": true, "properties": {}});
            }
        }
        node["description"] = about(table).markdown().into();
        node["additionalProperties"] = table.rows.is_empty().into();
        let mut properties = serde_json::Map::new();
        for group in groups(table) {
            let description = prose(group, table).markdown();
            for row in group {
                let mut of_key = values_of(row.kind);
                of_key["description"] = description.clone().into();
                let default = default_of(row, table, defaults);
                if let Some(default) =
                    default.map(|text| toml::from_str::<Value>(&format!("it = {text}")))
                {
                    of_key["default"] = serde_json::to_value(&default?["it"])?;
                }
                properties.insert(row.key.to_owned(), of_key);
            }
        }
        node["properties"] = properties.into();
        if table.is_list {
            let entry = node.take();
            *node = json!({"type": "array", "items": entry});
        }
    }
    Ok(root)
}

fn values_of(kind: KeyKind) -> Json {
    let number = |least: u64, most: u64| match i64::try_from(most) {
        Ok(i64::MAX) | Err(_) => json!({"type": "integer", "minimum": least}),
        Ok(most) => json!({"type": "integer", "minimum": least, "maximum": most}),
    };
    let list = |of: Json| json!({"type": "array", "items": of});
    let duration = || json!({"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$"});
    let (text, folder) =
        (|| json!({"type": "string"}), || json!({"type": "string", "pattern": "^/"}));
    match kind {
        KeyKind::Flag => json!({"type": "boolean"}),
        KeyKind::Text => text(),
        KeyKind::OneOf(words) => json!({"type": "string", "enum": words}),
        KeyKind::Texts => list(text()),
        KeyKind::SomeOf(words) => list(json!({"type": "string", "enum": words})),
        KeyKind::Map => json!({"type": "object", "additionalProperties": text()}),
        KeyKind::Labels => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "number"]}})
        }
        KeyKind::File | KeyKind::FolderOrNone => json!({"type": "string", "pattern": "^(/|$)"}),
        KeyKind::Folder => folder(),
        KeyKind::Folders => list(folder()),
        KeyKind::Number(least, most) => number(least, most),
        KeyKind::Numbers(least, most) => list(number(least, most)),
        KeyKind::Decimal(most) => json!({"type": "number", "minimum": 0, "maximum": most}),
        KeyKind::Duration(..) => duration(),
        KeyKind::Durations(..) => list(duration()),
        KeyKind::Size(..) => {
            json!({"type": "string", "pattern": "^[0-9]+(B|KB|MB|GB|KiB|MiB|GiB)$"})
        }
        KeyKind::Form => json!({}),
    }
}
