//! The lists of several shards, as one.

use std::collections::BTreeSet;
use std::time::Duration;

use hero::client::{
    Client, ClientError, FilesByPlace, Graph, JobBuilder, JobChange, ManyChanged, NewBatch,
};
use hero::config::{JobConfig, RedisConfig};
use hero::proto::job::{Job, JobStatus};
use hero::store::{Cursor, JobSearch, JobSummary, ListQuery, Shards, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, queue, seeds};

const SHARDS: u16 = 4;

fn settings(world: &World) -> RedisConfig {
    RedisConfig { shards: SHARDS, ..world.redis.config("hero") }
}

fn shards(world: &World) -> Shards {
    Shards::open(&settings(world), Ok).expect("settings")
}

fn client(world: &World) -> Client {
    let job = JobConfig { events: true, ..JobConfig::default() };
    Client::with(&settings(world), job).expect("settings")
}

/// Returns the world as one shard sees it.
fn at(mut world: World, number: u16) -> World {
    let shards = shards(&world);
    let shard = shards.count().shard(number).expect("there");
    world.store = shards.at(shard).clone();
    world
}

fn keyed(key: impl std::fmt::Display) -> JobBuilder {
    JobBuilder::new("osis", "1").shard_key(&key.to_string())
}

fn built(job: JobBuilder) -> Job {
    job.build().expect("legal")
}

/// Submits jobs of several states to all shards, some more of them each time.
async fn submit_some(client: &Client, random: &mut fastrand::Rng) {
    let later = Timestamp::now() + Duration::from_hours(1);
    let jobs: Vec<Job> = (0..random.usize(1..12))
        .map(|_| {
            let job = keyed(random.u8(..));
            built(if random.bool() { job } else { job.run_at(later) })
        })
        .collect();
    for submitted in client.submit_all(&jobs).await.expect("submitting") {
        submitted.expect("accepted");
    }
    client.create_job(built(keyed(random.u8(..)))).await.expect("creating");
}

/// Reads every shard for itself, and sorts what it finds.
async fn sorted(world: &World) -> Vec<String> {
    let mut places = Vec::new();
    for store in shards(world).all() {
        let mut query = ListQuery { limit: 1, ..ListQuery::default() };
        loop {
            let page = store.jobs().list(&query).await.expect("listing");
            let Some(next) = page.next else { break };
            let text = next.to_string();
            let (score, id) = text.split_once('.').expect("two parts");
            places.push((score.parse::<i64>().expect("a score"), id.to_owned()));
            query.cursor = Some(next);
        }
    }
    places.sort_by(|a, b| b.cmp(a));
    places.into_iter().map(|(_, id)| id).collect()
}

fn ids(jobs: &[JobSummary]) -> Vec<String> {
    jobs.iter().map(|job| job.id.to_string()).collect()
}

#[tokio::test]
async fn pages_neither_repeat_nor_leave_out_a_job_while_others_are_added() {
    for seed in seeds(6) {
        let (world, mut random) = (World::new(), fastrand::Rng::with_seed(seed));
        let client = client(&world);
        for _ in 0..random.usize(1..6) {
            submit_some(&client, &mut random).await;
        }
        let expected = sorted(&world).await;
        let mut query = ListQuery { limit: random.usize(1..9), ..ListQuery::default() };
        let (mut seen, mut found) = (Vec::new(), Vec::new());
        loop {
            let page = client.list_jobs(&query).await.expect("listing");
            assert!(page.items.len() <= query.limit, "seed {seed}");
            seen.extend(ids(&page.items));
            let search = JobSearch::default();
            let again = client.jobs().find(&query, &search, |_| true).await.expect("searching");
            found.extend(ids(&again.items));
            let Some(next) = page.next else { break };
            query.cursor = Some(next.to_string().parse::<Cursor>().expect("a legible cursor"));
            if random.bool() {
                submit_some(&client, &mut random).await;
            }
        }
        assert_eq!(seen, found, "seed {seed}");
        let unique: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "seed {seed}: a job is in two pages");
        let known: BTreeSet<&String> = expected.iter().collect();
        let old: Vec<&String> = seen.iter().filter(|id| known.contains(id)).collect();
        assert_eq!(old, expected.iter().collect::<Vec<_>>(), "seed {seed}");
    }
}

#[tokio::test]
async fn dead_letters_of_all_shards_are_one_list() {
    let mut world = World::new();
    let dead = || Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true };
    let mut expected = BTreeSet::new();
    for number in 0..11_u16 {
        world = at(world, number * 7 % SHARDS);
        let id = match number * 7 % SHARDS {
            0 => format!("a{number}"),
            shard => format!("s{shard}-a{number}"),
        };
        world.ended(&Life::of("osis-default-1"), &id, dead()).await;
        expected.insert(id);
    }
    let client = client(&world);
    for limit in [1, 2, 3, 100] {
        let mut query = ListQuery { dead: true, limit, ..ListQuery::default() };
        let (mut ids, mut times) = (Vec::new(), Vec::new());
        loop {
            let page = client.list_jobs(&query).await.expect("listing");
            assert!(page.items.len() <= limit);
            for letter in page.items {
                times.push(std::cmp::Reverse(letter.fields["finished_at"].clone()));
                ids.push(letter.id.to_string());
            }
            let Some(next) = page.next else { break };
            query.cursor = Some(next.to_string().parse().expect("a legible cursor"));
        }
        assert_eq!(ids.len(), expected.len(), "limit {limit}: {ids:?}");
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), expected);
        assert!(times.is_sorted(), "limit {limit}: the newest come first");
    }
    let query = ListQuery { dead: true, limit: 100, ..ListQuery::default() };
    let again = JobChange::Retry { with_dependents: false, changes: serde_json::Map::new() };
    let search = JobSearch::default();
    let found = client.jobs().to_change(&query, &search, &again, |_| true).await.expect("found");
    let mut changed = ManyChanged::default();
    let ids = found.items.iter().map(|job| &job.id);
    client.jobs().change_many(ids, &again, &mut changed).await.expect("retrying");
    assert_eq!((changed.done.len(), changed.left), (11, 0));
    let page = client.list_jobs(&query).await.expect("listing");
    assert!(page.items.is_empty() && page.next.is_none());
}

