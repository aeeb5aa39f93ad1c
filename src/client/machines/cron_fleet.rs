//! Periodic jobs that run on every machine: the copies of a firing.

use jiff::Timestamp;

use super::super::{Client, ClientError, FilesByPlace, NewBatch};
use super::FleetMember;
use crate::config::CronEntry;
use crate::proto::cron::delay_of;
use crate::proto::every::CronFleet;
use crate::proto::job::{Job, JobId, NotifyName};

/// The jobs of a firing, or of a run beside the schedule.
#[derive(Debug)]
pub struct CronCopies {
    /// The copies.
    pub jobs: Vec<Job>,
    /// The notifications, which are for the batch.
    pub notify: Vec<NotifyName>,
    /// The machines or actors that get none, as they are absent.
    pub absent: Vec<String>,
}

impl CronCopies {
    /// Returns who gets no copy, in words; empty if all get one.
    pub fn note(absent: &[String]) -> String {
        const NAMES_MAX: usize = 5;
        let names = absent.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
        match absent.len() {
            0 => String::new(),
            1..=NAMES_MAX => format!("absent: {names}"),
            number => format!("{number} absent: {names}, …"),
        }
    }
}

impl Client {
    /// Makes the copies of a job of a periodic job. At a firing each starts after a delay that depends on its machine alone, at
    /// most the spread.
    ///
    /// # Errors
    /// As [`Client::fleet`].
    pub async fn cron_copies(
        &self,
        fleet: &CronFleet,
        job: &Job,
        due: Option<Timestamp>,
    ) -> Result<CronCopies, ClientError> {
        let mut job = job.clone();
        let notify = std::mem::take(&mut job.spec.notify);
        let (mut jobs, mut absent) = (Vec::new(), Vec::new());
        for FleetMember { machine, actor, job } in self.fleet(&job, fleet.every).await? {
            let Some(mut job) = job else {
                absent.push(actor.map_or(machine.host, |actor| actor.to_string()));
                continue;
            };
            let own = actor.map_or(machine.machine, |actor| actor.to_string());
            let delay = delay_of(&own, fleet.spread);
            if let Some(due) = due.filter(|_| !delay.is_zero()) {
                job.spec.run_at = due.checked_add(delay).ok();
            }
            jobs.push(job);
        }
        Ok(CronCopies { jobs, notify, absent })
    }

    /// Submits the batch of a periodic job for every machine now, besides its schedule. Returns its id.
    pub(crate) async fn run_fleet(
        &self,
        entry: &CronEntry,
        fleet: &CronFleet,
    ) -> Result<JobId, ClientError> {
        let now = self.now().await?;
        let mut job = entry.job(now);
        self.resolve_script(&mut job).await?;
        let copies = self.cron_copies(fleet, &job, None).await?;
        if copies.jobs.is_empty() {
            return Err(ClientError::NoLiveMachine(CronCopies::note(&copies.absent)));
        }
        // By the beginning its end counts as one of a firing.
        let random = JobId::random().to_string();
        let id = entry.name.job_id(now).map(|id| format!("{id}-{}", &random[..8]));
        let mut batch = NewBatch {
            name: job.spec.name.clone(),
            notify: copies.notify,
            window: fleet.window,
            cron: Some(entry.name.clone()),
            ..NewBatch::with_id(id.ok().and_then(|id| id.parse().ok()))
        };
        self.submit_all_or_none_of(&mut batch, &copies.jobs, &FilesByPlace::new()).await?;
        Ok(batch.id)
    }
}
