//! Puts a server-side script together from what scripts share and its own body, with no more of the
//! former than it uses: Redis runs every line of a script at every call, and a script makes each of
//! the functions in it anew.
//!
//! So a script whose calls are many names, in its head behind `seldom:`, functions that most calls
//! do not need: shared ones, and its own, which then must name no variable of the script. They and
//! what only they need are made inside of one function, by the first call of one of them.

use std::collections::HashMap;

/// What the scripts share, in the order in which one part builds on those before it.
const SHARED: [&str; 3] = [
    include_str!("scripts/legacy.lua"),
    include_str!("scripts/common.lua"),
    include_str!("scripts/limits.lua"),
];

/// Before the names of the functions that a script needs seldom.
const SELDOM: &str = "-- seldom: ";

/// A declaration at the top level: a variable or a function.
struct Part<'a> {
    text: String,
    declares: Vec<&'a str>,
    need: Need,
}

/// How a script needs a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    None,
    Seldom,
    Often,
}

/// What a script may take along.
#[derive(Default)]
struct Shelf<'a> {
    parts: Vec<Part<'a>>,
    /// Constants, to be written out where they are named.
    literals: HashMap<&'a str, &'a str>,
}

/// The whole text: of `constants`, the shared parts and `functions`, each with its name and its body
/// of an argument `ARGV`, those that `body` names, or that these name in turn; then `body`.
pub(super) fn assemble(constants: &str, functions: &[(&str, &str)], body: &str) -> String {
    let mut shelf = Shelf::default();
    for text in [constants].into_iter().chain(SHARED) {
        shelf.add(text);
    }
    // The functions of a script come first: others that it calls may be parts of it.
    let seldom = seldom_in(body);
    let body = shelf.take_out(&seldom, body);
    for (name, body) in functions {
        let text = shelf.written_out(&format!("local function {name}(ARGV)\n{body}\nend\n"));
        shelf.parts.push(Part { text, declares: vec![name], need: Need::None });
    }
    let body = shelf.written_out(&body);
    shelf.take_along(&body, &seldom, Need::Often);
    shelf.take_along(&body, &[], Need::Seldom);
    shelf.put_together(&seldom, &body)
}

