//! Atomic batches: jobs submitted all or none. They are staged in portions under keys of their own, by
//! calls that check them and reserve their ids. One call decides; from then on the jobs are submitted
//! in portions, by the client, or by a supervisor if that has gone.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::time::Duration;

use redis::ScriptInvocation;

use super::attempts::kept;
use super::batch_order::{links_of, order_of, ranks_of};
use super::graphs::NewGraph;
use super::portions::{LINK_WORK, portions};
use super::submission::{ANY, Submitted, WithFields, graph_of, refused, standing, work};
use super::{BatchStore, Result, Store, StoreError};
use crate::proto::job::{Job, JobId, JobStatus, Retention};

/// The answer to the submission of an atomic batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOutcome {
    Accepted,
    Refused {
        /// Its place among them, from 0.
        place: usize,
        /// The reason: anything but [`Submitted::Accepted`].
        why: Submitted,
    },
    /// Too much time passed between two steps of staging; none was accepted.
    TooSlow,
    /// Another graph or batch has its id; none was accepted.
    GraphExists,
}

/// The reason of [`BatchOutcome::TooSlow`].
pub const TOO_SLOW: &str =
    "too much time passed between two steps of storing the jobs; submit them again";

/// The time within which the next step must come; else the batch is void.
const NEXT_STEP_WITHIN: Duration = Duration::from_secs(30);
/// The TTL of staged keys: the time in which a supervisor commits the rest for a client that died.
const STAGED_FOR: Duration = Duration::from_hours(24);
/// Prerequisites outside of the batch that one call looks at for one job.
const OTHERS_PER_CALL: usize = 400;
/// The work of an id in a set or a list.
const ENTRY_WORK: usize = 128;
/// As `DEPENDENTS_FIELD_BYTES` in `shared/prerequisites.lua`.
const DEPENDENTS_FIELD_BYTES: usize = 32_768;

impl Store {
    pub const WHOLE_MAX: usize = 20_000;

    /// The limit on prerequisites outside of the batch, for all its jobs together.
    pub const WHOLE_OTHERS_MAX: usize = 20_000;
}

