//! `hero actor …`: lists the live actors and sends them control messages.

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

/// List live actors; drain, resume or stop them
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero actor list\n  hero actor drain osis-default-1")]
pub(super) enum ActorCommand {
    List(ActorList),
    /// Stop claiming jobs; running jobs end, the process stays
    #[command(after_help = "Example:\n  hero actor drain osis-default-1")]
    Drain(ActorNames),
    /// Let drained actors claim jobs again
    #[command(after_help = "Example:\n  hero actor resume osis-default-1")]
    Resume(ActorNames),
    /// Drain actors, then end their processes
    #[command(after_help = "Example:\n  hero actor stop osis-default-1")]
    Stop(ActorNames),
}

/// List the live actors
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero actor list --type osis")]
pub(super) struct ActorList {
    /// Only actors of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ActorNames {
    /// The actors, each as TYPE-GROUP-INSTANCE or TYPE:GROUP:INSTANCE
    #[arg(required = true, value_name = "ACTOR")]
    actors: Vec<String>,
}

impl ActorCommand {
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

impl ActorList {
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

impl ActorNames {
    /// Sends the message to each actor. All must be live: a message to an absent actor would stay
    /// in its queue until the next start.
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
            let message = format!(
                "cannot reach actor {missing}: it is not live; hero actor list shows the live ones"
            );
            return Err(Error::new(Exit::NotFound, message));
        }
        for id in &named {
            client.tell_actor(id, message).await?;
            if !json {
                output::line(&format!("{id} notified"))?;
            }
        }
        if json {
            let told: Vec<String> = named.iter().map(ToString::to_string).collect();
            output::json(&json!({ "told": told }))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Parses either spelling of an actor's name.
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

/// The actor's state, with the reason if it holds back.
fn state(presence: &Presence) -> String {
    let state = presence.state.as_str();
    match &presence.holding {
        Some(reason) => format!("{state}, holding: {reason}"),
        None => state.to_owned(),
    }
}

/// The actor's presence together with its name.
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
    fn both_spellings_name_the_same_actor() {
        let id = actor("osis-gpu-large-1").expect("a unit");
        assert_eq!(actor("osis:gpu-large:1").expect("an actor"), id);
        assert_eq!(actor("osis").expect_err("neither").exit, Exit::Data);
    }
}
