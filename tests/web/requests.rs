//! The page over plain HTTP: who gets in, what is refused, and the headers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::visitors::{BOUND, OPERATOR, READER};
use crate::support::{Hero, Redis, Served, wait_until};

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The cookie of a session.
    fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").expect("a cookie");
        cookie.split(';').next().expect("a value").to_owned()
    }

    /// The token against forgery of the first form.
    pub(crate) fn forgery(&self) -> String {
        let after = self.body.split("name=\"csrf\" value=\"").nth(1).expect("a form");
        after.split('"').next().expect("a value").to_owned()
    }
}

/// Sends a request with these headers and this body, the fields of a form.
pub(crate) fn send(site: &Served, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    send_as(site, (method, path), "application/x-www-form-urlencoded", headers, body)
}

/// Sends a request with a body of a kind.
pub(super) fn send_as(
    site: &Served,
    (method, path): (&str, &str),
    kind: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(site.address()).expect("connecting");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\nContent-Length: {length}\r\n\
         Content-Type: {kind}\r\nConnection: close\r\n{headers}\r\n{body}",
        site.address()
    )
    .expect("sending");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// The header by which a browser tells that a form is of this site.
pub(super) fn own_origin(site: &Served) -> String {
    format!("Origin: http://{}\r\n", site.address())
}

pub(crate) fn signed_in(site: &Served, token: &[&str]) -> String {
    let body = format!("token={}", site.token(token));
    let answer = send(site, "POST", "/login", &own_origin(site), &body);
    assert_eq!(answer.status, 303);
    format!("Cookie: {}\r\n", answer.cookie())
}

#[test]
fn visitor_without_a_token_is_sent_to_the_sign_in() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let answer = send(&site, "GET", "/queues?x=1", "", "");
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/login?next=%2Fqueues%3Fx%3D1"));
    assert_eq!(send(&site, "POST", "/login", &own_origin(&site), "token=wrong").status, 401);
    assert_eq!(send(&site, "GET", "/events?page=/", "", "").status, 303);
    assert_eq!(send(&site, "POST", "/queues", "", "pause=type:bash").status, 303);
    let answer = send(
        &site,
        "POST",
        "/login",
        &own_origin(&site),
        &format!("token={}&next=//evil.example", site.token(READER)),
    );
    assert_eq!(answer.header("location"), Some("/"));
}

/// Opens the changes of a page, and reads the first.
fn opened_events(site: &Served, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address()).expect("connecting");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    let address = site.address();
    write!(
        stream,
        "GET /events?page=/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"
    )
    .expect("sending");
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("data: {") {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).expect("the first change");
        assert!(read > 0, "{}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&part[..read]);
    }
    stream
}

#[test]
fn changes_of_a_page_end_with_the_token_or_the_session_of_their_reader() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let session = signed_in(&site, READER);
    let bearer = format!("Authorization: Bearer {}\r\n", site.token(BOUND));
    let left = signed_in(&site, OPERATOR);
    let mut streams = [&session, &bearer, &left].map(|headers| opened_events(&site, headers));
    for name in [READER[0], BOUND[0]] {
        site.hero.run(&["token", "revoke", name]).code(0);
    }
    let form = send(&site, "GET", "/jobs", &left, "").forgery();
    let headers = format!("{left}{}", own_origin(&site));
    assert_eq!(send(&site, "POST", "/logout", &headers, &format!("csrf={form}")).status, 303);
    for stream in &mut streams {
        stream.read_to_end(&mut Vec::new()).expect("it ends");
    }
}

#[test]
fn link_with_a_token_signs_in_from_no_other_site_and_over_no_session_of_another() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let token = site.token(OPERATOR);
    let ask = |path: &str, headers: &str| send(&site, "GET", path, headers, "");
    for path in ["/jobs?state=error&token=", "/login?next=/jobs%3Fstate%3Derror&token="] {
        let path = format!("{path}{token}");
        for headers in ["", "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
            let signed_in = ask(&path, headers);
            let to = signed_in.header("location");
            assert_eq!((signed_in.status, to), (303, Some("/jobs?state=error")), "{headers}");
            let cookie = format!("Cookie: {}\r\n", signed_in.cookie());
            assert_eq!(ask("/jobs", &cookie).status, 200);
            let again = ask(&path, &cookie);
            assert_eq!(again.header("location"), Some("/jobs?state=error"), "its own session");
        }
        let own = signed_in(&site, READER);
        for headers in ["Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n", &own] {
            let refused = ask(&path, headers);
            let form = "/login?refused=link&next=%2Fjobs%3Fstate%3Derror";
            assert_eq!((refused.status, refused.header("location")), (303, Some(form)));
            assert!(refused.header("set-cookie").is_none(), "{}", refused.head);
        }
        assert_eq!(ask("/", &own).status, 200, "the session is as it was");
    }
    let form = ask("/login?refused=link&next=%2Fjobs", "");
    assert!(form.body.contains("name=\"token\"") && !form.body.contains(&token), "{}", form.body);
    assert!(form.body.contains("A link of another site signs nobody in"), "{}", form.body);
}

