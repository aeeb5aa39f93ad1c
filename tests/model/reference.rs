//! The pure model: what each operation makes of jobs, queues and counters, by the protocol alone.
//! It knows no Redis and no clock; a time is a place in the order of times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hero::proto::job::JobStatus::{
    self, Created, Dispatched, Error, Finished, Scheduled, Started, WaitingForPrerequisites,
};

use super::waits::Wait;

/// Actors that may die running a job before it is given up.
pub(super) const CRASH_LIMIT: u32 = 3;
/// The depth of recovery's search in a list for an entry of Hero's own.
const HEAD_DEPTH: usize = 50;

/// The mark of a prerequisite that only has to end.
pub(super) const ANY: char = '?';

/// A job as its hash should say.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the hash")]
pub(super) struct Job {
    pub(super) status: JobStatus,
    pub(super) script_type: String,
    /// The queue its target and priority name.
    pub(super) queue: String,
    pub(super) unique: Option<String>,
    /// It takes the place of a job that waits with its unique key.
    pub(super) replaces: bool,
    pub(super) prerequisites: Vec<String>,
    /// The prerequisites that only have to end.
    pub(super) after_any: Vec<String>,
    /// The prerequisites that have not ended, with [`ANY`] before those that only have to end.
    pub(super) pending: BTreeSet<String>,
    pub(super) dependents: Vec<String>,
    /// When it is to run, as a place in the order of times to come.
    pub(super) run_at: Option<u64>,
    /// True once that time has come.
    pub(super) due: bool,
    pub(super) attempt: u32,
    pub(super) crashes: u32,
    /// The last boot that claimed it; `None` for a foreign actor.
    pub(super) boot: Option<String>,
    /// True if it failed because a prerequisite did.
    pub(super) failed_in_vain: bool,
    /// True once Hero knows of its end: an end that a foreign actor wrote must be noticed.
    pub(super) retained: bool,
    /// The state that its script kept for the next attempt.
    pub(super) state: Option<u64>,
    /// The jobs that its script submitted, in order.
    pub(super) children: Vec<String>,
    /// The job whose script submitted it.
    pub(super) parent: Option<String>,
    /// The number of jobs above it.
    pub(super) generation: u32,
    /// The wait of its script.
    pub(super) wait: Option<Wait>,
    /// The number of its waits.
    pub(super) waits: u32,
    /// The event that ended its last wait, if that had a name.
    pub(super) event: Option<&'static str>,
    /// The event that its last wait was for, if that ended by its time.
    pub(super) missed: Option<&'static str>,
    /// The events that it was told before it waits for them.
    pub(super) told: BTreeSet<&'static str>,
    /// The turn in which its wait for jobs was looked at last.
    pub(super) looked: u64,
    /// It was told to stop while it ran: it does not run again.
    pub(super) is_to_stop: bool,
}

impl Job {
    pub(super) fn new(script_type: &str, queue: &str) -> Self {
        Self {
            status: Created,
            script_type: script_type.to_owned(),
            queue: queue.to_owned(),
            unique: None,
            replaces: false,
            prerequisites: Vec::new(),
            after_any: Vec::new(),
            pending: BTreeSet::new(),
            dependents: Vec::new(),
            run_at: None,
            due: false,
            attempt: 0,
            crashes: 0,
            boot: None,
            failed_in_vain: false,
            retained: false,
            state: None,
            children: Vec::new(),
            parent: None,
            generation: 0,
            wait: None,
            waits: 0,
            event: None,
            missed: None,
            told: BTreeSet::new(),
            looked: 0,
            is_to_stop: false,
        }
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.status == Started && self.boot.is_none()
    }
}

/// The expected answer to a submission.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Submitted {
    Accepted(JobStatus),
    Exists,
    Duplicate(String),
    UnknownPrerequisite(String),
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Finished,
    Error,
    Dead,
    /// Tried again at this time.
    Retry(u64),
    /// Run again once this has come, or at this time.
    Wait(u64, Wait),
}

/// The expected answer to an ending.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    Stands,
    Before,
    Lost,
}

/// The expected answer to a retry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Retried {
    Moved(JobStatus),
    Missing,
    Refused(JobStatus),
    Duplicate(String),
    FailedPrerequisite,
    LostPrerequisite,
}

