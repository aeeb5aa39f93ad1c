//! The listener: sockets, requests, refusals, bounds.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use nix::sys::signal::Signal;
use serde_json::json;

use super::error;
use crate::support::http::Link;
use crate::support::{Hero, Redis, Served, needs, request, wait_until};

#[test]
fn root_calls_over_the_socket_one_by_one_in_batches_and_without_an_answer() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let mode = std::fs::metadata(&api.socket).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o117, 0, "open to others: {mode:o}");
    assert_eq!(api.call("system.info", &json!({}))["version"], env!("CARGO_PKG_VERSION"));
    // One connection for all that follows.
    let mut link = api.unix();
    let text = json!([
        { "jsonrpc": "2.0", "id": "a", "method": "system.info" },
        { "jsonrpc": "2.0", "method": "system.info" },
        { "jsonrpc": "2.0", "id": 2, "method": "no.such" },
        7,
    ]);
    let answer = link.post("/rpc", &[], &text.to_string());
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let answers = answer.json();
    assert_eq!(answers.as_array().map(Vec::len), Some(3), "{answers}");
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!("a"), &json!(2)));
    assert!(answers[0]["result"]["version"].is_string(), "{answers}");
    assert_eq!(answers[1]["error"]["code"], -32601);
    assert_eq!(answers[2]["error"]["code"], -32600);
    let quiet = json!({ "jsonrpc": "2.0", "method": "system.info" }).to_string();
    let answer = link.post("/rpc", &[], &quiet);
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(error(&link.post("/rpc", &[], "{")), -32700);
    let many = format!("[{}]", vec!["1"; 101].join(","));
    assert_eq!(error(&link.post("/rpc", &[], &many)), -32600);
}

#[test]
fn wrong_requests_are_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("api.body_size_max", "\"10KiB\"");
    let api = Served::with(hero, &redis);
    let info = request("system.info", &json!({}));
    let refused = |headers: &[(&str, &str)]| {
        let answer = api.tcp().post("/rpc", headers, &info);
        (answer.status, error(&answer))
    };
    assert_eq!(refused(&[]), (401, -32001), "without a token");
    assert_eq!(refused(&[("authorization", "Bearer x")]), (401, -32001));
    assert_eq!(refused(&[("authorization", "Basic x")]), (401, -32001));
    assert_eq!(refused(&[("host", "evil.example")]), (421, -32003), "DNS rebinding");
    assert_eq!(refused(&[("host", "")]), (400, -32003));
    assert_eq!(refused(&[("origin", "http://evil.example")]), (403, -32003));
    assert_eq!(refused(&[("origin", "null")]), (403, -32003));
    let mut link = api.unix();
    let plain = link.post("/rpc", &[("content-type", "text/plain")], &info);
    assert_eq!((plain.status, error(&plain)), (415, -32600));
    let large = link.post("/rpc", &[], &" ".repeat(10_241));
    assert_eq!((large.status, error(&large)), (413, -32600));
    let mut link = api.unix();
    let chunked = [("transfer-encoding", "chunked"), ("content-length", "")];
    let body = format!("4000\r\n{}\r\n0\r\n\r\n", " ".repeat(0x4000));
    let mut all = vec![("content-type", "application/json")];
    all.extend(chunked);
    assert_eq!(link.ask("POST", "/rpc", &all, body.as_bytes()).status, 413);
    assert_eq!(api.unix().post("/rpc", &[], &info).status, 200, "it serves on");
}

#[test]
fn slow_clients_are_disconnected() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("api.client_timeout", "\"1s\"");
    let api = Served::with(hero, &redis);
    let mut silent = api.unix();
    let mut head = api.unix();
    head.send(b"POST /rpc HTTP/1.1\r\nhost: localhost\r\n").expect("sent");
    let mut body = api.unix();
    let text = "POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 9\r\n\r\n{";
    body.send(text.as_bytes()).expect("sent");
    assert_eq!(body.answer().map(|answer| answer.status), Some(408));
    assert!(head.answer().is_none_or(|answer| answer.status == 408));
    assert!(silent.answer().is_none_or(|answer| answer.status == 408));
    assert!(silent.is_closed());
}

