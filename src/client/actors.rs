//! Live actors: their list, and control messages to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;

use super::documents::ActorDocument;
use super::status::merged;
use super::{ActorClient, ClientError, Result};
use crate::proto::job::JobId;
use crate::proto::message::{ActorState, Control};
use crate::proto::selector::Selector;
use crate::proto::shard::Shard;
use crate::proto::target::{ActorId, ScriptType};
use crate::store::{PresenceOf, Store, StoreError};

/// A shard where an actor could not be told something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachedShard {
    pub shard: Shard,
    pub error: StoreError,
}

impl fmt::Display for UnreachedShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not told on shard {}: {}", self.shard, self.error)
    }
}

/// The live actors of each shard that answers, and the shards that do not.
struct Reached<'a> {
    answers: Vec<(&'a Store, Vec<PresenceOf>)>,
    away: Vec<UnreachedShard>,
}

impl<'a> ActorClient<'a> {
    /// Lists the live actors by name, of one script type if one is given. A process that serves several shards is one
    /// actor, with the jobs of all of them.
    pub async fn list(self, script_type: Option<&ScriptType>) -> Result<Vec<PresenceOf>> {
        let live = self.client.shards.each(|store| async move {
            let mut live = store.actors().list(script_type).await?;
            store.actors().count_running(&mut live).await?;
            Ok(live)
        });
        Ok(merged(live.await?, |of| of.actor.clone(), add_shard))
    }

    /// Returns the actors that have had no heartbeat for a while, though they have not shut down: each with its last one,
    /// within a day.
    pub async fn silent(self, live: &[PresenceOf]) -> Result<Vec<(ActorId, Timestamp)>> {
        let of_shards = self.client.shards.each(|store| store.actors().last_heartbeats()).await?;
        let live: BTreeSet<&ActorId> = live.iter().map(|of| &of.actor).collect();
        let mut silent: BTreeMap<ActorId, Timestamp> = BTreeMap::new();
        for (actor, at) in of_shards.into_iter().flatten().filter(|(of, _)| !live.contains(of)) {
            let latest = silent.entry(actor).or_insert(at);
            *latest = at.max(*latest);
        }
        Ok(silent.into_iter().collect())
    }

    /// Sends one actor a control message: drain, resume, shut down. Each shard that its processes serve gets it;
    /// a process gets only one message to shut down, as another would end its next start. Returns the shards
    /// that do not answer, while others do.
    ///
    /// # Errors
    /// [`ClientError::Store`] if no shard answers.
    pub async fn send(self, actor: &ActorId, message: &Control) -> Result<Vec<UnreachedShard>> {
        let unreached = self.tell_shards(actor, message).await?;
        let what = match message {
            Control::Drain => "actor.drain",
            Control::Resume => "actor.resume",
            Control::Shutdown => "actor.stop",
            _ => return Ok(unreached),
        };
        self.client.audit().note(what, actor).await;
        Ok(unreached)
    }

    pub(super) async fn tell_shards(
        self,
        actor: &ActorId,
        message: &Control,
    ) -> Result<Vec<UnreachedShard>> {
        if let [only] = self.client.shards.all() {
            only.actors().send(actor, message).await?;
            return Ok(Vec::new());
        }
        let Reached { answers, away: mut unreached } = self.ask_for_actors(actor).await?;
        let is_live = |live: &[PresenceOf]| live.iter().any(|of| of.actor == *actor);
        let is_anywhere = answers.iter().any(|(_, live)| is_live(live));
        let mut of_processes: BTreeMap<String, Vec<&Store>> = BTreeMap::new();
        for (store, live) in &answers {
            let presence = live.iter().find(|of| of.actor == *actor).map(|of| &of.presence);
            let process = match presence {
                None if is_anywhere => continue,
                _ if *message != Control::Shutdown => format!("shard {}", store.shard()),
                None => String::new(),
                Some(of) => format!("{} {} {}", of.machine, of.hostname, of.pid),
            };
            of_processes.entry(process).or_default().push(store);
        }
        let processes = of_processes.len();
        let told = of_processes.into_values().map(|shards| notify_one(shards, actor, message));
        let failed: Vec<UnreachedShard> = join_all(told).await.into_iter().flatten().collect();
        if failed.len() == processes
            && let Some(first) = failed.first()
        {
            return Err(first.error.clone().into());
        }
        unreached.extend(failed);
        Ok(unreached)
    }

