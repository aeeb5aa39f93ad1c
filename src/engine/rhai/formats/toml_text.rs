//! TOML to values.

use ::rhai::{Array, Dynamic, Map};
use toml::Value;

use super::budget::{Budget, nests};
use crate::config::RhaiLimits;

pub(super) fn parse(text: &str, limits: &RhaiLimits) -> Result<Map, String> {
    let table = text.parse::<toml::Table>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let (line, message) = (1 + before.matches('\n').count(), error.message());
        format!("line {line}: {message}")
    })?;
    map(table, 0, &mut Budget::of_text(limits))
}

fn map(table: toml::Table, depth: usize, budget: &mut Budget<'_>) -> Result<Map, String> {
    nests(depth)?;
    let entries = table.into_iter().map(|(key, entry)| {
        budget.entry(&key)?;
        Ok((key.into(), value(entry, depth + 1, budget)?))
    });
    entries.collect()
}

fn value(toml: Value, depth: usize, budget: &mut Budget<'_>) -> Result<Dynamic, String> {
    nests(depth)?;
    Ok(match toml {
        Value::String(text) => {
            budget.text(&text)?;
            text.into()
        }
        Value::Integer(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Boolean(truth) => truth.into(),
        Value::Datetime(time) => time.to_string().into(),
        Value::Array(elements) => {
            let elements = elements.into_iter().map(|element| {
                budget.element()?;
                value(element, depth + 1, budget)
            });
            elements.collect::<Result<Array, String>>()?.into()
        }
        Value::Table(table) => map(table, depth, budget)?.into(),
    })
}
