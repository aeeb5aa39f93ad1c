//! The storm on four shards that two servers hold: jobs stream in on all of them while servers, actors and
//! supervisors are killed and paused.
//!
//! `SEED` replays the faults; `KILLS` and `LONGEST` say how long it lasts, as for the other storms.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::config::RedisConfig;
use hero::proto::job::{Job, JobId};
use hero::store::Shards;
use nix::sys::signal::Signal;

use super::LONGEST_S;
use super::work::submit;
use crate::support::{Hero, Process, Redis, number, seed, wait_until};

const SHARDS: usize = 4;
const ACTORS: [&str; 3] = ["sal-default-1", "sal-default-2", "sal-default-3"];
const SUPERVISORS: [&str; 2] = ["supervisor", "second"];
const LEASE: Duration = Duration::from_secs(2);
/// A fault of this storm takes seconds to heal.
const KILLS_PER_FAULT: u64 = 5;
const BATCH: usize = 10;
/// The jobs that are accepted between two faults.
const BETWEEN_FAULTS: usize = 60;
/// Nothing ends for this long only if something is stuck.
const STUCK: Duration = Duration::from_secs(90);

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillHome,
    KillOther,
    KillActor,
    PauseActor,
    KillSupervisor,
}

const FAULTS: [Fault; 5] =
    [Fault::KillHome, Fault::KillOther, Fault::KillActor, Fault::PauseActor, Fault::KillSupervisor];

/// Everything that is in the storm.
struct Storm {
    /// Before the servers, whose folder they use.
    units: BTreeMap<&'static str, Process>,
    /// The shards 0 and 2, and the shards 1 and 3.
    servers: [Redis; 2],
    rng: Rng,
    struck: BTreeMap<Fault, usize>,
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a storm takes its time; nothing waits for it")]
fn every_job_ends_once_on_four_shards_whose_servers_die() {
    let seed = seed();
    eprintln!("the storm has SEED={seed}");
    let faults = number("KILLS").unwrap_or(100).div_ceil(KILLS_PER_FAULT);
    let until = Instant::now() + Duration::from_secs(number("LONGEST").unwrap_or(LONGEST_S));
    let servers = [Redis::that_keeps(), Redis::that_keeps()];
    let (home, other) = (servers[0].url(), servers[1].url());
    let hero = hero(&servers[0], &[&other, &home, &other]);
    let config = RedisConfig {
        shards: 4,
        shard_urls: [&other, &home, &other].map(|url| url.as_str().into()).to_vec(),
        ..servers[0].config("hero")
    };
    let effects = servers[0].folder().join("effects");
    let (rng, struck, units) = (Rng::with_seed(seed), BTreeMap::new(), BTreeMap::new());
    let mut raging = Storm { units, servers, rng, struck };
    for unit in ACTORS.into_iter().chain(SUPERVISORS) {
        raging.units.insert(unit, hero.actor(unit).start());
    }
    // Each fault finds jobs on their way: they stream in until the last is healed.
    let (stop, stopped) = channel::<()>();
    let stores = Shards::open(&config, Ok).expect("settings");
    let accepted = Arc::new(AtomicUsize::new(0));
    let (counted, file) = (Arc::clone(&accepted), effects.clone());
    let submitter = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let mut made: Vec<JobId> = Vec::new();
        let mut jobs = Rng::with_seed(seed);
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            for store in stores.all() {
                let shard = store.shard();
                let number = |at: usize| (made.len() + at, shard.number());
                let batch: Vec<Job> = (0..BATCH).map(|at| job(number(at), &file)).collect();
                runtime.block_on(submit(store, &batch));
                counted.fetch_add(BATCH, Ordering::Relaxed);
                made.extend(batch.into_iter().map(|job| job.id));
            }
            std::thread::sleep(Duration::from_millis(jobs.u64(5..50)));
        }
        made
    });
    let mut left: Vec<Fault> = Vec::new();
    for _ in 0..faults {
        if Instant::now() > until {
            break;
        }
        // Each kind once before one comes again.
        if left.is_empty() {
            left = FAULTS.to_vec();
            raging.rng.shuffle(&mut left);
        }
        let enough = accepted.load(Ordering::Relaxed) + BETWEEN_FAULTS;
        wait_until("jobs are accepted again", || accepted.load(Ordering::Relaxed) >= enough);
        let fault = left.pop().expect("just filled");
        raging.strike(fault, &hero);
    }
    drop(stop);
    let made = submitter.join().expect("all are accepted");
    let reruns = check((&config, &raging.servers), &made, &effects, seed);
    eprintln!("{} jobs ended, {reruns} ran again, through {:?}", made.len(), raging.struck);
}

