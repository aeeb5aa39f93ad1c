//! An actor dies at each step of a job, and its successor brings the job to its one end.

use hero::client::JobBuilder;
use hero::failpoint;
use hero::proto::job::JobStatus;

use super::units::{Settings, Unit};
use crate::support::{Redis, World, keys, wait_until};

/// The expected end of a job whose actor died at a fail point.
struct Struck {
    point: &'static str,
    /// The runs of its script.
    ran: usize,
    /// The deaths that its hash counts.
    crashes: &'static str,
}

const UNIT: &str = "sal-default-1";

fn is_terminal(world: &World, id: &str) -> bool {
    world.status(id).is_terminal()
}

/// Returns true if an actor waits for work.
fn has_idle_actor(world: &World) -> bool {
    world.redis.ask::<String>("CLIENT LIST").lines().any(|line| line.contains("cmd=blpop"))
}

/// Lets an actor die at a point while it has a job, and a successor take over.
async fn strike(struck: &Struck) {
    let world = World::on(Redis::start(), "hero");
    let folder = world.redis.folder().to_owned();
    let redis = folder.join("redis.sock");
    let unit = |name| Unit::new(name, &Settings::SHORT, &folder, &redis);
    let (mut supervisor, mut actor) = (unit("supervisor"), unit(UNIT));
    supervisor.start();
    actor.start_with(&[("HERO_FAILPOINT", &format!("{}:1", struck.point))]);

    // A job that comes before the actor waits is claimed without a wake-up: one after the other, until one is struck.
    let effects = folder.join("effects");
    let mut id = String::new();
    for number in 1.. {
        wait_until("the actor waits", || !actor.runs() || has_idle_actor(&world));
        id = format!("job-{number}");
        let script = format!("file_write_append(\"{}\", \"{id}\\n\")", effects.display());
        let job = JobBuilder::new("sal", script).id(&id).build().expect("a legal job");
        world
            .store
            .jobs()
            .submit(&[job], true, crate::support::RETENTION)
            .await
            .expect("submitting");
        wait_until("the job has ended or its actor has died", || {
            !actor.runs() || is_terminal(&world, &id)
        });
        if !actor.runs() {
            break;
        }
    }
    assert!(!actor.log().contains("panicked"), "{}", actor.log());

    actor.start();
    wait_until(&format!("a job struck {} ends", struck.point), || is_terminal(&world, &id));
    assert_eq!(world.status(&id), JobStatus::Finished, "struck {}", struck.point);
    let effects = std::fs::read_to_string(&effects).unwrap_or_default();
    let ran = effects.lines().filter(|line| *line == id).count();
    let crashes = world.field(&id, "crashes").unwrap_or_default();
    assert_eq!((ran, crashes.as_str()), (struck.ran, struck.crashes), "struck {}", struck.point);
    assert_eq!(world.count("sal", "finished"), world.count("sal", "submitted"), "ends");
    let replies = world.redis.list(&keys::reply(&id)).len();
    assert_eq!(replies, 1, "struck {}", struck.point);
    world.check();
}

#[tokio::test]
async fn a_job_whose_actor_dies_between_its_wake_up_and_its_claim_runs_once() {
    strike(&Struck { point: failpoint::AFTER_WAKE, ran: 1, crashes: "" }).await;
}

#[tokio::test]
async fn a_job_whose_actor_dies_between_its_claim_and_its_start_runs_once() {
    strike(&Struck { point: failpoint::AFTER_CLAIM, ran: 1, crashes: "1" }).await;
}

#[tokio::test]
async fn a_job_whose_actor_dies_before_its_script_runs_once() {
    strike(&Struck { point: failpoint::BEFORE_RUN, ran: 1, crashes: "1" }).await;
}

#[tokio::test]
async fn a_job_whose_actor_dies_after_its_script_runs_again_and_ends_once() {
    strike(&Struck { point: failpoint::AFTER_RUN, ran: 2, crashes: "1" }).await;
}

#[tokio::test]
async fn a_job_whose_actor_dies_before_its_end_is_sent_runs_again_and_ends_once() {
    strike(&Struck { point: failpoint::BEFORE_FINISH, ran: 2, crashes: "1" }).await;
}

#[tokio::test]
async fn a_job_whose_actor_dies_when_its_end_is_recorded_does_not_run_again() {
    strike(&Struck { point: failpoint::AFTER_FINISH, ran: 1, crashes: "" }).await;
}
