//! Scripts one after the other, as at a prompt: what one defines, those after it see.

use ::rhai::{AST, Dynamic, ParseErrorType, Scope};

use super::{RhaiEngine, failure, running};
use crate::engine::{Cancel, Failure, Log, Script, Success};

/// The variables and functions that scripts have left to those after them.
#[derive(Debug, Default)]
pub struct Session {
    scope: Scope<'static>,
    functions: AST,
}

impl RhaiEngine {
    /// Runs a script as [`crate::engine::Engine::run`] does, after those that ran in the session
    /// before. One that fails may have set variables all the same; its functions are forgotten.
    ///
    /// # Errors
    /// Those of a run.
    pub fn run_in(
        &self,
        session: &mut Session,
        script: &Script<'_>,
        cancel: &Cancel,
        log: &dyn Log,
    ) -> Result<Success, Failure> {
        self.run_with(script, cancel, log, |running| {
            let compiled = self
                .interpreter
                .compile_with_scope(&session.scope, running.script.source)
                .map_err(|error| failure::message(&error.into()))?;
            if running.look().is_some() {
                return Err(failure::message(&running::terminated()));
            }
            let all = session.functions.merge(&compiled);
            let value = self
                .interpreter
                .eval_ast_with_scope::<Dynamic>(&mut session.scope, &all)
                .map_err(|error| failure::message(&error))?;
            session.functions = all.clone_functions_only();
            self.output(&value)
        })
    }

    /// Whether a script ends in the middle of something, so that more of it may follow.
    pub fn wants_more(&self, source: &str) -> bool {
        let Err(error) = self.interpreter.compile(source) else { return false };
        let lines = source.lines().count();
        let ends_there = error.position().line().is_none_or(|line| line >= lines);
        match error.err_type() {
            ParseErrorType::UnexpectedEOF => true,
            ParseErrorType::MissingToken(..) => ends_there,
            _ => false,
        }
    }
}
