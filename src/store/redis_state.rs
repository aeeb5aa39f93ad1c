//! The state of Redis: its memory, its role, and what of the accepted jobs it keeps.

use redis::Value;

use super::text::read;
use super::write_trial::WriteTrial;
use super::{RedisStore, Result, StoreError};
use crate::proto::text::counted;
use crate::proto::units::readable_size;

/// The only eviction policy that evicts nothing.
const SAFE_POLICY: &str = "noeviction";

/// The role of a replica in INFO.
const REPLICA: &str = "slave";

/// The commands that make a running Redis durable.
const REMEDY: &str = "run: redis-cli CONFIG SET appendonly yes, redis-cli CONFIG SET appendfsync \
                      everysec, redis-cli CONFIG REWRITE";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterPlace {
    #[default]
    None,
    /// It is a node, and the configuration names the cluster: a failing node is left for another.
    Followed,
    /// It is a node that the configuration names alone.
    Alone,
}

/// A reason why accepted jobs can be lost or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisRisk {
    pub kind: RiskKind,
    /// The risk: a sentence without its subject.
    pub text: String,
    pub remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RiskKind {
    /// Redis may lose accepted jobs.
    Forgets,
    CannotAppend,
    CannotSave,
    RefusesWrites,
    /// It is a node of a cluster that is named alone.
    NamedAlone,
}

/// The state of Redis, as far as its user may read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisState {
    /// Its version; of another server the version of Redis that it stands for.
    pub version: Option<String>,
    /// The random id of its process, which tells servers behind one address apart.
    pub run_id: Option<String>,
    /// The name and version of a server that is not Redis, such as `valkey 8.0.1`.
    pub other_server: Option<String>,
    pub cluster: ClusterPlace,
    /// Its user. Read only for a person who asks.
    pub user: Option<String>,
    /// `master` or `slave`.
    pub role: Option<String>,
    pub replicas: u64,
    pub memory_used_bytes: u64,
    /// Its `maxmemory` in bytes; 0 for no limit.
    pub memory_max_bytes: u64,
    /// Its `maxmemory-policy`.
    pub eviction_policy: Option<String>,
    /// True if it appends every write to a file.
    pub appends: Option<bool>,
    /// True if the last write to that file failed.
    pub append_failed: bool,
    /// Its `appendfsync`. A user of its access control list cannot read it.
    pub fsync: Option<String>,
    /// Its `save`: pairs of seconds and changes. A user of its access control list cannot read it.
    pub save_points: Option<String>,
    pub save_failed: bool,
    /// The replicas that count for its `min-replicas-to-write`. `None` without that setting.
    pub good_replicas: Option<u64>,
    pub write_trial: WriteTrial,
}

impl RedisStore<'_> {
    /// Reads the state of Redis. An ACL that forbids CONFIG often allows INFO, and Redis logs what it
    /// forbids; so `asks_config` is for the default user and for a person who asks.
    ///
    /// # Errors
    /// [`StoreError`]; without the right to INFO, everything is unknown and this is no error.
    pub async fn state(self, asks_config: bool) -> Result<RedisState> {
        const DOING: &str = "asking redis for its state";
        let info: String = match self.store.link.query(DOING, &redis::cmd("INFO")).await {
            Ok(info) => info,
            Err(StoreError::NotPermitted { reason, .. }) if reason.contains("NOPERM") => {
                return Ok(RedisState::default());
            }
            Err(error) => return Err(error),
        };
        // Until then it reports the settings that it will have as others.
        if let Some(reason) = loading(&info) {
            return Err(StoreError::not_serving(&self.store.address(), reason));
        }
        let mut state = RedisState::read(&info);
        if self.store.link.server.way().cluster().is_some() {
            state.cluster = ClusterPlace::Followed;
        }
        if asks_config {
            state.user = match self.store.link.command(DOING, "ACL", "WHOAMI").await {
                Ok(user) => Some(user),
                Err(error) if error.is_outage() => return Err(error),
                Err(_) => None,
            };
        }
        if asks_config || self.store.link.server.way().is_default_user {
            let mut pipeline = redis::pipe();
            pipeline.ignore_errors();
            for name in ["appendfsync", "save"] {
                pipeline.cmd("CONFIG").arg("GET").arg(name);
            }
            let mut values =
                self.store.link.pipeline::<Vec<Value>>(DOING, &pipeline).await?.into_iter();
            let mut value = || read::<(String, String)>(values.next()?).map(|(_, value)| value);
            (state.fsync, state.save_points) = (value(), value());
        }
        if state.may_refuse_writes() {
            match self.try_write(DOING).await? {
                WriteTrial::Unknown => {}
                known => state.write_trial = known,
            }
        }
        Ok(state)
    }

    /// Returns the run id of the server, another one after each of its starts; `None` if the user of Redis may not know it.
    pub async fn run_id(self) -> Result<Option<String>> {
        let info =
            self.store.link.command::<String>("reading the run id of redis", "INFO", "server");
        match info.await {
            Ok(info) => Ok(info_value(&info, "run_id")),
            Err(error) if error.is_outage() => Err(error),
            Err(_) => Ok(None),
        }
    }
}

