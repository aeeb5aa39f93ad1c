//! Hostile texts of jobs, and hostile receivers.

use super::{Receiver, fail, hero, wanted};
use crate::support::{Hero, Redis, wait_until};

#[test]
fn hostile_names_and_errors_break_neither_json_nor_mail() {
    let redis = Redis::start();
    let server = Receiver::start(&redis, "mail_server.py");
    let receiver = Receiver::start(&redis, "receiver.py");
    let more = format!(
        "template = '{{\"text\": {{{{ events[0].error }}}}}}'\nmail = [\"ops@example.org\"]\nfrom = \"hero@example.org\"\n\
         smtp = \"smtp://127.0.0.1:{}\"\n",
        server.port
    );
    let hero = hero(&redis, &receiver, &more);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    let hostile =
        "\\\"}, {\\\"admin\\\": true}\\r\\nBcc: all@example.org\\r\\n.\\r\\nMAIL FROM:<x@y>\\r\\n";
    let script = format!("throw \"{hostile}{}\"", "x".repeat(50_000));
    hero.run(&["exec", "-t", "osis", "-e", &script, "--id", "bad"]).code(1);
    receiver.awaits(1);
    server.awaits(1);
    let body = receiver.received()[0]["body"].as_str().expect("text").to_owned();
    let read: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(read.as_object().expect("an object").len(), 1, "{read}");
    assert!(body.contains("Bcc: all@example.org") && body.len() < 20_000, "{}", body.len());
    let mail = server.received()[0].clone();
    assert_eq!(mail["to"], serde_json::json!(["ops@example.org"]));
    let text = mail["body"].as_str().expect("text");
    let (head, _) = text.split_once("\n\n").expect("a head");
    assert!(!head.to_lowercase().contains("\nbcc:"), "{text}");
    assert!(text.len() < 20_000);
    assert_eq!(server.received().len(), 1);
}

#[test]
fn redirect_to_another_address_is_not_followed() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let inside = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    inside.set_nonblocking(true).expect("set");
    let port = inside.local_addr().expect("an address").port();
    receiver.answers(&format!("307 http://127.0.0.1:{port}/admin"));
    let hero = hero(&redis, &receiver, "");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &[]);
    let listed = || hero.run(&["notify", "list"]).code(0).stdout;
    wait_until("the failure is listed", || listed().contains("redirects are not followed"));
    assert!(inside.accept().is_err(), "nobody has connected");
}

#[test]
fn receiver_that_never_answers_holds_no_other_notification_for_long() {
    let redis = Redis::start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let receiver = Receiver::start(&redis, "receiver.py");
    let more = format!(
        "every = \"0s\"\n[notify.silent]\nwebhook = \"http://127.0.0.1:{port}/\"\ntimeout = \"300ms\"\nevery = \"0s\"\n"
    );
    let hero: Hero = hero(&redis, &receiver, &more);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    for _ in 0..3 {
        fail(&hero, &[]);
    }
    receiver.awaits(3);
    let listed = || hero.run(&["notify", "list"]).code(0).stdout;
    wait_until("the failure is listed", || listed().contains("no answer within 300ms"));
}
