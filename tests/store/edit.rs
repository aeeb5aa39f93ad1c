//! Changes of jobs that have not started.

use hero::client::JobBuilder;
use hero::proto::job::{JobId, JobStatus};
use hero::proto::target::Priority;
use hero::store::{EditOutcome, JobEdit, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, ids, job, keys};

fn id(name: &str) -> JobId {
    name.parse().expect("a legal id")
}

fn priority(level: Priority) -> JobEdit {
    JobEdit { priority: Some(level), ..JobEdit::default() }
}

fn at(time: Timestamp) -> JobEdit {
    JobEdit { run_at: Some(time), ..JobEdit::default() }
}

async fn edit(world: &World, name: &str, edit: &JobEdit) -> EditOutcome {
    let outcome = world.store.jobs().edit(&id(name), edit).await.expect("changing a job");
    world.check();
    outcome
}

#[tokio::test]
async fn waiting_job_moves_to_the_queue_of_its_new_priority_or_group() {
    let (world, life) = (World::new(), Life::of("osis-io-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    let edited = EditOutcome::Edited(JobStatus::Dispatched);
    assert_eq!(edit(&world, "c", &priority(Priority::Urgent)).await, edited);
    assert_eq!(world.work("type:osis"), ["a", "b"]);
    assert_eq!(world.work("type:osis:prio:0"), ["c"]);
    let group = |name: Option<&str>| JobEdit {
        group: Some(name.map(|name| name.parse().expect("legal"))),
        ..JobEdit::default()
    };
    assert_eq!(edit(&world, "b", &group(Some("io"))).await, edited);
    assert_eq!(world.work("type:osis:group:io"), ["b"]);
    assert_eq!(world.field("b", "group").as_deref(), Some("io"));
    // The same again changes nothing.
    assert_eq!(edit(&world, "b", &group(Some("io"))).await, edited);
    assert_eq!(world.work("type:osis:group:io"), ["b"]);
    assert_eq!(ids(&world.claim(&life, 3).await.attempts), ["c", "b", "a"]);

    let new = JobBuilder::new("osis", "1").id("of-one").group("io").instance(3);
    world.accepts(&[new.build().expect("legal")]).await;
    assert_eq!(edit(&world, "of-one", &group(None)).await, edited);
    assert_eq!(world.work("type:osis"), ["of-one"]);
    assert_eq!([world.field("of-one", "group"), world.field("of-one", "instance")], [None, None]);
}

#[tokio::test]
async fn earliest_time_of_a_waiting_job_can_be_set_and_moved() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    let later = Timestamp::now() + RETENTION;
    let scheduled = EditOutcome::Edited(JobStatus::Scheduled);
    assert_eq!(edit(&world, "a", &at(later)).await, scheduled);
    assert!(world.work("type:osis").is_empty());
    let index = keys::index("scheduled", "osis");
    let due = |world: &World| world.redis.score(&index, "a").expect("it is scheduled");
    let first = due(&world);
    assert_eq!(edit(&world, "a", &at(later + RETENTION)).await, scheduled);
    assert!(due(&world) > first);
    assert_eq!(edit(&world, "a", &priority(Priority::Background)).await, scheduled);
    // One whose time has come is dispatched by the next sweep, to the queue of its priority.
    assert_eq!(edit(&world, "a", &at(Timestamp::UNIX_EPOCH)).await, scheduled);
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    assert_eq!(world.work("type:osis:prio:2"), ["a"]);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
}

#[tokio::test]
async fn job_that_waits_for_others_keeps_waiting_with_its_changes() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let b = JobBuilder::new("osis", "1").id("b").after("a").build().expect("legal");
    world.accepts(&[job("a"), b]).await;
    let waits = EditOutcome::Edited(JobStatus::WaitingForPrerequisites);
    assert_eq!(edit(&world, "b", &priority(Priority::Urgent)).await, waits);
    let first = world.claim(&life, 1).await.attempts[0].id.clone();
    world.finish(&life, &first, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    assert_eq!(world.work("type:osis:prio:0"), ["b"]);
}

#[tokio::test]
async fn job_that_has_started_or_is_about_to_is_not_changed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.started(&life, "runs").await;
    let done = Verdict::Finished { output: "1".into(), exit_code: None };
    world.ended(&life, "done", done).await;
    world.accepts(&[job("popped")]).await;
    assert_eq!(world.redis.pop(&keys::work("type:osis")), "popped");
    let urgent = priority(Priority::Urgent);
    for (name, outcome) in [
        ("runs", EditOutcome::Refused(JobStatus::Started)),
        ("done", EditOutcome::Refused(JobStatus::Finished)),
        ("none", EditOutcome::Missing),
        ("popped", EditOutcome::Taken),
    ] {
        let told = world.store.jobs().edit(&id(name), &urgent).await.expect("changing a job");
        assert_eq!(told, outcome, "{name}");
    }
    assert_eq!(world.field("popped", "priority"), None);
}

#[tokio::test]
async fn job_near_either_end_of_a_long_queue_moves_and_one_in_the_middle_stays() {
    let world = World::new();
    let list = keys::work("type:osis");
    let others: Vec<String> = (0..12_000).map(|number| format!("other{number}")).collect();
    for name in ["first", "middle", "last"] {
        if name != "first" {
            world.redis.push(&list, &others);
        }
        world.store.jobs().submit(&[job(name)], true, RETENTION).await.expect("submitting");
    }
    let background = priority(Priority::Background);
    let edit =
        async |name| world.store.jobs().edit(&id(name), &background).await.expect("changing a job");
    let edited = EditOutcome::Edited(JobStatus::Dispatched);
    assert_eq!([edit("first").await, edit("last").await], [edited.clone(), edited]);
    assert_eq!(world.work("type:osis:prio:2"), ["first", "last"]);
    assert_eq!(edit("middle").await, EditOutcome::LongQueue("type:osis".to_owned()));
    assert_eq!(world.work("type:osis").len(), 24_001);
}
