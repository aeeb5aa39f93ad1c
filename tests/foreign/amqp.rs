//! A client of RabbitMQ in Python with pika, beside the brokers of a node.

use std::process::{Command, Output};

use super::PYTHON;
use crate::support::rabbitmq::{has_rabbitmq, vhost};
use crate::support::{Hero, Redis, needs};

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn python(args: &[&str]) -> Output {
    Command::new(PYTHON).args(args).output().expect("python3 is installed")
}

#[test]
fn a_client_with_pika_is_answered_by_the_brokers_of_a_node() {
    let has_pika = || python(&["-c", "import pika"]).status.success();
    if !has_rabbitmq() || !needs("python3-pika", has_pika) {
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
