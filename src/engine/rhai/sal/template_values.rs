//! The filters, functions and tests of Tera for lists, numbers and times, with named parameters, as in older scripts.

#![expect(clippy::needless_pass_by_value, reason = "a filter gets its arguments by value")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::fmt::strtime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned, civil};
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, tests};
use regex::Regex;
use serde_json::Value as Json;

use super::template_text::{TextBounds, bounded, failed, fits, flag, optional, required};

const JSON_DEPTH_MAX: usize = 127;

pub(super) fn add_value_filters(environment: &mut Environment<'_>, bounds: TextBounds) {
    environment.add_filter("default", default);
    environment.add_filter("join", move |list: &Value, between: Option<String>, names: Kwargs| {
        let between = optional(between, &names, "sep")?.unwrap_or_default();
        names.assert_all_used()?;
        join(list, &between, bounds)
    });
    environment.add_filter("nth", |list: &Value, number: Option<usize>, names: Kwargs| {
        let number = required(number, &names, "n")?;
        Ok::<_, Error>(list.try_iter()?.nth(number).unwrap_or_default())
    });
    environment.add_filter("slice", slice);
    environment.add_filter("concat", move |list: &Value, more: Option<Value>, names: Kwargs| {
        let more = required(more, &names, "with")?;
        let mut joined: Vec<Value> = list.try_iter()?.collect();
        if more.as_str().is_none() && more.kind() == ValueKind::Seq {
            joined.extend(more.try_iter()?);
        } else {
            joined.push(more);
        }
        if joined.len() > bounds.elements_max {
            return Err(failed(format!("more than {} elements", bounds.elements_max)));
        }
        Ok(joined)
    });
    environment.add_filter("get", |map: &Value, key: Option<String>, names: Kwargs| {
        let key = required(key, &names, "key")?;
        let found = map.get_attr(&key)?;
        match names.get::<Option<Value>>("default")? {
            Some(default) if found.is_undefined() => Ok(default),
            _ if found.is_undefined() => Err(failed(format!("no key `{key}`"))),
            _ => Ok(found),
        }
    });
    environment.add_filter("filter", filter);
    environment.add_filter("group_by", move |list: &Value, names: Kwargs| {
        let attribute = names.get::<String>("attribute")?;
        names.assert_all_used()?;
        group_by(list, &attribute, bounds)
    });
    environment.add_filter("json_encode", move |value: &Value, names: Kwargs| {
        let mut bytes_left = usize::try_from(bounds.bytes_max).unwrap_or(usize::MAX);
        let (pretty, value) = (flag(&names, "pretty")?, json(value, 0, &mut bytes_left)?);
        Ok::<_, Error>(if pretty { format!("{value:#}") } else { value.to_string() })
    });
    add_numbers(environment);
}

fn add_numbers(environment: &mut Environment<'_>) {
    environment.add_filter("pluralize", |number: f64, names: Kwargs| {
        let one = names.get::<Option<String>>("singular")?.unwrap_or_default();
        let many = names.get::<Option<String>>("plural")?.unwrap_or_else(|| "s".to_owned());
        names.assert_all_used()?;
        Ok::<_, Error>(if (number.abs() - 1.0).abs() < f64::EPSILON { one } else { many })
    });
    environment.add_filter("filesizeformat", file_size);
    environment.add_filter("date", date);
}

pub(super) fn add_functions(environment: &mut Environment<'_>, env: BTreeMap<String, String>) {
    environment.add_function("now", |names: Kwargs| {
        let (seconds, _) = (flag(&names, "timestamp")?, flag(&names, "utc")?);
        names.assert_all_used()?;
        let now = Timestamp::now();
        Ok::<_, Error>(if seconds { now.as_second().into() } else { Value::from(now.to_string()) })
    });
    environment.add_function("range", range);
    environment.add_function("throw", |names: Kwargs| {
        Err::<Value, Error>(failed(names.get::<String>("message")?))
    });
    environment.add_function("get_random", |names: Kwargs| {
        let start = names.get::<Option<i64>>("start")?.unwrap_or(0);
        let end = names.get::<i64>("end")?;
        names.assert_all_used()?;
        if start < end { Ok(fastrand::i64(start..end)) } else { Err(failed("the range is empty")) }
    });
    environment.add_function("get_env", move |names: Kwargs| {
        let name = names.get::<String>("name")?;
        let default = names.get::<Option<Value>>("default")?;
        match (env.get(&name), default) {
            (Some(value), _) => Ok(Value::from(value.as_str())),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(failed(format!("the job has no variable `{name}`"))),
        }
    });
}

