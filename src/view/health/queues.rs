//! Queues: their depth, their actors, their first jobs; held jobs, and pauses.

use std::time::Duration;

use super::daemons::{silence, silence_remedy};
use super::{Found, HealthRules, ProblemKind, Severity, Subject, reached};
use crate::config::format_duration;
use crate::proto::message::ActorState;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::selector::Selector;
use crate::proto::target::{ActorId, ScriptType};
use crate::proto::text::{counted, did_you_mean, nearest};
use crate::proto::units::{brief, millis};
use crate::store::{PresenceOf, QueueState};
use crate::view::{Snapshot, start_of};

/// The maximum number of paused queues that are problems of their own.
const PAUSED_LISTED_MAX: usize = 3;

pub(super) fn all(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let is_renewed = !snapshot.refuses_writes();
    for (state, actors) in &snapshot.queues {
        let served = QueueService {
            actors: *actors,
            drained: drained(snapshot, state),
            mismatch: mismatch(snapshot, state, *actors),
            silent: silent(snapshot, state),
        };
        one(state, is_renewed.then_some(served), rules, found);
        if state.paused {
            paused_long(snapshot, state, rules, found);
        }
    }
    paused(snapshot, rules, found);
}

#[derive(Default)]
pub(super) struct QueueService {
    /// The number of ready actors that claim from it.
    pub(super) actors: u64,
    /// The live actors of it that drain.
    pub(super) drained: Vec<ActorId>,
    /// The expression of a queue that no live actor matches, and how many fail each part of it.
    pub(super) mismatch: Option<(Selector, String)>,
    /// An actor of it that has no heartbeat and has not shut down, with the sentence that says so.
    pub(super) silent: Option<(ActorId, String)>,
}

/// Returns an actor of a queue that hangs, was killed, or is away.
fn silent(snapshot: &Snapshot, state: &QueueState) -> Option<(ActorId, String)> {
    let target = &state.queue.target;
    let is_of = |(actor, _): &&(ActorId, _)| actor.targets_with(&[]).contains(target);
    let (actor, at) = snapshot.silent_actors.iter().find(is_of)?;
    Some((actor.clone(), silence(snapshot, actor, *at)))
}

/// Returns why no live actor matches the expression of a queue.
fn mismatch(snapshot: &Snapshot, state: &QueueState, actors: u64) -> Option<(Selector, String)> {
    let selector = state.selector().filter(|_| lacks_actor(state, actors))?;
    let script_type = state.queue.target.script_type();
    let of_type = snapshot.actors.iter().filter(|of| of.actor.script_type == *script_type);
    let of_type: Vec<PresenceOf> = of_type.cloned().collect();
    let is_drained = of_type.iter().any(|of| selector.matches(&of.presence.labels));
    let mismatch = crate::store::mismatch(&selector, &of_type);
    (!is_drained).then_some((selector, mismatch))
}

fn drained(snapshot: &Snapshot, state: &QueueState) -> Vec<ActorId> {
    let selector = state.selector();
    let drains = |of: &&PresenceOf| {
        of.presence.state == ActorState::Draining
            && of.claims_from(&state.queue.target, selector.as_ref())
    };
    snapshot.actors.iter().filter(drains).map(|of| of.actor.clone()).collect()
}

/// Returns true if a queue has jobs and no actor will claim them.
pub fn lacks_actor(state: &QueueState, actors: u64) -> bool {
    actors == 0 && state.depth > 0 && !state.paused
}

/// One queue; its actors may be unknown. That it is paused is said of all together.
pub(super) fn one(
    state: &QueueState,
    served: Option<QueueService>,
    rules: &HealthRules,
    found: &mut Found,
) {
    let check = &rules.check;
    let (queue, depth) = (&state.queue, state.depth);
    let subject = || Subject::Queue(queue.clone());
    let jobs = counted(depth, "job", "jobs");
    let unserved = served.filter(|of| lacks_actor(state, of.actors));
    let more = match &unserved {
        _ if state.paused => format!("resume it: hero queue resume {queue}"),
        Some(served) => served.remedy(queue, rules),
        None => "start more actors for it, or raise `tasks` of a unit".to_owned(),
    };
    if let Some((severity, from)) = reached(depth, check.depth_warning, check.depth_critical) {
        let text = format!("queue {queue} has {jobs} (threshold {from})");
        found.add((ProblemKind::QueueDepth, severity), subject(), text, more.clone());
    }
    held(state, rules, found);
    if state.paused {
        return;
    }
    if let Some(served) = &unserved {
        without_actor(state, served, rules, found);
    }
    let wait = state.oldest_wait.unwrap_or_default();
    let thresholds = (millis(check.wait_warning), millis(check.wait_critical));
    if let Some((severity, from)) = reached(millis(wait), thresholds.0, thresholds.1) {
        let (wait, from) = (brief(wait), format_duration(Duration::from_millis(from)));
        let text = format!("the first job of queue {queue} waits for {wait} (threshold {from})");
        found.add((ProblemKind::QueueWait, severity), subject(), text, more);
    }
}

