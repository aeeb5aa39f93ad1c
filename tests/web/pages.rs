//! Every page in a real browser: no error on the console, nothing for axe-core to report, and pictures of it.

use std::path::PathBuf;

use super::axe;
use super::browser::Browser;
use super::site::{OPERATOR, READER, Served};
use crate::support::{Hero, Redis, needs};

/// The pages that open without a job.
const PAGES: [&str; 6] = [
    "/",
    "/queues",
    "/queues/type:bash",
    "/queues/type:bash/purge",
    "/actors",
    "/actors/bash:default:1",
];

fn has_browser() -> bool {
    needs("chromium", Browser::is_here)
}

fn picture(page: &str, name: &str) -> PathBuf {
    let page = match page.trim_matches('/').replace(['/', ':', '?', '='], "-") {
        empty if empty.is_empty() => "overview".to_owned(),
        page => page,
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");
    PathBuf::from(folder).join(format!("{page}-{name}.png"))
}

#[test]
fn every_page_opens_without_errors_and_is_accessible() {
    if !has_browser() {
        return;
    }
    let has_axe = needs("axe-core", || axe::script().exists());
    let violations =
        |browser: &Browser| if has_axe { axe::violations(browser) } else { Vec::new() };
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").start();
    for number in 0..3 {
        let script = format!("echo {number}; exit {number}");
        hero.run(&["submit", "-t", "bash", "-e", &script]).code(0);
    }
    hero.run(&["submit", "-t", "python", "-e", "1"]).code(0);
    let site = Served::on(&redis, "");
    let browser = Browser::start(redis.folder());
    browser.open(&site.at(&format!("/?token={OPERATOR}")));
    assert_eq!(browser.address(), site.at("/"), "the token stays in the address");
    let mut found = Vec::new();
    for page in PAGES {
        for (theme, width) in [("light", 1280), ("dark", 1280), ("light", 500), ("dark", 500)] {
            browser.size(width, 900);
            browser.prefer(theme);
            browser.open(&site.at(page));
            let name = format!("{theme}-{width}");
            let mut said = browser.console();
            said.extend(violations(&browser));
            found.extend(said.into_iter().map(|said| format!("{page} {name}: {said}")));
            browser.picture(&picture(page, &name));
        }
    }
    browser.open(&site.at("/login"));
    found.extend(violations(&browser).into_iter().map(|said| format!("/login: {said}")));
    browser.picture(&picture("/login", "dark-500"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn numbers_change_while_the_page_is_open() {
    if !has_browser() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let site = Served::on(&redis, "/hero");
    let browser = Browser::start(redis.folder());
    browser.open(&site.at("/hero/login"));
    browser.write("#token", READER);
    browser.click("main button");
    browser.waits_for("h1", "Overview");
    browser.waits_for("#live-text", "Live");
    assert_eq!(browser.text("#n-queued"), "0");
    hero.run(&["submit", "-t", "bash", "-e", "true"]).code(0);
    browser.waits_for("#n-queued", "1");
    browser.waits_for("#queue-rows", "type:bash");
    assert_eq!(browser.text("#queue-rows button"), "", "a reader may not pause");
    assert_eq!(browser.console(), [] as [&str; 0]);
}
