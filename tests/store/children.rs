//! The children that a running job submits: only while its boot owns the job since the claim of this attempt.

use std::time::Duration;

use hero::proto::job::{ChildName, GENERATIONS_MAX, Job, JobId, NewChildren, child_id};
use hero::store::{ChildSubmitted, Submitted};

use crate::support::{Life, World, keys};

const KEPT: Duration = Duration::from_mins(1);

/// A child of a job; `more` are further settings.
fn child(parent: &str, name: &str, more: &str) -> Job {
    let json = format!(r#"{{"type": "osis", "script": "1", "name": "{name}"{more}}}"#);
    let mut job = NewChildren::of_json(&json).expect("legal").jobs.remove(0);
    let parent = Job::new(parent.parse().expect("legal"), "1");
    job.id = child_id(&parent, &ChildName::Named(name));
    job
}

async fn submit(
    world: &World,
    life: &Life,
    (id, claimed_at): (&JobId, u64),
    child: &Job,
) -> ChildSubmitted {
    let attempt = (id, claimed_at);
    let children = (std::slice::from_ref(child), None);
    let done = world.store.jobs().submit_children(&life.boot, attempt, children, 3, KEPT).await;
    done.expect("submitting").0
}

#[tokio::test]
async fn child_is_submitted_once_by_the_attempt_that_runs_and_by_no_other() {
    let (world, life, other) =
        (World::new(), Life::of("osis-default-1"), Life::of("osis-default-2"));
    let id = world.started(&life, "a").await;
    let first = world.claimed_at(&life, &id);
    let (one, two) = (child("a", "one", ""), child("a", "two", ""));
    assert_eq!(submit(&world, &other, (&id, first), &one).await, ChildSubmitted::Lost);
    assert_eq!(world.field("a", "children"), None);
    assert_eq!(submit(&world, &life, (&id, first), &one).await, ChildSubmitted::Accepted);
    assert_eq!(submit(&world, &life, (&id, first), &one).await, ChildSubmitted::Known);
    assert_eq!(world.field(one.id.as_str(), "parent").as_deref(), Some("a"));
    assert_eq!(world.field(one.id.as_str(), "status").as_deref(), Some("dispatched"));

    // A child that is gone is not submitted a second time.
    world.redis.ask::<i64>(&format!("DEL {}", keys::job(one.id.as_str())));
    assert_eq!(submit(&world, &life, (&id, first), &one).await, ChildSubmitted::Known);
    assert_eq!(world.field(one.id.as_str(), "status"), None);

    world.give_back(&life, &[(id.clone(), None)]).await;
    assert_eq!(submit(&world, &life, (&id, first), &two).await, ChildSubmitted::Lost);
    assert_eq!(world.field(two.id.as_str(), "status"), None, "a fenced attempt submits nothing");
}

#[tokio::test]
async fn children_are_bounded_in_number_and_depth_and_wait_for_each_other_alone() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let attempt = (&id, world.claimed_at(&life, &id));
    let one = child("a", "one", "");
    // Another job has the id.
    world.redis.set_field(&keys::job(one.id.as_str()), "status", "finished");
    assert_eq!(
        submit(&world, &life, attempt, &one).await,
        ChildSubmitted::Refused(Submitted::Exists)
    );
    let two = child("a", "two", "");
    assert_eq!(submit(&world, &life, attempt, &two).await, ChildSubmitted::Accepted);
    let behind = child("a", "three", &format!(r#", "after": ["{}"]"#, two.id));
    assert_eq!(submit(&world, &life, attempt, &behind).await, ChildSubmitted::Accepted);
    let waits = world.field(behind.id.as_str(), "status");
    assert_eq!(waits.as_deref(), Some("waiting_for_prerequisites"));
    let stranger = child("a", "four", r#", "after": ["a"]"#);
    assert_eq!(
        submit(&world, &life, attempt, &stranger).await,
        ChildSubmitted::Stranger("a".to_owned())
    );
    let last = child("a", "five", "");
    world.redis.set_field(&keys::job("a"), "generation", GENERATIONS_MAX.to_string());
    assert_eq!(submit(&world, &life, attempt, &last).await, ChildSubmitted::TooDeep);
    world.redis.set_field(&keys::job("a"), "generation", (GENERATIONS_MAX - 1).to_string());
    assert_eq!(submit(&world, &life, attempt, &last).await, ChildSubmitted::Accepted);
    world.redis.set_field(&keys::job("a"), "stopped_by", "ann");
    let more = child("a", "six", "");
    assert_eq!(submit(&world, &life, attempt, &more).await, ChildSubmitted::Stopped);
    world.redis.ask::<i64>(&format!("HDEL {} stopped_by", keys::job("a")));
    assert_eq!(submit(&world, &life, attempt, &more).await, ChildSubmitted::TooMany);
    assert_eq!(world.field(more.id.as_str(), "status"), None);
}

#[tokio::test]
async fn list_of_children_is_submitted_as_a_whole_or_not_at_all() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let attempt = (&id, world.claimed_at(&life, &id));
    let submit = async |children: &[Job]| {
        let done = world
            .store
            .jobs()
            .submit_children(&life.boot, attempt, (children, None), 3, KEPT)
            .await;
        done.expect("submitting")
    };
    let key = r#", "unique_key": "k""#;
    let (one, two) = (child("a", "one", key), child("a", "two", key));
    let behind = child("a", "three", &format!(r#", "after": ["{}"]"#, one.id));
    let stranger = child("a", "four", r#", "after": ["a"]"#);
    let holder = Submitted::Duplicate(Some(one.id.clone()));
    for (children, why, number) in [
        (vec![one.clone(), two.clone()], ChildSubmitted::Refused(holder), 2),
        (vec![one.clone(), stranger], ChildSubmitted::Stranger("a".to_owned()), 2),
        (vec![behind.clone(), one.clone()], ChildSubmitted::Stranger(one.id.to_string()), 1),
    ] {
        assert_eq!(submit(&children).await, (why, number));
        assert_eq!(
            (world.field("a", "children"), world.field(one.id.as_str(), "status")),
            (None, None)
        );
    }
    let many = ["five", "six", "seven", "eight"].map(|name| child("a", name, ""));
    assert_eq!(submit(&many).await, (ChildSubmitted::TooMany, 0));
    assert_eq!(submit(&[one.clone(), behind.clone()]).await, (ChildSubmitted::Accepted, 0));
    assert_eq!(submit(&[one.clone(), behind.clone()]).await, (ChildSubmitted::Known, 0));
    let text = format!("[\"{}\",\"{}\"]", one.id, behind.id);
    assert_eq!(world.field("a", "children").as_deref(), Some(text.as_str()));
    let waits = world.field(behind.id.as_str(), "status");
    assert_eq!(waits.as_deref(), Some("waiting_for_prerequisites"));
}

#[tokio::test]
async fn field_of_children_that_a_foreign_program_broke_counts_as_empty() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let attempt = (&id, world.claimed_at(&life, &id));
    world.redis.set_field(&keys::job("a"), "children", "{broken");
    let one = child("a", "one", "");
    assert_eq!(submit(&world, &life, attempt, &one).await, ChildSubmitted::Accepted);
    let text = format!("[\"{}\"]", one.id);
    assert_eq!(world.field("a", "children").as_deref(), Some(text.as_str()));
}
