//! The firing of periodic jobs, one step at a time.

use std::time::Duration;

use hero::proto::cron::{CatchUp, MissedFirings, OverdueTime, Overlap};
use hero::store::{FIRINGS_MAX, Fired, FiringOutcome, Verdict};
use jiff::{SignedDuration, Timestamp};

use crate::support::{Life, RETENTION, World, job, keys};

const ALLOW: (Overlap, CatchUp) = (Overlap::Allow, CatchUp::Skip);

fn second(number: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(4_000_000_000 + number)
}

#[tokio::test]
async fn firing_happens_once_and_never_for_an_earlier_time() {
    let world = World::new();
    let name = "tick".parse().expect("legal");
    let fire = async |id: &str, at: i64| {
        let job = job(id);
        let fired = world.store.cron().fire(&name, second(at), ALLOW, Ok(&job), RETENTION.into());
        fired.await.expect("firing")
    };
    assert_eq!(fire("a", 10).await, Fired::Job("a".parse().expect("legal")));
    assert_eq!(fire("a", 10).await, Fired::Past);
    assert_eq!(fire("b", 9).await, Fired::Past);
    assert_eq!(world.field("b", "status"), None);
    assert_eq!(fire("c", 11).await, Fired::Job("c".parse().expect("legal")));
    assert_eq!(world.work("type:osis"), ["a", "c"]);
    assert_eq!(world.redis.field(&keys::cron("tick"), "fired").as_deref(), Some("2"));
    assert!(world.redis.ttl(&keys::cron("tick")) > 0, "it is bounded");
    world.check();
}

#[tokio::test]
async fn new_periodic_job_counts_from_now_on() {
    let world = World::new();
    let names = ["one", "two"].map(|name| name.parse().expect("legal"));
    let (now, state) = world.store.cron().state(&names).await.expect("looking");
    assert_eq!([state[0].due, state[1].due], [now, now]);
    assert_eq!([state[0].from, state[1].from], [now, now], "its lateness counts from now on");
    let job = job("a");
    let fired = world.store.cron().fire(
        &names[0],
        second(1),
        (Overlap::Skip, CatchUp::Skip),
        Ok(&job),
        RETENTION.into(),
    );
    fired.await.expect("firing");
    let (later, state) = world.store.cron().state(&names).await.expect("looking");
    assert_eq!([state[0].due, state[1].due], [second(1), now]);
    assert!(later > now);
    assert!(world.store.cron().get(&names[1]).await.expect("looking").last.is_none());
    let last = world.store.cron().get(&names[0]).await.expect("looking").last.expect("it fired");
    assert_eq!((last.due, last.id.as_str(), last.fired), (second(1), "a", 1));
}

#[tokio::test]
async fn an_overlap_is_allowed_left_out_or_replaces() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let name = "tick".parse().expect("legal");
    let fire = async |id: &str, at: i64, overlap| {
        let job = job(id);
        let fired = world.store.cron().fire(
            &name,
            second(at),
            (overlap, CatchUp::Skip),
            Ok(&job),
            RETENTION.into(),
        );
        fired.await.expect("firing")
    };
    fire("a", 1, Overlap::Skip).await;
    let a = "a".parse().expect("legal");
    assert_eq!(fire("b", 2, Overlap::Skip).await, Fired::LeftOut(a));
    assert_eq!(world.field("b", "status"), None);
    fire("c", 3, Overlap::Allow).await;
    assert_eq!(world.work("type:osis"), ["a", "c"]);
    // A waiting job ends at once, a running one through its actor.
    fire("d", 4, Overlap::Replace).await;
    assert_eq!(world.field("c", "error").as_deref(), Some("replaced by job d"));
    assert_eq!(world.work("type:osis"), ["a", "d"]);
    world.check();
    let world = World::new();
    let own = world.started(&life, "e").await;
    let job = job("f");
    world.redis.set_field(&keys::cron("tick"), "id", "e");
    world.redis.set_field(&keys::job("e"), "cron", "tick");
    let fired = world.store.cron().fire(
        &name,
        second(5),
        (Overlap::Replace, CatchUp::Skip),
        Ok(&job),
        RETENTION.into(),
    );
    assert_eq!(fired.await.expect("firing"), Fired::Job(job.id.clone()));
    let told = world.redis.list(&keys::control("osis:default:1"));
    assert_eq!(told, ["e"], "a bare id is told to stop");
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &own, done).await;
    world.check();
}

