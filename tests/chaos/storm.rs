//! The storm: jobs stream in while faults strike at random moments, and at the end every job has
//! ended, once.
//!
//! `SEED` replays the faults and the jobs, as far as a machine repeats itself; `KILLS` and `JOBS`
//! say how long it lasts, `LONGEST` after how many seconds it is cut short.

#![expect(clippy::print_stderr, reason = "a storm that fails must have named its seed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::proto::job::JobId;
use hero::store::{StopOutcome, Store};

use super::LONGEST_S;
use super::audit;
use super::faults::Fault;
use super::observer::{Kind, Observer};
use super::units::{Settings, Unit};
use super::work::{Expected, Submitter, Work};
use crate::support::proxy::{Half, Mode};
use crate::support::{Disk, RETENTION, Redis, World, can_set_clock, keys, number, seed};

const SUPERVISORS: [&str; 2] = ["supervisor", "second"];
const ACTORS: [&str; 6] = [
    "osis-default-1",
    "osis-default-2",
    "sal-default-1",
    "sal-default-2",
    "sh-default-1",
    "sh-default-2",
];
const LEASE: Duration = Duration::from_secs(2);
/// Deaths that give up no job of a storm: poison has tests of its own.
const CRASH_LIMIT: u32 = 1000;
/// Jobs on their way at a time, so that there are always some to be struck.
const OPEN_MAX: usize = 150;
const BATCH: usize = 25;
/// The clock of Redis is ahead by at most so many seconds: jobs that are due wait for as long after a step back, and
/// replies are kept for longer.
const CLOCK_AHEAD_MAX_S: i64 = 15;
/// Nothing ends for this long only if something is stuck.
const STUCK: Duration = Duration::from_secs(40);
/// Jobs orphaned by a foreign actor are found by a scan of all keys: at least this many jobs of a storm per second.
const JOBS_SCANNED_PER_S: usize = 50;
const TICK: Duration = Duration::from_millis(5);
/// The file that fills the disk of the folders of jobs.
const FILLING: &str = "of-another-program";

/// The size of a storm.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) kills: usize,
    at_most: Duration,
}

impl Plan {
    fn from_environment() -> Self {
        let count = |name, default| {
            usize::try_from(number(name).unwrap_or(default)).expect("a number of this machine")
        };
        Self {
            seed: seed(),
            jobs: count("JOBS", 5500),
            kills: count("KILLS", 100),
            at_most: Duration::from_secs(number("LONGEST").unwrap_or(LONGEST_S)),
        }
    }
}

/// The end of a fault.
enum Heal {
    StartUnit(usize),
    GoOn(usize),
    Mend(usize),
    StartRedis,
    FreeDisk,
}

/// Everything that is in the storm.
pub(crate) struct Storm {
    pub(crate) plan: Plan,
    /// Before the world, whose folder they use: fields end in their order.
    pub(crate) units: Vec<Unit>,
    /// Under the folders of jobs, where this user may mount one.
    disk: Option<Disk>,
    pub(crate) world: World,
    pub(crate) observer: Observer,
    pub(crate) effects: PathBuf,
    pub(crate) expected: BTreeMap<String, Expected>,
    /// The jobs that were told to stop; some ended before.
    pub(crate) stopped: BTreeSet<String>,
    pub(crate) struck: BTreeMap<Fault, usize>,
    pub(crate) back_to_work: Vec<Duration>,
    pub(crate) began: Instant,
    /// Processes that ended by themselves: none should.
    pub(crate) revived: usize,
    work: Work,
    submitter: Submitter,
    rng: Rng,
    heals: Vec<(Instant, Heal)>,
    next_fault: Instant,
    /// Since when all should work again, and the probes that show it.
    probing: Option<(Instant, Vec<String>)>,
    calm: Store,
    sets_clock: bool,
    runtime: tokio::runtime::Runtime,
}

#[test]
fn every_job_ends_once_whatever_dies() {
    let mut storm = Storm::new(Plan::from_environment());
    storm.rage();
    storm.abate();
    audit::check(&mut storm);
}

