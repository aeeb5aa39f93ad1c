//! Claiming: the order between queues, what a claim writes, and what it skips.

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobStatus};
use hero::store::AfterAdoption;

use crate::support::{Life, World, ids, job, keys, queue};

fn targeted(id: &str, group: &str, instance: u16, priority: u8) -> Job {
    let mut job = JobBuilder::new("osis", "1").id(id).priority(priority);
    if !group.is_empty() {
        job = job.group(group);
    }
    if instance > 0 {
        job = job.instance(instance);
    }
    job.build().expect("a legal job")
}

#[tokio::test]
async fn a_queue_is_first_in_first_out() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b")]).await;
    world.accepts(&[job("c")]).await;
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["a", "b"]);
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["c"]);
    assert!(world.claim(&life, 2).await.attempts.is_empty());
}

#[tokio::test]
async fn an_actor_takes_its_own_then_its_groups_then_its_types_for_each_priority() {
    let (world, life) = (World::new(), Life::of("osis-io-3"));
    let mut jobs = Vec::new();
    for priority in [2, 1, 0] {
        jobs.push(targeted(&format!("type{priority}"), "", 0, priority));
        jobs.push(targeted(&format!("group{priority}"), "io", 0, priority));
        jobs.push(targeted(&format!("inst{priority}"), "io", 3, priority));
    }
    world.accepts(&jobs).await;
    let claimed = world.claim(&life, 9).await;
    assert_eq!(
        ids(&claimed.attempts),
        ["inst0", "group0", "type0", "inst1", "group1", "type1", "inst2", "group2", "type2"]
    );
    assert_eq!(claimed.attempts[0].queue, queue("type:osis:group:io:inst:3:prio:0"));
    assert_eq!(claimed.attempts[8].queue, queue("type:osis:prio:2"));
}

#[tokio::test]
async fn jobs_for_others_are_left_to_them() {
    let (world, life) = (World::new(), Life::of("osis-io-3"));
    world.accepts(&[targeted("a", "io", 4, 1), targeted("b", "gpu", 0, 1)]).await;
    assert!(world.claim(&life, 9).await.attempts.is_empty());
    assert_eq!(ids(&world.claim(&Life::of("osis-io-4"), 9).await.attempts), ["a"]);
    assert_eq!(ids(&world.claim(&Life::of("osis-gpu-1"), 9).await.attempts), ["b"]);
}

#[tokio::test]
async fn an_instance_without_a_group_is_one_of_the_default_group() {
    let world = World::new();
    world.accepts(&[targeted("a", "", 2, 1)]).await;
    assert_eq!(world.work("type:osis:group:default:inst:2"), ["a"]);
    assert_eq!(ids(&world.claim(&Life::of("osis-default-2"), 1).await.attempts), ["a"]);
}

#[tokio::test]
async fn normal_priority_is_read_in_both_spellings() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let lists = keys().work_as_read(&queue("type:osis"));
    for (id, list) in ["b", "a"].into_iter().zip(&lists) {
        world.redis.set_job(id, "script 1 status dispatched");
        world.redis.push(list, &[id]);
    }
    let claimed = world.claim(&life, 2).await;
    let mut ids = ids(&claimed.attempts);
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b"]);
    assert!(claimed.attempts.iter().all(|attempt| attempt.queue == queue("type:osis")));
}

#[tokio::test]
async fn one_claim_brings_many_jobs_and_writes_whose_they_are() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<Job> = (0..40).map(|n| job(&format!("j{n:02}"))).collect();
    world.accepts(&jobs).await;
    let claimed = world.claim(&life, 32).await;
    let expected: Vec<&str> = jobs[..32].iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids(&claimed.attempts), expected);
    assert_eq!(world.work("type:osis").len(), 8);
    for attempt in &claimed.attempts {
        let job = attempt.job.as_ref().expect("a legal job");
        assert_eq!((job.spec.script.as_str(), job.attempt), ("1", 1));
        assert_eq!(job.status, JobStatus::Started);
        let field = |name| world.field(attempt.id.as_str(), name).unwrap_or_default();
        assert_eq!(field("status"), "started");
        assert_eq!(field("actor"), "osis:default:1");
        assert_eq!(field("boot_id"), life.boot.as_str());
        assert_eq!(field("attempt"), "1");
        assert!(field("started_at").parse::<jiff::Timestamp>().is_ok(), "{}", field("started_at"));
    }
    assert_eq!((world.count("osis", "submitted"), world.count("osis", "started")), (40, 32));
    let running = world.store.attempts().running(&life.boot, 100).await.expect("reading");
    assert_eq!(running.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn void_ids_are_skipped_and_counted_and_jobs_behind_them_are_claimed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("done"), job("a"), job("b")]).await;
    world.redis.set_job("done", "status finished leftover always");
    world.redis.remove(&keys::ready("type:osis"), "done");
    world.redis.put(&keys::index("finished", "osis"), 1, "done");
    world.redis.spoil(&keys::job("text"));
    let huge = "x".repeat(100_000);
    let garbage: [&[u8]; 6] =
        [b"a", b"gone", b"text", b"\xff\x00\n", b"with:colon", huge.as_bytes()];
    world.redis.push_front(&keys::work("type:osis"), &garbage);
    world.redis.push(&keys::work("type:osis"), &["a"]);
    let claimed = world.claim(&life, 8).await;
    assert_eq!(ids(&claimed.attempts), ["a", "b"]);
    assert_eq!((claimed.skipped, world.count("osis", "skipped")), (6, 8));
    let reason = |id: &str| {
        let found = claimed.skipped_some.iter().find(|(skipped, _)| skipped == id);
        found.map(|(_, why)| why.as_str())
    };
    assert_eq!(reason("gone"), Some("no such job"));
    assert_eq!(reason("text"), Some("its key is no hash"));
    assert_eq!(reason("with:colon"), Some("no legal id"));
    assert_eq!(reason("done"), Some("its status is finished"));
    assert_eq!(reason(&huge[..64]), Some("no legal id"));
    assert!(world.work("type:osis").is_empty());
}

