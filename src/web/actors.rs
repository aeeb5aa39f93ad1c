//! Actors: the list by type, and one actor; drain, resume, stop.

mod list;

use axum::extract::Path;
use serde_json::json;

pub(super) use list::{ActorTable, drain_form, heartbeat, list, live, versions};

use super::parts::{fact_list, head, meter, sign, things, time_of, was};
use super::prelude::*;
use crate::proto::labels::label;
use crate::proto::message::ActorState;
use crate::proto::target::Priority;
use crate::rpc::Scope;
use crate::store::PresenceOf;

fn state_word(of: &PresenceOf) -> &'static str {
    match (of.presence.state, &of.presence.holding) {
        (ActorState::Draining, _) => "draining",
        (_, Some(_)) => "holding",
        (state, None) => state.as_str(),
    }
}

/// Returns the state of an actor or of a machine with its glyph. Normal is grey.
pub(super) fn state_sign(word: &str) -> Markup {
    match word {
        "absent" | "holding" | "in part absent" => sign("warn", "warn", word),
        "draining" | "in part draining" => sign("still", "pause", word),
        word => html! { span.faint { (word) } },
    }
}

/// Returns the word and the verb that drains an actor, or resumes it.
fn turn(of: &PresenceOf) -> (&'static str, &'static str) {
    match of.presence.state {
        ActorState::Draining => ("Resume", "resume"),
        _ => ("Drain", "drain"),
    }
}

fn reason(of: &PresenceOf) -> String {
    match (of.presence.state, &of.presence.holding) {
        (ActorState::Draining, _) if of.presence.running == 0 => "runs nothing any more".to_owned(),
        (ActorState::Draining, _) => format!("{} still run", jobs(of.presence.running)),
        (_, Some(reason)) => reason.clone(),
        _ => String::new(),
    }
}

/// Returns the link to the machine of an actor; of one without the label, to the actors of its host.
fn machine_link(links: &SiteLinks, of: &PresenceOf) -> Markup {
    let host = &of.presence.hostname;
    let address = match label(&of.presence.labels, "machine") {
        Some(machine) => links.page("machines", machine.as_str()),
        None => links.with("/actors", &[("host", host)]),
    };
    html! { a href=(address) { (host) } }
}

fn jobs(number: usize) -> String {
    things(number as u64, "job")
}

fn find<'a>(now: &'a SiteSnapshot, name: &str) -> PageResult<&'a PresenceOf> {
    let found = now.snapshot.actors.iter().find(|of| of.actor.to_string() == name);
    found.ok_or_else(|| PageError::not_found(format!("No live actor {name}.")))
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let of = find(&now, &name)?;
    let links = visit.links();
    let jobs = super::jobs::of_actor(&visit, &now, &of.actor).await?;
    let main = html! {
        p.crumb {
            a href=(links.to("/machines")) { "Machines" } " / "
            (machine_link(links, of)) " / "
            a href=(links.with("/actors", &[("type", of.actor.script_type.as_str())])) { (of.actor.script_type) }
        }
        (head(&name, &line(of), &actions(&visit, of)))
        (facts(links, &now, of))
        (jobs)
    };
    Ok(visit.page(&now, &WebPage::live(name.as_str(), Nav::Machines, main)))
}

fn line(of: &PresenceOf) -> Markup {
    let busy = jobs(of.presence.running);
    html! {
        (state_sign(state_word(of))) @if !reason(of).is_empty() { ": " (reason(of)) } ". It runs " (busy) "; it may run "
        (of.presence.tasks) " at once."
    }
}

