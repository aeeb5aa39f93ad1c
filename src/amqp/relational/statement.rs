//! Statements from the data of messages. Names come from the declaration alone, values are parameters:
//! nothing of a message is spelled into SQL.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::mysql::MySqlArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, MySql};

use super::value::{SqlValue, to_sql};
use crate::amqp::message::{MessageFailure, data_of, page_limit};
use crate::config::{ColumnType, SqlName, TableConfig};
use crate::proto::text::{did_you_mean, nearest, shown};

/// The maximum number of rows before a page: the server reads and skips them all.
const OFFSET_MAX: u64 = 1_000_000;
/// The limits of conditions in one message, and of values in one `in`.
const CONDITIONS_MAX: usize = 64;
const VALUES_MAX: usize = 1000;
/// The maximum number of columns of an order.
const ORDER_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<SqlValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowFetch {
    pub(super) statement: Statement,
    pub(super) columns: Vec<(SqlName, ColumnType)>,
    pub(super) limit: usize,
    pub(super) offset: u64,
}

/// A `write`, `update` or `delete`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowChange {
    pub(super) statement: Statement,
    /// For `write`: the key of the row.
    pub(super) key: Option<RowKey>,
    /// The table, and the values that its columns get.
    pub(super) table: SqlName,
    pub(super) written: Vec<WrittenValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenValue {
    pub(super) column: SqlName,
    pub(super) of: ColumnType,
    pub(super) value: SqlValue,
}

