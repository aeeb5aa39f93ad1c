//! Files of jobs over the API.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::error;
use crate::support::{Hero, Redis, Served, files_below, keys, request};

#[test]
fn job_is_submitted_with_files_and_those_that_it_leaves_are_read() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _bash = api.hero.actor("bash-default-1").start();
    let script = "cat \"$HERO_INPUT_DIR/a.bin\" - > \"$HERO_OUTPUT_DIR/both\"";
    let job = json!({ "script_type": "bash", "script": script });
    let given = |name: &str, content: &str| json!({ "job": job, "inputs": { name: content }, "stdin": STANDARD.encode("end") });
    let submitted = api.call("job.submit", &given("a.bin", &STANDARD.encode(b"\xff\0")));
    let id = json!({ "id": submitted["id"] });
    let ended = api.call("job.wait", &id);
    assert_eq!(
        (&ended["input_files"], &ended["output_files"]),
        (&json!(["a.bin", "-"]), &json!(["both"]))
    );
    let files = api.call("job.files", &id);
    let both = json!({ "name": "both", "size": 5, "kind": "output" });
    let own = json!({ "name": "a.bin", "size": 2, "kind": "input" });
    let stdin = json!({ "name": "-", "size": 3, "kind": "stdin" });
    assert_eq!(files["files"], json!([both, own, stdin]));
    let file = |name: &str| json!({ "id": submitted["id"], "name": name });
    let read = api.call("job.file", &file("both"));
    assert_eq!(read["content"], STANDARD.encode(b"\xff\0end"));
    for (method, params) in [
        ("job.file", file("other")),
        ("job.submit", given("../a", "")),
        ("job.submit", given("a", "no base64!")),
        ("job.run", json!({ "job": { "script_type": "osis", "script": "1" }, "stdin": "" })),
    ] {
        let answer = api.unix().post("/rpc", &[], &request(method, &params));
        assert!([-32_002, -32_602].contains(&error(&answer)), "{method}");
    }
}

/// A file of more than 1 MiB, whose blocks differ.
fn large() -> Vec<u8> {
    (0..700_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// A server with a folder for files, and a job that was given a large one.
fn with_large_file(redis: &Redis) -> Served {
    let folder = redis.folder().join("artifacts");
    fs::create_dir(&folder).expect("a folder");
    let given = redis.folder().join("given");
    fs::write(&given, large()).expect("written");
    let hero = Hero::on(redis).set("artifacts.dir", &format!("\"{}\"", folder.display()));
    let input = format!("a b={}", given.display());
    hero.run(&["submit", "-t", "bash", "--id", "one", "--input", &input, "-e", "true"]).code(0);
    Served::with(hero, redis)
}

#[test]
fn large_file_is_named_by_its_path_in_an_answer_and_sent_there_whole_or_by_ranges() {
    let redis = Redis::start();
    let api = with_large_file(&redis);
    let found = api.call("job.file", &json!({ "id": "one", "name": "a b" }));
    assert_eq!((&found["size"], &found["content"]), (&json!(2_800_000), &json!(null)), "{found}");
    let path = found["path"].as_str().expect("a path");
    let get = |headers: &[(&str, &str)]| api.unix().get(path, headers);
    let whole = get(&[("accept-encoding", "gzip")]);
    assert!(whole.status == 200 && whole.body == large(), "{} bytes", whole.body.len());
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    for (asked, range) in [
        ("bytes=1000000-1999999", 1_000_000..2_000_000),
        ("bytes=2799990-", 2_799_990..2_800_000),
        ("bytes=-300000", 2_500_000..2_800_000),
    ] {
        let part = get(&[("range", asked)]);
        let told = format!("bytes {}-{}/2800000", range.start, range.end - 1);
        assert_eq!((part.status, part.header("content-range")), (206, Some(told.as_str())));
        assert!(part.body == large()[range], "{asked}");
    }
    let beyond = get(&[("range", "bytes=2800000-")]);
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */2800000")));
    let mut head = api.unix();
    head.send(b"HEAD /jobs/one/files/a%20b HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").expect("sent");
    head.send(b"HEAD /jobs/one HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let text = String::from_utf8(head.rest()).expect("text");
    let answers: Vec<&str> = text.split("HTTP/1.1 ").skip(1).collect();
    let [file, job] = answers.as_slice() else { panic!("two heads without a body: {text}") };
    assert!(file.contains("content-length: 2800000") && file.starts_with("200"), "{file}");
    assert!(job.contains("content-type: application/json") && job.starts_with("200"), "{job}");
}

#[test]
fn damaged_file_is_not_sent_to_its_end() {
    let redis = Redis::start();
    let api = with_large_file(&redis);
    let content = files_below(&redis.folder().join("artifacts"));
    let [content] = content.as_slice() else { panic!("one content: {content:?}") };
    let mut bytes = large();
    bytes[1_000_000] ^= 1;
    fs::write(content, &bytes).expect("written");
    let mut raw = api.unix();
    raw.send(b"GET /jobs/one/files/a%20b HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").expect("sent");
    let sent = raw.rest();
    assert!(sent.len() < bytes.len(), "the whole was sent: {} bytes", sent.len());
    fs::remove_file(content).expect("removed");
    let gone = api.unix().get("/jobs/one/files/a%20b", &[]);
    assert_eq!(gone.status, 404, "{}", gone.text());
    assert!(gone.text().contains("artifacts.dir"), "{}", gone.text());
}

#[test]
fn batch_ends_its_calls_when_its_answers_are_large() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.output_size_max", "\"4MiB\""), &redis);
    let _bash = api.hero.actor("bash-default-1").start();
    let script = "head -c 4000000 /dev/zero | tr '\\0' x";
    api.hero.run(&["submit", "-t", "bash", "--id", "a", "-e", script]).code(0);
    api.hero.run(&["job", "wait", "a"]).code(0);
    let output = request("job.output", &json!({ "id": "a" }));
    let submit = request(
        "job.submit",
        &json!({ "job": { "id": "b", "script_type": "bash", "script": "1" } }),
    );
    let calls =
        [&output, &output, &output, &output, &output, &submit].map(String::as_str).join(",");
    let answers = api.unix().post("/rpc", &[], &format!("[{calls}]")).json();
    let answers = answers.as_array().expect("answers");
    let sizes =
        answers.iter().map(|answer| answer["result"]["output"].as_str().map_or(0, str::len));
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [4_000_000, 4_000_000, 4_000_000, 4_000_000, 4_000_000, 0]
    );
    let refused = answers[5]["error"]["message"].as_str().unwrap_or_default();
    assert!(refused.starts_with("not called: "), "{refused}");
    assert_eq!(answers[5]["error"]["data"]["retryable"], json!(true));
    assert_eq!(redis.field(&keys::job("b"), "status"), None, "it was not submitted");
}

