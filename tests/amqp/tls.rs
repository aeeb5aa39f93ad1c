//! RabbitMQ behind TLS: the trusted authority, and the error where another one is trusted.

use super::Broker;
use crate::support::Authority;
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

#[test]
fn the_authorities_of_the_machine_count_only_without_one_of_the_configuration() {
    if !has_rabbitmq() {
        return;
    }
    let (rabbit, plain) = (shared(), vhost());
    let (_, vhost) = plain.rsplit_once('/').expect("a vhost");
    let broker = Broker::at(&rabbit.url_through_tls("hero", vhost), "");
    let on_a_machine_that_trusts_it = |broker: &Broker| {
        let mut command = broker.hero.command_of_user(env!("CARGO_BIN_EXE_hero"));
        command.args(["amqp", "topology"]).env("SSL_CERT_FILE", rabbit.authority().file("ca.pem"));
        command.output().expect("the command runs")
    };
    let ran = on_a_machine_that_trusts_it(&broker);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let other = Authority::new(broker.redis.folder(), "other").quoted("ca.pem");
    let broker = broker.set("amqp.tls_ca_file", &other);
    let ran = on_a_machine_that_trusts_it(&broker);
    assert_eq!(ran.status.code(), Some(69), "{}", String::from_utf8_lossy(&ran.stderr));
    let empty = broker.redis.folder().join("empty.pem");
    std::fs::write(&empty, "").expect("written");
    let broker = broker.set("amqp.tls_ca_file", &format!("{:?}", empty.display().to_string()));
    broker.hero.run(&["amqp", "topology"]).code(78).says("amqp.tls_ca_file");
}
