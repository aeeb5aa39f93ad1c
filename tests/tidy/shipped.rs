//! The rule that tests talk to the program: none puts a router, a listener or a role together, since such a
//! listener lacks the guards of the shipped one.

use std::path::Path;

/// Parts that only the program puts together, each with the reason.
const OF_THE_PROGRAM: [(&[&str], &str); 3] = [
    (
        &["axum", "hyper", "MethodTable", "CallContext", "ApiService", "AgentServer"],
        "the API, the page and the agents' door are tried through the listener of the program: support::Served",
    ),
    (
        &["hero::web", "hero::rpc::listen", "hero::daemon", "hero::metrics"],
        "the page and the metrics are tried through the listener of the program: support::Served",
    ),
    (
        &["hero::actor", "hero::supervisor", "hero::engine", "BuiltIns", "Relational::new"],
        "a role is a process of the program: Hero::actor, Hero::supervisor",
    ),
];

/// The tests that start a part of a role by themselves, with what only they can see.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("tests/amqp/exact.rs", "values are compared with MariaDB's own, without a broker"),
    ("tests/amqp/builtins.rs", "an answer is compared before it is a message of RabbitMQ"),
    ("tests/amqp/relational.rs", "statements are compared with MariaDB's own, without a broker"),
];

/// Returns the lines of tests and examples that put a part of the program together.
pub(super) fn faults(files: &[(String, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_under_the_rule(path)) {
        for (number, line) in text.lines().enumerate() {
            for (marks, rule) in OF_THE_PROGRAM {
                if let Some(mark) = marks.iter().find(|mark| super::has_mark(line, mark)) {
                    let number = number + 1;
                    faults.push(format!("{path}:{number}: has `{mark}`: {rule}"));
                }
            }
        }
    }
    for (path, reason) in EXCEPTIONS {
        let is_needed = files.iter().any(|(of, text)| of == path && text.lines().any(is_mark_of));
        if !is_needed {
            faults.push(format!(
                "{path}: is an exception without need ({reason}): take it off the list"
            ));
        }
    }
    faults
}

fn is_under_the_rule(path: &str) -> bool {
    let is_test = path.starts_with("tests/") || path.starts_with("examples/");
    let is_rust = Path::new(path).extension().is_some_and(|of| of == "rs");
    let is_free = path.starts_with("tests/tidy") || EXCEPTIONS.iter().any(|(of, _)| *of == path);
    is_test && is_rust && !is_free
}

fn is_mark_of(line: &str) -> bool {
    OF_THE_PROGRAM.iter().any(|(marks, _)| marks.iter().any(|mark| super::has_mark(line, mark)))
}

#[test]
fn test_that_serves_by_itself_breaks_the_rule() {
    let of = |path: &str, text: &str| {
        let file = (path.to_owned(), text.to_owned());
        let found = faults(&[file]);
        found.into_iter().filter(|fault| fault.contains(":1: ")).count()
    };
    assert_eq!(of("tests/web/site.rs", "use axum::Router;"), 1);
    assert_eq!(of("tests/rpc.rs", "use hero::rpc::{Caller, MethodTable};"), 1);
    assert_eq!(of("tests/e2e/a.rs", "hero::supervisor::run(settings)"), 1);
    assert_eq!(of("tests/amqp/builtins.rs", "use hero::amqp::builtin::BuiltIns;"), 0);
    assert_eq!(of("tests/rpc.rs", "use hero::rpc::{Caller, Scope};"), 0);
}
