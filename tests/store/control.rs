//! Control messages, pings, and waiting for work.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::JobId;
use hero::proto::message::Control;
use hero::store::{LogEntry, Verdict, Woken, WorkKind};

use crate::support::{Life, RETENTION, World, job, keys, line, queue, wait_until};

/// The wake list of a target.
fn wake(target: &str) -> String {
    keys().wake(&queue(target).target)
}

#[tokio::test]
async fn a_message_for_a_type_reaches_each_of_its_live_actors_once() {
    let world = World::new();
    let lives = ["osis-default-1", "osis-io-2", "sal-default-1"].map(Life::of);
    for life in &lives {
        let appeared =
            world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
        appeared.expect("appearing");
    }
    for message in [Control::Drain, Control::Resume] {
        world.redis.push(&keys::control_of_type("osis"), &[message.to_json()]);
    }
    assert_eq!(
        world
            .store
            .actors()
            .fan_out(RETENTION, RETENTION, None)
            .await
            .expect("handing on")
            .messages,
        2
    );
    assert_eq!(
        world
            .store
            .actors()
            .fan_out(RETENTION, RETENTION, None)
            .await
            .expect("handing on")
            .messages,
        0
    );
    for (list, expected) in [
        (keys::control("osis:default:1"), vec![Control::Drain, Control::Resume]),
        (keys::control("osis:io:2"), vec![Control::Drain, Control::Resume]),
        (keys::control("sal:default:1"), Vec::new()),
        (keys::control_of_type("osis"), Vec::new()),
    ] {
        let messages = world.redis.list(&list);
        let messages: Vec<Control> = messages
            .iter()
            .map(|message| Control::parse(message.as_bytes()).expect("a legible message"))
            .collect();
        assert_eq!(messages, expected, "{list}");
    }
}

#[tokio::test]
async fn an_actor_that_has_not_been_heard_of_gets_no_message() {
    let world = World::new();
    let life = Life::of("osis-default-1");
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    world.redis.put(&keys().actors(), 1, "osis:default:1");
    world.redis.push(&keys::control_of_type("osis"), &[Control::Drain.to_json()]);
    assert_eq!(
        world
            .store
            .actors()
            .fan_out(RETENTION, RETENTION, None)
            .await
            .expect("handing on")
            .messages,
        1
    );
    assert!(world.redis.list(&keys::control("osis:default:1")).is_empty());
}

#[tokio::test]
async fn a_message_for_a_group_reaches_the_live_actors_of_the_group_alone() {
    let world = World::new();
    for unit in ["osis-io-1", "osis-io-2", "osis-default-1", "sal-io-1"] {
        let life = Life::of(unit);
        let appeared =
            world.store.actors().appear(&life.actor, &life.presence(), RETENTION, None).await;
        appeared.expect("appearing");
    }
    let list = keys::control("osis:io:1").replace(":inst:1", "");
    world.redis.push(&list, &["drain"]);
    let looked = world.store.schedule().plan().await.expect("looking");
    assert!(looked.work.contains(&WorkKind::Control), "no supervisor would look at the list");
    assert_eq!(
        world
            .store
            .actors()
            .fan_out(RETENTION, RETENTION, None)
            .await
            .expect("handing on")
            .messages,
        1
    );
    for (actor, told) in
        [("osis:io:1", 1), ("osis:io:2", 1), ("osis:default:1", 0), ("sal:io:1", 0)]
    {
        assert_eq!(world.redis.list(&keys::control(actor)).len(), told, "{actor}");
    }
    assert!(world.redis.list(&list).is_empty());
}

