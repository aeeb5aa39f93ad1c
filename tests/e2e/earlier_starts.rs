//! The start of an actor whose presence is there already: of its life before a power cut, or of a clone of the machine. And
//! what a later version has written, as after a downgrade.

use serde_json::{Value, json};

use crate::support::{Done, Hero, Redis, keys, wait_until};

/// Leaves the presence of an actor on a machine of this name that was started another time, for so many seconds.
fn leave_presence(redis: &Redis, mut presence: Value, heartbeat: &str, seconds: u64) {
    presence["machine"] = json!("another start");
    presence["last_heartbeat"] = json!(heartbeat);
    redis.ask_with::<(), _>(
        &format!("SETEX {} {seconds}", keys::presence("osis:default:1")),
        &[presence.to_string()],
    );
}

/// Returns the presence of an actor that has died.
fn presence_of_dead(hero: &Hero, redis: &Redis) -> Value {
    let mut actor = hero.actor("osis-default-1").start();
    let text: String = redis.ask(&format!("GET {}", keys::presence("osis:default:1")));
    actor.kill();
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn actor_waits_for_the_presence_that_a_power_cut_has_left() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let presence = presence_of_dead(&hero, &redis);
    leave_presence(&redis, presence, "2026-01-01T00:00:00.000Z", 2);
    let actor = hero.actor("osis-default-1").start();
    assert!(actor.err().contains("waiting until its presence expires"), "{}", actor.err());
    hero.run(&["exec", "-t", "osis", "-e", "40 + 2"]).code(0).stdout("42\n");
}

/// Starts an actor whose name a clone of this machine holds. Returns the words of its error.
fn refusal_by_a_clone(hostname: Option<&str>) -> (Value, Done) {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut presence = presence_of_dead(&hero, &redis);
    if let Some(hostname) = hostname {
        presence["hostname"] = json!(hostname);
    }
    leave_presence(&redis, presence.clone(), "2026-01-01T00:00:00.000Z", 60);
    let actor = hero.actor("osis-default-1").begin();
    wait_until("the actor waits", || actor.err().contains("waiting until its presence expires"));
    leave_presence(&redis, presence.clone(), "2026-01-01T00:00:05.000Z", 60);
    (presence, actor.ends())
}

#[test]
fn clone_of_a_machine_is_reported_with_both_sightings() {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let own = nix::unistd::gethostname().expect("a name of this machine");
    let own = own.to_string_lossy();
    // With the machine id alone, and with the name too.
    for hostname in [Some("copied"), None] {
        let (presence, refused) = refusal_by_a_clone(hostname);
        let there = hostname.unwrap_or(&own);
        refused
            .code(73)
            .says("is already running on a clone of this machine")
            .says(&format!("there {there} (boot another, pid {} since ", presence["pid"]))
            .says("heartbeat 2026-01-01T00:00:05.000Z")
            .says(&format!("; here {own} (boot {}, pid ", &boot[..8]));
    }
}

#[test]
fn job_and_presence_that_a_later_version_wrote_are_read_and_kept() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut presence = presence_of_dead(&hero, &redis);
    presence["version"] = json!("9.0.0");
    presence["of_a_later_version"] = json!({ "a": [1] });
    leave_presence(&redis, presence, &jiff::Timestamp::now().to_string(), 60);
    assert!(hero.run(&["actor", "list"]).code(0).stdout.contains("9.0.0"));
    redis.delete(&keys::presence("osis:default:1"));

    hero.run(&["submit", "-t", "osis", "--id", "a", "--retries", "1", "-e", "40 + 2"]).code(0);
    redis.set_field(&keys::job("a"), "of_a_later_version", r#"{"a":[1]}"#);
    let backup = redis.folder().join("backup").display().to_string();
    hero.run(&["backup", &backup]).code(0);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "a"]).code(0).stdout("42\n");
    let shown = hero.run(&["job", "show", "--json", "a"]).code(0).stdout;
    assert!(shown.contains("of_a_later_version"), "{shown}");
    hero.run(&["job", "delete", "a"]).code(0);
    hero.run(&["restore", &backup]).code(0);
    let kept = redis.field(&keys::job("a"), "of_a_later_version");
    assert_eq!(kept.as_deref(), Some(r#"{"a":[1]}"#));
}

#[test]
fn machines_with_one_machine_id_are_reported() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut presence = presence_of_dead(&hero, &redis);
    presence["labels"]["machine"] = json!("0123456789abcdef");
    presence["hostname"] = json!("one");
    presence["last_heartbeat"] = json!("2100-01-01T00:00:00.000Z");
    let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).expect("a time");
    for (place, boot) in ["0a1b2c3d-1 pid:[1]", "4e5f6a7b-2 pid:[1]"].into_iter().enumerate() {
        let actor = format!("osis:default:{}", place + 1);
        presence["machine"] = json!(boot);
        redis.ask_with::<(), _>("SET", &[keys::presence(&actor), presence.to_string()]);
        redis.put(&keys::prefix("ACTORS"), now, &actor);
    }
    let (pid, since) = (&presence["pid"], presence["started_at"].as_str().expect("a time"));
    let one = format!("one (boot 0a1b2c3d, pid {pid} since {since})");
    let other = format!("one (boot 4e5f6a7b, pid {pid} since {since})");
    let problem =
        format!("{one} and {other} have one machine id: the label machine = \"0123456789abcdef\"");
    for command in [&["status", "--check"][..], &["doctor"]] {
        let told = hero.run(command).stdout;
        assert!(told.contains(&problem), "{told}");
    }
}

#[test]
fn redis_with_too_many_connections_is_reported_as_that() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _held = redis.link();
    redis.run("CONFIG SET maxclients 1");
    let refused = hero.run(&["queue", "list"]);
    assert!(refused.stderr.contains("maxclients"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("roken pipe"), "{}", refused.stderr);
}
