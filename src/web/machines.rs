//! Machines: the list by a label, and one machine with its actors and what waits for it; drain, resume, forget.

mod list;

use axum::extract::Path;
use futures_util::{StreamExt, stream};
use serde_json::json;

pub(super) use list::{list, live};

use super::actors::{ActorTable, heartbeat, state_sign};
use super::parts::{bar, count, fact_list, head, meter, things, was_at};
use super::prelude::*;
use super::web_error::sentence;
use crate::client::{MachineActorDocument, MachineDocument};
use crate::proto::labels::{LabelValue, label};
use crate::proto::message::ActorState;
use crate::proto::units::readable_size;
use crate::rpc::results::{ForgottenMachine, MachineChange};
use crate::rpc::{Bounds, Scope};
use crate::store::PresenceOf;
use crate::view::{ClaimedQueue, MachineWaits};

/// The machines that are changed at once.
const AT_ONCE: usize = 8;
/// The sentences about several machines that one answer has.
const NOTES_MAX: usize = 3;
/// The queues of a machine that its page names.
const QUEUES_MAX: usize = 20;

/// Returns true if the visitor may drain, resume and forget a machine.
fn may_change(visit: &Visit, now: &SiteSnapshot, of: &MachineDocument) -> bool {
    let Bounds { callers, contexts, .. } = &visit.caller.bounds;
    let has_all_callers = callers.is_none() && contexts.is_none();
    visit.may(Scope::Operate) && has_all_callers && !now.beyond.contains(&of.machine)
}

/// Returns why a machine claims no jobs, by one of its actors.
fn holding<'a>(now: &'a SiteSnapshot, of: &MachineDocument) -> Option<&'a str> {
    let mut actors = now.snapshot.actors.iter().filter(|actor| is_on(actor, &of.machine));
    actors.find_map(|actor| actor.presence.holding.as_deref())
}

fn is_on(actor: &PresenceOf, machine: &str) -> bool {
    label(&actor.presence.labels, "machine").is_some_and(|of| of.as_str() == machine)
}

/// Returns the state of a machine in a word: the state of its actors, or holding.
fn state_word(now: &SiteSnapshot, of: &MachineDocument) -> String {
    match of.state() {
        state if state == ActorState::Ready.as_str() && holding(now, of).is_some() => {
            "holding".to_owned()
        }
        state => state,
    }
}

/// Returns the verbs that a machine takes, with their words: each if it changes an actor.
fn verbs(of: &MachineDocument) -> Vec<(&'static str, &'static str)> {
    let has = |drains: bool| {
        let can = |state| state != ActorState::Foreign && (state == ActorState::Draining) == drains;
        of.actors.iter().filter_map(|of| of.state).any(can)
    };
    let all = [(has(false), "drain", "Drain"), (has(true), "resume", "Resume")];
    all.into_iter().filter(|(is, ..)| *is).map(|(_, verb, word)| (verb, word)).collect()
}

/// Returns the load of a machine; with more than its cores do it is a warning.
fn load(of: &MachineDocument) -> Markup {
    let Some(load) = of.load else { return html! { "–" } };
    let cores = label(&of.labels, "cores").and_then(LabelValue::number);
    let title = cores.map(|cores| format!("of {cores} cores"));
    let is_high = cores.is_some_and(|cores| load > cores);
    html! { span.warn-t[is_high] title=[title] { (format!("{load:.2}")) } }
}

/// Returns the waiting jobs of a machine: those for it alone, and those that others claim too.
fn waits(of: MachineWaits) -> Markup {
    let MachineWaits { alone, shared } = of;
    html! {
        @if alone + shared == 0 { span.faint { "0" } }
        @if alone > 0 { (count(alone)) " for it alone" }
        @if alone > 0 && shared > 0 { ", " }
        @if shared > 0 { span.dim { (count(shared)) " shared" } }
    }
}

