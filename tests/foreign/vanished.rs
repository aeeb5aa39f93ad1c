//! Jobs of programs that use plain commands; Redis tells an actor of them, but the answer never arrives.

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

/// Pushes a job while nothing comes through the lane to the waiting actor.
fn push_to_nobody(redis: &Redis, lane: &Lane, id: &str) {
    write(redis, id);
    wait_until("the actor waits, and learns of nothing", || {
        if !blocked(redis) {
            return false;
        }
        lane.set(Mode::Swallow);
        // Its wait may have ended just before.
        let waits = blocked(redis);
        if !waits {
            lane.set(Mode::Pass);
        }
        waits
    });
    redis.run(&format!("RPUSH {QUEUE} {id}"));
}

fn is_adopted(redis: &Redis, id: &str) -> bool {
    redis.score("hero:meta:queue:ready:type:bash", id).is_some()
}

#[test]
fn a_job_that_redis_delivered_to_a_vanished_host_runs_elsewhere() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    let lane = lane(&redis);
    let vanished = actor(&redis, &lane);

    push_to_nobody(&redis, &lane, "told");
    wait_until("the supervisor has heard of it", || is_adopted(&redis, "told"));
    wait_until("the token went to the actor", || {
        !redis.ask::<bool>("EXISTS hero:meta:wake:type:bash")
    });
    assert_eq!(redis.ask::<u64>(&format!("LLEN {QUEUE}")), 1, "the job is where it was");
    wait_until("it notices that Redis is away", || vanished.err().contains("cannot be reached"));
    let _other = hero.actor("bash-default-2").start();
    wait_until("the job has run", || has_status(&redis, "told", "finished"));
    assert_eq!(redis.field("hero:job:told", "attempt").as_deref(), Some("1"));
    assert_eq!(redis.field("hero:job:told", "actor").as_deref(), Some("bash:default:2"));
}

#[test]
fn a_job_runs_though_redis_dies_after_it_took_the_push_and_before_anybody_looked() {
    let mut redis = Redis::that_keeps();
    let lane = lane(&redis);
    let _actor = actor(&redis, &lane);

    push_to_nobody(&redis, &lane, "pushed");
    redis.kill();
    redis.start_again();
    assert_eq!(redis.ask::<u64>(&format!("LLEN {QUEUE}")), 1);
    assert!(has_status(&redis, "pushed", "dispatched"));
    lane.set(Mode::Pass);
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    wait_until("the job has run", || has_status(&redis, "pushed", "finished"));
    assert_eq!(redis.field("hero:job:pushed", "attempt").as_deref(), Some("1"));
}