pub(super) fn add_tests(environment: &mut Environment<'_>) {
    environment.add_test("starting_with", tests::is_startingwith);
    environment.add_test("ending_with", tests::is_endingwith);
    environment.add_test("object", tests::is_mapping);
    environment.add_test("containing", |value: &Value, part: &Value| {
        if let (Some(text), Some(part)) = (value.as_str(), part.as_str()) {
            return Ok(text.contains(part));
        }
        Ok::<_, Error>(value.try_iter()?.any(|element| element == *part))
    });
    environment.add_test("matching", |text: Cow<'_, str>, pattern: Cow<'_, str>| {
        let pattern = Regex::new(&pattern).map_err(|_| failed("invalid regular expression"))?;
        Ok::<_, Error>(pattern.is_match(&text))
    });
}

fn default(
    value: &Value,
    other: Option<Value>,
    lax: Option<bool>,
    names: Kwargs,
) -> Result<Value, Error> {
    let other = optional(other, &names, "value")?.unwrap_or_else(|| "".into());
    names.assert_all_used()?;
    let missing = value.is_undefined() || (lax.unwrap_or(false) && !value.is_true());
    Ok(if missing { other } else { value.clone() })
}

fn join(list: &Value, between: &str, bounds: TextBounds) -> Result<String, Error> {
    let mut joined = String::new();
    for (number, element) in list.try_iter()?.enumerate() {
        if number > 0 {
            joined.push_str(between);
        }
        joined.push_str(&bounded(&element, bounds)?);
        fits(joined.len(), 0, 0, bounds)?;
    }
    Ok(joined)
}

/// Returns a part of a list; a negative number counts from its end.
fn slice(
    list: &Value,
    start: Option<i64>,
    end: Option<i64>,
    names: Kwargs,
) -> Result<Vec<Value>, Error> {
    let (start, end) = (optional(start, &names, "start")?, optional(end, &names, "end")?);
    names.assert_all_used()?;
    let elements: Vec<Value> = list.try_iter()?.collect();
    let place = |number: i64| {
        let from_end = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
        let place = if number < 0 { elements.len().saturating_sub(from_end) } else { from_end };
        place.min(elements.len())
    };
    let (start, end) = (place(start.unwrap_or(0)), end.map_or(elements.len(), place));
    Ok(elements.get(start..end).unwrap_or_default().to_vec())
}

