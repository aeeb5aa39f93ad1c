//! The fence: the behaviour of an actor that was away for longer than its lease, and the fate of
//! claims that reach Redis later than anybody waits for.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::JobStatus;

use super::units::{Settings, Unit};
use crate::support::proxy::Mode;
use crate::support::{RETENTION, Redis, World, keys, queue, wait_until};

const UNIT: &str = "sal-default-1";

/// A world with a supervisor, and the place of an actor.
fn world() -> (World, Unit, Unit) {
    let world = World::on(Redis::start(), "hero");
    let folder = world.redis.folder().to_owned();
    let redis = folder.join("redis.sock");
    let mut supervisor = Unit::new("supervisor", &Settings::SHORT, &folder, &redis);
    supervisor.start();
    (world, supervisor, Unit::new(UNIT, &Settings::SHORT, &folder, &redis))
}

async fn submit(world: &World, id: &str, script: String) {
    let job = JobBuilder::new("sal", script).id(id).build().expect("a legal job");
    world.store.jobs().submit(&[job], true, RETENTION).await.expect("submitting");
}

fn presence(world: &World) -> Option<String> {
    world.redis.get(&keys::presence("sal:default:1"))
}

fn is(world: &World, id: &str, status: JobStatus) -> bool {
    world.status(id) == status
}

#[tokio::test]
async fn an_actor_paused_past_its_lease_writes_nothing_and_says_what_it_lost() {
    let (world, _supervisor, mut actor) = world();
    actor.start();
    let gate = world.redis.folder().join("gate");
    let script = format!("while !exist(\"{}\") {{ }} \"late\"", gate.display());
    submit(&world, "held", script).await;
    wait_until("the job has started", || is(&world, "held", JobStatus::Started));
    actor.pause();
    wait_until("its lease is over", || is(&world, "held", JobStatus::Dispatched));
    // The job is stopped while the actor that lost it still runs it.
    world
        .store
        .jobs()
        .stop(&"held".parse().expect("legal"), RETENTION, None)
        .await
        .expect("stopping");
    actor.go_on();
    wait_until("it says what it lost", || actor.log().contains("lost job held with the lease"));
    std::fs::write(&gate, "").expect("opening the gate");
    submit(&world, "next", "1".to_owned()).await;
    wait_until("it works again", || is(&world, "next", JobStatus::Finished));
    assert_eq!(world.field("held", "error").as_deref(), Some("stopped"));
    assert_eq!(world.field("held", "output"), None);
    assert!(actor.runs(), "it goes on as a new boot");
}

#[tokio::test]
async fn a_claim_that_arrives_after_everybody_gave_it_up_does_not_keep_its_job() {
    let (world, _supervisor, mut actor) = world();
    actor.start();
    wait_until("the actor is there", || presence(&world).is_some());
    // The wake-up is answered, the claim that follows is held back together with all the rest.
    actor.lane.set(Mode::Hold);
    submit(&world, "late", "1".to_owned()).await;
    let token = world.store.keys().wake(&queue("type:sal").target);
    wait_until("the actor was woken, or the lease is over", || {
        world.redis.list(&token).is_empty() || presence(&world).is_none()
    });
    wait_until("the actor notices", || actor.log().contains("cannot be reached"));
    actor.lane.set(Mode::Pass);
    wait_until("the job ends", || is(&world, "late", JobStatus::Finished));
}

#[tokio::test]
async fn an_actor_that_loses_its_lease_while_redis_is_away_comes_back_by_itself() {
    let (world, _supervisor, mut actor) = world();
    actor.start();
    wait_until("the actor is there", || presence(&world).is_some());
    actor.lane.set(Mode::Refuse);
    wait_until("its lease is over", || world.redis.all("BOOTS").is_empty());
    actor.lane.set(Mode::Delay(Duration::from_millis(20)));
    actor.lane.set(Mode::Pass);
    submit(&world, "after", "1".to_owned()).await;
    wait_until("it works again", || is(&world, "after", JobStatus::Finished));
    assert!(actor.runs());
}

#[tokio::test]
async fn a_full_redis_refuses_submissions_and_takes_no_lease_and_no_end_away() {
    let (world, _supervisor, mut actor) = world();
    actor.start();
    let gate = world.redis.folder().join("gate");
    let script = format!("while !exist(\"{}\") {{ }} \"done\"", gate.display());
    submit(&world, "running", script).await;
    wait_until("the job has started", || is(&world, "running", JobStatus::Started));
    let boot = world.field("running", "boot_id").expect("an owner");
    world.redis.run("CONFIG SET maxmemory-policy noeviction");
    world.redis.run("CONFIG SET maxmemory 1");
    let lease = || world.redis.score(&keys().boots(), &boot).expect("a lease");
    let (before, job) = (lease(), JobBuilder::new("sal", "1").build().expect("legal"));
    let refused = world.store.jobs().submit(&[job], true, RETENTION).await.expect_err("no memory");
    assert!(refused.is_transient() && refused.to_string().contains("memory is full"), "{refused}");
    wait_until("its lease was kept twice", || lease() > before + 600_000.0);
    std::fs::write(&gate, "").expect("opening the gate");
    wait_until("the job ends", || is(&world, "running", JobStatus::Finished));
    assert_eq!(world.field("running", "crashes"), None);
}

#[tokio::test]
async fn the_jobs_of_a_killed_actor_are_back_within_its_lease_and_two_seconds() {
    const LEASE: Duration = Duration::from_secs(2);
    let (world, _supervisor, mut actor) = world();
    actor.start();
    submit(&world, "endless", "loop { }".to_owned()).await;
    wait_until("the job has started", || is(&world, "endless", JobStatus::Started));
    let began = std::time::Instant::now();
    actor.kill();
    wait_until("it is back in its queue", || is(&world, "endless", JobStatus::Dispatched));
    let took = began.elapsed();
    assert!(took < LEASE + Duration::from_secs(2), "it took {took:?}");
    assert_eq!(world.work("type:sal"), ["endless"]);
}
