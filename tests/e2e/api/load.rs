//! Bounds on the concurrent work of one caller, and on the bodies of unknown callers.

use serde_json::json;

use crate::support::{Hero, Redis, Served, request};

/// Counts the processes with these arguments.
fn processes(arguments: &[&str]) -> usize {
    let wanted: Vec<u8> =
        arguments.iter().flat_map(|part| [part.as_bytes(), b"\0"].concat()).collect();
    let all = std::fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
    all.filter(|of| std::fs::read(of.path().join("cmdline")).is_ok_and(|own| own == wanted)).count()
}

#[test]
fn scripts_of_one_caller_are_checked_a_few_at_a_time() {
    const CHECK: [&str; 2] = ["sleep", "0.3017"];
    let redis = Redis::start();
    let command = format!("[\"/bin/sh\", \"-c\", \"exec {}\", \"{{script}}\"]", CHECK.join(" "));
    let api = Served::with(Hero::on(&redis).set("type.bash.check", &command), &redis);
    let script = json!({ "script": "1", "script_type": "bash" });
    let most = std::thread::scope(|scope| {
        let check = || api.call("script.check", &script);
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(check)).collect();
        let mut most = 0;
        while !calls.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            most = most.max(processes(&CHECK));
        }
        most
    });
    assert!((1..=4).contains(&most), "{most} at a time");
}

#[test]
fn large_body_of_a_caller_who_is_not_known_is_refused_before_it_has_come() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    for (path, kind, status) in
        [("/rpc", json, 401), ("/mcp", json, 401), ("/jobs", json, 401), ("/login", form, 413)]
    {
        let mut stranger = api.tcp();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: 1000000\r\n\r\n"
        );
        stranger.send(head.as_bytes()).expect("sent");
        // It may be closed by then.
        let _ = stranger.send(&[b'a'].repeat(100_000));
        assert_eq!(stranger.answer().map(|answer| answer.status), Some(status), "{path}");
    }
    let large = format!("{}{}", request("system.info", &json!({})), " ".repeat(1_000_000));
    assert_eq!(api.tcp().post("/rpc", &[], &large).status, 401);
    assert_eq!(api.unix().post("/rpc", &[], &large).status, 200);
}

#[test]
fn one_caller_opens_at_most_half_of_the_live_pages() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let open = |token: &str, page: usize| {
        let mut link = api.tcp();
        let bearer = format!("Bearer {token}");
        let answer = link.get(&format!("/events?page=/{page}"), &[("authorization", &bearer)]);
        (link, answer.status)
    };
    let ann = api.token(&["ann", "--scope", "read"]);
    let pages: Vec<_> = (0..250).map(|page| open(&ann, page)).collect();
    assert!(pages.iter().all(|(_, status)| *status == 200));
    assert_eq!(open(&ann, 250).1, 503);
    assert_eq!(open(&ann, 0).1, 200, "it is open already");
    let bob = api.token(&["bob", "--scope", "read"]);
    assert_eq!(open(&bob, 250).1, 200);
}
