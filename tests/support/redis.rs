//! A private redis-server on a unix socket in its own folder; dropping the value ends it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hero::config::RedisConfig;
use hero::proto::job::JobEnd;
use jiff::Timestamp;
use redis::{FromRedisValue, ToRedisArgs};
use tempfile::TempDir;

use super::set_clock::SetClock;
use super::{access_lists, keys, wait_until};

/// The program `redis-server`, or the program that `REDIS_SERVER` names: another version, or Valkey.
#[expect(clippy::disallowed_methods, reason = "tests start the servers they test against")]
pub(crate) fn server() -> Command {
    Command::new(std::env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into()))
}

/// The redis-server of one test.
pub(crate) struct Redis {
    folder: TempDir,
    server: Option<Child>,
    keeps: bool,
    clock: Option<SetClock>,
}

impl Redis {
    /// Starts a server that keeps nothing on disk.
    pub(crate) fn start() -> Self {
        Self::new(false)
    }

    /// Starts a server that keeps on disk all that it has acknowledged.
    pub(crate) fn that_keeps() -> Self {
        Self::new(true)
    }

    /// Starts a server whose clock [`Redis::set_clock`] sets.
    pub(crate) fn with_own_clock() -> Self {
        Self::of_own_clock(false)
    }

    /// The same, on a server that keeps everything.
    pub(crate) fn that_keeps_with_own_clock() -> Self {
        Self::of_own_clock(true)
    }

    fn of_own_clock(keeps: bool) -> Self {
        let mut redis = Self::absent(keeps);
        redis.clock = Some(SetClock::compile(redis.folder()));
        redis.start_again();
        redis
    }

    /// Sets its clock ahead by so many seconds, or back, and waits until its commands have that time.
    #[track_caller]
    pub(crate) fn set_clock(&self, seconds: i64) {
        self.clock.as_ref().expect("it has a clock of its own").set(seconds);
        wait_until("its clock is set", || {
            let (now, _): (i64, u64) = self.ask("TIME");
            (now - jiff::Timestamp::now().as_second() - seconds).abs() <= 2
        });
    }

    fn new(keeps: bool) -> Self {
        let mut redis = Self::absent(keeps);
        redis.start_again();
        redis
    }

    /// Returns a server that does not run yet.
    pub(crate) fn absent(keeps: bool) -> Self {
        let folder = tempfile::Builder::new().prefix("hero-test-").tempdir().expect("a folder");
        Self { folder, server: None, keeps, clock: None }
    }

    /// Starts or restarts it, and waits until it answers.
    pub(crate) fn start_again(&mut self) {
        self.begin_again(&[]);
        wait_until("the private redis-server answers", || {
            let pong = self.connect().and_then(|mut link| redis::cmd("PING").query(&mut link));
            pong.is_ok_and(|pong: String| pong == "PONG")
        });
    }

    /// Starts or restarts it with further settings, and does not wait.
    pub(crate) fn begin_again(&mut self, settings: &[&str]) {
        let log = std::fs::File::create(self.folder.path().join("redis.log")).expect("a log");
        let server = server()
            .args(access_lists::write(self.folder.path()))
            .args(["--port", "0", "--save", "", "--daemonize", "no", "--unixsocket"])
            .arg(self.socket())
            .arg("--dir")
            .arg(self.folder.path())
            .args(["--appendonly", if self.keeps { "yes" } else { "no" }])
            .args(["--appendfsync", "always"])
            .args(settings)
            .envs(self.clock.iter().flat_map(SetClock::variables))
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .expect("redis-server is installed");
        self.server = Some(server);
    }