/// Everything in Redis, as it should be.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) jobs: BTreeMap<String, Job>,
    /// Work lists by queue, head first.
    pub(super) lists: BTreeMap<String, VecDeque<String>>,
    /// Ready indexes by queue, in their order.
    pub(super) ready: BTreeMap<String, Vec<String>>,
    /// Running sets by boot, in order of start.
    pub(super) running: BTreeMap<String, Vec<String>>,
    /// All other indexes.
    pub(super) indexes: BTreeMap<(JobStatus, String), BTreeSet<String>>,
    pub(super) unique: BTreeMap<String, String>,
    pub(super) dead: BTreeMap<String, Vec<String>>,
    pub(super) counts: BTreeMap<(String, &'static str), i64>,
    /// Boots that hold a lease, and whether it has run out.
    pub(super) leases: BTreeMap<String, bool>,
    /// The expressions of `where` that actors know, by type and digest, and whether no job has used them for a day.
    pub(super) expressions: BTreeMap<(String, String), bool>,
    /// Queues that nothing is taken from.
    pub(super) paused: BTreeSet<String>,
    /// The number of calls that entered waits, or looked at them.
    pub(super) turn: u64,
}

/// A job that ended: its id, whether it finished, and who waits for it.
type Ended = (String, bool, Vec<String>);

impl Model {
    pub(super) fn count(&mut self, script_type: &str, what: &'static str) {
        *self.counts.entry((script_type.to_owned(), what)).or_default() += 1;
    }

    pub(super) fn enter(&mut self, status: JobStatus, id: &str) {
        let job = self.jobs.get_mut(id).expect("a job enters an index");
        job.status = status;
        let index = self.indexes.entry((status, job.script_type.clone())).or_default();
        index.insert(id.to_owned());
    }

    /// Takes the job out of wherever it stands, and out of its queue if it waits there.
    pub(super) fn leave(&mut self, id: &str) {
        let job = &self.jobs[id];
        if job.status == Dispatched
            && let Some(list) = self.lists.get_mut(&job.queue)
            && let Some(place) = list.iter().position(|entry| entry == id)
        {
            list.remove(place);
        }
        for index in self.ready.values_mut().chain(self.running.values_mut()) {
            index.retain(|entry| entry != id);
        }
        for index in self.indexes.values_mut() {
            index.remove(id);
        }
    }

    pub(super) fn push_back(&mut self, id: &str) {
        let job = self.jobs.get_mut(id).expect("a job is dispatched");
        job.status = Dispatched;
        let queue = job.queue.clone();
        self.note_expression(&queue);
        self.ready.entry(queue.clone()).or_default().push(id.to_owned());
        self.lists.entry(queue).or_default().push_back(id.to_owned());
    }

    fn push_front(&mut self, id: &str) {
        let job = self.jobs.get_mut(id).expect("a job goes back");
        job.status = Dispatched;
        let queue = job.queue.clone();
        self.note_expression(&queue);
        self.ready.entry(queue.clone()).or_default().insert(0, id.to_owned());
        self.lists.entry(queue).or_default().push_front(id.to_owned());
    }

    fn release_unique(&mut self, id: &str) {
        self.unique.retain(|_, holder| holder != id);
    }

    /// The job ends, and has left the index it stood in. `what` is counted: `finished`, `failed`, `cancelled` or `replaced`.
    fn conclude(&mut self, id: &str, what: &'static str) -> Ended {
        let finished = what == "finished";
        self.enter(if finished { Finished } else { Error }, id);
        self.release_unique(id);
        let job = self.jobs.get_mut(id).expect("a job ends");
        (job.retained, job.failed_in_vain) = (true, false);
        let (script_type, dependents) = (job.script_type.clone(), job.dependents.clone());
        self.count(&script_type, what);
        (id.to_owned(), finished, dependents)
    }

    fn bury(&mut self, id: &str) {
        let script_type = self.jobs[id].script_type.clone();
        self.count(&script_type, "dead");
        self.dead.entry(script_type).or_default().push(id.to_owned());
    }

