//! Pages of jobs, and the state of queues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hero::client::JobBuilder;
use hero::config::RedisConfig;
use hero::proto::job::{Job, JobEnd, JobStatus};
use hero::proto::job_filter::JobFilter;
use hero::store::{Cursor, FoundJobs, JobSearch, JobSummary, ListQuery, Shards, Store, Verdict};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::support::{Life, RETENTION, World, job, keys, queue, script_type, seed, wait_until};

/// A search with one filter.
fn search(name: &str, value: &str) -> JobSearch {
    let filter = JobFilter::of([(name, value)]);
    JobSearch::of(&filter, &TimeZone::UTC, Timestamp::now()).expect("legal").1
}

/// Every page of a list, one after the other, each cursor through its text.
async fn all(store: &Store, query: &ListQuery) -> Vec<JobSummary> {
    let (mut query, mut jobs) = (query.clone(), Vec::new());
    loop {
        let page = store.jobs().list(&query).await.expect("listing");
        assert!(page.items.len() <= query.limit);
        jobs.extend(page.items);
        let Some(next) = page.next else { return jobs };
        query.cursor = Some(next.to_string().parse::<Cursor>().expect("a legible cursor"));
        assert!(jobs.len() < 100_000, "the pages come to no end");
    }
}

fn names(jobs: &[JobSummary]) -> Vec<&str> {
    jobs.iter().map(|job| job.id.as_str()).collect()
}

fn typed(kind: &str, id: &str, at: Timestamp) -> Job {
    JobBuilder::new(kind, "1").id(id).run_at(at).build().expect("a legal job")
}

#[tokio::test]
async fn an_empty_world_has_an_empty_page() {
    let world = World::new();
    let page = world.store.jobs().list(&ListQuery { limit: 9, ..ListQuery::default() }).await;
    let page = page.expect("listing");
    assert!(page.items.is_empty() && page.next.is_none());
}

#[tokio::test]
async fn jobs_of_a_state_come_newest_first_page_by_page() {
    let world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        world.accepts(&[job(name)]).await;
    }
    let statuses = vec![JobStatus::Dispatched];
    let query = ListQuery { statuses, limit: 2, ..ListQuery::default() };
    let first = world.store.jobs().list(&query).await.expect("listing");
    assert_eq!(names(&first.items), ["d", "e"].into_iter().rev().collect::<Vec<_>>());
    assert_eq!(names(&all(&world.store, &query).await), ["e", "d", "c", "b", "a"]);
    let summary = &first.items[0];
    assert_eq!(summary.fields.get("script_type").map(String::as_str), Some("osis"));
    assert!(summary.time("created_at").is_some());
    assert!(!summary.fields.contains_key("script"));
}

#[tokio::test]
async fn pages_over_all_states_cover_every_job_exactly_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let appeared =
        world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
    appeared.expect("appearing");
    let mut expected = BTreeMap::new();
    let later = Timestamp::now() + RETENTION;
    for n in 0..7 {
        let verdict = match n % 2 {
            0 => Verdict::Finished { output: "".into(), exit_code: None },
            _ => Verdict::Error { error: String::new(), exit_code: None, dead: false },
        };
        let status = if n % 2 == 0 { JobStatus::Finished } else { JobStatus::Error };
        world.ended(&life, &format!("end{n}"), verdict).await;
        expected.insert(format!("end{n}"), status);
    }
    for n in 0..5 {
        world.started(&life, &format!("run{n}")).await;
        expected.insert(format!("run{n}"), JobStatus::Started);
        world.create(&[job(&format!("new{n}"))]).await;
        expected.insert(format!("new{n}"), JobStatus::Created);
        let waits = JobBuilder::new("sal", "1").id(&format!("wait{n}")).after(&format!("new{n}"));
        world.accepts(&[waits.build().expect("legal")]).await;
        expected.insert(format!("wait{n}"), JobStatus::WaitingForPrerequisites);
        world.accepts(&[typed("python", &format!("later{n}"), later)]).await;
        expected.insert(format!("later{n}"), JobStatus::Scheduled);
    }
    for n in 0..11 {
        let queued = JobBuilder::new("osis", "1").id(&format!("q{n}")).priority(n % 3);
        world.accepts(&[queued.build().expect("legal")]).await;
        expected.insert(format!("q{n}"), JobStatus::Dispatched);
    }
    for limit in [1, 3, 38, 1000] {
        let listed = all(&world.store, &ListQuery { limit, ..ListQuery::default() }).await;
        assert_eq!(listed.len(), expected.len(), "pages of {limit}");
        let listed: BTreeMap<String, JobStatus> =
            listed.into_iter().map(|job| (job.id.to_string(), job.status)).collect();
        assert_eq!(listed, expected, "pages of {limit}");
    }
    for (kind, number) in [("sal", 5), ("python", 5), ("osis", 28), ("v", 0)] {
        let only = Some(script_type(kind));
        let query = ListQuery { script_type: only, limit: 4, ..ListQuery::default() };
        assert_eq!(all(&world.store, &query).await.len(), number, "{kind}");
    }
}

