//! Values between JSON and SQL, by the declared type of a column.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::Pieces;
use serde_json::Value;

use crate::config::ColumnType;

/// The maximum number of characters of a decimal: MariaDB's 65 digits, a sign and a point.
const DECIMAL_LEN_MAX: usize = 67;

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SqlValue {
    Null,
    Int(i64),
    /// A whole number above the range of `Int`.
    Uint(u64),
    Float(f64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
}

/// Converts a JSON value for a column.
///
/// # Errors
/// The expected form.
pub(super) fn to_sql(column: ColumnType, value: &Value) -> Result<SqlValue, &'static str> {
    // Null is a JSON value, but no row has both it and SQL's.
    if value.is_null() {
        return Ok(SqlValue::Null);
    }
    let text = value.as_str();
    match column {
        ColumnType::Int => {
            let int = value.as_i64().map(SqlValue::Int);
            int.or_else(|| value.as_u64().map(SqlValue::Uint))
                .ok_or("a whole number of at most 64 bits")
        }
        ColumnType::Float => float(value)
            .map(SqlValue::Float)
            .ok_or("a number that a float of 64 bits holds without rounding"),
        ColumnType::Bool => value.as_bool().map(SqlValue::Bool).ok_or("true or false"),
        ColumnType::Text => text.map(|text| SqlValue::Text(text.to_owned())).ok_or("text"),
        ColumnType::Decimal => decimal(value)
            .map(SqlValue::Text)
            .ok_or("a decimal of at most 65 digits in text, such as \"12.50\""),
        ColumnType::Bytes => text
            .and_then(|text| BASE64.decode(text).ok())
            .map(SqlValue::Bytes)
            .ok_or("bytes as text in base64"),
        ColumnType::Time => text
            .and_then(time)
            .map(SqlValue::Text)
            .ok_or("a time of the years 1000 to 9999 with at most 6 digits of a second, such as \"2026-01-31T10:00:00Z\""),
        ColumnType::Date => text
            .and_then(date)
            .map(SqlValue::Text)
            .ok_or("a date of the years 1000 to 9999, such as \"2026-01-31\""),
        ColumnType::Json => Ok(SqlValue::Text(value.to_string())),
    }
}

