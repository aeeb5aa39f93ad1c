//! The state of Redis for `hero check`; of a system with several shards also where they are, and who serves them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::config::{Config, RedisConfig};
use crate::daemon::not_durable;
use crate::error::{Error, Exit};
use crate::proto::shard::Shard;
use crate::store::{ClusterPlace, RedisState};

pub(super) struct ShardsCheck<'a> {
    config: &'a Config,
    states: Vec<RedisState>,
}

impl<'a> ShardsCheck<'a> {
    /// Asks the Redis of each shard for its state, if `asks_redis`. `None` for a system with one shard.
    pub(super) fn of(config: &'a Config, asks_redis: bool) -> Result<Option<Self>, Error> {
        if config.redis.shards <= 1 {
            return Ok(None);
        }
        let mut states = Vec::new();
        for shard in config.redis.shard_count().shards().filter(|_| asks_redis) {
            states.push(state_of(config, &config.redis.of_shard(shard))?);
        }
        Ok(Some(Self { config, states }))
    }

    /// Returns the risks of loss on the further shards, and the shards that do not answer.
    pub(super) fn warnings(&self) -> Result<Vec<String>, Error> {
        let redis = &self.config.redis;
        let further = redis.shard_count().shards().skip(1);
        if !self.states.is_empty() {
            let dangers = further.zip(&self.states[1..]).flat_map(|(shard, state)| {
                state.dangers().into_iter().map(move |danger| format!("shard {shard}: {danger}"))
            });
            return Ok(dangers.collect());
        }
        let mut warnings = Vec::new();
        let mut asked = vec![&redis.url];
        for (url, shard) in redis.shard_urls.iter().zip(further) {
            // One question for each server: the check itself needs no Redis.
            if !asked.contains(&url) {
                asked.push(url);
                let redis = redis.of_shard(shard);
                // The check of the home shard tells of secrets that only the daemon may read.
                if redis.password().is_err() || redis.tls().is_err() {
                    continue;
                }
                let warning = state_soon(self.config, &redis)?.err();
                warnings.extend(warning.map(|warning| format!("shard {shard}: {warning}")));
            }
        }
        Ok(warnings)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Config { redis, limits, .. } = self.config;
        let mut lines = vec![format!("shards: {}, {}", redis.shards, served(redis))];
        if !limits.is_empty() {
            lines.push(format!(
                "limits: count in each of the {} shards; jobs with one shard_key are on one shard",
                redis.shards
            ));
        }
        for (place, shard) in redis.shard_count().shards().enumerate() {
            let of_shard = redis.of_shard(shard);
            let (namespace, url) = (&of_shard.namespace, of_shard.redacted_url());
            let state = match self.states.get(place) {
                Some(state) => format!(": answers, keeps {}", state.keeps()),
                None => String::new(),
            };
            lines.push(format!("shard {shard}: {namespace} at {url}{state}"));
        }
        lines
    }

    pub(super) fn document(&self) -> Value {
        let Config { redis, limits, .. } = self.config;
        let served = redis.served_shards();
        let shards = redis.shard_count().shards().enumerate();
        let shards = shards.map(|(place, shard)| {
            let of_shard = redis.of_shard(shard);
            json!({
                "shard": shard.number(),
                "namespace": of_shard.namespace,
                "url": of_shard.redacted_url(),
                "served": served.contains(&shard),
                "redis": self.states.get(place).map(redis_document),
            })
        });
        json!({ "limits_per_shard": !limits.is_empty(), "shards": shards.collect::<Vec<_>>() })
    }
}

/// Says which shards this machine serves, and which others must.
fn served(redis: &RedisConfig) -> String {
    let served = redis.served_shards();
    let others: Vec<Shard> =
        redis.shard_count().shards().filter(|shard| !served.contains(shard)).collect();
    if others.is_empty() {
        return "all served by the units of this machine".to_owned();
    }
    let list =
        |shards: &[Shard]| shards.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "the units of this machine serve {}; other machines must serve {}",
        list(&served),
        list(&others)
    )
}

/// Returns the state of the Redis of one shard. Fails if it does not answer, refuses the login, has a key of a wrong
/// type, or is not durable though the configuration requires it.
pub(super) fn state_of(config: &Config, redis: &RedisConfig) -> Result<RedisState, Error> {
    let client = Client::with(redis, config.job.clone())?;
    let (state, wrong) = super::block_on(async {
        Ok((client.system().redis_state(true).await?, client.system().wrong_types().await?))
    })?;
    if !wrong.is_empty() {
        return Err(Error::new(Exit::Data, wrong.join("\n")));
    }
    if redis.require_durable && state.is_durable() != Some(true) {
        return Err(Error::new(Exit::Config, not_durable(&redis.redacted_url(), &state)));
    }
    Ok(state)
}

pub(super) fn redis_document(state: &RedisState) -> Value {
    json!({
        "version": state.version,
        "other_server": state.other_server,
        "role": state.role,
        "replicas": state.replicas,
        "in_cluster": state.cluster != ClusterPlace::None,
        "user": state.user,
        "memory_used_bytes": state.memory_used_bytes,
        "memory_max_bytes": state.memory_max_bytes,
        "eviction_policy": state.eviction_policy,
        "keeps": state.keeps(),
        "is_durable": state.is_durable(),
    })
}

/// Returns the state of a Redis, or why it cannot be used now. The check itself needs no Redis.
pub(super) fn state_soon(
    config: &Config,
    redis: &RedisConfig,
) -> Result<Result<RedisState, String>, Error> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let client = Client::with(redis, config.job.clone())?;
    super::block_on(async {
        let state = tokio::time::timeout(PATIENCE, client.system().redis_state(false)).await;
        let silent = |_| Err(format!("redis at {} does not answer", redis.redacted_url()));
        Ok(state.map_or_else(silent, |state| state.map_err(|error| error.to_string())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
        let shards = ShardsCheck::of(&config, false).expect("legal");
        shards.map(|shards| shards.lines()).unwrap_or_default()
    }

    #[test]
    fn every_shard_is_named_with_its_server_but_without_its_password() {
        assert_eq!(lines(""), [""; 0]);
        let text = "[redis]\nshards = 3\nserve = [0, 2]\n\
                    shard_urls = [\"redis://u:hunter2@two\", \"redis://three\"]\n\
                    [limit.a]\nkey = \"k\"\nrunning = 1";
        assert_eq!(
            lines(text),
            [
                "shards: 3, the units of this machine serve 0, 2; other machines must serve 1",
                "limits: count in each of the 3 shards; jobs with one shard_key are on one shard",
                "shard 0: hero at redis://127.0.0.1:6379/0",
                "shard 1: {hero-1} at redis://u:***@two",
                "shard 2: {hero-2} at redis://three",
            ]
        );
    }
}