#[tokio::test]
async fn a_stop_for_a_type_or_group_without_a_live_actor_is_done_at_once() {
    let world = World::new();
    let life = Life::of("osis-io-1");
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    // Its last heartbeat is long ago.
    world.redis.put(&keys().actors(), 1, "osis:io:1");
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    world.redis.push(&keys::control_of_type("osis"), &["a", r#"{"cmd":"stop","job_id":"b"}"#, "x"]);
    let list = keys::control("osis:io:1").replace(":inst:1", "");
    world.redis.push(&list, &["c", "drain"]);
    assert_eq!(
        world
            .store
            .actors()
            .fan_out(RETENTION, RETENTION, None)
            .await
            .expect("handing on")
            .messages,
        5
    );
    for id in ["a", "b", "c"] {
        assert_eq!(world.field(id, "error").as_deref(), Some("stopped"), "{id}");
    }
    assert!(world.redis.list(&list).is_empty());
}

#[tokio::test]
async fn a_stop_for_foreign_actors_is_never_a_bare_word() {
    let world = World::new();
    let presence = keys::presence("osis:default:7");
    world.redis.ask_with::<redis::Value, _>("SET", &[presence.as_str(), "{}"]);
    world.redis.put(&keys().foreign_actors(), 1, "osis:default:7");
    for id in ["shutdown", "a"] {
        world.redis.set_job(id, "script 1 script_type osis status started");
        let id: JobId = id.parse().expect("legal");
        world.store.jobs().stop(&id, RETENTION, None).await.expect("stopping");
    }
    let said = world.redis.list(&keys::control("osis:default:7"));
    assert_eq!(said.len(), 2, "{said:?}");
    let stop = Control::Stop { job_id: "shutdown".parse().expect("legal") };
    assert_eq!((Control::parse(said[0].as_bytes()), said[1].as_str()), (Ok(stop), "a"));
}

#[tokio::test]
async fn control_list_without_a_reader_expires_and_is_bounded() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.store.jobs().stop(&own, RETENTION, None).await.expect("stopping");
    world.store.actors().send(&life.actor, &Control::Drain).await.expect("telling");
    let list = keys::control("osis:default:1");
    assert_eq!(world.redis.list(&list).len(), 2);
    let ttl_s = world.redis.ttl(&list);
    assert!((1..=86_400).contains(&ttl_s), "{ttl_s}");
}

#[tokio::test]
async fn a_ping_is_answered_into_reply_lists_alone() {
    let world = World::new();
    let own = keys::reply("me");
    assert!(world.store.actors().pong(&own, "pong").await.expect("answering"));
    assert_eq!(world.redis.list(&own), ["pong"]);
    assert!(world.redis.ttl(&own) > 0);
    let (others, longer) = (format!("qa_{own}"), format!("{own}:b"));
    for list in [keys::work("type:osis"), keys::job("a"), others, longer] {
        assert!(!world.store.actors().pong(&list, "pong").await.expect("answering"), "{list}");
    }
    assert_eq!(world.redis.keys("").len(), 1);
}

#[tokio::test]
async fn a_wait_brings_the_first_entry_of_the_first_list_that_has_one() {
    let world = World::new();
    let lists = ["type:a", "type:b"].map(keys::work);
    world.redis.push(&lists[1], &["two", "three"]);
    let mut blocking = world.store.blocking();
    let woken = blocking.pop(&lists, Duration::from_secs(20)).await.expect("waiting");
    let expected = Woken { list: lists[1].clone(), entry: b"two".to_vec() };
    assert_eq!(woken.as_ref(), Some(&expected));
    let none = blocking.pop(&lists[..1], Duration::from_millis(1)).await.expect("waiting");
    assert_eq!(none, None);
}

#[tokio::test]
async fn a_token_is_passed_on_once_and_a_control_message_goes_back() {
    let world = World::new();
    let token = Woken { list: wake("type:osis"), entry: b"1".to_vec() };
    let message = Woken { list: keys::control("osis:default:1"), entry: b"one".to_vec() };
    for woken in [&token, &token, &message] {
        world.store.jobs().pass_on(woken).await.expect("passing on");
    }
    assert_eq!(world.redis.list(&token.list).len(), 1, "a wake list holds one token at most");
    assert_eq!(world.redis.list(&message.list), ["one"]);
}

#[tokio::test]
async fn whatever_makes_a_job_ready_wakes_one_actor_of_its_target() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let tokens = || world.redis.list(&wake("type:osis")).len();
    let urgent = JobBuilder::new("osis", "1").id("urgent").priority(0).build().expect("legal");
    world.accepts(&[job("a"), job("b"), urgent]).await;
    assert_eq!(tokens(), 1, "of any priority");
    world.redis.pop(&wake("type:osis"));
    let first = world.claim(&life, 1).await;
    assert_eq!(tokens(), 1, "a claim that leaves jobs behind passes it on");
    world.redis.pop(&wake("type:osis"));
    world.claim(&life, 9).await;
    assert_eq!(tokens(), 0, "nothing is left");
    assert_eq!(world.give_back(&life, &[(first.attempts[0].id.clone(), None)]).await, 1);
    assert_eq!(tokens(), 1);
    world.redis.pop(&wake("type:osis"));
    world.redis.set_job("raw", "script 1 status dispatched");
    world.redis.push(&keys::work("type:osis"), &["raw"]);
    assert_eq!(tokens(), 0, "a program knows no tokens");
    assert_eq!(world.adopt(&keys::work("type:osis")).await.jobs, 1);
    assert_eq!(tokens(), 1);
}

