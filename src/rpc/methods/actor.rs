//! `actor.*`: the live actors, and messages to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::patience;
use super::{CallContext, Result, Scope};
use crate::client::ActorDocument;
use crate::proto::message::Control;
use crate::proto::selector::Selector;
use crate::proto::target::{ActorId, ScriptType};

/// The time to wait for the answer to a ping, in seconds.
const PING_S: f64 = 5.0;

methods! {
    /// Lists the live actors.
    "actor.list", Scope::Read => list;
    /// Lets an actor claim no more jobs; running jobs end, the process stays.
    "actor.drain", Scope::Operate => |context, params| tell(context, params, Control::Drain);
    /// Lets a drained actor claim jobs again.
    "actor.resume", Scope::Operate => |context, params| tell(context, params, Control::Resume);
    /// Drains an actor, then ends its process.
    "actor.stop", Scope::Admin => |context, params| tell(context, params, Control::Shutdown);
    /// Asks a live actor for an answer.
    "actor.ping", Scope::Read => ping;
}

/// The actors to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListActors {
    /// Only actors of this script type.
    script_type: Option<ScriptType>,
    /// Only actors whose labels match this expression, as `where` of a job.
    #[serde(rename = "where")]
    selector: Option<Selector>,
}

/// The live actors.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct LiveActors {
    /// The actors, by name.
    pub(crate) actors: Vec<ActorDocument>,
}

async fn list(context: CallContext, params: ListActors) -> Result<LiveActors> {
    let (script_type, selector) = (params.script_type.as_ref(), params.selector.as_ref());
    let mut actors = context.client.actors().documents(script_type, selector).await?;
    actors.retain(|actor| context.caller.admits(&actor.script_type, Some(&actor.group)));
    Ok(LiveActors { actors })
}

/// An actor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneActor {
    /// The actor, as TYPE-GROUP-INSTANCE or TYPE:GROUP:INSTANCE.
    actor: String,
}

impl OneActor {
    fn id(&self, context: &CallContext) -> Result<ActorId> {
        let id = ActorId::of_name(&self.actor)?;
        context.admits(id.script_type.as_str(), Some(id.group.as_str()))?;
        Ok(id)
    }
}

/// Actors that were told something.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct NotifiedActors {
    /// The actors.
    pub(crate) told: Vec<String>,
    /// The shards that do not answer, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_told: Vec<String>,
}

async fn tell(context: CallContext, params: OneActor, message: Control) -> Result<NotifiedActors> {
    let id = params.id(&context)?;
    context.needs_all_callers("tell actors what to do")?;
    let untold = context.client.actors().send_to_live(&id, &message).await?;
    let not_told = untold.iter().map(ToString::to_string).collect();
    Ok(NotifiedActors { told: vec![id.to_string()], not_told })
}

/// The answer of an actor.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pong {
    /// The actor.
    pub(crate) actor: String,
    /// The time that the answer took, in seconds.
    pub(crate) seconds: f64,
}

/// An actor to ask.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PingActor {
    /// The actor, as TYPE-GROUP-INSTANCE or TYPE:GROUP:INSTANCE.
    actor: String,
    /// The longest time to wait, in seconds, up to 3600; 5 without it.
    wait: Option<f64>,
}

async fn ping(context: CallContext, params: PingActor) -> Result<Pong> {
    let id = OneActor { actor: params.actor }.id(&context)?;
    let wait = patience(params.wait.or(Some(PING_S)))?;
    let took = context.client.actors().ping(&id, wait).await?;
    Ok(Pong { actor: id.to_string(), seconds: took.as_secs_f64() })
}
