//! A filter of jobs means the same on every face, by each of its names; what is none is refused on every face.

use hero::proto::job_filter::{FilterRow, JOB_FILTERS, JobFilter};
use serde_json::{Value, json};

use crate::support::{Hero, Redis, Served, keys, wait_until};
use crate::web::requests::{send, signed_in};

/// A face: it returns the ids of the jobs that a parameter finds, or `None` if it refuses it.
type Face<'a> = (&'a str, Box<dyn Fn(&str, &str) -> Option<Vec<String>> + 'a>);

const IDS: [&str; 3] = ["bad", "one", "two"];

/// A failed job, one that waits and is late and held by a limit, and one that its script submitted.
fn world(redis: &Redis) -> Served {
    let hero = Hero::on(redis).set("job.retries", "0").set("type.osis.dead_letters", "\"all\"");
    let site = Served::with(hero, redis);
    let hero = &site.hero;
    let actor = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "bad", "-e", "throw \"boom\""]).code(1);
    drop(actor);
    let one = ["--id", "one", "--caller", "zoe", "--name", "zoes", "--tag", "nightly", "-e", "1"];
    hero.run(&[&["submit", "-t", "osis", "-g", "nobody"][..], &one].concat()).code(0);
    hero.run(&["submit", "-t", "bash", "-g", "nobody", "--id", "two", "-e", "1"]).code(0);
    redis.set_field(&keys::job("one"), "late_at", "2026-01-01T00:00:00.000Z");
    redis.set_field(&keys::job("one"), "held_by", "gpu");
    redis.set_field(&keys::job("two"), "parent", "one");
    redis.set_field(&keys::job("one"), "children", "[\"two\"]");
    site
}

/// A value for each filter, and the jobs that it finds.
fn example(row: &FilterRow, failed: &Value) -> (String, &'static [&'static str]) {
    let of = |name: &str| failed[name].as_str().unwrap_or_default().to_owned();
    let (value, found): (&str, &'static [&'static str]) = match row.name {
        "actor" => return (of("actor"), &["bad"]),
        "host" => return (of("hostname"), &["bad"]),
        "kind" => return (of("error"), &["bad"]),
        "status" => ("failed,queued", &["bad", "two"]),
        "script_type" => ("bash", &["two"]),
        "queue" => ("type:osis:group:nobody", &["one"]),
        "caller" => ("zoe", &["one"]),
        "name" => ("ZOE", &["one"]),
        "tags" => ("nightly", &["one"]),
        "error" => ("boom", &["bad"]),
        "failed_because" => ("script", &["bad"]),
        "cancelled" => ("false", &IDS),
        "late" | "held" => ("true", &["one"]),
        "text" => ("oE", &["one"]),
        "parent" => ("one", &["two"]),
        "since" => ("1h", &IDS),
        "until" | "ended_until" => ("1h", &[]),
        "ended_since" => ("1h", &["bad"]),
        "dead" => ("true", &["bad"]),
        other => panic!("{other} has no example here"),
    };
    (value.to_owned(), found)
}

/// Returns the sorted ids of jobs in JSON.
fn ids(jobs: &Value) -> Option<Vec<String>> {
    let ids = jobs.as_array()?.iter().filter_map(|job| Some(job["id"].as_str()?.to_owned()));
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    Some(ids)
}

/// Returns a parameter as JSON has it.
fn typed(name: &str, value: &str) -> Value {
    match JobFilter::row(name) {
        Some(row) if row.is_flag() => json!({ name: value == "true" }),
        Some(row) if row.name == "tags" => json!({ name: [value] }),
        _ => json!({ name: value }),
    }
}

fn faces<'a>(site: &'a Served, cookie: &'a str) -> Vec<Face<'a>> {
    let hero = &site.hero;
    let token = site.token(&["reader", "--scope", "read"]);
    let bearer = format!("Bearer {token}");
    let tool = |name: &str, value: &str| {
        let params = json!({ "name": "list_jobs", "arguments": typed(name, value) });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let done = hero.run_with_input(&["mcp"], &format!("{call}\n")).code(0).stdout;
        let answer: Value = serde_json::from_str(&done).expect("JSON");
        ids(&answer["result"]["structuredContent"]["jobs"])
    };
    vec![
        (
            "command line",
            Box::new(|name, value| {
                let option = format!("--{}={value}", name.replace('_', "-"));
                let done = hero.run(&["job", "list", "--json", &option]);
                let list: Value = serde_json::from_str(&done.stdout).ok()?;
                ids(&list["jobs"])
            }),
        ),
        (
            "JSON-RPC",
            Box::new(|name, value| {
                let asked = crate::support::request("job.list", &typed(name, value));
                ids(&site.unix().post("/rpc", &[], &asked).json()["result"]["jobs"])
            }),
        ),
        (
            "REST",
            Box::new(move |name, value| {
                let path = format!("/jobs?{name}={}", value.replace(' ', "+"));
                let answer = site.tcp().get(&path, &[("Authorization", &bearer)]);
                ids(&answer.json()["jobs"])
            }),
        ),
        (
            "page",
            Box::new(|name, value| {
                let path = format!("/jobs?{name}={}", value.replace(' ', "+"));
                let page = send(site, "GET", &path, cookie, "");
                let has = |id: &&&str| page.body.contains(&format!("href=\"/jobs/{id}\""));
                let found = IDS.iter().filter(has).map(|id| (*id).to_owned()).collect();
                (page.status == 200).then_some(found)
            }),
        ),
        ("tool of agents", Box::new(tool)),
    ]
}

