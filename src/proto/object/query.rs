//! The query language: `age >= 18 and (city = "Gent" or email starts with "a") order by age desc
//! limit 20`. A query is normalized to a list of alternatives, each with one condition per field.

mod words;

pub use words::QueryError;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Field, Interval, Term};
use crate::proto::selector::Relation;
use words::{Word, Words, wrong};

const BYTES_MAX: usize = 16 * 1024;
const NESTING_MAX: usize = 32;
const LISTS_MAX: usize = 64;
const CONDITIONS_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// An object matches if it matches any of these alternatives.
    pub any: Vec<Every>,
    /// The order; by id without one.
    pub order: Option<(Field, Direction)>,
    pub limit: Option<usize>,
}

/// Conditions that must all hold: for each field, the intervals of its value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Every(pub BTreeMap<Field, Interval>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    Ascending,
    Descending,
}

impl Query {
    /// Parses a query. An empty one matches all objects.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > BYTES_MAX {
            let message = format!("the query is longer than {BYTES_MAX} bytes");
            return Err(QueryError { column: 1, message });
        }
        let mut parser = Parser { words: Words::new(text)?, nesting: 0 };
        let query = parser.query()?;
        parser.words.end()?;
        Ok(query)
    }

    /// Creates the query for objects that have all these values.
    ///
    /// # Errors
    /// The mistake, if a name is not a field, or an id is not text.
    pub fn equal(values: &[(Field, Value)]) -> Result<Self, String> {
        let mut every = Every::default();
        if values.len() > CONDITIONS_MAX {
            return Err(format!("a query has at most {CONDITIONS_MAX} conditions"));
        }
        for (field, value) in values {
            if field.has_words() {
                return Err(format!("{field} is not a field"));
            }
            every.add(field.clone(), interval(field, Relation::Equal, value)?);
        }
        Ok(Self { any: every.possible().into_iter().collect(), order: None, limit: None })
    }

    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let conditions = self.any.iter().flat_map(|every| every.0.keys());
        let order = self.order.iter().map(|(field, _)| field);
        conditions.chain(order).filter(|field| !field.is_id())
    }

    pub fn means(&self, id: &str, body: &serde_json::Map<String, Value>) -> bool {
        let meets = |(field, interval): (&Field, &Interval)| {
            if field.is_id() { interval.has_id(id) } else { interval.has(&field.term(body)) }
        };
        self.any.iter().any(|every| every.0.iter().all(meets))
    }
}

impl Every {
    /// Adds a condition. Two of one field become their intersection.
    fn add(&mut self, field: Field, interval: Interval) {
        let both = self.0.get(&field).map(|other| other.and(&interval));
        self.0.insert(field, both.unwrap_or(interval));
    }

    fn possible(self) -> Option<Self> {
        (!self.0.values().any(Interval::is_empty)).then_some(self)
    }
}

struct Parser<'a> {
    words: Words<'a>,
    nesting: usize,
}

type Parsed<T> = Result<T, QueryError>;

