//! Tasks of an operator at the page, in a real browser: one test for each.

use std::fs;

use super::browser::Browser;
use super::pages::has_browser;
use super::visitors::OPERATOR;
use super::visits::sign_in;
use super::world::PageWorld;
use crate::support::{keys, until_exists, wait_until};

const ENTER: &str = "\u{E007}";

fn opened(world: &PageWorld, width: u32) -> Browser {
    let browser = Browser::start(world.redis.folder());
    browser.size(width, 900);
    browser
}

#[test]
fn running_job_is_watched_and_its_log_is_searched() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let [more, end] = ["more-of-noisy", "end-of-noisy"].map(|name| world.redis.folder().join(name));
    let script = format!(
        "for n in $(seq 700); do echo line $n; done; {}; echo NEEDLE $n >&2; {}; echo last",
        until_exists(&more),
        until_exists(&end)
    );
    let args =
        ["submit", "-t", "bash", "--id", "noisy", "--name", "noisy import", "--tag", "nightly"];
    world.site.hero.run(&[&args[..], &["-e", &script]].concat()).code(0);
    let browser = opened(&world, 1280);
    sign_in(&browser, &world, OPERATOR);
    browser.open(&world.site.at("/jobs?tag=nightly"));
    browser.waits_for("tbody .chip", "nightly");
    browser.click("tbody a.id");
    browser.waits_for("h1", "noisy import");
    assert_eq!(browser.text("#jobid"), "noisy");
    browser.waits_for("#log-lines", "line 700");
    fs::write(&more, "").expect("writing a file");
    browser.waits_for("#log-lines", "NEEDLE");
    let colours = "const of = (what) => getComputedStyle(document.querySelector(what)).color;
        return of('#log-lines .e span') === of('#log-lines .o span')";
    assert_eq!(browser.run(colours), true, "standard error alone is no error");
    let time = browser.text("#log-lines time");
    assert_eq!(time.len(), "12:00:00.000".len(), "{time}");
    fs::write(&end, "").expect("writing a file");
    browser.waits_for("#state", "Finished");
    browser.waits_for("#log-lines", "last");
    browser.open(&world.site.at("/jobs/noisy"));
    browser.click(".log .more a");
    browser.waits_for("#log-lines", "line 150");
    assert!(!browser.text("#log-lines").contains("NEEDLE"), "these are the earlier lines");
    browser.write("[name=find]", &format!("needle{ENTER}"));
    browser.waits_for("#log-lines mark", "NEEDLE");
    assert_eq!(
        browser.run("return document.querySelectorAll('#log-lines > li:not(.sep)').length"),
        1
    );
    browser.click("[data-class=nowrap]");
    assert_eq!(
        browser.run("return document.querySelector('.log').classList.contains('nowrap')"),
        true
    );
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn job_is_submitted_with_a_file_and_the_functions_of_its_type_are_shown() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let file = world.redis.folder().join("numbers.csv");
    fs::write(&file, "3\n4\n").expect("writing a file");
    let browser = opened(&world, 1280);
    sign_in(&browser, &world, OPERATOR);
    browser.open(&world.site.at("/submit"));
    browser.waits_for("#functions", "Functions of osis");
    let choose = "const type = document.querySelector('#f-script_type'); type.value = 'bash';
        type.dispatchEvent(new Event('change', { bubbles: true }))";
    browser.run(choose);
    wait_until("scripts of bash have no functions", || browser.text("#functions").is_empty());
    assert_eq!(
        browser.run("return document.querySelector('.form input:not([type=hidden])').name"),
        "name"
    );
    browser.write("#f-name", "sum");
    browser.write("#f-tags", "with-file nightly");
    browser.write("#f-script", "cat \"$HERO_INPUT_DIR/numbers.csv\" -");
    browser.write("#f-inputs", &file.display().to_string());
    browser.write("#f-stdin", &file.display().to_string());
    browser.run("document.querySelector('main details').open = true");
    assert_eq!(browser.run("return document.querySelector('#f-unique_by').tagName"), "SELECT");
    browser.click("button.main");
    browser.waits_for(".toast", "Submitted.");
    browser.waits_for("h1", "sum");
    browser.waits_for(".chips", "with-file");
    browser.waits_for(".chips", "nightly");
    browser.waits_for("#state", "Finished");
    browser.waits_for("#output-text", "3\n4\n3\n4");
    browser.waits_for("#files", "standard input");
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn graph_is_repaired_from_its_page() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let there = world.redis.folder().join("there");
    let graph = format!(
        "[defaults]\ntype = \"bash\"\n[job.fetch]\nscript = \"true\"\n\
         [job.load]\nscript = \"test -e '{}'\"\nafter = [\"fetch\"]\n\
         [job.report]\nscript = \"true\"\nafter = [\"load\"]\n",
        there.display()
    );
    let file = world.redis.folder().join("broken.toml");
    fs::write(&file, graph).expect("writing a file");
    let file = file.display().to_string();
    let submit = ["submit", "--graph", &file, "--id", "broken", "--name", "nightly report"];
    world.site.hero.run(&submit).code(0);
    let browser = opened(&world, 1280);
    sign_in(&browser, &world, OPERATOR);
    browser.open(&world.site.at("/graphs"));
    browser.click("a.id[title=broken]");
    browser.waits_for("h1", "nightly report");
    browser.waits_for("#headline", "1 of 3 done, 2 failed");
    browser.waits_for("#graph-table", "prerequisite failed: load");
    browser.click("[data-jump]");
    let target = "return document.querySelector('.graph :target')?.textContent ?? ''";
    wait_until("the first failure is shown", || {
        browser.run(target).as_str().unwrap_or_default().contains("load")
    });
    browser.click(".zoom a[href*='zoom=50']");
    browser.waits_for(".zoom [aria-current]", "50 %");
    fs::write(&there, "").expect("writing a file");
    browser.click("[data-key=retry]");
    browser.waits_for(".toast", "Retried");
    // The page follows it to its end.
    browser.waits_for("#headline", "3 of 3 done");
    browser.waits_for("#headline", "Finished");
    wait_until("nothing is left to retry", || !browser.text("#graph-actions").contains("Retry"));
    browser.click("#do-delete");
    browser.waits_for("#ask", "Delete nightly report with 3 jobs?");
    browser.click("#ask .danger");
    browser.waits_for(".toast", "Deleted 3 jobs.");
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn failed_job_is_found_and_retried_by_keyboard_alone() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = opened(&world, 1280);
    browser.open(&world.site.at("/login"));
    browser.tab_to("#token");
    browser.press(&format!("{}{ENTER}", world.site.token(OPERATOR)));
    browser.waits_for("h1", "Overview");
    browser.press("/");
    browser.press(&format!("no such host{ENTER}"));
    browser.waits_for("#job-rows", "dead-one");
    // The focus is on the page again, so that its keys work.
    browser.press("j");
    browser.press(ENTER);
    browser.waits_for("#jobid", "dead-one");
    browser.press("r");
    browser.waits_for(".toast", "The job runs again.");
    browser.waits_for("#state", "Error");
    browser.tab_to("[href$='/delete']");
    browser.press(ENTER);
    browser.waits_for("#ask", "Delete job dead-one?");
    browser.tab_to("#ask .danger");
    browser.press(ENTER);
    browser.waits_for(".toast", "Deleted job dead-one.");
    assert_eq!(world.redis.field(&keys::job("dead-one"), "status"), None);
}

