//! The functions of every script for JSON, TOML and YAML.

mod budget;
mod json;
mod requests;
mod toml_text;
mod yaml;

use ::rhai::{Dynamic, Map};

use super::functions::Functions;
use super::runtime::context::{RhaiResult, operation};
use super::runtime::json_form::{JsonForm, JsonRules};
use super::runtime::run::with;
use crate::config::RhaiLimits;
use crate::engine::Script;
use crate::proto::text::shown;
pub(super) use budget::Budget;
use budget::TOO_DEEP;
pub(super) use json::from_json;

const NO_RUN: &str = "no job runs on this thread";

/// Registers these functions. What they read and write obeys the limits of the run.
pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "formats",
        "Conversion between values and JSON, TOML and YAML. An object or a table becomes a map, a \
         list an array, a text a string, true and false a bool, null `()`. A number without a \
         fraction becomes an int, or a float if it does not fit into 64 bits; other numbers become \
         floats. A date becomes a string. An error names the line. The result obeys the limits of \
         the script type, and nests at most 127 levels deep.",
    );
    register_parsers(functions);
    register_encoders(functions);
    requests::register(functions);
}

fn register_parsers(functions: &mut Functions<'_>) {
    functions
        .add(
            "json_parse",
            ["text"],
            "Parses a JSON text. Of equal names in one object the last one counts.",
            r#"
let data = json_parse(`{"name": "web", "ports": [80, 443]}`);
data.ports[1]
// → 443"#,
            |text: &str| limited("json_parse", |limits| json::parse(text, limits)),
        )
        .returns("any");
    functions
        .add(
            "result",
            ["prerequisite"],
            "Returns what a prerequisite of the job returned, by its id, or by its name in a graph: the \
             value of an output that is JSON, the text of any other, `()` if it did not finish. INPUTS has \
             all outputs as texts.",
            "try { result(\"orders\").total } catch (error) { print(error) }",
            |prerequisite: &str| limited("result", |limits| result(prerequisite, limits)),
        )
        .returns("any");
    functions.add(
        "parse_toml",
        ["text"],
        "Parses a TOML text.",
        r#"
let data = parse_toml(`
    [web]
    ports = [80, 443]
    since = 2026-01-31
`);
[data.web.ports[1], data.web.since]
// → [443,"2026-01-31"]"#,
        |text: &str| limited("parse_toml", |limits| toml_text::parse(text, limits)),
    );
    functions
        .add(
            "parse_yaml",
            ["text"],
            "Parses a YAML 1.2 text with one document: `yes` and `on` are strings, not bools. An \
             alias becomes a copy, and `<<` takes in the entries of another map. A key becomes a \
             string as it is written. An empty text becomes `()`. Equal keys in one map, and tags \
             outside of the core schema (`!!str`, `!!int` …), are errors.",
            r#"
let data = parse_yaml(`
web: &web
  ports: [80, 443]
mail:
  <<: *web
  host: mx1
`);
data.mail
// → {"host":"mx1","ports":[80,443]}"#,
            |text: &str| limited("parse_yaml", |limits| yaml::parse(text, limits)),
        )
        .returns("any");
}

fn result(prerequisite: &str, limits: &RhaiLimits) -> Result<Dynamic, String> {
    let found = with(|run| {
        let of = &run.script.inputs;
        let by_job = || of.by_name.get(of.jobs.get(prerequisite)?);
        let names = || of.jobs.keys().chain(of.by_name.keys()).take(20).cloned();
        let names = || names().collect::<Vec<_>>().join(", ");
        of.by_name.get(prerequisite).or_else(by_job).cloned().ok_or_else(names)
    });
    let output = found.unwrap_or_else(|| Err(String::new())).map_err(|names| {
        let has = if names.is_empty() { "no prerequisite" } else { &names };
        format!("the job does not wait for `{}`: it has {has}", shown(prerequisite))
    })?;
    let Some(text) = output else { return Ok(Dynamic::UNIT) };
    value_of(&text, limits)
}

/// Returns an output as a value: the one of a JSON text, or the text.
fn value_of(text: &str, limits: &RhaiLimits) -> Result<Dynamic, String> {
    // JSON that exceeds the limits is an error, not a text.
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str::<serde::de::IgnoredAny>(json) {
        Ok(_) => json::parse(json, limits),
        Err(_) => Ok(text.to_owned().into()),
    }
}

fn register_encoders(functions: &mut Functions<'_>) {
    // The language has a `to_json` for maps, which the second form replaces.
    functions
        .add(
            "to_json",
            ["value"],
            "Converts any value to JSON, in one line. A value without a form in JSON becomes its \
             text; a float that is not finite becomes null.",
            r#"
to_json(#{name: "web", ports: [80, 443], note: ()})
// → {"name":"web","note":null,"ports":[80,443]}"#,
            |value: Dynamic| encoded("to_json", &value, false),
        )
        .overload(["value"], |value: &mut Map| {
            encoded("to_json", &Dynamic::from_map(value.clone()), false)
        });
    functions.add(
        "json_encode",
        ["value"],
        "Does the same as to_json.",
        r#"
json_encode(#{name: "web", ports: [80, 443], note: ()})
// → {"name":"web","note":null,"ports":[80,443]}"#,
        |value: Dynamic| encoded("json_encode", &value, false),
    );
    functions.add(
        "json_encode_pretty",
        ["value"],
        "Does the same as to_json, indented over several lines.",
        r"
let text = json_encode_pretty(#{ports: [80, 443]});
json_parse(text).ports.len
// → 2",
        |value: Dynamic| encoded("json_encode_pretty", &value, true),
    );
}

/// Does `work` within the limits of the run. An error gets the name of the function in front.
fn limited<T>(name: &str, work: impl FnOnce(&RhaiLimits) -> Result<T, String>) -> RhaiResult<T> {
    operation(name, "", |run| Some(run.limits), |job| Ok(work(job.settings)?))
}

/// Parses a text of the run as JSON, if it has it.
fn parsed(name: &str, text: impl FnOnce(&Script<'_>) -> Option<String>) -> RhaiResult<Dynamic> {
    let text = with(|run| text(run.script)).flatten();
    limited(name, |limits| text.map_or(Ok(Dynamic::UNIT), |json| json::parse(&json, limits)))
}

fn encoded(name: &str, value: &Dynamic, pretty: bool) -> RhaiResult<String> {
    limited(name, |limits| {
        let (form, bytes_max) = (form(value), limits.string_size_max);
        let text =
            if pretty { serde_json::to_string_pretty(&form) } else { serde_json::to_string(&form) };
        let text = text.map_err(|error| error.to_string())?;
        if text.len() as u64 > bytes_max {
            return Err(format!(
                "the result is longer than {bytes_max} bytes, the limit \
                 type.NAME.limits.string_size_max"
            ));
        }
        Ok(text)
    })
}

fn json_of(value: &Dynamic) -> Result<String, String> {
    serde_json::to_string(&form(value)).map_err(|error| error.to_string())
}

pub(super) fn to_json(value: &Dynamic) -> Result<serde_json::Value, String> {
    serde_json::to_value(form(value)).map_err(|error| error.to_string())
}

/// Returns a value as JSON. One without a form there becomes its text, and a float that is not finite null.
fn form(value: &Dynamic) -> JsonForm<'_> {
    let other = &|value: &Dynamic, _: &str| Ok((!value.is_float()).then(|| value.to_string()));
    JsonForm { value, field: "", depth: 0, rules: JsonRules { too_deep: TOO_DEEP, other } }
}

#[cfg(test)]
mod tests;
