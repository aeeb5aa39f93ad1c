//! The storm: RabbitMQ, Redis and brokers die, connections are cut, parts of the topology are removed, and
//! foreign clients send what nobody can read, read no answers and move dead letters back, while messages flow.
//! No message is lost, none with an id that ends well runs twice, and the dead letters are the poisoned ones
//! and those that cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hero::amqp::link::{Link, Outgoing};
use hero::amqp::message::Properties;
use hero::amqp::topology::{AmqpQueue, EVENTS};
use hero::config::AmqpConfig;
use hero::store::Backoff;
use serde_json::{Value, json};

use super::steps::{has_pika, steps};
use super::{Broker, answered, on};
use crate::support::proxy::{Half, Lane};
use crate::support::rabbitmq::{RabbitMq, has_rabbitmq};
use crate::support::{Redis, wait_until};

/// One message in so many is poisoned.
const POISONED: usize = 20;
/// The queue of the answers.
const ANSWERS: &str = "answers";
const ROUTES: &str = "\
[[amqp.route]]\nkey = \"adm\"\noperation = \"count\"\ntype = \"osis\"\nscript = '''\n\
json_parse(INPUTS.message).message_id\n'''\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"poison\"\ntype = \"osis\"\nscript = 'throw \"poisoned\"'\n";

/// The number of messages; `AMQP_MESSAGES` sets another one.
fn messages() -> usize {
    std::env::var("AMQP_MESSAGES").ok().and_then(|number| number.parse().ok()).unwrap_or(300)
}

/// Publishes every message until it is confirmed, and counts them.
async fn publish(link: &Link, number: usize, published: &AtomicUsize) {
    for n in 0..number {
        let is_poisoned = n % POISONED == 0;
        let id = format!("m{n}");
        let properties = Properties {
            kind: Some(if is_poisoned { "poison" } else { "count" }.to_owned()),
            message_id: Some(id.clone()),
            correlation_id: Some(id),
            reply_to: Some(ANSWERS.to_owned()),
            ..Properties::default()
        };
        let out = Outgoing { exchange: EVENTS, key: "adm", body: b"{}", properties: &properties };
        let mut backoff = Backoff::default();
        while link.publish(out).await.is_err() {
            tokio::time::sleep(backoff.failed()).await;
        }
        published.store(n + 1, Ordering::Relaxed);
    }
}

/// The short strings of a message that Hero reads, beside its id and its key, and the others.
const READ: [&str; 3] = ["type", "reply_to", "correlation_id"];
const UNREAD: [&str; 4] = ["content_type", "content_encoding", "app_id", "cluster_id"];

/// Publishes messages with a text that is not UTF-8 in each short string, and some whose answers a full queue
/// rejects.
fn misbehave(url: &str, round: usize) {
    let wrong = json!({ "bytes": "\u{fc}\u{ff}" });
    let count = |name: &str| {
        let id = format!("g{round}-{name}");
        json!({ "do": "publish", "key": "adm",
                "properties": { "type": "count", "message_id": id, "reply_to": ANSWERS } })
    };
    let mut all: Vec<Value> = Vec::new();
    for name in READ {
        let mut step = count(name);
        step["properties"][name] = wrong.clone();
        all.push(step);
    }
    let (mut of_id, mut of_key) = (count("id"), count("key"));
    of_id["properties"]["message_id"] = json!({ "bytes": format!("g{round}-id\u{fc}") });
    of_key["key"] = wrong.clone();
    all.extend([of_id, of_key]);
    // Nobody reads these: the messages are served.
    let ping = json!({ "do": "publish", "key": "rec.read", "properties": { "type": "ping" } });
    for name in UNREAD {
        let mut step = ping.clone();
        step["properties"][name] = wrong.clone();
        all.push(step);
    }
    let mut of_header = ping;
    of_header["properties"]["headers"] =
        json!({ "bytes:\u{e9}": "v", "list": { "bytes:\u{ff}": "w" } });
    all.push(of_header);
    let arguments = json!({ "x-max-length": 1, "x-overflow": "reject-publish" });
    all.push(json!({ "do": "declare", "queue": "full", "arguments": arguments }));
    let pings = json!({ "type": "ping", "reply_to": "full", "correlation_id": "x" });
    all.push(json!({ "do": "publish", "key": "rec.read", "times": 100, "properties": pings }));
    steps(url, &json!(all));
}

/// The names of the messages of [`misbehave`] that cannot be read: a byte that is not UTF-8 became SUBSTITUTE.
fn unreadable(rounds: usize) -> impl Iterator<Item = String> {
    let names = READ.into_iter().chain(["id\u{1a}", "key"]);
    (0..rounds).flat_map(move |round| names.clone().map(move |name| format!("g{round}-{name}")))
}

