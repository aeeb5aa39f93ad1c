//! Graphs with windows, whose jobs go where they match, in random sequences on a real Redis. A model of each graph says
//! which of its jobs may start: a claim chooses among them, starts no other, and leaves none that could start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::proto::window::{FailureBound, GraphWindow, PauseAfter, StopAfter};
use hero::store::{BatchOutcome, NewGraph, RetryOutcome, StopOutcome, Verdict};

use super::expressions::{EXPRESSIONS, queues_of};
use super::{Trace, legal};
use crate::support::{Life, RETENTION, World, keys, number, seeds};

const UNITS: [&str; 3] = ["osis-default-1", "osis-default-2", "osis-io-1"];
/// The most graphs that are on their way at once.
const GRAPHS_MAX: usize = 3;
/// More than any job has in a sequence.
const CRASH_LIMIT: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its prerequisite has not ended.
    Blocked,
    Waits,
    /// By the actor with this number.
    Runs(usize),
    Finished,
    Failed,
    Cancelled,
}

impl State {
    fn has_started(self) -> bool {
        !matches!(self, Self::Blocked | Self::Waits)
    }
}

#[derive(Debug)]
struct Member {
    state: State,
    after: Option<String>,
    /// The units that it may run on; any without it.
    units: Option<&'static [&'static str]>,
    /// It started while its graph had `at_a_time`.
    has_slot: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoesOn {
    No,
    /// Once its time has passed.
    Later,
    Yes,
}

/// A graph as its page in docs/fleet.md says.
#[derive(Debug)]
struct Graph {
    jobs: BTreeMap<String, Member>,
    at_a_time: Option<usize>,
    stop_after: Option<StopAfter>,
    /// The failures that count; known once there is a bound.
    failures: Option<usize>,
    is_stopped: bool,
    pause: Option<PauseAfter>,
    first: BTreeSet<String>,
    goes_on: GoesOn,
}

impl Graph {
    fn number(&self, of: impl Fn(&Member) -> bool) -> usize {
        self.jobs.values().filter(|member| of(member)).count()
    }

    fn has_ended(&self) -> bool {
        self.number(|job| matches!(job.state, State::Blocked | State::Waits | State::Runs(_))) == 0
    }

    fn may_start(&self, id: &str) -> bool {
        let has_slot = self.at_a_time.is_none_or(|most| self.number(|job| job.has_slot) < most);
        let is_first = self.first.contains(id) || self.pause.is_none();
        let starts_before = || {
            let most = self.pause.map_or(0, |pause| pause.jobs as usize);
            self.goes_on == GoesOn::No && self.first.len() < most
        };
        let is_let = is_first || self.goes_on == GoesOn::Yes || starts_before();
        self.jobs[id].state == State::Waits && !self.is_stopped && has_slot && is_let
    }

    fn start(&mut self, id: &str, actor: usize) {
        if self.pause.is_some() && self.goes_on == GoesOn::No {
            self.first.insert(id.to_owned());
        }
        let has_slot = self.at_a_time.is_some();
        let job = self.jobs.get_mut(id).expect("it may start");
        (job.state, job.has_slot) = (State::Runs(actor), has_slot);
    }

    /// A job ends, or goes back to its queue. Those after it fail with it before others are stopped.
    fn leave(&mut self, id: &str, state: State) {
        self.become_state(id, state);
        self.stop_at_failures();
    }

    fn become_state(&mut self, id: &str, state: State) {
        let job = self.jobs.get_mut(id).expect("it is known");
        (job.state, job.has_slot) = (state, false);
        let after = |job: &Member| job.after.as_deref() == Some(id) && job.state == State::Blocked;
        let dependents: Vec<String> =
            self.jobs.iter().filter(|(_, job)| after(job)).map(|(id, _)| id.clone()).collect();
        match state {
            State::Finished => {
                for dependent in dependents {
                    self.jobs.get_mut(&dependent).expect("it is known").state = State::Waits;
                }
                self.begin_pause();
            }
            State::Failed | State::Cancelled => {
                if state == State::Failed {
                    self.failures = self.stop_after.map(|_| self.failures.unwrap_or(0) + 1);
                }
                for dependent in dependents {
                    self.become_state(&dependent, State::Failed);
                }
            }
            State::Blocked | State::Waits | State::Runs(_) => {}
        }
    }

