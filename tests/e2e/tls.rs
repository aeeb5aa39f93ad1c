//! Redis behind TLS: trust, client certificates, and the errors where either fails.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Stdio};

use crate::support::{Authority, Hero, Redis, server, wait_until};

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Lets a Redis listen with a certificate too, and returns the port.
fn listen(redis: &Redis, authority: &Authority, asks_for_certificates: bool) -> u16 {
    let asks = if asks_for_certificates { "yes" } else { "no" };
    let mut port = 0;
    // Another program may take the free port first.
    wait_until("redis listens", || {
        port = free_port();
        let listens: redis::RedisResult<()> = redis::cmd("CONFIG")
            .arg("SET")
            .arg(&["tls-cert-file", &authority.file("cert.pem")])
            .arg(&["tls-key-file", &authority.file("key.pem")])
            .arg(&["tls-ca-cert-file", &authority.file("ca.pem")])
            .arg(&["tls-auth-clients", asks])
            .arg("tls-port")
            .arg(port)
            .query(&mut redis.link());
        listens.is_ok()
    });
    port
}

fn through(redis: &Redis, port: u16) -> Hero {
    Hero::on(redis).set("redis.url", &format!("\"rediss://127.0.0.1:{port}/0\""))
}

#[test]
fn jobs_run_over_tls_with_the_configured_authority() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "own");
    let port = listen(&redis, &authority, false);
    let hero = through(&redis, port).set("redis.tls_ca_file", &authority.quoted("ca.pem"));
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "6 * 7"]).code(0).stdout("42\n");
}

#[test]
fn redis_with_a_certificate_of_another_authority_is_not_trusted() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "own");
    let stranger = Authority::new(redis.folder(), "stranger");
    let port = listen(&redis, &authority, false);
    let hero = through(&redis, port).set("redis.tls_ca_file", &stranger.quoted("ca.pem"));
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(69).says("redis.tls_ca_file");
    let system = through(&redis, port);
    system.run(&["exec", "-t", "osis", "-e", "1"]).code(69).says("redis.tls_ca_file");
    assert!(redis.all("HERO").is_empty(), "something was written all the same");
}

#[test]
fn redis_that_requires_a_client_certificate_gets_the_configured_one() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "own");
    let port = listen(&redis, &authority, true);
    let without = through(&redis, port).set("redis.tls_ca_file", &authority.quoted("ca.pem"));
    without.run(&["job", "list"]).code(69);
    let with = without
        .set("redis.tls_cert_file", &authority.quoted("cert.pem"))
        .set("redis.tls_key_file", &authority.quoted("key.pem"));
    with.run(&["job", "list"]).code(0);
}

#[test]
fn unusable_tls_files_are_named_before_any_connection() {
    let redis = Redis::start();
    let hero = through(&redis, 1).set("redis.tls_ca_file", "\"/none/ca.pem\"");
    for command in [&["check"][..], &["exec", "-t", "osis", "-e", "1"]] {
        hero.run(command).code(78).says("/none/ca.pem");
    }
    let garbage = redis.folder().join("garbage.pem");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .expect("writing garbage");
    let hero = hero.set("redis.tls_ca_file", &format!("{:?}", garbage.display().to_string()));
    for command in [&["check"][..], &["exec", "-t", "osis", "-e", "1"]] {
        hero.run(command).code(78).says("redis settings");
    }
}

/// A sentinel process, killed when the value is dropped.
struct Sentinel(Child);

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sentinels_and_their_master_are_reached_over_tls() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "own");
    let master = listen(&redis, &authority, false);
    let port = free_port();
    let config = redis.folder().join("sentinel.conf");
    let lines = [
        format!("port 0\ntls-port {port}\ntls-replication yes\ntls-auth-clients no"),
        format!("tls-cert-file {}", authority.file("cert.pem")),
        format!("tls-key-file {}", authority.file("key.pem")),
        format!("tls-ca-cert-file {}", authority.file("ca.pem")),
        format!("dir {}", redis.folder().display()),
        format!("sentinel monitor main 127.0.0.1 {master} 1\n"),
    ];
    std::fs::write(&config, lines.join("\n")).expect("writing the configuration");
    let sentinel = server()
        .arg(&config)
        .arg("--sentinel")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let _sentinel = Sentinel(sentinel);
    let hero = Hero::on(&redis)
        .set("redis.url", &format!("\"rediss+sentinel://127.0.0.1:{port}/main\""))
        .set("redis.tls_ca_file", &authority.quoted("ca.pem"));
    wait_until("the sentinel answers", || hero.run(&["job", "list"]).code == 0);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "6 * 7"]).code(0).stdout("42\n");
}
