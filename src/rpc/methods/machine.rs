//! `machine.*`: the machines that actors live on, drained and resumed as a whole.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::patience;
use super::{CallContext, Result, RpcError, Scope, code};
use crate::client::MachineDocument;
use crate::proto::labels::Labels;
use crate::proto::message::{ActorState, Control};
use crate::proto::selector::Selector;
use crate::proto::target::{ActorId, ScriptType};
use crate::proto::text::counted;
use crate::store::PresenceOf;

/// The time between two checks of the jobs that still run.
const DRAIN_POLL: Duration = Duration::from_millis(100);
/// The time that actors have to report that they drain.
const ANSWER: Duration = Duration::from_secs(5);

methods! {
    /// Lists the machines that actors live on, or were seen on in the last days.
    "machine.list", Scope::Read => list;
    /// Lets no live actor of a machine claim more jobs, and waits for those that run.
    "machine.drain", Scope::Operate => drain;
    /// Lets the live actors of a machine claim jobs again.
    "machine.resume", Scope::Operate => async |context: CallContext, params: OneMachine| {
        order(&context, &params, &Control::Resume).await
    };
    /// Forgets a machine without a live actor, until one is seen on it again.
    "machine.forget", Scope::Operate => forget;
}

/// The machines to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListMachines {
    /// Only machines with actors of this script type, and these actors alone.
    script_type: Option<ScriptType>,
    /// Only machines with actors whose labels match this expression, as `where` of a job, and these actors alone.
    #[serde(rename = "where")]
    selector: Option<Selector>,
}

/// The machines.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct MachineList {
    /// The machines, by host name.
    pub(crate) machines: Vec<MachineDocument>,
}

async fn list(context: CallContext, params: ListMachines) -> Result<MachineList> {
    let ListMachines { script_type, selector } = params;
    let is_chosen = |actor: &ActorId, labels: &Labels| {
        script_type.as_ref().is_none_or(|of| *of == actor.script_type)
            && selector.as_ref().is_none_or(|of| of.matches(labels))
            && context.caller.admits_actor(actor)
    };
    Ok(MachineList { machines: context.client.machines().list(is_chosen).await? })
}

/// A machine.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneMachine {
    /// The machine: its name, or its host name, if no other has it.
    machine: String,
}

impl OneMachine {
    /// Returns the machine that the caller may change: all its actors are within its bounds.
    async fn found(&self, context: &CallContext) -> Result<MachineDocument> {
        let name = &self.machine;
        let mut found = context.client.machines().list(|_, _| true).await?;
        found.retain(|of| of.machine == *name || of.host == *name);
        let is_reached =
            |of: &MachineDocument| actors(of).iter().all(|id| context.caller.admits_actor(id));
        found.retain(|of| actors(of).iter().any(|id| context.caller.admits_actor(id)));
        match found.as_slice() {
            [] => {
                let message = format!("no such machine: {name}; hero machine list shows all");
                Err(RpcError::new(code::NOT_FOUND, message))
            }
            [one] if !is_reached(one) => {
                Err(context
                    .may_not(format!("change machine {name}: it has actors beyond the bounds")))
            }
            [one] => Ok(one.clone()),
            several => {
                let names: Vec<&str> = several.iter().map(|of| of.machine.as_str()).collect();
                let message = format!("several machines are {name}: {}", names.join(", "));
                Err(RpcError::wrong("machine", message))
            }
        }
    }
}

fn actors(machine: &MachineDocument) -> Vec<ActorId> {
    machine.actors.iter().filter_map(|of| of.actor.parse().ok()).collect()
}

/// A machine to drain.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DrainMachine {
    /// The machine: its name, or its host name, if no other has it.
    machine: String,
    /// The longest time to wait until no job of it runs, in seconds, up to 3600; 0 without it.
    wait: Option<f64>,
}

/// An order to the actors of a machine.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MachineChange {
    /// The name of the machine.
    pub(crate) machine: String,
    /// Its host name.
    pub(crate) host: String,
    /// Its live actors, which got the order.
    pub(crate) actors: Vec<String>,
    /// The shards that do not answer, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_told: Vec<String>,
    /// The number of their jobs that still run.
    pub(crate) running: usize,
    /// The actors that have not reported that they drain: they may claim jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unanswered: Vec<String>,
    /// The actors without a heartbeat, though they have not shut down: their jobs may still run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) silent: Vec<String>,
    /// The script types that no other live actor serves: their jobs wait.
    pub(crate) unserved: Vec<String>,
    /// True if no live supervisor is on another machine.
    #[serde(default)]
    pub(crate) has_all_supervisors: bool,
}

impl MachineChange {
    /// Returns whether no actor claims or runs a job, as far as all of them have reported.
    pub(crate) fn is_drained(&self) -> bool {
        self.running == 0 && self.unanswered.is_empty() && self.silent.is_empty()
    }

    /// Returns what came of an order to drain, in a line.
    pub(crate) fn drained(&self) -> String {
        let actors = counted(self.actors.len() as u64, "actor", "actors");
        let rest = match self.running as u64 {
            0 => "no job of it runs".to_owned(),
            running => counted(running, "job of it still runs", "jobs of it still run"),
        };
        let done = if self.is_drained() { "drained" } else { "ordered to drain" };
        format!("{}: {actors} {done}, {rest}", self.host)
    }

