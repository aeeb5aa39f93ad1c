//! Problems of the namespace now, as sentences.

use std::time::Duration;

use super::super::links::SiteLinks;
use super::super::parts::{PageProblem, Severity, count, duration, things};
use super::super::snapshot::{Minute, SiteSnapshot};
use super::hour::percent_of;
use crate::client::Overview;
use crate::config::Config;
use crate::store::{QueueState, RedisState};

/// Returns what is wrong, the worst first. Lists of one kind are cut: twenty queues without actors say less than
/// five and a number.
pub(super) fn found(now: &SiteSnapshot, config: &Config, links: &SiteLinks) -> Vec<PageProblem> {
    let mut found = Vec::new();
    supervisors(&now.overview, &mut found);
    redis(&now.overview, &mut found);
    queues(&now.overview, config, links, &mut found);
    rising(&now.minutes, links, &mut found);
    dead(now, links, &mut found);
    holding(&now.overview, links, &mut found);
    // The order of one severity is that above.
    found.sort_by_key(|problem| problem.severity);
    found
}

/// The most queues that are named for one reason.
const NAMED_MAX: usize = 5;

fn plain(severity: Severity, subject: &str, text: String) -> PageProblem {
    PageProblem { severity, subject: (subject.to_owned(), None, ""), text, link: None }
}

fn supervisors(overview: &Overview, found: &mut Vec<PageProblem>) {
    if overview.supervisors.is_empty() {
        let text = "Nothing recovers jobs, fires schedules or retries. Start one: systemctl start hero@supervisor.";
        found.push(plain(Severity::Error, "No live supervisor.", text.to_owned()));
    }
    for of in overview.supervisors.iter().filter(|of| of.redis != "ok") {
        let text = format!("It says: {}.", of.redis);
        let subject = format!("Supervisor {} on {} has trouble.", of.unit, of.hostname);
        found.push(plain(Severity::Warning, &subject, text));
    }
}

fn redis(overview: &Overview, found: &mut Vec<PageProblem>) {
    for (shard, redis) in overview.servers() {
        let name = shard.map_or("Redis".to_owned(), |shard| format!("Redis of shard {shard}"));
        server(&name, redis, found);
    }
}

fn server(name: &str, redis: &RedisState, found: &mut Vec<PageProblem>) {
    if redis.role.as_deref() == Some("slave") {
        let text = "It refuses writes. Point redis.url at the primary.".to_owned();
        found.push(plain(Severity::Error, &format!("{name} is a replica."), text));
    }
    if redis.append_failed {
        let text = "Accepted jobs are lost if it dies. Look at its disk.".to_owned();
        let subject = format!("{name} cannot write its append-only file.");
        found.push(plain(Severity::Error, &subject, text));
    }
    if redis.save_failed {
        let text = "Look at its disk and its log.".to_owned();
        let subject = format!("{name} cannot write its snapshot.");
        found.push(plain(Severity::Warning, &subject, text));
    }
    let used = redis.memory_used_bytes.saturating_mul(100).checked_div(redis.memory_max_bytes);
    if let Some(used) = used.filter(|used| *used >= 80) {
        let severity = if used >= 95 { Severity::Error } else { Severity::Warning };
        let text = format!("It uses {used} % of its maxmemory.");
        found.push(plain(severity, &format!("{name} runs out of memory."), text));
    }
}

