//! Scripts that run in turn, as at a prompt: each sees the variables and functions of those before it.

use ::rhai::{AST, Dynamic, Engine, ParseErrorType, Scope};

use super::RhaiEngine;
use super::interpreter::compile;
use super::runtime::failure;
use super::runtime::run::{ScriptRun, terminated};

#[derive(Debug, Default)]
pub struct Session {
    scope: Scope<'static>,
    functions: AST,
}

impl Session {
    /// Evaluates the script of a run. One that fails may have set variables; its functions are dropped.
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

impl RhaiEngine {
    /// Returns whether a script ends inside a statement, so that more lines may follow.
    pub fn is_incomplete(&self, source: &str) -> bool {
        let compiled = compile(&self.interpreter, &Scope::new(), source);
        let Err(error) = compiled else { return false };
        let lines = source.lines().count();
        match error.err_type() {
            ParseErrorType::UnexpectedEOF => true,
            ParseErrorType::MissingToken(..) => {
                error.position().line().is_none_or(|at| at >= lines)
            }
            _ => false,
        }
    }
}
