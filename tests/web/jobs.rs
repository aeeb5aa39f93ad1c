//! The pages of jobs over plain HTTP: hostile data is text, what a visitor may not do is refused.

use serde_json::{Value, json};

use super::requests::{Answer, own_origin, send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served, keys, wait_until};

pub(super) const HOSTILE: &str = "</pre><script>alert('\"')</script><b onclick=x>&amp;";

/// Stores a job whose texts are hostile, with a log.
fn hostile_job(redis: &Redis, hero: &Hero, id: &str) {
    let submit = ["submit", "-t", "python", "--id", id, "--caller", HOSTILE, "-e", HOSTILE];
    hero.run(&submit).code(0);
    let key = keys::job(id);
    for field in ["name", "error", "output", "progress_text", "context_id", "limit"] {
        redis.set_field(&key, field, HOSTILE);
    }
    redis.set_field(&key, "env_vars", serde_json::json!({ "KEY": HOSTILE }).to_string());
    let lines: [(&str, &str); 2] = [("1", HOSTILE), ("2", HOSTILE)];
    for (fd, line) in lines {
        let _: String =
            redis.ask_with("XADD", &[keys::log(id).as_str(), "*", "fd", fd, "line", line]);
    }
}

pub(super) fn is_safe(page: &Answer, of: &str) {
    assert_eq!(page.status, 200, "{of}: {}", page.body);
    assert!(!page.body.contains("<script>"), "{of}: {}", page.body);
    assert!(!page.body.contains("<b onclick"), "{of}: {}", page.body);
    assert!(!page.body.contains(" style=\""), "{of}");
    assert_eq!(page.body.matches("<h1").count(), 1, "{of}");
    for tag in ["table", "form", "section", "svg", "span", "div", "pre", "li", "td"] {
        let (open, closed) = (format!("<{tag}"), format!("</{tag}>"));
        let opened = page.body.match_indices(&open).filter(|(at, _)| {
            let next = page.body.as_bytes().get(at + open.len());
            next.is_some_and(|byte| matches!(byte, b'>' | b' ' | b'\n'))
        });
        assert_eq!(opened.count(), page.body.matches(&closed).count(), "{of}: <{tag}>");
    }
}

#[test]
fn hostile_texts_of_a_job_are_escaped_on_every_page() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hostile_job(&redis, &hero, "bad");
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    for path in [
        "/jobs",
        "/jobs?state=queued&q=%3Cscript%3E&caller=%3Cb%3E&kind=%3Cscript%3E&limit=100",
        "/jobs?by=error&q=%3Cscript%3E",
        "/jobs?q=alert",
        "/jobs?type=python&until=2100-01-01T00:00:00Z",
        "/jobs/bad",
        "/jobs/bad/graph",
        "/jobs/bad/delete",
    ] {
        is_safe(&send(&site, "GET", path, &cookie, ""), path);
    }
    let list = send(&site, "GET", "/jobs?q=alert", &cookie, "");
    assert!(list.body.contains("/jobs/bad\""), "found by its error: {}", list.body);
}

#[test]
fn invisible_characters_that_others_wrote_are_spelled_on_every_page() {
    const HIDDEN: &str = "a\u{202e}b\u{200b}c\u{2066}d\u{feff}e";
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut actor = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "bad", "-e", "throw 1"]).code(1);
    // Of an actor on a machine of a hostile name.
    let presence = keys::presence("osis:default:1");
    let mut of_actor: Value =
        serde_json::from_str(&redis.ask::<String>(&format!("GET {presence}"))).expect("JSON");
    actor.kill();
    of_actor["hostname"] = json!(HIDDEN);
    redis.ask_with::<(), _>(&format!("SETEX {presence} 60"), &[of_actor.to_string()]);
    for field in ["name", "error", "output", "caller_id", "hostname"] {
        redis.set_field(&keys::job("bad"), field, HIDDEN);
    }
    let log = keys::log("bad");
    let _: String = redis.ask_with("XADD", &[&log, "*", "fd", "1", "line", HIDDEN]);
    let graph = "id = \"g1\"\n[job.a]\ntype = \"osis\"\nscript = \"1\"\n";
    hero.run_with_input(&["submit", "--graph", "-"], graph).code(0);
    redis.set_field(&keys::keys().graph(&"g1".parse().expect("legal")), "name", HIDDEN);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    for path in
        ["/jobs", "/jobs/bad", "/jobs/bad/graph", "/graphs", "/actors", "/actors/osis:default:1"]
    {
        let page = send(&site, "GET", path, &cookie, "").body;
        assert!(page.contains("a\\u{202e}b\\u{200b}c\\u{2066}d\\u{feff}e"), "{path}: {page}");
        // A choice of a filter sends back what it is for.
        let shown = page.replace(&format!("value=\"{HIDDEN}\""), "");
        assert!(!shown.contains('\u{202e}') && !shown.contains('\u{feff}'), "{path}: {page}");
    }
    // What a form sends back is what the job has.
    let form = send(&site, "GET", "/submit?from=bad", &cookie, "").body;
    assert!(form.contains(&format!("value=\"{HIDDEN}\"")), "{form}");
}

