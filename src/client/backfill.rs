//! Backfill: the firings of a periodic job in a period of the past.

use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::Serialize;

use super::periodic_jobs::entry;
use super::{Client, ClientError};
use crate::config::{CronEntry, Crontab};
use crate::error::{Error, Exit};
use crate::proto::cron::Overlap;
use crate::proto::job::{Job, JobId};
use crate::store::BackfilledJob;

pub const BACKFILL_MAX: usize = 1000;

/// A period of the past.
#[derive(Debug, Clone, Copy)]
pub struct BackfillPeriod {
    /// Its first moment.
    pub since: Timestamp,
    /// Its last moment.
    pub until: Timestamp,
    /// Leaves out the times for which the periodic job fired.
    pub only_missing: bool,
}

/// One firing of a backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackfilledFiring {
    /// The due time, in RFC 3339.
    pub due: String,
    /// Its outcome: submitted; fired, if it fired at its time and that is left out; exists, if it was backfilled before;
    /// `left_out`, if another job holds its unique key.
    #[schemars(extend("enum" = ["submitted", "fired", "exists", "left_out"]))]
    pub outcome: String,
    /// Its job or graph, or the job for which it is left out.
    pub job_id: String,
}

impl Client {
    /// Lists the firings of one of the periodic jobs of [`Client::whole_crontab`] in a period.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is no such periodic job; [`Exit::Data`] if the period ends before it begins or in the
    /// future, has no firing, or more than [`BACKFILL_MAX`].
    pub async fn firings_within(
        &self,
        crontab: &Crontab,
        name: &str,
        period: &BackfillPeriod,
    ) -> Result<Vec<Timestamp>, Error> {
        let crontab = self.whole_crontab(crontab).await?;
        within(entry(&crontab, name)?, period, self.now().await?)
    }

    /// Submits the jobs or graphs of a periodic job for its firings in a period, each with its own time. One for which the
    /// job or graph of a backfill is kept is not submitted again. Unless its overlap is `allow`, each waits for the end of the
    /// one before.
    ///
    /// # Errors
    /// As [`Self::firings_within`]; [`Exit::Data`] if a job was refused; the code of [`ClientError::Store`].
    pub async fn backfill(
        &self,
        crontab: &Crontab,
        name: &str,
        period: &BackfillPeriod,
    ) -> Result<Vec<BackfilledFiring>, Error> {
        let crontab = self.whole_crontab(crontab).await?;
        let entry = entry(&crontab, name)?;
        if entry.fleet.is_some() {
            let why =
                "each of its firings is a batch for every machine: hero cron run submits one now";
            return Err(Error::new(Exit::Data, format!("cannot backfill {name}: {why}")));
        }
        let times = within(entry, period, self.now().await?)?;
        let (mut done, mut before) = (Vec::with_capacity(times.len()), Vec::new());
        for due in times {
            let id = entry.name.backfill_id(due).map_err(ClientError::from)?;
            let (filled, jobs) = if entry.graph.is_some() {
                Box::pin(self.backfill_graph(entry, due, &before, period.only_missing)).await?
            } else {
                let (mut job, fired) = job_of(entry, due, &before)?;
                self.resolve_script(&mut job).await?;
                let rules = (&fired, period.only_missing);
                let filled = self.store.backfill(&entry.name, due, rules, &job, self.job.kept());
                (filled.await.map_err(ClientError::from)?, vec![job.id])
            };
            let (outcome, id) = match filled {
                BackfilledJob::Submitted => ("submitted", id.to_string()),
                BackfilledJob::Fired(id) => ("fired", id),
                BackfilledJob::Exists => ("exists", id.to_string()),
                BackfilledJob::LeftOut(id) => ("left_out", id),
                BackfilledJob::Failed(why) => {
                    let message = format!(
                        "cannot backfill {} at {due}: {why}; {} firings before it were submitted",
                        entry.name,
                        done.len()
                    );
                    return Err(Error::new(Exit::Data, message));
                }
            };
            if outcome == "submitted" && entry.overlap != Overlap::Allow {
                before = jobs;
            }
            done.push(BackfilledFiring {
                due: due.to_string(),
                outcome: outcome.to_owned(),
                job_id: id,
            });
        }
        self.note("cron.backfill", format!("{}: {} firings", entry.name, done.len())).await;
        Ok(done)
    }
}

/// Returns the job of a firing, behind the one before, and the id that its firing in time has.
fn job_of(entry: &CronEntry, due: Timestamp, before: &[JobId]) -> Result<(Job, JobId), Error> {
    let illegal = |error| Error::new(Exit::Data, format!("cron {}: {error}", entry.name));
    let mut job = entry.job(due);
    let fired = entry.name.job_id(due).map_err(illegal)?;
    job.id = entry.name.backfill_id(due).map_err(illegal)?;
    job.spec.after_any = before.to_vec();
    Ok((job, fired))
}

fn within(
    entry: &CronEntry,
    period: &BackfillPeriod,
    now: Timestamp,
) -> Result<Vec<Timestamp>, Error> {
    let refused =
        |why: String| Err(Error::new(Exit::Data, format!("cannot backfill {}: {why}", entry.name)));
    let BackfillPeriod { since, until, .. } = *period;
    if since > until {
        return refused(format!("the period begins at {since}, after its end at {until}"));
    }
    if until > now {
        return refused(format!("the period ends in the future, at {until}"));
    }
    let next = |at: &Timestamp| entry.schedule.next_after(*at).filter(|at| *at <= until);
    let from = since.checked_sub(1.second()).unwrap_or(since);
    let times: Vec<Timestamp> =
        std::iter::successors(next(&from), next).take(BACKFILL_MAX + 1).collect();
    match times.len() {
        0 => refused(format!("it has no firing from {since} to {until}")),
        number if number > BACKFILL_MAX => refused(format!(
            "the period has more than {BACKFILL_MAX} firings; choose a shorter one"
        )),
        _ => Ok(times),
    }
}