#[tokio::test]
async fn pages_cover_thousands_of_jobs_that_share_one_score_in_several_indexes() {
    let world = World::new();
    let at = Timestamp::now() + RETENTION;
    let mut jobs = Vec::new();
    for n in 0..2500 {
        jobs.push(typed("osis", &format!("z{n:04}"), at));
    }
    for n in 0..1000 {
        jobs.push(typed("sal", &format!("a{n:04}"), at));
        jobs.push(typed("v", &format!("old{n:04}"), at - RETENTION / 2));
    }
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    world.check();
    for limit in [100, 700, 1000] {
        let statuses = vec![JobStatus::Scheduled];
        let listed =
            all(&world.store, &ListQuery { statuses, limit, ..ListQuery::default() }).await;
        let mut listed = names(&listed);
        assert_eq!(listed.len(), 4500, "pages of {limit}");
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed.len(), 4500, "pages of {limit}");
    }
}

#[tokio::test]
async fn page_among_thousands_of_jobs_of_one_time_reads_little_more_than_the_page() {
    let world = World::new();
    let at = Timestamp::now() + RETENTION;
    let jobs: Vec<Job> = (0..3000)
        .map(|n| typed(if n % 3 == 0 { "sal" } else { "osis" }, &format!("j{n:04}"), at))
        .collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    let limit = 10;
    let page = async |cursor| {
        let statuses = vec![JobStatus::Scheduled];
        let query = ListQuery { statuses, limit, cursor, ..ListQuery::default() };
        world.store.jobs().list(&query).await.expect("listing")
    };
    let first = page(None).await;
    let far: Cursor = first
        .next
        .expect("there are more")
        .to_string()
        .replace("j2990", "j1500")
        .parse()
        .expect("legal");
    // The job of a cursor may have left its index.
    for gone in [false, true] {
        if gone {
            let gone = "j1500".parse().expect("legal");
            world.store.jobs().delete(&gone, RETENTION).await.expect("deleting");
        }
        world.redis.run("CONFIG RESETSTAT");
        let listed = names(&page(Some(far.clone())).await.items).join(" ");
        let expected: Vec<String> = (1490..1500).rev().map(|n| format!("j{n}")).collect();
        assert_eq!(listed, expected.join(" "), "gone: {gone}");
        let stats: String = world.redis.ask("INFO commandstats");
        let of = |line: &str| line.split_once(":calls=")?.1.split(',').next()?.parse::<u32>().ok();
        let calls: u32 =
            stats.lines().filter(|line| line.starts_with("cmdstat_z")).filter_map(of).sum();
        assert!(calls < 60, "{calls} calls, gone: {gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn page_skips_no_job_though_newer_ones_leave_its_index_meanwhile() {
    let world = World::new();
    let at = Timestamp::now() + RETENTION;
    let jobs: Vec<Job> = (0..1000).map(|n| typed("osis", &format!("j{n:04}"), at)).collect();
    world.store.jobs().submit(&jobs, true, RETENTION).await.expect("submitting");
    let statuses = vec![JobStatus::Scheduled];
    let mut query = ListQuery { statuses, limit: 10, ..ListQuery::default() };
    let first = world.store.jobs().list(&query).await.expect("listing").next.expect("more");
    query.cursor = Some(first.to_string().replace("j0990", "j0500").parse().expect("legal"));
    let expected: Vec<String> = (490..500).rev().map(|n| format!("j{n:04}")).collect();
    let store = world.store.clone();
    let listing = tokio::spawn(async move {
        for _ in 0..500 {
            let page = store.jobs().list(&query).await.expect("listing");
            assert_eq!(names(&page.items), expected);
        }
    });
    let index = keys::index("scheduled", "osis");
    let time = world.redis.score(&index, "j0000").expect("it stands there");
    let newer: Vec<String> = (0..300).map(|n| format!("n{n:04}")).collect();
    let scored: Vec<String> =
        newer.iter().flat_map(|id| [format!("{time:.0}"), id.clone()]).collect();
    while !listing.is_finished() {
        world.redis.ask_with::<u64, _>(&format!("ZADD {index}"), &scored);
        world.redis.ask_with::<u64, _>(&format!("ZREM {index}"), &newer);
    }
    listing.await.expect("each page is whole");
}

#[tokio::test]
async fn a_job_that_expired_is_not_listed_and_does_not_end_the_list() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let done = || Verdict::Finished { output: "".into(), exit_code: None };
    for name in ["a", "b", "c"] {
        world.ended(&life, name, done()).await;
    }
    world.redis.delete(&keys::job("b"));
    let listed = all(&world.store, &ListQuery { limit: 1, ..ListQuery::default() }).await;
    assert_eq!(names(&listed), ["c", "a"]);
}

#[tokio::test]
async fn queues_show_their_depth_and_their_oldest_wait() {
    let world = World::new();
    world.accepts(&[job("a"), job("b")]).await;
    let urgent = JobBuilder::new("sal", "1").group("io").priority(0).build().expect("legal");
    world.accepts(&[urgent]).await;
    world.store.stats().sample(std::time::Duration::ZERO).await.expect("sampling");
    let states = world.store.queues().states([].into()).await.expect("listing");
    assert_eq!(states.len(), 2);
    assert_eq!((&states[0].queue, states[0].depth), (&queue("type:osis"), 2));
    assert_eq!((&states[1].queue, states[1].depth), (&queue("type:sal:group:io:prio:0"), 1));
    for state in states {
        assert!(state.oldest_wait.is_some_and(|wait| wait.as_secs() < 60));
        assert_eq!(state.type_throughput_per_s, Some(0.0));
    }
}

#[tokio::test]
async fn a_queue_list_of_another_type_hides_no_other_queue() {
    let world = World::new();
    let sal = JobBuilder::new("sal", "1").build().expect("legal");
    world.accepts(&[job("a"), sal]).await;
    world.redis.spoil(&keys::work("type:osis"));
    let states = world.store.queues().states([].into()).await;
    let states = states.expect("the other queues are listed");
    assert!(states.iter().any(|state| state.queue == queue("type:sal") && state.depth == 1));
}

#[tokio::test]
async fn search_finds_jobs_by_each_filter_and_those_that_a_caller_sees() {
    let world = World::new();
    let builders = [
        JobBuilder::new("python", "1").id("invoice-1").group("io").caller_id("billing"),
        JobBuilder::new("osis", "1").id("other").name("load-Invoices"),
        JobBuilder::new("osis", "1").id("third").priority(0),
    ];
    for builder in builders {
        world.accepts(&[builder.build().expect("legal")]).await;
    }
    let found = async |search: JobSearch| {
        let query = ListQuery { limit: 10, ..ListQuery::default() };
        let found = Shards::from(world.store.clone())
            .find_jobs(&query, &search, |_| true)
            .await
            .expect("searching");
        let mut names: Vec<String> = found.items.iter().map(|job| job.id.to_string()).collect();
        names.sort();
        names.join(" ")
    };
    for (name, value, expected) in [
        ("text", "INVOICE", "invoice-1 other"),
        ("caller", "billing", "invoice-1"),
        ("queue", "type:python:group:io", "invoice-1"),
        ("queue", "type:osis:prio:0", "third"),
        ("held", "true", ""),
        ("status", "queued", "invoice-1 other third"),
        ("status", "held", ""),
        ("since", "2100-01-01T00:00:00Z", ""),
        ("until", "1h", ""),
        ("since", "1h", "invoice-1 other third"),
    ] {
        assert_eq!(found(search(name, value)).await, expected, "{name} {value}");
    }
    let query = ListQuery { limit: 1, ..ListQuery::default() };
    let sees = |job: &JobSummary| job.id.as_str() == "invoice-1";
    let own = Shards::from(world.store.clone())
        .find_jobs(&query, &JobSearch::default(), sees)
        .await
        .expect("searching");
    assert_eq!((names(&own.items), own.searched), (vec!["invoice-1"], 1));
}

#[tokio::test]
async fn search_that_is_cut_names_no_job_that_its_reader_may_not_see() {
    let world = World::new();
    for name in ["mine", "hidden-1", "hidden-2"] {
        world.accepts(&[job(name)]).await;
    }
    let shards = Shards::from(world.store.clone());
    let sees = |job: &JobSummary| job.id.as_str() == "mine";
    let mut query = ListQuery { limit: 1, budget: Some(Duration::ZERO), ..ListQuery::default() };
    for _ in 0..2 {
        let found = shards.find_jobs(&query, &JobSearch::default(), sees).await.expect("searching");
        let next = found.next.expect("it was cut").to_string();
        assert!(found.items.is_empty() && !next.contains("hidden"), "{next}");
        query.cursor = Some(next.parse().expect("the search goes on there"));
    }
    let found = shards.find_jobs(&query, &JobSearch::default(), sees).await.expect("searching");
    assert_eq!(names(&found.items), ["mine"]);
    let place = found.next.expect("a place").to_string();
    assert_eq!(place.split_once('.').map(|(_, id)| id), Some("mine"));
}

#[tokio::test]
async fn ends_are_counted_and_found_by_their_own_index() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let appeared =
        world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
    appeared.expect("appearing");
    let ends = [
        ("a", "stopped", JobEnd::Cancelled),
        ("b", "exit code 3", JobEnd::Failed),
        ("c", "exit code 7", JobEnd::Failed),
        ("d", "stopped twice", JobEnd::Failed),
        ("e", "replaced by job d", JobEnd::Replaced),
        ("f", "expired: it did not start within 1m", JobEnd::Expired),
    ];
    for (name, error, _) in ends {
        let error = error.to_owned();
        world.ended(&life, name, Verdict::Error { error, exit_code: None, dead: false }).await;
    }
    let counts = world.store.jobs().count().await.expect("counting");
    let numbers = [JobEnd::Failed, JobEnd::Cancelled, JobEnd::Replaced, JobEnd::Expired]
        .map(|end| counts.of_ends(&[end]));
    assert_eq!(numbers, [Some(3), Some(1), Some(1), Some(1)]);
    assert_eq!(counts.of_state(JobStatus::Error), 6);
    for end in JobEnd::IN_ERROR {
        let (statuses, ends_of) = (vec![JobStatus::Error], vec![end]);
        let query = ListQuery { statuses, ends: ends_of, limit: 2, ..ListQuery::default() };
        let mut expected: Vec<&str> =
            ends.iter().filter(|(.., of)| *of == end).map(|(name, ..)| *name).collect();
        expected.reverse();
        assert_eq!(names(&all(&world.store, &query).await), expected, "{end}");
    }
    let query = ListQuery { limit: 10, ..ListQuery::default() };
    let kind = search("kind", "exit code 3");
    let found = Shards::from(world.store.clone())
        .find_jobs(&query, &kind, |_| true)
        .await
        .expect("searching");
    assert_eq!(names(&found.items), ["b"], "each exit code is a kind of its own");
}

