//! The filters of Tera for texts: templates of older scripts use them, with named parameters.

#![expect(clippy::needless_pass_by_value, reason = "a filter gets its arguments by value")]

use std::borrow::Cow;
use std::fmt::Write;

use minijinja::value::{ArgType, Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use slug::slugify;

/// The characters that `urlencode` encodes: all but letters, digits and these.
const URL_ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');
const TAGS: &str = "(?s)<!--.*?-->|<[^>]*>";

#[derive(Debug, Clone, Copy)]
pub(super) struct TextBounds {
    pub(super) bytes_max: u64,
    pub(super) elements_max: usize,
}

pub(super) fn add_text_filters(environment: &mut Environment<'_>, bounds: TextBounds) {
    environment.add_filter("truncate", truncate);
    environment.add_filter(
        "replace",
        move |text: Cow<'_, str>, from: Option<String>, to: Option<String>, names: Kwargs| {
            let from = required(from, &names, "from")?;
            let to = required(to, &names, "to")?;
            names.assert_all_used()?;
            fits(text.len(), text.matches(&from).count(), to.len(), bounds)?;
            Ok::<_, Error>(text.replace(&from, &to))
        },
    );
    environment.add_filter(
        "indent",
        move |text: Cow<'_, str>, width: Option<usize>, names: Kwargs| {
            let prefix = names.get::<Option<String>>("prefix")?;
            let width = width.unwrap_or(4);
            fits(width, 0, 0, bounds)?;
            let prefix = prefix.unwrap_or_else(|| " ".repeat(width));
            let (first, blank) = (flag(&names, "first")?, flag(&names, "blank")?);
            names.assert_all_used()?;
            fits(text.len(), text.lines().count(), prefix.len(), bounds)?;
            Ok::<_, Error>(indent(&text, &prefix, first, blank))
        },
    );
    environment.add_filter("trim_start", |text: Cow<'_, str>| text.trim_start().to_owned());
    environment.add_filter("trim_end", |text: Cow<'_, str>| text.trim_end().to_owned());
    environment.add_filter(
        "trim_start_matches",
        |text: Cow<'_, str>, part: Option<String>, names: Kwargs| {
            let part = required(part, &names, "pat")?;
            Ok::<_, Error>(text.trim_start_matches(part.as_str()).to_owned())
        },
    );
    environment.add_filter(
        "trim_end_matches",
        |text: Cow<'_, str>, part: Option<String>, names: Kwargs| {
            let part = required(part, &names, "pat")?;
            Ok::<_, Error>(text.trim_end_matches(part.as_str()).to_owned())
        },
    );
    environment.add_filter("split", split);
    environment.add_filter("wordcount", |text: Cow<'_, str>| text.split_whitespace().count());
    environment.add_filter("as_str", move |value: &Value| bounded(value, bounds));
    add_notations(environment, bounds);
}

/// Filters that rewrite characters for another notation.
fn add_notations(environment: &mut Environment<'_>, bounds: TextBounds) {
    environment.add_filter("slugify", |text: Cow<'_, str>| slugify(&text));
    let url_encode = move |text: &str, encoded: &'static AsciiSet| {
        // A byte may become three.
        fits(0, 3, text.len(), bounds)?;
        Ok::<_, Error>(utf8_percent_encode(text, encoded).to_string())
    };
    environment.add_filter("urlencode", move |text: Cow<'_, str>| url_encode(&text, URL_ENCODED));
    environment.add_filter("urlencode_strict", move |text: Cow<'_, str>| {
        url_encode(&text, NON_ALPHANUMERIC)
    });
    environment.add_filter("striptags", |text: Cow<'_, str>| replaced(&text, TAGS, ""));
    environment.add_filter("spaceless", |text: Cow<'_, str>| replaced(&text, ">\\s+<", "><"));
    environment.add_filter("linebreaksbr", |text: Cow<'_, str>| {
        text.replace("\r\n", "<br>").replace('\n', "<br>")
    });
    environment.add_filter("addslashes", move |text: Cow<'_, str>| {
        fits(0, 2, text.len(), bounds)?;
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\'', "\\'");
        Ok::<_, Error>(text)
    });
}

/// Returns a parameter that has a place or a name.
pub(super) fn optional<'a, T>(
    placed: Option<T>,
    names: &'a Kwargs,
    name: &'a str,
) -> Result<Option<T>, Error>
where
    T: ArgType<'a, Output = T>,
{
    match placed {
        Some(value) => Ok(Some(value)),
        None => names.get::<Option<T>>(name),
    }
}

