//! Parses an expression: `or` binds least, then `and`, then `not`, then comparisons and parentheses.

use super::{Expression, Relation, Selector, all, any, one_of};
use crate::proto::labels::{LabelName, LabelValue};
use crate::proto::text::shown;
use crate::proto::units::parse_size;

const DEPTH_MAX: usize = 32;

/// A text that is no expression. The message names the place and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("at character {at}: {reason}")]
    At {
        /// The place, from 1.
        at: usize,
        reason: String,
    },
    #[error("is longer than {} bytes", Selector::BYTES_MAX)]
    TooLong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lexeme<'t> {
    /// A word without quotation marks: a label, a value, or one of `and`, `or`, `not`, `in`.
    Word(&'t str),
    Quoted(&'t str),
    Sign(&'t str),
    End,
}

struct SelectorParser<'t> {
    text: &'t str,
    /// The token that comes next, the place where it begins and where the one after it does.
    next: Lexeme<'t>,
    begins: usize,
    rest: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Expression, SelectorError> {
    if text.len() > Selector::BYTES_MAX {
        return Err(SelectorError::TooLong);
    }
    let mut parser = SelectorParser { text, next: Lexeme::End, begins: 0, rest: 0, depth: 0 };
    parser.advance()?;
    let expression = parser.alternatives()?;
    match parser.next {
        Lexeme::End => Ok(expression),
        _ => Err(parser.expected("`and`, `or` or the end")),
    }
}

const fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '/' | '@' | '+' | '%')
}

impl SelectorParser<'_> {
    fn advance(&mut self) -> Result<(), SelectorError> {
        let left = &self.text[self.rest..];
        let trimmed = left.trim_start();
        self.begins = self.text.len() - trimmed.len();
        let (token, length) = match trimmed.chars().next() {
            None => (Lexeme::End, 0),
            Some(quote @ ('"' | '\'')) => {
                let Some(end) = trimmed[1..].find(quote) else {
                    return Err(self.mistake(format!("the text has no closing {quote}")));
                };
                (Lexeme::Quoted(&trimmed[1..=end]), end + 2)
            }
            Some(c) if is_of_word(c) => {
                let end = trimmed.find(|c| !is_of_word(c)).unwrap_or(trimmed.len());
                (Lexeme::Word(&trimmed[..end]), end)
            }
            Some(_) => {
                let signs = ["!=", "<=", ">=", "==", "=", "<", ">", "(", ")", ","];
                let Some(sign) = signs.into_iter().find(|sign| trimmed.starts_with(sign)) else {
                    self.next = Lexeme::End;
                    let unknown: String = trimmed.chars().take(1).collect();
                    return Err(self.mistake(format!("`{}` has no meaning here", shown(&unknown))));
                };
                (Lexeme::Sign(&trimmed[..sign.len()]), sign.len())
            }
        };
        self.next = token;
        self.rest = self.begins + length;
        Ok(())
    }

    fn mistake(&self, reason: String) -> SelectorError {
        SelectorError::At { at: self.text[..self.begins].chars().count() + 1, reason }
    }

    fn expected(&self, what: &str) -> SelectorError {
        let found = match self.next {
            Lexeme::Word(text) | Lexeme::Sign(text) => format!("`{}`", shown(text)),
            Lexeme::Quoted(text) => format!("\"{}\"", shown(text)),
            Lexeme::End => "the end".to_owned(),
        };
        self.mistake(format!("expected {what}, not {found}"))
    }

    /// Takes the next token if it is this word, in any case.
    fn take_word(&mut self, word: &str) -> Result<bool, SelectorError> {
        let is_it = matches!(self.next, Lexeme::Word(next) if next.eq_ignore_ascii_case(word));
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    fn take_sign(&mut self, sign: &str) -> Result<bool, SelectorError> {
        let is_it = self.next == Lexeme::Sign(sign);
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    fn alternatives(&mut self) -> Result<Expression, SelectorError> {
        let mut parts = vec![self.conditions()?];
        while self.take_word("or")? {
            parts.push(self.conditions()?);
        }
        Ok(any(parts))
    }

    fn conditions(&mut self) -> Result<Expression, SelectorError> {
        let mut parts = vec![self.condition()?];
        while self.take_word("and")? {
            parts.push(self.condition()?);
        }
        Ok(all(parts))
    }

    fn condition(&mut self) -> Result<Expression, SelectorError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.mistake(format!(
                "more than {DEPTH_MAX} parentheses and negations in each other"
            )));
        }
        self.depth += 1;
        let expression = if self.take_word("not")? {
            self.condition()?.negated()
        } else if self.take_sign("(")? {
            let inner = self.alternatives()?;
            if !self.take_sign(")")? {
                return Err(self.expected("`and`, `or` or `)`"));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn comparison(&mut self) -> Result<Expression, SelectorError> {
        let Lexeme::Word(word) = self.next else {
            return Err(self.expected("a label, `not` or `(`"));
        };
        let label: LabelName = word.parse().map_err(|error| self.mistake(format!("{error}")))?;
        self.advance()?;
        if self.take_word("in")? {
            return Ok(one_of(label, self.values()?));
        }
        if self.take_word("not")? {
            if !self.take_word("in")? {
                return Err(self.expected("`in`"));
            }
            return Ok(one_of(label, self.values()?).negated());
        }
        let sign = if let Lexeme::Sign(sign) = self.next { sign } else { "" };
        let is_negated = sign == "!=";
        let relation = Relation::of_sign(if is_negated { "=" } else { sign })
            .ok_or_else(|| self.expected("=, !=, <, <=, >, >= or `in`"))?;
        self.advance()?;
        if relation != Relation::Equal {
            self.check_unit()?;
        }
        let value = self.value()?.canonical();
        let compared = Expression::Compare(label, relation, value);
        Ok(if is_negated { compared.negated() } else { compared })
    }

    /// Refuses a number with an unknown unit in front of an order: as a text it would match by its digits.
    fn check_unit(&self) -> Result<(), SelectorError> {
        let Lexeme::Word(text) = self.next else { return Ok(()) };
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_number = unit.len() < text.len() && !unit.is_empty();
        if !is_number || !unit.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Ok(());
        }
        let wrong = |error| self.mistake(format!("{error}; a text stands in quotation marks"));
        parse_size(text).map(drop).map_err(wrong)
    }

    fn values(&mut self) -> Result<Vec<LabelValue>, SelectorError> {
        if !self.take_sign("(")? {
            return Err(self.expected("`(` and values, such as (\"a\", \"b\")"));
        }
        let mut values = vec![self.value()?];
        while self.take_sign(",")? {
            values.push(self.value()?);
        }
        if !self.take_sign(")")? {
            return Err(self.expected("`,` or `)`"));
        }
        Ok(values)
    }

    fn value(&mut self) -> Result<LabelValue, SelectorError> {
        let (Lexeme::Word(text) | Lexeme::Quoted(text)) = self.next else {
            return Err(self.expected("a value, such as \"web\" or 12"));
        };
        let is_word_of_language = matches!(self.next, Lexeme::Word(word)
            if ["and", "or", "not", "in"].iter().any(|of| word.eq_ignore_ascii_case(of)));
        if is_word_of_language {
            return Err(self.expected("a value, such as \"web\" or 12"));
        }
        let value = text.parse().map_err(|error| self.mistake(format!("{error}")))?;
        self.advance()?;
        Ok(value)
    }
}
