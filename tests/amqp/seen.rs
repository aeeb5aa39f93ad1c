//! Brokers as monitoring and people see them: problems, metrics, alerts, the page.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::steps::{has_pika, steps};
use super::{Broker, on};
use crate::e2e::api::prometheus::{Monitoring, has_prometheus};
use crate::support::rabbitmq::{RabbitMq, has_rabbitmq};
use crate::support::{Redis, Served, wait_until};

/// Returns the kinds of the problems of `system.health`, and their severities.
fn problems(broker: &Broker) -> Vec<(String, String)> {
    let findings = broker.json(&["doctor", "--problems"]);
    let findings = findings["findings"].as_array().expect("findings").clone();
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let told = findings.iter().map(|one| (text(one, "kind"), text(one, "state")));
    told.filter(|(kind, _)| kind.starts_with("broker") || kind.starts_with("amqp")).collect()
}

fn problem(kind: &str, state: &str) -> (String, String) {
    (kind.to_owned(), state.to_owned())
}

/// Makes the last heartbeats of all brokers an hour old.
fn age(redis: &Redis) {
    for key in redis.all("AMQP_BROKERS") {
        let noted: BTreeMap<String, String> = redis.ask(&format!("HGETALL {key}"));
        for (name, state) in noted {
            let (at, document) = state.split_once(' ').expect("a time and a document");
            let at = at.parse::<u64>().expect("microseconds") - 3_600_000_000;
            redis.set_field(&key, &name, format!("{at} {document}"));
        }
    }
}

#[test]
fn a_broker_with_dead_letters_or_without_a_heartbeat_is_a_problem_everywhere() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("").set("amqp.topology_interval", "\"1s\"");
    let _supervisor = broker.hero.supervisor().start();
    let mut process = broker.hero.actor("broker").start();
    broker.result("rec.read", "ping", "", "null");
    wait_until("it is seen", || broker.json(&["status"])["brokers"][0]["is_alive"] == true);
    assert_eq!(problems(&broker), []);
    let doctor = broker.hero.run(&["doctor"]).stdout;
    assert!(doctor.contains("1 broker is live, and every dispatcher consumes"), "{doctor}");

    let message = json!({ "do": "publish", "key": "nobody", "properties": { "type": "x" } });
    steps(&broker.url, &json!([message]));
    wait_until("its dead letter is told", || {
        problems(&broker) == [problem("amqp_dead_letters", "warning")]
    });
    let check = broker.hero.run(&["status", "--check"]).stdout;
    assert!(check.contains("RabbitMQ queue prod_events has 1 dead letter"), "{check}");
    let metrics = broker.hero.run(&["metrics"]).code(0).stdout;
    for line in [
        "hero_amqp_brokers{state=\"live\"} 1",
        "hero_amqp_dead_letters{queue=\"prod_events\"} 1",
        "key=\"rec.read\",end=\"done\"} 1",
        "key=\"other\",end=\"dead\"} 1",
        "server=\"rabbitmq\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    is_told_by_the_pages(&metrics);
    broker.hero.run(&["amqp", "dlq", "delete", "--all"]).code(0);
    wait_until("it is told no more", || problems(&broker).is_empty());

    process.kill();
    age(&broker.redis);
    wait_until("its end is told", || problems(&broker) == [problem("broker_gone", "error")]);
    let _next = broker.hero.actor("broker").start();
    wait_until("the next one is seen", || problems(&broker).is_empty());
}

/// Compares the metrics of brokers with those that the page and the rules name.
fn is_told_by_the_pages(metrics: &str) {
    let page = include_str!("../../docs/monitoring.md");
    let rules = include_str!("../../packaging/prometheus/hero.rules.yml");
    let words = |text: &'static str| text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    for word in words(page).chain(words(rules)).filter(|word| word.starts_with("hero_amqp_")) {
        assert!(metrics.contains(word), "{word} is no metric");
    }
    let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in names.filter(|name| name.starts_with("hero_amqp_")) {
        assert!(page.contains(&format!("`{name}`")), "docs/monitoring.md lacks {name}");
    }
}

#[test]
fn every_alert_of_brokers_fires_for_its_fault_in_a_real_prometheus() {
    if !has_prometheus() || !has_rabbitmq() || !has_pika() {
        return;
    }
    let mut rabbit = RabbitMq::start();
    let redis = Redis::start();
    let url = rabbit.url("hero", "prod");
    let hero = on(&redis, &url, "")
        .set("amqp.mode", "\"matrix\"")
        .set("amqp.trace_on", "true")
        .set("amqp.topology_interval", "\"1s\"")
        .set("amqp.logs.spool_size_max", "\"64KiB\"")
        .set("check.outage_warning", "\"2s\"");
    let api = Served::with(hero, &redis);
    let monitoring = Monitoring::of(&api, redis.folder());
    let prometheus = &monitoring.prometheus;
    // No node takes its log events.
    let mut process = api.hero.actor("broker-appServer").start();
    wait_until("no event is lost", || {
        !prometheus.query("hero_amqp_log_events_lost_total == 0").is_empty()
    });
    let pings = json!({ "type": "ping" });
    let traced = json!({ "do": "publish", "key": "rec.read", "times": 800, "properties": pings });
    let wrong = json!({ "do": "publish", "key": "rec.read", "properties": { "type": "x" } });
    steps(&url, &json!([traced, wrong]));
    prometheus.until_alert("HeroAmqpDeadLetters", ("queue", "prod_rec.read"));
    prometheus.until_alert("HeroLogEventsLost", ("broker", "broker-appServer@.*"));
    rabbit.kill();
    prometheus.until_alert("HeroBrokerOutage", ("server", "rabbitmq"));
    process.kill();
    age(&redis);
    prometheus.until_alert("HeroBrokerGone", ("severity", "critical"));
}
