//! Splits a script into tokens, for colours: comments, strings, numbers, keywords and calls. It knows no grammar:
//! a wrong guess colours a word, and changes no text.

use crate::proto::word_table::words;

/// A language that is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptLanguage {
    Rhai,
    Python,
    Shell,
    JavaScript,
}

words! {
    /// The kind of a token; its word is a class of the style sheet.
    TokenClass;
    Comment = "c",
    Text = "s",
    Number = "n",
    Keyword = "k",
    Call = "f",
    Plain = "",
}

const RHAI: &str = "let const if else for in while loop do until break continue return fn private import export as \
                    switch true false throw try catch this is_def_var global";
const PYTHON: &str = "and as assert async await break class continue def del elif else except False finally for \
                      from global if import in is lambda None nonlocal not or pass raise return True try while \
                      with yield match case";
const SHELL: &str = "if then else elif fi for in do done while until case esac function return exit local export \
                     readonly set unset shift trap source select time";
const JAVASCRIPT: &str = "async await break case catch class const continue debugger default delete do else export \
                          extends false finally for from function if import in instanceof let new null of return \
                          static super switch this throw true try typeof undefined var void while yield";

impl ScriptLanguage {
    pub(super) fn of(script_type: &str, extension: &str) -> Option<Self> {
        let by_type = match script_type {
            "osis" | "sal" => Some(Self::Rhai),
            "python" => Some(Self::Python),
            "bash" | "sh" => Some(Self::Shell),
            "node" | "deno" | "bun" | "js" => Some(Self::JavaScript),
            _ => None,
        };
        by_type.or(match extension.trim_start_matches('.') {
            "rhai" => Some(Self::Rhai),
            "py" => Some(Self::Python),
            "sh" | "bash" => Some(Self::Shell),
            "js" | "mjs" | "cjs" | "ts" => Some(Self::JavaScript),
            _ => None,
        })
    }

    fn keywords(self) -> &'static str {
        match self {
            Self::Rhai => RHAI,
            Self::Python => PYTHON,
            Self::Shell => SHELL,
            Self::JavaScript => JAVASCRIPT,
        }
    }

    /// Returns the length of a comment at the start of a text.
    fn comment(self, text: &str, before: Option<char>) -> Option<usize> {
        let line = || text.find('\n').unwrap_or(text.len());
        match self {
            Self::Python if text.starts_with('#') => Some(line()),
            // In a shell a # inside of a word is no comment.
            Self::Shell if text.starts_with('#') => {
                before.is_none_or(char::is_whitespace).then(line)
            }
            Self::Rhai | Self::JavaScript if text.starts_with("//") => Some(line()),
            Self::Rhai | Self::JavaScript if text.starts_with("/*") => {
                Some(text[2..].find("*/").map_or(text.len(), |end| end + 4))
            }
            _ => None,
        }
    }

    /// Returns the length of a string at the start of a text.
    fn string(self, text: &str) -> Option<usize> {
        let quote = text.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'))?;
        if quote == '`' && matches!(self, Self::Python | Self::Shell) {
            return None;
        }
        if self == Self::Python {
            let three: String = [quote; 3].iter().collect();
            if text.starts_with(&three) {
                return Some(text[3..].find(&three).map_or(text.len(), |end| end + 6));
            }
        }
        let is_long = quote == '`' || self == Self::Shell;
        let is_raw = self == Self::Shell && quote == '\'';
        let mut is_escaped = false;
        for (at, letter) in text.char_indices().skip(1) {
            match letter {
                _ if is_escaped => is_escaped = false,
                '\\' if !is_raw => is_escaped = true,
                '\n' if !is_long => return Some(at),
                _ if letter == quote => return Some(at + 1),
                _ => {}
            }
        }
        Some(text.len())
    }
}