fn queues(overview: &Overview, config: &Config, links: &SiteLinks, found: &mut Vec<PageProblem>) {
    let open = || overview.queues.iter().filter(|(state, _)| !state.paused);
    let lacking = open().filter(|(state, actors)| state.depth > 0 && *actors == 0);
    let lacking: Vec<&QueueState> = lacking.map(|(state, _)| state).collect();
    many(found, Severity::Error, "No actor for ", &lacking, links, |state| {
        let wait = duration(state.oldest_wait.unwrap_or_default());
        let waits = if state.depth == 1 { "job waits" } else { "jobs wait" };
        format!("{} {waits}, the first for {wait}.", count(state.depth))
    });
    let most = config.supervisor.wait_warning;
    let is_long =
        |state: &QueueState| !most.is_zero() && state.oldest_wait.is_some_and(|wait| wait >= most);
    let long = open().filter(|(state, actors)| *actors > 0 && is_long(state));
    let long: Vec<&QueueState> = long.map(|(state, _)| state).collect();
    many(found, Severity::Warning, "Long wait in ", &long, links, |state| {
        let wait = duration(state.oldest_wait.unwrap_or_default());
        format!("The first job has waited {wait}; the limit is {}.", duration(most))
    });
}

fn many(
    found: &mut Vec<PageProblem>,
    severity: Severity,
    subject: &str,
    queues: &[&QueueState],
    links: &SiteLinks,
    text: impl Fn(&QueueState) -> String,
) {
    for state in queues.iter().take(NAMED_MAX) {
        let name = state.queue.to_string();
        let jobs = links.with("/jobs", &[("state", "queued"), ("queue", &name)]);
        let linked = Some((name.clone(), links.queue(&name)));
        found.push(PageProblem {
            severity,
            subject: (subject.to_owned(), linked, "."),
            text: text(state),
            link: Some(("Show jobs".to_owned(), jobs)),
        });
    }
    let more = queues.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        let subject = format!("{subject}{}.", things(more as u64, "more queue"));
        let mut rest = plain(severity, &subject, String::new());
        rest.link = Some(("Show queues".to_owned(), links.to("/queues")));
        found.push(rest);
    }
}

/// The latest minutes, whose failures are held against those of the rest of the hour.
const LATEST_MINUTES: usize = 10;
/// Fewer failures in these minutes are no trend.
const FAILURES_LEAST: u64 = 10;
/// So many times the share of failures before is a rise.
const RISE_TIMES: u64 = 2;

fn rising(minutes: &[Minute], links: &SiteLinks, found: &mut Vec<PageProblem>) {
    let (before, latest) = minutes.split_at(minutes.len().saturating_sub(LATEST_MINUTES));
    let of = |minutes: &[Minute]| {
        let failed: u64 = minutes.iter().map(|of| of.failed).sum();
        (failed, failed + minutes.iter().map(|of| of.finished).sum::<u64>())
    };
    let ((failed_before, ended_before), (failed, ended)) = (of(before), of(latest));
    // The shares as products: failed / ended >= times * failed before / ended before.
    let has_risen = failed * ended_before >= RISE_TIMES * failed_before * ended;
    if failed < FAILURES_LEAST || ended_before == 0 || !has_risen {
        return;
    }
    let (share, share_before) =
        (percent_of(failed, ended), percent_of(failed_before, ended_before));
    // A sample comes some milliseconds early or late.
    let span = |minutes: &[Minute]| {
        let seconds = minutes.iter().map(|of| of.length).sum::<Duration>().as_secs();
        duration(Duration::from_mins((seconds + 30) / 60))
    };
    let text = format!(
        "{share} of the jobs that ended in the last {} failed, {share_before} in the {} before.",
        span(latest),
        span(before)
    );
    let errors = links.with("/jobs", &[("state", "error"), ("by", "error"), ("since", "15m")]);
    let mut problem = plain(Severity::Warning, "Failures rise.", text);
    problem.link = Some(("Show errors".to_owned(), errors));
    found.push(problem);
}

fn dead(now: &SiteSnapshot, links: &SiteLinks, found: &mut Vec<PageProblem>) {
    let new: u64 = now.overview.types.iter().filter_map(|of| of.hour).map(|hour| hour.dead).sum();
    if new == 0 {
        return;
    }
    let all = now.dead().unwrap_or(new);
    let letters = if all == 1 { "dead letter," } else { "dead letters," };
    found.push(PageProblem {
        severity: Severity::Error,
        subject: (format!("{} {letters}", count(all)), None, ""),
        text: format!("{} in the last hour.", count(new)),
        link: Some(("Show dead letters".to_owned(), links.to("/dead"))),
    });
}