#[test]
fn more_connections_than_allowed_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("api.connections_max", "3");
    let api = Served::with(hero, &redis);
    let info = request("system.info", &json!({}));
    let held = [api.unix(), api.unix(), api.unix()];
    let mut waiting = Link::unix(&api.socket);
    waiting.send(b"POST /rpc HTTP/1.1\r\n").expect("taken by the kernel");
    drop(held);
    drop(waiting);
    assert_eq!(api.unix().post("/rpc", &[], &info).status, 200);
}

#[test]
fn connections_without_a_token_keep_nobody_out() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("api.connections_max", "8"), &redis);
    let info = request("system.info", &json!({}));
    let bearer = format!("Bearer {}", api.token(&["ops", "--scope", "read"]));
    let known = [("authorization", bearer.as_str())];
    let mut kept = api.tcp();
    assert_eq!(kept.post("/rpc", &known, &info).status, 200);
    let mut strangers: Vec<Link> = (0..40).map(|_| api.tcp()).collect();
    // Each of the last has its place; the first were closed for them.
    assert_eq!(strangers.last_mut().expect("one").get("/healthz", &[]).status, 200);
    assert!(strangers[0].is_closed());
    assert_eq!(api.tcp().post("/rpc", &known, &info).status, 200);
    assert_eq!(api.unix().post("/rpc", &[], &info).status, 200);
    assert_eq!(kept.post("/rpc", &known, &info).status, 200, "it has a place of its own");
}

#[test]
fn metrics_are_served_in_both_formats_to_those_who_may_read() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    api.hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    let classic = api.unix().get("/metrics", &[]);
    let version = Some("text/plain; version=0.0.4; charset=utf-8");
    assert_eq!((classic.status, classic.header("content-type")), (200, version));
    assert!(classic.text().contains("\nhero_supervisors "), "{}", classic.text());
    let accept = [("accept", "application/openmetrics-text")];
    let open = api.unix().get("/metrics", &accept);
    assert!(open.text().ends_with("# EOF\n"), "{}", open.text());
    // `hero metrics` prints the same series with the same help. Until the first heartbeat of the supervisor
    // that has just started there is the problem `few_supervisors`, so both are read until they agree.
    let series = |text: String| -> BTreeSet<String> {
        let names = text.lines().map(|line| match line.strip_prefix('#') {
            Some(_) => line,
            None => line.rsplit_once(' ').expect("a value").0,
        });
        names.map(str::to_owned).collect()
    };
    let printed = |args: &[&str]| series(api.hero.run(args).code(0).stdout);
    wait_until("the classic series agree", || {
        series(api.unix().get("/metrics", &[]).text()) == printed(&["metrics"])
    });
    wait_until("the open series agree", || {
        series(api.unix().get("/metrics", &accept).text()) == printed(&["metrics", "--openmetrics"])
    });
    assert_eq!(api.tcp().get("/metrics", &[]).status, 401);
}

#[test]
fn prefix_and_open_metrics_are_as_configured() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("api.path", "\"/hero\"")
        .set("api.metrics_open", "true")
        .set("api.hosts", "[\"hero.example.org\"]");
    let api = Served::with(hero, &redis);
    assert_eq!(api.tcp().get("/hero/metrics", &[]).status, 200);
    let host = [("host", "hero.example.org:80")];
    assert_eq!(api.tcp().get("/hero/metrics", &host).status, 200);
    assert_eq!(api.tcp().get("/metrics", &[]).status, 404);
    assert_eq!(api.tcp().get("/heroes/metrics", &[]).status, 404);
    let info = request("system.info", &json!({}));
    assert_eq!(api.unix().post("/hero/rpc", &[], &info).status, 200);
}

#[test]
fn dead_socket_is_replaced_and_a_live_one_is_not() {
    let redis = Redis::start();
    let socket = redis.folder().join("api.sock");
    drop(UnixListener::bind(&socket).expect("a socket that nobody serves"));
    let api = Served::on(&redis);
    let inode = std::fs::metadata(&socket).expect("the socket").ino();
    let other = api.hero.supervisor().start();
    wait_until("the other says why it does not serve", || {
        other.err().contains("another process serves it")
    });
    assert_eq!(std::fs::metadata(&socket).expect("the socket").ino(), inode);
    other.signal(Signal::SIGTERM);
    other.ends().code(0);
    api.call("system.info", &json!({}));
    api.supervisor.signal(Signal::SIGTERM);
    wait_until("the socket is removed", || !socket.exists());
}

