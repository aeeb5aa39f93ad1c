//! Calls and subscriptions over a WebSocket.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::error;
use crate::support::websocket::{BINARY, Frame, PING, Socket, frame};
use crate::support::{Hero, Redis, Served, needs, pypi, request, until_exists, wait_until};

/// Submits a job over the Unix socket, and returns its id.
fn submit(api: &Served, script: &str) -> String {
    let job = json!({ "script_type": "osis", "script": script, "timeout": 60 });
    let made = api.call("job.submit", &json!({ "job": job }));
    made["id"].as_str().expect("an id").to_owned()
}

/// The texts of the lines in notifications.
fn lines(notices: &[Value]) -> Vec<&str> {
    let lines = notices.iter().filter_map(|notice| notice["lines"].as_array()).flatten();
    lines.filter_map(|line| line["line"].as_str()).collect()
}

/// The states in notifications.
fn states(notices: &[Value]) -> Vec<&str> {
    notices.iter().filter_map(|notice| notice["status"].as_str()).collect()
}

#[test]
fn calls_batches_and_notifications_share_a_connection() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let mut socket = Socket::open(api.unix(), &[]);
    assert_eq!(socket.call("whoami", &json!([]))["name"], "root");
    let batch = json!([
        { "jsonrpc": "2.0", "id": "a", "method": "system.info" },
        { "jsonrpc": "2.0", "method": "system.info" },
        { "jsonrpc": "2.0", "id": "b", "method": "stats.follow" },
        { "jsonrpc": "2.0", "id": "c", "method": "no.such" },
    ]);
    socket.text(&batch.to_string());
    let Frame::Text(answers) = socket.next() else { panic!("no answer") };
    assert_eq!(answers.as_array().map(Vec::len), Some(3), "{answers}");
    let subscription = &answers[1]["result"]["subscription"];
    assert_eq!((&answers[0]["id"], &answers[2]["error"]["code"]), (&json!("a"), &json!(-32601)));
    let first = socket.notice();
    assert_eq!(&first["subscription"], subscription, "{first}");
    assert!(first["stats"]["types"].is_array(), "{first}");
    assert_eq!(socket.call("unsubscribe", &json!([subscription])), true);
    assert_eq!(socket.call("unsubscribe", &json!([subscription])), false);
    socket.text("{");
    let Frame::Text(wrong) = socket.next() else { panic!("no answer") };
    assert_eq!(wrong["error"]["code"], -32700);
    // What only a WebSocket has is said to others.
    let refused = api.unix().post("/rpc", &[], &request("stats.follow", &json!({})));
    assert_eq!(error(&refused), -32600, "{}", refused.text());
    let plain = api.unix().get("/rpc", &[]);
    assert_eq!((plain.status, error(&plain)), (426, -32600));
    socket.frame(PING, b"sign").expect("taken");
    assert_eq!(socket.next(), Frame::Pong(b"sign".to_vec()));
}

#[test]
fn job_is_followed_to_its_end_and_continued_after_a_number() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let id = submit(&api, r#"print("one"); progress(0.5, "half"); print("two"); 1"#);
    let mut socket = Socket::open(api.unix(), &[]);
    let subscription = socket.follow("job.follow", &json!({ "id": id }));
    let waiting = socket.notice();
    assert_eq!((&waiting["status"], &waiting["seq"]), (&json!("dispatched"), &json!("0-0")));
    let _actor = api.hero.actor("osis-default-1").start();
    let all = socket.rest_of_job();
    let mut told = lines(&all);
    told.sort_unstable();
    assert_eq!(told, ["half", "one", "two"], "{all:?}");
    assert_eq!(states(&all).last(), Some(&"finished"), "{all:?}");
    assert!(all.iter().all(|notice| notice["subscription"] == subscription.as_str()));
    let progress = all.iter().filter_map(|notice| notice["lines"].as_array()).flatten();
    assert!(progress.into_iter().any(|line| line["progress"] == 0.5), "{all:?}");
    assert_eq!(socket.call("unsubscribe", &json!([subscription])), false, "ended with the job");
    // From the start again, and after the first line.
    let log = api.call("job.log", &json!({ "id": id }));
    let first = &log["lines"][0]["id"];
    for (since, expected) in [(json!({}), 3), (json!({ "since": first }), 2)] {
        let mut params = since;
        params["id"] = json!(id);
        socket.follow("job.follow", &params);
        let all = socket.rest_of_job();
        assert_eq!((lines(&all).len(), states(&all)), (expected, vec!["finished"]), "{all:?}");
        assert_eq!(all.last().expect("one")["seq"], log["lines"][2]["id"]);
    }
    let none = socket.answer("job.follow", &json!({ "id": "no-such-job" }));
    assert_eq!(none["error"]["code"], -32002);
    let wrong = socket.answer("job.follow", &json!({ "id": id, "since": "7" }));
    assert_eq!(wrong["error"]["code"], -32602);
    assert_eq!(wrong["error"]["data"]["field"], "since");
}

