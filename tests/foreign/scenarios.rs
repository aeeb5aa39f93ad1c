//! The example scenarios of the queue naming document, each as it stands there.

use super::{Program, bash, counting, dual, each_ran_once, jobs, nothing_is_left};
use crate::support::{Redis, wait_until};

/// Pushes a job as a program of the naming document does.
pub(super) fn push(redis: &Redis, queue: &str, id: &str, script: &str) {
    redis.ask_with::<i64, _>(
        &format!("HSET hero:job:{id} id {id} status dispatched script"),
        &[script],
    );
    redis.run(&format!("LPUSH {queue} {id}"));
}

#[track_caller]
fn all_finish(redis: &Redis, ids: &[String]) {
    for id in ids {
        wait_until(&format!("job {id} has finished"), || {
            redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some("finished")
        });
    }
}

#[test]
fn scenario_a_two_instances_share_the_load_of_one_type() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _one = hero.actor("bash-default-1").tasks(1).start();
    let _two = hero.actor("bash-default-2").tasks(1).start();
    // Each waits until the other has one too.
    let meet = "redis-cli -s SOCKET RPUSH test:met:{n} 1 > /dev/null; \
                redis-cli -s SOCKET BLPOP test:both:{n} 60 > /dev/null";
    let meet = meet.replace("SOCKET", &redis.folder().join("redis.sock").display().to_string());
    let mut ids = Vec::new();
    for n in 0..jobs(5) {
        let script = meet.replace("{n}", &n.to_string());
        for half in ["x", "y"] {
            let id = format!("{half}{n}");
            push(&redis, "hero:q:work:type:bash", &id, &script);
            ids.push(id);
        }
        wait_until("both run one", || redis.list(&format!("test:met:{n}")).len() == 2);
        let by = |id: String| redis.field(&format!("hero:job:{id}"), "actor");
        assert_ne!(by(format!("x{n}")), by(format!("y{n}")));
        redis.run(&format!("RPUSH test:both:{n} 1 1"));
        all_finish(&redis, &ids);
    }
}

#[test]
fn scenario_b_a_targeted_job_goes_to_its_instance_alone() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _third = hero.actor("bash-io-3").start();
    let _other = hero.actor("bash-io-4").start();
    let _foreign = Program::serve(&redis, "canonical_actor", &["bash", "io", "5"]);
    for n in 0..jobs(5) {
        let id = format!("hero-{n}");
        push(&redis, "hero:q:work:type:bash:group:io:inst:3", &id, "echo 3");
        all_finish(&redis, std::slice::from_ref(&id));
        assert_eq!(redis.field(&format!("hero:job:{id}"), "actor").as_deref(), Some("bash:io:3"));
        let done = hero.run(&["exec", "-t", "bash", "-g", "io", "-i", "5", "-e", "echo 5"]).code(0);
        assert_eq!(done.stdout, "5\n");
    }
    let stats: std::collections::BTreeMap<String, u64> =
        redis.ask("HGETALL hero:meta:queue:stats:type:bash");
    assert_eq!(stats.get("started").copied(), Some(jobs(5) as u64), "by actors of Hero's own");
}

#[test]
fn scenario_c_mixed_old_and_new_actors_both_get_work_and_no_job_is_stuck() {
    let redis = Redis::start();
    let legacy = "hero:job:actor_queue:bash";
    let hero = dual(&redis, &[legacy]);
    let _supervisor = hero.supervisor().start();
    let number = jobs(40);
    let script_of = |id: &str| counting(&redis, id, id);
    let ids: Vec<String> = (0..number).map(|n| format!("n-{n}")).collect();
    for id in &ids {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", &script_of(id)]).code(0);
    }
    assert_eq!(redis.list(legacy).len(), number, "each stands in the legacy queue too");
    let _old = Program::serve(&redis, "old_worker", &[legacy]);
    wait_until("the old one gets work", || !super::runs(&redis).is_empty());
    let _new = hero.actor("bash-default-1").tasks(1).start();
    all_finish(&redis, &ids);
    each_ran_once(&redis, number);
    let by_hero =
        ids.iter().filter(|id| redis.field(&format!("hero:job:{id}"), "actor").is_some()).count();
    assert!(by_hero > 0 && by_hero < number, "{by_hero} of {number} ran on Hero's actor");
    assert_eq!(redis.list(legacy), [] as [&str; 0]);
}

/// The supervisor of scenario C stores each job and pushes its id twice, canonical first.
#[track_caller]
fn push_twice(redis: &Redis, prefix: &str, number: usize, legacy: &str) -> Vec<String> {
    let script = counting(redis, "{id}", "out-{id}");
    let count = number.to_string();
    let words = ["push", "bash", &script, prefix, &count, legacy];
    Program::run(redis, "naming_supervisor", &words).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn scenario_c_a_supervisor_of_the_document_pushes_twice_and_no_job_runs_twice() {
    let redis = Redis::start();
    let legacy = "hero:job:actor_queue:bash";
    let hero = dual(&redis, &[legacy]);
    let _supervisor = hero.supervisor().start();
    let number = jobs(60);
    // Jobs that wait already when the actors of both kinds start.
    let waiting = push_twice(&redis, "waiting", number, legacy);
    let _old = Program::serve(&redis, "old_worker", &[legacy]);
    let _new = hero.actor("bash-default-1").tasks(2).start();
    super::all_finish(&redis, &waiting);
    // Jobs that both kinds wait for.
    let awaited = push_twice(&redis, "awaited", number, legacy);
    super::all_finish(&redis, &awaited);
    each_ran_once(&redis, 2 * number);
    nothing_is_left(&redis);
}
