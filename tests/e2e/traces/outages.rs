//! A collector that is away, refuses, hangs or is not trusted: jobs go on, and what is lost is counted.

use std::collections::BTreeSet;
use std::path::Path;

use nix::sys::signal::Signal;

use super::collector::{sending, spans};
use crate::notify::Receiver;
use crate::support::{Authority, Hero, Process, Redis, Served, keys, wait_until};

/// Returns how many spans of a service were dropped, as the metrics tell.
fn dropped(hero: &Hero, service: &str) -> u64 {
    let text = hero.run(&["metrics"]).code(0).stdout;
    let name = format!("hero_trace_spans_dropped_total{{service=\"{service}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&name));
    value.unwrap_or_else(|| panic!("no {name}: {text}")).parse().expect("a number")
}

/// Returns how often the log has a text.
fn said(actor: &Process, text: &str) -> usize {
    actor.err().lines().filter(|line| line.contains(text)).count()
}

/// Runs so many jobs at once.
fn run_batch(hero: &Hero, number: usize) {
    let jobs = "{\"script_type\":\"osis\",\"script\":\"1\"}\n".repeat(number);
    let done = hero.run_with_input(&["submit", "--batch", "-"], &jobs).code(0);
    hero.run(&["graph", "wait", done.stdout.trim()]).code(0);
}

const LOST: &str = "cannot send spans to 127.0.0.1";
const BACK: &str = "takes them again";

#[test]
fn collector_that_hangs_delays_no_job_and_no_heartbeat_and_keeps_few_spans_waiting() {
    const JOBS: usize = 1500;
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    receiver.answers("hang");
    let plain = Hero::on(&redis);
    let hero = sending(Hero::on(&redis), &receiver);
    let actor = hero.actor("osis-default-1").start();
    run_batch(&plain, JOBS);
    assert_eq!(spans(&receiver).len(), 0, "no request was answered");
    let beat = || -> String {
        let actor = "osis:default:1".parse().expect("an actor");
        redis.ask(&format!("GET {}", keys::keys().presence(&actor)))
    };
    let before = beat();
    wait_until("the heart beats", || beat() != before);
    // Two thousand wait, and those of one request are on their way.
    let lost = 3 * JOBS as u64 - 2048 - 256;
    wait_until("all others are dropped and counted", || dropped(&plain, "hero-actor") >= lost);
    wait_until("the outage is told", || said(&actor, LOST) == 1);
    assert_eq!(said(&actor, "no answer within 5s"), 1, "{}", actor.err());
    receiver.answers("200");
    wait_until("it takes spans again", || said(&actor, BACK) == 1);
    wait_until("it got some", || !spans(&receiver).is_empty());
    assert_eq!(said(&actor, LOST), 1, "{}", actor.err());
}

#[test]
fn collector_that_refuses_is_reported_once_for_each_outage_and_the_loss_is_counted() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = sending(Hero::on(&redis), &receiver);
    let plain = Hero::on(&redis);
    let actor = hero.actor("osis-default-1").start();
    let exec = |number: u64| {
        let before = dropped(&plain, "hero-actor");
        plain.run(&["exec", "-t", "osis", "-e", "42"]).code(0).stdout("42\n");
        wait_until("the loss is counted", || dropped(&plain, "hero-actor") == before + number);
    };
    for outage in 1..=2 {
        receiver.answers("503");
        exec(3);
        exec(3);
        assert_eq!((said(&actor, LOST), said(&actor, "503 Service Unavailable")), (outage, outage));
        receiver.answers("200");
        exec(0);
        wait_until("the end of the outage is told", || said(&actor, BACK) == outage);
        assert_eq!(said(&actor, LOST), outage, "{}", actor.err());
    }
    assert_eq!(spans(&receiver).len(), 18);
}

#[test]
fn collector_that_keeps_a_part_of_the_spans_reports_how_many_are_lost() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    receiver.answers("200 {\"partialSuccess\":{\"rejectedSpans\":\"2\"}}");
    let plain = Hero::on(&redis);
    let hero = sending(Hero::on(&redis), &receiver);
    let actor = hero.actor("osis-default-1").start();
    plain.run(&["exec", "-t", "osis", "-e", "42"]).code(0);
    wait_until("the loss is counted", || {
        let number = dropped(&plain, "hero-actor");
        number > 0 && number == 2 * receiver.received().len() as u64
    });
    assert_eq!(said(&actor, LOST), 0, "{}", actor.err());
}