impl QueueService {
    /// Returns what gives a queue an actor.
    fn remedy(&self, queue: &Queue, rules: &HealthRules) -> String {
        if let Some(actor) = self.drained.first() {
            return format!("let it claim jobs again: hero actor resume {}", actor.unit());
        }
        if queue.target.selector().is_some() {
            let selector = self.mismatch.as_ref().map(|(selector, _)| selector.to_string());
            return format!(
                "start an actor that matches {}: on its machine if it names one (hero machine list), else with these labels \
                 in [actor.labels] of hero.toml",
                selector.as_deref().unwrap_or("it")
            );
        }
        if let Some((actor, _)) = &self.silent {
            return silence_remedy(actor);
        }
        let script_type = queue.target.script_type();
        let start = start_of(&queue.target.first_unit());
        match rules.types.get(script_type) {
            Some(None) => format!("start one: {start}"),
            Some(Some(reason)) => format!(
                "scripts of {script_type} cannot run on this machine: {reason}; start one where they can: {start}"
            ),
            None => format!(
                "{script_type} is not configured on this machine: add [type.{script_type}] to the configuration, then \
                 start one: {start}"
            ),
        }
    }
}

/// A queue that nobody serves. If its type is not configured, it may be misspelled.
fn without_actor(
    state: &QueueState,
    served: &QueueService,
    rules: &HealthRules,
    found: &mut Found,
) {
    let (queue, jobs) = (&state.queue, counted(state.depth, "job", "jobs"));
    let script_type = queue.target.script_type();
    let subject = Subject::Queue(queue.clone());
    let near = nearest(script_type.as_str(), rules.types.keys().map(ScriptType::as_str));
    let Some(near) = near.filter(|_| !rules.types.contains_key(script_type)) else {
        let why = match served.drained.as_slice() {
            [] => match &served.mismatch {
                Some((selector, why)) => format!("no live actor that matches {selector}: {why}"),
                None => match &served.silent {
                    Some((_, silence)) => format!("no live actor: {silence}"),
                    None => "no live actor".to_owned(),
                },
            },
            [actor] => format!("its actor {actor} drains"),
            [actor, others @ ..] => format!("its actors {actor} and {} more drain", others.len()),
        };
        found.add(
            (ProblemKind::QueueWithoutActor, Severity::Warning),
            subject,
            format!("queue {queue} has {jobs} and {why}"),
            served.remedy(queue, rules),
        );
        return;
    };
    let tip = did_you_mean(Some(near));
    found.add(
        (ProblemKind::QueueOfUnknownType, Severity::Warning),
        subject,
        format!(
            "queue {queue} has {jobs} and no live actor, and its type {script_type} is not configured{tip}"
        ),
        format!(
            "submit the jobs again with the type {near}, and empty this queue: hero queue purge --yes {queue}\n\
             or add [type.{script_type}] to the configuration and start an actor for it"
        ),
    );
}

/// Held jobs are what limits are for; many of them may be a problem.
fn held(state: &QueueState, rules: &HealthRules, found: &mut Found) {
    let (queue, check) = (&state.queue, &rules.check);
    if state.held == 0 {
        return;
    }
    let number = counted(state.held, "job", "jobs");
    let first = state.held_by.as_ref().map(|limit| format!(", the first by limit {limit}"));
    let long = long_wait(state.held_wait, rules);
    let kind = if long.is_some() { ProblemKind::QueueHeldLong } else { ProblemKind::QueueHeld };
    let (severity, threshold) = match reached(state.held, check.held_warning, check.held_critical) {
        Some((severity, from)) => (severity, format!(" (threshold {from})")),
        None => (Severity::Note, String::new()),
    };
    found.add(
        (kind, severity),
        Subject::Queue(queue.clone()),
        format!(
            "limits hold {number} of queue {queue}{threshold}{}{}",
            first.as_deref().unwrap_or_default(),
            // The first is named already.
            long.map(|long| if first.is_some() { long.replacen(", the first", "", 1) } else { long })
                .unwrap_or_default()
        ),
        match state.held_by.as_ref().map(|limit| limit.split_once('=').unwrap_or((limit.as_str(), "ID"))) {
            Some(("@graph", graph)) => {
                format!("more actors do not help; if its window is too narrow: hero graph edit {graph} --at-a-time NUMBER")
            }
            Some(("@paused", graph)) => {
                format!("it pauses after its first jobs: hero graph show {graph}; to let the others start: hero graph tell {graph} go")
            }
            Some((limit, _)) => format!(
                "more actors do not help: raise [limit.{limit}] if it is too narrow; all limits: hero limit list"
            ),
            None => "see which limit: hero limit list; raise it in [limit.NAME] if it is too narrow".to_owned(),
        },
    );
}

