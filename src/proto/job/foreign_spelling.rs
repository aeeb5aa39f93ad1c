//! The spellings of programs that write the hash themselves: values as their language prints them.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::value::FieldKind;

/// The words for "not given".
const ABSENT: [&str; 4] = ["", "none", "null", "nil"];
const YES: [&str; 2] = ["true", "yes"];
const NO: [&str; 2] = ["false", "no"];
/// Units after a number of seconds, longest first, and their seconds.
const UNITS: [(&str, f64); 5] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// Returns the value of a submitter's field as Hero spells it, `None` if the field counts as absent.
/// A value in no known spelling comes back as it is, for the error that names it.
pub(super) fn read<'a>(field: &str, kind: FieldKind, text: &'a str) -> Option<Cow<'a, str>> {
    let is_word = |words: &[&str]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    if text.is_empty() || kind != FieldKind::Text && is_word(&ABSENT) {
        return None;
    }
    Some(match kind {
        FieldKind::Flag if is_word(&YES) => Cow::Borrowed("true"),
        FieldKind::Flag if is_word(&NO) => Cow::Borrowed("false"),
        FieldKind::Duration => {
            let seconds = seconds(text);
            // The dispatcher's documents write 0 for the default.
            if field == "timeout" && seconds == Some(0.0) {
                return None;
            }
            seconds.map_or(Cow::Borrowed(text), |seconds| Cow::Owned(seconds.to_string()))
        }
        FieldKind::List if !text.trim_start().starts_with(['[', '{']) => {
            let ids: Vec<&str> =
                text.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
            Cow::Owned(json!(ids).to_string())
        }
        FieldKind::Map => map(text).map_or(Cow::Borrowed(text), Cow::Owned),
        _ => Cow::Borrowed(text),
    })
}

/// Reads a number of seconds, or a number with a unit.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let with_unit = UNITS.iter().find_map(|(unit, worth)| Some((text.strip_suffix(unit)?, worth)));
    let (number, worth) = with_unit.unwrap_or((text, &1.0));
    Some(number.trim_end().parse::<f64>().ok()? * worth)
}

/// Writes the values of a JSON object as texts; a variable that is null is not set.
fn map(text: &str) -> Option<String> {
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    let texts = object.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
        let is_plain = value.is_number() || value.is_boolean();
        (name, if is_plain { Value::String(value.to_string()) } else { value })
    });
    Some(Value::Object(texts.collect()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(field: &str, kind: FieldKind, text: &str, expected: Option<&str>) {
        assert_eq!(read(field, kind, text).as_deref(), expected, "{field} {text}");
    }

    #[test]
    fn a_value_as_any_language_prints_it_is_understood() {
        for absent in ["", "None", "null", "nil", "NULL"] {
            reads("timeout", FieldKind::Duration, absent, None);
            reads("prerequisites", FieldKind::List, absent, None);
            reads("retries", FieldKind::Number, absent, None);
        }
        for (text, seconds) in
            [("30s", "30"), ("30", "30"), ("1.5", "1.5"), ("500ms", "0.5"), ("2 h", "7200")]
        {
            reads("timeout", FieldKind::Duration, text, Some(seconds));
        }
        for zero in ["0", "0.0", "0s"] {
            reads("timeout", FieldKind::Duration, zero, None);
        }
        for yes in ["True", "yes", "TRUE"] {
            reads("concurrent", FieldKind::Flag, yes, Some("true"));
        }
        for no in ["False", "no"] {
            reads("concurrent", FieldKind::Flag, no, Some("false"));
        }
        reads("dependencies", FieldKind::List, "a,b", Some(r#"["a","b"]"#));
        reads("dependencies", FieldKind::List, "a", Some(r#"["a"]"#));
        reads("dependencies", FieldKind::List, r#"["a"]"#, Some(r#"["a"]"#));
        reads(
            "env_vars",
            FieldKind::Map,
            r#"{"A":1,"B":true,"C":null,"D":"x"}"#,
            Some(r#"{"A":"1","B":"true","D":"x"}"#),
        );
    }

    #[test]
    fn text_and_unknown_spellings_stay_as_they_are() {
        reads("caller_id", FieldKind::Text, "None", Some("None"));
        reads("retention", FieldKind::Duration, "0", Some("0"));
        reads("timeout", FieldKind::Duration, "soon", Some("soon"));
        reads("env_vars", FieldKind::Map, "[1]", Some("[1]"));
        reads("env_vars", FieldKind::Map, r#"{"A":[1]}"#, Some(r#"{"A":[1]}"#));
        reads("after_any", FieldKind::List, "{}", Some("{}"));
        reads("concurrent", FieldKind::Flag, "maybe", Some("maybe"));
    }
}