#[tokio::test]
async fn upgrade_sorts_ended_jobs_by_their_ends_and_lists_say_that_they_are_incomplete() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let appeared =
        world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
    appeared.expect("appearing");
    for n in 0..9 {
        let verdict = match n % 3 {
            0 => Verdict::Finished { output: "".into(), exit_code: None },
            1 => Verdict::Error { error: "stopped".to_owned(), exit_code: None, dead: false },
            _ => Verdict::Error { error: "no luck".to_owned(), exit_code: None, dead: false },
        };
        world.ended(&life, &format!("j{n}"), verdict).await;
    }
    let shards = Shards::from(world.store.clone());
    let query = ListQuery { limit: 20, ..ListQuery::default() };
    let found = async || {
        shards.find_jobs(&query, &JobSearch::default(), |_| true).await.expect("searching")
    };
    let before = found().await;
    assert!(before.complete && before.items.len() == 9);
    // As the version before leaves them; one has an end that it does not have.
    for end in JobEnd::ALL {
        world.redis.delete(&world.store.keys().ended(end, &script_type("osis")));
    }
    let wrong = world.store.keys().ended(JobEnd::Expired, &script_type("osis"));
    world.redis.put(&wrong, 1, "j0");
    let sorting = found().await;
    assert!(!sorting.complete && sorting.items.len() < 9, "{sorting:?}");
    assert_eq!(world.store.jobs().count().await.expect("counting").unsorted, 8);
    let mut sorted = 0;
    for _ in 0..20 {
        sorted += world.store.stats().sample(Duration::ZERO).await.expect("sampling").sorted;
    }
    assert!(sorted >= 9, "it sorted {sorted}");
    let after = found().await;
    assert!(after.complete, "{after:?}");
    let sorted_names = |found: &FoundJobs| {
        let mut of: Vec<String> = found.items.iter().map(|job| job.id.to_string()).collect();
        of.sort();
        of
    };
    assert_eq!(sorted_names(&after), sorted_names(&before));
    let counts = world.store.jobs().count().await.expect("counting");
    assert_eq!((counts.unsorted, counts.of_ends(&[JobEnd::Failed])), (0, Some(3)));
    assert_eq!(counts.of_ends(&[JobEnd::Expired]), Some(0));
    assert_eq!(
        world.store.stats().sample(Duration::ZERO).await.expect("sampling").sorted,
        0,
        "it is done"
    );
    // One without an end and one with an end too many cancel each other out in the totals.
    let latest = after.items[0].id.as_str();
    let own =
        JobEnd::ALL.into_iter().map(|end| world.store.keys().ended(end, &script_type("osis")));
    for key in own {
        world.redis.run(&format!("ZREM {key} {latest}"));
    }
    let status = world.field(latest, "status").expect("a job");
    let stray = if status == "finished" { JobEnd::Finished } else { JobEnd::Expired };
    world.redis.put(&world.store.keys().ended(stray, &script_type("osis")), 1, "gone");
    assert_eq!(world.store.jobs().count().await.expect("counting").unsorted, 0);
    let mut sorted = 0;
    for _ in 0..20 {
        sorted += world.store.stats().sample(Duration::ZERO).await.expect("sampling").sorted;
    }
    assert_eq!(sorted, 1, "the one without an end");
    assert_eq!(sorted_names(&found().await), sorted_names(&before));
}

