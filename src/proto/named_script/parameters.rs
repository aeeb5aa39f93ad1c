//! The parameters that a script declares: a small part of JSON Schema, checked when a job is submitted.

use std::fmt::Write;

use indexmap::IndexMap;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use super::parameter_kind::{Items, ParameterKind};
use crate::proto::job::Params;
use crate::proto::target::is_word;
use crate::proto::text::{did_you_mean, nearest, shown};

const PARAMETERS_MAX: usize = 64;
const VALUES_MAX: usize = 100;
/// The longest pattern, and the largest program that it may become, in bytes. A match takes time in proportion to the
/// text: the engine has no backtracking.
const PATTERN_BYTES_MAX: usize = 256;
const PROGRAM_BYTES_MAX: usize = 256 << 10;
const DESCRIPTION_CHARS_MAX: usize = 500;

/// One declared parameter, with the words of JSON Schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a table")]
pub struct Parameter {
    #[serde(rename = "type", default = "text", skip_serializing_if = "is_text")]
    pub kind: ParameterKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The values that it may have; any without them.
    #[serde(rename = "enum", default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    #[serde(default, alias = "min_length", skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u32>,
    #[serde(default, alias = "max_length", skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// A regular expression that finds something in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The members of a list; anything without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
}

fn text() -> ParameterKind {
    ParameterKind::String
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_text(kind: &ParameterKind) -> bool {
    *kind == ParameterKind::String
}

/// The parameters by name, in the order of their declaration, which forms and help show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(pub IndexMap<String, Parameter>);

impl Parameters {
    /// Checks a declaration: names, bounds that fit the type, and values and defaults that fit the bounds.
    ///
    /// # Errors
    /// The name of the parameter with the mistake, and the mistake.
    pub fn check_declared(&self) -> Result<(), (String, String)> {
        if self.0.len() > PARAMETERS_MAX {
            return Err((String::new(), format!("more than {PARAMETERS_MAX} parameters")));
        }
        for (name, parameter) in &self.0 {
            let checked = check_name(name).and_then(|()| parameter.check_declared());
            checked.map_err(|why| (shown(name), why))?;
        }
        Ok(())
    }

    pub fn check(&self, given: &Params) -> Result<(), String> {
        for (name, value) in given {
            let Some(parameter) = self.0.get(name) else { return Err(self.unknown(name)) };
            parameter.check(value).map_err(|why| format!("{name}: {why}"))?;
        }
        let missing = self.0.iter().find(|(name, of)| of.required && !given.contains_key(*name));
        missing.map_or(Ok(()), |(name, of)| {
            Err(format!("{name}: is missing; it is required: expected {}", of.expected()))
        })
    }

    /// Reads the values that are words, as a command line has them, by the declared types: `3` is a number where one is
    /// declared, and lists and objects are JSON. A word that is no value of its type stays text, which the check refuses.
    pub fn read_words(&self, given: &mut Params, words: &[String]) {
        for name in words {
            let Some(parameter) = self.0.get(name) else { continue };
            if let Some(Value::String(word)) = given.get(name)
                && let Some(value) = parameter.kind.of_word(word)
            {
                given.insert(name.clone(), value);
            }
        }
    }

    pub fn fill(&self, given: &mut Params) -> Result<(), String> {
        self.check(given)?;
        for (name, parameter) in &self.0 {
            if let Some(default) = parameter.default.as_ref().filter(|_| !given.contains_key(name))
            {
                given.insert(name.clone(), default.clone());
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let known = || self.0.keys().map(String::as_str);
        let hint = did_you_mean(nearest(name, known()));
        let all = known().collect::<Vec<_>>().join(", ");
        let all = if all.is_empty() {
            "the script declares none".to_owned()
        } else {
            format!("declared: {all}")
        };
        format!("`{}` is an unknown parameter{hint}; {all}", shown(name))
    }

    pub fn schema(&self) -> Value {
        let required: Vec<&String> =
            self.0.iter().filter(|(_, of)| of.required).map(|(name, _)| name).collect();
        let properties: Map<String, Value> =
            self.0.iter().map(|(name, of)| (name.clone(), of.schema())).collect();
        let mut schema = json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

/// Refuses a name that a shell, a form or a tool of an agent could not show.
fn check_name(name: &str) -> Result<(), String> {
    let begins = |first: char| first.is_ascii_digit() || first == '-';
    if is_word(name.as_bytes(), 64, b"_-") && !name.starts_with(begins) {
        return Ok(());
    }
    Err("is not a legal name: 1 to 64 letters, digits, _ and -, the first a letter or _".to_owned())
}

impl Parameter {
    fn check_declared(&self) -> Result<(), String> {
        let is_text = self.kind == ParameterKind::String;
        let misplaced = [
            ("minimum", self.minimum.is_some() && !self.kind.is_number(), "integer and number"),
            ("maximum", self.maximum.is_some() && !self.kind.is_number(), "integer and number"),
            ("minLength", self.min_length.is_some() && !is_text, "string"),
            ("maxLength", self.max_length.is_some() && !is_text, "string"),
            ("pattern", self.pattern.is_some() && !is_text, "string"),
            ("items", self.items.is_some() && self.kind != ParameterKind::Array, "array"),
        ];
        if let Some((word, _, kinds)) = misplaced.iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(format!("{word} is for {kinds}, the type is {}", self.kind.as_str()));
        }
        if self.description.chars().count() > DESCRIPTION_CHARS_MAX {
            return Err(format!("description is longer than {DESCRIPTION_CHARS_MAX} characters"));
        }
        if self.values.len() > VALUES_MAX {
            return Err(format!("enum has more than {VALUES_MAX} values"));
        }
        let least = self.minimum.as_ref().and_then(Number::as_f64);
        let most = self.maximum.as_ref().and_then(Number::as_f64);
        if least.zip(most).is_some_and(|(least, most)| least > most) {
            return Err("minimum is more than maximum".to_owned());
        }
        if self.min_length.zip(self.max_length).is_some_and(|(least, most)| least > most) {
            return Err("minLength is more than maxLength".to_owned());
        }
        if let Some(pattern) = &self.pattern {
            compiled(pattern)?;
        }
        if self.required && self.default.is_some() {
            return Err("is required and has a default: one of both".to_owned());
        }
        for (word, value) in self
            .values
            .iter()
            .map(|value| ("enum", value))
            .chain(self.default.iter().map(|value| ("default", value)))
        {
            self.check(value).map_err(|why| format!("{word}: {why}"))?;
        }
        Ok(())
    }

    pub fn check(&self, value: &Value) -> Result<(), String> {
        let wrong =
            |why: String| Err(format!("{} {why}: expected {}", brief(value), self.expected()));
        if !self.kind.has(value) {
            let hint = match value {
                Value::String(_) => "is text",
                Value::Number(_) => "is a number",
                Value::Bool(_) => "is true or false",
                Value::Array(_) => "is a list",
                Value::Object(_) => "is an object",
                Value::Null => "is no value",
            };
            return wrong(hint.to_owned());
        }
        if !self.values.is_empty() && !self.values.iter().any(|of| is_same(of, value)) {
            return wrong("is not one of its values".to_owned());
        }
        if let Some(number) = value.as_f64().filter(|_| self.kind.is_number()) {
            let below =
                self.minimum.as_ref().and_then(Number::as_f64).is_some_and(|least| number < least);
            let above =
                self.maximum.as_ref().and_then(Number::as_f64).is_some_and(|most| number > most);
            if below || above {
                return wrong(format!("is too {}", if below { "small" } else { "large" }));
            }
        }
        if let Some((items, values)) = self.items.as_ref().zip(value.as_array())
            && let Some(other) = values.iter().find(|value| !items.kind.has(value))
        {
            return wrong(format!("has {}", brief(other)));
        }
        let Some(text) = value.as_str() else { return Ok(()) };
        let chars = text.chars().count() as u64;
        if self.min_length.is_some_and(|least| chars < u64::from(least)) {
            return wrong("is too short".to_owned());
        }
        if self.max_length.is_some_and(|most| chars > u64::from(most)) {
            return wrong("is too long".to_owned());
        }
        match &self.pattern {
            Some(pattern) if !compiled(pattern)?.is_match(text) => {
                wrong("does not match".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns what is allowed, in words.
    pub fn expected(&self) -> String {
        if !self.values.is_empty() {
            let values: Vec<String> = self.values.iter().take(20).map(brief).collect();
            let more = if self.values.len() > 20 { ", …" } else { "" };
            return format!("one of {}{more}", values.join(", "));
        }
        let mut text = self.kind.as_str().to_owned();
        if let Some(items) = &self.items {
            let _ = write!(text, " of {}", items.kind.as_str());
        }
        match (&self.minimum, &self.maximum) {
            (Some(least), Some(most)) => drop(write!(text, " from {least} to {most}")),
            (Some(least), None) => drop(write!(text, " of at least {least}")),
            (None, Some(most)) => drop(write!(text, " of at most {most}")),
            (None, None) => {}
        }
        match (self.min_length, self.max_length) {
            (Some(least), Some(most)) => drop(write!(text, " of {least} to {most} characters")),
            (Some(least), None) => drop(write!(text, " of at least {least} characters")),
            (None, Some(most)) => drop(write!(text, " of at most {most} characters")),
            (None, None) => {}
        }
        if let Some(pattern) = &self.pattern {
            let _ = write!(text, " that matches {}", shown(pattern));
        }
        text
    }

    fn schema(&self) -> Value {
        let mut schema = json!(self);
        schema["type"] = json!(self.kind.as_str());
        if let Some(members) = schema.as_object_mut() {
            members.remove("required");
        }
        // Some models refuse a list without it.
        if self.kind == ParameterKind::Array && self.items.is_none() {
            schema["items"] = json!({});
        }
        schema
    }
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("pattern is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let built = RegexBuilder::new(pattern).size_limit(PROGRAM_BYTES_MAX).build();
    built.map_err(|error| {
        let why = error.to_string();
        let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("pattern is not a regular expression within bounds: {last}")
    })
}

/// Returns whether two values are the same: 1 and 1.0 are.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other
        || one
            .as_f64()
            .zip(other.as_f64())
            .is_some_and(|(one, other)| one.to_bits() == other.to_bits())
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", shown(text)),
        other => shown(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(value: Value) -> Parameters {
        serde_json::from_value(value).expect("parameters")
    }

    fn deploy() -> Parameters {
        declared(json!({
            "host": { "required": true, "pattern": "^[a-z0-9.-]+$", "maxLength": 20 },
            "count": { "type": "integer", "minimum": 1, "maximum": 10, "default": 2 },
            "stage": { "enum": ["test", "live"], "default": "test" },
            "share": { "type": "number" },
            "dry": { "type": "boolean" },
            "tags": { "type": "array" },
        }))
    }

    #[test]
    fn errors_name_the_parameter_the_reason_and_what_is_allowed() {
        for (given, said) in [
            (
                json!({}),
                "host: is missing; it is required: expected string of at most 20 characters that matches ^[a-z0-9.-]+$",
            ),
            (json!({ "host": 5 }), "host: 5 is a number: expected string"),
            (json!({ "host": "A b" }), "host: \"A b\" does not match: expected string"),
            (json!({ "host": "a".repeat(21) }), "is too long"),
            (
                json!({ "host": "a", "count": "3" }),
                "count: \"3\" is text: expected integer from 1 to 10",
            ),
            (json!({ "host": "a", "count": 11 }), "count: 11 is too large"),
            (json!({ "host": "a", "count": 0 }), "count: 0 is too small"),
            (json!({ "host": "a", "count": 1.5 }), "count: 1.5 is a number: expected integer"),
            (
                json!({ "host": "a", "stage": "prod" }),
                "stage: \"prod\" is not one of its values: expected one of \"test\", \"live\"",
            ),
            (json!({ "host": "a", "dry": null }), "dry: null is no value: expected boolean"),
            (json!({ "host": "a", "tags": {} }), "tags: {} is an object: expected array"),
            (
                json!({ "hots": "a" }),
                "`hots` is an unknown parameter; did you mean `host`?; declared: host, count, stage, share, dry, tags",
            ),
        ] {
            let given = given.as_object().expect("an object");
            let error = deploy().check(given).expect_err(said);
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(deploy().check_declared(), Ok(()));
    }

    #[test]
    fn defaults_fill_what_is_left_out() {
        let mut given =
            json!({ "host": "web1", "count": 3.0 }).as_object().expect("an object").clone();
        deploy().fill(&mut given).expect("legal");
        assert_eq!(Value::from(given), json!({ "host": "web1", "count": 3.0, "stage": "test" }));
    }

    #[test]
    fn wrong_declarations_are_rejected() {
        let many: Map<String, Value> = (0..65).map(|n| (format!("p{n}"), json!({}))).collect();
        for (wrong, said) in [
            (json!({ "a b": {} }), "not a legal name"),
            (json!({ "<b>": {} }), "not a legal name"),
            (json!({ "a": { "type": "boolean", "minimum": 1 } }), "minimum is for integer"),
            (json!({ "a": { "type": "integer", "pattern": "x" } }), "pattern is for string"),
            (json!({ "a": { "type": "integer", "minimum": 3, "maximum": 2 } }), "minimum is more"),
            (json!({ "a": { "minLength": 3, "maxLength": 2 } }), "minLength is more"),
            (json!({ "a": { "pattern": "(" } }), "not a regular expression"),
            (json!({ "a": { "pattern": "(?=x)y" } }), "not a regular expression"),
            (json!({ "a": { "pattern": "((a{0,255}){0,255}){0,255}" } }), "within bounds"),
            (json!({ "a": { "pattern": "x".repeat(257) } }), "longer than 256 bytes"),
            (json!({ "a": { "default": 5 } }), "default: 5 is a number"),
            (json!({ "a": { "enum": ["x"], "default": "y" } }), "default: \"y\" is not one"),
            (json!({ "a": { "enum": [1] } }), "enum: 1 is a number"),
            (json!({ "a": { "required": true, "default": "x" } }), "one of both"),
            (json!({ "a": { "description": "x".repeat(501) } }), "longer than 500"),
            (Value::Object(many), "more than 64"),
        ] {
            let (_, why) = declared(wrong).check_declared().expect_err(said);
            assert!(why.contains(said), "{why}");
        }
        for wrong in
            [json!({ "a": { "type": "text" } }), json!({ "a": { "min": 1 } }), json!({ "a": 1 })]
        {
            assert!(serde_json::from_value::<Parameters>(wrong).is_err());
        }
    }

    #[test]
    fn words_become_values_of_the_declared_types() {
        let all = declared(json!({
            "count": { "type": "integer", "maximum": 5 }, "share": { "type": "number" }, "dry": { "type": "boolean" },
            "hosts": { "type": "array" }, "labels": { "type": "object" }, "name": {},
        }));
        let read = |words: &[(&str, &str)]| {
            let mut given: Params =
                words.iter().map(|(name, word)| ((*name).to_owned(), json!(word))).collect();
            let names: Vec<String> = words.iter().map(|(name, _)| (*name).to_owned()).collect();
            all.read_words(&mut given, &names);
            all.check(&given).map(|()| json!(given))
        };
        let words = [
            ("count", "3"),
            ("share", "0.5"),
            ("dry", "true"),
            ("hosts", "[\"a\"]"),
            ("labels", "{\"a\":1}"),
            ("name", "3"),
        ];
        let values = json!({
            "count": 3, "share": 0.5, "dry": true, "hosts": ["a"], "labels": { "a": 1 }, "name": "3",
        });
        assert_eq!(read(&words), Ok(values));
        for (name, word, said) in [
            ("count", "x", "count: \"x\" is text: expected integer of at most 5"),
            ("count", "2.5", "count: \"2.5\" is text: expected integer"),
            ("count", "6", "count: 6 is too large"),
            ("count", "100000000000000000000", "is text: expected integer"),
            ("count", "", "count: \"\" is text"),
            ("share", "half", "share: \"half\" is text: expected number"),
            ("dry", "yes", "dry: \"yes\" is text: expected boolean"),
            ("hosts", "a,b", "hosts: \"a,b\" is text: expected array"),
            ("labels", "[]", "labels: \"[]\" is text: expected object"),
            ("cuont", "3", "`cuont` is an unknown parameter; did you mean `count`?"),
        ] {
            let error = read(&[(name, word)]).expect_err(word);
            assert!(error.contains(said), "{error}");
        }
        // A value that is no word stays as it is.
        let mut given: Params = [("count".to_owned(), json!("3"))].into_iter().collect();
        all.read_words(&mut given, &[]);
        assert_eq!(given["count"], json!("3"));
    }

    #[test]
    fn catastrophic_patterns_take_no_longer_than_their_text() {
        let evil = declared(json!({ "a": { "pattern": "^(a+)+$" } }));
        let given = json!({ "a": format!("{}b", "a".repeat(60_000)) });
        let error = evil.check(given.as_object().expect("an object")).expect_err("no match");
        assert!(error.len() < 300, "{error}");
    }

    #[test]
    fn schema_is_json_schema() {
        let schema = deploy().schema();
        assert_eq!(schema["required"], json!(["host"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        let host = &schema["properties"]["host"];
        assert_eq!(*host, json!({ "type": "string", "pattern": "^[a-z0-9.-]+$", "maxLength": 20 }));
        assert_eq!(schema["properties"]["count"]["default"], json!(2));
    }
}
