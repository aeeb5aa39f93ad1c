//! The form of a new job, dead letters, limits, periodic jobs and objects over plain HTTP.

use super::jobs::{HOSTILE, is_safe};
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER, SUBMITTER};
use crate::e2e::traces::collector::{is_below, place, sending};
use crate::notify::Receiver;
use crate::support::{Hero, Redis, Served, keys};

#[test]
fn form_submits_a_job_and_a_refused_one_comes_back_filled() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let empty = send(&site, "GET", "/submit", &cookie, "");
    is_safe(&empty, "/submit");
    let forgery = empty.forgery();
    let post =
        |form: &str| send(&site, "POST", "/submit", &cookie, &format!("{form}&csrf={forgery}"));
    let form = "id=one&script_type=bash&script=%0D%0Aecho%20%3Cb%3E%0D%0Atrue&timeout=10m&env_vars=A%3D1%0D%0A";
    let done = post(form);
    assert_eq!((done.status, done.header("location")), (303, Some("/jobs/one")), "{}", done.body);
    let field = |name: &str| redis.field(&keys::job("one"), name).unwrap_or_default();
    assert_eq!(field("script"), "\necho <b>\ntrue", "lines end as in a script");
    assert_eq!((field("caller_id"), field("timeout")), ("operator".to_owned(), "600".to_owned()));
    assert_eq!(field("env_vars"), "{\"A\":\"1\"}");
    for (form, named) in [
        ("script_type=bash&script=%3Cscript%3E&timeout=soon", "name=\"timeout\" value=\"soon\""),
        ("script_type=bash&script=%3Cscript%3E&retries=many", "name=\"retries\" value=\"many\""),
        ("script_type=bash&script=%3Cscript%3E&id=one", "name=\"id\" value=\"one\""),
    ] {
        let refused = post(form);
        assert_eq!(refused.status, 422, "{form}: {}", refused.body);
        assert!(refused.body.contains(named), "{form}: {}", refused.body);
        assert!(refused.body.contains("&lt;script&gt;"), "{form}: {}", refused.body);
        assert!(refused.body.contains("role=\"alert\""), "{form}: {}", refused.body);
    }
    let copy = send(&site, "GET", "/submit?from=one", &cookie, "");
    is_safe(&copy, "/submit?from=one");
    assert!(
        copy.body.contains("echo &lt;b&gt;\ntrue") && copy.body.contains("A=1"),
        "{}",
        copy.body
    );
    assert!(!copy.body.contains("value=\"one\""), "the copy has no id: {}", copy.body);
    assert_eq!(send(&site, "GET", "/submit?from=none", &cookie, "").status, 404);
    assert_eq!(send(&site, "POST", "/submit", &cookie, form).status, 403, "no token");
    let reader = signed_in(&site, READER);
    assert_eq!(send(&site, "GET", "/submit", &reader, "").status, 403);
}

#[test]
fn submitted_form_is_a_span_between_its_header_and_its_job() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let site = Served::with(sending(Hero::on(&redis), &receiver), &redis);
    let cookie = signed_in(&site, OPERATOR);
    let forgery = send(&site, "GET", "/submit", &cookie, "").forgery();
    let headers = format!("{cookie}traceparent: {}\r\n", place(9));
    let form = format!("id=one&script_type=bash&script=true&csrf={forgery}");
    assert_eq!(send(&site, "POST", "/submit", &headers, &form).status, 303);
    is_below(&redis, &receiver, ("one", "job.submit"), 9);
}

#[test]
fn script_is_checked_without_a_run_and_its_functions_are_shown() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let empty = send(&site, "GET", "/submit", &cookie, "");
    assert!(empty.body.contains("Functions of osis"), "{}", empty.body);
    let forgery = empty.forgery();
    let check = |script: &str| {
        let form = format!("do=check&script_type=osis&script={script}&csrf={forgery}");
        send(&site, "POST", "/submit", &cookie, &form)
    };
    let wrong = check("let%20a%20%3D%20%3B");
    is_safe(&wrong, "a mistake");
    assert!(wrong.body.contains("Line 1, column"), "{}", wrong.body);
    assert!(check("40%20%2B%202").body.contains("No mistakes were found."));
    let jobs = send(&site, "GET", "/jobs", &cookie, "");
    assert!(jobs.body.contains("No jobs."), "nothing was submitted: {}", jobs.body);
}

