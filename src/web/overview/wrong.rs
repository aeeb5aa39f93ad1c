//! The problems of the namespace now, each with the page that shows more of it.

use super::super::parts::{count, glyph};
use super::super::prelude::*;
use super::super::web_error::sentence;
use crate::config::Config;
use crate::view::{HealthRules, NamespaceHealth, Problem, ProblemKind, Severity, Subject};

/// The maximum number of problems of one kind that are named.
const NAMED_MAX: usize = 5;

/// Returns what is wrong, the worst first. Problems of one kind are cut: twenty queues without actors say less than five
/// and a number.
pub(super) fn found(now: &SiteSnapshot, config: &Config) -> Vec<Problem> {
    let health = NamespaceHealth::of(&now.snapshot, &HealthRules::from(config));
    let mut found = Vec::new();
    let all: Vec<&Problem> = health.wrong().collect();
    for same in all.chunk_by(|one, next| (one.kind, one.severity) == (next.kind, next.severity)) {
        found.extend(same.iter().take(NAMED_MAX).map(|problem| (*problem).clone()));
        let more = same.len().saturating_sub(NAMED_MAX);
        if let Some(first) = same.first().filter(|_| more > 0) {
            let text = format!("and {} more of this kind", count(more as u64));
            found.push(Problem { text, remedy: String::new(), ..(*first).clone() });
        }
    }
    found
}

/// Returns the text of the link to the page that shows more of a problem, and its address.
fn link(problem: &Problem, links: &SiteLinks) -> Option<(&'static str, String)> {
    let errors = |since| {
        let fields = [("status", "failed"), ("by", "error"), ("since", since)];
        Some(("Show errors", links.with("/jobs", &fields)))
    };
    match (&problem.subject, problem.kind) {
        (Subject::Queue(queue), _) => {
            Some(("Show queue", links.page("queues", &queue.to_string())))
        }
        (Subject::Queues, _) => Some(("Show queues", links.to("/queues"))),
        (Subject::Actors(Some(script_type)), _) => {
            let fields = [("type", script_type.as_str())];
            Some(("Show actors", links.with("/actors", &fields)))
        }
        (Subject::Actors(None), _) => Some(("Show actors", links.to("/actors"))),
        (Subject::DeadLetters, _) => Some(("Show dead letters", links.to("/dead"))),
        (Subject::PeriodicJob(name), _) => {
            Some(("Show periodic job", links.to(&format!("/cron/{name}"))))
        }
        (Subject::Broker(..) | Subject::AmqpQueue(_), _) => {
            Some(("Show brokers", links.to("/brokers")))
        }
        (Subject::Notification(_), _) => Some(("Show notifications", links.to("/notifications"))),
        (Subject::Jobs, ProblemKind::FailuresRise) => errors("15m"),
        (Subject::Jobs, ProblemKind::JobsFailed) => errors("1h"),
        (
            Subject::Jobs
            | Subject::Redis(_)
            | Subject::Machine(_)
            | Subject::Supervisors
            | Subject::Supervisor(..),
            _,
        ) => None,
    }
}

/// Returns the list, the worst first. Without problems it is one line.
pub(super) fn problems(all: &[Problem], links: &SiteLinks) -> Markup {
    html! {
        ul #problems .wrong {
            @if all.is_empty() { li { span.st.finished { (glyph("finished")) } p { "Nothing needs you." } } }
            @for problem in all {
                li data-severity=(problem.severity) {
                    @match problem.severity {
                        Severity::Critical => span.st.error { (glyph("error")) },
                        Severity::Warning | Severity::Note => span.st.warn { (glyph("warn")) },
                    }
                    p {
                        strong { (sentence(&problem.text)) }
                        @for line in problem.remedy.lines() { " " span { (sentence(line)) } }
                    }
                    @if let Some((name, href)) = link(problem, links) { a href=(href) { (name) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::snapshot::tests::site_snapshot;
    use super::*;

    fn said(change: impl Fn(&mut SiteSnapshot)) -> Vec<Problem> {
        let mut now = site_snapshot();
        change(&mut now);
        found(&now, &Config::default())
    }

    #[test]
    fn healthy_namespace_has_no_problems() {
        assert_eq!(said(|_| {}), []);
        assert_eq!(said(|now| now.snapshot.types[0].dead = 1), [], "a note needs nobody");
    }

    #[test]
    fn problem_of_a_queue_links_to_it() {
        let said = said(|now| now.snapshot.queues[0].1 = 0);
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].text, "queue type:osis has 3 jobs and no live actor");
        assert_eq!(
            link(&said[0], &SiteLinks::new("/")),
            Some(("Show queue", "/queues/type:osis".to_owned()))
        );
    }

    #[test]
    fn same_problem_of_many_queues_is_one() {
        let said = said(|now| {
            now.snapshot.queues[0].1 = 0;
            let one = now.snapshot.queues[0].clone();
            now.snapshot.queues.extend(std::iter::repeat_n(one, 7));
        });
        assert_eq!(said.len(), 1);
        assert!(
            said[0].text.starts_with("8 queues: queue type:osis has 3 jobs"),
            "{}",
            said[0].text
        );
    }
}
