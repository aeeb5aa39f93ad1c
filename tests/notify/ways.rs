//! The other ways: a mail server, `sendmail`, a program, the journal; and the commands and pages that show deliveries.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use super::{Receiver, fail, hero, wanted};
use crate::support::{Hero, Redis, Served, wait_until};

/// Writes a program.
fn program(redis: &Redis, name: &str, text: &str) -> PathBuf {
    let file = redis.folder().join(name);
    fs::write(&file, text).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
    file
}

#[test]
fn mail_server_gets_a_mail_for_each_address() {
    let redis = Redis::start();
    let server = Receiver::start(&redis, "mail_server.py");
    let hero = Hero::on(&redis).add(&format!(
        "[notify.ops]\nmail = [\"ops@example.org\", \"ann@example.org\"]\nfrom = \"hero@example.org\"\n\
         smtp = \"smtp://127.0.0.1:{}\"\n",
        server.port
    ));
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad", "--name", "backup"]);
    server.awaits(2);
    let mails = server.received();
    let to = [&mails[0]["to"], &mails[1]["to"]];
    assert_eq!(
        to,
        [&serde_json::json!(["ops@example.org"]), &serde_json::json!(["ann@example.org"])]
    );
    let mail = &mails[0];
    assert_eq!(mail["from"], "hero@example.org");
    let text = mail["body"].as_str().expect("text");
    assert!(text.contains("Subject: hero: failed: backup (osis job bad)"), "{text}");
    assert!(text.contains("broken disk") && text.contains("hero job show bad"), "{text}");
}

#[test]
fn address_that_the_server_refuses_for_good_silences_no_other_and_is_tried_once() {
    let redis = Redis::start();
    let server = Receiver::start(&redis, "mail_server.py");
    let receiver = Receiver::start(&redis, "receiver.py");
    receiver.answers("500");
    let hero = Hero::on(&redis).add(&format!(
        "[notify.ops]\nmail = [\"gone@example.org\", \"ann@example.org\"]\nfrom = \"hero@example.org\"\n\
         smtp = \"smtp://127.0.0.1:{}\"\nwebhook = \"http://127.0.0.1:{}/hook\"\n",
        server.port, receiver.port
    ));
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    // The webhook fails for now: it alone is tried again.
    receiver.awaits(2);
    receiver.answers("200");
    let listed = || hero.run(&["notify", "list"]).code(0).stdout;
    wait_until("it ends", || listed().contains("failed"));
    let listed = listed();
    assert!(listed.contains("mail to gone@example.org") && listed.contains("550"), "{listed}");
    assert_eq!(server.received().len(), 1);
    assert_eq!(server.received()[0]["to"], serde_json::json!(["ann@example.org"]));
    let tries = fs::read_to_string(redis.folder().join("mail_server.py/refused")).expect("a file");
    assert_eq!(tries.lines().count(), 1, "{tries}");
    wait_until("nothing is left", || redis.all("NOTIFY_DUE").is_empty());
}

#[test]
fn sendmail_gets_the_mail_on_its_standard_input() {
    let redis = Redis::start();
    let told = redis.folder().join("mail");
    let text = format!(
        "#!/bin/sh\necho \"$@\" > {0}.new\ncat >> {0}.new\nmv {0}.new {0}\n",
        told.display()
    );
    let sendmail = program(&redis, "sendmail", &text);
    let hero = Hero::on(&redis).add(&format!(
        "[notify.ops]\nmail = [\"ops@example.org\"]\nfrom = \"Hero Ops <hero@example.org>\"\nsendmail = {sendmail:?}\n"
    ));
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    wait_until("the mail is there", || told.exists());
    let mail = fs::read_to_string(&told).expect("a file");
    assert!(mail.starts_with("-i -- ops@example.org\n"), "{mail}");
    assert!(mail.contains("Subject: hero: failed: osis job bad") && !mail.contains('\r'), "{mail}");
    let from = mail.lines().find(|line| line.starts_with("From: ")).unwrap_or_default();
    assert!(from.contains("Hero Ops") && from.ends_with("<hero@example.org>"), "{mail}");
    assert!(mail.contains("MIME-Version: 1.0\n"), "{mail}");
}

#[test]
fn program_gets_the_message_in_its_sandbox_and_no_secret() {
    let redis = Redis::start();
    let told = redis.folder().join("told");
    fs::create_dir(&told).expect("a folder");
    let secret = redis.folder().join("secret");
    fs::write(&secret, "hunter2").expect("written");
    let text = format!(
        "#!/bin/sh\nenv > {0}/env\ncat {1} > {0}/secret 2>&1\ncat > {0}/new\nmv {0}/new {0}/message\n",
        told.display(),
        secret.display()
    );
    let page = program(&redis, "page", &text);
    let hero = Hero::on(&redis).add(&format!(
        "[notify.ops]\ncommand = [{page:?}]\nsecret_file = {secret:?}\njournal = true\nwrite = [{told:?}]\n"
    ));
    let _osis = hero.actor("osis-default-1").start();
    let supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    wait_until("the program has the message", || told.join("message").exists());
    let read = |name: &str| fs::read_to_string(told.join(name)).expect("a file");
    let message: Value = serde_json::from_str(&read("message")).expect("JSON");
    assert_eq!(message["events"][0]["job"], "bad");
    let seen = [read("env"), read("secret")].concat();
    assert!(!seen.contains("hunter2"), "{seen}");
    assert!(!seen.contains("HERO_CONFIG") && seen.contains("Permission denied"), "{seen}");
    wait_until("the journal has it", || supervisor.err().contains("failed: osis job bad"));
}

