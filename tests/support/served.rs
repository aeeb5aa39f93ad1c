//! The program as it is served: a supervisor whose API and page are on a Unix socket and a free port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::http::Link;
use super::{Hero, Process, Redis, wait_until};

/// A supervisor that serves.
pub(crate) struct Served {
    pub(crate) hero: Hero,
    pub(crate) supervisor: Process,
    pub(crate) socket: PathBuf,
    pub(crate) port: u16,
    /// The secrets of tokens by what they were made with.
    tokens: Mutex<Vec<(Vec<String>, String)>>,
}

impl Served {
    /// Serves a namespace with the default settings.
    pub(crate) fn on(redis: &Redis) -> Self {
        Self::with(Hero::on(redis), redis)
    }

    /// Serves it with further settings of the program.
    pub(crate) fn with(hero: Hero, redis: &Redis) -> Self {
        Self::in_folder(hero, redis.folder())
    }

    /// Serves it with a socket in this folder: a second one for the same jobs.
    pub(crate) fn in_folder(hero: Hero, folder: &Path) -> Self {
        let (socket, file) = (folder.join("api.sock"), folder.join("addresses"));
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
        let tokens = Mutex::default();
        Self { hero, supervisor, socket, port: port.expect("a port"), tokens }
    }

    /// Returns the address of a page.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn unix(&self) -> Link {
        Link::unix(&self.socket)
    }

    pub(crate) fn tcp(&self) -> Link {
        Link::tcp(self.port)
    }

    /// Returns the secret of a token with these arguments of `hero token new`; it is made once.
    #[track_caller]
    pub(crate) fn token(&self, args: &[&str]) -> String {
        let mut made = self.tokens.lock().expect("no other test has it");
        let key: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if let Some((_, secret)) = made.iter().find(|(of, _)| *of == key) {
            return secret.clone();
        }
        // A name has one token at a time.
        if made.iter().any(|(of, _)| of.first() == key.first()) {
            self.hero.run(&["token", "revoke", &key[0]]).code(0);
            made.retain(|(of, _)| of.first() != key.first());
        }
        let done = self.hero.run(&[&["token", "new"], args].concat()).code(0);
        let secret = done.stdout.trim_end().to_owned();
        made.push((key, secret.clone()));
        secret
    }

    /// The result of a call over the Unix socket, as root.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let answer = self.unix().post("/rpc", &[], &request(method, params));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut answer = answer.json();
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].take()
    }
}

/// Returns what an agent's tool answers.
pub(crate) fn agent(hero: &Hero, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let done = hero.run_with_input(&["mcp"], &(request("tools/call", &params) + "\n"));
    format!("{}{}", done.stdout, done.stderr)
}

/// The text of a request.
pub(crate) fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}
