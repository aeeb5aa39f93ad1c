//! Files of Rhai functions that another engine calls by name.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use ::rhai::{AST, CallFnOptions, Dynamic, FnAccess, Map, Scope};

use super::modules::{CompiledModule, ModuleError};
use super::runtime::run::terminated;
use super::runtime::{failure, memory};
use super::{RhaiEngine, Script, Success};
use crate::engine::{Cancel, Failure, Log};

#[derive(Debug)]
pub struct RhaiModule {
    pub file: PathBuf,
    code: Arc<AST>,
    /// The public functions of one parameter.
    pub functions: BTreeSet<String>,
}

#[derive(Debug)]
pub struct ModuleCall<'a> {
    pub module: &'a RhaiModule,
    /// The place of the call, for the error.
    pub place: String,
    pub function: String,
    pub parameters: Map,
}

impl RhaiEngine {
    /// Reads and compiles `NAME.rhai` of the folders. The error is why it cannot be read, or its first mistake.
    pub fn module(&self, name: &str) -> Result<RhaiModule, String> {
        let loaded = self.modules.load(&self.interpreter, name);
        let CompiledModule { file, code } = loaded.map_err(|error| match error {
            ModuleError::Unreadable(why) => format!("cannot use {name}.rhai: {why}"),
            ModuleError::Invalid { file, error } => {
                format!("cannot use {}: {}", file.display(), failure::message(&error))
            }
        })?;
        let functions = code
            .iter_functions()
            .filter(|function| function.access == FnAccess::Public && function.params.len() == 1)
            .map(|function| function.name.to_owned())
            .collect();
        Ok(RhaiModule { file, code, functions })
    }

    /// Calls functions one after the other, as one script, until one fails. The value of the last is the output.
    pub fn call_in_order(
        &self,
        calls: Vec<ModuleCall<'_>>,
        script: &Script<'_>,
        cancel: &Cancel,
        log: &dyn Log,
    ) -> Result<Success, Failure> {
        let _running = memory::Running::begin();
        self.run_with(script, cancel, log, |run| {
            let mut value = Dynamic::UNIT;
            for ModuleCall { module, place, function, parameters } in calls {
                if run.check_now().is_some() {
                    return Err(failure::message(&terminated()));
                }
                let options = CallFnOptions::new().eval_ast(false);
                let called = self.interpreter.call_fn_with_options::<Dynamic>(
                    options,
                    &mut Scope::new(),
                    &module.code,
                    function,
                    (parameters,),
                );
                value = called.map_err(|error| {
                    let why = failure::message(&error);
                    format!("{place}: {why} in {}", module.file.display())
                })?;
            }
            Ok(value)
        })
    }
}
