//! Prometheus itself: it scrapes a supervisor, and the file of `hero metrics` through `node_exporter`.
//! Each alert of the package fires for a fault that is made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Hero, Redis, Served, keys, needs, wait_until};

const TREE: &str = env!("CARGO_MANIFEST_DIR");
const RULES: &str = include_str!("../../../packaging/prometheus/hero.rules.yml");
const DASHBOARD: &str = include_str!("../../../packaging/grafana/hero.json");

/// The durations of the rules, with the shorter ones of these tests.
const DURATIONS: [(&str, &str); 6] = [
    ("for: 2m", "for: 1s"),
    ("for: 5m", "for: 1s"),
    ("for: 10m", "for: 1s"),
    ("[15m]", "[1m]"),
    ("[1h]", "[1m]"),
    ("hero.prom\"} > 600", "hero.prom\"} > 5"),
];

/// A server that ends with the test.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts a program of Debian's packages, which logs the port that it got.
    #[expect(clippy::disallowed_methods, reason = "tests start the servers they test against")]
    fn start(program: &str, args: &[String], log: &Path) -> Self {
        let child = Command::new(found(program))
            .args(args)
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log).expect("a file"))
            .spawn()
            .expect("it is installed");
        let port = || {
            let text = fs::read_to_string(log).ok()?;
            let line = text.lines().find(|line| line.contains("\"Listening on\""))?;
            line.rsplit(':').next()?.parse().ok()
        };
        let mut server = Self { child, port: 0 };
        wait_until(&format!("{program} listens"), || {
            port().is_some_and(|port| {
                server.port = port;
                true
            })
        });
        server
    }

    /// Asks the API of Prometheus. Returns the `data` of the answer.
    #[track_caller]
    fn ask(&self, path: &str) -> Value {
        let mut link = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        // HTTP/1.0, so that the answer is not chunked.
        write!(link, "GET /api/v1/{path} HTTP/1.0\r\n\r\n").expect("sent");
        let mut text = String::new();
        link.read_to_string(&mut text).expect("an answer");
        let body = text.split_once("\r\n\r\n").expect("a head").1;
        let mut answer: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        // It refuses until it has read its files.
        answer["data"].take()
    }

    /// Returns the series of a query.
    #[track_caller]
    pub(crate) fn query(&self, query: &str) -> Vec<Value> {
        let encoded = query.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "%{byte:02x}");
            text
        });
        let mut data = self.ask(&format!("query?query={encoded}"));
        match data["result"].take() {
            Value::Array(series) => series,
            _ => Vec::new(),
        }
    }

    /// Waits until an alert fires that has this label.
    #[track_caller]
    pub(crate) fn until_alert(&self, name: &str, (label, value): (&str, &str)) {
        wait_until(&format!("{name} fires for {label} {value}"), || {
            self.fires(name, (label, value))
        });
    }

    /// Returns whether an alert fires that has this label.
    pub(crate) fn fires(&self, name: &str, (label, value): (&str, &str)) -> bool {
        let query =
            format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\",{label}=~\"{value}\"}}");
        !self.query(&query).is_empty()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of a program: `make deps-test` unpacks it where the machine has none.
fn found(program: &str) -> PathBuf {
    let unpacked = Path::new(TREE).join("target/tools/usr/bin").join(program);
    if unpacked.exists() { unpacked } else { program.into() }
}

#[expect(clippy::disallowed_methods, reason = "tests start the servers they test against")]
fn is_installed(program: &str) -> bool {
    let mut command = Command::new(found(program));
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns true if the machine has Prometheus; else the test is skipped and counted.
pub(crate) fn has_prometheus() -> bool {
    let programs = ["prometheus", "prometheus-node-exporter"];
    needs("prometheus", || programs.into_iter().all(is_installed))
}

/// Returns the rules with shorter durations, and nothing else changed.
fn quick_rules() -> String {
    DURATIONS.iter().fold(RULES.to_owned(), |rules, (long, short)| {
        assert!(rules.contains(long), "no rule has {long}");
        rules.replace(long, short)
    })
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| word.starts_with("hero_")).collect()
}

/// A Prometheus with the rules of the package. It scrapes a supervisor with a token, and a
/// `node_exporter` with a folder for text files.
pub(crate) struct Monitoring {
    pub(crate) prometheus: Server,
    _node_exporter: Server,
    /// The file that `hero metrics` fills.
    file: PathBuf,
}

