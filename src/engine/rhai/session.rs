//! Scripts that run one after the other, as at a prompt: a script sees the variables and functions of
//! those before it.

use ::rhai::{AST, Dynamic, Engine, ParseErrorType, Scope};

use super::interpreter::compile;
use super::runtime::failure;
use super::runtime::run::{ScriptRun, terminated};

/// The variables and functions that scripts leave to the next one.
#[derive(Debug, Default)]
pub struct Session {
    scope: Scope<'static>,
    functions: AST,
}

impl Session {
    /// Evaluates the script of a run. A script that fails may have set variables; its functions are
    /// dropped.
    pub(super) fn evaluate(
        &mut self,
        interpreter: &Engine,
        run: &ScriptRun<'_>,
    ) -> Result<Dynamic, String> {
        let compiled = compile(interpreter, &self.scope, run.script.source)
            .map_err(|error| failure::message(&error.into()))?;
        if run.check_now().is_some() {
            return Err(failure::message(&terminated()));
        }
        let all = self.functions.merge(&compiled);
        let value = interpreter
            .eval_ast_with_scope::<Dynamic>(&mut self.scope, &all)
            .map_err(|error| failure::message(&error))?;
        self.functions = all.clone_functions_only();
        Ok(value)
    }
}

/// Returns whether a script ends inside a statement, so that more lines may follow.
pub(super) fn is_incomplete(interpreter: &Engine, source: &str) -> bool {
    let Err(error) = compile(interpreter, &Scope::new(), source) else { return false };
    let lines = source.lines().count();
    let is_at_end = error.position().line().is_none_or(|line| line >= lines);
    match error.err_type() {
        ParseErrorType::UnexpectedEOF => true,
        ParseErrorType::MissingToken(..) => is_at_end,
        _ => false,
    }
}
