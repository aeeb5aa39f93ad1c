//! Queues: the list, and one queue with its jobs; pause, resume, purge.

mod list;

use std::str::FromStr;

use axum::extract::Path;
use serde_json::json;

use super::parts::{count, duration, fact_list, head, sign, things};
use super::prelude::*;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::rpc::Scope;
use crate::rpc::results::Purged;
use crate::store::QueueState;
use crate::view::health::lacks_actor;
use crate::view::{HealthRules, HealthState, NamespaceHealth, ProblemKind, start_of};

pub(super) use list::{form, list, live, no_queue, part_of};

pub(super) struct QueueRow<'a> {
    pub(super) state: &'a QueueState,
    /// The ready actors that claim from it.
    pub(super) actors: u64,
    pub(super) health: NamespaceHealth,
    /// True if the visitor may pause and resume.
    pub(super) may_operate: bool,
}

impl QueueRow<'_> {
    /// Returns true if it has jobs and no actor will claim them.
    pub(super) fn lacks_actor(&self) -> bool {
        lacks_actor(self.state, self.actors)
    }

    /// Returns true if its first job waits for longer than the threshold.
    pub(super) fn is_long_wait(&self) -> bool {
        self.health.problem(ProblemKind::QueueWait).is_some()
    }

    fn sign(&self) -> Markup {
        let word = match (self.state.paused, self.lacks_actor(), self.is_long_wait()) {
            (true, ..) => return sign("still", "pause", "paused"),
            (_, true, _) => "no actor",
            (_, _, true) => "long wait",
            _ if self.state.depth == 0 && self.state.held > 0 => {
                return sign("still", "pause", "held");
            }
            _ => return html! { span.faint { "open" } },
        };
        match self.health.state {
            HealthState::Critical => sign("error", "error", word),
            HealthState::Warning | HealthState::Ok => sign("warn", "warn", word),
        }
    }

    fn wait(&self) -> Markup {
        let Some(wait) = self.state.oldest_wait else { return html! { span.faint { "–" } } };
        let text = duration(wait);
        let is_bad = self.lacks_actor() || self.is_long_wait();
        match self.health.state {
            HealthState::Critical if is_bad => html! { span.err { (text) } },
            HealthState::Warning if is_bad => html! { span.warn-t { (text) } },
            _ => html! { (text) },
        }
    }

    fn turn(&self) -> (&'static str, &'static str) {
        if self.state.paused { ("Resume", "resume") } else { ("Pause", "pause") }
    }
}

pub(super) fn rows<'a>(visit: &Visit, now: &'a SiteSnapshot) -> Vec<QueueRow<'a>> {
    let (rules, may_operate) =
        (HealthRules::from(&*visit.site.config()), visit.may(Scope::Operate));
    let row = |(state, actors): &'a (QueueState, u64)| {
        let health = NamespaceHealth::of_queue(state, *actors, &rules);
        QueueRow { state, actors: *actors, health, may_operate }
    };
    now.snapshot.queues.iter().map(row).collect()
}

/// Pauses or resumes the queue of the button that was pressed.
pub(super) async fn change_many(visit: Visit, fields: Fields) -> PageResult {
    let Some((verb, name)) = fields.pressed(&["pause", "resume"]) else {
        return Err(PageError::wrong("The form names no queue."));
    };
    let back = fields.back(visit.links(), "/queues");
    change_one(&visit, verb, name, back).await
}

async fn change_one(visit: &Visit, verb: &str, name: &str, back: &str) -> PageResult {
    let rule = PauseRule::from_str(name).ok().filter(|_| verb != "purge");
    let queue = match &rule {
        Some(rule) => rule.words(),
        None => Queue::from_str(name)
            .map_err(|_| PageError::not_found("No queue has this name."))?
            .to_string(),
    };
    let scope = if verb == "purge" { Scope::Admin } else { Scope::Operate };
    visit.needs(scope, &format!("{verb} a queue"))?;
    let (method, params) = (format!("queue.{verb}"), json!({ "queue": name, "force": true }));
    let said = if verb == "purge" {
        let Purged { purged } = visit.call_for(&method, params).await?;
        format!("Purged {queue}: {} stopped.", things(purged, "job"))
    } else {
        visit.call(&method, params).await?;
        match verb {
            "pause" if rule.is_some() => {
                format!("Paused {queue}, also those that come later. Running jobs go on.")
            }
            "pause" => format!("Paused {queue}. Running jobs go on."),
            _ => format!("Resumed {queue}."),
        }
    };
    Ok(visit.done(back, &said))
}

