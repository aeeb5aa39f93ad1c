//! What every script finds: the language without a way to the outside. The objects that scripts
//! of `osis` keep are in `objects`.

mod asking;
mod objects;
mod values;

use std::time::Duration;

use ::rhai::module_resolvers::DummyModuleResolver;
use ::rhai::{Dynamic, Engine, EvalAltResult, FLOAT, INT};

use super::functions::Functions;
use super::running::{Stop, terminated, with};
use super::{constants, nesting};
use crate::config::RhaiLimits;
use crate::engine::Stream;

pub(super) use asking::Settings;
pub(super) use objects::register as register_objects;

/// The most variables in sight at once, in one function.
const VARIABLES_MAX: usize = 256;
/// The most functions a script may define.
const FUNCTIONS_MAX: usize = 1_000;

/// An engine that computes and can do nothing else.
pub(super) fn engine(limits: &RhaiLimits) -> Engine {
    let mut engine = Engine::new();
    engine.set_module_resolver(DummyModuleResolver::new());
    // The table of strings is shared behind one lock, for which all threads would queue.
    engine.set_max_strings_interned(0);
    // Both have no limit that holds: `eval` recurses without a call being counted, and a chain of
    // curried functions grows without its size being counted, until dropping it takes more stack
    // than there is.
    engine.disable_symbol("eval").disable_symbol("curry");
    set_limits(&mut engine, limits);
    engine.on_progress(|_| with(|running| running.poll().map(|_| Dynamic::UNIT)).flatten());
    engine.on_print(|text| log(Stream::Stdout, text));
    engine.on_debug(|text, _, _| log(Stream::Stderr, text));
    // Rhai calls this experimental, and so deprecated, for as long as its form may change.
    let map_len_max = limits.map_len_max;
    #[expect(deprecated, reason = "the only way to constants that functions see as well")]
    engine.on_var(move |name, index, context| {
        let scope = context.scope();
        if index > 0 {
            let value = scope.iter_raw().nth(index - 1).map(|(_, _, value)| value);
            nesting::check(value, map_len_max)?;
            return Ok(None);
        }
        match constants::value(name) {
            Some(value) if !scope.contains(name) => Ok(Some(value)),
            _ => Ok(None),
        }
    });
    engine
}

/// The functions of every script, beside those of the language.
pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "base",
        "What every script has beside the language itself, as are the constants JOB_ID, CALLER_ID, \
         CONTEXT_ID and the map ENV.",
    );
    functions
        .add(
            "sleep",
            ["seconds"],
            "Waits for so many seconds, or until the job is stopped.",
            "sleep(0.01);",
            sleep,
        )
        .or(["seconds"], |seconds: INT| sleep(float_of(seconds)));
    functions
        .add(
            "progress",
            ["fraction", "text"],
            "Tells those who wait for the job how far it has come, from 0 to 1, and at what it is.",
            "progress(0.4, \"reading\");",
            |fraction: FLOAT, text: &str| progress(fraction, text),
        )
        .or(["fraction", "text"], |fraction: INT, text: &str| progress(float_of(fraction), text))
        .or(["fraction"], |fraction: FLOAT| progress(fraction, ""))
        .or(["fraction"], |fraction: INT| progress(float_of(fraction), ""));
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
        .set_max_modules(0);
}

fn log(stream: Stream, text: &str) {
    let _ = with(|running| running.log_text(stream, text));
}

#[expect(clippy::cast_precision_loss, reason = "nobody gives a number for which it matters")]
fn float_of(number: INT) -> FLOAT {
    number as FLOAT
}

/// What is beyond 0 and 1 by a rounding, or by a miscount, is no reason to fail a job.
fn progress(fraction: FLOAT, text: &str) -> Result<(), Box<EvalAltResult>> {
    if fraction.is_nan() {
        return Err("progress: the fraction is not a number".into());
    }
    let _ = with(|running| running.log.progress(fraction.clamp(0.0, 1.0), text));
    Ok(())
}

/// Rhai's own would sleep through stop and timeout.
fn sleep(seconds: FLOAT) -> Result<(), Box<EvalAltResult>> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Ok(());
    }
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let slept = with(|running| {
        running.sleep(time).map_err(|error| format!("sleep: {error}"))?;
        Ok::<Option<Stop>, String>(running.look())
    });
    match slept {
        Some(Ok(Some(_))) => Err(terminated().into()),
        Some(Err(message)) => Err(message.into()),
        _ => Ok(()),
    }
}