#[test]
fn text_without_a_line_end_is_followed_until_it_is_a_line() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _actor = api.hero.actor("bash-default-1").start();
    let gate = redis.folder().join("gate");
    let script = format!("printf 'Continue? [y/N] '; {}; echo yes", until_exists(&gate));
    let job = json!({ "script_type": "bash", "script": script, "timeout": 60 });
    let made = api.call("job.submit", &json!({ "job": job }));
    let mut socket = Socket::open(api.unix(), &[]);
    socket.follow("job.follow", &json!({ "id": made["id"] }));
    while socket.notice()["unfinished_line"] != "Continue? [y/N] " {}
    std::fs::write(&gate, "").expect("opening the gate");
    let rest = socket.rest_of_job();
    assert_eq!(lines(&rest), ["Continue? [y/N] yes"], "{rest:?}");
    let standing = rest.iter().filter_map(|notice| notice["unfinished_line"].as_str()).next_back();
    assert_eq!(standing, Some(""), "{rest:?}");
}

#[test]
fn followers_of_a_job_share_one_reader_which_ends_with_the_last() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _actor = api.hero.actor("osis-default-1").start();
    let count =
        r"let n = 0; loop { n += 1; print(n.to_string()); sleep(0.02); if n == 100 { break } }";
    let id = submit(&api, count);
    let reads = || {
        let clients: String = redis.ask("CLIENT LIST");
        clients.lines().filter(|line| line.contains("cmd=xread")).count()
    };
    let mut sockets: Vec<Socket> = (0..5).map(|_| Socket::open(api.unix(), &[])).collect();
    for socket in &mut sockets {
        for _ in 0..4 {
            socket.follow("job.follow", &json!({ "id": id }));
        }
    }
    wait_until("the log is read", || reads() > 0);
    assert_eq!(reads(), 1);
    // Each gets each line once, also those who came late.
    let late = Socket::open(api.unix(), &[]);
    sockets.push(late);
    let followers = [4, 4, 4, 4, 4, 1];
    sockets[5].follow("job.follow", &json!({ "id": id }));
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    for (socket, followers) in sockets.iter_mut().zip(followers) {
        let mut all: Vec<Value> = Vec::new();
        for _ in 0..followers {
            all.extend(socket.rest_of_job());
        }
        let mut ids: Vec<&Value> = all.iter().map(|notice| &notice["subscription"]).collect();
        ids.sort_by_key(ToString::to_string);
        ids.dedup();
        assert_eq!(ids.len(), followers);
        for id in ids {
            let own = all.iter().filter(|notice| &notice["subscription"] == id).cloned();
            assert_eq!(lines(&own.collect::<Vec<_>>()), numbers);
        }
    }
    wait_until("the reader has ended", || reads() == 0);
    // A reader without followers ends while its job goes on.
    let endless = submit(&api, "loop { sleep(0.05) }");
    let mut socket = Socket::open(api.unix(), &[]);
    let subscription = socket.follow("job.follow", &json!({ "id": endless }));
    wait_until("it is read", || reads() == 1);
    socket.call("unsubscribe", &json!([subscription]));
    wait_until("it is not read any more", || reads() == 0);
    socket.follow("job.follow", &json!({ "id": endless }));
    wait_until("it is read again", || reads() == 1);
    drop(socket);
    wait_until("it is not read after the connection", || reads() == 0);
}