    fn begin_pause(&mut self) {
        let Some(PauseAfter { jobs, time: Some(_) }) = self.pause else { return };
        let finished = |id: &&String| self.jobs[*id].state == State::Finished;
        if self.goes_on == GoesOn::No && self.first.iter().filter(finished).count() >= jobs as usize
        {
            self.goes_on = GoesOn::Later;
        }
    }

    fn stop_at_failures(&mut self) {
        let most = match self.stop_after.map(|of| of.bound) {
            None => return,
            Some(FailureBound::Failures(most)) => most as usize,
            Some(FailureBound::Share(percent)) => {
                (self.jobs.len() * usize::from(percent)).div_ceil(100)
            }
        };
        if self.is_stopped || self.failures.unwrap_or(0) < most {
            return;
        }
        self.is_stopped = true;
        for job in self.jobs.values_mut().filter(|job| !job.state.has_started()) {
            job.state = State::Cancelled;
        }
    }

    fn retry(&mut self, id: &str) {
        self.jobs.get_mut(id).expect("it is known").state = State::Waits;
        if std::mem::take(&mut self.is_stopped) {
            self.failures = None;
        }
    }

    fn edit(&mut self, window: GraphWindow) {
        if let Some(most) = window.at_a_time {
            self.at_a_time = Some(most as usize).filter(|most| *most > 0);
        }
        match window.pause_after {
            None => {}
            Some(pause) if pause.jobs == 0 => self.go_on(true),
            pause => (self.pause, self.goes_on, self.first) = (pause, GoesOn::No, BTreeSet::new()),
        }
        match window.stop_after {
            None => {}
            Some(of) if of.bound == FailureBound::Failures(0) => {
                (self.stop_after, self.failures) = (None, None);
            }
            bound => {
                let failed = self.number(|job| job.state == State::Failed);
                (self.stop_after, self.failures) = (bound, self.failures.or(Some(failed)));
                self.stop_at_failures();
            }
        }
    }

    /// Ends the pause, and forgets it where it is taken away.
    fn go_on(&mut self, is_taken_away: bool) {
        if self.pause.is_some() {
            self.goes_on = GoesOn::Yes;
        }
        if is_taken_away {
            (self.pause, self.first) = (None, BTreeSet::new());
        }
    }
}

struct Walk {
    world: World,
    rng: Rng,
    lives: Vec<Life>,
    graphs: BTreeMap<String, Graph>,
    names: usize,
}

impl Walk {
    async fn step(&mut self) -> String {
        match self.rng.u8(..40) {
            0..5 => self.submit().await,
            5..15 => {
                let (actor, wanted) = (self.rng.usize(..UNITS.len()), self.rng.usize(1..5));
                self.claim(actor, wanted).await
            }
            15..25 => self.end().await,
            25..27 => self.lose_actor().await,
            27..29 => self.stop().await,
            29..32 => self.retry().await,
            32..35 => self.edit().await,
            35 => self.go_on().await,
            36 => self.pass_time(),
            37 => self.start_all().await,
            _ => self.tend().await,
        }
    }