/// The functions that a script says it needs seldom.
fn seldom_in(body: &str) -> Vec<&str> {
    let mut lines = body.lines().skip_while(|line| !line.starts_with(SELDOM));
    let first = lines.next().and_then(|line| line.strip_prefix(SELDOM));
    let more =
        lines.map_while(|line| line.strip_prefix("--").filter(|rest| rest.starts_with("   ")));
    first.into_iter().chain(more).flat_map(names_in).collect()
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
                self.parts.push(Part {
                    text,
                    declares: declared_by(declaration),
                    need: Need::None,
                });
            }
        }
        for place in first_new..self.parts.len() {
            self.parts[place].text = self.written_out(&self.parts[place].text);
        }
    }

    /// Makes parts of those functions of a body that it needs seldom. Returns the rest of it.
    fn take_out(&mut self, seldom: &[&'a str], body: &str) -> String {
        let mut rest = String::new();
        let mut lines = body.lines();
        while let Some(line) = lines.next() {
            let declared =
                line.strip_prefix("local function ").and_then(|text| names_in(text).next());
            let Some(name) = seldom.iter().copied().find(|name| declared == Some(*name)) else {
                rest.extend([line, "\n"]);
                continue;
            };
            let mut text = format!("{line}\n");
            for line in lines.by_ref() {
                text.extend([line, "\n"]);
                if line == "end" {
                    break;
                }
            }
            let text = self.written_out(&text);
            self.parts.push(Part { text, declares: vec![name], need: Need::None });
        }
        rest
    }

    /// A text without comments, without what is never run, and with every constant as its value: a
    /// function keeps hold of each variable that it names, which costs at every call of the script.
    fn written_out(&self, text: &str) -> String {
        let text = self.without_never(text);
        let token = |token| match token {
            Token::Name(name) => self.literals.get(name).copied().unwrap_or(name),
            Token::Comment(_) => "",
            Token::Other(text) => text,
        };
        tokens(&text).map(token).collect()
    }

    /// A text without the statements `if CONSTANT then …` and `if CONSTANT and …` of a constant that
    /// is false. Such a statement has no `else`, and ends in its line or at its own indentation.
    fn without_never(&self, text: &str) -> String {
        let mut kept = String::new();
        let mut last = None;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            if last.is_some() {
                last = last.filter(|last| *last != line);
            } else if needs_constant(line)
                .is_some_and(|name| self.literals.get(name) == Some(&"false"))
            {
                last = (!line.ends_with(" end")).then(|| format!("{}end", &line[..indent]));
            } else {
                kept.extend([line, "\n"]);
            }
        }
        kept
    }

    /// Marks what a text names, and what that names, but for some names.
    fn take_along(&mut self, text: &str, but: &[&str], need: Need) {
        let mut unread: Vec<String> = vec![text.to_owned()];
        let mut seen = vec![false; self.parts.len()];
        while let Some(text) = unread.pop() {
            for name in names_in(&text).filter(|name| !but.contains(name)) {
                for (part, seen) in self.parts.iter_mut().zip(&mut seen) {
                    if !*seen && part.declares.contains(&name) {
                        *seen = true;
                        unread.push(part.text.clone());
                        if part.need == Need::None {
                            part.need = need;
                        }
                    }
                }
            }
        }
    }

    /// What was marked, then the body.
    fn put_together(&self, seldom: &[&str], body: &str) -> String {
        let texts = |need| {
            let parts = self.parts.iter().filter(move |part| part.need == need);
            parts.map(|part| part.text.as_str()).collect::<String>()
        };
        let (often, rare) = (texts(Need::Often), texts(Need::Seldom));
        if rare.is_empty() {
            return often + body;
        }
        let is_rare = |name: &&str| {
            self.parts.iter().any(|part| part.need == Need::Seldom && part.declares.contains(name))
        };
        let names: Vec<&str> = seldom.iter().copied().filter(is_rare).collect();
        let made: Vec<String> = names.iter().map(|name| format!("{name} = {name}")).collect();
        [
            "local seldom\n",
            &called_through(&often, &names),
            "local made\nfunction seldom()\nif made then return made end\n",
            &rare,
            &format!("made = {{ {} }}\nreturn made\nend\n", made.join(", ")),
            &called_through(body, &names),
        ]
        .concat()
    }
}

/// A text in which calls of some functions go through the one that makes them.
fn called_through(text: &str, names: &[&str]) -> String {
    let mut out = String::new();
    let mut before = Token::Other("");
    let mut all = tokens(text).peekable();
    while let Some(token) = all.next() {
        if let Token::Name(name) = token {
            let is_called = all.peek() == Some(&Token::Other("("));
            if is_called && before != Token::Other(".") && names.contains(&name) {
                out.push_str("seldom().");
            }
        }
        let (Token::Name(text) | Token::Comment(text) | Token::Other(text)) = token;
        out.push_str(text);
        before = token;
    }
    out
}

