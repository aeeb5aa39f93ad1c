//! Deferred work of the supervisor: due jobs, and dependents beyond one step.

use std::time::Duration;

use super::attempts::kept;
use super::backoff::from_now;
use super::{JobNote, Result, Store};
use crate::proto::job::{BootId, JobId, Retention};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// Jobs that were due and are in their queues now.
    pub jobs: usize,
    /// The time until the next is due, if one is scheduled.
    pub next: Option<Duration>,
    /// Notes on the first hundred jobs.
    pub notes: Vec<JobNote>,
}

impl Store {
    /// Dispatches due jobs, up to `limit`. Ends those that name no queue, as another program changed them.
    pub async fn dispatch_due(
        &self,
        limit: usize,
        retention: impl Into<Retention>,
    ) -> Result<Dispatched> {
        let arguments = (limit, kept(retention));
        let (jobs, next_us, notes): (usize, i64, Vec<JobNote>) =
            self.run_script("dispatching due jobs", &self.scripts.dispatch_due, arguments).await?;
        Ok(Dispatched { jobs, next: from_now(next_us), notes })
    }

    /// Makes one step that was left because one call may not do more: tells dependents of an ended job, or
    /// registers a job at its prerequisites. Returns true if there was one.
    pub async fn settle(&self, retention: impl Into<Retention>) -> Result<bool> {
        self.settle_one(&kept(retention)).await
    }

    /// Ends those jobs of a stopped graph or batch that have not started.
    pub async fn finish_stop(&self, graph: &JobId, retention: impl Into<Retention>) -> Result<()> {
        let (retention, is_left) = (kept(retention), (self.keys.graph(graph), "stopping"));
        while self.link.command::<bool>("reading graphs", "HEXISTS", is_left.clone()).await?
            && self.settle_one(&retention).await?
        {}
        Ok(())
    }

    /// Notifies as many dependents as an actor may before it goes on; the supervisor notifies the others.
    pub(super) async fn settle_some(&self, retention: &str) -> Result<()> {
        const STEPS: usize = 8;
        for _ in 0..STEPS {
            if !self.settle_one(retention).await? {
                break;
            }
        }
        Ok(())
    }

    /// Takes notes on jobs that ended before any actor had them, up to `limit`, oldest first.
    pub async fn take_notes(&self, limit: usize) -> Result<Vec<JobNote>> {
        let notes: Option<Vec<Vec<u8>>> =
            self.link.command("taking notes on jobs", "LPOP", (self.keys.notes(), limit)).await?;
        // They are gone from Redis: a note with other bytes than text must not take the others with it.
        let read = |note: &Vec<u8>| JobNote::from_json(&String::from_utf8_lossy(note));
        Ok(notes.iter().flatten().filter_map(read).collect())
    }

    async fn settle_one(&self, retention: &str) -> Result<bool> {
        let arguments = (retention, BootId::random().as_str().to_owned());
        self.run_script("telling dependents", &self.scripts.settle, arguments).await
    }
}
