//! Schemas of arguments in few words: models read all of them before each conversation.

use serde_json::{Value, json};

/// Shortens a schema: an argument that may be left out needs no `null`, and closed words are a list.
pub(super) fn shorten(schema: &mut Value) {
    if let Some(words) = closed_words(schema) {
        let description = schema.get("description").cloned();
        *schema = json!({ "type": "string", "enum": words });
        schema["description"] = description.unwrap_or_default();
    }
    if let Some(mut own) = but_null(schema) {
        if let Some(description) = schema.get("description") {
            own["description"] = description.clone();
        }
        *schema = own;
        return shorten(schema);
    }
    match schema {
        Value::Object(members) => {
            if members.get("format").is_some_and(|format| format == "uint") {
                members.remove("format");
            }
            if let Some(Value::Array(kinds)) = members.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [kind] = kinds.as_slice() {
                    let kind = kind.clone();
                    members.insert("type".to_owned(), kind);
                }
            }
            members.values_mut().for_each(shorten);
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// Returns the words of a choice between described constants.
fn closed_words(schema: &Value) -> Option<Vec<Value>> {
    let words = schema.get("oneOf")?.as_array()?;
    words.iter().map(|word| word.get("const").filter(|of| of.is_string()).cloned()).collect()
}

/// Returns the other form of what may be null.
fn but_null(schema: &Value) -> Option<Value> {
    let forms = schema.get("anyOf")?.as_array()?;
    let is_null = |form: &&Value| form["type"] == "null";
    match forms.iter().filter(|form| !is_null(form)).collect::<Vec<_>>().as_slice() {
        [own] if forms.iter().any(|form| is_null(&form)) => Some((*own).clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_keeps_types_words_and_descriptions() {
        let word = |word: &str| json!({ "type": "string", "const": word, "description": "long" });
        let of = json!({ "oneOf": [word("a"), word("b")], "description": "Of the type." });
        let mut schema = json!({ "properties": {
            "status": { "anyOf": [of, { "type": "null" }], "description": "Only these." },
            "limit": { "type": ["integer", "null"], "format": "uint", "minimum": 0 },
        } });
        shorten(&mut schema);
        assert_eq!(
            schema["properties"],
            json!({
                "status": { "type": "string", "enum": ["a", "b"], "description": "Only these." },
                "limit": { "type": "integer", "minimum": 0 },
            })
        );
    }
}
