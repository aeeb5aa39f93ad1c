//! `hero actor …`: lists the live actors and sends them control messages.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::answer::NoResults;
use super::input::{self, bad, parsed};
use super::table::TextTable;
use super::time::{age_of_text, brief};
use super::{Global, output};
use crate::client::ActorDocument;
use crate::config::parse_duration;
use crate::error::Error;
use crate::proto::message::Presence;
use crate::proto::target::{ActorId, ScriptType};
use crate::rpc::results::{LiveActors, NotifiedActors, Pong};

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
#[command(
    after_help = "Example:\n  hero actor list --type osis\n  hero actor list --where 'os = debian and release >= 12'"
)]
pub(super) struct ActorList {
    /// Only actors of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Only actors whose labels match, as --where of a job; --json has the labels
    #[arg(long = "where", value_name = "EXPRESSION")]
    selector: Option<String>,
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
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        match self {
            Self::List(list) => list.run(global).await,
            Self::Drain(which) => which.each("actor.drain", "drain", global).await,
            Self::Resume(which) => which.each("actor.resume", "resume", global).await,
            Self::Ping(ping) => ping.run(global).await,
            Self::Stop(which) => which.each("actor.stop", "stop", global).await,
        }
    }
}

impl ActorList {
    async fn run(&self, global: &Global) -> Result<(), Error> {
        let script_type: Option<ScriptType> =
            self.script_type.as_deref().map(parsed).transpose()?;
        let selector = self.selector.as_deref().map(input::selector).transpose()?;
        let selector_text = selector.as_ref().map(ToString::to_string);
        let params = json!({ "script_type": script_type, "where": selector_text });
        let (document, list) = global.methods()?.typed::<LiveActors>("actor.list", params).await?;
        let none = NoResults::new("live actor").by("of type", script_type.as_ref());
        let none = none.by("that matches", selector.as_ref());
        global.list(|| document, || table(&list.actors, Timestamp::now()), none)
    }
}

impl ActorNames {
    fn ids(&self) -> Result<Vec<ActorId>, Error> {
        self.actors.iter().map(|name| ActorId::of_name(name).map_err(bad)).collect()
    }

    /// Calls a method for each actor. All must be live: an absent one comes first, whose call fails. While a shard
    /// does not answer, nobody knows all that live: then they come as named.
    async fn each(&self, method: &str, verb: &str, global: &Global) -> Result<(), Error> {
        let (methods, mut named) = (global.methods()?, self.ids()?);
        if named.len() > 1
            && let Ok((_, live)) = methods.typed::<LiveActors>("actor.list", json!({})).await
        {
            named.sort_by_cached_key(|id| live.actors.iter().any(|of| of.actor == id.to_string()));
        }
        let tell = async |id: &ActorId| {
            let params = json!({ "actor": id.to_string() });
            let (_, notified) = methods.typed::<NotifiedActors>(method, params).await?;
            output::notes(notified.not_told.iter().map(|shard| format!("{id}: {shard}")));
            Ok((true, format!("told to {verb}")))
        };
        global.each(&named, "told", tell).await
    }
}

impl PingActors {
    async fn run(self, global: &Global) -> Result<(), Error> {
        let (methods, mut answers) = (global.methods()?, Vec::new());
        for id in self.which.ids()? {
            let params = json!({ "actor": id.to_string(), "wait": self.wait.as_secs_f64() });
            let (_, pong) = methods.typed::<Pong>("actor.ping", params).await?;
            let took = Duration::from_secs_f64(pong.seconds);
            if !global.json {
                output::line(&format!("{id} answered after {}", brief(took)))?;
            }
            answers.push(json!({ "actor": pong.actor, "took_s": pong.seconds }));
        }
        if global.json {
            output::json(&json!({ "actors": answers }))?;
        }
        Ok(())
    }
}

fn table(actors: &[ActorDocument], now: Timestamp) -> TextTable<'_, ActorDocument> {
    TextTable::of(actors)
        .column("!ACTOR", &|of| of.actor.clone())
        .column("~*STATE", &|of| state(&of.presence))
        .column(">RUNNING", &|of| of.presence.running.to_string())
        .column(">TASKS", &|of| of.presence.tasks.to_string())
        .column("~HOST", &|of| of.presence.hostname.clone())
        .column("?>PID", &|of| of.presence.pid.to_string())
        .column(">UP", &|of| age_of_text(&of.presence.started_at, now))
        .column(">SEEN", &|of| age_of_text(&of.presence.last_heartbeat, now))
        .column("?VERSION", &|of| of.presence.version.clone())
}

/// The actor's state, with the reason if it holds back.
fn state(presence: &Presence) -> String {
    let state = presence.state.as_str();
    match &presence.holding {
        Some(reason) => format!("{state}, holding: {reason}"),
        None => state.to_owned(),
    }
}
