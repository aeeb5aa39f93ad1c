//! A private MariaDB on a unix socket in a folder of its own, and on a port with TLS: one per run of the
//! tests, one database per test.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hero::config::RelationalConfig;

use super::{Authority, needs, wait_until};

/// Debian's programs.
const SERVER: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";
const CLIENT: &str = "/usr/bin/mariadb";
/// The user of the tests. It may do everything in the databases of the tests.
const USER: &str = "hero";
const PASSWORD: &str = "hunter2'`";

/// Runs the server until standard input ends, and then removes its folder. Standard input ends when the
/// process of the tests has ended, also if it was killed.
const RUN: &str = r#"
folder=$1; shift
"$@" < /dev/null > "$folder/log" 2>&1 &
server=$!
read -r _
kill -KILL $server
wait $server 2> /dev/null
rm -rf "$folder"
"#;

/// The server of this run.
struct Server {
    folder: PathBuf,
    port: u16,
    authority: Authority,
    /// Its standard input ends with this process.
    _shell: Child,
}

/// One database.
pub(crate) struct MariaDb {
    server: &'static Server,
    name: String,
}

/// Returns whether the running test has MariaDB.
pub(crate) fn needs_mariadb() -> bool {
    needs("mariadb", || [SERVER, INSTALL, CLIENT].iter().all(|file| Path::new(file).exists()))
}

impl MariaDb {
    /// Creates an empty database, and starts the server if it does not run yet.
    pub(crate) fn create() -> Self {
        static SERVER_OF_RUN: OnceLock<Server> = OnceLock::new();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let server = SERVER_OF_RUN.get_or_init(Server::start);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let database = Self { server, name };
        server.run("", &format!("CREATE DATABASE {}", database.name));
        database
    }

    /// Runs statements, and returns what they print: a line per row, columns between tabs.
    #[track_caller]
    pub(crate) fn run(&self, sql: &str) -> String {
        self.server.run(&self.name, sql)
    }

    /// The socket of the server.
    pub(crate) fn socket(&self) -> PathBuf {
        self.server.socket()
    }

    /// The url of the database through a socket.
    pub(crate) fn url_through(&self, socket: &Path) -> String {
        format!("mysql+unix://{USER}@{}?db={}", socket.display(), self.name)
    }

    /// The url of the database.
    pub(crate) fn url(&self) -> String {
        self.url_through(&self.socket())
    }

    /// The url of the database through TLS. Without TLS its user is refused there.
    pub(crate) fn url_through_tls(&self) -> String {
        format!("mysqls://{USER}@127.0.0.1:{}/{}", self.server.port, self.name)
    }

    /// The authority of the server's certificate.
    pub(crate) fn authority(&self) -> &Authority {
        &self.server.authority
    }

    /// The file with the password of the url's user.
    pub(crate) fn password_file(&self) -> PathBuf {
        self.server.folder.join("password")
    }

    /// The settings that connect to it, with tables in TOML: `[NAME]` of each.
    pub(crate) fn config(&self, tables: &str) -> RelationalConfig {
        RelationalConfig {
            url: self.url().into(),
            password_file: Some(self.password_file()),
            tables: toml::from_str(tables).expect("legal tables"),
            ..RelationalConfig::default()
        }
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "tests start the servers they test against")]
    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("hero-mariadb-").tempdir().expect("a folder");
        // The shell that ends the server removes it.
        let folder = folder.keep();
        let data = folder.join("data");
        let user = format!("--user={}", whoami());
        let installed = Command::new(INSTALL)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(["--skip-name-resolve", "--innodb-log-file-size=4M"])
            .arg(&user)
            .arg(format!("--datadir={}", data.display()))
            .stdin(Stdio::null())
            .output()
            .expect("mariadb-install-db runs");
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let authority = Authority::new(&folder, "tls");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let tls = ["ca", "cert", "key"]
            .map(|name| format!("--ssl-{name}={}", authority.file(&format!("{name}.pem"))));
        let shell = Command::new("/bin/sh")
            .args(["-c", RUN, "sh"])
            .arg(&folder)
            .args([SERVER, "--no-defaults", "--skip-name-resolve", "--skip-log-bin"])
            .args(["--bind-address=127.0.0.1", &format!("--port={port}")])
            .args(tls)
            .args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=4M"])
            .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-use-native-aio=0"])
            .args(["--performance-schema=OFF", "--character-set-server=utf8mb4"])
            .arg(&user)
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", folder.join("socket").display()))
            .arg(format!("--pid-file={}", folder.join("pid").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell runs");
        let server = Self { folder, port, authority, _shell: shell };
        wait_until("the private MariaDB answers", || server.ask("", "SELECT 1").is_ok());
        // Nobody enters by the port without a password.
        server.run("", "DROP USER IF EXISTS root@'127.0.0.1', root@'::1'");
        let file = server.folder.join("password");
        std::fs::write(file, PASSWORD).expect("a file");
        let password = PASSWORD.replace('\'', "''");
        server.run("", &format!("CREATE USER {USER}@localhost IDENTIFIED BY '{password}'"));
        server.run(
            "",
            &format!("CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{password}' REQUIRE SSL"),
        );
        for host in ["localhost", "'127.0.0.1'"] {
            server.run("", &format!("GRANT ALL ON `test\\_%`.* TO {USER}@{host}"));
        }
        server
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    #[track_caller]
    fn run(&self, database: &str, sql: &str) -> String {
        self.ask(database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements as the user root of the server.
    #[expect(clippy::disallowed_methods, reason = "the client of the database")]
    fn ask(&self, database: &str, sql: &str) -> Result<String, String> {
        let asked = Command::new(CLIENT)
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"])
            .arg(format!("--socket={}", self.socket().display()))
            .args(["--execute", sql, database])
            .stdin(Stdio::null())
            .output()
            .expect("the client of MariaDB runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if asked.status.success() { Ok(text(&asked.stdout)) } else { Err(text(&asked.stderr)) }
    }
}

fn whoami() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective());
    user.ok().flatten().map_or("root".to_owned(), |user| user.name)
}