#[test]
fn events_and_statistics_are_followed() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.events", "true"), &redis);
    let old = submit(&api, "1");
    let mut socket = Socket::open(api.unix(), &[]);
    socket.follow("events.follow", &json!({}));
    let stats = socket.follow("stats.follow", &json!({}));
    let new = submit(&api, "2");
    let (mut seq, mut submitted) = (String::new(), 0);
    while seq.is_empty() || submitted < 2 {
        let notice = socket.notice();
        if notice["subscription"] == stats.as_str() {
            submitted = notice["stats"]["types"][0]["submitted"].as_u64().unwrap_or(submitted);
        } else {
            let event = &notice["events"][0];
            assert_eq!((&event["id"], &event["to"]), (&json!(new), &json!("dispatched")));
            seq = notice["seq"].as_str().expect("a number").to_owned();
        }
    }
    // All from the oldest on, and those after a number.
    let mut other = Socket::open(api.unix(), &[]);
    other.follow("events.follow", &json!({ "since": "0-0" }));
    assert_eq!(other.notice()["events"][0]["id"], old.as_str());
    let mut later = Socket::open(api.unix(), &[]);
    later.follow("events.follow", &json!({ "since": seq }));
    let last = submit(&api, "3");
    assert_eq!(later.notice()["events"][0]["id"], last.as_str());
    let off = Redis::start();
    let off = Served::on(&off);
    let refused = Socket::open(off.unix(), &[]).answer("events.follow", &json!({}));
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
}

#[test]
fn callers_follow_what_their_rights_and_bounds_allow() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.events", "true"), &redis);
    let new = |name: &str, args: &[&str]| {
        let done = api.hero.run(&[&["token", "new", name], args].concat()).code(0);
        format!("Bearer {}", done.stdout.trim_end())
    };
    let open = |token: &str| Socket::open(api.tcp(), &[("authorization", token)]);
    let (nobody, _) = Socket::ask(api.tcp(), &[]);
    assert_eq!((nobody.status, error(&nobody)), (401, -32001));
    let elsewhere = [("origin", "http://evil.example")];
    let (page, _) = Socket::ask(api.unix(), &elsewhere);
    assert_eq!((page.status, error(&page)), (403, -32003), "a page of another origin");
    let (rebound, _) = Socket::ask(api.tcp(), &[("host", "evil.example")]);
    assert_eq!(rebound.status, 421);
    let id = submit(&api, "1");
    let code = |mut socket: Socket, method: &str, params: Value| {
        socket.answer(method, &params)["error"]["code"].as_i64()
    };
    let sender = new("sender", &["--scope", "submit"]);
    assert_eq!(code(open(&sender), "job.follow", json!({ "id": id })), Some(-32003));
    let bound = new("bound", &["--scope", "read", "--type", "python"]);
    assert_eq!(code(open(&bound), "job.follow", json!({ "id": id })), Some(-32002));
    assert_eq!(code(open(&bound), "events.follow", json!({})), Some(-32003));
    let mut stats = open(&bound);
    stats.follow("stats.follow", &json!({}));
    assert_eq!(stats.notice()["stats"]["types"], json!([]), "only of its types");
    // A revoked token ends its connections.
    api.hero.run(&["token", "revoke", "bound"]).code(0);
    let (code, reason) = stats.closed();
    assert_eq!((code, reason.as_str()), (1008, "the token has expired or was revoked"));
}

