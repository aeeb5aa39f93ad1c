//! The parameters of a statement, and its failure on a connection.

use sqlx::mysql::MySqlArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, MySql};

use super::error::{failure, leaves_connection};
use super::statement::Statement;
use super::value::SqlValue;
use crate::amqp::message::MessageFailure;

/// The failure of work, and whether its connection can be used again.
pub(super) struct Broken {
    pub(super) failure: MessageFailure,
    pub(super) leaves_connection: bool,
}

impl Broken {
    pub(super) fn of(doing: &str, error: &sqlx::Error) -> Self {
        Self { failure: failure(doing, error), leaves_connection: leaves_connection(error) }
    }
}

impl From<MessageFailure> for Broken {
    /// A failure that MariaDB has no part in.
    fn from(failure: MessageFailure) -> Self {
        Self { failure, leaves_connection: true }
    }
}

/// Returns a statement with its parameters.
pub(super) fn query(statement: &Statement) -> Query<'_, MySql, MySqlArguments> {
    // `statement` spells nothing of a message into SQL.
    let mut query = sqlx::query(AssertSqlSafe(statement.sql.as_str()));
    for value in &statement.values {
        query = match value {
            SqlValue::Null => query.bind(None::<&str>),
            SqlValue::Int(value) => query.bind(value),
            SqlValue::Uint(value) => query.bind(value),
            SqlValue::Float(value) => query.bind(value),
            SqlValue::Bool(value) => query.bind(value),
            SqlValue::Text(value) => query.bind(value.as_str()),
            SqlValue::Bytes(value) => query.bind(value.as_slice()),
        };
    }
    query
}