/// Checks the dead letters and the jobs of all messages; each is answered.
fn check_ends(broker: &Broker, number: usize) {
    let poisoned: BTreeSet<String> =
        (0..number).step_by(POISONED).map(|n| format!("m{n}")).collect();
    let expected: BTreeSet<String> = poisoned.iter().cloned().chain(unreadable(3)).collect();
    wait_until("the dead letters are those", || {
        broker.dead().into_iter().collect::<BTreeSet<_>>() == expected
    });
    // Each message that ends well is one job, however often it was delivered; a job that ran has answered.
    let jobs = broker.redis.all("JOB");
    let finished = |key: &&String| broker.redis.field(key, "status").as_deref() == Some("finished");
    assert_eq!(jobs.iter().filter(finished).count(), number - poisoned.len());
}

#[test]
fn storm_loses_no_message_and_runs_none_twice() {
    if has_rabbitmq() && has_pika() {
        storm("classic");
    }
}

#[test]
fn storm_over_quorum_queues_loses_no_message_and_runs_none_twice() {
    if has_rabbitmq() && has_pika() {
        storm("quorum");
    }
}

fn storm(queue_type: &str) {
    let number = messages();
    let mut rabbit = RabbitMq::start();
    let mut redis = Redis::that_keeps();
    let url = rabbit.url("hero", "prod");
    let tables = format!("{ROUTES}[unit.second]\nrole = \"broker\"\n");
    let (key, queue_type) = ("amqp.queue_type", format!("{queue_type:?}"));
    let hero = on(&redis, &url, &tables).set(key, &queue_type);
    // The brokers reach Redis and RabbitMQ through proxies, and the publisher RabbitMQ.
    let lane = Lane::open(&redis.folder().join("proxy"), &redis.folder().join("redis.sock"));
    let rabbit_lane = Lane::to_port(rabbit.port());
    let url_of_lane = rabbit.url_through(rabbit_lane.port(), "hero", "prod");
    let cut = on(&redis, &url_of_lane, &tables)
        .set(key, &queue_type)
        .set("redis.url", &format!("\"redis+unix://{}\"", lane.path().display()));
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("osis-default-1").start();
    let mut first = cut.actor("broker").start();
    let _second = cut.actor("second").start();

    let config = AmqpConfig { url: url.as_str().into(), ..AmqpConfig::default() };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let link = Link::open(&config, "storm").expect("legal");
    let of_lane = AmqpConfig { url: url_of_lane.as_str().into(), ..AmqpConfig::default() };
    let cut_link = Link::open(&of_lane, "publisher").expect("legal");
    runtime.block_on(async {
        let name = ANSWERS.to_owned();
        let queue = AmqpQueue { name, arguments: BTreeMap::new(), binding: None };
        link.declare_queue(&queue).await.expect("declared");
    });
    let published = Arc::new(AtomicUsize::new(0));
    let publishing = {
        let (link, published) = (cut_link.clone(), Arc::clone(&published));
        runtime.spawn(async move { publish(&link, number, &published).await })
    };
    let reached = |share: usize| published.load(Ordering::Relaxed) >= number * share / 9;
    wait_until("a ninth is published", || reached(1));
    first.kill();
    first = cut.actor("broker").begin();
    misbehave(&url, 0);
    wait_until("two ninths are published", || reached(2));
    lane.cut();
    let unbind = json!({ "do": "unbind", "queue": "prod_events.dlq", "exchange": "beds.dlx",
                         "key": "events.dlq" });
    steps(&url, &json!([unbind]));
    wait_until("three ninths are published", || reached(3));
    rabbit_lane.cut();
    wait_until("four ninths are published", || reached(4));
    rabbit.kill();
    rabbit.start_again();
    wait_until("five ninths are published", || reached(5));
    // Dead letters are moved back as they are: those that fail again return.
    steps(&url, &json!([{ "do": "shovel", "from": "prod_events.dlq", "to": "prod_events" }]));
    misbehave(&url, 1);
    // Frames end in their middle, and answers of RabbitMQ are lost.
    rabbit_lane.close_half(Half::FromServer);
    wait_until("six ninths are published", || reached(6));
    redis.kill();
    redis.start_again();
    wait_until("seven ninths are published", || reached(7));
    steps(
        &url,
        &json!([{ "do": "delete_exchange", "exchange": "beds.dlx" },
                        { "do": "delete", "queue": "prod_events.retry" }]),
    );
    misbehave(&url, 2);
    rabbit_lane.cut();
    wait_until("eight ninths are published", || reached(8));
    first.kill();
    let _third = cut.actor("broker").begin();
    runtime.block_on(publishing).expect("published");

    let expected: BTreeSet<String> = (0..number).map(|n| format!("m{n}")).collect();
    let mut seen = BTreeSet::new();
    while !expected.is_subset(&seen) {
        let before = seen.len();
        wait_until("a further message is answered", || {
            seen = runtime.block_on(answered(&link, ANSWERS));
            seen.len() > before
        });
    }
    let broker = Broker { hero, redis, url };
    check_ends(&broker, number);
    runtime.block_on(async {
        cut_link.close().await;
        link.close().await;
    });
}
