//! Jobs by plain HTTP, by curl.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{Hero, Redis, Served, keys, needs, wait_until};

/// Runs curl with a token.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn curl(site: &Served, token: &str, args: &[&str], path: &str) -> Output {
    let bearer = format!("Authorization: Bearer {token}");
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--noproxy", "*", "-H", &bearer]).args(args).arg(site.at(path));
    curl.output().expect("curl runs")
}

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok()
}

fn text(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[track_caller]
fn document(done: &Output) -> Value {
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("no JSON: {}", text(done)))
}

#[test]
fn curl_submits_a_job_reads_it_and_fails_with_the_error() {
    if !needs("curl", has_curl) {
        return;
    }
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let _actor = site.hero.actor("bash-default-1").start();
    let token = site.token(&["ann", "--scope", "read,submit"]);
    let body = |job: Value| {
        ["-H", "content-type: application/json", "-d"]
            .map(str::to_owned)
            .into_iter()
            .chain([job.to_string()])
            .collect::<Vec<_>>()
    };
    let post = |path: &str, more: &[&str], job: Value| {
        let body = body(job);
        let all: Vec<&str> = more.iter().copied().chain(body.iter().map(String::as_str)).collect();
        curl(&site, &token, &all, path)
    };
    let bash =
        |script: &str, id: &str| json!({ "script_type": "bash", "script": script, "id": id });
    let made = post("/jobs", &["-i"], bash("echo hi >&2; printf 'a\\0b'", "a"));
    let head = text(&made).to_lowercase();
    assert!(head.starts_with("http/1.1 201 ") && head.contains("location: /jobs/a\r\n"), "{head}");
    site.hero.run(&["job", "wait", "a"]).code(0);
    let job = document(&curl(&site, &token, &["-f"], "/jobs/a"));
    assert_eq!((&job["status"], &job["caller_id"]), (&json!("finished"), &json!("ann")));
    assert_eq!(curl(&site, &token, &["-f"], "/jobs/a/output").stdout, b"a\0b");
    let log = text(&curl(&site, &token, &["-f"], "/jobs/a/log"));
    assert!(log.contains(" 2 hi"), "{log}");
    let ran = document(&post("/jobs?wait=30", &["-f"], bash("exit 3", "b")));
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("error"), &json!(3)));
    // Each error has its status: curl -f fails.
    for (done, status) in [
        (curl(&site, &token, &["-f"], "/jobs/none"), "404"),
        (curl(&site, &token, &["-f"], "/jobs/none/output"), "404"),
        (curl(&site, &token, &["-f"], "/jobs/none/log"), "404"),
        (curl(&site, &token, &["-f"], "/jobs/a/files/none"), "404"),
        (curl(&site, "wrong", &["-f"], "/jobs/a"), "401"),
        (post("/jobs", &["-f"], json!({ "script_type": "ruby", "script": "1" })), "400"),
        (post("/jobs", &["-f"], bash("true", "a")), "409"),
        (
            post(
                "/rpc",
                &["-f"],
                json!({ "jsonrpc": "2.0", "id": 1, "method": "job.get", "params": ["none"] }),
            ),
            "404",
        ),
    ] {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(22) && said.contains(status), "{status}: {said}");
    }
    let refused = document(&curl(&site, &token, &[], "/jobs/none"));
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    let unknown = document(&curl(&site, "wrong", &[], "/jobs/a"));
    assert_eq!(unknown["error"]["code"], -32001, "{unknown}");
    // Values are taken as the options of the command line take them.
    let spoken = json!({ "type": "bash", "script": "true", "id": "c", "timeout": "5s", "delay": "10m",
        "priority": "urgent", "tag": "b" });
    post("/jobs", &["-f"], spoken);
    let job = document(&curl(&site, &token, &["-f"], "/jobs/c"));
    assert_eq!(
        (&job["timeout"], &job["priority"], &job["tags"]),
        (&json!(5), &json!(0), &json!(["b"]))
    );
    assert_eq!(job["status"], "scheduled");
}

