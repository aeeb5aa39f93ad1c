//! Rhai, the engine of the script types `osis` and `sal`.
//!
//! One interpreter serves all threads of a script type; what belongs to a single run is in
//! `running`, which its hooks and functions reach through the thread.

mod cache;
mod check;
mod constants;
mod failure;
mod functions;
mod job;
mod nesting;
mod osis;
mod output;
mod running;
mod sal;
mod session;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::rhai::{AST, Dynamic, EvalAltResult, Scope};

use super::{Backends, Cancel, Engine, Failure, Log, Script, Success};
use crate::config::{JobConfig, OsisConfig, RhaiLimits, SalConfig};
use crate::proto::target::ScriptType;
use cache::Cache;
pub use check::{Finding, nearest};
use functions::Functions;
pub use functions::{Function, Group};
use running::Running;
pub use session::Session;

/// Runs Rhai scripts with a fixed set of functions.
#[derive(Debug)]
pub struct RhaiEngine {
    script_type: ScriptType,
    interpreter: ::rhai::Engine,
    cache: Cache,
    groups: Vec<Group>,
    osis: Option<osis::Settings>,
    sal: Option<sal::Settings>,
    output_bytes_max: u64,
}

impl RhaiEngine {
    /// One whose scripts have no way to the outside but to the objects that they keep. These are
    /// nowhere yet: see [`RhaiEngine::with_backends`].
    pub fn osis(script_type: ScriptType, limits: &RhaiLimits, job: &JobConfig) -> Self {
        let mut interpreter = osis::engine(limits);
        let mut functions = Functions::new(&mut interpreter);
        osis::register(&mut functions);
        osis::register_objects(&mut functions);
        let groups = functions.finish();
        let mut engine = Self::new(script_type, interpreter, groups, None, job);
        let (limits, config) = (limits.clone(), OsisConfig::default());
        engine.osis = Some(osis::Settings { limits, config, objects: None });
        engine
    }

    /// Gives its scripts the services that they call.
    #[must_use]
    pub fn with_backends(mut self, backends: &Backends) -> Self {
        if let Some(settings) = &mut self.osis {
            settings.config = backends.osis.clone();
            settings.objects.clone_from(&backends.objects);
        }
        if let Some(settings) = &mut self.sal {
            settings.redis.clone_from(&backends.redis);
        }
        self
    }

    /// One whose scripts reach the system, within what `sal` allows.
    pub fn sal(
        script_type: ScriptType,
        limits: &RhaiLimits,
        job: &JobConfig,
        sal: &SalConfig,
    ) -> Self {
        let mut interpreter = osis::engine(limits);
        let mut functions = Functions::new(&mut interpreter);
        osis::register(&mut functions);
        sal::register(&mut functions);
        let groups = functions.finish();
        let settings = sal::Settings::new(sal, limits, job);
        Self::new(script_type, interpreter, groups, Some(settings), job)
    }

    fn new(
        script_type: ScriptType,
        interpreter: ::rhai::Engine,
        groups: Vec<Group>,
        sal: Option<sal::Settings>,
        job: &JobConfig,
    ) -> Self {
        let output_bytes_max = job.output_size_max;
        Self {
            script_type,
            interpreter,
            cache: Cache::default(),
            groups,
            osis: None,
            sal,
            output_bytes_max,
        }
    }

    /// Every function that its scripts have beside those of the language.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn compiled(&self, source: &str) -> Result<Arc<AST>, Box<EvalAltResult>> {
        if let Some(hit) = self.cache.get(source) {
            return Ok(hit);
        }
        let compiled = Arc::new(self.interpreter.compile(source).map_err(EvalAltResult::from)?);
        self.cache.put(source, &compiled);
        Ok(compiled)
    }

    fn evaluate(&self, running: &Running<'_>) -> Result<String, String> {
        let value = self
            .compiled(running.script.source)
            .and_then(|compiled| {
                // Compiling is short, but a stop may have come meanwhile.
                if running.look().is_some() {
                    return Err(running::terminated().into());
                }
                self.interpreter.eval_ast_with_scope::<Dynamic>(&mut Scope::new(), &compiled)
            })
            .map_err(|error| failure::message(&error))?;
        self.output(&value)
    }

    /// What a script gives.
    fn output(&self, value: &Dynamic) -> Result<String, String> {
        if sal::is_command(value) {
            let message = "the script ends in a command that was not run: call `.execute()` on it";
            return Err(message.to_owned());
        }
        let names = |type_name| self.interpreter.map_type_name(type_name).to_owned();
        output::text(value, self.output_bytes_max, &names)
    }
}

impl RhaiEngine {
    /// Makes a script this thread's job for as long as `evaluate` takes.
    fn run_with(
        &self,
        script: &Script<'_>,
        cancel: &Cancel,
        log: &dyn Log,
        evaluate: impl FnOnce(&Running<'_>) -> Result<String, String>,
    ) -> Result<Success, Failure> {
        let running = Running::new(script, cancel, log, self.osis.as_ref(), self.sal.as_ref());
        // A panic in a function or in the interpreter is the script's failure, not the actor's.
        // What it leaves half done is this run's alone: the cache's locks shrug off poison.
        let result = running
            .enter(|| catch_unwind(AssertUnwindSafe(|| evaluate(&running))))
            .unwrap_or_else(|panic| Err(panic_message(panic.as_ref())));
        // A stop is a stop, whatever the script made of it.
        if let Some(failure) = running.stopped() {
            return Err(failure);
        }
        match result {
            Ok(output) => Ok(Success { output, exit_code: None }),
            Err(message) => Err(Failure::Script { message, exit_code: None }),
        }
    }
}

impl Engine for RhaiEngine {
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure> {
        self.run_with(script, cancel, log, |running| self.evaluate(running))
    }

    fn unavailable(&self) -> Option<String> {
        None
    }

    fn capabilities(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| group.name).filter(|name| *name != "base");
        std::iter::once("rhai").chain(groups).map(ToOwned::to_owned).collect()
    }

    fn script_type(&self) -> &ScriptType {
        &self.script_type
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the engine panicked: {}", text.unwrap_or("no message"))
}

#[cfg(test)]
mod tests;
