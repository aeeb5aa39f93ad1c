//! Duty: submits periodic jobs when they are due, each firing once for any number of supervisors.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tracing::{error, info, warn};

use super::duty::{Next, Round};
use crate::client::{Client, ClientError, CronClient};
use crate::config::CronEntry;
use crate::proto::graph::GraphKind;
use crate::proto::job::{Job, JobId};
use crate::proto::report::JOB_COURSE;
use crate::proto::text::counted;
use crate::store::{BatchOutcome, CronMark, Fired, StoreError, WorkKind};
use crate::trace::{OpenSpan, SpanKind};

/// The firings of one job per round; if more are due, the next round follows at once.
const FIRINGS_PER_ROUND: usize = 100;

pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let crontab = round.counts.crontab.with(&round.settings.crontab, &round.store).await?;
    let entries = &crontab.entries;
    // A look finds changes, and reloads.
    let sweep = round.sweep();
    if entries.is_empty() {
        return Ok(round.until(WorkKind::Crontab, sweep));
    }
    let names = entries.iter().map(|entry| &entry.name);
    let (now, state) = round.store.cron().state(names).await?;
    // Not for longer, as Redis's clock may be set.
    let mut next = round.long_pause();
    for (entry, mark) in entries.iter().zip(state) {
        note_lateness(&round, entry, &mark, now).await?;
        let due = entry.schedule.due(mark.due, now, entry.catch_up);
        let left = due.len().saturating_sub(FIRINGS_PER_ROUND);
        let mut waits = false;
        for at in due.into_iter().take(FIRINGS_PER_ROUND) {
            waits = !fire(&round, entry, at).await?;
            if waits {
                break;
            }
        }
        if waits {
            next = next.min(sweep);
        } else if left > 0 {
            next = Duration::ZERO;
        }
        let due = entry.schedule.next_after(now);
        let due = due.and_then(|due| due.duration_since(now).try_into().ok());
        next = next.min(due.unwrap_or(Duration::MAX));
    }
    Ok(Next::Seen { work: WorkKind::Crontab, pause: next.min(sweep), at_latest: next })
}

/// Notes firings that were missed, and from when on a periodic job is overdue.
async fn note_lateness(
    round: &Round,
    entry: &CronEntry,
    mark: &CronMark,
    now: Timestamp,
) -> Result<(), StoreError> {
    if mark.is_disabled {
        return Ok(());
    }
    let (name, schedule) = (&entry.name, &entry.schedule);
    if let Some(missed) = schedule.missed(mark.due, now, entry.catch_up)
        && round.store.cron().note_missed(name, mark.due, missed).await?
    {
        let number = counted(missed.number as u64, "firing", "firings");
        let more = if missed.is_exact { "" } else { " or more" };
        warn!(cron = %name, "the periodic job {name} missed {number}{more}, the latest due {}, as no supervisor ran", missed.latest);
    }
    match schedule.overdue(mark.from, mark.took) {
        Some(overdue) if mark.overdue != Some(overdue.at) => {
            round.store.cron().note_overdue(name, mark.from, overdue).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// Fires a job for a time. Returns false if the firing, and those after it, wait for the job of the last one.
async fn fire(round: &Round, entry: &CronEntry, due: Timestamp) -> Result<bool, StoreError> {
    let mut job = entry.job(due);
    // Each firing is a trace of its own.
    let span = round.tracer.as_ref().and_then(|tracer| OpenSpan::begin(tracer, None));
    job.spec.traceparent = span.as_ref().map(|span| span.own);
    let rules = (entry.overlap, entry.catch_up);
    let fired = if entry.kind().is_some() {
        let Some(fired) = Box::pin(fire_batch(round, entry, due, &job)).await? else {
            return Ok(false);
        };
        fired
    } else {
        // The version of a published script is the one of this moment. Its settings meet the bounds that the job meets.
        let resolved = round.store.published_scripts().resolve(&mut job.spec).await?;
        let checked = resolved.and_then(|()| job.spec.check(&round.settings.job.bounds()));
        let why = checked.err().map(|error| error.to_string());
        let fired = why.as_deref().map_or(Ok(&job), |why| Err((&job, why)));
        round.store.cron().fire(&entry.name, due, rules, fired, round.kept()).await?
    };
    let what = entry.kind().map_or("job", GraphKind::as_str);
    match fired {
        Fired::Job(id) | Fired::Batch(id) => {
            round.counts.fired.fetch_add(1, Ordering::Relaxed);
            let name = &entry.name;
            let trace_id = job.spec.traceparent.map(|trace| trace.trace_id());
            if let Some((tracer, span)) = round.tracer.as_ref().zip(span) {
                let attributes = vec![
                    ("hero.submitted.id", id.to_string()),
                    ("messaging.message.id", id.to_string()),
                    ("hero.cron.name", name.to_string()),
                    ("hero.cron.due", due.to_string()),
                ];
                let fired = (SpanKind::Producer, format!("fire {name}"));
                span.end(tracer, fired, None, attributes);
            }
            info!(target: JOB_COURSE, job_id = %id, cron = %name, trace_id, "{what} {id} of the periodic job {name}, due {due}, is submitted");
        }
        Fired::Past => {}
        Fired::Waits(_) => return Ok(false),
        Fired::LeftOut(id) => {
            warn!(job_id = %id, cron = %entry.name, "the periodic job {} is skipped at {due}, as {id} of an earlier firing has not ended", entry.name);
        }
        Fired::Failed(why) => {
            error!(cron = %entry.name, "the periodic job {} cannot be submitted at {due}: {why}", entry.name);
        }
    }
    Ok(true)
}

/// Fires a periodic job for a time as a batch for the machines that are known now, or as a graph. `None` if another supervisor
/// was in the way, or it took too long: it is fired again.
async fn fire_batch(
    round: &Round,
    entry: &CronEntry,
    due: Timestamp,
    job: &Job,
) -> Result<Option<Fired>, StoreError> {
    let (name, rules) = (&entry.name, (entry.overlap, entry.catch_up));
    let fail = async |why: ClientError| {
        let why = match why {
            ClientError::Store(error) => return Err(error),
            why => why.to_string(),
        };
        let failed = round.store.cron().fire(name, due, rules, Err((job, &why)), round.kept());
        failed.await.map(Some)
    };
    let client = Client::on(&round.system, round.settings.job.clone());
    // Where it is taken, the batch gets another one. What the try before has staged has other ids.
    let random = JobId::random().to_string();
    let ids = [String::new(), format!("-{}", &random[..8])];
    let ids =
        ids.iter().filter_map(|more| format!("{}{more}", name.job_id(due).ok()?).parse().ok());
    for id in ids {
        let firing = match client.cron().firing(entry, due, id, job.spec.traceparent).await {
            Ok(firing) => firing,
            Err(error) => return fail(error).await,
        };
        match round.store.cron().fire_batch(name, due, rules, &firing, round.kept()).await? {
            Ok(fired) => return Ok(Some(fired)),
            Err(outcome @ BatchOutcome::Refused { .. }) => {
                return fail(CronClient::refusal_of_firing(outcome, &firing)).await;
            }
            Err(_) => {}
        }
    }
    Ok(None)
}