#[tokio::test]
async fn later_job_with_the_id_of_a_firing_delays_no_other_firing() {
    let (world, name) = (World::new(), "tick".parse().expect("legal"));
    let fire = async |id: &str, at: i64| {
        let (job, overlap) = (job(id), (Overlap::Skip, CatchUp::Skip));
        let fired = world.store.cron().fire(&name, second(at), overlap, Ok(&job), RETENTION.into());
        fired.await.expect("firing")
    };
    let a: hero::proto::job::JobId = "a".parse().expect("legal");
    assert_eq!(fire("a", 1).await, Fired::Job(a.clone()));
    assert_eq!(fire("b", 2).await, Fired::LeftOut(a.clone()));
    world.store.jobs().delete(&a, RETENTION).await.expect("deleting");
    world.accepts(&[job("a")]).await;
    assert_eq!(fire("b", 3).await, Fired::Job("b".parse().expect("legal")));
}

#[tokio::test]
async fn refused_periodic_job_is_reported_and_not_tried_again() {
    let world = World::new();
    let name = "tick".parse().expect("legal");
    world.redis.spoil(&keys::work("type:osis"));
    let fire = async |id: &str, at: i64| {
        let job = job(id);
        let fired = world.store.cron().fire(&name, second(at), ALLOW, Ok(&job), RETENTION.into());
        fired.await.expect("firing")
    };
    assert_eq!(fire("a", 1).await, Fired::Failed(keys::work("type:osis")));
    assert_eq!(fire("a", 1).await, Fired::Past);
    assert_eq!(world.field("a", "status"), None);
}

#[tokio::test]
async fn disabled_periodic_job_is_not_due_and_makes_up_for_nothing() {
    let world = World::new();
    let name: hero::proto::cron::CronName = "tick".parse().expect("legal");
    let enable =
        async |enabled| world.store.cron().enable(&name, enabled, "ann").await.expect("switching");
    let fire = async |id: &str, at: i64| {
        let job = job(id);
        let fired = world.store.cron().fire(&name, second(at), ALLOW, Ok(&job), RETENTION.into());
        fired.await.expect("firing")
    };
    fire("a", 1).await;
    assert!(enable(false).await && !enable(false).await);
    let state = world.store.cron().get(&name).await.expect("looking");
    assert_eq!(state.disabled.expect("it is disabled").by, "ann");
    assert_eq!(state.last.expect("it fired").id.as_str(), "a");
    // A supervisor that found it due before, and another that looks now.
    assert_eq!(fire("b", 2).await, Fired::Past);
    let (now, due) = world.store.cron().state([&name]).await.expect("looking");
    assert_eq!(due[0].due, now);
    assert!(enable(true).await && !enable(true).await);
    let (later, due) = world.store.cron().state([&name]).await.expect("looking");
    assert!(due[0].due > now && due[0].due <= later, "it counts from when it was enabled");
    assert_eq!(world.store.cron().get(&name).await.expect("looking").disabled, None);
    assert!(matches!(fire("c", 3).await, Fired::Job(_)));
    assert!(world.redis.ttl(&keys::cron("tick")) > 0, "it is bounded");
}

