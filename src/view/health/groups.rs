//! Joins the same problem of many queues into one.

use std::collections::BTreeMap;

use super::{Problem, ProblemKind, Severity, Subject};

/// The maximum number of problems of one kind and severity that are reported one by one.
const LISTED_MAX: usize = 3;
/// The queues that the problem of many names beside the first.
const EXAMPLES: usize = 3;

/// Joins problems of the same kind and severity if more than three queues have it; queues of expressions apart, as their
/// remedy differs. Keeps the order.
pub(super) fn joined(problems: &[Problem]) -> Vec<Problem> {
    let has_selector = |problem: &Problem| match &problem.subject {
        Subject::Queue(queue) => queue.target.selector().is_some(),
        _ => false,
    };
    let key = |problem: &Problem| (problem.kind, problem.severity, has_selector(problem));
    let is_queue = |problem: &&Problem| matches!(problem.subject, Subject::Queue(_));
    let mut of_queues: BTreeMap<(ProblemKind, Severity, bool), Vec<&Problem>> = BTreeMap::new();
    for problem in problems.iter().filter(is_queue) {
        of_queues.entry(key(problem)).or_default().push(problem);
    }
    let joined = problems.iter().filter_map(|problem| match of_queues.get(&key(problem)) {
        Some(same) if is_queue(&problem) && same.len() > LISTED_MAX => {
            std::ptr::eq(same[0], problem).then(|| one_of_many(same))
        }
        _ => Some(problem.clone()),
    });
    joined.collect()
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