#[test]
fn graph_has_the_jobs_before_and_behind_a_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = |id: &str, rest: &[&str]| {
        let first = ["submit", "-t", "bash", "--id", id, "-e", "true"];
        hero.run(&[&first[..], rest].concat()).code(0);
    };
    submit("first", &["--name", "load"]);
    submit("middle", &["--after", "first"]);
    submit("last", &["--after", "middle", "--after-any", "first"]);
    submit("other", &[]);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let graph = send(&site, "GET", "/jobs/middle/graph", &cookie, "");
    is_safe(&graph, "the graph");
    assert_eq!(graph.body.matches("class=\"edge").count(), 3, "{}", graph.body);
    assert!(graph.body.contains("middle, load (any end)"), "{}", graph.body);
    assert!(graph.body.contains("3 jobs") && !graph.body.contains("/jobs/other"), "{}", graph.body);
    assert_eq!(send(&site, "GET", "/jobs/none/graph", &cookie, "").status, 404);
    let job = send(&site, "GET", "/jobs/middle", &cookie, "");
    is_safe(&job, "the job");
    assert!(job.body.contains("Waits for") && job.body.contains("Waiting for it"), "{}", job.body);
}

#[test]
fn unfinished_line_of_a_running_job_stands_below_its_log() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "python", "--id", "asks", "-e", "1"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    redis.set_field(&keys::job("asks"), "unfinished_line", HOSTILE);
    let shown = |what: &str| {
        let page = send(&site, "GET", "/jobs/asks", &cookie, "");
        is_safe(&page, what);
        page.body.contains("a line that has not ended")
    };
    assert!(!shown("a waiting job"));
    redis.set_field(&keys::job("asks"), "status", "started");
    assert!(shown("a running job"));
}

#[test]
fn state_for_the_next_attempt_stands_on_the_page_of_its_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "python", "--id", "keeps", "-e", "1"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let shown = |what: &str| {
        let page = send(&site, "GET", "/jobs/keeps", &cookie, "");
        is_safe(&page, what);
        page.body.contains("State for the next attempt")
    };
    assert!(!shown("a job without a state"));
    redis.set_field(&keys::job("keeps"), "kept_state", HOSTILE);
    assert!(shown("a job with a state"));
}

#[test]
fn waiting_job_is_told_its_event_by_the_form_on_its_page() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("python-default-1").start();
    let script = "import hero\nif hero.event is None: hero.wait('ok', who=['ann', 'bob'])\nprint(hero.event)";
    hero.run(&["submit", "-t", "python", "--id", "asks", "-e", script]).code(0);
    let field = |name: &str| redis.field(&keys::job("asks"), name);
    wait_until("it waits", || field("wait").is_some());
    let site = Served::on(&redis);
    let reader = signed_in(&site, READER);
    let page = send(&site, "GET", "/jobs/asks", &reader, "");
    assert!(
        page.body.contains("For the event ok, until ") && page.body.contains("told by ann, bob")
    );
    assert!(!page.body.contains("value=\"tell\""), "a reader sees no button");
    let cookie = signed_in(&site, &["bob", "--scope", "read,submit,operate"]);
    let page = send(&site, "GET", "/jobs/asks", &cookie, "");
    is_safe(&page, "a waiting job");
    assert!(page.body.contains("Tell ok"), "{}", page.body);
    let list = send(&site, "GET", "/jobs", &cookie, "").body;
    assert!(list.contains("waits for the event ok, or runs"), "{list}");
    let forgery = page.forgery();
    let form = |text: &str, csrf: &str| {
        send(
            &site,
            "POST",
            "/jobs/asks",
            &cookie,
            &format!("do=tell&event=ok&data={text}&csrf={csrf}"),
        )
    };
    assert_eq!(form("x", "wrong").status, 403);
    let eve = signed_in(&site, OPERATOR);
    let eve_forgery = send(&site, "GET", "/jobs/asks", &eve, "").forgery();
    let by_eve = format!("do=tell&event=ok&csrf={eve_forgery}");
    assert_eq!(send(&site, "POST", "/jobs/asks", &eve, &by_eve).status, 409, "it is for others");
    assert!(field("wait").is_some());
    let told = form("%3Cb%3E+until+18%3A00", &forgery);
    assert_eq!((told.status, told.header("location")), (303, Some("/jobs/asks")));
    wait_until("it has ended", || field("status").as_deref() == Some("finished"));
    let event: Value = serde_json::from_str(&field("event").expect("an event")).expect("JSON");
    assert_eq!((&event["who"], &event["through"]), (&json!("bob"), &json!("page")));
    assert_eq!(event["data"], "<b> until 18:00");
    let page = send(&site, "GET", "/jobs/asks", &cookie, "");
    is_safe(&page, "a job that was told");
    assert!(!page.body.contains("It waits"), "{}", page.body);
    assert_eq!(form("x", &forgery).status, 409, "it has ended");
}

