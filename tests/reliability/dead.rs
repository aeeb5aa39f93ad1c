//! Dead letters: listed page by page, run again and deleted, one by one and in bulk.

use hero::client::{Client, ClientError, DeadTally, JobBuilder};
use hero::config::JobConfig;
use hero::proto::job::JobStatus;
use hero::store::{DeadFilter, Verdict};

use crate::support::{Life, RETENTION, World, keys, script_type};

fn client(world: &World) -> Client {
    Client::with(&world.redis.config("hero"), JobConfig::default()).expect("a client")
}

fn dead(error: &str) -> Verdict {
    Verdict::Error { error: error.to_owned(), exit_code: Some(1), dead: true }
}

/// Makes dead letters of these ids, the last one the newest.
async fn letters(world: &World, error: &str, ids: &[&str]) {
    let life = Life::of("osis-default-1");
    for id in ids {
        world.ended(&life, id, dead(error)).await;
    }
}

fn of(error: Option<&str>) -> DeadFilter {
    DeadFilter { script_type: None, error: error.map(str::to_owned) }
}

async fn listed(client: &Client, filter: &DeadFilter, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = client.list_dead(filter, limit, after.as_ref()).await.expect("listing");
        assert!(page.items.len() <= limit);
        ids.extend(page.items.iter().map(|letter| letter.id.to_string()));
        match page.next {
            Some(next) => after = Some(next.to_string().parse().expect("it reads back")),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn dead_letters_are_listed_page_by_page_the_newest_first() {
    let world = World::new();
    letters(&world, "no", &["a", "b", "c", "d", "e"]).await;
    let python = Life::of("python-default-1");
    let job = JobBuilder::new("python", "1").id("p").build().expect("legal");
    world.accepts(&[job]).await;
    let id = world.claim(&python, 1).await.attempts.remove(0).id;
    world.finish(&python, &id, dead("bad")).await;
    let client = client(&world);
    for limit in [1, 2, 3, 6, 100] {
        assert_eq!(listed(&client, &of(None), limit).await, ["e", "d", "c", "b", "a", "p"]);
    }
    let only = DeadFilter { script_type: Some(script_type("python")), error: None };
    assert_eq!(listed(&client, &only, 1).await, ["p"]);
    assert_eq!(listed(&client, &of(Some("bad")), 1).await, ["p"]);
    let page = client.list_dead(&only, 1, None).await.expect("listing");
    assert_eq!(page.items[0].error, "bad");
    assert_eq!(page.items[0].fields["exit_code"], "1");
}

#[tokio::test]
async fn ids_in_a_dead_list_whose_job_is_gone_are_skipped_and_removed() {
    let world = World::new();
    letters(&world, "no", &["a", "b", "c"]).await;
    world.redis.delete(&keys::job("b"));
    world.redis.delete(&keys::index("error", "osis"));
    world.redis.push(&keys::dead("osis"), &["not:legal"]);
    assert_eq!(listed(&client(&world), &of(None), 1).await, ["c", "a"]);
    assert_eq!(world.redis.list(&keys::dead("osis")), ["a", "c"]);
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended_though_letters_come_and_go() {
    let world = World::new();
    letters(&world, "no", &["a", "b", "c", "d"]).await;
    let client = client(&world);
    let page = client.list_dead(&of(None), 2, None).await.expect("listing");
    letters(&world, "no", &["e"]).await;
    client.retry_job(&page.items[1].id).await.expect("c runs again");
    let page = client.list_dead(&of(None), 2, page.next.as_ref()).await.expect("listing");
    let ids: Vec<&str> = page.items.iter().map(|letter| letter.id.as_str()).collect();
    assert_eq!(ids, ["b", "a"]);
}

#[tokio::test]
async fn dead_letters_are_run_again_in_bulk_by_what_their_error_says() {
    let world = World::new();
    letters(&world, "connection refused by x", &["a", "b"]).await;
    letters(&world, "syntax error", &["c"]).await;
    let client = client(&world);
    let tally = client.retry_dead(&of(Some("refused"))).await.expect("retrying");
    world.check();
    assert_eq!(tally, DeadTally { done: 2, left: 0 });
    assert_eq!((world.status("a"), world.status("c")), (JobStatus::Dispatched, JobStatus::Error));
    assert_eq!(world.redis.list(&keys::dead("osis")), ["c"]);
    assert_eq!(world.field("a", "attempt"), None);
    let tally = client.retry_dead(&of(None)).await.expect("retrying");
    assert_eq!(tally, DeadTally { done: 1, left: 0 });
    assert!(world.redis.all("DEAD").is_empty());
}

#[tokio::test]
async fn more_dead_letters_than_a_page_holds_are_all_deleted_and_leave_nothing() {
    let world = World::new();
    let life = Life::of("osis-default-1");
    let number = 1200;
    let jobs: Vec<_> = (0..number).map(|n| crate::support::job(&format!("j{n}"))).collect();
    for jobs in jobs.chunks(600) {
        world.store.submit(jobs, true, RETENTION).await.expect("submitting");
    }
    let mut attempts = Vec::new();
    while attempts.len() < number {
        attempts.extend(world.claim(&life, number).await.attempts);
    }
    let endings: Vec<_> =
        attempts.into_iter().map(|attempt| world.ending(&life, attempt.id, dead("no"))).collect();
    world.store.finish(&life.boot, RETENTION, &endings).await.expect("finishing");
    let client = client(&world);
    let tally = client.delete_dead(&of(Some("no"))).await.expect("deleting");
    assert_eq!(tally, DeadTally { done: 1200, left: 0 });
    assert!(world.redis.all("JOB").is_empty());
    assert!(world.redis.all("DEAD").is_empty());
}

#[tokio::test]
async fn a_letter_whose_unique_key_another_job_holds_stays_and_is_counted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let unique = |name| JobBuilder::new("osis", "1").id(name).unique_key("k").build();
    world.accepts(&[unique("a").expect("legal")]).await;
    let id = world.claim(&life, 1).await.attempts.remove(0).id;
    world.finish(&life, &id, dead("no")).await;
    world.accepts(&[unique("b").expect("legal")]).await;
    let tally = client(&world).retry_dead(&of(None)).await.expect("retrying");
    assert_eq!(tally, DeadTally { done: 0, left: 1 });
    assert_eq!(world.status("a"), JobStatus::Error);
}

#[tokio::test]
async fn a_job_that_was_stopped_is_no_dead_letter() {
    let world = World::new();
    letters(&world, "no", &["a"]).await;
    world.accepts(&[crate::support::job("b")]).await;
    let client = client(&world);
    let (a, b) = ("a".parse().expect("legal"), "b".parse().expect("legal"));
    client.stop_job(&b).await.expect("stopping");
    assert_eq!(client.dead_letter(&a).await.expect("it is one").error.as_deref(), Some("no"));
    let refused = client.dead_letter(&b).await.expect_err("it is none");
    assert!(matches!(refused, ClientError::NoDeadLetter { .. }), "{refused}");
}