#[tokio::test]
async fn history_has_the_latest_firings_with_what_became_of_each() {
    let world = World::new();
    let name = "tick".parse().expect("legal");
    let fire = async |id: &str, at: i64, overlap| {
        let job = job(id);
        let fired = world.store.cron().fire(
            &name,
            second(at),
            (overlap, CatchUp::Skip),
            Ok(&job),
            RETENTION.into(),
        );
        fired.await.expect("firing")
    };
    assert_eq!(world.store.cron().firings(&name, FIRINGS_MAX).await.expect("looking"), []);
    for number in 1..=125 {
        fire(&format!("j{number}"), number, Overlap::Allow).await;
    }
    fire("k", 126, Overlap::Skip).await;
    fire("l", 127, Overlap::Replace).await;
    // It counts no firing twice.
    fire("l", 127, Overlap::Replace).await;
    let firings = world.store.cron().firings(&name, FIRINGS_MAX).await.expect("looking");
    assert_eq!(firings.len(), 100, "it is bounded");
    let seen = |at: usize| {
        let (firing, status) = &firings[at];
        (firing.did, firing.id.as_ref().map(ToString::to_string), firing.why.clone(), *status)
    };
    let text = |text: &str| Some(text.to_owned());
    let dispatched = Some("dispatched");
    assert_eq!(seen(0), (FiringOutcome::Fired, text("l"), text("replaced j125"), dispatched));
    let stopped = Some("error");
    assert_eq!(seen(1), (FiringOutcome::LeftOut, text("j125"), text("overlap"), stopped));
    assert_eq!(seen(2), (FiringOutcome::Fired, text("j125"), None, stopped));
    assert_eq!(seen(99).1, text("j28"));
    assert_eq!(firings[0].0.due.parse::<Timestamp>().expect("a time"), second(127));
    // What another program wrote there does not stop it.
    world.redis.set_field(&keys::cron("tick"), "history", "{");
    assert_eq!(world.store.cron().firings(&name, FIRINGS_MAX).await.expect("looking"), []);
    fire("m", 128, Overlap::Allow).await;
    assert_eq!(world.store.cron().firings(&name, FIRINGS_MAX).await.expect("looking").len(), 1);
}

#[tokio::test]
async fn firings_that_are_made_up_for_wait_for_each_other_and_later_ones_do_not_pile_up() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let name = "tick".parse().expect("legal");
    // The test uses the clock of its Redis.
    let minutes_ago = |minutes: i64| Timestamp::now() - SignedDuration::from_mins(minutes);
    let fire = async |id: &str, at: Timestamp| {
        let rules = (Overlap::Skip, CatchUp::All);
        let job = job(id);
        let fired = world.store.cron().fire(&name, at, rules, Ok(&job), RETENTION.into());
        fired.await.expect("firing")
    };
    let id = |text: &str| text.parse::<hero::proto::job::JobId>().expect("legal");
    let ends = async |text: &str| {
        world.claim(&life, 1).await;
        let done = Verdict::Finished { output: "".into(), exit_code: None };
        world.finish(&life, &id(text), done).await;
    };
    let (first, second, third) = (minutes_ago(30), minutes_ago(20), minutes_ago(10));
    assert_eq!(fire("a", first).await, Fired::Job(id("a")));
    assert_eq!(fire("b", second).await, Fired::Waits(id("a")));
    assert_eq!(fire("b", second).await, Fired::Waits(id("a")), "it is asked again");
    ends("a").await;
    assert_eq!(fire("b", second).await, Fired::Job(id("b")));
    assert_eq!(fire("c", third).await, Fired::Waits(id("b")));
    ends("b").await;
    assert_eq!(fire("c", third).await, Fired::Job(id("c")));
    // This one became due while the others waited: it is dropped as at any other time.
    let later = Timestamp::now() + SignedDuration::from_secs(1);
    assert_eq!(fire("d", later).await, Fired::LeftOut(id("c")));
    let left_out = world.redis.field(&keys::cron("tick"), "left_out");
    assert_eq!(left_out.as_deref(), Some("1"), "nobody has dropped a missed one");
    world.check();
}

