//! Attacks on the forms of the page.

use super::{Asked, Try, failures};
use crate::support::http::Answer;
use crate::support::{Hero, Redis, Served};

/// A session of the page: its cookie, and the token of its forms.
pub(super) struct Session {
    pub(super) cookie: String,
    pub(super) forgery: String,
}

impl Session {
    pub(super) fn of(site: &Served, token: &[&str]) -> Self {
        let form =
            [("content-type", "application/x-www-form-urlencoded"), ("origin", "http://127.0.0.1")];
        let body = format!("token={}", site.token(token));
        let signed_in = site.tcp().ask("POST", "/login", &form, body.as_bytes());
        assert_eq!(signed_in.status, 303, "{}", signed_in.text());
        let cookie = signed_in.header("set-cookie").expect("a cookie");
        let cookie = cookie.split(';').next().expect("a value").to_owned();
        let page = site.tcp().get("/submit", &[("cookie", &cookie), ("accept", "text/html")]);
        let page = if page.status == 200 {
            page
        } else {
            site.tcp().get("/", &[("cookie", &cookie), ("accept", "text/html")])
        };
        Self { cookie, forgery: forgery(&page) }
    }

    fn post(&self, path: &str, fields: &str) -> Asked {
        Asked::new("POST", path, &format!("{fields}&csrf={}", self.forgery))
            .with("content-type", "application/x-www-form-urlencoded")
            .with("accept", "text/html")
            .with("cookie", &self.cookie)
    }
}

fn forgery(page: &Answer) -> String {
    let text = page.text();
    let after = text.split("name=\"csrf\" value=\"").nth(1).expect("a form");
    after.split('"').next().expect("a value").to_owned()
}

#[test]
fn hostile_forms_are_refused_and_their_controls_are_served() {
    let redis = Redis::start();
    let cron = redis.folder().join("cron.d");
    std::fs::create_dir_all(&cron).expect("a folder");
    let nightly =
        "[cron.nightly]\nschedule = \"0 0 3 * * *\"\ntype = \"bash\"\nscript = \"true\"\n";
    std::fs::write(cron.join("nightly.toml"), nightly).expect("writing a file");
    let hero = Hero::on(&redis).set("supervisor.cron_dir", &format!("{cron:?}"));
    let site = Served::with(hero, &redis);
    let submit = |id: &str, of: &str| {
        site.hero.run(&["submit", "--id", id, "-t", of, "--caller", "ann", "-e", "true"]).code(0);
    };
    submit("waits", "python");
    let admin = Session::of(&site, &["root", "--scope", "read,submit,operate,admin"]);
    let reader = Session::of(&site, &["eve", "--scope", "read"]);
    let ann = Session::of(&site, &["ann", "--scope", "read,submit"]);
    let bound = Session::of(&site, &["bob", "--scope", "read,submit", "--type", "bash"]);
    let gone = Session::of(&site, &["old", "--scope", "admin,read"]);
    assert_eq!(gone.post("/logout", "").answer(&site).status, 303);

    let theme = admin.post("/theme", "theme=dark");
    let pause = admin.post("/queues/type:bash", "do=pause");
    let new = |session: &Session, of: &str| {
        session.post("/submit", &format!("script_type={of}&script=true&do=submit"))
    };
    let stop = |session: &Session| session.post("/jobs/waits", "do=stop");
    let run_now = |session: &Session| session.post("/cron/nightly", "do=run");
    let tries = [
        Try::new("no token of the form", theme.clone().saying("theme=dark"), &theme),
        Try::new("an empty one", theme.clone().saying("theme=dark&csrf="), &theme),
        Try::new(
            "another session's",
            theme.clone().saying(&format!("theme=dark&csrf={}", reader.forgery)),
            &theme,
        ),
        Try::new(
            "in the address",
            theme.clone().saying("theme=dark").to(&format!("/theme?csrf={}", admin.forgery)),
            &theme,
        ),
        Try::new("no cookie", theme.clone().with("cookie", ""), &theme),
        Try::new("a cookie of no session", theme.clone().with("cookie", "hero_session=00"), &theme),
        Try::new("a session that has ended", gone.post("/theme", "theme=dark"), &theme),
        Try::new(
            "the page of another site",
            theme.clone().with("origin", "http://evil.example"),
            &theme,
        ),
        Try::new(
            "a browser that says so",
            theme.clone().with("sec-fetch-site", "cross-site"),
            &theme,
        ),
        Try::new(
            "a neighbour of this site",
            theme.clone().with("sec-fetch-site", "same-site"),
            &theme,
        ),
        Try::new("a hidden origin", theme.clone().with("origin", "null"), &theme),
        Try::new("another name of this host", theme.clone().with("host", "evil.example"), &theme),
        Try::new(
            "JSON instead of a form",
            theme.clone().with("content-type", "application/json").saying("{\"theme\":\"dark\"}"),
            &theme,
        ),
        Try::new("a reader pauses a queue", reader.post("/queues/type:bash", "do=pause"), &pause),
        Try::new("a submitter pauses a queue", ann.post("/queues/type:bash", "do=pause"), &pause),
        Try::new("a reader submits", new(&reader, "bash"), &new(&ann, "bash")),
        Try::new("a type without a sandbox", new(&ann, "sal"), &new(&ann, "bash")),
        Try::new("a type outside of the bounds", new(&bound, "python"), &new(&bound, "bash")),
        Try::new("a reader runs a periodic job", run_now(&reader), &run_now(&admin)),
        Try::new("a submitter runs a periodic job", run_now(&ann), &run_now(&admin)),
        Try::new("a reader stops a job", stop(&reader), &theme),
        Try::new("a job out of the bounds", stop(&bound), &stop(&ann)),
        Try::new(
            "a form over the limit",
            theme.clone().saying(&format!(
                "theme=dark&to={}&csrf={}",
                "a".repeat(3 << 20),
                admin.forgery
            )),
            &theme,
        ),
    ];
    assert!(tries.len() >= 20);
    let failures = failures(&site, &tries);
    assert!(failures.is_empty(), "{failures:#?}");
    // The way back after a form stays on this site.
    for to in [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "/%0d%0aSet-Cookie:x",
        "javascript:1",
    ] {
        let answer = admin.post("/theme", &format!("theme=dark&to={to}")).answer(&site);
        let location = answer.header("location").unwrap_or_default().to_owned();
        assert!(location == "/" || location.starts_with("/%"), "{to}: {location}");
        let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie").count();
        assert_eq!(cookies, 1, "{to}");
    }
}