#[test]
fn link_with_a_token_leads_to_no_other_site() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let token = site.token(READER);
    for path in ["//evil.example/x?", "//evil.example?a=b&", "/login?next=//evil.example&"] {
        let signed_in = send(&site, "GET", &format!("{path}token={token}"), "", "");
        assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/")), "{path}");
    }
    let unknown = send(&site, "GET", "/jobs?token=x", "", "");
    assert_eq!(unknown.header("location"), Some("/login?refused=1&next=%2Fjobs"));
}

#[test]
fn page_has_the_headers_that_bound_a_browser() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let answer = send(&site, "GET", "/", &cookie, "");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let policy = answer.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self'"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(!answer.body.contains("style=\"") && !answer.body.contains("<script>"));
    let style = answer.body.split("rel=\"stylesheet\" href=\"").nth(1).expect("a style sheet");
    let style = send(&site, "GET", style.split('"').next().expect("an address"), "", "");
    assert_eq!(style.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(send(&site, "GET", "/static/0/hero.css", "", "").status, 404);
}

#[test]
fn form_without_its_token_changes_nothing() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = send(&site, "GET", "/", &cookie, "");
    let forgery = page.forgery();
    let bare = send(&site, "POST", "/theme", &cookie, "theme=dark");
    assert_eq!(bare.status, 403, "{}", bare.body);
    let other = signed_in(&site, OPERATOR);
    let form = format!("theme=dark&to=/queues&csrf={forgery}");
    assert_eq!(send(&site, "POST", "/theme", &other, &form).status, 403);
    let foreign = format!("{cookie}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(send(&site, "POST", "/theme", &foreign, &form).status, 403);
    let right = send(&site, "POST", "/theme", &cookie, &form);
    assert_eq!((right.status, right.header("location")), (303, Some("/queues")));
    assert!(right.cookie().starts_with("hero_theme=dark"));
}

#[test]
fn sign_in_with_a_hidden_origin_needs_the_word_of_the_browser_and_the_token_of_the_form() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let form = send(&site, "GET", "/login", "", "");
    let (own, forgery) = (format!("Cookie: {}\r\n", form.cookie()), form.forgery());
    let (hidden, same) = ("Origin: null\r\n", "Sec-Fetch-Site: same-origin\r\n");
    let token = site.token(READER);
    let sent = |headers: &[&str], forgery: &str| {
        let body = format!("token={token}&csrf={forgery}");
        send(&site, "POST", "/login", &headers.concat(), &body)
    };
    assert_eq!(sent(&[hidden, same, &own], &forgery).status, 303);
    let old = sent(&[hidden, same], &forgery);
    assert_eq!(old.status, 401);
    assert!(old.body.contains("This form is too old"), "{}", old.body);
    assert_eq!(sent(&[hidden, same, &own], "").status, 401);
    for headers in [&[hidden, own.as_str()][..], &[hidden, "Sec-Fetch-Site: cross-site\r\n", &own]]
    {
        let refused = sent(headers, &forgery);
        assert_eq!(refused.status, 403);
        assert!(refused.body.contains("does not tell which page sent this"), "{}", refused.body);
        assert!(!refused.body.contains("api.hosts"), "it cannot help: {}", refused.body);
        assert!(refused.body.contains("<a href=\"/\">"), "no way out: {}", refused.body);
        assert!(refused.header("content-security-policy").is_some());
    }
    // Nothing tells where it is from, as over plain HTTP in an old browser.
    assert_eq!(sent(&[&own], &forgery).status, 303);
    assert_eq!(sent(&[], &forgery).status, 401);
    assert_eq!(sent(&[&own], "").status, 401);
    let foreign = sent(&["Origin: http://evil.example\r\n", &own], &forgery);
    assert_eq!(foreign.status, 403);
    assert!(foreign.body.contains("<h1>Not done</h1>"), "{}", foreign.body);
}

#[test]
fn reader_may_not_change_and_learns_which_scope_is_missing() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let forgery = send(&site, "GET", "/", &cookie, "").forgery();
    let form = format!("do=purge&csrf={forgery}");
    let answer = send(&site, "POST", "/queues/type:bash", &cookie, &form);
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("needs the scope admin"), "{}", answer.body);
}