#[tokio::test]
async fn upgrade_sorts_a_bounded_number_of_jobs_in_a_step_while_others_end() {
    const OLD: usize = 3000;
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.has_ended(OLD, JobEnd::Failed, false);
    world.redis.run("CONFIG RESETSTAT");
    let mut sorted = 0;
    while world.store.jobs().count().await.expect("counting").unsorted > 0 {
        sorted += world.store.stats().sample(Duration::ZERO).await.expect("sampling").sorted;
    }
    let stats: String = world.redis.ask("INFO commandstats");
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = calls.and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
    let calls = calls.expect("a number of steps");
    assert!(sorted >= OLD as u64 && sorted <= 500 * calls, "{sorted} in {calls} steps");
    // The same again while jobs end.
    world.redis.delete(&world.store.keys().ended(JobEnd::Failed, &script_type("osis")));
    let mut ended = 0;
    while world.store.jobs().count().await.expect("counting").unsorted > 0 {
        let end_some = async {
            for _ in 0..20 {
                let new = job(&format!("new{ended}"));
                world.store.jobs().submit(&[new], true, RETENTION).await.expect("submitting");
                let claimed = world.store_claim(&life, 1).await;
                world.store_finish(&life, claimed).await;
                ended += 1;
            }
        };
        let (sampled, ()) = tokio::join!(world.store.stats().sample(Duration::ZERO), end_some);
        sampled.expect("sampling");
    }
    let jobs = all(&world.store, &ListQuery { limit: 1000, ..ListQuery::default() }).await;
    assert_eq!(jobs.len(), OLD + ended);
    let distinct: BTreeSet<&str> = names(&jobs).into_iter().collect();
    assert_eq!(distinct.len(), OLD + ended);
}

