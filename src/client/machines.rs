//! Machines: those that actors live on, or were seen on, and the copies of a job for each of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActorClient, ClientError, MachineClient, Result};
use crate::proto::every::{Every, check_copied};
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::proto::labels::{LabelValue, Labels, label};
use crate::proto::message::{ActorState, Control, Presence};
use crate::proto::selector::Selector;
use crate::proto::target::{ActorId, ScriptType};
use crate::store::{PresenceOf, SeenActor};

/// A machine that actors live on, or were seen on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MachineDocument {
    /// Its name: the label `machine` of its actors.
    pub machine: String,
    /// Its host name.
    pub host: String,
    /// True if an actor of it is live.
    pub live: bool,
    /// When an actor of it was seen last: RFC 3339, UTC.
    pub seen_at: String,
    /// The number of jobs that its live actors run.
    pub running: usize,
    /// The number of jobs that they can run at once.
    pub tasks: usize,
    /// Its load over the last minute, by the latest heartbeat of a live actor.
    pub load: Option<f64>,
    /// Its available memory in bytes, by the same.
    pub memory_available: Option<u64>,
    /// The labels of its actors; of one in which they differ the value of a live one.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub labels: Labels,
    /// Its actors, by name.
    pub actors: Vec<MachineActorDocument>,
}

/// An actor of a machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MachineActorDocument {
    /// Its name, TYPE:GROUP:INSTANCE.
    pub actor: String,
    /// True if it is live.
    pub live: bool,
    /// Its state; null if it is not live.
    pub state: Option<ActorState>,
    /// The number of jobs that it runs.
    pub running: usize,
    /// The number of jobs that it can run at once.
    pub tasks: usize,
    /// When it was seen last: RFC 3339, UTC.
    pub seen_at: String,
}

/// One of those that get a copy of a job.
#[derive(Debug, Clone)]
pub struct FleetMember {
    pub machine: MachineDocument,
    /// The actor, of a job for every actor.
    pub actor: Option<ActorId>,
    /// The copy; none for one that is absent, if the job waits for nobody's return.
    pub job: Option<Job>,
}

/// An actor on a machine, live or not.
struct Sighting {
    actor: ActorId,
    labels: Labels,
    at: Timestamp,
    presence: Option<Presence>,
}

/// Returns the machines of actors that were seen and of those that are live, by host name: those with an actor that
/// `is_chosen`, with these actors alone.
pub fn machines_of(
    seen: &[SeenActor],
    live: &[PresenceOf],
    is_chosen: impl Fn(&ActorId, &Labels) -> bool,
) -> Vec<MachineDocument> {
    let seen = seen.iter().cloned().map(|SeenActor { actor, labels, at }| Sighting {
        actor,
        labels,
        at,
        presence: None,
    });
    let live = live.iter().cloned().map(|PresenceOf { actor, presence }| Sighting {
        actor,
        labels: presence.labels.clone(),
        at: presence.last_heartbeat.parse().unwrap_or(Timestamp::UNIX_EPOCH),
        presence: Some(presence),
    });
    // An actor is where it was seen last.
    let actors: BTreeMap<ActorId, Sighting> =
        seen.chain(live).map(|of| (of.actor.clone(), of)).collect();
    let mut of_machines: BTreeMap<LabelValue, Vec<Sighting>> = BTreeMap::new();
    for of in actors.into_values().filter(|of| is_chosen(&of.actor, &of.labels)) {
        if let Some(machine) = label(&of.labels, "machine").cloned() {
            of_machines.entry(machine).or_default().push(of);
        }
    }
    let mut machines: Vec<MachineDocument> =
        of_machines.into_iter().map(MachineDocument::from).collect();
    machines.sort_by(|one, other| one.host.cmp(&other.host));
    machines
}

