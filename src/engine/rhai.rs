//! The engine of the script types `osis` and `sal`: Rhai.
//!
//! All threads of a script type share one interpreter. The state of a single run is in
//! `runtime::run`, which hooks and functions reach through the thread.

mod base;
mod cache;
mod calls;
mod check;
mod formats;
mod functions;
mod interpreter;
mod modules;
mod osis;
mod runtime;
mod sal;
mod session;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use ::rhai::{AST, Dynamic, EvalAltResult, ImmutableString, Scope};

use super::process::remove_leftovers;
use super::{Backends, Cancel, Engine, Failure, Log, Script, Success};
use crate::config::{JobConfig, RhaiLimits, SalConfig, TypeConfig};
use crate::proto::job::{INPUT_FILES, InvalidJob, JobOutput, OutputOverflow};
use crate::proto::target::ScriptType;
use cache::ScriptCache;
pub use calls::{ModuleCall, RhaiModule};
pub use check::Finding;
use functions::Functions;
pub use functions::{Function, Group};
use modules::Modules;
pub(crate) use runtime::run::dynamic;
use runtime::run::{ScriptRun, stack_bytes, terminated};
use runtime::settings::SalSettings;
use runtime::{failure, json_form, memory};
pub use session::Session;

#[derive(Debug)]
pub struct RhaiEngine {
    script_type: ScriptType,
    interpreter: ::rhai::Engine,
    modules: Modules,
    cache: ScriptCache,
    groups: Vec<Group>,
    osis: Option<Backends>,
    sal: Option<SalSettings>,
    limits: RhaiLimits,
    output_bytes_max: u64,
    output_overflow: OutputOverflow,
}

impl RhaiEngine {
    /// Creates an engine for `osis`: its scripts cannot reach the system, only stored objects, and
    /// these only after [`RhaiEngine::with_backends`].
    pub fn osis(script_type: ScriptType, limits: &RhaiLimits, job: &JobConfig) -> Self {
        let engine = Self::new(script_type, limits, job, osis::register);
        Self { osis: Some(Backends::default()), ..engine }
    }

    /// Creates an engine for `sal`: its scripts reach the system, as far as `[sal]` allows.
    pub fn sal(
        script_type: ScriptType,
        limits: &RhaiLimits,
        job: &JobConfig,
        sal: &SalConfig,
    ) -> Self {
        let settings = SalSettings::new(sal, job);
        Self { sal: Some(settings), ..Self::new(script_type, limits, job, sal::register) }
    }

    #[must_use]
    pub fn with_backends(mut self, backends: &Backends) -> Self {
        if let Some(settings) = &mut self.osis {
            *settings = Backends { redis: None, ..backends.clone() };
            osis::register_declared(&mut self.interpreter, &settings.osis);
        }
        if let Some(settings) = &mut self.sal {
            settings.redis.clone_from(&backends.redis);
        }
        self
    }

    /// Lets scripts import the modules in these folders; without folders no script can import.
    #[must_use]
    pub fn with_modules(mut self, folders: &[PathBuf]) -> Self {
        self.modules = Modules::new(folders);
        self.interpreter.set_module_resolver(self.modules.clone());
        self
    }

    #[must_use]
    pub fn with_eval(mut self, allowed: bool) -> Self {
        if allowed {
            interpreter::check_tokens(&mut self.interpreter, None);
        }
        self
    }

    #[must_use]
    pub fn with_type(self, config: &TypeConfig) -> Self {
        self.with_modules(&config.modules).with_eval(config.eval)
    }

