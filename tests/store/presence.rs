//! Identities: taken, kept, given up, and refused to a second process.

use std::time::Duration;

use hero::proto::job::BootId;
use hero::proto::message::Presence;
use hero::store::{Appearance, PresenceOf, Renewal, Verdict};

use crate::support::{Life, World, keys, script_type, wait_until};

const LEASE: Duration = Duration::from_secs(15);

fn key() -> String {
    keys::presence("osis:default:1")
}

async fn appear(world: &World, life: &Life, replacing: Option<&str>) -> Appearance {
    let appeared =
        world.store.actors().appear(&life.actor, &life.presence(), LEASE, replacing).await;
    appeared.expect("appearing")
}

async fn beat(world: &World, life: &Life) -> bool {
    let presence = PresenceOf { actor: life.actor.clone(), presence: life.presence() };
    let renewed = world.store.actors().heartbeat(&life.boot, LEASE, &[presence], &[]).await;
    renewed.expect("beating") != Renewal::Lost
}

fn boot_of_presence(world: &World) -> Option<BootId> {
    let text: Option<String> = world.redis.get(&key());
    text.and_then(|text| Presence::parse(text.as_bytes()).expect("a legible presence").boot_id)
}

#[tokio::test]
async fn an_actor_that_appeared_is_present_for_fifteen_seconds() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    assert_eq!(appear(&world, &life, None).await, Appearance::Taken);
    assert_eq!(boot_of_presence(&world), Some(life.boot.clone()));
    let ttl_s = world.redis.ttl(&key());
    assert!((10..=15).contains(&ttl_s), "{ttl_s}");
    let actors = world.store.actors().list(None).await.expect("listing");
    assert_eq!(actors, [PresenceOf { actor: life.actor.clone(), presence: life.presence() }]);
    let sal = script_type("sal");
    assert!(world.store.actors().list(Some(&sal)).await.expect("listing").is_empty());
}

#[tokio::test]
async fn a_second_process_with_a_live_identity_is_refused_and_changes_nothing() {
    let (world, one, two) = (World::new(), Life::of("osis-default-1"), Life::of("osis-default-1"));
    appear(&world, &one, None).await;
    let held = Appearance::Held(one.presence().to_json());
    assert_eq!(appear(&world, &two, None).await, held);
    assert_eq!(appear(&world, &two, Some("somebody else's")).await, held);
    assert_eq!(boot_of_presence(&world), Some(one.boot.clone()));
    assert!(!beat(&world, &two).await, "a boot that did not appear has no lease");
    assert_eq!(boot_of_presence(&world), Some(one.boot.clone()));
    assert_eq!(appear(&world, &one, None).await, Appearance::Taken, "its own it may take again");
}

#[tokio::test]
async fn the_presence_of_a_process_that_is_gone_can_be_replaced_as_it_was_read() {
    let (world, one, two) = (World::new(), Life::of("osis-default-1"), Life::of("osis-default-1"));
    appear(&world, &one, None).await;
    let Appearance::Held(read) = appear(&world, &two, None).await else {
        panic!("it is held");
    };
    assert_eq!(appear(&world, &two, Some(&read)).await, Appearance::Taken);
    assert_eq!(boot_of_presence(&world), Some(two.boot));
}

#[tokio::test]
async fn a_heartbeat_extends_the_presence_and_the_lease() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, None).await;
    let lease = || world.redis.score(&keys().boots(), life.boot.as_str()).expect("a lease");
    let before = lease();
    world.redis.run(&format!("EXPIRE {} 1", key()));
    assert!(beat(&world, &life).await);
    assert!(lease() > before);
    let ttl_s = world.redis.ttl(&key());
    assert!(ttl_s > 10, "{ttl_s}");
}

#[tokio::test]
async fn a_boot_that_was_declared_dead_learns_it_from_its_heartbeat() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, None).await;
    world.redis.delete(&keys().boots());
    world.redis.delete(&key());
    assert!(!beat(&world, &life).await);
    assert_eq!(boot_of_presence(&world), None, "the dead show no presence");
}

