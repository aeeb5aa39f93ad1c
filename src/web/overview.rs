//! The overview: what is wrong first, then the last hour, queues, actors and jobs.

mod by_minute;
mod hour;
mod latest;
mod wrong;

use super::brokers;
use super::parts::{bar, head, things};
use super::prelude::*;
use super::queues::{self, QueueRow};

/// Numbers that are older are said to be, in seconds. A live page brings new ones within a second.
const AGE_SHOWN_S: u64 = 2;
/// The maximum number of queues on this page; those with problems and with jobs come first.
const QUEUES_MAX: usize = 12;

pub(super) async fn show(visit: Visit, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let wrong = wrong::found(&now, &visit.site.config());
    let rows = chosen(queues::rows(&visit, &now));
    let all = format!("All {}", things(now.snapshot.queues.len() as u64, "queue"));
    let queues = visit.links().to("/queues");
    let another = (!visit.is_bound()).then(|| visit.links().to("/stats"));
    let main = html! {
        (head("Overview", &headline(&now, wrong.len()), &html! {}))
        section aria-labelledby="wrong-title" {
            h2 #wrong-title .sr { "What is wrong now" }
            (wrong::problems(&wrong, visit.links()))
        }
        (bar("The last hour", "", another.as_deref().map(|href| ("Another period", href))))
        (hour::tiles(&hour::tiles_of(&now)))
        @if !visit.is_bound() { (by_minute::section(&now.snapshot.minutes, visit.links())) }
        section #queues {
            (bar("Queues", "", Some((&all, &queues))))
            (queues::form(&visit, &rows, "/", &queues::no_queue()))
        }
        (brokers::section(visit.links(), &now))
        div.cols.half.gap {
            div.stacked { (latest::errors(visit.links(), &now)) (latest::types(visit.links(), &now)) }
            div.stacked { (latest::running(visit.links(), &now)) (latest::due(visit.links(), &now)) }
        }
    };
    Ok(visit.page(&now, &WebPage::live("Overview", Nav::Overview, main)))
}

pub(super) fn live(visit: &Visit, now: &SiteSnapshot) -> Vec<LivePart> {
    let wrong = wrong::found(now, &visit.site.config());
    let rows = chosen(queues::rows(visit, now));
    let mut parts = vec![
        LivePart::headline(&headline(now, wrong.len())),
        LivePart::whole("problems", wrong::problems(&wrong, visit.links())),
        LivePart::whole("tiles", hour::tiles(&hour::tiles_of(now))),
        queues::part_of(visit.links(), &rows, &queues::no_queue()),
        LivePart::whole("brokers-now", brokers::section(visit.links(), now)),
        LivePart::whole("latest-errors", latest::errors(visit.links(), now)),
        LivePart::whole("by-type", latest::types(visit.links(), now)),
        LivePart::whole("due-next", latest::due(visit.links(), now)),
        LivePart::whole("running-now", latest::running(visit.links(), now)),
    ];
    if !visit.is_bound() {
        parts.extend(by_minute::live(&now.snapshot.minutes, visit.links()));
    }
    parts
}

/// Chooses the queues with problems, then the longest queues; in the order of their names.
fn chosen(mut rows: Vec<QueueRow>) -> Vec<QueueRow> {
    if rows.len() > QUEUES_MAX {
        rows.sort_by_key(|row| {
            let is_bad = row.lacks_actor() || row.is_long_wait();
            std::cmp::Reverse((is_bad, row.state.paused, row.state.depth + row.state.held))
        });
        rows.truncate(QUEUES_MAX);
        rows.sort_by_key(|row| row.state.queue.to_string());
    }
    rows
}

fn headline(now: &SiteSnapshot, wrong: usize) -> Markup {
    let supervisors = things(now.snapshot.supervisors.len() as u64, "supervisor");
    let need = match wrong {
        0 => "Nothing needs you.".to_owned(),
        1 => "1 thing needs you.".to_owned(),
        number => format!("{number} things need you."),
    };
    // Whole milliseconds: this line is sent to each open page when it changes.
    let answers = match now.snapshot.redis_took.as_millis() {
        0 => "under 1 ms".to_owned(),
        millis => format!("{millis} ms"),
    };
    let age = now.snapshot.read.elapsed().as_secs();
    html! {
        (need) " " (supervisors) ", Redis answers in " (answers) "."
        @if age >= AGE_SHOWN_S { " These numbers are " (age) " s old." }
    }
}