impl Storm {
    fn new(plan: Plan) -> Self {
        eprintln!("the storm has SEED={}", plan.seed);
        let sets_clock = can_set_clock();
        let redis =
            if sets_clock { Redis::that_keeps_with_own_clock() } else { Redis::that_keeps() };
        let folder = redis.folder().to_owned();
        let socket = folder.join("redis.sock");
        let settings = Settings { crash_limit: CRASH_LIMIT, ..Settings::SHORT };
        let disk = Disk::new(folder.join("jobs"));
        let unit = |name: &&str| {
            let unit = Unit::new(name, &settings, &folder, &socket);
            match &disk {
                Some(disk) => unit.with_jobs_in(&disk.folder),
                None => unit,
            }
        };
        let mut units: Vec<Unit> = SUPERVISORS.iter().chain(&ACTORS).map(unit).collect();
        units.iter_mut().for_each(Unit::start);
        // The submitter's line is the last of them; no process stands at its end.
        units.push(Unit::new("submitter", &settings, &folder, &socket));
        let lane = units[units.len() - 1].lane.path().display().to_string();
        let config = hero::config::RedisConfig {
            url: format!("redis+unix://{lane}").into(),
            ..redis.config("hero")
        };
        let store = Store::open(&config).expect("settings that lead to redis");
        let world = World::on(redis, "hero");
        let effects = folder.join("effects");
        let mut rng = Rng::with_seed(plan.seed);
        Self {
            work: Work::new(rng.u64(..), &effects),
            submitter: Submitter::start(store, format!("redis+unix://{lane}")),
            observer: Observer::new(&socket),
            calm: world.store.clone(),
            sets_clock,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            expected: BTreeMap::new(),
            stopped: BTreeSet::new(),
            struck: BTreeMap::new(),
            back_to_work: Vec::new(),
            began: Instant::now(),
            revived: 0,
            heals: Vec::new(),
            next_fault: Instant::now() + Duration::from_secs(1),
            probing: None,
            plan,
            world,
            units,
            disk,
            effects,
            rng,
        }
    }

    pub(crate) fn kills(&self) -> usize {
        self.struck.iter().filter(|(fault, _)| fault.is_kill()).map(|(_, number)| number).sum()
    }

    /// Until all jobs are submitted and all kills done, or the time is over.
    fn rage(&mut self) {
        let pillars = Work::pillars();
        self.hand_over(pillars);
        while self.began.elapsed() < self.plan.at_most {
            if self.kills() >= self.plan.kills && self.work.made() >= self.plan.jobs {
                break;
            }
            self.tick();
            self.stream();
            if self.probing.is_none() && Instant::now() >= self.next_fault {
                self.strike();
                let pause = self.rng.u64(..600);
                self.next_fault = Instant::now() + Duration::from_millis(pause);
            }
        }
    }

    /// Heals everything, and lets the jobs on their way end.
    fn abate(&mut self) {
        for (at, _) in &mut self.heals {
            *at = Instant::now();
        }
        while self.submitter.busy || !self.observer.open.is_empty() || self.probing.is_some() {
            self.tick();
        }
        self.observer.look_at_the_rest();
    }

    #[expect(clippy::disallowed_methods, reason = "a storm takes its time; nothing waits for it")]
    fn tick(&mut self) {
        self.heal();
        self.observer.look();
        self.look_at_probes();
        self.submitter.accepted();
        self.revived += self.units.iter_mut().map(|unit| usize::from(unit.revive())).sum::<usize>();
        let walk = Duration::from_secs((self.work.made() / JOBS_SCANNED_PER_S) as u64);
        if self.observer.last_end.elapsed() > STUCK + walk {
            audit::explain(self);
            panic!("nothing ends any more; the storm had SEED={}", self.plan.seed);
        }
        std::thread::sleep(TICK);
    }

    /// Hands on jobs in step with the faults, so that each finds some on their way.
    fn stream(&mut self) {
        let share = self.plan.jobs * (self.kills() + 1) / self.plan.kills.max(1);
        let wanted = share.min(self.plan.jobs).saturating_sub(self.work.made());
        if self.submitter.busy || wanted == 0 || self.observer.open.len() > OPEN_MAX {
            return;
        }
        let batch = (0..wanted.min(BATCH)).map(|_| self.work.next()).collect();
        self.hand_over(batch);
    }

    fn hand_over(&mut self, batch: Vec<(hero::proto::job::Job, Expected)>) {
        let mut jobs = Vec::with_capacity(batch.len());
        for (job, expected) in batch {
            self.observer.open.insert(job.id.to_string());
            self.expected.insert(job.id.to_string(), expected);
            jobs.push(job);
        }
        self.submitter.submit(jobs);
    }

