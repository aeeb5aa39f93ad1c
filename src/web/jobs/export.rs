//! Jobs as files: JSON and CSV.

use axum::http::{HeaderName, header};

use super::super::doc::JobDoc;
use crate::proto::job::JOB_FIELDS;

/// The maximum number of jobs of a file.
pub(super) const EXPORT_MAX: usize = 10_000;

/// Returns jobs as CSV, with a line of names first.
pub(super) fn csv(jobs: &[JobDoc]) -> String {
    let columns = || JOB_FIELDS.iter().filter(|field| field.is_exported).map(|field| field.name);
    let mut text = columns().collect::<Vec<_>>().join(",");
    text.push_str("\r\n");
    for job in jobs {
        let cells: Vec<String> = columns().map(|column| cell(&job.plain(column))).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

/// Quotes a cell. A text that a spreadsheet would take for a formula begins with an apostrophe.
fn cell(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if mark.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

/// Returns the headers of a file that a browser saves.
pub(in crate::web) fn attachment(kind: &str, name: &str) -> [(HeaderName, String); 2] {
    // A name of a job is letters, digits, `-`, `_` and `.`; anything else would end the header's text.
    let name: String =
        name.chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }
            })
            .collect();
    [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_text() {
        let job = JobDoc::from(
            json!({ "id": "a", "attempt": 2, "error": "say \"no\",\nthen", "name": "=1+1" }),
        );
        let text = csv(&[job]);
        assert!(text.ends_with(",\"say \"\"no\"\",\nthen\"\r\n"), "{text}");
        assert!(text.contains("\r\na,\"'=1+1\",") && text.contains(",2,"), "{text}");
    }

    #[test]
    fn name_of_a_file_cannot_end_its_header() {
        let [_, (_, value)] = attachment("text/plain", "a\"; x=\r\n.txt");
        assert_eq!(value, "attachment; filename=\"a___x___.txt\"");
    }
}
