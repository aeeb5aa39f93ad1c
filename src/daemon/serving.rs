//! Serves the shards of a unit: each once its Redis answers, though others may be away. With `redis.require_durable` it serves
//! none that forgets accepted jobs.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tracing::{debug, error, info, warn};

use super::notify;
use crate::actor::{Actors, RunningActors};
use crate::amqp::broker::Broker;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::report::Shutdown;
use crate::proto::units::brief;
use crate::store::{Backoff, RedisState, Store, StoreError};
use crate::supervisor::{RunningSupervisor, Supervisor};
use crate::trace::Tracer;

/// A role that is ready to run.
pub(super) enum PreparedRole {
    Supervisor(Supervisor),
    Actors(Actors),
    /// Serves one shard.
    Broker(Box<Broker>),
}

impl PreparedRole {
    /// Returns the name by which its spans are known.
    pub(super) fn service(&self) -> &'static str {
        match self {
            Self::Supervisor(_) => "hero-supervisor",
            Self::Actors(_) => "hero-actor",
            Self::Broker(_) => "hero-broker",
        }
    }
}

/// A unit that is about to serve its shards.
pub(super) struct Serving {
    pub(super) role: PreparedRole,
    /// Takes the spans of the role.
    pub(super) tracer: Option<Tracer>,
    /// The stores of its shards.
    pub(super) served: Vec<Store>,
    /// The longest time until Redis first answers.
    pub(super) wait: Option<Duration>,
    pub(super) require_durable: bool,
    pub(super) end: watch::Sender<Shutdown>,
    /// The configuration in force.
    pub(super) config: watch::Receiver<Arc<Config>>,
}

/// Returns where the shards are, for the log.
pub(super) fn places(served: &[Store]) -> String {
    if let [one] = served {
        return one.address().to_string();
    }
    let place = |store: &Store| format!("{} (shard {})", store.address(), store.shard());
    served.iter().map(place).collect::<Vec<_>>().join(", ")
}

impl Serving {
    /// Serves until the shutdown, or until Redis has refused the login for too long.
    ///
    /// # Errors
    /// [`Error`] of the first shard that has one; [`Exit::NotPermitted`] after a refused login.
    pub(super) async fn run(self) -> Result<(), Error> {
        let (stores, config, end) = (self.served.clone(), self.config.clone(), self.end.clone());
        let mut refused = None;
        let is_refused = async {
            refused = Some(is_refused(&stores, config).await);
            end.send_modify(|asked| *asked = (*asked).max(Shutdown::Drain));
            std::future::pending().await
        };
        let served = tokio::select! {
            served = self.serve() => served,
            never = is_refused => never,
        };
        match refused {
            Some(refused) => served.and(Err(refused)),
            None => served,
        }
    }

    /// Serves until the shutdown. An error of one shard, only while it starts, shuts the others down.
    async fn serve(self) -> Result<(), Error> {
        let Self { role, tracer, served, wait, require_durable, end, .. } = self;
        let (shutdown, answered) = (end.subscribe(), AtomicBool::new(false));
        let all = ServingRules { wait, require_durable, shutdown, answered };
        let role = match role {
            PreparedRole::Broker(mut broker) => {
                broker.tracer = tracer;
                let is_there = all.is_there(&broker.store).await?;
                return if is_there { Ok(broker.run(all.shutdown).await?) } else { Ok(()) };
            }
            PreparedRole::Supervisor(of) => {
                ShardRole::Supervisor(Supervisor { tracer, ..of }.start())
            }
            PreparedRole::Actors(of) => ShardRole::Actors(Actors { tracer, ..of }.start()?),
        };
        if let [store] = served.as_slice() {
            return all.serve(&role, 0, store.clone()).await;
        }
        let all = Rc::new(all);
        // The loops of an actor stay on their thread.
        let tasks = async {
            let mut tasks = JoinSet::new();
            for (place, store) in served.into_iter().enumerate() {
                let (all, role) = (Rc::clone(&all), role.clone());
                tasks.spawn_local(async move { all.serve(&role, place, store).await });
            }
            let mut first = Ok(());
            while let Some(ended) = tasks.join_next().await {
                let ended = ended.unwrap_or_else(|panic| {
                    Err(Error::new(Exit::Machine, format!("a shard ended: {panic}")))
                });
                if let Err(problem) = ended {
                    error!("{problem}: shutting down");
                    end.send_modify(|asked| *asked = (*asked).max(Shutdown::Drain));
                    first = first.and(Err(problem));
                }
            }
            first
        };
        LocalSet::new().run_until(tasks).await
    }
}

