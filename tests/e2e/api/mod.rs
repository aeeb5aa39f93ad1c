//! The API over HTTP, by a client that shares no code with the program.

mod agents;
mod files;
mod health;
mod http;
mod listener;
mod outage;
mod prometheus;
mod subscriptions;
mod websocket;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Hero, Process, Redis, wait_until};
use http::{Answer, Link};

/// A supervisor that serves the API on a Unix socket and a free port.
struct Api {
    hero: Hero,
    supervisor: Process,
    socket: PathBuf,
    port: u16,
}

impl Api {
    fn on(redis: &Redis) -> Self {
        Self::with(Hero::on(redis), redis)
    }

    /// With further settings of the program.
    fn with(hero: Hero, redis: &Redis) -> Self {
        let (socket, file) = (redis.folder().join("api.sock"), redis.folder().join("addresses"));
        let listen = format!("[\"unix://{}\", \"127.0.0.1:0\"]", socket.display());
        let hero = hero
            .set("api.listen", &listen)
            .set("api.address_file", &format!("{:?}", file.display().to_string()));
        let supervisor = hero.supervisor().start();
        let addresses = || std::fs::read_to_string(&file).unwrap_or_default();
        wait_until("both addresses are bound", || addresses().lines().count() == 2);
        let all = addresses();
        let tcp = all.lines().find(|line| line.contains("://127")).expect("a TCP address");
        let port = tcp
            .rsplit(':')
            .next()
            .and_then(|port| port.split('/').next().and_then(|port| port.parse().ok()));
        Self { hero, supervisor, socket, port: port.expect("a port") }
    }

    fn unix(&self) -> Link {
        Link::unix(&self.socket)
    }

    fn tcp(&self) -> Link {
        Link::tcp(self.port)
    }

    /// The result of a call over the Unix socket, as root.
    #[track_caller]
    fn call(&self, method: &str, params: &Value) -> Value {
        let answer = self.unix().post("/rpc", &[], &request(method, params));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut answer = answer.json();
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].take()
    }
}

/// The text of a request.
fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The code of the error of a response.
#[track_caller]
fn error(answer: &Answer) -> i64 {
    let answer = answer.json();
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}
