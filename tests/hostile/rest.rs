//! Attacks on jobs by plain HTTP.

use serde_json::{Value, json};

use super::{Asked, Try, failures};
use crate::support::{Hero, Redis, Served, request};

/// A job of bash that only prints.
fn job() -> Value {
    json!({ "script_type": "bash", "script": "echo 1" })
}

fn with(change: impl FnOnce(&mut Value)) -> String {
    let mut job = job();
    change(&mut job);
    job.to_string()
}

#[test]
fn hostile_calls_by_plain_http_are_refused_and_their_controls_are_served() {
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("api.body_size_max", "\"64KiB\""), &redis);
    let (admin, ann, reader, bound) = (
        site.token(&["root", "--scope", "admin,submit,read"]),
        site.token(&["ann", "--scope", "read,submit"]),
        site.token(&["eve", "--scope", "read"]),
        site.token(&["bob", "--scope", "read,submit", "--type", "bash", "--context", "bob"]),
    );
    let _actor = site.hero.actor("bash-default-1").start();
    let secret = ["--caller", "ann", "--id", "of-ann", "-t", "bash", "-e"];
    site.hero
        .run(
            &[&["submit"], &secret[..], &["echo private > $HERO_OUTPUT_DIR/kept; echo private"]]
                .concat(),
        )
        .code(0);
    site.hero.run(&["job", "wait", "of-ann"]).code(0);
    let waits = ["submit", "-t", "python", "--caller", "ann", "--id", "waits", "-e", "print(1)"];
    site.hero.run(&waits).code(0);
    let before = redis.all("JOB").len();

    let bearer = |token: &str| format!("Bearer {token}");
    let post = |token: &str| {
        let asked = Asked::new("POST", "/jobs", &job().to_string());
        asked.with("content-type", "application/json").with("authorization", &bearer(token))
    };
    let get =
        |path: &str, token: &str| Asked::new("GET", path, "").with("authorization", &bearer(token));
    let own = post(&ann);
    let deep = "[".repeat(5_000);
    let sal = with(|job| job["script_type"] = json!("sal"));
    let tries = [
        Try::new("no token", own.clone().with("authorization", ""), &own),
        Try::new("a wrong token", own.clone().with("authorization", "Bearer x"), &own),
        Try::new(
            "a token of another kind",
            own.clone().with("authorization", "Basic YW5uOng="),
            &own,
        ),
        Try::new(
            "a token in the address",
            own.clone().with("authorization", "").to(&format!("/jobs?token={ann}")),
            &own,
        ),
        Try::new("a scope that only reads", post(&reader), &own),
        Try::new("a type without a sandbox", own.clone().saying(&sal), &own),
        Try::new(
            "a type outside of the bounds",
            post(&bound).saying(&with(|job| job["script_type"] = json!("python"))),
            &own,
        ),
        Try::new(
            "the name of another",
            own.clone().saying(&with(|job| job["caller_id"] = json!("root"))),
            &post(&admin).saying(&with(|job| job["caller_id"] = json!("x"))),
        ),
        Try::new(
            "the context of another",
            post(&bound).saying(&with(|job| job["context_id"] = json!("ann"))),
            &post(&bound),
        ),
        Try::new(
            "the id of another's job",
            post(&bound).saying(&with(|job| job["id"] = json!("waits"))),
            &post(&bound),
        ),
        Try::new(
            "a job out of the bounds",
            get("/jobs/of-ann", &bound),
            &get("/jobs/of-ann", &ann),
        ),
        Try::new(
            "an output out of the bounds",
            get("/jobs/of-ann/output", &bound),
            &get("/jobs/of-ann/output", &ann),
        ),
        Try::new(
            "a log out of the bounds",
            get("/jobs/of-ann/log", &bound),
            &get("/jobs/of-ann/log", &ann),
        ),
        Try::new(
            "a file out of the bounds",
            get("/jobs/of-ann/files/kept", &bound),
            &get("/jobs/of-ann/files/kept", &ann),
        ),
        Try::new(
            "a path in the id",
            get("/jobs/..%2F..%2Fetc%2Fpasswd", &ann),
            &get("/jobs/of-ann", &ann),
        ),
        Try::new(
            "a path in the name of a file",
            get("/jobs/of-ann/files/..%2F..%2Fhero.toml", &ann),
            &get("/jobs/of-ann/files/kept", &ann),
        ),
        Try::new("a key of Redis as the id", get("/jobs/*", &ann), &get("/jobs/of-ann", &ann)),
        Try::new("another name of this host", own.clone().with("host", "evil.example"), &own),
        Try::new(
            "the page of another site",
            own.clone().with("origin", "http://evil.example"),
            &own,
        ),
        Try::new("a form of another site", own.clone().with("content-type", "text/plain"), &own),
        Try::new(
            "a body over the limit",
            own.clone().saying(&with(|job| job["script"] = json!("#".repeat(70_000)))),
            &own,
        ),
        Try::new("five thousand brackets", own.clone().saying(&deep), &own),
        Try::new(
            "a wait without an end",
            own.clone().to("/jobs?wait=inf"),
            &own.clone().to("/jobs?wait=5"),
        ),
        Try::new(
            "a wait before the start",
            own.clone().to("/jobs?wait=-1"),
            &own.clone().to("/jobs?wait=0"),
        ),
        Try::new(
            "lines of a header in the id",
            own.clone().saying(&with(|job| job["id"] = json!("a\r\nSet-Cookie: b=1"))),
            &own,
        ),
        Try::new(
            "a status of its own",
            own.clone().saying(&with(|job| job["status"] = json!("finished"))),
            &own,
        ),
    ];
    assert!(tries.len() >= 20);
    let failures = failures(&site, &tries);
    assert!(failures.is_empty(), "{failures:#?}");
    // The controls alone have made jobs, and the job of ann is as it was.
    let made = tries.iter().filter(|tried| tried.control.method == "POST").count();
    assert_eq!(redis.all("JOB").len(), before + made);
    let kept = site.call("job.get", &json!({ "id": "waits" }));
    assert_eq!((&kept["caller_id"], &kept["script"]), (&json!("ann"), &json!("print(1)")));
}

#[test]
fn what_a_script_wrote_is_never_a_page() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let _actor = site.hero.actor("bash-default-1").start();
    let html = "<script>alert(1)</script>";
    let script = format!("echo '{html}' | tee $HERO_OUTPUT_DIR/a.html; echo '{html}' >&2");
    site.hero.run(&["submit", "--id", "a", "-t", "bash", "-e", &script]).code(0);
    site.hero.run(&["job", "wait", "a"]).code(0);
    let bearer = format!("Bearer {}", site.token(&["ann", "--scope", "read"]));
    for path in ["/jobs/a/output", "/jobs/a/log", "/jobs/a/files/a.html", "/jobs/a"] {
        let answer = site.tcp().get(path, &[("authorization", &bearer)]);
        assert!(answer.status == 200 && answer.text().contains("alert(1)"), "{path}");
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        assert!(!kind.contains("html") && !kind.contains("javascript"), "{path}: {kind}");
        if path != "/jobs/a" {
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        }
    }
    // A batch over the limit is refused as a whole.
    let calls: Vec<String> = (0..101).map(|_| request("whoami", &json!([]))).collect();
    let many = site.unix().post("/rpc", &[], &format!("[{}]", calls.join(",")));
    assert!(many.text().contains("100"), "{}", many.text());
}
