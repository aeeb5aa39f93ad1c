//! Published scripts on the page: the form of their parameters, versions and differences, without JavaScript.

use super::jobs::is_safe;
use super::requests::{send, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served, keys};

const EVIL: &str = "// /// hero\n// description = \"<script>alert(1)</script>\"\n// [params.host]\n// required = true\n\
    // description = \"<b onclick=x>\"\n// pattern = \"^[a-z]+$\"\n// [params.count]\n// type = \"integer\"\n// default = 2\n\
    // [params.stage]\n// enum = [\"test\", \"live\"]\n// ///\n\"<script>\" + params.host";

#[test]
fn script_is_run_by_the_form_of_its_parameters_and_rolled_back() {
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis), &redis);
    let publish = |text: &str| {
        site.hero.run(&["script", "publish", "deploy", "-t", "osis", "-e", text]).code(0)
    };
    let cookie = signed_in(&site, OPERATOR);
    let none = send(&site, "GET", "/scripts", &cookie, "");
    is_safe(&none, "/scripts");
    assert!(none.body.contains("No published scripts"), "{}", none.body);
    publish(EVIL);
    publish(&EVIL.replace("<script>\" +", "<script>x\" +"));
    for path in [
        "/scripts",
        "/scripts/deploy",
        "/scripts/deploy?version=1",
        "/scripts/deploy?version=2&from=1",
    ] {
        is_safe(&send(&site, "GET", path, &cookie, ""), path);
    }
    let page = send(&site, "GET", "/scripts/deploy", &cookie, "");
    for part in [
        "name=\"param-host\"",
        "placeholder=\"2\"",
        "<option value=\"live\">",
        "&lt;b onclick=x&gt;",
    ] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    let compared = send(&site, "GET", "/scripts/deploy?version=2&from=1", &cookie, "").body;
    assert!(compared.contains("-&quot;&lt;script&gt;&quot; + params.host"), "{compared}");
    let forgery = page.forgery();
    let post = |form: &str| {
        send(&site, "POST", "/scripts/deploy", &cookie, &format!("{form}&csrf={forgery}"))
    };
    // A refused form comes back as it was filled, and no job is stored.
    let refused = post("do=run&version=1&param-host=BAD%3Cb%3E&param-count=3&param-stage=live");
    assert_eq!(refused.status, 422, "{}", refused.body);
    for part in ["does not match", "value=\"BAD&lt;b&gt;\"", "<option value=\"live\" selected>"] {
        assert!(refused.body.contains(part), "{part}: {}", refused.body);
    }
    let refused = post("do=run&version=1&param-host=web&param-count=three");
    assert!(refused.body.contains("is text: expected integer"), "{}", refused.body);
    let jobs: Vec<String> = redis.keys(keys::job("x").trim_end_matches('x'));
    assert_eq!(jobs, Vec::<String>::new());
    let done = post("do=run&version=1&param-host=web&param-count=&param-stage=");
    assert_eq!(done.status, 303, "{}", done.body);
    let id =
        done.header("location").and_then(|at| at.strip_prefix("/jobs/")).expect("a job").to_owned();
    assert_eq!(redis.field(&keys::job(&id), "uses").as_deref(), Some("deploy@1"));
    assert_eq!(
        redis.field(&keys::job(&id), "params").as_deref(),
        Some("{\"host\":\"web\",\"count\":2}")
    );
    let back = post("do=rollback&version=1");
    assert_eq!((back.status, back.header("location")), (303, Some("/scripts/deploy")));
    let shown = send(&site, "GET", "/scripts/deploy", &cookie, "").body;
    assert!(shown.contains("rolled back to 1"), "{shown}");
    assert_eq!(send(&site, "GET", "/scripts/none", &cookie, "").status, 404);
    assert_eq!(send(&site, "GET", "/scripts/deploy?version=9", &cookie, "").status, 404);
    assert_eq!(post("do=nothing").status, 400);
    let forged = send(&site, "POST", "/scripts/deploy", &cookie, "do=rollback&version=1&csrf=x");
    assert_eq!(forged.status, 403);
    // Who only reads has neither form.
    let reader = signed_in(&site, READER);
    let read = send(&site, "GET", "/scripts/deploy", &reader, "");
    is_safe(&read, "/scripts/deploy");
    assert!(!read.body.contains("param-host") && !read.body.contains("rollback"), "{}", read.body);
}
