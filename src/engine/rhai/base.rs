//! The functions of every script, beside the language's own: waiting, progress, and the meaning of its end.

use std::time::Duration;

use ::rhai::{EvalAltResult, FLOAT, INT};

use super::functions::Functions;
use super::runtime::run::{Stop, terminated, with};
use crate::engine::Failure;
use crate::proto::text::shown;
use crate::proto::units::parse_duration;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "base",
        "Available to every script, together with the constants JOB_ID, CALLER_ID and CONTEXT_ID, \
         the map ENV (the job's environment variables), the map INPUTS (the output of each \
         prerequisite, by its job id and by its name in a graph), the array args (the job's \
         arguments) and the map params (its parameters).",
    );
    functions
        .add(
            "sleep",
            ["seconds"],
            "Waits for a number of seconds, or until the job is stopped.",
            "sleep(0.01);",
            sleep,
        )
        .overload(["seconds"], |seconds: INT| sleep(float_of(seconds)));
    functions
        .add(
            "progress",
            ["fraction", "text"],
            "Reports the progress of the job, from 0 to 1, with a text about its present work.",
            "progress(0.4, \"reading\");",
            |fraction: FLOAT, text: &str| progress(fraction, text),
        )
        .overload(["fraction", "text"], |fraction: INT, text: &str| {
            progress(float_of(fraction), text)
        })
        .overload(["fraction"], |fraction: FLOAT| progress(fraction, ""))
        .overload(["fraction"], |fraction: INT| progress(float_of(fraction), ""));
    functions
        .add(
            "retry_in",
            ["delay", "reason"],
            "Ends the script, and lets the job run again after a time; no attempt is lost.",
            "retry_in(\"5m\", \"the server is busy\");",
            |delay: &str, reason: &str| retry_in(delay, reason),
        )
        .overload(["delay"], |delay: &str| retry_in(delay, ""))
        .overload(["seconds", "reason"], |seconds: INT, reason: &str| retry_after(seconds, reason))
        .overload(["seconds"], |seconds: INT| retry_after(seconds, ""));
    functions.add(
        "discard",
        ["reason"],
        "Ends the script in error, without another attempt.",
        "discard(\"no such customer\");",
        |reason: &str| give_up(Failure::discarded(reason.to_owned(), None)),
    );
    functions
        .add(
            "secret",
            ["name"],
            "Returns the value of a secret that the job asks for (`--secret NAME`). The job's log and \
             output show `***` in its place; an object that a script stores does not.",
            "try { secret(\"db_password\") } catch (error) { print(error) }",
            secret,
        )
        .returns("string");
}

fn secret(name: &str) -> Result<String, Box<EvalAltResult>> {
    let value = with(|run| run.script.secrets.by_name.get(name).cloned());
    value.flatten().ok_or_else(|| {
        let name = shown(name);
        let form = "or its value is not text: --secret NAME, `secret = [\"NAME\"]` in a graph";
        format!("secret: the job does not ask for `{name}`, {form}").into()
    })
}

fn retry_in(delay: &str, reason: &str) -> Result<(), Box<EvalAltResult>> {
    let delay = parse_duration(delay).map_err(|error| format!("retry_in: {error}"))?;
    give_up(Failure::postponed(Some(delay), reason.to_owned(), None))
}

fn retry_after(seconds: INT, reason: &str) -> Result<(), Box<EvalAltResult>> {
    let delay = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    give_up(Failure::postponed(Some(delay), reason.to_owned(), None))
}

/// Ends the script; no `catch` of it sees that.
pub(super) fn give_up(failure: Failure) -> Result<(), Box<EvalAltResult>> {
    let _ = with(|run| run.give_up(failure));
    Err(terminated().into())
}

#[expect(clippy::cast_precision_loss, reason = "inexact only above 2^53")]
pub(super) fn float_of(number: INT) -> FLOAT {
    number as FLOAT
}

/// A fraction outside of 0 to 1, as after rounding, is clamped rather than an error.
fn progress(fraction: FLOAT, text: &str) -> Result<(), Box<EvalAltResult>> {
    if fraction.is_nan() {
        return Err("progress: the fraction is not a number".into());
    }
    let _ = with(|run| run.log.progress(fraction.clamp(0.0, 1.0), text));
    Ok(())
}

/// Replaces Rhai's own, which ignores stops and timeouts.
fn sleep(seconds: FLOAT) -> Result<(), Box<EvalAltResult>> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Ok(());
    }
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let slept = with(|run| {
        run.sleep(time).map_err(|error| format!("sleep: {error}"))?;
        Ok::<Option<Stop>, String>(run.check_now())
    });
    match slept {
        Some(Ok(Some(_))) => Err(terminated().into()),
        Some(Err(message)) => Err(message.into()),
        _ => Ok(()),
    }
}