    /// Nothing keeps the job any more but, perhaps, its time.
    fn release(&mut self, id: &str) {
        if self.jobs[id].run_at.is_some() {
            self.enter(Scheduled, id);
        } else {
            self.push_back(id);
        }
    }

    fn tell_dependents(&mut self, mut ended: VecDeque<Ended>) {
        while let Some((prerequisite, finished, dependents)) = ended.pop_front() {
            for id in dependents {
                let Some(job) = self.jobs.get_mut(&id) else { continue };
                let strictly = job.pending.remove(&prerequisite);
                let in_vain = strictly && !finished;
                let waited = strictly | job.pending.remove(&format!("{ANY}{prerequisite}"));
                if waited && job.status == Scheduled && job.wait.is_some() {
                    if job.pending.is_empty() {
                        self.wake(&id, None);
                    }
                    continue;
                }
                if !waited || job.status != WaitingForPrerequisites {
                    continue;
                }
                if in_vain {
                    job.pending.clear();
                    self.leave(&id);
                    let end = self.conclude(&id, "failed");
                    self.jobs.get_mut(&id).expect("it was looked at").failed_in_vain = true;
                    ended.push_back(end);
                } else if job.pending.is_empty() {
                    self.leave(&id);
                    self.release(&id);
                }
            }
        }
    }

    pub(super) fn submit(&mut self, id: &str, mut job: Job, start: bool) -> Submitted {
        if self.jobs.contains_key(id) {
            return Submitted::Exists;
        }
        if let Some(holder) = job.unique.as_ref().and_then(|key| self.unique.get(key))
            && let Some(status) = self.jobs.get(holder).map(|job| job.status)
            && !status.is_terminal()
        {
            let holder = holder.clone();
            if job.replaces && status != Started {
                return self.replace(id, job, start, &holder);
            }
            return Submitted::Duplicate(holder);
        }
        let mut named = job.prerequisites.iter().chain(&job.after_any);
        if let Some(unknown) = named.find(|id| !self.jobs.contains_key(*id)) {
            return Submitted::UnknownPrerequisite(unknown.clone());
        }
        if let Some(key) = &job.unique {
            self.unique.insert(key.clone(), id.to_owned());
        }
        job.status = Created;
        self.count(&job.script_type, "submitted");
        self.jobs.insert(id.to_owned(), job);
        if start {
            self.go(id);
        } else {
            self.enter(Created, id);
        }
        Submitted::Accepted(self.jobs[id].status)
    }

    /// Submits a job, and then stops the job that held its key; a refused job leaves it.
    fn replace(&mut self, id: &str, job: Job, start: bool, holder: &str) -> Submitted {
        let key = job.unique.clone().expect("a key is held");
        self.unique.remove(&key);
        let submitted = self.submit(id, job, start);
        if matches!(submitted, Submitted::Accepted(_)) {
            self.stop_waiting(holder, "replaced");
        } else {
            self.unique.insert(key, holder.to_owned());
        }
        submitted
    }

    /// A prerequisite of the job that failed or is gone.
    fn failed_prerequisite(&self, id: &str) -> Option<&String> {
        let mut prerequisites = self.jobs[id].prerequisites.iter();
        prerequisites.find(|id| self.jobs.get(*id).is_none_or(|job| job.status == Error))
    }

    /// A job that stands nowhere goes where it belongs.
    fn go(&mut self, id: &str) {
        if let Some(failed) = self.failed_prerequisite(id).cloned() {
            let ended = self.conclude(id, "failed");
            self.jobs.get_mut(id).expect("it was looked at").failed_in_vain = true;
            self.note_dependent(&failed, id);
            self.tell_dependents([ended].into());
            return;
        }
        self.wait_or_run(id);
    }

    fn wait_or_run(&mut self, id: &str) {
        let prerequisites = self.jobs[id].prerequisites.clone();
        let status = |id: &String| self.jobs.get(id).map_or(Error, |job| job.status);
        let mut pending: BTreeSet<String> =
            prerequisites.into_iter().filter(|id| status(id) != Finished).collect();
        let on_its_way = |id: &&String| !status(id).is_terminal();
        let any = self.jobs[id].after_any.iter().filter(on_its_way);
        pending.extend(any.map(|id| format!("{ANY}{id}")));
        if pending.is_empty() {
            self.release(id);
            return;
        }
        for prerequisite in &pending {
            self.note_dependent(prerequisite.trim_start_matches(ANY), id);
        }
        self.jobs.get_mut(id).expect("a job waits").pending = pending;
        self.enter(WaitingForPrerequisites, id);
    }

