//! Jobs as a table of CSV, as the page and the command line write it.

use serde_json::Value;

use crate::proto::error_kind::FailureCause;
use crate::proto::job::{JOB_FIELDS, JobStatus};

/// Returns a value of a job as text; values of a list have spaces between them.
pub(crate) fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => {
            values.iter().map(|value| plain(Some(value))).collect::<Vec<_>>().join(" ")
        }
        Some(value) => value.to_string(),
    }
}

/// Returns the line of the names of columns.
pub(crate) fn header(columns: &[&str]) -> String {
    line_of(columns.iter().map(|column| (*column).to_owned()))
}

/// Returns the line of a job, whose values are texts by their fields. Its state is as in lists: a stopped job has not failed.
pub(crate) fn line(columns: &[&str], value: impl Fn(&str) -> String) -> String {
    let state = || match value("status") {
        status if status == JobStatus::Error.as_str() => {
            FailureCause::of(&value("error")).end().as_str().to_owned()
        }
        status => status,
    };
    let text = |column| if column == "status" { state() } else { value(column) };
    line_of(columns.iter().map(|column| cell(&text(column))))
}

/// Returns all columns.
pub(crate) fn columns() -> Vec<&'static str> {
    JOB_FIELDS.iter().filter(|field| field.is_exported).map(|field| field.name).collect()
}

fn line_of(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\r\n"
}

/// Quotes a cell. A text that a spreadsheet would take for a formula begins with an apostrophe.
fn cell(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if mark.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_text() {
        let text = line(&columns(), |field| {
            let value = match field {
                "id" => "a",
                "attempt" => "2",
                "error" => "say \"no\",\nthen",
                "name" => "=1+1",
                "status" => "error",
                _ => "",
            };
            value.to_owned()
        });
        assert!(text.ends_with(",\"say \"\"no\"\",\nthen\"\r\n"), "{text}");
        assert!(text.starts_with("a,\"'=1+1\",") && text.contains(",2,"), "{text}");
        assert!(text.contains(",failed,"), "{text}");
        let stopped = line(&columns(), |field| match field {
            "status" => "error".to_owned(),
            "error" => "stopped".to_owned(),
            _ => String::new(),
        });
        assert!(stopped.contains(",cancelled,"), "{stopped}");
        assert!(header(&columns()).starts_with("id,name,"), "{}", header(&columns()));
        assert_eq!(line(&["name", "id"], str::to_owned), "name,id\r\n");
    }
}