#[tokio::test]
async fn a_flood_of_void_ids_is_worked_off_in_bounded_steps() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let void: Vec<String> = (0..1500).map(|n| format!("void{n}")).collect();
    world.redis.push(&keys::work("type:osis"), &void);
    world.accepts(&[job("a")]).await;
    let first = world.adopt(&keys::work("type:osis")).await;
    assert_eq!((first.removed, first.next), (300, AfterAdoption::More));
    assert_eq!(ids(&world.claim(&life, 4).await.attempts), ["a"]);
    assert_eq!(world.count("osis", "skipped"), 1500);
}

#[tokio::test]
async fn a_work_list_of_another_type_is_named_and_the_other_queues_go_on() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.spoil(&keys::work("type:osis:group:default:inst:1"));
    world.accepts(&[job("a")]).await;
    let claimed = world.claim(&life, 4).await;
    assert_eq!(ids(&claimed.attempts), ["a"]);
    let (list, error) = &claimed.broken[0];
    assert_eq!(*list, keys::work("type:osis:group:default:inst:1"));
    assert!(error.contains("WRONGTYPE"), "{error}");
}

#[tokio::test]
async fn a_job_that_names_no_type_gets_that_of_the_actor_that_takes_it() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.set_job("a", "id a script 1 status dispatched");
    world.redis.push_front(&keys::work("type:osis"), &["a"]);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
    assert_eq!(world.field("a", "script_type").as_deref(), Some("osis"));
}

#[tokio::test]
async fn a_hash_that_is_too_large_is_claimed_without_it_so_that_it_can_be_ended() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.push_job("osis", "big", &"x".repeat(2 << 20));
    world.accepts(&[job("a")]).await;
    let claimed = world.claim(&life, 4).await;
    assert_eq!(ids(&claimed.attempts), ["big"]);
    let invalid = claimed.attempts[0].job.as_ref().expect_err("too large");
    assert!(invalid.reason.contains("which job.script_size_max"), "{invalid}");
    assert!(claimed.more, "the other stays for the next call");
    let claimed = world.claim(&life, 4).await;
    assert_eq!(ids(&claimed.attempts), ["a"]);
    assert!(claimed.attempts[0].job.is_ok());
    assert_eq!(world.status("big"), JobStatus::Started);
}

#[tokio::test]
async fn a_claim_takes_as_many_large_jobs_as_one_answer_may_hold_and_leaves_the_others_in_order() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let script = "1".repeat(200_000);
    let large = |id: &str| JobBuilder::new("osis", &script).id(id).build().expect("legal");
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    world.accepts(&names.map(large)).await;
    for expected in [&names[..3], &names[3..6], &names[6..]] {
        let claimed = world.claim(&life, 9).await;
        assert_eq!(ids(&claimed.attempts), expected);
        assert_eq!(claimed.more, expected.len() == 3);
    }
}

#[tokio::test]
async fn a_hash_that_is_no_job_is_claimed_with_the_field_at_fault() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.set_job("a", "script 1 status dispatched timeout soon");
    world.redis.set_job("b", "status dispatched");
    world.redis.set_field(&keys::job("b"), "script", b"\xff\xfe".as_slice());
    world.redis.set_job("c", "id c status dispatched");
    world.redis.push(&keys::work("type:osis"), &["a", "b", "c"]);
    let claimed = world.claim(&life, 4).await;
    assert_eq!(ids(&claimed.attempts), ["a", "b", "c"]);
    let said: Vec<String> = claimed
        .attempts
        .iter()
        .map(|attempt| attempt.job.as_ref().expect_err("no job").to_string())
        .collect();
    assert_eq!(
        said,
        [
            "invalid job: timeout `soon` is not a number of seconds above 0",
            "invalid job: script is not UTF-8",
            "invalid job: script is missing",
        ]
    );
}

#[tokio::test]
async fn a_job_is_claimed_by_exactly_one_of_two_boots() {
    let (world, one, two) = (World::new(), Life::of("osis-default-1"), Life::of("osis-default-2"));
    let jobs: Vec<Job> = (0..50).map(|n| job(&format!("j{n}"))).collect();
    world.accepts(&jobs).await;
    let mut taken = Vec::new();
    for life in [&one, &two].into_iter().cycle().take(20) {
        taken.extend(world.claim(life, 3).await.attempts.into_iter().map(|a| a.id));
    }
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 50);
}

#[tokio::test]
async fn a_foreign_producer_that_pushes_left_goes_to_the_front() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b")]).await;
    world.redis.set_job("c", "id c script 1 status dispatched");
    world.redis.push_front(&keys::work("type:osis"), &["c"]);
    assert_eq!(ids(&world.claim(&life, 3).await.attempts), ["c", "a", "b"]);
}
