//! What makes a role a good daemon: logging, signals, systemd, and an end in order.

mod confinement;
mod logging;
mod notify;
mod reload;
pub mod signals;

pub use confinement::Confinement;
pub use signals::Interrupts;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{debug, error, info, warn};

use crate::actor::{self, ActorError, Actors};
use crate::config::{ActorUnit, Config, ConfigError, EngineKind, Unit};
use crate::engine::{self, Backends, Engine, ScriptRedis};
use crate::error::{Error, Exit};
use crate::proto::report::Shutdown;
use crate::proto::target::ScriptType;
use crate::sandbox::divide_cgroup;
use crate::store::{Backoff, ExternalRedis, Limits, Store, StoreError};
use crate::supervisor::{Supervisor, SupervisorSettings};
use logging::Logging;
use reload::{Live, Reload};

/// Runs one unit until a signal or a control message ends it. Blocks; makes its own runtime.
/// `file` is where `config` was read from if not from the default place, for a reload. `wait` is
/// how long Redis may take to answer at the start; without it, as long as it takes.
///
/// # Errors
/// [`Error`] if the unit is unknown, its identity is taken, its scripts cannot run here, or Redis
/// did not answer in time.
pub fn run(
    config: Config,
    file: Option<&Path>,
    unit: &str,
    wait: Option<Duration>,
) -> Result<(), Error> {
    let role = config.unit(unit)?;
    let logging = Logging::start(config.log.level);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Exit::Unavailable, format!("starting {unit}: {error}")))?;
    if runs_processes(&config, &role) {
        match divide_cgroup() {
            Ok(()) => info!("each job that is a process has a control group of its own"),
            Err(reason) => info!("jobs have no control groups of their own: {reason}"),
        }
    }
    let confinement = Confinement::of(&config, file, &role)
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    runtime.block_on(async {
        let (role, live, store) = prepare(&config, role)?;
        // What it needs is open, and no thread is started yet, which it would not hold.
        let confined = confinement.is_some_and(|confinement| confinement.begin());
        info!(
            version = env!("CARGO_PKG_VERSION"),
            "{unit} starts, with redis at {}",
            store.address()
        );
        let listening =
            |error| Error::new(Exit::Unavailable, format!("listening for signals: {error}"));
        let shutdown = signals::shutdown().map_err(listening)?;
        let hangups = signals::hangups().map_err(listening)?;
        let (file, unit) = (file.map(Path::to_owned), unit.to_owned());
        tokio::spawn(
            Reload { file, unit, config, live, logging, store: store.clone(), confined }
                .run(hangups),
        );
        if redis_answers(&store, wait, shutdown.clone()).await? {
            warn_of_eviction(&store).await;
            match role {
                Role::Supervisor(supervisor) => supervisor.run(shutdown).await,
                Role::Actors(actors) => actors.run(shutdown).await?,
            }
        }
        Ok(())
    })
}

/// Whether jobs of a unit are processes.
fn runs_processes(config: &Config, unit: &Unit) -> bool {
    let Unit::Actors(actors) = unit else { return false };
    let mut types = actors.iter().filter_map(|actor| config.types.get(&actor.id.script_type));
    types.any(|of_type| of_type.engine == EngineKind::Command)
}

/// A role with all it needs.
enum Role {
    Supervisor(Supervisor),
    Actors(Actors),
}

/// Gives the role its slice of the configuration, and keeps the end by which it can be changed.
fn prepare(config: &Config, role: Unit) -> Result<(Role, Live, Store), Error> {
    let store = Store::open(&config.redis)
        .and_then(|store| {
            store.with_events(config.job.events).beside(config.supervisor.served_legacy_queues())
        })
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    let (report, beat_within) = (notify::reporter(), notify::beat_within());
    let (role, live) = match role {
        Unit::Supervisor => {
            let (live, settings) = watch::channel(Arc::new(supervisor_settings(config)));
            let store = store.clone();
            let role = Supervisor { store, settings, report, beat_within };
            (Role::Supervisor(role), Live::Supervisor(live))
        }
        Unit::Actors(actors) => {
            let (live, settings) =
                watch::channel(Arc::new(actor_settings(config, actors, &store)?));
            let store = store.clone();
            (Role::Actors(Actors { store, settings, beat_within, report }), Live::Actors(live))
        }
    };
    Ok((role, live, store))
}