fn holding(overview: &Overview, links: &SiteLinks, found: &mut Vec<PageProblem>) {
    for (script_type, of) in &overview.actors {
        if of.ready == 0 || of.holding < of.ready {
            continue;
        }
        let name = script_type.to_string();
        let actors = links.with("/actors", &[("type", &name)]);
        found.push(PageProblem {
            severity: Severity::Error,
            subject: (format!("All actors of {name} hold."), None, ""),
            text: "Their machines are overloaded or full, so that they claim no jobs.".to_owned(),
            link: Some(("Show actors".to_owned(), actors)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::snapshot::tests::snapshot;
    use super::*;

    fn said(change: impl Fn(&mut SiteSnapshot)) -> Vec<String> {
        let mut now = snapshot();
        change(&mut now);
        let found = found(&now, &Config::default(), &SiteLinks::new("/"));
        let text = |problem: &PageProblem| {
            let (before, linked, after) = &problem.subject;
            let name = linked.as_ref().map_or("", |(name, _)| name);
            format!("{before}{name}{after} {}", problem.text)
        };
        found.iter().map(text).collect()
    }

    #[test]
    fn healthy_namespace_has_no_problems() {
        assert_eq!(said(|_| {}), [] as [&str; 0]);
    }

    #[test]
    fn queue_without_actor_comes_before_one_that_waits() {
        let said = said(|now| {
            let mut other = now.overview.queues[0].clone();
            other.0.oldest_wait = Some(Duration::from_secs(372));
            now.overview.queues[0].1 = 0;
            now.overview.queues.push(other);
        });
        assert_eq!(
            said,
            [
                "No actor for type:osis. 3 jobs wait, the first for 2.0 s.",
                "Long wait in type:osis. The first job has waited 6 min 12 s; the limit is 5 min.",
            ]
        );
    }

    #[test]
    fn paused_queue_is_no_problem() {
        let said = said(|now| {
            now.overview.queues[0].1 = 0;
            now.overview.queues[0].0.paused = true;
        });
        assert_eq!(said, [] as [&str; 0]);
    }

    #[test]
    fn many_queues_of_one_problem_are_counted() {
        let said = said(|now| {
            now.overview.queues[0].1 = 0;
            let one = now.overview.queues[0].clone();
            now.overview.queues.extend(std::iter::repeat_n(one, 7));
        });
        assert_eq!(said.len(), 6);
        assert_eq!(said[5], "No actor for 3 more queues. ");
    }

    #[test]
    fn failures_that_rise_are_said_with_both_shares() {
        let minute = |finished, failed| Minute {
            length: Duration::from_mins(1),
            submitted: 0,
            finished,
            failed,
            running: 0,
            wait_p95: None,
        };
        let hour = |latest: &[(u64, u64)]| {
            let before = std::iter::repeat_with(|| minute(98, 2)).take(20);
            let latest = latest.iter().map(|(finished, failed)| minute(*finished, *failed));
            said(|now| now.minutes = before.clone().chain(latest.clone()).collect())
        };
        assert_eq!(
            hour(&[(95, 5); 10]),
            [
                "Failures rise. 5.0 % of the jobs that ended in the last 10 min failed, 2.0 % in the \
                 20 min before."
            ]
        );
        assert_eq!(hour(&[(97, 3); 10]), [] as [&str; 0], "less than twice as many");
        assert_eq!(hour(&[(0, 0); 10]), [] as [&str; 0], "none at all");
        assert_eq!(hour(&[(0, 9)]), [] as [&str; 0]);
    }

    #[test]
    fn missing_supervisor_is_said_first() {
        let said = said(|now| now.overview.supervisors.clear());
        assert!(said[0].starts_with("No live supervisor."), "{said:?}");
    }
}