#[tokio::test]
async fn missed_firings_that_are_all_made_up_for_do_not_replace_each_other() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let name = "tick".parse().expect("legal");
    let minutes_ago = |minutes: i64| Timestamp::now() - SignedDuration::from_mins(minutes);
    let fire = async |id: &str, at: Timestamp| {
        let rules = (Overlap::Replace, CatchUp::All);
        let job = job(id);
        world.store.cron().fire(&name, at, rules, Ok(&job), RETENTION.into()).await.expect("firing")
    };
    let id = |text: &str| text.parse::<hero::proto::job::JobId>().expect("legal");
    let second = minutes_ago(20);
    assert_eq!(fire("a", minutes_ago(30)).await, Fired::Job(id("a")));
    assert_eq!(fire("b", second).await, Fired::Waits(id("a")));
    world.claim(&life, 1).await;
    world.finish(&life, &id("a"), Verdict::Finished { output: "".into(), exit_code: None }).await;
    assert_eq!(fire("b", second).await, Fired::Job(id("b")));
    // One that was not missed replaces the last, as ever.
    assert_eq!(
        fire("c", Timestamp::now() + SignedDuration::from_secs(1)).await,
        Fired::Job(id("c"))
    );
    assert_eq!(world.field("b", "error").as_deref(), Some("replaced by job c"));
}

#[tokio::test]
async fn firing_whose_id_is_taken_gets_another() {
    let world = World::new();
    let name = "tick".parse().expect("legal");
    world.accepts(&[job("a")]).await;
    let job = job("a");
    let fired = world.store.cron().fire(&name, second(1), ALLOW, Ok(&job), RETENTION.into());
    let Fired::Job(id) = fired.await.expect("firing") else { panic!("it has not fired") };
    assert!(id.as_str().starts_with("a-"), "{id}");
    assert_eq!(world.work("type:osis"), ["a", id.as_str()]);
    let last = world.store.cron().get(&name).await.expect("looking").last.expect("it fired");
    assert_eq!(last.id, id);
    let again = world.store.cron().fire(&name, second(1), ALLOW, Ok(&job), RETENTION.into());
    assert_eq!(again.await.expect("firing"), Fired::Past);
    world.check();
}

#[tokio::test]
async fn end_of_a_job_is_noted_in_its_periodic_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let name: hero::proto::cron::CronName = "tick".parse().expect("legal");
    let (now, marks) = world.store.cron().state([&name]).await.expect("looking");
    let overdue = OverdueTime { twice: Duration::from_mins(10), at: now };
    let noted = world.store.cron().note_overdue(&name, marks[0].from, overdue);
    assert!(noted.await.expect("noting"));
    let end = async |id: &str, verdict: Verdict| {
        let job = job(id);
        let fired =
            world.store.cron().fire(&name, Timestamp::now(), ALLOW, Ok(&job), RETENTION.into());
        assert!(matches!(fired.await.expect("firing"), Fired::Job(_)));
        world.claim(&life, 1).await;
        world.finish(&life, &id.parse().expect("legal"), verdict).await;
        world.store.cron().ends(&name).await.expect("looking")
    };
    let error =
        |text: &str| Verdict::Error { error: text.to_owned(), exit_code: None, dead: false };
    let ends = end("a", error("no such host")).await;
    assert_eq!(ends.succeeded, None);
    let (_, id, why) = ends.failed.expect("it failed");
    assert_eq!((id.as_str(), why.as_str()), ("a", "no such host"));
    assert_eq!(ends.overdue, Some(now), "a failure moves nothing");
    let ends = end("b", Verdict::Finished { output: "".into(), exit_code: None }).await;
    let (at, id) = ends.succeeded.expect("it succeeded");
    assert_eq!(id, "b");
    let moved = at + Duration::from_mins(10) + ends.took.expect("it ran") + Duration::from_mins(1);
    assert_eq!(ends.overdue, Some(moved));
    let ends = end("c", error("stopped")).await;
    assert_eq!(ends.failed.expect("the first").1, "a", "a person stopped it");
    // The mark is that of an older success.
    let noted = world.store.cron().note_overdue(&name, marks[0].from, overdue);
    assert!(!noted.await.expect("noting"));
    let fired = world.store.cron().fired().await.expect("looking");
    assert_eq!((fired.len(), fired[0].name == name, fired[0].is_running), (1, true, false));
    assert_eq!(world.field("b", "cron").as_deref(), Some("tick"));
    world.check();
}

