//! `hero actor …`: lists the live actors and sends them control messages.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::exec::parsed;
use super::sought::Sought;
use super::table::TextTable;
use super::time::{age, brief};
use super::{Global, output};
use crate::client::{ActorDocument, Client};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::message::{Control, Presence};
use crate::proto::target::ActorId;

/// List live actors; drain, resume, ping or stop them
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
    /// Ask actors for an answer, and print the time that it took
    #[command(after_help = "Example:\n  hero actor ping osis-default-1")]
    Ping(PingActors),
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

#[derive(Debug, Args)]
pub(super) struct PingActors {
    #[command(flatten)]
    which: ActorNames,
    /// Give up on each after this time
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    wait: Duration,
}

impl ActorCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let client = global.client()?;
        match self {
            Self::List(list) => list.run(&client, global).await,
            Self::Drain(which) => which.tell(&client, &Control::Drain, "drain", global.json).await,
            Self::Resume(which) => {
                which.tell(&client, &Control::Resume, "resume", global.json).await
            }
            Self::Ping(ping) => ping.run(&client, global.json).await,
            Self::Stop(which) => which.tell(&client, &Control::Shutdown, "stop", global.json).await,
        }
    }
}

impl ActorList {
    async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let script_type = self.script_type.as_deref().map(parsed).transpose()?;
        let actors = client.actor_documents(script_type.as_ref()).await?;
        let table = || table(&actors, Timestamp::now()).show(global.look());
        output::print(global.json, || json!({ "actors": actors }), table)?;
        Sought::new("live actor")
            .by("of type", script_type.as_ref())
            .tell(global, actors.is_empty());
        Ok(ExitCode::SUCCESS)
    }
}

impl ActorNames {
    fn ids(&self) -> Result<Vec<ActorId>, Error> {
        let id = |name: &String| {
            ActorId::of_name(name).map_err(|error| Error::new(Exit::Data, error.to_string()))
        };
        self.actors.iter().map(id).collect()
    }

    /// Sends the message to each actor. All must be live: a message to an absent actor would stay
    /// in its queue until the next start.
    async fn tell(
        &self,
        client: &Client,
        message: &Control,
        verb: &str,
        json: bool,
    ) -> Result<ExitCode, Error> {
        let named = self.ids()?;
        client.check_live(&named).await?;
        for id in &named {
            let untold = client.tell_actor(id, message).await?;
            if !json {
                output::line(&format!("{id} told to {verb}"))?;
            }
            for shard in untold {
                output::note(&format!("hero: {id}: {shard}"));
            }
        }
        if json {
            let told: Vec<String> = named.iter().map(ToString::to_string).collect();
            output::json(&json!({ "told": told }))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl PingActors {
    async fn run(&self, client: &Client, json: bool) -> Result<ExitCode, Error> {
        let mut answers = Vec::new();
        for id in self.which.ids()? {
            let took = client.ping_actor(&id, self.wait).await?;
            if !json {
                output::line(&format!("{id} answered after {}", brief(took)))?;
            }
            answers.push(json!({ "actor": id.to_string(), "took_s": took.as_secs_f64() }));
        }
        if json {
            output::json(&json!({ "actors": answers }))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(actors: &[ActorDocument], now: Timestamp) -> TextTable {
    let titles =
        ["!ACTOR", "~*STATE", ">RUNNING", ">TASKS", "~HOST", "?>PID", ">UP", ">SEEN", "?VERSION"];
    let mut table = TextTable::new(&titles);
    for ActorDocument { actor, presence, .. } in actors {
        let ago = |time: &str| time.parse().map(|time| age(time, now)).unwrap_or_default();
        table.row([
            actor.clone(),
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
    table
}

/// The actor's state, with the reason if it holds back.
fn state(presence: &Presence) -> String {
    let state = presence.state.as_str();
    match &presence.holding {
        Some(reason) => format!("{state}, holding: {reason}"),
        None => state.to_owned(),
    }
}