/// Finds a machine by its name, else by its host name if no other has it.
fn find(now: &SiteSnapshot, name: &str) -> PageResult<MachineDocument> {
    let mut all = now.machines();
    if let Some(place) = all.iter().position(|of| of.machine == name) {
        return Ok(all.swap_remove(place));
    }
    all.retain(|of| of.host == name);
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), _) => Err(PageError::not_found(format!(
            "Several machines have the host name {name}. The list of machines leads to each."
        ))),
        (None, _) => {
            Err(PageError::not_found(format!("No machine {name}: no actor was seen on it lately.")))
        }
    }
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let of = find(&now, &name)?;
    let links = visit.links();
    let jobs = super::jobs::of_machine(&visit, &now, &of).await?;
    let all = links.with("/actors", &[("host", &of.host)]);
    let main = html! {
        p.crumb { a href=(links.to("/machines")) { "Machines" } }
        (head(&of.host, &line(&now, &of), &actions(&visit, &now, &of)))
        (facts(links, &now, &of))
        section {
            (bar("Actors", "", Some(("All of this host name", &all))))
            (table(&visit, &now, &of).markup(&visit, &now))
        }
        (jobs)
    };
    Ok(visit.page(&now, &WebPage::live(of.host.as_str(), Nav::Machines, main)))
}

fn table<'a>(visit: &Visit, now: &'a SiteSnapshot, of: &MachineDocument) -> ActorTable<'a> {
    let own = |actor: &PresenceOf| is_on(actor, &of.machine);
    let back = page_of("machines", &of.machine);
    let none = html! { "No actor of it is live. Jobs that only it may run wait for its return." };
    ActorTable::of((now, visit), own, ("", back), none)
}

fn line(now: &SiteSnapshot, of: &MachineDocument) -> Markup {
    html! {
        (state_sign(&state_word(now, of)))
        @match holding(now, of) {
            Some(reason) => { ": " (reason) "." },
            None if of.live => {
                ". It runs " (things(of.running as u64, "job")) "; it may run " (of.tasks) " at once."
            },
            None => { ": an actor was seen on it " (was_at(&of.seen_at, now.snapshot.at)) "." },
        }
    }
}

pub(super) fn live_one(visit: &Visit, now: &SiteSnapshot, name: &str) -> Vec<LivePart> {
    let Ok(of) = find(now, name) else {
        let gone = html! { p #headline .err { "It was forgotten." } };
        return vec![LivePart::whole("headline", gone)];
    };
    let links = visit.links();
    vec![
        LivePart::headline(&line(now, &of)),
        LivePart::whole("machine-actions", buttons(visit, now, &of)),
        LivePart::whole("facts", facts(links, now, &of)),
        table(visit, now, &of).live(links, now),
    ]
}

fn facts(links: &SiteLinks, now: &SiteSnapshot, of: &MachineDocument) -> Markup {
    let absent: Vec<&MachineActorDocument> = of.actors.iter().filter(|of| !of.live).collect();
    let claimed = now.snapshot.claimed_queues(&now.seen);
    let terms = html! {
        dt { "Tasks" }
        dd { @if of.live { (meter(of.running, of.tasks, 72)) } @else { "–" } }
        dt { "Waiting" } dd { (queues(links, &claimed, &of.machine)) }
        dt { "Load" } dd { (load(of)) }
        dt { "Free" } dd { (free(of)) }
        dt { "Seen" } dd { (heartbeat(now, &of.seen_at)) }
        dt { "Machine" } dd.mono { (of.machine) }
        dt { "Labels" }
        dd.chips {
            @for (name, value) in &of.labels { span.chip { (name) " = " (value) } }
        }
        dt { "Jobs" }
        dd { a href=(links.with("/jobs", &[("host", &of.host)])) { "All that ran on it last" } }
        @if !absent.is_empty() {
            dt { "Absent" }
            dd {
                @for of in absent {
                    span.nw { (of.actor) ", seen " (was_at(&of.seen_at, now.snapshot.at)) } " "
                }
            }
        }
    };
    fact_list(None, &terms)
}

fn free(of: &MachineDocument) -> String {
    of.memory_available.map_or_else(|| "–".to_owned(), readable_size)
}

/// Returns the queues with jobs that actors of a machine claim, first the queues that no other machine claims.
fn queues(links: &SiteLinks, claimed: &[ClaimedQueue], machine: &str) -> Markup {
    let mut own: Vec<&ClaimedQueue> =
        claimed.iter().filter(|of| of.machines.contains(machine)).collect();
    own.sort_by_key(|of| of.machines.len() > 1);
    html! {
        @if own.is_empty() { "No job waits for it." }
        @for of in own.iter().take(QUEUES_MAX) {
            @let name = of.state.queue.to_string();
            span.nw {
                (things(of.state.depth, "job")) " in " a href=(links.page("queues", &name)) { (name) }
                @if of.machines.len() == 1 { " for it alone" } @else { " shared" }
            }
            " "
        }
        @if own.len() > QUEUES_MAX { "and " (own.len() - QUEUES_MAX) " more queues" }
    }
}

fn actions(visit: &Visit, now: &SiteSnapshot, of: &MachineDocument) -> Markup {
    html! {
        @if may_change(visit, now, of) {
            div.actions {
                (visit.form(&visit.links().page("machines", &of.machine), &buttons(visit, now, of)))
            }
        }
    }
}

fn buttons(visit: &Visit, now: &SiteSnapshot, of: &MachineDocument) -> Markup {
    html! {
        span #machine-actions .actions {
            @if may_change(visit, now, of) {
                @for (verb, word) in verbs(of) { button name="do" value=(verb) { (word) } }
                @if !of.live {
                    a.btn.danger href={ (visit.links().page("machines", &of.machine)) "/forget" } data-ask { "Forget…" }
                }
            }
        }
    }
}

