//! Recovery: dead boots, pops without a claim, and jobs of foreign actors.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::{BootId, JobStatus};
use hero::store::{BootDeath, Recorded, Recovered, ReturnedAttempt, StopOutcome, Verdict};

use crate::support::{Life, RETENTION, World, ids, job, keys, queue, wait_until};

const CRASH_LIMIT: u32 = 3;

/// Ends the lease of a boot, as of a process that has died.
async fn dies(world: &World, life: &Life) {
    let lease = Duration::from_millis(1);
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), lease, None)
        .await
        .expect("appearing");
    world.set_lease(life, 1);
    world.redis.delete(&keys().presence(&life.actor));
}

async fn recover_boots(world: &World) -> Recovered {
    let recovered =
        world.store.recovery().boots(None, Duration::ZERO, CRASH_LIMIT, RETENTION).await;
    world.check();
    recovered.expect("recovering")
}

/// Sweeps until the grace of a pop is over and something was found.
pub(super) async fn recover_pops(world: &World) -> Recovered {
    let found = sweep_for_pops(world).await;
    world.check();
    found
}

async fn sweep_for_pops(world: &World) -> Recovered {
    let sweep = async || world.store.recovery().pops(RETENTION).await.expect("recovering");
    for _ in 0..2 {
        assert_eq!(
            sweep().await,
            Recovered::default(),
            "a job that was popped just now is not lost"
        );
    }
    let began = std::time::Instant::now();
    wait_until("the grace is over", || began.elapsed() > Duration::from_millis(2010));
    sweep().await
}

#[tokio::test]
async fn death_for_lack_of_memory_is_named_and_charged_to_no_job_that_is_a_process() {
    for (death, crashes) in [(BootDeath::Memory, None), (BootDeath::MemoryOfScripts, Some("1"))] {
        let (world, dead) = (World::new(), Life::of("osis-default-1"));
        world.accepts(&["a", "b"].map(job)).await;
        world.claim(&dead, 2).await;
        let (store, boot) = (&world.store, &dead.boot);
        let found = store
            .recovery()
            .boots(Some((boot, death)), Duration::ZERO, CRASH_LIMIT, RETENTION)
            .await;
        let found = found.expect("recovering");
        assert_eq!((found.put_back, found.given_up), (2, 0));
        let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
        assert!(notes.iter().all(|note| note.contains("killed as memory ran out")), "{notes:?}");
        for id in ["a", "b"] {
            assert_eq!(world.field(id, "crashes").as_deref(), crashes);
            let attempts = world.field(id, "attempts").expect("the attempt is listed");
            assert!(attempts.contains("was killed as memory ran out"), "{attempts}");
        }
        world.check();
    }
}

#[tokio::test]
async fn job_whose_actors_are_killed_for_lack_of_memory_again_and_again_ends() {
    for own_attempts in [false, true] {
        let world = World::new();
        world.accepts(&["a"].map(job)).await;
        if own_attempts {
            world.redis.set_job("a", "attempts none");
        }
        let mut deaths = 0_u32;
        while world.status("a") != JobStatus::Error {
            let dead = Life::of("osis-default-1");
            world.claim(&dead, 1).await;
            let recovering = world.store.recovery().boots(
                Some((&dead.boot, BootDeath::Memory)),
                Duration::ZERO,
                CRASH_LIMIT,
                RETENTION,
            );
            recovering.await.expect("recovering");
            deaths += 1;
            let charged = if own_attempts { deaths } else { deaths.saturating_sub(2) };
            let crashes =
                world.field("a", "crashes").map_or(0_u32, |text| text.parse().expect("legal"));
            assert_eq!(crashes, charged);
            assert!(deaths <= CRASH_LIMIT + 2);
            world.check();
        }
        let error = world.field("a", "error").expect("an error");
        assert!(error.contains("the last as memory ran out"), "{error}");
    }
}

#[tokio::test]
async fn the_jobs_of_a_dead_boot_go_back_in_front_in_order_with_a_crash_and_no_attempt() {
    let (world, dead) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<_> = ["a", "b", "c", "d"].map(job).into();
    world.accepts(&jobs).await;
    let claimed = world.claim(&dead, 3).await;
    dies(&world, &dead).await;
    let found = recover_boots(&world).await;
    assert_eq!((found.boots, found.put_back, found.given_up), (1, 3, 0));
    let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    let note = |id| {
        format!(
            "job {id} of osis goes back to the front of queue type:osis: actor osis:default:1 died \
             while it ran the job; crash 1 of {CRASH_LIMIT}"
        )
    };
    assert_eq!(notes, ["c", "b", "a"].map(note));
    assert_eq!(world.work("type:osis"), ["a", "b", "c", "d"]);
    assert_eq!(world.field("a", "crashes").as_deref(), Some("1"));
    for name in ["started_at", "actor", "boot_id"] {
        assert_eq!(world.field("a", name), None, "{name}");
    }
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    assert_eq!(world.finish(&dead, &claimed.attempts[0].id, done).await, Recorded::Lost);
    assert_eq!(recover_boots(&world).await, Recovered::default(), "once is enough");
    let again = world.claim(&Life::of("osis-default-1"), 1).await;
    let job = again.attempts[0].job.as_ref().expect("a job");
    assert_eq!((job.attempt, job.crashes), (1, 1));
}

