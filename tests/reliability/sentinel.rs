//! Failover: every new connection asks the sentinels for the master.

use std::process::{Child, Stdio};

use hero::config::RedisConfig;
use hero::proto::job::JobStatus;
use hero::store::{Store, StoreError, Submitted};
use tempfile::TempDir;

use crate::support::rabbitmq::free_port;
use crate::support::{RETENTION, job, keys, server, wait_until};

/// A server on a port of this machine, gone with the value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// A redis-server with these further lines of configuration.
    fn start(folder: &TempDir, sentinel: bool, lines: &str) -> Self {
        let port = free_port();
        let dir = folder.path().join(port.to_string());
        std::fs::create_dir(&dir).expect("a folder");
        let config = dir.join("redis.conf");
        let shown = dir.display();
        let own = if sentinel { "" } else { "save \"\"\nrepl-diskless-sync-delay 0\n" };
        let text = format!("port {port}\nbind 127.0.0.1\ndir {shown}\n{own}{lines}\n");
        std::fs::write(&config, text).expect("a configuration");
        let mut command = server();
        command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null());
        if sentinel {
            command.arg("--sentinel");
        }
        let server = Self { process: command.spawn().expect("redis-server is installed"), port };
        wait_until("a server answers", || server.ask::<String>("PING").as_deref() == Some("PONG"));
        server
    }

    fn ask<T: redis::FromRedisValue>(&self, command: &str) -> Option<T> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).ok()?;
        let mut words = command.split(' ');
        let mut asked = redis::cmd(words.next()?);
        for word in words {
            asked.arg(word);
        }
        asked.query(&mut client.get_connection().ok()?).ok()
    }

    fn info(&self, section: &str, line: &str) -> bool {
        let info: Option<String> = self.ask(&format!("INFO {section}"));
        info.is_some_and(|info| info.lines().any(|found| found == line))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn store(url: &str) -> Store {
    let config = RedisConfig { url: url.into(), ..RedisConfig::default() };
    Store::open(&config).expect("settings")
}

#[tokio::test]
async fn after_a_failover_jobs_go_to_the_new_master_and_the_old_one_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = Server::start(&folder, false, "");
    let new = Server::start(&folder, false, &format!("replicaof 127.0.0.1 {}", old.port));
    let watched = format!(
        "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 500\n\
         sentinel failover-timeout main 5000",
        old.port
    );
    let sentinel = Server::start(&folder, true, &watched);
    // It tells an old master of the new one after four periods of two seconds; older servers know no other periods.
    sentinel.ask::<redis::Value>("SENTINEL DEBUG info-period 200 publish-period 200");
    wait_until("the replica is in step", || new.info("replication", "master_link_status:up"));
    wait_until("the sentinel knows the replica", || {
        sentinel.ask::<Vec<redis::Value>>("SENTINEL replicas main").is_some_and(|r| r.len() == 1)
    });
    // The first sentinel is not there, the second answers.
    let url =
        format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{}/main", free_port(), sentinel.port);
    let store = store(&url);
    let accepted = [Submitted::Accepted(JobStatus::Dispatched)];
    let submitted = store.jobs().submit(&[job("before")], true, RETENTION).await;
    assert_eq!(submitted.expect("the master takes it"), accepted);
    let depth = format!("LLEN {}", keys::work("type:osis"));
    assert_eq!(old.ask::<i64>(&depth), Some(1));
    wait_until("the replica has it too", || new.ask(&depth) == Some(1_i64));

    wait_until("the sentinel begins", || {
        sentinel.ask::<String>("SENTINEL failover main").is_some()
    });
    wait_until("the roles have changed", || {
        new.info("replication", "role:master") && old.info("replication", "role:slave")
    });
    // The old connection leads to a replica; it is closed at once.
    let mut refused = 0;
    let submitted = loop {
        match store.jobs().submit(&[job("after")], true, RETENTION).await {
            Ok(submitted) => break submitted,
            Err(error) => {
                refused += 1;
                assert!(error.is_transient() && refused < 1000, "{error}");
                tokio::task::yield_now().await;
            }
        }
    };
    assert_eq!(submitted, accepted);
    assert_eq!(new.ask::<i64>(&depth), Some(2));
}

#[tokio::test]
async fn sentinels_that_are_away_or_know_nothing_are_each_named_with_their_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let sentinel = Server::start(&folder, true, "");
    let away = free_port();
    let url = format!("redis+sentinel://127.0.0.1:{away},127.0.0.1:{}/main", sentinel.port);
    let error = store(&url).ping().await.expect_err("there is no master");
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(&format!("sentinel 127.0.0.1:{away}: ")), "{message}");
    assert!(message.contains("it knows no master main"), "{message}");
}
