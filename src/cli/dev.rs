//! `hero dev`: a supervisor and an actor per script type in one process tree, on a private Redis.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::check::{availability, said};
use super::stage::{KeptFolder, Stage, StageFolder, first_actor};
use super::{Global, output};
use crate::client::Client;
use crate::config::{Config, EngineKind};
use crate::daemon::{DEV_TOKEN, Interrupts, ignores_hangup};
use crate::error::Error;
use crate::proto::target::{ActorId, ScriptType};

/// Run everything on a private Redis until Ctrl-C, or until COMMAND ends
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero dev\n  hero dev -- hero exec -t osis -e '40 + 2'\n  hero dev --keep ~/hero\n\n\
                        COMMAND finds this program as `hero` in its PATH, the private Redis by HERO_CONFIG, and the \
                        address of the page in HERO_PAGE; clients of the API find it by HERO_API and HERO_TOKEN. The \
                        exit code is COMMAND's.\n\
                        Everything is removed afterwards, including the jobs. With --keep DIR everything is in DIR: the \
                        jobs, tokens and logs, the address of the page, and the configuration, DIR/hero.toml, which is \
                        made by the first run and yours to change; --config FILE replaces it. The next run with the same \
                        DIR continues there: jobs that wait run, those that ran are run again. A changed configuration \
                        is taken over at the next start, or as by a service that is reloaded: kill -HUP PID. Periodic \
                        jobs are in DIR/cron.d, secrets in DIR/secrets, and scripts with a name in DIR/scripts."
)]
pub(super) struct Dev {
    /// Print the log of the daemons
    #[arg(short, long)]
    verbose: bool,
    /// Keep everything in this folder, for the next run: jobs, configuration, tokens
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    keep: Option<PathBuf>,
    /// The command to run meanwhile
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Dev {
    /// Returns true for the configuration of a `hero dev --keep`. The variable in a shell that works with one names it:
    /// another `hero dev` would take over the folders, the periodic jobs and the notifications of the first.
    pub(super) fn is_of_stage(&self, file: &Path) -> bool {
        let is_kept = KeptFolder::is_config(file);
        let real = |file: &Path| file.canonicalize().ok();
        let is_own = file.parent().and_then(real) == self.keep.as_deref().and_then(real);
        if is_kept && !is_own {
            output::note(&format!(
                "HERO_CONFIG names the configuration of another hero dev, {}: not taken; --config takes it",
                file.display()
            ));
        }
        is_kept
    }

    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let began = Instant::now();
        let config = global.config()?;
        // Under nohup no terminal that goes ends it.
        let has_terminal = at_terminal() && !ignores_hangup();
        let mut interrupts = Interrupts::with_hangups()?;
        let open = async {
            let place = self.place(global, config).await?;
            Stage::open(place, config.clone(), self.verbose, true).await
        };
        let mut stage = tokio::select! {
            stage = open => stage?,
            signal = interrupts.next() => return Ok(ExitCode::from(128 + signal)),
        };
        let is_bare = self.command.is_empty();
        let reload = Arc::clone(&stage.reload);
        let played = {
            let mut playing = pin!(self.play(&mut stage, began, global.json));
            loop {
                tokio::select! {
                    played = &mut playing => break played,
                    // Where the terminal has gone, the signal tells of that.
                    signal = interrupts.next() => if Interrupts::is_hangup(signal) && (!has_terminal || at_terminal()) {
                        output::note("hero: the units reload the configuration");
                        reload.store(true, Ordering::Relaxed);
                    } else {
                        // Without a command, an interrupt is the normal end.
                        break Ok(if is_bare { 0 } else { 128 + signal });
                    },
                }
            }
        };
        let down = stage.take_down(&mut interrupts).await;
        let code = played?;
        down.map(|()| ExitCode::from(code))
    }

    async fn place(&self, global: &Global, config: &Config) -> Result<StageFolder, Error> {
        let Some(dir) = &self.keep else { return StageFolder::temporary() };
        let kept = KeptFolder::take(dir, Stage::end_max(config)).await?;
        let real = |file: &Path| file.canonicalize().ok();
        let own = real(&kept.config_file());
        let is_named = global.named_file().is_some_and(|named| own.is_none() || real(named) != own);
        Ok(StageFolder::Kept(kept, is_named))
    }

    /// Starts everything, and waits for the end of the command.
    async fn play(&self, stage: &mut Stage, began: Instant, json: bool) -> Result<u8, Error> {
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
        let token = stage.place.token()?;
        stage.start_unit("supervisor", &[(DEV_TOKEN, &token)])?;
        for actor in &actors {
            stage.start_unit(&actor.unit(), &[])?;
        }
        stage.until_present(&actors).await?;
        let has_supervisor =
            async |client: &Client| Ok(!client.system().supervisors().await?.is_empty());
        stage.until(has_supervisor, "presence of the supervisor").await?;
        let address = stage.until_api().await?;
        let access = Access { address, token };
        self.report_ready(stage, &types, &access, began, json)?;
        stage.start_command(&self.command, &access.variables())?;
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
        let is_open = |name: &&ScriptType| !stage.config.is_sandboxed(name);
        let said_of = |name: &ScriptType| {
            format!("{name}{}", if is_open(&name) { " (not sandboxed)" } else { "" })
        };
        let names = types.iter().map(said_of).collect::<Vec<_>>().join(", ");
        let (url, file) = (stage.config.redis.redacted_url(), stage.config_file.display());
        if !self.command.is_empty() {
            output::note(&format!("ready in {ready_s:.2} s: {names} on {url}"));
            return Ok(());
        }
        if json {
            let file = file.to_string();
            let open: Vec<&ScriptType> = types.iter().filter(is_open).collect();
            let ready = json!({ "ready_s": ready_s, "types": types, "not_sandboxed": open,
                "redis": url, "config": file,
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

/// Returns whether a terminal is there: one that was closed counts no more.
fn at_terminal() -> bool {
    std::io::stdin().is_terminal() || std::io::stderr().is_terminal()
}

/// Returns whether a type is `HeroScript` as it is without a configuration.
fn is_heroscript_by_default(config: &Config, script_type: &ScriptType) -> bool {
    let of_type = config.types.get(script_type);
    of_type.is_some_and(|of_type| of_type.engine == EngineKind::HeroScript)
        && of_type == Config::default().types.get(script_type)
}

struct Access {
    address: String,
    token: String,
}

impl Access {
    /// Returns the address of the page, which signs in the one who opens it.
    fn page(&self) -> String {
        format!("{}/login?token={}", self.address, self.token)
    }

    /// Returns the variables that lead a command to the page and the API.
    fn variables(&self) -> [(&'static str, String); 3] {
        let (address, token) = (self.address.clone(), self.token.clone());
        [("HERO_PAGE", self.page()), ("HERO_API", address), ("HERO_TOKEN", token)]
    }
}
