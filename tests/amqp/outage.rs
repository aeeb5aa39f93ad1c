//! RabbitMQ stops publishers, closes channels, or loses connections, and work goes on.

use std::collections::BTreeSet;

use hero::amqp::link::{Link, LinkError, Outgoing};
use hero::amqp::message::Properties;
use hero::amqp::topology::{AmqpQueue, CONTROL, EVENTS, pools};
use hero::config::AmqpConfig;
use nix::sys::signal::Signal;

use super::{Broker, answered};
use crate::support::proxy::{Lane, Mode};
use crate::support::rabbitmq::{RabbitMq, has_rabbitmq, shared, vhost};
use crate::support::wait_until;

const ROUTES: &str =
    "[[amqp.route]]\nkey = \"adm\"\noperation = \"count\"\ntype = \"osis\"\nscript = '1'\n";
const MESSAGES: usize = 20;
const ANSWERS: &str = "answers";

/// Publishes messages that ask for answers, and declares the queue of these.
async fn publish_all(link: &Link) {
    let queue = AmqpQueue { name: ANSWERS.to_owned(), arguments: [].into(), binding: None };
    link.declare_queue(&queue).await.expect("declared");
    for n in 0..MESSAGES {
        let properties = Properties {
            kind: Some("count".to_owned()),
            message_id: Some(format!("m{n}")),
            correlation_id: Some(format!("m{n}")),
            reply_to: Some(ANSWERS.to_owned()),
            ..Properties::default()
        };
        let out = Outgoing { exchange: EVENTS, key: "adm", body: b"{}", properties: &properties };
        link.publish(out).await.expect("published");
    }
}

#[test]
fn a_rabbitmq_without_memory_stops_answers_until_it_has_some_and_stops_no_job() {
    if !has_rabbitmq() {
        return;
    }
    let rabbit = RabbitMq::start();
    let broker = Broker::at(&rabbit.url("hero", "t0"), ROUTES).set("amqp.trace_on", "true");
    let _actor = broker.hero.actor("osis-default-1").start();
    drop(broker.hero.actor("broker").start());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let link = broker.link();
    runtime.block_on(publish_all(&link));
    rabbit.control(&["set_vm_memory_high_watermark", "0.0001"]);

    let process = broker.hero.actor("broker").start();
    wait_until("every job has finished", || jobs(&broker, "finished") == MESSAGES);
    wait_until("log events wait in the spool", || broker.spooled() >= MESSAGES as u64);
    assert!(runtime.block_on(answered(&link, ANSWERS)).is_empty());
    broker.hero.run(&["amqp", "status"]).code(0);

    rabbit.control(&["set_vm_memory_high_watermark", "0.6"]);
    let expected: BTreeSet<String> = (0..MESSAGES).map(|n| format!("m{n}")).collect();
    wait_until("every message is answered", || {
        runtime.block_on(answered(&link, ANSWERS)) == expected
    });
    wait_until("the spool is empty", || broker.spooled() == 0);
    wait_until("it says so", || process.err().contains("log events are published again"));
    wait_until("each consumer is there", || broker.consumers() == [("prod_events".to_owned(), 4)]);
    runtime.block_on(link.close());
}

/// Returns how many jobs are in a state.
fn jobs(broker: &Broker, status: &str) -> usize {
    let jobs = broker.json(&["job", "list", "--status", status]);
    jobs["jobs"].as_array().expect("jobs").len()
}

#[test]
fn answers_that_are_not_confirmed_before_the_end_of_a_broker_are_published_by_the_next() {
    if !has_rabbitmq() {
        return;
    }
    let (rabbit, plain) = (shared(), vhost());
    let (_, vhost) = plain.rsplit_once('/').expect("a vhost");
    let lane = Lane::to_port(rabbit.port());
    let through = format!("{:?}", rabbit.url_through(lane.port(), "hero", vhost));
    let broker = Broker::at(&plain, ROUTES).set("amqp.url", &through);
    let process = broker.hero.actor("broker").start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let link = broker.link();
    runtime.block_on(publish_all(&link));
    wait_until("each message is a job", || jobs(&broker, "dispatched") == MESSAGES);
    lane.set(Mode::Hold);
    let _actor = broker.hero.actor("osis-default-1").start();
    wait_until("every job has finished", || jobs(&broker, "finished") == MESSAGES);
    process.signal(Signal::SIGTERM);
    let done = process.ends().code(0);
    assert!(!done.stderr.contains("dropped"), "{}", done.stderr);
    assert!(runtime.block_on(answered(&link, ANSWERS)).is_empty());

    lane.set(Mode::Pass);
    let _process = broker.hero.actor("broker").start();
    let expected: BTreeSet<String> = (0..MESSAGES).map(|n| format!("m{n}")).collect();
    wait_until("every message is answered", || {
        runtime.block_on(answered(&link, ANSWERS)) == expected
    });
    assert_eq!(jobs(&broker, "finished"), MESSAGES, "no job ran again");
    runtime.block_on(link.close());
}

