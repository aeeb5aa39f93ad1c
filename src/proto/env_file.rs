//! Files of environment variables: lines `NAME=VALUE`, as systemd and dotenv have them.
//!
//! `#` and `;` begin a comment line, and ` #` a comment after a value without quotes. A value in `'…'` is
//! taken as it stands; in `"…"` a backslash goes before `n`, `r`, `t`, `"`, `\`, `$` and `` ` ``. Both may
//! have several lines. A value without quotes is taken as it stands, without the spaces around it.
//! No value refers to another.

use super::job::is_variable_name;
use super::text::shown;

const VARIABLES_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {reason}")]
pub struct EnvFileError {
    /// The line, from 1.
    pub line: usize,
    pub reason: String,
}

/// Returns the variables of a file, in their order. Of equal names the last one counts.
///
/// # Errors
/// [`EnvFileError`] with the line of the first mistake.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
    let mut reader = Lines { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    let mut variables = Vec::new();
    while !reader.rest.is_empty() {
        variables.extend(reader.entry()?);
        if variables.len() > VARIABLES_MAX {
            return Err(reader.wrong(format!("more than {VARIABLES_MAX} variables")));
        }
    }
    Ok(variables)
}

/// The rest of a file, and the number of its first line.
struct Lines<'t> {
    rest: &'t str,
    line: usize,
}

impl Lines<'_> {
    fn wrong(&self, reason: impl Into<String>) -> EnvFileError {
        EnvFileError { line: self.line, reason: reason.into() }
    }

    /// Reads one line, or the lines of one value; `None` for a line without a variable.
    fn entry(&mut self) -> Result<Option<(String, String)>, EnvFileError> {
        let line = self.rest.lines().next().unwrap_or_default();
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            self.next_line();
            return Ok(None);
        }
        let (left, _) = line
            .split_once('=')
            .ok_or_else(|| self.wrong(format!("`{}` is not NAME=VALUE", shown(bare))))?;
        let name = left.trim();
        let name = name.strip_prefix("export ").map_or(name, str::trim);
        if !is_variable_name(name) {
            let form = "letters, digits and _, no digit first";
            let message = format!("`{}` is not a legal variable name: {form}", shown(name));
            return Err(self.wrong(message));
        }
        self.rest = self.rest[left.len() + 1..].trim_start_matches([' ', '\t']);
        let value = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(name, quote)?,
            _ => self.plain(),
        };
        if value.contains('\0') {
            return Err(self.wrong(format!("the value of {name} has a NUL byte")));
        }
        Ok(Some((name.to_owned(), value)))
    }

    fn plain(&mut self) -> String {
        let line = self.rest.lines().next().unwrap_or_default();
        let comment =
            line.match_indices('#').find(|(at, _)| *at == 0 || line[..*at].ends_with([' ', '\t']));
        let value = comment.map_or(line, |(at, _)| &line[..at]).trim().to_owned();
        self.next_line();
        value
    }

    /// Reads a value in quotes, and the rest of its last line.
    fn quoted(&mut self, name: &str, quote: char) -> Result<String, EnvFileError> {
        let (mut value, mut escaped) = (String::new(), false);
        let mut end = None;
        for (at, letter) in self.rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
                match letter {
                    'n' => value.push('\n'),
                    'r' => value.push('\r'),
                    't' => value.push('\t'),
                    '"' | '\\' | '$' | '`' => value.push(letter),
                    other => value.extend(['\\', other]),
                }
            } else if letter == quote {
                end = Some(at);
                break;
            } else if letter == '\\' && quote == '"' {
                escaped = true;
            } else {
                value.push(letter);
            }
        }
        let Some(end) = end else {
            return Err(self.wrong(format!("the value of {name} has no closing {quote}")));
        };
        self.line += self.rest[..end].matches('\n').count();
        self.rest = &self.rest[end + 1..];
        let after = self.rest.lines().next().unwrap_or_default().trim();
        if !after.is_empty() && !after.starts_with('#') {
            let message = format!("`{}` follows the closing {quote} of {name}", shown(after));
            return Err(self.wrong(message));
        }
        self.next_line();
        Ok(value)
    }

    fn next_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        self.line += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &[(&str, &str)]) {
        let read = parse(text).expect(text);
        let read: Vec<(&str, &str)> =
            read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn lines_are_read_as_systemd_and_dotenv_write_them() {
        reads("", &[]);
        reads(
            "\u{feff}A=1\r\n\r\n# no\n; no\n  export B = two words \n",
            &[("A", "1"), ("B", "two words")],
        );
        reads("A=\nB= # empty\nC=a#b\nD=a #b", &[("A", ""), ("B", ""), ("C", "a#b"), ("D", "a")]);
        reads("A='a \"$B\" \\n # c'", &[("A", "a \"$B\" \\n # c")]);
        reads(r#"A="a\tb \"c\" \$d \x" # comment"#, &[("A", "a\tb \"c\" $d \\x")]);
        reads("A=\"one\ntwo\"\nB=$A", &[("A", "one\ntwo"), ("B", "$A")]);
        reads("A=b=c", &[("A", "b=c")]);
    }

    #[test]
    fn mistake_is_reported_with_its_line() {
        for (text, error) in [
            ("A=1\nB", "2: `B` is not NAME=VALUE"),
            ("1A=1", "1: `1A` is not a legal variable name: letters, digits and _, no digit first"),
            ("=1", "1: `` is not a legal variable name: letters, digits and _, no digit first"),
            ("A='1\n2'\nB=\"x", "3: the value of B has no closing \""),
            ("A='1' 2", "1: `2` follows the closing ' of A"),
            ("#\nA=\0", "3: the value of A has a NUL byte"),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), error);
        }
        let many = "A=1\n".repeat(VARIABLES_MAX + 1);
        assert!(parse(&many).expect_err("too many").reason.contains("more than 1000"));
    }

    proptest! {
        #[test]
        fn any_text_gives_legal_variables_or_a_line_of_it(
            text in "([A-C]|=|\"|'|#|\\\\|\n|\r| |\0|é|export ){0,40}"
        ) {
            match parse(&text) {
                Ok(read) => for (name, value) in read {
                    prop_assert!(is_variable_name(&name) && !value.contains('\0'));
                },
                Err(error) => {
                    prop_assert!(error.line >= 1 && error.line <= text.matches('\n').count() + 2);
                }
            }
        }
    }
}
