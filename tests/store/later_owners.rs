//! A later job that has the id of a prerequisite is not that prerequisite.

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::store::{AskedInputs, RetryOutcome, Verdict};

use crate::support::{Life, RETENTION, World, ids, job, keys};

fn after(id: &str, prerequisite: &str) -> Job {
    JobBuilder::new("osis", "1").id(id).after(prerequisite).build().expect("a legal job")
}

fn id(text: &str) -> JobId {
    text.parse().expect("legal")
}

fn done(output: &str) -> Verdict {
    Verdict::Finished { output: output.into(), exit_code: None }
}

/// Gives the id of a job to another one, which came after the prerequisites of `waiting` were looked at.
async fn reuse(world: &World, of: &str, waiting: &str) {
    loop {
        world.store.jobs().delete(&id(of), RETENTION).await.expect("deleting");
        world.accepts(&[job(of)]).await;
        if world.field(of, "created_at") > world.field(waiting, "prerequisites_at") {
            return;
        }
    }
}

/// Reads the inputs of a job.
async fn inputs_of(world: &World, of: &str, prerequisite: &str) -> Option<String> {
    let job = world
        .store
        .jobs()
        .job(&id(of))
        .await
        .expect("reading")
        .expect("it is there")
        .expect("legal");
    let asked = AskedInputs {
        ids: vec![id(prerequisite)],
        until: job.prerequisites_at,
        ..AskedInputs::default()
    };
    let (mut inputs, ..) = world.store.jobs().inputs(&[asked], 100).await.expect("reading");
    inputs.remove(0).expect("small").remove(&id(prerequisite)).flatten()
}

async fn run(world: &World, life: &Life, output: &str) -> Vec<String> {
    let claimed = world.claim(life, 9).await;
    for attempt in &claimed.attempts {
        world.finish(life, &attempt.id, done(output)).await;
    }
    ids(&claimed.attempts).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn retry_does_not_read_the_later_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), after("b", "a")]).await;
    assert_eq!(run(&world, &life, "mine").await, ["a"]);
    assert_eq!(inputs_of(&world, "b", "a").await.as_deref(), Some("mine"));
    assert_eq!(run(&world, &life, "").await, ["b"]);
    assert_eq!(
        world.store.jobs().retry(&id("b")).await.expect("retrying"),
        RetryOutcome::Moved(JobStatus::Dispatched)
    );
    assert_eq!(run(&world, &life, "").await, ["b"]);
    reuse(&world, "a", "b").await;
    let lost = RetryOutcome::LostPrerequisite(id("a"));
    assert_eq!(world.store.jobs().retry(&id("b")).await.expect("retrying"), lost);
    assert_eq!(run(&world, &life, "hush").await, ["a"]);
    assert_eq!(world.store.jobs().retry(&id("b")).await.expect("retrying"), lost);
    assert_eq!(inputs_of(&world, "b", "a").await, None);
    world.check();
}

#[tokio::test]
async fn claimed_or_created_job_does_not_read_the_later_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    let created = [after("c", "a")];
    world.store.jobs().submit(&created, false, RETENTION).await.expect("storing");
    world.accepts(&[after("b", "a")]).await;
    assert_eq!(run(&world, &life, "mine").await, ["a"]);
    reuse(&world, "a", "b").await;
    // `b` stands in its queue before the later job.
    assert_eq!(run(&world, &life, "hush").await, ["b", "a"]);
    assert_eq!(inputs_of(&world, "b", "a").await, None);
    let started = world.store.jobs().start(&id("c"), RETENTION).await.expect("starting");
    assert_eq!(started, RetryOutcome::Moved(JobStatus::Error));
    assert_eq!(world.field("c", "error").as_deref(), Some("prerequisite failed: a"));
    assert_eq!(world.field("a", "dependents"), None);
    world.check();
}

#[tokio::test]
async fn later_job_with_the_id_of_a_dependent_is_not_released() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let failed = Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true };
    for (first, verdict) in [("a", done("mine")), ("x", failed)] {
        let (other, dependent) = (format!("other-{first}"), format!("b-{first}"));
        world.accepts(&[job(first), after(&dependent, first)]).await;
        world.store.jobs().delete(&id(&dependent), RETENTION).await.expect("deleting");
        let later = jiff::Timestamp::now() + RETENTION;
        let far = JobBuilder::new("osis", "1").id(&other).run_at(later);
        world.accepts(&[far.build().expect("legal"), after(&dependent, &other)]).await;
        let claimed = world.claim(&life, 1).await;
        assert_eq!(ids(&claimed.attempts), [first]);
        world.finish(&life, &claimed.attempts[0].id, verdict).await;
        let status = world.field(&dependent, "status");
        assert_eq!(status.as_deref(), Some("waiting_for_prerequisites"), "after {first}");
    }
    world.check();
}

#[tokio::test]
async fn jobs_of_one_batch_read_each_other() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("outside")]).await;
    let batch = [after("last", "first"), after("first", "outside")];
    world.store.batches().submit(&batch, None, RETENTION).await.expect("submitting");
    for expected in ["outside", "first", "last"] {
        assert_eq!(run(&world, &life, expected).await, [expected]);
    }
    assert_eq!(inputs_of(&world, "last", "first").await.as_deref(), Some("first"));
    assert_eq!(inputs_of(&world, "first", "outside").await.as_deref(), Some("outside"));
}

#[tokio::test]
async fn job_of_a_program_is_read_with_any_clock() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.set_job(
        "ahead",
        "script 1 script_type osis status created created_at 2999-01-01T00:00:00Z",
    );
    world.redis.set_job("bare", "script 1 script_type osis status created");
    for other in ["ahead", "bare"] {
        world.redis.put(&keys::index("created", "osis"), 1, other);
    }
    world.accepts(&[after("b", "ahead"), after("c", "bare")]).await;
    for other in ["ahead", "bare"] {
        world.store.jobs().start(&id(other), RETENTION).await.expect("starting");
    }
    let mut ran = run(&world, &life, "out").await;
    ran.sort();
    assert_eq!(ran, ["ahead", "bare"]);
    assert_eq!(inputs_of(&world, "b", "ahead").await.as_deref(), Some("out"));
    assert_eq!(inputs_of(&world, "c", "bare").await.as_deref(), Some("out"));
}