impl MachineDocument {
    /// Returns the state of its live actors, where they agree.
    pub fn state(&self) -> String {
        let mut states: Vec<&str> =
            self.actors.iter().filter_map(|of| of.state.map(ActorState::as_str)).collect();
        states.sort_unstable();
        states.dedup();
        match states.as_slice() {
            [] => "absent".to_owned(),
            [one] if self.actors.iter().all(|of| of.live) => (*one).to_owned(),
            [_] => "in part absent".to_owned(),
            _ => "in part draining".to_owned(),
        }
    }
}

impl ActorClient<'_> {
    /// Lists the actors that were seen on machines in the time that supervisors keep, also those that are not live.
    pub async fn seen(self) -> Result<Vec<SeenActor>> {
        Ok(self.client.store.actors().seen_actors().await?)
    }
}

impl MachineClient<'_> {
    /// Lists the machines that actors live on, or were seen on in the time that supervisors keep, as [`machines_of`] does.
    pub async fn list(
        self,
        is_chosen: impl Fn(&ActorId, &Labels) -> bool,
    ) -> Result<Vec<MachineDocument>> {
        let seen = self.client.actors().seen().await?;
        Ok(machines_of(&seen, &self.client.actors().list(None).await?, is_chosen))
    }

    /// Makes the copies of a job for every machine or actor of its type that matches its `where`. Without `expires` those
    /// that are absent get none: nobody would know when they return.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if the job has a setting that its copies cannot share; [`ClientError::NoMachine`] if
    /// there is none; [`ClientError::Store`].
    pub async fn fleet(self, job: &Job, every: Every) -> Result<Vec<FleetMember>> {
        let script_type = check_copies(job)?;
        let selector = job.spec.r#where.as_ref();
        let is_chosen = |actor: &ActorId, labels: &Labels| {
            actor.script_type == script_type && selector.is_none_or(|of| of.matches(labels))
        };
        let machines = self.list(is_chosen).await?;
        if machines.is_empty() {
            let live = self.client.actors().list(Some(&script_type)).await?;
            let labels: Vec<&Labels> = live.iter().map(|of| &of.presence.labels).collect();
            let why = selector.map(|of| format!(" that matches {of}: {}", of.mismatch(&labels)));
            return Err(ClientError::NoMachine(format!(
                "{script_type}{}",
                why.unwrap_or_default()
            )));
        }
        let mut members = Vec::new();
        for machine in machines {
            if every == Every::Machine {
                let job = copy_for(job, &machine, None)?;
                members.push(FleetMember { machine, actor: None, job });
                continue;
            }
            for of in &machine.actors {
                let actor: ActorId = of.actor.parse()?;
                let job = copy_for(job, &machine, Some((&actor, of.live)))?;
                members.push(FleetMember { machine: machine.clone(), actor: Some(actor), job });
            }
        }
        Ok(members)
    }

    /// Sends these actors of a machine an order. Returns the shards that do not answer, each after its actor.
    pub async fn send(
        self,
        machine: &MachineDocument,
        actors: &[ActorId],
        message: &Control,
    ) -> Result<Vec<String>> {
        let mut untold = Vec::new();
        for actor in actors {
            let shards = self.client.actors().tell_shards(actor, message).await?;
            untold.extend(shards.iter().map(|shard| format!("{actor}: {shard}")));
        }
        let what = if *message == Control::Drain { "machine.drain" } else { "machine.resume" };
        let actors = actors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        self.client.audit().note(what, format!("{}: {actors}", machine.host)).await;
        Ok(untold)
    }

    /// Forgets the actors of a machine that are not live, until they are seen on it again. Returns them.
    pub async fn forget_absent(self, machine: &MachineDocument) -> Result<Vec<ActorId>> {
        let absent = machine.actors.iter().filter(|of| !of.live).map(|of| of.actor.parse());
        let absent = absent.collect::<Result<Vec<ActorId>, _>>()?;
        if !absent.is_empty() {
            self.client.store.actors().forget_seen(&absent).await?;
            self.client.audit().note("machine.forget", &machine.host).await;
        }
        Ok(absent)
    }
}