#[test]
fn form_offers_a_type_without_a_sandbox_to_those_for_whom_it_is_named() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.sal.who", "[\"operator\"]");
    let site = Served::with(hero, &redis);
    let (named, other) = (signed_in(&site, OPERATOR), signed_in(&site, SUBMITTER));
    let form = send(&site, "GET", "/submit", &named, "").body;
    assert!(form.contains(">sal (not sandboxed)</option>"), "{form}");
    let form = send(&site, "GET", "/submit", &other, "");
    assert!(!form.body.contains("<option value=\"sal\""), "{}", form.body);
    let submit = format!("script_type=sal&script=1&csrf={}", form.forgery());
    let refused = send(&site, "POST", "/submit", &other, &submit);
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("its scripts are not sandboxed"), "{}", refused.body);
    assert!(redis.all("JOB").is_empty());
}

#[test]
fn dead_letters_are_retried_and_deleted_after_a_question() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["one", "two"] {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", "true"]).code(0);
        hero.run(&["job", "stop", id]).code(0);
        redis.set_field(&keys::job(id), "error", HOSTILE);
        redis.push(&keys::dead("bash"), &[id]);
    }
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    for path in ["/dead", "/dead?q=alert&type=bash", "/dead?q=%3Cscript%3Enone"] {
        is_safe(&send(&site, "GET", path, &cookie, ""), path);
    }
    let list = send(&site, "GET", "/dead", &cookie, "");
    assert!(
        list.body.contains("/jobs/one\"") && list.body.contains("/jobs/two\""),
        "{}",
        list.body
    );
    let forgery = list.forgery();
    let post =
        |form: &str| send(&site, "POST", "/dead", &cookie, &format!("{form}&csrf={forgery}"));
    assert_eq!(post("do=retry&id=one").status, 303);
    assert_eq!(redis.field(&keys::job("one"), "status").as_deref(), Some("dispatched"));
    let asked = post("do=delete&id=two");
    assert!(asked.body.contains("Delete 1 dead letter?"), "{}", asked.body);
    assert_eq!(post("do=delete&id=two&sure=1").status, 303);
    assert_eq!(redis.field(&keys::job("two"), "status"), None);
    assert_eq!(post("do=retry").status, 400);
    assert_eq!(post("do=stop&id=one").status, 400);
    let reader = signed_in(&site, READER);
    let forgery = send(&site, "GET", "/dead", &reader, "").forgery();
    let form = format!("do=retry&id=one&csrf={forgery}");
    assert_eq!(send(&site, "POST", "/dead", &reader, &form).status, 403);
}

#[test]
fn dead_letters_are_grouped_by_their_errors_and_retried_by_group() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let failed =
        [("one", "no host 7"), ("two", "no host 8"), ("three", HOSTILE), ("alive", "no host 9")];
    for (id, error) in failed {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", "true"]).code(0);
        hero.run(&["job", "stop", id]).code(0);
        redis.set_field(&keys::job(id), "error", error);
    }
    redis.push(&keys::dead("bash"), &["one", "two", "three"]);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = send(&site, "GET", "/dead?by=error", &cookie, "");
    is_safe(&page, "/dead?by=error");
    assert!(page.body.contains("2 jobs") && page.body.contains("no host N"), "{}", page.body);
    assert!(
        page.body.contains("/dead?kind=no+host+N")
            || page.body.contains("/dead?kind=no%20host%20N")
    );
    let group = send(&site, "GET", "/dead?kind=no%20host%20N", &cookie, "");
    let has = |id: &str| group.body.contains(&format!("/jobs/{id}\""));
    assert_eq!(["one", "two", "three", "alive"].map(has), [true, true, false, false]);
    let form = format!("do=retry&kind=no%20host%20N&all=1&csrf={}", page.forgery());
    let asked = send(&site, "POST", "/dead", &cookie, &form);
    assert!(asked.body.contains("Retry 2 dead letters?"), "{}", asked.body);
    let form = format!("do=retry&id=one&id=two&sure=1&csrf={}", asked.forgery());
    assert_eq!(send(&site, "POST", "/dead", &cookie, &form).status, 303);
    let state = |id: &str| redis.field(&keys::job(id), "status").unwrap_or_default();
    let states = ["one", "two", "three", "alive"].map(state);
    assert_eq!(states, ["dispatched", "dispatched", "error", "error"]);
}

