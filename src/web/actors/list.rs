//! The list of actors, by type, with filters.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::super::layout::{Nav, WebPage, head};
use super::super::links::SiteLinks;
use super::super::live::{LivePart, filters_of};
use super::super::page_query::PageQuery;
use super::super::parts::{
    Paged, ago, bulk, columns, count, elapsed, empty_row, filter_choice, live_table, meter, or_any,
    pick, things, time_of,
};
use super::super::snapshot::SiteSnapshot;
use super::super::visit::Visit;
use super::super::visitor::Visitor;
use super::super::web_error::PageResult;
use super::{reason, state_sign, turn};
use crate::proto::message::ActorState;
use crate::rpc::Scope;
use crate::store::PresenceOf;

/// A heartbeat that is younger needs no number.
const RECENT_S: u64 = 10;

/// The filters of the list; empty ones are off.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::web) struct ActorFilter {
    #[serde(rename = "type")]
    script_type: String,
    host: String,
    state: String,
    page: String,
}

impl ActorFilter {
    fn address(&self, links: &SiteLinks, page: &str) -> String {
        let (of_type, host) = (("type", self.script_type.as_str()), ("host", self.host.as_str()));
        links.with("/actors", &[of_type, host, ("state", &self.state), ("page", page)])
    }

    fn takes(&self, of: &PresenceOf) -> bool {
        let is = |wanted: &str, own: &str| wanted.is_empty() || wanted == own;
        is(&self.script_type, of.actor.script_type.as_str())
            && is(&self.host, &of.presence.hostname)
            && is(&self.state, state_word(of))
    }

    fn is_off(&self) -> bool {
        self.script_type.is_empty() && self.host.is_empty() && self.state.is_empty()
    }
}

fn state_word(of: &PresenceOf) -> &'static str {
    match (of.presence.state, &of.presence.holding) {
        (ActorState::Draining, _) => "draining",
        (_, Some(_)) => "holding",
        (state, None) => state.as_str(),
    }
}

/// Shows the actors.
pub(in crate::web) async fn list(
    visit: Visit,
    PageQuery(filter): PageQuery<ActorFilter>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let links = visit.links();
    let main = html! {
        (head("Actors", &headline(&now), &html! {}))
        (machines(links, &now))
        (filters(links, &now, &filter))
        (table(links, &visit, &now, &filter))
        (chosen(&now, &filter).1.line("actor", |page| filter.address(links, page)))
    };
    Ok(visit.page(&now, &WebPage::live("Actors", Nav::Actors, main)))
}

/// Returns the live parts of the list.
pub(in crate::web) fn live(visit: &Visit, now: &SiteSnapshot, query: &str) -> Vec<LivePart> {
    let filter: ActorFilter = filters_of(query);
    let may_operate = visit.may(Scope::Operate);
    vec![
        LivePart::headline(&headline(now)),
        LivePart::whole("machines", machines(visit.links(), now)),
        LivePart::rows("actor-rows", rows(visit.links(), now, &filter, may_operate)),
    ]
}

fn headline(now: &SiteSnapshot) -> Markup {
    let (busy, tasks) = busy(now.snapshot.actors.iter());
    let machines = by_machine(now).len();
    let mut versions: Vec<&str> =
        now.snapshot.actors.iter().map(|of| of.presence.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    html! {
        (count(now.snapshot.actors.len() as u64)) " live on " (things(machines as u64, "machine")) ". "
        (busy) " of " (tasks) " tasks busy."
        @match versions.as_slice() {
            [] => {},
            [one] => { " Version " (one) " on all." },
            several => { " Versions " (several.join(", ")) "." },
        }
    }
}

fn busy<'a>(actors: impl Iterator<Item = &'a PresenceOf>) -> (usize, usize) {
    actors.fold((0, 0), |(busy, tasks), of| (busy + of.presence.running, tasks + of.presence.tasks))
}

fn by_machine(now: &SiteSnapshot) -> BTreeMap<&str, (usize, usize)> {
    let mut machines: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for of in &now.snapshot.actors {
        let (busy, tasks) = machines.entry(of.presence.hostname.as_str()).or_default();
        *busy += of.presence.running;
        *tasks += of.presence.tasks;
    }
    machines
}

/// The maximum number of machines in the line above the list.
const MACHINES_MAX: usize = 24;

fn machines(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    html! {
        ul #machines .hosts aria-label="Machines" {
            @for (host, (busy, tasks)) in by_machine(now).into_iter().take(MACHINES_MAX) {
                li {
                    a href=(links.with("/actors", &[("host", host)])) { (host) } " "
                    (meter(busy, tasks, 72))
                }
            }
        }
    }
}

fn filters(links: &SiteLinks, now: &SiteSnapshot, filter: &ActorFilter) -> Markup {
    let mut types: Vec<&str> =
        now.snapshot.actors.iter().map(|of| of.actor.script_type.as_str()).collect();
    types.dedup();
    let hosts: Vec<&str> = by_machine(now).into_keys().collect();
    let choice = |label: &str, name: &str, values: &[&str], chosen: &str| {
        html! {
            label { (label) " " (filter_choice(name, or_any("any", values.iter().copied()), chosen)) }
        }
    };
    html! {
        form.filters method="get" action=(links.to("/actors")) {
            (choice("Type", "type", &types, &filter.script_type))
            (choice("Machine", "host", &hosts, &filter.host))
            (choice("State", "state", &["ready", "draining", "holding", "foreign"], &filter.state))
            button.plain { "Filter" }
            @if !filter.is_off() { a href=(links.to("/actors")) { "Clear the filters" } }
        }
    }
}