impl From<(LabelValue, Vec<Sighting>)> for MachineDocument {
    fn from((machine, actors): (LabelValue, Vec<Sighting>)) -> Self {
        let machine = machine.to_string();
        let latest = actors.iter().max_by_key(|of| (of.presence.is_some(), of.at));
        let host = latest.and_then(|of| label(&of.labels, "host")).map(ToString::to_string);
        let mut labels = latest.map(|of| of.labels.clone()).unwrap_or_default();
        let (live, absent): (Vec<&Sighting>, Vec<&Sighting>) =
            actors.iter().partition(|of| of.presence.is_some());
        for (name, value) in live.into_iter().chain(absent).flat_map(|of| &of.labels) {
            labels.entry(name.clone()).or_insert_with(|| value.clone());
        }
        // They tell actors apart, not machines.
        labels.retain(|name, _| !["group", "instance"].contains(&name.as_str()));
        let presence = latest.and_then(|of| of.presence.as_ref());
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let load = presence.and_then(|of| of.load_hundredths).map(|load| load as f64 / 100.0);
        let memory_available = presence.and_then(|of| of.memory_available);
        let seen_at = actors.iter().map(|of| of.at).max().unwrap_or_default().to_string();
        let actors: Vec<_> = actors.into_iter().map(MachineActorDocument::from).collect();
        Self {
            host: host.unwrap_or_else(|| machine.clone()),
            live: actors.iter().any(|of| of.live),
            running: actors.iter().map(|of| of.running).sum(),
            tasks: actors.iter().map(|of| of.tasks).sum(),
            machine,
            load,
            memory_available,
            seen_at,
            labels,
            actors,
        }
    }
}

impl From<Sighting> for MachineActorDocument {
    fn from(Sighting { actor, at, presence, .. }: Sighting) -> Self {
        Self {
            actor: actor.to_string(),
            live: presence.is_some(),
            state: presence.as_ref().map(|of| of.state),
            running: presence.as_ref().map_or(0, |of| of.running),
            tasks: presence.as_ref().map_or(0, |of| of.tasks),
            seen_at: at.to_string(),
        }
    }
}

/// Refuses settings that copies of a job cannot share. Returns its type.
fn check_copies(job: &Job) -> Result<ScriptType> {
    if job.has_fixed_id {
        let why = "names one job, and a job for every machine is a batch of copies";
        return Err(InvalidJob::new("id", why).into());
    }
    check_copied(&job.spec)?;
    let missing = || InvalidJob::new("script_type", "is missing").into();
    job.spec.script_type.clone().ok_or_else(missing)
}

/// Makes the copy of a job for a machine, or for an actor of it, with whether it is live.
fn copy_for(
    job: &Job,
    machine: &MachineDocument,
    actor: Option<(&ActorId, bool)>,
) -> Result<Option<Job>> {
    let is_live = actor.map_or(machine.live, |(_, is_live)| is_live);
    if !is_live && job.spec.expires.is_none() {
        return Ok(None);
    }
    let mut spec = job.spec.clone();
    let name = if let Some((actor, _)) = actor {
        spec.r#where = None;
        spec.group = Some(actor.group.clone());
        spec.instance = Some(actor.instance);
        format!("{actor} on {}", machine.host)
    } else {
        let own = format!("machine = \"{}\"", machine.machine);
        let all = spec.r#where.as_ref().map_or(own.clone(), |of| format!("({of}) and {own}"));
        let selector: Result<Selector, _> = all.parse();
        spec.r#where = Some(selector.map_err(|error| InvalidJob::new("where", error.to_string()))?);
        machine.host.clone()
    };
    let all = spec.name.as_ref().map_or(name.clone(), |all| format!("{all} on {name}"));
    spec.name = all.parse().ok().or(spec.name);
    // What else it has, such as the bounds of its token, stays.
    Ok(Some(Job { id: JobId::random(), spec, ..job.clone() }))
}
