//! Atomic batches: jobs submitted all or none. They are staged in portions under keys of their own,
//! and committed by one script that renames these.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::Duration;

use redis::ScriptInvocation;

use super::attempts::kept;
use super::jobs::{ANY, Submitted, refused, standing};
use super::{Store, StoreError};
use crate::proto::job::{Job, JobId, JobStatus, Retention};

/// The answer to the submission of an atomic batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOutcome {
    /// All jobs were accepted.
    Accepted,
    /// One job was refused, so none was accepted.
    Refused {
        /// Its place among them, from 0.
        place: usize,
        /// The reason: anything but [`Submitted::Accepted`].
        why: Submitted,
    },
    /// Staging took so long that the first jobs expired; none was accepted.
    TooSlow,
}

/// The TTL of staged jobs.
const STAGED_FOR: Duration = Duration::from_mins(10);
/// The limits on one staging script.
const JOBS_PER_STEP: usize = 1000;
const ENTRIES_PER_STEP: usize = 20_000;
const BYTES_PER_STEP: usize = 4 << 20;
/// As `DEPENDENTS_FIELD_BYTES` in `shared/prerequisites.lua`.
const DEPENDENTS_FIELD_BYTES: usize = 32_768;

impl Store {
    /// The largest atomic batch: the time of its commit grows with the number of jobs.
    pub const WHOLE_MAX: usize = 20_000;
    /// The limit on prerequisites outside of the batch, for all its jobs together.
    pub const WHOLE_OTHERS_MAX: usize = 20_000;

    /// Submits jobs, all or none. They may wait for each other, in any order, but not in a circle.
    /// The caller checks this, their bounds and script types, and that ids and unique keys differ.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection the jobs may have been submitted: submitting them
    /// again returns [`Submitted::Exists`] for the first.
    pub async fn submit_atomic_batch(
        &self,
        jobs: &[Job],
        retention: impl Into<Retention>,
    ) -> Result<BatchOutcome, StoreError> {
        let parts = parts_of(jobs);
        let batch = JobId::random();
        let mut next = 0;
        while next < jobs.len() {
            let mut stage = self.scripts.stage.prepare_invoke();
            let number = step_len(&jobs[next..], &parts[next..]);
            stage.arg(batch.as_str()).arg(STAGED_FOR.as_secs()).arg(number);
            for (job, part) in jobs[next..].iter().zip(&parts[next..]).take(number) {
                part.stage(job, &mut stage);
            }
            self.invoke::<u64>("staging jobs", &stage).await?;
            next += number;
        }
        let mut commit = self.scripts.commit.prepare_invoke();
        commit.arg(batch.as_str()).arg(kept(retention)).arg(jobs.len());
        for (job, part) in jobs.iter().zip(&parts) {
            part.commit(job, &mut commit);
        }
        let doing = "submitting an atomic batch";
        let (place, code, detail): (i64, String, String) = self.invoke(doing, &commit).await?;
        match place {
            0 => Ok(BatchOutcome::Accepted),
            -1 => Ok(BatchOutcome::TooSlow),
            place => {
                let place = usize::try_from(place - 1).unwrap_or_default();
                let why = refused(&code, detail).filter(|_| place < jobs.len());
                why.map(|why| BatchOutcome::Refused { place, why })
                    .ok_or_else(|| StoreError::unexpected(doing))
            }
        }
    }
}

/// The prerequisites and dependents of a job, within the batch and outside of it.
#[derive(Debug, Default)]
struct StagedJob {
    /// Entries of its pending set.
    within: Vec<String>,
    /// Prerequisites outside of the batch, written alike.
    others: Vec<String>,
    /// The field `dependents`, without its brackets.
    dependents: String,
    /// Dependents for which the field has no room.
    more: Vec<JobId>,
}

