//! A private Redis Cluster of three masters, each with a replica, on ports of this machine; dropping the
//! value ends it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use hero::config::RedisConfig;
use redis::FromRedisValue;
use tempfile::TempDir;

use super::server;
use super::wait_until;

/// The namespace of the tests, whose keys share one slot.
pub(crate) const NAMESPACE: &str = "{hero}";
const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS;
const SLOTS: usize = 16384;

/// The cluster of one test.
pub(crate) struct Cluster {
    folder: TempDir,
    nodes: Vec<Node>,
}

/// One server of it.
struct Node {
    process: Option<Child>,
    port: u16,
    bus: u16,
    id: String,
}

impl Cluster {
    /// Starts one, and waits until all its nodes know it.
    pub(crate) fn start() -> Self {
        let mut cluster = Self::absent();
        cluster.nodes.iter_mut().for_each(|node| node.start(cluster.folder.path()));
        let cluster = cluster;
        for (place, node) in cluster.nodes.iter().enumerate() {
            wait_until("a node answers", || node.ask::<String>("PING").is_some());
            node.run(&format!("CLUSTER SET-CONFIG-EPOCH {}", place + 1));
            if place < MASTERS {
                let (first, end) = (SLOTS * place / MASTERS, SLOTS * (place + 1) / MASTERS);
                node.run(&format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1));
            }
            if place > 0 {
                cluster.nodes[0].run(&format!("CLUSTER MEET 127.0.0.1 {} {}", node.port, node.bus));
            }
        }
        let knows = |node: &Node, line: &str| {
            node.ask::<String>("CLUSTER INFO").is_some_and(|info| info.contains(line))
        };
        wait_until("all nodes know each other", || {
            cluster.nodes.iter().all(|node| knows(node, &format!("cluster_known_nodes:{NODES}")))
        });
        let mut cluster = cluster;
        for node in &mut cluster.nodes {
            node.id = node.ask("CLUSTER MYID").expect("a node has an id");
        }
        for (master, replica) in cluster.nodes.iter().zip(&cluster.nodes[MASTERS..]) {
            wait_until("a replica knows its master", || {
                replica.ask::<String>(&format!("CLUSTER REPLICATE {}", master.id)).is_some()
            });
        }
        wait_until("the cluster serves", || {
            cluster.nodes.iter().all(|node| knows(node, "cluster_state:ok"))
        });
        cluster.wait_for_replicas();
        cluster
    }

    /// One whose nodes do not run yet.
    fn absent() -> Self {
        let folder = tempfile::Builder::new().prefix("hero-test-").tempdir().expect("a folder");
        // All ports at once, so that each is another. The kernel gives those above to outgoing
        // connections, perhaps while a node is away.
        let listeners: Vec<TcpListener> = std::iter::repeat_with(|| fastrand::u16(10_000..32_000))
            .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .take(2 * NODES)
            .collect();
        let port = |place: usize| listeners[place].local_addr().expect("an address").port();
        let nodes = (0..NODES)
            .map(|place| Node {
                process: None,
                port: port(place),
                bus: port(NODES + place),
                id: String::new(),
            })
            .collect();
        Self { folder, nodes }
    }

    /// Waits until every master has a replica that is in step.
    pub(crate) fn wait_for_replicas(&self) {
        wait_until("all replicas are in step", || {
            self.nodes.iter().all(|node| {
                let info: Option<String> = node.ask("INFO replication");
                info.is_some_and(|info| {
                    info.contains("role:master") || info.contains("master_link_status:up")
                })
            }) && self.masters().len() == MASTERS
        });
    }

    /// The nodes that run and are masters with slots.
    fn masters(&self) -> Vec<usize> {
        let has_slots = |node: &Node| {
            let nodes: Option<String> = node.ask("CLUSTER NODES");
            // The ninth word and those after it are its slots.
            let own =
                |line: &str| line.contains("myself,master") && line.split_whitespace().count() > 8;
            nodes.is_some_and(|nodes| nodes.lines().any(own))
        };
        (0..NODES).filter(|at| has_slots(&self.nodes[*at])).collect()
    }

    /// The folder of its nodes; tests may put their own files there.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its url, with these nodes.
    pub(crate) fn url_of(&self, nodes: &[usize]) -> String {
        let nodes: Vec<String> =
            nodes.iter().map(|at| format!("127.0.0.1:{}", self.nodes[*at].port)).collect();
        format!("redis+cluster://{}/", nodes.join(","))
    }

    /// Its url, with two nodes: at least one runs, mostly not the owner.
    pub(crate) fn url(&self) -> String {
        self.url_of(&[1, 2, 4])
    }

    /// The settings that connect to it.
    pub(crate) fn config(&self) -> RedisConfig {
        RedisConfig {
            url: self.url().into(),
            namespace: NAMESPACE.parse().expect("a legal namespace"),
            ..RedisConfig::default()
        }
    }

    fn slot(&self) -> i64 {
        let slot = format!("CLUSTER KEYSLOT {NAMESPACE}");
        self.nodes.iter().find_map(|node| node.ask(&slot)).expect("a node runs")
    }

    /// The node that has the slot of the namespace; `None` while there is none.
    pub(crate) fn owner(&self) -> Option<usize> {
        self.owner_of(NAMESPACE)
    }

    /// The same for another namespace.
    pub(crate) fn owner_of(&self, namespace: &str) -> Option<usize> {
        let probe = format!("EXISTS {namespace}:none");
        (0..NODES).find(|at| self.nodes[*at].ask::<i64>(&probe).is_some())
    }

    /// The same, as soon as there is one.
    pub(crate) fn awaited_owner(&self) -> usize {
        let mut owner = None;
        wait_until("a node has the slot", || {
            owner = self.owner();
            owner.is_some()
        });
        owner.expect("just seen")
    }

    /// A master with slots that has not this one.
    pub(crate) fn another_master(&self, than: usize) -> usize {
        self.masters().into_iter().find(|at| *at != than).expect("three masters")
    }

    /// Runs a command on a node whose words are separated by spaces; `None` if it fails.
    pub(crate) fn ask<T: FromRedisValue>(&self, node: usize, command: &str) -> Option<T> {
        self.nodes[node].ask(command)
    }

    /// Runs a command on the owner.
    #[track_caller]
    pub(crate) fn ask_owner<T: FromRedisValue>(&self, command: &str) -> T {
        let mut answer = None;
        wait_until(command, || {
            answer = self.owner().and_then(|owner| self.ask(owner, command));
            answer.is_some()
        });
        answer.expect("just answered")
    }

    /// Sets the rules of a user on all nodes.
    pub(crate) fn set_user(&self, user: &str, rules: &[String]) {
        for node in &self.nodes {
            let mut command = redis::cmd("ACL");
            command.arg("SETUSER").arg(user).arg(rules);
            command.query::<()>(&mut node.link().expect("a node answers")).expect("legal rules");
        }
    }

    /// Returns what its nodes have denied.
    pub(crate) fn denied(&self) -> Vec<redis::Value> {
        let logs = self.nodes.iter().map(|node| node.ask::<Vec<redis::Value>>("ACL LOG"));
        logs.flat_map(|log| log.expect("a node answers")).collect()
    }

    /// Ends a node at once.
    pub(crate) fn kill(&mut self, node: usize) {
        if let Some(mut process) = self.nodes[node].process.take() {
            process.kill().expect("killing redis-server");
            process.wait().expect("reaping redis-server");
        }
    }

    /// Starts a node again.
    pub(crate) fn start_again(&mut self, node: usize) {
        self.nodes[node].start(self.folder.path());
    }

    /// Kills the owner when its replica has all that it acknowledged. Returns which it was.
    pub(crate) fn kill_owner_in_step(&mut self) -> usize {
        self.wait_for_replicas();
        let owner = self.awaited_owner();
        self.nodes[owner].run("CLIENT PAUSE 20000 WRITE");
        let replica = self.replica_of(owner);
        let number = |node: usize, name: &str| {
            let info: String = self.ask(node, "INFO replication")?;
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        };
        wait_until("the replica has all", || {
            let offset = number(owner, "master_repl_offset:");
            offset.is_some() && offset == number(replica, "slave_repl_offset:")
        });
        self.kill(owner);
        owner
    }

    /// Lets the replica of the owner take over in step with it.
    pub(crate) fn hand_over(&self) {
        self.wait_for_replicas();
        let owner = self.awaited_owner();
        let replica = self.replica_of(owner);
        // Redis gives up after five seconds if the masters do not vote, as they do for one failover at a time.
        let (gives_up, mut asked) = (Duration::from_secs(6), None::<Instant>);
        wait_until("the replica has taken over", || {
            if asked.is_none_or(|at| at.elapsed() > gives_up) {
                let _: Option<String> = self.ask(replica, "CLUSTER FAILOVER");
                asked = Some(Instant::now());
            }
            self.owner() == Some(replica)
        });
    }

    fn replica_of(&self, master: usize) -> usize {
        let id = &self.nodes[master].id;
        let mut replica = None;
        wait_until("the master has a replica", || {
            let answer: Option<Vec<String>> = self.ask(master, &format!("CLUSTER REPLICAS {id}"));
            let ids: Vec<String> = answer.unwrap_or_default();
            replica = (0..NODES).find(|at| {
                self.nodes[*at].process.is_some()
                    && ids.iter().any(|line| line.starts_with(&self.nodes[*at].id))
            });
            replica.is_some()
        });
        replica.expect("just found")
    }

    /// Moves the slot of the namespace to another master, as `redis-cli --cluster reshard` does.
    pub(crate) fn move_slot(&self) {
        let (from, to) = self.begin_move();
        while self.move_keys(from, to, 10) > 0 {}
        self.end_move(from, to);
    }

    /// Begins to move it; returns from where to where.
    pub(crate) fn begin_move(&self) -> (usize, usize) {
        let from = self.awaited_owner();
        let (to, slot) = (self.another_master(from), self.slot());
        self.nodes[to].run(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", self.nodes[from].id));
        self.nodes[from].run(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", self.nodes[to].id));
        (from, to)
    }

    /// Moves some keys; returns how many there were.
    pub(crate) fn move_keys(&self, from: usize, to: usize, number: usize) -> usize {
        let slot = self.slot();
        let keys: Vec<String> = self
            .ask(from, &format!("CLUSTER GETKEYSINSLOT {slot} {number}"))
            .expect("the source answers");
        if keys.is_empty() {
            return 0;
        }
        let mut command = redis::cmd("MIGRATE");
        command.arg("127.0.0.1").arg(self.nodes[to].port).arg("").arg(0).arg(10_000);
        command.arg("KEYS").arg(&keys);
        let mut link = self.nodes[from].link().expect("the source answers");
        // A master may learn later than others that a node which died is back.
        wait_until("the target takes keys", || match command.query::<String>(&mut link) {
            Ok(_) => true,
            Err(error) if error.to_string().contains("CLUSTERDOWN") => false,
            Err(error) => panic!("keys do not move: {error}"),
        });
        keys.len()
    }

    /// Gives the slot to its new owner.
    pub(crate) fn end_move(&self, from: usize, to: usize) {
        let slot = self.slot();
        let node = format!("CLUSTER SETSLOT {slot} NODE {}", self.nodes[to].id);
        for at in [to, from] {
            self.nodes[at].run(&node);
        }
        wait_until("the slot has moved", || self.owner() == Some(to));
    }
}

impl Node {
    fn start(&mut self, folder: &Path) {
        let folder = folder.join(format!("node-{}", self.port));
        std::fs::create_dir_all(&folder).expect("a folder");
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
        let settings = [
            ("port", self.port.to_string()),
            ("cluster-port", self.bus.to_string()),
            ("bind", "127.0.0.1".to_owned()),
            ("dir", folder.display().to_string()),
            ("cluster-enabled", "yes".to_owned()),
            // Twelve processes share the cores of the tests; a quick verdict would be a wrong one.
            ("cluster-node-timeout", "2000".to_owned()),
            ("cluster-replica-validity-factor", "0".to_owned()),
            ("repl-diskless-sync-delay", "0".to_owned()),
            ("repl-ping-replica-period", "1".to_owned()),
            ("appendonly", "yes".to_owned()),
            ("save", String::new()),
        ];
        let mut command = server();
        for (name, value) in settings {
            command.arg(format!("--{name}")).arg(value);
        }
        let process = command.stdin(Stdio::null()).stdout(log.expect("a log")).spawn();
        self.process = Some(process.expect("redis-server is installed"));
    }

    fn link(&self) -> Option<redis::Connection> {
        self.process.as_ref()?;
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).ok()?;
        client.get_connection().ok()
    }

    fn ask<T: FromRedisValue>(&self, command: &str) -> Option<T> {
        let mut words = command.split(' ');
        let mut asked = redis::cmd(words.next()?);
        for word in words {
            asked.arg(word);
        }
        asked.query(&mut self.link()?).ok()
    }

    #[track_caller]
    fn run(&self, command: &str) {
        assert!(self.ask::<redis::Value>(command).is_some(), "{command} failed");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut process) = node.process.take() {
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }
}
