//! The form that corrects a job, and the page of changes.

use super::jobs::{HOSTILE, is_safe};
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served, keys};

#[test]
fn broken_graph_is_retried_with_corrected_scripts_by_a_form() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let graph = "[defaults]\ntype = \"bash\"\nretries = 0\n[job.one]\nscript = \"exit 3\"\n\
                 [job.two]\nscript = \"exit 4\"\n[job.sum]\nscript = \"echo done\"\nafter = [\"one\", \"two\"]\n";
    std::fs::write(redis.folder().join("g.toml"), graph).expect("written");
    hero.run(&["submit", "--graph", "g.toml", "--id", "night"]).code(0);
    let _actor = hero.actor("bash-default-1").start();
    hero.run(&["graph", "wait", "night"]).code(1);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = send(&site, "GET", "/graphs/night", &cookie, "").body;
    assert!(page.contains("/graphs/night/correct"), "{page}");
    let form = send(&site, "GET", "/graphs/night/correct", &cookie, "");
    is_safe(&form, "the form");
    assert!(form.body.contains("exit 3") && form.body.contains("exit 4"), "{}", form.body);
    assert!(!form.body.contains("echo done"), "it failed because of others: {}", form.body);
    let shown = hero.run(&["graph", "show", "night", "--json"]).code(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let id = |name: &str| {
        let jobs = shown["jobs"].as_array().expect("a list");
        let job = jobs.iter().find(|job| job["name"] == name).expect("the job");
        job["id"].as_str().expect("an id").to_owned()
    };
    let (one, two) = (id("one"), id("two"));
    let fields = format!(
        "script-{one}=echo+1%0D%0Aecho+more&script-{two}=true&script-other=x&csrf={}",
        form.forgery()
    );
    let done = send(&site, "POST", "/graphs/night/correct", &cookie, &fields);
    assert_eq!((done.status, done.header("location")), (303, Some("/graphs/night")));
    hero.run(&["graph", "wait", "night"]).code(0).stdout("3 of 3 done\n");
    assert_eq!(redis.field(&keys::job(&one), "script").as_deref(), Some("echo 1\necho more"));
    let reader = signed_in(&site, READER);
    assert!(send(&site, "POST", "/graphs/night/correct", &reader, &fields).status >= 400);
}

#[test]
fn job_is_corrected_by_a_form_and_the_change_is_on_the_page_of_changes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "bash", "--id", "ended", "-e", HOSTILE]).code(0);
    hero.run(&["submit", "-t", "bash", "--id", "later", "--delay", "1h", "-e", "false"]).code(0);
    hero.run(&["job", "stop", "ended"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let field = |id: &str, name: &str| redis.field(&keys::job(id), name);
    let shown = send(&site, "GET", "/jobs/ended", &cookie, "");
    assert!(shown.body.contains("/jobs/ended/correct"), "{}", shown.body);
    let form = send(&site, "GET", "/jobs/ended/correct", &cookie, "");
    is_safe(&form, "the form");
    let forgery = form.forgery();
    let post = |id: &str, form: &str| {
        let path = format!("/jobs/{id}/correct");
        send(&site, "POST", &path, &cookie, &format!("{form}&csrf={forgery}"))
    };
    let wrong = post("ended", "script=true&timeout=long");
    assert!(wrong.status >= 400, "{}", wrong.body);
    assert_eq!(field("ended", "script").as_deref(), Some(HOSTILE), "nothing is changed");
    let done = post("ended", "script=echo+1%0D%0Aecho+2&timeout=7");
    assert_eq!((done.status, done.header("location")), (303, Some("/jobs/ended")));
    assert_eq!(field("ended", "script").as_deref(), Some("echo 1\necho 2"));
    assert_eq!(field("ended", "timeout").as_deref(), Some("7"));
    assert_eq!(field("ended", "status").as_deref(), Some("dispatched"));
    assert_eq!(field("ended", "stopped_by"), None, "it runs again");
    assert_eq!(post("later", "script=true&timeout=").status, 303);
    assert_eq!(field("later", "script").as_deref(), Some("true"));
    let audit = send(&site, "GET", "/audit", &cookie, "");
    is_safe(&audit, "the page of changes");
    let link = "href=\"/jobs/later\"";
    for text in ["job.stop", "job.retry", "job.edit", "operator", "by page", link] {
        assert!(audit.body.contains(text), "{text}: {}", audit.body);
    }
    let of_retries = send(&site, "GET", "/audit?what=job.retry", &cookie, "").body;
    assert!(!of_retries.contains("<td role=\"cell\">job.stop"), "{of_retries}");
    let reader = signed_in(&site, READER);
    assert_eq!(send(&site, "GET", "/audit", &reader, "").status, 403);
}
