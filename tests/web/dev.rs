//! The page of `hero dev`, as a person opens it.

use std::fs;

use super::browser::Browser;
use super::pages::has_browser;
use crate::support::{Hero, Redis, until_exists, wait_until};

#[test]
fn visitor_signs_in_to_hero_dev_by_the_form_and_runs_a_job() {
    if !has_browser() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("api.listen", "[\"127.0.0.1:0\"]");
    let (page, end) = (redis.folder().join("page"), redis.folder().join("end"));
    let script = format!(
        "echo \"$HERO_API $HERO_TOKEN\" > '{0}.new'; mv '{0}.new' '{0}'; {1}",
        page.display(),
        until_exists(&end)
    );
    let dev = hero.begin(&["dev", "--", "bash", "-c", &script]);
    wait_until("the page is served", || page.exists());
    let text = fs::read_to_string(&page).expect("an address");
    let (address, token) = text.trim().split_once(' ').expect("an address and a token");
    let browser = Browser::start(redis.folder());
    browser.open(&format!("{address}/login"));
    browser.write("#token", token);
    browser.click("main button");
    browser.waits_for("h1", "Overview");
    browser.open(&format!("{address}/submit"));
    browser.write("#f-script", "40 + 2");
    browser.click("button.main");
    browser.waits_for(".toast", "Submitted.");
    browser.waits_for("#output-text", "42");
    browser.waits_for("#job-actions", "Retry");
    browser.click("[data-key=retry]");
    browser.waits_for(".toast", "The job runs again.");
    assert_eq!(browser.console(), [] as [&str; 0]);
    fs::write(&end, "").expect("writing a file");
    dev.ends().code(0);
}
