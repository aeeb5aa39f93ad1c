//! Paused queues: no job is claimed from them, and none is lost.

use hero::client::JobBuilder;
use hero::proto::message::Control;
use hero::store::Verdict;

use crate::support::{Life, RETENTION, World, ids, job, keys, queue};

#[tokio::test]
async fn nothing_is_claimed_from_a_paused_queue_and_the_claim_says_so() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let urgent = JobBuilder::new("osis", "1").id("urgent").priority(0).build().expect("legal");
    world.accepts(&[job("a"), job("b"), urgent]).await;
    assert_eq!(world.store.pause(&[queue("type:osis")]).await.expect("pausing"), [true]);
    assert_eq!(world.store.pause(&[queue("type:osis")]).await.expect("pausing"), [false]);
    let claimed = world.claim(&life, 9).await;
    assert_eq!(ids(&claimed.attempts), ["urgent"], "the other priorities go on");
    // Normal priority is read in both spellings.
    assert_eq!(claimed.paused, keys().work_as_read(&queue("type:osis")));
    assert_eq!(world.work("type:osis"), ["a", "b"]);
    assert_eq!(world.store.resume(&[queue("type:osis")]).await.expect("resuming"), [true]);
    assert_eq!(world.store.resume(&[queue("type:osis")]).await.expect("resuming"), [false]);
    let claimed = world.claim(&life, 9).await;
    assert_eq!((ids(&claimed.attempts), claimed.paused), (vec!["a", "b"], Vec::new()));
    assert!(world.redis.all("PAUSED").is_empty());
}

#[tokio::test]
async fn popped_ids_of_a_paused_queue_go_back_to_its_front_in_order() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    let list = keys::work("type:osis");
    let pop = || (list.clone(), world.redis.pop(&list).into_bytes());
    let popped = [pop(), pop()];
    world.store.pause(&[queue("type:osis")]).await.expect("pausing");
    let claimed = world.claim_popped(&life, 4, &popped).await;
    assert!(claimed.attempts.is_empty());
    assert_eq!(world.work("type:osis"), ["a", "b", "c"]);
    assert_eq!(world.indexes_of("a"), [keys::ready("type:osis")]);
    world.store.resume(&[queue("type:osis")]).await.expect("resuming");
    assert_eq!(ids(&world.claim(&life, 4).await.attempts), ["a", "b", "c"]);
}

/// A program asks for another run by a push; the id that an actor of Hero held is no such push.
#[tokio::test]
async fn popped_id_of_an_ended_job_goes_back_to_a_paused_queue_unless_it_was_left_behind() {
    for (leftover, left) in [(None, vec!["a"]), (Some("always"), vec![])] {
        let (world, life) = (World::new(), Life::of("osis-default-1"));
        let verdict = Verdict::Finished { output: "1".into(), exit_code: None };
        let own = world.ended(&life, "a", verdict).await;
        if let Some(mark) = leftover {
            world.redis.set_field(&keys::job("a"), "leftover", mark.to_owned());
        }
        world.store.pause(&[queue("type:osis")]).await.expect("pausing");
        let popped = [(keys::work("type:osis"), own.to_string().into_bytes())];
        world.claim_popped(&life, 1, &popped).await;
        assert_eq!(world.work("type:osis"), left, "leftover: {leftover:?}");
    }
}

#[tokio::test]
async fn live_actors_of_the_type_are_told_of_a_pause_and_of_its_end_and_others_are_not() {
    let (world, osis) = (World::new(), Life::of("osis-io-1"));
    let sal = Life::of("sal-default-1");
    for life in [&osis, &sal] {
        let appeared = world.store.appear(&life.actor, &life.presence(), RETENTION, None).await;
        appeared.expect("appearing");
    }
    let queues = ["type:osis:prio:0", "type:osis"].map(queue);
    let told = || world.redis.list(&keys::control("osis:io:1"));
    world.store.pause(&queues).await.expect("pausing");
    assert_eq!(told().len(), 1, "once a call");
    world.store.pause(&queues).await.expect("pausing");
    assert_eq!(told().len(), 1, "no news");
    world.store.resume(&queues).await.expect("resuming");
    assert_eq!(told().len(), 2);
    assert!(told().iter().all(|text| Control::parse(text.as_bytes()) == Ok(Control::Wake)));
    assert!(world.redis.keys(&keys::control_of_type("sal")).is_empty());
}

#[tokio::test]
async fn a_paused_queue_is_listed_though_nothing_waits_in_it() {
    let world = World::new();
    world.store.pause(&[queue("type:osis:group:io")]).await.expect("pausing");
    world.accepts(&[job("a")]).await;
    let states = world.store.queue_states().await.expect("listing");
    let seen: Vec<_> =
        states.iter().map(|state| (state.queue.to_string(), state.depth, state.paused)).collect();
    assert_eq!(
        seen,
        [("type:osis".to_owned(), 1, false), ("type:osis:group:io".to_owned(), 0, true)]
    );
}

#[tokio::test]
async fn a_job_in_a_paused_queue_can_be_stopped_deleted_and_recovered() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    let running = world.claim(&life, 1).await.attempts.remove(0).id;
    world.store.pause(&[queue("type:osis")]).await.expect("pausing");
    world.store.stop(&"b".parse().expect("legal"), RETENTION, None).await.expect("stopping");
    world.check();
    world.store.delete(&"c".parse().expect("legal"), RETENTION).await.expect("deleting");
    world.check();
    assert_eq!(world.give_back(&life, &[(running, None)]).await, 1);
    world.check();
    assert_eq!(world.work("type:osis"), ["a"]);
    assert!(world.claim(&life, 9).await.attempts.is_empty());
}
