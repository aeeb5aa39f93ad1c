//! The reply of a Redis that is not Hero's own to a command of a script.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisReply {
    Nil,
    Number(i64),
    /// A string, which may be invalid UTF-8.
    Text(Vec<u8>),
    /// Several replies; for a hash its fields and values in turn.
    List(Vec<RedisReply>),
}