fn table(links: &SiteLinks, visitor: &Visitor, now: &SiteSnapshot, filter: &ActorFilter) -> Markup {
    let may_operate = visitor.may(Scope::Operate);
    let rows = rows(links, now, filter, may_operate);
    let heads = html! {
        @if may_operate { (columns(&[("sr c-pick", "Select")])) }
        (columns(&[
            ("", "Actor"), ("", "State"), ("sr", "Reason"), ("", "Tasks busy"), ("", "Machine"), ("num", "PID"),
            ("num", "Up"), ("num", "Heartbeat"), ("sr", "Action"),
        ]))
    };
    html! {
        form method="post" action=(links.to("/actors")) {
            (visitor.forgery_field())
            (live_table("actors", "Live actors by type", &heads, (Some("actor-rows"), &rows)))
            @if may_operate {
                (bulk("actors", &html! {
                    button name="do" value="drain" { "Drain" }
                    button name="do" value="resume" { "Resume" }
                }))
            }
        }
    }
}

fn is_of(of: &PresenceOf, script_type: &str) -> bool {
    of.actor.script_type.as_str() == script_type
}

/// Returns the actors that the filters take, by type, and the page of them.
fn chosen<'a>(now: &'a SiteSnapshot, filter: &ActorFilter) -> (Vec<&'a PresenceOf>, Paged) {
    let mut all: Vec<&PresenceOf> =
        now.snapshot.actors.iter().filter(|of| filter.takes(of)).collect();
    all.sort_by(|a, b| a.actor.script_type.as_str().cmp(b.actor.script_type.as_str()));
    let paged = Paged::of(&filter.page, all.len());
    (all, paged)
}

fn rows(
    links: &SiteLinks,
    now: &SiteSnapshot,
    filter: &ActorFilter,
    may_operate: bool,
) -> Vec<(String, Markup)> {
    let (all, paged) = chosen(now, filter);
    let mut rows = Vec::new();
    if all.is_empty() {
        let text = if filter.is_off() {
            html! { "No actor is live. Start one: " code { "systemctl start hero@osis-default-1" } }
        } else {
            html! { "No actor matches. " a href=(links.to("/actors")) { "Clear the filters." } }
        };
        rows.push(empty_row("no-actor", 10, &text));
    }
    for actors in all[paged.range()].chunk_by(|a, b| a.actor.script_type == b.actor.script_type) {
        let Some(name) = actors.first().map(|of| of.actor.script_type.as_str()) else { continue };
        // The whole type: this page may have only a part of it.
        let (busy, tasks) = busy(all.iter().copied().filter(|of| is_of(of, name)));
        let number = things(all.iter().filter(|of| is_of(of, name)).count() as u64, "actor");
        let id = format!("type-{name}");
        let span = if may_operate { "10" } else { "9" };
        let head = html! {
            tr.grp role="row" id=(id) {
                th role="rowheader" colspan=(span) {
                    a href=(links.with("/jobs", &[("type", name)])) { (name) } " "
                    span.faint { (number) ", " (busy) " of " (tasks) " tasks busy" }
                }
            }
        };
        rows.push((id, head));
        rows.extend(actors.iter().map(|of| row(links, now, of, may_operate)));
    }
    rows
}

fn row(
    links: &SiteLinks,
    now: &SiteSnapshot,
    of: &PresenceOf,
    may_operate: bool,
) -> (String, Markup) {
    let (name, presence) = (of.actor.to_string(), &of.presence);
    let id = format!("a-{name}");
    let (word, verb) = turn(of);
    let markup = html! {
        tr role="row" id=(id) {
            @if may_operate { (pick("actor", &name, &name)) }
            td.m1 role="cell" { a.id href=(links.actor(&name)) { (name) } }
            td.mr role="cell" { (state_sign(of)) }
            td.wide role="cell" { span.why { (reason(of)) } }
            td.m5.in role="cell" { (meter(presence.running, presence.tasks, 56)) }
            td.wide role="cell" {
                a href=(links.with("/actors", &[("host", &presence.hostname)])) { (presence.hostname) }
            }
            td.num.wide.faint role="cell" { (presence.pid) }
            td.num.wide role="cell" {
                @if let Some(at) = time_of(&presence.started_at) { (ago(at, now.snapshot.at)) } @else { "–" }
            }
            td.num.wide role="cell" { (heartbeat(now, of)) }
            td.num.m6 role="cell" {
                @if may_operate && presence.state != ActorState::Foreign {
                    button.plain id={ (verb) "-" (name) } name=(verb) value=(name) { (word) span.sr { " " (name) } }
                }
            }
        }
    };
    (id, markup)
}

/// Returns the age of the heartbeat if it is late, so that a healthy row does not change each second.
fn heartbeat(now: &SiteSnapshot, of: &PresenceOf) -> Markup {
    match of.presence.last_heartbeat.parse() {
        Ok(at) if elapsed(at, now.snapshot.at).as_secs() < RECENT_S => {
            html! { span.faint { "now" } }
        }
        Ok(at) => ago(at, now.snapshot.at),
        Err(_) => html! { "–" },
    }
}
