//! The name of a published script, and the reference of a job to one.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::{IllegalName, is_small_word, name};
use crate::proto::word_table::{as_text, inline_schema};

name!(
    /// The name of a published script. It becomes part of a key and of the name of a tool.
    ScriptName,
    "name of a script",
    "1 to 48 of a-z, 0-9, _ and -, the first a letter",
    |name| is_small_word(name, 48, b"_-") && name[0].is_ascii_lowercase()
);

/// A published script that a job names: its latest version, or one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptUse {
    pub name: ScriptName,
    /// Its version; the latest one at the submission without it.
    pub version: Option<u32>,
}
as_text!(ScriptUse);
inline_schema!(ScriptUse);

impl FromStr for ScriptUse {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        const FORM: &str = "NAME or NAME@VERSION: a name has 1 to 48 of a-z, 0-9, _ and -, the first a letter; a version is \
                            a whole number from 1";
        let (name, version) =
            text.split_once('@').map_or((text, None), |(name, version)| (name, Some(version)));
        let illegal = || IllegalName::new("published script", text, FORM);
        let name = name.parse().map_err(|_| illegal())?;
        let version = version.map(|version| version_of(version).ok_or_else(illegal)).transpose()?;
        Ok(Self { name, version })
    }
}

/// Reads a version, which has one spelling.
fn version_of(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

impl fmt::Display for ScriptUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_a_name_with_or_without_a_version() {
        for text in ["deploy", "deploy@3", "a-b_c9@4294967295"] {
            assert_eq!(text.parse::<ScriptUse>().expect(text).to_string(), text);
        }
        let long = "a".repeat(49);
        for text in [
            "",
            "@3",
            "deploy@",
            "deploy@0",
            "deploy@03",
            "deploy@+3",
            "deploy@-1",
            "deploy@x",
            "deploy@4294967296",
            "deploy@3@4",
            "Deploy",
            "9a",
            "-a",
            "a b",
            "a:b",
            "a/b",
            "a\0",
            "é",
            "a\n",
            "deploy@3\n",
            &long,
        ] {
            let error = text.parse::<ScriptUse>().expect_err(text).to_string();
            assert!(error.contains("NAME@VERSION") && !error.contains('\n'), "{error}");
        }
    }
}
