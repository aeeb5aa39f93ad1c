//! The mistakes in a query, each with its column.

/// A mistake in a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("query, column {column}: {message}")]
pub struct QueryError {
    /// The column, in characters from 1.
    pub column: usize,
    /// The mistake.
    pub message: String,
}

/// Returns the mistake at a column.
pub(super) fn wrong(column: usize, message: &str) -> QueryError {
    QueryError { column, message: message.to_owned() }
}
