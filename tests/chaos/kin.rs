//! Parents that submit children, keep states and wait, while actors and supervisors are killed and paused and Redis is
//! restarted: each child is one job per name, no attempt finds a state older than the last one that was answered, and no
//! wait is lost or doubled.
//!
//! `KIN_SEEDS` says over how many seeds, `SEED` replays one.

use std::collections::BTreeSet;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Hero, Process, Redis, keys, number, seeds, until, wait_until};

/// The waits of each parent: for an event, its children, a time and jobs, in turn.
const TURNS: usize = 8;
/// The children before each wait.
const STEPS: usize = 5;
const PARENTS: [&str; 3] = ["a", "b", "c"];
/// The states that a parent keeps: one for each child, and one for each wait.
const STATES: u64 = (TURNS * STEPS + TURNS) as u64;
/// The most states between two faults.
const PAUSE_MAX: u64 = STATES * PARENTS.len() as u64 / FAULTS.len() as u64 + 4;
const ACTORS: [&str; 3] = ["python-default-1", "python-default-2", "sal-default-1"];
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chaos/kin.py");

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// SIGKILL to an actor, and a successor at once.
    KillActor,
    /// SIGSTOP to an actor until its lease has ended: its scripts go on meanwhile.
    PauseActor,
    KillSupervisor,
    /// SIGKILL to Redis, which starts again on its append-only file.
    KillRedis,
}

/// The faults of each seed, in random order.
const FAULTS: [Fault; 9] = [
    Fault::KillActor,
    Fault::KillActor,
    Fault::KillActor,
    Fault::KillActor,
    Fault::KillActor,
    Fault::KillActor,
    Fault::PauseActor,
    Fault::KillSupervisor,
    Fault::KillRedis,
];

/// The processes of one seed, and what is known of its parents.
struct Kin<'h> {
    hero: &'h Hero,
    random: fastrand::Rng,
    supervisor: Process,
    actors: Vec<Process>,
    /// The number of the last state that was seen, by parent.
    seen: [u64; PARENTS.len()],
    /// After the processes, whose files are in its folder: fields end in their order.
    redis: Redis,
}

fn start(hero: &Hero, unit: &str) -> Process {
    hero.actor(unit).tasks(4).start()
}

impl Kin<'_> {
    fn field(&self, id: &str, name: &str) -> Option<String> {
        self.redis.field(&keys::job(id), name)
    }

    fn has_ended(&self, id: &str) -> bool {
        matches!(self.field(id, "status").as_deref(), Some("finished" | "error"))
    }

    /// Returns how many states the parents have kept. Fails if one went back.
    fn progress(&mut self) -> u64 {
        for (place, id) in PARENTS.iter().enumerate() {
            let kept = self.field(id, "kept_state");
            // A job that has finished keeps none.
            let now = match kept.and_then(|text| serde_json::from_str::<Value>(&text).ok()) {
                Some(state) => state["number"].as_u64().unwrap_or_default(),
                None if self.has_ended(id) => STATES,
                None => 0,
            };
            assert!(now >= self.seen[place], "{id}: state {now} after {}", self.seen[place]);
            self.seen[place] = now;
        }
        self.seen.iter().sum()
    }

    fn strike(&mut self, fault: Fault) {
        let place = self.random.usize(..ACTORS.len());
        match fault {
            Fault::KillActor => {
                self.actors[place].kill();
                self.actors[place] = start(self.hero, ACTORS[place]);
            }
            Fault::PauseActor => {
                let presence = keys::presence(&ACTORS[place].replace('-', ":"));
                let presence: Option<String> = self.redis.get(&presence);
                let presence: Value =
                    serde_json::from_str(&presence.expect("it is alive")).expect("JSON");
                let boot = presence["boot_id"].as_str().expect("an id");
                self.actors[place].signal(Signal::SIGSTOP);
                let boots = keys::keys().boots();
                wait_until("its lease has ended", || self.redis.score(&boots, boot).is_none());
                self.actors[place].signal(Signal::SIGCONT);
            }
            Fault::KillSupervisor => {
                self.supervisor.kill();
                self.supervisor = self.hero.supervisor().start();
            }
            Fault::KillRedis => {
                let before = self.actors[place].err().len();
                self.redis.kill();
                wait_until("an actor has noticed", || self.actors[place].err().len() > before);
                self.redis.start_again();
            }
        }
    }

    /// Lets all faults strike, each a few states after the one before.
    fn rage(&mut self) {
        let mut faults = FAULTS;
        self.random.shuffle(&mut faults);
        for fault in faults {
            let goal = self.progress() + self.random.u64(1..PAUSE_MAX);
            let goal = goal.min(STATES * PARENTS.len() as u64);
            wait_until("the parents go on", || self.progress() >= goal);
            self.strike(fault);
        }
    }

    fn check(&mut self, seed: u64) {
        for id in PARENTS {
            wait_until("the parent has ended", || {
                self.progress();
                self.has_ended(id)
            });
            assert_eq!(self.field(id, "error"), None, "seed {seed}, parent {id}");
            let came = self.hero.run(&["job", "output", id]).code(0).stdout;
            let came: Vec<Value> = serde_json::from_str(&came).expect("JSON");
            let wanted = (0..TURNS).map(|turn| match turn % 4 {
                0 => json!(format!("{id}{turn}")),
                kind => json!(kind),
            });
            assert_eq!(came, wanted.collect::<Vec<_>>(), "seed {seed}, parent {id}");
            let waits = self.field(id, "waits");
            assert_eq!(waits, Some(TURNS.to_string()), "seed {seed}, parent {id}");
            let all: Vec<String> =
                serde_json::from_str(&self.field(id, "children").expect("children")).expect("ids");
            let names: BTreeSet<Option<String>> =
                all.iter().map(|child| self.field(child, "name")).collect();
            let both = (all.len(), names.len());
            assert_eq!(both, (TURNS * STEPS, TURNS * STEPS), "seed {seed}, parent {id}");
            for child in &all {
                until(&self.redis, child, "finished");
            }
        }
        let jobs = self.redis.keys(&keys::job("child-")).len();
        assert_eq!(jobs, PARENTS.len() * TURNS * STEPS, "seed {seed}");
    }

    /// Returns how many attempts of parents were lost with their actors.
    fn crashes(&self) -> u64 {
        let crashes = PARENTS.iter().filter_map(|id| self.field(id, "crashes"));
        crashes.map(|text| text.parse::<u64>().expect("a number")).sum()
    }
}