impl Monitoring {
    pub(crate) fn of(api: &Served, folder: &Path) -> Self {
        let token = api.hero.run(&["token", "new", "prometheus", "--scope", "read"]).code(0).stdout;
        let (files, rules) = (folder.join("textfiles"), folder.join("hero.rules.yml"));
        fs::create_dir(&files).expect("a folder");
        fs::write(&rules, quick_rules()).expect("a file");
        fs::write(folder.join("hero.token"), token.trim_end()).expect("a file");
        let collector = format!("--collector.textfile.directory={}", files.display());
        let args = ["--collector.disable-defaults", "--collector.textfile", &collector];
        let args = args.map(str::to_owned);
        let node_exporter =
            Server::start("prometheus-node-exporter", &args, &folder.join("node_exporter.log"));
        let config = folder.join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms }}\n\
             rule_files: [hero.rules.yml]\n\
             scrape_configs:\n\
             - job_name: hero\n  \
               authorization: {{ credentials_file: hero.token }}\n  \
               static_configs: [{{ targets: ['127.0.0.1:{}'] }}]\n\
             - job_name: node\n  \
               static_configs: [{{ targets: ['127.0.0.1:{}'] }}]\n",
            api.port, node_exporter.port
        );
        fs::write(&config, text).expect("a file");
        let args = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.join("prometheus").display()),
        ];
        let prometheus = Server::start("prometheus", &args, &folder.join("prometheus.log"));
        Self { prometheus, _node_exporter: node_exporter, file: files.join("hero.prom") }
    }

    /// Does what the timer of docs/monitoring.md does.
    fn write_file(&self, hero: &Hero) {
        let new = self.file.with_extension("prom.new");
        fs::write(&new, hero.run(&["metrics"]).code(0).stdout).expect("a file");
        fs::rename(&new, &self.file).expect("the same folder");
    }
}

/// Submits jobs that are alike.
fn submit(hero: &Hero, number: usize, script_type: &str, script: &str) {
    for _ in 0..number {
        hero.run(&["submit", "-t", script_type, "-e", script]).code(0);
    }
}

/// Fills Redis up to 97 % of its `maxmemory`, until the alert fires.
fn fill_redis(redis: &Redis, prometheus: &Server) {
    // The buffers of its connections grow and shrink.
    let fill = || {
        let memory: String = redis.ask("INFO memory");
        let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:"));
        let used: u64 = used.and_then(|used| used.trim().parse().ok()).expect("a number");
        redis.run(&format!("CONFIG SET maxmemory {}", used / 97 * 100));
    };
    wait_until("HeroRedisNearlyFull fires", || {
        fill();
        prometheus.fires("HeroRedisNearlyFull", ("severity", "critical"))
    });
    redis.run("CONFIG SET maxmemory 0");
}

/// Lets Redis refuse writes until the alert fires.
fn refuse_writes(redis: &Redis, prometheus: &Server) {
    redis.run("CONFIG SET min-replicas-to-write 1");
    prometheus.until_alert("HeroRedisRefusesWrites", ("kind", "redis_refuses_writes"));
    prometheus.until_alert("HeroCritical", ("severity", "critical"));
    redis.run("CONFIG SET min-replicas-to-write 0");
}