#[tokio::test]
async fn a_live_boot_keeps_its_jobs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    world.started(&life, "a").await;
    assert_eq!(recover_boots(&world).await, Recovered::default());
    assert_eq!(world.status("a"), JobStatus::Started);
}

#[tokio::test]
async fn job_that_crashes_actor_after_actor_becomes_a_dead_letter() {
    let world = World::new();
    world.accepts(&[job("a"), job("b")]).await;
    for crash in 1..=CRASH_LIMIT {
        let dead = Life::of("osis-default-1");
        assert_eq!(ids(&world.claim(&dead, 1).await.attempts), ["a"]);
        dies(&world, &dead).await;
        let given_up = u64::from(crash == CRASH_LIMIT);
        assert_eq!(recover_boots(&world).await.given_up, given_up);
    }
    assert_eq!(world.field("a", "error").as_deref(), Some("crashed: 3 actors died running it"));
    assert_eq!(world.redis.list(&keys::dead("osis")), ["a"]);
    assert_eq!(world.redis.list(&keys::reply("a")).len(), 1);
    assert_eq!(world.work("type:osis"), ["b"]);
}

#[tokio::test]
async fn one_boot_that_is_known_to_be_gone_is_recovered_at_once() {
    let (world, gone, live) =
        (World::new(), Life::of("osis-default-1"), Life::of("osis-default-2"));
    for life in [&gone, &live] {
        let appeared =
            world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
        appeared.expect("appearing");
        world.started(life, life.actor.instance.to_string().as_str()).await;
    }
    let recovered = world
        .store
        .recovery()
        .boots(Some((&gone.boot, BootDeath::Unknown)), Duration::ZERO, CRASH_LIMIT, RETENTION)
        .await;
    world.check();
    assert_eq!(recovered.expect("recovering").put_back, 1);
    assert_eq!((world.status("1"), world.status("2")), (JobStatus::Dispatched, JobStatus::Started));
}

/// Its fields name no queue that it could go back to.
#[tokio::test]
async fn an_invalid_job_of_a_dead_boot_ends_instead_of_running_for_ever() {
    let (world, dead) = (World::new(), Life::of("osis-default-1"));
    world.redis.set_job("a", "id a script 1 status dispatched group a:b");
    world.redis.push(&keys::work("type:osis"), &["a"]);
    world.claim(&dead, 1).await;
    dies(&world, &dead).await;
    assert_eq!(recover_boots(&world).await.given_up, 1);
    assert_eq!(world.status("a"), JobStatus::Error);
    let error = world.field("a", "error").unwrap_or_default();
    assert!(error.starts_with("invalid job: group `a:b` is not legal: "), "{error}");
}

#[tokio::test]
async fn job_that_a_foreign_actor_popped_and_never_started_goes_back_in_front_after_the_grace() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<_> = ["a", "b", "c"].map(job).into();
    world.accepts(&jobs).await;
    let lost: Vec<String> = world.redis.ask(&format!("LPOP {} 2", keys::work("type:osis")));
    assert_eq!(lost, ["a", "b"]);
    assert_eq!(recover_pops(&world).await.put_back, 2);
    assert_eq!(world.work("type:osis"), ["a", "b", "c"]);
    assert_eq!(ids(&world.claim(&life, 3).await.attempts), ["a", "b", "c"]);
}

#[tokio::test]
async fn job_that_stands_behind_a_later_one_is_not_taken_for_a_popped_one() {
    let world = World::new();
    world.accepts(&["a", "b", "c"].map(job)).await;
    let work = keys::work("type:osis");
    world.redis.run(&format!("LPOP {work} 2"));
    world.redis.run(&format!("RPUSH {work} a b"));
    // The list is not in the order of its jobs, as `recover_pops` would have it.
    assert_eq!(sweep_for_pops(&world).await.put_back, 0);
    assert_eq!(world.work("type:osis"), ["c", "a", "b"]);
}

#[tokio::test]
async fn a_job_whose_list_could_not_take_it_comes_back_once_the_list_is_repaired() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.redis.spoil(&keys::work("type:osis"));
    let back = [(own, None)];
    assert_eq!(world.give_back(&life, &back).await, 1);
    world.check();
    world.redis.delete(&keys::work("type:osis"));
    assert_eq!(recover_pops(&world).await.put_back, 1);
    assert_eq!(world.work("type:osis"), ["a"]);
}