pub(super) async fn ask_forget(visit: Visit, Path(name): Path<String>) -> PageResult {
    visit.needs(Scope::Operate, "forget a machine")?;
    let now = visit.snapshot().await?;
    let of = find(&now, &name)?;
    let title = format!("Forget {}?", of.host);
    let text = "Jobs for every machine skip it from then on, until an actor is live on it again. Jobs that wait \
                for it stay.";
    let address = visit.links().page("machines", &of.machine);
    visit.ask_before(Nav::Machines, address, ("forget", "Forget the machine"), (title, text)).await
}

pub(super) async fn change(visit: Visit, Path(name): Path<String>, fields: Fields) -> PageResult {
    let verb = fields.get("do");
    let message = perform(&visit, verb, &name).await?;
    let back = if verb == "forget" { "/machines".to_owned() } else { page_of("machines", &name) };
    Ok(visit.done(&back, &message))
}

/// Drains or resumes the machines that were selected, or the one whose button was pressed.
pub(super) async fn change_many(visit: Visit, fields: Fields) -> PageResult {
    let back = fields.back(visit.links(), "/machines");
    let (verb, names) = fields.chosen(&["drain", "resume"], "machine")?;
    if let [one] = names.as_slice() {
        let message = perform(&visit, verb, one).await?;
        return Ok(visit.done(back, &message));
    }
    let visit_of = &visit;
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let changes = names.into_iter().map(|name| async move { perform(visit_of, verb, &name).await });
    let results: Vec<_> = stream::iter(changes).buffered(AT_ONCE).collect().await;
    let done = results.iter().filter(|result| result.is_ok()).count();
    let message = format!("Ordered {} to {verb}.", things(done as u64, "machine"));
    let failed: Vec<String> =
        results.into_iter().filter_map(|result| Some(result.err()?.text)).collect();
    Ok(visit.done(back, &noted(message, &failed, " failed")))
}

async fn perform(visit: &Visit, verb: &str, name: &str) -> PageResult<String> {
    visit.needs(Scope::Operate, &format!("{verb} a machine"))?;
    let params = json!({ "machine": name });
    Ok(match verb {
        "drain" => {
            let change: MachineChange = visit.call_for("machine.drain", params).await?;
            after(change.drained() + ".", &change)
        }
        "resume" => {
            let change: MachineChange = visit.call_for("machine.resume", params).await?;
            after(format!("{} claims jobs again.", change.host), &change)
        }
        "forget" => {
            let done: ForgottenMachine = visit.call_for("machine.forget", params).await?;
            done.forgotten() + "."
        }
        _ => return Err(PageError::wrong("The form names no change of a machine.")),
    })
}

fn after(message: String, change: &MachineChange) -> String {
    let notes: Vec<String> = change.notes().iter().map(|note| sentence(note)).collect();
    noted(message, &notes, "")
}

/// Returns a message with the first notes behind it, and the number of the others.
fn noted(mut message: String, notes: &[String], what_of_others: &str) -> String {
    for note in notes.iter().take(NOTES_MAX) {
        message = format!("{message} {note}");
    }
    match notes.len().saturating_sub(NOTES_MAX) {
        0 => message,
        more => format!("{message} And {more} more{what_of_others}."),
    }
}