#[test]
fn a_broker_consumes_again_after_its_connections_were_cut_or_refused() {
    if !has_rabbitmq() {
        return;
    }
    let (rabbit, plain) = (shared(), vhost());
    let (_, vhost) = plain.rsplit_once('/').expect("a vhost");
    let lane = Lane::to_port(rabbit.port());
    let broker = Broker::at(&plain, "");
    let through = format!("{:?}", rabbit.url_through(lane.port(), "hero", vhost));
    let cut = Broker::at(&plain, "").set("amqp.url", &through);
    let process = cut.hero.actor("broker").start();
    for _ in 0..3 {
        lane.cut();
        broker.result("rec.read", "ping", "", "null");
    }
    lane.set(Mode::Refuse);
    wait_until("RabbitMQ sees no consumer", || broker.consumers()[0].1 == 0);
    lane.set(Mode::Pass);
    broker.result("rec.read", "ping", "", "null");
    wait_until("it says so", || process.err().contains("RabbitMQ is back after"));
}

#[tokio::test]
async fn a_consumer_that_takes_more_at_once_loses_no_delivery() {
    if !has_rabbitmq() {
        return;
    }
    let url = vhost();
    let config = AmqpConfig { url: url.as_str().into(), ..AmqpConfig::default() };
    let link = Link::open(&config, "one").expect("legal settings");
    let name = "many".to_owned();
    let queue = AmqpQueue { name, arguments: [].into(), binding: None };
    link.declare_queue(&queue).await.expect("declared");
    let mut expected = BTreeSet::new();
    for n in 0..60 {
        let id = format!("m{n}");
        let properties = Properties { message_id: Some(id.clone()), ..Properties::default() };
        let out = Outgoing { exchange: "", key: "many", body: b"{}", properties: &properties };
        link.publish(out).await.expect("published");
        expected.insert(id);
    }
    let mut deliveries = link.consume("many", 10).await.expect("consumes");
    let mut taken = Vec::new();
    for prefetch in [20, 40] {
        taken.push(deliveries.next().await.expect("a delivery"));
        let rest = deliveries.resize(prefetch).await.expect("consumes again");
        assert!(!rest.is_empty(), "the prefetched ones");
        taken.extend(rest);
    }
    let mut seen = BTreeSet::new();
    for delivery in taken {
        delivery.ack().await;
        seen.extend(delivery.properties.message_id);
    }
    while seen != expected {
        let delivery = deliveries.next().await.expect("a delivery");
        delivery.ack().await;
        assert!(seen.insert(delivery.properties.message_id.expect("an id")), "delivered twice");
    }
    link.close().await;
}

#[tokio::test]
async fn a_wrong_passive_declare_closes_its_own_channel_alone() {
    if !has_rabbitmq() {
        return;
    }
    let url = vhost();
    let config = AmqpConfig { url: url.as_str().into(), ..AmqpConfig::default() };
    let open = |name| Link::open(&config, name).expect("legal settings");
    let (link, other) = (open("one"), open("other"));
    link.declare_exchanges().await.expect("declared");
    let pool = pools(&config, None).remove(0);
    link.declare_work(&pool.work).await.expect("declared");
    let mut deliveries = link.consume(&pool.work.queue.name, 10).await.expect("consumes");
    let _listening = other.listen(CONTROL).await.expect("listens");

    assert_eq!(link.counts("nowhere").await, Ok(None));
    assert_eq!(link.has_exchange("nowhere").await, Ok(false));
    let wrong = AmqpQueue { arguments: [].into(), ..pool.work.queue.clone() };
    let refused = link.declare_queue(&wrong).await.expect_err("other arguments");
    assert!(matches!(refused, LinkError::OtherArguments { .. }), "{refused}");

    let properties = Properties { kind: Some("ping".to_owned()), ..Properties::default() };
    let out = Outgoing { exchange: EVENTS, key: "adm", body: b"{}", properties: &properties };
    link.publish(out).await.expect("published");
    let delivery = deliveries.next().await.expect("the consumer is alive");
    delivery.ack().await;
    let counts = link.counts(&pool.work.queue.name).await.expect("counted").expect("exists");
    assert_eq!((counts.messages, counts.consumers), (0, 1));
    link.close().await;
    other.close().await;
}

#[test]
fn a_broker_reads_a_login_again_that_redis_refuses_and_ends_with_77_if_it_stays_refused() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    broker.redis.run("ACL SETUSER units on >one ~* &* +@all");
    let file = broker.redis.folder().join("password");
    std::fs::write(&file, "one").expect("written");
    let broker = broker
        .set("redis.username", "\"units\"")
        .set("redis.password_file", &format!("{:?}", file.display().to_string()))
        .set("redis.refused_for", "\"10s\"");
    let process = broker.hero.actor("broker").start();
    let refuse = |password: &str| {
        broker.redis.run(&format!("ACL SETUSER units resetpass >{password}"));
        broker.redis.run("CLIENT KILL USER units");
    };
    refuse("two");
    // The first call after the kill may only find its connection gone.
    let is_refusal = |line: &str| {
        line.contains("refuses the login: WRONGPASS")
            && line.contains("messages wait until Redis answers")
    };
    wait_until("it says so", || process.err().lines().any(is_refusal));
    std::fs::write(&file, "two").expect("written");
    wait_until("it is back", || process.err().contains("Redis is back after"));
    // The log records that the broker stored meanwhile have waited as well.
    assert!(!process.err().contains("becomes a dead letter"), "{}", process.err());
    refuse("three");
    process.ends().code(77).says("has refused the login for");
}