    pub(super) fn note_dependent(&mut self, prerequisite: &str, id: &str) {
        let Some(prerequisite) = self.jobs.get_mut(prerequisite) else { return };
        if !prerequisite.dependents.iter().any(|known| known == id) {
            prerequisite.dependents.push(id.to_owned());
        }
    }

    /// `None`: there is no such job; an error: its state does not allow it.
    pub(super) fn start(&mut self, id: &str) -> Option<Result<JobStatus, JobStatus>> {
        let status = self.jobs.get(id)?.status;
        if status != Created {
            return Some(Err(status));
        }
        self.leave(id);
        self.go(id);
        Some(Ok(self.jobs[id].status))
    }

    fn has_ended(&self, id: &str) -> bool {
        self.jobs.get(id).is_some_and(|job| job.status.is_terminal())
    }

    /// The ids that a claim should bring, in order. One without a ready entry stays in its list.
    pub(super) fn claim(
        &mut self,
        boot: &str,
        script_type: &str,
        queues: &[String],
        wanted: usize,
    ) -> Vec<String> {
        let mut taken = Vec::new();
        if !self.leases.contains_key(boot) {
            return taken;
        }
        let paused = self.paused.clone();
        for queue in queues.iter().filter(|queue| !paused.contains(*queue)) {
            while taken.len() < wanted {
                let Some(list) = self.lists.get_mut(queue) else { break };
                let ready = self.ready.get(queue).map_or(&[][..], Vec::as_slice);
                if !list.front().is_some_and(|id| ready.contains(id)) {
                    break;
                }
                let Some(id) = list.pop_front() else { break };
                self.take(boot, script_type, queue, &id, &mut taken);
            }
        }
        self.remove_other_copies(&taken);
        taken
    }

    /// The adoption of a list: no entry of these without a ready entry is a job that may run.
    pub(super) fn adopt(&mut self, queue: &str) {
        let ready = self.ready.get(queue).cloned().unwrap_or_default();
        // A job that a foreign actor has popped hides an entry until the sweep for pops has put it back.
        let Some(list) = self.lists.get_mut(queue).filter(|list| list.len() > ready.len()) else {
            return;
        };
        let mut kept: Vec<String> = Vec::new();
        let all = list.len();
        for id in list.drain(..) {
            if ready.contains(&id) && !kept.contains(&id) {
                kept.push(id);
            }
        }
        let gone = all - kept.len();
        list.extend(kept);
        let script_type = queue.split(':').nth(1).unwrap_or_default().to_owned();
        for _ in 0..gone {
            self.count(&script_type, "skipped");
        }
    }

    /// A list with more entries than its ready index has copies, and loses the copies of claimed jobs.
    fn remove_other_copies(&mut self, taken: &[String]) {
        let queues: BTreeSet<&String> = taken.iter().map(|id| &self.jobs[id].queue).collect();
        for queue in queues {
            let ready = self.ready.get(queue).map_or(0, Vec::len);
            if let Some(list) = self.lists.get_mut(queue).filter(|list| list.len() > ready) {
                list.retain(|id| !taken.contains(id));
            }
        }
    }

    fn take(&mut self, boot: &str, of: &str, queue: &str, id: &str, taken: &mut Vec<String>) {
        // Only the ready index notices the end of a job by a foreign actor.
        let ended = self.has_ended(id);
        if let Some(ready) = self.ready.get_mut(queue).filter(|_| !ended) {
            ready.retain(|entry| entry != id);
        }
        match self.jobs.get_mut(id) {
            Some(job) if job.status == Dispatched => {
                job.status = Started;
                job.attempt += 1;
                job.boot = Some(boot.to_owned());
                self.running.entry(boot.to_owned()).or_default().push(id.to_owned());
                self.count(of, "started");
                taken.push(id.to_owned());
            }
            Some(job) if job.is_foreign() => {
                self.note_foreign_start(id);
                self.count(of, "skipped");
            }
            _ => self.count(of, "skipped"),
        }
    }