/// Returns the wait of a job; none also while Redis is away.
fn wait_of(client: &redis::Client, id: &str) -> Option<String> {
    let mut link = client.get_connection().ok()?;
    redis::cmd("HGET").arg(keys::job(id)).arg("wait").query(&mut link).ok()?
}

/// Tells each parent its events. Some come before the parent waits for them. What was not answered is told again.
fn tell(hero: &Hero, socket: &Path, mut random: fastrand::Rng) {
    let client = redis::Client::open(format!("unix://{}", socket.display())).expect("a socket");
    for turn in (0..TURNS).step_by(4) {
        for id in PARENTS {
            let event = format!("go{turn}");
            let awaited = format!("{{\"event\":\"{event}\"}}");
            if random.bool() {
                let waits = || wait_of(&client, id).is_some_and(|wait| wait == awaited);
                wait_until("it waits for its event", waits);
            }
            let data = format!("\"{id}{turn}\"");
            wait_until("it is told", || {
                let told = hero.run(&["job", "tell", id, &event, "--data", &data]);
                told.code == 0 || told.stderr.contains("already")
            });
        }
    }
}

#[test]
fn no_child_state_or_wait_is_lost_or_doubled_while_actors_and_servers_die() {
    let seeds = seeds(number("KIN_SEEDS").unwrap_or(2));
    let mut crashes = Vec::new();
    for seed in seeds {
        eprintln!("the storm of children, states and waits has SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let redis = Redis::that_keeps();
        let folder = redis.folder().join("notes");
        std::fs::create_dir(&folder).expect("a folder");
        let hero = Hero::on(&redis)
            .set("actor.lease", "\"1s\"")
            .set("job.crash_limit", "1000")
            .set("type.python.may_submit", "[\"sal\"]")
            .set("type.python.sandbox.write", &format!("[\"{}\"]", folder.display()));
        let (supervisor, socket) = (hero.supervisor().start(), redis.folder().join("redis.sock"));
        let actors = ACTORS.iter().map(|unit| start(&hero, unit)).collect();
        let teller = random.fork();
        let seen = [0; PARENTS.len()];
        let mut kin = Kin { hero: &hero, random, supervisor, actors, seen, redis };
        let params = format!("folder={}", folder.display());
        let (turns, steps) = (format!("turns:={TURNS}"), format!("steps:={STEPS}"));
        let given = ["--param", &params, "--param", &turns, "--param", &steps, SCRIPT];
        for id in PARENTS {
            hero.run(&[&["submit", "--id", id], &given[..]].concat()).code(0);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| tell(&hero, &socket, teller));
            kin.rage();
            kin.check(seed);
        });
        crashes.push(kin.crashes());
    }
    eprintln!("attempts of parents that were lost with their actors, by seed: {crashes:?}");
    assert!(crashes.len() < 2 || crashes.iter().any(|lost| *lost > 0), "no death hit a parent");
}
