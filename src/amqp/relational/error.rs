//! The failures of MariaDB, as a message's answer has them.

use sqlx::mysql::MySqlDatabaseError;

use crate::amqp::message::MessageFailure;

/// The failure of work, and whether its connection can be used again.
pub(super) struct Broken {
    pub(super) failure: MessageFailure,
    pub(super) leaves_connection: bool,
}

impl Broken {
    pub(super) fn of(doing: &str, error: &sqlx::Error) -> Self {
        Self { failure: failure(doing, error), leaves_connection: is_usable_after(error) }
    }
}

impl From<MessageFailure> for Broken {
    /// A failure that MariaDB has no part in.
    fn from(failure: MessageFailure) -> Self {
        Self { failure, leaves_connection: true }
    }
}

/// Duplicate keys: the two numbers of MariaDB.
const DUPLICATE: [u16; 2] = [1062, 1586];
/// Lock waits, deadlocks, and statements that the server ended for their time.
const CONFLICTS: [u16; 3] = [1205, 1213, 1969];
/// Too many connections, a server that stops, a connection or statement that an operator ended.
const UNAVAILABLE: [u16; 6] = [1040, 1053, 1203, 1226, 1317, 1927];
/// Logins that are denied: the operator mends the password or the rights.
const DENIED_LOGIN: [u16; 4] = [1044, 1045, 1049, 1698];
/// Statements that are denied.
const DENIED: [u16; 3] = [1142, 1143, 1370];

/// Returns the failure of an operation; its text begins with the operation.
pub(super) fn failure(doing: &str, error: &sqlx::Error) -> MessageFailure {
    let sqlx::Error::Database(database) = error else {
        return match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed => MessageFailure::passing(
                "unavailable",
                format!("{doing}: MariaDB cannot be reached: {error}"),
            ),
            _ => MessageFailure::lasting("database", format!("{doing}: {error}")),
        };
    };
    let Some(said) = database.try_downcast_ref::<MySqlDatabaseError>() else {
        return MessageFailure::lasting("database", format!("{doing}: {database}"));
    };
    let message = format!("{doing}: MariaDB says: {}", said.message());
    let number = said.number();
    let class = said.code().unwrap_or_default().get(..2).unwrap_or_default();
    match (number, class) {
        (number, _) if DUPLICATE.contains(&number) => MessageFailure::lasting("exists", message),
        (number, _) if CONFLICTS.contains(&number) => MessageFailure::passing("conflict", message),
        (number, _) if UNAVAILABLE.contains(&number) => {
            MessageFailure::passing("unavailable", message)
        }
        (number, _) if DENIED_LOGIN.contains(&number) => {
            let hint = "check amqp.relational.url, its password and the rights of its user";
            MessageFailure::passing("unavailable", format!("{message}; {hint}"))
        }
        (number, _) if DENIED.contains(&number) => MessageFailure::lasting("denied", message),
        (_, "08") => MessageFailure::passing("unavailable", message),
        (_, "40") => MessageFailure::passing("conflict", message),
        // 1366: a value of the wrong form. 1364: a column without a value.
        (1364 | 1366, _) | (_, "22" | "23") => MessageFailure::lasting("refused", message),
        (_, "42") => {
            let hint = "does [amqp.relational.table] declare the table as it is?";
            MessageFailure::lasting("database", format!("{message}; {hint}"))
        }
        _ => MessageFailure::lasting("database", message),
    }
}

/// Returns whether a connection is as good after an error as before: the server answered, and goes on.
fn is_usable_after(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(database) = error else { return false };
    let number = database.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
    number.is_some_and(|number| ![1053, 1927].contains(&number))
}