/// Waits until Redis has refused the login of a shard for `redis.refused_for`. Returns the error that ends the unit.
async fn is_refused(stores: &[Store], config: watch::Receiver<Arc<Config>>) -> Error {
    let shard = async |store: &Store| {
        let (mut refused, mut config) = (store.refused(), config.clone());
        loop {
            let since = refused.wait_for(Option::is_some).await.ok().and_then(|since| *since);
            let Some(since) = since else { std::future::pending().await };
            let patience = config.borrow_and_update().redis.refused_for;
            let waited = patience.saturating_sub(since.elapsed());
            tokio::select! {
                () = tokio::time::sleep(waited) => return (store.address(), since.elapsed()),
                _ = refused.wait_for(|now| *now != Some(since)) => {}
                Ok(()) = config.changed() => {}
            }
        }
    };
    let all = stores.iter().map(|store| Box::pin(shard(store)));
    let ((address, lasted), ..) = futures_util::future::select_all(all).await;
    let lasted = brief(lasted);
    let message = format!(
        "redis at {address} has refused the login for {lasted}; put its password into redis.password_file or \
         the credential redis-password, then start the unit"
    );
    error!("{message}: shutting down");
    Error::new(Exit::NotPermitted, message)
}

/// A role that serves any number of shards.
#[derive(Clone)]
enum ShardRole {
    Supervisor(RunningSupervisor),
    Actors(RunningActors),
}

/// The conditions of serving a shard.
struct ServingRules {
    wait: Option<Duration>,
    require_durable: bool,
    shutdown: watch::Receiver<Shutdown>,
    /// True once the Redis of a shard has answered.
    answered: AtomicBool,
}

impl ServingRules {
    /// Serves one shard once its Redis answers.
    async fn serve(&self, role: &ShardRole, place: usize, store: Store) -> Result<(), Error> {
        if self.is_there(&store).await? {
            let shutdown = self.shutdown.clone();
            match role {
                ShardRole::Supervisor(supervisor) => {
                    supervisor.serve(place, &store, shutdown).await;
                }
                ShardRole::Actors(actors) => actors.serve(place, &store, shutdown).await?,
            }
        }
        Ok(())
    }

    /// Asks Redis whether it is there and what it keeps.
    async fn ask(&self, store: &Store) -> Result<Option<RedisState>, StoreError> {
        store.ping().await?;
        ask_durability(store, self.require_durable).await
    }

    /// Waits until Redis answers, and checks what it keeps. Returns false if a signal came first. The wait is
    /// unlimited once another shard is there.
    async fn is_there(&self, store: &Store) -> Result<bool, Error> {
        let began = Instant::now();
        let mut backoff = Backoff::default();
        let mut is_reported = false;
        let mut shutdown = self.shutdown.clone();
        let is_over = || self.wait.is_some_and(|wait| began.elapsed() >= wait);
        loop {
            let error = match self.ask(store).await {
                Ok(state) => {
                    if let Some(state) = state {
                        check_durability(store, &state, self.require_durable)?;
                    }
                    self.answered.store(true, Ordering::Relaxed);
                    return Ok(true);
                }
                Err(error) => error,
            };
            let is_first = !self.answered.load(Ordering::Relaxed);
            let exit = match &error {
                StoreError::NotPermitted { .. } => Some(Exit::NotPermitted),
                StoreError::Settings(_) => Some(Exit::Config),
                StoreError::Failed { .. } if self.require_durable => Some(Exit::Unavailable),
                _ if is_first && is_over() => Some(Exit::Unavailable),
                _ => None,
            };
            if let Some(exit) = exit {
                return Err(Error::new(exit, error.to_string()));
            }
            if !std::mem::replace(&mut is_reported, true) {
                warn!("{error}; trying again until it answers");
                if is_first {
                    notify::waiting(&format!("not ready: {error}; trying again"));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.failed()) => {}
                _ = shutdown.wait_for(|asked| *asked > Shutdown::No) => return Ok(false),
            }
        }
    }
}

/// Asks Redis what it keeps of the accepted jobs. Returns `None` if it cannot tell now, and need not.
///
/// # Errors
/// [`StoreError`] if `redis.require_durable` is set and Redis does not answer.
async fn ask_durability(
    store: &Store,
    is_required: bool,
) -> Result<Option<RedisState>, StoreError> {
    match store.redis().state(false).await {
        Ok(state) => Ok(Some(state)),
        Err(error) if is_required => Err(error),
        Err(error) => {
            debug!("{error}");
            Ok(None)
        }
    }
}

/// Logs what Redis keeps of the accepted jobs, and warns of what it may lose.
///
/// # Errors
/// [`Exit::Config`] if `redis.require_durable` is set and Redis is not durable, or does not say.
fn check_durability(store: &Store, state: &RedisState, is_required: bool) -> Result<(), Error> {
    info!("redis at {} keeps {}", store.address(), state.keeps());
    if is_required && state.is_durable() != Some(true) {
        return Err(Error::new(Exit::Config, not_durable(&store.address(), state)));
    }
    for danger in state.dangers() {
        warn!("{danger}");
    }
    Ok(())
}

/// Returns the message that rejects a Redis that is not durable.
pub fn not_durable(address: &str, state: &RedisState) -> String {
    let reason = match state.dangers().as_slice() {
        [] => "whether it is durable cannot be known, as its user may not call INFO; allow +info \
               in its access control list"
            .to_owned(),
        dangers => dangers.join("; "),
    };
    format!(
        "cannot serve with redis at {address}: redis.require_durable is set, but {reason}; or set \
         redis.require_durable = false"
    )
}