#[test]
fn limits_periodic_jobs_and_objects_have_pages() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    for path in [
        "/limits",
        "/cron",
        "/objects",
        "/objects?type=person&context=%3Cb%3E",
        "/brokers",
        "/records",
        "/records?root=%3Cb%3E&level=error",
    ] {
        is_safe(&send(&site, "GET", path, &cookie, ""), path);
    }
    assert_eq!(send(&site, "GET", "/cron/none", &cookie, "").status, 404);
    let hero = Hero::on(&redis);
    hero.run(&["cron", "add", "kept", "--schedule", "0 3 * * *", "-t", "osis", "-e", "1"]).code(0);
    let kept = send(&site, "GET", "/cron/kept", &cookie, "");
    assert_eq!(kept.body.matches("<li><time").count(), 5, "{}", kept.body);
    hero.run(&["cron", "disable", "kept"]).code(0);
    let kept = send(&site, "GET", "/cron/kept", &cookie, "").body;
    assert!(kept.contains("It does not fire while it is disabled") && !kept.contains("<li><time"));
    let forgery = send(&site, "GET", "/cron", &cookie, "").forgery();
    for verb in ["run", "enable", "disable"] {
        let form = format!("do={verb}&csrf={forgery}");
        assert_eq!(send(&site, "POST", "/cron/none", &cookie, &form).status, 403, "{verb}");
    }
}

#[test]
fn log_records_are_listed_by_level_and_by_root() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let record = |id: &str, second: u32, level: &str, root: &str| {
        let time = format!("2026-01-31T12:00:{second:02}.000000Z");
        format!(
            "{{\"context\":\"logs\",\"type\":\"msLogs\",\"object\":{{\"id\":\"{id}\",\"time\":\"{time}\",\
             \"level\":\"{level}\",\"root\":\"{root}\",\"message\":\"says {id}\"}}}}\n"
        )
    };
    let records = [
        record("one", 1, "info", "r1"),
        record("two", 2, "error", "r1"),
        record("three", 3, "info", "r2"),
    ];
    hero.run_with_input(&["osis", "import"], &records.concat()).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let places = |path: &str| {
        let page = send(&site, "GET", path, &cookie, "");
        is_safe(&page, path);
        ["says one", "says two", "says three"].map(|text| page.body.find(text))
    };
    let [one, two, three] = places("/records").map(|place| place.expect("it is listed"));
    assert!(three < two && two < one, "the newest first");
    assert!(matches!(places("/records?level=error"), [None, Some(_), None]));
    assert!(matches!(places("/records?root=r1"), [Some(one), Some(two), None] if one < two));
    let is_tree =
        |path: &str| send(&site, "GET", path, &cookie, "").body.contains("Chains of the root");
    assert!(is_tree("/records?root=r1") && !is_tree("/records") && !is_tree("/records?chain=c1"));
    assert_eq!(send(&site, "GET", "/records?level=loud", &cookie, "").status, 400);
}

#[test]
fn objects_are_deleted_after_a_question_by_those_who_may() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let object = |id: &str| {
        format!("{{\"context\":\"\",\"type\":\"person\",\"object\":{{\"id\":\"{id}\"}}}}\n")
    };
    hero.run_with_input(&["osis", "import"], &["one", "two"].map(object).concat()).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let list = send(&site, "GET", "/objects?type=person", &cookie, "");
    is_safe(&list, "objects");
    let forgery = list.forgery();
    let delete = |cookie: &str, form: &str| {
        let form = format!("do=delete&type=person&context=&{form}");
        send(&site, "POST", "/objects", cookie, &form)
    };
    let asked = delete(&cookie, &format!("id=one&csrf={forgery}"));
    assert!(asked.body.contains("Delete 1 object of the type person?"), "{}", asked.body);
    assert_eq!(delete(&cookie, "id=one&sure=1").status, 403, "without its token");
    let done = delete(&cookie, &format!("id=one&sure=1&csrf={forgery}"));
    assert_eq!((done.status, done.header("location")), (303, Some("/objects?type=person")));
    let left = send(&site, "GET", "/objects?type=person", &cookie, "").body;
    assert!(left.contains("value=\"two\"") && !left.contains("value=\"one\""), "{left}");
    let reader = signed_in(&site, READER);
    let page = send(&site, "GET", "/objects?type=person", &reader, "");
    assert!(!page.body.contains("class=\"pick\""), "a reader ticks nothing: {}", page.body);
    let form = format!("id=two&sure=1&csrf={}", page.forgery());
    assert_eq!(delete(&reader, &form).status, 403);
}