#[test]
fn connection_ends_with_the_supervisor_and_with_a_silent_client() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("api.client_timeout", "\"1s\""), &redis);
    let mut silent = Socket::open(api.unix(), &[]);
    assert_eq!(silent.next(), Frame::Ping);
    // It answers no ping.
    let (code, reason) = silent.closed();
    assert_eq!((code, reason.contains("ping")), (1008, true), "{reason}");
    let mut open = Socket::open(api.unix(), &[]);
    api.supervisor.signal(Signal::SIGTERM);
    let (code, reason) = open.closed();
    assert_eq!((code, reason.contains("shuts down")), (1001, true), "{reason}");
}

#[test]
fn follower_learns_of_an_outage_and_misses_nothing() {
    let mut redis = Redis::that_keeps();
    let api = Served::on(&redis);
    let id = submit(&api, r#"print("one"); 1"#);
    let mut socket = Socket::open(api.unix(), &[]);
    socket.follow("job.follow", &json!({ "id": id }));
    assert_eq!(socket.notice()["status"], "dispatched");
    redis.kill();
    let told = socket.notice();
    assert!(told["problem"].to_string().contains("cannot be reached"), "{told}");
    redis.start_again();
    while socket.notice()["problem"] != "" {}
    let _actor = api.hero.actor("osis-default-1").start();
    let all = socket.rest_of_job();
    assert_eq!((lines(&all), states(&all).last()), (vec!["one"], Some(&"finished")), "{all:?}");
}

#[test]
fn subscriptions_and_connections_are_bounded() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("api.connections_max", "3"), &redis);
    let mut socket = Socket::open(api.unix(), &[]);
    let follow = request("stats.follow", &json!({ "since": "9999999999999-0" }));
    let mut refused = 0;
    for _ in 0..100 {
        socket.text(&format!("[{}]", vec![follow.as_str(); 100].join(",")));
        let Frame::Text(Value::Array(answers)) = socket.next() else { panic!("no answers") };
        refused += answers.iter().filter(|one| one["error"]["code"] == -32004).count();
    }
    assert_eq!(refused, 9_900, "100 of 10 000 are allowed");
    // A WebSocket counts as the connection that it is.
    let others = [Socket::open(api.unix(), &[]), Socket::open(api.unix(), &[])];
    let mut waiting = api.unix();
    waiting.send(b"GET / HTTP/1.1\r\n").expect("taken by the kernel");
    drop((others, waiting));
    assert_eq!(api.unix().get("/metrics", &[]).status, 200);
}

#[test]
fn malformed_frames_end_their_connection_alone_and_memory_does_not_grow() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("api.body_size_max", "\"64KiB\""), &redis);
    let memory_kib = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", api.supervisor.pid()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
        line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
    };
    let ends = |bytes: &[u8]| {
        let mut socket = Socket::open(api.unix(), &[]);
        // The server may close before it has all.
        let _ = socket.raw(bytes);
        socket.closed().0
    };
    let whole = |payload: usize| frame(0x81, &vec![b' '; payload]);
    assert_eq!(ends(&frame(0x80 | BINARY, b"{}")), 1003);
    assert_eq!(ends(&whole((64 << 10) + 1)), 1009, "larger than a body may be");
    assert_eq!(ends(&[&[0x81, 0xff, 0x7f][..], &[0xff; 11]].concat()), 1009);
    assert_eq!(ends(&[0x81, 2, b'{', b'}']), 1002, "not masked");
    assert_eq!(ends(&frame(0xf1, b"{}")), 1002, "reserved bits");
    assert_eq!(ends(&frame(0x83, b"{}")), 1002, "a reserved opcode");
    assert_eq!(ends(&frame(0x80, b"{}")), 1002, "continues nothing");
    assert_eq!(ends(&frame(0x89, &[0; 200])), 1002, "a long ping");
    assert!([1002, 1007].contains(&ends(&frame(0x81, b"\xff\xfe"))), "no UTF-8");
    let mut state = 42_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let seed = frame(0x81, request("job.follow", &json!({ "id": "a" })).as_bytes());
    let mut storm = |number: usize| {
        for _ in 0..number {
            let mut bytes = seed.repeat(3);
            for _ in 0..=random(6) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = u8::try_from(random(256)).expect("a byte"),
                    1 => bytes.truncate(at.max(2)),
                    _ if bytes.len() > 2 => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            let mut socket = Socket::open(api.unix(), &[]);
            let _ = socket.raw(&bytes);
        }
    };
    storm(300);
    let before = memory_kib();
    storm(1200);
    wait_until("all connections have ended", || {
        let sockets = format!("/proc/{}/fd", api.supervisor.pid());
        std::fs::read_dir(sockets).is_ok_and(|all| all.count() < 64)
    });
    let grown = memory_kib().saturating_sub(before);
    assert!(grown < 8192, "grew by {grown} KiB");
    assert_eq!(Socket::open(api.unix(), &[]).call("whoami", &json!({}))["name"], "root");
}

