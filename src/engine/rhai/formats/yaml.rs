//! YAML to values, by the core schema of YAML 1.2.

use std::collections::HashMap;

use ::rhai::{Array, Dynamic, FLOAT, INT, ImmutableString, Map};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};

use super::budget::{Budget, nests};
use crate::config::RhaiLimits;

pub(super) fn parse(text: &str, limits: &RhaiLimits) -> Result<Dynamic, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parser = Parser::new_from_str(text);
    let mut reader =
        YamlReader { parser, budget: Budget::of_text(limits), anchors: HashMap::new() };
    reader.document().map_err(|failed| format!("line {}: {}", failed.line, failed.reason))
}

struct Mistake {
    line: usize,
    reason: String,
}

type ReaderResult<T> = Result<T, Mistake>;

struct YamlReader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    budget: Budget<'a>,
    anchors: HashMap<usize, Dynamic>,
}

/// Adds the line of the event to the reason of an error.
fn at<T>(span: Span, result: Result<T, String>) -> ReaderResult<T> {
    result.map_err(|reason| Mistake { line: span.start.line(), reason })
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> ReaderResult<(Event<'a>, Span)> {
        match self.parser.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let (line, reason) = (error.marker().line(), error.info().to_owned());
                Err(Mistake { line, reason })
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn document(&mut self) -> ReaderResult<Dynamic> {
        let mut value = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(value.unwrap_or_default()),
                Event::DocumentStart(_) if value.is_some() => {
                    let reason = "a second document begins here; parse the documents one by one";
                    return at(span, Err(reason.to_owned()));
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    value = Some(self.value(event, span, 0)?);
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> ReaderResult<Dynamic> {
        at(span, nests(depth))?;
        let (value, anchor) = match event {
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                at(span, self.budget.text(&text))?;
                (at(span, scalar(&text, style, tag.as_deref()))?, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                at(span, is_collection(tag.as_deref(), "seq"))?;
                (self.array(depth)?.into(), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                at(span, is_collection(tag.as_deref(), "map"))?;
                (self.map(depth)?.into(), anchor)
            }
            other => return at(span, Err(format!("unexpected {other:?}"))),
        };
        if anchor > 0 {
            // A copy that is kept takes memory as one in the result does.
            at(span, self.budget.copy(&value, depth))?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn alias(&mut self, id: usize, span: Span, depth: usize) -> ReaderResult<Dynamic> {
        let Some(value) = self.anchors.get(&id) else {
            let reason = "the alias stands inside of the value that it names; write the value out";
            return at(span, Err(reason.to_owned()));
        };
        at(span, self.budget.copy(value, depth))?;
        Ok(value.clone())
    }

    fn array(&mut self, depth: usize) -> ReaderResult<Array> {
        let mut array = Array::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(array);
            }
            at(span, self.budget.element())?;
            array.push(self.value(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> ReaderResult<Map> {
        let (mut map, mut merged) = (Map::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None)
                if text == "<<");
            let key = self.key(event, span)?;
            let (event, value_span) = self.next()?;
            let value = self.value(event, value_span, depth + 1)?;
            if is_merge {
                at(value_span, merge(value, &mut merged))?;
                continue;
            }
            if map.contains_key(key.as_str()) {
                let reason = format!("the key `{key}` is in this map already; remove one");
                return at(span, Err(reason));
            }
            at(span, self.budget.entry(&key))?;
            map.insert(key.as_str().into(), value);
        }
        for other in merged {
            for (key, value) in other {
                map.entry(key).or_insert(value);
            }
        }
        Ok(map)
    }

    /// Reads a key: a text as it is written, or the alias of one.
    fn key(&mut self, event: Event<'a>, span: Span) -> ReaderResult<ImmutableString> {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                let key = ImmutableString::from(text.as_ref());
                if anchor > 0 {
                    at(span, self.budget.text(&key))?;
                    self.anchors.insert(anchor, key.clone().into());
                }
                Ok(key)
            }
            Event::Alias(id) => {
                let value = self.alias(id, span, 0)?;
                let reason = "the alias in a key must name a string".to_owned();
                at(span, value.into_immutable_string().map_err(|_| reason))
            }
            _ => {
                let reason = "a key must be a string, not a list or a map; put it into quotes";
                at(span, Err(reason.to_owned()))
            }
        }
    }
}

/// Collects the maps that `<<` names; for each key, the first map that has it counts.
fn merge(value: Dynamic, merged: &mut Vec<Map>) -> Result<(), String> {
    let maps = match value.try_cast_result::<Array>() {
        Ok(array) => array,
        Err(value) => vec![value],
    };
    for value in maps {
        let reason = "`<<` needs the alias of a map, or a list of them";
        merged.push(value.try_cast_result::<Map>().map_err(|_| reason.to_owned())?);
    }
    Ok(())
}

/// Returns the value of a scalar: by its tag, or by its text unless that is in quotes.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Dynamic, String> {
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
fn is_collection(tag: Option<&Tag>, kind: &str) -> Result<(), String> {
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
