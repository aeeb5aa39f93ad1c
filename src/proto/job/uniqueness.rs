//! The jobs that count as the same, and what becomes of another one.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::id::JobId;
use crate::proto::word_table::words;

words! {
    /// The property that makes two jobs duplicates.
    UniqueBy, "unique_by", "key, script or params";
    Key = "key",
    /// Type, group, script, arguments, parameters and variables.
    Script = "script",
    /// Type, group, name and parameters.
    Params = "params",
}

words! {
    /// The treatment of a job while another one holds its unique key.
    OnDuplicate, "on_duplicate", "return, replace or reject";
    /// Its submitter gets the id of the other.
    Return = "return",
    /// It takes the place of the other, if that has not started.
    Replace = "replace",
    Reject = "reject",
}

/// Returns the words for the job that holds a unique key; `None` for one that the caller may not see.
pub fn holder_of_key(holder: Option<&JobId>) -> String {
    holder.map_or_else(|| "a job that the caller may not see".to_owned(), |id| format!("job {id}"))
}

/// Returns the scope of the unique keys of one caller and context: `CALLER/CONTEXT`, where any byte that is not of
/// A-Z, a-z, 0-9, _, ., @ and - is `%` and two hexadecimal digits.
pub fn unique_scope(caller: &str, context: &str) -> String {
    const ESCAPED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'@').remove(b'-');
    let [caller, context] = [caller, context].map(|part| utf8_percent_encode(part, ESCAPED));
    format!("{caller}/{context}")
}

#[cfg(test)]
mod tests {
    use super::unique_scope;

    #[test]
    fn scopes_of_two_callers_or_contexts_differ() {
        assert_eq!(unique_scope("ann", ""), "ann/");
        assert_eq!(unique_scope("ann@host.a_b-c", "work 1"), "ann@host.a_b-c/work%201");
        assert_ne!(unique_scope("a/b", "c"), unique_scope("a", "b/c"));
        assert_ne!(unique_scope("a\n", ""), unique_scope("a%0A", ""));
    }
}