#[test]
fn cookies_that_came_over_tls_never_travel_without_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("api.trusted_proxies", "[\"127.0.0.1/32\"]");
    let site = Served::with(hero, &redis);
    let sign_in = |headers: &str| {
        let answer = send(
            &site,
            "POST",
            "/login",
            &(own_origin(&site) + headers),
            &format!("token={}", site.token(READER)),
        );
        answer.header("set-cookie").expect("a cookie").to_owned()
    };
    assert!(sign_in("X-Forwarded-Proto: https\r\n").ends_with("; Secure"));
    assert!(!sign_in("").contains("Secure"));
}

#[test]
fn page_follows_a_changed_configuration() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let offers = |name: &str| {
        let form = send(&site, "GET", "/submit", &cookie, "");
        form.body.contains(&format!("<option value=\"{name}\""))
    };
    assert!(offers("bash") && !offers("later"));
    let config = site.supervisor.config();
    let mut text = std::fs::read_to_string(config).expect("the configuration");
    text += "[type.later]\nengine = \"command\"\ncommand = [\"/bin/sh\", \"{script}\"]\n";
    std::fs::write(config, text).expect("writing the configuration");
    site.supervisor.signal(Signal::SIGHUP);
    wait_until("the page offers the new type", || offers("later"));
}

#[test]
fn visitor_who_is_bound_to_a_type_sees_its_queues_and_jobs_alone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for (of, id) in [("bash", "own"), ("python", "other")] {
        hero.run(&["submit", "-t", of, "--id", id, "-e", "1"]).code(0);
    }
    let site = Served::on(&redis);
    let cookie = signed_in(&site, BOUND);
    for page in ["/", "/queues", "/jobs"] {
        let seen = send(&site, "GET", page, &cookie, "").body;
        let seen = seen.split("<main").nth(1).expect("a page");
        assert!(seen.contains("bash"), "{page}: {seen}");
        assert!(!seen.contains("type:python") && !seen.contains("other"), "{page}: {seen}");
    }
    let overview = send(&site, "GET", "/", &cookie, "").body;
    assert!(overview.contains("<b id=\"n-queued\">1</b>"), "{overview}");
    assert!(overview.contains("<b id=\"n-jobs\">–</b>"), "{overview}");
    assert_eq!(send(&site, "GET", "/queues/type:python", &cookie, "").status, 404);
    let search = send(&site, "GET", "/jobs?q=nothing", &cookie, "").body;
    assert!(search.contains("0 found among 1 job, "), "{search}");
    let file = send(&site, "GET", "/jobs.json?q=nothing", &cookie, "").body;
    assert!(file.contains("\"searched\":1"), "{file}");
    let all = signed_in(&site, READER);
    assert!(send(&site, "GET", "/queues", &all, "").body.contains("type:python"));
}

#[test]
fn session_ends_when_the_visitor_signs_out() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    let forgery = send(&site, "GET", "/", &cookie, "").forgery();
    assert_eq!(send(&site, "POST", "/logout", &cookie, &format!("csrf={forgery}")).status, 303);
    assert_eq!(send(&site, "GET", "/", &cookie, "").status, 303);
}

#[test]
fn page_says_so_while_redis_does_not_answer() {
    let mut redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    redis.kill();
    let answer = send(&site, "GET", "/", &cookie, "");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("It has not answered since"), "{}", answer.body);
    redis.start_again();
    wait_until("the page is back", || send(&site, "GET", "/", &cookie, "").status == 200);
    assert_eq!(send(&site, "GET", "/nowhere", &cookie, "").status, 404);
}

#[test]
fn unknown_parameter_of_a_page_is_refused_with_the_known_ones() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, READER);
    for path in [
        "/jobs?states=failed",
        "/queues?x=1",
        "/actors?x=1",
        "/machines?x=1",
        "/stats?x=1",
        "/graphs?x=1",
    ] {
        let refused = send(&site, "GET", path, &cookie, "");
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.body.contains("Unknown parameter `"), "{path}: {}", refused.body);
    }
    assert_eq!(send(&site, "GET", "/jobs?state=failed&limit=10", &cookie, "").status, 200);
    let many = send(&site, "GET", "/jobs?state=failed&limit=500", &cookie, "");
    assert!(many.status == 200 && many.body.contains("limit=25\""), "{}", many.body);
    assert_eq!(send(&site, "GET", "/jobs?limit=501", &cookie, "").status, 400);
    let events = send(&site, "GET", "/events", &cookie, "");
    assert_eq!(events.status, 400);
    assert!(
        events.body.contains("The address is wrong: it lacks the parameter `page`."),
        "{}",
        events.body
    );
}
