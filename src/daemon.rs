//! Runs a role as a daemon: logging, signals, systemd notifications, reload, orderly shutdown.

mod api;
mod job_lines;
mod logging;
mod notify;
mod process_sandbox;
mod reload;
mod serving;
mod settings;
pub mod signals;

pub use api::DEV_TOKEN;
pub use process_sandbox::ProcessSandbox;
pub use serving::not_durable;
pub use settings::backends;
pub use signals::{Interrupts, ignores_hangup};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::actor::{ActorError, Actors};
use crate::amqp::broker::Broker;
use crate::client::Client;
use crate::config::{ActorUnit, Config, EngineKind, JobConfig, TypeConfig, Unit, format_size};
use crate::engine::process::folder_of_jobs;
use crate::error::{Error, Exit};
use crate::proto::report::Shutdown;
use crate::proto::shard::Shard;
use crate::sandbox::{Support, divide_cgroup};
use crate::store::{Shards, Store, StoreError};
use crate::supervisor::Supervisor;
use crate::trace::Tracer;
use api::Api;
use logging::Logging;
pub(crate) use logging::{audit_to_journal, reads_journal};
use reload::{LiveSettings, Reload};
use serving::{PreparedRole, Serving};
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
        .map_err(|error| Error::new(Exit::Machine, format!("cannot start {unit}: {error}")))?;
    if of_processes(&config, &role).next().is_some() {
        match divide_cgroup() {
            Ok(()) => info!("each job that is a process has a control group of its own"),
            Err(reason) => info!("jobs have no control groups of their own: {reason}"),
        }
        if let Some(reach) = Support::of_this_kernel().reach() {
            info!("the sandbox of this kernel is basic: {reach}");
        }
        warn_if_small(&config, &role);
    }
    make_log_folder(&config, &role);
    let sandbox = ProcessSandbox::of(&config, file, &role)
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    runtime.block_on(async {
        let PreparedUnit { role, live, system, served, end } = prepare(&config, role, unit)?;
        let (in_force, of_api) = watch::channel(Arc::new(config.clone()));
        // Everything it needs is open, and no thread has started yet: the sandbox would not hold it.
        let is_sandboxed = sandbox.is_some_and(|sandbox| sandbox.enter());
        let version = env!("CARGO_PKG_VERSION");
        info!(version, "{unit} starts, with redis at {}", serving::places(&served));
        let listening =
            |error| Error::new(Exit::Machine, format!("cannot listen for signals: {error}"));
        signals::shutdown(end.clone()).map_err(listening)?;
        let hangups = signals::hangups().map_err(listening)?;
        let (require_durable, spans) = (config.redis.require_durable, config.trace.clone());
        let (file, unit) = (file.map(Path::to_owned), unit.to_owned());
        tokio::spawn(logging.job_lines().report());
        let of_refusal = in_force.subscribe();
        tokio::spawn(
            Reload { file, unit, config, live, in_force, logging, system, is_sandboxed }
                .run(hangups),
        );
        let tracing = Tracer::start(&spans, role.service());
        let tracer = tracing.as_ref().map(|(tracer, _)| tracer.clone());
        // Before Redis answers: the page says that it does not.
        let is_supervisor = matches!(role, PreparedRole::Supervisor(_));
        let api = if is_supervisor { Api::start(of_api, tracer.clone()) } else { None };
        let config = of_refusal;
        let serving = Serving { role, tracer, served, wait, require_durable, end, config };
        let ended = Box::pin(serving.run()).await;

        if let Some(api) = api {
            api.end().await;
        }
        if let Some((_, sending)) = tracing {
            sending.end().await;
        }
        ended
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

/// Returns the actors of the unit whose jobs run as processes, with their types.
fn of_processes<'a>(
    config: &'a Config,
    unit: &'a Unit,
) -> impl Iterator<Item = (&'a ActorUnit, &'a TypeConfig)> {
    let actors = if let Unit::Actors(actors) = unit { actors.as_slice() } else { &[] };
    let types = actors.iter().filter_map(|of| Some((of, config.types.get(&of.id.script_type)?)));
    types.filter(|(_, of_type)| of_type.engine == EngineKind::Command)
}

/// Warns if the jobs of a unit may fill more than the file system of their folders has free.
fn warn_if_small(config: &Config, unit: &Unit) {
    const MIB: u64 = 1 << 20;
    let of_actor = |(actor, of_type): (&ActorUnit, &TypeConfig)| {
        of_type.sandbox.disk.saturating_mul(u64::try_from(actor.tasks).unwrap_or(u64::MAX))
    };
    // Types without a bound are left out.
    let wanted = of_processes(config, unit).map(of_actor).fold(0, u64::saturating_add);
    let folder = folder_of_jobs();
    let Ok(disk) = statvfs(&folder) else { return };
    #[allow(clippy::useless_conversion, reason = "their types differ between processors")]
    let free = u64::from(disk.blocks_available()).saturating_mul(disk.fragment_size().into());
    if wanted > free {
        warn!(
            "the jobs of this process may fill {} of {}, by `disk` of their sandbox for each task, but {} are \
             free; without space jobs go back to their queue: lower `disk` or `tasks`, or enlarge the file system",
            format_size(wanted),
            folder.display(),
            format_size(free / MIB * MIB),
        );
    }
}

/// Everything that a unit needs.
struct PreparedUnit {
    role: PreparedRole,
    live: LiveSettings,
    /// The stores of the whole system.
    system: Shards,
    /// The stores of the shards that the unit serves.
    served: Vec<Store>,
    /// Asks the unit to shut down.
    end: watch::Sender<Shutdown>,
}

/// Prepares the role with its slice of the configuration.
fn prepare(config: &Config, role: Unit, unit: &str) -> Result<PreparedUnit, Error> {
    let set = |store: Store| {
        store.of_jobs(&config.job).with_legacy_queues(config.supervisor.served_legacy_queues())
    };
    let system = Shards::open(&config.redis, set)
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    let home = system.home();
    let shards = match role {
        // Messages of RabbitMQ are on the home shard.
        Unit::Broker(_) => vec![Shard::HOME],
        Unit::Supervisor | Unit::Actors(_) => config.redis.served_shards(),
    };
    let served: Vec<Store> = shards.iter().map(|shard| system.at(*shard).clone()).collect();
    let (end, _) = watch::channel(Shutdown::No);
    let (report, beat_within) = (notify::reporter(), notify::beat_within());
    let (role, live) = match role {
        Unit::Supervisor => {
            let (live, settings) = watch::channel(Arc::new(supervisor_settings(config)));
            let (unit, system) = (unit.to_owned(), system.clone());
            let (served, tracer) = (shards, None);
            let role = Supervisor { unit, system, served, settings, report, beat_within, tracer };
            (PreparedRole::Supervisor(role), LiveSettings::Supervisor(live))
        }
        Unit::Broker(node) => {
            let client = Client::open(config)?;
            let settings = Arc::new(broker_settings(config)?);
            let (store, unit) = (home.clone(), unit.to_owned());
            let live = LiveSettings::Broker(Arc::clone(&settings), Box::new(client.clone()));
            let tracer = None;
            let broker =
                Broker { store, client, unit, node, settings, report, beat_within, tracer };
            (PreparedRole::Broker(Box::new(broker)), live)
        }
        Unit::Actors(actors) => {
            let (live, settings) = watch::channel(Arc::new(actor_settings(config, actors, home)?));
            let (end, shards, home) = (end.clone(), served.len(), home.clone());
            let tracer = None;
            let role = Actors { settings, beat_within, report, end, shards, tracer, home };
            (PreparedRole::Actors(role), LiveSettings::Actors(live))
        }
    };
    Ok(PreparedUnit { role, live, system, served, end })
}

impl From<ActorError> for Error {
    fn from(error: ActorError) -> Self {
        let exit = match &error {
            ActorError::Store(StoreError::NotPermitted { .. }) => Exit::NotPermitted,
            ActorError::Store(_) => Exit::Unavailable,
            ActorError::IdentityHeld { .. } | ActorError::HeldByClone { .. } => Exit::Taken,
            ActorError::Threads(_) => Exit::Machine,
        };
        Self::new(exit, error.to_string())
    }
}