impl BatchStore<'_> {
    /// Submits jobs, all or none, and makes them a graph if there is one. They may wait for each other, in any order, but
    /// not in a circle. The caller checks this, their bounds and script types, and that ids and unique keys differ.
    ///
    /// # Errors
    /// [`StoreError`], and then none was submitted. Only if the connection was lost they may have been: submitting them
    /// again returns [`Submitted::Exists`] for one of them.
    pub async fn submit(
        self,
        jobs: &[Job],
        graph: Option<&NewGraph>,
        retention: impl Into<Retention>,
    ) -> Result<BatchOutcome> {
        let batch = JobId::random();
        if let Some(refused) = self.stage_all(&batch, jobs, graph.is_some()).await? {
            return Ok(refused);
        }
        let retention = kept(retention);
        match self.commit_step(batch.as_str(), Some((jobs.len(), graph)), &retention).await? {
            -2 => {
                self.drop_staged(&batch, jobs.iter().map(|job| &job.id)).await?;
                return Ok(BatchOutcome::GraphExists);
            }
            ..0 => return Ok(BatchOutcome::TooSlow),
            _ => {}
        }
        self.commit_all(&batch, &retention).await;
        Ok(BatchOutcome::Accepted)
    }

    /// Stages jobs, with their places in the graph that they become. Returns the reason if the batch is refused.
    pub(super) async fn stage_all(
        self,
        batch: &JobId,
        jobs: &[Job],
        is_graph: bool,
    ) -> Result<Option<BatchOutcome>> {
        let links = links_of(jobs);
        let parts = parts_of(jobs, &links);
        let ranks = is_graph.then(|| ranks_of(&links));
        let staged = order_of(&links).into_iter().map(|place| StagedJob {
            place,
            rank: ranks.as_ref().map(|ranks| ranks[place]),
            job: self.store.jobs().fields_of(&jobs[place]),
            part: &parts[place],
        });
        self.stage(batch, &staged.collect::<Vec<_>>()).await
    }

    /// Submits the jobs of a batch whose submission is decided. Where a step fails, a supervisor makes the rest.
    pub(super) async fn commit_all(self, batch: &JobId, retention: &str) {
        let batch = batch.as_str();
        while self.commit_step(batch, None, retention).await.is_ok_and(|left| left > 0) {}
    }

    /// Makes one step of a commit that its client may have left. Returns true if there was one.
    pub async fn commit_left(self, retention: impl Into<Retention>) -> Result<bool> {
        Ok(self.commit_step("", None, &kept(retention)).await? > 0)
    }

    /// Makes all steps of the commits that were begun, so that all their jobs exist. Returns true if there was one.
    pub async fn finish(self, retention: impl Into<Retention>) -> Result<bool> {
        let retention = kept(retention);
        let key = self.store.keys.committing();
        let mut was_any = false;
        loop {
            let left: u64 =
                self.store.link.command("looking for unfinished batches", "LLEN", &key).await?;
            if left == 0 {
                return Ok(was_any);
            }
            was_any = true;
            self.commit_step("", None, &retention).await?;
        }
    }

    async fn commit_step(
        self,
        batch: &str,
        begin: Option<(usize, Option<&NewGraph>)>,
        retention: &str,
    ) -> Result<i64> {
        let mut commit = self.store.scripts.commit.prepare_invoke();
        let number = begin.map(|(number, _)| number.to_string()).unwrap_or_default();
        commit.arg(batch).arg(number).arg(retention);
        match begin.and_then(|(number, graph)| Some((number, graph?))) {
            Some((number, graph)) => graph.write(&mut commit, number),
            None => drop(commit.arg("")),
        }
        self.store.invoke("submitting an atomic batch", &commit).await
    }

    /// Stages all jobs. Returns the reason if the batch is refused.
    async fn stage(self, batch: &JobId, jobs: &[StagedJob<'_>]) -> Result<Option<BatchOutcome>> {
        let mut before = 0;
        for portion in portions(jobs, StagedJob::work) {
            let mut stage = self.store.scripts.stage.prepare_invoke();
            head(&mut stage, batch).arg(before).arg(portion.len());
            for job in portion {
                job.stage(&mut stage);
            }
            let (place, code, detail): (i64, String, String) =
                self.store.invoke_for_caller("staging jobs", None, stage).await?;
            if place == -1 {
                return Ok(Some(BatchOutcome::TooSlow));
            }
            let refused_job = usize::try_from(place - 1).ok().and_then(|place| portion.get(place));
            let mut why = None;
            if let Some(StagedJob { place, .. }) = refused_job {
                let unexpected = || StoreError::unexpected("staging jobs");
                why = Some((*place, refused(&code, detail).ok_or_else(unexpected)?));
            } else {
                before += portion.len();
                for job in portion {
                    if let Some(unknown) = self.stage_others(batch, job).await? {
                        why = Some((job.place, Submitted::UnknownPrerequisite(unknown)));
                        break;
                    }
                }
            }
            if let Some((place, why)) = why {
                let staged = jobs[..before].iter().map(|StagedJob { job: (job, _), .. }| &job.id);
                self.drop_staged(batch, staged).await?;
                return Ok(Some(BatchOutcome::Refused { place, why }));
            }
        }
        Ok(None)
    }

    /// Stages the prerequisites outside of the batch beyond one call. Returns the first that does not exist.
    async fn stage_others(
        self,
        batch: &JobId,
        StagedJob { job: (job, _), part, .. }: &StagedJob<'_>,
    ) -> Result<Option<String>> {
        for others in part.others.chunks(OTHERS_PER_CALL).skip(1) {
            let mut stage = self.store.scripts.stage_others.prepare_invoke();
            head(&mut stage, batch).arg(job.id.as_str()).arg(others);
            let unknown: String =
                self.store.invoke_for_caller("staging prerequisites", None, stage).await?;
            if !unknown.is_empty() {
                return Ok(Some(unknown));
            }
        }
        Ok(None)
    }

    /// Deletes the staged keys of a refused batch; without this they would expire.
    pub(super) async fn drop_staged(
        self,
        batch: &JobId,
        jobs: impl Iterator<Item = &JobId>,
    ) -> Result<()> {
        const JOBS_PER_CALL: usize = 100;
        for some in jobs.collect::<Vec<_>>().chunks(JOBS_PER_CALL) {
            let mut unlink = redis::cmd("UNLINK");
            for id in some {
                unlink.arg(&self.store.keys.staged_parts(batch, id));
            }
            self.store.link.query::<u64>("deleting staged jobs", &unlink).await?;
        }
        Ok(())
    }
}

/// Adds the first arguments of every staging call.
fn head<'a, 'b>(
    stage: &'a mut ScriptInvocation<'b>,
    batch: &JobId,
) -> &'a mut ScriptInvocation<'b> {
    stage.arg(batch.as_str()).arg(NEXT_STEP_WITHIN.as_secs()).arg(STAGED_FOR.as_secs())
}

/// The prerequisites and dependents of a job, within the batch and outside of it.
#[derive(Debug, Default)]
struct Part {
    /// Entries of its pending set.
    within: Vec<String>,
    /// Prerequisites outside of the batch, written alike.
    others: Vec<String>,
    /// The field `dependents`, without its brackets.
    dependents: String,
    /// Dependents that do not fit into the field.
    more: Vec<JobId>,
}

fn parts_of(jobs: &[Job], links: &[BTreeSet<usize>]) -> Vec<Part> {
    let ids: HashSet<&JobId> = jobs.iter().map(|job| &job.id).collect();
    let mut parts: Vec<Part> = jobs.iter().map(|_| Part::default()).collect();
    for (place, job) in jobs.iter().enumerate() {
        let strict = job.spec.prerequisites.iter().map(|id| (id, id.to_string()));
        let any = job.spec.after_any.iter().map(|id| (id, format!("{ANY}{id}")));
        for (id, entry) in strict.chain(any) {
            let part = &mut parts[place];
            let list = if ids.contains(id) { &mut part.within } else { &mut part.others };
            list.push(entry);
        }
        for prerequisite in &links[place] {
            parts[*prerequisite].add_dependent(&job.id);
        }
    }
    parts
}

