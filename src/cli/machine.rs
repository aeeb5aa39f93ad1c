//! `hero machine …`: lists the machines of actors, drains and resumes them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::answer::NoResults;
use super::api::{ApiMethods, CALL_WAIT};
use super::input::{self, parsed};
use super::table::{TextTable, facts};
use super::time::age_of_text;
use super::{Global, output};
use crate::client::{MachineActorDocument, MachineDocument};
use crate::config::{format_duration, parse_duration};
use crate::error::{Error, Exit};
use crate::proto::target::ScriptType;
use crate::proto::text::{counted, escape};
use crate::proto::units::readable_size;
use crate::rpc::results::{ForgottenMachine, MachineChange, MachineList};

/// List the machines that run actors; drain one before a reboot, and resume it
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero machine list\n  hero machine drain --wait 10m web1\n  \
                        hero machine resume web1")]
pub(super) enum MachineCommand {
    List(MachineFilter),
    /// Show a machine: its labels and its actors
    #[command(after_help = "Example:\n  hero machine show web1")]
    Show(MachineName),
    Drain(MachineDrain),
    /// Let the actors of a machine claim jobs again
    #[command(after_help = "Example:\n  hero machine resume web1")]
    Resume(MachineName),
    /// Forget a machine without a live actor before the time of `supervisor.machines_kept`
    #[command(
        after_help = "Example:\n  hero machine forget web1\n\nOf a machine that is live it forgets the actors that are absent."
    )]
    Forget(MachineName),
}

/// List the machines that run actors, or did in the last days
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero machine list --where 'role = web and release >= 12'")]
pub(super) struct MachineFilter {
    /// Only machines with actors of this script type, and these actors alone
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Only machines with actors whose labels match, as --where of a job, and these actors alone
    #[arg(long = "where", value_name = "EXPRESSION")]
    selector: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct MachineName {
    /// The machine: its host name, or the name that is its label `machine`
    machine: String,
}

/// Let the actors of a machine claim no more jobs, as before a reboot
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero machine drain --wait 10m web1 && ssh web1 reboot\n\n\
                        Exit code 75: jobs of it still run, or an actor has not answered. Actors that start again, as after a reboot, claim jobs.")]
pub(super) struct MachineDrain {
    #[command(flatten)]
    which: MachineName,
    /// Wait until no job of it runs, for this time at most
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

impl MachineCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let methods = global.methods()?;
        match self {
            Self::List(filter) => filter.run(&methods, global).await?,
            Self::Show(one) => one.show(&methods, global).await?,
            Self::Drain(drain) => return drain.run(&methods, global).await,
            Self::Resume(MachineName { machine }) => {
                let params = json!({ "machine": machine });
                let (document, change): (_, MachineChange) =
                    methods.typed("machine.resume", params).await?;
                output::notes(change.notes());
                let number = counted(change.actors.len() as u64, "actor", "actors");
                global.print(
                    || document,
                    || format!("{}: {number} resumed\n", escape(&change.host)),
                )?;
            }
            Self::Forget(MachineName { machine }) => {
                let params = json!({ "machine": machine });
                let (document, done): (_, ForgottenMachine) =
                    methods.typed("machine.forget", params).await?;
                global.print(|| document, || format!("{}\n", escape(&done.forgotten())))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl MachineFilter {
    async fn run(&self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        let script_type = self.script_type.as_deref().map(parsed::<ScriptType>).transpose()?;
        let selector = self.selector.as_deref().map(input::selector).transpose()?;
        let selector_text = selector.as_ref().map(ToString::to_string);
        let params = json!({ "script_type": script_type, "where": selector_text });
        let (document, MachineList { machines }) = methods.typed("machine.list", params).await?;
        let none = NoResults::new("machine").by("with actors of type", script_type.as_ref());
        let none = none.by("that matches", selector.as_ref());
        global.list(|| document, || table(&machines, Timestamp::now()), none)
    }
}

fn table(machines: &[MachineDocument], now: Timestamp) -> TextTable<'_, MachineDocument> {
    TextTable::of(machines)
        .column("!HOST", &|of| of.host.clone())
        .column("~MACHINE", &|of| of.machine.clone())
        .column("*STATE", &MachineDocument::state)
        .column(">RUNNING", &|of| of.running.to_string())
        .column(">TASKS", &|of| of.tasks.to_string())
        .column("?>LOAD", &|of| of.load.map(|load| format!("{load:.2}")).unwrap_or_default())
        .column("?>FREE", &|of| of.memory_available.map(readable_size).unwrap_or_default())
        .column(">SEEN", &|of| age_of_text(&of.seen_at, now))
        .column("~ACTORS", &|of| {
            of.actors.iter().map(|of| of.actor.as_str()).collect::<Vec<_>>().join(" ")
        })
}

impl MachineName {
    async fn show(&self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        let (_, MachineList { machines }) = methods.typed("machine.list", json!({})).await?;
        let found: Vec<&MachineDocument> = machines
            .iter()
            .filter(|of| of.machine == self.machine || of.host == self.machine)
            .collect();
        if found.is_empty() {
            let message = format!("no such machine: {}; hero machine list shows all", self.machine);
            return Err(Error::new(Exit::NotFound, message));
        }
        if global.json {
            return output::json(&json!({ "machines": found }));
        }
        for of in found {
            let labels = of.labels.iter().map(|(name, value)| format!("{name}={value}"));
            let lines = [
                ("host", of.host.clone()),
                ("machine", of.machine.clone()),
                ("state", of.state()),
                ("load", of.load.map(|load| format!("{load:.2}")).unwrap_or_default()),
                ("free", of.memory_available.map(readable_size).unwrap_or_default()),
                ("labels", labels.collect::<Vec<_>>().join(" ")),
            ];
            let actors = actors(&of.actors, Timestamp::now()).show(global.look());
            output::text(&format!("{}{actors}", facts(8, lines)))?;
        }
        Ok(())
    }
}

fn actors(actors: &[MachineActorDocument], now: Timestamp) -> TextTable<'_, MachineActorDocument> {
    TextTable::of(actors)
        .column("!ACTOR", &|of| of.actor.clone())
        .column("*STATE", &|of| of.state.map_or("absent", |state| state.as_str()).to_owned())
        .column(">RUNNING", &|of| of.running.to_string())
        .column(">TASKS", &|of| of.tasks.to_string())
        .column(">SEEN", &|of| age_of_text(&of.seen_at, now))
}

impl MachineDrain {
    async fn run(&self, methods: &ApiMethods, global: &Global) -> Result<ExitCode, Error> {
        let (machine, began) = (&self.which.machine, Instant::now());
        let (document, change) = loop {
            let left = self.wait.unwrap_or_default().saturating_sub(began.elapsed());
            let params = json!({ "machine": machine, "wait": left.min(CALL_WAIT).as_secs_f64() });
            let (document, change): (_, MachineChange) =
                methods.typed("machine.drain", params).await?;
            if change.is_drained() || left.is_zero() {
                break (document, change);
            }
        };
        global.print(|| document, || format!("{}\n", escape(&change.drained())))?;
        output::notes(change.notes());
        global.hint(&format!("afterwards: hero machine resume {machine}"));
        if change.is_drained() {
            return Ok(ExitCode::SUCCESS);
        }
        if change.running > 0 {
            let host = escape(&change.host);
            output::note(&match self.wait.map(format_duration) {
                Some(after) => format!(
                    "hero: gave up waiting after {after}: hero job list --status started --host {host}"
                ),
                None => "hero: --wait 10m waits for their end".to_owned(),
            });
        }
        Ok(Exit::GaveUp.into())
    }
}
