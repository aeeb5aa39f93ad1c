//! Parses `HeroScript`: actions such as `!!person.define name:'Ann' age:30`, with parameters on
//! the same line or on indented lines below it. Nothing of a script is evaluated.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::proto::text::shown;

const ACTIONS_MAX: usize = 10_000;
const PARAMETERS_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub struct HeroAction {
    /// The part before the dot, in lower case.
    pub actor: String,
    /// The part after the dot, in lower case.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// The parameters by their names in lower case. A value in quotes is always a text, and values joined by commas are a
    /// list.
    pub parameters: BTreeMap<String, Value>,
    /// The values without a name.
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, position {column})")]
pub struct HeroScriptError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    pub message: String,
}

type Parsed<T> = Result<T, HeroScriptError>;

/// Parses a script, or returns its first mistake.
pub fn parse(source: &str) -> Parsed<Vec<HeroAction>> {
    let mut text = SourceCursor::new(source);
    let mut actions: Vec<HeroAction> = Vec::new();
    loop {
        text.skip_blank();
        if text.rest.is_empty() {
            return Ok(actions);
        }
        if text.rest.starts_with("//") {
            text.skip_comment();
        } else if text.rest.starts_with('!') {
            if actions.len() == ACTIONS_MAX {
                return Err(text.wrong(format!("more than {ACTIONS_MAX} actions")));
            }
            actions.push(head(&mut text)?);
        } else {
            let is_at_left = text.column == 1;
            match actions.last_mut() {
                Some(action) if !is_at_left => parameter(&mut text, action)?,
                Some(_) => {
                    return Err(text.wrong(
                        "expected an action such as !!person.define; \
                                           indent the parameters of the action above",
                    ));
                }
                None => return Err(text.wrong("expected an action such as !!person.define")),
            }
        }
    }
}

struct SourceCursor<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> SourceCursor<'a> {
    /// Begins after a byte order mark and a line `#!/usr/bin/env …`.
    fn new(source: &'a str) -> Self {
        let rest = source.strip_prefix('\u{feff}').unwrap_or(source);
        let mut cursor = Self { rest, line: 1, column: 1 };
        if rest.starts_with("#!") {
            cursor.take_while(|c| c != '\n');
        }
        cursor
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        if next == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(next)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let start = self.rest;
        while self.peek().is_some_and(&is_part) {
            self.next();
        }
        &start[..start.len() - self.rest.len()]
    }

    fn skip_blank(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Skips a comment to the end of its line, or to `-/`.
    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            if self.rest.starts_with("-/") {
                self.next();
                self.next();
                return;
            }
            self.next();
        }
    }

    fn place(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    fn wrong(&self, message: impl Into<String>) -> HeroScriptError {
        wrong_at(self.place(), message)
    }
}

fn wrong_at((line, column): (usize, usize), message: impl Into<String>) -> HeroScriptError {
    HeroScriptError { line, column, message: message.into() }
}

