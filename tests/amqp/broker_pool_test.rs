//! The pools of brokers: as many dispatchers as the configuration says, on the queues of the document.

use super::Broker;
use crate::support::rabbitmq::has_rabbitmq;

#[test]
fn the_configured_pools_of_a_node_consume_its_queues_and_no_others() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("[amqp.brokers]\nrBroker = 2\nwBroker = 3\nmBroker = 0\n");
    let hero = broker.hero.set("amqp.mode", "\"matrix\"");
    let broker = Broker { hero, ..broker };
    assert_eq!(broker.consumers(), [], "no queue is declared before its broker starts");
    let app = broker.hero.actor("broker-appServer").start();
    assert!(app.err().contains("rBroker: 2 dispatchers of prod_rec.read"), "{}", app.err());
    let queue = |name: &str, consumers| (format!("prod_{name}"), consumers);
    let of_app =
        [queue("rec.read", 2), queue("rel.read", 2), queue("rec.write", 3), queue("rel.write", 3)];
    assert_eq!(broker.consumers(), of_app);
    let said = broker.hero.run(&["amqp", "status", "--node", "admin"]).code(69).stderr;
    assert!(said.contains("no consumer serves prod_adm, prod_log"), "{said}");

    let _admin = broker.hero.actor("broker-admin").start();
    let of_admin = [queue("adm", 2), queue("log", 1), queue("log.adminSyslogBroker", 1)];
    assert_eq!(broker.consumers(), [&of_app[..], &of_admin].concat());
    broker.hero.run(&["amqp", "status", "--node", "appServer"]).code(0);
    broker.hero.run(&["amqp", "status", "--node", "admin"]).code(0);
    let check = broker.json(&["amqp", "check"]);
    assert_eq!(check["differences"].as_array().map(Vec::len), Some(0), "{check}");
}

#[test]
fn the_unified_mode_has_one_pool_for_every_key() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    assert_eq!(broker.consumers(), [("prod_events".to_owned(), 4)]);
    broker.hero.run(&["amqp", "status"]).code(0);
}
