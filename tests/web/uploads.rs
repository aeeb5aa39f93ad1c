//! The form of a new job with files, over plain HTTP.

use std::fs;
use std::path::PathBuf;

use super::requests::{Answer, send, send_as, signed_in};
use super::visitors::{OPERATOR, READER};
use crate::support::{Hero, Redis, Served, files_below, keys};

const KIND: &str = "multipart/form-data; boundary=limit";

/// Returns a form of fields and files: the field, the name of the file and its content.
fn form(fields: &[(&str, &str)], files: &[(&str, &str, &str)]) -> String {
    let fields = fields.iter().map(|(name, value)| {
        format!("--limit\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    });
    let files = files.iter().map(|(field, name, content)| {
        format!(
            "--limit\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n{content}\r\n"
        )
    });
    fields.chain(files).chain(["--limit--\r\n".to_owned()]).collect()
}

fn post(site: &Served, cookie: &str, body: &str) -> Answer {
    send_as(site, ("POST", "/submit"), KIND, cookie, body)
}

#[test]
fn files_of_a_form_are_kept_in_the_folder_and_refused_beyond_their_bounds() {
    let redis = Redis::start();
    let folder = redis.folder().join("artifacts");
    fs::create_dir(&folder).expect("a folder");
    let hero = Hero::on(&redis)
        .set("artifacts.dir", &format!("\"{}\"", folder.display()))
        .set("artifacts.max_size", "\"1MiB\"");
    let site = Served::with(hero, &redis);
    let cookie = signed_in(&site, OPERATOR);
    let page = send(&site, "GET", "/submit", &cookie, "");
    let forgery = page.forgery();
    assert!(page.body.contains("Up to 64 files, 1MiB each"), "{}", page.body);
    let large = "0123456789abcdef".repeat(20_000);
    let fields = |id| {
        [("csrf", forgery.as_str()), ("id", id), ("script_type", "bash"), ("script", "true\r\n")]
    };
    let files = [
        ("inputs", "C:\\data\\large.bin", large.as_str()),
        ("inputs", "", ""),
        ("stdin", "in", "typed"),
    ];
    let done = post(&site, &cookie, &form(&fields("one"), &files));
    assert_eq!((done.status, done.header("location")), (303, Some("/jobs/one")), "{}", done.body);
    let listed = redis.field(&keys::job("one"), "input_files");
    assert_eq!(listed.as_deref(), Some("[\"large.bin\",\"-\"]"));
    assert_eq!(redis.field(&keys::job("one"), "script").as_deref(), Some("true\n"));
    let kept = redis.field(&keys::files("one"), "a:i:large.bin").unwrap_or_default();
    assert!(kept.ends_with(&format!(" {}", large.len())), "it is in the folder: {kept}");
    let sent = send(&site, "GET", "/jobs/one/files/large.bin", &cookie, "");
    assert!(sent.body == large, "{} bytes", sent.body.len());
    let stdin = send(&site, "GET", "/jobs/one/files/-", &cookie, "");
    assert_eq!((stdin.status, stdin.body.as_str()), (200, "typed"));
    let job = send(&site, "GET", "/jobs/one", &cookie, "");
    assert!(job.body.contains("standard input</a>"), "{}", job.body);

    let beyond = "x".repeat(1024 * 1024 + 1);
    for (file, why) in [
        (("inputs", "beyond", beyond.as_str()), "larger than the limit of 1MiB"),
        (("inputs", ".hidden", "1"), ".hidden"),
    ] {
        let refused = post(&site, &cookie, &form(&fields("two"), &[file]));
        assert_eq!(refused.status, 422, "{why}");
        assert!(
            refused.body.contains(why) && refused.body.contains("value=\"two\""),
            "{}",
            refused.body
        );
        assert!(refused.body.contains("Choose the files again"), "{}", refused.body);
    }
    assert_eq!(redis.field(&keys::job("two"), "status"), None);
}

#[test]
fn files_of_a_form_without_its_token_or_of_a_reader_are_not_kept() {
    let redis = Redis::start();
    let folder = redis.folder().join("artifacts");
    fs::create_dir(&folder).expect("a folder");
    let hero = Hero::on(&redis).set("artifacts.dir", &format!("\"{}\"", folder.display()));
    let site = Served::with(hero, &redis);
    let large = "0123456789abcdef".repeat(20_000);
    let fields = [("script_type", "bash"), ("script", "true")];
    let files = [("inputs", "large", large.as_str())];
    let cookie = signed_in(&site, OPERATOR);
    assert_eq!(post(&site, &cookie, &form(&fields, &files)).status, 403);
    let reader = signed_in(&site, READER);
    let forgery = send(&site, "GET", "/", &reader, "").forgery();
    let with_token = [&[("csrf", forgery.as_str())], &fields[..]].concat();
    assert_eq!(post(&site, &reader, &form(&with_token, &files)).status, 403);
    assert!(redis.all("JOB").is_empty());
    assert_eq!(files_below(&folder), [] as [PathBuf; 0], "nothing was written");
}