fn supervisor_settings(config: &Config) -> SupervisorSettings {
    let crontab = config.crontab();
    for problem in &crontab.problems {
        error!("{problem}: the periodic jobs of this file are not in force");
    }
    if !crontab.entries.is_empty() {
        info!("{} periodic jobs are in force", crontab.entries.len());
    }
    SupervisorSettings {
        supervisor: config.supervisor.clone(),
        job: config.job.clone(),
        actor: config.actor.clone(),
        osis: config.osis.clone(),
        crontab: Arc::new(crontab),
    }
}

/// One engine per script type; refuses a type that cannot run on this machine.
fn actor_settings(
    config: &Config,
    actors: Vec<ActorUnit>,
    store: &Store,
) -> Result<actor::Settings, Error> {
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
            return Err(Error::new(Exit::Unavailable, message));
        }
        engine.warm_up();
        engines.insert(script_type.clone(), engine);
    }
    let (job, actor) = (config.job.clone(), config.actor.clone());
    let limits = Limits::new(&config.limits);
    Ok(actor::Settings { actors, job, actor, limits, engines })
}

/// What scripts reach through this process. Nothing of it is opened before a script uses it. Needs
/// a Tokio runtime.
///
/// # Errors
/// [`Exit::Config`] if `sal.redis_url` cannot be used.
pub fn backends(config: &Config, store: &Store) -> Result<Backends, Error> {
    let runtime = tokio::runtime::Handle::current();
    let redis_url = &config.sal.redis_url;
    let redis: Option<Arc<dyn ScriptRedis>> = if redis_url.expose().is_empty() {
        None
    } else {
        let redis = ExternalRedis::open(redis_url)
            .map_err(|error| Error::new(Exit::Config, format!("sal.redis_url: {error}")))?;
        Some(Arc::new(actor::ScriptRedisClient::new(redis, store.keys().clone(), runtime.clone())))
    };
    let objects = actor::RedisObjects::new(store.clone(), config.osis.clone(), runtime);
    Ok(Backends { osis: config.osis.clone(), objects: Some(Arc::new(objects)), redis })
}

/// Says so if Redis may throw jobs away. That it cannot be asked keeps nothing from running.
async fn warn_of_eviction(store: &Store) {
    match store.eviction_danger().await {
        Ok(None) => {}
        Ok(Some(danger)) => warn!("{danger}"),
        Err(error) => debug!("{error}"),
    }
}

/// Waits until Redis answers. `false` if a signal came first.
async fn redis_answers(
    store: &Store,
    wait: Option<Duration>,
    mut shutdown: watch::Receiver<Shutdown>,
) -> Result<bool, Error> {
    let began = Instant::now();
    let mut backoff = Backoff::default();
    let mut said = false;
    loop {
        let error = match store.ping().await {
            Ok(()) => return Ok(true),
            Err(error) => error,
        };
        let exit = match &error {
            StoreError::NotPermitted { .. } => Some(Exit::NotPermitted),
            StoreError::Settings(_) => Some(Exit::Config),
            _ if wait.is_some_and(|wait| began.elapsed() >= wait) => Some(Exit::Unavailable),
            _ => None,
        };
        if let Some(exit) = exit {
            return Err(Error::new(exit, error.to_string()));
        }
        if !std::mem::replace(&mut said, true) {
            warn!("{error}; trying again until it answers");
            notify::waiting(&format!("not ready: {error}; trying again"));
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.failed()) => {}
            _ = shutdown.wait_for(|asked| *asked > Shutdown::No) => return Ok(false),
        }
    }
}

impl From<ActorError> for Error {
    fn from(error: ActorError) -> Self {
        let exit = match &error {
            ActorError::Store(StoreError::NotPermitted { .. }) => Exit::NotPermitted,
            _ => Exit::Unavailable,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let exit = match &error {
            ConfigError::NoSuchUnit { .. } => Exit::NotFound,
            _ => Exit::Config,
        };
        Self::new(exit, error.to_string())
    }
}
