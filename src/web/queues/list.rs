//! The list of queues: its filters, its pages and its rows.

use serde::Deserialize;

use super::super::parts::{
    PageTable, Paged, count, filter_choice, head, page_link, rate, row_button, search, things,
};
use super::super::prelude::*;
use super::{QueueRow, rows};
use crate::proto::pauses::PauseRule;
use crate::rpc::Scope;

const SHOW: [(&str, &str); 4] =
    [("", "any"), ("jobs", "with jobs"), ("paused", "paused"), ("trouble", "in trouble")];

/// The filters of the list, and its page; empty ones are off.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::web) struct QueueFilter {
    /// A part of the name.
    q: String,
    show: String,
    page: String,
}

impl QueueFilter {
    fn takes(&self, row: &QueueRow) -> bool {
        let state = row.state;
        let is_chosen = match self.show.as_str() {
            "jobs" => state.depth + state.held > 0,
            "paused" => state.paused,
            "trouble" => row.lacks_actor() || row.is_long_wait(),
            _ => true,
        };
        is_chosen && (self.q.trim().is_empty() || state.queue.to_string().contains(self.q.trim()))
    }

    fn page<'a>(&self, mut rows: Vec<QueueRow<'a>>) -> (Vec<QueueRow<'a>>, Paged) {
        rows.retain(|row| self.takes(row));
        let paged = Paged::of(&self.page, rows.len());
        (rows.drain(paged.range()).collect(), paged)
    }

    fn none(&self, links: &SiteLinks) -> Markup {
        if self.q.trim().is_empty() && self.show.is_empty() {
            return no_queue();
        }
        html! { "No queue matches. " a href=(links.to("/queues")) { "Clear the filters." } }
    }

    fn address(&self, links: &SiteLinks, page: &str) -> String {
        links.with("/queues", &[("q", self.q.trim()), ("show", &self.show), ("page", page)])
    }
}

pub(in crate::web) async fn list(
    visit: Visit,
    PageQuery(filter): PageQuery<QueueFilter>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let (links, rows) = (visit.links(), rows(&visit, &now));
    let line = headline(&rows, &now.snapshot.pauses);
    let (rows, paged) = filter.page(rows);
    let back = filter.address(&SiteLinks::default(), &filter.page);
    let main = html! {
        (head("Queues", &line, &whole_pauses(&visit, &now.snapshot.pauses, &back)))
        (filters(links, &filter))
        (form(&visit, &rows, &back, &filter.none(links)))
        (paged.line("queue", |page| filter.address(links, page)))
    };
    Ok(visit.page(&now, &WebPage::live("Queues", Nav::Queues, main)))
}

fn filters(links: &SiteLinks, filter: &QueueFilter) -> Markup {
    html! {
        form.filters action=(links.to("/queues")) role="search" aria-label="Filter queues" {
            (search("q", "Name", "Name contains", &filter.q))
            label { "Show " (filter_choice("show", SHOW, &filter.show)) }
            button { "Filter" }
        }
    }
}

/// Returns the table of queues as a form whose buttons pause and resume. `back` is the address to return to,
/// without the prefix; `none` stands in place of rows.
pub(in crate::web) fn form(visit: &Visit, rows: &[QueueRow], back: &str, none: &Markup) -> Markup {
    let table = table(rows, visit.links());
    let content = html! {
        input type="hidden" name="back" value=(back);
        (table.live("queue-rows", &table.rows_or("no-queue", none)))
    };
    visit.form(&visit.links().to("/queues"), &content)
}

fn table<'a>(rows: &'a [QueueRow], links: &'a SiteLinks) -> PageTable<'a, QueueRow<'a>> {
    let of_whole_type = html! { span title="of the whole script type" { "Jobs/s" } };
    PageTable::of(rows, "nopick", "Queues")
        .ids(|row| format!("q-{}", row.state.queue))
        .column("Queue", "m1", |QueueRow { state, .. }| {
            html! {
                (page_link("queues", &state.queue.to_string(), links))
                @if let Some(selector) = &state.selector { " " span.faint { (selector) } }
            }
        })
        .column("State", "mr", QueueRow::sign)
        .column(
            "Depth",
            "num m5",
            |row| html! { (count(row.state.depth)) span.only-n.faint { " waiting" } },
        )
        .column("Held", "num wide", |row| {
            html! {
                @if row.state.held == 0 { span.faint { "0" } } @else { (count(row.state.held)) }
            }
        })
        .column("First has waited", "num m6", |row| {
            html! {
                @if row.state.oldest_wait.is_some() { span.only-n.faint { "first for " } }
                (row.wait())
            }
        })
        .column(of_whole_type, "num wide", |row| {
            html! {
                (row.state.type_throughput_per_s.map_or_else(|| "–".to_owned(), rate))
            }
        })
        .column("Actors", "num wide", |row| html! { (count(row.actors)) })
        .column("Action", "sr num wide", |row| {
            let (name, (word, verb)) = (row.state.queue.to_string(), row.turn());
            html! { @if row.may_operate { (row_button(verb, word, (&name, &name))) } }
        })
}

/// Returns the buttons that pause all queues, and that end what is paused as a whole.
fn whole_pauses(visit: &Visit, pauses: &[PauseRule], back: &str) -> Markup {
    let all = PauseRule::default();
    html! {
        @if visit.may(Scope::Operate) && !visit.is_bound() {
            div.actions {
                form method="post" action=(visit.links().to("/queues")) {
                    (visit.forgery_field())
                    input type="hidden" name="back" value=(back);
                    @for rule in pauses {
                        button name="resume" value=(rule) { "Resume " (rule.words()) }
                    }
                    @if !pauses.contains(&all) { button name="pause" value=(all) { "Pause all queues" } }
                }
                form method="post" action=(visit.links().to("/queues")) {
                    (visit.forgery_field())
                    input type="hidden" name="back" value=(back);
                    input name="pause" required size="16" placeholder="type:bash:*" aria-label="Queues to pause, such as type:bash:*";
                    button { "Pause these" }
                }
            }
        }
    }
}

fn headline(rows: &[QueueRow], pauses: &[PauseRule]) -> Markup {
    let depth: u64 = rows.iter().map(|row| row.state.depth).sum();
    let held: u64 = rows.iter().map(|row| row.state.held).sum();
    let stopped = rows.iter().filter(|row| row.state.paused).count() as u64;
    html! {
        (things(rows.len() as u64, "queue")) " with " (things(depth, "job")) ". "
        (things(held, "job")) " held by limits, " (things(stopped, "queue")) " paused."
        @for rule in pauses { " Paused, also those that come later: " (rule.words()) "." }
    }
}

pub(in crate::web) fn live(visit: &Visit, now: &SiteSnapshot, query: &str) -> Vec<LivePart> {
    let filter: QueueFilter = filters_of(query);
    let rows = rows(visit, now);
    let headline = LivePart::headline(&headline(&rows, &now.snapshot.pauses));
    vec![headline, part_of(visit.links(), &filter.page(rows).0, &filter.none(visit.links()))]
}

pub(in crate::web) fn part_of(links: &SiteLinks, rows: &[QueueRow], none: &Markup) -> LivePart {
    LivePart::rows("queue-rows", table(rows, links).rows_or("no-queue", none))
}

pub(in crate::web) fn no_queue() -> Markup {
    html! { "No queue has jobs, and none is paused." }
}
