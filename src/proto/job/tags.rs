//! Tags: words to find jobs by in lists.

use serde_json::json;

use super::value::{FieldKind, Give, HashValue};
use crate::proto::text::shown;

const TAGS_MAX: usize = 8;
const CHARS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tags(Vec<String>);

impl Tags {
    /// Reads the tags in the text of a hash; an unreadable text has none.
    pub fn of_field(text: &str) -> Self {
        Self::read(text).unwrap_or_default()
    }

    pub fn has(&self, tag: &str) -> bool {
        self.0.iter().any(|own| own == tag)
    }
}

impl HashValue for Tags {
    const KIND: FieldKind = FieldKind::Texts;

    fn read(text: &str) -> Result<Self, String> {
        let tags = serde_json::from_str(text);
        tags.map(Self).map_err(|_| "is not a JSON array of strings".to_owned())
    }

    fn write(&self) -> String {
        json!(self.0).to_string()
    }

    fn fault(&self) -> Option<String> {
        if self.0.len() > TAGS_MAX {
            return Some(format!("has more than {TAGS_MAX} tags"));
        }
        let wrong = self.0.iter().find(|tag| !is_legal(tag))?;
        Some(format!(
            "has `{}`, which is not 1 to {CHARS_MAX} letters, digits and _ - . : / =",
            shown(wrong)
        ))
    }
}

fn is_legal(tag: &str) -> bool {
    let is_in_words = |c: char| c.is_alphanumeric() || "_-.:/=".contains(c);
    (1..=CHARS_MAX).contains(&tag.chars().count()) && tag.chars().all(is_in_words)
}

impl Give<&str> for Tags {
    fn give(&mut self, tag: &str) -> Result<(), String> {
        self.0.push(tag.to_owned());
        self.fault().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_few_short_words() {
        let set = |text: &str| {
            let mut tags = Tags::default();
            tags.set(text).map(|()| tags)
        };
        assert!(set(r#"["nightly","team:störung","a=b"]"#).expect("legal").has("nightly"));
        for wrong in [r#"["a b"]"#, r#"[""]"#, r#"["a,b"]"#, "x", "[1]"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
        let many = json!((0..9).map(|number| number.to_string()).collect::<Vec<_>>()).to_string();
        assert_eq!(set(&many), Err("has more than 8 tags".to_owned()));
        assert!(set(&json!(["x".repeat(65)]).to_string()).is_err());
    }
}
