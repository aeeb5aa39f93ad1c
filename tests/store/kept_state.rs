//! The state that an attempt keeps: only while its boot owns the job since the claim of this attempt.

use hero::store::Verdict;

use crate::support::{Life, World, keys};

#[tokio::test]
async fn state_is_kept_by_the_attempt_that_runs_and_by_no_other() {
    let (world, life, other) =
        (World::new(), Life::of("osis-default-1"), Life::of("osis-default-2"));
    let id = world.started(&life, "a").await;
    let first = world.claimed_at(&life, &id);
    let keep = async |life: &Life, claimed_at, state: &str| {
        world
            .store
            .attempts()
            .keep_state(&life.boot, (&id, claimed_at), state)
            .await
            .expect("keeping")
    };
    let kept = || world.field("a", "kept_state");
    assert!(keep(&life, first, "1").await);
    assert!(world.field("a", "kept_state_at").is_some());
    assert!(!keep(&other, first, "2").await, "another boot");
    assert_eq!(kept().as_deref(), Some("1"));

    world.give_back(&life, &[(id.clone(), None)]).await;
    assert!(!keep(&life, first, "2").await, "it has given the job back");
    world.claim(&life, 1).await;
    let second = world.claimed_at(&life, &id);
    assert!(!keep(&life, first, "2").await, "a late call of the attempt before");
    assert_eq!(kept().as_deref(), Some("1"));
    assert!(keep(&life, second, "").await);
    assert_eq!((kept(), world.field("a", "kept_state_at")), (None, None));

    assert!(keep(&life, second, "3").await);
    let verdict = Verdict::Finished { output: "1".into(), exit_code: None };
    world.finish(&life, &id, verdict).await;
    assert!(!keep(&life, second, "4").await, "it has ended");
    assert_eq!(kept(), None);
    assert!(!world.redis.ask::<bool>(&format!("HEXISTS {} kept_state", keys::job("a"))));
}
