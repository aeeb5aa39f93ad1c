//! The form that corrects a job, and the page of changes.

use super::jobs::{HOSTILE, is_safe};
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served, keys};

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
    for text in ["job.stop", "job.retry", "job.edit", "operator", "by page"] {
        assert!(audit.body.contains(text), "{text}: {}", audit.body);
    }
    let of_retries = send(&site, "GET", "/audit?what=job.retry", &cookie, "").body;
    assert!(!of_retries.contains("<td role=\"cell\">job.stop"), "{of_retries}");
    let reader = signed_in(&site, READER);
    assert_eq!(send(&site, "GET", "/audit", &reader, "").status, 403);
}
