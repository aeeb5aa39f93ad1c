//! The list of machines, in groups by a label, with filters.

mod groups;

use std::collections::{BTreeMap, BTreeSet};

use self::groups::{MachineGroup, MachinesQuery, grouped, labels_to_group_by};
use super::super::actors::{ActorTable, drain_form, heartbeat, state_sign, versions};
use super::super::parts::{
    PageTable, Paged, bar, count, filter_choice, head, meter, or_any, row_button, things, tick,
};
use super::super::prelude::*;
use super::{free, load, may_change, state_word, verbs, waits};
use crate::client::{MachineDocument, machines_of};
use crate::proto::labels::{GIVEN_LABELS, label};
use crate::proto::target::ActorId;
use crate::rpc::Scope;
use crate::store::PresenceOf;
use crate::view::MachineWaits;

/// The actors of a machine that its row names.
const ACTORS_MAX: usize = 2;
const STATES: [&str; 4] = ["ready", "draining", "holding", "absent"];
struct ShownMachines<'a> {
    now: &'a SiteSnapshot,
    filter: &'a MachinesQuery,
    /// All of them, before the filters.
    all: Vec<MachineDocument>,
    /// The label that groups.
    by: Option<String>,
    /// The machines of the page by their groups.
    groups: Vec<MachineGroup>,
    paged: Paged,
    /// Why the expression cannot be read.
    mistake: Option<String>,
    waits: BTreeMap<String, MachineWaits>,
}

impl<'a> ShownMachines<'a> {
    fn of(now: &'a SiteSnapshot, filter: &'a MachinesQuery) -> Self {
        let all = now.machines();
        let (selector, mistake) = match filter.expression() {
            Ok(selector) => (selector, None),
            Err(reason) => (None, Some(reason)),
        };
        let is_chosen = |actor: &ActorId, labels: &_| {
            (filter.script_type.is_empty() || actor.script_type.as_str() == filter.script_type)
                && selector.as_ref().is_none_or(|of| of.matches(labels))
        };
        let is_narrow = !filter.script_type.is_empty() || selector.is_some();
        let matching = if is_narrow {
            machines_of(&now.seen, &now.snapshot.actors, is_chosen)
        } else {
            Vec::new()
        };
        let matching: BTreeSet<&str> = matching.iter().map(|of| of.machine.as_str()).collect();
        let takes = |of: &&MachineDocument| {
            let is_of_state = || {
                let state = state_word(now, of);
                state == filter.state || state.strip_prefix("in part ") == Some(&filter.state)
            };
            (!is_narrow || matching.contains(of.machine.as_str()))
                && (filter.state.is_empty() || is_of_state())
        };
        let shown: Vec<MachineDocument> = match mistake {
            Some(_) => Vec::new(),
            None => all.iter().filter(takes).cloned().collect(),
        };
        let (by, paged) = (groups::chosen(&all, &filter.by), Paged::of(&filter.page, shown.len()));
        let groups = grouped(shown, by.as_deref(), paged.range());
        let claimed = now.snapshot.claimed_queues(&now.seen);
        let waits = MachineWaits::of_machines(&claimed).into_iter();
        let waits = waits.map(|(name, of)| (name.to_owned(), of)).collect();
        Self { now, filter, all, by, groups, paged, mistake, waits }
    }

    fn headline(&self, links: &SiteLinks) -> Markup {
        let absent = self.all.iter().filter(|of| !of.live).count();
        let live = self.all.len() - absent;
        let actors = self.now.snapshot.actors.len() as u64;
        let busy: usize = self.all.iter().map(|of| of.running).sum();
        let tasks: usize = self.all.iter().map(|of| of.tasks).sum();
        html! {
            (things(live as u64, "machine")) " live with "
            a href=(links.to("/actors")) { (things(actors, "actor")) }
            @if absent > 0 { ", " (count(absent as u64)) " absent" } ". "
            (busy) " of " (tasks) " tasks busy." (versions(self.now))
        }
    }

