//! Live actors: their list, and control messages to them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use super::documents::ActorDocument;
use super::{Client, ClientError};
use crate::proto::job::JobId;
use crate::proto::message::{ActorState, Control};
use crate::proto::target::{ActorId, ScriptType};
use crate::store::{PresenceOf, Store, StoreError};

impl Client {
    /// Lists the live actors by name, of one script type if one is given. One that serves several shards is one
    /// actor, with the jobs of all of them.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_actors(
        &self,
        script_type: Option<&ScriptType>,
    ) -> Result<Vec<PresenceOf>, ClientError> {
        Ok(together(self.shards.each(|store| live_on(store, script_type)).await?))
    }

    /// Sends one actor a control message: drain, resume, shut down. It gets the message on every shard that it
    /// serves; each of them alone is enough.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn tell_actor(&self, actor: &ActorId, message: &Control) -> Result<(), ClientError> {
        if let [only] = self.shards.all() {
            return Ok(only.tell_actor(actor, message).await?);
        }
        let live = self.shards_of(actor).await?;
        let told = if live.is_empty() { self.shards.all().iter().collect() } else { live };
        try_join_all(told.into_iter().map(|store| store.tell_actor(actor, message))).await?;
        Ok(())
    }

    /// Returns the shards on which an actor is live.
    async fn shards_of(&self, actor: &ActorId) -> Result<Vec<&Store>, ClientError> {
        let live = self.shards.each(|store| store.actors(Some(&actor.script_type))).await?;
        let of_shards = self.shards.all().iter().zip(live);
        let is_live =
            |(_, live): &(&Store, Vec<PresenceOf>)| live.iter().any(|of| of.actor == *actor);
        Ok(of_shards.filter(is_live).map(|(store, _)| store).collect())
    }

    /// Lists the live actors by name, of one script type if one is given.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn actor_documents(
        &self,
        script_type: Option<&ScriptType>,
    ) -> Result<Vec<ActorDocument>, ClientError> {
        let live = self.list_actors(script_type).await?;
        Ok(live.into_iter().map(ActorDocument::from).collect())
    }

    /// Checks that actors are live: a message to an absent one would stay in its queue until the next start.
    ///
    /// # Errors
    /// [`ClientError::NoSuchActor`] names the first that is not.
    pub async fn check_live(&self, actors: &[ActorId]) -> Result<(), ClientError> {
        let live = self.list_actors(None).await?;
        match actors.iter().find(|id| live.iter().all(|one| one.actor != **id)) {
            Some(missing) => Err(ClientError::NoSuchActor(missing.clone())),
            None => Ok(()),
        }
    }

    /// Sends a live actor a control message: drain, resume, shut down.
    ///
    /// # Errors
    /// [`ClientError::NoSuchActor`] if it is not live; [`ClientError::Store`].
    pub async fn tell_live_actor(
        &self,
        actor: &ActorId,
        message: &Control,
    ) -> Result<(), ClientError> {
        self.check_live(std::slice::from_ref(actor)).await?;
        self.tell_actor(actor, message).await
    }

    /// Asks a live actor for an answer. Returns the time that it took.
    ///
    /// # Errors
    /// [`ClientError::NoSuchActor`] if it is not live; [`ClientError::NoPong`] if it does not answer in time.
    pub async fn ping_actor(
        &self,
        actor: &ActorId,
        patience: Duration,
    ) -> Result<Duration, ClientError> {
        let live = self.shards_of(actor).await?;
        let store = *live.first().ok_or_else(|| ClientError::NoSuchActor(actor.clone()))?;
        let reply_to = store.keys().reply(&JobId::random());
        let began = Instant::now();
        store.tell_actor(actor, &Control::Ping { reply_to: reply_to.clone() }).await?;
        let mut connection = store.blocking();
        match connection.pop(&[reply_to], patience).await? {
            Some(_) => Ok(began.elapsed()),
            None => Err(ClientError::NoPong { actor: actor.clone(), waited: began.elapsed() }),
        }
    }
}

/// Returns the live actors of a shard with their running jobs.
async fn live_on(
    store: &Store,
    script_type: Option<&ScriptType>,
) -> Result<Vec<PresenceOf>, StoreError> {
    let mut live = store.actors(script_type).await?;
    store.count_running(&mut live).await?;
    Ok(live)
}

/// Returns the actors of all shards by name. Their running jobs add up; their tasks do not, since the same tasks run
/// the jobs of all shards.
fn together(of_shards: Vec<Vec<PresenceOf>>) -> Vec<PresenceOf> {
    let mut actors: BTreeMap<ActorId, PresenceOf> = BTreeMap::new();
    for of in of_shards.into_iter().flatten() {
        let Some(known) = actors.get_mut(&of.actor) else {
            actors.insert(of.actor.clone(), of);
            continue;
        };
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
    actors.into_values().collect()
}