#[tokio::test]
async fn end_of_a_job_that_a_program_gave_to_a_periodic_job_is_not_noted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let name: hero::proto::cron::CronName = "tick".parse().expect("legal");
    world.store.cron().state([&name]).await.expect("looking");
    let end = async |id: &str| {
        world.accepts(&[job(id)]).await;
        world.redis.set_field(&keys::job(id), "cron", "tick");
        world.claim(&life, 1).await;
        let done = Verdict::Finished { output: "".into(), exit_code: None };
        world.finish(&life, &id.parse().expect("legal"), done).await;
        world.store.cron().ends(&name).await.expect("looking").succeeded.map(|(_, id)| id.clone())
    };
    // A firing that it kept from its key names it.
    let mut holder = job("ann-0");
    holder.spec.unique_key = Some("k".parse().expect("legal"));
    world.accepts(std::slice::from_ref(&holder)).await;
    let mut next = job("cron-tick-20260101T000000Z");
    next.spec.unique_key.clone_from(&holder.spec.unique_key);
    let fired =
        world.store.cron().fire(&name, Timestamp::now(), ALLOW, Ok(&next), RETENTION.into());
    assert_eq!(fired.await.expect("firing"), Fired::LeftOut(holder.id.clone()));
    world.redis.set_field(&keys::job("ann-0"), "cron", "tick");
    world.claim(&life, 1).await;
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &holder.id, done).await;
    assert_eq!(world.store.cron().ends(&name).await.expect("looking").succeeded, None);
    for forged in ["ann-1", "cron-tick", "cron-tick-1", "cron-tick-a-20261122T041700Z"] {
        assert_eq!(end(forged).await, None, "{forged}");
    }
    // Ids that only a supervisor and a backfill give.
    for own in ["cron-tick-20261122T041700Z", "cron-tick-20261122T041700Z-fill"] {
        assert_eq!(end(own).await.as_deref(), Some(own));
    }
    world.check();
}

#[tokio::test]
async fn run_outside_of_the_schedule_is_recorded_though_it_ended_before_its_record() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let name: hero::proto::cron::CronName = "tick".parse().expect("legal");
    let own = world.started(&life, "a").await;
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &own, done).await;
    world.store.cron().note_run(&name, &own, false).await.expect("noting");
    let ends = world.store.cron().ends(&name).await.expect("looking");
    assert_eq!(ends.succeeded.expect("it succeeded").1, "a");
}

#[tokio::test]
async fn missed_firings_are_counted_by_one_supervisor() {
    let world = World::new();
    let name: hero::proto::cron::CronName = "tick".parse().expect("legal");
    let job = job("a");
    let fired = world.store.cron().fire(&name, second(1), ALLOW, Ok(&job), RETENTION.into());
    fired.await.expect("firing");
    let missed = MissedFirings { latest: second(4), number: 3, is_exact: true };
    let note = async || world.store.cron().note_missed(&name, second(1), missed).await;
    assert!(note().await.expect("noting"));
    assert!(!note().await.expect("noting"), "another supervisor noted them");
    assert_eq!(world.store.cron().ends(&name).await.expect("looking").missed, 3);
    let firings = world.store.cron().firings(&name, FIRINGS_MAX).await.expect("looking");
    let (firing, _) = &firings[0];
    assert_eq!((firing.did, firings.len()), (FiringOutcome::Missed, 2));
    assert_eq!(firing.why.as_deref(), Some("3 firings: no supervisor ran"));
    let many = MissedFirings { latest: second(9), number: 5, is_exact: false };
    assert!(world.store.cron().note_missed(&name, second(4), many).await.expect("noting"));
    let firings = world.store.cron().firings(&name, FIRINGS_MAX).await.expect("looking");
    assert_eq!(firings[0].0.why.as_deref(), Some("5 firings or more: no supervisor ran"));
}