    fn filters(&self, links: &SiteLinks) -> Markup {
        let filter = self.filter;
        let types: BTreeSet<&str> =
            self.now.snapshot.actors.iter().map(|of| of.actor.script_type.as_str()).collect();
        let by = self.by.as_deref().unwrap_or(groups::NOTHING);
        let mut labels: Vec<(&str, &str)> =
            labels_to_group_by(&self.all).into_iter().map(|name| (name, name)).collect();
        labels.push((groups::NOTHING, "nothing"));
        html! {
            form.filters method="get" action=(links.to("/machines")) role="search" aria-label="Filter machines" {
                label { "By " (filter_choice("by", labels, by)) }
                label { "Type " (filter_choice("type", or_any("any", types), &filter.script_type)) }
                label { "State " (filter_choice("state", or_any("any", STATES), &filter.state)) }
                label.grow {
                    span.sr { "Labels match" }
                    input.w type="search" name="where" value=(filter.selector) aria-describedby="where-hint"
                        aria-invalid=[self.mistake.as_ref().map(|_| "true")] placeholder="Labels match, as role = web and release >= 12";
                }
                button { "Filter" }
                @if !filter.is_off() {
                    a href=(links.with("/machines", &[("by", &filter.by)])) { "Clear the filters" }
                }
            }
            p #where-hint {
                @if let Some(mistake) = &self.mistake { span.err { "Cannot read the labels: " (mistake) "." } }
            }
        }
    }

    fn none(&self, links: &SiteLinks) -> Markup {
        html! {
            @if self.filter.is_off() {
                "No machine has, or had lately, an actor. Start one: " code { "systemctl start hero@osis-default-1" }
            } @else {
                "No machine matches. " a href=(links.with("/machines", &[("by", &self.filter.by)])) { "Clear the filters." }
            }
        }
    }

    fn form(&self, visit: &Visit) -> Markup {
        let back = self.filter.address(&SiteLinks::default(), &self.filter.page);
        let table = self.table(visit);
        let rows = self.rows(&table, visit.links());
        drain_form(visit, "machine", &table.live("machine-rows", &rows), &back)
    }

    fn rows(&self, table: &PageTable<MachineDocument>, links: &SiteLinks) -> Vec<(String, Markup)> {
        let mut rows = Vec::new();
        for group in &self.groups {
            if let Some(by) = &self.by {
                let id = format!("g-{}", group.value.as_deref().unwrap_or_default());
                rows.push(table.group_row(&id, &group.head(by, self.filter, links)));
            }
            rows.extend(group.shown.iter().map(|of| table.row(of)));
        }
        if rows.is_empty() { table.rows_or("no-machine", &self.none(links)) } else { rows }
    }

    /// Returns the columns; the rows are by group.
    fn table<'t>(&'t self, visit: &'t Visit) -> PageTable<'t, MachineDocument> {
        let (links, may_operate) = (visit.links(), visit.may(Scope::Operate));
        let may = |of: &MachineDocument| may_change(visit, self.now, of);
        let has_twin = |host: &str| self.all.iter().filter(|other| other.host == host).count() > 1;
        PageTable::<MachineDocument>::of(&[], "machines", "Machines by a label")
            .ids(|of| format!("m-{}", of.machine))
            .column_if(may_operate, "Select", "sr c-pick m0", move |of| html! {
                @if may(of) && of.live { (tick("machine", &of.machine, &of.host)) }
            })
            .column("Machine", "m1 cut c-id", move |of| html! {
                a.id href=(links.page("machines", &of.machine)) title=(of.host) { (of.host) }
                @if has_twin(&of.host) { " " span.faint { (of.machine) } }
            })
            .column("State", "mr", |of| state_sign(&state_word(self.now, of)))
            .column("Tasks busy", "m4 in", |of| html! {
                @if of.live { (meter(of.running, of.tasks, 56)) } @else { span.faint { "–" } }
            })
            .column("Waiting", "m5", |of| html! {
                span.only-n.faint { "waiting: " }
                (waits(self.waits.get(&of.machine).copied().unwrap_or_default()))
            })
            .column("Actors", "wide cut", move |of| actors(links, of))
            .column("Labels", "xl wide cut dim", |of| html! {
                span title=(labels_text(of, |_| true)) { (labels_text(of, |label| self.is_shown(label))) }
            })
            .column("Load", "num wide", load)
            .column("Free", "num wide", |of| html! { (free(of)) })
            .column("Seen", "num wide", |of| heartbeat(self.now, &of.seen_at))
            .column("Action", "sr num m6", move |of| html! {
                @if may(of) { (row_actions(links, of)) }
            })
    }

    /// Returns true for labels that tell machines of a group apart.
    fn is_shown(&self, label: &str) -> bool {
        !["host", "machine", "memory", "kernel"].contains(&label)
            && self.by.as_deref() != Some(label)
    }
}