impl Parser<'_> {
    fn query(&mut self) -> Parsed<Query> {
        let bare = self.words.is_at_end() || self.words.at(&["order"]) || self.words.at(&["limit"]);
        let any = if bare { vec![Every::default()] } else { self.either()? };
        let order = self.order()?;
        let limit = if self.words.take(&["limit"]) { Some(self.limit()?) } else { None };
        Ok(Query { any, order, limit })
    }

    fn order(&mut self) -> Parsed<Option<(Field, Direction)>> {
        if !self.words.take(&["order", "by"]) {
            return Ok(None);
        }
        let field = self.field()?;
        let direction = if self.words.take(&["desc"]) {
            Direction::Descending
        } else {
            self.words.take(&["asc"]);
            Direction::Ascending
        };
        Ok(Some((field, direction)))
    }

    fn limit(&mut self) -> Parsed<usize> {
        let column = self.words.column();
        let limit = match self.words.next() {
            Some(Word::Value(Value::Number(number))) => number.as_u64(),
            _ => None,
        };
        match limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0) {
            Some(limit) => Ok(limit),
            None => Err(wrong(column, "expected a number from 1")),
        }
    }

    fn either(&mut self) -> Parsed<Vec<Every>> {
        let mut any = self.both()?;
        while self.words.take(&["or"]) {
            any.extend(self.both()?);
            self.bounded(&any)?;
        }
        Ok(any)
    }

    fn both(&mut self) -> Parsed<Vec<Every>> {
        let mut any = self.condition()?;
        while self.words.take(&["and"]) {
            let more = self.condition()?;
            if any.len() * more.len() > LISTS_MAX {
                return Err(self.too_complex());
            }
            let with = |first: &Every| {
                let first = first.clone();
                more.iter().filter_map(move |second| {
                    let mut both = first.clone();
                    for (field, interval) in &second.0 {
                        both.add(field.clone(), interval.clone());
                    }
                    both.possible()
                })
            };
            any = any.iter().flat_map(with).collect();
            self.bounded(&any)?;
        }
        Ok(any)
    }

    fn bounded(&self, any: &[Every]) -> Parsed<()> {
        let is_long = any.iter().any(|every| every.0.len() > CONDITIONS_MAX);
        if any.len() > LISTS_MAX || is_long { Err(self.too_complex()) } else { Ok(()) }
    }

    fn too_complex(&self) -> QueryError {
        wrong(self.words.column(), "the query has too many combinations of `and` and `or`")
    }

    fn condition(&mut self) -> Parsed<Vec<Every>> {
        let column = self.words.column();
        if self.words.sign("(") {
            self.nesting += 1;
            if self.nesting > NESTING_MAX {
                return Err(wrong(column, "parentheses nest too deeply"));
            }
            let any = self.either()?;
            let column = self.words.column();
            if !self.words.sign(")") {
                return Err(wrong(column, "expected `and`, `or` or `)`"));
            }
            self.nesting -= 1;
            return Ok(any);
        }
        let field = self.field()?;
        let alone = |interval| Every(BTreeMap::from([(field.clone(), interval)])).possible();
        if self.words.take(&["starts", "with"]) {
            return Ok(alone(self.prefix(&field)?).into_iter().collect());
        }
        if self.words.take(&["in"]) {
            return Ok(self.list(&field)?.into_iter().filter_map(alone).collect());
        }
        let column = self.words.column();
        let sign = if let Some(Word::Sign(sign)) = self.words.next() { sign } else { "" };
        let intervals = match Relation::of_sign(sign) {
            Some(relation) => vec![self.value(&field, relation)?],
            None if sign == "!=" => self.value(&field, Relation::Equal)?.others().to_vec(),
            None => {
                let message = "expected =, !=, <, <=, >, >=, `in` or `starts with`";
                return Err(wrong(column, message));
            }
        };
        Ok(intervals.into_iter().filter_map(alone).collect())
    }

    fn field(&mut self) -> Parsed<Field> {
        let column = self.words.column();
        match self.words.next() {
            Some(Word::Name(name)) => {
                name.parse().map_err(|_| wrong(column, &format!("`{name}` is not a field")))
            }
            _ => Err(wrong(column, "expected the name of a field")),
        }
    }

    fn value(&mut self, field: &Field, relation: Relation) -> Parsed<Interval> {
        let column = self.words.column();
        match self.words.next() {
            Some(Word::Value(value)) => {
                interval(field, relation, &value).map_err(|message| wrong(column, &message))
            }
            _ => Err(wrong(
                column,
                "expected a value: a text in quotes, a number, true, false, null",
            )),
        }
    }

    fn prefix(&mut self, field: &Field) -> Parsed<Interval> {
        let column = self.words.column();
        match self.words.next() {
            Some(Word::Value(Value::String(text))) if field.is_id() => {
                Ok(Interval::prefix_of_ids(&text))
            }
            Some(Word::Value(Value::String(text))) => Ok(Interval::prefix(&text)),
            _ => Err(wrong(column, "expected a text in quotes")),
        }
    }

    fn list(&mut self, field: &Field) -> Parsed<Vec<Interval>> {
        let column = self.words.column();
        if !self.words.sign("[") {
            return Err(wrong(column, "expected a list: [\"a\", \"b\"]"));
        }
        let mut list = vec![self.value(field, Relation::Equal)?];
        loop {
            let column = self.words.column();
            if self.words.sign("]") {
                return Ok(list);
            }
            if !self.words.sign(",") {
                return Err(wrong(column, "expected `,` or `]`"));
            }
            list.push(self.value(field, Relation::Equal)?);
            if list.len() > LISTS_MAX {
                return Err(self.too_complex());
            }
        }
    }
}

fn interval(field: &Field, relation: Relation, value: &Value) -> Result<Interval, String> {
    if !field.is_id() {
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            return Err(format!("{field} is compared with a text, a number, true, false or null"));
        }
        return Ok(Interval::of(relation, value));
    }
    match value {
        Value::String(id) => Ok(Interval::of_ids(relation, id)),
        _ => Err("an id is a text".to_owned()),
    }
}

impl Interval {
    /// Returns whether the object of an index entry may match, by the part of the term that the
    /// index has.
    pub fn may_have(&self, indexed: &str) -> bool {
        let (low, high) = self.in_index();
        let point = super::entry(indexed, "");
        low <= point && point < high
    }
}

impl Every {
    /// Returns whether an object may match, by the indexed parts of its values. A missing field
    /// counts as null.
    pub fn may_be_met<'a>(&self, id: &str, indexed: impl Fn(&Field) -> Option<&'a str>) -> bool {
        let nothing = Term::of(&Value::Null);
        self.0.iter().all(|(field, interval)| {
            if field.is_id() {
                interval.has_id(id)
            } else {
                interval.may_have(indexed(field).unwrap_or(nothing.indexed()))
            }
        })
    }
}

#[cfg(test)]
mod tests;
