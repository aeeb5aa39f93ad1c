//! Random sequences under limits: no limit is exceeded, every slot belongs to a running job, and in
//! the end every job has run.

use std::time::Duration;

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::proto::job::{JobId, JobStatus};
use hero::store::Verdict;

use crate::support::{Life, RETENTION, World, keys, queue, seed};

const LIMITS: &str = "[limit.all]\nrunning = 5\n[limit.keys]\nper = \"key\"\nrunning = 2\n\
                      [limit.callers]\nper = \"caller\"\nrunning = 1\nrate = \"1000/s\"\n\
                      [limit.shared]\nrunning = 4\nfair = \"key\"";
const KEYS: [&str; 3] = ["a", "b", "c"];

struct Walk {
    world: World,
    rng: Rng,
    lives: Vec<Life>,
    running: Vec<(Life, JobId)>,
    number: u32,
    instances: u32,
}

impl Walk {
    fn new_life(&mut self) -> Life {
        self.instances += 1;
        Life::of(&format!("osis-default-{}", self.instances))
    }

    fn a_name(&mut self) -> JobId {
        let number = self.rng.u32(..self.number.max(1));
        format!("j{number}").parse().expect("a legal id")
    }

    async fn step(&mut self) {
        match self.rng.u8(..20) {
            0..7 => self.submit().await,
            7..11 => self.claim().await,
            11..15 => self.finish().await,
            15 => {
                let id = self.a_name();
                self.world.store.jobs().stop(&id, RETENTION, None).await.expect("stopping");
            }
            16 => {
                let id = self.a_name();
                self.world.store.jobs().delete(&id, RETENTION).await.expect("deleting");
            }
            17 => self.give_back_or_die().await,
            18 => self.tend().await,
            _ => {
                let id = self.a_name();
                self.world.store.jobs().retry(&id).await.expect("running again");
            }
        }
        self.world.check();
        self.no_limit_is_exceeded();
    }

    async fn submit(&mut self) {
        let mut builder = JobBuilder::new("osis", "1").id(&format!("j{}", self.number));
        builder = builder.priority(self.rng.u8(..3)).concurrent(self.rng.u8(..3) > 0);
        if self.rng.bool() {
            builder = builder.limit_key(KEYS[self.rng.usize(..3)]);
        }
        if self.rng.bool() {
            builder = builder.caller_id(KEYS[self.rng.usize(..3)]);
        }
        self.number += 1;
        self.world.accepts(&[builder.build().expect("legal")]).await;
    }

    async fn claim(&mut self) {
        let life = self.lives[self.rng.usize(..self.lives.len())].clone();
        let wanted = self.rng.usize(1..6);
        for attempt in self.world.claim(&life, wanted).await.attempts {
            self.running.push((life.clone(), attempt.id));
        }
    }

    async fn finish(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let (life, id) = self.running.swap_remove(self.rng.usize(..self.running.len()));
        let verdict = match self.rng.u8(..4) {
            0 => {
                let delay = Duration::from_micros(1);
                Verdict::Retry { error: "no".to_owned(), exit_code: None, delay }
            }
            1 => Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true },
            _ => Verdict::Finished { output: "".into(), exit_code: None },
        };
        self.world.finish(&life, &id, verdict).await;
        self.world.store.schedule().dispatch_due(100, RETENTION).await.expect("dispatching");
    }

    async fn give_back_or_die(&mut self) {
        let place = self.rng.usize(..self.lives.len());
        let life = self.lives[place].clone();
        let own = |(other, _): &(Life, JobId)| other.boot == life.boot;
        let jobs: Vec<_> =
            self.running.iter().filter(|job| own(job)).map(|(_, id)| (id.clone(), None)).collect();
        self.running.retain(|job| !own(job));
        if self.rng.bool() {
            self.world.give_back(&life, &jobs).await;
        } else {
            self.world.set_lease(&life, 1);
            self.world
                .store
                .recovery()
                .boots(None, Duration::ZERO, 3, RETENTION)
                .await
                .expect("recovering");
            self.lives[place] = self.new_life();
        }
    }

    async fn tend(&self) {
        for limit in self.world.redis.members(&keys::limits()) {
            self.world.redis.put(&keys::limits(), 1, &limit);
        }
        self.world.store.limits().tend(100).await.expect("looking after limits");
    }

    fn no_limit_is_exceeded(&self) {
        let prefix = keys::prefix("LIMIT_RUNNING");
        for key in self.world.redis.keys(&prefix) {
            let most = match &key[prefix.len()..] {
                "all" => 5,
                "shared" => 4,
                name if name.starts_with("keys=") => 2,
                _ => 1,
            };
            let number = self.world.redis.members(&key).len();
            assert!(number <= most, "{number} run in {key}");
        }
    }
}

#[tokio::test]
async fn random_sequences_exceed_no_limit_and_leave_no_job_behind() {
    let seed = seed();
    eprintln!("SEED={seed}");
    let mut world = World::new();
    world.limit(LIMITS);
    let lives = Vec::new();
    let rng = Rng::with_seed(seed);
    let mut walk = Walk { world, rng, lives, running: Vec::new(), number: 0, instances: 0 };
    for _ in 0..3 {
        let life = walk.new_life();
        walk.lives.push(life);
    }
    for _ in 0..400 {
        walk.step().await;
    }
    // The remaining jobs run, retries among them.
    let mut rounds = 0;
    loop {
        walk.world.store.schedule().dispatch_due(1000, RETENTION).await.expect("dispatching");
        walk.tend().await;
        for life in walk.lives.clone() {
            for attempt in walk.world.claim(&life, 5).await.attempts {
                walk.running.push((life.clone(), attempt.id));
            }
        }
        walk.no_limit_is_exceeded();
        for (life, id) in std::mem::take(&mut walk.running) {
            let done = Verdict::Finished { output: "".into(), exit_code: None };
            walk.world.finish(&life, &id, done).await;
        }
        let left = (0..walk.number).any(|number| {
            let status = walk.world.field(&format!("j{number}"), "status");
            status
                .and_then(|status| status.parse::<JobStatus>().ok())
                .is_some_and(|s| !s.is_terminal())
        });
        if !left {
            break;
        }
        rounds += 1;
        let stand = walk.world.store.queues().states([].into()).await;
        assert!(rounds < 2000, "jobs are left behind: {stand:?}");
    }
    assert_eq!(
        walk.world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging"),
        0
    );
    walk.tend().await;
    assert!(walk.world.redis.all("LIMIT_RUNNING").is_empty());
    assert!(walk.world.redis.all("LIMIT_HELD").is_empty());
}
