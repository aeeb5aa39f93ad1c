//! The format of a job's reply.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::proto::target::IllegalName;

/// The format of the reply that is pushed when a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyFormat {
    /// An object with the job's id, its status, and its output or error.
    #[default]
    Json,
    /// The output, or the error, and nothing else.
    Plain,
}

impl ReplyFormat {
    /// The legal form, for messages.
    pub const FORM: &'static str = "json or plain";

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Plain => "plain",
        }
    }
}

impl FromStr for ReplyFormat {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        match value.to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "plain" => Ok(Self::Plain),
            _ => {
                let value = value.to_owned();
                Err(IllegalName { what: "reply_format", value, form: Self::FORM })
            }
        }
    }
}

impl fmt::Display for ReplyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