fn find<'a>(visit: &Visit, now: &'a SiteSnapshot, name: &str) -> PageResult<QueueRow<'a>> {
    let mut all = rows(visit, now).into_iter();
    all.find(|row| row.state.queue.to_string() == name).ok_or_else(|| {
        PageError::not_found(format!("No queue {name}: it has no jobs, and it is not paused."))
    })
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let row = find(&visit, &now, &name)?;
    let jobs = super::jobs::of_queue(&visit, &now, &row.state.queue).await?;
    let main = html! {
        p.crumb { a href=(visit.links().to("/queues")) { "Queues" } }
        (head(&name, &row.sentence(), &actions(&visit, &row)))
        (facts(visit.links(), &row))
        @if row.actors == 0 && row.state.queue.target.selector().is_none() {
            p.gap.below { "Start an actor for it: " (start_of(&row.state.queue.target.first_unit())) "." }
        }
        (jobs)
        p.gap {
            a href=(visit.links().with("/jobs", &[("status", "queued"), ("queue", &name)])) {
                "Show all its waiting jobs"
            }
        }
    };
    Ok(visit.page(&now, &WebPage::live(name.as_str(), Nav::Queues, main)))
}

impl QueueRow<'_> {
    fn sentence(&self) -> Markup {
        let QueueState { depth, held, held_by, .. } = self.state;
        let (depth, held) = (*depth, *held);
        if self.state.paused {
            return html! {
                "It is paused" @if let Some(who) = &self.state.paused_by { " by " (who) }
                ": no actor claims its jobs."
            };
        }
        match (depth, self.actors) {
            (0, _) if held > 0 => html! {
                "Limits hold its " (things(held, "job"))
                @if let Some(limit) = held_by { ", the first by limit " (limit) }
                ": more actors do not help."
            },
            (0, _) => html! { "No job waits in it." },
            (_, 0) => html! { span.err { "No live actor claims its jobs." } },
            (_, actors) => {
                html! { (things(depth, "job")) " in it, " (things(actors, "actor")) " to claim them." }
            }
        }
    }
}

fn facts(links: &SiteLinks, row: &QueueRow) -> Markup {
    let script_type = row.state.queue.target.script_type();
    let wait = row.state.oldest_wait.map_or_else(|| "–".to_owned(), duration);
    let terms = html! {
        dt { "State" } dd { (row.sign()) }
        @if let Some(selector) = &row.state.selector { dt { "Where" } dd.mono { (selector) } }
        dt { "Depth" } dd { (count(row.state.depth)) }
        dt { "Held" } dd { (count(row.state.held)) }
        dt { "First" } dd { "has waited " (wait) }
        dt { "Type" }
        dd { a href=(links.with("/jobs", &[("type", script_type.as_str())])) { (script_type) } }
        dt { "Actors" }
        dd { a href=(links.with("/actors", &[("type", script_type.as_str())])) { (count(row.actors)) } }
    };
    fact_list(None, &terms)
}

fn actions(visit: &Visit, row: &QueueRow) -> Markup {
    if !row.may_operate {
        return html! {};
    }
    let address = visit.links().page("queues", &row.state.queue.to_string());
    let (word, verb) = row.turn();
    html! {
        div.actions {
            (visit.form(&address, &html! { button name="do" value=(verb) { (word) } }))
            @if visit.may(Scope::Admin) {
                a.btn.danger href={ (address) "/purge" } data-ask { "Purge…" }
            }
        }
    }
}

pub(super) fn live_one(visit: &Visit, now: &SiteSnapshot, name: &str) -> Vec<LivePart> {
    match find(visit, now, name) {
        Ok(row) => vec![
            LivePart::headline(&row.sentence()),
            LivePart::whole("facts", facts(visit.links(), &row)),
        ],
        Err(_) => Vec::new(),
    }
}

pub(super) async fn ask_purge(visit: Visit, Path(name): Path<String>) -> PageResult {
    visit.needs(Scope::Admin, "purge a queue")?;
    let now = visit.snapshot().await?;
    let row = find(&visit, &now, &name)?;
    // Without a priority the method takes the queues of all priorities.
    let purged = row.state.queue.all_of_its_name();
    let states = now.snapshot.queues.iter().map(|(state, _)| state);
    let depth = states.filter(|state| purged.contains(&state.queue)).map(|of| of.depth).sum();
    let title = format!("Purge {name}?");
    let text = format!(
        "Its waiting jobs, of all priorities unless its name ends with one ({}), are stopped and end in error; jobs \
         that wait for them fail too. Running jobs go on.",
        count(depth)
    );
    let address = visit.links().page("queues", &name);
    visit.ask_before(Nav::Queues, address, ("purge", "Purge the queue"), (title, &text)).await
}

pub(super) async fn change(visit: Visit, Path(name): Path<String>, fields: Fields) -> PageResult {
    match fields.get("do") {
        verb @ ("pause" | "resume") => {
            change_one(&visit, verb, &name, &format!("/queues/{name}")).await
        }
        "purge" => change_one(&visit, "purge", &name, "/queues").await,
        _ => Err(PageError::wrong("The form asks for nothing that a queue can do.")),
    }
}
