//! The words of a query: names, values and signs, each with its column.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("query, column {column}: {message}")]
pub struct QueryError {
    /// The column, in characters from 1.
    pub column: usize,
    pub message: String,
}

pub(super) fn wrong(column: usize, message: &str) -> QueryError {
    QueryError { column, message: message.to_owned() }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word<'a> {
    Name(&'a str),
    Value(Value),
    Sign(&'static str),
}

#[derive(Debug)]
pub(super) struct Words<'a> {
    /// In reverse order.
    rest: Vec<(usize, Word<'a>)>,
    /// The column after the last.
    end: usize,
}

/// Longer signs before their prefixes.
const SIGNS: [&str; 12] = ["==", "!=", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ","];

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, QueryError> {
        let mut words = Vec::new();
        let (mut rest, mut column) = (text, 1);
        loop {
            let trimmed = rest.trim_start();
            column += rest[..rest.len() - trimmed.len()].chars().count();
            rest = trimmed;
            if rest.is_empty() {
                words.reverse();
                return Ok(Self { rest: words, end: column });
            }
            let (word, len) = first(rest)
                .map_err(|(at, message)| wrong(column + rest[..at].chars().count(), &message))?;
            words.push((column, word));
            column += rest[..len].chars().count();
            rest = &rest[len..];
        }
    }

    pub(super) fn column(&self) -> usize {
        self.rest.last().map_or(self.end, |(column, _)| *column)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        self.rest.pop().map(|(_, word)| word)
    }

    /// Returns whether these names come next, in any case.
    pub(super) fn at(&self, names: &[&str]) -> bool {
        let next = self.rest.iter().rev().map(|(_, word)| word);
        names.len() <= self.rest.len()
            && names.iter().zip(next).all(
                |(name, word)| matches!(word, Word::Name(word) if word.eq_ignore_ascii_case(name)),
            )
    }

    /// Reads these names, if they come next.
    pub(super) fn take(&mut self, names: &[&str]) -> bool {
        let is_next = self.at(names);
        if is_next {
            self.rest.truncate(self.rest.len() - names.len());
        }
        is_next
    }

    /// Reads a sign, if it comes next.
    pub(super) fn sign(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.rest.last(), Some((_, Word::Sign(next))) if *next == sign);
        if is_next {
            self.rest.pop();
        }
        is_next
    }

    pub(super) fn end(&self) -> Result<(), QueryError> {
        match self.rest.last() {
            None => Ok(()),
            Some((column, _)) => {
                Err(wrong(*column, "expected `and`, `or`, `order by`, `limit` or the end"))
            }
        }
    }
}

/// Reads the first word and its length. The error has the byte of the mistake.
fn first(text: &str) -> Result<(Word<'_>, usize), (usize, String)> {
    let start = text.chars().next().unwrap_or_default();
    if start == '"' || start == '\'' {
        return quoted(text, start);
    }
    if let Some(sign) = SIGNS.into_iter().find(|sign| text.starts_with(sign)) {
        // The unit value, as scripts write it.
        return Ok(match text.strip_prefix("()") {
            Some(_) => (Word::Value(Value::Null), 2),
            None => (Word::Sign(sign), sign.len()),
        });
    }
    if start.is_ascii_digit() || start == '-' {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
        let len = text.find(|c| !is_part(c)).unwrap_or(text.len());
        return match serde_json::from_str::<serde_json::Number>(&text[..len]) {
            Ok(number) => Ok((Word::Value(Value::Number(number)), len)),
            Err(_) => Err((0, "not a number".to_owned())),
        };
    }
    if start.is_ascii_alphabetic() || start == '_' {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let len = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let name = &text[..len];
        let word = match name {
            "true" => Word::Value(Value::Bool(true)),
            "false" => Word::Value(Value::Bool(false)),
            "null" => Word::Value(Value::Null),
            name => Word::Name(name),
        };
        return Ok((word, len));
    }
    Err((0, format!("`{}` means nothing here", start.escape_debug())))
}

/// Reads a text between quotes; `\` escapes a quote, itself, `n`, `r` or `t`.
fn quoted(text: &str, quote: char) -> Result<(Word<'_>, usize), (usize, String)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Ok((Word::Value(Value::String(value)), at + 1));
        }
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some((_, c @ ('"' | '\'' | '\\'))) => value.push(c),
            Some((_, 'n')) => value.push('\n'),
            Some((_, 'r')) => value.push('\r'),
            Some((_, 't')) => value.push('\t'),
            _ => return Err((at, "`\\` stands only before a quote, `\\`, n, r or t".to_owned())),
        }
    }
    Err((0, "this text has no end".to_owned()))
}
