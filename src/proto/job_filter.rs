//! A filter of jobs: the words that a person or program gave, the same on every face.

mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::proto::member_names::member_names;
use crate::proto::text::shown;

pub use table::{FilterRow, FilterTest, JOB_FILTERS};

/// The filters that are set, with their values as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter(BTreeMap<usize, Vec<String>>);

impl JobFilter {
    pub fn row(name: &str) -> Option<&'static FilterRow> {
        JOB_FILTERS.get(place(name)?)
    }

    /// Returns a filter of these names and values. A name that is none of a filter is left out.
    pub fn of<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        values.into_iter().fold(Self::default(), |filter, (name, value)| filter.and(name, value))
    }

    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        let place = place(name);
        debug_assert!(place.is_some(), "{name} is no filter");
        if let Some(place) = place {
            self.0.entry(place).or_default().push(value.to_owned());
        }
        self
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        place(name).map(|place| self.0.remove(&place));
        self
    }

    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// Returns its values without spaces at their ends, and without those that are empty, as a form sends them.
    #[must_use]
    pub fn trimmed(self) -> Self {
        let trimmed = |values: Vec<String>| {
            let values = values.into_iter().map(|value| value.trim().to_owned());
            values.filter(|value| !value.is_empty()).collect::<Vec<_>>()
        };
        let all = self.0.into_iter().map(|(place, values)| (place, trimmed(values)));
        Self(all.filter(|(_, values)| !values.is_empty()).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the filters that are set, each value by itself.
    pub fn values(&self) -> impl Iterator<Item = (&'static FilterRow, &str)> {
        let rows =
            self.0.iter().filter_map(|(place, values)| Some((JOB_FILTERS.get(*place)?, values)));
        rows.flat_map(|(row, values)| values.iter().map(move |value| (row, value.as_str())))
    }

    /// Returns the value of a filter, if it is set; of several, the first.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(&place(name)?)?.first().map(String::as_str)
    }

    /// Returns true if it finds dead letters alone.
    pub fn is_of_dead(&self) -> bool {
        self.value("dead").is_some_and(|value| flag(value) == Some(true))
    }

    pub fn noun(&self) -> &'static str {
        if self.is_of_dead() { "dead letter" } else { "job" }
    }

    /// Returns a noun with the words of the filters, as `job of type python that is late`.
    pub fn sentence(&self, noun: &str) -> String {
        let mut text = noun.to_owned();
        let mut before = FilterTest::Dead;
        for (row, value) in self.values() {
            let value = match row.test {
                FilterTest::Status => shown(&value.replace(',', " or ")),
                _ => shown(value),
            };
            let _ = match row.test {
                FilterTest::Dead => Ok(()),
                FilterTest::Status if before == row.test => write!(text, " or {value}"),
                FilterTest::Until(field) if before == FilterTest::Since(field) => {
                    write!(text, " until {value}")
                }
                _ if row.is_flag() => {
                    let not = if flag(&value) == Some(false) { " not" } else { "" };
                    write!(text, " {}", row.sentence.replace("{}", not))
                }
                _ if row.is_quoted() => write!(text, " {} `{value}`", row.sentence),
                _ => write!(text, " {} {value}", row.sentence),
            };
            before = row.test;
        }
        text
    }

    pub fn json(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for (row, value) in self.values() {
            match all.entry(row.name).or_insert_with(|| json!([])) {
                Value::Array(values) if row.is_list() => values.push(value.into()),
                of => *of = value.into(),
            }
        }
        all
    }

    /// Adds the values of a filter from JSON or from an address.
    fn extend<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let (Some(place), Some(row)) = (place(name), Self::row(name)) else { return Ok(()) };
        let values = values_of(row, map.next_value()?)?;
        if values.is_empty() {
            return Ok(());
        }
        let all = self.0.entry(place).or_default();
        if !(all.is_empty() || row.is_list()) {
            return Err(Error::duplicate_field(row.name));
        }
        all.extend(values);
        Ok(())
    }
}

fn place(name: &str) -> Option<usize> {
    JOB_FILTERS.iter().position(|row| row.names().any(|of| of == name))
}

/// Reads the value of a filter that is on or off.
pub fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// Reads the values of a filter: texts, a list of them, or true and false.
fn values_of<E: Error>(row: &FilterRow, value: Value) -> Result<Vec<String>, E> {
    let expected = match row {
        row if row.is_flag() => "true or false",
        row if row.is_list() => "a string, or a list of strings",
        _ => "a string",
    };
    let refused = |value: &Value| {
        let value = shown(&value.to_string());
        E::custom(format!("invalid `{}`: {value}, expected {expected}", row.name))
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![text]),
        Value::Bool(is) if row.is_flag() => Ok(vec![is.to_string()]),
        Value::Array(all) if row.is_list() => {
            let text =
                |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| refused(value));
            all.iter().map(text).collect()
        }
        other => Err(refused(&other)),
    }
}

