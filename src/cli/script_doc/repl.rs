//! `hero script repl`: an interactive prompt for Rhai scripts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config as Editing, Editor};
use tokio::sync::oneshot;

use crate::cli::{Global, output};
use crate::config::{Config, EngineKind};
use crate::daemon::{self, Interrupts};
use crate::engine::rhai::{RhaiEngine, Session};
use crate::engine::{Cancel, Engine as _, Inputs, Log, Script, SecretValues, StopReason, Stream};
use crate::error::{Error, Exit};
use crate::proto::job::AskedBounds;
use crate::proto::target::ScriptType;
use crate::store::Store;

const HISTORY_LEN_MAX: usize = 1000;

/// Try scripts at a prompt; definitions persist from line to line
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero script repl -t osis\n  \
                        echo '40 + 2' | hero script repl -t sal\n\n\
                        Scripts run in this process, not in an actor, within the limits of their \
                        type. An incomplete line continues on the next; Ctrl-C discards it, or \
                        stops the running script; Ctrl-D ends. The history is in \
                        ~/.local/state/hero/repl_history.")]
pub(in crate::cli) struct Repl {
    /// The script type; its engine must be osis or sal
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "osis")]
    script_type: String,
    /// The caller of the scripts
    #[arg(long, value_name = "NAME", default_value = "")]
    caller: String,
    /// The context of the scripts, and of the objects of osis scripts
    #[arg(long, value_name = "NAME", default_value = "")]
    context: String,
}

/// The running script, which Ctrl-C stops.
type Current = Arc<Mutex<Option<Arc<Cancel>>>>;

impl Repl {
    pub(in crate::cli) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let engine = self.engine(config)?;
        let (current, stack_bytes) = (Current::default(), engine.stack_bytes());
        let prompt =
            Prompt { engine, config: config.clone(), of: self, current: Arc::clone(&current) };
        let failed =
            |error| Error::new(Exit::Unavailable, format!("cannot start the prompt: {error}"));
        let mut interrupts = Interrupts::listen()?;
        let (done, mut ended) = oneshot::channel();
        // A thread of its own: reading lines blocks, and scripts need a large stack.
        std::thread::Builder::new()
            .stack_size(stack_bytes)
            .spawn(move || done.send(prompt.serve()))
            .map_err(failed)?;
        loop {
            tokio::select! {
                result = &mut ended => {
                    let gone = |_| Error::new(Exit::Unavailable, "the prompt ended unexpectedly");
                    return result.map_err(gone)?.map(|()| ExitCode::SUCCESS);
                }
                signal = interrupts.next() => {
                    let running = lock(&current).clone();
                    match running {
                        Some(cancel) => cancel.request(StopReason::Requested),
                        None => return Ok(ExitCode::from(128 + signal)),
                    }
                }
            }
        }
    }

    fn engine(&self, config: &Config) -> Result<RhaiEngine, Error> {
        let usage = |message: String| Error::new(Exit::Usage, message);
        let script_type: ScriptType =
            self.script_type.parse().map_err(|error| usage(format!("{error}")))?;
        let Some(of_type) = config.types.get(&script_type) else {
            return Err(usage(format!("the script type `{script_type}` is not configured")));
        };
        let store = Store::open(&config.redis)
            .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
        let backends = daemon::backends(config, &store)?;
        let (limits, job) = (&of_type.limits, &config.job);
        let engine = match of_type.engine {
            EngineKind::Osis => RhaiEngine::osis(script_type, limits, job).with_type(of_type),
            EngineKind::Sal => {
                let engine = RhaiEngine::sal(script_type, limits, job, &config.sal);
                engine.with_type(of_type)
            }
            EngineKind::HeroScript | EngineKind::Command => {
                return Err(usage(format!(
                    "cannot run {script_type} at a prompt: only osis and sal are Rhai"
                )));
            }
        };
        Ok(engine.with_backends(&backends))
    }
}

fn lock(current: &Current) -> std::sync::MutexGuard<'_, Option<Arc<Cancel>>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Prompt {
    engine: RhaiEngine,
    config: Config,
    of: Repl,
    current: Current,
}

impl Prompt {
    fn serve(&self) -> Result<(), Error> {
        let broken = |error: ReadlineError| {
            Error::new(Exit::Unavailable, format!("cannot read a line: {error}"))
        };
        let editing = Editing::builder()
            .max_history_size(HISTORY_LEN_MAX)
            .map_err(broken)?
            .auto_add_history(true)
            .build();
        let mut editor = Editor::<(), FileHistory>::with_config(editing).map_err(broken)?;
        let history = history_file();
        if let Some(file) = &history {
            // A missing or broken history is no reason to stop.
            let _ = editor.load_history(file);
        }
        let (mut session, mut source) = (Session::default(), String::new());
        loop {
            let asks = if source.is_empty() { "> " } else { ". " };
            match editor.readline(asks) {
                Ok(line) => {
                    let ends = line.trim().is_empty();
                    source.push_str(&line);
                    source.push('\n');
                    if !ends && self.engine.is_incomplete(&source) {
                        continue;
                    }
                    self.run(&mut session, &std::mem::take(&mut source))?;
                }
                Err(ReadlineError::Interrupted) => source.clear(),
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(broken(error)),
            }
        }
        if !source.is_empty() {
            self.run(&mut session, &source)?;
        }
        if let Some(file) = &history {
            let _ = editor.save_history(file);
        }
        Ok(())
    }

    /// Runs one script and prints its output or its error.
    fn run(&self, session: &mut Session, source: &str) -> Result<(), Error> {
        if source.trim().is_empty() {
            return Ok(());
        }
        let cancel = Arc::new(Cancel::new());
        *lock(&self.current) = Some(Arc::clone(&cancel));
        let (env, inputs) = (BTreeMap::new(), Inputs::default());
        let script = Script {
            job_id: "repl",
            caller_id: &self.of.caller,
            context_id: &self.of.context,
            token_bounds: None,
            attempt: 1,
            traceparent: None,
            attempts_left: 0,
            started_at: None,
            state: None,
            event: None,
            source,
            extension: "",
            env: &env,
            args: &[],
            params: &crate::proto::job::Params::new(),
            bounds: &AskedBounds::default(),
            secrets: &SecretValues::default(),
            inputs: &inputs,
            files: None,
            output_overflow: None,
            deadline: Instant::now() + self.config.job.timeout,
        };
        let result = self.engine.run_in(session, &script, &cancel, &Terminal);
        *lock(&self.current) = None;
        match result {
            Ok(success) => output::result(&success.output, false),
            Err(failure) => {
                output::note(&failure.to_string());
                Ok(())
            }
        }
    }
}

struct Terminal;

impl Log for Terminal {
    fn line(&self, stream: Stream, line: &str) {
        match stream {
            Stream::Stdout => drop(output::unchanged(format!("{line}\n").as_bytes())),
            Stream::Stderr => output::note(line),
        }
    }
}

/// The file of the history; `None` without a home folder.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    let folder = state.join("hero");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("repl_history"))
}