fn decimal(value: &Value) -> Option<String> {
    let text = match value {
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let digits = text.strip_prefix('-').unwrap_or(&text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (text.len() <= DECIMAL_LEN_MAX && are_digits(whole) && are_digits(fraction)).then_some(text)
}

/// A number as a float. A whole number that would be rounded is none.
fn float(value: &Value) -> Option<f64> {
    // A float holds 53 of the 64 bits.
    let whole = value.as_u64().or_else(|| value.as_i64().map(i64::unsigned_abs));
    let is_exact =
        whole.is_none_or(|whole| whole.leading_zeros() + whole.trailing_zeros() >= u64::BITS - 53);
    value.as_f64().filter(|_| is_exact)
}

fn has_legal_year(date: Date) -> bool {
    date.year() >= 1000
}

fn time(text: &str) -> Option<String> {
    // Not a `Timestamp`, which ends a day before the year 9999.
    let pieces = Pieces::parse(text).ok()?;
    let local = DateTime::from_parts(pieces.date(), pieces.time()?);
    let offset = i64::from(pieces.to_numeric_offset()?.seconds());
    let time = local.checked_sub(offset.seconds()).ok()?;
    // MariaDB holds microseconds.
    if time.subsec_nanosecond() % 1000 != 0 {
        return None;
    }
    has_legal_year(time.date()).then(|| time.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string())
}

fn date(text: &str) -> Option<String> {
    let date: Date = text.parse().ok()?;
    (text.len() == 10 && has_legal_year(date)).then(|| date.to_string())
}

/// Converts a column to JSON, all but bytes read as text; `None` if it does not have the declared type.
pub(super) fn from_column(column: ColumnType, bytes: &[u8]) -> Option<Value> {
    if column == ColumnType::Bytes {
        return Some(BASE64.encode(bytes).into());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    match column {
        ColumnType::Int => {
            let int = text.parse::<i64>().ok().map(Value::from);
            int.or_else(|| text.parse::<u64>().ok().map(Value::from))
        }
        ColumnType::Float => {
            text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
        }
        ColumnType::Bool => text.parse::<i64>().ok().map(|number| Value::Bool(number != 0)),
        ColumnType::Text | ColumnType::Decimal => Some(text.into()),
        ColumnType::Time => {
            let time: DateTime = text.parse().ok()?;
            Some(format!("{time}Z").into())
        }
        ColumnType::Date => text.parse::<Date>().ok().map(|date| date.to_string().into()),
        ColumnType::Json => serde_json::from_str(text).ok(),
        ColumnType::Bytes => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_the_declared_type_are_converted() {
        use ColumnType::{Bool, Bytes, Date, Decimal, Float, Int, Json, Text, Time};
        for (column, value, expected) in [
            (Int, json!(-1), SqlValue::Int(-1)),
            (Int, json!(u64::MAX), SqlValue::Uint(u64::MAX)),
            (Float, json!(1), SqlValue::Float(1.0)),
            (Float, json!(1_u64 << 63), SqlValue::Float(9_223_372_036_854_775_808.0)),
            (Bool, json!(true), SqlValue::Bool(true)),
            (Text, json!("a\u{0}'`"), SqlValue::Text("a\u{0}'`".to_owned())),
            (Decimal, json!("-12.50"), SqlValue::Text("-12.50".to_owned())),
            (Decimal, json!(3), SqlValue::Text("3".to_owned())),
            (Bytes, json!("AP8="), SqlValue::Bytes(vec![0, 255])),
            (
                Time,
                json!("2026-01-31T11:00:00.5+01:00"),
                SqlValue::Text("2026-01-31 10:00:00.500000".to_owned()),
            ),
            (
                Time,
                json!("9999-12-31T23:59:59Z"),
                SqlValue::Text("9999-12-31 23:59:59.000000".to_owned()),
            ),
            (Date, json!("2026-01-31"), SqlValue::Text("2026-01-31".to_owned())),
            (Json, json!({"a": [1]}), SqlValue::Text("{\"a\":[1]}".to_owned())),
            (Json, json!(null), SqlValue::Null),
            (Int, json!(null), SqlValue::Null),
        ] {
            assert_eq!(to_sql(column, &value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn values_of_another_type_are_rejected() {
        use ColumnType::{Bool, Bytes, Date, Decimal, Float, Int, Text, Time};
        for (column, value) in [
            (Int, json!("1")),
            (Int, json!(1.5)),
            (Int, json!(1e30)),
            (Float, json!("1")),
            (Bool, json!(1)),
            (Text, json!(1)),
            (Text, json!(["a"])),
            (Decimal, json!("1e5")),
            (Decimal, json!("1 OR 1=1")),
            (Decimal, json!("--1")),
            (Decimal, json!(".5")),
            (Decimal, json!(1.5)),
            (Decimal, json!("9".repeat(70))),
            (Bytes, json!("no base64!")),
            (Time, json!("2026-01-31")),
            (Time, json!("2026-01-31T10:00:00")),
            (Time, json!("9999-12-31T23:59:59-01:00")),
            (Time, json!("0001-01-01T00:00:00Z")),
            (Time, json!("2026-01-31T10:00:00.0000001Z")),
            (Float, json!(9_007_199_254_740_993_u64)),
            (Float, json!(-9_007_199_254_740_993_i64)),
            (Date, json!("2026-02-30")),
            (Date, json!("2026-01-31T10:00:00")),
        ] {
            assert!(to_sql(column, &value).is_err(), "{column:?} {value}");
        }
    }

    #[test]
    fn texts_of_the_database_become_json() {
        use ColumnType::{Bool, Date, Float, Int, Json, Time};
        for (column, text, expected) in [
            (Int, "18446744073709551615", json!(u64::MAX)),
            (Float, "0.1", json!(0.1)),
            (Bool, "0", json!(false)),
            (Time, "2026-01-31 10:00:00.500000", json!("2026-01-31T10:00:00.5Z")),
            (Time, "9999-12-31 23:59:59.000000", json!("9999-12-31T23:59:59Z")),
            (Date, "2026-01-31", json!("2026-01-31")),
            (Json, "[1]", json!([1])),
        ] {
            assert_eq!(from_column(column, text.as_bytes()), Some(expected), "{text}");
        }
        for (column, text) in [(Int, "1.5"), (Time, "0000-00-00 00:00:00"), (Json, "{")] {
            assert_eq!(from_column(column, text.as_bytes()), None, "{text}");
        }
    }
}