#[tokio::test]
async fn a_wait_can_be_woken_from_another_connection() {
    let world = World::new();
    let mut blocking = world.store.blocking();
    let waker = blocking.waker();
    world.store.jobs().wake(&waker).await.expect("waking nobody");
    let waiting = tokio::spawn(async move {
        blocking.pop(&[keys::work("type:a")], Duration::from_mins(10)).await
    });
    let blocked = || world.redis.ask::<String>("INFO clients").contains("blocked_clients:1");
    while !blocked() {
        tokio::task::yield_now().await;
    }
    world.store.jobs().wake(&waker).await.expect("waking");
    assert_eq!(waiting.await.expect("no panic").expect("waiting"), None);
    wait_until("nobody waits", || !blocked());
}

#[tokio::test]
async fn log_lines_are_read_in_order_and_followed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let lines = [line(1, "one"), line(2, "two \u{e9}")];
    let lines = lines.iter().map(|line| (&own, line));
    world.store.logs().append(&life.boot, lines, RETENTION).await.expect("logging");
    let read = world.store.logs().read(&own, None, 9).await.expect("reading");
    let shown: Vec<(u8, &str)> = read.iter().map(|line| (line.fd, line.line.as_str())).collect();
    assert_eq!(shown, [(1, "one"), (2, "two \u{e9}")]);
    let rest = world.store.logs().read(&own, Some(&read[0].id), 9).await.expect("reading");
    assert_eq!(rest, read[1..]);
    let mut link = world.store.blocking();
    let wait = Duration::from_millis(1);
    let followed = world.store.logs().follow(&mut link, &own, None, wait).await.expect("following");
    assert_eq!(followed, read);
    let last = Some(read[1].id.as_str());
    let none = world.store.logs().follow(&mut link, &own, last, wait).await.expect("following");
    assert!(none.is_empty());
    assert!(world.redis.ttl(&keys::log("a")) > 0);
    world
        .store
        .logs()
        .append(&life.boot, [(&own, &line(1, "three"))], RETENTION)
        .await
        .expect("logging");
    let more = world.store.logs().follow(&mut link, &own, last, wait).await.expect("following");
    assert_eq!(more[0].line, "three");
    // The state of the job must not matter.
    world.accepts(&[job("b")]).await;
}

#[tokio::test]
async fn progress_is_in_the_log_and_only_of_an_owned_job_in_the_hash() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let progress = |fraction| LogEntry::Progress { fraction, text: "at it".to_owned() };
    let entries = [line(1, "one"), progress(0.123_456), progress(0.5)];
    // After Redis has forgotten its scripts.
    world.redis.run("SCRIPT FLUSH");
    let logged = entries.iter().map(|entry| (&own, entry));
    world.store.logs().append(&life.boot, logged, RETENTION).await.expect("logging");
    let read = world.store.logs().read(&own, None, 9).await.expect("reading");
    let shown: Vec<_> = read.iter().map(|l| (l.fd, l.line.as_str(), l.progress)).collect();
    let expected = [(1, "one", None), (3, "at it", Some(0.1235)), (3, "at it", Some(0.5))];
    assert_eq!(shown, expected);
    let field = |id: &str, name: &str| world.redis.field(&keys::job(id), name);
    assert_eq!(field("a", "progress").as_deref(), Some("0.5"));
    assert_eq!(field("a", "progress_text").as_deref(), Some("at it"));
    // A late report creates no hash and changes none.
    let gone: JobId = "gone".parse().expect("legal");
    let other = Life::of("osis-default-2");
    let late = [(&gone, &progress(0.9)), (&own, &progress(0.9))];
    world.store.logs().append(&other.boot, late, RETENTION).await.expect("logging");
    assert_eq!(field("gone", "progress"), None);
    assert_eq!(field("a", "progress").as_deref(), Some("0.5"));
}

#[tokio::test]
async fn the_progress_of_an_attempt_goes_with_it() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let progress = LogEntry::Progress { fraction: 0.5, text: String::new() };
    world.store.logs().append(&life.boot, [(&own, &progress)], RETENTION).await.expect("logging");
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &own, done).await;
    assert!(world.field("a", "progress").is_some());
    world.store.jobs().retry(&own).await.expect("running it again");
    assert_eq!(world.field("a", "progress"), None);
    assert_eq!(world.field("a", "progress_text"), None);
}

#[tokio::test]
async fn a_stop_for_a_type_is_written_on_the_running_job_before_its_actors_are_notified() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    world.started(&life, "a").await;
    world.redis.push(&keys::control_of_type("osis"), &["a", "nobody"]);
    assert_eq!(
        world
            .store
            .actors()
            .fan_out(RETENTION, RETENTION, None)
            .await
            .expect("handing on")
            .messages,
        2
    );
    assert_eq!(world.field("a", "stop_requested").as_deref(), Some("1"));
    assert_eq!(world.field("nobody", "stop_requested"), None);
}