#[tokio::test]
async fn atomic_batch_that_is_submitted_again_is_rejected() {
    let world = World::new();
    let client = client(&world);
    // The answer to the first submission may have been lost.
    for _ in 0..8 {
        let jobs: Vec<Job> = (0..3).map(|_| built(JobBuilder::new("osis", "1"))).collect();
        let submit = async || {
            let (mut batch, files) = (NewBatch::default(), FilesByPlace::new());
            client.submit_all_or_none_of(&mut batch, &jobs, &files).await
        };
        submit().await.expect("accepted");
        let again = submit().await.expect_err("they are there");
        assert!(matches!(again, ClientError::Refused { .. }), "{again}");
    }
}

#[tokio::test]
async fn graphs_of_all_shards_are_one_list() {
    let world = World::new();
    let client = client(&world);
    let mut expected = Vec::new();
    for number in 0..9 {
        let mut graph = Graph::new();
        graph.add("a", built(keyed(number)));
        graph.add("b", built(JobBuilder::new("osis", "1"))).after("a");
        let ids = client.graphs().submit(&mut graph).await.expect("submitting");
        let shard = graph.id().as_str().split_once('-').expect("two parts").0.to_owned();
        for id in ids.values().filter(|_| shard.starts_with('s')) {
            assert!(id.as_str().starts_with(&shard), "{id} is not on {shard}");
        }
        expected.insert(0, graph.id().to_string());
    }
    for limit in [1, 2, 5, 50] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = client.graphs().list(limit, after).await.expect("listing");
            seen.extend(page.items.iter().map(|graph| graph.id.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "limit {limit}");
    }
}

#[tokio::test]
async fn events_of_all_shards_come_once_and_in_order() {
    let world = World::new();
    let client = client(&world);
    let began = client.system().now().await.expect("a time");
    let mut follower = client.events().follow(began);
    let mut submitted = BTreeSet::new();
    for key in 0..20 {
        let id = client.submit(built(keyed(key))).await.expect("submitting");
        submitted.insert(id.to_string());
    }
    let mut got = Vec::new();
    while got.len() < submitted.len() {
        let some = tokio::time::timeout(Duration::from_mins(1), follower.next()).await;
        got.extend(some.expect("events come").expect("redis answers"));
    }
    for limit in [1, 3, 1000] {
        let mut read = Vec::new();
        loop {
            let after = read.last().map(|last: &hero::store::JobEvent| last.place.clone());
            let page = client.events().list(after.as_deref(), limit).await.expect("reading");
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, got, "limit {limit}");
        let ids: BTreeSet<String> = read.iter().map(|event| event.id.clone()).collect();
        assert_eq!(ids, submitted);
        assert!(read.iter().map(hero::store::JobEvent::time).is_sorted());
    }
}

#[tokio::test]
async fn an_actor_and_a_queue_of_several_shards_are_one() {
    let (mut world, life) = (World::new(), Life::of("osis-default-1"));
    for number in 0..SHARDS {
        world = at(world, number);
        let appeared =
            world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
        appeared.expect("appearing");
        let id = if number == 0 { "a".to_owned() } else { format!("s{number}-a") };
        world.started(&life, &id).await;
    }
    let client = client(&world);
    let actors = client.actors().documents(None, None).await.expect("listing");
    assert_eq!(actors.len(), 1);
    assert_eq!((actors[0].presence.running, actors[0].presence.tasks), (4, 4));
    for key in 0..10 {
        client.submit(built(keyed(key))).await.expect("submitting");
    }
    let queues = client.queues().list().await.expect("listing");
    assert_eq!((queues.len(), queues[0].depth, queues[0].paused), (1, 10, false));
    let counts = client.jobs().count().await.expect("counting");
    let of = |status| counts.of_state(status);
    assert_eq!((of(JobStatus::Started), of(JobStatus::Dispatched)), (4, 10));
    let osis = queue("type:osis");
    assert_eq!(
        client.queues().pause(std::slice::from_ref(&osis)).await.expect("pausing"),
        std::slice::from_ref(&osis)
    );
    for store in shards(&world).all() {
        assert_eq!(store.queues().pauses().await.expect("reading").queues.len(), 1);
    }
    assert_eq!(
        client.queues().resume(std::slice::from_ref(&osis)).await.expect("resuming"),
        std::slice::from_ref(&osis)
    );
    assert_eq!(client.queues().purge(&osis).await.expect("purging"), 10);
    assert_eq!(client.clear_all_jobs().await.expect("deleting"), 10);
}
