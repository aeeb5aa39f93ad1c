//! Duty: tells notifications the problems of queues and of periodic jobs that `hero doctor` finds, and their end.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tracing::debug;

use super::duty::{Next, Round};
use crate::client::{Client, ClientError};
use crate::config::Crontab;
use crate::proto::notification::{NotifyEvent, NotifyKind, ProblemSteps};
use crate::proto::target::{Group, Target};
use crate::store::StoreError;
use crate::view::{NamespaceHealth, Problem, Snapshot, Subject};

/// The time for which a problem lasts before it is reported, in sweep intervals: an actor may restart meanwhile.
const LASTING: u32 = 10;

pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let mut on = round.settings.notify.values().flat_map(|notify| &notify.on);
    if !on.any(|kind| kind.is_problem()) {
        return Ok(Next::After(round.long_pause()));
    }
    let crontab = round.counts.crontab.with(&round.settings.crontab, &round.store).await?;
    let snapshot = snapshot(&round).await?;
    let now_ms = u64::try_from(snapshot.at.as_millisecond()).unwrap_or_default();
    let read = round.store.notifications().problem_marks().await?;
    // Another supervisor may have looked later.
    if read.is_before(now_ms) {
        let problems = problems(&snapshot, &round, &crontab);
        let is_known =
            |name: &str| snapshot.periodic_jobs.iter().any(|of| of.name.as_str() == name);
        let lasting = round.pause(LASTING);
        let steps = ProblemSteps::of(now_ms, lasting, &read.marks, &problems, is_known);
        if !steps.marks.is_empty()
            && !round.store.notifications().tell_problems(&read, now_ms, &steps).await?
        {
            debug!("another supervisor has judged the same moment");
        }
    }
    Ok(Next::After(round.long_pause()))
}

/// Reads the snapshot that the health of the namespace is judged by, without the last hour.
async fn snapshot(round: &Round) -> Result<Snapshot, StoreError> {
    let client = Client::on(&round.system, round.settings.job.clone());
    let snapshot = Snapshot::read_beside(&client, String::new(), Arc::from([])).await;
    snapshot.map_err(|error| match error {
        ClientError::Store(error) => error,
        other => {
            StoreError::Failed { doing: "looking at the namespace", reason: other.to_string() }
        }
    })
}

/// Returns the events that tell the problems of a snapshot, by their keys.
fn problems(
    snapshot: &Snapshot,
    round: &Round,
    crontab: &Crontab,
) -> BTreeMap<String, NotifyEvent> {
    let found = NamespaceHealth::problems_of_parts(snapshot, &round.settings.health);
    let events = found.iter().filter_map(|problem| {
        let event = event(problem, problem.kind.told_as()?, crontab)?;
        Some((ProblemSteps::key(&event), event))
    });
    events.collect()
}

fn event(problem: &Problem, kind: NotifyKind, crontab: &Crontab) -> Option<NotifyEvent> {
    let error = problem.text.clone();
    let mut event = NotifyEvent { kind: Some(kind), error, ..NotifyEvent::default() };
    match &problem.subject {
        Subject::Queue(queue) => {
            event.queue = queue.to_string();
            event.script_type = queue.target.script_type().to_string();
            event.group = queue.target.group_name().map(ToString::to_string).unwrap_or_default();
        }
        Subject::PeriodicJob(name) => {
            event.cron = name.to_string();
            if let Some(entry) = crontab.entries.iter().find(|entry| entry.name == *name) {
                let queue = entry.job(Timestamp::UNIX_EPOCH).spec.queue();
                let target = queue.as_ref().map(|queue| &queue.target);
                let text = |of: Option<&str>| of.unwrap_or_default().to_owned();
                event.script_type = text(target.map(|of| of.script_type().as_str()));
                event.group = text(target.and_then(Target::group_name).map(Group::as_str));
                event.names = entry.notifications().iter().map(ToString::to_string).collect();
            }
        }
        _ => return None,
    }
    Some(event)
}
