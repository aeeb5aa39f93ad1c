//! A private RabbitMQ: one node for all tests of a run, with a vhost for each; or a node of its own for a
//! test that kills it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::{Authority, needs, wait_until};

const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";
/// The vhosts of one node: one per test.
const VHOSTS: usize = 80;
/// Users that may enter one vhost each.
const CONFINED: [&str; 3] = ["prod", "qa", "dev"];
/// The hash of the password `secret`.
const PASSWORD_HASH: &str = "AQIDBDB9kM21iEUzN1lZ+6VReCsdNqS0sERdAQTcY6Xs3PMz";

/// Returns true if the machine has RabbitMQ; else the test is skipped and counted.
pub(crate) fn has_rabbitmq() -> bool {
    needs("rabbitmq-server", || Path::new(PROGRAM).exists())
}

/// Returns the url of a vhost that no other test uses, on the node of all tests.
pub(crate) fn vhost() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < VHOSTS, "more tests than vhosts: raise VHOSTS");
    shared().url("hero", &format!("t{number}"))
}

/// Returns the node of all tests.
pub(crate) fn shared() -> &'static RabbitMq {
    static NODE: OnceLock<RabbitMq> = OnceLock::new();
    NODE.get_or_init(|| RabbitMq::with("[rabbitmq_management].\n"))
}

/// One node.
pub(crate) struct RabbitMq {
    folder: TempDir,
    port: u16,
    /// The port with TLS, and the authority of its certificate.
    tls_port: u16,
    management_port: u16,
    authority: Authority,
    /// The ports where programs of Erlang find each other.
    epmd: u16,
    dist: u16,
    /// Ends the node when its standard input is closed, also if the tests are killed.
    guard: Option<(Child, ChildStdin)>,
}

impl RabbitMq {
    /// Starts a node, and waits until it answers.
    pub(crate) fn start() -> Self {
        Self::with("[].\n")
    }

