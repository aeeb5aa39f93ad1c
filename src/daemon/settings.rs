//! The settings of the roles: slices of the configuration, engines, and services for scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tracing::{error, info};

use crate::actor;
use crate::amqp::broker::BrokerSettings;
use crate::config::{ActorUnit, Config, DeadLetters, RouteConfig};
use crate::engine::{self, Backends, Engine, ScriptRedis};
use crate::error::{Error, Exit, reason};
use crate::proto::job::TypeTimes;
use crate::proto::keys::Keys;
use crate::proto::target::{Fallback, ScriptType};
use crate::proto::text::counted;
use crate::store::{ClaimLimits, ExternalRedis, Store};
use crate::supervisor::SupervisorSettings;
use crate::view::HealthRules;

pub(super) fn supervisor_settings(config: &Config) -> SupervisorSettings {
    let crontab = config.crontab();
    for problem in &crontab.problems {
        error!("{problem}: not in force; the other periodic jobs are");
    }
    if !crontab.entries.is_empty() {
        let number = crontab.entries.len() as u64;
        info!("{} in force", counted(number, "periodic job is", "periodic jobs are"));
    }
    let scripts = config.script_files();
    for problem in &scripts.problems {
        error!("{problem}: not published; the other scripts are");
    }
    SupervisorSettings {
        supervisor: config.supervisor.clone(),
        job: config.job.clone(),
        actor: config.actor.clone(),
        osis: config.osis.clone(),
        fallbacks: config
            .types
            .iter()
            .filter(|(_, of_type)| of_type.fallback != Fallback::None)
            .map(|(name, of_type)| (name.clone(), of_type.fallback))
            .collect(),
        times: Arc::new(type_times(config)),
        notify: Arc::new(config.notify.clone()),
        public_url: config.api.public_url.clone(),
        health: HealthRules::from(config),
        crontab: Arc::new(crontab),
        scripts: Arc::new(scripts),
        digest: config.digest(),
        read_at: Timestamp::now(),
    }
}

/// Returns the times that jobs of a script type have unless they say.
fn type_times(config: &Config) -> TypeTimes {
    let of_types = config.types.iter().flat_map(|(name, of_type)| {
        [("expect_within", name, of_type.expect_within), ("slow_after", name, of_type.slow_after)]
    });
    of_types.collect()
}

/// Returns the settings of a unit's actors, with one engine per script type.
///
/// # Errors
/// A script type that is not configured or cannot run on this machine.
pub(super) fn actor_settings(
    config: &Config,
    actors: Vec<ActorUnit>,
    store: &Store,
) -> Result<actor::ActorSettings, Error> {
    let backends = backends(config, store)?;
    let mut engines: BTreeMap<ScriptType, Arc<dyn Engine>> = BTreeMap::new();
    for actor in &actors {
        let script_type = &actor.id.script_type;
        let Some(settings) = config.types.get(script_type) else {
            let message = format!("script type {script_type} is not configured");
            return Err(Error::new(Exit::Config, message));
        };
        let engine =
            engine::build(script_type.clone(), settings, &config.job, &config.sal, &backends);
        if let Some(reason) = engine.unavailable() {
            let message = format!("{script_type}: not available: {reason}");
            return Err(Error::new(Exit::Machine, message));
        }
        engine.warm_up();
        engines.insert(script_type.clone(), engine);
    }
    let all = config.types.iter().filter(|(_, of)| of.dead_letters == DeadLetters::All);
    let all_dead = all.map(|(name, _)| name.clone()).collect();
    let rules = |of: &crate::config::TypeConfig| {
        of.may_submit.iter().filter_map(|rule| rule.parse().ok()).collect()
    };
    let may_submit = config.types.iter().map(|(name, of)| (name.clone(), rules(of))).collect();
    let keys = config.types.iter().map(|(name, of)| (name.clone(), of.required_keys(&config.keys)));
    let required_keys = keys.filter(|(_, keys)| !keys.is_empty()).collect();
    let labels = actors.iter().map(actor::all_labels).collect();
    Ok(actor::ActorSettings {
        actors,
        labels,
        job: config.job.clone(),
        actor: config.actor.clone(),
        redact: config.log.redact.clone(),
        secrets: config.secrets.clone(),
        limits: ClaimLimits::new(&config.limits),
        all_dead,
        may_submit,
        required_keys,
        engines,
        digest: config.digest(),
        read_at: Timestamp::now(),
    })
}

/// Returns the settings of a broker, with the scripts of its routes.
///
/// # Errors
/// [`Exit::Config`] if the file of a script cannot be read.
pub(super) fn broker_settings(config: &Config) -> Result<BrokerSettings, Error> {
    let script = |route: &RouteConfig| -> Result<Arc<str>, Error> {
        let Some(file) = &route.script_file else { return Ok(route.script.as_str().into()) };
        let read = std::fs::read_to_string(file).map_err(|error| {
            let (file, reason) = (file.display(), reason(&error));
            let message = format!("cannot read the script {file} of an [[amqp.route]]: {reason}");
            Error::new(Exit::Config, message)
        });
        read.map(Arc::from)
    };
    let scripts = config.amqp.routes.iter().map(script).collect::<Result<_, _>>()?;
    let (amqp, job, osis) = (config.amqp.clone(), config.job.clone(), config.osis.clone());
    Ok(BrokerSettings { amqp, job, osis, scripts })
}

/// Returns the services that scripts call through this process, with objects in `store`, the store of the
/// home shard. A connection is opened when a script first uses it. Needs a Tokio runtime.
///
/// # Errors
/// [`Exit::Config`] if `sal.redis_url` is invalid.
pub fn backends(config: &Config, store: &Store) -> Result<Backends, Error> {
    let runtime = tokio::runtime::Handle::current();
    let redis_url = &config.sal.redis_url;
    let redis: Option<Arc<dyn ScriptRedis>> = if redis_url.expose().is_empty() {
        None
    } else {
        let redis = ExternalRedis::open(redis_url)
            .map_err(|error| Error::new(Exit::Config, format!("sal.redis_url: {error}")))?;
        let shards = config.redis.shard_count().shards();
        let own = shards.map(|shard| Keys::new(shard.namespace(&config.redis.namespace))).collect();
        Some(Arc::new(actor::ScriptRedisClient::new(redis, own, runtime.clone())))
    };
    let objects = actor::RedisObjects::new(store.clone(), config.osis.clone(), runtime);
    Ok(Backends { osis: config.osis.clone(), objects: Some(Arc::new(objects)), redis })
}
