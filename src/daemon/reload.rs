//! Reloads the configuration on SIGHUP: applies the changes that need no restart and names the others.
//! An invalid file changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::{error, info, warn};

use super::logging::Logging;
use super::notify;
use super::process_sandbox::ProcessSandbox;
use super::settings::{actor_settings, broker_settings, supervisor_settings};
use super::signals::Signals;
use crate::actor::ActorSettings;
use crate::amqp::broker::BrokerSettings;
use crate::client::{Client, host_name};
use crate::config::{Config, EngineKind, RedisConfig, Unit};
use crate::error::{Error, Exit};
use crate::proto::audit::Author;
use crate::store::{Shards, StoreError};
use crate::supervisor::SupervisorSettings;

/// The sender of new settings to the running role.
pub(super) enum LiveSettings {
    Supervisor(watch::Sender<Arc<SupervisorSettings>>),
    Actors(watch::Sender<Arc<ActorSettings>>),
    /// The settings in force whose change needs a restart, and the parts that have the login.
    Broker(Arc<BrokerSettings>, Box<Client>),
}

pub(super) struct Reload {
    /// The file named on the command line, if one was.
    pub(super) file: Option<PathBuf>,
    pub(super) unit: String,
    /// The configuration in force.
    pub(super) config: Config,
    pub(super) live: LiveSettings,
    /// The sender of the configuration to the API.
    pub(super) in_force: watch::Sender<Arc<Config>>,
    pub(super) logging: Logging,
    pub(super) system: Shards,
    /// True if this process is sandboxed, which cannot be undone.
    pub(super) is_sandboxed: bool,
}

impl Reload {
    /// Reloads at each SIGHUP.
    pub(super) async fn run(mut self, mut hangups: Signals) {
        while hangups.next().await.is_some() {
            notify::reloading();
            let status = match self.reload() {
                Ok(restart) if restart.is_empty() => {
                    info!("read the configuration again");
                    "reloaded".to_owned()
                }
                Ok(restart) => {
                    let keys = restart.join(", ");
                    warn!("read the configuration again, but these changes need a restart: {keys}");
                    format!("reloaded; needs a restart for {keys}")
                }
                Err(problem) => {
                    error!("the reload changed nothing: {problem}");
                    // The actors learn of the signal by their settings.
                    if let LiveSettings::Actors(settings) = &self.live {
                        settings.send_modify(|_| ());
                    }
                    format!("reload rejected: {problem}")
                }
            };
            notify::reloaded(&status);
        }
    }

    /// Reloads once. Returns the changed keys that need a restart.
    fn reload(&mut self) -> Result<Vec<String>, Error> {
        let mut config = Config::load(self.file.as_deref())?;
        let role = config.unit(&self.unit)?;
        let mut restart = self.config.changes_for_restart(&config);
        config.redis = redis_of(&self.config.redis, &config.redis);
        if self.is_sandboxed {
            self.keep_within(&mut config, &role, &mut restart)?;
        }
        let wrong = |error: StoreError| Error::new(Exit::Config, error.to_string());
        Shards::open(&config.redis, Ok).map_err(wrong)?;
        // Keys that need a restart keep their old values, so that the next reload names them again.
        let config = self.config.kept_until_restart(config);
        match (&self.live, role) {
            (LiveSettings::Supervisor(settings), Unit::Supervisor) => {
                settings.send_replace(Arc::new(supervisor_settings(&config)));
            }
            (LiveSettings::Actors(settings), Unit::Actors(actors)) => {
                let before = settings.borrow().actors.clone();
                let is_same = actors.iter().map(|of| &of.id).eq(before.iter().map(|of| &of.id));
                if !is_same {
                    restart.push("the unit's actors".to_owned());
                }
                let actors = if is_same { actors } else { before };
                let new = actor_settings(&config, actors, self.system.home())?;
                settings.send_replace(Arc::new(new));
            }
            (LiveSettings::Broker(settings, client), Unit::Broker(_)) => {
                let new = broker_settings(&config)?;
                let changed = [
                    ("[job]", settings.job != new.job),
                    ("[osis]", settings.osis != new.osis),
                    ("the scripts of [[amqp.route]]", settings.scripts != new.scripts),
                ];
                let changed = changed.into_iter().filter(|(_, is_changed)| *is_changed);
                restart.extend(changed.map(|(key, _)| key.to_owned()));
                client.change_login(&config.redis)?;
            }
            _ => restart.push("the unit's role".to_owned()),
        }
        self.system.change_login(&config.redis).map_err(wrong)?;
        self.logging.set(&config.log);
        self.report_changes(&config);
        self.config = config;
        self.in_force.send_replace(Arc::new(self.config.clone()));
        Ok(restart)
    }