/// The key of a written row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowKey {
    /// As the message has it.
    Given(Map<String, Value>),
    /// The column that the database numbers.
    Numbered(SqlName),
    /// Made by the database in another way.
    Unknown,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct FetchData {
    #[serde(rename = "where")]
    conditions: Map<String, Value>,
    columns: Vec<String>,
    order: Vec<String>,
    limit: Option<usize>,
    offset: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateData {
    set: Map<String, Value>,
    #[serde(rename = "where")]
    conditions: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteData {
    #[serde(rename = "where")]
    conditions: Map<String, Value>,
}

/// Returns the statement of a `fetch`. It reads one row more than the page has, to see if there is a
/// next one.
pub(super) fn fetch(table: &TableConfig, data: &Value) -> Result<RowFetch, MessageFailure> {
    let data: FetchData =
        if data.is_null() { FetchData::default() } else { data_of("fetch", data)? };
    let limit = page_limit(data.limit)?;
    if data.offset > OFFSET_MAX {
        let message = format!("`offset` must be at most {OFFSET_MAX}; narrow it by a condition");
        return Err(MessageFailure::invalid(message));
    }
    let columns: Vec<(SqlName, ColumnType)> = if data.columns.is_empty() {
        table.columns.iter().map(|(name, of)| (name.clone(), *of)).collect()
    } else {
        let named = data.columns.iter().map(|name| column(table, name));
        let named = named.map(|found| found.map(|(name, of)| (name.clone(), of)));
        named.take(table.columns.len()).collect::<Result<_, _>>()?
    };
    // As text, a value looks the same in every type that SQL has for it.
    let read = |(name, of): &(SqlName, ColumnType)| match of {
        ColumnType::Bytes => format!("`{name}`"),
        _ => format!("CAST(`{name}` AS CHAR)"),
    };
    let read = columns.iter().map(read).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT {read} FROM `{}`", table.name);
    let mut statement = Statement { sql, values: Vec::new() };
    statement.conditions(table, &data.conditions)?;
    statement.order(table, &data.order)?;
    statement.sql.push_str(" LIMIT ? OFFSET ?");
    statement.values.push(SqlValue::Uint(limit as u64 + 1));
    statement.values.push(SqlValue::Uint(data.offset));
    Ok(RowFetch { statement, columns, limit, offset: data.offset })
}

/// Returns the statement of a `write`: a new row.
pub(super) fn write(table: &TableConfig, data: &Value) -> Result<RowChange, MessageFailure> {
    let row: Map<String, Value> = data_of("write", data)?;
    if row.is_empty() {
        return Err(MessageFailure::invalid("the data of write has no column"));
    }
    let mut statement = Statement::default();
    let written = statement.all_written(table, &row)?;
    let names: Vec<String> = written.iter().map(|of| format!("`{}`", of.column)).collect();
    let (names, marks) = (names.join(", "), vec!["?"; row.len()].join(", "));
    statement.sql = format!("INSERT INTO `{}` ({names}) VALUES ({marks})", table.name);
    let given = |name: &SqlName| {
        let value = row.get(name.as_str()).filter(|value| !value.is_null())?;
        Some((name.to_string(), value.clone()))
    };
    let key = match (table.key.iter().map(given).collect::<Option<_>>(), &table.key[..]) {
        (Some(key), _) => RowKey::Given(key),
        (None, [name]) if table.columns.get(name) == Some(&ColumnType::Int) => {
            RowKey::Numbered(name.clone())
        }
        (None, _) => RowKey::Unknown,
    };
    Ok(RowChange { statement, key: Some(key), table: table.name.clone(), written })
}

/// Returns the statement of an `update` of the rows that meet its conditions.
pub(super) fn update(table: &TableConfig, data: &Value) -> Result<RowChange, MessageFailure> {
    let data: UpdateData = data_of("update", data)?;
    if data.set.is_empty() {
        return Err(MessageFailure::invalid("`set` of an update has no column"));
    }
    let mut statement = Statement::default();
    let written = statement.all_written(table, &data.set)?;
    let set: Vec<String> = written.iter().map(|of| format!("`{}` = ?", of.column)).collect();
    statement.sql = format!("UPDATE `{}` SET {}", table.name, set.join(", "));
    statement.required_conditions(table, "update", &data.conditions)?;
    Ok(RowChange { statement, key: None, table: table.name.clone(), written })
}

/// Returns the statement of a `delete` of the rows that meet its conditions.
pub(super) fn delete(table: &TableConfig, data: &Value) -> Result<RowChange, MessageFailure> {
    let data: DeleteData = data_of("delete", data)?;
    let sql = format!("DELETE FROM `{}`", table.name);
    let mut statement = Statement { sql, values: Vec::new() };
    statement.required_conditions(table, "delete", &data.conditions)?;
    Ok(RowChange { statement, key: None, table: table.name.clone(), written: Vec::new() })
}

impl Statement {
    /// Returns a statement with its parameters.
    pub(super) fn query(&self) -> Query<'_, MySql, MySqlArguments> {
        // Nothing of a message is spelled into SQL.
        let mut query = sqlx::query(AssertSqlSafe(self.sql.as_str()));
        for value in &self.values {
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

    /// Adds a value, and returns what its column gets.
    fn written(
        &mut self,
        name: &SqlName,
        of: ColumnType,
        value: &Value,
    ) -> Result<WrittenValue, MessageFailure> {
        let wrong = |form| MessageFailure::invalid(format!("the value of {name} must be {form}"));
        let value = to_sql(of, value).map_err(wrong)?;
        self.values.push(value.clone());
        Ok(WrittenValue { column: name.clone(), of, value })
    }

    /// Adds the values of a row, and returns what its columns get.
    fn all_written(
        &mut self,
        table: &TableConfig,
        row: &Map<String, Value>,
    ) -> Result<Vec<WrittenValue>, MessageFailure> {
        let written = |(name, value): (&String, &Value)| {
            let (name, of) = column(table, name)?;
            self.written(name, of, value)
        };
        row.iter().map(written).collect()
    }

    fn required_conditions(
        &mut self,
        table: &TableConfig,
        operation: &str,
        conditions: &Map<String, Value>,
    ) -> Result<(), MessageFailure> {
        if conditions.is_empty() {
            let message =
                format!("{operation} needs a condition in `where`: it changes no whole table");
            return Err(MessageFailure::invalid(message));
        }
        self.conditions(table, conditions)
    }

    /// Adds conditions that all must hold: `{"age": {"ge": 18}, "city": "Gent"}`.
    fn conditions(
        &mut self,
        table: &TableConfig,
        conditions: &Map<String, Value>,
    ) -> Result<(), MessageFailure> {
        let mut number = 0;
        for (name, condition) in conditions {
            let (name, of) = column(table, name)?;
            if of == ColumnType::Json {
                let message = format!("{name} has the type json, which has no conditions");
                return Err(MessageFailure::invalid(message));
            }
            let equal = Map::from_iter([("eq".to_owned(), condition.clone())]);
            let operators = condition.as_object().unwrap_or(&equal);
            if operators.is_empty() {
                return Err(MessageFailure::invalid(format!("the condition on {name} is empty")));
            }
            for (operator, value) in operators {
                self.sql.push_str(if number == 0 { " WHERE " } else { " AND " });
                number += 1;
                self.condition(name, of, operator, value)?;
            }
        }
        if number > CONDITIONS_MAX {
            return Err(MessageFailure::invalid(format!("more than {CONDITIONS_MAX} conditions")));
        }
        Ok(())
    }

    fn condition(
        &mut self,
        name: &SqlName,
        of: ColumnType,
        operator: &str,
        value: &Value,
    ) -> Result<(), MessageFailure> {
        let wrong = |message: &str| {
            Err(MessageFailure::invalid(format!("the condition on {name} {message}")))
        };
        let sql = match operator {
            "eq" => "<=>",
            "ne" => {
                let _ = write!(self.sql, "NOT (`{name}` <=> ?)");
                return self.written(name, of, value).map(drop);
            }
            "lt" => "<",
            "le" => "<=",
            "gt" => ">",
            "ge" => ">=",
            "like" if of == ColumnType::Text => "LIKE",
            "like" => return wrong("has `like`, which is for text only"),
            "in" => {
                let Some(values) = value.as_array() else {
                    return wrong("has `in`, which takes an array");
                };
                return self.list(name, of, values);
            }
            other => {
                let known = ["eq", "ne", "lt", "le", "gt", "ge", "in", "like"];
                let message = format!(
                    "has the unknown operator `{}`; known are {}",
                    shown(other),
                    known.join(", ")
                );
                return wrong(&message);
            }
        };
        if value.is_null() && operator != "eq" {
            return wrong("compares with null; only eq and ne do");
        }
        let _ = write!(self.sql, "`{name}` {sql} ?");
        self.written(name, of, value).map(drop)
    }

    fn list(
        &mut self,
        name: &SqlName,
        of: ColumnType,
        values: &[Value],
    ) -> Result<(), MessageFailure> {
        if values.len() > VALUES_MAX || values.iter().any(Value::is_null) {
            let message = format!(
                "`in` on {name} takes at most {VALUES_MAX} values, and none of them is null"
            );
            return Err(MessageFailure::invalid(message));
        }
        if values.is_empty() {
            self.sql.push_str("FALSE");
            return Ok(());
        }
        let marks = vec!["?"; values.len()].join(", ");
        let _ = write!(self.sql, "`{name}` IN ({marks})");
        values.iter().try_for_each(|value| self.written(name, of, value).map(drop))
    }

    /// Adds the order, with the key as its last part: pages of equal rows do not overlap.
    fn order(&mut self, table: &TableConfig, order: &[String]) -> Result<(), MessageFailure> {
        if order.len() > ORDER_MAX {
            return Err(MessageFailure::invalid(format!(
                "`order` has more than {ORDER_MAX} columns"
            )));
        }
        let mut parts = Vec::new();
        for part in order {
            let (name, direction) = match part.split_once(' ') {
                None => (part.as_str(), ""),
                Some((name, "asc")) => (name, ""),
                Some((name, "desc")) => (name, " DESC"),
                Some(_) => {
                    let message = format!(
                        "`order` has `{}`; the form is \"COLUMN\" or \"COLUMN desc\"",
                        shown(part)
                    );
                    return Err(MessageFailure::invalid(message));
                }
            };
            parts.push((column(table, name)?.0, direction));
        }
        for name in &table.key {
            if !parts.iter().any(|(known, _)| *known == name) {
                parts.push((name, ""));
            }
        }
        let parts: Vec<String> =
            parts.into_iter().map(|(name, direction)| format!("`{name}`{direction}")).collect();
        let _ = write!(self.sql, " ORDER BY {}", parts.join(", "));
        Ok(())
    }
}

/// Returns a declared column.
fn column<'a>(
    table: &'a TableConfig,
    name: &str,
) -> Result<(&'a SqlName, ColumnType), MessageFailure> {
    let found = table.columns.iter().find(|(known, _)| known.as_str() == name);
    found.map(|(name, of)| (name, *of)).ok_or_else(|| {
        let near = nearest(name, table.columns.keys().map(SqlName::as_str));
        let hint = did_you_mean(near);
        MessageFailure::invalid(format!("unknown column `{}`{hint}", shown(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table() -> TableConfig {
        toml::from_str(
            "name = \"people\"\nkey = [\"id\"]\n\
             columns = { id = \"int\", name = \"text\", age = \"int\", photo = \"bytes\", notes = \"json\" }",
        )
        .expect("legal")
    }

    #[test]
    fn a_fetch_names_declared_columns_and_has_its_values_as_parameters() {
        let data = json!({
            "where": { "name": { "like": "A%" }, "age": { "ge": 18, "lt": 65 }, "id": { "in": [1, 2] } },
            "columns": ["id", "photo"], "order": ["age desc", "name"], "limit": 10, "offset": 20,
        });
        let RowFetch { statement, limit, offset, .. } = fetch(&table(), &data).expect("legal");
        assert_eq!(
            statement.sql,
            "SELECT CAST(`id` AS CHAR), `photo` FROM `people` WHERE `name` LIKE ? AND `age` >= ? AND \
             `age` < ? AND `id` IN (?, ?) ORDER BY `age` DESC, `name`, `id` LIMIT ? OFFSET ?"
        );
        let int = SqlValue::Int;
        let pattern = SqlValue::Text("A%".to_owned());
        let (rows, before) = (SqlValue::Uint(11), SqlValue::Uint(20));
        assert_eq!(statement.values, [pattern, int(18), int(65), int(1), int(2), rows, before]);
        assert_eq!((limit, offset), (10, 20));
    }

    #[test]
    fn null_and_no_values_are_conditions_too() {
        let data = json!({ "where": { "age": null, "name": { "ne": null }, "id": { "in": [] } } });
        let sql = fetch(&table(), &data).expect("legal").statement.sql;
        let conditions = "WHERE `age` <=> ? AND NOT (`name` <=> ?) AND FALSE ORDER BY";
        assert!(sql.contains(conditions), "{sql}");
    }

    #[test]
    fn changes_name_declared_columns_and_have_their_values_as_parameters() {
        let row = json!({ "id": 1, "name": "x', 2); DROP TABLE people; --" });
        let change = write(&table(), &row).expect("legal");
        assert_eq!(change.statement.sql, "INSERT INTO `people` (`id`, `name`) VALUES (?, ?)");
        assert_eq!(change.key, Some(RowKey::Given(Map::from_iter([("id".to_owned(), json!(1))]))));
        let change = write(&table(), &json!({ "name": "x" })).expect("legal");
        assert_eq!(change.key, Some(RowKey::Numbered("id".parse().expect("legal"))));
        let data = json!({ "set": { "age": null }, "where": { "id": 1 } });
        let change = update(&table(), &data).expect("legal");
        assert_eq!(change.statement.sql, "UPDATE `people` SET `age` = ? WHERE `id` <=> ?");
        let change = delete(&table(), &json!({ "where": { "id": 1 } })).expect("legal");
        assert_eq!(change.statement.sql, "DELETE FROM `people` WHERE `id` <=> ?");
    }

    #[test]
    fn illegal_data_is_rejected() {
        type Operation = fn(&TableConfig, &Value) -> Result<Statement, MessageFailure>;
        let of_fetch: Operation = |table, data| fetch(table, data).map(|fetch| fetch.statement);
        let of_write: Operation = |table, data| write(table, data).map(|change| change.statement);
        let of_update: Operation = |table, data| update(table, data).map(|change| change.statement);
        let of_delete: Operation = |table, data| delete(table, data).map(|change| change.statement);
        let many: Vec<u32> = (0..1001).collect();
        for (operation, data, expected) in [
            (
                of_fetch,
                json!({ "where": { "nam": 1 } }),
                "unknown column `nam`; did you mean `name`?",
            ),
            (of_fetch, json!({ "where": { "1=1 OR `id`": 1 } }), "unknown column"),
            (of_fetch, json!({ "where": { "id`": 1 } }), "unknown column"),
            (of_fetch, json!({ "where": { "ID": 1 } }), "unknown column `ID`"),
            (of_fetch, json!({ "where": { "id": "1" } }), "the value of id must be a whole number"),
            (of_fetch, json!({ "where": { "id": { "=": 1 } } }), "unknown operator `=`"),
            (of_fetch, json!({ "where": { "id": {} } }), "is empty"),
            (of_fetch, json!({ "where": { "age": { "like": "1%" } } }), "for text only"),
            (of_fetch, json!({ "where": { "age": { "lt": null } } }), "compares with null"),
            (of_fetch, json!({ "where": { "age": { "in": 1 } } }), "takes an array"),
            (of_fetch, json!({ "where": { "age": { "in": [null] } } }), "none of them is null"),
            (of_fetch, json!({ "where": { "age": { "in": many } } }), "at most 1000 values"),
            (of_fetch, json!({ "where": { "notes": 1 } }), "has no conditions"),
            (of_fetch, json!({ "order": ["id; DROP TABLE x"] }), "the form is"),
            (of_fetch, json!({ "order": ["x"] }), "unknown column `x`"),
            (of_fetch, json!({ "columns": ["*"] }), "unknown column `*`"),
            (of_fetch, json!({ "limit": 0 }), "`limit` must be"),
            (of_fetch, json!({ "limit": 1001 }), "`limit` must be"),
            (of_fetch, json!({ "limit": -1 }), "the data of fetch is illegal"),
            (of_fetch, json!({ "offset": 1_000_001 }), "`offset` must be"),
            (of_fetch, json!({ "having": {} }), "unknown field `having`"),
            (of_fetch, json!([]), "the data of fetch is illegal"),
            (of_write, json!({}), "has no column"),
            (of_write, json!("x"), "the data of write is illegal"),
            (of_write, json!({ "id": { "eq": 1 } }), "the value of id must be"),
            (of_update, json!({ "set": { "age": 1 }, "where": {} }), "needs a condition"),
            (of_update, json!({ "set": { "age": 1 } }), "missing field `where`"),
            (of_update, json!({ "set": {}, "where": { "id": 1 } }), "has no column"),
            (of_delete, json!({ "where": {} }), "needs a condition"),
            (of_delete, json!(null), "the data of delete is illegal"),
        ] {
            let failure = operation(&table(), &data).expect_err(&data.to_string());
            assert!(failure.message.contains(expected), "{data}: {failure}");
            assert_eq!((failure.code.as_str(), failure.retryable), ("invalid_message", false));
        }
    }
}