    async fn submit(&mut self) -> String {
        if self.graphs.len() >= GRAPHS_MAX {
            self.graphs.retain(|_, graph| !graph.has_ended());
        }
        if self.graphs.len() >= GRAPHS_MAX {
            return "enough graphs are on their way".to_owned();
        }
        self.names += 1;
        let name = format!("g{}", self.names);
        let (mut members, mut jobs) = (BTreeMap::new(), Vec::new());
        for place in 0..self.rng.usize(2..9) {
            let id = format!("{name}-{place}");
            let mut builder = JobBuilder::new("osis", "1").id(&id);
            let mut after = None;
            if place > 0 && self.rng.u8(..4) == 0 {
                let other = format!("{name}-{}", self.rng.usize(..place));
                builder = builder.after(&other);
                after = Some(other);
            }
            let mut units = None;
            if self.rng.bool() {
                let (text, of) = EXPRESSIONS[self.rng.usize(..EXPRESSIONS.len())];
                builder = builder.r#where(text);
                units = Some(of);
            }
            let state = if after.is_some() { State::Blocked } else { State::Waits };
            members.insert(id, Member { state, after, units, has_slot: false });
            jobs.push(Job {
                graph_id: Some(legal(&name)),
                ..builder.build().expect("a legal job")
            });
        }
        let window = self.any_window().without_zeros();
        let mut graph = Graph {
            jobs: members,
            at_a_time: None,
            stop_after: None,
            failures: None,
            is_stopped: false,
            pause: None,
            first: BTreeSet::new(),
            goes_on: GoesOn::No,
        };
        graph.edit(window);
        let new = NewGraph { id: legal(&name), window, ..NewGraph::default() };
        let answer = self.world.store.batches().submit(&jobs, Some(&new), RETENTION).await;
        assert_eq!(answer.expect("redis answers"), BatchOutcome::Accepted);
        let said = format!("submit {name}: {window}, {:?}", graph.jobs);
        self.graphs.insert(name, graph);
        said
    }

    fn any_window(&mut self) -> GraphWindow {
        let rng = &mut self.rng;
        let bounds = [FailureBound::Failures(rng.u32(..4)), FailureBound::Share(rng.u8(1..=100))];
        let time = rng.bool().then_some(Duration::from_mins(10));
        let jobs = rng.u32(..4);
        let pause = PauseAfter { jobs, time: time.filter(|_| jobs > 0) };
        GraphWindow {
            at_a_time: rng.bool().then(|| rng.u32(..4)),
            stop_after: rng
                .bool()
                .then(|| StopAfter { bound: bounds[rng.usize(..2)], stops_running: false }),
            pause_after: (rng.u8(..3) == 0).then_some(pause),
        }
    }

    async fn claim(&mut self, actor: usize, wanted: usize) -> String {
        let life = &self.lives[actor];
        self.world.hold_lease(life);
        let queues = queues_of(&self.world, life).await;
        let claimed =
            self.world.claim_from(life, &queues, (wanted, 0)).await.expect("redis answers");
        for attempt in &claimed.attempts {
            let id = attempt.id.as_str();
            let graph = self.graphs.get_mut(graph_of(id)).expect("it is on its way");
            assert!(graph.may_start(id), "{} starts {id} of {graph:#?}", UNITS[actor]);
            let units = graph.jobs[id].units;
            assert!(
                units.is_none_or(|of| of.contains(&UNITS[actor])),
                "{} starts {id}",
                UNITS[actor]
            );
            graph.start(id, actor);
        }
        let ids: Vec<&str> = claimed.attempts.iter().map(|attempt| attempt.id.as_str()).collect();
        format!("{} claims {wanted}: {ids:?}", UNITS[actor])
    }

    /// Returns a job in a state.
    fn any_job(&mut self, wanted: impl Fn(&Graph, &Member) -> bool) -> Option<(String, State)> {
        let all =
            self.graphs.values().flat_map(|graph| graph.jobs.iter().map(move |job| (graph, job)));
        let wanted = all.filter(|(graph, (_, job))| wanted(graph, job));
        let found: Vec<(String, State)> =
            wanted.map(|(_, (id, job))| (id.clone(), job.state)).collect();
        self.rng.choice(found)
    }

    fn graph(&mut self, id: &str) -> &mut Graph {
        self.graphs.get_mut(graph_of(id)).expect("it is on its way")
    }

    async fn end(&mut self) -> String {
        let runs = |_: &Graph, job: &Member| matches!(job.state, State::Runs(_));
        let Some((id, State::Runs(actor))) = self.any_job(runs) else {
            return "nothing ends".to_owned();
        };
        let (error, exit_code) = ("no".to_owned(), None);
        let (verdict, state) = match self.rng.u8(..6) {
            0 | 1 => (Verdict::Error { error, exit_code, dead: true }, State::Failed),
            2 => {
                // No attempt follows in a stopped graph.
                let ends = self.graph(&id).is_stopped;
                let state = if ends { State::Failed } else { State::Waits };
                (Verdict::Retry { error, exit_code, delay: Duration::ZERO }, state)
            }
            _ => (Verdict::Finished { output: "".into(), exit_code }, State::Finished),
        };
        let life = &self.lives[actor];
        let ending = [self.world.ending(life, legal(&id), verdict)];
        self.world
            .store
            .attempts()
            .finish(&life.boot, RETENTION, &ending)
            .await
            .expect("redis answers");
        self.world.store.schedule().dispatch_due(100, RETENTION).await.expect("redis answers");
        self.graph(&id).leave(&id, state);
        format!("{id} ends: {state:?}")
    }