/// A place where jobs of one type stand on one shard.
struct WalkPlace {
    shard: usize,
    kind: &'static str,
    status: &'static str,
    error: &'static str,
    indexes: Vec<String>,
}

/// The places of scheduled, finished, failed and stopped jobs of two types on two shards.
fn places(shards: &Shards) -> Vec<WalkPlace> {
    let mut places = Vec::new();
    for (shard, store) in shards.all().iter().enumerate() {
        for kind in ["osis", "sal"] {
            for (status, end, error) in [
                ("scheduled", None, ""),
                ("finished", Some(JobEnd::Finished), ""),
                ("error", Some(JobEnd::Failed), "x"),
                ("error", Some(JobEnd::Cancelled), "stopped"),
            ] {
                let of_state =
                    store.keys().index(status.parse().expect("legal"), &script_type(kind));
                let of_end = end.map(|end| store.keys().ended(end, &script_type(kind)));
                let indexes = [of_state].into_iter().chain(of_end).collect();
                places.push(WalkPlace { shard, kind, status, error, indexes });
            }
        }
    }
    places
}

/// Jobs that come, move and go, in the order of their places.
struct Walk<'a> {
    world: &'a World,
    shards: &'a Shards,
    places: Vec<WalkPlace>,
}

impl Walk<'_> {
    /// Puts a job there.
    fn put(&self, place: &WalkPlace, time: u64, id: &str, caller: &str) {
        let keys = self.shards.all()[place.shard].keys();
        let (key, redis) = (keys.job(&id.parse().expect("legal")), &self.world.redis);
        redis.run(&format!("DEL {key}"));
        redis.run(&format!(
            "HSET {key} status {} script_type {} caller_id {caller} finished_at 2026-01-01T00:00:00Z",
            place.status, place.kind
        ));
        if !place.error.is_empty() {
            redis.set_field(&key, "error", place.error);
        }
        for index in &place.indexes {
            redis.put(index, time, id);
        }
    }

    /// Takes a job away from there.
    fn take(&self, place: &WalkPlace, id: &str) {
        place.indexes.iter().for_each(|index| self.world.redis.remove(index, id));
    }

    fn clear(&self) {
        self.places
            .iter()
            .flat_map(|place| &place.indexes)
            .for_each(|of| self.world.redis.delete(of));
    }
}

