//! The expressions of `where`: registered with the first job that has one, and removed a day after the last.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobStatus};
use hero::proto::target::SelectorDigest;

use crate::support::{Life, RETENTION, World, job, keys, script_type};

const TEXT: &str = "role = \"web\"";

fn selected(id: &str) -> Job {
    JobBuilder::new("osis", "1").id(id).r#where("role = web").build().expect("a legal job")
}

fn queue() -> String {
    format!("type:osis:where:{}", SelectorDigest::of_text(TEXT))
}

#[tokio::test]
async fn first_job_with_an_expression_registers_it_and_tells_the_live_actors_of_its_type_once() {
    let world = World::new();
    let (own, other) = (Life::of("osis-default-1"), Life::of("sal-default-1"));
    for life in [&own, &other] {
        let lease = Duration::from_secs(15);
        world
            .store
            .actors()
            .appear(&life.actor, &life.presence(), lease, None)
            .await
            .expect("appearing");
    }
    assert_eq!(
        world.accepts(&[selected("a"), selected("b"), job("c")]).await,
        [JobStatus::Dispatched; 3]
    );
    assert_eq!(world.redis.list(&keys::work(&queue())), ["a", "b"]);
    assert_eq!(world.redis.list(&keys::work("type:osis")), ["c"]);
    world.accepts(&[selected("d")]).await;
    let told = |actor: &str| world.redis.list(&keys::control(actor));
    assert_eq!(told("osis:default:1"), ["{\"cmd\":\"where\"}"]);
    assert_eq!(told("sal:default:1"), [] as [&str; 0]);
    let used = world.store.queues().selectors(&script_type("osis"), 0).await.expect("reading");
    assert_eq!(used.texts.values().collect::<Vec<_>>(), [TEXT]);
    let later = world
        .store
        .queues()
        .selectors(&script_type("osis"), used.until_us + 1)
        .await
        .expect("reading");
    assert_eq!((later.texts.len(), later.number), (0, 1));
}

#[tokio::test]
async fn scheduled_job_registers_its_expression_when_it_is_due() {
    let world = World::new();
    let mut job = selected("a");
    job.spec.run_at = Some("2020-01-01T00:00:00Z".parse().expect("a time"));
    job.delay = None;
    world.accepts(&[job]).await;
    assert_eq!(world.redis.list(&keys::work(&queue())), ["a"]);
    let states = world.store.queues().states([].into()).await.expect("listing");
    assert_eq!(states[0].selector.as_deref(), Some(TEXT));
}

#[tokio::test]
async fn lost_expression_of_a_queue_with_jobs_is_registered_again() {
    let world = World::new();
    world.accepts(&[selected("a")]).await;
    world.redis.delete(&keys().selectors(&script_type("osis")));
    world.redis.delete(&keys().selectors_used(&script_type("osis")));
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    let used = world.store.queues().selectors(&script_type("osis"), 0).await.expect("reading");
    assert_eq!(used.texts.values().collect::<Vec<_>>(), [TEXT]);
}

#[tokio::test]
async fn job_with_an_expression_leaves_its_queue_when_it_is_stopped_or_deleted() {
    let world = World::new();
    world.accepts(&[selected("a"), selected("b")]).await;
    world.store.jobs().stop(&"a".parse().expect("legal"), RETENTION, None).await.expect("stopping");
    world.store.jobs().delete(&"b".parse().expect("legal"), RETENTION).await.expect("deleting");
    world.check();
    assert_eq!(world.redis.list(&keys::work(&queue())), [] as [&str; 0]);
    assert_eq!(world.redis.members(&keys::ready(&queue())), [] as [&str; 0]);
}

#[tokio::test]
async fn expression_leaves_a_day_after_its_last_job_was_in_its_queue() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[selected("a"), job("b")]).await;
    let used = keys().selectors_used(&script_type("osis"));
    let age = || world.redis.put(&used, 1, SelectorDigest::of_text(TEXT).as_str());
    age();
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(
        world.redis.score(&used, SelectorDigest::of_text(TEXT).as_str()).map(|at| at > 1.0),
        Some(true)
    );
    world.store.jobs().stop(&"a".parse().expect("legal"), RETENTION, None).await.expect("stopping");
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(
        world.store.queues().selectors(&script_type("osis"), 0).await.expect("reading").number,
        1
    );
    age();
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(
        world.store.queues().selectors(&script_type("osis"), 0).await.expect("reading").number,
        0
    );
    assert_eq!(world.claim(&life, 5).await.attempts.len(), 1, "other jobs are not affected");
}