    /// An actor gives its jobs back, or dies and comes back.
    async fn lose_actor(&mut self) -> String {
        let actor = self.rng.usize(..UNITS.len());
        let mut ids: Vec<String> = Vec::new();
        while let Some((id, _)) = self.any_job(|_, job| job.state == State::Runs(actor)) {
            self.graph(&id).leave(&id, State::Waits);
            ids.push(id);
        }
        let life = self.lives[actor].clone();
        let dies = self.rng.bool();
        if dies {
            self.world.dies(&life, CRASH_LIMIT).await;
            self.lives[actor] = Life::of(UNITS[actor]);
        } else {
            let jobs: Vec<(JobId, Option<_>)> = ids.iter().map(|id| (legal(id), None)).collect();
            self.world.give_back(&life, &jobs).await;
        }
        format!("{} loses {ids:?}, dies: {dies}", UNITS[actor])
    }

    async fn stop(&mut self) -> String {
        let waits = |graph: &Graph, job: &Member| !graph.is_stopped && !job.state.has_started();
        let Some((id, _)) = self.any_job(waits) else { return "nothing to stop".to_owned() };
        let answer = self.world.store.jobs().stop(&legal(&id), RETENTION, None).await;
        assert_eq!(answer.expect("redis answers"), StopOutcome::Stopped);
        self.graph(&id).leave(&id, State::Cancelled);
        format!("stop {id}")
    }

    async fn retry(&mut self) -> String {
        let may_run = |graph: &Graph, job: &Member| {
            let before = job.after.as_ref().map(|after| graph.jobs[after].state);
            matches!(job.state, State::Failed | State::Cancelled)
                && before.is_none_or(|before| before == State::Finished)
        };
        let Some((id, _)) = self.any_job(may_run) else { return "nothing to retry".to_owned() };
        let answer = self.world.store.jobs().retry(&legal(&id)).await.expect("redis answers");
        assert_eq!(answer, RetryOutcome::Moved(JobStatus::Dispatched), "{id}");
        self.graph(&id).retry(&id);
        format!("retry {id}")
    }

    fn any_graph(&mut self) -> Option<String> {
        self.rng.choice(self.graphs.keys()).cloned()
    }

    async fn edit(&mut self) -> String {
        let Some(name) = self.any_graph() else { return "no graph to edit".to_owned() };
        let window = self.any_window();
        assert!(
            self.world.store.graphs().edit(&legal(&name), window).await.expect("redis answers")
        );
        self.graph(&name).edit(window);
        format!("edit {name}: {window:?}")
    }

    async fn go_on(&mut self) -> String {
        let Some(name) = self.any_graph() else { return "no graph to tell".to_owned() };
        let told = self.world.store.graphs().end_pause(&legal(&name)).await.expect("redis answers");
        assert_eq!(told, Some(self.graph(&name).pause.is_some()), "{name}");
        self.graph(&name).go_on(false);
        format!("{name} goes on")
    }

    /// The time of each pause that has begun passes.
    fn pass_time(&mut self) -> String {
        for (name, graph) in &mut self.graphs {
            if graph.goes_on == GoesOn::Later {
                self.world.redis.set_field(&keys().graph(&legal(name)), "goes_on_us", "1");
                graph.goes_on = GoesOn::Yes;
            }
        }
        "time passes".to_owned()
    }

    /// Lets every limit that holds jobs look for free slots.
    async fn tend(&mut self) -> String {
        for limit in self.world.redis.members(&keys().limits()) {
            self.world.redis.put(&keys().limits(), 1, &limit);
        }
        self.world.store.limits().tend(100).await.expect("redis answers");
        "limits are tended".to_owned()
    }

