//! The storm on a Redis Cluster: jobs stream in while the slot moves from master to master, its owner
//! dies or hands over, and actors and supervisors are killed.
//!
//! `SEED` replays the faults; `KILLS`, `JOBS` and `LONGEST` say how long it lasts, as for the other storm.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::proto::job::{Job, JobStatus};
use hero::store::Store;

use super::LONGEST_S;
use super::work::submit;
use crate::support::{Cluster, Hero, Process, number, seed, wait_until};

const ACTORS: [&str; 3] = ["sal-default-1", "sal-default-2", "osis-default-1"];
const SUPERVISORS: [&str; 2] = ["supervisor", "second"];
/// A fault of this storm takes seconds to heal.
const KILLS_PER_FAULT: u64 = 20;
/// Faults strike until there are that many, and a job of this storm for so many of the other.
const JOBS_PER_JOB: u64 = 4;
const BATCH: usize = 10;
/// The jobs that are accepted between two faults.
const BETWEEN_FAULTS: usize = 100;
/// Nothing ends for this long only if something is stuck.
const STUCK: Duration = Duration::from_secs(90);

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    MoveSlot,
    KillOwner,
    HandOver,
    KillActor,
    KillSupervisor,
}

const FAULTS: [Fault; 5] =
    [Fault::MoveSlot, Fault::KillOwner, Fault::HandOver, Fault::KillActor, Fault::KillSupervisor];

/// Everything that is in the storm.
struct Storm {
    /// Before the cluster, whose folder they use.
    units: BTreeMap<&'static str, Process>,
    cluster: Cluster,
    rng: Rng,
    struck: BTreeMap<Fault, usize>,
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a storm takes its time; nothing waits for it")]
fn every_job_ends_on_a_cluster_whose_slot_moves_and_whose_nodes_die() {
    let seed = seed();
    eprintln!("the storm has SEED={seed}");
    let faults = number("KILLS").unwrap_or(100).div_ceil(KILLS_PER_FAULT);
    let least = number("JOBS").unwrap_or(0).div_ceil(JOBS_PER_JOB);
    let least = usize::try_from(least).expect("a number of this machine");
    let until = Instant::now() + Duration::from_secs(number("LONGEST").unwrap_or(LONGEST_S));
    let cluster = Cluster::start();
    let hero = hero(&cluster);
    let (config, folder) = (cluster.config(), cluster.folder().to_owned());
    let mut raging = Storm {
        units: BTreeMap::new(),
        cluster,
        rng: Rng::with_seed(seed),
        struck: BTreeMap::new(),
    };
    for unit in ACTORS.into_iter().chain(SUPERVISORS) {
        raging.units.insert(unit, hero.actor(unit).start());
    }
    // Each fault finds jobs on their way: they stream in until the last is healed.
    let (stop, stopped) = channel::<()>();
    let (store, mut jobs) = (Store::open(&config).expect("settings"), Rng::with_seed(seed));
    let effects = folder.join("effects");
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    let submitter = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let mut made = Vec::new();
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            let batch: Vec<Job> =
                (0..BATCH).map(|at| job(&mut jobs, made.len() + at, &effects)).collect();
            runtime.block_on(submit(&store, &batch));
            counted.fetch_add(BATCH, Ordering::Relaxed);
            made.extend(batch.into_iter().map(|job| job.id));
            std::thread::sleep(Duration::from_millis(jobs.u64(5..50)));
        }
        made
    });
    let mut left: Vec<Fault> = Vec::new();
    let mut struck = 0;
    while (struck < faults || accepted.load(Ordering::Relaxed) < least) && Instant::now() < until {
        struck += 1;
        // Each kind once before one comes again.
        if left.is_empty() {
            left = FAULTS.to_vec();
            raging.rng.shuffle(&mut left);
        }
        let enough = accepted.load(Ordering::Relaxed) + BETWEEN_FAULTS;
        wait_until("jobs are accepted again", || accepted.load(Ordering::Relaxed) >= enough);
        let (fault, began) = (left.pop().expect("just filled"), Instant::now());
        raging.strike(fault, &hero);
        let jobs = accepted.load(Ordering::Relaxed);
        eprintln!("{fault:?} took {:.1?}; {jobs} jobs are accepted", began.elapsed());
    }
    drop(stop);
    let made = submitter.join().expect("all are accepted");
    let store = Store::open(&config).expect("settings");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let began = Instant::now();
    for id in &made {
        loop {
            let found = runtime.block_on(store.jobs().job(id));
            let status = found.ok().map(|job| job.map(|job| job.expect("a legal job").status));
            match status {
                Some(Some(JobStatus::Finished)) => break,
                Some(None) => panic!("{id} is lost; the storm had SEED={seed}"),
                _ => assert!(began.elapsed() < STUCK, "{id}: {status:?}; it had SEED={seed}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let text = std::fs::read_to_string(folder.join("effects")).unwrap_or_default();
    let ran: HashSet<&str> = text.split_whitespace().collect();
    for id in &made {
        assert!(ran.contains(id.as_str()), "{id} has not run; the storm had SEED={seed}");
    }
    eprintln!("{} jobs ended through {:?}", made.len(), raging.struck);
}

/// The program with leases short enough for a storm.
fn hero(cluster: &Cluster) -> Hero {
    Hero::on_cluster(cluster)
        .set("actor.lease", "\"2s\"")
        .set("actor.heartbeat", "\"500ms\"")
        .set("job.crash_limit", "1000")
        .add("[unit.second]\nrole = \"supervisor\"\n")
}

/// A job that leaves a line, or whose end is all there is of it.
fn job(rng: &mut Rng, number: usize, effects: &std::path::Path) -> Job {
    let id = format!("c{number}");
    let script = format!("file_write_append(\"{}\", \"{id} \\n\")", effects.display());
    let job = JobBuilder::new("sal", &script).id(&id).priority(rng.u8(..3));
    let job = if rng.u8(..10) == 0 { job.delay(Duration::from_millis(300)) } else { job };
    job.build().expect("a legal job")
}

impl Storm {
    fn strike(&mut self, fault: Fault, hero: &Hero) {
        *self.struck.entry(fault).or_default() += 1;
        match fault {
            Fault::MoveSlot => self.cluster.move_slot(),
            Fault::HandOver => self.cluster.hand_over(),
            Fault::KillOwner => {
                let dead = self.cluster.kill_owner_in_step();
                wait_until("a replica has taken over", || {
                    self.cluster.owner().is_some_and(|owner| owner != dead)
                });
                self.cluster.start_again(dead);
                self.cluster.wait_for_replicas();
            }
            Fault::KillActor => self.restart(hero, &ACTORS),
            Fault::KillSupervisor => self.restart(hero, &SUPERVISORS),
        }
    }

    fn restart(&mut self, hero: &Hero, units: &[&'static str]) {
        let unit = self.rng.choice(units).expect("there are some");
        self.units.get_mut(unit).expect("it was started").kill();
        self.units.insert(unit, hero.actor(unit).start());
    }
}