#[test]
fn spans_that_a_supervisor_cannot_send_are_counted_as_its_own() {
    let redis = Redis::start();
    let mut receiver = Receiver::start(&redis, "receiver.py");
    let hero = sending(Hero::on(&redis), &receiver);
    receiver.kill();
    let served = Served::with(hero, &redis);
    let job = r#"{"script": "1", "script_type": "osis"}"#;
    assert_eq!(served.unix().post("/jobs", &[], job).status, 201);
    let plain = Hero::on(&redis);
    wait_until("the loss is counted", || dropped(&plain, "hero-supervisor") == 1);
    assert_eq!(said(&served.supervisor, LOST), 1, "{}", served.supervisor.err());
    assert_eq!(dropped(&plain, "hero-actor"), 0);
}

#[test]
fn connection_is_kept_and_one_that_the_collector_closed_costs_no_span() {
    let redis = Redis::start();
    let mut receiver = Receiver::start(&redis, "receiver.py");
    let plain = Hero::on(&redis);
    let hero = sending(Hero::on(&redis), &receiver);
    let actor = hero.actor("osis-default-1").start();
    let exec = |receiver: &Receiver, number: usize| {
        plain.run(&["exec", "-t", "osis", "-e", "42"]).code(0);
        wait_until("its spans are there", || spans(receiver).len() == number);
        let all = receiver.received();
        all.iter().map(|one| one["from"].to_string()).collect::<BTreeSet<_>>().len()
    };
    assert_eq!([3, 6, 9].map(|number| exec(&receiver, number)), [1, 1, 1], "connections");
    receiver.kill();
    receiver.start_again();
    assert_eq!(exec(&receiver, 12), 2, "connections");
    assert_eq!((said(&actor, LOST), dropped(&plain, "hero-actor")), (0, 0), "{}", actor.err());
}

#[test]
fn collector_with_tls_gets_spans_if_its_authority_is_trusted() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "tls");
    let receiver = Receiver::start(&redis, "receiver.py");
    let endpoint = format!("\"https://127.0.0.1:{}\"", receiver.port);
    let hero = Hero::on(&redis).set("trace.endpoint", &endpoint);
    let plain = Hero::on(&redis);
    let exec = |kind: &str, script: &str| {
        plain.run(&["exec", "-t", kind, "-e", script]).code(0);
    };
    // The process of osis is sandboxed; that of python is not.
    let file = authority.file("ca.pem");
    for (number, (kind, script)) in [("osis", "1"), ("python", "print(1)")].iter().enumerate() {
        let unit = format!("{kind}-default-1");
        let actor = hero.actor(&unit).env("SSL_CERT_FILE", Path::new(&file)).start();
        exec(kind, script);
        wait_until("its spans are there", || spans(&receiver).len() == 3 * (number + 1));
        assert_eq!(said(&actor, LOST), 0, "{}", actor.err());
    }
    let actor = hero.actor("osis-default-1").start();
    exec("osis", "2");
    exec("osis", "3");
    wait_until("the loss is counted", || dropped(&plain, "hero-actor") == 6);
    assert_eq!((said(&actor, LOST), said(&actor, "UnknownIssuer")), (1, 1), "{}", actor.err());
    assert_eq!(said(&actor, "SSL_CERT_FILE"), 1, "it says what to do: {}", actor.err());
    assert_eq!(spans(&receiver).len(), 6);
}

#[test]
fn spans_that_a_collector_does_not_take_before_the_end_are_counted_in_a_line() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    receiver.answers("hang");
    let hero = sending(Hero::on(&redis), &receiver);
    let actor = hero.actor("osis-default-1").start();
    Hero::on(&redis).run(&["exec", "-t", "osis", "-e", "42"]).code(0).stdout("42\n");
    actor.signal(Signal::SIGTERM);
    let done = actor.ends().code(0);
    assert!(done.stderr.contains("3 spans are dropped since the start"), "{}", done.stderr);
}