/// Parses `!!actor.action`.
fn head(text: &mut SourceCursor<'_>) -> Parsed<HeroAction> {
    let place = text.place();
    let whole = text.take_while(|c| !c.is_whitespace());
    let named = whole.strip_prefix("!!").filter(|rest| !rest.starts_with('!'));
    let Some(named) = named else {
        return Err(wrong_at(place, "an action begins with two exclamation marks"));
    };
    let name = |part: &str| {
        let part = part.to_ascii_lowercase();
        (is_name(&part) && !part.contains('-')).then_some(part)
    };
    let parts = named.split_once('.');
    let Some((actor, name)) = parts.and_then(|(actor, action)| name(actor).zip(name(action)))
    else {
        let form = "expected !!ACTOR.ACTION, each a letter, then letters, digits and _";
        return Err(wrong_at(place, format!("`{}`: {form}", shown(whole))));
    };
    if name.starts_with("include") && (actor == "play" || actor == "include") {
        let message = "includes are not possible: put the actions into this script";
        return Err(wrong_at(place, message));
    }
    let (parameters, arguments) = (BTreeMap::new(), Vec::new());
    Ok(HeroAction { actor, name, line: place.0, parameters, arguments })
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Parses `name:value`, or a value without a name.
fn parameter(text: &mut SourceCursor<'_>, action: &mut HeroAction) -> Parsed<()> {
    let place = text.place();
    if action.parameters.len() + action.arguments.len() == PARAMETERS_MAX {
        return Err(wrong_at(place, format!("more than {PARAMETERS_MAX} parameters")));
    }
    if text.peek().is_some_and(is_quote) {
        let argument = quoted(text)?;
        action.arguments.push(argument);
        return gap(text);
    }
    let word = text.take_while(|c| !c.is_whitespace() && c != ':' && c != '=');
    match text.peek() {
        Some(':') => text.next(),
        Some('=') => {
            let message = format!("expected `:` after `{}`, not `=`", shown(word));
            return Err(text.wrong(message));
        }
        _ => {
            action.arguments.push(word.to_owned());
            return Ok(());
        }
    };
    let name = word.to_ascii_lowercase();
    if !is_name(&name) {
        let message = format!(
            "`{}` is not the name of a parameter: a letter, then letters, digits, _ and -; put a \
             value with a colon into quotes",
            shown(word)
        );
        return Err(wrong_at(place, message));
    }
    let value = value(text)?;
    if action.parameters.contains_key(&name) {
        return Err(wrong_at(place, format!("the parameter {name} is given twice")));
    }
    action.parameters.insert(name, value);
    Ok(())
}

/// Fails unless white space or the end of the script comes next.
fn gap(text: &SourceCursor<'_>) -> Parsed<()> {
    let is_gap = text.peek().is_none_or(char::is_whitespace);
    if is_gap { Ok(()) } else { Err(text.wrong("expected a space after the value")) }
}

/// Parses a value, which may stand after spaces. An empty one is an empty text.
fn value(text: &mut SourceCursor<'_>) -> Parsed<Value> {
    text.take_while(|c| c == ' ' || c == '\t');
    match text.peek() {
        Some(c) if is_quote(c) => {
            let value = quoted(text)?;
            gap(text).map(|()| value.into())
        }
        Some('[') => {
            let elements = list(text)?;
            gap(text).map(|()| elements)
        }
        _ if text.rest.starts_with("//") => Ok(String::new().into()),
        _ => {
            let word = text.take_while(|c| !c.is_whitespace());
            if !word.contains(',') {
                return Ok(scalar(word));
            }
            let parts = word.split(',').filter(|part| !part.is_empty());
            Ok(parts.map(scalar).collect())
        }
    }
}

/// Parses `[a, 'b c']`.
fn list(text: &mut SourceCursor<'_>) -> Parsed<Value> {
    let place = text.place();
    text.next();
    let mut elements = Vec::new();
    loop {
        text.skip_blank();
        match text.peek() {
            None => return Err(wrong_at(place, "this list has no end: expected `]`")),
            Some(']') => {
                text.next();
                return Ok(Value::Array(elements));
            }
            Some(',') => drop(text.next()),
            Some(c) if is_quote(c) => elements.push(quoted(text)?.into()),
            Some(_) => {
                let word = text.take_while(|c| !c.is_whitespace() && c != ',' && c != ']');
                elements.push(scalar(word));
            }
        }
    }
}

fn is_quote(c: char) -> bool {
    c == '\'' || c == '"'
}

/// Parses a text in quotes, of one or more lines. A quote in it is doubled or follows a `\`.
fn quoted(text: &mut SourceCursor<'_>) -> Parsed<String> {
    let place = text.place();
    let quote = text.next();
    let mut value = String::new();
    loop {
        let Some(c) = text.next() else {
            return Err(wrong_at(place, "this text has no end: expected the closing quote"));
        };
        if Some(c) == quote {
            if text.peek() != quote {
                return Ok(dedented(&value));
            }
            text.next();
            value.push(c);
        } else if c == '\\' {
            match text.peek() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('\\' | '\'' | '"')) => value.push(escaped),
                _ => {
                    value.push('\\');
                    continue;
                }
            }
            text.next();
        } else {
            value.push(c);
        }
    }
}

/// Removes the indentation that all lines after the first share, and a first and a last line without text.
fn dedented(value: &str) -> String {
    let Some((first, others)) = value.split_once('\n') else { return value.to_owned() };
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let lines = others.lines().filter(|line| !line.trim().is_empty());
    let shared = lines.map(|line| indent(&line)).min().unwrap_or_default();
    let mut lines: Vec<&str> = others.split('\n').collect();
    for line in &mut lines {
        *line = line.get(shared.min(indent(line))..).unwrap_or_default().trim_end_matches('\r');
    }
    if lines.last().is_some_and(|last| last.trim().is_empty()) {
        lines.pop();
    }
    if !first.trim().is_empty() {
        lines.insert(0, first);
    }
    lines.join("\n")
}

