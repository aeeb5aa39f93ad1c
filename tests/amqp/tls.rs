//! RabbitMQ behind TLS: the trusted authority, and the error where another one is trusted.

use super::Broker;
use crate::support::rabbitmq::{has_rabbitmq, shared, vhost};

#[test]
fn a_broker_trusts_the_configured_authority_and_no_other() {
    if !has_rabbitmq() {
        return;
    }
    let (rabbit, plain) = (shared(), vhost());
    let (_, vhost) = plain.rsplit_once('/').expect("a vhost");
    let url = rabbit.url_through_tls("hero", vhost);
    let broker = Broker::at(&url, "");
    let said = broker.hero.run(&["amqp", "publish", "rec.read", "--type", "ping"]).code(69).stderr;
    assert!(said.contains("certificate") && !said.contains("secret"), "{said}");
    let broker = broker.set("amqp.tls_ca_file", &rabbit.authority().quoted("ca.pem"));
    let _process = broker.hero.actor("broker").start();
    assert_eq!(broker.result("rec.read", "ping", "", "null")["key"], "rec.read");
    let none = broker.set("amqp.tls_ca_file", "\"/none/ca.pem\"");
    none.hero.run(&["amqp", "topology"]).code(78).says("/none/ca.pem");
}
