//! What a Redis that is not Hero's own answers to a script.

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// There is no such thing.
    Nothing,
    /// A number.
    Number(i64),
    /// A text, which may be no UTF-8.
    Text(Vec<u8>),
    /// Several; of a hash its fields and values in turn.
    List(Vec<Told>),
}
