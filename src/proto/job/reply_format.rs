//! The format of a job's reply.

use serde::Deserialize;

use crate::proto::word_table::words;

words! {
    /// The format of the reply that is pushed when a job ends.
    #[derive(Default, Deserialize)]
    ReplyFormat, "reply_format", "json or plain", any_case;
    /// An object with the job's id, its status, and its output or error.
    #[default]
    Json = "json",
    /// The output, or the error, and nothing else.
    Plain = "plain",
}
