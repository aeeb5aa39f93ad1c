//! The types of YAML's scalars: the core schema of YAML 1.2.

use ::rhai::{Dynamic, FLOAT, INT};
use saphyr_parser::{ScalarStyle, Tag};

/// Returns the value of a scalar: by its tag, or by its text unless that is in quotes.
pub(super) fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Dynamic, String> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain(text) } else { Ok(text.into()) };
    };
    // A lone `!` makes a string.
    if tag.handle.is_empty() && tag.suffix == "!" {
        return Ok(text.into());
    }
    if !tag.is_yaml_core_schema() {
        return Err(unknown(tag));
    }
    let value = match tag.suffix.as_str() {
        "str" => return Ok(text.into()),
        "null" | "bool" | "int" | "float" => plain(text)?,
        _ => return Err(unknown(tag)),
    };
    match (tag.suffix.as_str(), value.as_int()) {
        ("null", _) if value.is_unit() => Ok(value),
        ("bool", _) if value.is_bool() => Ok(value),
        ("int", Ok(_)) => Ok(value),
        #[expect(clippy::cast_precision_loss, reason = "the text asks for a float")]
        ("float", Ok(number)) => Ok((number as FLOAT).into()),
        ("float", _) if value.is_float() => Ok(value),
        (suffix, _) => Err(format!("`{text}` is no !!{suffix}; correct it, or leave the tag out")),
    }
}

/// Rejects the tag of a list or a map, unless it says just that.
pub(super) fn is_collection(tag: Option<&Tag>, kind: &str) -> Result<(), String> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == kind) => Err(unknown(tag)),
        _ => Ok(()),
    }
}

fn unknown(tag: &Tag) -> String {
    let tag = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
    format!("unknown tag {tag}; leave it out")
}

fn plain(text: &str) -> Result<Dynamic, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Dynamic::UNIT,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        ".nan" | ".NaN" | ".NAN" => FLOAT::NAN.into(),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => FLOAT::INFINITY.into(),
        "-.inf" | "-.Inf" | "-.INF" => FLOAT::NEG_INFINITY.into(),
        _ => match number(text)? {
            Some(number) => number,
            None => text.into(),
        },
    })
}

fn number(text: &str) -> Result<Option<Dynamic>, String> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        let digits = text.strip_prefix(prefix).filter(|digits| !digits.is_empty());
        if let Some(digits) = digits.filter(|digits| digits.chars().all(|c| c.is_digit(radix))) {
            let number = INT::from_str_radix(digits, radix);
            let reason = format!("{text} has more than 63 bits; put it into quotes");
            return number.map(|number| Some(number.into())).map_err(|_| reason);
        }
    }
    // Rust reads more words as floats, such as `inf`.
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number {
        return Ok(None);
    }
    if let Ok(number) = text.parse::<INT>() {
        return Ok(Some(number.into()));
    }
    Ok(text.parse::<FLOAT>().ok().map(Into::into))
}
