//! The secrets that a job asks for, by name.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::value::{ListItem, is_variable_name};
use crate::proto::target::{IllegalName, is_word, name};
use crate::proto::text::shown;

name!(
    SecretName,
    "name of a secret",
    "a letter, digit or _, then at most 127 of A-Z, a-z, 0-9, _, - and .",
    |name| is_word(name, 128, b"_-.") && !b"-.".contains(&name[0])
);

const SECRETS_MAX: usize = 64;
/// Before the name of a secret that the job wants as a file.
const FILE: &str = "file:";
/// Variables that change what runs, or that are Hero's own.
const RESERVED: [&str; 2] = ["PATH", "IFS"];
const RESERVED_PREFIXES: [&str; 2] = ["HERO_", "LD_"];

/// A secret that a job asks for, and where its script finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretUse {
    /// In an environment variable: `NAME`, or `VARIABLE=NAME`.
    Variable { variable: String, name: SecretName },
    /// In a file of this name in `HERO_SECRET_DIR`: `file:NAME`.
    File(SecretName),
}

impl SecretUse {
    pub const FORM: &'static str = "NAME, VARIABLE=NAME or file:NAME";

    pub fn name(&self) -> &SecretName {
        match self {
            Self::Variable { name, .. } | Self::File(name) => name,
        }
    }
}

impl FromStr for SecretUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str| name.parse().map_err(|error: IllegalName| error.to_string());
        if let Some(name) = text.strip_prefix(FILE) {
            return named(name).map(Self::File);
        }
        let (variable, name) = text.split_once('=').unwrap_or((text, text));
        let name = named(name)?;
        if !is_variable_name(variable) {
            let form = Self::FORM;
            let shown = shown(variable);
            return Err(format!("`{shown}` is not a legal variable name: write {form}"));
        }
        let is_reserved = RESERVED.contains(&variable)
            || RESERVED_PREFIXES.iter().any(|prefix| variable.starts_with(prefix));
        if is_reserved {
            return Err(format!("`{variable}` cannot hold a secret: write another VARIABLE=NAME"));
        }
        Ok(Self::Variable { variable: variable.to_owned(), name })
    }
}

impl fmt::Display for SecretUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "{FILE}{name}"),
            Self::Variable { variable, name } if variable == name.as_str() => name.fmt(f),
            Self::Variable { variable, name } => write!(f, "{variable}={name}"),
        }
    }
}

impl ListItem for SecretUse {
    fn fault(uses: &[Self]) -> Option<String> {
        if uses.len() > SECRETS_MAX {
            return Some(format!("has more than {SECRETS_MAX} secrets"));
        }
        let mut places = BTreeSet::new();
        let place = |used: &SecretUse| match used {
            SecretUse::Variable { variable, .. } => variable.clone(),
            SecretUse::File(name) => format!("{FILE}{name}"),
        };
        let twice = uses.iter().map(place).find(|place| !places.insert(place.clone()));
        twice.map(|place| format!("has `{place}` twice"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proto::job::value::HashValue;

    #[test]
    fn uses_are_written_as_they_are_read() {
        for text in ["DB", "db_1", "PGPASSWORD=db.main", "file:tls.key"] {
            assert_eq!(text.parse::<SecretUse>().expect(text).to_string(), text);
        }
        assert_eq!("A=A".parse::<SecretUse>().expect("legal").to_string(), "A");
    }

    #[test]
    fn hostile_names_and_variables_are_rejected() {
        for text in [
            "",
            "a b",
            "../passwd",
            "file:a/b",
            "file:.hidden",
            "file:",
            "A=a\0b",
            "A=..",
            "tls.key",
            "=a",
            "A B=a",
            "PATH",
            "PATH=a",
            "LD_PRELOAD=a",
            "HERO_JOB_ID=a",
            "IFS=a",
        ] {
            assert!(text.parse::<SecretUse>().is_err(), "{text:?}");
        }
        let long = "a".repeat(129);
        assert!(long.parse::<SecretUse>().is_err());
    }

    #[test]
    fn one_place_holds_one_secret() {
        let read = |text: &str| Vec::<SecretUse>::read(text).expect(text).fault();
        assert_eq!(read(r#"["a","B=a","file:a"]"#), None);
        assert_eq!(read(r#"["A","A=b"]"#).as_deref(), Some("has `A` twice"));
        let many: Vec<String> = (0..=SECRETS_MAX).map(|n| format!("A{n}=a")).collect();
        assert!(read(&json!(many).to_string()).is_some());
    }
}