    /// Asks each shard for its live actors of the type of one. It fails if no shard answers.
    async fn ask_for_actors(self, of: &ActorId) -> Result<Reached<'a>> {
        let script_type = Some(&of.script_type);
        let all = self.client.shards.all().iter();
        let asked = join_all(all.clone().map(|store| store.actors().list(script_type))).await;
        let (mut answers, mut away) = (Vec::new(), Vec::new());
        for (store, answer) in all.zip(asked) {
            match answer {
                Ok(live) => answers.push((store, live)),
                Err(error) => away.push(UnreachedShard { shard: store.shard(), error }),
            }
        }
        match away.first() {
            Some(first) if answers.is_empty() => Err(first.error.clone().into()),
            _ => Ok(Reached { answers, away }),
        }
    }

    /// Lists the live actors by name, of one script type if one is given, and with labels that match an expression if
    /// one is given.
    pub async fn documents(
        self,
        script_type: Option<&ScriptType>,
        selector: Option<&Selector>,
    ) -> Result<Vec<ActorDocument>> {
        let mut live = self.list(script_type).await?;
        live.retain(|of| selector.is_none_or(|selector| selector.matches(&of.presence.labels)));
        Ok(live.into_iter().map(ActorDocument::from).collect())
    }

    /// Sends a live actor a control message: drain, resume, shut down. Returns the shards that do not answer,
    /// while others do.
    ///
    /// # Errors
    /// [`ClientError::NoSuchActor`] if it is not live; [`ClientError::Store`] if no shard answers.
    pub async fn send_to_live(
        self,
        actor: &ActorId,
        message: &Control,
    ) -> Result<Vec<UnreachedShard>> {
        // A message to an absent one would stay in its queue until the next start.
        let Reached { answers, away } = self.ask_for_actors(actor).await?;
        if answers.iter().flat_map(|(_, live)| live).all(|one| one.actor != *actor) {
            // It may be on a shard that does not answer.
            return Err(away.into_iter().next().map_or_else(
                || ClientError::NoSuchActor(actor.clone()),
                |unreached| unreached.error.into(),
            ));
        }
        self.send(actor, message).await
    }

    /// Asks a live actor for an answer. Returns the time that it took.
    ///
    /// # Errors
    /// [`ClientError::NoSuchActor`] if it is not live; [`ClientError::NoPong`] if it does not answer in time.
    pub async fn ping(self, actor: &ActorId, patience: Duration) -> Result<Duration> {
        let Reached { answers, .. } = self.ask_for_actors(actor).await?;
        let is_live =
            |(_, live): &&(&Store, Vec<PresenceOf>)| live.iter().any(|of| of.actor == *actor);
        let on = answers.iter().find(is_live);
        let (store, _) = on.ok_or_else(|| ClientError::NoSuchActor(actor.clone()))?;
        let reply_to = store.keys().reply(&JobId::random());
        let began = Instant::now();
        store.actors().send(actor, &Control::Ping { reply_to: Some(reply_to.clone()) }).await?;
        let mut connection = store.blocking();
        match connection.pop(&[reply_to], patience).await? {
            Some(_) => Ok(began.elapsed()),
            None => Err(ClientError::NoPong { actor: actor.clone(), waited: began.elapsed() }),
        }
    }
}

/// Notifies an actor on the first of these shards that takes it; returns the last if none does.
async fn notify_one(
    shards: Vec<&Store>,
    actor: &ActorId,
    message: &Control,
) -> Option<UnreachedShard> {
    let mut unreached = None;
    for store in shards {
        match store.actors().send(actor, message).await {
            Ok(()) => return None,
            Err(error) => unreached = Some(UnreachedShard { shard: store.shard(), error }),
        }
    }
    unreached
}

/// Adds the presence of an actor on another shard. Its running jobs add up; its tasks do not, since the same tasks run the
/// jobs of all shards.
fn add_shard(known: &mut PresenceOf, of: PresenceOf) {
    let (known, of) = (&mut known.presence, of.presence);
    known.running += of.running;
    known.tasks = known.tasks.max(of.tasks);
    known.holding = known.holding.take().or(of.holding);
    if of.state == ActorState::Draining {
        known.state = of.state;
    }
    if of.last_heartbeat > known.last_heartbeat {
        known.last_heartbeat = of.last_heartbeat;
    }
}
