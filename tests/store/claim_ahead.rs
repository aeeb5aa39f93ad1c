//! Jobs that a boot claims ahead of its threads.

use hero::client::JobBuilder;
use hero::proto::job::JobStatus;
use hero::store::{Claimed, ReturnedAttempt};

use crate::support::{Life, RETENTION, World, ids, job, queue};

const CRASH_LIMIT: u32 = 3;

async fn claim(world: &World, life: &Life, wanted: usize, ahead: usize) -> Claimed {
    world.hold_lease(life);
    let claimed = world.claim_ahead(life, (wanted, ahead)).await.expect("claiming");
    world.check();
    claimed
}

#[tokio::test]
async fn a_job_with_a_limit_is_not_claimed_ahead_and_stays_in_its_place() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let serial = JobBuilder::new("osis", "1").id("b").concurrent(false).build().expect("legal");
    world.accepts(&[job("a"), serial, job("c")]).await;
    let claimed = claim(&world, &life, 3, 2).await;
    assert_eq!((ids(&claimed.attempts), claimed.none_ahead), (vec!["a"], true));
    assert_eq!(world.work("type:osis"), ["b", "c"]);
    let claimed = claim(&world, &life, 0, 0).await;
    assert!(claimed.attempts.is_empty() && !claimed.none_ahead);
    let claimed = claim(&world, &life, 2, 1).await;
    assert_eq!((ids(&claimed.attempts), claimed.none_ahead), (vec!["b", "c"], false));
}

#[tokio::test]
async fn a_job_claimed_ahead_is_charged_no_crash_the_first_time_its_boot_dies() {
    let world = World::new();
    world.accepts(&[job("a"), job("b")]).await;
    let first = Life::of("osis-default-1");
    assert_eq!(claim(&world, &first, 2, 1).await.attempts.len(), 2);
    world.dies(&first, CRASH_LIMIT).await;
    assert_eq!(world.work("type:osis"), ["a", "b"]);
    let told = |id, name| world.field(id, name).unwrap_or_default();
    let charged = |id| (told(id, "crashes"), told(id, "attempt"), told(id, "attempts").is_empty());
    assert_eq!(charged("a"), ("1".to_owned(), "0".to_owned(), false));
    assert_eq!(charged("b"), ("0".to_owned(), "0".to_owned(), true));
    // An actor died with each of them, so neither waits after another.
    let second = Life::of("osis-default-1");
    let claimed = claim(&world, &second, 2, 2).await;
    assert!(claimed.attempts.is_empty() && claimed.none_ahead);
    assert_eq!(claim(&world, &second, 2, 0).await.attempts.len(), 2);
    world.dies(&second, CRASH_LIMIT).await;
    assert_eq!((told("a", "crashes"), told("b", "crashes")), ("2".to_owned(), "1".to_owned()));
}

#[tokio::test]
async fn a_job_given_back_before_it_began_has_no_earlier_attempt() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    let attempt = claim(&world, &life, 1, 1).await.attempts.remove(0);
    let back = [ReturnedAttempt {
        id: attempt.id,
        claimed_at: attempt.claimed_at,
        queue: Some(queue("type:osis")),
        has_begun: false,
        has_crashed: false,
    }];
    assert_eq!(
        world.store.attempts().requeue(&life.boot, RETENTION, &back).await.expect("giving back"),
        1
    );
    assert_eq!((world.status("a"), world.field("a", "attempts")), (JobStatus::Dispatched, None));
    // A call that is made again, as its answer was lost, does not take back the next attempt.
    assert_eq!(claim(&world, &life, 1, 0).await.attempts.len(), 1);
    assert_eq!(
        world.store.attempts().requeue(&life.boot, RETENTION, &back).await.expect("giving back"),
        0
    );
    assert_eq!(world.status("a"), JobStatus::Started);
}