fn info_value(info: &str, name: &str) -> Option<String> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
    info.lines().map(str::trim_end).find_map(value)
}

/// Returns the words for a Redis that loads its data, with how far it is; `None` for any other.
fn loading(info: &str) -> Option<String> {
    info_value(info, "loading").filter(|loading| loading == "1")?;
    let part = info_value(info, "loading_loaded_perc").map(|part| format!(", {part} % so far"));
    let left = info_value(info, "loading_eta_seconds").map(|s| format!(", about {s} s are left"));
    let (part, left) = (part.unwrap_or_default(), left.unwrap_or_default());
    Some(format!("it is loading its data (LOADING){part}{left}"))
}

impl RedisState {
    /// Returns the memory in use, in per cent of `maxmemory`; 0 without a limit.
    pub fn memory_percent(&self) -> u64 {
        let used = self.memory_used_bytes.saturating_mul(100);
        used.checked_div(self.memory_max_bytes).unwrap_or_default()
    }

    fn read(info: &str) -> Self {
        let text = |name: &str| info_value(info, name);
        let number = |name| text(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        let failed = |name| text(name).is_some_and(|status| status != "ok");
        let role = text("role");
        // A replica reports the setting as well, and refuses writes anyway.
        let good_replicas = text("min_slaves_good_slaves")
            .and_then(|value| value.parse::<u64>().ok())
            .filter(|_| role.as_deref() != Some(REPLICA));
        Self {
            version: text("redis_version"),
            run_id: text("run_id"),
            other_server: text("valkey_version").map(|version| format!("valkey {version}")),
            cluster: match text("cluster_enabled").as_deref() {
                Some("1") => ClusterPlace::Alone,
                _ => ClusterPlace::None,
            },
            user: None,
            role,
            replicas: number("connected_slaves"),
            memory_used_bytes: number("used_memory"),
            memory_max_bytes: number("maxmemory"),
            eviction_policy: text("maxmemory_policy"),
            appends: text("aof_enabled").map(|enabled| enabled == "1"),
            append_failed: failed("aof_last_write_status"),
            fsync: None,
            save_points: None,
            save_failed: failed("rdb_last_bgsave_status"),
            good_replicas,
            write_trial: match good_replicas {
                // The least that the setting can ask for is one.
                Some(0) => WriteTrial::FewReplicas,
                _ => WriteTrial::Unknown,
            },
        }
    }

    /// Returns whether a killed Redis keeps every accepted job, and a power failure takes only jobs of the
    /// last second. `None` if that cannot be known. An unknown `appendfsync` counts as right,
    /// since `everysec` is its default.
    pub fn is_durable(&self) -> Option<bool> {
        let evicts = self.eviction_policy.as_deref().is_some_and(|policy| policy != SAFE_POLICY);
        let syncs = self.fsync.as_deref() != Some("no");
        self.appends.map(|appends| appends && syncs && !evicts && !self.append_failed)
    }

    /// Returns true if Redis is known to refuse every write, so that nothing in it is renewed.
    pub fn refuses_writes(&self) -> bool {
        self.is_replica() || self.append_failed || self.write_trial.is_refused()
    }

    /// Returns true if there is a reason to try a write.
    fn may_refuse_writes(&self) -> bool {
        !self.is_replica() && (self.save_failed || self.good_replicas.is_some())
    }

    fn is_replica(&self) -> bool {
        self.role.as_deref() == Some(REPLICA)
    }

    /// Describes the server, its place, its memory and its user, each in one line with what follows from it.
    pub fn facts(&self) -> Vec<String> {
        let Some(version) = &self.version else {
            return vec!["its user may not call INFO, so nothing is known of it".to_owned()];
        };
        let server = match &self.other_server {
            Some(other) => format!("is {other}, which stands for redis {version}"),
            None => format!("is redis {version}"),
        };
        let replicas = counted(self.replicas, "replica", "replicas");
        let place = match (self.role.as_deref(), self.cluster, self.replicas) {
            (Some(REPLICA), ..) => "is a replica: it refuses every write".to_owned(),
            (_, _, 0) => "has no replica: while it is away, no job is accepted, and the ends of \
                          running jobs wait in memory"
                .to_owned(),
            (_, ClusterPlace::Followed | ClusterPlace::Alone, _) => {
                format!("is a node of a cluster, with {replicas} to take over")
            }
            (_, ClusterPlace::None, _) => {
                format!("is a master with {replicas}, which sentinels let take over")
            }
        };
        let full = match (self.memory_max_bytes, self.eviction_policy.as_deref()) {
            (0, _) => "the kernel may end it when the memory of its machine is full",
            (_, Some(SAFE_POLICY)) => "when it is full, it refuses jobs and loses none",
            _ => "when it is full, it may evict jobs",
        };
        let memory = format!("has {}: {full}", self.memory());
        let user = self.user.as_deref().map(|user| match user {
            "default" => {
                "knows hero as the user default; an access control list gives each program less"
                    .to_owned()
            }
            user => format!("knows hero as the user {user} of its access control list"),
        });
        [server, place, memory].into_iter().chain(user).collect()
    }

    /// Describes its memory: what is in use, the limit, and what it does there.
    pub fn memory(&self) -> String {
        let most = match self.memory_max_bytes {
            0 => "no maxmemory".to_owned(),
            bytes => format!("maxmemory {}", readable_size(bytes)),
        };
        let policy = self.eviction_policy.as_deref().unwrap_or("policy unknown");
        format!("{} in use, {most}, {policy}", readable_size(self.memory_used_bytes))
    }

    /// Describes in one line what Redis keeps.
    pub fn keeps(&self) -> String {
        let file = match (self.appends, self.fsync.as_deref()) {
            (None, _) => "unknown: its user may not call INFO".to_owned(),
            (Some(true), fsync) => {
                let but = match fsync {
                    Some("always") => "",
                    Some("no") => ", except those that the kernel has not written yet",
                    // The default.
                    _ => ", except the last second",
                };
                let fsync = fsync.map(|fsync| format!(", appendfsync {fsync}")).unwrap_or_default();
                format!("every write{but} (appendonly yes{fsync})")
            }
            (Some(false), _) => match self.save_points.as_deref() {
                Some("") => "nothing (appendonly no, no save points)".to_owned(),
                Some(points) => format!("snapshots (appendonly no, save {points})"),
                None => "snapshots at most (appendonly no)".to_owned(),
            },
        };
        match self.eviction_policy.as_deref() {
            Some(policy) if policy != SAFE_POLICY => format!("{file}, but evicts ({policy})"),
            _ => file,
        }
    }

    /// Returns the reasons why accepted jobs can be lost or refused, each with what to do, as lines.
    pub fn dangers(&self) -> Vec<String> {
        let line = |risk: RedisRisk| format!("redis {}; {}", risk.text, risk.remedy);
        self.risks().into_iter().map(line).collect()
    }

    /// Returns the reasons why accepted jobs can be lost or refused.
    pub fn risks(&self) -> Vec<RedisRisk> {
        let mut risks = Vec::new();
        let mut add = |kind, text: String, remedy: &str| {
            risks.push(RedisRisk { kind, text, remedy: remedy.to_owned() });
        };
        match (self.appends, self.fsync.as_deref()) {
            (Some(false), _) => {
                let text = "forgets accepted jobs when it is killed or restarted: it appends to no \
                            file (appendonly no)";
                add(RiskKind::Forgets, text.to_owned(), REMEDY);
            }
            (Some(true), Some("no")) => {
                let text = "forgets the jobs of the last half minute in a power failure: it leaves \
                            writing to the kernel (appendfsync no)";
                add(RiskKind::Forgets, text.to_owned(), REMEDY);
            }
            _ => {}
        }
        let look = "see its log, and whether its disk is full";
        if self.append_failed {
            let text = "cannot write its append-only file, and refuses writes";
            add(RiskKind::CannotAppend, text.to_owned(), look);
        }
        let refusal = self.write_trial.refusal(self.good_replicas.unwrap_or_default());
        // A failed append-only file, which may be why every write is refused, is reported above.
        let is_reported = self.append_failed && self.write_trial == WriteTrial::DiskFails;
        let refusal = refusal.filter(|_| !is_reported);
        if let Some((text, remedy)) = refusal {
            add(RiskKind::RefusesWrites, text, remedy);
        }
        if self.save_failed && (self.write_trial != WriteTrial::DiskFails || self.append_failed) {
            let may = match self.write_trial {
                WriteTrial::Unknown => ", and may refuse writes (stop-writes-on-bgsave-error)",
                _ => "",
            };
            add(RiskKind::CannotSave, format!("cannot write its snapshot{may}"), look);
        }
        if self.cluster == ClusterPlace::Alone {
            let text = "is a node of a cluster, but redis.url names it alone: when another node \
                        takes over its slots, hero stops";
            let remedy =
                "set redis.url to redis+cluster://HOST:PORT/, with some nodes of the cluster";
            add(RiskKind::NamedAlone, text.to_owned(), remedy);
        }
        if let Some(policy) = self.eviction_policy.as_deref().filter(|of| *of != SAFE_POLICY) {
            let text = format!(
                "may evict accepted jobs when its memory is full: its maxmemory-policy is {policy}"
            );
            let remedy = format!(
                "run: redis-cli CONFIG SET maxmemory-policy {SAFE_POLICY}, redis-cli CONFIG REWRITE"
            );
            add(RiskKind::Forgets, text, &remedy);
        }
        risks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nused_memory:1024\r\n\
                        maxmemory:4096\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\n\
                        rdb_last_bgsave_status:ok\r\naof_enabled:1\r\naof_last_write_status:ok\r\n\
                        # Replication\r\nrole:master\r\nconnected_slaves:2\r\n";

    fn read_with(from: &str, to: &str) -> RedisState {
        assert!(INFO.contains(from), "{from}");
        RedisState::read(&INFO.replace(from, to))
    }

    #[test]
    fn redis_that_loads_reports_its_progress() {
        assert_eq!(loading(&format!("{INFO}loading:0\r\n")), None);
        let busy = "loading:1\r\nloading_loaded_perc:12.50\r\nloading_eta_seconds:7\r\n";
        let words = "it is loading its data (LOADING), 12.50 % so far, about 7 s are left";
        assert_eq!(loading(&format!("{INFO}{busy}")).as_deref(), Some(words));
    }

    #[test]
    fn append_only_file_without_eviction_is_durable() {
        let state = RedisState::read(INFO);
        assert_eq!((state.is_durable(), state.dangers()), (Some(true), Vec::new()));
        assert_eq!(state.keeps(), "every write, except the last second (appendonly yes)");
        assert_eq!(
            (state.memory_used_bytes, state.memory_max_bytes, state.replicas),
            (1024, 4096, 2)
        );
        let synced = RedisState { fsync: Some("always".to_owned()), ..state };
        assert_eq!(synced.keeps(), "every write (appendonly yes, appendfsync always)");
    }

    #[test]
    fn every_way_to_lose_jobs_is_a_danger_with_its_remedy() {
        let no_file = read_with("aof_enabled:1", "aof_enabled:0");
        assert_eq!(no_file.is_durable(), Some(false));
        assert!(no_file.dangers()[0].contains("CONFIG SET appendonly yes"), "{no_file:?}");
        let with_points = RedisState { save_points: Some("3600 1".to_owned()), ..no_file.clone() };
        assert_eq!(with_points.keeps(), "snapshots (appendonly no, save 3600 1)");
        let without = RedisState { save_points: Some(String::new()), ..no_file };
        assert_eq!(without.keeps(), "nothing (appendonly no, no save points)");

        let evicting = read_with("noeviction", "allkeys-lru");
        assert_eq!(evicting.is_durable(), Some(false));
        assert!(evicting.dangers()[0].contains("maxmemory-policy noeviction"), "{evicting:?}");
        assert_eq!(
            evicting.keeps(),
            "every write, except the last second (appendonly yes), but evicts (allkeys-lru)"
        );

        let lazy = RedisState { fsync: Some("no".to_owned()), ..RedisState::read(INFO) };
        assert_eq!((lazy.is_durable(), lazy.dangers().len()), (Some(false), 1));
        let full = read_with("aof_last_write_status:ok", "aof_last_write_status:err");
        assert_eq!((full.is_durable(), full.dangers().len()), (Some(false), 1));
        let unsaved = read_with("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err");
        assert_eq!((unsaved.is_durable(), unsaved.dangers().len()), (Some(true), 1));
    }

    #[test]
    fn server_its_place_and_its_memory_are_named_with_what_follows() {
        let facts = RedisState::read(INFO).facts();
        assert_eq!(facts[0], "is redis 7.0.15");
        assert_eq!(facts[1], "is a master with 2 replicas, which sentinels let take over");
        assert!(facts[2].ends_with("it refuses jobs and loses none"), "{facts:?}");
        let valkey = read_with("7.0.15", "7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1");
        assert_eq!(valkey.facts()[0], "is valkey 8.0.1, which stands for redis 7.2.4");
        let node = read_with("role:master", "cluster_enabled:1\r\nrole:master");
        assert!(node.facts()[1].starts_with("is a node of a cluster"), "{node:?}");
        assert!(node.dangers()[0].contains("redis+cluster://"), "{node:?}");
        let cluster = ClusterPlace::Followed;
        let followed = RedisState { cluster, user: Some("me".to_owned()), ..node };
        assert_eq!(followed.dangers(), Vec::<String>::new());
        assert!(followed.facts()[3].contains("user me"), "{followed:?}");
    }

    fn risks(state: &RedisState) -> Vec<(RiskKind, String)> {
        state.risks().into_iter().map(|risk| (risk.kind, risk.text)).collect()
    }

    #[test]
    fn redis_that_lacks_replicas_refuses_writes_and_names_the_setting() {
        let line = |good: &str| format!("role:master\r\nmin_slaves_good_slaves:{good}");
        let state = read_with("role:master", &line("0"));
        assert!(state.refuses_writes() && state.may_refuse_writes());
        let danger = state.dangers().remove(0);
        for words in ["min-replicas-to-write wants", "it has none", "min-replicas-to-write 0"] {
            assert!(danger.contains(words), "{danger}");
        }
        // The setting may want two: Redis is asked.
        let one = read_with("role:master", &line("1"));
        assert!(one.may_refuse_writes() && !one.refuses_writes() && one.risks().is_empty());
        let refused = RedisState { write_trial: WriteTrial::FewReplicas, ..one.clone() };
        assert!(refused.dangers()[0].contains("it has 1 alone"), "{refused:?}");
        let accepted = RedisState { write_trial: WriteTrial::Accepted, ..one };
        assert_eq!((accepted.refuses_writes(), accepted.risks()), (false, Vec::new()));
        let replica = read_with("role:master", &line("0").replace("master", REPLICA));
        assert!(replica.refuses_writes() && !replica.may_refuse_writes());
        assert_eq!(replica.risks(), []);
        assert!(!RedisState::read(INFO).may_refuse_writes());
    }

    #[test]
    fn failed_snapshot_is_reported_once_by_what_redis_does_with_a_write() {
        let unsaved = read_with("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err");
        let with = |write_trial| RedisState { write_trial, ..unsaved.clone() };
        let refusing = with(WriteTrial::DiskFails);
        assert!(refusing.refuses_writes() && refusing.may_refuse_writes());
        let told = risks(&refusing);
        assert_eq!((told.len(), told[0].0), (1, RiskKind::RefusesWrites), "{told:?}");
        for (trial, may) in [
            (WriteTrial::Unknown, ", and may refuse writes (stop-writes-on-bgsave-error)"),
            (WriteTrial::Accepted, ""),
        ] {
            let text = format!("cannot write its snapshot{may}");
            assert_eq!(risks(&with(trial)), [(RiskKind::CannotSave, text)]);
            assert!(!with(trial).refuses_writes());
        }
        let append_fails = read_with("aof_last_write_status:ok", "aof_last_write_status:err");
        let write_trial = WriteTrial::DiskFails;
        let full = RedisState { write_trial, ..append_fails };
        assert!(full.refuses_writes());
        assert_eq!(risks(&full).len(), 1, "{full:?}");
    }

    #[test]
    fn redis_that_reports_nothing_is_unknown() {
        let state = RedisState::read("");
        assert_eq!((state.is_durable(), state.dangers()), (None, Vec::new()));
        assert!(state.keeps().starts_with("unknown"), "{}", state.keeps());
    }
}
