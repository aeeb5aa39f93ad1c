//! Receivers with TLS and a certificate of an authority of one's own; and several supervisors at once.

use std::collections::BTreeSet;
use std::fs;

use super::{Receiver, fail, hero, wanted};
use crate::support::{Authority, Hero, Redis, wait_until};

#[test]
fn webhook_over_https_is_called_only_if_its_authority_or_its_own_certificate_is_trusted() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "tls");
    let receiver = Receiver::start(&redis, "receiver.py");
    let url = format!("https://127.0.0.1:{}", receiver.port);
    let stranger = Authority::new(redis.folder(), "stranger");
    let hero = Hero::on(&redis).add(&format!(
        "[notify.ops]\nwebhook = \"{url}/hook\"\ntls_ca_file = {}\n\
         [notify.other]\nwebhook = \"{url}/other\"\n\
         [notify.own]\nwebhook = \"{url}/own\"\ntls_ca_file = {}\n\
         [notify.misnamed]\nwebhook = \"https://localhost:{}/misnamed\"\ntls_ca_file = {}\n\
         [notify.wrong]\nwebhook = \"{url}/wrong\"\ntls_ca_file = {}\n",
        authority.quoted("ca.pem"),
        authority.quoted("cert.pem"),
        receiver.port,
        authority.quoted("cert.pem"),
        stranger.quoted("ca.pem")
    ));
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    receiver.awaits(2);
    let listed = || hero.run(&["notify", "list"]).code(0).stdout;
    for what_to_do in [
        "TLS with localhost failed: invalid peer certificate: certificate not valid for name",
        "set tls_ca_file of [notify.other] to its certificate",
        "tls_ca_file of [notify.wrong], does not have its authority",
    ] {
        wait_until(what_to_do, || listed().contains(what_to_do));
    }
    let posts = receiver.received();
    let paths: BTreeSet<&str> = posts.iter().filter_map(|post| post["path"].as_str()).collect();
    assert_eq!(paths, BTreeSet::from(["/hook", "/own"]), "{posts:?}");
}

#[test]
fn mail_goes_to_servers_with_tls_from_the_start_or_by_starttls() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "tls");
    let server = Receiver::start(&redis, "tls_mail_server.py");
    let implicit = fs::read_to_string(server.folder.join("implicit")).expect("a port");
    let secret = redis.folder().join("secret");
    fs::write(&secret, "hunter2\n").expect("written");
    let table = |name: &str, url: &str, more: &str| {
        format!(
            "[notify.{name}]\nmail = [\"{name}@example.org\"]\nfrom = \"hero@example.org\"\n\
             smtp = \"{url}\"\nsecret_file = {secret:?}\n{more}\n"
        )
    };
    let trusts = format!("tls_ca_file = {}", authority.quoted("ca.pem"));
    let plain = format!("smtp://hero@127.0.0.1:{}", server.port);
    let whole = format!("smtps://hero@127.0.0.1:{}", implicit.trim());
    let hero = Hero::on(&redis)
        .add(&table("starttls", &plain, &trusts))
        .add(&table("implicit", &whole, &trusts))
        .add(&table("stranger", &plain, ""));
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    server.awaits(2);
    let listed = || hero.run(&["notify", "list"]).code(0).stdout;
    let what_to_do = "set tls_ca_file of [notify.stranger] to its certificate";
    wait_until("the stranger is refused", || listed().contains(what_to_do));
    let received = server.received();
    assert_eq!(received.len(), 2, "{received:?}");
    for mail in received {
        assert_eq!(mail["to"][0], format!("{}@example.org", mail["way"].as_str().expect("a way")));
        assert_eq!((&mail["user"], &mail["password"]), (&"hero".into(), &"hunter2".into()));
        assert!(mail["body"].as_str().expect("text").contains("broken disk"), "{mail}");
    }
}

#[test]
fn authority_that_the_machine_trusts_needs_no_setting() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "tls");
    let receiver = Receiver::start(&redis, "receiver.py");
    let server = Receiver::start(&redis, "tls_mail_server.py");
    let hero = Hero::on(&redis).add(&format!(
        "[notify.ops]\nwebhook = \"https://127.0.0.1:{}/hook\"\n\
         [notify.post]\nmail = [\"ops@example.org\"]\nfrom = \"hero@example.org\"\nsmtp = \"smtp://127.0.0.1:{}\"\n",
        receiver.port, server.port
    ));
    let _osis = hero.actor("osis-default-1").start();
    // The authorities of the machine, as update-ca-certificates makes them.
    let trusted = std::path::PathBuf::from(authority.file("ca.pem"));
    let _supervisor = hero.supervisor().env("SSL_CERT_FILE", &trusted).start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    receiver.awaits(1);
    server.awaits(1);
    assert_eq!(server.received()[0]["way"], "starttls");
}

#[test]
fn three_supervisors_deliver_each_message_once() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, "every = \"0s\"");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisors = [(); 3].map(|()| hero.supervisor().start());
    wanted(&redis, &["failed"]);
    let jobs: BTreeSet<String> = (0..15).map(|number| format!("j{number}")).collect();
    for id in &jobs {
        fail(&hero, &["--id", id]);
    }
    wait_until("all are delivered", || {
        receiver.received().len() >= jobs.len() && redis.all("NOTIFY_DUE").is_empty()
    });
    let messages = receiver.messages();
    let told = messages.iter().map(|of| of["events"][0]["job"].as_str().expect("text").to_owned());
    assert_eq!((messages.len(), told.collect::<BTreeSet<_>>()), (jobs.len(), jobs));
}
