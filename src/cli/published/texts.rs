//! Published scripts as text for a person.

use std::fmt::Write;

use crate::client::ScriptTextDocument;
use crate::proto::named_script::{Parameters, PublishedScript};
use crate::proto::text::{escape, escape_lines};

pub(super) fn in_full(script: &PublishedScript, of: &ScriptTextDocument) -> String {
    let of = &of.of;
    let mut text = String::new();
    let from = of.file.clone().unwrap_or_else(|| of.published_by.clone());
    for (title, value) in [
        ("script", format!("{}@{}", of.name, of.version)),
        ("type", of.script_type.clone()),
        ("digest", of.digest.clone()),
        ("published", format!("{} by {from}", of.published_at)),
    ] {
        let _ = writeln!(text, "{title:9}  {}", escape(&value));
    }
    if let Some(version) = of.rolled_back_to {
        let _ = writeln!(text, "has        the text of version {version}");
    }
    for (field, value) in &of.settings {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let _ = writeln!(text, "{field:9}  {}", escape(&value));
    }
    if !of.description.is_empty() {
        let _ = write!(text, "\n{}\n", escape_lines(&of.description));
    }
    let _ = write!(text, "\n{}\n", parameters(script));
    text.push_str(&escape_lines(&script.text));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Returns the parameters of a script, a line each, and how a job gives them.
pub(in crate::cli) fn parameters(script: &PublishedScript) -> String {
    let reference = script.reference();
    let Some(Parameters(declared)) = &script.of.definition.params else {
        return format!("parameters: {reference} declares none and takes any\n");
    };
    if declared.is_empty() {
        return format!("parameters: {reference} takes none\n");
    }
    let mut text = "parameters:\n".to_owned();
    for (name, of) in declared {
        let is_text = of.kind == crate::proto::named_script::ParameterKind::String;
        let option =
            if is_text { format!("--param {name}=TEXT") } else { format!("--param {name}:=JSON") };
        let default = of.default.as_ref().map(|value| format!("; default {value}"));
        let default =
            if of.required { "; required".to_owned() } else { default.unwrap_or_default() };
        let about =
            if of.description.is_empty() { String::new() } else { format!("{}; ", of.description) };
        let _ = writeln!(
            text,
            "  {option:28}  {}",
            escape(&format!("{about}{}{default}", of.expected()))
        );
    }
    text
}

/// Returns what a version says beside its text, a line each.
pub(super) fn settings(script: &PublishedScript) -> String {
    let of = &script.of.definition;
    let mut text = format!("type = {}\n", of.script_type);
    if !of.description.is_empty() {
        let _ = writeln!(text, "description = {}", escape(&of.description));
    }
    for (field, value) in &of.settings {
        let _ = writeln!(text, "{field} = {}", escape(value));
    }
    for (name, of) in of.params.iter().flat_map(|params| &params.0) {
        let schema = serde_json::to_string(of).unwrap_or_default();
        let _ = writeln!(text, "params.{name} = {schema}");
    }
    text
}
