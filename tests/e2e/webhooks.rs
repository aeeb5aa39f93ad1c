//! Webhooks of other services, with the signatures that they make.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, Served, keys};

const SECRET: &str = "a secret of two";

/// Serves webhooks by their names, each with its settings, whose script returns its parameter `text`.
fn served(redis: &Redis, hooks: &[(&str, &str)]) -> Served {
    let path = |name: &str| redis.folder().join(name).display().to_string();
    fs::write(path("secret"), format!("{SECRET}\n")).expect("written");
    fs::write(
        path("deploy.rhai"),
        "if params.text == () { throw \"no text\" } `got ${params.text}`",
    )
    .expect("written");
    let tables = hooks.iter().map(|(name, settings)| {
        format!(
            "[hook.{name}]\nsecret_file = \"{}\"\nuses = \"deploy\"\n{settings}\n",
            path("secret")
        )
    });
    let hero = Hero::on(redis).add(&tables.collect::<String>());
    hero.run(&["script", "publish", "deploy", &path("deploy.rhai")]).code(0);
    Served::with(hero, redis)
}

/// Sends a delivery to a webhook as a service does. Returns the status and the answer.
#[expect(clippy::disallowed_methods, reason = "another program signs and sends")]
fn send(
    site: &Served,
    sender: &str,
    path: &str,
    secret: &str,
    body: &Value,
    more: &[&str],
) -> (u64, String) {
    let sends = format!("{}/tests/e2e/webhooks.py", env!("CARGO_MANIFEST_DIR"));
    let url = site.at(&format!("/hooks/{path}"));
    let sent = Command::new("python3")
        .args([&sends, sender, &url, secret, &body.to_string()])
        .args(more)
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&sent.stdout).into_owned();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{sent:?}"));
    (
        answer["status"].as_u64().expect("a status"),
        answer["text"].as_str().expect("text").to_owned(),
    )
}

fn id_in(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).expect(answer);
    answer["id"].as_str().expect("an id").to_owned()
}

#[test]
fn delivery_with_the_proof_of_its_sender_runs_its_script_and_a_stranger_learns_nothing() {
    let redis = Redis::start();
    let site = served(
        &redis,
        &[
            ("github", "verify = \"github\"\nparams = { text = \"/after\" }"),
            ("gitlab", "verify = \"gitlab\"\nparams = { text = \"/checkout_sha\" }"),
            ("stripe", "verify = \"stripe\"\nparams = { text = \"/data/object/id\" }"),
            ("slack", "verify = \"slack\"\nparams = { text = \"/event/text\" }"),
            (
                "shopify",
                "verify = \"hmac-sha256\"\nheader = \"X-Shopify-Hmac-Sha256\"\nencoding = \"base64\"\n\
                 params = { text = \"X-Shopify-Topic\" }",
            ),
            (
                "timed",
                "verify = \"hmac-sha256\"\ntimestamp_header = \"X-Time\"\nparams = { text = \"/a\" }",
            ),
            ("door", "verify = \"path\"\nparams = { text = \"/a\" }"),
        ],
    );
    let _osis = site.hero.actor("osis-default-1").start();
    let (status, stranger) = send(&site, "github", "nobody", SECRET, &json!({}), &[]);
    assert_eq!(status, 403);
    for (sender, body, more, text) in [
        ("github", json!({ "after": "7f9c2ba" }), "X-GitHub-Event:push", "7f9c2ba"),
        ("gitlab", json!({ "checkout_sha": "82b3d5a" }), "X-Gitlab-Event:Push Hook", "82b3d5a"),
        ("stripe", json!({ "id": "evt_1", "data": { "object": { "id": "ch_1" } } }), "a:b", "ch_1"),
        ("slack", json!({ "event_id": "Ev1", "event": { "text": "hi" } }), "a:b", "hi"),
        ("shopify", json!({ "id": 1 }), "X-Shopify-Topic:orders/create", "orders/create"),
        ("timed", json!({ "a": "on time" }), "a:b", "on time"),
        ("door", json!({ "a": "in" }), "a:b", "in"),
    ] {
        let is_door = sender == "door";
        let path = if is_door {
            format!("door/{}", SECRET.replace(' ', "%20"))
        } else {
            sender.to_owned()
        };
        let (status, answer) = send(&site, sender, &path, SECRET, &body, &[more]);
        assert_eq!(status, 202, "{sender}: {answer}");
        let id = id_in(&answer);
        until(&redis, &id, "finished");
        assert_eq!(field(&redis, &id, "output"), Some(format!("got {text}")), "{sender}");
        assert_eq!(field(&redis, &id, "caller_id"), Some(format!("hook:{sender}")));
        let path = if is_door { "door/other" } else { sender };
        let refused = send(&site, sender, path, "a secret of none", &body, &[more]);
        assert_eq!(refused, (403, stranger.clone()), "{sender}");
        if ["stripe", "slack", "timed"].contains(&sender) {
            let old = send(&site, sender, sender, SECRET, &body, &[more, "age=600"]);
            assert_eq!(old, (403, stranger.clone()), "{sender}");
        }
    }
    assert_eq!(redis.keys(&keys::prefix("JOB")).len(), 7, "one job for each delivery with a proof");
}