impl Part {
    fn add_dependent(&mut self, id: &JobId) {
        // With its two brackets, as the scripts measure it.
        if !self.dependents.is_empty() && self.dependents.len() + 2 >= DEPENDENTS_FIELD_BYTES {
            self.more.push(id.clone());
            return;
        }
        let comma = if self.dependents.is_empty() { "" } else { "," };
        let _ = write!(self.dependents, "{comma}\"{id}\"");
    }
}

struct StagedJob<'a> {
    /// Its place in the batch.
    place: usize,
    /// Its place in the graph that the batch becomes.
    rank: Option<usize>,
    job: WithFields<'a>,
    part: &'a Part,
}

impl StagedJob<'_> {
    fn work(&self) -> usize {
        let Part { within, others, dependents, more } = self.part;
        let others = others.len().min(OTHERS_PER_CALL);
        let ids = within.len() + more.len();
        work(&self.job) + LINK_WORK * others + ENTRY_WORK * ids + dependents.len()
    }

    fn stage(&self, script: &mut ScriptInvocation<'_>) {
        let Self { rank, job: (job, fields), part, .. } = self;
        let Part { within, others, dependents, more } = part;
        let others = &others[..others.len().min(OTHERS_PER_CALL)];
        standing(script, job);
        script.arg(graph_of(job)).arg(rank.map(|rank| rank.to_string()).unwrap_or_default());
        script.arg(others.len()).arg(others).arg(within.len()).arg(within);
        script.arg(more.len());
        for id in more {
            script.arg(id.as_str());
        }
        let mut first = Vec::new();
        if !dependents.is_empty() {
            first.push(("dependents", format!("[{dependents}]")));
        }
        if !more.is_empty() {
            first.push(("dependents_more", more.len().to_string()));
        }
        let waits = !within.is_empty();
        let status = if waits { JobStatus::WaitingForPrerequisites } else { JobStatus::Created };
        let last = [("status", status.to_string()), ("created_at", String::new())];
        script.arg(2 * (first.len() + fields.len() + last.len()));
        for (name, value) in first.iter().chain(fields).chain(&last) {
            script.arg(*name).arg(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, prerequisites: &[&str], after_any: &[&str]) -> Job {
        let legal = |ids: &[&str]| ids.iter().map(|id| id.parse().expect("legal")).collect();
        let mut job = Job::new(id.parse().expect("legal"), "1");
        (job.spec.prerequisites, job.spec.after_any) = (legal(prerequisites), legal(after_any));
        job
    }

    fn parts(jobs: &[Job]) -> Vec<Part> {
        parts_of(jobs, &links_of(jobs))
    }

    #[test]
    fn prerequisites_within_the_batch_are_distinguished_from_those_outside() {
        let parts = parts(&[
            job("c", &["a", "b"], &["a", "old"]),
            job("a", &[], &[]),
            job("b", &["a"], &[]),
        ]);
        assert_eq!(parts[0].within, ["a", "b", "?a"]);
        assert_eq!(parts[0].others, ["?old"]);
        assert_eq!(parts[1].dependents, r#""c","b""#);
        assert_eq!(parts[2].dependents, r#""c""#);
    }

    #[test]
    fn dependents_beyond_the_field_go_to_a_list() {
        let mut jobs = vec![job("a", &[], &[])];
        jobs.extend((0..5000).map(|n| job(&format!("job-{n}"), &["a"], &[])));
        let parts = parts(&jobs);
        let first: Vec<String> =
            serde_json::from_str(&format!("[{}]", parts[0].dependents)).expect("JSON");
        assert!(parts[0].dependents.len() + 2 >= DEPENDENTS_FIELD_BYTES);
        assert!(parts[0].dependents.len() < DEPENDENTS_FIELD_BYTES + 64);
        assert_eq!(first.len() + parts[0].more.len(), 5000);
        assert_eq!(parts[0].more[0].as_str(), format!("job-{}", first.len()));
    }

    #[test]
    fn the_dependents_of_a_job_are_committed_before_it_and_the_first_jobs_in_their_order() {
        let order = |jobs: &[Job]| order_of(&links_of(jobs));
        let jobs = [
            job("a", &[], &[]),
            job("b", &["a"], &[]),
            job("c", &["b", "f"], &["a"]),
            job("d", &["c"], &["elsewhere"]),
            job("e", &["b", "d"], &[]),
            job("f", &[], &[]),
        ];
        assert_eq!(order(&jobs), [4, 3, 2, 1, 0, 5]);
        assert_eq!(ranks_of(&links_of(&jobs)), [0, 1, 3, 4, 5, 2]);
        let chain: Vec<Job> = (0..20_000)
            .map(|n| {
                let before = format!("j{}", n + 1);
                let before = [before.as_str()];
                job(&format!("j{n}"), if n < 19_999 { &before } else { &[] }, &[])
            })
            .collect();
        assert!(order(&chain).is_sorted());
    }
}
