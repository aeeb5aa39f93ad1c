//! Children and states in the model: what the script of a job submits and keeps while it runs.

use std::collections::BTreeSet;

use hero::proto::job::{
    ChildName, GENERATIONS_MAX, Job as Submission, JobId, JobStatus, NewChildren, child_id,
};
use hero::store::{self, ChildSubmitted};
use serde_json::json;

use super::legal;
use super::reference::{Job, Model, Submitted};
use super::steps::{JOBS_MAX, Walk};
use crate::support::{Life, RETENTION};

/// The most children of a job.
const CHILDREN_MAX: usize = 3;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A request of an attempt, and whether that still runs.
struct Asking {
    life: Life,
    id: String,
    claimed_at: u64,
    runs: bool,
}

impl Model {
    /// Returns whether the state is kept.
    fn keep_state(&mut self, id: &str, runs: bool, state: Option<u64>) -> bool {
        if runs {
            self.jobs.get_mut(id).expect("a job that runs").state = state;
        }
        runs
    }

    fn submit_child(
        &mut self,
        parent: &str,
        runs: bool,
        (id, mut child): (&str, Job),
    ) -> ChildSubmitted {
        if !runs {
            return ChildSubmitted::Lost;
        }
        let known = self.jobs[parent].children.clone();
        if known.iter().any(|of| of == id) {
            return ChildSubmitted::Known;
        }
        if known.len() >= CHILDREN_MAX {
            return ChildSubmitted::TooMany;
        }
        let generation = self.jobs[parent].generation + 1;
        if generation > GENERATIONS_MAX {
            return ChildSubmitted::TooDeep;
        }
        if let Some(stranger) = child.prerequisites.iter().find(|of| !known.contains(of)) {
            return ChildSubmitted::Stranger(stranger.clone());
        }
        (child.parent, child.generation) = (Some(parent.to_owned()), generation);
        match self.submit(id, child, true) {
            Submitted::Accepted(_) => {}
            Submitted::Exists => return ChildSubmitted::Refused(store::Submitted::Exists),
            Submitted::Duplicate(holder) => {
                return ChildSubmitted::Refused(store::Submitted::Duplicate(Some(legal(&holder))));
            }
            Submitted::UnknownPrerequisite(unknown) => {
                return ChildSubmitted::Refused(store::Submitted::UnknownPrerequisite(unknown));
            }
        }
        self.jobs.get_mut(parent).expect("a job that runs").children.push(id.to_owned());
        ChildSubmitted::Accepted
    }
}

impl Walk {
    /// Returns an attempt that asks for something: mostly one that runs, at times an earlier one of its job, or one of
    /// another life.
    fn asking(&mut self) -> Option<Asking> {
        let life = self.any_life()?;
        let own = self.model.running.get(life.boot.as_str()).cloned().unwrap_or_default();
        let is_any = own.is_empty() || self.chance(6);
        let boot = (!is_any).then(|| life.boot.to_string());
        let runs =
            |job: &Job| boot.is_none() || job.status == JobStatus::Started && job.boot == boot;
        // Mostly one that has children.
        let parent = self.any_job(|job| runs(job) && !job.children.is_empty());
        let id = parent.filter(|_| !self.chance(3)).or_else(|| self.any_job(runs))?;
        let mut claimed_at = self.world.claimed_at(&life, &legal(&id));
        let is_earlier = self.chance(6);
        if is_earlier {
            claimed_at = claimed_at.saturating_sub(1);
        }
        let runs = own.contains(&id) && !is_earlier;
        Some(Asking { life, id, claimed_at, runs })
    }

    pub(super) async fn keep_state(&mut self) -> String {
        let Some(Asking { life, id, claimed_at, runs }) = self.asking() else {
            return "nobody keeps a state".to_owned();
        };
        let state = (!self.chance(4)).then(|| self.time().0);
        let text = state.map(|state| state.to_string()).unwrap_or_default();
        let kept = self
            .world
            .store
            .attempts()
            .keep_state(&life.boot, (&legal(&id), claimed_at), &text)
            .await;
        let said = format!("{} keeps {text:?} for {id}, which it runs: {runs}", life.actor);
        assert_eq!(kept.expect("redis answers"), self.model.keep_state(&id, runs, state), "{said}");
        said
    }

    pub(super) async fn submit_child(&mut self) -> String {
        if self.model.jobs.len() >= JOBS_MAX {
            return "there are enough jobs for a child".to_owned();
        }
        let Some(Asking { life, id, claimed_at, runs }) = self.asking() else {
            return "nobody submits a child".to_owned();
        };
        let mut prerequisites = BTreeSet::new();
        if self.chance(3) {
            prerequisites.insert(self.any_child_of(&id));
        }
        let script_type = ["osis", "sal"][usize::from(self.chance(2))];
        let name = NAMES[usize::from(self.chance(2))
            + usize::from(self.chance(2)) * 2
            + usize::from(self.chance(5))];
        let line =
            json!({ "type": script_type, "script": "1", "name": name, "after": prerequisites });
        let mut job = NewChildren::of_json(&line.to_string()).expect("legal").jobs.remove(0);
        job.id = child_of(&id, name);
        let queue = job.spec.queue().expect("a typed job has a queue").to_string();
        let child = Job {
            prerequisites: prerequisites.into_iter().collect(),
            ..Job::new(script_type, &queue)
        };
        let said =
            format!("{} submits {name} of {id}, which it runs: {runs}, as {child:?}", life.actor);
        let attempt = (&legal(&id), claimed_at);
        let answer = self
            .world
            .store
            .jobs()
            .submit_children(
                &life.boot,
                attempt,
                (std::slice::from_ref(&job), None),
                CHILDREN_MAX as u64,
                RETENTION,
            )
            .await;
        let expected = self.model.submit_child(&id, runs, (job.id.as_str(), child));
        assert_eq!(answer.expect("redis answers").0, expected, "{said}");
        format!("{said}: {expected:?}")
    }

    /// Returns a child of a job, or a name that it has not submitted, or another job.
    fn any_child_of(&mut self, id: &str) -> String {
        let known = self.any_job(|job| job.parent.as_deref() == Some(id));
        let known = known.filter(|_| !self.chance(4)).or_else(|| self.any_job(|_| true));
        known.unwrap_or_else(|| child_of(id, NAMES[0]).to_string())
    }
}

fn child_of(parent: &str, name: &str) -> JobId {
    child_id(&Submission::new(legal(parent), "1"), &ChildName::Named(name))
}

/// Returns the text of the field of children.
pub(super) fn text_of(children: &[String]) -> String {
    if children.is_empty() { String::new() } else { json!(children).to_string() }
}
