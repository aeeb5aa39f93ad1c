//! Jobs of programs that use plain commands, popped by Redis for an actor that never gets the answer.

use super::{bash, has_status};
use crate::support::proxy::{Lane, Mode};
use crate::support::{Process, Redis, wait_until};

const QUEUE: &str = "hero:q:work:type:bash";

fn write(redis: &Redis, id: &str) {
    let fields = ["status", "dispatched", "script_type", "bash", "script", "echo ran"];
    redis.ask_with::<i64, _>(&format!("HSET hero:job:{id}"), &fields);
}

/// An actor whose way to Redis is a lane of its own.
fn actor(redis: &Redis, lane: &Lane) -> Process {
    let url = format!("\"redis+unix://{}\"", lane.path().display());
    bash(redis).set("redis.url", &url).actor("bash-default-1").start()
}

fn lane(redis: &Redis) -> Lane {
    Lane::open(&redis.folder().join("lane.sock"), &redis.folder().join("redis.sock"))
}

fn blocked(redis: &Redis) -> bool {
    !redis.ask::<String>("INFO clients").contains("blocked_clients:0")
}

/// Pushes a job that Redis pops for the actor of the lane, and lets nothing through from then on.
fn pop_for_nobody(redis: &Redis, lane: &Lane, id: &str) {
    write(redis, id);
    loop {
        lane.set(Mode::Pass);
        wait_until("the actor waits", || blocked(redis));
        lane.set(Mode::Swallow);
        redis.run(&format!("RPUSH {QUEUE} {id}"));
        // A wait that ended just before popped nothing.
        if redis.ask::<u64>(&format!("LREM {QUEUE} 1 {id}")) == 0 {
            return;
        }
    }
}

#[test]
fn a_job_that_redis_popped_for_a_vanished_host_runs_elsewhere() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    let lane = lane(&redis);
    let vanished = actor(&redis, &lane);

    pop_for_nobody(&redis, &lane, "lost");
    wait_until("Redis pops nothing more for it", || !blocked(&redis));
    wait_until("it notices that Redis is away", || vanished.err().contains("cannot be reached"));
    let _other = hero.actor("bash-default-2").start();
    wait_until("the job has run", || has_status(&redis, "lost", "finished"));
    assert_eq!(redis.field("hero:job:lost", "attempt").as_deref(), Some("1"));
    assert_eq!(redis.field("hero:job:lost", "actor").as_deref(), Some("bash:default:2"));
}

#[test]
fn a_job_runs_though_redis_dies_after_it_wrote_the_pop_and_before_its_answer() {
    let mut redis = Redis::that_keeps();
    let lane = lane(&redis);
    let _actor = actor(&redis, &lane);

    pop_for_nobody(&redis, &lane, "lost");
    redis.kill();
    redis.start_again();
    assert_eq!(redis.ask::<u64>(&format!("LLEN {QUEUE}")), 0, "the pop is in the file");
    assert!(has_status(&redis, "lost", "dispatched"));
    lane.set(Mode::Pass);
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    wait_until("the job has run", || has_status(&redis, "lost", "finished"));
    assert_eq!(redis.field("hero:job:lost", "attempt").as_deref(), Some("1"));
}