fn parts_of(jobs: &[Job]) -> Vec<StagedJob> {
    let places: HashMap<&JobId, usize> =
        jobs.iter().enumerate().map(|(place, job)| (&job.id, place)).collect();
    let mut parts: Vec<StagedJob> = jobs.iter().map(|_| StagedJob::default()).collect();
    for (place, job) in jobs.iter().enumerate() {
        let strict = job.spec.prerequisites.iter().map(|id| (id, id.to_string()));
        let any = job.spec.after_any.iter().map(|id| (id, format!("{ANY}{id}")));
        let mut told = BTreeSet::new();
        for (id, entry) in strict.chain(any) {
            match places.get(id) {
                Some(prerequisite) => {
                    parts[place].within.push(entry);
                    if told.insert(prerequisite) {
                        parts[*prerequisite].add_dependent(&job.id);
                    }
                }
                None => parts[place].others.push(entry),
            }
        }
    }
    parts
}

/// The number of jobs that one script stages.
fn step_len(jobs: &[Job], parts: &[StagedJob]) -> usize {
    let (mut entries, mut bytes) = (0, 0);
    jobs.iter()
        .zip(parts)
        .take(JOBS_PER_STEP)
        .take_while(|(job, part)| {
            let first = entries == 0;
            entries += 1 + part.within.len() + part.more.len();
            bytes += job.spec.script.len() + part.dependents.len();
            first || entries <= ENTRIES_PER_STEP && bytes <= BYTES_PER_STEP
        })
        .count()
}

impl StagedJob {
    fn add_dependent(&mut self, id: &JobId) {
        // With its two brackets, as the scripts measure it.
        if !self.dependents.is_empty() && self.dependents.len() + 2 >= DEPENDENTS_FIELD_BYTES {
            self.more.push(id.clone());
            return;
        }
        let comma = if self.dependents.is_empty() { "" } else { "," };
        let _ = write!(self.dependents, "{comma}\"{id}\"");
    }

    fn stage(&self, job: &Job, script: &mut ScriptInvocation<'_>) {
        script.arg(job.id.as_str()).arg(self.within.len());
        for entry in &self.within {
            script.arg(entry.as_str());
        }
        script.arg(self.more.len());
        for id in &self.more {
            script.arg(id.as_str());
        }
        let mut fields = job.submitted_fields();
        if !self.dependents.is_empty() {
            fields.push(("dependents", format!("[{}]", self.dependents)));
        }
        if !self.more.is_empty() {
            fields.push(("dependents_more", self.more.len().to_string()));
        }
        let waits = !self.within.is_empty();
        let status = if waits { JobStatus::WaitingForPrerequisites } else { JobStatus::Created };
        fields.push(("status", status.to_string()));
        fields.push(("created_at", String::new()));
        script.arg(2 * fields.len());
        for (name, value) in fields {
            script.arg(name).arg(value);
        }
    }

    fn commit(&self, job: &Job, script: &mut ScriptInvocation<'_>) {
        standing(script, job);
        script.arg(self.within.len()).arg(u8::from(!self.more.is_empty())).arg(self.others.len());
        for entry in &self.others {
            script.arg(entry.as_str());
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

    #[test]
    fn prerequisites_within_the_batch_are_told_apart_from_those_outside() {
        let parts = parts_of(&[
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
    fn dependents_beyond_the_field_go_to_the_list_beside_it() {
        let mut jobs = vec![job("a", &[], &[])];
        jobs.extend((0..5000).map(|n| job(&format!("job-{n}"), &["a"], &[])));
        let parts = parts_of(&jobs);
        let first: Vec<String> =
            serde_json::from_str(&format!("[{}]", parts[0].dependents)).expect("JSON");
        assert!(parts[0].dependents.len() + 2 >= DEPENDENTS_FIELD_BYTES);
        assert!(parts[0].dependents.len() < DEPENDENTS_FIELD_BYTES + 64);
        assert_eq!(first.len() + parts[0].more.len(), 5000);
        assert_eq!(parts[0].more[0].as_str(), format!("job-{}", first.len()));
    }

    #[test]
    fn a_step_stages_at_least_one_job_and_no_more_than_its_share() {
        let many: Vec<Job> = (0..2500).map(|n| job(&format!("j{n}"), &[], &[])).collect();
        assert_eq!(step_len(&many, &parts_of(&many)), JOBS_PER_STEP);
        let mut large = job("large", &[], &[]);
        large.spec.script = "1".repeat(BYTES_PER_STEP + 1);
        let large = [large, job("small", &[], &[])];
        assert_eq!(step_len(&large, &parts_of(&large)), 1);
    }
}
