//! Puts a server-side script together from what scripts share and its own body, with no more of the
//! former than it uses: Redis runs every line of a script at every call, and a script makes each of
//! the functions in it anew.

use std::collections::HashMap;

/// What the scripts share, in the order in which one part builds on those before it.
const SHARED: [&str; 3] = [
    include_str!("scripts/legacy.lua"),
    include_str!("scripts/common.lua"),
    include_str!("scripts/limits.lua"),
];

/// A declaration at the top level: a variable or a function.
struct Part<'a> {
    text: String,
    declares: Vec<&'a str>,
    is_used: bool,
}

/// What a script may take along.
#[derive(Default)]
struct Shelf<'a> {
    parts: Vec<Part<'a>>,
    /// Constants, to be written out where they are named.
    literals: HashMap<&'a str, &'a str>,
}

/// The whole text: of `constants` and the shared parts those that `body` names, or that these name
/// in turn, then `body`.
pub(super) fn assemble(constants: &str, body: &str) -> String {
    let mut shelf = Shelf::default();
    for text in [constants].into_iter().chain(SHARED) {
        shelf.add(text);
    }
    let body = shelf.written_out(body);
    shelf.take_along(&body);
    let used = shelf.parts.iter().filter(|part| part.is_used).map(|part| part.text.as_str());
    used.chain([body.as_str()]).collect()
}

impl<'a> Shelf<'a> {
    /// Cuts a text into its declarations, without what stands between them. Constants of one line
    /// come before all that names them.
    fn add(&mut self, text: &'a str) {
        let first_new = self.parts.len();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
            let Some(declaration) = line.strip_prefix("local ") else {
                if let Some(part) = self.parts.last_mut() {
                    part.text.extend([line, "\n"]);
                }
                continue;
            };
            if let Some((name, literal)) = constant(declaration) {
                self.literals.insert(name, literal);
            } else {
                let text = format!("{line}\n");
                self.parts.push(Part { text, declares: declared_by(declaration), is_used: false });
            }
        }
        for place in first_new..self.parts.len() {
            self.parts[place].text = self.written_out(&self.parts[place].text);
        }
    }

    /// A text without comments and with every constant as its value: a function keeps hold of each
    /// variable that it names, which costs at every call of the script.
    fn written_out(&self, text: &str) -> String {
        let token = |token| match token {
            Token::Name(name) => self.literals.get(name).copied().unwrap_or(name),
            Token::Comment => "",
            Token::Other(text) => text,
        };
        tokens(text).map(token).collect()
    }

    /// Marks what a text names, and what that names.
    fn take_along(&mut self, text: &str) {
        let mut unread: Vec<String> = vec![text.to_owned()];
        while let Some(text) = unread.pop() {
            for name in names_in(&text) {
                for part in &mut self.parts {
                    if !part.is_used && part.declares.contains(&name) {
                        part.is_used = true;
                        unread.push(part.text.clone());
                    }
                }
            }
        }
    }
}

/// The name and the value of a constant that is a string, a number or a truth value.
fn constant(declaration: &str) -> Option<(&str, &str)> {
    let (name, value) = declaration.split_once(" = ")?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let mut value_tokens = tokens(value);
    let is_literal = match (value_tokens.next()?, value_tokens.next()) {
        (Token::Name(word), None) => word == "true" || word == "false" || is_number(word),
        (Token::Other(text), None) => text.starts_with('\''),
        _ => false,
    };
    (is_name && is_literal).then_some((name, value))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The names that stand after `local`: one function, or variables up to the `=`.
fn declared_by(declaration: &str) -> Vec<&str> {
    match declaration.strip_prefix("function ") {
        Some(function) => names_in(function).take(1).collect(),
        None => names_in(declaration.split('=').next().unwrap_or_default()).collect(),
    }
}

/// Names, and numbers, outside strings and comments.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    tokens(text).filter_map(|token| match token {
        Token::Name(name) => Some(name),
        Token::Comment | Token::Other(_) => None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A name, a word of the language or a number.
    Name(&'a str),
    /// From `--` to the end of the line.
    Comment,
    /// A whole string, or one character of anything else.
    Other(&'a str),
}

fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '\'' || first == '"' {
            string_length(rest, first)
        } else if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(match first {
            '-' if length > 1 => Token::Comment,
            c if is_of_name(c) => Token::Name(token),
            _ => Token::Other(token),
        })
    })
}

/// The length of the string at the start of a text, in bytes, both quotes counted.
fn string_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::keys::Keys;

    /// Names of functions that a text declares at its top level.
    fn functions(text: &str) -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("local function "));
        lines.filter_map(|line| line.split('(').next()).collect()
    }

    #[test]
    fn a_script_takes_along_what_it_names_and_what_that_names() {
        let text = assemble(&Keys::default().lua(), "return index_of('finished', 'osis')\n");
        assert_eq!(
            text,
            "local function index_of(status, script_type)\n  \
             return 'hero:meta:job:index:' .. status .. ':type:' .. script_type\n\
             end\n\
             return index_of('finished', 'osis')\n"
        );
    }

    #[test]
    fn every_shared_function_can_be_taken_along_and_keeps_its_order() {
        let constants = Keys::default().lua();
        let all: Vec<&str> = SHARED.iter().flat_map(|text| functions(text)).collect();
        assert!(all.len() > 50, "{all:?}");
        let whole = assemble(&constants, &all.join(" "));
        assert_eq!(functions(&whole), all);
        for name in all {
            let text = assemble(&constants, name);
            assert!(functions(&text).contains(&name), "{name} is not in\n{text}");
        }
    }

    #[test]
    fn a_variable_goes_with_the_functions_that_share_it() {
        let text = assemble("", "write_counts()");
        assert!(text.starts_with("local counts = {}\n"), "{text}");
        assert!(!text.contains("local function count("), "nothing calls it:\n{text}");
    }

    #[test]
    fn a_constant_is_written_out_where_it_is_named_and_nowhere_else() {
        let constants = "local JOB = 'x:job:'\nlocal LEN_MAX = 10\nlocal LIST = { 'JOB' }\n";
        let body = "-- JOB\nreturn JOB .. 'JOB', \"a\\\"JOB\", LEN_MAX - 1, JOBS, LIST -- JOB";
        assert_eq!(
            assemble(constants, body),
            "local LIST = { 'JOB' }\n\nreturn 'x:job:' .. 'JOB', \"a\\\"JOB\", 10 - 1, JOBS, LIST "
        );
    }
}
