//! Dead letters: listed page by page, run again and deleted, one by one and in bulk.

use hero::client::{Client, ClientError, JobBuilder, JobChange, ManyChanged};
use hero::config::JobConfig;
use hero::proto::job::{JobEnd, JobId, JobStatus};
use hero::proto::job_filter::JobFilter;
use hero::store::{JobSearch, ListQuery, Verdict};
use jiff::Timestamp;
use jiff::tz::TimeZone;

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

fn all() -> ListQuery {
    ListQuery { dead: true, limit: 100_000, ..ListQuery::default() }
}

fn of(error: &str) -> JobSearch {
    let filter = JobFilter::of([("error", error)]);
    JobSearch::of(&filter, &TimeZone::UTC, Timestamp::now()).expect("legal").1
}

async fn listed(client: &Client, query: &ListQuery, limit: usize) -> Vec<String> {
    let (mut ids, mut query) = (Vec::new(), ListQuery { limit, ..query.clone() });
    loop {
        let page = client.list_jobs(&query).await.expect("listing");
        assert!(page.items.len() <= limit);
        ids.extend(page.items.iter().map(|letter| letter.id.to_string()));
        match page.next {
            Some(next) => query.cursor = Some(next.to_string().parse().expect("it reads back")),
            None => return ids,
        }
    }
}

/// Changes the dead letters that a search finds. Returns how many it did, and how many stay.
async fn change(client: &Client, search: &JobSearch, change: &JobChange) -> (usize, u64) {
    let found = client.jobs().to_change(&all(), search, change, |_| true).await.expect("searching");
    assert!(found.complete);
    let ids: Vec<&JobId> = found.items.iter().map(|job| &job.id).collect();
    let mut changed = ManyChanged::default();
    client.jobs().change_many(ids, change, &mut changed).await.expect("changing");
    (changed.done.len(), changed.left)
}

fn retry() -> JobChange {
    JobChange::Retry { with_dependents: false, changes: serde_json::Map::new() }
}

#[tokio::test]
async fn dead_letters_are_listed_page_by_page_the_newest_first() {
    let world = World::new();
    letters(&world, "no", &["a", "b", "c", "d", "e"]).await;
    let life = Life::of("osis-default-1");
    let failed = Verdict::Error { error: "no".to_owned(), exit_code: None, dead: false };
    world.ended(&life, "failed", failed).await;
    let python = Life::of("python-default-1");
    let job = JobBuilder::new("python", "1").id("p").build().expect("legal");
    world.accepts(&[job]).await;
    let id = world.claim(&python, 1).await.attempts.remove(0).id;
    world.finish(&python, &id, dead("bad")).await;
    let client = client(&world);
    for limit in [1, 2, 3, 6, 100] {
        assert_eq!(listed(&client, &all(), limit).await, ["p", "e", "d", "c", "b", "a"]);
    }
    let only = ListQuery { script_type: Some(script_type("python")), ..all() };
    assert_eq!(listed(&client, &only, 1).await, ["p"]);
    let found = client.jobs().find(&all(), &of("BAD"), |_| true).await.expect("searching");
    assert_eq!(found.items.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["p"]);
    assert_eq!(
        (&found.items[0].fields["error"], &found.items[0].fields["exit_code"]),
        (&"bad".to_owned(), &"1".to_owned())
    );
    let waiting = ListQuery { statuses: vec![JobStatus::Dispatched], ..all() };
    assert_eq!(listed(&client, &waiting, 10).await, [] as [&str; 0], "a dead letter has failed");
}

#[tokio::test]
async fn ids_in_a_dead_list_whose_job_is_gone_or_runs_again_are_skipped() {
    let world = World::new();
    letters(&world, "no", &["a", "b", "c"]).await;
    world.redis.delete(&keys::job("b"));
    world.redis.push(&keys::dead("osis"), &["not:legal", "never"]);
    assert_eq!(listed(&client(&world), &all(), 1).await, ["c", "a"]);
    world.redis.run(&format!("ZREM {} b", keys::index("error", "osis")));
    // Another type's list of the wrong type costs no letter.
    let index = world.store.keys().ended(JobEnd::Failed, &script_type("osis"));
    world.redis.run(&format!("ZREM {index} b"));
    let python = JobBuilder::new("python", "1").build().expect("legal");
    world.accepts(&[python]).await;
    world.redis.spoil(&keys::dead("python"));
    assert_eq!(listed(&client(&world), &all(), 10).await, ["c", "a"]);
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended_though_letters_come_and_go() {
    let world = World::new();
    letters(&world, "no", &["a", "b", "c", "d"]).await;
    let client = client(&world);
    let page = client.list_jobs(&ListQuery { limit: 2, ..all() }).await.expect("listing");
    letters(&world, "no", &["e"]).await;
    client.jobs().retry(&page.items[1].id).await.expect("c runs again");
    let page = ListQuery { limit: 2, cursor: page.next, ..all() };
    let page = client.list_jobs(&page).await.expect("listing");
    let ids: Vec<&str> = page.items.iter().map(|letter| letter.id.as_str()).collect();
    assert_eq!(ids, ["b", "a"]);
}

#[tokio::test]
async fn dead_letters_are_run_again_in_bulk_by_what_their_error_says() {
    let world = World::new();
    letters(&world, "connection refused by x", &["a", "b"]).await;
    letters(&world, "stopped", &["c"]).await;
    let client = client(&world);
    assert_eq!(change(&client, &of("refused"), &retry()).await, (2, 0));
    world.check();
    assert_eq!((world.status("a"), world.status("c")), (JobStatus::Dispatched, JobStatus::Error));
    assert_eq!(world.redis.list(&keys::dead("osis")), ["c"]);
    assert_eq!(world.field("a", "attempt"), None);
    // Nobody stopped it, though its script says so.
    assert_eq!(change(&client, &JobSearch::default(), &retry()).await, (1, 0));
    assert!(world.redis.all("DEAD").is_empty());
}

#[tokio::test]
async fn more_dead_letters_than_a_page_holds_are_all_deleted_and_leave_nothing() {
    let world = World::new();
    let life = Life::of("osis-default-1");
    let number = 1200;
    let jobs: Vec<_> = (0..number).map(|n| crate::support::job(&format!("j{n}"))).collect();
    for jobs in jobs.chunks(600) {
        world.store.jobs().submit(jobs, true, RETENTION).await.expect("submitting");
    }
    let mut attempts = Vec::new();
    while attempts.len() < number {
        attempts.extend(world.claim(&life, number).await.attempts);
    }
    let endings: Vec<_> =
        attempts.into_iter().map(|attempt| world.ending(&life, attempt.id, dead("no"))).collect();
    world.store.attempts().finish(&life.boot, RETENTION, &endings).await.expect("finishing");
    let client = client(&world);
    let mut ids = listed(&client, &all(), 500).await;
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), number, "many of the same time are listed once each");
    assert_eq!(change(&client, &of("no"), &JobChange::Delete).await, (1200, 0));
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
    assert_eq!(change(&client(&world), &JobSearch::default(), &retry()).await, (0, 1));
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
    assert_eq!(
        client.jobs().dead_letter(&a).await.expect("it is one").error.as_deref(),
        Some("no")
    );
    let refused = client.jobs().dead_letter(&b).await.expect_err("it is none");
    assert!(matches!(refused, ClientError::NoDeadLetter { .. }), "{refused}");
}
