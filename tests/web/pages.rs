//! Every page in a real browser: no error on the console, nothing for axe-core to report, and pictures of it.

use std::path::PathBuf;

use super::axe::{self, Rules};
use super::browser::Browser;
use super::visitors::{OPERATOR, READER};
use super::world::PageWorld;
use crate::support::{Hero, Redis, Served, needs};

/// The pages of the sitemap. `GRAPH` stands for the id of a job of a graph, `MACHINE` for the host name.
const PAGES: [&str; 43] = [
    "/",
    "/jobs",
    "/jobs?state=failed",
    "/jobs?by=error",
    "/jobs?q=nothing",
    "/jobs/running",
    "/jobs/running?find=begun",
    "/jobs/dead-one",
    "/jobs/dead-one/delete",
    "/jobs/GRAPH/graph",
    "/graphs",
    "/graphs/pipeline",
    "/graphs/pipeline?zoom=fit",
    "/graphs/pipeline/delete",
    "/queues",
    "/queues/type:bash",
    "/queues/type:bash/purge",
    "/machines",
    "/machines?by=os&state=absent",
    "/machines/MACHINE",
    "/actors",
    "/actors/bash:default:1",
    "/actors/bash:default:1/stop",
    "/submit",
    "/submit?from=running",
    "/submit?type=sal",
    "/dead",
    "/dead?by=error",
    "/cron",
    "/scripts",
    "/cron/nightly",
    "/stats",
    "/stats?by=host",
    "/stats?since=nonsense",
    "/limits",
    "/objects",
    "/objects?type=person&context=work",
    "/brokers",
    "/records",
    "/records?root=r1",
    "/notifications",
    "/nowhere",
    "/login",
];

/// The pages with a picture in each theme and width; the others have two, and their dark colours, which do not depend on
/// the width, are looked at in the dark one.
const PICTURES: [&str; 3] = ["/", "/jobs/running", "/jobs/GRAPH/graph"];

pub(super) fn has_browser() -> bool {
    needs("chromium", Browser::is_here)
}

fn picture(page: &str, name: &str) -> PathBuf {
    let page = match page.trim_matches('/').replace(['/', ':', '?', '=', '&'], "-") {
        empty if empty.is_empty() => "overview".to_owned(),
        page => page,
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");
    PathBuf::from(folder).join(format!("{page}-{name}.png"))
}

#[test]
fn first_half_of_the_pages_opens_without_errors_and_is_accessible() {
    if has_browser() {
        open_without_errors(&PAGES[..PAGES.len() / 2]);
    }
}

#[test]
fn second_half_of_the_pages_opens_without_errors_and_is_accessible() {
    if has_browser() {
        open_without_errors(&PAGES[PAGES.len() / 2..]);
    }
}

/// Opens pages in both themes and widths.
fn open_without_errors(pages: &[&str]) {
    let has_axe = needs("axe-core", || axe::script().exists());
    let world = PageWorld::start();
    let graph = world.id_of("count");
    let machine = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    let (site, browser) = (&world.site, Browser::start(world.redis.folder()));
    browser.open(&site.at(&format!("/?token={}", site.token(OPERATOR))));
    assert_eq!(browser.address(), site.at("/"), "the token stays in the address");
    let mut found = Vec::new();
    for page in pages {
        for width in [1280, 390] {
            browser.size(width, 900);
            browser.prefer("light");
            let address = page.replace("GRAPH", &graph).replace("MACHINE", &machine);
            browser.open(&site.at(&address));
            let mut said = browser.console();
            // The server says that a page does not exist, and the browser says so too.
            said.retain(|said| *page != "/nowhere" || !said.contains("404"));
            if has_axe {
                said.extend(axe::violations(&browser, Rules::All));
            }
            let pictures =
                if PICTURES.contains(page) { [true; 2] } else { [width > 500, width <= 500] };
            if pictures[0] {
                browser.picture(&picture(page, &format!("light-{width}")));
            }
            if pictures[1] {
                browser.prefer("dark");
                if has_axe {
                    said.extend(axe::violations(&browser, Rules::Colours));
                }
                browser.picture(&picture(page, &format!("dark-{width}")));
            }
            let wide = "return document.documentElement.scrollWidth > innerWidth";
            if browser.run(wide) == true {
                said.push("it scrolls sideways".to_owned());
            }
            found.extend(said.into_iter().map(|said| format!("{page} {width}: {said}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn numbers_change_while_the_page_is_open() {
    if !has_browser() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let site = Served::with(Hero::on(&redis).set("api.path", "\"/hero\""), &redis);
    let browser = Browser::start(redis.folder());
    browser.open(&site.at("/hero/login"));
    browser.write("#token", &site.token(READER));
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