/// Converts a value to JSON; anything but text, number, list and map becomes null.
fn json(value: &Value, nesting: usize, bytes_left: &mut usize) -> Result<Json, Error> {
    take(bytes_left, value)?;
    if nesting > JSON_DEPTH_MAX {
        return Err(failed(format!("the value is nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    Ok(match value.kind() {
        ValueKind::Bool => value.is_true().into(),
        ValueKind::String => value.as_str().unwrap_or_default().into(),
        ValueKind::Number => match i64::try_from(value.clone()) {
            Ok(number) if value.is_integer() => number.into(),
            _ => f64::try_from(value.clone()).unwrap_or_default().into(),
        },
        ValueKind::Seq | ValueKind::Iterable => value
            .try_iter()?
            .map(|element| json(&element, nesting + 1, bytes_left))
            .collect::<Result<Json, Error>>()?,
        ValueKind::Map => value
            .try_iter()?
            .map(|key| {
                let value = json(&value.get_item(&key)?, nesting + 1, bytes_left)?;
                take(bytes_left, &key)?;
                Ok((key.to_string(), value))
            })
            .collect::<Result<Json, Error>>()?,
        _ => Json::Null,
    })
}

/// Counts a value without its elements: a list can contain another many times.
fn take(bytes_left: &mut usize, value: &Value) -> Result<(), Error> {
    let left = bytes_left.checked_sub(1 + value.as_str().map_or(0, str::len));
    *bytes_left = left.ok_or_else(|| failed("the value is too long for a text of JSON"))?;
    Ok(())
}

/// Returns the value at a path such as `user.name`; undefined if a part is missing.
fn at(value: &Value, path: &str) -> Value {
    path.split('.').try_fold(value.clone(), |value, name| value.get_attr(name)).unwrap_or_default()
}

fn filter(list: &Value, names: Kwargs) -> Result<Vec<Value>, Error> {
    let attribute = names.get::<String>("attribute")?;
    let wanted = names.get::<Option<Value>>("value")?;
    names.assert_all_used()?;
    let fits = |element: &Value| {
        let found = at(element, &attribute);
        match &wanted {
            Some(wanted) => found == *wanted,
            None => !found.is_undefined() && !found.is_none(),
        }
    };
    Ok(list.try_iter()?.filter(fits).collect())
}

fn group_by(list: &Value, attribute: &str, bounds: TextBounds) -> Result<Value, Error> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for element in list.try_iter()? {
        let key = at(&element, attribute);
        if !key.is_undefined() && !key.is_none() {
            groups.entry(bounded(&key, bounds)?).or_default().push(element);
        }
    }
    Ok(Value::from_pairs(groups.into_iter().map(|(key, list)| (key, Value::from(list)))))
}

fn file_size(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut size = bytes;
    let mut unit = 0;
    while size.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let digits = if size.fract() == 0.0 { 0 } else { 2 };
    format!("{size:.digits$} {}", UNITS[unit])
}

/// Formats seconds since 1970, or a time as RFC 3339, or a day.
fn date(value: &Value, format: Option<String>, names: Kwargs) -> Result<String, Error> {
    let format = optional(format, &names, "format")?.unwrap_or_else(|| "%Y-%m-%d".to_owned());
    let zone = names.get::<Option<String>>("timezone")?;
    names.assert_all_used()?;
    let mut time = zoned(value)?;
    if let Some(zone) = zone {
        let zone = TimeZone::get(&zone).map_err(|_| failed(format!("no time zone `{zone}`")))?;
        time = time.with_time_zone(zone);
    }
    strtime::format(&format, &time).map_err(|error| failed(error.to_string()))
}

fn zoned(value: &Value) -> Result<Zoned, Error> {
    let wrong = || failed("not a time: a number of seconds, or a text such as 2024-01-31");
    if let Some(text) = value.as_str() {
        let pieces = Pieces::parse(text).map_err(|_| wrong())?;
        let time = civil::DateTime::from_parts(
            pieces.date(),
            pieces.time().unwrap_or_else(civil::Time::midnight),
        );
        let zone = pieces.to_numeric_offset().map_or(TimeZone::UTC, TimeZone::fixed);
        return time.to_zoned(zone).map_err(|_| wrong());
    }
    let seconds = i64::try_from(value.clone()).map_err(|_| wrong())?;
    Ok(Timestamp::from_second(seconds).map_err(|_| wrong())?.to_zoned(TimeZone::UTC))
}

fn range(
    lower: Option<isize>,
    upper: Option<isize>,
    step: Option<isize>,
    names: Kwargs,
) -> Result<Value, Error> {
    let end = names.get::<Option<isize>>("end")?;
    let start = names.get::<Option<isize>>("start")?;
    let step_by = names.get::<Option<isize>>("step_by")?;
    names.assert_all_used()?;
    match (end, lower) {
        (Some(end), _) => minijinja::functions::range(start.unwrap_or(0), Some(end), step_by),
        (None, Some(lower)) => minijinja::functions::range(lower, upper, step),
        (None, None) => Err(failed("range: no parameter `end`")),
    }
}
