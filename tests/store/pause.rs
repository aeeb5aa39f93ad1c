//! Paused queues: no job is claimed from them, and none is lost.

use hero::client::JobBuilder;

use crate::support::{Life, RETENTION, World, ids, job, keys, queue};

#[tokio::test]
async fn nothing_is_claimed_from_a_paused_queue() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let urgent = JobBuilder::new("osis", "1").id("urgent").priority(0).build().expect("legal");
    world.accepts(&[job("a"), job("b"), urgent]).await;
    assert_eq!(world.store.queues().pause(&[queue("type:osis")]).await.expect("pausing"), [true]);
    assert_eq!(world.store.queues().pause(&[queue("type:osis")]).await.expect("pausing"), [false]);
    let claimed = world.claim(&life, 9).await;
    assert_eq!(ids(&claimed.attempts), ["urgent"], "the other priorities go on");
    assert_eq!(world.work("type:osis"), ["a", "b"]);
    assert_eq!(world.store.queues().resume(&[queue("type:osis")]).await.expect("resuming"), [true]);
    assert_eq!(
        world.store.queues().resume(&[queue("type:osis")]).await.expect("resuming"),
        [false]
    );
    let claimed = world.claim(&life, 9).await;
    assert_eq!(ids(&claimed.attempts), ["a", "b"]);
    assert!(world.redis.all("PAUSED").is_empty());
}

#[tokio::test]
async fn a_resume_wakes_an_actor_and_a_pause_does_not() {
    let world = World::new();
    let token = || world.redis.list(&keys().wake(&queue("type:osis").target)).len();
    let queues = ["type:osis:prio:0", "type:osis"].map(queue);
    world.store.queues().pause(&queues).await.expect("pausing");
    assert_eq!(token(), 0);
    world.store.queues().resume(&queues).await.expect("resuming");
    assert_eq!(token(), 1);
}

#[tokio::test]
async fn a_paused_queue_is_listed_though_nothing_waits_in_it() {
    let world = World::new();
    world.store.queues().pause(&[queue("type:osis:group:io")]).await.expect("pausing");
    world.accepts(&[job("a")]).await;
    let states = world.store.queues().states([].into()).await.expect("listing");
    let seen: Vec<_> =
        states.iter().map(|state| (state.queue.to_string(), state.depth, state.paused)).collect();
    assert_eq!(
        seen,
        [("type:osis".to_owned(), 1, false), ("type:osis:group:io".to_owned(), 0, true)]
    );
}

#[tokio::test]
async fn a_job_in_a_paused_queue_can_be_stopped_deleted_and_recovered() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    let running = world.claim(&life, 1).await.attempts.remove(0).id;
    world.store.queues().pause(&[queue("type:osis")]).await.expect("pausing");
    world.store.jobs().stop(&"b".parse().expect("legal"), RETENTION, None).await.expect("stopping");
    world.check();
    world.store.jobs().delete(&"c".parse().expect("legal"), RETENTION).await.expect("deleting");
    world.check();
    assert_eq!(world.give_back(&life, &[(running, None)]).await, 1);
    world.check();
    assert_eq!(world.work("type:osis"), ["a"]);
    assert!(world.claim(&life, 9).await.attempts.is_empty());
}