pub(super) fn required<'a, T>(
    placed: Option<T>,
    names: &'a Kwargs,
    name: &'a str,
) -> Result<T, Error>
where
    T: ArgType<'a, Output = T>,
{
    optional(placed, names, name)?.ok_or_else(|| failed(format!("no parameter `{name}`")))
}

pub(super) fn flag(names: &Kwargs, name: &str) -> Result<bool, Error> {
    Ok(names.get::<Option<bool>>(name)?.unwrap_or(false))
}

pub(super) fn failed(reason: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}

/// Rejects a result of `start` bytes and `count` pieces that is larger than a string may be.
pub(super) fn fits(
    start: usize,
    count: usize,
    piece: usize,
    bounds: TextBounds,
) -> Result<(), Error> {
    let bytes = count.saturating_mul(piece).saturating_add(start);
    if bytes as u64 <= bounds.bytes_max {
        return Ok(());
    }
    Err(failed(format!("the result of a filter is longer than {} bytes", bounds.bytes_max)))
}

/// Returns the text of a value as a template prints it.
pub(super) fn plain(value: &Value) -> String {
    match (value.kind(), f64::try_from(value.clone())) {
        (ValueKind::Bool, _) => value.is_true().to_string(),
        (ValueKind::Number, Ok(number)) if !value.is_integer() => number.to_string(),
        _ => value.to_string(),
    }
}

/// Returns the text of a value; fails if it is too long. A list can contain another many times.
pub(super) fn bounded(value: &Value, bounds: TextBounds) -> Result<String, Error> {
    if matches!(value.kind(), ValueKind::Bool | ValueKind::Number) {
        return Ok(plain(value));
    }
    let mut text = ShownValue { text: String::new(), bounds };
    if write!(text, "{value}").is_err() {
        fits(usize::MAX, 0, 0, bounds)?;
    }
    Ok(text.text)
}

struct ShownValue {
    text: String,
    bounds: TextBounds,
}

impl Write for ShownValue {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        fits(self.text.len(), 1, part.len(), self.bounds).map_err(|_| std::fmt::Error)?;
        self.text.push_str(part);
        Ok(())
    }
}

fn truncate(
    text: Cow<'_, str>,
    length: Option<usize>,
    end: Option<String>,
    names: Kwargs,
) -> Result<String, Error> {
    let length = optional(length, &names, "length")?.unwrap_or(255);
    let end = optional(end, &names, "end")?.unwrap_or_else(|| "…".to_owned());
    names.assert_all_used()?;
    Ok(match text.char_indices().nth(length) {
        Some((cut, _)) => format!("{}{end}", &text[..cut]),
        None => text.into_owned(),
    })
}

fn split(text: Cow<'_, str>, part: Option<String>, names: Kwargs) -> Result<Vec<String>, Error> {
    let part = optional(part, &names, "pat")?;
    names.assert_all_used()?;
    Ok(match part {
        Some(part) => text.split(part.as_str()).map(ToOwned::to_owned).collect(),
        None => text.split_whitespace().map(ToOwned::to_owned).collect(),
    })
}

fn indent(text: &str, prefix: &str, first: bool, blank: bool) -> String {
    let mut indented = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            indented.push('\n');
        }
        if (number > 0 || first) && (blank || !line.trim().is_empty()) {
            indented.push_str(prefix);
        }
        indented.push_str(line);
    }
    indented
}

fn replaced(text: &str, pattern: &str, by: &str) -> Result<String, Error> {
    let pattern = Regex::new(pattern).map_err(|error| failed(error.to_string()))?;
    Ok(pattern.replace_all(text, by).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_rewritten_as_by_tera() {
        assert_eq!(slugify("  Hello, Wörld! x "), "hello-world-x");
        let encoded = utf8_percent_encode("a b/c?é", URL_ENCODED).to_string();
        assert_eq!(encoded, "a%20b/c%3F%C3%A9");
        assert_eq!(replaced("<b>a</b> <!-- <i> -->b < c", TAGS, "").expect("legal"), "a b < c");
        assert_eq!(indent("a\n\nb", "  ", false, false), "a\n\n  b");
        assert_eq!(indent("a\n\nb", "  ", true, true), "  a\n  \n  b");
    }
}
