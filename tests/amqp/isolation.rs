//! Vhosts on one RabbitMQ: three environments with a user each.

use serde_json::json;

use super::Broker;
use crate::support::rabbitmq::{has_rabbitmq, shared};

#[test]
fn a_message_in_one_vhost_never_reaches_a_consumer_of_another() {
    if !has_rabbitmq() {
        return;
    }
    let rabbit = shared();
    let environments = ["prod", "qa", "dev"];
    let brokers = environments.map(|name| Broker::at(&rabbit.url(name, name), ""));
    let _processes = brokers.each_ref().map(|broker| broker.hero.actor("broker").start());
    for (broker, name) in brokers.iter().zip(environments) {
        let data = json!({ "id": "one", "of": name }).to_string();
        broker.result("rec.write", "write", "thing", &data);
    }
    for (broker, name) in brokers.iter().zip(environments) {
        let found = broker.result("rec.read", "fetch", "thing", "{}");
        assert_eq!(found["objects"].as_array().map(Vec::len), Some(1), "{found}");
        assert_eq!(found["objects"][0]["of"], name);
    }
    // The user of one vhost may not enter another.
    let stranger = Broker::at(&rabbit.url("qa", "prod"), "");
    let publish = ["amqp", "publish", "rec.read", "--type", "ping"];
    stranger.hero.run(&publish).code(77).says("has no vhost `prod` for this user");
}
