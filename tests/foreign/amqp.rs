//! A client of RabbitMQ in Python with pika, beside the brokers of a node.

use crate::amqp::steps::{has_pika, python};
use crate::support::rabbitmq::{has_rabbitmq, vhost};
use crate::support::{Hero, Redis};

#[test]
fn a_client_with_pika_is_answered_by_the_brokers_of_a_node() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let (redis, url) = (Redis::start(), vhost());
    let hero = Hero::on(&redis).set("amqp.url", &format!("{url:?}"));
    let hero = hero.set("amqp.mode", "\"matrix\"");
    let _app = hero.actor("broker-appServer").start();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/programs/amqp_client.py");
    let ran = python(&[program, &url]);
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(out, "ping rec.read\nping rec.write\nobjects\nlogger\nunroutable\n", "{err}");
}
