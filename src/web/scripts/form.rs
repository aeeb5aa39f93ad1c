//! The form of a published script, made of the parameters that it declares.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::parts::{bar, labelled, options, or_any};
use super::super::submit::DraftError;
use super::super::visit::Visit;
use crate::client::ScriptDocument;

/// Begins the names of the fields of parameters.
pub(super) const FIELD: &str = "param-";

/// The texts of the form, and the reason why it was refused.
#[derive(Default)]
pub(super) struct RunDraft {
    pub(super) texts: Map<String, Value>,
    pub(super) error: DraftError,
}

impl RunDraft {
    fn text(&self, name: &str) -> &str {
        self.texts.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Returns the form of a script's parameters; of a script that declares none, one field for all as JSON.
pub(super) fn run_form(visit: &Visit, script: &ScriptDocument, draft: &RunDraft) -> Markup {
    let properties = properties(script);
    let action = visit.links().page("scripts", &script.name);
    html! {
        section {
            (bar("Run", "", None))
            form.form method="post" action=(action) {
                (visit.forgery_field())
                input type="hidden" name="version" value=(script.version);
                @if !draft.error.message.is_empty() { (draft.error.note("No job was submitted.", &html! {})) }
                @match &properties {
                    None => {
                        div.f-l {
                            label for=(FIELD) { "Parameters" }
                            textarea #(FIELD) name=(FIELD) rows="3" spellcheck="false" { (draft.text("")) }
                            small { "A JSON object; the script declares no parameters" }
                        }
                    }
                    Some(properties) => {
                        @for (name, schema) in properties { (input(name, schema, is_required(script, name), draft)) }
                    }
                }
                div.actions { button.main name="do" value="run" { "Run" } }
            }
        }
    }
}

fn properties(script: &ScriptDocument) -> Option<Map<String, Value>> {
    script.parameters.as_ref()?.get("properties")?.as_object().cloned()
}

fn is_required(script: &ScriptDocument, name: &str) -> bool {
    let required = script.parameters.as_ref().and_then(|schema| schema.get("required"));
    required.and_then(Value::as_array).is_some_and(|all| all.iter().any(|of| of == name))
}

fn input(name: &str, schema: &Value, is_required: bool, draft: &RunDraft) -> Markup {
    let id = format!("{FIELD}{name}");
    let hint = format!("{id}-hint");
    let text = |of: &str| schema.get(of).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let default = schema.get("default").map(&shown).unwrap_or_default();
    let given = draft.text(name);
    let values: Option<Vec<String>> = match (kind, schema.get("enum").and_then(Value::as_array)) {
        (_, Some(values)) => Some(values.iter().map(&shown).collect()),
        ("boolean", None) => Some(vec!["true".to_owned(), "false".to_owned()]),
        _ => None,
    };
    let none = if default.is_empty() { "–".to_owned() } else { format!("default: {default}") };
    let number = |of: &str| schema.get(of).filter(|of| of.is_number()).map(ToString::to_string);
    let input = html! {
        @if let Some(values) = &values {
            select #(id) name=(id) aria-describedby=(hint) required[is_required] {
                (options(or_any(&none, values.iter().map(String::as_str)), given))
            }
        } @else if matches!(kind, "array" | "object") {
            textarea #(id) name=(id) rows="3" spellcheck="false" placeholder=(default) aria-describedby=(hint)
                required[is_required] { (given) }
        } @else {
            input #(id) name=(id) value=(given) placeholder=(default) autocomplete="off" spellcheck="false"
                inputmode=[matches!(kind, "integer" | "number").then_some("decimal")]
                minlength=[number("minLength")] maxlength=[number("maxLength")]
                aria-describedby=(hint) required[is_required];
        }
    };
    let told = html! {
        (text("description")) @if !text("description").is_empty() { "; " } (kind)
        @if let Some(least) = number("minimum") { ", at least " (least) }
        @if let Some(most) = number("maximum") { ", at most " (most) }
        @if !text("pattern").is_empty() { ", " code { (text("pattern")) } }
        @if is_required { ", required" }
    };
    labelled(&id, name, &input, &told)
}

/// Returns the parameters of the texts of a form. A text that is no value of its type stays a text, which the check of
/// the parameters explains.
pub(super) fn given(script: &ScriptDocument, texts: &Map<String, Value>) -> Value {
    let text_of =
        |name: &str| texts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(properties) = properties(script) else {
        let text = text_of("");
        return match text.trim() {
            "" => json!({}),
            some => serde_json::from_str(some).unwrap_or(Value::String(text)),
        };
    };
    let values = texts.keys().map(|name| {
        let text = text_of(name);
        let is_text = properties.get(name).is_none_or(|of| of["type"] == "string");
        let value = if is_text { None } else { serde_json::from_str(text.trim()).ok() };
        (name.clone(), value.unwrap_or(Value::String(text)))
    });
    Value::Object(values.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::named_script::Parameters;

    fn hostile() -> ScriptDocument {
        let evil = "<script>alert(1)</script>";
        let declared: Parameters = serde_json::from_value(json!({
            "text": { "description": evil, "pattern": evil, "default": evil, "required": false },
            "choice": { "enum": [evil], "required": true },
            "list": { "type": "array", "default": [evil] },
            "number": { "type": "integer", "minimum": 1 },
            "flag": { "type": "boolean" },
        }))
        .expect("parameters");
        ScriptDocument { parameters: Some(json!(declared.schema())), ..ScriptDocument::default() }
    }

    #[test]
    fn texts_of_a_schema_are_escaped() {
        let (script, draft) = (hostile(), RunDraft::default());
        let inputs: String = properties(&script)
            .expect("declared")
            .iter()
            .map(|(name, schema)| {
                input(name, schema, is_required(&script, name), &draft).into_string()
            })
            .collect();
        assert!(inputs.contains("&lt;script&gt;") && !inputs.contains("<script"), "{inputs}");
    }

    #[test]
    fn texts_of_the_form_become_values_of_the_declared_types() {
        let texts = json!({
            "text": "5", "number": "5", "flag": "true", "list": "[1]", "choice": "x", "unknown": "7",
        });
        let expected = json!({
            "text": "5", "number": 5, "flag": true, "list": [1], "choice": "x", "unknown": "7",
        });
        assert_eq!(given(&hostile(), texts.as_object().expect("an object")), expected);
        let wrong = json!({ "number": "five" });
        assert_eq!(given(&hostile(), wrong.as_object().expect("an object")), wrong);
        let free = ScriptDocument::default();
        let all = json!({ "": "{\"a\": 1}" });
        assert_eq!(given(&free, all.as_object().expect("an object")), json!({ "a": 1 }));
        assert_eq!(given(&free, &Map::new()), json!({}));
    }
}
