//! `hero actor …`: the live actors, and what they can be told.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::exec::parsed;
use super::table::Table;
use super::time::age;
use super::{Global, output};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::proto::message::{Control, Presence};
use crate::proto::target::{ActorId, IllegalName};
use crate::store::PresenceOf;

/// Look at the live actors and tell them what to do
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero actor list\n  hero actor drain osis-default-1")]
pub(super) enum Actor {
    List(List),
    /// Let actors take no more jobs; running ones end, the process stays
    #[command(after_help = "Example:\n  hero actor drain osis-default-1")]
    Drain(Which),
    /// Let drained actors take jobs again
    #[command(after_help = "Example:\n  hero actor resume osis-default-1")]
    Resume(Which),
    /// Let actors drain and their processes exit
    #[command(after_help = "Example:\n  hero actor stop osis-default-1")]
    Stop(Which),
}

/// List the live actors
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero actor list --type osis")]
pub(super) struct List {
    /// Those of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// The actors, each as TYPE-GROUP-INSTANCE or TYPE:GROUP:INSTANCE
    #[arg(required = true, value_name = "ACTOR")]
    actors: Vec<String>,
}

impl Actor {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let client = global.client()?;
        match self {
            Self::List(list) => list.run(&client, global.json).await,
            Self::Drain(which) => which.tell(&client, &Control::Drain, global.json).await,
            Self::Resume(which) => which.tell(&client, &Control::Resume, global.json).await,
            Self::Stop(which) => which.tell(&client, &Control::Shutdown, global.json).await,
        }
    }
}

impl List {
    async fn run(&self, client: &Client, json: bool) -> Result<ExitCode, Error> {
        let script_type = self.script_type.as_deref().map(parsed).transpose()?;
        let actors = client.list_actors(script_type.as_ref()).await?;
        output::print(
            json,
            || json!({ "actors": actors.iter().map(document).collect::<Vec<Value>>() }),
            || table(&actors, Timestamp::now()),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Which {
    /// Tells each of them. A message to an actor that does not live would wait for its next start.
    async fn tell(
        &self,
        client: &Client,
        message: &Control,
        json: bool,
    ) -> Result<ExitCode, Error> {
        let named: Vec<ActorId> =
            self.actors.iter().map(|name| actor(name)).collect::<Result<_, _>>()?;
        let live = client.list_actors(None).await?;
        if let Some(missing) = named.iter().find(|id| live.iter().all(|one| one.actor != **id)) {
            let message = format!("no live actor {missing}; hero actor list shows those that are");
            return Err(Error::new(Exit::NotFound, message));
        }
        for id in &named {
            client.tell_actor(id, message).await?;
            if !json {
                output::line(&format!("{id} told"))?;
            }
        }
        if json {
            let told: Vec<String> = named.iter().map(ToString::to_string).collect();
            output::json(&json!({ "told": told }))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Either spelling of an actor.
fn actor(name: &str) -> Result<ActorId, Error> {
    let illegal = |error: IllegalName| Error::new(Exit::Data, error.to_string());
    if name.contains(':') {
        name.parse().map_err(illegal)
    } else {
        ActorId::from_unit(name).map_err(illegal)
    }
}

fn table(actors: &[PresenceOf], now: Timestamp) -> String {
    let titles =
        ["ACTOR", "STATE", ">RUNNING", ">TASKS", "HOST", ">PID", ">UP", ">SEEN", "VERSION"];
    let mut table = Table::new(&titles);
    for PresenceOf { actor, presence } in actors {
        let ago = |time: &str| time.parse().map(|time| age(time, now)).unwrap_or_default();
        table.row([
            actor.to_string(),
            state(presence),
            presence.running.to_string(),
            presence.tasks.to_string(),
            presence.hostname.clone(),
            presence.pid.to_string(),
            ago(&presence.started_at),
            ago(&presence.last_heartbeat),
            presence.version.clone(),
        ]);
    }
    table.render()
}

/// Whether it takes jobs, and if not, why.
fn state(presence: &Presence) -> String {
    let state = presence.state.as_str();
    match &presence.holding {
        Some(reason) => format!("{state}, holding: {reason}"),
        None => state.to_owned(),
    }
}

/// What the actor says of itself, and which one it is.
fn document(PresenceOf { actor, presence }: &PresenceOf) -> Value {
    let mut document = json!(presence);
    document["actor"] = json!(actor.to_string());
    document["script_type"] = json!(actor.script_type);
    document["group"] = json!(actor.group);
    document["instance"] = json!(actor.instance);
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_found_by_either_spelling() {
        let id = actor("osis-gpu-large-1").expect("a unit");
        assert_eq!(actor("osis:gpu-large:1").expect("an actor"), id);
        assert_eq!(actor("osis").expect_err("neither").exit, Exit::Data);
    }
}