    fn new(
        script_type: ScriptType,
        limits: &RhaiLimits,
        job: &JobConfig,
        register: impl FnOnce(&mut Functions<'_>),
    ) -> Self {
        let eval_key = format!("type.{script_type}.eval");
        let modules = Modules::new(&[]);
        let mut interpreter = interpreter::interpreter(limits, eval_key);
        interpreter.set_module_resolver(modules.clone());
        let mut functions = Functions::new(&mut interpreter);
        base::register(&mut functions);
        formats::register(&mut functions);
        register(&mut functions);
        let groups = functions.finish();
        Self {
            script_type,
            interpreter,
            modules,
            cache: ScriptCache::default(),
            groups,
            osis: None,
            sal: None,
            limits: limits.clone(),
            output_bytes_max: job.output_size_max,
            output_overflow: job.output_overflow,
        }
    }

    /// Returns every function of its scripts beside the language's own.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Runs a script as [`Engine::run`] does, after those that ran in the session before.
    pub fn run_in(
        &self,
        session: &mut Session,
        script: &Script<'_>,
        cancel: &Cancel,
        log: &dyn Log,
    ) -> Result<Success, Failure> {
        self.run_with(script, cancel, log, |run| session.evaluate(&self.interpreter, run))
    }

    fn compiled(&self, source: &str) -> Result<Arc<AST>, Box<EvalAltResult>> {
        if let Some(hit) = self.cache.get(source) {
            return Ok(hit);
        }
        let compiled = interpreter::compile(&self.interpreter, &Scope::new(), source)
            .map_err(EvalAltResult::from)?;
        let compiled = Arc::new(compiled);
        self.cache.put(source, &compiled);
        Ok(compiled)
    }

    fn evaluate(&self, run: &ScriptRun<'_>) -> Result<Dynamic, String> {
        self.compiled(run.script.source)
            .and_then(|compiled| {
                // A stop may have come during the compilation.
                if run.check_now().is_some() {
                    return Err(terminated().into());
                }
                self.interpreter.eval_ast_with_scope::<Dynamic>(&mut Scope::new(), &compiled)
            })
            .map_err(|error| failure::message(&error))
    }

    fn output(&self, run: &ScriptRun<'_>, value: &Dynamic) -> Result<JobOutput, String> {
        if sal::is_command(value) {
            let message = "the script ends in a command that was not run: call `.execute()` on it";
            return Err(message.to_owned());
        }
        let bytes_max = self.output_bytes_max;
        let overflow = run.script.output_overflow.unwrap_or(self.output_overflow);
        if let Some(text) = value.read_lock::<ImmutableString>()
            && text.len() as u64 > bytes_max
            && overflow == OutputOverflow::Truncate
        {
            let (output, cut) = JobOutput::truncated(text.as_bytes(), 0, bytes_max);
            run.log.output_truncated(cut);
            return Ok(output);
        }
        let names = |type_name| self.interpreter.map_type_name(type_name).to_owned();
        json_form::text(value, bytes_max, &names).map(JobOutput::from)
    }

    fn run_with(
        &self,
        script: &Script<'_>,
        cancel: &Cancel,
        log: &dyn Log,
        evaluate: impl FnOnce(&ScriptRun<'_>) -> Result<Dynamic, String>,
    ) -> Result<Success, Failure> {
        if script.files.is_some_and(|files| !files.is_without_own()) {
            let reason =
                format!("are for scripts that run as processes, and {} does not", self.script_type);
            let message = InvalidJob::new(INPUT_FILES, reason).to_string();
            return Err(Failure::Invalid { message });
        }
        let (osis, sal) = (self.osis.as_ref(), self.sal.as_ref());
        let run = ScriptRun::new(script, cancel, log, &self.limits, osis, sal);
        let evaluate = || evaluate(&run).and_then(|value| self.output(&run, &value));
        // A panic in a function or in the interpreter fails the script, not the actor. Only the run
        // can be left inconsistent: the locks of the cache ignore poison.
        let result = run
            .enter(|| catch_unwind(AssertUnwindSafe(evaluate)))
            .unwrap_or_else(|panic| Err(panic_message(panic.as_ref())));
        // A stopped script counts as stopped, even if it caught the error.
        if let Some(failure) = run.stopped() {
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
        if let Some(failure) = Failure::of_bounds(script, &self.script_type) {
            return Err(failure);
        }
        let _running = memory::Running::begin();
        self.run_with(script, cancel, log, |run| self.evaluate(run))
    }

    fn stack_bytes(&self) -> usize {
        stack_bytes(&self.limits)
    }

    fn warm_up(&self) {
        // Scripts of `osis` have no folder, and their process may not remove one.
        if self.sal.is_some() {
            remove_leftovers();
        }
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
