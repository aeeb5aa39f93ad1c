//! Waits in the model: what a job waits for, and what ends its wait.

use hero::proto::job::JobStatus::Scheduled;
use hero::store::TellOutcome;
use serde_json::json;

use super::legal;
use super::reference::{ANY, Job, Model};
use super::steps::Walk;

/// The names of events.
pub(super) const EVENTS: [&str; 2] = ["go", "on"];

/// The wait of the script of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    Event(&'static str),
    Jobs(Vec<String>),
    Children,
}

impl Wait {
    /// Returns the name of the event that it is for.
    pub(super) fn event(&self) -> Option<&'static str> {
        if let Self::Event(name) = self { Some(name) } else { None }
    }

    /// Returns the text of the field.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Event(name) => json!({ "event": name }).to_string(),
            Self::Jobs(ids) => json!({ "jobs": ids }).to_string(),
            Self::Children => json!({ "children": true }).to_string(),
        }
    }
}

impl Model {
    /// An attempt ends, and its job runs again once its wait ends. It has left the index that it stood in.
    pub(super) fn begin_wait(&mut self, id: &str, until: u64, wait: &Wait) {
        let script_type = self.jobs[id].script_type.clone();
        self.count(&script_type, "postponed");
        let mut event = None;
        let has_come = match wait {
            Wait::Event(name) => {
                event = Some(*name);
                self.jobs.get_mut(id).expect("a job that ran").told.remove(name)
            }
            Wait::Jobs(_) | Wait::Children => {
                let others = self.awaited(id, wait);
                let pending: Vec<String> =
                    others.iter().filter(|other| self.is_on_its_way(other)).cloned().collect();
                for other in &pending {
                    self.note_dependent(other, id);
                }
                let job = self.jobs.get_mut(id).expect("a job that ran");
                job.pending = pending.iter().map(|other| format!("{ANY}{other}")).collect();
                pending.is_empty()
            }
        };
        let looked = self.turn;
        let job = self.jobs.get_mut(id).expect("a job that ran");
        job.attempt -= 1;
        job.waits += 1;
        (job.run_at, job.due, job.looked) = (Some(until), false, looked);
        (job.wait, job.event, job.missed) = (Some(wait.clone()), None, None);
        if has_come {
            self.wake(id, event);
        } else {
            self.enter(Scheduled, id);
        }
    }

    /// The jobs that a wait of a job is for.
    fn awaited(&self, id: &str, wait: &Wait) -> Vec<String> {
        match wait {
            Wait::Event(_) => Vec::new(),
            Wait::Jobs(others) => others.clone(),
            Wait::Children => self.jobs[id].children.clone(),
        }
    }

    fn is_on_its_way(&self, id: &str) -> bool {
        self.jobs.get(id).is_some_and(|job| !job.status.is_terminal())
    }

    /// Ends the wait of a job, which goes to its queue.
    pub(super) fn wake(&mut self, id: &str, event: Option<&'static str>) {
        self.leave(id);
        let job = self.jobs.get_mut(id).expect("a job that waits");
        (job.wait, job.event, job.missed, job.boot) = (None, event, None, None);
        job.pending.clear();
        self.push_back(id);
    }

    /// A look at a job that is due. Returns true if it goes on waiting.
    pub(super) fn waits_on(&mut self, id: &str) -> bool {
        let Some(wait @ (Wait::Jobs(_) | Wait::Children)) = self.jobs[id].wait.clone() else {
            return false;
        };
        let waits = self.awaited(id, &wait).iter().any(|other| self.is_on_its_way(other));
        let looked = self.turn;
        if waits {
            let job = self.jobs.get_mut(id).expect("it was looked at");
            (job.due, job.looked) = (false, looked);
        }
        waits
    }

    /// The order in which jobs that are due are dispatched: waits for jobs are looked at an hour later, all others are
    /// further ahead.
    pub(super) fn order_of(&self, id: &str) -> (bool, u64, String) {
        let job = &self.jobs[id];
        match &job.wait {
            Some(Wait::Jobs(_) | Wait::Children) => (false, job.looked, id.to_owned()),
            _ => (true, job.run_at.expect("a scheduled job has a time"), id.to_owned()),
        }
    }

    fn tell(&mut self, id: &str, event: &'static str) -> TellOutcome {
        let Some(job) = self.jobs.get_mut(id) else { return TellOutcome::Missing };
        if job.status.is_terminal() {
            return TellOutcome::Refused(job.status);
        }
        if job.status == Scheduled && job.wait == Some(Wait::Event(event)) {
            self.wake(id, Some(event));
            return TellOutcome::Told;
        }
        if job.missed == Some(event) {
            return TellOutcome::Missed;
        }
        if job.event == Some(event) || !job.told.insert(event) {
            return TellOutcome::Twice;
        }
        TellOutcome::Kept
    }
}

impl Walk {
    /// Returns a wait for an event, for its children, or for jobs, of which some may not exist.
    pub(super) fn any_wait(&mut self, id: &str) -> Wait {
        if self.chance(2) {
            return Wait::Event(EVENTS[usize::from(self.chance(2))]);
        }
        if self.chance(3) {
            return Wait::Children;
        }
        let mut others = Vec::new();
        for _ in 0..=usize::from(self.chance(2)) {
            let known = self.any_job(|_| true).filter(|known| known != id);
            others.push(known.unwrap_or_else(|| "nobody".to_owned()));
        }
        Wait::Jobs(others)
    }

    /// Tells a job an event, mostly one that waits for an event.
    pub(super) async fn tell(&mut self) -> String {
        let waits = |job: &Job| matches!(job.wait, Some(Wait::Event(_)));
        let id = if self.chance(4) { None } else { self.any_job(waits) };
        let Some(id) = id.or_else(|| self.any_job(|_| true)) else {
            return "tell nothing".to_owned();
        };
        let event = EVENTS[usize::from(self.chance(2))];
        let text = json!({ "event": event, "data": null }).to_string();
        let answer = self.world.store.jobs().tell(&legal(&id), (event, &text), &[]).await;
        let answer = answer.expect("redis answers");
        assert_eq!(answer, self.model.tell(&id, event), "tell {id} {event}");
        format!("tell {id} {event}: {answer:?}")
    }
}

/// Returns the name of an event as its field has it.
pub(super) fn name_of(event: &str) -> Option<String> {
    let event: serde_json::Value = serde_json::from_str(event).ok()?;
    event["event"].as_str().map(str::to_owned)
}

/// Returns the names of the events that a job keeps, as the field has them.
pub(super) fn names_told(told: &str) -> Vec<String> {
    let told: Vec<serde_json::Value> = serde_json::from_str(told).unwrap_or_default();
    let mut names: Vec<String> =
        told.iter().filter_map(|event| event["event"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}