/// The constant that has to be true for a statement that begins in this line to be run.
fn needs_constant(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().strip_prefix("if ")?.split_once(' ')?;
    (rest.starts_with("then") || rest.starts_with("and ")).then_some(name)
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
        Token::Comment(_) | Token::Other(_) => None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A name, a word of the language or a number.
    Name(&'a str),
    /// From `--` to the end of the line.
    Comment(&'a str),
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
            '-' if length > 1 => Token::Comment(token),
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

    /// Every script, by the name of its file.
    fn scripts() -> Vec<(String, String)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/scripts");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let read = |path: std::path::PathBuf| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        };
        files.map(read).collect()
    }

    #[test]
    fn a_script_takes_along_what_it_names_and_what_that_names() {
        let text = assemble(&Keys::default().lua(), &[], "return index_of('finished', 'osis')\n");
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
        let whole = assemble(&constants, &[], &all.join(" "));
        assert_eq!(functions(&whole), all);
        for name in all {
            let text = assemble(&constants, &[], name);
            assert!(functions(&text).contains(&name), "{name} is not in\n{text}");
        }
    }

    #[test]
    fn a_variable_goes_with_the_functions_that_share_it() {
        let text = assemble("", &[], "write_counts()");
        assert!(text.starts_with("local counts = {}\n"), "{text}");
        assert!(!text.contains("local function count("), "nothing calls it:\n{text}");
    }

    #[test]
    fn a_constant_is_written_out_where_it_is_named_and_nowhere_else() {
        let constants = "local JOB = 'x:job:'\nlocal LEN_MAX = 10\nlocal LIST = { 'JOB' }\n";
        let body = "-- JOB\nreturn JOB .. 'JOB', \"a\\\"JOB\", LEN_MAX - 1, JOBS, LIST -- JOB";
        assert_eq!(
            assemble(constants, &[], body),
            "local LIST = { 'JOB' }\n\nreturn 'x:job:' .. 'JOB', \"a\\\"JOB\", 10 - 1, JOBS, LIST \n"
        );
    }

    #[test]
    fn a_statement_under_a_false_constant_is_left_out_with_what_it_names() {
        let body = "if LOG then\n  if x then index_of() end\nend\nif LOG and y then trim() end\n\
                    if LOGS then z() end\n";
        assert_eq!(assemble("local LOG = false\n", &[], body), "if LOGS then z() end\n");
        let text = assemble("local LOG = true\n", &[], body);
        assert!(text.ends_with(&body.replace("LOG ", "true ")), "{text}");
        assert!(functions(&text).contains(&"trim"), "{text}");
    }

    #[test]
    fn what_may_be_left_out_has_no_else_and_no_other_condition() {
        let lines = scripts().into_iter().flat_map(|(name, text)| {
            let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            lines.into_iter().map(move |line| (name.clone(), line))
        });
        let mut last: Option<String> = None;
        let mut met = 0;
        for (name, line) in lines {
            let indent = &line[..line.len() - line.trim_start().len()];
            let constant = needs_constant(&line).is_some_and(|c| c == "LEGACY" || c == "EVENTS_ON");
            if let Some(end) = last.take().filter(|end| *end != line) {
                assert!(!line.starts_with(&end.replace("end", "else")), "{name}: {line}");
                last = Some(end);
            } else if constant {
                met += 1;
                let is_plain = !line.contains(" or ") || line.contains('(');
                assert!(is_plain, "{name}: {line}");
                last = (!line.ends_with(" end")).then(|| format!("{indent}end"));
            }
        }
        assert!(last.is_none() && met > 5, "{met} were met");
    }

    #[test]
    fn what_is_seldom_needed_is_made_by_its_first_call() {
        let shared =
            "local function a() end\nlocal function b() a() end\nlocal function c() a() end\n";
        let mut shelf = Shelf::default();
        shelf.add(shared);
        let body = "-- seldom: b, c,\n--         own\nlocal function own(x)\n  c(x)\nend\n\
                    if x.b(1) then b(own(a())) end\n";
        let seldom = seldom_in(body);
        assert_eq!(seldom, ["b", "c", "own"]);
        let rest = shelf.take_out(&seldom, body);
        let rest = shelf.written_out(&rest);
        shelf.take_along(&rest, &seldom, Need::Often);
        shelf.take_along(&rest, &[], Need::Seldom);
        assert_eq!(
            shelf.put_together(&seldom, &rest),
            "local seldom\nlocal function a() end\n\
             local made\nfunction seldom()\nif made then return made end\n\
             local function b() a() end\nlocal function c() a() end\n\
             local function own(x)\n  c(x)\nend\n\
             made = { b = b, c = c, own = own }\nreturn made\nend\n\n\n\
             if x.b(1) then seldom().b(seldom().own(a())) end\n"
        );
    }

    /// The first function that a text calls before it declares it, if there is one: Redis would look
    /// for a global variable.
    fn called_too_early(text: &str) -> Option<&str> {
        let is_space =
            |token: &Token| matches!(token, Token::Other(text) if text.trim().is_empty());
        let all: Vec<Token> = tokens(text).filter(|token| !is_space(token)).collect();
        let mut known = vec!["redis", "string", "math", "table", "cjson", "tonumber", "tostring"];
        known.extend(["type", "pairs", "ipairs", "next", "unpack", "pcall", "error", "select"]);
        known.extend(["if", "and", "or", "not", "in", "return", "function", "while", "until"]);
        known.extend(["elseif", "then", "do", "else", "local", "end"]);
        let mut is_declaring = false;
        for (place, token) in all.iter().enumerate() {
            let is = |offset: usize, text| {
                all.get(place + offset).is_some_and(|token| *token == Token::Other(text))
            };
            match token {
                Token::Name("local" | "for" | "function") => is_declaring = true,
                Token::Name("in") | Token::Other("=" | ")") => is_declaring = false,
                Token::Name(name) if is_declaring => known.push(name),
                Token::Name(name) if is(1, "(") => {
                    let is_field = place > 0 && all[place - 1] == Token::Other(".");
                    if !is_field && !known.contains(name) {
                        return Some(name);
                    }
                }
                _ => {}
            }
        }
        None
    }

    #[test]
    fn no_script_calls_a_function_before_it_is_declared() {
        assert_eq!(called_too_early("local a = 1\nb(a)\nlocal function b(c) end\n"), Some("b"));
        let functions = [
            ("limits_in_claim", include_str!("scripts/claim_limits.lua")),
            ("legacy_in_claim", include_str!("scripts/claim_legacy.lua")),
            ("stop", include_str!("scripts/stop.lua")),
            ("submit", include_str!("scripts/submit.lua")),
        ];
        let keys = Keys::default();
        let full = keys.clone().with_events(true).lua() + "local LEGACY = { {} }\n";
        let shared = ["common", "legacy", "limits", "claim_limits", "claim_legacy"];
        let bodies = scripts().into_iter().filter(|(name, _)| !shared.contains(&name.as_str()));
        for (script, body) in bodies {
            for constants in [&keys.lua(), &full] {
                let text = assemble(constants, &functions, &body);
                assert_eq!(called_too_early(&text), None, "{script}:\n{text}");
            }
        }
    }

    #[test]
    fn what_a_script_says_it_needs_seldom_is_not_made_at_every_call() {
        let legacy = "local LEGACY = { {} }\n";
        let constants = Keys::default().with_events(true).lua() + legacy;
        let limits = ("limits_in_claim", include_str!("scripts/claim_limits.lua"));
        let old = ("legacy_in_claim", include_str!("scripts/claim_legacy.lua"));
        let mut met = 0;
        for (script, body) in scripts() {
            let text = assemble(&constants, &[limits, old], &body);
            for name in seldom_in(&body) {
                met += 1;
                assert!(text.contains(&format!(" {name} = {name}")), "{script} never needs {name}");
            }
        }
        assert!(met > 10, "{met} were met");
    }

    #[test]
    fn a_function_that_is_seldom_needed_names_no_variable_of_its_script() {
        for (script, body) in scripts() {
            let seldom = seldom_in(&body);
            let mut shelf = Shelf::default();
            let rest = shelf.take_out(&seldom, &body);
            let variables: Vec<&str> = rest
                .lines()
                .filter_map(|line| line.strip_prefix("local "))
                .flat_map(declared_by)
                .collect();
            for part in &shelf.parts {
                let own: Vec<&str> = part
                    .text
                    .lines()
                    .filter_map(|line| line.trim_start().strip_prefix("local "))
                    .flat_map(declared_by)
                    .chain(names_in(part.text.lines().next().unwrap_or_default()))
                    .collect();
                let foreign =
                    names_in(&part.text).find(|n| variables.contains(n) && !own.contains(n));
                assert_eq!(foreign, None, "{script}: {}", part.text);
            }
        }
    }
}