    /// Lets actors claim until no job is left that may start.
    async fn start_all(&mut self) -> String {
        const ROUNDS_MAX: usize = 100;
        for _ in 0..ROUNDS_MAX {
            self.tend().await;
            for actor in 0..UNITS.len() {
                self.claim(actor, 9).await;
            }
            let mut graphs = self.graphs.values();
            if !graphs.any(|graph| graph.jobs.keys().any(|id| graph.may_start(id))) {
                return "all that may start has started".to_owned();
            }
        }
        let startable = |graph: &&Graph| graph.jobs.keys().any(|id| graph.may_start(id));
        let left: Vec<&Graph> = self.graphs.values().filter(startable).collect();
        panic!("jobs that may start are left: {left:#?}");
    }

    /// Compares the jobs in Redis with the model.
    async fn check(&mut self) {
        while self.world.store.schedule().settle(RETENTION).await.expect("redis answers") {}
        let mut link = self.world.redis.link();
        for (name, graph) in &mut self.graphs {
            let mut read = redis::pipe();
            for id in graph.jobs.keys() {
                read.hget(keys().job(&legal(id)), "status");
            }
            let found: Vec<String> = read.query(&mut link).expect("redis answers");
            for ((id, job), status) in graph.jobs.iter_mut().zip(found) {
                // A job that came back to its queue in a stopped graph is ended once a claim meets it.
                if graph.is_stopped && job.state == State::Waits && status == "error" {
                    job.state = State::Cancelled;
                }
                let expected = match job.state {
                    State::Blocked => JobStatus::WaitingForPrerequisites,
                    State::Waits => JobStatus::Dispatched,
                    State::Runs(_) => JobStatus::Started,
                    State::Finished => JobStatus::Finished,
                    State::Failed | State::Cancelled => JobStatus::Error,
                };
                assert_eq!(status, expected.as_str(), "{id}");
            }
            let info = self.world.store.graphs().get(&legal(name)).await.expect("redis answers");
            let counts = info.expect("it exists").counts;
            let number = |state| graph.number(|job| job.state == state) as u64;
            assert_eq!(
                (counts.finished, counts.failed, counts.cancelled),
                (number(State::Finished), number(State::Failed), number(State::Cancelled)),
                "finished, failed and cancelled jobs of {name}"
            );
        }
    }

    /// Ends all graphs: nothing is left behind.
    async fn end_all(&mut self) {
        const ROUNDS_MAX: usize = 100;
        for _ in 0..ROUNDS_MAX {
            if self.graphs.values().all(Graph::has_ended) {
                break;
            }
            for name in self.graphs.keys().cloned().collect::<Vec<_>>() {
                self.world.store.graphs().end_pause(&legal(&name)).await.expect("redis answers");
                self.graph(&name).go_on(false);
            }
            self.start_all().await;
            self.end().await;
            self.check().await;
        }
        let left: Vec<&Graph> = self.graphs.values().filter(|graph| !graph.has_ended()).collect();
        assert!(left.is_empty(), "graphs do not end: {left:#?}");
        for kind in ["LIMIT_HELD", "LIMIT_RUNNING", "HELD", "RUNNING", "READY"] {
            assert!(self.world.redis.all(kind).is_empty(), "{kind} is left");
        }
    }
}

/// The graph in the id of a job.
fn graph_of(id: &str) -> &str {
    id.split('-').next().unwrap_or_default()
}

#[tokio::test]
async fn windows_of_graphs_agree_with_the_model() {
    let steps = number("STEPS").unwrap_or(150);
    for seed in seeds(number("SEQUENCES").unwrap_or(10)) {
        let mut trace = Trace::new(seed);
        let mut walk = Walk {
            world: World::new(),
            rng: Rng::with_seed(seed),
            lives: UNITS.map(Life::of).into(),
            graphs: BTreeMap::new(),
            names: 0,
        };
        for _ in 0..steps {
            let said = walk.step().await;
            trace.say(said);
            walk.check().await;
            if trace.done.is_multiple_of(25) {
                walk.world.check();
            }
        }
        walk.end_all().await;
    }
}
