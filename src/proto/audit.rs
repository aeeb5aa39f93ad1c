//! Records of changes that people and programs make: who, what, to what, from where, when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const TEXT_CHARS_MAX: usize = 500;
pub const AUDIT_DAYS: u64 = 90;
pub const AUDIT_LEN_MAX: u64 = 20_000;

/// A person or program that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Its name: a user with its uid, a token, or a public key.
    pub who: String,
    /// The machine or address that it calls from.
    pub from: String,
    /// The entrance: command line, API, page, agent, webhook, library, or the reload of a unit.
    pub through: &'static str,
    /// Its names for the waits of jobs that name who may end them: of a user or token, and `@` with the name of a
    /// group of the user.
    pub names: Vec<String>,
}

impl Author {
    /// Returns its name and where it calls from.
    pub fn signature(&self) -> String {
        let text = if self.from.is_empty() {
            self.who.clone()
        } else {
            format!("{} from {}", self.who, self.from)
        };
        bounded(&text)
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// The time, in RFC 3339, by the clock of Redis.
    pub at: String,
    /// The name of the person or program: a user with its uid, or the name of a token.
    pub who: String,
    /// The change, by the name of its method, such as `job.stop`.
    pub what: String,
    /// The thing that was changed: the id of a job, the name of a queue; for many, their number and filter.
    pub to: String,
    /// The machine or address that the change came from.
    pub from: String,
    /// The entrance: `command line`, `API`, `page`, `agent`, `webhook`, `library`, or the `reload` of a unit.
    pub through: String,
}

pub fn bounded(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