#[test]
fn each_name_of_a_filter_finds_the_same_jobs_on_every_face() {
    let redis = Redis::start();
    let site = world(&redis);
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let failed = site.call("job.get", &json!({ "id": "bad" }));
    for row in &JOB_FILTERS {
        let (value, expected) = example(row, &failed);
        for name in row.names() {
            for (face, find) in faces(&site, &cookie) {
                let found = find(name, &value).unwrap_or_default();
                assert_eq!(found, expected, "{face}: {name}={value}");
            }
        }
    }
}

#[test]
fn what_is_no_filter_or_no_value_of_one_is_refused_on_every_face() {
    let redis = Redis::start();
    let site = world(&redis);
    let cookie = signed_in(&site, &["ann", "--scope", "read,submit,operate"]);
    for (face, find) in faces(&site, &cookie) {
        for (name, value) in [
            ("stat", "failed"),
            ("states", "failed"),
            ("status", "done"),
            ("failed_because", "luck"),
            ("queue", "x"),
            ("since", "banana"),
        ] {
            assert_eq!(find(name, value), None, "{face}: {name}={value}");
        }
    }
    let forgery = send(&site, "GET", "/jobs", &cookie, "").forgery();
    let form = format!("do=stop&all=1&sure=1&stat=failed&csrf={forgery}");
    assert_eq!(send(&site, "POST", "/jobs", &cookie, &form).status, 400);
    let stop = json!({ "change": "stop", "filter": { "stat": "failed" }, "yes": true });
    let asked = crate::support::request("job.change_many", &stop);
    assert_eq!(site.unix().post("/rpc", &[], &asked).json()["error"]["code"], -32602);
    site.hero.run(&["job", "stop", "--stat", "failed", "--yes"]).code(2);
    for id in ["one", "two"] {
        assert_eq!(redis.field(&keys::job(id), "status").as_deref(), Some("dispatched"));
    }
}

#[test]
fn answer_without_a_job_repeats_the_filter() {
    let redis = Redis::start();
    let site = world(&redis);
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let words = "with a name that contains `none` that is not late";
    let listed = site.hero.run(&["job", "list", "--name", "none", "--late=false"]).code(0);
    assert_eq!(listed.stderr, format!("hero: no job {words}\n"));
    let page = send(&site, "GET", "/jobs?name=none&late=false", &cookie, "").body;
    assert!(page.contains(&format!("No job {words}.")), "{page}");
}

#[test]
fn job_that_waits_to_be_retried_is_found_by_its_error() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let retried = ["submit", "-t", "bash", "--id", "a", "--retries", "3", "--backoff", "1h"];
    hero.run(&[&retried[..], &["-e", "exit 3"]].concat()).code(0);
    wait_until("it waits", || {
        hero.run(&["job", "list", "--status", "scheduled"]).code(0).stdout.contains("exit code 3")
    });
    for more in [&[][..], &["--status", "waiting"], &["--status", "scheduled"]] {
        let list = [&["job", "list", "--error", "exit code 3"], more].concat();
        assert!(hero.run(&list).code(0).stdout.contains("exit code 3"), "{more:?}");
    }
}

#[test]
fn jobs_are_found_by_a_line_of_their_logs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _sal = hero.actor("sal-default-1").start();
    for (id, line) in [("a", "disk full"), ("b", "all is well"), ("c", "disk full again")] {
        let script = format!("print(\"begin\"); print(\"{line}\"); 1");
        hero.run(&["exec", "-t", "sal", "--id", id, "-e", &script]).code(0);
    }
    let found = |words: &[&str]| {
        let words = [&["--json", "job", "list", "--log", "disk f"], words].concat();
        let page: serde_json::Value =
            serde_json::from_str(&hero.run(&words).code(0).stdout).expect("JSON");
        page["jobs"]
            .as_array()
            .expect("jobs")
            .iter()
            .map(|of| of["line"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["disk full again", "disk full"], "the latest first");
    assert_eq!(found(&["--limit", "1"]), ["disk full again"]);
    let table = hero.run(&["job", "list", "--log", "well"]).code(0).stdout;
    assert!(table.contains("all is well") && !table.contains("disk"), "{table}");
}