fn scalar(word: &str) -> Value {
    if let Ok(truth) = word.parse::<bool>() {
        return truth.into();
    }
    if let Some(number) = word.parse::<i64>().ok().filter(|number| number.to_string() == word) {
        return number.into();
    }
    let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
    let float = word.parse::<f64>().ok().filter(|_| is_decimal && word.contains('.'));
    float.and_then(Number::from_f64).map_or_else(|| word.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parsed(source: &str) -> Vec<HeroAction> {
        parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
    }

    fn text(value: &str) -> Value {
        value.into()
    }

    /// Returns the value of a single parameter.
    fn value_of(written: &str) -> Value {
        let actions = parsed(&format!("!!a.b x:{written}"));
        actions[0].parameters["x"].clone()
    }

    #[test]
    fn actions_stand_on_one_line_or_on_several() {
        let one = parsed("!!person.define name:'John Doe' age:30 active:true\n");
        let several = parsed(
            "#!/usr/bin/env hero\n// a person\n\n!!Person.Define // here\n    // its name\n    \
             name: 'John Doe' //comment -/ age: 30\n\n\tACTIVE: true\n",
        );
        assert_eq!(several[0].parameters, one[0].parameters);
        assert_eq!((several[0].line, several[0].actor.as_str()), (4, "person"));
        assert_eq!((one[0].line, one[0].name.as_str()), (1, "define"));
        let both = parsed("\u{feff}!!a.b x:1\n  !!c.d debug 'two words' x:2\n");
        assert_eq!(both.len(), 2);
        assert_eq!(both[1].arguments, ["debug", "two words"]);
        assert_eq!(parsed(" \n// nothing\n"), []);
    }

    #[test]
    fn types_of_values_are_inferred() {
        for (written, expected) in [
            ("red", text("red")),
            ("'30'", text("30")),
            ("\"it's\"", text("it's")),
            ("'it''s'", text("it's")),
            ("'a\\'b\\n\\d'", text("a'b\n\\d")),
            ("''", text("")),
            ("", text("")),
            (" // nothing", text("")),
            ("https://example.org/a", text("https://example.org/a")),
            ("8080", json!(8080)),
            ("-3", json!(-3)),
            ("007", text("007")),
            ("0.75", json!(0.75)),
            ("1.2.3", text("1.2.3")),
            ("75%", text("75%")),
            ("false", json!(false)),
            ("yes", text("yes")),
            ("web,api", json!(["web", "api"])),
            ("1,2,", json!([1, 2])),
            ("[1, 'b c' , d]", json!([1, "b c", "d"])),
            ("[]", json!([])),
        ] {
            assert_eq!(value_of(written), expected, "{written}");
        }
    }

    #[test]
    fn text_of_several_lines_loses_the_indentation_of_the_script() {
        let source = "!!a.b\n  x: '\n    This is\n      a text\n\n    of lines.\n    '\n  y: 2\n";
        let action = &parsed(source)[0];
        assert_eq!(action.parameters["x"], text("This is\n  a text\n\nof lines."));
        assert_eq!(action.parameters["y"], json!(2));
        assert_eq!(value_of("'first\n    second'"), text("first\nsecond"));
    }

    #[test]
    fn mistake_has_its_line_and_column() {
        for (source, expected) in [
            ("hello", "expected an action such as !!person.define (line 1, position 1)"),
            ("!!a.b\nx:1", "expected an action such as !!person.define; indent the parameters"),
            ("!a.b", "an action begins with two exclamation marks (line 1, position 1)"),
            ("!!!a.b", "an action begins with two exclamation marks"),
            ("!!a", "`!!a`: expected !!ACTOR.ACTION"),
            ("!!a.b.c", "`!!a.b.c`: expected"),
            ("!!.b", "`!!.b`: expected"),
            ("\n  !!play.include path:'x'", "includes are not possible: put the actions"),
            (
                "!!a.b x:'open\n",
                "this text has no end: expected the closing quote (line 1, position 9)",
            ),
            ("!!a.b x:[1", "this list has no end: expected `]` (line 1, position 9)"),
            ("!!a.b x:'a'b", "expected a space after the value (line 1, position 12)"),
            ("!!a.b x=1", "expected `:` after `x`, not `=` (line 1, position 8)"),
            ("!!a.b x:1\n  x:2", "the parameter x is given twice (line 2, position 3)"),
            ("!!a.b 1x:2", "`1x` is not the name of a parameter"),
        ] {
            let message = parse(source).expect_err(source).to_string();
            assert!(message.starts_with(expected), "{source}: {message}");
        }
        let many = "!!a.b\n".repeat(ACTIONS_MAX + 1);
        assert!(parse(&many).is_err_and(|error| error.line == ACTIONS_MAX + 1));
        let wide = format!("!!a.b {}", "x ".repeat(PARAMETERS_MAX + 1));
        assert!(parse(&wide).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(source in "(!!a\\.b|[ x:'\"\\\\\\[\\],/\n\t=é-]|\\PC){0,40}") {
            let _ = parse(&source);
        }

        #[test]
        fn a_quoted_text_is_read_as_it_was_written(value in "[a-z'\"\\\\ é]{0,12}") {
            let escaped = value.replace('\\', "\\\\").replace('\'', "''");
            prop_assert_eq!(value_of(&format!("'{escaped}'")), text(&value));
        }
    }
}
