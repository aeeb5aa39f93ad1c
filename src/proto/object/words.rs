//! The words of texts, and queries for them: `report AND (title:draft OR "first version") NOT old`.

use super::Field;
use super::schema::Schema;
use serde_json::Value;

/// The maximum number of bytes of a word; longer ones are cut.
const WORD_BYTES_MAX: usize = 40;
/// The maximum number of different words of one field of one object that an index has.
const WORDS_MAX: usize = 256;
const QUERY_WORDS_MAX: usize = 32;
const NESTING_MAX: usize = 16;

/// Returns the words of a text in order: letters and digits, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| {
        let lower = word.to_lowercase();
        lower[..lower.floor_char_boundary(WORD_BYTES_MAX)].to_owned()
    })
}

/// Returns the different words of a value, as far as an index has them.
pub(super) fn words_of(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    collect(value, &mut all);
    all
}

fn collect(value: &Value, all: &mut Vec<String>) {
    let mut add = |text: &str| {
        for word in words(text) {
            if all.len() == WORDS_MAX {
                return;
            }
            if !all.contains(&word) {
                all.push(word);
            }
        }
    };
    match value {
        Value::Null => {}
        Value::String(text) => add(text),
        Value::Bool(_) | Value::Number(_) => add(&value.to_string()),
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, all)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, all)),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordQuery {
    /// Objects that have a word in one of the fields.
    Word {
        fields: Vec<Field>,
        word: String,
        is_prefix: bool,
    },
    Any(Vec<WordQuery>),
    /// Objects that match every one of the first, and none of the second.
    Every(Vec<WordQuery>, Vec<WordQuery>),
}

impl WordQuery {
    /// Parses a query for objects of a declared type. Words beside each other are alternatives.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, String> {
        let mut parser = WordParser { rest: text, schema, nesting: 0, words: 0 };
        let query = parser.any()?;
        if parser.rest.trim_start().is_empty() { Ok(query) } else { Err("`)` without `(`".into()) }
    }

    pub fn leaves(&self) -> Vec<&Self> {
        match self {
            Self::Word { .. } => vec![self],
            Self::Any(queries) => queries.iter().flat_map(Self::leaves).collect(),
            Self::Every(all, none) => all.iter().chain(none).flat_map(Self::leaves).collect(),
        }
    }
}

struct WordParser<'a> {
    rest: &'a str,
    schema: &'a Schema,
    nesting: usize,
    words: usize,
}