/// A random walk over states, types and two shards, with and without filters: jobs end, run again and are deleted between
/// the pages, at times of which many are equal.
#[tokio::test]
async fn pages_have_each_job_that_stays_once_though_others_come_and_go() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new();
    let config = RedisConfig { shards: 2, ..world.redis.config("hero") };
    let shards = Shards::open(&config, Ok).expect("settings");
    for store in shards.all() {
        world.redis.run(&format!("SADD {} osis sal", store.keys().types()));
    }
    let walk = Walk { world: &world, shards: &shards, places: places(&shards) };
    for round in 0..20 {
        walk.clear();
        let mut number = 0;
        let mut new = |random: &mut fastrand::Rng, time: u64| {
            number += 1;
            let place = random.usize(0..walk.places.len());
            let shard = if walk.places[place].shard == 0 { "" } else { "s1-" };
            let (id, is_own) = (format!("{shard}r{round}n{number:03}"), random.u8(0..3) > 0);
            walk.put(&walk.places[place], time, &id, if is_own { "ann" } else { "bob" });
            (time, id, place, is_own)
        };
        let mut stay: Vec<_> = (0..60)
            .map(|_| {
                let time = random.u64(1..12);
                new(&mut random, time)
            })
            .collect();
        let (own, kind) = (random.bool(), random.bool().then_some("sal"));
        let search = if own { search("caller", "ann") } else { JobSearch::default() };
        let limit = random.usize(1..9);
        let statuses = vec![JobStatus::Scheduled, JobStatus::Finished, JobStatus::Error];
        let script_type = kind.map(script_type);
        let mut query = ListQuery { statuses, script_type, limit, ..ListQuery::default() };
        let mut listed: Vec<String> = Vec::new();
        loop {
            // Some searches are cut before their page is full.
            query.budget = random.bool().then_some(Duration::ZERO);
            let page = shards.find_jobs(&query, &search, |_| true).await.expect("searching");
            assert!(page.items.len() <= limit);
            listed.extend(page.items.iter().map(|job| job.id.to_string()));
            let Some(next) = page.next else {
                assert!(page.complete, "seed {seed}, round {round}");
                break;
            };
            query.cursor = Some(next.to_string().parse().expect("legible"));
            // A job comes: later than all others. One is deleted, and one runs again and fails.
            let time = random.u64(20..30);
            new(&mut random, time);
            if stay.len() > 10 {
                let (_, id, place, _) = stay.remove(random.usize(0..stay.len()));
                walk.take(&walk.places[place], &id);
                let (_, id, place, is_own) = stay.remove(random.usize(0..stay.len()));
                let from = &walk.places[place];
                walk.take(from, &id);
                let failed =
                    |to: &&WalkPlace| (to.shard, to.kind, to.error) == (from.shard, from.kind, "x");
                let to = walk.places.iter().find(failed).expect("each type has one on each shard");
                walk.put(to, 40, &id, if is_own { "ann" } else { "bob" });
            }
        }
        stay.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
        let is_wanted = |place: usize, is_own: bool| {
            (is_own || !own) && kind.is_none_or(|kind| walk.places[place].kind == kind)
        };
        let whole: Vec<&String> =
            stay.iter().filter(|of| is_wanted(of.2, of.3)).map(|(_, id, ..)| id).collect();
        let of_those: Vec<&String> = listed.iter().filter(|id| whole.contains(id)).collect();
        assert_eq!(of_those, whole, "seed {seed}, round {round}, pages of {limit}");
        let (number, distinct) = (listed.len(), listed.iter().collect::<BTreeSet<_>>().len());
        assert_eq!(number, distinct, "seed {seed}, round {round}: a job came twice");
        let strange = listed.iter().filter(|id| stay.iter().any(|of| of.1 == **id)).count();
        assert_eq!(strange, whole.len(), "seed {seed}, round {round}: one does not match");
    }
}

