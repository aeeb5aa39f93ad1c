//! Redis forgets scripts, drops connections, dies and comes back.

use std::time::Duration;

use hero::proto::job::JobStatus;
use hero::store::{Recorded, Store, StoreError, Verdict};

use crate::support::{Life, RETENTION, Redis, World, ids, job, keys};

fn done() -> Verdict {
    Verdict::Finished { output: "1".into(), exit_code: None }
}

#[tokio::test]
async fn scripts_that_redis_forgot_are_loaded_again() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    for name in ["a", "b", "c"] {
        world.redis.run("SCRIPT FLUSH");
        world.accepts(&[job(name)]).await;
        world.redis.run("SCRIPT FLUSH");
        let own = world.claim(&life, 1).await.attempts.remove(0).id;
        world.redis.run("SCRIPT FLUSH");
        assert_eq!(world.finish(&life, &own, done()).await, Recorded::Recorded);
    }
}

/// Calls until it succeeds, at the latest with the second try: the first one may report a lost
/// connection, which must be transient.
async fn again<T>(mut call: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    match call().await {
        Ok(value) => value,
        Err(error) => {
            assert!(error.is_transient(), "{error}");
            call().await.expect("the second try, on a new connection")
        }
    }
}

#[tokio::test]
async fn lost_connection_is_reopened_by_the_next_call() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    for _ in 0..3 {
        world.redis.run("CLIENT KILL TYPE normal");
        again(async || world.store.ping().await).await;
    }
    assert_eq!(world.finish(&life, &own, done()).await, Recorded::Recorded);
}

#[tokio::test]
async fn lost_blocking_connection_is_reopened_by_the_next_wait() {
    let world = World::new();
    let mut blocking = world.store.blocking();
    let (lists, wait) = ([keys::work("type:a")], Duration::from_millis(1));
    blocking.pop(&lists, wait).await.expect("waiting");
    world.redis.run("CLIENT KILL TYPE normal");
    world.redis.push(&lists[0], &["x"]);
    let woken = again(async || blocking.pop(&lists, wait).await).await;
    assert_eq!(woken.map(|woken| woken.entry), Some(b"x".to_vec()));
}

#[tokio::test]
async fn jobs_that_redis_kept_run_after_it_was_killed() {
    let (mut world, life) = (World::on(Redis::that_keeps(), "hero"), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[job("b")]).await;
    world.redis.kill();
    let gone = world.store.ping().await.expect_err("no server");
    assert!(matches!(gone, StoreError::Unreachable { .. }), "{gone:?}");
    assert!(gone.to_string().contains("redis.sock"), "{gone}");
    world.redis.start_again();
    again(async || world.store.ping().await).await;
    assert_eq!(world.finish(&life, &own, done()).await, Recorded::Recorded);
    assert_eq!(world.status("a"), JobStatus::Finished);
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["b"]);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_can_be_found_by_its_boot() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let found = world.store.attempts().running(&life.boot, 10).await.expect("reading");
    assert_eq!(found, [(own.clone(), world.claimed_at(&life, &own))]);
    let back = [(own, None)];
    assert_eq!(world.give_back(&life, &back).await, 1);
    world.check();
    assert_eq!(world.work("type:osis"), ["a"]);
}

#[tokio::test]
async fn redis_with_a_password_is_reported_as_not_permitted() {
    let world = World::new();
    world.redis.run("CONFIG SET requirepass secret");
    let store = Store::open(&world.redis.config("hero")).expect("settings");
    let error = store.ping().await.expect_err("no password was given");
    assert!(matches!(error, StoreError::NotPermitted { .. }), "{error:?}");
    let mut config = world.redis.config("hero");
    let file = world.redis.folder().join("password");
    std::fs::write(&file, "secret\n").expect("writing the password");
    config.password_file = Some(file);
    Store::open(&config).expect("settings").ping().await.expect("the password is right");
}

#[tokio::test]
async fn redis_out_of_memory_is_reported_as_not_serving_and_nothing_is_half_written() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    world.redis.run("CONFIG SET maxmemory 1");
    let error =
        world.store.jobs().submit(&[job("b")], true, RETENTION).await.expect_err("no memory");
    assert!(matches!(error, StoreError::NotServing { .. }), "{error:?}");
    assert!(error.is_transient());
    world.redis.run("CONFIG SET maxmemory 0");
    world.check();
    world.accepts(&[job("b")]).await;
}

#[tokio::test]
async fn claim_that_redis_rejects_is_worth_a_retry_and_breaks_no_list() {
    let rejections = [
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    ];
    for (begin, end) in rejections {
        let (world, life) = (World::new(), Life::of("osis-default-1"));
        world.accepts(&[job("a")]).await;
        world.hold_lease(&life);
        world.redis.run(begin);
        let error = world.try_claim(&life, 1).await.expect_err("redis rejects writes");
        assert!(matches!(error, StoreError::NotServing { .. }), "{error:?}");
        world.redis.run(end);
        let claimed = again(async || world.try_claim(&life, 1).await).await;
        assert_eq!(ids(&claimed.attempts), ["a"]);
    }
}
