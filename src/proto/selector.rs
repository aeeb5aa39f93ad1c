//! The expression of `where`: which actors may run a job, by their labels. Pure.
//!
//! Equal expressions have one canonical text, and the digest of this text names their queue.

mod parse;

use std::fmt::{self, Write};
use std::str::FromStr;

use super::labels::{LabelName, LabelValue, Labels};
use super::target::SelectorDigest;
use super::text::{counted, did_you_mean, nearest};
use super::word_table::{as_text, inline_schema, words};
pub use parse::SelectorError;

/// An expression over labels, such as `role = "web" and release >= 12`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Expression);

/// A part of an expression, in canonical form: made by [`all`], [`any`] and [`Expression::negated`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Compare(LabelName, Relation, LabelValue),
    In(LabelName, Vec<LabelValue>),
}

words! {
    /// The relation of a value to another one.
    Relation;
    Equal = "=",
    Less = "<",
    LessOrEqual = "<=",
    Greater = ">",
    GreaterOrEqual = ">=",
}

impl Relation {
    /// Returns the relation of a sign; `==` is `=` too.
    pub(super) fn of_sign(sign: &str) -> Option<Self> {
        let sign = if sign == "==" { "=" } else { sign };
        Self::ALL.into_iter().find(|relation| relation.as_str() == sign)
    }
}

impl Selector {
    pub const BYTES_MAX: usize = 1000;

    pub fn digest(&self) -> SelectorDigest {
        SelectorDigest::of_text(&self.to_string())
    }

    /// Returns whether labels match. A comparison with a label that is not there is false.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.matches(labels)
    }

    /// Returns why none of these actors matches: how many fail each part, and labels that none of them has.
    pub fn mismatch(&self, actors: &[&Labels]) -> String {
        let parts = match &self.0 {
            Expression::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let failing = parts.iter().map(|part| {
            let number = actors.iter().filter(|labels| !part.matches(labels)).count();
            format!("{} {part}", counted(number as u64, "fails", "fail"))
        });
        let failing: Vec<String> = failing.collect();
        let mut text = format!(
            "of {}, {}",
            counted(actors.len() as u64, "live actor", "live actors"),
            failing.join(", ")
        );
        let known = || actors.iter().flat_map(|labels| labels.keys()).map(LabelName::as_str);
        let mut names = Vec::new();
        self.0.names(&mut names);
        names.sort();
        names.dedup();
        for name in names.into_iter().filter(|name| !known().any(|of| of == name.as_str())) {
            let near = did_you_mean(nearest(name.as_str(), known()));
            let _ = write!(text, "; none has the label `{name}`{}", near.replacen(';', ",", 1));
        }
        text
    }
}

/// Joins parts that all must match.
fn all(parts: Vec<Expression>) -> Expression {
    let flat = parts.into_iter().flat_map(|part| match part {
        Expression::All(parts) => parts,
        other => vec![other],
    });
    sorted(flat.collect(), Expression::All)
}

/// Joins parts of which one must match.
fn any(parts: Vec<Expression>) -> Expression {
    let flat = parts.into_iter().flat_map(|part| match part {
        Expression::Any(parts) => parts,
        other => vec![other],
    });
    sorted(flat.collect(), Expression::Any)
}

/// Sorts parts by their text, each once. One alone stands for itself.
fn sorted(mut parts: Vec<Expression>, of: fn(Vec<Expression>) -> Expression) -> Expression {
    parts.sort_by_cached_key(ToString::to_string);
    parts.dedup();
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            of(parts)
        }
    }
}

/// A label that is one of some values.
fn one_of(label: LabelName, values: Vec<LabelValue>) -> Expression {
    let mut values: Vec<LabelValue> = values.into_iter().map(LabelValue::canonical).collect();
    values.sort();
    values.dedup();
    match values.pop() {
        Some(only) if values.is_empty() => Expression::Compare(label, Relation::Equal, only),
        last => {
            values.extend(last);
            Expression::In(label, values)
        }
    }
}

impl Expression {
    fn negated(self) -> Self {
        match self {
            Self::Not(part) => *part,
            other => Self::Not(Box::new(other)),
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(labels)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(labels)),
            Self::Not(part) => !part.matches(labels),
            Self::In(label, values) => {
                labels.get(label).is_some_and(|own| values.iter().any(|value| own.equals(value)))
            }
            Self::Compare(label, relation, value) => {
                labels.get(label).is_some_and(|own| match relation {
                    Relation::Equal => own.equals(value),
                    Relation::Less => own.order(value).is_lt(),
                    Relation::LessOrEqual => own.order(value).is_le(),
                    Relation::Greater => own.order(value).is_gt(),
                    Relation::GreaterOrEqual => own.order(value).is_ge(),
                })
            }
        }
    }

    fn names<'e>(&'e self, into: &mut Vec<&'e LabelName>) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.names(into);
                }
            }
            Self::Not(part) => part.names(into),
            Self::Compare(label, ..) | Self::In(label, _) => into.push(label),
        }
    }

    /// Writes a part of a list in parentheses if it would be read as another one.
    fn write_part(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(_) | Self::Any(_) => write!(f, "({self})"),
            other => write!(f, "{other}"),
        }
    }
}

fn write_joined(parts: &[Expression], word: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            write!(f, " {word} ")?;
        }
        part.write_part(f)?;
    }
    Ok(())
}

fn write_value(value: &LabelValue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value.number().is_some() { write!(f, "{value}") } else { write!(f, "\"{value}\"") }
}

fn write_values(values: &[LabelValue], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, value) in values.iter().enumerate() {
        f.write_str(if place == 0 { "(" } else { ", " })?;
        write_value(value, f)?;
    }
    f.write_str(")")
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(parts) => write_joined(parts, "and", f),
            Self::Any(parts) => write_joined(parts, "or", f),
            Self::Not(part) => match part.as_ref() {
                Self::Compare(label, Relation::Equal, value) => {
                    write!(f, "{label} != ")?;
                    write_value(value, f)
                }
                Self::In(label, values) => {
                    write!(f, "{label} not in ")?;
                    write_values(values, f)
                }
                other => {
                    f.write_str("not ")?;
                    other.write_part(f)
                }
            },
            Self::Compare(label, relation, value) => {
                write!(f, "{label} {} ", relation.as_str())?;
                write_value(value, f)
            }
            Self::In(label, values) => {
                write!(f, "{label} in ")?;
                write_values(values, f)
            }
        }
    }
}

/// Writes the canonical text.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let selector = Self(parse::parse(text)?);
        // It may be longer, and have more parentheses.
        parse::parse(&selector.to_string())?;
        Ok(selector)
    }
}

as_text!(Selector);
inline_schema!(Selector);

#[cfg(test)]
mod tests;
