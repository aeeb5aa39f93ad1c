//! docs/messages.md has every message of priority warning and err, and the program has each of its messages.

use super::source::{is_test, lines_outside_tests};

/// Returns the messages of the page that no source has, and those of the sources that the page has not.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let page = files.iter().find(|(path, _)| path == PAGE).map_or("", |(_, text)| text.as_str());
    let sources = files.iter().filter(|(path, _)| path.starts_with("src/"));
    let text: String = sources.clone().map(|(_, text)| joined(text)).collect();
    let parts = |message: &str| -> Vec<String> {
        message.split('…').map(str::trim).map(str::to_owned).collect()
    };
    let unknown = messages(page)
        .filter(|(_, message)| parts(message).iter().any(|part| !text.contains(part.as_str())))
        .map(|(line, message)| format!("{PAGE}:{line}: no source has the message `{message}`"));
    let documented: Vec<&str> = messages(page).map(|(_, message)| message).collect();
    let missing =
        sources.filter(|(path, _)| is_rust(path) && !is_test(path)).flat_map(|(path, text)| {
            let logged = logged(text).into_iter();
            let lacks = |message: &String| !documented.iter().any(|of| is_of(message, of));
            logged.filter(lacks).map(move |message| {
                format!("{path}: {PAGE} has no row for the message `{message}`")
            })
        });
    unknown.chain(missing).collect()
}

const PAGE: &str = "docs/messages.md";
/// A message with fewer letters of its own consists of the text of something else.
const LETTERS_MIN: usize = 4;

/// Returns the messages of the first cells of the tables, with their lines.
fn messages(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let cells = page
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, line.strip_prefix("| `")?.split_once("` |")?.0)));
    cells.flat_map(|(at, cell)| cell.split("`, `").map(move |message| (at, message)))
}

/// Returns whether a message of a source, with `…` for its values, is a message of the page.
fn is_of(message: &str, documented: &str) -> bool {
    let mut parts = documented.split('…').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(first) else { return false };
    parts.all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Returns the messages that a source logs as warnings and errors, with `…` for their values.
fn logged(text: &str) -> Vec<String> {
    let lines: Vec<&str> = lines_outside_tests(text).into_iter().map(|(_, line)| line).collect();
    let text = lines.join("\n");
    let calls = ["warn!(", "error!("].into_iter().flat_map(|call| {
        let starts = text.match_indices(call).map(|(at, _)| at);
        starts
            .filter(|at| !text[..*at].ends_with(|c: char| c == '_' || c.is_alphanumeric()))
            .map(|at| longest_literal(&text[at + call.len()..]))
            .collect::<Vec<_>>()
    });
    let messages = calls.map(|literal| with_gaps(&joined(literal)));
    messages.filter(|of| of.chars().filter(|c| c.is_alphabetic()).count() >= LETTERS_MIN).collect()
}

/// Returns the longest literal of the arguments of a macro.
fn longest_literal(arguments: &str) -> &str {
    let (mut depth, mut begin, mut longest, mut escaped) = (1, None, "", false);
    for (at, byte) in arguments.bytes().enumerate() {
        match (begin, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(from), b'"') => {
                let literal = &arguments[from..at];
                longest = if literal.len() > longest.len() { literal } else { longest };
                begin = None;
            }
            (None, b'"') => begin = Some(at + 1),
            (None, b'(') => depth += 1,
            (None, b')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    longest
}

/// Replaces each `{…}` by `…`.
fn with_gaps(literal: &str) -> String {
    let mut parts = literal.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.split_once('}').map_or("", |(_, rest)| rest);
        format!("{text}…{rest}")
    })
}

/// Returns a source with texts that go on in the next line in one line.
fn joined(text: &str) -> String {
    text.split("\\\n").map(str::trim_start).collect::<Vec<_>>().concat()
}

fn is_rust(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|of| of == "rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> (String, String) {
        (path.to_owned(), text.to_owned())
    }

    fn page(message: &str) -> (String, String) {
        file(PAGE, &format!("| `{message}` | x |\n"))
    }

    #[test]
    fn message_that_no_source_has_is_a_fault() {
        let source = file("src/a.rs", "info!(\"lost job {id} with \\\n    the lease\");");
        assert!(faults(&[source.clone(), page("lost job … with the lease")]).is_empty());
        assert_eq!(faults(&[source, page("lost nothing")]).len(), 1);
    }

    #[test]
    fn warning_without_a_row_is_a_fault() {
        let text = "warn!(job = %id, \"lost job {} with \\\n    the {what}: {error}\", id(1));\nerror!(\"{note}\");";
        let source = file("src/a.rs", text);
        assert_eq!(logged(text), ["lost job … with the …: …"]);
        assert!(faults(&[source.clone(), page("lost job … with the")]).is_empty());
        assert_eq!(faults(&[source.clone(), page("job … with the")]).len(), 1, "not its beginning");
        assert_eq!(faults(&[source, file(PAGE, "")]).len(), 1);
    }
}