    /// Returns the number of jobs that it ended.
    pub(super) fn purge(&mut self, queue: &str) -> u64 {
        let (mut purged, mut ended) = (0, VecDeque::new());
        for id in self.lists.remove(queue).unwrap_or_default() {
            let Some(job) = self.jobs.get(&id) else { continue };
            let (status, foreign) = (job.status, job.is_foreign());
            if status.is_terminal() {
                continue;
            }
            if let Some(ready) = self.ready.get_mut(queue) {
                ready.retain(|entry| *entry != id);
            }
            if foreign {
                self.note_foreign_start(&id);
            } else if status == Dispatched {
                self.leave(&id);
                ended.push_back(self.conclude(&id, "cancelled"));
                purged += 1;
            }
        }
        self.tell_dependents(ended);
        purged
    }

    fn note_foreign_start(&mut self, id: &str) {
        let script_type = self.jobs[id].script_type.clone();
        let index = self.indexes.entry((Started, script_type.clone())).or_default();
        if index.insert(id.to_owned()) {
            self.count(&script_type, "started");
        }
    }

    fn note_foreign_end(&mut self, id: &str) {
        self.leave(id);
        let finished = self.jobs[id].status == Finished;
        let ended = self.conclude(id, if finished { "finished" } else { "failed" });
        self.tell_dependents([ended].into());
    }

    pub(super) fn finish(&mut self, boot: &str, endings: &[(String, End)]) -> Vec<Recorded> {
        let mut ended = VecDeque::new();
        self.turn += 1;
        let answers =
            endings.iter().map(|(id, end)| self.finish_one(boot, id, end, &mut ended)).collect();
        self.tell_dependents(ended);
        answers
    }

    fn finish_one(
        &mut self,
        boot: &str,
        id: &str,
        end: &End,
        ended: &mut VecDeque<Ended>,
    ) -> Recorded {
        let owned = self.running.get(boot).is_some_and(|ids| ids.iter().any(|own| own == id));
        if !owned {
            let before = self.jobs.get(id).is_some_and(|job| {
                job.boot.as_deref() == Some(boot)
                    && (job.status.is_terminal()
                        || matches!(end, End::Retry(_) | End::Wait(..))
                            && matches!(job.status, Scheduled | Dispatched))
            });
            return if before { Recorded::Before } else { Recorded::Lost };
        }
        self.leave(id);
        match end {
            End::Retry(_) | End::Wait(..) if self.jobs[id].is_to_stop => {
                ended.push_back(self.conclude(id, "cancelled"));
            }
            End::Retry(at) => {
                let job = self.jobs.get_mut(id).expect("a job that runs");
                (job.run_at, job.due) = (Some(*at), false);
                let script_type = job.script_type.clone();
                self.enter(Scheduled, id);
                self.count(&script_type, "retried");
            }
            End::Wait(until, wait) => self.begin_wait(id, *until, wait),
            End::Finished => {
                self.jobs.get_mut(id).expect("a job that ran").state = None;
                ended.push_back(self.conclude(id, "finished"));
            }
            End::Error => ended.push_back(self.conclude(id, "failed")),
            End::Dead => {
                ended.push_back(self.conclude(id, "failed"));
                self.bury(id);
            }
        }
        Recorded::Stands
    }

    /// Returns the number of jobs given back.
    pub(super) fn requeue(&mut self, boot: &str, ids: &[String]) -> u64 {
        let (mut given_back, mut ended) = (0, VecDeque::new());
        for id in ids.iter().rev() {
            if self.running.get(boot).is_some_and(|own| own.contains(id)) {
                self.leave(id);
                if self.jobs[id].is_to_stop {
                    ended.push_back(self.conclude(id, "cancelled"));
                    continue;
                }
                let job = self.jobs.get_mut(id).expect("a job that runs");
                job.attempt -= 1;
                job.boot = None;
                self.push_front(id);
                given_back += 1;
            }
        }
        self.tell_dependents(ended);
        given_back
    }

