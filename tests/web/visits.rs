//! Visitors submit, watch, retry and stop jobs, in a real browser.

use std::fs;

use serde_json::{Value, json};

use super::browser::Browser;
use super::pages::has_browser;
use super::visitors::{OPERATOR, READER};
use super::world::PageWorld;
use crate::support::{keys, until_exists, wait_until};

/// Signs in by the form.
pub(super) fn sign_in(browser: &Browser, world: &PageWorld, token: &[&str]) {
    browser.open(&world.site.at("/login"));
    browser.write("#token", &world.site.token(token));
    browser.click("main button");
    browser.waits_for("h1", "Overview");
}

/// Returns the status of the answer to a form that a visitor forges out of the open page.
fn posts(browser: &Browser, path: &str, fields: &str) -> Value {
    browser.run_async(&format!(
        "const csrf = document.querySelector('[name=csrf]').value;
         const body = new URLSearchParams('{fields}'); body.set('csrf', csrf);
         const answer = await fetch('{path}', {{ method: 'POST', body, redirect: 'manual' }});
         return answer.status;"
    ))
}

/// Returns the name for the file that a browser saves from a link, and its text.
fn download(browser: &Browser, path: &str) -> (String, String) {
    let answer = browser.run_async(&format!(
        "const answer = await fetch('{path}');
         return [answer.headers.get('content-disposition'), await answer.text()];"
    ));
    let text = |place: usize| answer[place].as_str().unwrap_or_default().to_owned();
    (text(0), text(1))
}

#[test]
fn job_is_submitted_watched_to_its_end_retried_and_stopped() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = Browser::start(world.redis.folder());
    browser.size(1280, 900);
    sign_in(&browser, &world, OPERATOR);
    let end = world.redis.folder().join("end-of-watched");
    browser.open(&world.site.at("/submit"));
    browser.run("document.querySelector('#f-script_type').value = 'bash'");
    browser.write("#f-script", &format!("echo begun >&2; {}; echo '<b>done'", until_exists(&end)));
    browser.run("document.querySelector('main details').open = true");
    browser.write("#f-id", "watched");
    browser.click("button.main");
    browser.waits_for(".toast", "Submitted.");
    assert_eq!(browser.address(), world.site.at("/jobs/watched"));
    browser.waits_for("#state", "Running");
    browser.waits_for("#log-lines", "begun");
    fs::write(&end, "").expect("writing a file");
    browser.waits_for("#state", "Finished");
    browser.waits_for("#output-text", "<b>done");
    // The page was never loaded again: the buttons changed in place.
    browser.waits_for("#job-actions", "Retry");
    fs::remove_file(&end).expect("removing a file");
    browser.click("[data-key=retry]");
    browser.waits_for(".toast", "The job runs again.");
    browser.waits_for("#state", "Running");
    browser.waits_for("#job-actions", "Stop");
    browser.click("[data-key=stop]");
    browser.waits_for(".toast", "told to stop");
    browser.waits_for("#state", "Cancelled");
    assert_eq!(browser.console(), [] as [&str; 0]);
    let (name, log) = download(&browser, "/jobs/watched/log");
    assert!(name.contains("watched.log") && log.contains(" 2 begun"), "{name}: {log}");

    sign_in(&browser, &world, READER);
    browser.open(&world.site.at("/jobs/running"));
    browser.waits_for("#state", "Running");
    assert_eq!(browser.text("#job-actions"), "", "a reader sees no button");
    assert_eq!(posts(&browser, "/jobs/running", "do=stop"), json!(403));
    let status = world.redis.field(&keys::job("running"), "status");
    assert_eq!(status.as_deref(), Some("started"));
}

#[test]
fn all_jobs_that_match_are_stopped_after_a_question_and_saved_as_files() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let lines: Vec<String> = (0..30)
        .map(|number| format!("{{\"id\":\"many-{number}\",\"script_type\":\"python\",\"script\":\"1\",\"caller_id\":\"crowd\"}}\n"))
        .collect();
    world.site.hero.run_with_input(&["submit", "--batch", "-"], &lines.concat()).code(0);
    let browser = Browser::start(world.redis.folder());
    browser.size(1280, 900);
    sign_in(&browser, &world, OPERATOR);
    let list = "/jobs?type=python&caller=crowd";
    browser.open(&world.site.at(list));
    browser.waits_for("#headline", "25 found");
    browser.click("tbody .pick");
    browser.waits_for("[data-picked]", "1");
    browser.click("[name=all]");
    browser.click(".bulk [value=stop]");
    browser.waits_for("h1", "Stop 30 jobs?");
    browser.click("main .danger");
    browser.waits_for(".toast", "Stopped 30 jobs.");
    let status = |number: i32| world.redis.field(&keys::job(&format!("many-{number}")), "status");
    wait_until("all are stopped", || (0..30).all(|n| status(n).as_deref() == Some("error")));
    let unserved = world.redis.field(&keys::job("unserved"), "status");
    assert_eq!(unserved.as_deref(), Some("dispatched"), "another caller's job stays");
    browser.open(&world.site.at(&format!("{list}&state=cancelled")));
    browser.waits_for("#headline", "25 found");
    let (name, csv) = download(&browser, &format!("/jobs.csv?{}&state=cancelled", &list[6..]));
    assert!(name.contains("jobs.csv") && csv.lines().count() == 31, "{name}: {csv}");
    let (name, text) = download(&browser, "/jobs.json?caller=crowd");
    let listed: Value = serde_json::from_str(&text).expect("JSON");
    assert!(name.contains("jobs.json"), "{name}");
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(30), "{text}");
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn time_that_passes_while_its_page_is_open_is_reported_in_one_phrase() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = Browser::start(world.redis.folder());
    sign_in(&browser, &world, READER);
    browser.open(&world.site.at("/jobs/unserved"));
    browser.run(
        "const facts = document.querySelector('#facts'); window.told = [];
         new MutationObserver(() => window.told.push(facts.textContent)).observe(
             facts, { childList: true, characterData: true, subtree: true });",
    );
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    world.redis.set_field(&keys::job("unserved"), "run_at", format!("{soon:.3}"));
    let was_told = |pattern: &str| {
        browser.run(&format!("return window.told.some((text) => /{pattern}/.test(text));")) == true
    };
    wait_until("the time has passed", || was_told("Due\\d+ s ago"));
    assert!(!was_told("Due(now|in \\d+ s) ago"), "{}", browser.run("return window.told;"));
    assert_eq!(browser.console(), [] as [&str; 0]);
}
