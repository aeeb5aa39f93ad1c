//! Live actors: their list, and control messages to them.

use std::time::{Duration, Instant};

use super::documents::ActorDocument;
use super::{Client, ClientError};
use crate::proto::job::JobId;
use crate::proto::message::Control;
use crate::proto::target::{ActorId, ScriptType};

impl Client {
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
        let reply_to = self.store.keys().reply(&JobId::random());
        let began = Instant::now();
        self.tell_live_actor(actor, &Control::Ping { reply_to: reply_to.clone() }).await?;
        let mut connection = self.store.blocking();
        match connection.pop(&[reply_to], patience).await? {
            Some(_) => Ok(began.elapsed()),
            None => Err(ClientError::NoPong { actor: actor.clone(), waited: began.elapsed() }),
        }
    }
}