/// The program with leases short enough for a storm.
fn hero(home: &Redis, shard_urls: &[&String]) -> Hero {
    Hero::on(home)
        .set("redis.shards", &SHARDS.to_string())
        .set("redis.shard_urls", &format!("{shard_urls:?}"))
        .set("actor.lease", "\"2s\"")
        .set("actor.heartbeat", "\"500ms\"")
        .set("job.crash_limit", "1000")
        .add("[unit.second]\nrole = \"supervisor\"\n")
}

/// A job that leaves a line.
fn job((number, shard): (usize, u16), effects: &Path) -> Job {
    let prefix = if shard == 0 { String::new() } else { format!("s{shard}-") };
    let id = format!("{prefix}c{number}");
    let script = format!("file_write_append(\"{}\", \"{id}\\n\")", effects.display());
    JobBuilder::new("sal", &script).id(&id).build().expect("a legal job")
}

/// Waits until each job has ended, and checks that each ran, and again only for a crash. Returns how often that
/// was.
#[expect(clippy::disallowed_methods, reason = "a storm takes its time; nothing waits for it")]
fn check(
    (config, servers): (&RedisConfig, &[Redis; 2]),
    made: &[JobId],
    effects: &Path,
    seed: u64,
) -> usize {
    let stores = Shards::open(config, Ok).expect("settings");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let began = Instant::now();
    let mut crashes: BTreeMap<&str, usize> = BTreeMap::new();
    for id in made {
        let store = stores.of(id.as_str()).expect("a shard");
        loop {
            let found = runtime.block_on(store.jobs().job(id));
            match found.ok().map(|job| job.map(|job| job.expect("a legal job"))) {
                Some(Some(job)) if job.status.is_terminal() => {
                    assert_eq!(job.status.to_string(), "finished", "{id}; SEED={seed}");
                    let server = &servers[usize::from(store.shard().number()) % 2];
                    let charged = server.field(&store.keys().job(id), "crashes");
                    // A job that was claimed ahead is not charged the first time.
                    let of_job = charged.map_or(0, |crashes| crashes.parse().unwrap_or(0) + 1);
                    crashes.insert(id.as_str(), of_job);
                    break;
                }
                Some(None) => panic!("{id} is lost; the storm had SEED={seed}"),
                _ => assert!(began.elapsed() < STUCK, "{id} does not end; it had SEED={seed}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let text = std::fs::read_to_string(effects).unwrap_or_default();
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    text.lines().for_each(|id| *ran.entry(id).or_default() += 1);
    for id in made {
        let (ran, crashes) = (ran.get(id.as_str()).copied(), crashes[id.as_str()]);
        let ran = ran.unwrap_or_default();
        assert!((1..=1 + crashes).contains(&ran), "{id} ran {ran} times; SEED={seed}");
    }
    text.lines().count() - made.len()
}

impl Storm {
    fn strike(&mut self, fault: Fault, hero: &Hero) {
        *self.struck.entry(fault).or_default() += 1;
        match fault {
            Fault::KillHome => self.restart_server(0),
            Fault::KillOther => self.restart_server(1),
            Fault::KillActor => self.restart(hero, &ACTORS),
            Fault::KillSupervisor => self.restart(hero, &SUPERVISORS),
            Fault::PauseActor => self.pause(),
        }
    }

    fn restart_server(&mut self, server: usize) {
        self.servers[server].kill();
        self.servers[server].start_again();
    }

    fn restart(&mut self, hero: &Hero, units: &[&'static str]) {
        let unit = self.rng.choice(units).expect("there are some");
        self.units.get_mut(unit).expect("it was started").kill();
        self.units.insert(unit, hero.actor(unit).start());
    }

    /// Pauses an actor for longer than its lease.
    #[expect(clippy::disallowed_methods, reason = "the fault is the time")]
    fn pause(&mut self) {
        let unit = self.rng.choice(ACTORS).expect("there are some");
        let process = &self.units[unit];
        process.signal(Signal::SIGSTOP);
        std::thread::sleep(LEASE + LEASE / 2);
        process.signal(Signal::SIGCONT);
    }
}