#[tokio::test]
async fn search_reads_no_jobs_outside_of_its_range_of_times() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let appeared =
        world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
    appeared.expect("appearing");
    let failed = || Verdict::Error { error: "x".to_owned(), exit_code: None, dead: false };
    for n in 0..30 {
        world.ended(&life, &format!("old{n}"), failed()).await;
    }
    let index = world.store.keys().ended(JobEnd::Failed, &script_type("osis"));
    let first: Vec<(String, f64)> = world.redis.ask(&format!("ZRANGE {index} 29 29 WITHSCORES"));
    // Times of hashes have milliseconds.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a score is a whole number of microseconds"
    )]
    let between = Timestamp::from_microsecond(first[0].1 as i64 + 2000).expect("a time");
    wait_until("the time of Redis is later", || {
        let (s, us): (i64, i64) = world.redis.ask("TIME");
        s * 1_000_000 + us > between.as_microsecond() + 2000
    });
    for n in 0..3 {
        world.ended(&life, &format!("new{n}"), failed()).await;
    }
    let of = async |search: JobSearch| {
        let statuses = vec![JobStatus::Error];
        let query = ListQuery { statuses, limit: 50, ..ListQuery::default() };
        let shards = Shards::from(world.store.clone());
        shards.find_jobs(&query, &search, |_| true).await.expect("searching")
    };
    let between = between.to_string();
    for name in ["since", "ended_since"] {
        let found = of(search(name, &between)).await;
        assert_eq!((found.items.len(), found.searched, found.complete), (3, 3, true));
    }
    let found = of(search("ended_until", &between)).await;
    assert_eq!((found.items.len(), found.searched, found.complete), (30, 30, true));
    let budget = Some(Duration::ZERO);
    let query = ListQuery { limit: 1, budget, ..ListQuery::default() };
    let none = search("name", "none");
    let shards = Shards::from(world.store.clone());
    let found = shards.find_jobs(&query, &none, |_| true).await.expect("searching");
    assert!(!found.complete && found.searched == 1 && found.next.is_some(), "{found:?}");
}

