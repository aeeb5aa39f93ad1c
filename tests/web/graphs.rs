//! The pages of graphs over plain HTTP: what a job waits for, and the forms that change a graph.

use serde_json::json;

use super::jobs::{HOSTILE, is_safe};
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served, keys, wait_until};

const GRAPH: &str = "[defaults]\ntype = \"bash\"\n[job.load]\nscript = \"false\"\n\
                     [job.count]\nscript = \"true\"\nafter = [\"load\"]\n";

#[test]
fn job_says_for_which_others_it_waits_and_whose_failure_ended_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = |id: &str, rest: &[&str]| {
        let first = ["submit", "-t", "bash", "--id", id, "-e", "true"];
        hero.run(&[&first[..], rest].concat()).code(0);
    };
    submit("first", &["--name", "load"]);
    for id in ["b", "c"] {
        submit(id, &[]);
    }
    submit("last", &["--after", "first"]);
    submit("many", &["--after", "b", "--after", "c", "--after", "first"]);
    redis.set_field(&keys::job("first"), "name", HOSTILE);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let shown = |path: &str| {
        let page = send(&site, "GET", path, &cookie, "");
        is_safe(&page, path);
        page.body
    };
    let hostile = "title=\"first\">&lt;/pre&gt;";
    let list = shown("/jobs?status=waiting_for_prerequisites");
    assert!(list.contains("waits for <a class=\"id\"") && list.contains(hostile), "{list}");
    assert!(list.contains(" and 1 more"), "{list}");
    assert!(shown("/jobs/last").contains(hostile));
    hero.run(&["job", "stop", "first"]).code(0);
    let link = "prerequisite failed: <a class=\"err\" href=\"/jobs/first\">";
    for path in ["/jobs?state=failed", "/jobs/last/graph", "/"] {
        wait_until(&format!("{path} links to the job"), || shown(path).contains(link));
    }
    let job = shown("/jobs/last");
    assert!(job.contains("It waited for <a") && job.contains(hostile), "{job}");
}

#[test]
fn page_of_a_batch_shows_why_its_jobs_wait_and_lists_have_a_bar_of_its_ends() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let jobs =
        json!([{ "script": "1", "script_type": "osis" }, { "script": "2", "script_type": "osis" }]);
    site.call("batch.submit", &json!({ "id": "b", "jobs": jobs }));
    let cookie = signed_in(&site, READER);
    let page = send(&site, "GET", "/graphs/b", &cookie, "").body;
    let why = page.split("waits for ").nth(1).unwrap_or_default();
    assert!(why.starts_with("an actor"), "{page}");
    let list = send(&site, "GET", "/graphs", &cookie, "").body;
    assert!(list.contains("done-bar") && list.contains("0 % ended: 0 of 2 done"), "{list}");
}

#[test]
fn page_of_a_graph_shows_what_became_of_a_deleted_job() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let job = |id: &str| json!({ "name": id, "job": { "id": id, "script": "1", "script_type": "osis", "run_at": "2999-01-01T00:00:00Z" } });
    site.call("graph.submit", &json!({ "id": "g", "jobs": [job("first"), job("second")] }));
    site.call("job.delete", &json!(["first"]));
    site.call("graph.edit", &json!({ "id": "g", "at_a_time": 2, "stop_after": "5%" }));
    let page = send(&site, "GET", "/graphs/g", &signed_in(&site, READER), "");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains(", deleted") && page.body.contains("second"), "{}", page.body);
    assert!(page.body.contains("2 at a time, stops after 5% failed"), "{}", page.body);
}

#[test]
fn graph_is_retried_stopped_and_deleted_by_forms_of_those_who_may() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let file = redis.folder().join("graph.toml");
    std::fs::write(&file, GRAPH).expect("writing a file");
    hero.run(&["submit", "--graph", &file.display().to_string(), "--id", "g"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = send(&site, "GET", "/graphs/g", &cookie, "");
    is_safe(&page, "/graphs/g");
    assert!(page.body.contains("class=\"edge"), "it is drawn");
    assert!(page.body.contains("/graphs/g/stop") && !page.body.contains("value=\"retry\""));
    let forgery = page.forgery();
    let post = |cookie: &str, form: &str| send(&site, "POST", "/graphs/g", cookie, form);
    assert_eq!(post(&cookie, "do=stop").status, 403, "without its token");
    let asked = send(&site, "GET", "/graphs/g/stop", &cookie, "");
    assert!(asked.body.contains("Stop 2 jobs of g?"), "{}", asked.body);
    let reader = signed_in(&site, READER);
    let own = send(&site, "GET", "/graphs/g", &reader, "");
    assert!(!own.body.contains("graph-actions"), "a reader sees no button");
    let form = format!("do=stop&csrf={}", own.forgery());
    assert_eq!(post(&reader, &form).status, 403);
    let stopped = post(&cookie, &format!("do=stop&csrf={forgery}"));
    assert_eq!((stopped.status, stopped.header("location")), (303, Some("/graphs/g")));
    let page = send(&site, "GET", "/graphs/g", &cookie, "");
    assert!(
        page.body.contains("value=\"retry\"") && page.body.contains("0 of 2 done"),
        "{}",
        page.body
    );
    assert_eq!(post(&cookie, &format!("do=retry&csrf={forgery}")).status, 303);
    let page = send(&site, "GET", "/graphs/g", &cookie, "").body;
    assert!(page.contains("2 not ended") && !page.contains("value=\"go\""), "{page}");
    hero.run(&["graph", "edit", "g", "--pause-after", "1 tell"]).code(0);
    let page = send(&site, "GET", "/graphs/g", &cookie, "").body;
    assert!(page.contains("value=\"go\"") && page.contains("pauses after 1 job"), "{page}");
    assert_eq!(post(&cookie, &format!("do=go&csrf={forgery}")).status, 303);
    let page = send(&site, "GET", "/graphs/g", &cookie, "").body;
    assert!(!page.contains("value=\"go\""), "{page}");
    assert_eq!(post(&cookie, &format!("do=drop&csrf={forgery}")).status, 400);
    let deleted = post(&cookie, &format!("do=delete&csrf={forgery}"));
    assert_eq!((deleted.status, deleted.header("location")), (303, Some("/graphs")));
    assert!(redis.all("JOB").is_empty());
    assert_eq!(send(&site, "GET", "/graphs/g/delete", &cookie, "").status, 404);
}
