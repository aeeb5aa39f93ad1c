//! Periodic jobs that run on every machine: the copies of a firing.

use jiff::Timestamp;

use super::super::{Client, ClientError};
use super::FleetMember;
use crate::proto::cron::delay_of;
use crate::proto::every::CronFleet;
use crate::proto::job::{Job, NotifyName};

/// The jobs of a firing, or of a run beside the schedule.
#[derive(Debug)]
pub(in super::super) struct CronCopies {
    pub(in super::super) jobs: Vec<Job>,
    /// The notifications, which are for the batch.
    pub(in super::super) notify: Vec<NotifyName>,
    /// The machines or actors that get none, as they are absent.
    pub(in super::super) absent: Vec<String>,
}

impl CronCopies {
    /// Returns who gets no copy, in words; empty if all get one.
    pub(in super::super) fn note(absent: &[String]) -> String {
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
    pub(in super::super) async fn cron_copies(
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
}
