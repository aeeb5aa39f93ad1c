//! Joins the same problem of many queues into one.

use super::{Problem, ProblemKind, Severity, Subject};

/// The maximum number of problems of one kind and severity that are told one by one.
const LISTED_MAX: usize = 3;
/// The queues that the problem of many names beside the first.
const EXAMPLES: usize = 3;

/// Joins problems of the same kind and severity if more than three queues have it. Keeps the order.
pub(super) fn joined(problems: &[Problem]) -> Vec<Problem> {
    let is_queue = |problem: &Problem| matches!(problem.subject, Subject::Queue(_));
    let of = |kind: ProblemKind, severity: Severity| {
        let same = problems.iter().filter(move |it| it.kind == kind && it.severity == severity);
        same.filter(|it| is_queue(it)).collect::<Vec<&Problem>>()
    };
    let mut told: Vec<(ProblemKind, Severity)> = Vec::new();
    let mut joined = Vec::new();
    for problem in problems {
        let key = (problem.kind, problem.severity);
        let same = of(problem.kind, problem.severity);
        if !is_queue(problem) || same.len() <= LISTED_MAX {
            joined.push(problem.clone());
        } else if !told.contains(&key) {
            told.push(key);
            joined.push(one_of_many(&same));
        }
    }
    joined
}

fn one_of_many(same: &[&Problem]) -> Problem {
    let first = same[0];
    let names = same.iter().skip(1).take(EXAMPLES).map(|problem| match &problem.subject {
        Subject::Queue(queue) => queue.to_string(),
        other => other.to_string(),
    });
    let more = match same.len() - 1 - EXAMPLES.min(same.len() - 1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.collect::<Vec<_>>().join(", ");
    Problem {
        subject: Subject::Queues,
        text: format!("{} queues: {}; so do {names}{more}", same.len(), first.text),
        remedy: format!("{}\nsee all: hero queue list", first.remedy),
        ..first.clone()
    }
}