fn row_actions(links: &SiteLinks, of: &MachineDocument) -> Markup {
    html! {
        @for (verb, word) in verbs(of) { (row_button(verb, word, (&of.machine, &of.host))) }
        @if !of.live {
            a.dim href={ (links.page("machines", &of.machine)) "/forget" } data-ask { "Forget…" span.sr { " " (of.host) } }
        }
    }
}

/// Returns labels of a machine as text, first the configured ones.
fn labels_text(of: &MachineDocument, shows: impl Fn(&str) -> bool) -> String {
    let mut labels: Vec<_> = of.labels.iter().filter(|(name, _)| shows(name.as_str())).collect();
    labels.sort_by_key(|(name, _)| GIVEN_LABELS.contains(&name.as_str()));
    labels.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

fn actors(links: &SiteLinks, of: &MachineDocument) -> Markup {
    let more = of.actors.len().saturating_sub(ACTORS_MAX);
    html! {
        @for actor in of.actors.iter().take(ACTORS_MAX) {
            @if actor.live { a.id href=(links.page("actors", &actor.actor)) { (actor.actor) } }
            @else { span.mono.faint { (actor.actor) } }
            " "
        }
        @if more > 0 { a href=(links.page("machines", &of.machine)) { "and " (more) " more" } }
    }
}

fn is_nowhere(of: &PresenceOf) -> bool {
    label(&of.presence.labels, "machine").is_none()
}

/// Returns the table of actors that are on no machine; `None` if there are none.
fn elsewhere<'a>(visit: &Visit, list: &ShownMachines<'a>) -> Option<ActorTable<'a>> {
    let now = list.now;
    let is_any = list.filter.is_off() && now.snapshot.actors.iter().any(is_nowhere);
    let back = list.filter.address(&SiteLinks::default(), "");
    is_any.then(|| ActorTable::of((now, visit), is_nowhere, ("", back), html! {}))
}

pub(in crate::web) async fn list(
    visit: Visit,
    PageQuery(filter): PageQuery<MachinesQuery>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let (links, shown) = (visit.links(), ShownMachines::of(&now, &filter));
    let main = html! {
        (head("Machines", &shown.headline(links), &html! {}))
        (shown.filters(links))
        (shown.form(&visit))
        (shown.paged.line("machine", |page| filter.address(links, page)))
        @if let Some(table) = elsewhere(&visit, &shown) {
            section.gap {
                (bar("Actors without a machine", "of other programs and of older versions", None))
                (table.markup(&visit, &now))
            }
        }
    };
    Ok(visit.page(&now, &WebPage::live("Machines", Nav::Machines, main)))
}

pub(in crate::web) fn live(visit: &Visit, now: &SiteSnapshot, query: &str) -> Vec<LivePart> {
    let filter: MachinesQuery = filters_of(query);
    let shown = ShownMachines::of(now, &filter);
    let rows = LivePart::rows("machine-rows", shown.rows(&shown.table(visit), visit.links()));
    let elsewhere = elsewhere(visit, &shown).map(|table| table.live(visit.links(), now));
    [LivePart::headline(&shown.headline(visit.links())), rows]
        .into_iter()
        .chain(elsewhere)
        .collect()
}
