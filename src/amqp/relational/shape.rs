//! The columns as MariaDB has them. It rounds decimals and cuts times that do not fit, without an error in
//! any SQL mode: a value that it would change is rejected before.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use sqlx::Row as _;
use sqlx::mysql::MySqlConnection;

use super::error::Broken;
use super::statement::{Statement, WrittenValue};
use super::value::SqlValue;
use crate::amqp::message::MessageFailure;
use crate::config::{ColumnType, SqlName};

/// The digits that a column holds after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ColumnShape {
    /// Of a number; `None` for a float and anything but a number.
    number: Option<u64>,
    /// Of a second; `None` for anything but a time.
    second: Option<u64>,
    /// True for a date without a time.
    is_date: bool,
}

type TableShape = BTreeMap<String, ColumnShape>;

/// The shapes of the tables that were written to, as they were read last.
#[derive(Debug, Default)]
pub(super) struct Shapes(Mutex<BTreeMap<SqlName, TableShape>>);

impl Shapes {
    /// Rejects values that the columns of a table would round or cut.
    pub(super) async fn check(
        &self,
        connection: &mut MySqlConnection,
        name: &str,
        table: &SqlName,
        values: &[WrittenValue],
    ) -> Result<(), Broken> {
        let may_lose = |one: &&WrittenValue| {
            matches!(one.of, ColumnType::Decimal | ColumnType::Float | ColumnType::Time)
        };
        let values: Vec<&WrittenValue> = values.iter().filter(may_lose).collect();
        if values.is_empty() {
            return Ok(());
        }
        if self.0.lock().get(table).is_some_and(|shape| lost(shape, &values).is_none()) {
            return Ok(());
        }
        // The table may have been changed since.
        let shape = read(connection, name, table).await?;
        let found = lost(&shape, &values);
        self.0.lock().insert(table.clone(), shape);
        match found {
            None => Ok(()),
            Some(reason) => {
                Err(MessageFailure::lasting("refused", format!("{name}: {reason}")).into())
            }
        }
    }
}

async fn read(
    connection: &mut MySqlConnection,
    name: &str,
    table: &SqlName,
) -> Result<TableShape, Broken> {
    let sql = "SELECT CAST(column_name AS CHAR), CAST(data_type AS CHAR), CAST(numeric_scale AS CHAR), \
               CAST(datetime_precision AS CHAR) FROM information_schema.columns \
               WHERE table_schema = DATABASE() AND table_name = ?";
    let values = vec![SqlValue::Text(table.to_string())];
    let look = Statement { sql: sql.to_owned(), values };
    let rows = look.query().fetch_all(&mut *connection).await;
    let rows = rows.map_err(|error| Broken::of(name, &error))?;
    let shape = rows.iter().filter_map(|row| {
        let text = |place: usize| row.try_get_unchecked::<Option<String>, _>(place).ok().flatten();
        let number = |place: usize| text(place).and_then(|digits| digits.parse().ok());
        let shape = ColumnShape {
            number: number(2),
            second: number(3),
            is_date: text(1).as_deref() == Some("date"),
        };
        Some((text(0)?.to_lowercase(), shape))
    });
    Ok(shape.collect())
}

/// Returns what a table would change of these values.
fn lost(shape: &TableShape, values: &[&WrittenValue]) -> Option<String> {
    values.iter().find_map(|WrittenValue { column, value, .. }| {
        let shape = shape.get(&column.as_str().to_lowercase())?;
        let text = match value {
            SqlValue::Text(text) => text.clone(),
            SqlValue::Float(value) => value.to_string(),
            _ => return None,
        };
        if shape.is_date
            && text.get(11..).is_some_and(|time| time.bytes().any(|b| (b'1'..=b'9').contains(&b)))
        {
            return Some(format!("{column} is a date, and would lose the time of the value"));
        }
        let (holds, of) = match (shape.number, shape.second) {
            (Some(digits), _) => (digits, "digits after the point"),
            (None, Some(digits)) => (digits, "digits of a second"),
            (None, None) => return None,
        };
        let (_, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = fraction.trim_end_matches('0').len() as u64;
        (digits > holds).then(|| {
            format!("{column} holds {holds} {of}, and the value has {digits}: it would be changed")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_column_would_change_are_named() {
        let shape = |number, second, is_date| ColumnShape { number, second, is_date };
        let table = TableShape::from([
            ("price".to_owned(), shape(Some(2), None, false)),
            ("at".to_owned(), shape(None, Some(0), false)),
            ("day".to_owned(), shape(None, None, true)),
            ("any".to_owned(), shape(None, None, false)),
        ]);
        let changed = |column: &str, value: SqlValue| {
            let column = column.parse().expect("a legal name");
            let written = WrittenValue { column, of: ColumnType::Decimal, value };
            lost(&table, &[&written]).is_some()
        };
        let text = |text: &str| SqlValue::Text(text.to_owned());
        for (column, value, expected) in [
            ("Price", text("1.25"), false),
            ("price", text("1.2500"), false),
            ("price", text("-1.255"), true),
            ("price", SqlValue::Float(0.125), true),
            ("price", SqlValue::Null, false),
            ("at", text("2026-01-31 10:00:00.000000"), false),
            ("at", text("2026-01-31 10:00:00.500000"), true),
            ("day", text("2026-01-31 00:00:00.000000"), false),
            ("day", text("2026-01-31 10:00:00.000000"), true),
            ("any", text("1.123456"), false),
            ("unknown", text("1.123456"), false),
        ] {
            assert_eq!(changed(column, value.clone()), expected, "{column} {value:?}");
        }
    }
}
