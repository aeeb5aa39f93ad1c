//! Parents that submit children and keep states while their actors die at random moments: each child is one job per
//! name, and no attempt finds a state older than the last one that was answered.

use std::collections::BTreeSet;

use crate::support::{Hero, Redis, keys, seeds, until, wait_until};

/// The children of each parent.
const STEPS: usize = 40;
const PARENTS: [&str; 3] = ["a", "b", "c"];
/// The deaths of the actor for each seed.
const DEATHS: usize = 3;

/// Each step keeps its number, and submits a child once that is answered. So at the start of an attempt the child of the
/// step after the state is none yet, and the one of the step before it is there.
const PARENT: &str = "import hero\n\
    def is_child(step):\n    try: return bool(hero.inputs(f'n{step}')['id'])\n    except hero.Refused: return False\n\
    done = hero.state or 0\n\
    if is_child(done + 1): raise SystemExit(f'state {done} is older than its child {done + 1}')\n\
    if done > 1 and not is_child(done - 1): raise SystemExit(f'the child {done - 1} is lost')\n\
    for step in range(max(done, 1), int(hero.params['steps']) + 1):\n\
    \x20   hero.checkpoint(step)\n    hero.submit('1', name=f'n{step}')\n    hero.submit('1', name=f'n{step}')";

fn children(redis: &Redis, id: &str) -> Vec<String> {
    let text = redis.field(&keys::job(id), "children").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[test]
fn each_child_is_one_job_and_no_state_goes_back_while_actors_die() {
    for seed in seeds(2) {
        let mut random = fastrand::Rng::with_seed(seed);
        let redis = Redis::start();
        let hero = Hero::on(&redis)
            .set("actor.lease", "\"1s\"")
            .set("job.crash_limit", "1000")
            .set("type.python.may_submit", "[\"python\"]");
        let _supervisor = hero.supervisor().start();
        let start = || hero.actor("python-default-1").tasks(4).start();
        let mut actor = start();
        let steps = format!("steps={STEPS}");
        for id in PARENTS {
            let submit = ["submit", "-t", "python", "--id", id, "--param", &steps, "-e", PARENT];
            hero.run(&submit).code(0);
        }
        let many = || PARENTS.iter().map(|id| children(&redis, id).len()).sum::<usize>();
        for _ in 0..DEATHS {
            let goal = (many() + random.usize(1..STEPS / 2)).min(PARENTS.len() * STEPS);
            wait_until("some children are submitted", || many() >= goal);
            actor.kill();
            actor = start();
        }
        for id in PARENTS {
            wait_until("the parent has ended", || {
                let status = redis.field(&keys::job(id), "status");
                matches!(status.as_deref(), Some("finished" | "error"))
            });
            assert_eq!(redis.field(&keys::job(id), "error"), None, "seed {seed}, parent {id}");
            let all = children(&redis, id);
            let names: BTreeSet<Option<String>> =
                all.iter().map(|child| redis.field(&keys::job(child), "name")).collect();
            assert_eq!((all.len(), names.len()), (STEPS, STEPS), "seed {seed}, parent {id}");
            for child in &all {
                until(&redis, child, "finished");
            }
        }
        let jobs = redis.keys(&keys::job("child-")).len();
        assert_eq!(jobs, PARENTS.len() * STEPS, "seed {seed}");
        let crashed = PARENTS.iter().filter(|id| redis.field(&keys::job(id), "crashes").is_some());
        assert!(crashed.count() > 0, "seed {seed}: no death hit a parent");
    }
}
