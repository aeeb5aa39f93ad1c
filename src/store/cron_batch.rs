//! The firing of a periodic job that is a batch or a graph: staged, and decided in the step that notes the firing.

use jiff::Timestamp;
use redis::ScriptInvocation;

use super::attempts::kept;
use super::cron_marks::backfilled;
use super::cron_state::fired;
use super::{BackfilledJob, BatchOutcome, Fired, NewGraph, Store, StoreError};
use crate::proto::cron::{CatchUp, CronName, Overlap};
use crate::proto::job::{Job, JobId, Retention};

const DOING: &str = "firing a periodic job as a batch";

/// The batch or graph of a firing.
#[derive(Debug)]
pub struct FiredBatch {
    pub graph: NewGraph,
    /// Its jobs, which name it.
    pub jobs: Vec<Job>,
    /// A remark for the history.
    pub note: String,
}

impl Store {
    /// Fires a periodic job as [`Store::fire`] does, as a batch or graph: all of its jobs are submitted, or none. The error is
    /// the reason why it could not be staged, or its id is taken: nothing has happened.
    ///
    /// # Errors
    /// [`StoreError`], as [`Store::fire`].
    pub async fn fire_batch(
        &self,
        name: &CronName,
        due: Timestamp,
        rules: (Overlap, CatchUp),
        batch: &FiredBatch,
        retention: Retention,
    ) -> Result<Result<Fired, BatchOutcome>, StoreError> {
        let call = || self.firing((name, due), rules, (&batch.graph.id, ""), retention);
        Ok(match self.decide(call, batch, retention).await? {
            Ok((code, _)) if code == "fired" => Ok(Fired::Batch(batch.graph.id.clone())),
            Ok((code, detail)) => Ok(fired(&code, &detail, DOING)?),
            Err(outcome) => Err(outcome),
        })
    }

    /// Submits the graph of a periodic job for a time of the past, as [`Store::backfill`] does. The error is as of
    /// [`Store::fire_batch`].
    pub async fn backfill_graph(
        &self,
        name: &CronName,
        due: Timestamp,
        fired: (&JobId, bool),
        graph: &FiredBatch,
        retention: Retention,
    ) -> Result<Result<BackfilledJob, BatchOutcome>, StoreError> {
        let call = || self.filling(name, due, fired);
        Ok(match self.decide(call, graph, retention).await? {
            Ok((code, detail)) => Ok(backfilled(&code, detail)?),
            Err(outcome) => Err(outcome),
        })
    }

    /// Stages the jobs of a batch, unless the call that would decide it says that it is not needed, and makes that call.
    async fn decide<'s>(
        &'s self,
        call: impl Fn() -> ScriptInvocation<'s>,
        FiredBatch { graph, jobs, note }: &FiredBatch,
        retention: Retention,
    ) -> Result<Result<(String, String), BatchOutcome>, StoreError> {
        let mut ask = call();
        ask.arg("ask").arg(graph.id.as_str());
        let (code, detail): (String, String) = self.invoke(DOING, &ask).await?;
        if code != "stage" {
            return Ok(Ok((code, detail)));
        }
        let staged = JobId::random();
        if let Some(refused) = self.stage_all(&staged, jobs, true).await? {
            return Ok(Err(refused));
        }
        let mut script = call();
        script.arg("batch").arg(staged.as_str()).arg(jobs.len()).arg(note);
        graph.write(&mut script, jobs.len());
        let (code, detail): (String, String) = self.invoke(DOING, &script).await?;
        if ["fired", "submitted"].contains(&code.as_str()) {
            self.commit_all(&staged, &kept(retention)).await;
            return Ok(Ok((code, detail)));
        }
        // Another supervisor has fired it meanwhile.
        self.drop_staged(&staged, jobs.iter().map(|job| &job.id)).await?;
        Ok(match code.as_str() {
            "expired" => Err(BatchOutcome::TooSlow),
            "taken" => Err(BatchOutcome::GraphExists),
            _ => Ok((code, detail)),
        })
    }
}