#[tokio::test]
async fn pages_that_are_shorter_than_the_number_of_queues_cover_every_job_once() {
    let world = World::new();
    let at = Timestamp::now() + RETENTION;
    let mut jobs = Vec::new();
    for n in 0..60 {
        let kind = format!("kind{}", n % 20);
        // Some share a score, within an index and across indexes.
        let due = at + Duration::from_secs(n / 7);
        jobs.push(typed(&kind, &format!("later{n:02}"), due));
        jobs.push(JobBuilder::new(&kind, "1").id(&format!("now{n:02}")).build().expect("legal"));
    }
    world.store.jobs().submit(&jobs, true, RETENTION).await.expect("submitting");
    for status in [JobStatus::Scheduled, JobStatus::Dispatched] {
        let of = |limit| ListQuery { statuses: vec![status], limit, ..ListQuery::default() };
        let whole = names(&all(&world.store, &of(1000)).await).join(" ");
        for limit in [1, 2, 7, 19] {
            let pages = names(&all(&world.store, &of(limit)).await).join(" ");
            assert_eq!(pages, whole, "pages of {limit}");
        }
    }
}

#[tokio::test]
async fn a_page_of_many_queues_reads_little_more_than_the_page() {
    let world = World::new();
    let mut jobs = Vec::new();
    for n in 0..20_000 {
        let kind = format!("kind{}", n % 200);
        jobs.push(JobBuilder::new(&kind, "1").build().expect("legal"));
    }
    for some in jobs.chunks(1000) {
        world.store.jobs().submit(some, true, RETENTION).await.expect("submitting");
    }
    let statuses = vec![JobStatus::Dispatched];
    let query = ListQuery { statuses, limit: 100, ..ListQuery::default() };
    let sent = || {
        let info: String = world.redis.ask("INFO stats");
        let line = info.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:"));
        line.and_then(|number| number.trim().parse::<u64>().ok()).expect("a number")
    };
    let before = sent();
    let page = world.store.jobs().list(&query).await.expect("listing");
    assert_eq!(page.items.len(), 100);
    // A page of each queue would be 20 000 entries of 60 bytes.
    let read = sent() - before;
    assert!(read < 300_000, "it read {read} bytes");
}
