//! The visitors of the pages, as tokens: arguments of `hero token new`.

/// Has all scopes.
pub(crate) const OPERATOR: &[&str] = &["operator", "--scope", "read,submit,operate,admin"];
/// May only read.
pub(crate) const READER: &[&str] = &["reader", "--scope", "read"];
/// May only read what concerns jobs of the type bash.
pub(crate) const BOUND: &[&str] = &["bound", "--scope", "read", "--type", "bash"];
/// May read, and submit jobs of its own.
pub(crate) const SUBMITTER: &[&str] = &["submitter", "--scope", "read,submit"];
