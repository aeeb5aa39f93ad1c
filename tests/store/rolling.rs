//! A rolling run on 200 machines, of which a tenth dies in the midst of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::graph::GraphKind;
use hero::proto::job::{Job, JobId};
use hero::proto::queue::Queue;
use hero::proto::window::GraphWindow;
use hero::store::{BatchOutcome, Claim, ClaimLimits, Recorded, Verdict};

use super::windows::{done, failed, id, new_graph, settle, tend};
use crate::support::{Life, RETENTION, World, keys};

const MACHINES: usize = 200;

/// A machine with one actor.
struct Machine {
    life: Life,
    list: String,
    /// True until it has died, if it is one that does.
    is_mortal: bool,
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).expect("small")
    }
}

fn unit(number: usize) -> String {
    format!("osis-default-{}", number + 1)
}

fn job_of(number: usize) -> Job {
    let selector = format!("machine = m{number}");
    let job = JobBuilder::new("osis", "1").id(&format!("j{number:04}")).r#where(&selector);
    Job { graph_id: Some(id("g")), ..job.build().expect("a legal job") }
}

fn machines(jobs: &[Job]) -> Vec<Machine> {
    let of = |(number, job): (usize, &Job)| {
        let queue: Queue = job.spec.queue().expect("typed");
        let list = keys::keys().work(&queue);
        Machine { life: Life::of(&unit(number)), list, is_mortal: number % 10 == 3 }
    };
    jobs.iter().enumerate().map(of).collect()
}

async fn claim(world: &World, machine: &Machine) -> Vec<JobId> {
    world.hold_lease(&machine.life);
    let claim = Claim {
        boot: &machine.life.boot,
        actor: &machine.life.actor,
        lists: std::slice::from_ref(&machine.list),
        wanted: 2,
        ahead: 1,
        size_max_bytes: 1 << 20,
        limits: &ClaimLimits::default(),
    };
    let claimed = world.store.attempts().claim(&claim).await.expect("claiming");
    claimed.attempts.into_iter().map(|attempt| attempt.id).collect()
}

/// Makes one run.
async fn run(seed: u64, at_a_time: u32, stop_after: Option<usize>) {
    let (world, mut dice) = (World::new(), Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
    let jobs: Vec<Job> = (0..MACHINES).map(job_of).collect();
    let stop = stop_after.map(|failures| failures.to_string().parse().expect("legal"));
    let window =
        GraphWindow { at_a_time: Some(at_a_time), stop_after: stop, ..GraphWindow::default() };
    let new = new_graph(GraphKind::Batch, window);
    let submitted = world.store.batches().submit(&jobs, Some(&new), RETENTION).await;
    assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
    let mut machines = machines(&jobs);
    let of_lists: HashMap<String, usize> =
        machines.iter().enumerate().map(|(number, of)| (of.list.clone(), number)).collect();
    let mut running: BTreeMap<JobId, usize> = BTreeMap::new();
    let (mut ended, mut failures) = (HashSet::new(), 0);
    loop {
        let is_stopped = stop_after.is_some_and(|most| failures >= most);
        let ready = world.redis.all("WORK");
        let ready: Vec<usize> =
            ready.iter().filter_map(|list| of_lists.get(list).copied()).collect();
        if !ready.is_empty() && (running.is_empty() || dice.below(3) > 0) {
            let number = ready[dice.below(ready.len())];
            for job in claim(&world, &machines[number]).await {
                assert!(
                    !is_stopped,
                    "{seed}: {job} started after the last failure that is allowed"
                );
                assert!(!ended.contains(&job), "{seed}: {job} started after its end");
                let before = running.insert(job, number);
                assert!(before.is_none(), "{seed}: twice at a time");
            }
            assert!(running.len() <= at_a_time as usize, "{seed}: {} run", running.len());
            continue;
        }
        let Some((job, number)) = running.pop_first() else {
            settle(&world).await;
            if world
                .store
                .graphs()
                .get(&id("g"))
                .await
                .expect("reading")
                .expect("it exists")
                .counts
                .waiting()
                == 0
            {
                break;
            }
            world.store.schedule().dispatch_due(1000, RETENTION).await.expect("dispatching");
            tend(&world).await;
            continue;
        };
        if machines[number].is_mortal {
            let dead = std::mem::replace(&mut machines[number].life, Life::of(&unit(number)));
            machines[number].is_mortal = false;
            world.dies(&dead, 3).await;
            continue;
        }
        let verdict = match dice.below(20) {
            0 => failed(),
            1 if !is_stopped => {
                let delay = Duration::ZERO;
                Verdict::Retry { error: "no".to_owned(), exit_code: None, delay }
            }
            _ => done(),
        };
        let (fails, again) =
            (matches!(verdict, Verdict::Error { .. }), matches!(verdict, Verdict::Retry { .. }));
        let life = &machines[number].life;
        let end = [world.ending(life, job.clone(), verdict)];
        let recorded = world.store.attempts().finish(&life.boot, RETENTION, &end).await;
        assert_eq!(recorded.expect("recording"), [Recorded::Recorded]);
        failures += usize::from(fails);
        assert!(again || ended.insert(job), "{seed}: it ended twice");
    }
    world.check();
    let graph = world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists");
    let (counts, all) = (graph.counts, MACHINES as u64);
    assert_eq!(counts.finished + counts.failed, ended.len() as u64, "{seed}");
    assert_eq!(counts.failed, failures as u64, "{seed}");
    assert_eq!(counts.finished + counts.failed + counts.cancelled, all, "{seed}");
    let is_stopped = stop_after.is_some_and(|most| failures >= most);
    assert!(is_stopped || counts.cancelled == 0, "{seed}: {counts}");
    assert!(
        world.redis.all("LIMIT_RUNNING").is_empty() && world.redis.all("LIMIT_HELD").is_empty()
    );
}

#[tokio::test]
async fn rolling_run_of_200_machines_keeps_its_window_though_a_tenth_of_them_dies() {
    // `make chaos` makes twenty.
    let runs = std::env::var("ROLLING_RUNS").map_or(4, |text| text.parse().expect("a number"));
    for seed in 1..=runs {
        let at_a_time = [2, 5, 16, 40][usize::try_from(seed % 4).expect("small")];
        run(seed, at_a_time, (seed % 2 == 0).then_some(3)).await;
    }
}