#[test]
fn failing_notification_is_listed_is_a_problem_and_is_shown_on_the_page() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let url = format!("[notify.ops]\nwebhook = \"http://127.0.0.1:{}/hook\"\n", receiver.port);
    let served = Served::with(Hero::on(&redis).add(&url), &redis);
    let hero = &served.hero;
    wanted(&redis, &["failed"]);
    receiver.answers("500");
    hero.run(&["notify", "test", "ops"]).code(1).says("the answer is 500");
    let tried = hero.run(&["notify", "list", "--json"]).code(0).stdout;
    let tried: Value = serde_json::from_str(&tried).expect("JSON");
    assert_eq!(tried["failing"], serde_json::json!([]), "a test is tried once: {tried}");
    assert_eq!(
        (&tried["deliveries"][0]["state"], &tried["deliveries"][0]["attempts"]),
        (&"failed".into(), &1.into())
    );
    let _osis = hero.actor("osis-default-1").start();
    fail(hero, &["--id", "bad"]);
    wait_until("it fails", || hero.run(&["notify", "list"]).stdout.contains("Failing:"));
    let listed = hero.run(&["notify", "list"]).code(0).stdout;
    assert!(listed.contains("Failing:") && listed.contains("retrying"), "{listed}");
    let status = hero.run(&["status"]).stdout;
    assert!(status.contains("notification ops cannot be delivered"), "{status}");
    let health = served.call("system.health", &serde_json::json!({}));
    assert!(health.to_string().contains("notification_fails"), "{health}");
    receiver.answers("200");
    hero.run(&["notify", "test", "ops"]).code(0);
    let listed = hero.run(&["notify", "list", "--json"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["failing"], serde_json::json!([]), "{listed}");
    assert_eq!(listed["deliveries"][0]["state"], "delivered");
    let answer = served.call("notify.list", &serde_json::json!({}));
    assert_eq!(answer["deliveries"][0]["notification"], "ops", "{answer}");
}

#[test]
fn test_of_a_notification_is_sent_while_it_gathers_events() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).add("[notify.ops]\njournal = true\n");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    for id in ["a", "b"] {
        fail(&hero, &["--id", id]);
    }
    wait_until("it gathers", || {
        hero.run(&["notify", "list"]).code(0).stdout.contains("ops: held 1 event")
    });
    let told = hero.run(&["notify", "test", "ops"]).code(0).stdout;
    assert!(told.starts_with("ops was told"), "{told}");
}

#[test]
fn test_of_an_unknown_notification_is_refused_and_waits_for_no_supervisor() {
    let redis = Redis::start();
    let hero =
        Hero::on(&redis).add("[notify.ops]\njournal = true\n[notify.chat]\njournal = true\n");
    let said = "this configuration has no [notify.opps]; did you mean `ops`?";
    hero.run(&["notify", "test", "opps"]).code(66).says(said);
    let said = "this configuration has no [notify.xyz]; it has: chat, ops";
    hero.run(&["notify", "test", "xyz"]).code(66).says(said);
    let of_none = Hero::on(&redis);
    let _supervisor = of_none.supervisor().start();
    wait_until("it is known", || {
        of_none.run(&["--json", "status"]).stdout.contains("\"settings_at\"")
    });
    let said = "this configuration has no [notify.xyz]; it has none";
    of_none.run(&["notify", "test", "xyz"]).code(66).says(said);
}

#[test]
fn nothing_is_written_for_notifications_where_there_are_none() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    fail(&hero, &["--notify", "ops"]);
    for kind in ["NOTIFY_EVENTS", "NOTIFY_WANTED", "NOTIFY_FAILING", "NOTIFY_STATE"] {
        assert_eq!(redis.all(kind), [] as [&str; 0], "{kind}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another program makes the signature")]
fn template_headers_and_signature_use_the_secret() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let secret = redis.folder().join("secret");
    fs::write(&secret, "hunter2\n").expect("written");
    let more = format!(
        "secret_file = {secret:?}\ntemplate = '{{\"text\": {{{{ title }}}}}}'\n\
         [notify.ops.headers]\nAuthorization = \"Bearer {{secret}}\"\n"
    );
    let hero = hero(&redis, &receiver, &more);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "bad"]);
    receiver.awaits(1);
    let told = &receiver.received()[0];
    assert_eq!(told["body"], "{\"text\": \"failed: osis job bad\"}");
    assert_eq!(told["headers"]["authorization"], "Bearer hunter2");
    let signature = std::process::Command::new(super::PYTHON)
        .args(["-c", "import hmac, sys; print(hmac.new(b'hunter2', sys.argv[1].encode(), 'sha256').hexdigest())"])
        .arg(told["body"].as_str().expect("text"))
        .output()
        .expect("python3 is installed");
    let signature = String::from_utf8_lossy(&signature.stdout).trim().to_owned();
    assert_eq!(told["headers"]["hero-signature"], format!("sha256={signature}"));
}

#[test]
fn check_refuses_a_template_that_makes_no_body() {
    let redis = Redis::start();
    let check = |template: &str| {
        let table =
            format!("[notify.ops]\nwebhook = \"http://127.0.0.1:1/\"\ntemplate = '{template}'\n");
        Hero::on(&redis).add(&table).run(&["check"])
    };
    check("{{ events[0].name }} {% if events[0].exit_code %}1{% endif %}").code(0);
    check("{{ event.name }}")
        .code(78)
        .says("notify.ops.template, for the event failed: the template names event");
    check("{% for a in events %}").code(78).says("notify.ops.template");
}