#[test]
fn user_without_the_group_is_refused() {
    let redis = Redis::start();
    if !needs("root", || nix::unistd::geteuid().is_root()) {
        return;
    }
    // The supervisor of another user: root may do everything, others nothing.
    let folder = redis.folder().to_owned();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&folder, open).expect("a mode");
    let hero = Hero::on(&redis).set("api.group", "\"no-such-group-here\"");
    let api = Served::with(hero, &redis);
    let everyone = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&api.socket, everyone).expect("a mode");
    let body = request("system.info", &json!({}));
    let curl = |user: &str| {
        let url = "http://localhost/rpc";
        let socket = api.socket.to_str().expect("text");
        let args = [
            "-s",
            "--unix-socket",
            socket,
            "-H",
            "content-type: application/json",
            "-d",
            &body,
            url,
        ];
        let user = [format!("--reuid={user}"), format!("--regid={user}")];
        let mut command = api.hero.command_of_user("setpriv");
        let command = command.args(user).args(["--clear-groups", "curl"]).args(args);
        let out = command.output().expect("curl");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    assert!(curl("65534").contains("-32001"), "{}", curl("65534"));
    assert!(curl("0").contains("version"), "{}", curl("0"));
}

#[test]
fn dev_prints_an_address_that_opens_the_page_and_a_token_for_the_api() {
    let redis = Redis::absent(false);
    let dev = Hero::on(&redis).begin(&["dev"]);
    wait_until("dev prints the address", || dev.out().contains("token="));
    let out = dev.out();
    let (address, token) = out.rsplit_once("/login?token=").expect("an address");
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let token = token.trim();
    let signed_in = Link::tcp(port).get(&format!("/login?token={token}"), &[]);
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/")));
    let bearer = format!("Bearer {token}");
    let info = request("system.info", &json!({}));
    let with =
        |token: &str| Link::tcp(port).post("/rpc", &[("authorization", token)], &info).status;
    assert_eq!(with(&bearer), 200);
    assert_eq!(with(&bearer[..bearer.len() - 1]), 401);
    dev.signal(Signal::SIGTERM);
    dev.ends().code(0);
}

#[test]
fn tokens_have_their_scopes_until_they_are_revoked() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let new = |name: &str, scopes: &str| {
        let done = api.hero.run(&["token", "new", name, "--scope", scopes]).code(0);
        format!("Bearer {}", done.stdout.trim_end())
    };
    let (reader, sender) = (new("reader", "read"), new("ci", "read,submit"));
    let info = request("system.info", &json!({}));
    let job = json!({ "script_type": "osis", "script": "1" });
    let submit = request("job.submit", &json!({ "job": job }));
    let call = |token: &str, body: &str| api.tcp().post("/rpc", &[("authorization", token)], body);
    assert_eq!(call(&reader, &info).status, 200);
    let refused = call(&reader, &submit);
    assert_eq!((refused.status, error(&refused)), (403, -32003));
    let accepted = call(&sender, &submit);
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    assert!(accepted.json()["error"].is_null(), "{}", accepted.text());
    api.hero.run(&["token", "revoke", "reader"]).code(0);
    wait_until("the revoked token is refused", || call(&reader, &info).status == 401);
    assert_eq!(call(&sender, &info).status, 200);
}

