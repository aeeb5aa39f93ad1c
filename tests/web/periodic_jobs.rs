//! The form of a periodic job: adds and edits one in Redis, without JavaScript too.

use std::fs;

use serde_json::Value;

use super::jobs::is_safe;
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served};

/// Returns the API's picture of a periodic job.
fn shown(hero: &Hero, name: &str) -> Value {
    let shown = hero.run(&["cron", "show", name, "--json"]).code(0).stdout;
    serde_json::from_str(&shown).expect("one document")
}

/// Returns a site with a periodic job in a file, whose name is that of a form elsewhere.
fn site(redis: &Redis) -> Served {
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    let new = "[cron.new]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\n";
    fs::write(folder.join("new.toml"), new).expect("writing a file");
    let cron_dir = format!("\"{}\"", folder.display());
    let calendar = "\n[calendar.free]\ndays = [\"SUN\"]\n";
    Served::with(Hero::on(redis).set("supervisor.cron_dir", &cron_dir).add(calendar), redis)
}

#[test]
fn form_adds_and_edits_a_periodic_job_and_a_refused_one_comes_back_filled() {
    let redis = Redis::start();
    let site = site(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let empty = send(&site, "GET", "/cron-form", &cookie, "");
    is_safe(&empty, "/cron-form");
    let forgery = empty.forgery();
    let post =
        |form: &str| send(&site, "POST", "/cron-form", &cookie, &format!("{form}&csrf={forgery}"));
    let job = "schedule=30+3+*+*+1-5&time_zone=Europe/Brussels&catch_up=once&overlap=allow&spread=10m&calendar=free\
               &script_type=bash&script=echo+%3Cb%3E&timeout=10m&env_vars=A%3D1&priority=1";
    let done = post(&format!("name=report&{job}"));
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some("/cron/report")),
        "{}",
        done.body
    );
    let report = shown(&site.hero, "report");
    assert_eq!(
        (&report["schedule"], &report["calendar"]),
        (&"30 3 * * 1-5".into(), &"free".into())
    );
    assert_eq!((&report["spread"]["most_s"], &report["catch_up"]), (&600.into(), &"once".into()));
    assert_eq!(report["added_by"], "operator");
    for (form, named) in [
        (format!("name=report&{job}"), "The field: name"),
        (format!("name=Bad+Name&{job}"), "The field: name"),
        (format!("name=other&{job}").replace("30+3", "99+3"), "The field: schedule"),
        (format!("name=other&{job}").replace("10m&cal", "25h&cal"), "The field: spread"),
        (format!("name=other&{job}").replace("timeout=10m", "timeout=soon"), "The field: timeout"),
    ] {
        let refused = post(&form);
        assert_eq!(refused.status, 422, "{form}: {}", refused.body);
        assert!(refused.body.contains(named), "{form}: {}", refused.body);
        assert!(refused.body.contains("echo &lt;b&gt;"), "{form}: {}", refused.body);
        assert!(refused.body.contains("role=\"alert\""), "{form}: {}", refused.body);
    }
    let filled = send(&site, "GET", "/cron-form?name=report", &cookie, "");
    is_safe(&filled, "/cron-form?name=report");
    for part in ["value=\"30 3 * * 1-5\"", "value=\"10m\"", "echo &lt;b&gt;", "A=1", "readonly"] {
        assert!(filled.body.contains(part), "{part}: {}", filled.body);
    }
    // Without the variable, the timeout, the spread and the calendar.
    let edit = "of=report&schedule=@hourly&time_zone=UTC&catch_up=skip&overlap=allow&spread=&calendar=\
                &script_type=bash&script=true&timeout=&env_vars=&priority=1";
    let done = post(edit);
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some("/cron/report")),
        "{}",
        done.body
    );
    let report = shown(&site.hero, "report");
    assert_eq!((&report["schedule"], &report["script"]), (&"@hourly".into(), &"true".into()));
    assert_eq!((&report["spread"], &report["calendar"]), (&Value::Null, &Value::Null));
    let settings = report["settings"].as_object().expect("an object");
    assert!(!settings.contains_key("timeout"), "{settings:?}");
    assert_eq!(
        settings.get("env_vars").and_then(Value::as_object).map_or(0, serde_json::Map::len),
        0
    );
}