    /// Returns what a person should know of it, a line each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let unanswered = self.unanswered.iter().map(|actor| {
            format!("{actor} has not reported that it drains, and may claim jobs: hero actor list")
        });
        let silent = self.silent.iter().map(|actor| {
            format!("{actor} has no heartbeat any more: a job of it may still run on {}", self.host)
        });
        let unserved = (!self.unserved.is_empty()).then(|| {
            let types = self.unserved.join(", ");
            format!("no other live actor is ready for jobs of {types}: they wait")
        });
        let supervisors = self.has_all_supervisors.then(|| {
            "no supervisor is live on another machine: while this one is away nothing recovers jobs or fires schedules"
                .to_owned()
        });
        let of_actors = self.not_told.iter().cloned().chain(unanswered).chain(silent);
        of_actors.chain(unserved).chain(supervisors).collect()
    }

    /// Notes how far its actors have drained; `boots` are those that got the order.
    fn note(&mut self, live: &[PresenceOf], silent: &BTreeSet<ActorId>, boots: &[PresenceOf]) {
        (self.running, self.unanswered, self.silent) = (0, Vec::new(), Vec::new());
        for of in boots {
            let name = of.actor.to_string();
            match live.iter().find(|one| one.actor == of.actor) {
                Some(now) => {
                    self.running += now.presence.running;
                    let is_same = now.presence.boot_id == of.presence.boot_id;
                    if !is_same || now.presence.state != ActorState::Draining {
                        self.unanswered.push(name);
                    }
                }
                None if silent.contains(&of.actor) => self.silent.push(name),
                // It has shut down.
                None => {}
            }
        }
        let is_own = |of: &&PresenceOf| boots.iter().any(|own| own.actor == of.actor);
        let (own, others): (Vec<_>, Vec<_>) = live.iter().partition(is_own);
        let is_ready = |of: &&&PresenceOf| of.presence.state == ActorState::Ready;
        let served: BTreeSet<_> =
            others.iter().filter(is_ready).map(|of| &of.actor.script_type).collect();
        let unserved: BTreeSet<_> =
            own.iter().map(|of| &of.actor.script_type).filter(|of| !served.contains(of)).collect();
        self.unserved = unserved.into_iter().map(ToString::to_string).collect();
    }
}

async fn drain(context: CallContext, params: DrainMachine) -> Result<MachineChange> {
    let (began, wait) = (Instant::now(), patience(params.wait.or(Some(0.0)))?);
    let mut boots = context.client.actors().list(None).await?;
    let named = OneMachine { machine: params.machine };
    let mut change = order(&context, &named, &Control::Drain).await?;
    boots.retain(|of| change.actors.contains(&of.actor.to_string()));
    let supervisors = context.client.system().supervisors().await?;
    change.has_all_supervisors = supervisors.iter().all(|of| of.hostname == change.host);
    loop {
        let live = context.client.actors().list(None).await?;
        let silent = context.client.actors().silent(&live).await?;
        let silent = silent.into_iter().map(|(actor, _)| actor).collect();
        change.note(&live, &silent, &boots);
        let is_over = began.elapsed() >= wait;
        let may_answer = !change.unanswered.is_empty() && began.elapsed() < ANSWER;
        if change.is_drained() || is_over && !may_answer {
            return Ok(change);
        }
        tokio::time::sleep(DRAIN_POLL).await;
    }
}

/// Sends the live actors of a machine an order.
async fn order(
    context: &CallContext,
    params: &OneMachine,
    message: &Control,
) -> Result<MachineChange> {
    context.needs_all_callers("tell actors what to do")?;
    let machine = params.found(context).await?;
    let live = machine.actors.iter().filter(|of| of.live);
    let live = live.map(|of| of.actor.parse()).collect::<Result<Vec<ActorId>, _>>()?;
    if live.is_empty() {
        let message = format!("machine {} has no live actor: hero machine list", params.machine);
        return Err(RpcError::new(code::NOT_FOUND, message));
    }
    let not_told = context.client.machines().send(&machine, &live, message).await?;
    Ok(MachineChange {
        actors: live.iter().map(ToString::to_string).collect(),
        machine: machine.machine,
        host: machine.host,
        not_told,
        running: machine.running,
        ..MachineChange::default()
    })
}

/// A forgotten machine.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ForgottenMachine {
    /// Its name.
    pub(crate) forgotten: String,
    /// Its host name.
    pub(crate) host: String,
    /// The actors that were forgotten: those that are not live.
    pub(crate) actors: Vec<String>,
    /// True if others of it are live, so that it stays.
    pub(crate) live: bool,
}

impl ForgottenMachine {
    /// Returns what was forgotten, in a line.
    pub(crate) fn forgotten(&self) -> String {
        let absent = counted(self.actors.len() as u64, "absent actor", "absent actors");
        if self.live {
            format!("{}: {absent} forgotten", self.host)
        } else {
            format!("{} forgotten", self.host)
        }
    }
}

async fn forget(context: CallContext, params: OneMachine) -> Result<ForgottenMachine> {
    context.needs_all_callers("forget machines")?;
    let machine = params.found(&context).await?;
    let actors = context.client.machines().forget_absent(&machine).await?;
    if actors.is_empty() {
        let message = format!(
            "cannot forget machine {}: all its actors are live; hero machine drain lets them take no jobs",
            params.machine
        );
        return Err(RpcError::new(code::CONFLICT, message));
    }
    let actors = actors.iter().map(ToString::to_string).collect();
    let MachineDocument { machine, host, live, .. } = machine;
    Ok(ForgottenMachine { forgotten: machine, host, actors, live })
}
