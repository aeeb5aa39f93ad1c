//! Names for the schemas of the document of methods. Generators of clients call a type by the title of its schema; one
//! without gets a name of random letters.

use std::collections::HashSet;

use serde_json::{Value, json};

/// The words that contain alternatives.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Gives each schema of a document a title of its own: a shared one has its name, the title of a member begins with
/// the title of its schema. Enumerations become plain ones.
pub(super) fn name_schemas(document: &mut Value) {
    make_plain(document);
    let mut titles = SchemaTitles::default();
    let methods = document["methods"].as_array().into_iter().flatten();
    // Generators name a method's function so.
    titles.taken.extend(methods.filter_map(|method| method["name"].as_str()).map(camel));
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    let mut schemas: Vec<(&String, &mut Value)> = schemas.into_iter().flatten().collect();
    // The shared ones have the first choice.
    for (name, schema) in &mut schemas {
        schema["title"] = json!(titles.free(&camel(name), "Document"));
    }
    for (_, schema) in schemas {
        titles.name_parts(schema);
    }
    for method in document["methods"].as_array_mut().into_iter().flatten() {
        let name = camel(method["name"].as_str().unwrap_or_default());
        for param in method["params"].as_array_mut().into_iter().flatten() {
            let of = camel(param["name"].as_str().unwrap_or_default());
            titles.name(&mut param["schema"], &format!("{name}{of}"));
        }
        titles.name(&mut method["result"]["schema"], &format!("{name}Result"));
        if let Some(notice) = method.get_mut("x-notification") {
            titles.name(notice, &format!("{name}Notice"));
        }
    }
}

#[derive(Default)]
struct SchemaTitles {
    taken: HashSet<String>,
}

impl SchemaTitles {
    /// Takes a title: with a word behind it if it is taken, and then a number.
    fn free(&mut self, wanted: &str, word: &str) -> String {
        let mut title = wanted.to_owned();
        let mut number = 1;
        while !self.taken.insert(title.clone()) {
            let suffix = if number == 1 { word.to_owned() } else { format!("{word}{number}") };
            title = format!("{wanted}{suffix}");
            number += 1;
        }
        title
    }

    fn name(&mut self, schema: &mut Value, wanted: &str) {
        if schema.get("$ref").is_some() || !schema.is_object() {
            return;
        }
        schema["title"] = json!(self.free(wanted, "Value"));
        self.name_parts(schema);
    }

    /// Names the members, the items and the alternatives of a schema that has a title.
    fn name_parts(&mut self, schema: &mut Value) {
        let title = schema["title"].as_str().unwrap_or_default().to_owned();
        let members = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (name, member) in members.into_iter().flatten() {
            self.name(member, &format!("{title}{}", camel(name)));
        }
        for (word, part) in [("items", "Item"), ("additionalProperties", "Entry")] {
            if let Some(of_each) = schema.get_mut(word) {
                self.name(of_each, &format!("{title}{part}"));
            }
        }
        for word in ALTERNATIVES {
            let all = schema.get_mut(word).and_then(Value::as_array_mut);
            for (place, one) in all.into_iter().flatten().enumerate() {
                self.name(one, &format!("{title}Option{}", place + 1));
            }
        }
    }
}

/// Returns a name in the form of a type's name: `job.change_many` becomes `JobChangeMany`.
fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .flat_map(|word| {
            let (first, rest) = word.split_at_checked(1).unwrap_or_default();
            [first.to_ascii_uppercase(), rest.to_owned()]
        })
        .collect()
}

/// Turns alternatives that are all words into an enumeration, which each generator knows, with their descriptions in
/// its own, and leaves out the sizes of numbers.
fn make_plain(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(make_plain),
        Value::Object(members) => {
            if let Some((words, described)) = members.get("oneOf").and_then(words_of) {
                members.remove("oneOf");
                let own = members.get("description").and_then(Value::as_str);
                let own = own.map(|own| vec![own.to_owned()]).unwrap_or_default();
                let description = [own, described].concat().join("\n");
                members.insert("type".to_owned(), json!("string"));
                members.insert("enum".to_owned(), json!(words));
                members.insert("description".to_owned(), json!(description));
            }
            // Validators refuse a schema with a format that JSON Schema has not.
            if members.get("format").and_then(Value::as_str).is_some_and(is_size) {
                members.remove("format");
            }
            members.values_mut().for_each(make_plain);
        }
        _ => {}
    }
}

/// Returns true for a format that is the size of a number, such as `uint32`.
fn is_size(format: &str) -> bool {
    ["int", "uint", "float", "double"].contains(&format.trim_end_matches(char::is_numeric))
}

/// The words of alternatives, and a line about each that has a description; `None` if one of them is no word.
fn words_of(alternatives: &Value) -> Option<(Vec<Value>, Vec<String>)> {
    let (mut words, mut described) = (Vec::new(), Vec::new());
    for one in alternatives.as_array()? {
        let of_one = match (one.get("const"), one.get("enum")) {
            (Some(word), _) => vec![word.clone()],
            (None, Some(several)) => several.as_array()?.clone(),
            (None, None) => return None,
        };
        if !of_one.iter().all(Value::is_string) {
            return None;
        }
        if let (Some(text), [word]) = (one["description"].as_str(), of_one.as_slice()) {
            described.push(format!("{}: {text}", word.as_str().unwrap_or_default()));
        }
        words.extend(of_one);
    }
    Some((words, described))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_has_a_title_of_its_own() {
        let mut document = json!({
            "methods": [{
                "name": "job.file",
                "params": [{ "name": "id", "schema": { "type": "string" } }],
                "result": { "schema": { "$ref": "#/components/schemas/JobFile" } },
            }],
            "components": { "schemas": {
                "JobFile": { "properties": {
                    "kind": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                    "names": { "type": "array", "items": { "type": "string" } },
                } },
                "JobFileDocumentKind": { "type": "string" },
            } },
        });
        name_schemas(&mut document);
        assert_eq!(document["methods"][0]["params"][0]["schema"]["title"], "JobFileId");
        assert_eq!(document["methods"][0]["result"]["schema"].get("title"), None);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["JobFile"]["title"], "JobFileDocument", "JobFile is the method");
        let kind = &schemas["JobFile"]["properties"]["kind"];
        assert_eq!(kind["title"], "JobFileDocumentKindValue", "the shared schema has the name");
        assert_eq!(kind["anyOf"][1]["title"], "JobFileDocumentKindValueOption2");
        let names = &schemas["JobFile"]["properties"]["names"]["items"]["title"];
        assert_eq!(*names, "JobFileDocumentNamesItem");
    }

    #[test]
    fn alternatives_of_words_are_an_enumeration() {
        let mut value = json!({ "description": "A side.", "oneOf": [
            { "type": "string", "enum": ["in", "out"] },
            { "type": "string", "const": "both", "description": "In and out." },
        ] });
        make_plain(&mut value);
        let description = "A side.\nboth: In and out.";
        let plain =
            json!({ "type": "string", "enum": ["in", "out", "both"], "description": description });
        assert_eq!(value, plain);
        let mut size = json!({ "type": "integer", "format": "uint32", "minimum": 0 });
        make_plain(&mut size);
        assert_eq!(size, json!({ "type": "integer", "minimum": 0 }));
        let mut other =
            json!({ "oneOf": [{ "type": "string", "const": "a" }, { "type": "null" }] });
        let before = other.clone();
        make_plain(&mut other);
        assert_eq!(other, before);
    }
}