#[test]
fn periodic_job_in_redis_is_deleted_after_a_question_by_those_who_may() {
    let redis = Redis::start();
    let site = site(&redis);
    let (cookie, reader) = (signed_in(&site, OPERATOR), signed_in(&site, READER));
    let add = ["cron", "add", "report", "--schedule", "@every 90m", "-t", "osis", "-e", "1"];
    site.hero.run(&add).code(0);
    let delete = "/cron/report/delete";
    let page = send(&site, "GET", "/cron/report", &cookie, "");
    assert!(page.body.contains(delete) && page.body.contains("@every 90m"), "{}", page.body);
    assert!(!send(&site, "GET", "/cron/report", &reader, "").body.contains(delete));
    let question = send(&site, "GET", delete, &cookie, "");
    is_safe(&question, delete);
    assert!(question.body.contains("Delete the periodic job report?"), "{}", question.body);
    let form = format!("do=delete&csrf={}", question.forgery());
    for (path, cookie, status) in [(delete, &reader, 403), ("/cron/new/delete", &cookie, 400)] {
        assert_eq!(send(&site, "GET", path, cookie, "").status, status, "{path}");
    }
    let done = send(&site, "POST", "/cron/report", &cookie, &form);
    assert_eq!((done.status, done.header("location")), (303, Some("/cron")), "{}", done.body);
    site.hero.run(&["cron", "show", "report"]).code(66);
}

#[test]
fn form_hides_no_periodic_job_and_is_for_those_who_may() {
    let redis = Redis::start();
    let site = site(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let new = send(&site, "GET", "/cron/new", &cookie, "");
    assert!(new.status == 200 && new.body.contains("@daily"), "{}", new.body);
    assert!(!new.body.contains("/cron-form?name="), "its file declares it: {}", new.body);
    let refused = send(&site, "GET", "/cron-form?name=new", &cookie, "");
    assert!(refused.status == 400 && refused.body.contains("change that file"), "{}", refused.body);
    let list = send(&site, "GET", "/cron", &cookie, "");
    assert!(list.body.contains("/cron-form\""), "{}", list.body);
    let reader = signed_in(&site, READER);
    assert_eq!(send(&site, "GET", "/cron-form", &reader, "").status, 403);
    assert!(!send(&site, "GET", "/cron", &reader, "").body.contains("/cron-form"));
    let history = send(&site, "GET", "/cron/new/history", &reader, "");
    is_safe(&history, "/cron/new/history");
    assert!(history.body.contains("It has not fired."), "{}", history.body);
}

#[test]
fn graph_is_shown_with_its_jobs_and_its_run_leads_to_the_graph() {
    let redis = Redis::start();
    let site = site(&redis);
    let pipe = "[defaults]\ntype = \"osis\"\n[job.fetch]\nscript = \"1\"\n[job.count]\nscript = \"2\"\nafter = [\"fetch\"]\n";
    fs::write(redis.folder().join("pipe.toml"), pipe).expect("written");
    let add = ["cron", "add", "pipe", "--schedule", "@yearly", "--graph", "pipe.toml"];
    site.hero.run(&add).code(0);
    let cookie = signed_in(&site, OPERATOR);
    let list = send(&site, "GET", "/cron", &cookie, "");
    assert!(list.body.contains("graph of 2 jobs"), "{}", list.body);
    let page = send(&site, "GET", "/cron/pipe", &cookie, "");
    is_safe(&page, "/cron/pipe");
    for part in ["Jobs of the graph", ">count<", "graph of 2 jobs"] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains("/cron-form?name=pipe"), "{}", page.body);
    let form = format!("do=run&csrf={}", page.forgery());
    let done = send(&site, "POST", "/cron/pipe", &cookie, &form);
    let graph = done.header("location").expect("a place");
    assert!(graph.starts_with("/graphs/cron-pipe-"), "{graph}");
    let page = send(&site, "GET", "/cron/pipe", &cookie, "");
    assert!(page.body.contains(graph), "{}", page.body);
    let form = send(&site, "GET", "/cron-form?name=pipe", &cookie, "");
    assert!(form.body.contains("hero cron edit pipe"), "{}", form.body);
}