#[test]
fn key_of_the_configuration_logs_in_by_a_signature() {
    use k256::ecdsa::signature::Signer;
    use k256::ecdsa::{Signature, SigningKey};
    let hex = hero::proto::text::hexadecimal;
    let key = SigningKey::from_slice(&[7; 32]).expect("a key");
    let public = hex(key.verifying_key().to_sec1_point(true).as_bytes());
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .add(&format!("[api.keys.ops]\npublic_key = \"{public}\"\nscopes = [\"read\"]\n"));
    let api = Served::with(hero, &redis);
    let ask = |method: &str, params: &serde_json::Value| {
        api.tcp().post("/rpc", &[], &request(method, params))
    };
    let nonce = ask("fetch_nonce", &json!([public])).json()["result"].take();
    let nonce = nonce.as_str().expect("a nonce");
    let signature: Signature = key.sign(nonce.as_bytes());
    let given = json!({
        "pubkey": public, "nonce": nonce, "signature": hex(&signature.to_bytes()),
    });
    let login = ask("authenticate", &given).json();
    let token = format!("Bearer {}", login["result"]["token"].as_str().expect("a token"));
    let whoami = request("whoami", &json!({}));
    let who = api.tcp().post("/rpc", &[("authorization", &token)], &whoami).json();
    assert_eq!(who["result"]["name"], "ops", "{who}");
    let again = ask("authenticate", &given);
    assert_eq!((again.status, error(&again)), (401, -32001), "a nonce is good once");
    let other = SigningKey::from_slice(&[8; 32]).expect("a key");
    let other = hex(other.verifying_key().to_sec1_point(true).as_bytes());
    let text = std::fs::read_to_string(api.supervisor.config()).expect("its file");
    std::fs::write(api.supervisor.config(), text.replace(&public, &other)).expect("written");
    api.supervisor.signal(nix::sys::signal::Signal::SIGHUP);
    let status = || api.tcp().post("/rpc", &[("authorization", &token)], &whoami).status;
    wait_until("the removed key is refused", || status() == 401);
}

#[test]
fn ten_thousand_malformed_requests_are_answered_without_growth() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let memory_kib = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", api.supervisor.pid()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
        line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
    };
    let seeds = [
        request("system.info", &json!({})),
        request("job.get", &json!({ "id": "a" })),
        request("fetch_nonce", &json!({ "pubkey": "02" })),
        format!("[{},{}]", request("job.list", &json!({})), request("whoami", &json!([]))),
    ];
    let mut state = 42_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let mut send = |number: usize| {
        // One connection for all: each must be answered, and no answer may close it.
        let mut link = api.unix();
        for _ in 0..number {
            let mut bytes = seeds[random(seeds.len())].clone().into_bytes();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = u8::try_from(random(256)).expect("a byte"),
                    1 => bytes.truncate(at.max(1)),
                    2 => drop(bytes.remove(at)),
                    _ => bytes.splice(at..at, *b"[{\"\xff").for_each(drop),
                }
                if bytes.is_empty() {
                    bytes.push(b'{');
                }
            }
            let headers = [("content-type", "application/json")];
            let answer = link.ask("POST", "/rpc", &headers, &bytes);
            let is_known = [200, 204, 400, 401, 403, 404, 409, 422, 503].contains(&answer.status);
            assert!(is_known, "{}: {:?}", answer.status, String::from_utf8_lossy(&bytes));
        }
    };
    send(2000);
    let before = memory_kib();
    send(8000);
    let grown = memory_kib().saturating_sub(before);
    assert!(grown < 8192, "grew by {grown} KiB");
}

#[test]
fn tls_is_served_with_the_certificate_of_the_configuration() {
    let redis = Redis::start();
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("made");
    let file = |name: &str, text: String| {
        let path = redis.folder().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let certificate = file("cert.pem", own.cert.pem());
    let key = file("key.pem", own.signing_key.serialize_pem());
    let hero = Hero::on(&redis)
        .set("api.metrics_open", "true")
        .set("api.tls_cert_file", &format!("{certificate:?}"))
        .set("api.tls_key_file", &format!("{key:?}"));
    let api = Served::with(hero, &redis);
    let url = format!("https://127.0.0.1:{}/metrics", api.port);
    let mut curl = api.hero.command_of_user("curl");
    let out = curl.args(["-sS", "--cacert", &certificate, &url]).output().expect("curl");
    let (out, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.contains("hero_build_info"), "{err}{out}");
}

#[test]
fn page_of_another_name_that_leads_to_the_socket_is_refused() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let info = request("system.info", &json!({}));
    let rebound = [("host", "evil.example:8470"), ("origin", "http://evil.example:8470")];
    assert_eq!(api.unix().post("/rpc", &rebound, &info).status, 421);
    assert_eq!(api.unix().get("/jobs", &rebound[..1]).status, 421);
    let tunnel = [("host", "localhost:8470"), ("origin", "http://localhost:8470")];
    assert_eq!(api.unix().post("/rpc", &tunnel, &info).status, 200);
}
