//! Graphs and batches in backups. The jobs of a graph are copied before it, and say what became of them.

use super::{Result, Store};
use crate::proto::backup::{GraphCopy, GraphJobsCopy};
use crate::proto::graph::GraphJobOutcome;
use crate::proto::job::JobId;

const COPYING: &str = "backing up graphs";
const RESTORING: &str = "restoring graphs";

impl Store {
    /// Copies a graph or batch without its jobs. `None` if it is gone.
    pub async fn backup_graph(&self, id: &JobId) -> Result<Option<GraphCopy>> {
        let key = self.keys.graph(id);
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGETALL").arg(&key).cmd("PTTL").arg(&key);
        let (fields, ttl): (Vec<(String, Vec<u8>)>, i64) =
            self.read_at_once(COPYING, &pipeline).await?;
        let Ok(ttl_ms) = u64::try_from(ttl) else { return Ok(None) };
        let fields = fields.into_iter().map(|(name, value)| (name, value.into())).collect();
        Ok(Some(GraphCopy { id: id.clone(), fields, ttl_ms }))
    }

    /// Copies some jobs of a graph, those after a score; empty at the end.
    pub async fn backup_graph_jobs(&self, id: &JobId, after: Option<u64>) -> Result<GraphJobsCopy> {
        // In the order of a job's life, so that none is missed.
        const ORDER: [GraphJobOutcome; 4] = [
            GraphJobOutcome::Waiting,
            GraphJobOutcome::Finished,
            GraphJobOutcome::Failed,
            GraphJobOutcome::Cancelled,
        ];
        let members = self.graph_members(id, &ORDER, after, Self::GRAPHS_PER_PAGE_MAX).await?;
        let jobs = members.into_iter().map(|member| (member.id, member.score)).collect();
        Ok(GraphJobsCopy { id: id.clone(), jobs })
    }

    /// Restores a graph or batch, which ends after [`Store::close_batch`]. Returns false if its id is taken.
    pub async fn restore_graph(&self, graph: &GraphCopy) -> Result<bool> {
        let mut script = self.scripts.restore_graph.prepare_invoke();
        script.arg(graph.id.as_str()).arg(graph.ttl_ms.max(1));
        for (name, value) in &graph.fields {
            script.arg(name).arg(value.decode().unwrap_or_default());
        }
        let answer: String = self.invoke(RESTORING, &script).await?;
        Ok(answer == "ok")
    }

    /// Restores jobs of a graph, which have been restored themselves. Calling again is safe.
    pub async fn restore_graph_jobs(&self, of: &GraphJobsCopy) -> Result<()> {
        for jobs in of.jobs.chunks(Self::GRAPHS_PER_PAGE_MAX) {
            let jobs: Vec<_> = jobs.iter().map(|(job, score)| (job.as_str(), *score)).collect();
            let arguments = (of.id.as_str(), "", jobs);
            self.run_script::<String>(RESTORING, &self.scripts.restore_graph, arguments).await?;
        }
        Ok(())
    }
}