#[test]
fn client_that_does_not_read_is_dropped_and_costs_no_memory() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("api.client_timeout", "\"3s\""), &redis);
    let _actor = api.hero.actor("osis-default-1").start();
    let id =
        submit(&api, r#"let t = "x"; for n in 0..12 { t += t } for n in 0..800 { print(t) } 1"#);
    let mut reader = Socket::open(api.unix(), &[]);
    reader.follow("job.follow", &json!({ "id": id }));
    assert_eq!(lines(&reader.rest_of_job()).len(), 800);
    let mut slow = Socket::open(api.unix(), &[]);
    for _ in 0..50 {
        let follow = request("job.follow", &json!({ "id": id }));
        slow.text(&follow);
    }
    wait_until("it is dropped, and the reason is said", || {
        api.supervisor.err().contains("it does not read its messages (api.client_timeout)")
    });
    let mut other = Socket::open(api.unix(), &[]);
    other.follow("job.follow", &json!({ "id": id }));
    assert_eq!(lines(&other.rest_of_job()).len(), 800, "others go on");
}

const CLIENT: &str = r#"
import asyncio, json, sys
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

async def main(port, token, job):
    url = f"ws://127.0.0.1:{port}/rpc"
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with connect(url):
            assert False, "opened without a token"
    except InvalidStatus as refused:
        assert refused.response.status_code == 401, refused
    async with connect(url, additional_headers=headers) as socket:
        async def call(number, method, params):
            text = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            text = json.dumps(text)
            # In two frames, and with a ping between.
            await socket.send([text[:10], text[10:]])
            await (await socket.ping())
        await call(1, "whoami", {})
        assert json.loads(await socket.recv())["result"]["name"] == "ws"
        await call(2, "job.follow", {"id": job})
        subscription = json.loads(await socket.recv())["result"]["subscription"]
        lines = []
        while True:
            notice = json.loads(await socket.recv())
            assert notice["method"] == "job.follow", notice
            assert notice["params"]["subscription"] == subscription, notice
            lines += [line["line"] for line in notice["params"].get("lines", [])]
            if notice["params"].get("ended"):
                break
        print(notice["params"]["status"], *lines)
        await socket.send(b"{}")
        try:
            await socket.recv()
        except ConnectionClosed as closed:
            print(closed.rcvd.code, closed.rcvd.reason)

asyncio.run(main(*sys.argv[1:]))
"#;

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn client_of_another_library_calls_and_follows() {
    if !needs("websockets of PyPI", || pypi().is_some()) {
        return;
    }
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _actor = api.hero.actor("osis-default-1").start();
    let id = submit(&api, r#"print("one"); print("two"); 1"#);
    let made = api.hero.run(&["token", "new", "ws", "--scope", "read"]).code(0);
    let port = api.port.to_string();
    let done = Command::new(pypi().expect("found"))
        .args(["-c", CLIENT, &port, made.stdout.trim_end(), &id])
        .output()
        .expect("python runs");
    let (said, errors) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let expected = "finished one two\n1003 a request is a text, not a binary message\n";
    assert_eq!(said, expected, "{errors}");
}