/// Splits a script into tokens, which are together the script.
pub(super) fn tokens(language: ScriptLanguage, script: &str) -> Vec<(TokenClass, &str)> {
    let keywords: Vec<&str> = language.keywords().split_whitespace().collect();
    let mut tokens: Vec<(TokenClass, &str)> = Vec::new();
    let (mut at, mut plain) = (0, 0);
    let mut before = None;
    while at < script.len() {
        let rest = &script[at..];
        let Some((class, length)) = token(language, &keywords, rest, before) else {
            let Some(letter) = rest.chars().next() else { break };
            before = Some(letter);
            at += letter.len_utf8();
            continue;
        };
        if plain < at {
            tokens.push((TokenClass::Plain, &script[plain..at]));
        }
        tokens.push((class, &rest[..length]));
        before = rest[..length].chars().last();
        at += length;
        plain = at;
    }
    if plain < script.len() {
        tokens.push((TokenClass::Plain, &script[plain..]));
    }
    tokens
}

/// Returns the token at the start of a text, and its length.
fn token(
    language: ScriptLanguage,
    keywords: &[&str],
    text: &str,
    before: Option<char>,
) -> Option<(TokenClass, usize)> {
    if let Some(length) = language.comment(text, before) {
        return Some((TokenClass::Comment, length));
    }
    if let Some(length) = language.string(text) {
        return Some((TokenClass::Text, length));
    }
    let first = text.chars().next()?;
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    if !is_word(first) || before.is_some_and(is_word) {
        return None;
    }
    let length = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    let word = &text[..length];
    let class = if first.is_ascii_digit() {
        TokenClass::Number
    } else if keywords.contains(&word) {
        TokenClass::Keyword
    } else if text[length..].starts_with('(') {
        TokenClass::Call
    } else {
        TokenClass::Plain
    };
    Some((class, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ScriptLanguage; 4] = [
        ScriptLanguage::Rhai,
        ScriptLanguage::Python,
        ScriptLanguage::Shell,
        ScriptLanguage::JavaScript,
    ];

    fn of(language: ScriptLanguage, script: &str) -> Vec<(&'static str, &str)> {
        let all = tokens(language, script).into_iter();
        all.filter(|(class, _)| *class != TokenClass::Plain)
            .map(|(class, text)| (class.as_str(), text))
            .collect()
    }

    #[test]
    fn tokens_are_together_the_script() {
        for script in [
            "",
            "let a = \"b\\\"c\"; // d\nf(1)",
            "'unclosed",
            "/* open",
            "\"\"\"three",
            "é('ß', `a\nb`) # ü",
            "\\",
            "a_1(0x1f)\u{0}",
            "<script>alert('</script>')</script>",
        ] {
            for language in ALL {
                let whole: String =
                    tokens(language, script).into_iter().map(|(_, text)| text).collect();
                assert_eq!(whole, script, "{language:?}");
            }
        }
    }

    #[test]
    fn each_language_has_its_comments_strings_and_keywords() {
        assert_eq!(
            of(ScriptLanguage::Rhai, "let a = f(1); // b"),
            [("k", "let"), ("f", "f"), ("n", "1"), ("c", "// b")]
        );
        assert_eq!(
            of(ScriptLanguage::Python, "def a():\n  '''b\nc''' # d"),
            [("k", "def"), ("f", "a"), ("s", "'''b\nc'''"), ("c", "# d")]
        );
        assert_eq!(
            of(ScriptLanguage::Shell, "if [ $# ]; then echo 'a\\'; fi # b"),
            [("k", "if"), ("k", "then"), ("s", "'a\\'"), ("k", "fi"), ("c", "# b")]
        );
        assert_eq!(
            of(ScriptLanguage::JavaScript, "const a = `b\n${c}`; /* d */"),
            [("k", "const"), ("s", "`b\n${c}`"), ("c", "/* d */")]
        );
    }

    #[test]
    fn string_of_one_line_ends_with_the_line() {
        assert_eq!(of(ScriptLanguage::Python, "'a\nif"), [("s", "'a"), ("k", "if")]);
    }

    #[test]
    fn language_follows_from_the_type_or_the_extension() {
        assert_eq!(ScriptLanguage::of("sal", ""), Some(ScriptLanguage::Rhai));
        assert_eq!(ScriptLanguage::of("own", ".mjs"), Some(ScriptLanguage::JavaScript));
        assert_eq!(ScriptLanguage::of("v", ".vsh"), None);
    }
}
