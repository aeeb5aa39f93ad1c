//! The rule that nothing says "no …" of jobs that it did not search: the function that says so asks whether the search was
//! complete, or stands in a list with the reason why it has seen all.

use std::collections::BTreeSet;

use regex::Regex;

use super::functions::functions;
use super::source::{code_of, is_source, lines_outside_tests};

/// Functions that say that there is none without asking, as what they show was not searched or they show all: path, name, reason.
const EXEMPT: [(&str, &str, &str); 31] = [
    ("src/cli/actor.rs", "run", "all actors are listed"),
    ("src/cli/amqp/dlq.rs", "run", "a queue that is not read to its end is named"),
    (
        "src/cli/amqp/logs.rs",
        "run",
        "a page of records without one is the last, and a further one says so",
    ),
    ("src/cli/audit.rs", "run", "the record of changes is read to its end"),
    ("src/cli/cron.rs", "list", "all periodic jobs are listed"),
    ("src/cli/cron_past.rs", "run", "all kept firings of one periodic job are read"),
    ("src/cli/events.rs", "list", "the stream of recorded events is read to its end"),
    ("src/cli/graph.rs", "run", "a page without one is the last, and a further one says so"),
    ("src/cli/job/files.rs", "run", "all files of one job are listed"),
    ("src/cli/job/filter.rs", "no_results", "its callers add how far they searched"),
    ("src/cli/limit.rs", "run", "all limits are listed"),
    ("src/cli/machine.rs", "run", "all machines are listed"),
    ("src/cli/osis.rs", "run", "an index of objects is read to its end"),
    ("src/cli/osis.rs", "counts", "all types of objects are counted"),
    ("src/cli/published.rs", "list_scripts", "all published scripts are listed"),
    ("src/cli/queue/list.rs", "run", "all queues are listed"),
    ("src/cli/token.rs", "run_with", "all tokens are listed"),
    ("src/rpc/methods/machine.rs", "drained", "all its actors are read"),
    ("src/web/doc.rs", "get", "a fault of the program"),
    ("src/web/graph.rs", "around", "a text that is not an id"),
    ("src/web/graph/change.rs", "ask_correction", "it says so if not all failed jobs were read"),
    (
        "src/web/graph/whole.rs",
        "table",
        "a page without one is the last, and a further one says so",
    ),
    ("src/web/job.rs", "parsed", "a text that is not an id"),
    ("src/web/jobs/related_jobs.rs", "of_queue", "its words are shown for a complete search alone"),
    ("src/web/jobs/rows.rs", "rows", "its callers show no rows unless the search was complete"),
    ("src/web/machines.rs", "queues", "all queues are read"),
    ("src/web/overview/latest.rs", "errors", "it speaks of the latest jobs"),
    (
        "src/web/overview/latest.rs",
        "running",
        "it speaks of the latest unless the visitor sees all",
    ),
    ("src/web/queues.rs", "sentence", "the depth of the queue"),
    (
        "src/web/records.rs",
        "none",
        "a page of records without one is the last, and a further one says so",
    ),
    ("src/web/scripts/form.rs", "run_form", "a form that was refused"),
];

/// Returns the functions that say that there is none without knowing it, and the exemptions that nothing needs.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    check(files, &EXEMPT)
}

fn check(files: &[(String, String)], exempt: &[(&str, &str, &str)]) -> Vec<String> {
    let says_none = Regex::new(
        r#"NoResults::new\(|"(hero: )?([Nn]o (jobs?|dead letters?|log records?|change matches)\b|None of )"#,
    )
    .expect("a valid expression");
    // A condition asks, or a sentence takes how far the search came; a name, a comment or a text do not.
    let knows = r"(\bif\b|&&|\|\|)[^;{]*complete\b|\.(among|searched)\(";
    let knows = Regex::new(knows).expect("a valid expression");
    let (mut faults, mut needed) = (Vec::new(), BTreeSet::new());
    let faces = ["src/cli/", "src/web/", "src/rpc/", "src/view/"];
    let is_face = |path: &str| faces.iter().any(|face| path.starts_with(face));
    for (path, text) in files.iter().filter(|(path, _)| is_face(path) && is_source(path)) {
        let lines = lines_outside_tests(text);
        for (line, name, code) in functions(&code_of(text)) {
            // The code is without its literals.
            let end = line + code.matches('\n').count();
            let body = lines.iter().filter(|(number, _)| (line..=end).contains(number));
            let body: Vec<&str> = body.map(|(_, text)| *text).collect();
            let body = body.join("\n");
            if !says_none.is_match(&body) || knows.is_match(code) {
                continue;
            }
            match exempt.iter().find(|(of, function, _)| of == path && *function == name) {
                Some(entry) => {
                    needed.insert(entry);
                }
                None => faults.push(format!(
                    "{path}:{line}: {name} says that there is none without asking whether the search was complete"
                )),
            }
        }
    }
    let unneeded = exempt.iter().filter(|entry| !needed.contains(entry));
    faults.extend(unneeded.map(|(path, name, _)| format!("{path}: {name} needs no exemption")));
    faults
}

#[test]
fn empty_answer_is_found_unless_it_asks_or_is_exempt_and_an_unneeded_exemption_too() {
    let file =
        |body: &str| vec![("src/web/a.rs".to_owned(), format!("fn shown() {{\n    {body}\n}}\n"))];
    let says = r#"text("No job matches.")"#;
    assert_eq!(check(&file(says), &[]).len(), 1);
    let asks = format!("if found.complete {{ {says} }}");
    assert_eq!(check(&file(&asks), &[]), [] as [&str; 0]);
    for names in ["// Is it complete?", "let is_complete = true;", "text(\"if complete\");"] {
        let named = format!("{names}\n    {says}");
        assert_eq!(check(&file(&named), &[]).len(), 1, "{names}");
    }
    let exempt = [("src/web/a.rs", "shown", "it has all")];
    assert_eq!(check(&file(says), &exempt), [] as [&str; 0]);
    assert_eq!(check(&file("list()"), &exempt).len(), 1);
}