#[test]
fn output_is_sent_as_it_is_whole_or_by_ranges_and_its_head_alone() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.output_size_max", "\"4MiB\""), &redis);
    let _bash = api.hero.actor("bash-default-1").start();
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; printf 'end'";
    api.hero.run(&["submit", "-t", "bash", "--id", "a", "-e", script]).code(0);
    api.hero.run(&["job", "wait", "a"]).code(0);
    let get = |headers: &[(&str, &str)]| api.unix().get("/jobs/%61/output", headers);
    let whole = get(&[]);
    assert_eq!((whole.status, whole.body.len()), (200, 3_000_003));
    assert_eq!(whole.header("content-type"), Some("text/plain; charset=utf-8"));
    let part = get(&[("range", "bytes=-3"), ("accept-encoding", "gzip")]);
    assert_eq!((part.status, part.text().as_str()), (206, "end"));
    assert_eq!(part.header("content-range"), Some("bytes 3000000-3000002/3000003"));
    let mut head = api.unix();
    head.send(b"HEAD /jobs/a/output HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let stranger = api.tcp().get("/jobs/a/output", &[]);
    assert_eq!(
        (stranger.status, stranger.header("www-authenticate")),
        (401, Some("Bearer realm=\"hero\""))
    );
    assert_eq!(error(&stranger), -32_001);
    let head = String::from_utf8(head.rest()).expect("text");
    assert!(head.contains("content-length: 3000003") && head.ends_with("\r\n\r\n"), "{head}");
}

/// The bytes of a file that takes a while to send.
const SLOW_BYTES: u64 = 60_000_000;

#[test]
fn health_is_reported_while_three_callers_fetch_large_files_and_memory_stays_bounded() {
    let redis = Redis::start();
    let (folder, given) = (redis.folder().join("artifacts"), redis.folder().join("given"));
    fs::create_dir(&folder).expect("a folder");
    fs::File::create(&given).and_then(|file| file.set_len(SLOW_BYTES)).expect("a file");
    let hero = Hero::on(&redis).set("artifacts.dir", &format!("\"{}\"", folder.display()));
    let input = format!("large={}", given.display());
    hero.run(&["submit", "-t", "bash", "--id", "one", "--input", &input, "-e", "true"]).code(0);
    let api = Served::with(hero, &redis);
    let memory_kib = |name: &str| -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", api.supervisor.pid()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
        line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
    };
    assert_eq!(api.unix().get("/healthz", &[]).status, 200);
    let before = memory_kib("VmHWM");
    let unfinished = AtomicUsize::new(3);
    let answered = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let gzip = [("accept-encoding", "gzip")];
                let sent = api.unix().get("/jobs/one/files/large", &gzip);
                assert_eq!((sent.status, sent.body.len() as u64), (200, SLOW_BYTES));
                unfinished.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut answered = 0;
        while unfinished.load(Ordering::SeqCst) > 0 {
            assert_eq!(api.unix().get("/healthz", &[]).status, 200);
            answered += usize::from(unfinished.load(Ordering::SeqCst) == 3);
        }
        answered
    });
    assert!(answered >= 3, "answers before the first file was sent: {answered}");
    let grown = memory_kib("VmHWM").saturating_sub(before);
    assert!(grown < 32 << 10, "grew by {grown} KiB");
}
