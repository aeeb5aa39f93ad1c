//! Measures of the API: the time that it adds to a job, and the processor time of a supervisor with many
//! followers. Its client is a few lines of its own, so that the client does not dominate the figures.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use hero::client::{Client, JobBuilder};
use serde_json::{Value, json};

use super::bench::{Done, print_share, print_times};

/// Jobs of each way, which take turns.
const JOBS: usize = 2000;
const WARM_UPS: usize = 200;
/// Followers of one log.
const FOLLOWERS: usize = 500;

struct ApiAddress {
    host: String,
    token: String,
}

/// Measures the API of `HERO_PAGE`, the address that `hero dev` gives.
pub(crate) async fn run(client: &Client) -> Done {
    let page = std::env::var("HERO_PAGE")
        .map_err(|_| "HERO_PAGE is not set; run this as `hero dev -- xtask bench api`")?;
    let (host, token) = page
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once("/login?token="))
        .ok_or("HERO_PAGE is not an address of hero dev")?;
    let api = ApiAddress { host: host.to_owned(), token: token.to_owned() };
    latency(client, &api).await?;
    followers(client, &api).await
}

async fn latency(client: &Client, api: &ApiAddress) -> Done {
    let (mut http, mut socket) = (api.connect()?, api.upgraded()?);
    let mut times = [const { Vec::new() }; 3];
    for number in 0..WARM_UPS + JOBS {
        let began = Instant::now();
        let job = JobBuilder::new("osis", "40 + 2").build()?;
        client.run_job_and_await_result(job, None).await?;
        let over_redis = began.elapsed();
        let job = json!({ "script_type": "osis", "script": "40 + 2" });
        let call = call("job.run", &json!({ "job": job }));
        let began = Instant::now();
        finished(&api.post(&mut http, &call)?)?;
        let over_http = began.elapsed();
        let began = Instant::now();
        send(&mut socket, &call)?;
        finished(&receive(&mut socket)?)?;
        let over_socket = began.elapsed();
        if number >= WARM_UPS {
            for (times, took) in times.iter_mut().zip([over_redis, over_http, over_socket]) {
                times.push(took);
            }
        }
    }
    let names = ["run and wait over Redis", "job.run over HTTP", "job.run over a WebSocket"];
    for (name, times) in names.into_iter().zip(&mut times) {
        print_times(name, times);
    }
    Ok(())
}

fn call(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn finished(answer: &Value) -> Done {
    if answer["result"]["status"] == "finished" { Ok(()) } else { Err(answer.to_string().into()) }
}

async fn followers(client: &Client, api: &ApiAddress) -> Done {
    let supervisor = client.system().supervisors().await?;
    let pid = supervisor.first().ok_or("no supervisor is live")?.pid;
    print_share("supervisor without followers", pid).await?;
    let quiet = JobBuilder::new("osis", "loop { sleep(1) }").build()?;
    let quiet = client.submit(quiet).await?;
    let talks =
        JobBuilder::new("osis", "loop { print(\"a line of the log\"); sleep(1) }").build()?;
    let talks = client.submit(talks).await?;
    for (id, name) in [(quiet, "a log at rest"), (talks, "a log of a line per second")] {
        let mut sockets = Vec::new();
        for _ in 0..FOLLOWERS {
            let mut socket = api.upgraded()?;
            send(&mut socket, &call("job.follow", &json!({ "id": id.as_str() })))?;
            receive(&mut socket)?;
            sockets.push(socket);
        }
        print_share(&format!("supervisor, {FOLLOWERS} followers of {name}"), pid).await?;
        client.stop_job(&id).await?;
    }
    Ok(())
}

impl ApiAddress {
    fn connect(&self) -> Done<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let (lines, Self { host, token }) = (lines.collect::<String>(), self);
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{lines}\r\n"
        )
    }

    /// Sends a call by a POST on a connection that is kept.
    fn post(&self, link: &mut BufReader<TcpStream>, call: &Value) -> Done<Value> {
        let body = call.to_string();
        let length = body.len().to_string();
        let headers = [("content-type", "application/json"), ("content-length", length.as_str())];
        let request = self.head("POST", "/rpc", &headers) + body.as_str();
        link.get_mut().write_all(request.as_bytes())?;
        let mut answer = vec![0; answered(link, "200")?];
        link.read_exact(&mut answer)?;
        Ok(serde_json::from_slice(&answer)?)
    }

    fn upgraded(&self) -> Done<BufReader<TcpStream>> {
        let mut link = self.connect()?;
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "BwcHBwcHBwcHBwcHBwcHBw=="),
        ];
        let request = self.head("GET", "/rpc", &headers);
        link.get_mut().write_all(request.as_bytes())?;
        answered(&mut link, "101")?;
        Ok(link)
    }
}

/// Reads the head of an answer. Returns the length of its body.
fn answered(link: &mut BufReader<TcpStream>, status: &str) -> Done<usize> {
    let mut length = 0;
    for number in 0.. {
        let mut header = String::new();
        link.read_line(&mut header)?;
        if number == 0 && header.split(' ').nth(1) != Some(status) {
            return Err(format!("the API answered {}", header.trim_end()).into());
        }
        let Some((name, value)) = header.trim_end().split_once(':') else {
            if number > 0 {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    Ok(length)
}

/// Sends a text, masked with zeros.
fn send(link: &mut BufReader<TcpStream>, call: &Value) -> Done {
    let text = call.to_string();
    let mut frame = vec![0x81, 0xfe];
    frame.extend(u16::try_from(text.len())?.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    link.get_mut().write_all(&frame)?;
    Ok(())
}

fn receive(link: &mut BufReader<TcpStream>) -> Done<Value> {
    loop {
        let mut head = [0; 2];
        link.read_exact(&mut head)?;
        let mut length = usize::from(head[1]);
        if length >= 126 {
            let mut bytes = [0; 8];
            let extended = if length == 126 { 2 } else { 8 };
            link.read_exact(&mut bytes[8 - extended..])?;
            length = usize::try_from(u64::from_be_bytes(bytes))?;
        }
        let mut payload = vec![0; length];
        link.read_exact(&mut payload)?;
        if head[0] & 15 == 1 {
            return Ok(serde_json::from_slice(&payload)?);
        }
    }
}