#[tokio::test]
async fn boot_whose_name_was_taken_learns_it_and_leaves_the_name_alone() {
    let (world, one, two) = (World::new(), Life::of("osis-default-1"), Life::of("osis-default-1"));
    appear(&world, &one, None).await;
    world.redis.delete(&key());
    appear(&world, &two, None).await;
    assert!(!beat(&world, &one).await, "its lease had not run out, but its name is another's");
    assert_eq!(boot_of_presence(&world), Some(two.boot.clone()));
    assert!(beat(&world, &two).await);
}

#[tokio::test]
async fn an_actor_that_disappears_is_gone_at_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, None).await;
    let gone = world.store.actors().disappear(&life.boot, std::slice::from_ref(&life.actor)).await;
    assert_eq!(gone.expect("disappearing"), 0);
    assert!(world.store.actors().list(None).await.expect("listing").is_empty());
    assert!(world.redis.all("BOOTS").is_empty() && world.redis.all("RUNNING").is_empty());
    assert!(!beat(&world, &life).await);
}

#[tokio::test]
async fn a_boot_that_leaves_jobs_behind_keeps_its_lease_for_them() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, None).await;
    let own = world.started(&life, "a").await;
    let actors = [life.actor.clone()];
    assert_eq!(world.store.actors().disappear(&life.boot, &actors).await.expect("disappearing"), 1);
    assert_eq!(boot_of_presence(&world), None);
    assert!(world.redis.score(&keys().boots(), life.boot.as_str()).is_some());
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &own, done).await;
    assert_eq!(world.store.actors().disappear(&life.boot, &actors).await.expect("disappearing"), 0);
}

#[tokio::test]
async fn identity_taken_over_by_another_boot_is_left_alone() {
    let (world, one, two) = (World::new(), Life::of("osis-default-1"), Life::of("osis-default-1"));
    appear(&world, &one, None).await;
    let held = one.presence().to_json();
    appear(&world, &two, Some(&held)).await;
    let actors = [one.actor.clone()];
    world.store.actors().disappear(&one.boot, &actors).await.expect("disappearing");
    assert_eq!(boot_of_presence(&world), Some(two.boot));
}

#[tokio::test]
async fn unreadable_foreign_presence_counts_as_held_and_is_not_listed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.run(&format!("SET {} nonsense", key()));
    world.redis.put(&keys().actors(), 1, "osis:default:1");
    world.redis.put(&keys().actors(), 1, "nonsense");
    assert_eq!(appear(&world, &life, None).await, Appearance::Held("nonsense".to_owned()));
    assert!(world.store.actors().list(None).await.expect("listing").is_empty());
}

#[tokio::test]
async fn copy_of_a_process_loses_the_lease_by_the_heartbeat_of_the_other() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let with = |beat: &str| {
        let presence = Presence { beat: beat.to_owned(), ..life.presence() };
        PresenceOf { actor: life.actor.clone(), presence }
    };
    let first = with("a").presence;
    world.store.actors().appear(&life.actor, &first, LEASE, None).await.expect("appearing");
    let beat = async |beat: &str, known: &[&str]| {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let renewed =
            world.store.actors().heartbeat(&life.boot, LEASE, &[with(beat)], &known).await;
        renewed.expect("beating") != Renewal::Lost
    };
    assert!(beat("b", &["a", "b"]).await);
    // The machine was cloned before: its copy knows of the first beat.
    assert!(!beat("c", &["a", "c"]).await, "the name belongs to the other process");
    assert!(beat("d", &["b", "d"]).await);
    // An answer may be lost.
    assert!(beat("e", &["d", "e"]).await);
    assert!(beat("f", &["d", "e", "f"]).await);
}

#[tokio::test]
async fn actor_listens_if_something_takes_its_control_messages_again_and_again() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let list = keys::control("osis:default:1");
    world.redis.push(&list, &["of before"]);
    assert!(!world.store.actors().is_listening(&life.actor).await.expect("asking"));
    assert_eq!(world.redis.list(&list), ["of before"], "it leaves nothing");
    world.redis.delete(&list);
    // The connection of a dead process takes one.
    let mut link = world.redis.link();
    let taker = std::thread::spawn(move || {
        redis::cmd("BLPOP").arg(list).arg(20).query::<(String, String)>(&mut link)
    });
    let blocked = || world.redis.ask::<String>("INFO clients").contains("blocked_clients:1");
    wait_until("it waits", blocked);
    assert!(!world.store.actors().is_listening(&life.actor).await.expect("asking"));
    taker.join().expect("a thread").expect("it took a message");
}
