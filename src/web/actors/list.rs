//! The list of actors, by type, with filters.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::super::parts::{
    PageTable, Paged, ago, ago_or_dash, bulk, count, elapsed, filter_choice, head, meter, or_any,
    page_link, row_button, things, tick, time_of,
};
use super::super::prelude::*;
use super::{machine_link, reason, state_sign, state_word, turn};
use crate::proto::message::ActorState;
use crate::rpc::Scope;
use crate::store::PresenceOf;

const STATES: [&str; 4] = ["ready", "draining", "holding", "foreign"];
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

pub(in crate::web) struct ActorTable<'a> {
    all: Vec<&'a PresenceOf>,
    paged: Paged,
    /// The sentence without a row.
    none: Markup,
    may_operate: bool,
    /// The address to return to after a change, without the prefix.
    back: String,
}

impl<'a> ActorTable<'a> {
    /// Returns a page of those that it `takes`.
    pub(in crate::web) fn of(
        (now, visit): (&'a SiteSnapshot, &Visit),
        takes: impl Fn(&PresenceOf) -> bool,
        (page, back): (&str, String),
        none: Markup,
    ) -> Self {
        let mut all: Vec<&PresenceOf> = now.snapshot.actors.iter().filter(|of| takes(of)).collect();
        all.sort_by(|a, b| a.actor.script_type.as_str().cmp(b.actor.script_type.as_str()));
        let paged = Paged::of(page, all.len());
        Self { all, paged, none, may_operate: visit.may(Scope::Operate), back }
    }

    fn filtered(now: &'a SiteSnapshot, visit: &Visit, filter: &ActorFilter) -> Self {
        let links = visit.links();
        let none = if filter.is_off() {
            html! { "No actor is live. Start one: " code { "systemctl start hero@osis-default-1" } }
        } else {
            html! { "No actor matches. " a href=(links.to("/actors")) { "Clear the filters." } }
        };
        let back = filter.address(&SiteLinks::default(), &filter.page);
        Self::of((now, visit), |of| filter.takes(of), (&filter.page, back), none)
    }

    pub(in crate::web) fn live(&self, links: &SiteLinks, now: &SiteSnapshot) -> LivePart {
        LivePart::rows("actor-rows", self.rows(&self.columns(links, now), links))
    }

    pub(in crate::web) fn markup(&self, visit: &Visit, now: &SiteSnapshot) -> Markup {
        let table = self.columns(visit.links(), now);
        let rows = self.rows(&table, visit.links());
        drain_form(visit, "actor", &table.live("actor-rows", &rows), &self.back)
    }

    fn columns(
        &self,
        links: &'a SiteLinks,
        now: &'a SiteSnapshot,
    ) -> PageTable<'_, &'a PresenceOf> {
        let at = now.snapshot.at;
        PageTable::of(&self.all[self.paged.range()], "actors", "Live actors by type")
            .ids(|of| format!("a-{}", of.actor))
            .column_if(self.may_operate, "Select", "sr c-pick m0", |of| {
                let name = of.actor.to_string();
                tick("actor", &name, &name)
            })
            .column("Actor", "m1", |of| page_link("actors", &of.actor.to_string(), links))
            .column("State", "mr", |of| state_sign(state_word(of)))
            .column("Reason", "sr wide", |of| html! { span.why { (reason(of)) } })
            .column("Tasks busy", "m5 in", |of| meter(of.presence.running, of.presence.tasks, 56))
            .column("Machine", "wide", |of| machine_link(links, of))
            .column("PID", "num wide faint", |of| html! { (of.presence.pid) })
            .column("Up", "num wide", move |of| ago_or_dash(time_of(&of.presence.started_at), at))
            .column("Heartbeat", "num wide", |of| heartbeat(now, &of.presence.last_heartbeat))
            .column("Action", "sr num m6", |of| {
                let (name, (word, verb)) = (of.actor.to_string(), turn(of));
                let can = self.may_operate && of.presence.state != ActorState::Foreign;
                html! { @if can { (row_button(verb, word, (&name, &name))) } }
            })
    }

    fn rows(
        &self,
        table: &PageTable<'_, &'a PresenceOf>,
        links: &SiteLinks,
    ) -> Vec<(String, Markup)> {
        if self.all.is_empty() {
            return table.rows_or("no-actor", &self.none);
        }
        let mut rows = Vec::new();
        let page = &self.all[self.paged.range()];
        for actors in page.chunk_by(|a, b| a.actor.script_type == b.actor.script_type) {
            let name = actors[0].actor.script_type.as_str();
            // The whole type: this page may have only a part of it.
            let of_type = || self.all.iter().copied().filter(|of| is_of(of, name));
            let (busy, tasks) = busy(of_type());
            let head = html! {
                a href=(links.with("/jobs", &[("type", name)])) { (name) } " "
                span.faint { (things(of_type().count() as u64, "actor")) ", " (busy) " of " (tasks) " tasks busy" }
            };
            rows.push(table.group_row(&format!("type-{name}"), &head));
            rows.extend(actors.iter().map(|of| table.row(of)));
        }
        rows
    }
}

/// Returns a table of actors or machines as a form whose buttons drain and resume. `back` is the address to return to
/// after a change, without the prefix.
pub(in crate::web) fn drain_form(visit: &Visit, noun: &str, table: &Markup, back: &str) -> Markup {
    let things = format!("{noun}s");
    let buttons = html! {
        button name="do" value="drain" { "Drain" }
        button name="do" value="resume" { "Resume" }
    };
    let content = html! {
        input type="hidden" name="back" value=(back);
        (table)
        @if visit.may(Scope::Operate) { (bulk(&things, &buttons)) }
    };
    visit.form(&visit.links().to(&format!("/{things}")), &content)
}

pub(in crate::web) async fn list(
    visit: Visit,
    PageQuery(filter): PageQuery<ActorFilter>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let links = visit.links();
    let table = ActorTable::filtered(&now, &visit, &filter);
    let main = html! {
        p.crumb { a href=(links.to("/machines")) { "Machines" } }
        (head("Actors", &headline(&now), &html! {}))
        (filters(links, &now, &filter))
        (table.markup(&visit, &now))
        (table.paged.line("actor", |page| filter.address(links, page)))
    };
    Ok(visit.page(&now, &WebPage::live("Actors", Nav::Machines, main)))
}

pub(in crate::web) fn live(visit: &Visit, now: &SiteSnapshot, query: &str) -> Vec<LivePart> {
    let filter: ActorFilter = filters_of(query);
    let table = ActorTable::filtered(now, visit, &filter);
    vec![LivePart::headline(&headline(now)), table.live(visit.links(), now)]
}

fn headline(now: &SiteSnapshot) -> Markup {
    let (busy, tasks) = busy(now.snapshot.actors.iter());
    let machines = now.live_machines();
    html! {
        (count(now.snapshot.actors.len() as u64)) " live on " (things(machines as u64, "machine")) ". "
        (busy) " of " (tasks) " tasks busy." (versions(now))
    }
}

pub(in crate::web) fn versions(now: &SiteSnapshot) -> Markup {
    let versions: BTreeSet<&str> =
        now.snapshot.actors.iter().map(|of| of.presence.version.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    html! {
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

fn filters(links: &SiteLinks, now: &SiteSnapshot, filter: &ActorFilter) -> Markup {
    let types = now.snapshot.actors.iter().map(|of| of.actor.script_type.as_str());
    let types: BTreeSet<&str> = types.collect();
    let actors = now.snapshot.actors.iter();
    let hosts: BTreeSet<&str> = actors.map(|of| of.presence.hostname.as_str()).collect();
    html! {
        form.filters method="get" action=(links.to("/actors")) {
            label { "Type " (filter_choice("type", or_any("any", types), &filter.script_type)) }
            label { "Machine " (filter_choice("host", or_any("any", hosts), &filter.host)) }
            label { "State " (filter_choice("state", or_any("any", STATES), &filter.state)) }
            button.plain { "Filter" }
            @if !filter.is_off() { a href=(links.to("/actors")) { "Clear the filters" } }
        }
    }
}

fn is_of(of: &PresenceOf, script_type: &str) -> bool {
    of.actor.script_type.as_str() == script_type
}

/// Returns the age of a heartbeat if it is late, so that a healthy row does not change each second.
pub(in crate::web) fn heartbeat(now: &SiteSnapshot, at: &str) -> Markup {
    match time_of(at) {
        Some(at) if elapsed(at, now.snapshot.at).as_secs() < RECENT_S => {
            html! { span.faint { "now" } }
        }
        Some(at) => ago(at, now.snapshot.at),
        None => html! { "–" },
    }
}
