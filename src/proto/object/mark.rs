//! The marks of messages whose changes of objects are applied once.

/// The mark of a message whose changes are applied once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteMark {
    /// The message, as a part of a key.
    pub name: String,
    /// The digest of its contents.
    pub digest: String,
}