#[tokio::test]
async fn start_and_end_by_a_foreign_actor_are_noted() {
    let world = World::new();
    world.accepts(&[job("a"), job("b")]).await;
    world.redis.run(&format!("LPOP {} 2", keys::work("type:osis")));
    world.redis.set_job("a", "status started");
    world.redis.set_job("b", "status finished output 42");
    assert_eq!(recover_pops(&world).await.foreign, 2);
    assert_eq!(world.indexes_of("a"), [keys::index("started", "osis")]);
    assert_eq!(world.indexes_of("b"), [keys::index("finished", "osis")]);
    assert!(world.redis.ttl(&keys::job("b")) > 0, "it is kept as long as any job");
    world.redis.set_job("a", "status error error no");
    let second = Duration::from_secs(1);
    let noticed = world.store.recovery().foreign(second, second, CRASH_LIMIT, RETENTION).await;
    world.check();
    assert_eq!(noticed.expect("recovering").foreign, 1);
    assert_eq!(world.indexes_of("a"), [keys::index("error", "osis")]);
}

#[tokio::test]
async fn a_foreign_job_that_ran_past_its_timeout_goes_back() {
    let world = World::new();
    world.redis.set_job("a", "id a script 1 status started script_type osis");
    world.redis.set_job("a", "created_at 2026-01-31T12:00:00.000Z timeout 1");
    world.redis.set_job("a", "started_at 2026-01-31T12:00:00.000Z");
    world.redis.run(&format!("SADD {} osis", keys().types()));
    world.redis.put(&keys::index("started", "osis"), 1, "a");
    let second = Duration::from_secs(1);
    let found = world.store.recovery().foreign(second, second, CRASH_LIMIT, RETENTION).await;
    world.check();
    assert_eq!(found.expect("recovering").put_back, 1);
    assert_eq!(world.work("type:osis"), ["a"]);
    assert_eq!(world.field("a", "crashes").as_deref(), Some("1"));
}

#[tokio::test]
async fn entries_of_removed_jobs_are_orphans() {
    let world = World::new();
    world.create(&[job("a"), job("b")]).await;
    world.redis.delete(&keys::job("a"));
    let found = world.store.recovery().orphans().await.expect("recovering");
    world.check();
    assert_eq!(found.orphans, 1);
    assert_eq!(world.indexes_of("b"), [keys::index("created", "osis")]);
}

#[tokio::test]
async fn recovery_of_an_empty_world_finds_nothing() {
    let world = World::new();
    let unknown = BootId::random();
    let found = world
        .store
        .recovery()
        .boots(Some((&unknown, BootDeath::Unknown)), Duration::ZERO, CRASH_LIMIT, RETENTION)
        .await;
    assert_eq!(found.expect("recovering").put_back, 0);
    assert_eq!(recover_boots(&world).await, Recovered::default());
    assert_eq!(world.store.recovery().orphans().await.expect("recovering").orphans, 0);
}

#[tokio::test]
async fn a_job_that_was_killed_for_the_memory_of_all_is_given_back_as_a_crash() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    for crashes in 1..=2 {
        let attempt = world.claim(&life, 1).await.attempts.remove(0);
        let back = [ReturnedAttempt {
            id: attempt.id,
            claimed_at: attempt.claimed_at,
            queue: Some(queue("type:osis")),
            has_begun: true,
            has_crashed: true,
        }];
        assert_eq!(
            world
                .store
                .attempts()
                .requeue(&life.boot, RETENTION, &back)
                .await
                .expect("giving back"),
            1
        );
        assert_eq!(world.status("a"), JobStatus::Dispatched);
        assert_eq!(world.field("a", "crashes"), Some(crashes.to_string()));
        assert_eq!(
            world.field("a", "attempt").as_deref(),
            Some("0"),
            "it is no attempt of its own"
        );
        let attempts = world.field("a", "attempts").unwrap_or_default();
        assert!(attempts.contains("crashed"), "{attempts}");
        // Made again, as its answer was lost, it charges nothing.
        assert_eq!(
            world
                .store
                .attempts()
                .requeue(&life.boot, RETENTION, &back)
                .await
                .expect("giving back"),
            0
        );
    }
    world.check();
}

#[tokio::test]
async fn a_job_that_was_asked_to_stop_ends_when_its_actor_dies_or_gives_it_back() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    for name in ["dies", "given-back"] {
        let id = world.started(&life, name).await;
        let told = world.store.jobs().stop(&id, RETENTION, None).await.expect("stopping");
        assert_eq!(told, StopOutcome::Requested);
    }
    let waits = JobBuilder::new("osis", "1").id("x").after("given-back").build();
    world.accepts(&[waits.expect("legal")]).await;
    // Nobody reads the message.
    world.redis.delete(&keys::control("osis:default:1"));
    let back = ["given-back".parse().expect("legal")].map(|id| (id, Some(queue("type:osis"))));
    assert_eq!(world.give_back(&life, &back).await, 0);
    world.check();
    world.dies(&life, 3).await;
    for name in ["dies", "given-back"] {
        assert_eq!(world.status(name), JobStatus::Error, "{name}");
        assert_eq!(world.field(name, "error").as_deref(), Some("stopped_by_request"), "{name}");
        assert_eq!(world.redis.list(&keys::reply(name)).len(), 1, "{name}");
    }
    assert_eq!(world.status("x"), JobStatus::Error, "its dependent is told");
    assert!(world.work("type:osis").is_empty());
}