fn facts(links: &SiteLinks, now: &SiteSnapshot, of: &PresenceOf) -> Markup {
    let presence = &of.presence;
    let age = |text: &str| {
        html! { @if let Some(at) = time_of(text) { (was(at, now.snapshot.at)) } @else { (text) } }
    };
    let terms = html! {
        dt { "Tasks" } dd { (meter(presence.running, presence.tasks, 72)) }
        dt { "Machine" } dd { (machine_link(links, of)) }
        dt { "Jobs" }
        dd {
            @let name = of.actor.to_string();
            @let of_it = [("type", of.actor.script_type.as_str()), ("actor", name.as_str())];
            a href=(links.with("/jobs", &of_it)) { "All that it ran last" }
        }
        dt { "PID" } dd { (presence.pid) }
        dt { "Started" } dd { (age(&presence.started_at)) }
        dt { "Heartbeat" } dd { (age(&presence.last_heartbeat)) }
        dt { "Version" } dd { (presence.version) }
        dt { "Boot" }
        dd.mono { @match &presence.boot_id { Some(id) => (id), None => "–" } }
        dt { "Labels" }
        dd {
            @for (name, value) in &presence.labels { span.mono { (name) " = " (value) } " " }
        }
        dt { "Engine" } dd { (presence.capabilities.join(", ")) }
        dt { "Queues" }
        dd {
            @let all = of.actor.queues();
            @for queue in all.iter().filter(|queue| queue.priority == Priority::Normal) {
                // A queue without jobs has no page.
                @if now.snapshot.queues.iter().any(|(state, _)| state.queue == *queue) {
                    a href=(links.page("queues", &queue.to_string())) { (queue) } " "
                } @else { (queue) " " }
            }
        }
    };
    fact_list(None, &terms)
}

pub(super) fn live_one(visit: &Visit, now: &SiteSnapshot, name: &str) -> Vec<LivePart> {
    let Ok(of) = find(now, name) else {
        let gone = html! { p #headline .err { "It is not live any more." } };
        return vec![LivePart::whole("headline", gone)];
    };
    vec![LivePart::headline(&line(of)), LivePart::whole("facts", facts(visit.links(), now, of))]
}

fn actions(visit: &Visit, of: &PresenceOf) -> Markup {
    if !visit.may(Scope::Operate) || of.presence.state == ActorState::Foreign {
        return html! {};
    }
    let address = visit.links().page("actors", &of.actor.to_string());
    let (word, verb) = turn(of);
    html! {
        div.actions {
            (visit.form(&address, &html! { button name="do" value=(verb) { (word) } }))
            @if visit.may(Scope::Admin) {
                a.btn.danger href={ (address) "/stop" } data-ask { "Stop…" }
            }
        }
    }
}

pub(super) async fn ask_stop(visit: Visit, Path(name): Path<String>) -> PageResult {
    visit.needs(Scope::Admin, "stop an actor")?;
    let now = visit.snapshot().await?;
    let claimed = match find(&now, &name)?.presence.running {
        0 => "what it may have claimed".to_owned(),
        number => jobs(number),
    };
    let title = format!("Stop {name}?");
    let text = format!(
        "It finishes {claimed}, claims no more, and exits. systemd starts it again only if its unit says so."
    );
    let address = visit.links().page("actors", &name);
    visit.ask_before(Nav::Machines, address, ("stop", "Stop the actor"), (title, &text)).await
}

pub(super) async fn change(visit: Visit, Path(name): Path<String>, fields: Fields) -> PageResult {
    let verb = fields.get("do");
    let said = tell(&visit, verb, &name).await?;
    let back = if verb == "stop" { "/actors".to_owned() } else { format!("/actors/{name}") };
    Ok(visit.done(&back, &said))
}

/// Drains, resumes or stops the actors that were selected, or the one whose button was pressed.
pub(super) async fn change_many(visit: Visit, fields: Fields) -> PageResult {
    let back = fields.back(visit.links(), "/actors");
    let (verb, names) = fields.chosen(&["drain", "resume"], "actor")?;
    let mut said = String::new();
    for name in &names {
        said = tell(&visit, verb, name).await?;
    }
    if names.len() > 1 {
        said = format!("Ordered {} actors to {verb}.", names.len());
    }
    Ok(visit.done(back, &said))
}

async fn tell(visit: &Visit, verb: &str, name: &str) -> PageResult<String> {
    let said = match verb {
        "drain" => format!("{name} drains: it finishes its jobs and claims no more."),
        "resume" => format!("{name} claims jobs again."),
        "stop" => format!("{name} finishes its jobs and exits."),
        _ => return Err(PageError::wrong("The form asks for nothing that an actor can do.")),
    };
    let scope = if verb == "stop" { Scope::Admin } else { Scope::Operate };
    visit.needs(scope, &format!("{verb} an actor"))?;
    visit.call(&format!("actor.{verb}"), json!({ "actor": name })).await?;
    // Of several actors, one after it may fail.
    visit.site.snapshots.forget();
    Ok(said)
}
