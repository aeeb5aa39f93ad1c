//! Confirmations that jobs are on the disk of Redis or with its replicas, and the replies that wait for them.

use hero::config::{Ack, RedisConfig};
use hero::proto::job::JobId;
use hero::store::{Recorded, Store, Verdict};

use crate::support::{Life, Redis, World, ids, job, keys, needs};

fn store(redis: &Redis, ack: Ack) -> Store {
    let config = RedisConfig { ack, ..redis.config("hero") };
    Store::open(&config).expect("a store")
}

/// Returns whether Redis has WAITAOF: Redis 7.2 and Valkey 8 have.
fn has_waitaof(redis: &Redis) -> bool {
    let known: Vec<redis::Value> = redis.ask("COMMAND INFO waitaof");
    known.iter().any(|one| !matches!(one, redis::Value::Nil))
}

fn done() -> Verdict {
    Verdict::Finished { output: "42".into(), exit_code: None }
}

#[tokio::test]
async fn jobs_that_exist_are_confirmed_and_others_named() {
    let world = World::on(Redis::that_keeps(), "hero");
    world.accepts(&[job("a"), job("b")]).await;
    let store = store(&world.redis, Ack::Disk);
    store.acks().can_confirm().await.expect("able");
    let all: Vec<JobId> = ["a", "lost", "b"].map(|id| id.parse().expect("legal")).into();
    let gone = store.acks().confirm(&all).await.expect("confirmed");
    assert_eq!(gone, [all[1].clone()]);
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    assert_eq!(world.field("lost", "status"), None);
}

#[tokio::test]
async fn caller_that_gives_up_does_not_stop_those_that_share_its_round() {
    let world = World::on(Redis::that_keeps(), "hero");
    world.accepts(&[job("a")]).await;
    let store = store(&world.redis, Ack::Disk);
    let id: [JobId; 1] = ["a".parse().expect("legal")];
    let mut given_up = Box::pin(store.acks().confirm(&id));
    tokio::select! {
        biased;
        _ = &mut given_up => panic!("it has answered at once"),
        () = std::future::ready(()) => {}
    }
    let other = tokio::spawn({
        let (store, id) = (store.clone(), id.clone());
        async move { store.acks().confirm(&id).await }
    });
    tokio::task::yield_now().await;
    drop(given_up);
    assert_eq!(other.await.expect("no panic"), Ok(Vec::new()));
}

#[tokio::test]
async fn redis_that_cannot_confirm_is_refused_with_what_repairs_it() {
    let world = World::new();
    let store = store(&world.redis, Ack::Disk);
    let said = store.acks().can_confirm().await.expect_err("it appends to no file").to_string();
    assert!(said.contains("redis-cli CONFIG SET appendonly yes"), "{said}");
    world.redis.run("CONFIG SET appendonly yes");
    world.redis.run("CONFIG SET appendfsync everysec");
    let able = store.acks().can_confirm().await;
    if has_waitaof(&world.redis) {
        able.expect("able");
        return;
    }
    let said = able.expect_err("it answers before it synchronises").to_string();
    assert!(said.contains("has no WAITAOF"), "{said}");
    assert!(said.contains("redis-cli CONFIG SET appendfsync always"), "{said}");
    world.redis.run("CONFIG SET appendfsync always");
    store.acks().can_confirm().await.expect("able");
}

#[tokio::test]
async fn write_that_is_not_on_the_disk_is_not_confirmed() {
    let world = World::on(Redis::that_keeps(), "hero");
    if !needs("WAITAOF", || has_waitaof(&world.redis)) {
        return;
    }
    // Redis leaves the file to the kernel, and so never knows.
    world.redis.run("CONFIG SET appendfsync no");
    world.accepts(&[job("a")]).await;
    let store = store(&world.redis, Ack::Disk);
    let id: [JobId; 1] = ["a".parse().expect("legal")];
    let said = store.acks().confirm(&id).await.expect_err("not synchronised").to_string();
    assert!(said.contains("was not synchronised with the disk within 5 s"), "{said}");
    world.redis.run("CONFIG SET appendfsync always");
    assert_eq!(store.acks().confirm(&id).await, Ok(Vec::new()));
}

#[tokio::test]
async fn replica_that_is_missing_confirms_nothing() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    let store = store(&world.redis, Ack::Replicas(1));
    store.acks().can_confirm().await.expect("not known before");
    let id: [JobId; 1] = ["a".parse().expect("legal")];
    let said = store.acks().confirm(&id).await.expect_err("no replica").to_string();
    assert!(said.contains("0 of 1 replicas have it after 5 s"), "{said}");
}

#[tokio::test]
async fn reply_of_a_durable_job_waits_until_its_end_is_confirmed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let mut durable = job("a");
    durable.spec.durable = true;
    world.accepts(&[durable, job("b")]).await;
    let claimed = world.claim(&life, 2).await;
    assert_eq!(ids(&claimed.attempts), ["a", "b"]);
    let [a, b] = [0, 1].map(|place: usize| claimed.attempts[place].id.clone());
    assert_eq!(world.finish(&life, &a, done()).await, Recorded::Held);
    assert_eq!(world.finish(&life, &b, done()).await, Recorded::Recorded);
    assert_eq!(world.field("a", "status").as_deref(), Some("finished"));
    assert!(world.redis.list(&keys::reply("a")).is_empty());
    assert_eq!(world.redis.list(&keys::reply("b")).len(), 1);
    // The answer to the first call may have been lost.
    assert_eq!(world.finish(&life, &a, done()).await, Recorded::Held);
    assert_eq!(world.store.jobs().push_replies(&[a.clone(), b]).await, Ok(1));
    let reply = world.redis.list(&keys::reply("a"));
    assert!(reply.len() == 1 && reply[0].contains("42"), "{reply:?}");
    assert!(world.redis.ttl(&keys::reply("a")) > 0);
    assert_eq!(world.finish(&life, &a, done()).await, Recorded::Before);
}

#[tokio::test]
async fn large_output_of_a_durable_job_waits_as_well() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let mut durable = job("a");
    durable.spec.durable = true;
    world.accepts(&[durable]).await;
    let own = world.claim(&life, 1).await.attempts[0].id.clone();
    let whole = Verdict::Finished { output: "x".repeat(200_000).into(), exit_code: None };
    assert_eq!(world.finish(&life, &own, whole).await, Recorded::Held);
    assert!(world.redis.list(&keys::reply("a")).is_empty());
    world.store.jobs().push_replies(&[own]).await.expect("pushed");
    assert!(world.redis.list(&keys::reply("a"))[0].contains("xxxx"));
}

#[tokio::test]
async fn every_reply_waits_where_the_configuration_says_so() {
    let (mut world, life) = (World::on(Redis::that_keeps(), "hero"), Life::of("osis-default-1"));
    world.store = store(&world.redis, Ack::Disk);
    let own = world.started(&life, "a").await;
    assert_eq!(world.finish(&life, &own, done()).await, Recorded::Held);
    assert!(world.redis.list(&keys::reply("a")).is_empty());
}
