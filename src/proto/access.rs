//! The rights of callers of the API, and the tokens that carry them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::target::{IllegalName, is_word, name};
use crate::proto::word_table::words;

name!(TokenName, "name of a token", "1 to 64 of A-Z, a-z, 0-9, _, . and -", |name| {
    is_word(name, 64, b"_.-")
});

words! {
    /// A right of a caller. Each method needs one.
    #[derive(PartialOrd, Ord, Deserialize)]
    Scope, "scope", "read, submit, operate, admin or fleet";
    /// Reads jobs, queues, actors and the rest.
    Read = "read",
    /// Submits jobs; stops, retries and deletes one's own.
    Submit = "submit",
    /// Changes any job, queue, actor or periodic job.
    Operate = "operate",
    /// Does everything, including what cannot be undone for many jobs.
    Admin = "admin",
    /// Runs scripts on every machine, also as an agent; of no use without the scope submit.
    Fleet = "fleet",
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Scope>", into = "Vec<Scope>")]
pub struct Scopes(u8);

impl Scopes {
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        scopes.into_iter().collect()
    }
}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Self {
        Scope::ALL.into_iter().filter(|scope| scopes.has(*scope)).collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Vec::from(*self).into_iter().map(Scope::as_str).collect();
        f.write_str(&names.join(","))
    }
}

/// The bounds of a caller; an omitted bound does not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "WhoBounds", transform = with_further_members)]
pub struct Bounds {
    /// The script types of its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<BTreeSet<String>>,
    /// The groups of its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<BTreeSet<String>>,
    /// The callers that its jobs may name, beside itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<BTreeSet<String>>,
    /// The contexts of its jobs and objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<BTreeSet<String>>,
    /// The one caller whose jobs scripts of the job know: the token that submitted it for another caller, without the scope
    /// read. Tokens have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub sees: Option<String>,
}

/// Answers may have further members later.
fn with_further_members(of: &mut Schema) {
    of.remove("additionalProperties");
}

impl Bounds {
    /// Returns whether they allow the objects of a context. Objects belong to contexts alone: other bounds need contexts
    /// too.
    pub fn allow_objects_of(&self, context: &str) -> bool {
        match &self.contexts {
            Some(contexts) => contexts.contains(context),
            None => !self.limit_jobs(),
        }
    }

    pub fn limit_jobs(&self) -> bool {
        let Self { types, groups, callers, contexts, sees: _ } = self;
        [types, groups, callers, contexts].into_iter().any(Option::is_some)
    }

    /// Returns why jobs of a script type and group are beyond them; `None` if they are not.
    pub fn outside(&self, script_type: Option<&str>, group: Option<&str>) -> Option<String> {
        let checks = [("types", &self.types, script_type), ("groups", &self.groups, group)];
        checks.into_iter().find_map(|(bound, allowed, value)| {
            let allowed = allowed.as_ref()?;
            if value.is_some_and(|value| allowed.contains(value)) {
                return None;
            }
            let value = value.map_or("none".to_owned(), |value| format!("`{value}`"));
            let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
            Some(format!("{value} is not among the {bound} {}", allowed.join(", ")))
        })
    }
}

/// A token as it is kept. The secret itself is not: only its SHA-256 is known, as the field that holds
/// this record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Its name. It becomes `caller_id` of its jobs.
    pub name: TokenName,
    pub scopes: Scopes,
    #[serde(default)]
    pub bounds: Bounds,
    /// The time of its creation: RFC 3339, UTC.
    pub created_at: String,
    /// Its creator: a user and a machine.
    #[serde(default)]
    pub created_by: String,
    /// It is refused from this time on, in seconds since the epoch; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<i64>,
    /// Another secret has replaced this one, which is valid until it is dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
}

impl TokenRecord {
    /// Returns true if it is refused at this time, in seconds since the epoch.
    pub fn has_expired(&self, now_s: i64) -> bool {
        self.expires_s.is_some_and(|end| end <= now_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_as_it_is_written() {
        let record = TokenRecord {
            name: "ci".parse().expect("legal"),
            scopes: [Scope::Submit, Scope::Read].into_iter().collect(),
            bounds: Bounds {
                types: Some(BTreeSet::from(["osis".to_owned()])),
                ..Bounds::default()
            },
            created_at: "2026-01-31T13:00:00.000Z".to_owned(),
            created_by: String::new(),
            expires_s: Some(9),
            replaced: false,
        };
        let text = serde_json::to_string(&record).expect("JSON");
        assert!(
            text.contains(r#""scopes":["read","submit"],"bounds":{"types":["osis"]}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<TokenRecord>(&text).expect("a record"), record);
    }

    #[test]
    fn token_is_refused_from_its_end_on() {
        let text = r#"{"name":"a","scopes":["admin"],"created_at":"","expires_s":10}"#;
        let record: TokenRecord = serde_json::from_str(text).expect("a record");
        assert!(!record.has_expired(9));
        assert!(record.has_expired(10));
    }
}