#[test]
fn page_of_a_wait_that_another_program_wrote_is_safe() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "python", "--id", "bad", "--delay", "1h", "-e", "1"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let hostile = json!({ "event": "ok", "who": [HOSTILE] }).to_string();
    for wait in [HOSTILE, &hostile, &json!({ "event": HOSTILE }).to_string(), "{}", "[", ""] {
        redis.set_field(&keys::job("bad"), "wait", wait);
        redis.set_field(&keys::job("bad"), "event", wait);
        is_safe(&send(&site, "GET", "/jobs/bad", &cookie, ""), wait);
        is_safe(&send(&site, "GET", "/jobs", &cookie, ""), wait);
    }
}

#[test]
fn files_of_jobs_are_attachments() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hostile_job(&redis, &hero, "bad");
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    for (path, kind, text) in [
        ("/jobs/bad/log", "text/plain; charset=utf-8", "Z 2 </pre>"),
        ("/jobs/bad.json", "application/json", "\"id\": \"bad\""),
        ("/jobs.json?type=python", "application/json", "\"id\":\"bad\""),
        ("/jobs.csv", "text/csv; charset=utf-8", "\r\nbad,"),
    ] {
        let file = send(&site, "GET", path, &cookie, "");
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        let disposition = file.header("content-disposition").unwrap_or_default();
        assert!(disposition.starts_with("attachment"), "{path}: {}", file.head);
        assert!(file.body.contains(text), "{path}: {}", file.body);
    }
    // A misspelled filter finds not everything, but nothing.
    for path in ["/jobs.json?typ=python", "/jobs.csv?stat=error&q=a"] {
        let refused = send(&site, "GET", path, &cookie, "");
        assert_eq!(refused.status, 400, "{path}: {}", refused.body);
        assert!(refused.body.contains("Unknown parameter"), "{path}: {}", refused.body);
    }
    let later = send(&site, "GET", "/jobs/bad/log?since=2100-01-01T00:00:00Z", &cookie, "");
    assert_eq!((later.status, later.body.as_str()), (200, ""));
    assert_eq!(send(&site, "GET", "/jobs/bad/log?since=x", &cookie, "").status, 400);
}

#[test]
fn job_is_found_by_its_whole_id_and_its_absence_is_said() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "bash", "--id", "one", "-e", "true"]).code(0);
    let site = Served::with(Hero::on(&redis).set("api.path", "\"/hero\""), &redis);
    let cookie = signed_in_at(&site, "/hero");
    let found = send(&site, "GET", "/hero/jobs?q=one", &cookie, "");
    assert_eq!((found.status, found.header("location")), (303, Some("/hero/jobs/one")));
    for path in
        ["/hero/jobs/two", "/hero/jobs/two/log", "/hero/jobs/%2e%2e%2f", "/hero/jobs/two/delete"]
    {
        assert_eq!(send(&site, "GET", path, &cookie, "").status, 404, "{path}");
    }
    let none = send(&site, "GET", "/hero/jobs?q=nothing", &cookie, "");
    assert!(none.body.contains("No job with a text that contains `nothing`."), "{}", none.body);
}