#[test]
fn every_alert_fires_for_its_fault_in_a_real_prometheus() {
    if !has_prometheus() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("job.retries", "0")
        .set("actor.lease", "\"2s\"")
        .set("check.wait_warning", "\"2s\"");
    let tables =
        "[type.osis]\ndead_letters = \"all\"\n[notify.ops]\nwebhook = \"http://127.0.0.1:1/\"\n";
    let api = Served::with(hero.add(tables), &redis);
    let monitoring = Monitoring::of(&api, redis.folder());
    let prometheus = &monitoring.prometheus;
    let has = |query: &str| !prometheus.query(query).is_empty();
    wait_until("both targets are up", || {
        has("up{job=\"hero\"} == 1") && has("up{job=\"node\"} == 1")
    });
    // OpenMetrics names a family without the `_total` of its samples.
    let asked = "targets/metadata?match_target={job=\"hero\"}&metric=hero_jobs_finished";
    let asked = asked.replace('{', "%7b").replace('}', "%7d").replace('"', "%22");
    wait_until("OpenMetrics is scraped", || {
        prometheus.ask(&asked).as_array().is_some_and(|found| !found.is_empty())
    });

    // Nothing is wrong but that the Redis of the test keeps nothing on disk.
    wait_until("one alert fires", || {
        let firing = prometheus.query("ALERTS{alertstate=\"firing\"}");
        firing.len() == 1 && firing[0]["metric"]["alertname"] == "HeroRedisForgets"
    });

    let strained = Hero::on(&redis).set("actor.memory_min", "\"1000000GiB\"");
    let _strained = strained.actor("sal-default-1").start();
    let _osis = api.hero.actor("osis-default-1").start();
    let mut bash = api.hero.actor("bash-default-1").tasks(12).start();
    submit(&api.hero, 13, "bash", "sleep 1000");
    submit(&api.hero, 1, "python", "1");
    submit(&api.hero, 3, "osis", "throw \"no\"");
    prometheus.until_alert("HeroQueueWithoutActor", ("type", "python"));
    prometheus.until_alert("HeroJobsWaitLong", ("type", "bash"));
    // An actor dies with its jobs. Its presence ends meanwhile.
    wait_until("all its tasks are busy", || redis.count("bash", "started") == 12);
    bash.kill();
    prometheus.until_alert("HeroJobsFail", ("type", "osis"));
    prometheus.until_alert("HeroDeadLetters", ("type", "osis"));
    prometheus.until_alert("HeroActorsHold", ("type", "sal"));
    prometheus.until_alert("HeroNotificationFails", ("name", "ops"));
    // It was first seen three days ago, and has not run since.
    let daily = ["cron", "add", "backup", "--schedule", "@daily", "-t", "osis", "-e", "1"];
    api.hero.run(&daily).code(0);
    let noted = format!("{}backup", keys::prefix("CRON_ENDED"));
    wait_until("a supervisor has seen it", || redis.field(&noted, "since_us").is_some());
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(72);
    redis.set_field(&noted, "since_us", then.as_microsecond());
    prometheus.until_alert("HeroCronOverdue", ("name", "backup"));
    api.hero.run(&["cron", "run", "backup"]).code(0);
    wait_until("it has succeeded", || has("hero_cron_last_success_timestamp_seconds"));
    refuse_writes(&redis, prometheus);
    fill_redis(&redis, prometheus);
    every_query_of_the_package_has_series(prometheus);

    prometheus.until_alert("HeroJobsRecovered", ("type", "bash"));
    prometheus.until_alert("HeroQueueWithoutActor", ("type", "bash"));

    // The only supervisor ends; the file tells it, until nothing writes it any more.
    let Served { hero, supervisor, .. } = api;
    supervisor.signal(Signal::SIGTERM);
    supervisor.ends().code(0);
    wait_until("the target is down", || has("up{job=\"hero\"} == 0"));
    wait_until("HeroNoSupervisor fires", || {
        monitoring.write_file(&hero);
        has("ALERTS{alertname=\"HeroNoSupervisor\",alertstate=\"firing\"}")
    });
    prometheus.until_alert("HeroMetricsStale", ("file", ".*/hero.prom"));
    fs::remove_file(&monitoring.file).expect("it was written");
    wait_until("nobody serves metrics", || !has("hero_build_info"));
    prometheus.until_alert("HeroMetricsStale", ("file", ""));
}

/// Prometheus has series for each metric of the rules and of the dashboard, and can run the queries
/// of the dashboard.
fn every_query_of_the_package_has_series(prometheus: &Server) {
    let known = prometheus.ask("label/__name__/values");
    let known: BTreeSet<&str> =
        known.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    // Metrics of brokers exist where one has run.
    let of_brokers = |name: &&&str| name.starts_with("hero_amqp_");
    for name in names(RULES).union(&names(DASHBOARD)).filter(|name| !of_brokers(name)) {
        assert!(known.contains(name), "{name} is scraped from nowhere: {known:?}");
    }
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<&str> = targets.filter_map(|target| target["expr"].as_str()).collect();
    assert!(queries.len() > 10, "{queries:?}");
    for query in queries {
        // The maxmemory of Redis has no limit any more.
        let is_empty = prometheus.query(query).is_empty();
        assert!(!is_empty || query.contains("max_bytes) > 0"), "{query} has no series");
    }
}