    /// Logs the settings that change. A supervisor records them as changes too: the login of actors may not.
    fn report_changes(&self, new: &Config) {
        const MAX: usize = 50;
        let mut changes = self.config.changes(new);
        let further = changes.len().saturating_sub(MAX);
        changes.truncate(MAX);
        if further > 0 {
            changes.push(format!("{further} further keys"));
        }
        let client = match &self.live {
            LiveSettings::Supervisor(_) => Client::open(new).ok(),
            _ => None,
        };
        let Some(client) = client else {
            for change in &changes {
                info!("the reload changed {change}");
            }
            return;
        };
        let (who, from) = (format!("unit {}", self.unit), host_name());
        let client = client.as_author(Author { who, from, through: "reload", names: Vec::new() });
        tokio::spawn(async move { client.audit().note_reload(&changes).await });
    }

    /// Restricts a new configuration to the rights of a sandboxed process.
    ///
    /// # Errors
    /// A script type of this unit needs more than Redis.
    fn keep_within(
        &self,
        config: &mut Config,
        role: &Unit,
        restart: &mut Vec<String>,
    ) -> Result<(), Error> {
        if let Unit::Actors(actors) = role {
            let engine = |name| config.types.get(name).map(|of_type| of_type.engine);
            let mut types = actors.iter().map(|actor| &actor.id.script_type);
            if let Some(name) =
                types.find(|name| !engine(name).is_some_and(EngineKind::needs_only_redis))
            {
                let message = format!(
                    "the unit {} is sandboxed, as its scripts needed nothing but Redis, but type \
                     {name} needs more now; restart the unit",
                    self.unit
                );
                return Err(Error::new(Exit::Config, message));
            }
            for actor in actors {
                let name = &actor.id.script_type;
                let before = self.config.types.get(name).map(|of_type| &of_type.modules);
                if let (Some(now), Some(before)) = (config.types.get_mut(name), before)
                    && now.modules != *before
                {
                    now.modules.clone_from(before);
                    restart.push("type.NAME.modules".to_owned());
                }
            }
        }
        let mut changed = self.config.clone();
        changed.redis.clone_from(&config.redis);
        let rights = |config: &Config| ProcessSandbox::of(config, self.file.as_deref(), role);
        let wrong = |error: StoreError| Error::new(Exit::Config, error.to_string());
        if rights(&changed).map_err(wrong)? != rights(&self.config).map_err(wrong)? {
            config.redis.clone_from(&self.config.redis);
            restart.push("[redis], as the unit is sandboxed".to_owned());
        }
        if config.job.log_dir != self.config.job.log_dir {
            config.job.log_dir.clone_from(&self.config.job.log_dir);
            restart.push("job.log_dir".to_owned());
        }
        Ok(())
    }
}

/// Returns the settings of Redis that are in force after a reload: another address and another login of the same
/// jobs.
fn redis_of(old: &RedisConfig, new: &RedisConfig) -> RedisConfig {
    let is_same = (&old.namespace, old.shards) == (&new.namespace, new.shards);
    if is_same { old.with_login_of(new) } else { old.clone() }
}