fn signed_in_at(site: &Served, path: &str) -> String {
    let answer = send(
        site,
        "POST",
        &format!("{path}/login"),
        &own_origin(site),
        &format!("token={}", site.token(OPERATOR)),
    );
    let cookie = answer.header("set-cookie").expect("a cookie");
    format!("Cookie: {}\r\n", cookie.split(';').next().expect("a value"))
}

#[test]
fn jobs_are_stopped_retried_and_deleted_by_forms_with_a_question() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["one", "two", "three"] {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", "true"]).code(0);
    }
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let forgery = send(&site, "GET", "/jobs", &cookie, "").forgery();
    let post = |path: &str, form: &str| {
        send(&site, "POST", path, &cookie, &format!("{form}&csrf={forgery}"))
    };
    let status = |id: &str| redis.field(&keys::job(id), "status");
    let stopped = post("/jobs/one", "do=stop");
    assert_eq!((stopped.status, stopped.header("location")), (303, Some("/jobs/one")));
    assert_eq!(status("one").as_deref(), Some("error"));
    assert_eq!(post("/jobs/one", "do=stop").status, 409, "it has ended");
    assert_eq!(
        post("/jobs", "do=retry&id=one&state=failed").header("location"),
        Some("/jobs?status=failed")
    );
    assert_eq!(status("one").as_deref(), Some("dispatched"));
    let asked = post("/jobs", "do=delete&id=one&id=two&id=two");
    assert!(asked.body.contains("Delete 2 jobs?"), "{}", asked.body);
    assert!(status("one").is_some(), "the question changes nothing");
    assert_eq!(post("/jobs", "do=delete&id=one&id=two&sure=1").status, 303);
    assert_eq!((status("one"), status("two")), (None, None));
    assert!(status("three").is_some());
    let all = post("/jobs", "do=delete&all=1&type=bash");
    assert!(
        all.body.contains("Delete 1 job?") && all.body.contains("name=\"all\" value=\"1\""),
        "{}",
        all.body
    );
    let refused = post("/jobs?type=bash", "do=delete&all=1&sure=1");
    assert!(refused.status == 400 && refused.body.contains("nknown parameter"), "{}", refused.body);
    assert!(status("three").is_some(), "a filter in the address of a form changes nothing");
    assert_eq!(post("/jobs", "do=drop&id=three").status, 400);
    assert_eq!(post("/jobs", "do=retry").status, 400);
}

#[test]
fn reader_changes_no_job_and_a_form_without_its_token_does_nothing() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "bash", "--id", "one", "-e", "true"]).code(0);
    redis.set_field(&keys::job("one"), "env_vars", "{\"KEY\":\"secret\"}");
    let site = Served::on(&redis);
    let reader = signed_in(&site, READER);
    let page = send(&site, "GET", "/jobs/one", &reader, "");
    assert!(page.body.contains("KEY") && !page.body.contains("secret"), "{}", page.body);
    assert!(!page.body.contains("value=\"stop\""), "a reader sees no button");
    let forgery = page.forgery();
    for path in ["/jobs", "/jobs/one"] {
        for verb in ["stop", "retry", "delete"] {
            let form = format!("do={verb}&id=one&sure=1&csrf={forgery}");
            assert_eq!(send(&site, "POST", path, &reader, &form).status, 403, "{path} {verb}");
        }
    }
    let operator = signed_in(&site, OPERATOR);
    for path in ["/jobs", "/jobs/one"] {
        let form = "do=stop&id=one&sure=1";
        assert_eq!(send(&site, "POST", path, &operator, form).status, 403, "{path}");
    }
    assert_eq!(redis.field(&keys::job("one"), "status").as_deref(), Some("dispatched"));
}

