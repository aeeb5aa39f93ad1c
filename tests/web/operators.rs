//! The tasks of an operator at the page, in a real browser on the program.

use hero::proto::job::JobEnd;
use serde_json::{Value, json};

use super::browser::Browser;
use super::pages::has_browser;
use super::visitors::OPERATOR;
use super::visits::sign_in;
use super::world::PageWorld;
use crate::support::{keys, wait_until};

/// Starts a world and a browser whose visitor is an operator. `None` without a browser.
fn operator() -> Option<(PageWorld, Browser)> {
    if !has_browser() {
        return None;
    }
    let world = PageWorld::start();
    let browser = Browser::start(world.redis.folder());
    browser.size(1280, 900);
    sign_in(&browser, &world, OPERATOR);
    Some((world, browser))
}

/// Chooses a value of a select as a person does, which sends the form.
fn choose(browser: &Browser, name: &str, value: &str) {
    browser.run(&format!(
        "const of = document.querySelector('select[name={name}]');
         of.value = '{value}'; of.dispatchEvent(new Event('change', {{ bubbles: true }}));"
    ));
}

/// Returns the document of a job.
fn job(world: &PageWorld, id: &str) -> Value {
    let shown = world.site.hero.run(&["job", "show", id, "--json"]).code(0).stdout;
    serde_json::from_str(&shown).expect("JSON")
}

#[test]
fn operator_finds_the_failures_of_one_kind_of_yesterday_and_retries_them() {
    let Some((world, browser)) = operator() else { return };
    for (id, script) in [("odd-1", "exit 9"), ("odd-2", "exit 9"), ("odd-3", "exit 9")] {
        world.site.hero.run(&["submit", "-t", "bash", "--id", id, "-e", script]).code(0);
        wait_until("it failed", || {
            world.redis.field(&keys::job(id), "status").as_deref() == Some("error")
        });
    }
    // Two of them ended a day earlier.
    let day = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let noon = format!("{}T12:00:00Z", day.yesterday().expect("a day"));
    let noon_us = noon.parse::<jiff::Timestamp>().expect("a time").as_microsecond();
    let failed = keys::ended(JobEnd::Failed, "bash");
    for id in ["odd-1", "odd-2"] {
        world.redis.set_field(&keys::job(id), "finished_at", &noon);
        world.redis.run(&format!("ZADD {failed} {noon_us} {id}"));
    }
    browser.open(&world.site.at("/jobs?state=failed&ended_until=today"));
    choose(&browser, "ended_since", "yesterday");
    browser.waits_for("#headline", "2 found");
    browser.click("a[href*='by=error']");
    browser.waits_for("h1", "Failures");
    browser.click("tbody a[href*='kind=']");
    browser.waits_for("#headline", "2 found");
    browser.click("tbody .pick");
    browser.waits_for("[data-picked]", "1");
    browser.click("[name=all]");
    browser.click(".bulk [value=retry]");
    browser.waits_for("h1", "Retry 2 jobs?");
    browser.click("main .danger");
    browser.waits_for(".toast", "Retried 2 jobs.");
    wait_until("both ran again", || {
        ["odd-1", "odd-2"].iter().all(|id| {
            let at = job(&world, id)["finished_at"].clone();
            at.is_string() && at != json!(noon)
        })
    });
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn operator_drains_an_actor_from_its_page_and_sees_what_it_runs() {
    let Some((world, browser)) = operator() else { return };
    browser.open(&world.site.at("/actors/bash:default:1"));
    browser.waits_for("main", "Running jobs");
    browser.waits_for("main", "long import");
    browser.waits_for("main", "Last hour");
    browser.click("[name=do][value=drain]");
    browser.waits_for("#headline", "draining");
    wait_until("the actor drains", || {
        let listed = world.site.hero.run(&["actor", "list", "--json"]).code(0).stdout;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        listed["actors"][0]["state"] == "draining"
    });
    let status = world.redis.field(&keys::job("running"), "status");
    assert_eq!(status.as_deref(), Some("started"), "its job goes on");
    browser.click("[name=do][value=resume]");
    browser.waits_for("#headline", "ready");
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn operator_runs_a_periodic_job_now_from_the_list_and_reads_its_script() {
    let Some((world, browser)) = operator() else { return };
    browser.open(&world.site.at("/cron"));
    browser.click("main tbody button[value=run]");
    browser.waits_for(".toast", "nightly runs now.");
    browser.waits_for("#state", "Finished");
    let id = browser.address().rsplit('/').next().unwrap_or_default().to_owned();
    assert_eq!(job(&world, &id)["caller_id"], "cron nightly");
    browser.open(&world.site.at("/cron/nightly"));
    browser.waits_for("main", "Script");
    browser.waits_for("main pre", "true");
    browser.waits_for("main", "Firings");
    assert_eq!(browser.console(), [] as [&str; 0]);
}