    fn with(plugins: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("hero-rabbit-").tempdir().expect("a folder");
        let authority = Authority::new(folder.path(), "tls");
        let [port, tls_port, management_port, epmd, dist] = [(); 5].map(|()| free_port());
        let mut node =
            Self { folder, port, tls_port, management_port, authority, epmd, dist, guard: None };
        std::fs::write(node.path("definitions.json"), definitions()).expect("written");
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{}\nload_definitions = {}\nloopback_users = none\n\
             disk_free_limit.absolute = 1MB\nlog.file.level = warning\n\
             listeners.ssl.1 = 127.0.0.1:{}\nssl_options.cacertfile = {}\n\
             ssl_options.certfile = {}\nssl_options.keyfile = {}\nssl_options.verify = verify_none\n",
            node.port,
            node.path("definitions.json").display(),
            node.tls_port,
            node.authority.file("ca.pem"),
            node.authority.file("cert.pem"),
            node.authority.file("key.pem"),
        );
        let settings = if plugins.contains("management") {
            let port = node.management_port;
            format!("{settings}management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n")
        } else {
            settings
        };
        std::fs::write(node.path("rabbitmq.conf"), settings).expect("written");
        std::fs::write(node.path("plugins"), plugins).expect("written");
        node.start_again();
        node
    }

    /// Starts the node again after it was killed, and waits until it answers.
    pub(crate) fn start_again(&mut self) {
        self.begin_again();
        // A node takes 6 s on a machine of its own; beside other tests on two cores it takes longer.
        let (began, patience) = (Instant::now(), Duration::from_secs(25));
        for wait in 1..=3 {
            wait_until("the private RabbitMQ was waited for", || {
                self.answers() || began.elapsed() > patience * wait
            });
        }
        assert!(self.answers(), "the private RabbitMQ does not answer");
    }

    /// Starts the node, and does not wait.
    #[expect(clippy::disallowed_methods, reason = "tests start the servers they test against")]
    pub(crate) fn begin_again(&mut self) {
        let epmd = self.epmd;
        let script = format!(
            "{PROGRAM} > server.log 2>&1 < /dev/null &\nread line\n\
             [ \"$line\" = kill ] && kill -9 $(cat pid) || kill $(cat pid)\n\
             while kill -0 $(cat pid); do sleep 0.05; done\n\
             epmd -port {epmd} -kill\nexit 0\n"
        );
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]);
        let file = |name: &str| self.path(name);
        self.in_its_world(&mut command)
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.dist.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_MNESIA_BASE", file("mnesia"))
            .env("RABBITMQ_LOG_BASE", file("log"))
            .env("RABBITMQ_CONFIG_FILE", file("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", file("plugins"))
            .env("RABBITMQ_PID_FILE", file("pid"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 2:2 +sbwt none");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starting RabbitMQ");
        let stdin = child.stdin.take().expect("a pipe");
        self.guard = Some((child, stdin));
    }

    /// Gives a program the environment for finding the node.
    fn in_its_world<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("RABBITMQ_NODENAME", format!("t{}@localhost", self.port))
            .env("ERL_EPMD_PORT", self.epmd.to_string())
    }

    /// Runs `rabbitmqctl`.
    #[expect(clippy::disallowed_methods, reason = "the program of the operator")]
    #[track_caller]
    pub(crate) fn control(&self, args: &[&str]) {
        let mut command = Command::new(CONTROL);
        let ran = self.in_its_world(&mut command).args(args).output().expect("rabbitmqctl runs");
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Ends the node at once, as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.end("kill\n");
    }

    fn end(&mut self, order: &str) {
        if let Some((mut guard, mut stdin)) = self.guard.take() {
            let _ = stdin.write_all(order.as_bytes());
            drop(stdin);
            let _ = guard.wait();
        }
        let _ = std::fs::remove_file(self.path("pid"));
    }

    /// Returns the url of a user and a vhost through another port, such as a proxy's.
    pub(crate) fn url_through(&self, port: u16, user: &str, vhost: &str) -> String {
        self.url(user, vhost).replace(&format!(":{}/", self.port), &format!(":{port}/"))
    }

    /// Returns the url of a user and a vhost through TLS.
    pub(crate) fn url_through_tls(&self, user: &str, vhost: &str) -> String {
        self.url_through(self.tls_port, user, vhost).replacen("amqp://", "amqps://", 1)
    }

    /// Returns the url of the management API, which the node of all tests has.
    pub(crate) fn management_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.management_port)
    }

    /// The authority of its certificate.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the url of a user and a vhost.
    pub(crate) fn url(&self, user: &str, vhost: &str) -> String {
        format!("amqp://{user}:secret@127.0.0.1:{}/{vhost}", self.port)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The greeting of a server begins with a method, frame type 1.
    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut first = [0];
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        stream.write_all(b"AMQP\0\0\x09\x01").is_ok()
            && stream.read_exact(&mut first).is_ok()
            && first == [1]
            && self.path("pid").exists()
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        self.end("kill\n");
    }
}

/// Returns a port that is free now, below those that Linux gives to connections and to servers that ask for any: a
/// server that takes seconds to start finds it free still.
pub(crate) fn free_port() -> u16 {
    const FIRST: usize = 12_000;
    const NUMBER: usize = 20_000;
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    // Runs of the tests beside each other begin at different places.
    let place = usize::try_from(std::process::id()).unwrap_or(0).wrapping_mul(97);
    let ports = std::iter::repeat_with(|| {
        let number = (place + TAKEN.fetch_add(1, Ordering::Relaxed)) % NUMBER;
        u16::try_from(FIRST + number).expect("below 32 768")
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.take(NUMBER).find(is_free).expect("a free port")
}

/// The vhosts and users of a new node: `hero` may enter each vhost, three users one each.
fn definitions() -> String {
    let numbered = (0..VHOSTS).map(|number| format!("t{number}"));
    let vhosts: Vec<String> =
        numbered.chain(CONFINED.map(str::to_owned)).chain(["/".to_owned()]).collect();
    let user = |name: &str| {
        let algorithm = "rabbit_password_hashing_sha256";
        json!({ "name": name, "password_hash": PASSWORD_HASH, "hashing_algorithm": algorithm,
                "tags": if name == "hero" { "management" } else { "" } })
    };
    let permission = |user: &str, vhost: &str| json!({ "user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*" });
    let users: Vec<_> = CONFINED.iter().copied().chain(["hero"]).map(user).collect();
    let of_hero = vhosts.iter().map(|vhost| permission("hero", vhost));
    let confined = CONFINED.iter().map(|name| permission(name, name));
    json!({
        "vhosts": vhosts.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "users": users,
        "permissions": of_hero.chain(confined).collect::<Vec<_>>(),
    })
    .to_string()
}