#[test]
fn files_of_a_job_are_listed_and_sent_as_files_alone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let name = "<b onclick> &.html";
    let path = redis.folder().join("given");
    std::fs::write(&path, HOSTILE).expect("written");
    let input = format!("{name}={}", path.display());
    hero.run(&["submit", "-t", "bash", "--id", "a", "--input", &input, "-e", "true"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = send(&site, "GET", "/jobs/a", &cookie, "");
    is_safe(&page, "/jobs/a");
    assert!(page.body.contains("&lt;b onclick&gt; &amp;.html</a>"), "{}", page.body);
    let href = "/jobs/a/files/%3Cb%20onclick%3E%20%26.html";
    assert!(page.body.contains(href), "{}", page.body);
    let sent = send(&site, "GET", href, &cookie, "");
    assert_eq!((sent.status, sent.body.as_str()), (200, HOSTILE));
    let head = sent.head.to_ascii_lowercase();
    for line in [
        "content-disposition: attachment; filename=\"_b_onclick___.html\"",
        "content-type: application/octet-stream",
        "x-content-type-options: nosniff",
    ] {
        assert_eq!(head.matches(line).count(), 1, "{line}: {head}");
    }
    for missing in ["/jobs/a/files/other", "/jobs/b/files/x", "/jobs/a/files/..%2Fa"] {
        assert_ne!(send(&site, "GET", missing, &cookie, "").status, 200, "{missing}");
    }
    assert_ne!(send(&site, "GET", href, "", "").status, 200, "only for who has signed in");
}

#[test]
fn graphs_are_listed_and_shown_with_their_jobs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run_with_input(
        &["submit", "--batch", "-", "--id", "g", "--name", HOSTILE],
        "{\"id\":\"one\",\"script_type\":\"osis\",\"script\":\"1\"}\n\
         {\"id\":\"two\",\"script_type\":\"bash\",\"script\":\"true\"}\n",
    )
    .code(0);
    for field in ["error", "name"] {
        redis.set_field(&keys::job("two"), field, HOSTILE);
    }
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "one"]).code(0);
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let list = send(&site, "GET", "/graphs", &cookie, "");
    is_safe(&list, "/graphs");
    assert!(list.body.contains("1 of 2 done, 1 not ended"), "{}", list.body);
    assert!(list.body.contains("href=\"/graphs/g\""), "{}", list.body);
    let graph = send(&site, "GET", "/graphs/g", &cookie, "");
    is_safe(&graph, "/graphs/g");
    assert!(graph.body.contains("href=\"/jobs/two\""), "{}", graph.body);
    let job = send(&site, "GET", "/jobs/one", &cookie, "");
    assert!(job.body.contains("href=\"/graphs/g\""), "{}", job.body);
    assert_eq!(send(&site, "GET", "/graphs/none", &cookie, "").status, 404);
    is_safe(&send(&site, "GET", "/graphs?after=%3Cb%3E", &cookie, ""), "a cursor that is none");
}

#[test]
fn numbers_of_a_chosen_period_are_shown_with_their_jobs() {
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let cookie = signed_in(&site, READER);
    let shown = |query: &str| send(&site, "GET", &format!("/stats{query}"), &cookie, "").body;
    wait_until("a sample is kept", || !redis.list(&keys::prefix("HOURS")).is_empty());
    let _osis = site.hero.actor("osis-default-1").start();
    site.hero.run(&["exec", "-t", "osis", "-e", "throw 1"]).code(1);
    let overview = send(&site, "GET", "/", &cookie, "").body;
    assert!(overview.contains("href=\"/stats\""), "{overview}");
    let page = shown("?since=1h");
    let address =
        page.split('"').find(|part| part.starts_with("/jobs?status=failed")).expect("a link");
    let jobs = send(&site, "GET", &address.replace("&amp;", "&"), &cookie, "").body;
    assert!(jobs.contains(">1 job<"), "the failed job of the period: {jobs}");
    assert!(shown("?since=2020-01-01&until=2020-01-02").contains("No numbers: no supervisor"));
    assert!(shown("?since=%3Cb%3E").contains("`&lt;b&gt;` is not a time"));
    let bound = signed_in(&site, &["bound", "--scope", "read", "--caller", "ann"]);
    assert_eq!(send(&site, "GET", "/stats", &bound, "").status, 403);
}

#[test]
fn pages_of_an_actor_and_of_a_queue_have_the_jobs_that_ended() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let _actor = site.hero.actor("osis-default-1").start();
    for (name, priority) in [("plain", "1"), ("last", "2")] {
        let job = ["exec", "-t", "osis", "--name", name, "--priority", priority, "-e", "1"];
        site.hero.run(&job).code(0);
    }
    let cookie = signed_in(&site, OPERATOR);
    for (path, has_plain, has_last) in [
        ("/actors/osis:default:1", true, true),
        ("/queues/type:osis", true, false),
        ("/queues/type:osis:prio:2", false, true),
    ] {
        let page = send(&site, "GET", path, &cookie, "").body;
        let has = |name: &str| page.contains(&format!(">{name}<"));
        assert_eq!((has("plain"), has("last")), (has_plain, has_last), "{path}: {page}");
    }
}
