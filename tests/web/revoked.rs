//! Answers that are under way when the token of their reader is revoked.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt,
};
use serde_json::{Value, json};

use super::requests::send;
use super::visitors::{READER, SUBMITTER};
use crate::support::{Hero, Redis, Served, wait_until};

/// More than the buffers of a connection hold.
const LARGE: usize = 48 << 20;

/// Begins to read an answer slowly: the kernel holds little of it for this reader.
fn begun(site: &Served, token: &[&str], request: &str) -> TcpStream {
    let (family, kind) = (AddressFamily::Inet, SockType::Stream);
    let link = socket(family, kind, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    setsockopt(&link, sockopt::RcvBuf, &4096).expect("a small buffer");
    let address = SockaddrIn::new(127, 0, 0, 1, site.port);
    connect(link.as_raw_fd(), &address).expect("connecting");
    let mut stream = TcpStream::from(link);
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    let (first, rest) = request.split_once("\r\n").expect("a request");
    write!(
        stream,
        "{first}\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{rest}",
        site.token(token)
    )
    .expect("sending");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("the begin of an answer");
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

/// Revokes a token, and returns how many bytes come afterwards, and the last of them.
fn after_revocation(site: &Served, token: &[&str], mut stream: TcpStream) -> (usize, Vec<u8>) {
    let bearer = format!("Authorization: Bearer {}\r\n", site.token(token));
    site.hero.run(&["token", "revoke", token[0]]).code(0);
    wait_until("the token is refused", || send(site, "GET", "/jobs", &bearer, "").status == 401);
    let mut rest = Vec::new();
    // A connection that is reset ends what was sent.
    let _ = stream.read_to_end(&mut rest);
    let last = rest.split_off(rest.len().saturating_sub(5));
    (rest.len() + last.len(), last)
}

#[test]
fn file_that_is_being_sent_ends_with_the_token_of_its_reader() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.files_size_max", "\"64MiB\"");
    let site = Served::with(hero, &redis);
    let _bash = site.hero.actor("bash-default-1").start();
    let make = format!("head -c {LARGE} /dev/zero > \"$HERO_OUTPUT_DIR/large\"");
    site.hero.run(&["exec", "-t", "bash", "--id", "a", "-e", &make]).code(0);
    let get = "GET /jobs/a/files/large HTTP/1.1\r\n\r\n";
    let mut whole = begun(&site, SUBMITTER, get);
    let mut all = Vec::new();
    whole.read_to_end(&mut all).expect("all of it");
    assert!(all.len() > LARGE);
    let stream = begun(&site, READER, get);
    let (sent, _) = after_revocation(&site, READER, stream);
    assert!(sent < LARGE, "{sent} bytes");
}

#[test]
fn list_as_csv_ends_with_the_token_of_its_reader() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let job = json!({
        "script": "1", "script_type": "osis", "run_at": "2999-01-01T00:00:00Z", "name": "n".repeat(256),
        "tags": vec!["t".repeat(64); 1],
    });
    for _ in 0..4 {
        site.call("batch.submit", &json!({ "jobs": vec![&job; 10_000] }));
    }
    let stream = begun(&site, READER, "GET /jobs.csv HTTP/1.1\r\n\r\n");
    let (_, last) = after_revocation(&site, READER, stream);
    assert_ne!(last, b"0\r\n\r\n", "the list was sent to its end");
}

#[test]
fn streamed_call_of_an_agent_ends_with_its_token() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let _bash = site.hero.actor("bash-default-1").start();
    let arguments = json!({ "script": "sleep 600", "script_type": "bash", "wait": 600 });
    let params =
        json!({ "name": "run_script", "arguments": arguments, "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let body = call.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-06-18\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let stream = begun(&site, SUBMITTER, &request);
    let jobs = || site.call("job.list", &json!({ "status": "started" }))["jobs"].take();
    wait_until("it runs", || jobs().as_array().is_some_and(|jobs| !jobs.is_empty()));
    after_revocation(&site, SUBMITTER, stream);
    let job: Value = jobs();
    site.call("job.stop", &json!([job[0]["id"]]));
}