#[test]
fn job_is_submitted_found_and_stopped_without_javascript() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = opened(&world, 1280);
    browser.run_scripts(false);
    sign_in(&browser, &world, OPERATOR);
    browser.open(&world.site.at("/submit?type=bash"));
    browser.write("#f-name", "by hand");
    browser.write("#f-script", &until_exists(&world.redis.folder().join("never")));
    browser.click("[value=functions]");
    browser.waits_for("#f-script", "while");
    browser.click("button.main");
    browser.waits_for(".toast", "Submitted.");
    browser.waits_for("h1", "by hand");
    let address = browser.address();
    browser.open(&world.site.at("/jobs?q=by+hand"));
    browser.click("tbody a.id");
    assert_eq!(browser.address(), address);
    browser.click("[data-key=stop]");
    browser.waits_for(".toast", "top");
    wait_until("a load of the page shows its end", || {
        browser.open(&address);
        browser.text("#state") == "Cancelled"
    });
    browser.click("[href$='/delete']");
    browser.waits_for("h1", "Delete job by hand?");
    browser.click("main .danger");
    browser.waits_for(".toast", "Deleted job");
}

#[test]
fn failed_jobs_are_found_and_retried_at_390_pixels() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = opened(&world, 390);
    let fits = |page: &str| {
        let wide = browser.run("return document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wide, false, "{page} scrolls sideways");
    };
    sign_in(&browser, &world, OPERATOR);
    fits("the overview");
    browser.click("label.menu");
    browser.click(".side [href$='status=failed']");
    browser.waits_for("#job-rows", "dead-one");
    fits("the list");
    browser.click("a.id[title=dead-one]");
    browser.waits_for("#state", "Error");
    fits("the job");
    browser.click("[data-key=retry]");
    browser.waits_for(".toast", "The job runs again.");
    browser.open(&world.site.at("/graphs"));
    browser.click("a.id[title=pipeline]");
    browser.waits_for("#headline", "first failure: check");
    fits("the graph");
    browser.click("[data-key=retry]");
    browser.waits_for(".toast", "Retried");
    fits("the graph after its retry");
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn job_is_watched_and_stopped_on_a_slow_line() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = opened(&world, 1280);
    browser.slow_down();
    sign_in(&browser, &world, OPERATOR);
    browser.open(&world.site.at("/jobs/running"));
    browser.waits_for("#state", "Running");
    browser.waits_for("#live-text", "Live");
    browser.waits_for("#log-lines", "begun");
    browser.click("[data-key=stop]");
    browser.waits_for("#state", "Cancelled");
    browser.waits_for("#job-actions", "Retry");
    // A slow line is no lost one.
    browser.waits_for("#live-text", "Live");
    assert_eq!(browser.console(), [] as [&str; 0]);
}

#[test]
fn periodic_job_is_added_and_edited_without_javascript() {
    if !has_browser() {
        return;
    }
    let world = PageWorld::start();
    let browser = opened(&world, 1280);
    browser.run_scripts(false);
    sign_in(&browser, &world, OPERATOR);
    browser.open(&world.site.at("/cron"));
    browser.click("a[href$='/cron-form']");
    browser.waits_for("h1", "Add a periodic job");
    browser.write("#f-name", "by-hand");
    browser.write("#f-schedule", "* * *");
    browser.write("#f-script", "true");
    browser.click("form.form button.main");
    browser.waits_for("#why", "The field: schedule");
    // The field has the focus, with the caret before its text.
    browser.write("#f-schedule", "30 3 ");
    browser.click("form.form button.main");
    browser.waits_for(".toast", "Added by-hand.");
    browser.waits_for("h1", "by-hand");
    browser.click("a[href*='/cron-form?name=by-hand']");
    browser.waits_for("h1", "Edit a periodic job");
    browser.write("#f-spread", "10m");
    browser.click("form.form button.main");
    browser.waits_for(".toast", "Changed by-hand.");
    browser.waits_for("dl.facts", "of at most 10m");
}
