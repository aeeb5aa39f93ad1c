//! The page while the supervisor or Redis stands still.

use super::browser::Browser;
use super::pages::has_browser;
use super::requests::{send, signed_in};
use super::visitors::READER;
use crate::support::{Frozen, Redis, Served, wait_until};

#[test]
fn page_without_a_heartbeat_says_that_it_is_not_live_and_dims_what_it_shows() {
    if !has_browser() {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    let browser = Browser::start(redis.folder());
    browser.open(&site.at(&format!("/?token={}", site.token(READER))));
    browser.waits_for("#live-text", "Live");
    let frozen = Frozen::new(site.supervisor.pid());
    browser.waits_for("#live-text", "Not live for");
    let is_dimmed = || browser.run("return document.documentElement.matches('.stale')") == true;
    wait_until("the page is dimmed", is_dimmed);
    assert_eq!(browser.run("return document.querySelector('#live').matches('.off')"), true);
    drop(frozen);
    wait_until("the page is live again", || browser.text("#live-text") == "Live" && !is_dimmed());
    let frozen = Frozen::new(redis.pid());
    wait_until("the page says that Redis is frozen", || browser.text("#live-text") != "Live");
    drop(frozen);
    wait_until("the page is live again", || browser.text("#live-text") == "Live" && !is_dimmed());
}

#[test]
fn frozen_redis_is_said_on_a_page() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    assert_eq!(send(&site, "GET", "/jobs", &cookie, "").status, 200);
    let frozen = Frozen::new(redis.pid());
    // A snapshot is served while it is fresh, then the page says so.
    let mut last = send(&site, "GET", "/jobs", &cookie, "");
    wait_until("the page says so", || {
        last = send(&site, "GET", "/jobs", &cookie, "");
        last.status == 503
    });
    assert!(last.body.contains("<h1>"), "{}", last.body);
    assert!(last.body.contains("not answered"), "{}", last.body);
    drop(frozen);
    wait_until("the page is back", || send(&site, "GET", "/jobs", &cookie, "").status == 200);
}
