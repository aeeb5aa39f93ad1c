//! The jobs that count as the same, and what becomes of another one.

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::proto::target::IllegalName;

/// The property that makes two jobs duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueBy {
    /// Their unique key.
    Key,
    /// Type, group, script, arguments, parameters and variables.
    Script,
    /// Type, group, name and parameters.
    Params,
}

/// The treatment of a job while another one holds its unique key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Its submitter gets the id of the other.
    Return,
    /// It takes the place of the other, if that has not started.
    Replace,
    /// It is rejected.
    Reject,
}

/// Returns the scope of the unique keys of one caller and context: `CALLER/CONTEXT`, where any byte that is not of
/// A-Z, a-z, 0-9, _, ., @ and - is `%` and two hexadecimal digits.
pub fn unique_scope(caller: &str, context: &str) -> String {
    let mut scope = String::new();
    for (part, text) in [caller, context].into_iter().enumerate() {
        if part > 0 {
            scope.push('/');
        }
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"_.@-".contains(&byte) {
                scope.push(byte.into());
            } else {
                let _ = write!(scope, "%{byte:02X}");
            }
        }
    }
    scope
}

macro_rules! words {
    ($type:ident, $what:literal, $form:literal, $($variant:ident: $word:literal),+) => {
        impl FromStr for $type {
            type Err = IllegalName;

            fn from_str(value: &str) -> Result<Self, IllegalName> {
                match value {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(IllegalName { what: $what, value: value.to_owned(), form: $form }),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }
    };
}
words!(UniqueBy, "unique_by", "key, script or params", Key: "key", Script: "script", Params: "params");
words!(
    OnDuplicate, "on_duplicate", "return, replace or reject",
    Return: "return", Replace: "replace", Reject: "reject"
);

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
