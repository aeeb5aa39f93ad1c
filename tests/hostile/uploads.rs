//! Attacks on the form that takes files.

use super::forms::Session;
use super::{Asked, Try, failures};
use crate::support::{Hero, Redis, Served, files_below, keys};

const KIND: &str = "multipart/form-data; boundary=limit";
/// A file that goes to the disk, since Redis has no room for it.
const LARGE: usize = 300_000;

/// Returns a part of a form.
fn part(name: &str, value: &str) -> String {
    format!("--limit\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

/// Returns a part with a file.
fn file(field: &str, name: &str, content: &str) -> String {
    format!(
        "--limit\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\r\n{content}\r\n"
    )
}

fn form(session: &Session, of: &str, parts: &str) -> String {
    let fields = [("csrf", session.forgery.as_str()), ("script_type", of), ("script", "true")];
    fields.map(|(name, value)| part(name, value)).concat() + parts + "--limit--\r\n"
}

fn post(session: &Session, body: &str) -> Asked {
    Asked::new("POST", "/submit", body)
        .with("content-type", KIND)
        .with("accept", "text/html")
        .with("cookie", &session.cookie)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each try")]
fn hostile_uploads_are_refused_without_a_byte_on_the_disk_and_their_controls_are_served() {
    let redis = Redis::start();
    let folder = redis.folder().join("artifacts");
    std::fs::create_dir(&folder).expect("a folder");
    let hero = Hero::on(&redis)
        .set("artifacts.dir", &format!("{:?}", folder.display().to_string()))
        .set("artifacts.max_size", "\"1MiB\"");
    let site = Served::with(hero, &redis);
    let ann = Session::of(&site, &["ann", "--scope", "read,submit"]);
    let eve = Session::of(&site, &["eve", "--scope", "read"]);
    let bob = Session::of(&site, &["bob", "--scope", "read,submit", "--type", "bash"]);
    let good = "0123456789".repeat(LARGE / 10);
    let other = "9876543210".repeat(LARGE / 10);
    let own = post(&ann, &form(&ann, "bash", &file("inputs", "data", &good)));
    let with = |parts: &str| own.clone().saying(&form(&ann, "bash", parts));
    let bad = file("inputs", "data", &other);
    let named = |name: &str| with(&file("inputs", name, &other));
    let many: String = (0..65).map(|n| file("inputs", &format!("f{n}"), "x")).collect();
    let whole = form(&ann, "bash", &bad);
    let late = [
        part("script_type", "bash"),
        part("script", "true"),
        bad.clone(),
        part("csrf", &ann.forgery),
    ];
    let tries = [
        Try::new(
            "no token of the form",
            own.clone().saying(&whole.replace(&ann.forgery, "")),
            &own,
        ),
        Try::new(
            "another session's",
            own.clone().saying(&whole.replace(&ann.forgery, &eve.forgery)),
            &own,
        ),
        Try::new(
            "a token in the address",
            own.clone()
                .to(&format!("/submit?csrf={}", ann.forgery))
                .saying(&whole.replace(&ann.forgery, "")),
            &own,
        ),
        Try::new("no cookie", own.clone().with("cookie", "").saying(&whole), &own),
        Try::new("a reader", post(&eve, &form(&eve, "bash", &bad)), &own),
        Try::new(
            "the page of another site",
            own.clone().with("origin", "http://evil.example").saying(&whole),
            &own,
        ),
        Try::new(
            "a browser that says so",
            own.clone().with("sec-fetch-site", "cross-site").saying(&whole),
            &own,
        ),
        Try::new(
            "no limit between the parts",
            own.clone().with("content-type", "multipart/form-data").saying(&whole),
            &own,
        ),
        Try::new(
            "another limit than it says",
            own.clone().with("content-type", "multipart/form-data; boundary=x").saying(&whole),
            &own,
        ),
        Try::new(
            "an end in the middle of a file",
            own.clone().saying(&whole[..whole.len() - 100]),
            &own,
        ),
        Try::new("the folder above", named(".."), &own),
        Try::new("a hidden file", named(".profile"), &own),
        Try::new("a name with a control character", named("a\u{1}b"), &own),
        Try::new("the name of standard input", named("-"), &own),
        Try::new("a name of 300 letters", named(&"a".repeat(300)), &own),
        Try::new("more files than allowed", with(&many), &own),
        Try::new(
            "two files of one name",
            with(&[file("inputs", "data", "x"), bad.clone()].concat()),
            &own,
        ),
        Try::new(
            "two standard inputs",
            with(&[file("stdin", "a", "x"), file("stdin", "b", &other)].concat()),
            &with(&file("stdin", "a", "x")),
        ),
        Try::new("a file over the limit", with(&file("inputs", "data", &other.repeat(4))), &own),
        Try::new(
            "files after a refused one",
            with(&[file("inputs", ".x", "x"), bad.clone()].concat()),
            &own,
        ),
        Try::new("a text over the limit", with(&part("name", &"n".repeat(5 << 20))), &own),
        Try::new("a type without a sandbox", own.clone().saying(&form(&ann, "sal", "")), &own),
        Try::new(
            "a type outside of the bounds",
            post(&bob, &form(&bob, "python", "")),
            &post(&bob, &form(&bob, "bash", "")),
        ),
    ];
    assert!(tries.len() >= 20);
    let failures = failures(&site, &tries);
    assert!(failures.is_empty(), "{failures:#?}");
    // The token comes before all files: of a form that has it after them nothing is kept.
    let answer = own.clone().saying(&(late.concat() + "--limit--\r\n")).answer(&site);
    assert_eq!(
        files_below(&folder).len(),
        1,
        "the controls have left one content, and {} nothing",
        answer.status
    );
    // Of a path its last part is taken, as of a browser that tells paths.
    let path = with(&[part("id", "path"), file("inputs", "../../etc/cron.d/x", &good)].concat());
    assert_eq!(path.answer(&site).status, 303);
    let listed = redis.field(&keys::job("path"), "input_files");
    assert_eq!(listed.as_deref(), Some("[\"x\"]"));
}