    /// A unit that no fault holds now, from a range of places.
    fn healthy(&mut self, places: std::ops::Range<usize>) -> Option<usize> {
        let held: Vec<usize> = self
            .heals
            .iter()
            .filter_map(|(_, heal)| match heal {
                Heal::StartUnit(place) | Heal::GoOn(place) | Heal::Mend(place) => Some(*place),
                Heal::StartRedis | Heal::FreeDisk => None,
            })
            .collect();
        let places: Vec<usize> = places.filter(|place| !held.contains(place)).collect();
        self.rng.choice(places)
    }

    /// Lets one fault strike.
    fn strike(&mut self) {
        let fault = Fault::any(&mut self.rng);
        let (supervisors, all) = (SUPERVISORS.len(), SUPERVISORS.len() + ACTORS.len());
        let place = match fault {
            Fault::KillActor | Fault::KillActorForLong | Fault::PauseActor => {
                self.healthy(supervisors..all)
            }
            Fault::KillSupervisor | Fault::PauseSupervisor => self.healthy(0..supervisors),
            // One more than there are processes: the submitter's line.
            _ => self.healthy(0..all + 1),
        };
        let redis_is_away = self.heals.iter().any(|(_, heal)| matches!(heal, Heal::StartRedis));
        let Some(place) = place.filter(|_| !redis_is_away) else { return };
        *self.struck.entry(fault).or_default() += 1;
        self.observer.disturb();
        let lasts = fault.lasts(LEASE, &mut self.rng);
        let heal = self.inject(fault, place);
        if let Some(heal) = heal {
            self.heals.push((Instant::now() + lasts, heal));
        }
    }

