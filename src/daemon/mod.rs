//! Runs a role as a daemon: logging, signals, systemd notifications, reload, orderly shutdown.

mod api;
mod durability;
mod job_lines;
mod logging;
mod notify;
mod process_sandbox;
mod reload;
mod room;
mod settings;
pub mod signals;

pub use api::DEV_TOKEN;
pub use durability::not_durable;
pub use process_sandbox::ProcessSandbox;
pub use settings::backends;
pub use signals::Interrupts;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{info, warn};

use crate::actor::{ActorError, Actors};
use crate::amqp::broker::{Broker, BrokerError};
use crate::amqp::link::LinkError;
use crate::client::Client;
use crate::config::{Config, ConfigError, EngineKind, JobConfig, Unit};
use crate::error::{Error, Exit};
use crate::proto::report::Shutdown;
use crate::sandbox::divide_cgroup;
use crate::store::{Backoff, Store, StoreError};
use crate::supervisor::Supervisor;
use api::Api;
use durability::check_durability;
use logging::Logging;
pub(crate) use logging::reads_journal;
use reload::{LiveSettings, Reload};
use settings::{actor_settings, broker_settings, supervisor_settings};

/// Runs one unit until a signal or a control message ends it. Blocks, on a runtime of its own. `file`
/// is the file of `config` if it is not the default one, for a reload. `wait` limits the time until
/// Redis first answers.
///
/// # Errors
/// [`Error`] if the unit is unknown, its identity is in use, its scripts cannot run on this machine, or
/// Redis did not answer in time.
pub fn run(
    config: Config,
    file: Option<&Path>,
    unit: &str,
    wait: Option<Duration>,
) -> Result<(), Error> {
    let role = config.unit(unit)?;
    let logging = Logging::start(&config.log);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Exit::Unavailable, format!("cannot start {unit}: {error}")))?;
    if runs_processes(&config, &role) {
        match divide_cgroup() {
            Ok(()) => info!("each job that is a process has a control group of its own"),
            Err(reason) => info!("jobs have no control groups of their own: {reason}"),
        }
        room::warn_if_small(&config, &role);
    }
    make_log_folder(&config, &role);
    let sandbox = ProcessSandbox::of(&config, file, &role)
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    runtime.block_on(async {
        let require_durable = config.redis.require_durable;
        let (role, live, store) = prepare(&config, role, unit)?;
        let (in_force, of_api) = watch::channel(Arc::new(config.clone()));
        // Everything it needs is open, and no thread has started yet: the sandbox would not hold it.
        let is_sandboxed = sandbox.is_some_and(|sandbox| sandbox.enter());
        info!(
            version = env!("CARGO_PKG_VERSION"),
            "{unit} starts, with redis at {}",
            store.address()
        );
        let listening =
            |error| Error::new(Exit::Unavailable, format!("cannot listen for signals: {error}"));
        let shutdown = signals::shutdown().map_err(listening)?;
        let hangups = signals::hangups().map_err(listening)?;
        let (file, unit) = (file.map(Path::to_owned), unit.to_owned());
        tokio::spawn(logging.job_lines().report());
        tokio::spawn(
            Reload {
                file,
                unit,
                config,
                live,
                in_force,
                logging,
                store: store.clone(),
                is_sandboxed,
            }
            .run(hangups),
        );
        // Before Redis answers: the page says that it does not.
        let is_supervisor = matches!(role, PreparedRole::Supervisor(_));
        let api = if is_supervisor { Api::start(of_api) } else { None };
        if redis_answers(&store, wait, shutdown.clone()).await? {
            check_durability(&store, require_durable).await?;
            match role {
                PreparedRole::Supervisor(supervisor) => supervisor.run(shutdown).await,
                PreparedRole::Actors(actors) => actors.run(shutdown).await?,
                PreparedRole::Broker(broker) => broker.run(shutdown).await?,
            }
        }
        if let Some(api) = api {
            api.end().await;
        }
        Ok(())
    })
}

/// Makes the folder of the log files of jobs, where no unit of the system does: a sandboxed process could not.
fn make_log_folder(config: &Config, role: &Unit) {
    use std::os::unix::fs::DirBuilderExt;
    let folder = &config.job.log_dir;
    if matches!(role, Unit::Actors(_)) && *folder != JobConfig::default().log_dir {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o750).create(folder);
        if let Err(error) = made {
            warn!("cannot make {}, the folder of log files: {error}", folder.display());
        }
    }
}

/// Returns true if jobs of the unit run as processes.
fn runs_processes(config: &Config, unit: &Unit) -> bool {
    let Unit::Actors(actors) = unit else { return false };
    let mut types = actors.iter().filter_map(|actor| config.types.get(&actor.id.script_type));
    types.any(|of_type| of_type.engine == EngineKind::Command)
}

/// A role that is ready to run.
enum PreparedRole {
    Supervisor(Supervisor),
    Actors(Actors),
    Broker(Box<Broker>),
}

/// Prepares the role with its slice of the configuration, and returns the sender of new settings.
fn prepare(
    config: &Config,
    role: Unit,
    unit: &str,
) -> Result<(PreparedRole, LiveSettings, Store), Error> {
    let store = Store::open(&config.redis)
        .and_then(|store| {
            store
                .with_events(config.job.events)
                .with_replies(config.job.reply_format)
                .with_inline_outputs(config.job.output_inline_max)
                .beside(config.supervisor.served_legacy_queues())
        })
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    let (report, beat_within) = (notify::reporter(), notify::beat_within());
    let (role, live) = match role {
        Unit::Supervisor => {
            let (live, settings) = watch::channel(Arc::new(supervisor_settings(config)));
            let store = store.clone();
            let unit = unit.to_owned();
            let role = Supervisor { store, unit, settings, report, beat_within };
            (PreparedRole::Supervisor(role), LiveSettings::Supervisor(live))
        }
        Unit::Broker(node) => {
            let client = Client::open(config)?;
            let settings = Arc::new(broker_settings(config)?);
            let (store, unit) = (store.clone(), unit.to_owned());
            let live = LiveSettings::Broker(Arc::clone(&settings));
            let broker = Broker { store, client, unit, node, settings, report, beat_within };
            (PreparedRole::Broker(Box::new(broker)), live)
        }
        Unit::Actors(actors) => {
            let (live, settings) =
                watch::channel(Arc::new(actor_settings(config, actors, &store)?));
            let store = store.clone();
            (
                PreparedRole::Actors(Actors { store, settings, beat_within, report }),
                LiveSettings::Actors(live),
            )
        }
    };
    Ok((role, live, store))
}

/// Waits until Redis answers. Returns false if a signal came first.
async fn redis_answers(
    store: &Store,
    wait: Option<Duration>,
    mut shutdown: watch::Receiver<Shutdown>,
) -> Result<bool, Error> {
    let began = Instant::now();
    let mut backoff = Backoff::default();
    let mut is_reported = false;
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
        if !std::mem::replace(&mut is_reported, true) {
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

impl From<BrokerError> for Error {
    fn from(error: BrokerError) -> Self {
        let exit = match &error {
            BrokerError::Store(StoreError::NotPermitted { .. })
            | BrokerError::Link(LinkError::NotPermitted { .. } | LinkError::NoVhost { .. }) => {
                Exit::NotPermitted
            }
            BrokerError::Config(_)
            | BrokerError::Link(LinkError::Settings(_) | LinkError::OtherArguments { .. }) => {
                Exit::Config
            }
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