#[test]
fn repeated_delivery_runs_once_and_one_that_does_not_meet_the_conditions_is_skipped() {
    let redis = Redis::start();
    let site = served(
        &redis,
        &[
            (
                "github",
                "verify = \"github\"\nwhen = { X-GitHub-Event = \"push\", \"/ref\" = \"refs/heads/*\" }\n\
                 params = { text = \"/after\" }\nrate = \"6/h\"",
            ),
            ("waits", "verify = \"gitlab\"\nparams = { text = \"/a\" }\nwait = \"60s\""),
        ],
    );
    let _osis = site.hero.actor("osis-default-1").start();
    let body = json!({ "ref": "refs/heads/main", "after": "7f9c2ba" });
    let of = |id: &str, event: &str| {
        [format!("X-GitHub-Delivery:{id}"), format!("X-GitHub-Event:{event}")]
    };
    let github = |body: &Value, id: &str, event: &str| {
        let [id, event] = of(id, event);
        send(&site, "github", "github", SECRET, body, &[&id, &event])
    };
    let (status, first) = github(&body, "one", "push");
    assert_eq!(status, 202, "{first}");
    let id = id_in(&first);
    until(&redis, &id, "finished");
    // Also after its end.
    let (_, again) = github(&body, "one", "push");
    assert_eq!(again, json!({ "id": id, "created": false }).to_string());
    let (_, other) = github(&body, "two", "push");
    assert_ne!(id_in(&other), id);
    let (status, skipped) = github(&body, "three", "ping");
    assert_eq!(
        (status, skipped.as_str()),
        (200, r#"{"skipped":"X-GitHub-Event is `ping`, not `push`"}"#)
    );
    let (status, _) = github(&json!({ "ref": "refs/tags/v1" }), "four", "push");
    assert_eq!(status, 200);
    assert_eq!(redis.keys(&keys::prefix("JOB")).len(), 2);

    let waited = send(&site, "gitlab", "waits", SECRET, &json!({ "a": 7 }), &[]);
    assert_eq!(waited, (200, "got 7".to_owned()));
    let (status, why) = send(&site, "gitlab", "waits", SECRET, &json!({}), &[]);
    assert_eq!(status, 422, "the script fails: {why}");
    assert_eq!(github(&body, "six", "push").0, 202);
    let (status, why) = github(&body, "seven", "push");
    assert_eq!((status, why.contains("rate of [hook.github]")), (429, true), "{why}");
    assert_eq!(send(&site, "github", "github", "wrong", &body, &[]).0, 403);
    assert_eq!(send(&site, "github", "github", "wrong", &body, &[]).0, 403);

    let listed = site.hero.run(&["hook", "list"]).code(0).stdout;
    for said in [
        "/hooks/github",
        "waits",
        &*format!("github submitted job {id}"),
        &*format!("github repeated: job {id}"),
        "github skipped: X-GitHub-Event is `ping`, not `push`",
    ] {
        assert!(listed.contains(said), "{said}: {listed}");
    }
    assert_eq!(listed.matches("refused:").count(), 1, "one a minute: {listed}");
    let audit = site.hero.run(&["audit", "--who", "hook:github"]).code(0).stdout;
    assert!(audit.contains("hook.receive") && audit.contains("webhook"), "{audit}");
}

#[test]
fn test_of_a_webhook_prints_its_job_and_submits_nothing() {
    let redis = Redis::start();
    let site = served(
        &redis,
        &[(
            "github",
            "verify = \"github\"\nwhen = { X-GitHub-Event = \"push\" }\nparams = { text = \"/after\" }",
        )],
    );
    let hero = &site.hero;
    let test = |name: &str, header: &str, body: &str| {
        hero.run_with_input(&["hook", "test", name, "-H", header], body)
    };
    test("github", "x-github-event: push", r#"{"after": "7f"}"#)
        .code(0)
        .stdout("submits {\"uses\":\"deploy\",\"params\":{\"text\":\"7f\"}}\n");
    test("github", "x-github-event: ping", "{}")
        .code(1)
        .stdout("skipped: X-GitHub-Event is `ping`, not `push`\n");
    test("gitlab", "a: b", "{}").code(66).says("no [hook.gitlab]");
    assert!(redis.keys(&keys::prefix("JOB")).is_empty());
    fs::remove_file(redis.folder().join("secret")).expect("it was there");
    test("github", "x-github-event: push", "{}").code(78).says("secret");
}