    /// Ends it at once, as a power failure would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().expect("killing redis-server");
            server.wait().expect("reaping redis-server");
        }
        let _ = std::fs::remove_file(self.socket());
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// Returns its url for the configuration.
    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Returns the settings that connect to it.
    pub(crate) fn config(&self, namespace: &str) -> RedisConfig {
        RedisConfig {
            url: self.url().into(),
            namespace: namespace.parse().expect("a legal namespace"),
            ..RedisConfig::default()
        }
    }

    /// The process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        let info: String = self.ask_with("INFO", &["server"]);
        let pid = info.lines().find_map(|line| line.strip_prefix("process_id:"));
        pid.and_then(|pid| pid.trim().parse().ok()).expect("a process id")
    }

    /// The folder of its socket; tests may put their own files there.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Opens a connection; an error while it is away.
    pub(crate) fn connect(&self) -> redis::RedisResult<redis::Connection> {
        redis::Client::open(format!("unix://{}", self.socket().display()))?.get_connection()
    }

    /// Opens a connection.
    pub(crate) fn link(&self) -> redis::Connection {
        self.connect().expect("the private redis-server answers")
    }

    /// Runs a command whose words are separated by spaces.
    #[track_caller]
    pub(crate) fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        self.ask_with(command, &[] as &[&str])
    }

    /// Runs a command with further arguments of any bytes.
    #[track_caller]
    pub(crate) fn ask_with<T: FromRedisValue, A: ToRedisArgs>(
        &self,
        command: &str,
        rest: &[A],
    ) -> T {
        let mut words = command.split(' ');
        let mut asked = redis::cmd(words.next().unwrap_or_default());
        for word in words {
            asked.arg(word);
        }
        for word in rest {
            asked.arg(word);
        }
        match asked.query(&mut self.link()) {
            Ok(answer) => answer,
            Err(error) => panic!("{command}: {error}"),
        }
    }

    /// Runs a command and ignores its answer.
    #[track_caller]
    pub(crate) fn run(&self, command: &str) {
        self.ask::<redis::Value>(command);
    }

    /// A field of a hash.
    #[track_caller]
    pub(crate) fn field(&self, key: &str, name: &str) -> Option<String> {
        self.ask(&format!("HGET {key} {name}"))
    }

    /// A counter of a script type.
    #[track_caller]
    pub(crate) fn count(&self, script_type: &str, what: &str) -> u64 {
        self.field(&keys::stats(script_type), what).map_or(0, |n| n.parse().expect("a number"))
    }

    /// A list, head first.
    #[track_caller]
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        self.ask(&format!("LRANGE {key} 0 -1"))
    }

    /// Submits a job as a client of the plain protocol does.
    #[track_caller]
    pub(crate) fn push_job(&self, script_type: &str, id: &str, script: &str) {
        self.set_job(id, &format!("id {id} status dispatched"));
        self.set_field(&keys::job(id), "script", script);
        self.push(&keys::work(&format!("type:{script_type}")), &[id]);
    }

    /// Writes fields of a job's hash: names and values, separated by spaces.
    #[track_caller]
    pub(crate) fn set_job(&self, id: &str, fields: &str) {
        self.run(&format!("HSET {} {fields}", keys::job(id)));
    }

    /// Writes a field of a hash, of any bytes.
    #[track_caller]
    pub(crate) fn set_field<A: ToRedisArgs>(&self, key: &str, name: &str, value: A) {
        self.ask_with::<i64, _>(&format!("HSET {key} {name}"), &[value]);
    }

    /// Writes so many jobs `many-N` of type `osis` and caller `shop` that ended so now, were submitted an hour ago and expire
    /// tomorrow. Unless they are `sorted`, as an older version left them: without an index of their end.
    #[track_caller]
    pub(crate) fn has_ended(&self, number: usize, end: JobEnd, sorted: bool) {
        const WRITE: &str = "
            for n = 1, tonumber(ARGV[1]) do
              local id = 'many-' .. n
              redis.call('HSET', ARGV[2] .. id, 'id', id, 'status', ARGV[3], 'script_type', 'osis', 'group', 'nobody',
                'script', '1', 'caller_id', 'shop', 'created_at', ARGV[4], 'finished_at', ARGV[5])
              if ARGV[3] == 'error' then redis.call('HSET', ARGV[2] .. id, 'error', ARGV[7]) end
              redis.call('ZADD', KEYS[1], ARGV[6] + 86400 * 1000000, id)
              if KEYS[2] then redis.call('ZADD', KEYS[2], ARGV[6] + n, id) end
            end";
        let status = if end == JobEnd::Finished { "finished" } else { "error" };
        let error = if end == JobEnd::Cancelled { "stopped" } else { "no luck" };
        let of_state = keys::index(status, "osis");
        let indexes = [of_state, keys::ended(end, "osis")];
        let indexes = if sorted { &indexes[..] } else { &indexes[..1] };
        let now = Timestamp::now();
        let created = (now - Duration::from_hours(1)).to_string();
        let mut words = vec![WRITE.to_owned(), indexes.len().to_string()];
        words.extend_from_slice(indexes);
        let prefix = keys::job("many");
        let prefix = prefix.strip_suffix("many").expect("the key ends with the id");
        words.extend([number.to_string(), prefix.to_owned(), status.to_owned(), created]);
        words.extend([now.to_string(), now.as_microsecond().to_string(), error.to_owned()]);
        self.ask_with::<redis::Value, _>("EVAL", &words);
        self.run(&format!("SADD {} osis", keys::types()));
    }

    /// A string.
    #[track_caller]
    pub(crate) fn get<T: FromRedisValue>(&self, key: &str) -> T {
        self.ask(&format!("GET {key}"))
    }

    /// Puts a string where Hero has a value of another kind.
    #[track_caller]
    pub(crate) fn spoil(&self, key: &str) {
        self.run(&format!("SET {key} text"));
    }

    #[track_caller]
    pub(crate) fn delete(&self, key: &str) {
        self.run(&format!("DEL {key}"));
    }

    /// The seconds until a key expires; negative if it does not.
    #[track_caller]
    pub(crate) fn ttl(&self, key: &str) -> i64 {
        self.ask(&format!("TTL {key}"))
    }

    /// Appends to a list.
    #[track_caller]
    pub(crate) fn push<A: ToRedisArgs>(&self, key: &str, entries: &[A]) {
        self.ask_with::<i64, _>(&format!("RPUSH {key}"), entries);
    }

    /// Puts entries one by one in front of a list.
    #[track_caller]
    pub(crate) fn push_front<A: ToRedisArgs>(&self, key: &str, entries: &[A]) {
        self.ask_with::<i64, _>(&format!("LPUSH {key}"), entries);
    }

    /// Takes the head of a list.
    #[track_caller]
    pub(crate) fn pop(&self, key: &str) -> String {
        self.ask(&format!("LPOP {key}"))
    }

    /// Takes the head of a list as soon as it has one.
    #[track_caller]
    pub(crate) fn awaited(&self, key: &str) -> String {
        let taken: Option<(String, String)> = self.ask(&format!("BLPOP {key} 20"));
        taken.unwrap_or_else(|| panic!("nothing came into {key}")).1
    }

    /// The members of a sorted set, lowest first.
    #[track_caller]
    pub(crate) fn members(&self, key: &str) -> Vec<String> {
        self.ask(&format!("ZRANGE {key} 0 -1"))
    }

    /// The score of a member of a sorted set.
    #[track_caller]
    pub(crate) fn score(&self, key: &str, member: &str) -> Option<f64> {
        self.ask(&format!("ZSCORE {key} {member}"))
    }

    /// Puts a member into a sorted set.
    #[track_caller]
    pub(crate) fn put(&self, key: &str, score: u64, member: &str) {
        self.run(&format!("ZADD {key} {score} {member}"));
    }

    /// Removes a member of a sorted set.
    #[track_caller]
    pub(crate) fn remove(&self, key: &str, member: &str) {
        self.run(&format!("ZREM {key} {member}"));
    }

    /// All keys of a kind; see [`keys::prefix`].
    #[track_caller]
    pub(crate) fn all(&self, kind: &str) -> Vec<String> {
        self.keys(&keys::prefix(kind))
    }

    /// All keys that begin with `prefix`.
    #[track_caller]
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let mut link = self.link();
        let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
        loop {
            let (next, some): (String, Vec<String>) = redis::cmd("SCAN")
                .arg(&cursor)
                .arg("MATCH")
                .arg(format!("{prefix}*"))
                .arg("COUNT")
                .arg(10_000)
                .query(&mut link)
                .expect("a private redis-server can be scanned");
            keys.extend(some);
            if next == "0" {
                keys.sort();
                keys.dedup();
                return keys;
            }
            cursor = next;
        }
    }
}

impl Redis {
    /// The commands and keys that the access lists have refused to a login of the program.
    fn refused(&self) -> redis::RedisResult<Vec<String>> {
        let mut link = self.connect()?;
        // A test may have halted the server.
        link.set_read_timeout(Some(Duration::from_secs(1)))?;
        let entries: Vec<HashMap<String, redis::Value>> =
            redis::cmd("ACL").arg("LOG").query(&mut link)?;
        let field = |entry: &HashMap<String, redis::Value>, name: &str| {
            let value = entry.get(name).map(redis::from_redis_value_ref::<String>);
            value.and_then(Result::ok).unwrap_or_default()
        };
        let shown = entries
            .iter()
            .map(|entry| ["username", "reason", "object"].map(|name| field(entry, name)).join(" "));
        Ok(shown.filter(|shown| shown.starts_with("hero-")).collect())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if self.server.is_some() && !std::thread::panicking() {
            let refused = self.refused().unwrap_or_default();
            assert!(refused.is_empty(), "the shipped access lists refuse: {refused:#?}");
        }
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
