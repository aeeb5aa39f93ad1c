//! The firing of a periodic job that is a batch: staged, and decided in the step that notes the firing.

use jiff::Timestamp;

use super::attempts::kept;
use super::cron_state::fired;
use super::{Fired, NewGraph, Store, StoreError};
use crate::proto::cron::{CatchUp, CronName, Overlap};
use crate::proto::job::{Job, JobId, Retention};

const DOING: &str = "firing a periodic job as a batch";

/// The batch of a firing.
#[derive(Debug)]
pub struct FiredBatch<'a> {
    /// The batch.
    pub graph: &'a NewGraph,
    /// Its jobs, which name it.
    pub jobs: &'a [Job],
    /// A remark for the history.
    pub note: &'a str,
}

impl Store {
    /// Fires a periodic job as [`Store::fire`] does, as a batch: all of its jobs are submitted, or none. `None` if it was not
    /// staged in time, or its id is taken: nothing has happened.
    ///
    /// # Errors
    /// [`StoreError`], as [`Store::fire`].
    pub async fn fire_batch(
        &self,
        name: &CronName,
        due: Timestamp,
        rules: (Overlap, CatchUp),
        batch: &FiredBatch<'_>,
        retention: Retention,
    ) -> Result<Option<Fired>, StoreError> {
        let FiredBatch { graph, jobs, note } = batch;
        let mut ask = self.firing((name, due), rules, (&graph.id, ""), retention);
        ask.arg("ask");
        let (code, detail): (String, String) = self.invoke(DOING, &ask).await?;
        if code != "stage" {
            return fired(&code, &detail, DOING).map(Some);
        }
        let staged = JobId::random();
        if self.stage_all(&staged, jobs, true).await?.is_some() {
            return Ok(None);
        }
        let mut script = self.firing((name, due), rules, (&graph.id, ""), retention);
        script.arg("batch").arg(staged.as_str()).arg(jobs.len()).arg(*note);
        graph.write(&mut script, jobs.len());
        let (code, detail): (String, String) = self.invoke(DOING, &script).await?;
        if code == "fired" {
            self.commit_all(&staged, &kept(retention)).await;
            return Ok(Some(Fired::Batch(graph.id.clone())));
        }
        // Another supervisor has fired it meanwhile.
        self.drop_staged(&staged, jobs.iter().map(|job| &job.id)).await?;
        if ["expired", "taken"].contains(&code.as_str()) {
            return Ok(None);
        }
        fired(&code, &detail, DOING).map(Some)
    }
}
