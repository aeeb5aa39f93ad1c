//! `hero dev`: a supervisor and an actor per script type in one process tree, on a private Redis.

use std::cell::Cell;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::check::{availability, said};
use super::stage::{Stage, unavailable};
use super::{Global, output};
use crate::client::Client;
use crate::config::{Config, EngineKind};
use crate::daemon::{DEV_TOKEN, Interrupts};
use crate::error::Error;
use crate::proto::target::{ActorId, Group, Instance, ScriptType};

/// Run everything on a private Redis until Ctrl-C, or until COMMAND ends
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero dev\n  hero dev -- hero exec -t osis -e '40 + 2'\n\n\
                        COMMAND finds this program as `hero` in its PATH, the private Redis by HERO_CONFIG, and the\n\
                        address of the page in HERO_PAGE; clients of the API find it by HERO_API and HERO_TOKEN. The\n\
                        exit code is that of COMMAND.\n\
                        Everything is removed afterwards, including the jobs.")]
pub(super) struct Dev {
    /// Print the log of the daemons
    #[arg(short, long)]
    verbose: bool,
    /// After COMMAND, keep everything until Ctrl-C, and print the address of the page
    #[arg(long)]
    keep: bool,
    /// The command to run meanwhile
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Dev {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let began = Instant::now();
        let config = global.config()?;
        let mut interrupts = Interrupts::listen()
            .map_err(|error| unavailable(format!("cannot handle signals: {error}")))?;
        let mut stage = tokio::select! {
            stage = Stage::open(config, self.verbose, true) => stage?,
            signal = interrupts.next() => return Ok(ExitCode::from(128 + signal)),
        };
        let ended = Cell::new(if self.command.is_empty() { Some(0) } else { None });
        let played = tokio::select! {
            played = self.play(&mut stage, began, global.json, &ended) => played,
            // Without a command, or after it, an interrupt is the normal end.
            signal = interrupts.next() => Ok(ended.get().unwrap_or(128 + signal)),
        };
        let down = stage.take_down(&mut interrupts).await;
        let code = played?;
        down.map(|()| ExitCode::from(code))
    }

    /// Starts everything, and waits for the end of the command. Its exit code is in `ended` while
    /// everything is kept after it.
    async fn play(
        &self,
        stage: &mut Stage,
        began: Instant,
        json: bool,
        ended: &Cell<Option<u8>>,
    ) -> Result<u8, Error> {
        let mut types = Vec::new();
        for (script_type, reason) in availability(&stage.config) {
            match reason {
                None => types.push(script_type),
                // Nobody has asked for it: its folder of functions belongs to an installation.
                Some(_) if is_heroscript_by_default(&stage.config, &script_type) => {}
                Some(reason) => output::note(&said(&script_type, Some(&reason))),
            }
        }
        for problem in &stage.config.crontab().problems {
            output::note(&format!("{problem}: the periodic jobs of this file are not in force"));
        }
        let actors: Vec<ActorId> =
            types.iter().cloned().map(first_actor).collect::<Result<_, _>>()?;
        let token = uuid::Uuid::new_v4().simple().to_string();
        stage.start_unit("supervisor", &[(DEV_TOKEN, &token)])?;
        for actor in &actors {
            stage.start_unit(&actor.unit(), &[])?;
        }
        stage.until_present(&actors).await?;
        let has_supervisor =
            async |client: &Client| Ok(!client.list_supervisors().await?.is_empty());
        stage.until(has_supervisor, "presence of the supervisor").await?;
        let address = stage.until_api().await?;
        let access = Access { address, token };
        self.report_ready(stage, &types, &access, began, json)?;
        stage.start_command(&self.command, &access.variables())?;
        let code = stage.until_command_ends().await?;
        if !self.keep {
            return Ok(code);
        }
        ended.set(Some(code));
        output::note(&format!("the page, until Ctrl-C: {}", access.page()));
        stage.until_command_ends().await
    }

    /// Reports that the stage is ready, on standard error if the command owns standard output.
    fn report_ready(
        &self,
        stage: &Stage,
        types: &[ScriptType],
        access: &Access,
        began: Instant,
        json: bool,
    ) -> Result<(), Error> {
        let ready_s = began.elapsed().as_secs_f64();
        let names: Vec<&str> = types.iter().map(ScriptType::as_str).collect();
        let (url, file) = (stage.config.redis.redacted_url(), stage.config_file.display());
        let names = names.join(", ");
        if !self.command.is_empty() {
            output::note(&format!("ready in {ready_s:.2} s: {names} on {url}"));
            return Ok(());
        }
        if json {
            let file = file.to_string();
            let ready = json!({ "ready_s": ready_s, "types": types, "redis": url, "config": file,
                "api": access.address, "token": access.token });
            return output::json(&ready);
        }
        output::line(&format!(
            "ready in {ready_s:.2} s: {names} on {url} — in another terminal: \
             export HERO_CONFIG={file}\nthe page: {}",
            access.page()
        ))
    }
}

/// Returns whether a type is `HeroScript` as it is without a configuration.
fn is_heroscript_by_default(config: &Config, script_type: &ScriptType) -> bool {
    let of_type = config.types.get(script_type);
    of_type.is_some_and(|of_type| of_type.engine == EngineKind::HeroScript)
        && of_type == Config::default().types.get(script_type)
}

/// The way to the API of a stage.
struct Access {
    address: String,
    token: String,
}

impl Access {
    /// Returns the address of the page, which signs in the one who opens it.
    fn page(&self) -> String {
        format!("{}/login?token={}", self.address, self.token)
    }

    /// Returns the variables by which a command finds the page and the API.
    fn variables(&self) -> [(&'static str, String); 3] {
        let (address, token) = (self.address.clone(), self.token.clone());
        [("HERO_PAGE", self.page()), ("HERO_API", address), ("HERO_TOKEN", token)]
    }
}

/// Returns the first actor of a type: `TYPE:default:1`.
pub(super) fn first_actor(script_type: ScriptType) -> Result<ActorId, Error> {
    let instance = Instance::try_from(1).map_err(|error| unavailable(error.to_string()))?;
    Ok(ActorId { script_type, group: Group::default(), instance })
}