impl WordParser<'_> {
    fn any(&mut self) -> Result<WordQuery, String> {
        let mut any = vec![self.every()?];
        loop {
            let is_end =
                self.rest.trim_start().is_empty() || self.rest.trim_start().starts_with(')');
            if is_end && !self.keyword("OR") {
                break;
            }
            self.keyword("OR");
            any.push(self.every()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { WordQuery::Any(any) })
    }

    fn every(&mut self) -> Result<WordQuery, String> {
        let (mut all, mut none) = (Vec::new(), Vec::new());
        loop {
            let is_none = self.keyword("NOT");
            let one = self.one()?;
            if is_none {
                none.push(one);
            } else {
                all.push(one);
            }
            let goes_on = self.keyword("AND") || self.at_keyword("NOT");
            if !goes_on {
                break;
            }
        }
        if all.is_empty() {
            return Err("NOT needs a word beside it that the objects have".to_owned());
        }
        let is_one = all.len() == 1 && none.is_empty();
        Ok(if is_one { all.remove(0) } else { WordQuery::Every(all, none) })
    }

    fn one(&mut self) -> Result<WordQuery, String> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.nesting += 1;
            if self.nesting > NESTING_MAX {
                return Err("parentheses nest too deeply".to_owned());
            }
            self.rest = rest;
            let any = self.any()?;
            self.nesting -= 1;
            self.rest = self.rest.trim_start().strip_prefix(')').ok_or("`(` without `)`")?;
            return Ok(any);
        }
        let fields = self.fields()?;
        let text = if let Some(rest) = self.rest.strip_prefix('"') {
            let (text, after) = rest.split_once('"').ok_or("the closing quote is missing")?;
            self.rest = after;
            text
        } else {
            let is_end = |c: char| c.is_whitespace() || "()\"".contains(c);
            let (text, after) =
                self.rest.split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
            self.rest = after;
            text
        };
        if text.contains('~') {
            return Err(format!(
                "`{}`: a search for similar words is not possible",
                text.escape_debug()
            ));
        }
        let mut queries: Vec<WordQuery> = words(text)
            .map(|word| WordQuery::Word { fields: fields.clone(), word, is_prefix: false })
            .collect();
        if let (true, Some(WordQuery::Word { is_prefix, .. })) =
            (text.ends_with('*'), queries.last_mut())
        {
            *is_prefix = true;
        }
        self.words += queries.len();
        if self.words > QUERY_WORDS_MAX {
            return Err(format!("the query has more than {QUERY_WORDS_MAX} words"));
        }
        match queries.len() {
            0 => Err("expected a word of letters and digits".to_owned()),
            1 => Ok(queries.remove(0)),
            _ => Ok(WordQuery::Every(queries, Vec::new())),
        }
    }

    /// Reads `title:`, if it comes next. Returns the indexes to search.
    fn fields(&mut self) -> Result<Vec<Field>, String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let Some(after) = self.rest[end..].strip_prefix(':') else {
            return Ok(self.schema.text.iter().cloned().collect());
        };
        let name = &self.rest[..end];
        let field = self.schema.text.iter().find(|field| field.base() == name);
        let known: Vec<&str> = self.schema.text.iter().map(Field::base).collect();
        let field = field.ok_or_else(|| {
            format!("`{name}` is not a text field; these are {}", known.join(", "))
        })?;
        self.rest = after;
        Ok(vec![field.clone()])
    }

    fn at_keyword(&self, keyword: &str) -> bool {
        let after = self.rest.trim_start().strip_prefix(keyword);
        after.is_some_and(|after| {
            !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
        })
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.at_keyword(keyword);
        if is_next {
            self.rest = &self.rest.trim_start()[keyword.len()..];
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let schema = json!({
            "fields": { "title": "string", "tags": "[string]", "n": "int" },
            "text": ["title", "tags"],
        });
        serde_json::from_value(schema).expect("a schema")
    }

    fn parsed(query: &str) -> Result<String, String> {
        WordQuery::parse(query, &schema()).map(|query| shown(&query))
    }

    fn shown(query: &WordQuery) -> String {
        let all = |queries: &[WordQuery]| queries.iter().map(shown).collect::<Vec<_>>().join(" ");
        match query {
            WordQuery::Word { fields, word, is_prefix } => {
                let of = if fields.len() == 1 { fields[0].base() } else { "" };
                format!("{of}:{word}{}", if *is_prefix { "*" } else { "" })
            }
            WordQuery::Any(queries) => format!("any({})", all(queries)),
            WordQuery::Every(queries, none) if none.is_empty() => format!("all({})", all(queries)),
            WordQuery::Every(queries, none) => format!("all({})-({})", all(queries), all(none)),
        }
    }

    #[test]
    fn words_are_in_lower_case_and_bounded() {
        let of = |value: Value| words_of(&value);
        assert_eq!(of(json!("The Été, the_end: 42")), ["the", "été", "end", "42"]);
        assert_eq!(of(json!(["a b", { "x": "c" }, true, 7, null])), ["a", "b", "c", "true", "7"]);
        assert_eq!(of(json!("é".repeat(30)))[0].len(), WORD_BYTES_MAX);
        let many: Vec<String> = (0..1000).map(|n| format!("w{n}")).collect();
        assert_eq!(of(json!(many.join(" "))).len(), WORDS_MAX);
    }

    #[test]
    fn words_are_joined_by_and_or_and_not() {
        for (query, expected) in [
            ("Report", ":report"),
            ("a b", "any(:a :b)"),
            ("a AND b OR c", "any(all(:a :b) :c)"),
            ("a NOT b", "all(:a)-(:b)"),
            ("NOT b AND a", "all(:a)-(:b)"),
            ("(a OR title:b) AND tags:c*", "all(any(:a title:b) tags:c*)"),
            ("title:\"first version\"", "all(title:first title:version)"),
            ("e-mail", "all(:e :mail)"),
            ("ORANGE NOTE", "any(:orange :note)"),
        ] {
            assert_eq!(parsed(query).as_deref(), Ok(expected), "{query}");
        }
        for (query, expected) in [
            ("", "expected a word"),
            ("a AND", "expected a word"),
            ("NOT a", "NOT needs a word beside it"),
            ("(a", "`(` without `)`"),
            ("a)", "`)` without `(`"),
            ("n:7", "`n` is not a text field; these are tags, title"),
            ("a~1", "`a~1`: a search for similar words is not possible"),
            ("\"a", "the closing quote is missing"),
            ("---", "expected a word"),
        ] {
            let message = parsed(query).expect_err(query);
            assert!(message.starts_with(expected), "{query}: {message}");
        }
        assert!(parsed(&"a ".repeat(100)).is_err() && parsed(&"(".repeat(100)).is_err());
    }
}