/// Returns the words about a first job that waits for longer than the threshold.
fn long_wait(wait: Option<Duration>, rules: &HealthRules) -> Option<String> {
    let from = rules.check.wait_warning;
    let wait = wait.filter(|wait| !from.is_zero() && *wait >= from)?;
    Some(format!(", the first for {} (threshold {})", brief(wait), format_duration(from)))
}

/// A pause that holds jobs for long. A person has made it, so it is only worth knowing.
fn paused_long(snapshot: &Snapshot, state: &QueueState, rules: &HealthRules, found: &mut Found) {
    let queue = &state.queue;
    let Some(long) = long_wait(state.oldest_wait, rules).filter(|_| state.depth > 0) else {
        return;
    };
    let jobs = counted(state.depth, "job waits", "jobs wait");
    // A rule holds it: who paused it by its name before does not count.
    let rule = snapshot.pauses.iter().find(|rule| rule.covers(queue));
    let who =
        rule.map_or(state.paused_by.as_ref(), |rule| snapshot.paused_by.get(&rule.to_string()));
    let resume = rule.map_or_else(|| format!("hero queue resume {queue}"), PauseRule::resume);
    found.add(
        (ProblemKind::QueueHeldLong, Severity::Note),
        Subject::Queue(queue.clone()),
        format!("queue {queue} is paused{}; {jobs} in it{long}", by(who)),
        format!("resume it: {resume}"),
    );
}

/// Returns the words about who paused something.
fn by(who: Option<&String>) -> String {
    who.map(|who| format!(" by {who}")).unwrap_or_default()
}

/// A person has paused a queue, so it is only worth knowing. Many are said together.
fn paused(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let of = (ProblemKind::QueuePaused, Severity::Note);
    for rule in &snapshot.pauses {
        let waiting = snapshot.queues.iter().filter(|(state, _)| rule.covers(&state.queue));
        let waiting: u64 = waiting.map(|(state, _)| state.depth).sum();
        let jobs = counted(waiting, "job waits", "jobs wait");
        let by = by(snapshot.paused_by.get(&rule.to_string()));
        let text =
            format!("{} are paused{by}, also those that come later; {jobs} in them", rule.words());
        found.add(of, Subject::Queues, text, format!("resume them: {}", rule.resume()));
    }
    let by_rule = |queue: &Queue| snapshot.pauses.iter().any(|rule| rule.covers(queue));
    let by_name = |state: &QueueState| state.paused && !by_rule(&state.queue);
    let paused: Vec<_> = snapshot.queues.iter().filter(|(state, _)| by_name(state)).collect();
    if paused.len() > PAUSED_LISTED_MAX {
        let all = if paused.len() == snapshot.queues.len() { "all " } else { "" };
        let waiting: u64 = paused.iter().map(|(state, _)| state.depth).sum();
        let jobs = counted(waiting, "job waits", "jobs wait");
        let text = format!("{all}{} queues are paused; {jobs} in them", paused.len());
        let remedy = "resume them: hero queue resume --all; see which: hero queue list";
        found.add(of, Subject::Queues, text, remedy);
        return;
    }
    let is_told =
        |state: &QueueState| state.depth > 0 && long_wait(state.oldest_wait, rules).is_some();
    for (state, _) in paused.into_iter().filter(|(state, _)| !is_told(state)) {
        let jobs = counted(state.depth, "job waits", "jobs wait");
        found.add(
            of,
            Subject::Queue(state.queue.clone()),
            format!(
                "queue {} is paused{}; {jobs} in it",
                state.queue,
                by(state.paused_by.as_ref())
            ),
            format!("resume it: hero queue resume {}", state.queue),
        );
    }
}