    fn inject(&mut self, fault: Fault, place: usize) -> Option<Heal> {
        let unit = &mut self.units[place];
        match fault {
            Fault::KillActor | Fault::KillActorForLong => {
                let boot = self.observer.boot_of(&unit.name().replace('-', ":"));
                unit.kill();
                let at_once = fault == Fault::KillActor;
                let kind = if at_once { Kind::Successor } else { Kind::Lease };
                if let Some(boot) = boot {
                    self.observer.measure(boot, kind);
                }
                if !at_once {
                    return Some(Heal::StartUnit(place));
                }
                self.units[place].start();
                return None;
            }
            Fault::KillSupervisor => {
                unit.kill();
                return Some(Heal::StartUnit(place));
            }
            Fault::KillRedis => {
                self.world.redis.kill();
                return Some(Heal::StartRedis);
            }
            Fault::PauseActor | Fault::PauseSupervisor => {
                unit.pause();
                return Some(Heal::GoOn(place));
            }
            Fault::CutConnections => unit.lane.cut(),
            Fault::CloseHalf => {
                let half = if self.rng.bool() { Half::ToServer } else { Half::FromServer };
                unit.lane.close_half(half);
            }
            Fault::Delay => {
                unit.lane.set(Mode::Delay(Duration::from_millis(self.rng.u64(10..200))));
            }
            Fault::Hold => unit.lane.set(Mode::Hold),
            Fault::Swallow => unit.lane.set(Mode::Swallow),
            Fault::Refuse => unit.lane.set(Mode::Refuse),
            Fault::DropClients => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("CLIENT").arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]);
                self.observer.ask::<redis::Value>(&pipeline);
            }
            Fault::StopJob => self.stop_job(),
            Fault::ForeignPop => foreign_pop(&self.world.redis),
            Fault::FullDisk => {
                let file = self.disk.as_ref()?.folder.join(FILLING);
                // It is larger than the disk.
                let _ = std::fs::write(file, vec![0_u8; 4 << 20]);
                return Some(Heal::FreeDisk);
            }
            Fault::SetClock => {
                if self.sets_clock {
                    self.world.redis.set_clock(self.rng.i64(0..=CLOCK_AHEAD_MAX_S));
                }
            }
            Fault::FlushScripts => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("SCRIPT").arg("FLUSH");
                self.observer.ask::<redis::Value>(&pipeline);
            }
        }
        let lasting = matches!(fault, Fault::Delay | Fault::Hold | Fault::Swallow | Fault::Refuse);
        lasting.then_some(Heal::Mend(place))
    }

    /// Stops a job that others do not wait for.
    fn stop_job(&mut self) {
        let open = self.observer.open.iter().filter(|id| id.starts_with('c'));
        let Some(id) = self.rng.choice(open.cloned().collect::<Vec<String>>()) else { return };
        let job: JobId = id.parse().expect("legal");
        // It may not be there yet.
        let stopped = self.runtime.block_on(self.calm.jobs().stop(&job, RETENTION, None));
        if stopped.is_ok_and(|outcome| outcome != StopOutcome::Missing) {
            self.stopped.insert(id);
        }
    }

    /// Ends the faults whose time is over.
    fn heal(&mut self) {
        let now = Instant::now();
        let (due, later) =
            std::mem::take(&mut self.heals).into_iter().partition(|(at, _)| *at <= now);
        self.heals = later;
        let due: Vec<(Instant, Heal)> = due;
        for (_, heal) in due {
            match heal {
                Heal::StartUnit(place) => self.units[place].start(),
                Heal::GoOn(place) => self.units[place].go_on(),
                Heal::Mend(place) => self.units[place].lane.set(Mode::Pass),
                Heal::FreeDisk => {
                    let file = self.disk.as_ref().map(|disk| disk.folder.join(FILLING));
                    file.map(std::fs::remove_file);
                }
                Heal::StartRedis => {
                    self.world.redis.start_again();
                    self.probe();
                }
            }
        }
    }

    /// Asks every unit that nothing else has struck for a sign of work.
    fn probe(&mut self) {
        let mut probes = Vec::new();
        let number = self.struck.get(&Fault::KillRedis).copied().unwrap_or_default();
        for place in SUPERVISORS.len()..SUPERVISORS.len() + ACTORS.len() {
            let struck = self.heals.iter().any(|(_, heal)| match heal {
                Heal::StartUnit(other) | Heal::GoOn(other) | Heal::Mend(other) => *other == place,
                Heal::StartRedis | Heal::FreeDisk => false,
            });
            if !struck {
                let name = self.units[place].name();
                let mut parts = name.split('-');
                let (of, instance) = (parts.next().unwrap_or_default(), name.chars().last());
                let instance = instance.and_then(|digit| digit.to_digit(10)).unwrap_or(1);
                let job = JobBuilder::new(of, "1")
                    .id(&format!("probe-{number}-{name}"))
                    .priority(0)
                    .instance(u16::try_from(instance).unwrap_or(1));
                let script = if of == "sh" { "true" } else { "1" };
                let mut job = job.build().expect("a legal job");
                script.clone_into(&mut job.spec.script);
                probes.push(job);
            }
        }
        let since = Instant::now();
        let stored = self.runtime.block_on(async {
            let mut tries = 0;
            loop {
                match self.calm.jobs().submit(&probes, true, RETENTION).await {
                    Ok(_) => return true,
                    Err(_) if tries < 10 => tries += 1,
                    Err(_) => return false,
                }
            }
        });
        assert!(stored, "redis answers, and takes no probe");
        let expected =
            Expected { retries: 0, leaves_lines: false, finishes: true, large_output: None };
        let ids: Vec<String> = probes.iter().map(|job| job.id.to_string()).collect();
        for id in &ids {
            self.observer.open.insert(id.clone());
            self.expected.insert(id.clone(), expected);
        }
        self.probing = Some((since, ids));
    }

    fn look_at_probes(&mut self) {
        let Some((since, ids)) = &self.probing else { return };
        if ids.iter().all(|id| !self.observer.open.contains(id)) {
            self.back_to_work.push(since.elapsed());
            self.probing = None;
        }
    }
}

/// Waits at the lists of all types as a foreign actor does, and drops the job that it gets.
fn foreign_pop(redis: &Redis) {
    const PATIENCE_S: u64 = 2;
    let mut command = redis::cmd("BLPOP");
    for of in ["osis", "sal", "sh"] {
        let prios = ["", ":prio:0", ":prio:2"].into_iter();
        for prio in prios {
            command.arg(keys::work(&format!("type:{of}{prio}")));
        }
    }
    command.arg(PATIENCE_S);
    if let Ok(mut link) = redis.connect() {
        // Redis may be killed meanwhile.
        std::thread::spawn(move || drop(command.query::<redis::Value>(&mut link)));
    }
}
