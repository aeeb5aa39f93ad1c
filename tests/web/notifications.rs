//! The page of notifications: deliveries, and the notifications that fail.

use serde_json::json;

use super::jobs::is_safe;
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::notify::Receiver;
use crate::support::{Hero, Redis, Served, wait_until};

#[test]
fn page_shows_what_was_delivered_and_what_fails_until_it_is_delivered() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let url = format!("http://127.0.0.1:{}/hook", receiver.port);
    let tables = format!(
        "[notify.ops]\nwebhook = \"{url}\"\non = [\"failed\", \"held\", \"cron_late\"]\nevery = \"0s\"\n\
         [notify.hostile]\nwebhook = \"{url}\"\ntemplate = \"{{{{ nothing }}}}<script>alert(1)</script>\"\nnamed = true\n"
    );
    let site = Served::with(Hero::on(&redis).add(&tables), &redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = || send(&site, "GET", "/notifications", &cookie, "");
    let empty = page();
    is_safe(&empty, "/notifications");
    assert!(empty.body.contains("No notification was delivered yet."), "{}", empty.body);
    receiver.answers("500");
    site.hero.run(&["notify", "test", "ops"]).code(1);
    let _osis = site.hero.actor("osis-default-1").start();
    let fails = [
        "exec",
        "-t",
        "osis",
        "--retries",
        "0",
        "--notify",
        "ops",
        "--notify",
        "hostile",
        "-e",
        "throw 1",
    ];
    site.hero.run(&fails).code(1);
    wait_until("both have failed", || {
        let body = page().body;
        let rows = body.split("id=\"failing\"").nth(1).unwrap_or_default();
        rows.contains("the answer is 500") && rows.contains("the template names nothing")
    });
    let failing = page();
    is_safe(&failing, "/notifications");
    let rows = failing.body.split("id=\"failing\"").nth(1).expect("the notifications that fail");
    for text in ["ops", "retrying", "the answer is 500", "the template names nothing"] {
        assert!(rows.contains(text), "{text}: {rows}");
    }
    // The overview has read the namespace some moments ago.
    let overview = || send(&site, "GET", "/", &cookie, "").body.to_lowercase();
    wait_until("the overview has it", || {
        overview().contains("notification ops cannot be delivered")
    });
    for args in [&["status"][..], &["doctor"]] {
        let said = site.hero.run(args).stdout;
        assert!(said.contains("notification ops cannot be delivered"), "{args:?}: {said}");
    }
    receiver.answers("204");
    site.hero.run(&["notify", "test", "ops"]).code(0);
    let page = page();
    let rows = page.body.split("id=\"deliveries\"").nth(1).expect("the latest deliveries");
    assert!(
        rows.contains("delivered") && rows.contains("test: a test of this notification"),
        "{rows}"
    );
    // What each notification tells is the same for programs.
    let answer = site.call("notify.list", &json!({}));
    let ops = json!({ "name": "ops", "ways": ["webhook"], "on": ["failed", "held", "cron_late"] });
    assert_eq!((&answer["configured"][1], &answer["held"]), (&ops, &json!([])), "{answer}");
    // The button of each notification sends a test.
    let form = format!("csrf={}&test=ops", page.forgery());
    let sent = send(&site, "POST", "/notifications", &cookie, &form);
    assert_eq!(sent.status, 303, "{}", sent.body);
    let toast = sent.header("set-cookie").unwrap_or_default().to_owned();
    assert!(toast.contains("was%20delivered"), "{toast}");
    let reader = signed_in(&site, READER);
    assert_ne!(send(&site, "GET", "/notifications", &reader, "").status, 200);
}