/// A filter of jobs with further parameters, members of one object. An unknown one is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filtered<T> {
    pub filter: JobFilter,
    pub rest: T,
}

static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| JOB_FILTERS.iter().flat_map(FilterRow::names).collect());

impl<'de, T: DeserializeOwned> Deserialize<'de> for Filtered<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_struct("Filtered", NAMES.as_slice(), FilteredMembers(PhantomData))
    }
}

struct FilteredMembers<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for FilteredMembers<T> {
    type Value = Filtered<T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object with filters of jobs")
    }

    /// Reads the further parameters alone: [`member_names`] asks for their names.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Filtered<T>, D::Error> {
        Ok(Filtered { filter: JobFilter::default(), rest: T::deserialize(from)? })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Filtered<T>, A::Error> {
        let (mut filter, mut rest) = (JobFilter::default(), Map::new());
        while let Some(name) = map.next_key::<String>()? {
            if JobFilter::row(&name).is_some() {
                filter.extend(&name, &mut map)?;
            } else {
                let names = member_names::<T>();
                if !names.contains(&name.as_str()) {
                    let known: Vec<&str> = NAMES.iter().copied().chain(names).collect();
                    let (name, known) = (shown(&name), known.join("`, `"));
                    let message = format!("unknown field `{name}`, expected one of `{known}`");
                    return Err(A::Error::custom(message));
                }
                rest.insert(name, map.next_value()?);
            }
        }
        let rest = T::deserialize(Value::Object(rest)).map_err(A::Error::custom)?;
        Ok(Filtered { filter, rest })
    }
}

impl<T: JsonSchema> JsonSchema for Filtered<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let properties = schema.ensure_object().entry("properties");
        let properties = properties.or_insert_with(|| Value::Object(Map::new()));
        if let Some(of) = properties.as_object_mut() {
            // Parameters by their places begin with the state and the type.
            let (first, further) = JOB_FILTERS.split_at(2);
            let row = |row: &FilterRow| (row.name.to_owned(), row.schema().to_value());
            let rest = std::mem::take(of);
            of.extend(first.iter().map(row).chain(rest).chain(further.iter().map(row)));
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Place {
        limit: Option<usize>,
    }

    fn read(value: Value) -> Result<Filtered<Place>, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_unique_and_each_row_has_a_sentence_and_a_label() {
        let mut names = NAMES.clone();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for row in JOB_FILTERS {
            assert!(!row.label.is_empty() && !row.doc.ends_with('.'), "{}", row.name);
            assert!(row.test == FilterTest::Dead || !row.sentence.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn values_are_read_by_each_of_their_names_and_unknown_ones_are_refused() {
        let given =
            json!({ "state": "failed", "tag": ["a", "b"], "late": true, "limit": 5, "q": null });
        let found = read(given).expect("legal");
        assert_eq!(read(Value::Object(found.filter.json())).expect("legal").filter, found.filter);
        assert_eq!(found.rest, Place { limit: Some(5) });
        let expected = [("status", "failed"), ("tags", "a"), ("tags", "b"), ("late", "true")];
        assert_eq!(found.filter, JobFilter::of(expected));
        for (wrong, reason) in [
            (
                json!({ "stat": "failed" }),
                "unknown field `stat`, expected one of `status`, `state`, ",
            ),
            (json!({ "type": "a", "script_type": "b" }), "duplicate field `script_type`"),
            (json!({ "caller": ["a"] }), "invalid `caller`: "),
            (json!({ "caller": true }), "invalid `caller`: true, expected a string"),
            (json!({ "late": 7 }), "expected true or false"),
            (json!({ "limit": "x" }), "invalid type: string \"x\", expected usize"),
        ] {
            let error = read(wrong).expect_err("illegal");
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(member_names::<Filtered<Place>>().last(), Some(&"limit"));
    }

    #[test]
    fn sentence_names_each_filter() {
        let filter = JobFilter::of([
            ("status", "failed"),
            ("status", "cancelled,expired"),
            ("type", "python"),
            ("tag", "nightly"),
            ("error", "can\u{1b}t"),
            ("since", "yesterday 18:00"),
            ("until", "1h"),
            ("ended_until", "1h"),
            ("host", "web-1"),
            ("late", "true"),
            ("held", "false"),
        ]);
        assert_eq!(
            filter.sentence("job"),
            "job in state failed or cancelled or expired of type python with tag nightly with an error that contains \
             `can\\u{1b}t` that is late that is not held by a limit on machine web-1 submitted since \
             yesterday 18:00 until 1h ended until 1h"
        );
        assert_eq!(JobFilter::default().sentence("job"), "job");
    }

    #[test]
    fn form_sends_what_it_leaves_open_as_empty_texts() {
        let filter = JobFilter::of([("type", " "), ("q", " a ")]).trimmed();
        assert_eq!(filter, JobFilter::of([("text", "a")]));
        assert!(JobFilter::of([("type", "")]).trimmed().is_empty());
    }
}
