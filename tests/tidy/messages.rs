//! The program has the messages in docs/operations.md.

/// Returns the messages of the page that no source has.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let page = files.iter().find(|(path, _)| path == PAGE).map_or("", |(_, text)| text.as_str());
    let sources: String = files
        .iter()
        .filter(|(path, _)| path.starts_with("src/"))
        .map(|(_, text)| joined(text))
        .collect();
    messages(page)
        .filter(|(_, message)| message.split(" … ").any(|part| !sources.contains(part)))
        .map(|(line, message)| format!("{PAGE}:{line}: no source has the message `{message}`"))
        .collect()
}

const PAGE: &str = "docs/operations.md";

/// Returns the first cells of the tables below "Messages", with their lines.
fn messages(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != "## Messages");
    lines.filter_map(|(at, line)| Some((at + 1, line.strip_prefix("| `")?.split_once("` |")?.0)))
}

/// Returns a source with texts that go on in the next line in one line.
fn joined(text: &str) -> String {
    text.split("\\\n").map(str::trim_start).collect::<Vec<_>>().concat()
}

#[test]
fn message_that_no_source_has_is_a_fault() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let source = file("src/a.rs", "warn!(\"lost job {id} with \\\n    the lease\");");
    let page = |message: &str| file(PAGE, &format!("## Messages\n| `{message}` | x |\n"));
    assert!(faults(&[source.clone(), page("lost job … with the lease")]).is_empty());
    assert_eq!(faults(&[source, page("lost nothing")]).len(), 1);
}