#[test]
fn curl_tells_a_job_the_event_that_it_waits_for() {
    if !needs("curl", has_curl) {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    let _actor = site.hero.actor("python-default-1").start();
    let (ann, bob) = (
        site.token(&["ann", "--scope", "read,submit"]),
        site.token(&["bob", "--scope", "read,submit"]),
    );
    let script = "import hero\nif hero.event is None: hero.wait('ok')\nprint(hero.event['who'], hero.event['data'])";
    site.hero
        .run(&["submit", "-t", "python", "--caller", "ann", "--id", "a", "-e", script])
        .code(0);
    let waits = || redis.field(&keys::job("a"), "wait").is_some();
    wait_until("it waits", waits);
    let tell = |token: &str, path: &str, body: &str| {
        let args = ["-w", "%{http_code}", "-H", "content-type: application/json", "-d", body];
        text(&curl(&site, token, &args, path))
    };
    let event = "{\"event\": \"ok\", \"data\": [7]}";
    for (token, path, body, status) in [
        (&bob, "/jobs/a/tell", event, "403"),
        (&ann, "/jobs/none/tell", event, "404"),
        (&ann, "/jobs/a/tell?wait=1", event, "400"),
        (&ann, "/jobs/a/tell", "[]", "400"),
        (&ann, "/jobs/a/tell", "{\"event\": \"o k\"}", "400"),
        (&ann, "/jobs/a/tell", "{\"event\": \"ok\", \"id\": \"b\"}", "400"),
        (&ann, "/jobs/a/tell", "{\"event\": \"ok\", \"dat\": 1}", "400"),
    ] {
        let said = tell(token, path, body);
        assert!(said.ends_with(status), "{path} {body}: {said}");
    }
    let form = text(&curl(&site, &ann, &["-w", "%{http_code}", "-d", event], "/jobs/a/tell"));
    assert!(form.ends_with("415"), "{form}");
    assert!(waits());
    assert_eq!(tell(&ann, "/jobs/a/tell", event), "{\"id\":\"a\",\"result\":\"told\"}200");
    site.hero.run(&["job", "wait", "a"]).code(0).stdout("ann [7]\n");
    assert!(tell(&ann, "/jobs/a/tell", event).ends_with("409"), "it has ended");
}

#[test]
fn address_with_an_unknown_parameter_and_a_form_are_refused_with_what_to_send() {
    if !needs("curl", has_curl) {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    let token = site.token(&["ann", "--scope", "read,submit"]);
    for (path, known) in [
        ("/jobs/a?wiat=1", "takes `wait`"),
        ("/jobs/a/output?wait=1", "takes none"),
        ("/jobs/a/log?from=1", "takes `since`"),
        ("/jobs/a/files/x?from=1", "takes none"),
    ] {
        let refused = document(&curl(&site, &token, &[], path));
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("unknown parameter `") && message.contains(known), "{refused}");
    }
    let json = ["-w", " %{http_code}", "-H", "content-type: application/json", "-d", "{}"];
    let typo = text(&curl(&site, &token, &json, "/jobs?wiat=30"));
    assert!(typo.contains("unknown parameter `wiat`") && typo.ends_with(" 400"), "{typo}");
    let form = text(&curl(&site, &token, &["-w", " %{http_code}", "-d", "{}"], "/jobs"));
    assert!(form.contains("send the header `Content-Type: application/json`"), "{form}");
    assert!(form.ends_with(" 415"), "{form}");
}

#[test]
fn curl_waits_for_the_end_of_a_job_that_was_submitted_before() {
    if !needs("curl", has_curl) {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    let token = site.token(&["ann", "--scope", "read,submit"]);
    let get = |path: &str| curl(&site, &token, &[], path);
    site.hero.run(&["submit", "-t", "bash", "--id", "a", "-e", "sleep 0.3; echo done"]).code(0);
    let early = document(&get("/jobs/a/output"));
    let message = early["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("wait for its end with GET /jobs/ID?wait=SECONDS"), "{early}");
    assert_eq!(document(&get("/jobs/a?wait=0"))["status"], "dispatched");
    for wrong in ["soon", "1e9", "-1"] {
        let refused = document(&get(&format!("/jobs/a?wait={wrong}")));
        assert_eq!(refused["error"]["data"]["field"], "wait", "{refused}");
    }
    let _actor = site.hero.actor("bash-default-1").start();
    assert_eq!(document(&get("/jobs/a?wait=60"))["status"], "finished");
    assert_eq!(text(&get("/jobs/a/output")), "done");
    site.hero.run(&["exec", "-t", "bash", "--id", "b", "-e", "exit 3"]).code(3);
    let failed = document(&get("/jobs/b/output"));
    assert_eq!(failed["error"]["code"], -32005, "{failed}");
    let status = curl(&site, &token, &["-w", "%{http_code}", "-o", "/dev/null"], "/jobs/b/output");
    assert_eq!(text(&status), "422");
}

#[test]
fn answers_of_more_than_a_kibibyte_are_compressed_for_those_who_ask() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let ask = |path: &str, encoding: &str| site.unix().get(path, &[("accept-encoding", encoding)]);
    let packed = ask("/openapi.json", "gzip, br");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let plain = ask("/openapi.json", "");
    assert_eq!((plain.header("content-encoding"), plain.status), (None, 200));
    let small = ask("/healthz", "gzip");
    assert_eq!((small.header("content-encoding"), small.text().as_str()), (None, "ok\n"));
    if needs("curl", has_curl) {
        let token = site.token(&["ann", "--scope", "read"]);
        let unpacked = curl(&site, &token, &["-f", "--compressed"], "/openapi.json");
        assert_eq!(unpacked.stdout, plain.body);
        let page = curl(&site, &token, &["-f", "--compressed", "-H", "Accept: text/html"], "/");
        assert!(text(&page).contains("<h1"), "{}", text(&page));
    }
}

#[test]
fn health_is_reported_without_a_token_and_readiness_while_redis_answers() {
    let mut redis = Redis::start();
    let site = Served::on(&redis);
    let get = |path: &str| site.tcp().get(path, &[]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!((get(path).status, get(path).text().as_str()), (200, "ok\n"), "{path}");
    }
    redis.kill();
    assert_eq!(get("/healthz").status, 200);
    let unready = get("/readyz");
    assert_eq!(unready.status, 503);
    assert!(unready.text().contains("redis"), "{}", unready.text());
}

#[test]
fn program_with_a_token_gets_documents_and_learns_what_a_path_takes() {
    if !needs("curl", has_curl) {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    site.hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let reader = site.token(&["ann", "--scope", "read"]);
    let list = document(&curl(&site, &reader, &["-f"], "/jobs?type=osis"));
    assert_eq!(list["jobs"][0]["id"], json!("a"), "{list}");
    assert_eq!(document(&curl(&site, &reader, &["-f"], "/jobs?type=bash"))["jobs"], json!([]));
    let page = text(&curl(&site, &reader, &["-f", "-H", "Accept: text/html"], "/jobs"));
    assert!(page.contains("<!DOCTYPE html>"), "{page}");
    let wrong = text(&curl(&site, &reader, &[], "/job/a"));
    assert!(wrong.contains("GET /openapi.json") && !wrong.contains('<'), "{wrong}");
    let refused = document(&curl(&site, &reader, &["-X", "DELETE"], "/jobs/a"));
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("/jobs/a takes GET, HEAD, POST; "), "{refused}");
    let writer = site.token(&["bob", "--scope", "submit"]);
    let refused = document(&curl(&site, &writer, &[], "/jobs/a/output"));
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("needs the scope read") && message.contains("?wait="), "{refused}");
    let refused = text(&curl(&site, &writer, &[], "/jobs"));
    assert!(refused.contains("needs the scope read") && !refused.contains('<'), "{refused}");
}

#[test]
fn list_of_jobs_obeys_its_filters_or_refuses_them() {
    if !needs("curl", has_curl) {
        return;
    }
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let _actor = site.hero.actor("bash-default-1").start();
    let reader = site.token(&["ann", "--scope", "read"]);
    for (id, script, end) in [("good", "true", "finished"), ("bad", "exit 3", "error")] {
        site.hero.run(&["submit", "-t", "bash", "--id", id, "-e", script]).code(0);
        let status = || redis.field(&keys::job(id), "status");
        wait_until("it ended", || status().as_deref() == Some(end));
    }
    let get = |args: &[&str], path: &str| curl(&site, &reader, args, path);
    let ids = |path: &str| -> Vec<String> {
        let list = document(&get(&["-f"], path));
        let jobs = list["jobs"].as_array().expect("jobs");
        jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids("/jobs?state=failed"), ["bad"]);
    assert_eq!(ids("/jobs?state=Finished"), ["good"]);
    assert_eq!(ids("/jobs?dead=false&since=1h").len(), 2);
    assert_eq!(text(&get(&["-f"], "/jobs.csv?limit=1")).lines().count(), 2);
    let first = document(&get(&["-f"], "/jobs?limit=1"));
    assert_eq!(first["jobs"].as_array().map(Vec::len), Some(1), "{first}");
    let next = first["next"].as_str().expect("the place of the next page");
    let second = ids(&format!("/jobs?limit=1&cursor={next}"));
    assert!(second.len() == 1 && first["jobs"][0]["id"] != json!(second[0]), "{first}: {second:?}");
    for (path, field, reason) in [
        ("/jobs?state=nosuch", "status", "unknown state `nosuch`: expected waiting, "),
        ("/jobs.json?since=banana", "since", "`banana` is not a time: expected "),
        ("/jobs?ended_since=1x", "ended_since", "`1x` is not a time"),
        ("/jobs.csv?state=nosuch", "status", "unknown state `nosuch`: expected waiting, "),
        ("/jobs?limit=0", "limit", "`0` is not legal: a number from 1 to 10000"),
        (
            "/jobs?nosuch=failed",
            "nosuch",
            "unknown parameter `nosuch` in the address, which takes ",
        ),
    ] {
        let refused = document(&get(&[], path));
        let error = &refused["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{path}: {refused}");
        let (code, field) = (json!(-32602), json!(field));
        assert_eq!((&error["code"], &error["data"]["field"]), (&code, &field), "{path}");
        let status = text(&get(&["-o", "/dev/null", "-w", "%{http_code}"], path));
        assert_eq!(status, "400", "{path}");
    }
    let html = ["-w", " %{http_code}", "-H", "Accept: text/html"];
    let page = text(&get(&html, "/jobs?since=%3Cscript%3E"));
    assert!(page.contains("`&lt;script&gt;` is not a time"), "{page}");
    assert!(!page.contains("<script>") && page.ends_with(" 400"), "{page}");
}