    /// `"stopped"`, `"requested"`, `"unowned"`, `"ended"` or `"missing"`.
    pub(super) fn stop(&mut self, id: &str) -> &'static str {
        let Some(job) = self.jobs.get_mut(id) else { return "missing" };
        match job.status {
            Finished | Error => "ended",
            Started if job.boot.is_some() => {
                job.is_to_stop = true;
                "requested"
            }
            Started => "unowned",
            _ => {
                self.stop_waiting(id, "cancelled");
                "stopped"
            }
        }
    }

    /// Ends a job that has not started; it counts as `cancelled` or `replaced`.
    fn stop_waiting(&mut self, id: &str, what: &'static str) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.pending.clear();
            job.wait = None;
        }
        self.leave(id);
        let ended = self.conclude(id, what);
        self.tell_dependents([ended].into());
    }

    pub(super) fn retry(&mut self, id: &str) -> Retried {
        let Some(job) = self.jobs.get(id) else { return Retried::Missing };
        if !job.status.is_terminal() {
            return Retried::Refused(job.status);
        }
        if let Some(failed) = self.failed_prerequisite(id) {
            let is_gone = !self.jobs.contains_key(failed);
            return if is_gone { Retried::LostPrerequisite } else { Retried::FailedPrerequisite };
        }
        if let Some(key) = &job.unique {
            let holder = self.unique.get(key).filter(|holder| *holder != id);
            if let Some(holder) = holder.filter(|holder| {
                self.jobs.get(*holder).is_some_and(|job| !job.status.is_terminal())
            }) {
                return Retried::Duplicate(holder.clone());
            }
            self.unique.insert(key.clone(), id.to_owned());
        }
        self.leave(id);
        self.dead.values_mut().for_each(|dead| dead.retain(|entry| entry != id));
        let job = self.jobs.get_mut(id).expect("it was looked at");
        (job.attempt, job.crashes, job.boot, job.run_at) = (0, 0, None, None);
        (job.retained, job.failed_in_vain) = (false, false);
        (job.waits, job.event, job.missed, job.is_to_stop) = (0, None, None, false);
        job.told.clear();
        let script_type = job.script_type.clone();
        self.count(&script_type, "submitted");
        self.wait_or_run(id);
        Retried::Moved(self.jobs[id].status)
    }

    /// The state of the job if it was retried or had not failed, and the dependents retried.
    pub(super) fn retry_with_dependents(&mut self, id: &str) -> (Retried, Vec<String>) {
        let own = match self.jobs.get(id).map(|job| job.status) {
            None | Some(Error) => self.retry(id),
            Some(status) => Retried::Moved(status),
        };
        let mut retried = Vec::new();
        let mut turns = VecDeque::new();
        if matches!(own, Retried::Moved(_)) {
            turns.push_back(id.to_owned());
        }
        while let Some(turn) = turns.pop_front() {
            for id in self.jobs[&turn].dependents.clone() {
                let failed = self.jobs.get(&id).is_some_and(|job| job.failed_in_vain);
                if failed && matches!(self.retry(&id), Retried::Moved(_)) {
                    retried.push(id.clone());
                    turns.push_back(id);
                }
            }
        }
        (own, retried)
    }

    /// `"deleted"`, `"running"` or `"missing"`.
    pub(super) fn delete(&mut self, id: &str) -> &'static str {
        match self.jobs.get(id) {
            None => return "missing",
            Some(job) if job.status == Started => return "running",
            Some(_) => {}
        }
        self.leave(id);
        self.release_unique(id);
        self.dead.values_mut().for_each(|dead| dead.retain(|entry| entry != id));
        let job = self.jobs.remove(id).expect("it was looked at");
        if job.status != Finished {
            self.tell_dependents([(id.to_owned(), false, job.dependents)].into());
        } else if !job.retained {
            self.tell_dependents([(id.to_owned(), true, job.dependents)].into());
        }
        "deleted"
    }

    /// Returns the number of dead boots.
    pub(super) fn recover_boots(&mut self) -> usize {
        let boots: Vec<String> =
            self.leases.iter().filter(|(_, out)| **out).map(|(boot, _)| boot.clone()).collect();
        let mut ended = VecDeque::new();
        for boot in &boots {
            self.leases.remove(boot);
            for id in self.running.remove(boot).unwrap_or_default().into_iter().rev() {
                let job = self.jobs.get_mut(&id).expect("a running set holds jobs");
                job.crashes += 1;
                if job.is_to_stop {
                    ended.push_back(self.conclude(&id, "cancelled"));
                } else if job.crashes >= CRASH_LIMIT {
                    ended.push_back(self.conclude(&id, "failed"));
                    self.bury(&id);
                } else {
                    job.attempt -= 1;
                    job.boot = None;
                    let script_type = job.script_type.clone();
                    self.push_front(&id);
                    self.count(&script_type, "recovered");
                }
            }
        }
        self.tell_dependents(ended);
        boots.len()
    }

    /// A sweep for foreign pops, after the grace.
    pub(super) fn recover_pops(&mut self) {
        let queues: Vec<String> = self.ready.keys().cloned().collect();
        for queue in queues {
            let ready = &self.ready[&queue];
            let list = self.lists.entry(queue.clone()).or_default();
            let depth = list.len().min(HEAD_DEPTH);
            let head = list.iter().take(depth).find_map(|id| ready.iter().position(|e| e == id));
            let popped = match head {
                Some(place) => ready[..place].to_vec(),
                None if depth < HEAD_DEPTH => ready.clone(),
                None => continue,
            };
            for id in popped.iter().rev() {
                self.settle_pop(&queue, id);
            }
        }
    }

    fn settle_pop(&mut self, queue: &str, id: &str) {
        let script_type = queue.split(':').nth(1).unwrap_or_default().to_owned();
        match self.jobs.get(id).map(|job| (job.status, job.is_foreign())) {
            Some((Dispatched, _)) => {
                self.lists.entry(queue.to_owned()).or_default().push_front(id.to_owned());
                self.count(&script_type, "recovered");
                return;
            }
            Some((Started, true)) => {
                self.leave(id);
                self.note_foreign_start(id);
            }
            Some((Finished | Error, _)) => self.note_foreign_end(id),
            _ => {}
        }
        if let Some(ready) = self.ready.get_mut(queue) {
            ready.retain(|entry| entry != id);
        }
    }

    /// A sweep for jobs of foreign actors; those in `overdue` ran for too long.
    pub(super) fn recover_foreign(&mut self, overdue: &BTreeSet<String>) {
        let known: Vec<String> = self
            .indexes
            .iter()
            .filter(|((status, _), _)| *status == Started)
            .flat_map(|(_, ids)| ids.iter().cloned())
            .collect();
        let mut ended = VecDeque::new();
        for id in known {
            let job = self.jobs.get_mut(&id).expect("an index holds jobs");
            if job.status.is_terminal() {
                self.note_foreign_end(&id);
            } else if overdue.contains(&id) {
                job.crashes += 1;
                let (crashes, script_type) = (job.crashes, job.script_type.clone());
                self.leave(&id);
                if crashes >= CRASH_LIMIT {
                    ended.push_back(self.conclude(&id, "failed"));
                    self.bury(&id);
                } else {
                    self.push_front(&id);
                    self.count(&script_type, "recovered");
                }
            }
        }
        self.tell_dependents(ended);
    }

    /// Dispatches due jobs.
    pub(super) fn dispatch_due(&mut self) -> usize {
        let due = self.jobs.iter().filter(|(_, job)| job.status == Scheduled && job.due);
        let mut due: Vec<String> = due.map(|(id, _)| id.clone()).collect();
        due.sort_by_key(|id| self.order_of(id));
        self.turn += 1;
        due.retain(|id| !self.waits_on(id));
        for id in &due {
            self.leave(id);
            let job = self.jobs.get_mut(id).expect("it was looked at");
            job.boot = None;
            if let Some(wait) = job.wait.take() {
                job.event = None;
                job.missed = wait.event();
                job.pending.clear();
            }
            self.push_back(id);
        }
        due.len()
    }

    /// Retention removes a job that has ended.
    pub(super) fn expire(&mut self, id: &str) {
        self.leave(id);
        self.jobs.remove(id);
        self.dead.values_mut().for_each(|dead| dead.retain(|entry| entry != id));
    }
}
