//! The Rhai language with its limits: a script can compute and print, and has no way to the outside.

mod arguments;
mod nesting;
mod strings;

use std::borrow::Cow;

use ::rhai::{
    AST, Array, Dynamic, Engine, LexError, Map, OptimizationLevel, ParseError, Scope, Token,
};

use super::runtime::run::with;
use crate::config::RhaiLimits;
use crate::engine::Stream;
use arguments::ARGUMENTS_MAX;

const VARIABLES_MAX: usize = 256;
const FUNCTIONS_MAX: usize = 1_000;
pub(super) const MODULES_MAX: usize = 64;

/// Creates an interpreter without any function of ours; `eval_key` is the key that allows `eval`, which is off.
pub(super) fn interpreter(limits: &RhaiLimits, eval_key: String) -> Engine {
    let mut engine = Engine::new();
    // The string table has one lock, which all threads would compete for.
    engine.set_max_strings_interned(0);
    // A chain of curried functions grows without being measured, until dropping it overflows the stack.
    engine.disable_symbol("curry");
    // Rhai optimizes after it has parsed, in quadratic time, and polls nothing meanwhile.
    engine.set_optimization_level(OptimizationLevel::None);
    set_limits(&mut engine, limits);
    strings::register(&mut engine, limits);
    engine.on_progress(|_| with(|run| run.poll().map(|_| Dynamic::UNIT)).flatten());
    check_tokens(&mut engine, Some(eval_key));
    engine.on_print(|text| log(Stream::Stdout, text));
    engine.on_debug(|text, _, _| log(Stream::Stderr, text));
    // Rhai marks this as deprecated because its signature may still change.
    let map_len_max = limits.map_len_max;
    #[expect(deprecated, reason = "only this hook gives constants to functions as well")]
    engine.on_var(move |name, index, context| {
        let scope = context.scope();
        // Without an index, as after `eval` and `import`, the name tells.
        let value = match index {
            0 => scope.get(name),
            _ => scope.iter_raw().nth(index - 1).map(|(_, _, value)| value),
        };
        nesting::check(value, map_len_max)?;
        if index > 0 {
            return Ok(None);
        }
        match constant(name) {
            Some(value) if !scope.contains(name) => Ok(Some(value)),
            _ => Ok(None),
        }
    });
    engine
}

/// Checks each token that is parsed; `eval` is off if there is a key that allows it. Rhai does not count `eval` as a
/// call; the stack that a run may use bounds how deep texts evaluate texts.
pub(super) fn check_tokens(engine: &mut Engine, eval_key: Option<String>) {
    let refused = |symbol: &str, reason| {
        Token::LexError(Box::new(LexError::ImproperSymbol(symbol.to_owned(), reason)))
    };
    #[expect(deprecated, reason = "only this hook reaches the parser")]
    engine.on_parse_token(move |token, _, _| {
        // A script that takes long to parse ends as if it took long to run.
        if with(|run| run.poll().is_some()) == Some(true) {
            // Of all errors only this one may stand everywhere; the stop replaces its message.
            return Token::LexError(Box::new(LexError::UnterminatedString));
        }
        if !arguments::fit(&token) {
            let reason = format!("too many arguments: a call has at most {ARGUMENTS_MAX}");
            return refused(",", reason);
        }
        match (&token, &eval_key) {
            (Token::Reserved(word), Some(key)) if word.as_str() == "eval" => {
                refused("eval", format!("eval is off; {key} = true in the configuration allows it"))
            }
            _ => token,
        }
    });
}

/// Parses a script; all scripts have to come through here. Fails with the first mistake, or if the run has to stop.
pub(super) fn compile(engine: &Engine, scope: &Scope<'_>, source: &str) -> Result<AST, ParseError> {
    arguments::begin();
    engine.compile_with_scope(scope, &*without_interpreter(source))
}

/// Returns a script without a byte order mark, and with its line `#!/usr/bin/env …` as a comment.
fn without_interpreter(source: &str) -> Cow<'_, str> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    source.strip_prefix("#!").map_or(source.into(), |rest| format!("//{rest}").into())
}

fn set_limits(engine: &mut Engine, limits: &RhaiLimits) {
    let string_bytes_max = usize::try_from(limits.string_size_max).unwrap_or(usize::MAX);
    engine
        .set_max_operations(limits.operations)
        .set_max_call_levels(limits.depth)
        .set_max_expr_depths(limits.depth, limits.depth)
        .set_max_string_size(string_bytes_max)
        .set_max_array_size(limits.array_len_max)
        .set_max_map_size(limits.map_len_max)
        .set_max_variables(VARIABLES_MAX)
        .set_max_functions(FUNCTIONS_MAX)
        .set_max_modules(MODULES_MAX);
}

fn log(stream: Stream, text: &str) {
    let _ = with(|run| run.log_text(stream, text));
}

/// Returns a constant of every script, visible in its functions as well.
fn constant(name: &str) -> Option<Dynamic> {
    match name {
        "JOB_ID" => with(|run| run.script.job_id.into()),
        "CALLER_ID" => with(|run| run.script.caller_id.into()),
        "CONTEXT_ID" => with(|run| run.script.context_id.into()),
        "ENV" => with(|run| {
            let env = run.script.env.iter();
            env.map(|(name, value)| (name.as_str().into(), value.into())).collect::<Map>().into()
        }),
        "args" => with(|run| run.script.args.iter().map(Into::into).collect::<Array>().into()),
        "params" => with(|run| run.params().into()),
        "INPUTS" => with(|run| run.inputs().into()),
        _ => None,
    }
}
